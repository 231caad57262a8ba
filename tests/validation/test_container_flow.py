"""Flow in a box that lets nothing through its walls: solver = "container".

Validation cases 119 to 121.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import CODES
from ecs_fluid.worlds.bodies import ContainerRecipe

SIZE = np.array([1.0, 0.8, 0.6])


def turn(vector: Any) -> Array:
    """Rotation matrix of a rotation vector, by Rodrigues's formula."""
    angle = float(np.linalg.norm(vector))
    x, y, z = np.asarray(vector) / angle
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k)


def tank(vortons: dict[str, Array] | None = None, size: Any = SIZE, **told: Any) -> ef.World:
    """A box, and vortons in it."""
    own = ("resolution", "most_cells", "kernel")
    parameters = {"kernel": "gaussian"} | {name: told.pop(name) for name in own if name in told}
    world = ef.World(dt=0.02, precision=told.pop("precision", "double"))
    shape = {"shape": "box", "size": np.asarray(size).tolist()}
    ContainerRecipe(name="tank", shape=shape, **{"center": (0, 0, 0), **told}).spawn(world)  # type: ignore[arg-type]
    if vortons is not None:
        x, alpha, sigma = vortons["x"], vortons["alpha"], vortons["sigma"]
        world.spawn("vortons", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(sigma))
    world.add_systems([ef.VelocitySystem(solver="container", **parameters), ef.BodySystem()])
    return world


def with_images(x: Array, alpha: Array, boxes: int) -> tuple[Array, Array]:
    """Vortons in a box about the origin, and images in so many boxes each way, by whole pairs of boxes.

    Eight boxes that share a corner have strengths, and impulses, that sum to zero.
    """
    one = np.arange(-boxes, boxes + 2)
    numbers = np.stack(np.meshgrid(one, one, one, indexing="ij"), axis=-1).reshape(-1, 1, 3)
    turned = np.where(numbers % 2 == 1, -1, 1)
    places = turned * x + numbers * SIZE
    strengths = turned.prod(axis=-1, keepdims=True) * turned * alpha
    return places.reshape(-1, 3), strengths.reshape(-1, 3)


def test_images() -> None:
    """Case 119: 12 vortons of random strengths, in a box that is turned, against the sum with their images.

    17 boxes each way leave 4e-4; the grid has 3 and 6 cells a core radius.
    """
    rng = np.random.default_rng(3)
    x, alpha, sigma = (rng.random((12, 3)) - 0.5) * SIZE, rng.standard_normal((12, 3)), np.full(12, 0.08)
    points = (rng.random((60, 3)) - 0.5) * SIZE
    places, strengths = with_images(x, alpha, 16)
    u = np.empty_like(points)
    sources = np.ascontiguousarray(places.T), np.ascontiguousarray(strengths.T), np.full(len(places), 0.08)
    direct.velocity(CODES["gaussian"], points, *sources, u)
    rotation, center = (0.4, -0.9, 0.3), np.array([2.0, -1.0, 0.5])
    r, errors = turn(rotation), []
    for resolution in (3.0, 6.0):
        world = tank(
            {"x": x @ r.T + center, "alpha": alpha @ r.T, "sigma": sigma},
            rotation=rotation, center=center.tolist(), resolution=resolution,
        )  # fmt: skip
        found = world.velocity(points @ r.T + center) @ r
        errors.append(np.sqrt(((found - u) ** 2).sum() / (u**2).sum()))
    assert errors[0] < 2e-3
    assert errors[1] < 8e-4


@pytest.mark.parametrize("kernel", ["gaussian", "winckelmans"])
def test_images_of_mixed_cores(kernel: str) -> None:
    """Case 119: 60 vortons with cores of 0.05 to 0.2, all different, as exact as 60 with 0.1.

    The grid has 6 cells to the mean core, 3 to the thinnest.
    """
    rng = np.random.default_rng(3)
    x, alpha = (rng.random((60, 3)) - 0.5) * SIZE, rng.standard_normal((60, 3))
    points = (rng.random((40, 3)) - 0.5) * SIZE
    sigma = np.exp(rng.uniform(np.log(0.05), np.log(0.2), 60))
    places, strengths = with_images(x, alpha, 16)
    u, du = np.empty_like(points), np.empty((len(points), 3, 3))
    sources = np.ascontiguousarray(places.T), np.ascontiguousarray(strengths.T), np.tile(sigma, 34**3)
    direct.velocity_gradient(CODES[kernel], points, *sources, u, du)
    vortons = {"x": x, "alpha": alpha, "sigma": sigma}
    world = tank(vortons, center=[0, 0, 0], resolution=6.0, kernel=kernel)
    error, steeper = (
        np.sqrt(((found - exact) ** 2).sum() / (exact**2).sum())
        for found, exact in ((world.velocity(points), u), (world.velocity_gradient(points), du))
    )
    assert error < {"gaussian": 2e-3, "winckelmans": 1.2e-2}[kernel]
    assert steeper < {"gaussian": 5e-3, "winckelmans": 6e-2}[kernel]


