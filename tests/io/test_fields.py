"""Grid fields: bit-exact round trip, VTK sees the same grid, a series that plays in time."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import numpy as np
import pytest
import pyvista

from ecs_fluid.errors import StorageError
from ecs_fluid.io import fields as io_fields
from ecs_fluid.io.fields import (
    append_field,
    drop_fields_after,
    field_ticks,
    missing_files,
    newest_tick,
    read_field,
)

ORIGIN, SPACING = np.array([-1.0, 0.5, 2.0]), np.array([0.25, 0.1, 0.3])


def fields(tick: int, dtype: str = "float32") -> dict[str, np.ndarray]:
    """A grid whose size changes from tick to tick."""
    rng = np.random.default_rng(tick)
    shape = (3 + tick, 4, 5)
    return {
        "Velocity.u": rng.standard_normal((*shape, 3)).astype(dtype),
        "Density.rho": rng.random(shape).astype(dtype),
        "VelocityGradient.du": rng.standard_normal((*shape, 3, 3)).astype(dtype),
    }


def store(folder: Path, tick: int, dtype: str = "float32") -> Path:
    return append_field(folder, "velocity", tick, tick * 0.1, ORIGIN, SPACING, fields(tick, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fields_come_back_bit_for_bit_although_the_grid_changes(tmp_path: Path, dtype: str) -> None:
    for tick in range(3):
        store(tmp_path, tick, dtype)
    for tick in range(3):
        frame = read_field(tmp_path, "velocity", tick)
        assert (frame.tick, frame.time) == (tick, tick * 0.1)
        assert frame.origin.tolist() == ORIGIN.tolist() and frame.spacing.tolist() == SPACING.tolist()
        for name, array in fields(tick, dtype).items():
            assert frame.arrays[name].dtype == array.dtype and frame.arrays[name].shape == array.shape
            assert frame.arrays[name].tobytes() == array.tobytes()


def test_vtk_finds_each_value_at_its_point(tmp_path: Path) -> None:
    """Grid point (i, j, k) lies at origin + (i, j, k) spacing; VTK numbers points with i fastest."""
    image = pyvista.read(store(tmp_path, 2))
    given = fields(2)
    assert image.dimensions == (5, 4, 5)
    for i, j, k in [(0, 0, 0), (4, 3, 4), (1, 2, 3), (4, 0, 1)]:
        where = ORIGIN + np.array([i, j, k]) * SPACING
        number = image.find_closest_point(where)
        # (i + j nx + k nx ny) is VTK's numbering; 1e-6 m is the rounding of its float32 coordinates.
        assert number == i + 5 * j + 20 * k
        np.testing.assert_allclose(image.points[number], where, atol=1e-6)
        assert image["Density.rho"][number] == given["Density.rho"][i, j, k]
        assert image["Velocity.u"][number].tolist() == given["Velocity.u"][i, j, k].tolist()
        gradient = image["VelocityGradient.du"][number]
        assert gradient.tolist() == given["VelocityGradient.du"][i, j, k].ravel().tolist()


def test_the_series_lists_what_is_there_also_after_rewinding(tmp_path: Path) -> None:
    def series() -> list[tuple[str, float]]:
        found = json.loads((tmp_path / "velocity.vtkhdf.series").read_text())
        return [(entry["name"], entry["time"]) for entry in found["files"]]

    for tick in range(4):
        store(tmp_path, tick)
    straight = series()
    assert straight == [(f"velocity-{tick:08d}.vtkhdf", tick * 0.1) for tick in range(4)]
    drop_fields_after(tmp_path, "velocity", 1)
    assert field_ticks(tmp_path, "velocity") == [0, 1] and series() == straight[:2]
    for tick in (2, 3):
        store(tmp_path, tick)
    assert series() == straight and not missing_files(tmp_path, "velocity")
    (tmp_path / straight[1][0]).unlink()
    assert missing_files(tmp_path, "velocity") == [straight[1][0]]


def test_a_later_field_is_listed_without_a_look_at_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a frame takes longer the more there are; the bytes are those of an index made anew."""
    index = tmp_path / "velocity.vtkhdf.series"
    store(tmp_path, 0)
    with monkeypatch.context() as without:
        without.delattr(io_fields, "_stored")
        for tick in (1, 3):
            store(tmp_path, tick)
        assert newest_tick(tmp_path, "velocity", 3) == 3
    added = index.read_bytes()
    index.unlink()
    store(tmp_path, 3)
    assert index.read_bytes() == added
    store(tmp_path, 2)  # not the latest
    assert [entry["time"] for entry in json.loads(index.read_text())["files"]] == [0.0, 0.1, 0.2, 0.1 * 3]
    (tmp_path / "velocity-00000002.vtkhdf").unlink()
    assert [newest_tick(tmp_path, "velocity", tick) for tick in (0, 2, 9)] == [0, 1, 3]
    assert newest_tick(tmp_path, "density", 3) is None


@pytest.mark.parametrize("kept", [0, 1, -1, -3, -30, 100])
def test_an_index_that_a_power_failure_cut_off_is_made_anew(tmp_path: Path, kept: int) -> None:
    index = tmp_path / "velocity.vtkhdf.series"
    for tick in range(3):
        store(tmp_path, tick)
    whole = index.read_bytes()
    index.write_bytes(whole[:kept].ljust(len(whole), b"\0"))
    store(tmp_path, 3)
    drop_fields_after(tmp_path, "velocity", 2)
    assert index.read_bytes() == whole


def test_resuming_lists_files_that_the_index_lacks(tmp_path: Path) -> None:
    index = tmp_path / "velocity.vtkhdf.series"
    store(tmp_path, 0)
    first = index.read_bytes()
    store(tmp_path, 1)
    both = index.read_bytes()
    index.write_bytes(first)
    drop_fields_after(tmp_path, "velocity", 1)
    assert index.read_bytes() == both


def test_an_index_that_does_not_fit_on_the_disk_stays_as_it_was(tmp_path: Path) -> None:
    index = tmp_path / "velocity.vtkhdf.series"
    largest = max(store(tmp_path, tick).stat().st_size for tick in range(4))
    listed = index.read_bytes()
    index.write_bytes(b" " * largest + listed)  # so that no field reaches the limit
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + len(listed) + 10, hard))
    try:
        assert not io_fields._listed_last(tmp_path, "velocity", 4, 0.4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert index.read_bytes().lstrip() == listed


def test_bad_fields_damage_and_full_disks_are_refused_in_words(tmp_path: Path) -> None:
    for arrays, why in [
        ({"u": np.zeros((2, 2))}, "one grid of three axes"),
        ({"u": np.zeros((2, 2, 2)), "v": np.zeros((3, 2, 2))}, "one grid of three axes"),
        ({"u": np.zeros((2, 2, 2), int)}, "float32 or float64, not int64"),
        ({"a/b": np.zeros((2, 2, 2))}, "cannot be used in a file"),
    ]:
        with pytest.raises(StorageError, match=why):
            append_field(tmp_path, "velocity", 0, 0.0, ORIGIN, SPACING, arrays)
    path = store(tmp_path, 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(StorageError, match="size limit"):
            store(tmp_path, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert field_ticks(tmp_path, "velocity") == [0]
    assert read_field(tmp_path, "velocity", 0).tick == 0
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(StorageError, match="damaged, or another kind of file"):
        read_field(tmp_path, "velocity", 0)
    with pytest.raises(StorageError, match="no such file"):
        read_field(tmp_path, "velocity", 5)
