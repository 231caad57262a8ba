"""Pictures of signed distances: what is drawn is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.cli import main
from ecs_fluid.errors import FluidError, StorageError
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.kernels.surface import shapes
from ecs_fluid.kernels.surface.facets import enclosed
from ecs_fluid.runs.surface_frames import store_surface, stored_surface
from ecs_fluid.viz.scene import pixels
from ecs_fluid.viz.surfaces import Distances, distance_slice, render_surface, surface_mesh

RADIUS = 0.6


def ball(n: int = 33, flat: bool = False) -> Distances:
    x = np.linspace(-1.0, 1.0, n)
    points = np.stack(np.meshgrid(x, x, np.zeros(1) if flat else x, indexing="ij"), axis=-1)
    origin = np.array([-1.0, -1.0, 0.0 if flat else -1.0])
    return Distances(
        shapes.sphere(points, np.zeros(3), RADIUS), origin, np.full(3, 2 / (n - 1)), 300 + points[..., 0]
    )


def test_what_a_vertex_knows() -> None:
    """At any level: curvature 2 / (R + level), the temperature of its place, the speed of a given flow, and
    the error against the exact ball: that of linear interpolation, h^2 / (8 R) at most."""
    field = ball()
    for level in (0.0, 0.2):
        mesh = surface_mesh(
            field, level, velocity=lambda x: 2.0 * x, exact=lambda x: shapes.sphere(x, np.zeros(3), RADIUS)
        )
        data = mesh.point_data
        assert mesh.is_manifold and mesh.n_open_edges == 0
        np.testing.assert_allclose(data["curvature"], 2 / (RADIUS + level), rtol=0.02)
        np.testing.assert_allclose(data["temperature"], 300 + mesh.points[:, 0], atol=1e-4)
        np.testing.assert_allclose(data["speed"], 2 * np.linalg.norm(mesh.points, axis=1), rtol=1e-6)
        assert np.abs(data["error"]).max() < (1 / 16) ** 2 / (8 * RADIUS) + 1e-3 / 16
        outward = np.einsum("ij,ij->i", data["Normals"], mesh.points) / np.linalg.norm(mesh.points, axis=1)
        assert outward.min() > 0.995


def test_slice_holds_the_grid_values() -> None:
    """The plane nearest to the place asked for, point by point, and a flat world's only one."""
    field = ball()
    for normal, axis in (("x", 0), ("y", 1), ("z", 2)):
        plane = distance_slice(field, normal, at=0.26)
        assert np.ptp(plane.points[:, axis]) == 0 and plane.points[0, axis] == pytest.approx(0.25)
        exact = shapes.sphere(plane.points, np.zeros(3), RADIUS)
        np.testing.assert_allclose(plane.point_data["phi"], exact, atol=1e-6)
    assert distance_slice(ball(flat=True), "z").n_points == 33 * 33


def shown(field: Distances, **options: object) -> np.ndarray:
    plotter = render_surface(field, size=(240, 240), **options)  # type: ignore[arg-type]
    try:
        return pixels(plotter).astype(int)
    finally:
        plotter.close()


def test_pictures() -> None:
    """The ball is a disc of water's colour; open, it shows the slice; a slice is blue inside a black line."""
    whole = shown(ball(), camera="front")
    water = (whole[..., 2] > 60) & (whole[..., 2] > 1.5 * whole[..., 0])
    rows, columns = np.nonzero(water)
    # A disc covers pi / 4 of its bounding box; shaded, a few of its pixels are too dark to count.
    area = water.sum() / (np.ptp(rows) + 1) / (np.ptp(columns) + 1)
    assert 0.7 < area < 0.8
    assert abs(np.ptp(rows) - np.ptp(columns)) < 6
    plane = shown(ball(), slices=True)
    black = plane.max(axis=2) < 12
    across = np.ptp(np.nonzero(black)[0])
    assert black.sum() > 0.5 * np.pi * across  # of a line at least a pixel wide, dark at its edges too
    middle = plane[90:130, 100:140].reshape(-1, 3).mean(axis=0)
    assert middle[2] > middle[0]
    opened = shown(ball(), clip=True, camera="front")
    assert np.abs(opened - whole).mean() > 5
    flat = shown(ball(flat=True))
    assert np.abs(flat - flat.mean(axis=(0, 1))).mean() > 10


