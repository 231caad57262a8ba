"""Shipped worlds move by what their vortons say: velocities against the direct sum, with default settings.

Run as a program it prints the table of docs/notes/velocity.md: python -m tests.worlds.test_velocity_errors
"""

from __future__ import annotations

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.shipped_worlds import shipped
from ecs_fluid.worlds.world_recipe import read

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")

MOST = 0.02
"""RMS error of velocities, relative to their RMS."""

SAMPLES = 6

NO_SUM = {
    *("bubbles", "dam_break", "falling_drop", "filled_container", "heavy_ball_in_box", "sloshing_dam"),
    *("reconnection", "taylor_green", "taylor_green_400", "trefoil"),
}
"""Worlds without vortons, and worlds that repeat, where no sum in open space is the truth."""

MOVED_BY_VORTONS = sorted(set(shipped()) - NO_SUM)

GROWING = {
    *("ball_through_smoke", "dye_drop", "hot_plate", "oblique_rings", "rayleigh_taylor"),
    *("rotating_container", "spinning_ball", "thermal_plume"),
}
"""Worlds with errors of 0.016 to 0.053 in their first ticks; most have little but noise then, which their
flow outgrows."""


def errors(name: str, ticks: int, begin: int = 0) -> list[float]:
    """Errors at 64 vortons and 64 other particles, the larger of the two, at some ticks after `begin`."""
    world = ef.load(name)
    velocity, record = world.require(ef.VelocitySystem), world.require(ef.DiagnosticsSystem)
    world.step(begin)
    found, record.every = [], max(1, (ticks - begin) // SAMPLES)
    while world.tick < ticks:
        world.step()
        if velocity.velocity_error is not None:
            found.append(velocity.velocity_error)
    return found


def root_mean_square(found: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(found))))


@pytest.mark.parametrize("name", MOVED_BY_VORTONS)
def test_velocities_are_the_sums_of_all_vortons(name: str) -> None:
    """At six of the first seven ticks, and between 20 and 32 where flows have yet to grow."""
    found = errors(name, 32, 20) if name in GROWING else errors(name, 7, 1)
    assert len(found) == SAMPLES
    assert root_mean_square(found) <= MOST


@pytest.mark.nightly
@pytest.mark.parametrize("name", MOVED_BY_VORTONS)
def test_velocities_of_grown_flows_are_the_sums_of_all_vortons(name: str) -> None:
    assert root_mean_square(errors(name, read(name).ticks // 2)) <= MOST


def main() -> None:
    """Print the table: RMS and largest error over the first half of each world."""
    print("| world | ticks | error, RMS | largest |\n|---|---|---|---|")
    for name in MOVED_BY_VORTONS:
        ticks = read(name).ticks // 2
        found = errors(name, ticks)
        print(f"| {name} | {ticks} | {root_mean_square(found):.4f} | {max(found):.4f} |", flush=True)


if __name__ == "__main__":
    main()
