"""Hill's spherical vortex, a thick vortex with an exact solution: validation case 15."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flows import axial_center, invariants
from oracles import hill_velocity

import ecs_fluid as ef


def hill(spacing: float, dt: float = 0.05, integrator: str = "rk3", scheme: str = "auto") -> ef.World:
    """The recipe's vortex of radius 1 and speed 1, sigma = 1.5 spacings, direct sum, double precision."""
    return ef.WorldRecipe.from_tables(
        {
            "world": {"dt": dt, "integrator": integrator, "precision": "double"},
            "fluid": {"velocity": {"solver": "direct"}, "stretch": {"scheme": scheme}},
            "entity": [{"kind": "hill_vortex", "name": "hill", "spacing": spacing, "overlap": 1.5}],
        }
    ).build()


def travel(spacing: float, ticks: int, integrator: str = "rk2", scheme: str = "auto") -> tuple[float, float]:
    """Mean speed of the impulse centre over `ticks` of 0.05 s, and the relative drift of the impulse."""
    world = hill(spacing, integrator=integrator, scheme=scheme)
    before = invariants(world)["impulse"]
    world.step(ticks)
    drift = np.abs(invariants(world)["impulse"] - before).max() / before[2]
    return axial_center(world) / world.time, float(drift)


def test_speed_converges_to_one() -> None:
    """Case 15: the speed falls short by less as h falls, and by less than 4 % at h = 0.1.

    Blobs of 1.5 h take the edge off the vorticity, where it is largest: 10, 5.6 and 3.0 % are missing at h =
    0.2, 1/7 and 0.1. Smoothing by an even blob is of order 2 in its radius, and the next term, of order 4,
    lowers what is found: 1.71, 1.77, rising. The impulse drifts by 1e-5 at h = 0.1; 1e-4 allows for the
    coarser lattices.
    """
    found = {h: travel(h, 2) for h in (0.2, 1 / 7)}
    found[0.1] = travel(0.1, 1)
    shortfall = {h: 1.0 - speed for h, (speed, _) in found.items()}
    assert shortfall[0.2] > shortfall[1 / 7] > shortfall[0.1] > 0.0
    assert shortfall[0.1] < 0.04
    first = math.log(shortfall[0.2] / shortfall[1 / 7]) / math.log(7 / 5)
    last = math.log(shortfall[1 / 7] / shortfall[0.1]) / math.log(10 / 7)
    assert 1.65 < first < last < 2.0
    assert max(drift for _, drift in found.values()) < 1e-4


@pytest.mark.nightly
@pytest.mark.parametrize(("scheme", "most"), [("transposed", 2e-6), ("auto", 1e-4)])
def test_speed_of_fine_vortices(scheme: str, most: float) -> None:
    """Case 15 at full length, ten RK3 ticks: within 4 % at h = 0.1, better at h = 0.08.

    The transposed form keeps the sum of strengths, and the impulse drifts by 1e-6; by default (limited) it
    drifts by 2.1e-5 and 2.5e-5, held to the gate of the shorter run above: the classical form keeps it as far
    as strengths on a lattice are free of divergence.
    """
    speeds = []
    for spacing in (0.1, 0.08):
        speed, drift = travel(spacing, 10, "rk3", scheme)
        assert drift < most
        speeds.append(speed)
    assert abs(1 - speeds[0]) < 0.04
    assert abs(1 - speeds[1]) < abs(1 - speeds[0])


def test_velocity_inside() -> None:
    """Case 15: 2.5 U at the centre, and the whole inner field (s, z within 0.8) in the mean square.

    Blobs smooth the field at second order in sigma = 1.5 h, and the next term lowers what is found: orders of
    1.86, 1.92 at the centre and 1.74, 1.83 in the field, from h = 0.2, 1/7 and 0.1, rising to 2. The gates at
    h = 0.1 are those of the speed, 4 %, and the 5 % between the 10 % and 3.6 % that validation.md measured
    for the field from h = 0.2 to 0.08.
    """
    errors = []
    for spacing in (0.2, 1 / 7, 0.1):
        world = hill(spacing)
        points = []
        for radius in (0.2, 0.5, 0.78):
            for angle in np.linspace(0.05, math.pi - 0.05, 9):
                turn = 2.4 * angle
                s = radius * math.sin(angle)
                points.append((s * math.cos(turn), s * math.sin(turn), radius * math.cos(angle)))
        x = np.array([(0.0, 0.0, 0.0), *points])
        u = world.velocity(x)
        s = np.hypot(x[:, 0], x[:, 1])
        u_s, u_z = hill_velocity(s, x[:, 2])
        outward = np.where(s[:, None] > 0, x[:, :2] / np.maximum(s, 1e-30)[:, None], 0.0)
        exact = np.column_stack([u_s[:, None] * outward, u_z])
        errors.append((abs(u[0, 2] / 2.5 - 1), np.linalg.norm(u - exact) / np.linalg.norm(exact)))
        assert np.abs(u[0, :2]).max() < 1e-12
    assert errors[-1][0] < 0.04 and errors[-1][1] < 0.05
    for coarse, middle, fine in zip(*errors, strict=True):
        first, last = math.log(coarse / middle) / math.log(7 / 5), math.log(middle / fine) / math.log(10 / 7)
        assert 1.7 < first < last < 2.0


def test_moments() -> None:
    """Case 15: impulse 2 pi a^3 U and circulation 5 U a of the vortons that the recipe lays out.

    The circulation is scaled to be exact. The impulse 1/2 int omega s dV misses each cell's own spread of
    s^2, h^2/12 a lateral axis, of the sphere's mean 2 a^2/5: (h^2/6)/(2/5) = 0.42 % at h = 0.1.
    """
    world = hill(0.1)
    x, alpha = world["hill"][ef.Position].x, world["hill"][ef.Strength].alpha
    s = np.hypot(x[:, 0], x[:, 1])
    around = (x[:, 0] * alpha[:, 1] - x[:, 1] * alpha[:, 0]) / s
    assert (around / (2 * np.pi * s)).sum() == pytest.approx(5.0, rel=1e-12)
    assert invariants(world)["impulse"][2] / (2 * np.pi) == pytest.approx(1 - 0.0042, abs=0.001)