def test_mistakes_are_named() -> None:
    field = ball()
    with pytest.raises(FluidError, match="no surface at the level 9 m; the distances here run from"):
        render_surface(field, level=9.0)
    with pytest.raises(FluidError, match="this surface has no 'speed'"):
        render_surface(field, color_by="speed")
    with pytest.raises(FluidError, match="curvature"):
        render_surface(field, color_by="curvatur")
    with pytest.raises(FluidError, match="slice normal"):
        distance_slice(field, "q")


WORLD = """
[world]
dt = 0.02
duration = 0.08
precision = "single"

[fluid]
density = 1.0
velocity = { solver = "direct" }

[[entity]]
kind = "fluid_block"
name = "drop"
sphere = { radius = 0.5 }
spacing = 0.125
density = "2"
agitation = 1e-3

[[system]]
kind = "surface"
every = 2

[output]
every = 2
"""


def test_show_a_run(tmp_path: Path) -> None:
    """A run stores its distances with every frame, and the command line draws each of them."""
    (tmp_path / "drop.toml").write_text(WORLD)
    run = tmp_path / "run"
    assert main(["run", str(tmp_path / "drop.toml"), "--out", str(run)]) == 0
    folder = RunFolder.open(run)
    field = stored_surface(folder.fields, 4)
    assert field.tick == 4 and set(field.arrays) == {"phi", "T"}
    assert (field.arrays["phi"] < 0).sum() > 100
    np.testing.assert_allclose(field.arrays["T"], 300.0, rtol=1e-5)
    records = folder.records()
    assert [r["tick"] for r in records if "surface_volume" in r] == [2, 4]
    with pytest.raises(StorageError, match="holds no signed distance at tick -1"):
        stored_surface(folder.fields, -1)
    for number, options in enumerate((["sdf", "--color-by", "speed"], ["sdf_slice"], ["sdf", "--clip"])):
        picture = tmp_path / f"{number}.png"
        done = main(["show", str(run), "--what", *options, "--size", "160", "120", "--save", str(picture)])
        assert done == 0 and picture.stat().st_size > 2000
    # A world that has not run yet is drawn as the first frame of its run.
    small = ["--what", "sdf", "--size", "160", "120", "--save"]
    assert main(["show", str(tmp_path / "drop.toml"), *small, str(tmp_path / "world.png")]) == 0
    assert main(["show", str(run), "--frame", "0", *small, str(tmp_path / "frame.png")]) == 0
    assert (tmp_path / "world.png").read_bytes() == (tmp_path / "frame.png").read_bytes()


def test_a_world_without_a_surface_stores_none(tmp_path: Path) -> None:
    """Nothing is written, and asking says what is missing."""
    store_surface(ef.World(), tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StorageError, match="kind = 'surface'"):
        stored_surface(tmp_path, 0)


def test_the_first_surface_is_stored_and_leaves_the_world_as_it_is(tmp_path: Path) -> None:
    """Before any tick: the drop hardly moves (1e-3 m/s), so its volume is that after a tick, to 0.2 %."""
    from ecs_fluid.components import SignedDistance

    (tmp_path / "drop.toml").write_text(WORLD.replace("every = 2", "every = 1"))
    world = ef.load(tmp_path / "drop.toml")
    world.evaluate()
    before = world.state_hash()
    store_surface(world, tmp_path / "fields")
    assert world.state_hash() == before and world.fluid[SignedDistance].phi.size == 0
    world.step()
    store_surface(world, tmp_path / "fields")
    volumes = []
    for tick in (0, 1):
        field = stored_surface(tmp_path / "fields", tick)
        assert field.tick == tick and field.time == pytest.approx(0.02 * tick)
        volumes.append(enclosed(field.arrays["phi"], field.spacing)[0])
    assert volumes[0] == pytest.approx(volumes[1], rel=2e-3)
    assert volumes[1] == pytest.approx(world.history[-1]["surface_volume"], rel=1e-6)
