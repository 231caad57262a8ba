"""A vortex ring slowed by viscosity: validation case 14."""

from __future__ import annotations

import math

import numpy as np
import pytest
from axisymmetric import viscous_ring
from flows import axial_center, invariants, vortons, world_of

import ecs_fluid as ef

CORE, VISCOSITY = 0.15, 2e-3


def filled_ring(spacing: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lattice of Winckelmans blobs, sigma = 1.5 h, with a core Gamma/(pi a^2) exp(-s^2/a^2), Gamma = R = 1.

    The blobs widen a core by sigma^2 in a^2 (their variance per axis is sigma^2/2), so the lattice carries
    a^2 - sigma^2.
    """
    sigma = 1.5 * spacing
    points = CORE**2 - sigma**2
    reach = 3.0 * math.sqrt(points)
    flat = spacing * np.arange(-math.ceil((1 + reach) / spacing), math.ceil((1 + reach) / spacing) + 1)
    high = spacing * np.arange(-math.ceil(reach / spacing), math.ceil(reach / spacing) + 1)
    x = np.stack(np.meshgrid(flat, flat, high, indexing="ij"), -1).reshape(-1, 3)
    rho = np.hypot(x[:, 0], x[:, 1])
    s = np.hypot(rho - 1, x[:, 2])
    x, rho, s = x[s < reach], rho[s < reach], s[s < reach]
    omega = np.exp(-(s**2) / points) / (math.pi * points)
    # A torus of this core about a circle: the lattice sum of omega rho over the section is Gamma R.
    alpha = spacing**3 * (omega / rho)[:, None] * np.stack([-x[:, 1], x[:, 0], np.zeros(len(x))], axis=1)
    return x, alpha, np.full(len(x), sigma)


@pytest.mark.nightly
def test_viscous_ring() -> None:
    """Case 14: way and mean radius of a ring at Gamma/nu = 500 over 2.5 s, spacings a/2, a/2.5, a/3; order
    1.8.

    The reference is the axisymmetric flow of `axisymmetric.py`, of spectral accuracy. a^2 grows from 0.0225
    to 0.0425, so the last half second is 7 % slower than the first, and the mean radius falls. Exchange of
    order 2 (default), remeshed each fifth tick, fmm at 1e-4, rk2: ways off by 1.7, 1.0, 0.64 %; the gate is 1
    % at a/3.
    """
    times = np.arange(1, 6) * 0.5
    off = []
    for cells in (2.0, 2.5, 3.0):
        spacing = CORE / cells
        way, radius = viscous_ring(CORE, VISCOSITY, 1.5 * spacing, times)
        x, alpha, sigma = filled_ring(spacing)
        world = world_of(
            (x, alpha, sigma),
            ef.RemeshSystem(every=5, spacing=spacing, loss=1e-3),
            dt=0.05,
            integrator="rk2",
            velocity={"solver": "fmm", "tolerance": 1e-4},
            stretch=ef.StretchSystem().scheme,
        )
        world.attach("vortex0", ef.Volume(np.full(len(x), spacing**3)))
        world.set_fluid(viscosity=VISCOSITY)
        world.add_system(ef.DiffusionSystem())
        impulse = invariants(world)["impulse"][2]
        heights, radii = [], []
        for _ in times:
            world.step(10)
            heights.append(axial_center(world))
            radii.append(mean_radius(world))
        off.append(heights[-1] / way[-1] - 1)
        assert invariants(world)["impulse"][2] == pytest.approx(impulse, rel=5e-3)
    assert heights == pytest.approx(way, rel=0.01)
    assert math.log(off[0] / off[2]) / math.log(1.5) > 1.8
    # Blobs are wider than the points that carry them, which moves the mean radius by a constant.
    assert radii[0] - radii[-1] == pytest.approx(radius[0] - radius[-1], rel=0.05)
    assert way[-1] - way[-2] < 0.95 * way[0]


def mean_radius(world: ef.World) -> float:
    """Distance from the axis, weighted by circulation."""
    x, alpha = vortons(world)
    radius = np.hypot(x[:, 0], x[:, 1])
    share = (x[:, 0] * alpha[:, 1] - x[:, 1] * alpha[:, 0]) / radius**2
    return float((share * radius).sum() / share.sum())
