"""Taylor and Green's vortices in the plane and in space: validation cases 45 and 46."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.kernels.grids.differences import curl
from ecs_fluid.kernels.poisson.poisson import dirichlet
from tests.validation.spectral import PeriodicFlow, taylor_green

SIDE = 2 * math.pi
GHOSTS = 4
"""Points of the field grid beyond the box, on both sides."""


def test_decay() -> None:
    """omega = 2 sin x sin y decays by exp(-2 nu t), to 1e-4, under exchange of fourth order.

    h = 2 pi/64, eps = 1.5 h: the kernel's error is of order (k eps)^4 = 5e-4 of the rate, times 2 nu t = 0.2.
    RK2 errs by (2 nu dt)^2/6 per unit of 2 nu t: 2e-5 with 20 steps. The lattice ends at 1.5 pi; that spreads
    inward by a few sqrt(4 nu t) = 0.63, and exp(-((1.5 pi - 0.5 pi)/0.63)^2) = 2e-11 of it reach |x| < pi/2.
    """
    h, viscosity = 2 * math.pi / 64, 0.1
    axis = h * (np.arange(-48, 48) + 0.5)
    plane = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    x = np.concatenate([plane, np.zeros((len(plane), 1))], axis=1)
    omega = 2 * np.sin(x[:, 0]) * np.sin(x[:, 1])
    alpha = np.zeros_like(x)
    alpha[:, 2] = omega * h**2
    world = ef.World(dt=0.05, integrator="rk2", precision="double", dimension=2)
    world.spawn(
        "vortices",
        ef.Position(x),
        ef.Strength(alpha),
        ef.CoreRadius(np.full(len(x), 1.5 * h)),
        ef.Volume(np.full(len(x), h**2)),
    )
    world.set_fluid(viscosity=viscosity)
    world.add_system(ef.DiffusionSystem(order=4, radius=1.0))
    world.add_system(ef.AdvectionSystem())
    world.step(20)
    inside = np.abs(x[:, :2]).max(axis=1) < math.pi / 2
    found = world["vortices"][ef.Strength].alpha[inside, 2] / h**2
    exact = omega[inside] * math.exp(-2 * viscosity * world.time)
    assert np.linalg.norm(found - exact) < 1e-4 * np.linalg.norm(exact)


def points(count: int, corners: bool = False) -> Array:
    """Middles of the cells of the cube that repeats, or the corners of lowest coordinates, (n, n, n, 3) m."""
    axis = SIDE / count * (np.arange(count) + 0.5 * (not corners)) - math.pi
    return np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)


def cube(x: Array, omega: Array, overlap: float, *systems: ef.System, **options: Any) -> ef.World:
    """Vortons with Gaussian cores that fill a cube of side 2 pi that repeats; keywords of World."""
    n = len(x)
    h = SIDE / round(n ** (1 / 3))
    world = ef.World(precision="double", periodic=(SIDE,) * 3, **options)
    world.spawn(
        "vortices", ef.Position(x), ef.Strength(omega * h**3), ef.CoreRadius(np.full(n, overlap * h)),
        ef.Volume(np.full(n, h**3)),
    )  # fmt: skip
    velocity = ef.VelocitySystem(solver="poisson", kernel="gaussian")
    world.add_systems([velocity, ef.StretchSystem(scheme="classical"), *systems, ef.AdvectionSystem()])
    return world


def test_decay_in_a_plane_that_repeats() -> None:
    """omega = 2 sin x sin y in a plane as shipped: it moves along itself and decays by exp(-2 nu t).

    The flow carries the vortons through all faces; they are remeshed. Cores take exp(-sigma^2) of the
    velocity, which is steady all the same, so exchange (order 4) and remeshing (order 3) alone err: 1.6e-3,
    2.9e-4, 5e-5 with 16, 32, 48 vortons a side.
    """
    errors = []
    for count in (16, 32, 48):
        h = SIDE / count
        x = points(count)[:, :, 0].reshape(-1, 3) * (1.0, 1.0, 0.0)
        n, alpha = len(x), np.zeros_like(x)
        alpha[:, 2] = 2 * np.sin(x[:, 0]) * np.sin(x[:, 1]) * h**2
        world = ef.World(dt=0.1, precision="double", dimension=2, periodic=(SIDE, SIDE, 0.0))
        world.spawn(
            "vortices", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(np.full(n, 1.5 * h)),
            ef.Volume(np.full(n, h**2)),
        )  # fmt: skip
        world.set_fluid(viscosity=0.05)
        remesh = ef.RemeshSystem(every=2, spacing=h, overlap=1.5, loss=0.0)
        velocity = ef.VelocitySystem(solver="poisson", kernel="gaussian", gradient=False)
        world.add_systems([velocity, ef.DiffusionSystem(order=4, radius=1.0), remesh, ef.AdvectionSystem()])
        world.step(20)
        x, alpha = world["vortices"][ef.Position].x, world["vortices"][ef.Strength].alpha
        kept = float((alpha[:, 2] * 2 * np.sin(x[:, 0]) * np.sin(x[:, 1])).sum() / SIDE**2)
        errors.append(kept / math.exp(-2 * 0.05 * world.time) - 1)
    assert abs(errors[1]) < 4e-4 and abs(errors[2]) < 1e-4
    assert math.log(errors[0] / errors[1]) / math.log(2.0) > 2.0


def test_enstrophy_of_inviscid_vortices_grows() -> None:
    """Case 45: Z/Z_0 = 1 + (5/48) t^2 at short times, and what the spectral oracle has.

    Cores of one spacing take 3 sigma^2/2 of the velocity, so the errors fall by the second power.
    """
    flow = PeriodicFlow(taylor_green(points(24, corners=True))[0], viscosity=0.0)
    start = flow.enstrophy
    for _ in range(4):
        flow.step(0.1)
    exact = flow.enstrophy / start - 1
    assert exact == pytest.approx(5 / 48 * 0.4**2, rel=0.02)
    errors = []
    for count in (12, 16, 24):
        x = points(count).reshape(-1, 3)
        world = cube(x, taylor_green(x)[1], 1.0, dt=0.1)
        before = (world["vortices"][ef.Strength].alpha ** 2).sum()
        world.step(4)
        growth = (world["vortices"][ef.Strength].alpha ** 2).sum() / before - 1
        errors.append(growth / exact - 1)
    assert abs(errors[-1]) < 0.15
    assert 1.7 < math.log(errors[0] / errors[-1]) / math.log(2.0) < 2.4


def test_a_grid_as_fine_as_the_lattice_does_for_narrow_cores() -> None:
    """Cores of half a spacing, remeshed: no advice while the grid is as fine as the lattice."""
    x, h = points(12).reshape(-1, 3), SIDE / 12
    for cells, told in ((12, 0), (8, 1)):
        remesh = ef.RemeshSystem(every=2, spacing=h, overlap=0.5, loss=0.0)
        world = cube(x, taylor_green(x)[1], 0.5, ef.PartitionSystem(cells=cells**3), remesh, dt=0.1)
        assert len(world.lint()) == told
    assert "cells of the field grid (0.785 m) per core radius (0.262 m) are too few" in world.lint()[0]


def energies(count: int, viscosity: float, seconds: float, overlap: float = 0.5) -> Array:
    """Time, s, and mean of |u|^2/2, m^2/s^2, of the vortices in space from `count` vortons a side: (n, 2).

    Cores of `overlap` spacings on a grid of the same spacing, remeshed every 0.2 s with strengths free of
    divergence; strengths at the start are such that the velocity with these cores is exact.
    """
    h, x = SIDE / count, points(count).reshape(-1, 3)
    omega = taylor_green(x)[1] * math.exp(3 * (overlap * h) ** 2 / 2)
    world = cube(
        x, omega, overlap, ef.PartitionSystem(cells=count**3),
        ef.DiffusionSystem(order=4, radius=1.25 / overlap),
        ef.RemeshSystem(every=2, spacing=h, overlap=overlap, loss=0.0, solenoidal=True), dt=0.1,
    )  # fmt: skip
    world.set_fluid(viscosity=viscosity)
    found = []
    while world.time < seconds + 1e-9:
        world.evaluate()
        u = world.fluid[ef.VelocityField].u[GHOSTS : -GHOSTS - 1, GHOSTS : -GHOSTS - 1, GHOSTS : -GHOSTS - 1]
        found.append((world.time, 0.5 * (u**2).sum(axis=-1).mean()))
        world.step(2)
    return np.array(found)


def peak(energy: Array) -> float:
    """Largest dissipation, m^2/s^3, by a parabola through five central differences."""
    rate = -np.gradient(energy[:, 1], energy[:, 0])
    top = int(rate[1:-1].argmax()) + 1
    near = slice(max(top - 2, 0), top + 3)
    a, b, c = np.polyfit(energy[near, 0] - energy[top, 0], rate[near], 2)
    return float(c - b**2 / (4 * a))


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
def test_decay_of_vortices_in_space() -> None:
    """Case 45 at Re = 100: energy within 1 %, the peak of dissipation within 3 %, of second order.

    Against the spectral oracle with 48 points a side (0.01297 at t = 4.9 s, E(5) = 0.07396), marched in the
    same run. Classical stretching.
    """
    flow, marched = PeriodicFlow(taylor_green(points(48, corners=True))[0], viscosity=0.01), []
    while flow.time < 6.2:
        marched.append((flow.time, flow.energy))
        for _ in range(4):
            flow.step(0.05)
    exact = np.array(marched)
    assert np.interp(5.0, *exact.T) == pytest.approx(0.073964, rel=1e-4)
    assert peak(exact) == pytest.approx(0.01297, rel=2e-3)
    misses = []
    for count in (24, 32, 48):
        energy = energies(count, 0.01, 6.0)
        misses.append(peak(energy) / peak(exact) - 1)
    assert np.abs(energy[:, 1] / np.interp(energy[:, 0], *exact.T) - 1).max() < 0.01
    assert abs(misses[-1]) < 0.03
    assert 1.7 < math.log(misses[0] / misses[-1]) / math.log(2.0) < 2.6


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
def test_first_sheets_at_a_reynolds_number_of_400() -> None:
    """Case 45 at Re = 400: energy at 4 s, -1.1, -0.7, -0.2 % off the spectral one at 24, 32, 48.

    Cores of an eighth of a spacing: with half a spacing it is -4.0 and -2.6 % at 24 and 32, for they take
    exp(-(k sigma)^2/2) of the velocity. Later the vortons miss; docs/notes/vorticity.md has figures.
    """
    flow = PeriodicFlow(taylor_green(points(64, corners=True))[0], viscosity=1 / 400)
    while flow.time < 4.0 - 1e-9:
        flow.step(0.0625)
    errors = [energies(count, 1 / 400, 4.0, 0.125)[-1, 1] / flow.energy - 1 for count in (24, 32, 48)]
    assert errors[0] < errors[1] < errors[2] < 0.0
    assert abs(errors[-1]) < 0.003
    assert math.log(errors[0] / errors[-1]) / math.log(2.0) > 2.0


@pytest.mark.parametrize(("cells", "gate"), [(64, 5e-4), (144, 1e-4)])
def test_velocity_from_vorticity(cells: int, gate: float) -> None:
    """Poisson's inverse of omega = 2 sin x sin y on [0, pi]^2 is A = sin x sin y, to h^2/12 of itself.

    5-point differences have the symbol -k^2 (1 - (k h)^2/12) per axis: 2e-4 and 4e-5. A vanishes on the
    faces, so walls are exact; the layer has no extent in z. u = curl A by fourth-order differences.
    """
    axis = np.linspace(0.0, math.pi, cells + 1)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    omega = np.zeros((cells + 1, cells + 1, 1, 3))
    omega[..., 0, 2] = 2 * np.sin(x) * np.sin(y)
    spacing = np.array((math.pi / cells, math.pi / cells, 0.0))
    potential = dirichlet(omega, spacing, tolerance=1e-8)
    exact = np.sin(x) * np.sin(y)
    # The error of the second difference itself: (h^2/12) A, to relative (k h)^2.
    error = potential[..., 0, 2] - exact
    assert np.abs(error).max() == pytest.approx(spacing[0] ** 2 / 12, rel=0.01)
    assert np.linalg.norm(error) < gate * np.linalg.norm(exact)
    u = curl(potential, spacing, order=4)[:, :, 0]
    flow = np.stack([np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y), np.zeros_like(x)], axis=-1)
    assert np.linalg.norm((u - flow)[2:-2, 2:-2]) < gate * np.linalg.norm(flow)
