"""Shipped worlds move by what their vortons say, and resume exactly: one run of each tells both.

Velocities are compared with the direct sum, with default settings. Run as a program it prints the table of
docs/notes/velocity.md: python -m tests.worlds.test_velocity_errors
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.shipped_worlds import shipped
from ecs_fluid.worlds.world_recipe import read

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")

MOST = 0.02
"""RMS error of velocities, relative to their RMS."""

BY_DAY, BY_NIGHT = 3, 6
"""Ticks in which errors are measured."""

NO_SUM = {
    *("bubbles", "dam_break", "drop_on_floor", "falling_drop", "filled_container", "filling_tank"),
    *("heavy_ball_in_box", "loaded_boat", "sloshing_dam", "splash", "syrup", "water_thread"),
    *("reconnection", "taylor_green", "taylor_green_400", "trefoil"),
    *("hot_plate", "lock_exchange", "rotating_container", "sloshing_container"),
}
"""Worlds without vortons, that repeat, or between walls, where no sum in open space is the truth."""

MOVED_BY_VORTONS = sorted(set(shipped()) - NO_SUM)

GROWING = {
    *("ball_through_smoke", "buoyant_plume", "dye_drop", "oblique_rings", "rayleigh_taylor"),
    *("spinning_ball", "thermal_plume"),
}
"""Worlds with errors of 0.016 to 0.12 in their first ticks; most have little but noise then, which their
flow outgrows."""


BY_NIGHT_ALONE = {"buoyant_plume", "oblique_rings", "taylor_green_400", "trefoil", "viscous_ring"}
"""The five that take longest: others try thin rings, worlds that repeat and viscosity by day."""


def by_day(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.nightly if name in BY_NIGHT_ALONE else ()) for name in names]


class Told(NamedTuple):
    """What the run of a shipped world left."""

    errors: list[float]
    checkpoint: Path
    """Two ticks before its end."""
    hashes: list[str]
    """Of its state there, and after each of the two."""


def errors(world: ef.World, ticks: int) -> list[float]:
    """Errors at 64 vortons and 64 other particles, the larger of the two, where they are measured."""
    velocity, found = world.system(ef.VelocitySystem), []
    while world.tick < ticks:
        world.step()
        if velocity is not None and velocity.velocity_error is not None:
            found.append(velocity.velocity_error)
    return found


def sampled(world: ef.World, begin: int, ticks: int, samples: int) -> ef.World:
    """The world at tick `begin`, whose errors are measured at so many ticks until `ticks`."""
    world.step(begin - world.tick)
    world.require(ef.DiagnosticsSystem).every = max(1, (ticks - begin) // samples)
    return world


@pytest.fixture(scope="module")
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Of 4 ticks, of 26 where the flow has yet to grow.

    Debug mode, in which a tick takes up to twice as long, is on in the first; a world resumed from here is in
    it again.
    """
    name, path = request.param, tmp_path_factory.mktemp("told") / "middle.npz"
    begin, ticks = (2, 4) if name in NO_SUM else (20, 26) if name in GROWING else (1, 4)
    world = ef.load(name, "world.debug=true")
    world.step()
    world._ticker.debug = False
    found = errors(sampled(world, begin, ticks, BY_DAY), ticks - 2)
    world.save(path)
    hashes = [world.state_hash()]
    for tick in (ticks - 1, ticks):
        found += errors(world, tick)
        hashes.append(world.state_hash())
    assert all(np.isfinite(x.x).all() for (x,) in world.query(ef.Position))
    return Told(found, path, hashes)


def root_mean_square(found: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(found))))


@pytest.mark.parametrize("told", by_day([*MOVED_BY_VORTONS, *sorted(NO_SUM)]), indirect=True)
def test_shipped_worlds_resume_exactly(told: Told) -> None:
    """Case 111 for every shipped world, in debug mode: saved, 1 and 1 more ticks, bit for bit."""
    again = ef.resume(told.checkpoint)
    assert again.state_hash() == told.hashes[0]
    for expected in told.hashes[1:]:
        again.step()
        assert again.state_hash() == expected
    assert len(set(told.hashes)) == 3


@pytest.mark.parametrize("told", by_day(MOVED_BY_VORTONS), indirect=True)
def test_velocities_are_the_sums_of_all_vortons(told: Told) -> None:
    """In the second to fourth tick, and between 20 and 26 where flows have yet to grow."""
    assert len(told.errors) == BY_DAY
    assert root_mean_square(told.errors) <= MOST


@pytest.mark.nightly
@pytest.mark.parametrize("name", MOVED_BY_VORTONS)
def test_velocities_of_grown_flows_are_the_sums_of_all_vortons(name: str) -> None:
    ticks = read(name).ticks // 2
    assert root_mean_square(errors(sampled(ef.load(name), 0, ticks, BY_NIGHT), ticks)) <= MOST


def main() -> None:
    """Print the table: RMS and largest error over the first half of each world."""
    print("| world | ticks | error, RMS | largest |\n|---|---|---|---|")
    for name in MOVED_BY_VORTONS:
        ticks = read(name).ticks // 2
        found = errors(sampled(ef.load(name), 0, ticks, BY_NIGHT), ticks)
        print(f"| {name} | {ticks} | {root_mean_square(found):.4f} | {max(found):.4f} |", flush=True)


if __name__ == "__main__":
    main()
