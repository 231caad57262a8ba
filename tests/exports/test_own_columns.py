"""Columns of a user's own components, exported by a program that does not know their classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import ComponentError, StorageError
from ecs_fluid.exports.frames import Frames
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.viz.columns import title
from ecs_fluid.viz.page.fields import chosen_fields

ROWS = 7


class ProbeReading(ef.Component):
    """What a probe reads: numbers that single precision does not hold."""

    clock: ef.Array = ef.column("s", kind="double")
    way: ef.Array = ef.column("m", shape=(3,), kind="double", default=0.0)
    matrix: ef.Array = ef.column("1/m", shape=(2, 2), kind="double", default=0.0)
    charge: ef.Array = ef.column("A s", default=0.25)


def clocks(time: float) -> np.ndarray:
    """Seconds (n,) near 2^33, where single precision has steps of 1024."""
    return 2.0**33 + np.arange(ROWS) + time


class Ticking(ef.System):
    """Clocks of probes go on."""

    writes = (ProbeReading,)
    phase = "move"

    def process(self, dt: float) -> None:
        for (reading,) in self.query(ProbeReading):
            reading.clock += dt
            reading.way[:, 2] = reading.clock


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frames at the ticks 0, 2, 4 and 5, so that the last has the time code 2.5."""
    reading = {"kind": f"{__name__}:ProbeReading", "clock": clocks(0.0).tolist()}
    probes = {"kind": "tracers", "name": "probes", "points": [[0.0, 0.0, 0.0]] * ROWS, "component": [reading]}
    table = {
        "world": {"dt": 0.25, "duration": 1.25},
        "output": {"every": 2},
        "entity": [probes],
        "system": [{"kind": f"{__name__}:Ticking"}],
    }
    out = tmp_path_factory.mktemp("own") / "probing"
    made = ef.run(table, out=out, progress=False)
    assert [frame.tick for frame in made] == [0, 2, 4, 5]
    return out


class Paint(ef.Component):
    """A colour of a body, which frames keep."""

    shade: ef.Array = ef.column("1", shape=(3,), default=0.0, in_frames=True)


def test_vertices_of_bodies_have_the_columns_of_their_body(tmp_path: Path) -> None:
    import pyvista as pv

    shape = {"shape": "points", "points": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]}
    paint = {"kind": f"{__name__}:Paint", "shade": [0.25, 0.5, 0.75]}
    block = {"kind": "body", "name": "block", "shape": shape, "motion": "fixed", "component": [paint]}
    table = {"world": {"dt": 0.1, "duration": 0.1}, "entity": [block]}
    run = ef.run(table, out=tmp_path / "run", progress=False)
    vtp = pv.read(run.export("vtp", out=tmp_path / "vtp") / "block.00001.vtp")
    np.testing.assert_array_equal(vtp["Paint_shade"], np.tile([0.25, 0.5, 0.75], (4, 1)))
    ply = (run.export("ply", out=tmp_path / "ply") / "block.00001.ply").read_bytes()
    header = ply.partition(b"end_header")[0]
    names = [line.split()[-1] for line in header.decode().splitlines() if line.startswith("property")]
    assert names[names.index("Paint_shade_x") :][:3] == [f"Paint_shade_{axis}" for axis in "xyz"]
    told = json.loads((tmp_path / "vtp" / "export.json").read_text())["populations"]["block"]
    assert set(told) == set(vtp.point_data)


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """No component of that name is loaded, as at the command line."""
    monkeypatch.delitem(ef.Component.registry, "ProbeReading")


@pytest.mark.usefixtures("unknown")
def test_a_run_keeps_units_of_its_columns_for_exports_pictures_and_pages(run: Path) -> None:
    about = json.loads((ef.export(run, "npz", replace=True) / "export.json").read_text())
    units = {entry["column"]: entry["unit"] for entry in about["populations"]["probes"].values()}
    assert units["ProbeReading.clock"] == "s" and units["ProbeReading.charge"] == "A s"
    frames = Frames(RunFolder.open(run))
    assert title("ProbeReading.way.z", frames.declared) == "ProbeReading.way.z [m]"
    (field,) = chosen_fields(frames, ["ProbeReading.charge"])
    assert field.header()["title"] == "ProbeReading.charge [A s]"


