"""Vortons from files: round trips, and one sentence for every damaged or missing file."""

from __future__ import annotations

import os
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, Strength, Volume
from ecs_fluid.errors import LimitError, RecipeError
from ecs_fluid.input_limits import limits
from ecs_fluid.world import World
from ecs_fluid.worlds import VortonsFromArrays, VortonsFromVelocity, files_from

Table = dict[str, Array]


@pytest.fixture
def table() -> Table:
    random = np.random.default_rng(5)
    return {
        "x": random.normal(size=(17, 3)),
        "alpha": random.normal(size=(17, 3)),
        "sigma": random.uniform(0.1, 0.2, 17),
        "volume": random.uniform(0.01, 0.02, 17),
    }


def write_csv(path: Path, table: Table) -> None:
    rows = np.column_stack([table["x"], table["alpha"], table["sigma"], table["volume"]])
    header = "x,y,z,alpha_x,alpha_y,alpha_z,sigma,volume"
    lines = [",".join(repr(float(value)) for value in row) for row in rows]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")


def write_vtp(path: Path, table: Table) -> None:
    pyvista = pytest.importorskip("pyvista")
    mesh = pyvista.PolyData(table["x"])
    mesh.point_data["Strength.alpha"] = table["alpha"]
    mesh.point_data["CoreRadius.sigma"] = table["sigma"]
    mesh.point_data["Volume.volume"] = table["volume"]
    mesh.save(path)


def read(**parameters: Any) -> tuple[Array, Array, Array, Array]:
    world = World(precision="double")
    VortonsFromArrays(name="given", **parameters).build(world)
    entity = world["given"]
    return entity[Position].x, entity[Strength].alpha, entity[CoreRadius].sigma, entity[Volume].volume


@pytest.mark.parametrize("ending", [".npz", ".csv", ".vtp"])
def test_round_trip_keeps_every_bit(tmp_path: Path, table: Table, ending: str) -> None:
    path = tmp_path / f"vortons{ending}"
    if ending == ".npz":
        np.savez(path, **table)
    else:
        {".csv": write_csv, ".vtp": write_vtp}[ending](path, table)
    for got, key in zip(read(file=str(path)), table, strict=True):
        np.testing.assert_array_equal(got, table[key])


def test_missing_sigma_and_volume_come_from_core(tmp_path: Path, table: Table) -> None:
    path = tmp_path / "v.npz"
    np.savez(path, x=table["x"], alpha=table["alpha"])
    x, _, sigma, volume = read(file=str(path), core=0.3, offset=(1, 0, 0))
    np.testing.assert_allclose(x, table["x"] + [1, 0, 0])
    np.testing.assert_allclose(sigma, 0.3)
    # A cube of edge sigma/1.5, the spacing at which blobs overlap by 1.5.
    np.testing.assert_allclose(volume, 0.2**3)


