"""Exports opened for real by ParaView 5.11, Blender and OpenVDB; see docs/exports.md for how to get them.

    pytest -m nightly tests/exports/test_other_programs.py

ECS_FLUID_BLENDER names a Python that has ``bpy``, which brings OpenVDB; ``pvpython`` is looked for on the
path. Without the first, OpenVDB is looked for in Debian's own Python. What is not there is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from tests.exports.made_run import (
    BALL_CENTER,
    DRIFT,
    FRAMES,
    SPIN,
    box_place,
    box_vertices,
    frame_of,
    make_liquid_run,
    radius,
    time_of,
)

pytestmark = pytest.mark.nightly
CHOSEN = (0, 5, 10)

PARAVIEW = """
import json, sys
import paraview.simple as pv
from paraview import servermanager
from paraview.vtk.util.numpy_support import vtk_to_numpy
found = {}
for path in sys.argv[2:]:
    reader = pv.XDMFReader(FileNames=[path]) if path.endswith(".xdmf") else pv.OpenDataFile(path)
    reader.UpdatePipelineInformation()
    times = list(reader.TimestepValues)
    frames = []
    for k in json.loads(sys.argv[1]):
        reader.UpdatePipeline(times[k])
        data = servermanager.Fetch(reader)
        points = data.GetPointData()
        arrays = {points.GetArrayName(i): vtk_to_numpy(points.GetArray(i)).tolist()
                  for i in range(points.GetNumberOfArrays())}
        places = [data.GetPoint(i) for i in range(data.GetNumberOfPoints())]
        frames.append({"points": places, "cells": data.GetNumberOfCells(), "arrays": arrays})
    found[path.rsplit("/", 1)[1]] = {"times": times, "frames": frames}
print("FOUND" + json.dumps(found))
"""

BLENDER = """
import json, os, sys
import bpy
import numpy as np

def vectors(data, key, count):
    out = np.zeros(3 * count, dtype=np.float32)
    if count:
        data.foreach_get(key, out)
    return out.reshape(-1, 3).astype(float).tolist()

bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.wm.usd_import(filepath=sys.argv[2])
scene = bpy.context.scene
frames = []
for k in json.loads(sys.argv[1]):
    scene.frame_set(k)
    graph = bpy.context.evaluated_depsgraph_get()
    objects = {}
    for thing in bpy.data.objects:
        made = thing.evaluated_get(graph)
        if thing.type == "POINTCLOUD":
            names = made.data.attributes.keys()
            count = len(made.data.points)
            at = made.data.attributes
            objects[thing.name] = {
                "points": vectors(at["position"].data, "vector", count) if "position" in names else [],
                "velocity": vectors(at["velocity"].data, "vector", count) if "velocity" in names else [],
                "temperature": [v.value for v in at["temperature"].data] if "temperature" in names else [],
                "id": [v.value for v in at["id"].data] if "id" in names else [],
                "count": count,
            }
        elif thing.type == "MESH":
            objects[thing.name] = {
                "points": [list(made.matrix_world @ v.co) for v in made.data.vertices],
                "hidden": thing.hide_render or not thing.visible_get(),
            }
        elif thing.type == "VOLUME":
            thing.data.grids.load()
            objects[thing.name] = {
                "grids": sorted(grid.name for grid in thing.data.grids),
                "file": thing.data.grids.frame_filepath,
            }
    frames.append(objects)
ends = [scene.frame_start, scene.frame_end]
bpy.ops.wm.read_factory_settings(use_empty=True)
volumes = []
for path in sys.argv[3:6]:
    bpy.ops.object.volume_import(filepath=path)
    volume = bpy.context.object.data
    volume.grids.load()
    volumes.append({grid.name: [grid.data_type, list(grid.matrix_object[0])] for grid in volume.grids})
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.import_scene.gltf(filepath=sys.argv[6])
gltf = {thing.name: [list(thing.matrix_world @ v.co) for v in thing.data.vertices]
        for thing in bpy.data.objects if thing.type == "MESH"}
