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
from ecs_fluid.io.runfolder import RunFolder
from tests.exports.made_run import BALL_CENTER as CENTER, GRID as H, make_liquid_run, radius
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


def test_vertices_move_with_the_particles(run: Path, tmp_path: Path) -> None:
    target = ef.export(run, "vtp", out=tmp_path / "out")
    data = polydata(vtkXMLPolyDataReader(), target / "surface.00002.vtp")
    velocity = vtk_to_numpy(data.GetPointData().GetArray("velocity"))
    np.testing.assert_allclose(velocity, np.tile([1.0, 2.0, 3.0], (data.GetNumberOfPoints(), 1)), rtol=1e-12)
    assert polydata(vtkXMLPolyDataReader(), target / "surface.00000.vtp").GetNumberOfPoints() == 0
    assert json.loads((target / "export.json").read_text())["surface"] == "surface"


def test_a_surface_is_chosen_like_a_population(run: Path, tmp_path: Path) -> None:
    target = ef.export(run, "ply", out=tmp_path / "out", only=["surface"], frames="1")
    assert sorted(path.name for path in target.iterdir()) == ["export.json", "surface.00001.ply"]
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
