"""What the solver auto goes by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.systems.velocity.auto import COUNTED
from ecs_fluid.systems.velocity.solver_bench import ring
from ecs_fluid.systems.velocity.solver_times import NEVER
from ecs_fluid.systems.velocity.solver_work import fmm_work, mesh_work, tree_work


def at_rest(n: int, **velocity: Any) -> ef.World:
    """A ring that does not move."""
    cloud, world = ring(n), ef.World(dt=1e-3, precision="single")
    world.spawn("ring", ef.Position(cloud["x"]), ef.Strength(cloud["alpha"]), ef.CoreRadius(cloud["sigma"]))
    world.add_system(ef.VelocitySystem(**velocity))
    return world


@pytest.mark.parametrize(("n", "tolerance"), [(5000, 1e-2), (5000, 1e-4), (9000, 1e-3)])
@pytest.mark.parametrize("wrong", [(3.0, 1.0), (1.0, 3.0), (1 / 3, 3.0), (3.0, 1 / 3)])
def test_a_wrong_table_matters_in_the_first_ticks_only(
    n: int, tolerance: float, wrong: tuple[float, float]
) -> None:
    """Times of tree and fmm that are off by three change who is asked first, and not what comes of it."""
    right, other = (at_rest(n, solver="auto", tolerance=tolerance) for _ in range(2))
    other.fluid[ef.SolverTimes].seconds[:, :, 1:] *= np.array(wrong)[:, None]
    for world in (right, other):
        world.step(4)
    assert np.array_equal(right["ring"][ef.Velocity].u, other["ring"][ef.Velocity].u)


def test_the_least_work_is_chosen() -> None:
    """After the first ticks the velocity is that of the solver that did least, the direct sum among them."""
    n = 6000
    world = at_rest(n, solver="auto", tolerance=1e-3)
    world.step(4)
    work = dict(zip(COUNTED, world.fluid[ef.SolverTimes].work[0] * n, strict=True), direct=float(n) ** 2)
    asked = {solver: done for solver, done in work.items() if 0.0 < done < NEVER}
    assert len(asked) >= 3
    best = min(asked, key=asked.__getitem__)
    assert best in ("tree", "fmm")
    alone = at_rest(n, solver=best, tolerance=1e-3, angle=float(world.fluid[ef.SolverTimes].angle[0]))
    alone.add_system(ef.PartitionSystem())
    alone.step()
    assert np.array_equal(world["ring"][ef.Velocity].u, alone["ring"][ef.Velocity].u)


def test_work_without_gradient_is_of_cheaper_pairs() -> None:
    """All but the pairs weighs more beside them."""
    assert tree_work(1e6, 1000, False) > tree_work(1e6, 1000, True)
    assert fmm_work(1e6, 1e3, 8, 1000, False) > fmm_work(1e6, 1e3, 8, 1000, True)
    assert mesh_work(1e6, False) > mesh_work(1e6, True)


def slow_sums(world: ef.World) -> list[str]:
    return [text for text in world.lint() if "all pairs" in text]


def test_many_vortons_summed_in_pairs_are_told_of() -> None:
    (told,) = slow_sums(at_rest(17_000, solver="direct"))
    assert told.startswith("VelocitySystem: solver = 'direct' sums all pairs of 17,000 vortons; solver = 'au")
    auto = at_rest(17_000, solver="auto")
    assert not slow_sums(auto) and not slow_sums(at_rest(4000, solver="direct"))
    auto.step()
    work = auto.fluid[ef.SolverTimes].work[0]  # in pairs of the direct sum, over sqrt(vortons targets)
    assert 0 < work[work > 0].min() < 0.5 * 17_000