def wave(n: int) -> float:
    """Frequency of a standing wave in a cube of even stratification, over N k_x/|k|, less 1."""
    h, g = 1.0 / n, 10.0
    lines = (np.arange(n) + 0.5) * h - 0.5
    x = np.stack(np.meshgrid(lines, lines, lines, indexing="ij"), axis=-1).reshape(-1, 3)
    world = ef.World(dt=0.1, integrator="rk4", precision="double")
    shape = {"shape": "box", "size": [1.0, 1.0, 1.0]}
    ContainerRecipe(name="tank", shape=shape, center=(0, 0, 0)).spawn(world)  # type: ignore[arg-type]

    def mode(x: Array) -> Array:
        return np.asarray(np.sin(np.pi * x[:, 0]) * np.cos(np.pi * x[:, 2]))

    world.spawn(
        "water", ef.Position(x), ef.Strength(np.zeros_like(x)), ef.CoreRadius(np.full(len(x), 1.5 * h)),
        ef.Volume(np.full(len(x), h**3)), ef.Density(1 - x[:, 2] / g + 1e-5 * mode(x)),
    )  # fmt: skip
    world.set_fluid(gravity=(0, 0, -g), density=1.0, density_profile=[(-5.0, 1 + 5 / g), (5.0, 1 - 5 / g)])
    velocity = ef.VelocitySystem(solver="container", kernel="gaussian", gradient=False)
    world.add_systems([velocity, ef.BodySystem(), ef.BaroclinicSystem(), ef.AdvectionSystem()])

    def amplitude() -> float:
        x, rho = world["water"][ef.Position].x, world["water"][ef.Density].rho
        return float(((rho - 1 + x[:, 2] / g) * mode(x)).mean())

    last = now = amplitude()
    while now > 0:
        world.step()
        last, now = now, amplitude()
    quarter = world.time - 0.1 * now / (now - last)
    return float(np.pi / 2 / quarter / np.sqrt(0.5)) - 1


def test_standing_waves() -> None:
    """Case 120: linear layers in a cube, N = 1, k = (pi, 0, pi): omega = N/sqrt(2), to second order.

    In unbounded space the same vorticity has 42 and 32 % less, and goes on below it with finer spacings.
    """
    coarse, fine = wave(6), wave(9)
    assert abs(fine) < 0.16
    assert np.log(coarse / fine) / np.log(1.5) > 1.6


@pytest.mark.nightly
def test_standing_waves_finer() -> None:
    """Case 120."""
    coarse, fine = wave(12), wave(20)
    assert abs(fine) < 0.04
    assert np.log(coarse / fine) / np.log(20 / 12) > 1.8


def test_walls_that_move_and_turn() -> None:
    """Case 121: without vortons the fluid goes with the walls along their normals, and turns nowhere.

    Gradients are asked for a tenth of the box from the edges, where they have a logarithm.
    """
    rotation, center = (0.4, -0.9, 0.3), np.array([2.0, -1.0, 0.5])
    r, spin, speed = turn(rotation), np.array([0.7, -0.4, 1.1]), np.array([0.2, 0.1, -0.3])
    world = tank(rotation=rotation, center=center, velocity=speed, angular_velocity=spin)
    rng = np.random.default_rng(1)
    y = (rng.random((300, 3)) - 0.5) * SIZE
    flow = world.require(ef.VelocitySystem).flow_at(0.8 * y @ r.T + center)
    assert flow.du is not None
    scale = float(np.linalg.norm(spin))
    assert np.abs(flow.du - flow.du.transpose(0, 2, 1)).max() < 0.02 * scale
    assert np.abs(np.trace(flow.du, axis1=1, axis2=2)).max() < 0.02 * scale
    for axis, side in itertools.product(range(3), (-0.5, 0.5)):
        wall = np.where(np.arange(3) == axis, side * SIZE, y) @ r.T
        against = (world.velocity(wall + center) - speed - np.cross(spin, wall)) @ r[:, axis]
        assert np.abs(against).max() < 3e-3 * scale


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_fluid_goes_with_a_box_that_moves_by_keys(integrator: str) -> None:
    """In every stage of a tick the box is where it gets to by then, at the speed of that tick."""
    center = {"keys": [[0, [0, 0, 0]], [0.5, [0.25, 0, 0]], [1, [0, 0.1, 0]]]}
    tables: dict[str, Any] = {
        "world": {"fps": 20, "integrator": integrator, "precision": "double", "debug": True},
        "fluid": {"velocity": {"solver": "container"}},
        "entity": [
            {
                "kind": "container",
                "name": "tank",
                "shape": {"shape": "box", "size": SIZE.tolist()},
                "center": center,
            }
        ],
    }
    world = ef.load(tables)
    dye = (np.random.default_rng(2).random((60, 3)) - 0.5) * SIZE
    dye[:40, 0] = np.repeat([-0.5, 0.5], 20) * SIZE[0]
    world.spawn("dye", ef.Position(dye))
    for _ in range(15):
        world.step()
        moved = world["dye"][ef.Position].x - world["tank"][ef.Pose].x
        np.testing.assert_allclose(moved, dye, atol=1e-12)