heat = [v.value for v in bpy.data.objects["smoke"].data.attributes["_TEMPERATURE"].data]
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.wm.ply_import(filepath=sys.argv[7], forward_axis="Y", up_axis="Z")
cloud = bpy.context.object.data
ply = [list(v.co) for v in cloud.vertices]
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.wm.usd_import(filepath=sys.argv[8])
liquid = []
for k in range(3):
    bpy.context.scene.frame_set(k)
    made = bpy.data.objects["surface"].evaluated_get(bpy.context.evaluated_depsgraph_get())
    liquid.append([[list(v.co) for v in made.data.vertices], len(made.data.polygons)])
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.wm.usd_import(filepath=sys.argv[9])
fifths = []
for k in range(3):
    bpy.context.scene.frame_set(k)
    grids = bpy.data.objects["fields"].data.grids
    grids.load()
    smoke = bpy.data.objects["smoke"].evaluated_get(bpy.context.evaluated_depsgraph_get())
    fifths.append([grids.frame_filepath, len(grids), len(smoke.data.points)])
bpy.ops.wm.read_factory_settings(use_empty=True)
folder = os.path.dirname(fifths[0][0])
files = [{"name": name} for name in sorted(os.listdir(folder))]
bpy.ops.object.volume_import(filepath=fifths[0][0], directory=folder, files=files)
sequence = [[v.is_sequence, v.frame_duration] for v in bpy.data.volumes]
found = [fifths, sequence, liquid, frames, ends, volumes, gltf, heat, ply, bpy.app.version_string]
print("FOUND" + json.dumps(found))
"""

OPENVDB = """
import json, sys
import numpy as np
try:
    import pyopenvdb as vdb
except ImportError:
    import bpy
    bpy.utils.expose_bundled_modules()
    import openvdb as vdb
found = []
for path in sys.argv[2:]:
    grids, _ = vdb.readAll(path)
    parts = {}
    for grid in grids:
        voxels = [(item.min, item.value) for item in grid.citerOnValues()]
        parts[grid.name] = {"voxels": voxels, "size": grid.transform.voxelSize()}
    found.append(parts)
