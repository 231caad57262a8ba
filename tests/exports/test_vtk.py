"""VTK files and XDMF, read back by VTK and h5py; volumes keep the sums of the particles they are made of."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import vtkXMLImageDataReader, vtkXMLPolyDataReader

import ecs_fluid as ef
from ecs_fluid.io.runfolder import RunFolder
from tests.exports.made_run import box_vertices, frame_of, make_run, time_of

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


@pytest.mark.parametrize("profile", [False, True])
def test_where_no_tracer_is_volumes_have_the_temperature_of_the_fluid_at_rest(
    profile: bool, tmp_path: Path
) -> None:
    """A fluid of 290 K, or 1 K colder each metre up: read back by VTK and tinyvdb, whose background it is."""
    tinyvdb = pytest.importorskip("tinyvdb", reason="needs tinyvdb (in the dev extra)")
    layers = "temperature_profile = [[0, 290], [20, 270]]\nlaw = 'ideal_gas'\n"
    run = make_run(tmp_path / "run", 4, "[fluid]\ntemperature = 290\n" + layers * profile)
    folders = [ef.export(run, to, out=tmp_path / to, frames="3", voxel=0.1) for to in ("vti", "vdb")]
    data = opened(folders[0] / "volume.00003.vti")
    points = np.array([data.GetPoint(i) for i in range(data.GetNumberOfPoints())])
    empty = array(data, "density") == 0
    expected = 290 - profile * np.clip(points[empty, 2], 0, None)
    assert empty.any() and np.ptp(points[:, 2]) > 1
    np.testing.assert_allclose(array(data, "temperature")[empty], expected, rtol=1e-6)
    assert not array(data, "velocity")[empty].any()
    folder = folders[1]
    file = tinyvdb.open(str(folder / "volume.00003.vdb"))
    file.read_grids()
    grids = {file.grid_name(i): file.grid(i) for i in range(file.grid_count)}
    values = np.frombuffer(grids["temperature"].to_sparse()["values"], np.float32)
    if not profile:  # what is at rest is the background, and not stored
        kept = np.frombuffer(grids["density"].to_sparse()["values"], np.float32)
        assert 0 < len(values) <= len(kept)
    assert values.min() > 280
    content = (folder / "volume.00003.vdb").read_bytes()
    assert np.float32(290).tobytes() + bytes(4) in content  # the root: its background, and no tiles


@pytest.mark.parametrize("voxels", [1.0001, 1.3, 4.0, 12.0])
def test_vortons_are_spread_as_wide_as_their_volume(voxels: float) -> None:
    """Linear weights of neighbours add up to one: vortons on a lattice make alpha / V in its middle.

    Of one vorton the sum and the centre stay, and its sums over planes are those of a hat from 1/e to 0 at e,
    shared linearly: a quadrature of a thousand places says them to 1e-5. Their number of voxels has no limit.
    """
    from ecs_fluid.exports.volumes import spread

    h, e, alpha, n = 0.1 / voxels, 0.1, np.array([1.0, -2.0, 0.5]), math.ceil(8 * voxels) + 6
    first, shape = np.array([-2, -3, 1]), (n, n + 1, n + 2)
    points = h * (first[:, None, None, None] + np.indices(shape)).reshape(3, -1).T

    def field(x: np.ndarray) -> np.ndarray:
        volume, strength = np.full(len(x), e**3), np.tile(alpha, (len(x), 1))
        columns = {"Position.x": x, "Strength.alpha": strength, "Volume.volume": volume}
        return spread(columns, h, first, shape).reshape(-1, 3)

    centre = np.array([0.403, 0.411, 0.397])
    one = field(centre[None])
    np.testing.assert_allclose(one.sum(axis=0), alpha, rtol=1e-12)
    np.testing.assert_allclose(one.T @ points, np.outer(alpha, centre), rtol=1e-11)
    assert not one[(np.abs(points - centre) > e + h).any(axis=1)].any()
    profile = one.reshape(*shape, 3)[:, :, :, 0].sum(axis=(1, 2))
    hat = (np.arange(1000) + 0.5) / 500 - 1
    away = h * (first[0] + np.arange(n))[:, None] - centre[0] - e * hat
    expected = np.average(np.maximum(1 - np.abs(away) / h, 0.0), axis=1, weights=1 - np.abs(hat))
    np.testing.assert_allclose(profile, expected, atol=1e-5)

    lattice = np.stack(np.meshgrid(*[0.107 + e * np.arange(7)] * 3, indexing="ij"), axis=-1)
    even = field(lattice.reshape(-1, 3))
    middle = (np.abs(points - 0.407) < 1.9 * e).all(axis=1)
    assert middle.sum() >= 3**3
    np.testing.assert_allclose(even[middle] / h**3, np.tile(alpha / e**3, (middle.sum(), 1)), rtol=1e-11)


def test_vortons_below_a_voxel_and_lines_are_shared_as_they_are() -> None:
    """Among vortons of many widths, too: they are spread apart from each other."""
    from ecs_fluid.exports.volumes import scatter, spread

    first, shape, x = np.array([-9, -9, -9]), (20, 20, 20), np.random.default_rng(4).uniform(-1, 1, (40, 3))
    alpha, edge = x[:, ::-1] + 0.1, np.geomspace(0.1, 6.0, 40)
    columns = {"Position.x": x, "Strength.alpha": alpha, "Volume.volume": edge**3}

    def rows(some: np.ndarray) -> np.ndarray:
        return spread({name: values[some] for name, values in columns.items()}, 1.0, first, shape)

    whole = rows(np.full(40, True))
    np.testing.assert_allclose(sum(rows(np.arange(40) == k) for k in range(40)), whole, atol=1e-13)
    small = edge < 1
    expected = scatter(x[small] - first, alpha[small], shape).reshape(*shape, 3)
    np.testing.assert_array_equal(rows(small), expected)
    line = {"Position.x": np.array([[0.1, 0.1, 0.0]]), "Strength.alpha": np.array([[0.0, 0.0, 1.0]])}
    found = spread(line, 1.0, first, shape).reshape(-1, 3)
    np.testing.assert_array_equal(found, scatter(line["Position.x"] - first, line["Strength.alpha"], shape))


@pytest.mark.parametrize("plane", ["xy", "xz"])
def test_volumes_of_a_plane_are_in_one_layer(plane: str, tmp_path: Path) -> None:
    """A square of vorticity 2 1/s and of tracers: vorticity 2 and density 1 in its middle, in one layer.

    A metre of a vorton's line has the volume A times 1 m and the strength 2 A times 1 m. Divided by the cube
    of the voxel that was 2 over the voxel, in spikes at the vortons.
    """
    across, cells = {"xy": 2, "xz": 1}[plane], 0.1 * (np.arange(8) - 3.5)
    x = np.zeros((64, 3))
    x[:, np.arange(3) != across] = np.stack(np.meshgrid(cells, cells, indexing="ij"), axis=-1).reshape(-1, 2)
    world = ef.World(dimension=2, plane=plane)
    area, strength = np.full(64, 0.01), np.zeros((64, 3))
    strength[:, across] = 2 * area
    world.spawn("v", ef.Position(x), ef.Strength(strength), ef.Volume(area), ef.CoreRadius(np.full(64, 0.15)))
    world.spawn("dye", ef.Position(x))
    run = ef.run(world, ticks=1, out=tmp_path / "run", progress=False)
    for voxel in (0.1, 0.05):
        folder = run.export("vti", out=tmp_path / str(voxel), voxel=voxel)
        grid = opened(folder / "volume.00000.vti")
        points = np.array([grid.GetPoint(k) for k in range(grid.GetNumberOfPoints())])
        middle = (np.abs(points) < 0.2).all(axis=1) & (np.abs(points[:, across]) < 1e-9)
        found = array(grid, "vorticity")
        assert found[middle][:, across] == pytest.approx(np.full(middle.sum(), 2.0), rel=1e-5)
        assert not found[np.abs(points[:, across]) > 1e-9].any()
        spacing = json.loads((folder / "export.json").read_text())["spacing"]
        assert array(grid, "density").sum() * voxel**2 == pytest.approx(64 * spacing**2, rel=1e-5)


def test_the_fullest_frame_of_the_run_sets_the_voxel(run: Path, tmp_path: Path) -> None:
    """A fire starts with a handful of tracers: their spacing made voxels of a fifth of the flame's width.

    The cloud has 10 k tracers in frame k of 11, in a cube of 2 m.
    """
    spacing = []
    for frames in ("1", "4:6", None):
        target = ef.export(run, "vti", out=tmp_path / str(frames)[0], frames=frames, only=["smoke"])
        spacing.append(json.loads((target / "export.json").read_text())["voxel"])
    np.testing.assert_allclose(spacing, np.full(3, 2 / 100 ** (1 / 3)), rtol=0.1)
    assert len(set(spacing)) == 1


def test_spacing_of_a_lattice_is_found() -> None:
    """A cube of 12^3 points 0.1 apart: cells of two spacings hold 8 each, but for half cells at one end."""
    from ecs_fluid.exports.volumes import mean_spacing

    x = 0.1 * np.stack(np.meshgrid(*[np.arange(12.0)] * 3), axis=-1).reshape(-1, 3)
    assert mean_spacing(x) == pytest.approx(0.1, rel=0.1)
    flat = x[x[:, 2] == 0.0]
    assert mean_spacing(flat) == pytest.approx(0.1, rel=0.1)  # by its area
    assert mean_spacing(x[:1]) == 0.1
    x[5] = (1e6, 3e5, 0.0)
    assert mean_spacing(x) == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize(("only", "count"), [([], 27), (["water"], 64), (["water", "steam"], 91)])
def test_volumes_of_steam_leave_out_the_water(only: list[str], count: int, tmp_path: Path) -> None:
    """Beside other tracers a liquid counts by its name alone. Density is 1/h^3 times the volume s^3 of one of
    the tracers, h being s by default, so that it adds up to their number."""
    lattice = 0.1 * np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
    steam = lattice[(lattice < 0.25).all(axis=1)] + [0.0, 0.0, 0.5]
    water = {"Position.x": lattice, "Liquid.volume": np.full(64, 1e-3)}
    with RunFolder.create(tmp_path / "bath", "", {}) as run, run.write_trajectory() as trajectory:
        trajectory.append(0, 0.0, {"water": water, "steam": {"Position.x": steam}})
    folder = ef.export(tmp_path / "bath", "vti", only=only)
    density = array(opened(folder / "volume.00000.vti"), "density")
    assert float(density.sum()) == pytest.approx(count, rel=1e-5)


def test_volumes_leave_out_what_is_too_far_for_the_memory(tmp_path: Path) -> None:
    """One of 1,000 tracers, 1e8 m away; the others are all there, in voxels as fine as without it."""
    world = ef.World(dt=0.1)
    world.spawn("smoke", ef.Position(np.random.default_rng(2).random((1000, 3))))
    world["smoke"][ef.Position].x[70] = (1e8, -1e8, 0.0)
    ef.run(world, ticks=1, out=tmp_path / "run", progress=False)
    with pytest.warns(ef.FluidWarning, match=r"1 of 1000 particles of frame \d are too far from all others"):
        target = ef.export(tmp_path / "run", "vti", out=tmp_path / "out", frames="0:1")
    (file,) = target.glob("*.vti")
    grid = opened(file)
    assert grid.GetSpacing()[0] == pytest.approx(0.1, rel=0.2)
    assert array(grid, "density").sum() == pytest.approx(999, rel=1e-5)


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
