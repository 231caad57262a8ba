"""Two leapfrogging rings against the thin-ring equations, and the order of the integrators on them.

Validation cases 35 and 113.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from flows import ring, vortons, world_of
from oracles import thin_rings

import ecs_fluid as ef

R0 = 0.7906
"""Radius of both rings and their distance, m; core radius of the blobs a tenth of it."""

TIME = 0.35 / 0.390744
"""Length of the run, s: 0.35 of the time Gamma/(...) = 1/U0 with U0 = (ln 80 - 1/2)/(4 pi R0) = 0.390744."""


def leapfrog(ticks: int, integrator: str) -> ef.World:
    """Two rings of 100 blobs and circulation 1 at z = 0 and z = R0, marched to TIME."""
    rings = [ring(100, 0.1 * R0, R0), ring(100, 0.1 * R0, R0, center=(0.0, 0.0, R0))]
    world = world_of(rings, dt=TIME / ticks, integrator=integrator)
    world.step(ticks)
    return world


def radius_and_height(world: ef.World, name: str) -> tuple[float, float]:
    """Mean distance from the axis and mean height of a ring's blobs, m."""
    x = world[name][ef.Position].x
    return float(np.hypot(x[:, 0], x[:, 1]).mean()), float(x[:, 2].mean())


def test_reference_equations() -> None:
    """Case 35: the ODE solved here gives the published end state (six digits) of the FLOWVPM case."""
    assert (math.log(80) - 0.5) / (4 * math.pi * R0) == pytest.approx(0.390744, abs=1e-6)
    radii, heights = thin_rings(np.array((R0, R0)), np.array((0.0, R0)), 0.1 * R0, -0.5, TIME)
    assert radii == pytest.approx((0.677230, 0.889638), abs=1e-6)
    assert heights == pytest.approx((0.488540, 1.189712), abs=1e-6)


def test_leapfrog() -> None:
    """Case 35: R1, R2, Z1, Z2 of 350 RK3 ticks within 1e-3 of the thin-ring equations (C = -1/2).

    The equations leave out the blobs' width in the mutual velocity, 1 - q(10) = 1.9e-4, and
    O((sigma/R)^2 ln) of the own speed, C(0.12) = -0.5014, 4e-4 of it.
    """
    world = leapfrog(350, "rk3")
    radii, heights = thin_rings(np.array((R0, R0)), np.array((0.0, R0)), 0.1 * R0, -0.5, TIME)
    for k in range(2):
        radius, height = radius_and_height(world, f"vortex{k}")
        assert radius == pytest.approx(radii[k], rel=1e-3)
        assert height == pytest.approx(heights[k], rel=1e-3)
    # The rear ring has shrunk and caught up: the flow is not just two rings side by side.
    assert radius_and_height(world, "vortex0")[0] < R0 < radius_and_height(world, "vortex1")[0]


@cache
def end_state(ticks: int, integrator: str) -> np.ndarray:
    """Positions and strengths at TIME, one vector."""
    return np.concatenate([part.ravel() for part in vortons(leapfrog(ticks, integrator))])


# Steps where |grad u| dt is small enough for the asymptotic rate, and errors are still far above rounding.
STEPS = {"euler": (400, 800), "rk2": (75, 150), "rk3": (50, 100), "rk4": (50, 100)}


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize(
    ("integrator", "order"),
    [pytest.param("euler", 1, marks=pytest.mark.nightly), ("rk2", 2), ("rk3", 3), ("rk4", 4)],
)
def test_order_of_the_integrator(integrator: str, order: int) -> None:
    """Case 113: halving dt divides the error of positions and strengths by 2^order, to 0.1 in the order.

    The reference is RK4 with 300 ticks, whose own error is (1/3)^4 of the finest compared with.
    """
    reference = end_state(300, "rk4")
    coarse, fine = (np.abs(end_state(n, integrator) - reference).max() for n in STEPS[integrator])
    assert math.log2(coarse / fine) == pytest.approx(order, abs=0.1)
