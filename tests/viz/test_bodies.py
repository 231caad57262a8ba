"""Bodies in pictures: where they are, what of them is drawn, and that runs store them."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ecs_fluid as ef
from ecs_fluid.exports.bodies import depth_in_solids, polytopes, rotation_matrix, walls_of
from ecs_fluid.io.trajectory import TrajectoryWriter
from ecs_fluid.runs.runner import stored_columns
from ecs_fluid.viz.bodies import bodies_in, extent, fluid_within, hulls_in, surface, wires
from ecs_fluid.viz.scene import pixels, render
from ecs_fluid.viz.shared_limits import survey
from ecs_fluid.viz.style import Options
from ecs_fluid.worlds.bodies import BodyRecipe, ContainerRecipe, Spheres

Array = np.ndarray


def world_of_bodies() -> ef.World:
    """A turned box of 2 x 1 x 1 m at x = 3, a container of 8 m, three balls."""
    world = ef.World(precision="double")
    BodyRecipe(
        name="block", shape={"shape": "box", "size": (2, 1, 1)}, center=(3, 0, 0), rotation=(0, 0, np.pi / 2)
    ).build(world)
    ContainerRecipe(name="room", shape={"shape": "box", "size": (8, 8, 8)}).build(world)
    Spheres(name="balls", centers=[(0, 0, 0), (0, 0, 2), (0, 0, -2)], radius=[0.5, 0.25, 0.125]).build(world)
    return world


def drawn(world: ef.World) -> tuple[dict, dict]:
    """Frame and polytopes of a world."""
    return {name: dict(columns) for name, columns in world.snapshot().items()}, hulls_in(world)


def test_a_turned_box_is_where_it_is() -> None:
    """Turned by 90 degrees about z the 2 m lie along y: x in 2.5 to 3.5, y in -1 to 1. Six faces of four."""
    frame, hulls = drawn(world_of_bodies())
    found = dict(bodies_in(frame, hulls))
    mesh = surface(found["block"])
    assert mesh is not None and mesh.n_cells == 6 and mesh.n_points == 24
    assert np.allclose(mesh.bounds, [2.5, 3.5, -1, 1, -0.5, 0.5], atol=1e-6)
    assert wires(found["block"]) is None


def test_depth_below_many_planes_takes_little_memory() -> None:
    """That of the nearest of 2,000 planes at once; the depths of all points below all planes are 480 MB."""
    direction = np.random.default_rng(1).normal(size=(1002, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    world = ef.World(precision="double")
    shape = {"shape": "points", "points": direction.tolist()}
    ContainerRecipe(name="room", shape=shape, center=(0.1, 0.0, 0.0)).build(world)
    frame, hulls = drawn(world)
    bodies = dict(bodies_in(frame, hulls))["room"]
    x = np.random.default_rng(2).uniform(-1.0, 1.0, (30000, 3))
    tracemalloc.start()
    depth = depth_in_solids(bodies, x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    (wall,) = walls_of(bodies)
    assert len(wall.offsets) == 2000 and peak < 1e8
    for rows in np.split(np.arange(len(x)), 30):
        expected = (x[rows] @ wall.normals.T - wall.offsets).max(axis=1)
        np.testing.assert_allclose(depth[rows], expected, atol=1e-14)


def test_a_container_is_its_edges() -> None:
    """A box has 12 edges, whose box it is."""
    frame, hulls = drawn(world_of_bodies())
    room = dict(bodies_in(frame, hulls))["room"]
    mesh = wires(room)
    assert mesh is not None and mesh.n_lines == 12
    assert np.allclose(mesh.bounds, [-4, 4] * 3, atol=1e-6)
    assert surface(room) is None


def test_balls_have_their_extent() -> None:
    """z from -2 - 0.125 to 2 + 0.25; balls need no table."""
    frame, _ = drawn(world_of_bodies())
    found = dict(bodies_in(frame, {}))
    assert list(found) == ["balls"]
    points = extent(found["balls"])
    assert np.allclose([points[:, 2].min(), points[:, 2].max()], [-2.125, 2.25])


def test_a_ball_that_fills_the_picture_is_whole() -> None:
    """In perspective, 28 degrees high, its outline has the radius tan(asin(R / d)) / tan(14 degrees) of half
    the height: 0.936 for a ball of R = 1 m at d = 4.4 m, all round. VTK alone cuts 2.6 % off below."""
    world = ef.World(precision="double")
    Spheres(name="ball", centers=[(0, 0, 0)], radius=[1.0]).build(world)
    frame, _ = drawn(world)
    camera = ((0.0, -4.4, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    image = pixels(render(frame, look="paper", camera=camera, size=(400, 400))).astype(int)
    there = np.abs(image - image[0, 0]).max(axis=2) > 12
    across, down = (np.flatnonzero(there.any(axis=axis)) for axis in (0, 1))
    radius = 200.0 * np.tan(np.arcsin(1.0 / 4.4)) / np.tan(np.radians(14.0))
    for found in (across, down):
        np.testing.assert_allclose([found[0], found[-1] + 1], [200.0 - radius, 200.0 + radius], atol=1.5)


def test_a_matrix_turns_as_quaternions_do() -> None:
    """By 120 degrees about (1, 1, 1) x goes to y, y to z, z to x."""
    turn = rotation_matrix(np.array([0.5, 0.5, 0.5, 0.5]))
    assert np.allclose(turn @ np.eye(3), [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-15)


def test_the_fluid_is_inside_containers_and_outside_bodies() -> None:
    """By hand: the room is |x| < 4, the block 2.5 to 3.5 by -1 to 1 by -0.5 to 0.5, the balls as they are."""
    frame, hulls = drawn(world_of_bodies())
    bodies = [body for _, found in bodies_in(frame, hulls) for body in found]
    within = fluid_within(bodies)
    assert within is not None and fluid_within([]) is None
    points = np.random.default_rng(1).uniform(-5.0, 5.0, (4000, 3))
    x, y, z = points.T
    solid = (np.abs(x - 3.0) < 0.5) & (np.abs(y) < 1.0) & (np.abs(z) < 0.5)
    for height, radius in ((0.0, 0.5), (2.0, 0.25), (-2.0, 0.125)):
        solid |= np.linalg.norm(points - [0.0, 0.0, height], axis=1) < radius
    assert np.array_equal(within(points), (np.abs(points) < 4.0).all(axis=1) & ~solid)
    assert solid.sum() > 5 and 1000 < within(points).sum() < 3000


def test_hot_bodies_glow_and_others_have_their_recipe_s_colour(tmp_path: Path) -> None:
    """A ball of 1,500 K is orange, one of 500 K as grey as one without heat, a blue one blue."""
    balls = [("hot", 1500.0, None), ("warm", 500.0, None), ("dead", None, None), ("blue", None, "#0000ff")]
    tables = {
        "world": {"dt": 0.01},
        "entity": [
            {"kind": "body", "name": name, "center": [3.0 * k, 0.0, 0.0], "motion": "fixed",
             "shape": {"shape": "ball", "radius": 1.0}}
            | ({} if heat is None else {"heat": {"temperature": heat, "heat_capacity": 900.0}})
            | ({} if color is None else {"color": color})
            for k, (name, heat, color) in enumerate(balls)
        ],
    }  # fmt: skip
    ef.load(tables).show(save=tmp_path / "balls.png", camera="front", size=(400, 120))
    with Image.open(tmp_path / "balls.png") as opened:
        pixels = np.asarray(opened.convert("RGB"), float)
    lit = pixels.max(axis=2) > 90.0  # the background is darker
    columns = np.flatnonzero(lit[40:80].any(axis=0))
    width = (columns.max() - columns.min() + 1) / 11.0  # in m: 9 between the outer centres, and two radii
    seen = []
    for k in range(4):
        middle = int(columns.min() + (1.0 + 3.0 * k) * width)
        seen.append(pixels[55:65, middle - 4 : middle + 4].mean(axis=(0, 1)))
    hot, warm, dead, blue = seen
    assert hot[0] > 2.0 * hot[2] and hot[0] > hot[1] > hot[2]
    np.testing.assert_allclose(warm / warm.sum(), dead / dead.sum(), atol=3e-3)  # lit from another side
    assert np.ptp(dead) < 30.0 and blue[2] > 4.0 * blue[0]


def test_the_view_holds_the_bodies() -> None:
    """Box of all: the container's. Bodies alone can be drawn, without a particle."""
    frame, hulls = drawn(world_of_bodies())
    view = survey([(0.0, frame)], Options(hulls=hulls))
    assert np.allclose([view.lo, view.hi], [[-4] * 3, [4] * 3])
    with pytest.raises(ef.FluidError, match="nothing to draw"):
        survey([(0.0, {"block": frame["block"]})], Options())