print("FOUND" + json.dumps(found))
"""


def told_by(command: list[str], script: str, tmp_path: Path, *arguments: str) -> Any:
    """Run a script in another program; what it printed as JSON."""
    path = tmp_path / "script.py"
    path.write_text(script)
    done = subprocess.run([*command, str(path), *arguments], capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND")]
    assert lines, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(lines[0].removeprefix("FOUND"))


def test_paraview_reads_times_counts_and_values(run: Path, tmp_path: Path) -> None:
    program = shutil.which("pvpython")
    if program is None:
        pytest.skip("needs pvpython: apt-get install paraview xvfb")
    vtp = ef.export(run, "vtp", out=tmp_path / "vtp")
    vti = ef.export(run, "vti", out=tmp_path / "vti", voxel=0.2)
    xdmf = ef.export(run, "xdmf", out=tmp_path / "xdmf")
    screen = ["xvfb-run", "-a", "-s", "-noreset -screen 0 1280x1024x24"]
    display = screen if shutil.which("xvfb-run") else []
    files = [vtp / "smoke.pvd", vtp / "box.pvd", vti / "volume.pvd", xdmf / "smoke.xdmf"]
    found = told_by([*display, program], PARAVIEW, tmp_path, json.dumps(CHOSEN), *map(str, files))
    for name in ("smoke.pvd", "box.pvd", "volume.pvd", "smoke.xdmf"):
        np.testing.assert_allclose(found[name]["times"], [time_of(k) for k in range(FRAMES)], rtol=1e-15)
    for place, number in enumerate(CHOSEN):
        smoke = frame_of(number)["smoke"]
        for name, velocity in (("smoke.pvd", "velocity"), ("smoke.xdmf", "Velocity.u")):
            frame = found[name]["frames"][place]
            assert len(frame["points"]) == frame["cells"] == 10 * number
            if number:
                np.testing.assert_array_equal(np.float32(frame["points"]), smoke["Position.x"])
                np.testing.assert_array_equal(np.float32(frame["arrays"][velocity]), smoke["Velocity.u"])
        box = found["box.pvd"]["frames"][place]
        assert box["cells"] == 6
        np.testing.assert_allclose(box["points"], box_vertices(time_of(number)), atol=1e-6)
        alpha = np.array(found["volume.pvd"]["frames"][place]["arrays"]["vorticity"]).sum(axis=0) * 0.2**3
        np.testing.assert_allclose(alpha, frame_of(number)["ring"]["Strength.alpha"].sum(axis=0), atol=1e-6)


def test_blender_imports_points_bodies_and_volumes(run: Path, tmp_path: Path) -> None:
    """USD: points, velocities, temperatures, ids, bodies at three frames. Also VDB, glTF and PLY."""
    program = os.environ.get("ECS_FLUID_BLENDER")
    if program is None:
        pytest.skip("needs a Python with Blender's bpy, named by ECS_FLUID_BLENDER")
    pytest.importorskip("pxr.Usd", reason="needs usd-core: pip install 'ecs-fluid[usd]'")
    usd = ef.export(run, "usd", out=tmp_path / "usd", voxel=0.2)
    vdb = ef.export(run, "vdb", out=tmp_path / "vdb", voxel=0.2)
    gltf = ef.export(run, "gltf", out=tmp_path / "gltf")
    ply = ef.export(run, "ply", out=tmp_path / "ply")
    fifths, sequence, liquid, frames, ends, volumes, glb, heat, cloud, version = told_by(
        [program],
        BLENDER,
        tmp_path,
        json.dumps(CHOSEN),
        str(usd / "small_run.usdc"),
        *(str(vdb / f"volume.{number:05d}.vdb") for number in CHOSEN),
        str(gltf / "small_run.00005.glb"),
        str(ply / "smoke.00005.ply"),
        str(ef.export(make_liquid_run(tmp_path / "ball"), "usd", out=tmp_path / "liquid") / "ball.usdc"),
        str(ef.export(run, "usd", frames="::5", out=tmp_path / "fifths", voxel=0.2) / "small_run.usdc"),
    )
    print("Blender", version)
    assert [faces > 0 for _, faces in liquid] == [False, True, True]
    for number, (vertices, faces) in enumerate(liquid[1:], start=1):
        assert faces == 2 * len(vertices) - 4  # Euler: of a closed surface without handles, all triangles
        distance = np.linalg.norm(np.array(vertices) - BALL_CENTER, axis=1)
        np.testing.assert_allclose(distance, radius(number), atol=1e-3)  # test_surfaces derives it
    assert ends == [0, FRAMES - 1]
    for number, objects, grids in zip(CHOSEN, frames, volumes, strict=True):
        smoke, found = frame_of(number)["smoke"], objects["smoke"]
        assert found["count"] == 10 * number and objects["ring"]["count"] == 40
        if number:
            np.testing.assert_array_equal(np.float32(found["points"]), smoke["Position.x"])
            np.testing.assert_array_equal(np.float32(found["velocity"]), smoke["Velocity.u"])
            np.testing.assert_array_equal(np.float32(found["temperature"]), smoke["Temperature.T"])
            np.testing.assert_array_equal(found["id"], smoke["RowId.id"])
        box = np.array(objects["box_0"]["points"])
        np.testing.assert_allclose(box, box_vertices(time_of(number)), atol=1e-6)
        ball = np.array(objects["balls_0"]["points"])
        np.testing.assert_allclose(
            np.linalg.norm(ball - [2.0, time_of(number), 0.0], axis=1), 0.25, atol=1e-6
        )
        assert {name: kind for name, (kind, _) in grids.items()} == {
            "density": "FLOAT",
            "smoke": "FLOAT",
            "temperature": "FLOAT",
            "velocity": "VECTOR_FLOAT",
            "vorticity": "VECTOR_FLOAT",
        }
        assert grids["density"][1][0] == pytest.approx(0.2)
        fields = objects["fields"]
        assert fields["grids"] == sorted(grids)
        assert Path(fields["file"]) == usd / "volumes" / f"volume.{number:05d}.vdb"
    # Every fifth frame: they are at frames 0, 1, 2 of Blender's clock, and their files are one sequence.
    assert sequence == [[True, 3]]
    for k, (file, grid_count, count) in enumerate(fifths):
        assert Path(file) == tmp_path / "fifths" / "volumes" / f"volume.{k:05d}.vdb"
        assert grid_count == 5 and count == 50 * k
    # Blender turns glTF back to z up, rounding to single precision.
    box = np.array(glb["box_0"])
    np.testing.assert_allclose(box, box_vertices(time_of(5)), atol=1e-6)
    np.testing.assert_allclose(glb["smoke"], frame_of(5)["smoke"]["Position.x"], atol=1e-6)
    np.testing.assert_array_equal(np.float32(heat), frame_of(5)["smoke"]["Temperature.T"])
    np.testing.assert_array_equal(np.float32(cloud), frame_of(5)["smoke"]["Position.x"])


def test_openvdb_reads_every_voxel(run: Path, tmp_path: Path) -> None:
    """All values, floats and vectors, equal those that VTK reads from the .vti of the same volumes."""
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOXML import vtkXMLImageDataReader

    program = os.environ.get("ECS_FLUID_BLENDER", "/usr/bin/python3")
    has = subprocess.run([program, "-c", "import pyopenvdb"], capture_output=True, check=False)
    if has.returncode and "ECS_FLUID_BLENDER" not in os.environ:
        pytest.skip("needs OpenVDB: that of ECS_FLUID_BLENDER, or apt-get install python3-openvdb")
    vdb = ef.export(run, "vdb", out=tmp_path / "vdb", voxel=0.2)
    vti = ef.export(run, "vti", out=tmp_path / "vti", voxel=0.2)
    files = [str(vdb / f"volume.{number:05d}.vdb") for number in CHOSEN]
    for number, found in zip(CHOSEN, told_by([program], OPENVDB, tmp_path, "", *files), strict=True):
        reader = vtkXMLImageDataReader()
        reader.SetFileName(str(vti / f"volume.{number:05d}.vti"))
        reader.Update()
        image = reader.GetOutput()
        first = np.rint(np.array(image.GetOrigin()) / 0.2).astype(int)
        assert set(found) == {"density", "smoke", "temperature", "velocity", "vorticity"}
        for name, grid in found.items():
            np.testing.assert_allclose(grid["size"], 0.2, rtol=1e-15)
            values = vtk_to_numpy(image.GetPointData().GetArray(name))
            expected = values.reshape(*image.GetDimensions()[::-1], *values.shape[1:]).swapaxes(0, 2)
            dense = np.zeros_like(expected)
            for at, value in grid["voxels"]:
                dense[tuple(np.array(at) - first)] = value
            np.testing.assert_array_equal(dense, expected)


def test_the_made_run_moves_as_its_formulas_say() -> None:
    """The reference itself: the box's vertices turn about its centre at SPIN and drift at DRIFT."""
    arm = box_vertices(0.3) - box_place(0.3)
    rate = (box_vertices(0.3 + 1e-6) - box_vertices(0.3 - 1e-6)) / 2e-6
    np.testing.assert_allclose(rate, DRIFT + np.cross([0.0, 0.0, SPIN], arm), atol=1e-9)


if __name__ == "__main__":
    sys.exit(pytest.main(["-m", "nightly", __file__]))
