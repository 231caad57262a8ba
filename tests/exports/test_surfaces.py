"""Surfaces of liquids in exports: a growing ball of water whose distances are exact, 0.05 m apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkFiltersCore import vtkFeatureEdges, vtkTriangleFilter
from vtkmodules.vtkIOGeometry import vtkGLTFReader, vtkOBJReader
from vtkmodules.vtkIOPLY import vtkPLYReader
from vtkmodules.vtkIOXML import vtkXMLPolyDataReader

import ecs_fluid as ef
from ecs_fluid.exports import particle_surface
from ecs_fluid.exports.colours import by_name, linear
from ecs_fluid.exports.particle_surface import surface_of_particles
from ecs_fluid.exports.surfaces import Near
from ecs_fluid.io.fields import append_field
from ecs_fluid.io.runfolder import RunFolder
from tests.exports.made_run import BALL_CENTER as CENTER, GRID as H, make_liquid_run, make_two_liquids, radius
from tests.exports.test_arrays_and_meshes import volume_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_liquid_run(tmp_path_factory.mktemp("liquid") / "ball")


def polydata(reader: Any, path: Path) -> Any:
    reader.SetFileName(str(path))
    reader.Update()
    return reader.GetOutput()


def gltf(path: Path) -> Any:
    """The only surface in a file, turned back to z up."""
    blocks = polydata(vtkGLTFReader(), path)
    walk = blocks.NewIterator()
    while not walk.IsDoneWithTraversal():
        data = walk.GetCurrentDataObject()
        walk.GoToNextItem()
        if data.GetNumberOfPolys():
            points = vtk_to_numpy(data.GetPoints().GetData())
            x, z, y = points.copy().T
            points[:] = np.stack([x, -y, z], axis=1)
            return data
    raise AssertionError(path)


READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "obj": ("ball.{:05d}.obj", lambda path: polydata(vtkOBJReader(), path)),
    "ply": ("surface.{:05d}.ply", lambda path: polydata(vtkPLYReader(), path)),
    "vtp": ("surface.{:05d}.vtp", lambda path: polydata(vtkXMLPolyDataReader(), path)),
    "gltf": ("ball.{:05d}.glb", gltf),
}


@pytest.fixture(scope="module")
def half_full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tank of 1 m^3, half full of water around a block of 0.4 m on its floor, without a SurfaceSystem."""
    block = {"shape": "box", "size": [0.4, 0.4, 0.4]}
    tables = {
        "world": {"dt": 0.001, "duration": 0.001, "integrator": "euler"},
        "entity": [
            {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1, 1, 1]}},
            {"kind": "body", "name": "block", "shape": block, "center": [0, 0, -0.3], "motion": "fixed"},
            {"kind": "liquid", "name": "water", "fills": "tank", "level": 0.0, "spacing": 0.1},
        ],
    }
    return ef.run(tables, out=tmp_path_factory.mktemp("half") / "full").path


@pytest.mark.parametrize("to", READERS)
def test_liquid_without_stored_distances_has_the_surface_of_its_particles(
    half_full: Path, tmp_path: Path, to: str
) -> None:
    """Closed, and as large as the water: 1 m x 1 m x 0.5 m less the block, (0.5 - 0.064) m^3.

    Of an edge in the corner of two walls half a cell of 0.05 m is cut off, so (0.025 m)^2 / 2 of 4 + 4 m of
    edges on the floor and up the walls, 0.3 %; at the block the surface is flat within some 5 % of a spacing.
    """
    target = ef.export(half_full, to, out=tmp_path / "out", only=["surface"], frames="0")
    name, read = READERS[to]
    data = read(target / name.replace("ball", "full").format(0))
    edges = vtkFeatureEdges()
    edges.SetInputData(data)
    edges.FeatureEdgesOff()
    edges.ManifoldEdgesOff()
    edges.Update()
    assert edges.GetOutput().GetNumberOfCells() == 0
    assert volume_of(data) == pytest.approx(0.5 - 0.4**3, rel=0.03)
    low, high = np.reshape(data.GetBounds(), (3, 2)).T
    np.testing.assert_allclose(low, -0.5, atol=0.005)
    np.testing.assert_allclose(high, [0.5, 0.5, 0.0], atol=0.01)


def test_particles_alone_have_no_surface(half_full: Path, tmp_path: Path) -> None:
    target = ef.export(half_full, "ply", out=tmp_path / "ply", only=["water", "tank"], frames="0")
    files = ["export.json", "tank.00000.ply", "water.00000.ply"]
    assert sorted(path.name for path in target.iterdir()) == files
    target = ef.export(half_full, "npz", out=tmp_path / "npz")
    assert json.loads((target / "export.json").read_text())["surface"] is None


