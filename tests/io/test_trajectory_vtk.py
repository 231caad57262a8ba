"""VTK and PyVista read the trajectory as it was written, bit for bit; the XDMF points at the same bytes."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
import pyvista
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOHDF import vtkHDFReader

from ecs_fluid.io.trajectory import Trajectory, TrajectoryWriter

ROWS = [5, 0, 9, 3, 2000, 4, 0]


def example(tick: int, dtype: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(tick)
    rows = ROWS[tick]
    return {
        "Position.x": rng.standard_normal((rows, 3)).astype(dtype),
        "Velocity.u": rng.standard_normal((rows, 3)).astype(dtype),
        "VelocityGradient.du": rng.standard_normal((rows, 3, 3)).astype(dtype),
        "Age.t": rng.random(rows).astype(dtype),
        "RowId.id": rng.integers(-(2**62), 2**62, rows),
    }


def write(writer: TrajectoryWriter, dtype: str) -> None:
    """Population ``late`` appears at tick 3: VTK must see three empty steps before."""
    for tick in range(len(ROWS)):
        data = example(tick, dtype)
        writer.append(10 * tick, tick / 3, {"ring": data} if tick < 3 else {"ring": data, "late": data})


def assert_vtk_sees(path: Path, dtype: str, first: int) -> None:
    reader = vtkHDFReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    assert reader.GetNumberOfSteps() == len(ROWS)
    for tick in range(len(ROWS)):
        reader.SetStep(tick)
        reader.Update()
        cloud = reader.GetOutputDataObject(0)
        data = example(tick, dtype)
        if tick < first:
            data = {name: values[:0] for name, values in data.items()}
        rows = len(data["Position.x"])
        assert reader.GetTimeValue() == tick / 3
        assert (cloud.GetNumberOfPoints(), cloud.GetNumberOfVerts(), cloud.GetNumberOfCells()) == (rows,) * 3
        if not rows:
            continue
        found = vtk_to_numpy(cloud.GetPoints().GetData())
        assert found.dtype == dtype and found.tobytes() == data["Position.x"].tobytes()
        assert np.array_equal(vtk_to_numpy(cloud.GetVerts().GetConnectivityArray()), np.arange(rows))
        assert np.array_equal(vtk_to_numpy(cloud.GetVerts().GetOffsetsArray()), np.arange(rows + 1))
        for name in data.keys() - {"Position.x"}:
            found = vtk_to_numpy(cloud.GetPointData().GetArray(name))
            assert found.dtype == data[name].dtype and found.tobytes() == data[name].tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vtk_reads_every_step_bit_for_bit(tmp_path: Path, dtype: str) -> None:
    writer = TrajectoryWriter(tmp_path)
    write(writer, dtype)
    assert_vtk_sees(tmp_path / "ring.vtkhdf", dtype, 0)  # unfinished: the writer still has it open
    writer.close()
    assert_vtk_sees(tmp_path / "ring.vtkhdf", dtype, 0)
    assert_vtk_sees(tmp_path / "late.vtkhdf", dtype, 3)


def test_vtk_reads_a_resumed_trajectory(tmp_path: Path) -> None:
    with TrajectoryWriter(tmp_path) as writer:
        write(writer, "float32")
    with TrajectoryWriter(tmp_path, resume_at_tick=20) as writer:
        for tick in range(3, len(ROWS)):
            data = example(tick, "float32")
            writer.append(10 * tick, tick / 3, {"ring": data, "late": data})
    assert_vtk_sees(tmp_path / "ring.vtkhdf", "float32", 0)
    assert_vtk_sees(tmp_path / "late.vtkhdf", "float32", 3)


def test_pyvista_reads_it(tmp_path: Path) -> None:
    with TrajectoryWriter(tmp_path) as writer:
        write(writer, "float32")
    cloud = pyvista.read(tmp_path / "ring.vtkhdf")  # a plain read gives the first step
    assert cloud.points.tobytes() == example(0, "float32")["Position.x"].tobytes()
    assert cloud["Velocity.u"].tobytes() == example(0, "float32")["Velocity.u"].tobytes()


def read_slab(folder: Path, item: ElementTree.Element) -> np.ndarray:
    """What an XDMF reader does: start, stride, count into a dataset whose type and size the file states."""
    corners, data = item.findall("DataItem")
    start, stride, count = np.array(corners.text.split(), dtype=int).reshape(3, -1)
    assert stride.tolist() == [1] * len(start)
    assert item.get("Dimensions") == " ".join(map(str, count))
    name, where = data.text.split(":")
    with h5py.File(folder / name, "r") as file:
        dataset = file[where]
        assert data.get("Dimensions") == " ".join(map(str, dataset.shape))
        kind = {"f": "Float", "i": "Int", "u": "UInt"}[dataset.dtype.kind]
        assert (data.get("NumberType"), data.get("Precision")) == (kind, str(dataset.dtype.itemsize))
        return dataset[tuple(slice(a, a + n) for a, n in zip(start, count, strict=True))]


def test_the_xdmf_sidecar_points_at_the_same_numbers(tmp_path: Path) -> None:
    """ParaView 5.11 itself (Debian 12) was run by hand on such files: same times, counts and values."""
    with TrajectoryWriter(tmp_path) as writer:
        write(writer, "float32")
    root = ElementTree.parse(tmp_path / "ring.xdmf").getroot()
    grids = root.findall("./Domain/Grid/Grid")
    times = [float(grid.find("Time").get("Value")) for grid in grids]
    assert times == Trajectory(tmp_path).times.tolist() == [tick / 3 for tick in range(len(ROWS))]
    for tick, grid in enumerate(grids):
        data = example(tick, "float32")
        assert grid.find("Topology").get("NumberOfElements") == str(ROWS[tick])
        points = read_slab(tmp_path, grid.find("Geometry/DataItem"))
        assert points.tobytes() == data["Position.x"].tobytes()
        attributes = {item.get("Name"): item for item in grid.findall("Attribute")}
        kinds = {name: item.get("AttributeType") for name, item in attributes.items()}
        assert kinds == {
            "Velocity.u": "Vector",
            "VelocityGradient.du": "Tensor",
            "Age.t": "Scalar",
            "RowId.id": "Scalar",
        }
        for name, item in attributes.items():
            assert read_slab(tmp_path, item.find("DataItem")).tobytes() == data[name].tobytes()