@pytest.mark.usefixtures("unknown")
def test_usd_keeps_what_components_say_is_double(run: Path, tmp_path: Path) -> None:
    usd = pytest.importorskip("pxr.Usd", reason="needs usd-core: pip install 'ecs-fluid[usd]'")
    from pxr import UsdGeom

    stage = usd.Stage.Open(str(ef.export(run, "usd", out=tmp_path / "out") / "probing.usdc"))
    primvars = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/probing/probes"))

    def of(name: str, code: float) -> Any:
        return primvars.GetPrimvar(f"ProbeReading_{name}").Get(code)

    for code, tick in ((0.0, 0), (1.0, 2), (2.0, 4), (2.5, 5)):
        expected = clocks(0.25 * tick)
        np.testing.assert_array_equal(np.array(of("clock", code)), expected)
        if tick:
            np.testing.assert_array_equal(np.array(of("way", code))[:, 2], expected)
    charge, matrix = (primvars.GetPrimvar(f"ProbeReading_{name}") for name in ("charge", "matrix"))
    assert charge.GetTypeName() == "float[]" and set(of("charge", 1.0)) == {0.25}
    assert charge.GetAttr().GetCustomDataByKey("unit") == "A s"
    assert matrix.GetTypeName() == "double[]" and (matrix.GetElementSize(), len(matrix.Get(0.0))) == (4, 28)


def test_a_stage_ends_where_players_show_its_last_frame(run: Path, tmp_path: Path) -> None:
    """Players go by whole time codes, so the frame at 2.5 is seen at 3, with the volume of that number."""
    usd = pytest.importorskip("pxr.Usd", reason="needs usd-core: pip install 'ecs-fluid[usd]'")
    from pxr import UsdGeom

    def stage_of(frames: str | None, out: str) -> Any:
        made = ef.export(run, "usd", frames, voxel=0.5, out=tmp_path / out)
        return usd.Stage.Open(str(made / "probing.usdc"))

    stage = stage_of(None, "all")
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0.0, 3.0)
    clock = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath("/probing/probes")).GetPrimvar("ProbeReading_clock")
    np.testing.assert_array_equal(np.array(clock.Get(3.0)), clocks(1.25))
    asset = stage.GetPrimAtPath("/probing/fields").GetChildren()[0].GetAttribute("filePath")
    assert [asset.Get(code).path[-9:-4] for code in (2.0, 3.0)] == ["00002", "00003"]
    alone = stage_of("-1", "last")
    # 1.25 s, where frames are usually 0.5 s apart: the first frame is at a whole code, that of its files.
    assert (alone.GetStartTimeCode(), alone.GetEndTimeCode()) == (2.0, 2.0)


@pytest.mark.parametrize(
    "columns",
    [{"A.b": "C"}, {"A.b": {"unit": 3, "kind": "float"}}, {"A.b": {"unit": "C", "kind": "complex"}}, []],
)
def test_what_a_run_says_of_its_columns_is_checked(run: Path, columns: Any) -> None:
    text = (run / "run.json").read_text()
    try:
        (run / "run.json").write_text(json.dumps(json.loads(text) | {"columns": columns}))
        with pytest.raises(StorageError, match="columns"):
            ef.export(run, "npz", replace=True)
    finally:
        (run / "run.json").write_text(text)


def test_a_run_without_units_is_exported_by_those_of_its_classes(run: Path, tmp_path: Path) -> None:
    """As runs of earlier versions are."""
    text = (run / "run.json").read_text()
    try:
        (run / "run.json").write_text(
            json.dumps({k: v for k, v in json.loads(text).items() if k != "columns"})
        )
        about = json.loads((ef.export(run, "npz", out=tmp_path / "out") / "export.json").read_text())
    finally:
        (run / "run.json").write_text(text)
    assert about["populations"]["probes"]["ProbeReading_charge"]["unit"] == "A s"


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({"unit": 3}, "column: unit = 3; text of at most 100 characters is needed, such as"),
        ({"unit": "m" * 101}, "text of at most 100 characters is needed"),
        ({"unit": "m", "kind": "float64"}, "column: kind = 'float64'; 'float', 'double' or 'int' is"),
        (
            {"unit": "m", "shape": 3},
            "column: shape = 3; a tuple of whole numbers is needed",
        ),
        ({"unit": "m", "shape": (2.5,)}, "a tuple of whole numbers is needed"),
        ({"unit": "m", "default": "zero"}, "column: default = 'zero'; a number or None is needed"),
        ({"unit": "m", "minimum": [0]}, r"column: minimum = \[0\]; a number or None is needed"),
    ],
)
def test_wrong_columns_are_refused_where_they_are_declared(declared: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ComponentError, match=sentence):
        ef.column(**declared)
