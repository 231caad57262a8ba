"""Shipped worlds without forces keep their impulse, and lose the energy that viscosity takes, to the end."""

from __future__ import annotations

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.worlds.world_recipe import read

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")

MOMENTS = 10
EXACT, FILLED, JOINING = 1e-4, 1e-2, 2e-2
"""Most of the impulse that may be lost, as what is asked of worlds and not as what was found: of closed lines
by sums over pairs, whose strengths have no divergence; of filled cores; and of filled cores through a
reconnection, as much as velocities may be off (test_velocity_errors). oblique_rings lost 15 % before it had
room to spread (docs/notes/vorticity.md)."""

FREE = {
    "vortex_ring": EXACT,
    "leapfrog": EXACT,
    "viscous_ring": FILLED,
    "jet_ring": FILLED,
    "hill_vortex": FILLED,
    "oblique_rings": JOINING,
}
"""Worlds of closed lines without forces, bodies or periods, and with an impulse; not tubes with open ends,
whose impulse depends on the origin."""


def impulse(world: ef.World) -> Array:
    """1/2 sum x cross alpha, m^4/s, summed here."""
    pairs = list(world.query(ef.Position, ef.Strength))
    return 0.5 * sum(
        (np.cross(x.x.astype(float), a.alpha.astype(float)).sum(axis=0) for x, a in pairs), np.zeros(3)
    )


@pytest.mark.nightly
@pytest.mark.parametrize("name", FREE)
def test_impulse_stays_without_forces(name: str) -> None:
    world, ticks = ef.load(name), read(name).ticks
    start = impulse(world)
    for moment in range(1, MOMENTS + 1):
        world.step(moment * ticks // MOMENTS - world.tick)
        assert np.linalg.norm(impulse(world) - start) <= FREE[name] * np.linalg.norm(start)


@pytest.mark.nightly
def test_energy_falls_by_twice_viscosity_times_enstrophy() -> None:
    """viscous_ring, dE/dt = -2 nu Z with both of the blobs, to 4 %; trapezoidal rule between remeshings.

    Found 3.2 %, of which the edges of the cloud and the fourth order of exchange take 2 %. With exchange of
    order 2, which takes 0.76 to 0.88 of 2 nu Z at two spacings a core, and M4', by which remeshing takes 0.05
    more, it was 13 %.
    """
    world, ticks = ef.load("viscous_ring"), read("viscous_ring").ticks
    nu, records = 2e-3, []
    remesh = world.require(ef.RemeshSystem)
    while world.tick < ticks:
        world.step(remesh.every)
        record = world.diagnostics()
        records.append((world.time, record["energy"], record["enstrophy"]))
    t, energy, enstrophy = np.array(records).T
    taken = 2 * nu * np.trapezoid(enstrophy, t)
    assert energy[0] - energy[-1] == pytest.approx(taken, rel=0.04)
