"""Pressure where fluid has weight, and between walls: validation cases 155 and 156."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.transform import Rotation
from scipy.special import erf
from test_pressure import accelerations, slopes

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError
from ecs_fluid.worlds.bodies import BodyRecipe, ContainerRecipe

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")

RHO, G, EXCESS = 2.0, 9.81, 0.1
"""Density of the fluid at rest, kg/m^3, gravity, m/s^2, and largest density beyond that, kg/m^3."""


def world_of(x: Array, excess: Array, h: float, sigma: float, solver: str, **options: Any) -> ef.World:
    """Vortons at rest that have this excess density (n,), h apart; with `container` in a box of 1 m."""
    rotation = options.pop("rotation", (0.0, 0.0, 0.0))
    world = ef.World(precision="double", **options)
    world.set_fluid(density=RHO, gravity=(0.0, 0.0, -G))
    h2 = h**world.dimension
    world.spawn(
        "air", ef.Position(x), ef.Strength(np.zeros_like(x)), ef.CoreRadius(np.full(len(x), sigma)),
        ef.Volume(np.full(len(x), h2)), ef.Density(RHO + excess),
    )  # fmt: skip
    if solver == "container":
        shape: Any = {"shape": "box", "size": [1.0, 1.0, 1.0]}
        ContainerRecipe(name="tank", shape=shape, center=(0, 0, 0), rotation=rotation).spawn(world)
        world.add_system(ef.BodySystem())
    velocity = ef.VelocitySystem(solver=solver, kernel="gaussian")
    world.add_systems([velocity, ef.BaroclinicSystem(), ef.AdvectionSystem()])
    return world


def lattice(h: float, *edges: float) -> Array:
    """Middles (n, 3) of cells of width h in the box up to these edges from the origin; 0: one cell there."""
    lines = [h * (np.arange(-n, n) + 0.5) if (n := round(edge / h)) else np.zeros(1) for edge in edges]
    return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 3)


def heavy_ball(h: float, core: float, plane: bool) -> ef.World:
    """Excess EXCESS exp(-r^2/(2 core^2)) in the middle, by narrower blobs of 1.5 h."""
    sigma = 1.5 * h
    variance = core**2 - sigma**2
    edge = 6 * math.sqrt(variance)
    x = lattice(h, edge, 0.0 if plane else edge, edge)
    x = x[np.linalg.norm(x, axis=1) < edge]
    share = (core**2 / variance) ** (1.0 if plane else 1.5) * np.exp(-(x**2).sum(axis=1) / (2 * variance))
    options = {"dimension": 2, "plane": "xz", "dt": 0.02, "integrator": "rk4"} if plane else {}
    return world_of(x, EXCESS * share, h, sigma, "direct", **options)


def test_heavy_ball_at_rest() -> None:
    """Case 155: laplace p = div(e g) of a ball of excess e(r) has p = m(r) g . x/(4 pi r^3), m(r) its mass
    within r: a dipole outside, and e g . x/3 in its middle. In space and in a plane (m/(2 pi r^2)).

    Sums over blobs of a smooth function are exact but for exp(-2 pi^2 (1.5)^2/2), 1e-9 here.
    """
    core, points = 0.3, np.random.default_rng(0).normal(size=(40, 3)) * 0.5
    r = np.linalg.norm(points, axis=1)
    share = math.sqrt(2 / math.pi) * (r / core) * np.exp(-(r**2) / (2 * core**2))
    mass = EXCESS * (2 * math.pi) ** 1.5 * core**3 * (erf(r / (math.sqrt(2) * core)) - share)
    exact = -mass * G * points[:, 2] / (4 * np.pi * r**3)
    found = heavy_ball(0.15, core, plane=False).pressure(points)
    np.testing.assert_allclose(found, exact, atol=1e-7 * np.abs(exact).max())

    r = np.hypot(points[:, 0], points[:, 2])
    mass = -EXCESS * 2 * np.pi * core**2 * np.expm1(-(r**2) / (2 * core**2))
    exact = -mass * G * points[:, 2] / (2 * np.pi * r**2)
    found = heavy_ball(0.15, core, plane=True).pressure(points)
    np.testing.assert_allclose(found, exact, atol=1e-7 * np.abs(exact).max())


def test_layer_and_its_wave_at_rest() -> None:
    """Case 155: heavy fluid between light fluid, e = E(z) + F(z) cos(k x), which repeats along x.

    p = - g int_0^z E dz + P(z) cos(k x) with P'' - k^2 P = - g F', whose solution that decays is P = g/(2 k)
    int exp(- k |z - t|) F'(t) dt. Above and below, p is half the weight of the layer, with either sign. E and
    F are Gaussian; blobs of h take exp(-k^2 h^2/2) of the wave. Error of the grid: fourth order.
    """
    width, errors, k = 0.8, [], 1.0
    points = np.random.default_rng(1).uniform(-3, 3, (30, 3)) * [1, 0, 1]

    def pressure(x: float, z: float) -> float:
        def pull(t: float) -> float:
            return math.exp(-k * abs(z - t)) * -t / width**2 * math.exp(-(t**2) / (2 * width**2))

        wave = (quad(pull, -7, z)[0] + quad(pull, z, 7)[0]) / (2 * k)
        depth = quad(lambda t: math.exp(-(t**2) / (2 * width**2)), 0, z)[0]
        return EXCESS * G * (wave * math.cos(k * x) / 2 - depth)

    exact = np.array([pressure(x, z) for x, _, z in points])
    for n in (16, 32):
        h = 2 * np.pi / n
        x = lattice(h, np.pi, 0.0, 2 * np.pi)
        variance = width**2 - h**2
        shape = width / math.sqrt(variance) * np.exp(-(x[:, 2] ** 2) / (2 * variance))
        excess = EXCESS * shape * (1 + np.exp((k * h) ** 2 / 2) * np.cos(k * x[:, 0]) / 2)
        options = {"dimension": 2, "plane": "xz", "periodic": (2 * np.pi, 0.0, 0.0)}
        found = world_of(x, excess, h, h, "poisson", **options).pressure(points)
        errors.append(float(np.abs(found - exact).max() / np.abs(exact).max()))
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] > 2**3


def test_gradient_where_a_thermal_falls(tmp_path: Path) -> None:
    """Case 155: - grad p/rho is Du/Dt less the weight, between stored frames of a thermal in a plane.

    The rates of vorticity by neighbours are of second order in h, as is the motion of blobs.
    """
    core, seconds, errors = 0.25, 0.02, []
    points = np.random.default_rng(4).uniform(-0.6, 0.6, (30, 3)) * [1, 0, 1] - [0, 0, 0.2]
    for h in (0.1, 0.07):
        run = ef.run(heavy_ball(h, core, True), ticks=42, out=tmp_path / str(h), progress=False)
        frame, flows = run[-2]["air"], [stored.flow for stored in run][-3:]
        exact = accelerations(flows, seconds, points)
        r = np.linalg.norm(points[:, None] - frame["Position.x"], axis=2)
        sigma = 1.5 * h
        mass = (frame["Density.rho"] - RHO) * h**2
        excess = (mass * np.exp(-(r**2) / (2 * sigma**2))).sum(axis=1) / (2 * np.pi * sigma**2)
        error = slopes(flows[1], points) / -RHO - exact
        error[:, 2] -= excess * G / RHO
        errors.append(float(np.linalg.norm(error, axis=1).max() / np.linalg.norm(exact, axis=1).max()))
    assert errors[1] < 0.05
    assert errors[0] / errors[1] > (0.1 / 0.07) ** 1.5


def test_weight_on_a_mirror() -> None:
    """A heavy ball above a floor that mirrors: its image is as heavy, and is pulled upwards, so that grad p
    has the weight at the floor and no fluid goes through it."""
    h, floor = 0.15, -0.4
    world, points = heavy_ball(h, 0.3, plane=False), np.random.default_rng(5).normal(size=(20, 3)) * 0.5
    points[:, 2] = np.abs(points[:, 2]) + floor
    alone = world.pressure(points) + world.pressure((points - [0, 0, floor]) * [1, 1, -1] + [0, 0, floor])
    shape: Any = {"shape": "box", "size": [9, 9, 1]}
    BodyRecipe(name="slab", shape=shape, motion="fixed", center=(0.0, 0.0, floor - 0.5)).spawn(world)
    world.require(ef.VelocitySystem).mirrors = ({"body": "slab", "side": "+z"},)  # type: ignore[assignment]
    np.testing.assert_allclose(world.pressure(points), alone, atol=1e-9 * np.abs(alone).max())


def test_layers_between_walls() -> None:
    """Case 156: at rest in a closed box. Even fluid has p = - e g z, exactly up to walls that lean too.

    With e = E sin(pi x) sin(pi z) laplace p is - g de/dz, and its slope - g e at floor and lid, 0 at other
    walls: p = E g/(2 pi) sin(pi x) (cos(pi z) - cosh(pi z)/sinh(pi/2)). Second order in the spacing.
    """
    errors, points = [], np.random.default_rng(2).uniform(-0.5, 0.5, (50, 3))
    a, b = np.pi * points[:, 0], np.pi * points[:, 2]
    exact = EXCESS * G / (2 * np.pi) * np.sin(a) * (np.cos(b) - np.cosh(b) / np.sinh(np.pi / 2))
    for n in (8, 16):
        h = 1 / n
        x = lattice(h, 0.5, 0.5, 0.5)
        mode = np.sin(np.pi * x[:, 0]) * np.sin(np.pi * x[:, 2]) * np.exp((np.pi * 1.5 * h) ** 2)
        found = world_of(x, EXCESS * mode, h, 1.5 * h, "container").pressure(points)
        errors.append(float(np.abs(found - exact).max() / np.abs(exact).max()))
    assert errors[1] < 5e-3
    assert errors[0] / errors[1] > 2**1.7
    lean = (0.3, -0.5, 0.2)
    x, points = (Rotation.from_rotvec(lean).apply(part) for part in (x, points))
    even = world_of(x, np.full(len(x), EXCESS), h, 1.5 * h, "container", rotation=lean).pressure(points)
    np.testing.assert_allclose(even, -EXCESS * G * points[:, 2], atol=1e-9)


def test_vortex_between_walls() -> None:
    """Case 156: u = (- cos(pi x) sin(pi y), sin(pi x) cos(pi y)) in a box, whose walls it slips along, has
    p = - rho (cos(2 pi x) + cos(2 pi y) + 1)/4, such that the mean of p + rho u^2/2 is 0."""
    errors, points = [], np.random.default_rng(3).uniform(-0.5, 0.5, (50, 3))
    exact = -RHO / 4 * (np.cos(2 * np.pi * points[:, :2]).sum(axis=1) + 1)
    for n in (8, 16):
        h = 1 / n
        x = lattice(h, 0.5, 0.5, 0.5)
        world = world_of(x, np.zeros(len(x)), h, 1.5 * h, "container")
        world["air"][ef.Strength].alpha[:, 2] = (
            2 * np.pi * h**3 * np.exp((np.pi * 1.5 * h) ** 2) * np.cos(np.pi * x[:, :2]).prod(axis=1)
        )
        errors.append(float(np.abs(world.pressure(points) - exact).max() / RHO))
    assert errors[1] < 5e-3
    assert errors[0] / errors[1] > 2**1.7
    assert not world.pressure([[0.0, 0.0, 0.6]]).any()  # outside of the box


def test_what_is_refused() -> None:
    """Forces that depend on accelerations, and containers that move."""
    full = heavy_ball(0.15, 0.3, plane=True)
    full.require(ef.BaroclinicSystem).model = "full"
    with pytest.raises(
        FluidError, match=r"make vorticity in this world \(BaroclinicSystem\), and .* 'boussi"
    ):
        full.pressure(np.zeros((1, 3)))

    moving = ef.World()
    shape: Any = {"shape": "box", "size": [1.0, 1.0, 1.0]}
    ContainerRecipe(name="tank", shape=shape, velocity=(1.0, 0.0, 0.0)).spawn(moving)
    one = np.zeros((1, 3))
    moving.spawn("vorton", ef.Position(one), ef.Strength(one + 1), ef.CoreRadius([0.2]))
    moving.add_systems([ef.VelocitySystem(solver="container"), ef.BodySystem()])
    with pytest.raises(FluidError, match="pressure: the container may move, and its acceleration"):
        moving.pressure(one)
