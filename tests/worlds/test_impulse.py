"""Shipped worlds without forces keep their impulse to the end: 1/2 sum x cross alpha, with any viscosity."""

from __future__ import annotations

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.worlds.world_recipe import read

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")

MOMENTS = 10
EXACT, REMESHED, ON_GRID = 1e-4, 1e-2, 2e-3
"""Most of the impulse that may be lost: of closed lines by sums over pairs, whose strengths have no
divergence; of filled cores that spread, between remeshings and beyond points that were left out; of filled
cores whose velocity is read from a grid. Measured: 1e-5, 4.4e-3 and 1.2e-3 (docs/notes/vorticity.md), so that
the world whose exchange had no room to spread (oblique_rings, 15 %) would fail any of them."""

FREE = {
    "vortex_ring": EXACT,
    "leapfrog": EXACT,
    "viscous_ring": REMESHED,
    "jet_ring": ON_GRID,
    "hill_vortex": ON_GRID,
}
"""Worlds of closed lines without forces, bodies or periods, and with an impulse. Not here: oblique_rings,
whose header says that it does not keep it, and tubes with open ends, whose impulse depends on the origin."""


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