@pytest.mark.parametrize("volume", [0.0, -1.0, np.nan, np.inf])
def test_volumes_that_are_none_are_a_sentence(volume: float, tmp_path: Path) -> None:
    water = {"Position.x": np.random.default_rng(1).random((9, 3)), "Liquid.volume": np.full(9, volume)}
    with RunFolder.create(tmp_path / "run", "", {}) as run, run.write_trajectory() as trajectory:
        trajectory.append(0, 0.0, {"water": water})
    with pytest.raises(ef.StorageError, match=r"frame 0 of .*Liquid.volume has a median of .*above 0"):
        ef.export(tmp_path / "run", "obj", out=tmp_path / "obj")


def gltf_document(path: Path) -> Any:
    data = path.read_bytes()
    return json.loads(data[20 : 20 + int.from_bytes(data[12:16], "little")])


def test_a_surface_has_the_colour_that_its_liquids_share(tmp_path: Path) -> None:
    run = make_two_liquids(tmp_path / "run", ["green", "green"])
    target = ef.export(run, "gltf", out=tmp_path / "out", only=["surface"])
    scene = gltf_document(target / "run.00000.glb")
    (material,) = scene["materials"]
    assert material["pbrMetallicRoughness"]["baseColorFactor"] == [*linear(by_name("green")), 1.0]
    assert "COLOR_0" not in scene["meshes"][0]["primitives"][0]["attributes"]


def test_vertices_of_a_stored_surface_have_colours_too(tmp_path: Path) -> None:
    """A ball of 3.5 m about the origin: green at x < -1 m, white at x > 1 m, as in `check_two_colours`."""
    run = make_two_liquids(tmp_path / "run", ["green", "#ffffff"])
    axis = np.arange(-5.0, 5.01, 0.5)
    phi = np.linalg.norm(np.stack(np.meshgrid(*[axis] * 3, indexing="ij"), axis=-1), axis=-1) - 3.5
    append_field(run / "trajectory/fields", "sdf", 0, 0.0, np.full(3, -5.0), np.full(3, 0.5), {"phi": phi})
    data = READERS["ply"][1](ef.export(run, "ply", out=tmp_path / "out") / "surface.00000.ply")
    x = vtk_to_numpy(data.GetPoints().GetData())[:, 0]
    colours = vtk_to_numpy(data.GetPointData().GetArray("RGB")) / 255.0
    assert np.ptp(x) == pytest.approx(7.0, abs=0.2)
    np.testing.assert_allclose(colours[x < -1.01] - by_name("green"), 0.0, atol=0.002)
    assert colours[x > 1.01].min() == 1.0


def check_two_colours(x: np.ndarray, colours: np.ndarray, two: np.ndarray, tolerance: float) -> None:
    """The first of `two` colours (2, 3) at x < -1 m, the second at x > 1 m, where the six nearest particles
    are of one liquid (the next ones of the other are 1.5 m away or more), and means of six in between."""
    assert np.ptp(x) == pytest.approx(8.0, abs=0.1)
    np.testing.assert_allclose(colours[x < -1.01], np.tile(two[0], ((x < -1.01).sum(), 1)), atol=tolerance)
    np.testing.assert_allclose(colours[x > 1.01], np.tile(two[1], ((x > 1.01).sum(), 1)), atol=tolerance)
    share = (colours - two[0]) @ (two[1] - two[0]) / ((two[1] - two[0]) ** 2).sum()
    assert share.min() > -0.01 and share.max() < 1.01
    between = np.abs(x) < 0.6
    assert 0.3 < share[between].mean() < 0.7 and np.ptp(share[between]) > 0.2


