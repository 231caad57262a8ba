"""Remeshing before planes that mirror: as that of the vortons together with their images, without planes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from remeshing import matter
from solids import box, room, solid

import ecs_fluid as ef

Array = np.ndarray

pytestmark = [
    pytest.mark.filterwarnings("ignore:no system integrates rates"),  # vortons stay where they are
    pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning"),  # strengths at random
]

H = 0.1
"""Spacing, m."""


def cloud(count: int, low: Array, high: Array) -> tuple[Array, Array, list[ef.Component]]:
    """Random vortons in a box, with matter."""
    draw = np.random.default_rng(3)
    return draw.uniform(low, high, (count, 3)), draw.standard_normal((count, 3)), matter(count)


def with_images(
    x: Array, alpha: Array, tables: list[ef.Component], planes: list[tuple[int, float]]
) -> tuple[Array, Array, list[ef.Component]]:
    """These, and their images in planes across an axis at a place, m, in turn; strengths turn round."""
    for axis, place in planes:
        image, turned = x.copy(), -alpha
        image[:, axis], turned[:, axis] = 2 * place - x[:, axis], alpha[:, axis]
        x, alpha = np.concatenate([x, image]), np.concatenate([alpha, turned])
        tables = [
            type(table)(**{field.name: np.concatenate([array, array]) for field, array in table.items()})
            for table in tables
        ]
    return x, alpha, tables


def remeshed(blobs: tuple[Array, Array, list[ef.Component]], remesh: dict[str, Any], **of: Any) -> ef.World:
    """A world of one tick, in which one population is remeshed; `of` are those of the World."""
    x, alpha, tables = blobs
    world = ef.World(dt=0.1, integrator="euler", precision="double", debug=True, **of)
    world.spawn("vortex0", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(np.full(len(x), 0.15)), *tables)
    world.set_fluid(gravity=(0.0, 0.0, 0.0))
    world.add_systems([ef.RemeshSystem(every=1, spacing=H, loss=0.0, **remesh)])
    return world


def rows(world: ef.World) -> dict[str, Array]:
    """All columns of the vortons, without those that are rounding, in the order of their points, by name."""
    one = world["vortex0"]
    size = np.abs(one[ef.Strength].alpha).max(axis=1)
    points = np.rint(one[ef.Position].x / (H / 2)).astype(int)
    order = np.lexsort(points.T)
    order = order[size[order] > 1e-9 * size.max()]
    kinds = [kind for kind in one.tables if kind is not ef.RowId and not kind.derived]
    named = {f"{kind.__name__}.{f.name}": array for kind in kinds for f, array in one[kind].items()}
    return {name: array[order] for name, array in named.items()}


def assert_same_before_planes(mirrored: ef.World, free: ef.World, inside: Any) -> None:
    """Rows of both at the same places, where `inside`, with the same values to rounding."""
    mine, theirs = rows(mirrored), rows(free)
    before = inside(theirs["Position.x"])
    assert inside(mine["Position.x"]).all()
    for name, array in mine.items():
        expected = theirs[name][before]
        assert array.shape == expected.shape and len(array) > 200, name
        assert np.abs(array - expected).max() <= 1e-9 * np.abs(expected).max(), name


@pytest.mark.parametrize("remesh", [{}, {"fill": True}, {"fill": True, "solenoidal": True}])
@pytest.mark.parametrize("sides", [("+z",), ("-z",), ("+z", "-x")])
def test_half_of_what_vortons_with_their_images_give(sides: tuple[str, ...], remesh: dict[str, Any]) -> None:
    """Before a floor, a ceiling, and a floor and a wall, each halfway between multiples of the spacing.

    Then the lattice without planes is even about them too, so remeshing the vortons together with their
    images gives the same vortons there, and all these. The bodies are the solids in which images stand.
    """
    low, high = np.full(3, 0.15), np.full(3, 0.85)
    planes, bodies = [], []
    for side in sides:
        axis, up = "xyz".index(side[1]), side[0] == "+"
        place = 0.15 if up else 0.85
        center = np.full(3, 0.5)
        center[axis] = place + (-5 if up else 5)
        planes.append((axis, place))
        bodies.append((f"to{side[1]}", center))
    blobs = cloud(400, low, high)
    mirrors = tuple({"body": f"to{side[1]}", "side": side} for side in sides)
    flow = ef.VelocitySystem(mirrors=mirrors)
    world = remeshed(blobs, remesh)
    for name, center in bodies:
        solid(world, name, box(10, 10, 10), center=tuple(center), motion="fixed")
    world.add_systems([flow, ef.BodySystem(), ef.CollisionSystem()])
    free = remeshed(with_images(*blobs, planes), remesh)
    for each in (world, free):
        each.step()

    def inside(x: Array) -> Array:
        ways = [(x[:, a] - p) * (1 if s[0] == "+" else -1) for s, (a, p) in zip(sides, planes, strict=True)]
        return np.all(np.array(ways) > 0.49 * H, axis=0)

    assert_same_before_planes(world, free, inside)


@pytest.mark.parametrize("remesh", [{}, {"fill": True}])
def test_a_box_is_a_part_of_a_space_that_repeats(remesh: dict[str, Any]) -> None:
    """In a box of 8 x 6 x 5 spacings whose solver has images in its walls, and with these, in twice the box.

    That box and seven of its images fill a period along each axis.
    """
    size = H * np.array([8, 6, 5])
    low = np.full(3, -H / 2)
    blobs = cloud(800, low, low + size)
    world = remeshed(blobs, remesh)
    room(world, "room", box(*size), center=tuple(low + size / 2))
    world.add_systems([ef.VelocitySystem(solver="container"), ef.BodySystem(), ef.CollisionSystem()])
    every = with_images(*blobs, list(enumerate(low)))
    free = remeshed(every, remesh, periodic=tuple(2 * size))
    for each in (world, free):
        each.step()
    x = free["vortex0"][ef.Position].x
    x[:] = low + np.mod(x - low, 2 * size)
    assert_same_before_planes(world, free, lambda x: ((x > low) & (x < low + size)).all(axis=1))