def test_fluid_in_a_moving_box_is_as_in_one_at_rest() -> None:
    """Galilean invariance: in a box that moves evenly, buoyancy and conduction are those of a box at rest.

    So each stage of a tick mirrors the fluid behind the walls where they are at its time. With the walls of
    the start of the tick, a layer of particles would lie outside in the second stage and have no images.
    """

    def after(speed: float) -> tuple[Array, ...]:
        low, high = (-0.5 * SIZE).tolist(), (0.5 * SIZE).tolist()
        warm = "330 - 20*tanh((z + 0.1*sin(4*x))/0.1)"
        block = {"kind": "fluid_block", "name": "air", "box": {"low": low, "high": high}, "spacing": 0.1}
        center = {"keys": [[0, [0, 0, 0]], [1, [speed, 0, 0]]]}
        box = {"shape": "box", "size": SIZE.tolist()}
        fluid = {"law": "ideal_gas", "conductivity": 2.0, "velocity": {"solver": "container"}}
        tables: dict[str, Any] = {
            "world": {"dt": 0.02, "precision": "double", "debug": True},
            "fluid": fluid,
            "system": [{"kind": "thermal"}, {"kind": "baroclinic"}],
            "entity": [
                {"kind": "container", "name": "tank", "shape": box, "center": center},
                {**block, "temperature": warm},
            ],
        }
        world = ef.load(tables)
        world.step(2)
        air = world["air"]
        return air[ef.Position].x - [0.04 * speed, 0, 0], air[ef.Strength].alpha, air[ef.Temperature].T

    for moving, still in zip(after(1.5), after(0.0), strict=True):
        np.testing.assert_allclose(moving, still, rtol=0, atol=1e-12 * np.abs(still).max())


def test_walls_far_from_the_origin() -> None:
    """What lies at a wall is in the fluid, though single precision rounds its place by 6e-5 of the box."""
    world = tank(center=(1000, 0, 0), velocity=(0, 0, 1), precision="single", size=(1.3, 1, 1))
    u = world.velocity([[1000.65, 0, 0], [999.35, 0, 0]])
    np.testing.assert_allclose(u, [[0, 0, 1], [0, 0, 1]], atol=1e-6)


def test_vortons_fill_a_box_that_turns_as_a_solid() -> None:
    """Vorticity 2 spin everywhere turns with the box; half the way out blobs at the walls leave 5 %."""
    spin, n = np.array([0.0, 0.0, 1.0]), 10
    h = 1.0 / n
    lines = (np.arange(n) + 0.5) * h - 0.5
    x = np.stack(np.meshgrid(lines, lines, lines, indexing="ij"), axis=-1).reshape(-1, 3)
    vortons = {"x": x, "alpha": np.tile(2 * spin * h**3, (len(x), 1)), "sigma": np.full(len(x), 0.75 * h)}
    world = tank(vortons, size=(1, 1, 1), angular_velocity=spin)
    points = 0.5 * (np.random.default_rng(4).random((100, 3)) - 0.5)
    u, solid = world.velocity(points), np.cross(spin, points)
    assert np.sqrt(((u - solid) ** 2).sum() / (solid**2).sum()) < 0.1