@pytest.mark.parametrize("to", ["ply", "vtp", "gltf", "usd"])
def test_vertices_have_the_colours_of_liquids_that_mix(tmp_path: Path, to: str) -> None:
    """In bytes of sRGB, or in linear light, where the two ends are those of the named colours."""
    run = make_two_liquids(tmp_path / "run", ["green", "#ffffff"])
    target = ef.export(run, to, out=tmp_path / "out", only=["surface"])
    two = np.array([by_name("green"), (1.0, 1.0, 1.0)])
    if to in ("ply", "vtp"):
        data = READERS[to][1](target / f"surface.00000.{to}")
        colours = vtk_to_numpy(data.GetPointData().GetArray({"ply": "RGB", "vtp": "color"}[to]))
        assert colours.dtype == np.uint8
        check_two_colours(vtk_to_numpy(data.GetPoints().GetData())[:, 0], colours / 255.0, two, 0.002)
    elif to == "gltf":
        data = gltf(target / "run.00000.glb")
        colours = vtk_to_numpy(data.GetPointData().GetArray("COLOR_0"))
        (material,) = gltf_document(target / "run.00000.glb")["materials"]
        assert material["pbrMetallicRoughness"]["baseColorFactor"] == [1.0] * 4
        x = vtk_to_numpy(data.GetPoints().GetData())[:, 0]
        np.testing.assert_allclose(colours[x < -1.01][0], linear(two[0]), rtol=1e-6)
        assert np.ptp(colours[x < -1.01], axis=0).max() == 0.0 and colours[x > 1.01].min() == 1.0
    else:
        usd = pytest.importorskip("pxr.Usd", reason="needs usd-core: pip install 'ecs-fluid[usd]'")
        from pxr import UsdGeom, UsdShade

        stage = usd.Stage.Open(str(target / "run.usdc"))
        mesh = UsdGeom.Mesh.Get(stage, "/run/surface")
        primvar = UsdGeom.PrimvarsAPI(mesh).GetPrimvar("displayColor")
        assert primvar.GetInterpolation() == UsdGeom.Tokens.vertex
        colours, x = np.array(primvar.Get(0)), np.array(mesh.GetPointsAttr().Get(0))[:, 0]
        np.testing.assert_allclose(colours[x < -1.01][0], linear(two[0]), rtol=1e-6)
        assert np.ptp(colours[x < -1.01], axis=0).max() == 0.0 and colours[x > 1.01].min() == 1.0
        material = UsdShade.MaterialBindingAPI(mesh).ComputeBoundMaterial()[0]
        shader = material.ComputeSurfaceSource()[0]
        reader = UsdShade.Shader(shader.GetInput("diffuseColor").GetConnectedSource()[0].GetPrim())
        assert reader.GetIdAttr().Get() == "UsdPrimvarReader_float3"
        assert reader.GetInput("varname").Get() == "displayColor"


@pytest.mark.parametrize("far", [1e30, 1e308])
def test_particles_beyond_any_lattice_have_no_surface(far: float) -> None:
    """The surface is that of the others, to the bit; those are drops."""
    cube = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
    alone = surface_of_particles(cube, 1.0)
    both = surface_of_particles(np.concatenate([cube, np.full((64, 3), far)]), 1.0)
    assert np.array_equal(both.points, alone.points)
    assert np.array_equal(both.triangles, alone.triangles)
    assert np.array_equal(both.drops, np.concatenate([alone.drops, np.ones(64, bool)]))


