"""Exports of worlds in which another axis than z is upwards, and exports turned on demand, read back."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.api.pictures import Subject
from ecs_fluid.errors import FluidError
from ecs_fluid.exports.turning import turned
from ecs_fluid.io.runfolder import RunFolder
from tests.exports.made_run import box_vertices, frame_of, make_liquid_run, make_run, time_of
from tests.viz.page.read_page import Page

Y_UP = "[fluid]\ngravity = [0.0, -9.81, 0.0]\n"
TO_Y = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
"""(x, y, z) to (x, z, -y): what was along z is along y, and the x axis stays."""
STILL = np.eye(3)


@pytest.fixture(scope="module")
def y_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("y") / "small_run", recipe=Y_UP)


def vertices_of(obj: Path) -> np.ndarray:
    lines = obj.read_text(encoding="ascii").splitlines()
    return np.array([line.split()[1:] for line in lines if line.startswith("v ")], np.float64)


def axis_of(target: Path) -> str:
    return str(json.loads((target / "export.json").read_text(encoding="utf-8"))["up_axis"])


@pytest.mark.parametrize(
    ("own", "up", "matrix", "axis"),
    [
        ("y", None, np.eye(3), "y"),
        ("y", "z", TO_Y.T, "z"),
        ("z", "y", TO_Y, "y"),
        ("z", None, np.eye(3), "z"),
    ],
)
def test_usd_agrees_with_its_axis(
    run: Path, y_run: Path, tmp_path: Path, own: str, up: Any, matrix: np.ndarray, axis: str
) -> None:
    """Points, velocities and corners of bodies in the world's axes are those stored, turned."""
    usd = pytest.importorskip("pxr.Usd", reason="needs usd-core: pip install 'ecs-fluid[usd]'")
    from pxr import UsdGeom

    target = ef.export(y_run if own == "y" else run, "usd", "3", tmp_path / "out", up=up)
    assert axis_of(target) == axis
    stage = usd.Stage.Open(str(target / "small_run.usdc"))
    assert UsdGeom.GetStageUpAxis(stage) == axis.upper()
    smoke, stored = UsdGeom.Points.Get(stage, "/small_run/smoke"), frame_of(3)["smoke"]
    for attribute, label in (
        (smoke.GetPointsAttr(), "Position.x"),
        (smoke.GetVelocitiesAttr(), "Velocity.u"),
    ):
        np.testing.assert_array_equal(np.array(attribute.Get(3)), stored[label] @ matrix.T.astype(np.float32))
    box = UsdGeom.Mesh.Get(stage, "/small_run/box/box_0")
    place = np.array(box.ComputeLocalToWorldTransform(3))
    corners = np.array(box.GetPointsAttr().Get()) @ place[:3, :3] + place[3, :3]
    np.testing.assert_allclose(corners, box_vertices(time_of(3)) @ matrix.T, atol=1e-6)


def test_gltf_has_y_upwards_in_any_world(run: Path, y_run: Path, tmp_path: Path) -> None:
    """By its root's rotation (x, y, z, w): none, or -90 degrees about x, which takes z to y."""
    half = math.sqrt(0.5)
    for own, path, expected in (("y", y_run, [0.0, 0.0, 0.0, 1.0]), ("z", run, [-half, 0.0, 0.0, half])):
        target = ef.export(path, "gltf", "3", tmp_path / own)
        data = (target / "small_run.00003.glb").read_bytes()
        nodes = json.loads(data[20 : 20 + struct.unpack("<I", data[12:16])[0]])["nodes"]
        rotation = np.array(nodes[0]["rotation"])
        np.testing.assert_allclose(rotation * np.sign(rotation[3]), expected, atol=1e-15)
        assert axis_of(target) == "y" and all("rotation" not in node for node in nodes[1:3])
    with pytest.raises(FluidError, match="up = 'z' on gltf, in which y is upwards"):
        ef.export(run, "gltf", out=tmp_path / "no", up="z")


