"""A vortex ring slowed and widened by viscosity: validation case 14, the shipped world viscous_ring."""

from __future__ import annotations

import math

import numpy as np
import pytest
from axisymmetric import viscous_ring
from flows import axial_center, bare, invariants, vortons
from scipy.optimize import minimize

import ecs_fluid as ef

CORE, VISCOSITY = 0.15, 2e-3


@pytest.mark.nightly
def test_viscous_ring() -> None:
    """Case 14: way, mean radius and radius of the peak at Gamma/nu = 500 over 2.5 s; a/2, a/2.5, a/3.

    The reference is the axisymmetric flow of `axisymmetric.py`, of spectral accuracy. a^2 grows from 0.0225
    to 0.0425, so the last half second is 7 % slower than the first, and the mean radius falls. Ways off by
    1.0, 0.57, 0.37 %. Saffman's speed Gamma/(4 pi R) (ln(8 R/a) - 0.558), with the R of the impulse pi Gamma
    R^2, leaves out terms of the order of (a/R)^2: the axisymmetric flow is 1.2 % slower at 2 s.

    The circle of the largest vorticity widens to 1.041 R; Fukumoto and Moffatt (J. Fluid Mech. 417, 2000)
    have 4.59 nu t/R for a ring that begins as a thin loop, 1.054 R here, and the axisymmetric flow comes to
    that as cores become thinner. Blobs of sigma = a/2 blur the part of the vorticity that is odd across the
    core, so the largest lies 0.024, 0.018, 0.015 R further in, of order 1.2.
    """
    times = np.arange(6) * 0.5
    off, narrow = [], []
    for cells in (2.0, 2.5, 3.0):
        spacing = CORE / cells
        way, radius, peak = viscous_ring(CORE, VISCOSITY, 1.5 * spacing, times)
        world = bare("viscous_ring", f"ring.spacing={spacing}")
        impulse, start = invariants(world)["impulse"][2], axial_center(world)
        heights, radii, peaks = [0.0], [mean_radius(world)], []
        for _ in times[1:]:
            world.step(10)
            heights.append(axial_center(world) - start)
            radii.append(mean_radius(world))
            peaks.append(peak_radius(world))
        off.append(heights[-1] / way[-1] - 1)
        narrow.append(float(np.mean(peak[2:] - peaks[1:])))
        assert invariants(world)["impulse"][2] == pytest.approx(impulse, rel=5e-3)
    assert heights == pytest.approx(way, rel=0.01)
    assert math.log(off[0] / off[2]) / math.log(1.5) > 1.8
    assert narrow[2] < 0.02
    assert narrow[0] > narrow[1] > narrow[2]
    assert peaks[-1] > 1 + VISCOSITY * times[-1]
    # Blobs are wider than the points that carry them, which moves the mean radius by a constant.
    assert radii[1] - radii[-1] == pytest.approx(radius[1] - radius[-1], rel=0.05)
    core = np.sqrt(CORE**2 + 4 * VISCOSITY * times)
    ring = math.sqrt(1 + CORE**2 / 2)
    law = (np.log(8 * ring / core) - 0.558) / (4 * math.pi * ring)
    speeds = np.diff(heights) / 0.5
    assert speeds[1:] == pytest.approx((law[1:-1] + law[2:]) / 2, rel=0.02)
    assert speeds[-1] < 0.95 * speeds[0]


def mean_radius(world: ef.World) -> float:
    """Distance from the axis, weighted by circulation."""
    x, alpha = vortons(world)
    radius = np.hypot(x[:, 0], x[:, 1])
    share = (x[:, 0] * alpha[:, 1] - x[:, 1] * alpha[:, 0]) / radius**2
    return float((share * radius).sum() / share.sum())


def peak_radius(world: ef.World) -> float:
    """Radius of the circle of the largest mean azimuthal vorticity of the (Winckelmans) blobs, m.

    The mean over all angles of a blob's vorticity is, with p and q the distances from the axis, that of
    15/(8 pi sigma^3) (1 + d^2/sigma^2)^(-7/2) cos(angle), d^2 = p^2 + q^2 - 2 p q cos(angle) + dz^2.
    """
    x, alpha = vortons(world)
    sigma = float(world["ring"][ef.CoreRadius].sigma[0])
    away = np.hypot(x[:, 0], x[:, 1])
    along = (x[:, 0] * alpha[:, 1] - x[:, 1] * alpha[:, 0]) / away
    cos = np.cos(2 * math.pi * (np.arange(96) + 0.5) / 192)

    def less(place: np.ndarray) -> float:
        radius, height = place
        near = (np.abs(away - radius) < 0.4) & (np.abs(x[:, 2] - height) < 0.4)
        q, weight = away[near, None], along[near, None]
        square = (radius**2 + q**2 - 2 * radius * q * cos + (x[near, 2:] - height) ** 2) / sigma**2
        return -float((weight * (1 + square) ** -3.5 * cos).sum())

    start = (1.0, axial_center(world))
    return float(minimize(less, start, method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-8}).x[0])