def damaged(table: Table, how: str) -> Table:
    table = {key: array.copy() for key, array in table.items()}
    match how:
        case "nan":
            table["alpha"][4, 1] = np.nan
        case "infinite position":
            table["x"][2, 0] = np.inf
        case "no alpha":
            del table["alpha"]
        case "no sigma":
            del table["sigma"]
        case "zero sigma":
            table["sigma"][3] = 0.0
        case "negative volume":
            table["volume"][16] = -1.0
        case "short":
            table["volume"] = table["volume"][:5]
        case "two components":
            table["alpha"] = table["alpha"][:, :2]
        case "matrix sigma":
            table["sigma"] = np.ones((17, 2))
        case "text":
            table["sigma"] = np.array(["a"] * 17)
        case "empty":
            table = {key: array[:0] for key, array in table.items()}
    return table


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("nan", "'alpha' row 4 is nan"),
        ("infinite position", "'x' row 2 is inf"),
        ("no alpha", "no column 'alpha_x'"),
        ("no sigma", "no column 'sigma'"),
        ("zero sigma", "'sigma' row 3 is 0"),
        ("negative volume", "'volume' row 16 is -1"),
        ("short", "'volume' has 5 rows, but the positions have 17"),
        ("two components", r"'alpha' has shape \(17, 2\)"),
        ("matrix sigma", r"'sigma' has shape \(17, 2\)"),
        ("text", "'sigma' has dtype"),
        ("empty", "no vortons"),
    ],
)
def test_damaged_table_is_refused_in_a_sentence(tmp_path: Path, table: Table, how: str, words: str) -> None:
    path = tmp_path / "v.npz"
    np.savez(path, **damaged(table, how))
    with pytest.raises(RecipeError, match=words) as caught:
        read(file=str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("v.csv", "", "empty"),
        ("v.csv", "x,y,z,alpha_x,alpha_y,alpha_z,sigma\n1,2,3,4,5,6\n", "row 0 has 6 fields"),
        ("v.csv", "x,y,z,alpha_x,alpha_y,alpha_z,sigma\n1,2,3,4,5,six,1\n", "'alpha_z' row 0 is 'six'"),
        ("v.csv", "x,y,z,alpha_x,alpha_y,alpha_z,sigma\n1,2,3,4,5,nan,1\n", "'alpha_z' row 0 is nan"),
        ("v.csv", "x,x,z\n1,2,3\n", "twice"),
        ("v.csv", "x,y,alpha_x,alpha_y,alpha_z,sigma\n", "no column 'z'"),
        ("v.npz", "not an archive", "not a readable .npz archive: File is not a zip file"),
        ("v.vtp", "not xml", "not a readable .vtp|no points"),
        ("v.obj", "v 1 2 3", ".npz, .csv and .vtp"),
    ],
)
def test_unreadable_file_is_refused_in_a_sentence(
    tmp_path: Path, name: str, content: str, words: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(RecipeError, match=words) as caught:
        read(file=str(path))
    assert "\n" not in str(caught.value)


def test_truncated_archive_is_refused(tmp_path: Path, table: Table) -> None:
    path = tmp_path / "v.npz"
    np.savez(path, **table)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(RecipeError, match="not a readable"):
        read(file=str(path))


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    np.savez(path, x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(RecipeError, match="'x' has dtype object; numbers are needed"):
        read(file=str(path))


def test_files_outside_the_worlds_folder_are_refused(tmp_path: Path, table: Table) -> None:
    inside, outside = tmp_path / "world", tmp_path / "secret.npz"
    inside.mkdir()
    np.savez(inside / "v.npz", **table)
    np.savez(outside, **table)
    (inside / "link.npz").symlink_to(outside)
    with files_from(inside):
        np.testing.assert_array_equal(read(file="v.npz")[0], table["x"])
        np.testing.assert_array_equal(read(file=str(inside / "v.npz"))[0], table["x"])
        for bad in ("../secret.npz", str(outside), "link.npz"):
            with pytest.raises(RecipeError, match="outside the folder"):
                read(file=bad)
        with pytest.raises(RecipeError, match="does not exist"):
            read(file="w.npz")
        with pytest.raises(RecipeError, match=r"not a path|does not exist"):
            read(file="a\0b")
    with pytest.raises(RecipeError, match="does not exist"):
        read(file="v.npz")


def test_velocity_grid_gives_the_curl_of_the_formula(tmp_path: Path) -> None:
    # The same samples by formula and by file must give the same vortons.
    low, high, cells = np.array([-1.0, 0.0, 0.0]), np.array([1.0, 1.0, 0.5]), np.array([10, 5, 4])
    axes = [np.linspace(a, b, n + 1) for a, b, n in zip(low, high, cells, strict=True)]
    x, y, z = np.meshgrid(*axes, indexing="ij")
    u = np.stack([np.sin(3 * y), z * x, np.exp(-(x**2))], axis=-1)
    np.savez(tmp_path / "u.npz", u=u, origin=low, spacing=(high - low) / cells)
    results = []
    for recipe in (
        VortonsFromVelocity(name="given", file=str(tmp_path / "u.npz")),
        VortonsFromVelocity(
            name="given",
            ux="sin(3*y)",
            uy="z*x",
            uz="exp(-x**2)",
            low=(-1, 0, 0),
            high=(1, 1, 0.5),
            spacing=0.2,
        ),
    ):
        world = World(precision="double")
        recipe.build(world)
        results.append((world["given"][Position].x, world["given"][Strength].alpha))
    # 0.2 m cells cut the last axis into 3, so compare moments: total strength is the surface integral of
    # n x u, the same up to the midpoint rule's O(h^2).
    assert len(results[0][0]) == 10 * 5 * 4
    for a, b in ((results[0][1], results[1][1]),):
        np.testing.assert_allclose(a.sum(axis=0), b.sum(axis=0), atol=0.02)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"u": np.zeros((3, 3, 3))}, r"\(nx, ny, nz, 3\) is needed"),
        ({"u": np.zeros((1, 3, 3, 3))}, "at least 2 points"),
        ({"u": np.full((3, 3, 3, 3), np.nan)}, "'u' row 0 is nan"),
        ({"u": np.zeros((3, 3, 3, 3))}, "no curl"),
        ({"spacing": np.array([0.1, 0.0, 0.1])}, "above 0"),
        ({"origin": np.zeros(2)}, r"\(3,\) is needed"),
    ],
)
def test_bad_velocity_grid_is_refused_in_a_sentence(tmp_path: Path, change: Table, words: str) -> None:
    grid = {
        "u": np.random.default_rng(1).normal(size=(3, 3, 3, 3)),
        "origin": np.zeros(3),
        "spacing": np.ones(3),
    }
    np.savez(tmp_path / "u.npz", **(grid | change))
    with pytest.raises(RecipeError, match=words):
        VortonsFromVelocity(name="given", file=str(tmp_path / "u.npz")).build(World())


