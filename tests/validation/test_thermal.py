"""A buoyant thermal, as a documented experiment. Validation case 66."""

from __future__ import annotations

import numpy as np
import pytest
from flows import lattice

import ecs_fluid as ef

G = 10.0


def thermal(gravity_until: float = 1e9, seed: int = 1, h: float = 0.08) -> ef.World:
    """A ball of radius 0.45 m, 2 % lighter than its surroundings, with a smooth rim, slightly agitated."""
    x = lattice((-0.6,) * 3, (0.6,) * 3, h)
    x = x[(x**2).sum(axis=1) < 0.36]
    r, n = np.sqrt((x**2).sum(axis=1)), len(x)
    alpha = 0.3 * h**3 * np.random.default_rng(seed).standard_normal((n, 3))
    world = ef.World(dt=0.05, integrator="rk2", precision="single")
    world.spawn(
        "thermal", ef.Position(x), ef.Strength(alpha - alpha.mean(axis=0)),
        ef.CoreRadius(np.full(n, 1.5 * h)), ef.Volume(np.full(n, h**3)),
        ef.Density(1 - 0.01 * (1 - np.tanh((r - 0.45) / 0.05))),
    )  # fmt: skip
    keys = [(0.0, [0.0, 0.0, -G]), (gravity_until, [0.0, 0.0, 0.0])]
    gravity = ef.Keyed(keys=keys, between="step")
    world.set_fluid(density=1.0, gravity=gravity, viscosity=2e-3)
    world.add_systems(
        [
            ef.VelocitySystem(solver="tree", at="grid"),
            ef.StretchSystem(),
            ef.ReformulationSystem(),
            ef.SubfilterSystem(),
            ef.DiffusionSystem(method="core_spreading"),
            ef.BaroclinicSystem(),
            ef.AdvectionSystem(),
        ]
    )
    return world


def height_and_radius(world: ef.World) -> tuple[float, float]:
    """Centre of the excess mass above the start, and the distance from the axis that holds 95 % of it, m."""
    table = world["thermal"]
    x, m = table[ef.Position].x.astype(float), 1 - table[ef.Density].rho.astype(float)
    center = m @ x / m.sum()
    away = np.hypot(*(x - center)[:, :2].T)
    order = np.argsort(away)
    share = np.cumsum(m[order]) / m.sum()
    return float(center[2]), float(away[order][np.searchsorted(share, 0.95)])


@pytest.mark.nightly
@pytest.mark.parametrize("h", [0.12, 0.1, 0.08])
@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
def test_a_thermal_entrains_and_slows_down(h: float) -> None:
    """Case 66: r = a (z + z_0) with a = 0.1 to 0.3 (laboratory: 0.25), and z + z_0 grows like t^(1/2).

    z_0 is the distance to the virtual origin. A thermal released from rest has the momentum k r^3 dz/dt = B t
    of its buoyancy B, hence (z + z_0)^4 - z_0^4 = 2 B t^2/(k a^3): the power 1/2 of t, exactly, is that of
    the fourth root of the left side, and of z + z_0 when z_0 has become small beside z. From z = 1 m to
    3 m, two to six initial radii. The flow is turbulent: mean tracks of eight runs. Found at h = 0.12, 0.1,
    0.08 m: a = 0.223, 0.243, 0.275 and the exponents 0.502, 0.519, 0.544; by fours of runs at 0.08 m 0.552,
    0.536, 0.543 and 0.542.
    Up to 4.5 m a is 0.286, 0.317, 0.368 and the exponents are 0.547, 0.566, 0.580: there cores spread by
    viscosity are half as wide as the thermal. Without the reformulation and the subfilter's term strengths
    run away, the sooner the coarser: at 0.12 m with two runs of four by 20 s.
    """
    tracks = []
    for seed in range(1, 9):
        world = thermal(seed=seed, h=h)
        track = []
        while world.time < 20.5:
            world.step(5)
            track.append((world.time, *height_and_radius(world)))
        tracks.append(track)
    time, z, r = np.mean(tracks, axis=0).T
    fit = (z > 1.0) & (z < 3.0)
    time, z, r = time[fit], z[fit], r[fit]
    entrainment, offset = np.polyfit(z, r, 1)
    origin = offset / entrainment
    exponent = np.polyfit(np.log(time), np.log((z + origin) ** 4 - origin**4) / 4, 1)[0]
    print(f"thermal: a = {entrainment:.3f}, z_0 = {origin:.2f} m, exponent {exponent:.3f}")
    assert 0.1 < entrainment < 0.3
    assert exponent == pytest.approx(0.5, rel=0.1)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
def test_without_gravity_it_entrains_less() -> None:
    """Case 66, McKim, Jeevanjee and Lecoanet (2020): with gravity off from 8 s on, dr/dz is less than half.

    Their DNS have less than a third; found: 0.068 in place of 0.241.
    """
    slopes = {}
    for off in (False, True):
        world = thermal(gravity_until=8.0 if off else 1e9)
        world.step(160)
        track = []
        for _ in range(30):
            world.step(5)
            track.append(height_and_radius(world))
        z, r = np.array(track).T
        slopes[off] = np.polyfit(z, r, 1)[0]
    print(f"thermal: dr/dz = {slopes[False]:.3f} with gravity, {slopes[True]:.3f} without")
    assert slopes[True] < 0.5 * slopes[False]