@pytest.mark.filterwarnings("ignore:overlap")
def test_nothing_leaves() -> None:
    """Two strong vortons, and tracers at the walls: without collisions all stay within 1e-3 m in 40 ticks."""
    x = np.array([[0.1, 0.05, 0.1], [-0.2, 0.1, -0.1]])
    vortons = {"x": x, "alpha": np.array([[0, 0.2, 0.0], [0.0, 0.1, 0.2]]), "sigma": np.full(2, 0.1)}
    world = tank(vortons)
    dye = (np.random.default_rng(2).random((300, 3)) - 0.5) * SIZE
    dye[:100, 0] = SIZE[0] / 2
    world.spawn("dye", ef.Position(dye))
    world.add_systems([ef.AdvectionSystem()])
    world.step(40)
    beyond = np.abs(world["dye"][ef.Position].x) - SIZE / 2
    assert beyond.max() < 1e-3
    assert (
        np.abs(world["dye"][ef.Velocity].u[:100, 0]).max() < 1e-3 * np.abs(world["dye"][ef.Velocity].u).max()
    )


def test_vortons_read_the_grid_of_the_box() -> None:
    """The field grid, which `at = "grid"` reads of others, goes on beyond the walls, where nothing flows."""
    x = np.array([[0.45, 0.0, 0.0], [0.0, 0.35, 0.1]])
    world = tank({"x": x, "alpha": np.ones((2, 3)), "sigma": np.full(2, 0.1)})
    world.require(ef.VelocitySystem).at = "grid"
    world.evaluate()
    np.testing.assert_array_equal(world["vortons"][ef.Velocity].u, world.velocity(x))


@pytest.mark.filterwarnings("ignore:overlap", "ignore:no system integrates")
def test_what_lies_outside() -> None:
    """Points outside have no flow; vortons outside stir nothing, and a warning counts them."""
    inside = {"x": np.zeros((1, 3)), "alpha": np.array([[0, 0, 1.0]]), "sigma": np.array([0.1])}
    both = {name: np.concatenate([part, part]) for name, part in inside.items()}
    both["x"][1] = 3.0
    points = np.array([[0.2, 0.0, 0.0], [0.7, 0.0, 0.0]])
    with pytest.warns(ef.FluidWarning, match="1 vortons lie outside the container and have no effect"):
        found = tank(both)
        found.step()
    expected = tank(inside).velocity(points)
    np.testing.assert_array_equal(found.velocity(points), expected)
    assert not expected[1].any()


@pytest.mark.parametrize(
    ("shapes", "what"),
    [
        ([], "0 containers"),
        ([{"shape": "box", "size": [1, 1, 1]}] * 2, "2 containers"),
        ([{"shape": "cylinder", "radius": 1.0, "height": 1.0}], "one of another shape"),
    ],
)
def test_worlds_without_a_box(shapes: list[dict[str, Any]], what: str) -> None:
    """One sentence, when the flow is asked for."""
    world = ef.World(dt=0.02)
    for number, shape in enumerate(shapes):
        ContainerRecipe(name=f"tank{number}", shape=shape, center=(3 * number, 0, 0)).spawn(world)  # type: ignore[arg-type]
    world.add_systems([ef.VelocitySystem(solver="container"), ef.BodySystem()])
    with pytest.raises(ef.FluidError, match=f"needs exactly one container, a box; the world has {what}"):
        world.velocity([[0.0, 0.0, 0.0]])


@pytest.mark.filterwarnings("ignore:overlap", "ignore:no system integrates", "ignore:dt")
def test_too_coarse_a_grid() -> None:
    """Thin cores in a wide box: cells of 6.3 m^3/4,000 are 0.11 m wide, a core radius 0.05 m."""
    x = (np.random.default_rng(1).random((50, 3)) - 0.5) * SIZE * 2
    vortons = {"x": x, "alpha": np.ones((50, 3)), "sigma": np.full(50, 0.05)}
    world = tank(vortons, size=2 * SIZE, most_cells=3000)
    with pytest.warns(ef.FluidWarning, match=r"cells of the container's grid .* most_cells >= 103,680"):
        world.step()


def test_tracers_have_the_field_of_the_solver_whatever_they_are_told_to_read() -> None:
    """Its field costs little anywhere, so nothing is gained by points of the grid: all have the same bits."""
    rng = np.random.default_rng(4)
    vortons = {
        "x": 0.6 * (rng.random((300, 3)) - 0.5) * SIZE,
        "alpha": 0.01 * rng.standard_normal((300, 3)),
        "sigma": np.full(300, 0.08),
    }
    places, found = 0.9 * (rng.random((30_000, 3)) - 0.5) * SIZE, []
    for tracers in ("solver", "grid", "cells"):
        world = tank(vortons)
        world.spawn("smoke", ef.Position(places))
        world.require(ef.VelocitySystem).tracers = tracers
        world.evaluate()
        found.append(world["smoke"][ef.Velocity].u.copy())
    assert found[0].any() and (found[0] == found[1]).all() and (found[0] == found[2]).all()