def test_groups_that_are_left_out_have_no_surface(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of the lattice are computed only beside particles dense enough for a surface. Were all
    of them computed it would be the same to the bit: of groups of 1 to 13 particles, loose and tight ones."""
    draw = np.random.default_rng(5)
    groups = [
        draw.uniform(-60.0, 60.0, (1, 3)) + draw.uniform(0.1, 2.5) * draw.uniform(-1.0, 1.0, (count, 3))
        for count in draw.integers(1, 14, 80)
    ]
    x = np.concatenate(groups)
    found = surface_of_particles(x, 1.0)
    assert len(found.points) and not particle_surface._dense(x).all()
    monkeypatch.setattr(particle_surface, "_dense", lambda x: np.ones(len(x), bool))
    for one, other in zip(found, surface_of_particles(x, 1.0), strict=True):
        np.testing.assert_array_equal(one, other)


def test_places_beyond_single_precision_are_a_sentence(tmp_path: Path) -> None:
    water = {"Position.x": np.full((9, 3), 1e39), "Velocity.u": np.ones((9, 3))}
    phi = np.linspace(-1.0, 1.0, 27).reshape(3, 3, 3)
    for name, origin, said in (
        ("water", 0.0, "has a position"),
        ("grid", 1e308, "signed distance of tick 0"),
    ):
        with RunFolder.create(tmp_path / name, "", {}) as run, run.write_trajectory() as trajectory:
            trajectory.append(
                0, 0.0, {"water": {**water, "Position.x": water["Position.x"] * (name == "water")}}
            )
            append_field(run.fields, "sdf", 0, 0.0, np.full(3, origin), np.ones(3), {"phi": phi})
        with pytest.raises(ef.StorageError, match=f"{said}.* finite number.*of single precision"):
            ef.export(tmp_path / name, "obj", out=tmp_path / "out")


def test_bodies_with_damaged_numbers_are_a_sentence(tmp_path: Path) -> None:
    good = {
        "Position.x": np.zeros((1, 3)),
        "Pose.q": np.array([[1.0, 0, 0, 0]]),
        "RowId.id": np.zeros(1, int),
    }
    good |= {"BallShape.radius": np.ones(1), "RigidMotion.v": np.zeros((1, 3))}
    wrong = {"Pose.q": np.zeros((1, 4)), "BallShape.radius": np.full(1, np.inf)}
    wrong["RigidMotion.v"] = np.full((1, 3), np.nan)
    for column, values in wrong.items():
        with RunFolder.create(tmp_path / column, "", {}) as run, run.write_trajectory() as trajectory:
            trajectory.append(0, 0.0, {"peg": good | {column: values}})
        for to in ("obj", "gltf"):
            with pytest.raises(ef.StorageError, match="bodies 'peg' are damaged"):
                ef.export(tmp_path / column, to, out=tmp_path / "out")


def check_ball(points: np.ndarray, triangles: np.ndarray, frame: int) -> None:
    """On the sphere within h^2 / (8 r), the sag of an edge of a cell; outward, and not more than the ball.

    Missing volume: 3/8 (L / r)^2 for triangles with edges L (see test_arrays_and_meshes), which are diagonals
    of a cell's face at most in the mean, and 3/8 (h / r)^2 for vertices that lie that sag too low.
    """
    r = radius(frame)
    distance = np.linalg.norm(points - CENTER, axis=1)
    np.testing.assert_allclose(distance, r, atol=H**2 / (8 * r) + 1e-3 * H)
    a, b, c = points[triangles].astype(float).transpose(1, 0, 2) - CENTER[None]
    volume = np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0
    assert 1 - (3 / 4 + 3 / 8) * (H / r) ** 2 < volume / (4 / 3 * np.pi * r**3) < 1.0


@pytest.mark.parametrize("to", READERS)
def test_meshes_are_closed_balls(run: Path, tmp_path: Path, to: str) -> None:
    target = ef.export(run, to, out=tmp_path / "out")
    name, read = READERS[to]
    for frame in (1, 2):
        data = read(target / name.format(frame))
        triangulated = vtkTriangleFilter()
        triangulated.SetInputData(data)
        triangulated.Update()
        triangles = vtk_to_numpy(triangulated.GetOutput().GetPolys().GetConnectivityArray()).reshape(-1, 3)
        check_ball(vtk_to_numpy(data.GetPoints().GetData()), triangles, frame)
        edges = vtkFeatureEdges()
        edges.SetInputData(data)
        edges.FeatureEdgesOff()
        edges.ManifoldEdgesOff()
        edges.Update()
        assert edges.GetOutput().GetNumberOfCells() == 0  # no border, no edge with three faces


def test_gltf_has_normals_of_a_liquid(run: Path, tmp_path: Path) -> None:
    """Outward: of a ball, within the slope of an edge of a cell's diagonal over its radius."""
    target = ef.export(run, "gltf", out=tmp_path / "out", only=["surface"], frames="1")
    data = gltf(target / "ball.00001.glb")
    normals = vtk_to_numpy(data.GetPointData().GetNormals())
    x, z, y = normals.copy().T
    away = vtk_to_numpy(data.GetPoints().GetData()) - CENTER
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    cosine = np.einsum("ij,ij->i", np.stack([x, -y, z], axis=1), away)
    assert cosine.min() > np.cos(np.sqrt(3.0) * H / radius(1))


def test_vertices_move_with_the_particles(run: Path, tmp_path: Path) -> None:
    target = ef.export(run, "vtp", out=tmp_path / "out")
    data = polydata(vtkXMLPolyDataReader(), target / "surface.00002.vtp")
    velocity = vtk_to_numpy(data.GetPointData().GetArray("velocity"))
    np.testing.assert_allclose(velocity, np.tile([1.0, 2.0, 3.0], (data.GetNumberOfPoints(), 1)), rtol=1e-12)
    assert polydata(vtkXMLPolyDataReader(), target / "surface.00000.vtp").GetNumberOfPoints() == 0
    assert json.loads((target / "export.json").read_text())["surface"] == "surface"


@pytest.mark.parametrize("jitter", [0.0, 0.2])
def test_vertices_of_a_turning_ball_move_as_its_surface(jitter: float) -> None:
    """Particles lie up to a spacing below a vertex, and slower particles they are: by 10 % in the mean of the
    nearest four. Velocities that change linearly in space are found exactly but for the part that keeps
    equations of a sheet solvable, LEAST of three mean squares, 0.3 % of the change from the middle of the
    neighbours, a spacing away (0.05 m x 2 rad/s x 0.003), and fewer on one side at places moved at random."""
    h = 0.05
    x = np.stack(np.meshgrid(*[h * (np.arange(-7.0, 7.0) + 0.5)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    x = x[np.linalg.norm(x, axis=1) < 6 * h]
    x += jitter * h * np.random.default_rng(1).uniform(-1.0, 1.0, x.shape)
    spin = np.array([0.0, 0.0, 2.0])
    points = surface_of_particles(x, h).points
    found = Near([{"Position.x": x, "Velocity.u": np.cross(spin, x)}])(points)
    assert np.abs(found - np.cross(spin, points)).max() < 0.01 * 2.0 * 6 * h


def test_velocities_beside_a_sheet_stay_near_those_of_its_particles() -> None:
    """Nothing is known of the slope across a plane of particles. Across two thin layers, 0.1 m apart, that
    slide past each other at 1 m/s each it is 20 1/s, and would be 13 m/s at 0.7 m; a vertex is no farther
    from the mean m of the particles near it than one of them, 1 + |m|. One particle gives its own."""
    x = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0), [0.0], indexing="ij"), axis=-1).reshape(-1, 3)
    along = x * [0.5, 0.0, 0.0]
    above = np.array([[3.5, 3.5, 0.7]])
    found = Near([{"Position.x": x, "Velocity.u": along}])(above)
    np.testing.assert_allclose(found, [[1.75, 0.0, 0.0]], atol=1e-3)
    layer = np.where(np.random.default_rng(1).random((64, 1)) < 0.5, -1.0, 1.0)
    sliding = {"Position.x": x + [0.0, 0.0, 0.05] * layer, "Velocity.u": [1.0, 0.0, 0.0] * layer}
    edge = np.column_stack((np.linspace(1.0, 6.0, 50), np.full(50, 3.3), np.full(50, 0.7)))
    assert 1.0 < np.abs(Near([sliding])(edge)).max() < 3.0
    one = {"Position.x": np.ones((1, 3)), "Velocity.u": np.array([[1.0, 2.0, 3.0]])}
    none = {name: column[:0] for name, column in one.items()}
    np.testing.assert_array_equal(Near([none])(edge), np.zeros((50, 3)))
    np.testing.assert_allclose(Near([one, none])(edge), np.tile([1.0, 2.0, 3.0], (50, 1)), rtol=1e-12)


def test_a_surface_is_chosen_like_a_population(run: Path, tmp_path: Path) -> None:
    target = ef.export(run, "ply", out=tmp_path / "out", only=["surface"], frames="1")
    assert sorted(path.name for path in target.iterdir()) == ["export.json", "surface.00001.ply"]
    target = ef.export(run, "vtp", out=tmp_path / "vtp", only=["surface"], frames="1")
    data = polydata(vtkXMLPolyDataReader(), target / "surface.00001.vtp").GetPointData()
    velocity = vtk_to_numpy(data.GetArray("velocity"))  # of particles that are not exported
    np.testing.assert_allclose(velocity, np.tile([1.0, 2.0, 3.0], (len(velocity), 1)), rtol=1e-12)
    target = ef.export(run, "ply", out=tmp_path / "water", only=["water"], frames="1")
    assert sorted(path.name for path in target.iterdir()) == ["export.json", "water.00001.ply"]


def test_usd_mesh_changes_with_time(run: Path, tmp_path: Path) -> None:
    usd = pytest.importorskip("pxr.Usd", reason="needs usd-core: pip install 'ecs-fluid[usd]'")
    from pxr import UsdGeom

    target = ef.export(run, "usd", out=tmp_path / "out")
    stage = usd.Stage.Open(str(target / "ball.usdc"))
    mesh = UsdGeom.Mesh.Get(stage, "/ball/surface")
    assert len(mesh.GetPointsAttr().Get(0)) == len(mesh.GetFaceVertexCountsAttr().Get(0)) == 0
    for frame in (1, 2):
        points = np.array(mesh.GetPointsAttr().Get(frame))
        triangles = np.array(mesh.GetFaceVertexIndicesAttr().Get(frame)).reshape(-1, 3)
        assert set(mesh.GetFaceVertexCountsAttr().Get(frame)) == {3}
        check_ball(points, triangles, frame)
        velocity = np.array(mesh.GetVelocitiesAttr().Get(frame))
        np.testing.assert_allclose(velocity, np.tile([1.0, 2.0, 3.0], (len(points), 1)), rtol=1e-6)
