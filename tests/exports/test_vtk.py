"""VTK files and XDMF, read back by VTK and h5py; volumes keep the sums of the particles they are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import vtkXMLImageDataReader, vtkXMLPolyDataReader

import ecs_fluid as ef
from tests.exports.made_run import box_vertices, frame_of, time_of

PLAIN = {"Velocity.u": "velocity", "Temperature.T": "temperature", "Species.smoke": "smoke", "RowId.id": "id"}


def opened(path: Path) -> Any:
    reader = vtkXMLImageDataReader() if path.suffix == ".vti" else vtkXMLPolyDataReader()
    reader.SetFileName(str(path))
    reader.Update()
    assert reader.GetErrorCode() == 0
    return reader.GetOutput()


def array(data: Any, name: str) -> np.ndarray:
    return np.asarray(vtk_to_numpy(data.GetPointData().GetArray(name)))


def entries(path: Path) -> list[tuple[float, str]]:
    """(time, file) of a .pvd."""
    found = ElementTree.parse(path).getroot().iter("DataSet")
    return [(float(entry.attrib["timestep"]), entry.attrib["file"]) for entry in found]


def test_vtp_holds_the_stored_bits_at_their_times(run: Path, tmp_path: Path) -> None:
    target = ef.export(run, "vtp", out=tmp_path / "out")
    listed = entries(target / "smoke.pvd")
    assert [time for time, _ in listed] == [time_of(number) for number in range(11)]
    for number, (time, file) in enumerate(listed):
        data, expected = opened(target / file), frame_of(number)["smoke"]
        assert data.GetFieldData().GetArray("TimeValue").GetValue(0) == time
        assert data.GetNumberOfPoints() == data.GetNumberOfVerts() == 10 * number
        if number:
            np.testing.assert_array_equal(vtk_to_numpy(data.GetPoints().GetData()), expected["Position.x"])
            for label, name in PLAIN.items():
                np.testing.assert_array_equal(array(data, name), expected[label])


def test_vtp_holds_bodies_as_moving_surfaces(run: Path, tmp_path: Path) -> None:
    """Velocity of a vertex: v + w x (r - x), by hand for a rotation about z."""
    target = ef.export(run, "vtp", out=tmp_path / "out", only=["box", "balls"])
    box = opened(target / "box.00004.vtp")
    points = vtk_to_numpy(box.GetPoints().GetData())
    np.testing.assert_allclose(points, box_vertices(time_of(4)), rtol=0, atol=1e-15)
    arm = points - [0.16, 0.0, 2.08]
    expected = np.stack([1.0 - 2.0 * arm[:, 1], 2.0 * arm[:, 0], np.full(8, 0.5)], axis=1)
    np.testing.assert_allclose(array(box, "velocity"), expected, atol=1e-14)
    assert box.GetNumberOfPolys() == 6
    assert [opened(target / f"balls.{k:05d}.vtp").GetNumberOfPoints() for k in (3, 4)] == [2 * 258, 258]


@pytest.mark.parametrize("voxel", [0.1, 0.37, None])
def test_volumes_keep_sums_and_centres(run: Path, tmp_path: Path, voxel: float | None) -> None:
    """Trilinear weights sum to 1 and have their particle as centre, so over all points, in volumes h^3:

    density = n s^3, density x = s^3 sum x, smoke = s^3 sum Y, vorticity = sum alpha. float32: 1e-6 each.
    """
    import json

    target = ef.export(run, "vti", out=tmp_path / "out", frames="5", voxel=voxel)
    told = json.loads((target / "export.json").read_text())
    h, s = told["voxel"], told["spacing"]
    assert voxel is None or h == voxel
    data = opened(target / "volume.00005.vti")
    frame = frame_of(5)
    density = array(data, "density").astype(float)
    np.testing.assert_allclose(density.sum() * h**3, 50 * s**3, rtol=1e-6)
    points = np.array([data.GetPoint(i) for i in range(data.GetNumberOfPoints())])
    # The grid stands at whole multiples of the voxel.
    np.testing.assert_allclose(points / h, np.rint(points / h), atol=1e-6)
    centre = density @ points / density.sum()
    np.testing.assert_allclose(centre, frame["smoke"]["Position.x"].mean(axis=0), atol=1e-6)
    smoke = array(data, "smoke").astype(float).sum() * h**3
    assert smoke == pytest.approx(frame["smoke"]["Species.smoke"].sum() * s**3, rel=1e-5)
    vorticity = array(data, "vorticity").astype(float).sum(axis=0) * h**3
    np.testing.assert_allclose(vorticity, frame["ring"]["Strength.alpha"].sum(axis=0), atol=1e-6)
    # All smoke has one velocity, so means have it wherever there is smoke and are 0 elsewhere.
    velocity, there = array(data, "velocity"), density > 1e-6
    np.testing.assert_allclose(velocity[there], np.tile([0.1, 0.2, 1.0], (there.sum(), 1)), rtol=1e-5)
    assert not velocity[density == 0].any()


def test_a_vorton_fills_its_cube() -> None:
    """Trilinear weights of parts a voxel apart add up to one, so alpha / V is met inside; sums stay."""
    from ecs_fluid.exports.volumes import shared_out, spread

    h, alpha, centre = 0.02, np.array([1.0, -2.0, 0.5]), np.array([0.153, 0.147, 0.151])
    one = {
        "Position.x": centre[None],
        "Strength.alpha": alpha[None],
        "Volume.volume": np.array([0.1**3]),
    }
    shape = (17, 17, 17)
    total = sum(shared_out(places / h, part, shape) for places, part in spread(one, h))
    assert isinstance(total, np.ndarray)
    points = h * np.stack(np.meshgrid(*[np.arange(17.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    np.testing.assert_allclose(total.sum(axis=0), alpha, rtol=1e-12)
    np.testing.assert_allclose(total.T @ points, np.outer(alpha, centre), rtol=1e-12)
    inside = (np.abs(points - centre) < 0.05 - h / 2).all(axis=1)
    assert inside.sum() >= 4**3
    np.testing.assert_allclose(total[inside] / h**3, np.tile(alpha / 0.1**3, (inside.sum(), 1)), rtol=1e-12)
    outside = (np.abs(points - centre) > 0.05 + h / 2).any(axis=1)
    assert not total[outside].any()
    for whole in (
        {key: array for key, array in one.items() if key != "Volume.volume"},
        one | {"Position.x": np.array([[0.1, 0.1, 0.0]]), "Strength.alpha": np.array([[0.0, 0.0, 1.0]])},
    ):  # without a volume, and a line across a plane
        ((places, part),) = spread(whole, h)
        np.testing.assert_array_equal(places, whole["Position.x"])
        np.testing.assert_array_equal(part, whole["Strength.alpha"])


def test_spacing_of_a_lattice_is_found() -> None:
    """A cube of 12^3 points 0.1 apart: cells of two spacings hold 8 each, but for half cells at one end."""
    from ecs_fluid.exports.volumes import mean_spacing

    x = 0.1 * np.stack(np.meshgrid(*[np.arange(12.0)] * 3), axis=-1).reshape(-1, 3)
    assert mean_spacing(x) == pytest.approx(0.1, rel=0.1)
    flat = x[x[:, 2] == 0.0]
    assert mean_spacing(flat) == pytest.approx(0.1, rel=0.1)  # by its area
    assert mean_spacing(x[:1]) == 0.1


def test_xdmf_points_at_the_run_s_own_numbers(run: Path, tmp_path: Path) -> None:
    """Follow every hyperslab from the exported file to the HDF5 data, as a reader does."""
    target = ef.export(run, "xdmf", out=tmp_path / "deep" / "out", frames="1::3")
    grids = [
        grid
        for grid in ElementTree.parse(target / "smoke.xdmf").getroot().iter("Grid")
        if grid.attrib["GridType"] == "Uniform"
    ]
    assert [float(grid.find("Time").attrib["Value"]) for grid in grids] == [time_of(k) for k in (1, 4, 7, 10)]
    for number, grid in zip((1, 4, 7, 10), grids, strict=True):
        slab = grid.find("Geometry").find("DataItem")
        numbers, data = slab.findall("DataItem")
        (start, _), _, (rows, width) = np.array(numbers.text.split(), dtype=int).reshape(3, 2)
        file, _, name = data.text.partition(":/")
        with h5py.File(target / file, "r") as hdf:
            found = hdf[name][start : start + rows, :width]
        np.testing.assert_array_equal(found, frame_of(number)["smoke"]["Position.x"])