def test_meshes_points_and_volumes_are_turned(run: Path, tmp_path: Path) -> None:
    """In obj and ply, and vti: the same volume with its axes exchanged, vectors too, to the last bit."""
    straight, other = (ef.export(run, "obj", "2", tmp_path / f"obj{up}", up=up) for up in ("z", "y"))
    name = "small_run.00002.obj"
    there, here = (vertices_of(folder / name) for folder in (other, straight))
    np.testing.assert_allclose(there, here @ TO_Y.T, atol=1e-12)
    assert "metres, y up" in (other / name).read_text(encoding="ascii").splitlines()[0]
    ply = ef.export(run, "ply", "2", tmp_path / "ply", up="y", only=["smoke"]) / "smoke.00002.ply"
    assert b"metres, y up\n" in ply.read_bytes()[:200]
    import pyvista as pv

    volumes = [
        pv.read(ef.export(run, "vti", "2", tmp_path / f"vti{up}", up=up) / "volume.00002.vti") for up in "zy"
    ]
    z_up, y_up = (
        {key: v[key].reshape(*v.dimensions[::-1], -1).swapaxes(0, 2) for key in v.point_data} for v in volumes
    )
    # Index (i, j, k) is at (i, k, -j) now: axes are exchanged, and the last one is reversed. Grids begin a
    # point below the particles and end two above the cell of the last, so along -y they differ by one point.
    for key, values in z_up.items():
        expected = values.swapaxes(1, 2)[:, :, ::-1]
        expected = expected @ TO_Y.T.astype(np.float32) if values.shape[-1] == 3 else expected
        assert values.any()
        np.testing.assert_allclose(y_up[key], expected, atol=2e-5 * np.abs(values).max())


def test_temperatures_at_rest_stay_with_their_heights(tmp_path: Path) -> None:
    """Where no tracer is, the volume has 300 K + 5 K/m (z + 100 m) at the height z, y in the file."""
    import pyvista as pv

    recipe = "[fluid]\nlaw = 'ideal_gas'\ntemperature_profile = [[-100.0, 300.0], [100.0, 1300.0]]\n"
    run = make_run(tmp_path / "layered", frames=3, recipe=recipe)
    found = pv.read(ef.export(run, "vti", "2", tmp_path / "out", up="y") / "volume.00002.vti")
    empty = found["density"] == 0.0
    expected = 300.0 + 5.0 * (found.points[:, 1] + 100.0)
    np.testing.assert_allclose(found["temperature"][empty], expected[empty], rtol=1e-6)


def test_stored_surfaces_are_turned(tmp_path: Path) -> None:
    run = make_liquid_run(tmp_path / "ball")
    folders = [ef.export(run, "obj", "1", tmp_path / f"out{up}", up=up) for up in "zy"]
    here, there = (vertices_of(folder / "ball.00001.obj") for folder in folders)
    np.testing.assert_allclose(there, here @ TO_Y.T, atol=1e-12)


def test_poses_tensors_and_vectors_turn_and_the_rest_stays() -> None:
    """R(q') = M R(q), T' = M T M^T for a tensor a b^T of vectors that turn, and whole numbers stay."""
    from ecs_fluid.exports.bodies import rotation_matrix

    rng = np.random.default_rng(1)
    q, a, b = rng.normal(size=(5, 4)), rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    whole = np.arange(15).reshape(5, 3)
    columns = {"Pose.q": q, "Own.a": a, "Own.b": b, "Own.ab": a[:, :, None] * b[:, None], "Own.k": whole}
    found = turned(columns | {"Own.s": a[:, 0]}, TO_Y)
    for before, after in zip(q, found["Pose.q"], strict=True):
        np.testing.assert_allclose(rotation_matrix(after), TO_Y @ rotation_matrix(before), atol=1e-12)
    np.testing.assert_array_equal(found["Own.a"], a @ TO_Y.T)
    np.testing.assert_array_equal(found["Own.ab"], found["Own.a"][:, :, None] * found["Own.b"][:, None])
    np.testing.assert_array_equal(found["Own.k"], whole)
    np.testing.assert_array_equal(found["Own.s"], a[:, 0])


def test_formats_with_the_numbers_of_the_run_turn_nothing(run: Path, y_run: Path, tmp_path: Path) -> None:
    for to in ("npz", "xdmf"):
        with pytest.raises(FluidError, match=f"up has no effect on {to}"):
            ef.export(run, to, out=tmp_path / "no", up="y")
        assert axis_of(ef.export(y_run, to, out=tmp_path / to)) == "y"
    with pytest.raises(FluidError, match="up = 'x'; y or z is needed"):
        ef.export(run, "ply", out=tmp_path / "no", up="x")


def test_pictures_and_pages_of_a_run_have_its_axis_upwards(y_run: Path, tmp_path: Path) -> None:
    assert Subject.of_run(y_run).options({})["up"] == "y"
    view = Page(ef.page(y_run, out=tmp_path / "page", frames="-1")).header["view"]
    assert view["up"] == [0.0, 1.0, 0.0] and view["towards"] == [0.55, 0.55, 0.78]
    assert RunFolder.open(y_run).recipe == Y_UP
