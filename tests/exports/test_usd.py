"""USD, read back by OpenUSD's own library; skipped where usd-core (the extra ``usd``) is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.exports.colours import SOLID, TINTS
from ecs_fluid.io.runfolder import RunFolder
from tests.exports.made_run import box_place, box_vertices, frame_of, time_of


@pytest.fixture(scope="module")
def stage(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    usd = pytest.importorskip("pxr.Usd", reason="needs usd-core: pip install 'ecs-fluid[usd]'")
    target = ef.export(run, "usd", out=tmp_path_factory.mktemp("usd") / "out")
    return usd.Stage.Open(str(target / "small_run.usdc"))


def test_stage_says_units_axis_and_rate(stage: Any) -> None:
    from pxr import UsdGeom

    assert UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert UsdGeom.GetStageUpAxis(stage) == "Z"
    # 25 frames per second of simulated time; one time code each.
    assert stage.GetTimeCodesPerSecond() == stage.GetFramesPerSecond() == 25.0
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0.0, 10.0)
    assert stage.GetDefaultPrim().GetPath() == "/small_run"


def test_points_are_the_stored_ones_at_every_time(stage: Any) -> None:
    from pxr import UsdGeom

    points = UsdGeom.Points.Get(stage, "/small_run/smoke")
    primvars = UsdGeom.PrimvarsAPI(points)
    for number in range(11):
        expected = frame_of(number)["smoke"]
        rows = 10 * number
        assert len(points.GetPointsAttr().Get(number)) == rows
        np.testing.assert_array_equal(np.array(points.GetIdsAttr().Get(number)), expected["RowId.id"])
        if rows:
            np.testing.assert_array_equal(
                np.array(points.GetPointsAttr().Get(number)), expected["Position.x"]
            )
            np.testing.assert_array_equal(
                np.array(points.GetVelocitiesAttr().Get(number)), expected["Velocity.u"]
            )
        for name, label in (("temperature", "Temperature.T"), ("smoke", "Species.smoke"), ("id", "RowId.id")):
            primvar = primvars.GetPrimvar(name)
            assert primvar.GetInterpolation() == "vertex"
            np.testing.assert_array_equal(np.array(primvar.Get(number)), expected[label])
    assert primvars.GetPrimvar("temperature").GetAttr().GetCustomDataByKey("unit") == "K"


def test_populations_keep_prims_of_their_own_and_long_integers_stay_what_they_are(tmp_path: Path) -> None:
    usd = pytest.importorskip("pxr.Usd", reason="needs usd-core: pip install 'ecs-fluid[usd]'")
    from pxr import UsdGeom

    # USD knows no dashes, "fields" is the volume's place, and 2^32 + k in 32 bits is k.
    places = {"a-b": 3, "a_b": 4, "fields": 5}
    with RunFolder.create(tmp_path / "odd", "", {}) as run, run.write_trajectory() as trajectory:
        for number, first in enumerate((7, 2**32)):
            frame = {
                name: {
                    "Position.x": np.full((count, 3), number + 0.5, np.float32),
                    "RowId.id": first + np.arange(count),
                    "Mark.k": first + count + np.arange(count),
                }
                for name, count in places.items()
            }
            trajectory.append(number, 0.5 * number, frame)
    target = ef.export(tmp_path / "odd", "usd", voxel=0.5, out=tmp_path / "out")
    stage = usd.Stage.Open(str(target / "odd.usdc"))
    for name, prim in (("a-b", "a_b"), ("a_b", "a_b_"), ("fields", "fields_")):
        points = UsdGeom.Points.Get(stage, f"/odd/{prim}")
        assert [len(points.GetPointsAttr().Get(number)) for number in (0, 1)] == [places[name]] * 2
        for number, first in enumerate((7, 2**32)):
            expected = first + np.arange(places[name])
            for label, shift in (("id", 0), ("Mark_k", places[name])):
                values = UsdGeom.PrimvarsAPI(points).GetPrimvar(label).Get(number)
                np.testing.assert_array_equal(np.array(values), expected + shift)
    assert stage.GetPrimAtPath("/odd/fields").GetTypeName() == "Volume"


def test_widths_are_two_cores(stage: Any) -> None:
    from pxr import UsdGeom

    ring = UsdGeom.Points.Get(stage, "/small_run/ring")
    np.testing.assert_allclose(np.array(ring.GetWidthsAttr().Get(3)), np.full(40, 0.4), rtol=1e-7)
    smoke = UsdGeom.Points.Get(stage, "/small_run/smoke")
    assert smoke.GetWidthsInterpolation() == "constant" and len(smoke.GetWidthsAttr().Get()) == 1
    # Half the spacing in the fullest frame, of 100 in a cube of 2 m; the first with any has 10.
    assert smoke.GetWidthsAttr().Get()[0] == pytest.approx(1 / 100 ** (1 / 3), rel=0.1)


def test_boxes_hold_what_is_in_them(run: Path, tmp_path: Path) -> None:
    """Points of one width and volumes had none, so that viewers neither framed nor showed them."""
    usd = pytest.importorskip("pxr.Usd", reason="needs usd-core: pip install 'ecs-fluid[usd]'")
    from pxr import UsdGeom

    target = ef.export(run, "usd", out=tmp_path / "out", voxel=0.2, frames="8:")
    stage = usd.Stage.Open(str(target / "small_run.usdc"))
    x = frame_of(9)["smoke"]["Position.x"]
    for name, room in (("smoke", 0.13), ("fields", 3.0)):
        prim = stage.GetPrimAtPath(f"/small_run/{name}")
        box = UsdGeom.BBoxCache(9, [UsdGeom.Tokens.default_]).ComputeWorldBound(prim).ComputeAlignedRange()
        outside = np.stack([x.min(axis=0) - box.GetMin(), box.GetMax() - x.max(axis=0)])
        assert (outside > 0.0).all() and (outside < room).all()


def test_a_box_moves_as_it_did(stage: Any) -> None:
    from pxr import Gf, UsdGeom

    mesh = UsdGeom.Mesh.Get(stage, "/small_run/box/box_0")
    assert list(mesh.GetFaceVertexCountsAttr().Get()) == [4] * 6
    for number in (0, 4, 10):
        cache = UsdGeom.XformCache(number)
        matrix = cache.GetLocalToWorldTransform(mesh.GetPrim())
        found = [matrix.Transform(Gf.Vec3d(point)) for point in mesh.GetPointsAttr().Get()]
        # The mesh's own points are single precision: 0.4 m to 3e-8.
        np.testing.assert_allclose(found, box_vertices(time_of(number)), atol=1e-7)
    # Halfway between frames: along the straight path, turned by half the angle.
    middle = UsdGeom.XformCache(4.5).GetLocalToWorldTransform(mesh.GetPrim()).ExtractTranslation()
    np.testing.assert_allclose(middle, box_place(4.5 * 0.04), atol=1e-12)


def test_a_ball_has_its_radius_and_goes_when_it_is_killed(stage: Any) -> None:
    from pxr import UsdGeom

    for which, radius, seen in ((0, 0.25, "inherited"), (1, 0.5, "invisible")):
        ball = UsdGeom.Sphere.Get(stage, f"/small_run/balls/balls_{which}")
        assert ball.GetRadiusAttr().Get() == radius
        assert [ball.ComputeVisibility(number) for number in (0, 3, 4, 10)] == [
            "inherited", "inherited", seen, seen,
        ]  # fmt: skip


def test_every_population_has_a_material_in_its_colour(tmp_path: Path) -> None:
    """That of its recipe, by the curve of sRGB; else of what it is. Containers let look through."""
    usd = pytest.importorskip("pxr.Usd", reason="needs usd-core: pip install 'ecs-fluid[usd]'")
    from pxr import UsdShade

    box = {"shape": "box", "size": [2.0, 2.0, 2.0]}
    made = [
        {"kind": "body", "name": "ball", "density": 1e3, "shape": {"shape": "ball", "radius": 0.1}},
        {"kind": "container", "name": "room", "shape": box, "color": "#ff8000"},
        {"kind": "tracers", "name": "smoke", "points": [[0.0, 0.0, 0.5]], "color": "red"},
    ]
    run = ef.run({"world": {"dt": 0.1}, "entity": made}, ticks=1, out=tmp_path / "run", progress=False)
    stage = usd.Stage.Open(str(run.export("usd") / "run.usdc"))

    def bound(path: str) -> dict[str, Any]:
        binding = UsdShade.MaterialBindingAPI(stage.GetPrimAtPath(path))
        shader = binding.ComputeBoundMaterial()[0].ComputeSurfaceSource()[0]
        assert shader.GetIdAttr().Get() == "UsdPreviewSurface"
        return {part.GetBaseName(): part.Get() for part in shader.GetInputs()}

    (ball,) = stage.GetPrimAtPath("/run/ball").GetChildren()
    (room,) = stage.GetPrimAtPath("/run/room").GetChildren()
    curve = [((c + 0.055) / 1.055) ** 2.4 for c in (*SOLID, 128 / 255)]
    np.testing.assert_allclose(bound(ball.GetPath())["diffuseColor"], curve[:3], rtol=1e-6)
    found = bound(room.GetPath())
    np.testing.assert_allclose(found["diffuseColor"], [1.0, curve[3], 0.0], rtol=1e-6)
    assert found["opacity"] == pytest.approx(0.15)
    smoke = [((c + 0.055) / 1.055) ** 2.4 for c in TINTS["red"][0]]
    np.testing.assert_allclose(bound("/run/smoke")["diffuseColor"], smoke, rtol=1e-6)


def test_many_balls_are_points_with_widths_and_late_ones_appear(tmp_path: Path) -> None:
    usd = pytest.importorskip("pxr.Usd", reason="needs usd-core: pip install 'ecs-fluid[usd]'")
    from pxr import UsdGeom

    with RunFolder.create(tmp_path / "many", "", {}) as run, run.write_trajectory() as trajectory:
        for number in range(3):
            sand, few = frame_of(0)["balls"], frame_of(0)["balls"]
            sand = {label: np.repeat(array, 75, axis=0) for label, array in sand.items()}
            sand["RowId.id"] = np.arange(150)
            frame = {"sand": sand} | ({"few": few} if number == 2 else {})
            trajectory.append(number, 0.1 * number, frame)
    target = ef.export(tmp_path / "many", "usd", out=tmp_path / "out")
    stage = usd.Stage.Open(str(target / "many.usdc"))
    sand = UsdGeom.Points.Get(stage, "/many/sand")
    assert len(sand.GetPointsAttr().Get(1)) == 150
    np.testing.assert_array_equal(np.unique(sand.GetWidthsAttr().Get(1)), [0.5, 1.0])
    late = UsdGeom.Sphere.Get(stage, "/many/few/few_0")
    assert [late.ComputeVisibility(k) for k in (0, 1, 2)] == ["invisible", "invisible", "inherited"]


def test_fields_are_volumes_beside_the_stage(run: Path, tmp_path: Path) -> None:
    """One .vdb a frame with the grids that the Volume names; without a voxel there are none."""
    usd = pytest.importorskip("pxr.Usd", reason="needs usd-core: pip install 'ecs-fluid[usd]'")
    from pxr import UsdVol

    target = ef.export(run, "usd", frames="5:8", out=tmp_path / "out", voxel=0.1)
    stage = usd.Stage.Open(str(target / "small_run.usdc"))
    volume = UsdVol.Volume.Get(stage, "/small_run/fields")
    fields = volume.GetFieldPaths()
    assert {"density", "velocity", "temperature", "smoke"} <= set(fields)
    for name, path in fields.items():
        asset = UsdVol.OpenVDBAsset.Get(stage, path)
        assert asset.GetFieldNameAttr().Get() == name
        codes = asset.GetFilePathAttr().GetTimeSamples()
        for code, number in zip(codes, (5, 6, 7), strict=True):
            found = Path(asset.GetFilePathAttr().Get(code).resolvedPath)
            assert found.parent == target / "volumes" and str(number) in found.name
            assert name.encode() in found.read_bytes()
    assert json.loads((target / "export.json").read_text())["voxel"] == 0.1


def test_numbers_of_volumes_are_time_codes(run: Path, tmp_path: Path) -> None:
    """Blender reads them so: of a stage with every fifth frame it showed nothing but frames 0, 5 and 10.

    Of 1::2 codes were 0.5, 1.5, ...: a player showed at 1 points of frame 1, bodies of 2 and the volume of 3.
    """
    usd = pytest.importorskip("pxr.Usd", reason="needs usd-core: pip install 'ecs-fluid[usd]'")
    from pxr import UsdVol

    for frames, codes in (("::5", [7, 8, 9]), ("1::2", [7, 8, 9, 10, 11]), ("8::2", [11, 12])):
        target = ef.export(run, "usd", frames=frames, out=tmp_path / "out", voxel=0.1, start=7, replace=True)
        stage = usd.Stage.Open(str(target / "small_run.usdc"))
        stage.Reload()
        path = UsdVol.OpenVDBAsset.Get(stage, "/small_run/fields/velocity").GetFilePathAttr()
        assert path.GetTimeSamples() == codes and stage.GetStartTimeCode() == codes[0]
        assert [Path(path.Get(code).path).name for code in codes] == [
            f"volume.{code:05.0f}.vdb" for code in codes
        ]


def test_a_stage_without_voxels_has_no_fields(stage: Any) -> None:
    assert not stage.GetPrimAtPath("/small_run/fields")


def test_missing_usd_core_is_one_sentence(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pxr", None)
    monkeypatch.delitem(sys.modules, "ecs_fluid.exports.usd", raising=False)  # as in a new process
    with pytest.raises(ef.StorageError, match=r"install it with: pip install 'ecs-fluid\[usd\]'"):
        ef.export(run, "usd", out=tmp_path / "out")
    assert not list(tmp_path.iterdir())
