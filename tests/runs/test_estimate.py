"""`run --estimate` against what it predicts; benchmarks/estimate.py compares times, which tests do not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

import numba
import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.cli import main
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.runs import estimate as estimating
from ecs_fluid.runs.estimate import duration, estimate, first_ticks
from ecs_fluid.runs.runner import Runner
from ecs_fluid.worlds.world_recipe import read
from tests.small_worlds import NOZZLE, RING

WORLD = f"""
[world]
dt = 0.01
duration = 1.0

[fluid]
velocity.solver = "direct"
diagnostics.every = 10
{RING}
spacing = 0.1
{NOZZLE}
rate = 5000.0

[[system]]
kind = "age_limit"
seconds = 0.4
on = ["smoke"]
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An emitter fills its world in the first four tenths of a run of 100 ticks."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "puffs.toml"
    path.write_text(WORLD, encoding="utf-8")
    return path


def test_disk_and_rows_are_foreseen_before_an_emitter_has_filled_its_world(world: Path) -> None:
    """16 long ticks find 5000/s x 0.4 s = 2000 tracers, and the disk within the 25 % that are promised."""
    recipe = read(world)
    found = estimate(
        lambda dt: read(world, (f"world.dt={dt!r}",)).build(),
        recipe.world.dt,
        recipe.ticks,
        every=3,
        checkpoint_seconds=60.0,
        allowed=0.0,
    )
    assert found.whole and found.sampled == 16
    # A tick of 1/16 s is long against the age limit: up to one tick's particles more or less.
    assert found.particles["smoke"] == pytest.approx(2000, abs=5000 / 16)
    assert found.seconds > 0.0
    folder = RunFolder.create("run", "", {})
    Runner(recipe.build(), folder, recipe.ticks, 3, 60.0).execute(lambda world, last: False)
    assert RunFolder.open("run").read_info()["particles"]["smoke"] == pytest.approx(2000, abs=50)
    assert len(RunFolder.open("run").read_trajectory()) == 35  # 0, 3, ..., 99 and the last
    disk = sum(path.stat().st_size for path in Path("run").rglob("*") if path.is_file())
    assert found.disk == pytest.approx(disk, rel=0.25)


class Picky(ef.System):
    """Refuses ticks longer than it is told."""

    longest: float
    reads = writes = (ef.Position,)
    phase = "move"

    def process(self, dt: float) -> None:
        if dt > self.longest:
            raise ef.FluidError(f"dt = {dt} s is too long")


@pytest.mark.parametrize(("longest", "sampled"), [(1.0, 16), (0.04, 32), (0.01, 100)])
def test_steps_become_shorter_until_the_world_bears_them(world: Path, longest: float, sampled: int) -> None:
    """A run of 100 ticks of 0.01 s: steps of 1/16, 1/32, 1/64 s, and its own at last."""

    def build(dt: float) -> ef.World:
        made = ef.World(dt=dt)
        made.spawn("points", ef.Position([[0.0, 0.0, 0.0]]))
        made.add_system(Picky(longest=longest))
        return made

    found = estimate(build, 0.01, 100, every=1, checkpoint_seconds=60.0, allowed=0.0)
    assert (found.whole, found.sampled, found.particles) == (True, sampled, {"points": 1})
    # Too many ticks to halve down to the world's own step: the first 64 stand for all.
    if longest == 0.01:
        found = estimate(build, 0.01, 10_000, every=1, checkpoint_seconds=60.0, allowed=0.0)
        assert (found.whole, found.sampled) == (False, 64)


class Costly(ef.System):
    """Moves a clock on: by `tick` s each tick, and by `second` s for each simulated second."""

    clock: ClassVar[list[float]] = [0.0]
    tick: float = 0.0
    second: float = 0.0
    reads = (ef.Position,)
    phase = "observe"

    def process(self, dt: float) -> None:
        self.clock[0] += self.tick + self.second * dt


@pytest.mark.parametrize(
    ("costs", "seconds", "sampled", "whole"),
    [
        # 100 ticks of 0.01 s. Of 16 long ones each takes what 6.25 own ones take; these are 0.01 s each.
        ({"second": 1.0}, 1.0, 16, True),
        # A tick takes the same however long it is. 16 would take 3 s; so after two, 1.8 s less 0.38 s being
        # too short for 14 more, steps become twice as long: 7 more.
        ({"tick": 0.19}, 19.0, 9, True),
        # The first long tick takes 6 s, too long for any other: own ones take 0.96 s each.
        ({"second": 96.0}, 96.0, 1, False),
    ],
)
def test_what_a_tick_costs_is_that_of_the_own_step(
    costs: dict[str, float], seconds: float, sampled: int, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that nothing but the system moves."""
    monkeypatch.setattr(estimating.time, "perf_counter", lambda: Costly.clock[0])

    def build(dt: float) -> ef.World:
        made = ef.World(dt=dt)
        made.spawn("points", ef.Position([[0.0, 0.0, 0.0]]))
        made.add_system(Costly(**costs))
        return made

    found = estimate(build, 0.01, 100, every=1, checkpoint_seconds=60.0)
    assert (found.sampled, found.whole) == (sampled, whole)
    assert found.seconds == pytest.approx(seconds, rel=1e-9)


def test_a_world_that_fails_with_its_own_step_says_so() -> None:
    def build(dt: float) -> ef.World:
        made = ef.World(dt=dt)
        made.spawn("points", ef.Position([[0.0, 0.0, 0.0]]))
        made.add_system(Picky(longest=0.005))
        return made

    with pytest.raises(ef.FluidError, match=r"dt = 0\.01 s is too long"):
        estimate(build, 0.01, 100, every=1, checkpoint_seconds=60.0)


def test_first_ticks_compile_nothing() -> None:
    """A kernel that is not there yet is left so, and nothing is foretold; once compiled, it is."""

    @numba.njit
    def kernel(x: np.ndarray) -> float:
        return x.sum()

    class Summing(ef.System):
        phase = "rates"

        def process(self, dt: float) -> None:
            kernel(np.ones(3))
            self.warn("it is coarse", 0)

    def made() -> ef.World:
        world = ef.World(dt=0.01)
        world.add_system(Summing())
        return world

    assert first_ticks(made()) is None and not kernel.signatures
    kernel(np.ones(3))
    found = first_ticks(made(), allowed=0.0)
    assert found is not None and 0.0 < found.seconds < 10.0 and found.memory > 1e7
    assert found.said[-1].endswith("it is coarse")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.00314, "3.1 ms"), (0.0999, "99.9 ms"), (1.44, "1.4 s"), (200.0, "3 min 20 s"), (7500.0, "2 h 5 min")],
)
def test_durations_as_people_say_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_the_command_tells_time_disk_and_rows_and_leaves_nothing(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(world), "--estimate", "--ticks", "20"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"time +[\d.]+ m?s\n", text) and re.search(r"disk +[\d.]+ [kM]B\n", text)
    # 20 ticks, of which each makes 50 tracers, all alive.
    assert "smoke 1,000 at the end" in text
    assert "from 20 ticks that stand for 20" in text
    assert [path.name for path in world.parent.iterdir()] == ["puffs.toml"]
