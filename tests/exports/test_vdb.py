"""OpenVDB files, read back by tinyvdb; test_other_programs opens them in OpenVDB itself."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.exports.vdb import leaves_of, write_vdb
from ecs_fluid.exports.volumes import Volume


def volume(array: np.ndarray, first: tuple[int, int, int]) -> Volume:
    return Volume(SimpleNamespace(tick=0, time=0.0), 0.5, np.array(first), {"density": array})


def test_leaves_hold_every_value_at_its_index() -> None:
    """A field with holes that straddles index 0: put back from its leaves it is the same."""
    rng = np.random.default_rng(3)
    array = np.where(rng.random((21, 9, 40)) < 0.2, rng.random((21, 9, 40)), 0.0).astype(np.float32)
    array[:, :, 16:24] = 0.0  # with first = -16 that is a layer of whole leaves, which must not be written
    first = np.array([-13, 5, -16])
    masks, values, corners = leaves_of(array, first)
    assert (corners % 8 == 0).all() and (corners[:, 2] != 0).all()
    again = np.zeros_like(array)
    for mask, leaf, corner in zip(masks, values, corners, strict=True):
        at = corner + np.stack(np.unravel_index(np.flatnonzero(mask), (8, 8, 8)), axis=1) - first
        assert (at >= 0).all() and (at < array.shape).all()
        again[tuple(at.T)] = leaf[mask]
    np.testing.assert_array_equal(again, array)


@pytest.mark.parametrize("first", [(0, 0, 0), (-5, 3, -9), (-4100, 120, 4090)])
def test_another_reader_finds_every_voxel(first: tuple[int, int, int], tmp_path: Path) -> None:
    """The last place crosses the borders of leaves (8), lower (128) and upper nodes (4096)."""
    tinyvdb = pytest.importorskip("tinyvdb", reason="needs tinyvdb (in the dev extra)")
    rng = np.random.default_rng(5)
    array = np.where(rng.random((12, 20, 15)) < 0.3, rng.random((12, 20, 15)), 0.0).astype(np.float32)
    path = tmp_path / "a.vdb"
    with open(path, "wb") as handle:
        write_vdb(handle, volume(array, first))
    file = tinyvdb.open(str(path))
    file.read_grids()
    grid = file.grid(0)
    assert grid.name == "density" and grid.type_name == "Tree_float_5_4_3"
    assert grid.transform["voxel_size"] == (0.5, 0.5, 0.5)
    sparse = grid.to_sparse()
    coords = np.frombuffer(sparse["coords"], np.int32).reshape(-1, 3)
    values = np.frombuffer(sparse["values"], np.float32)
    expected = {tuple((np.array(first) + at).tolist()): array[tuple(at)] for at in np.argwhere(array != 0)}
    assert {tuple(at): value for at, value in zip(coords.tolist(), values, strict=True)} == expected


def test_the_same_volume_gives_the_same_bytes() -> None:
    array = np.ones((3, 3, 3), dtype=np.float32)
    made = [io.BytesIO(), io.BytesIO()]
    for handle in made:
        write_vdb(handle, volume(array, (0, 0, 0)))
    assert made[0].getvalue() == made[1].getvalue()
    # Header, one grid: root, an upper and a lower node, one leaf with 27 values; most are masks.
    assert 2 * 4096 + 2 * 512 + 2 * 64 + 27 * 4 < len(made[0].getvalue()) < 10_000


def test_an_empty_frame_is_a_file_with_empty_grids(run: Path, tmp_path: Path) -> None:
    tinyvdb = pytest.importorskip("tinyvdb", reason="needs tinyvdb (in the dev extra)")
    target = ef.export(run, "vdb", out=tmp_path / "out", only=["smoke"], voxel=0.2)
    counts = []
    for number in (0, 10):
        file = tinyvdb.open(str(target / f"volume.{number:05d}.vdb"))
        file.read_grids()
        counts.append([file.grid(0).active_voxel_count() > 0, file.grid_count])
        assert {file.grid_name(i) for i in range(file.grid_count)} == {
            "density", "smoke", "velocity", "temperature",
        }  # fmt: skip
    assert counts == [[False, 4], [True, 4]]
    told = json.loads((target / "export.json").read_text())
    assert told["fields"] == {"density": "1", "smoke": "1", "velocity": "m/s", "temperature": "K"}
