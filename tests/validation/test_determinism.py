"""Same bits for any number of threads, in any process, and after any interruption.

Validation cases 109, 110 and 111; articles P1 and P2.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from flows import skew_rings, vortons, world_of
from thread_hashes import printed_hashes
from threads_worker import SOME, busy_world

import ecs_fluid as ef
from ecs_fluid.worlds.world_recipe import shipped
from tests.resuming import resumed


def check_threads(which: str) -> dict[str, str]:
    """Assert that 2, 4 and 8 threads, and a process that has only one, give the hashes of 1; return those."""
    by_count = printed_hashes("threads_worker.py", "1,2,4,8", which)
    alone = by_count["1"]
    # Every combination is a flow of its own: a hash that saw nothing of it would be the same twice.
    assert len(set(alone.values())) == len(alone)
    for threads, found in by_count.items():
        assert found == alone, f"{threads} threads"
    assert printed_hashes("threads_worker.py", "1", which) == {"1": alone}
    return alone


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
def test_threads_and_processes_do_not_matter() -> None:
    """Cases 109, 110, P1, P2: 1, 2, 4 and 8 threads, other processes, and this one, agree on every bit."""
    alone = check_threads("some")
    for combination in SOME[:2]:
        world = busy_world(*combination)
        world.step(2)
        assert world.state_hash() == alone["/".join(combination)]


@pytest.mark.nightly
def test_threads_do_not_matter_for_any_choice() -> None:
    """Case 109 in full: 1, 2, 4, 8 threads for solver x place x precision x integrator, 80 worlds."""
    assert len(check_threads("all")) == 80


@pytest.mark.nightly
def test_fresh_and_cached_kernels_agree(tmp_path: Path) -> None:
    """P1 across installations: the run that compiles the kernels has the bits of those that load them."""
    first = printed_hashes("threads_worker.py", "2", "some", NUMBA_CACHE_DIR=str(tmp_path))
    assert printed_hashes("threads_worker.py", "2", "some", NUMBA_CACHE_DIR=str(tmp_path)) == first


def printed(worker: str, folder: Path, *arguments: int) -> list[str]:
    """What a worker prints, in order, by kernels that it keeps in a folder or finds there."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, str(Path(__file__).with_name(worker)), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=1200)
    return sorted(done.stdout.splitlines())


@pytest.mark.nightly
def test_fresh_and_cached_worlds_agree(tmp_path: Path) -> None:
    """The same for every shipped world, and for liquids whose pressure is solved for.

    Also where several processes, one after the other, compiled what one loads.
    """
    worker, one, several = "worlds_worker.py", tmp_path / "one", tmp_path / "several"
    first = printed(worker, one)
    assert len({line.split()[-1] for line in first}) == len(first) > len(shipped())
    assert printed(worker, one) == first
    assert sorted(line for k in range(5) for line in printed(worker, several, k, 5)) == first
    assert printed(worker, several) == first


def test_hash_sees_the_last_bit_and_the_seed() -> None:
    """The hash is worth comparing: one last bit of a strength, or an emitter's other seed, changes it."""
    world = world_of(skew_rings(20), dt=0.02)
    before = world.state_hash()
    alpha = world["vortex0"][ef.Strength].alpha
    alpha[3, 1] = np.nextafter(alpha[3, 1], 1.0)
    assert world.state_hash() != before

    def emitted(seed: int) -> str:
        world = ef.World(dt=0.1, seed=seed)
        world.spawn("dust", ef.Position(np.zeros((1, 3))))
        tap = ef.Emitter(name="tap", into="dust", rate=100.0, spread=(1.0, 1.0, 1.0))
        world.add_system(ef.EmissionSystem(emitters=[tap]))
        world.step(2)
        # Every tick draws anew: no particle is born where another was.
        assert len(np.unique(world["dust"][ef.Position].x, axis=0)) == 21
        return world.state_hash()

    assert emitted(3) == emitted(3) != emitted(4)


@pytest.mark.nightly
def test_fresh_and_cached_pair_loops_agree(tmp_path: Path) -> None:
    """The same for every solver's pairs, with every regularisation in both precisions."""
    first, second = (printed("pairs_worker.py", tmp_path) for _ in range(2))
    # Two precisions, four regularisations, six sums; the result of each is its own.
    assert len({line.split()[-1] for line in first}) == len(first) == 48
    assert second == first


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize("combination", SOME, ids="/".join)
def test_questions_change_nothing(combination: tuple[str, str, str, str]) -> None:
    """P1: velocities and diagnostics asked between ticks leave state, grid and fields as they are.

    The velocity field of a tick belongs to that tick's grid; a question that moved the grid to the present
    positions would make the two disagree for whoever looks next.
    """
    asked, left = (busy_world(*combination, count=60) for _ in range(2))
    for _ in range(2):
        asked.step()
        left.step()
        tables = {kind: table.copy() for kind, table in asked.fluid.tables.items()}
        asked.velocity(np.zeros((3, 3)))
        asked.diagnostics()
        for kind, table in asked.fluid.tables.items():
            for (_, now), (_, before) in zip(table.items(), tables[kind].items(), strict=True):
                assert np.array_equal(now, before), kind.__name__
        assert asked.state_hash() == left.state_hash()


def test_order_of_insertion_changes_only_rounding() -> None:
    """Case 110: permuted rows and populations take the same paths.

    Sums are taken in another order, so paths part by rounding, 1e-16 times the growth of differences over
    1 s; |grad u| is about 1.4/s. 1e-11 leaves five decades for it.
    """
    rings = skew_rings(50)
    draw = np.random.default_rng(1)
    orders = [draw.permutation(50) for _ in rings]
    shuffled = [tuple(part[order] for part in blobs) for blobs, order in zip(rings, orders, strict=True)]
    straight = world_of(rings, dt=0.02, integrator="rk3")
    turned = world_of(shuffled[::-1], dt=0.02, integrator="rk3")
    straight.step(50)
    turned.step(50)
    x, alpha = vortons(straight)
    y, beta = vortons(turned)
    back = np.concatenate([50 + np.argsort(orders[0]), np.argsort(orders[1])])
    assert np.abs(y[back] - x).max() < 1e-11
    assert np.abs(beta[back] - alpha).max() < 1e-11
    assert straight.state_hash() != turned.state_hash()


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize("combination", SOME, ids="/".join)
def test_resume_equals_a_straight_run(combination: tuple[str, str, str, str], tmp_path: Path) -> None:
    """Case 111: emitter, ageing, jerk history and row numbers included, to the last bit."""
    world = busy_world(*combination, count=150)
    world.step(3)
    resumed(world, tmp_path, 3, 3)
    assert len(world["few"]) > 13 and len(world["smoke"]) == 0