def test_devices_pipes_and_archives_that_lie_are_refused(tmp_path: Path) -> None:
    # A pipe is asked for its kind and not opened, which would wait for ever.
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "zero.npz").symlink_to("/dev/zero")
    (tmp_path / "folder.npz").mkdir()
    for name, why in (("pipe", "device or a pipe"), ("zero", "device or a pipe"), ("folder", "is a folder")):
        with pytest.raises(RecipeError, match=why):
            read(file=str(tmp_path / f"{name}.npz"))
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3), }".ljust(117) + b"\n"
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(RecipeError, match="does not have the size it claims"):
        read(file=str(tmp_path / "bomb.npz"))
    open_ended = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), (}".ljust(117) + b"\n"
    with zipfile.ZipFile(tmp_path / "open.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(open_ended).to_bytes(2, "little") + open_ended)
    with pytest.raises(RecipeError, match="not a readable"):
        read(file=str(tmp_path / "open.npz"))
    with zipfile.ZipFile(tmp_path / "many.npz", "w") as archive:
        for number in range(1001):
            archive.writestr(f"a{number}.npy", b"")
    with pytest.raises(RecipeError, match="at most 1000"):
        read(file=str(tmp_path / "many.npz"))


def test_arrays_are_counted_before_they_are_read(
    tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 MB of bytes pack into 62 kB, and were 576 MB as bytes and numbers, wanted or not."""
    large = np.zeros(64_000_000, np.uint8)
    np.savez_compressed(tmp_path / "more.npz", more=large, **table)
    np.savez_compressed(tmp_path / "sigma.npz", **(table | {"sigma": large}))
    del large
    tracemalloc.start()
    try:
        np.testing.assert_array_equal(read(file=str(tmp_path / "more.npz"))[0], table["x"])
        monkeypatch.setattr(limits(), "memory", 10e9)
        # Three numbers would stand for a vorton at least, of 1,000 bytes.
        with pytest.raises(LimitError, match=r"64,000,000 numbers of 'sigma' would take 21\.3 GB; at most"):
            read(file=str(tmp_path / "sigma.npz"))
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def test_lines_are_counted_while_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.csv"
    path.write_text("x,y,z,alpha_x,alpha_y,alpha_z,sigma\n" + "1,2,3,4,5,6,7\n" * 70_000 + "no number\n")
    monkeypatch.setattr(limits(), "memory", 60e6)
    with pytest.raises(LimitError, match="this would make 65,536 vortons"):
        read(file=str(path))
    path.write_text(",".join(f"a{k}" for k in range(1001)))
    with pytest.raises(RecipeError, match="has 1,001 columns; at most 1000"):
        read(file=str(path))


@pytest.mark.parametrize("ending", [".npz", ".csv", ".vtp"])
def test_columns_of_other_names_are_let_be(tmp_path: Path, table: Table, ending: str) -> None:
    """They may hold anything, and a sentence still names them where one is missing."""
    path = tmp_path / f"v{ending}"
    if ending == ".npz":
        np.savez(path, note=np.array(["a"] * 17), **table)
    elif ending == ".csv":
        write_csv(path, table)
        header, *lines = path.read_text().splitlines()
        path.write_text("\n".join(["note," + header, *("a," + line for line in lines)]))
    else:
        pyvista = pytest.importorskip("pyvista")
        mesh = pyvista.PolyData(table["x"])
        mesh.point_data["note"] = table["sigma"]
        mesh.point_data["Strength.alpha"] = table["alpha"]
        mesh.point_data["CoreRadius.sigma"] = table["sigma"]
        mesh.save(path)
    np.testing.assert_array_equal(read(file=str(path))[2], table["sigma"])
    if ending == ".npz":
        np.savez(path, alphas=table["alpha"], x=table["x"])
        with pytest.raises(RecipeError, match="no column 'alpha_x'; did you mean 'alphas'"):
            read(file=str(path))