def test_a_stored_run_draws_the_same(tmp_path: Path) -> None:
    """Frames on disk and a checkpoint's polytopes give the meshes of the world itself, bit for bit."""
    world = world_of_bodies()
    world.spawn("smoke", ef.Position(np.zeros((4, 3))))
    with TrajectoryWriter(tmp_path / "trajectory") as writer:
        writer.append(0, 0.0, stored_columns(world))
    from ecs_fluid.io.checkpoint import load_checkpoint
    from ecs_fluid.io.trajectory import Trajectory

    world.save(tmp_path / "state.npz")
    hulls = polytopes(load_checkpoint(tmp_path / "state.npz")[1])
    stored = Trajectory(tmp_path / "trajectory").frame(0)
    there, here = (dict(bodies_in(f, h)) for f, h in ((stored, hulls), drawn(world)))
    assert set(there) == set(here) == {"block", "room", "balls"}
    mesh, wanted = surface(there["block"]), surface(here["block"])
    assert mesh is not None and wanted is not None and np.array_equal(mesh.points, wanted.points)
    assert np.array_equal(extent(there["balls"]), extent(here["balls"]))


def test_a_ball_is_round_in_the_picture() -> None:
    """Seen along x within a container: a disc in the colour of bodies, as wide as high, filled to pi/4.

    Its rim in the shade is too dark to be told from the background, which takes some percent of both.
    """
    from ecs_fluid.viz.scene import pixels, render

    world = ef.World(precision="double")
    Spheres(name="balls", centers=[(0, 0, 0)], radius=2.0).build(world)
    ContainerRecipe(name="room", shape={"shape": "box", "size": (8, 8, 8)}).build(world)
    frame, hulls = drawn(world)
    plotter = render(frame, hulls=hulls, camera="x", size=(300, 300))
    image = pixels(plotter).astype(int)
    plotter.close()
    warm = (image[..., 0] > image[..., 2] + 5) & (image[..., 0] > 60)
    assert image[150, 150, 0] > 90 and warm[150, 150]
    rows, columns = np.nonzero(warm)
    # Round: as wide as high, and filled to pi/4.
    wide, high = np.ptp(columns) + 1, np.ptp(rows) + 1
    assert abs(wide - high) < 0.1 * wide and wide > 60
    assert abs(warm.sum() / (wide * high) - np.pi / 4) < 0.05
