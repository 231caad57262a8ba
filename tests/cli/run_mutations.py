"""Run folders that went wrong: random mutations of a good one, reproducible by a number."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import shutil
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import h5py
import numpy as np
import tomli_w
from mutations import FORMATTED, STRUCTURAL, TEXTUAL, forged_array, other

from ecs_fluid.api.pictures import What
from ecs_fluid.cli import main
from ecs_fluid.exports import FORMATS
from ecs_fluid.io import checkpoint
from ecs_fluid.io.fields import append_field
from ecs_fluid.io.transaction import _MAGIC, JOURNAL
from ecs_fluid.runs.surface_frames import NAME

OUTSIDE = ("/dev/zero", "/dev/full", "/etc/passwd", "/proc/self/mem", "/", ".", "nowhere", "loop")


SWEEP = [
    "sweep", "vortex_ring", "--vary", "ring.circulation=4,5", "--ticks", "4", "--workers", "0",
    "--set", "ring.spacing=0.25", "--set", "fluid.diagnostics.every=1", "--diagnostics", "energy", "--out",
]  # fmt: skip


def prepare(folder: Path) -> None:
    """Two runs of 4 ticks with 26 vortons and 1,944 tracers, records, and a field of 5 x 4 x 3 points."""
    assert main([*SWEEP, str(folder / "good")]) == 0
    phi = np.linspace(-1.0, 1.0, 60).reshape(5, 4, 3)
    fields = _run(folder / "good") / "trajectory/fields"
    append_field(fields, NAME, 4, 4 / 60, np.zeros(3), np.ones(3), {"phi": phi})


def _run(sweep: Path) -> Path:
    return min((sweep / "members").iterdir())


def trial(number: int, folder: Path) -> tuple[str, list[list[str]]]:
    """A run that went wrong once or twice; info, and a command that changes it or writes beside it."""
    draw, sweep = random.Random(number), folder / "sweep"
    shutil.copytree(folder.parent / "good", sweep, symlinks=True)
    run = _run(sweep)
    done = [draw.choice(MUTATIONS) for _ in range(draw.choice((1, 1, 1, 2)))]
    for change in done:
        change(draw, run)
    out, picture = str(folder / "out"), ["--size", "64", "64", "--save", str(folder / "out.png")]
    # Streamlines take 17 s of the processor, so they are for the numbers of the night.
    looks = [what for what in get_args(What) if what != "streamlines" or number < 2000]
    others = [
        *(["export", str(run), "--to", to, "--out", out] for to in FORMATS),
        ["export", str(run), "--to", "vti", "--voxel", "0.5", "--frames", "1:3", "--out", out],
        ["info", str(run), "--plot", out + ".png"],
        ["page", str(run), "--out", out],
        *(["resume", str(run), "--ticks", frames] for frames in ("3", "5", "6", "7")),
        ["show", str(run), "--what", draw.choice(looks), *picture],
        ["show", str(run), "--movie", out + "-%02d.png", *picture[:3]],
        ["run", str(run / "world.toml"), "--ticks", "2", "--out", out],
        *[[*SWEEP, str(sweep)]] * (8 if _plan in done else 1),
    ]
    return ", ".join(change.__name__ for change in done), [["info", str(run)], draw.choice(others)]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _structural(draw: random.Random, table: dict[str, Any]) -> dict[str, Any]:
    for _ in range(draw.choice((1, 1, 2, 4))):
        # The donor of a graft is the table itself.
        draw.choice(STRUCTURAL)(draw, table, [_donor(table)])
    return table


def _donor(table: dict[str, Any]) -> str:
    try:
        return tomli_w.dumps(_without_none(table))
    except (TypeError, ValueError, AttributeError):
        return "a = [1, {b = 2}]"


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(part) for key, part in value.items() if part is not None}
    return [_without_none(part) for part in value if part is not None] if isinstance(value, list) else value


def _bytes(draw: random.Random, folder: Path) -> None:
    """Bytes of any file changed, cut, swapped."""
    path = draw.choice(_files(folder))
    data = path.read_bytes()
    for _ in range(draw.choice((1, 1, 4, 30))):
        data = draw.choice(FORMATTED)(draw, data)
    path.write_bytes(data)


def _info(draw: random.Random, folder: Path) -> None:
    """Values of run.json replaced."""
    path = folder / "run.json"
    if path.is_file():
        path.write_text(json.dumps(_structural(draw, json.loads(path.read_bytes()))))


def _plan(draw: random.Random, folder: Path) -> None:
    """Values of the sweep's sweep.json replaced."""
    path = folder.parents[1] / "sweep.json"
    path.write_text(json.dumps(_structural(draw, json.loads(path.read_bytes()))))


def _recipe(draw: random.Random, folder: Path) -> None:
    """Values of world.toml replaced."""
    path = folder / "world.toml"
    if path.is_file():
        path.write_text(tomli_w.dumps(_structural(draw, tomllib.loads(path.read_text()))))


def _records(draw: random.Random, folder: Path) -> None:
    """Values of one line of the diagnostics replaced."""
    path = folder / "diagnostics.jsonl"
    if path.is_file():
        lines = path.read_bytes().splitlines()
        at = draw.randrange(len(lines))
        lines[at] = json.dumps(_structural(draw, json.loads(lines[at]))).encode()
        path.write_bytes(b"\n".join(lines) + b"\n")


def _places(draw: random.Random, folder: Path) -> None:
    """A file or folder gone, a folder, a pipe, or a link to somewhere in its place."""
    path = draw.choice([*sorted(folder.rglob("*")), folder / "trajectory" / JOURNAL, folder / "exports"])
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    match draw.randrange(4):
        case 0:
            path.mkdir()
        case 1:
            os.mkfifo(path)
        case 2:
            target = draw.choice(OUTSIDE)
            path.symlink_to(path.name if target == "loop" else target)


def sealed(data: bytes) -> bytes:
    """Bytes of a checkpoint with a seal that fits them, as an attacker would make it."""
    return data[:-64] + hashlib.blake2b(data[:-64], digest_size=32).hexdigest().encode()


def _sealed_bytes(draw: random.Random, folder: Path) -> None:
    """Bytes of a checkpoint's zip changed under a seal that fits."""
    path = _newest(folder)
    if path is None:
        return
    data = path.read_bytes()
    body, tail = data[: -checkpoint._SEAL_LENGTH], data[-checkpoint._SEAL_LENGTH :]
    # Where the structure of the zip is: its end, its headers, the JSON at its start.
    for _ in range(draw.choice((1, 2, 8))):
        first = draw.choice((0, max(len(body) - 3000, 0)))
        window = draw.choice(TEXTUAL[:2])(draw, body[first : first + 3000])
        body = body[:first] + window[:3000] + body[first + 3000 :]
    path.write_bytes(sealed(body + tail))


def _newest(folder: Path) -> Path | None:
    found = [path for _, path in checkpoint.list_checkpoints(folder / "checkpoints") if path.is_file()]
    return None if not found or found[-1].is_symlink() else found[-1]


def _meta(draw: random.Random, folder: Path) -> None:
    """The description in a checkpoint replaced, in a file that is sound otherwise."""
    path = _newest(folder)
    if path is not None:
        meta, arrays = _loaded(path)
        if arrays:
            checkpoint.save_checkpoint(path, _structural(draw, meta), arrays)


def _loaded(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        return checkpoint.load_checkpoint(path)
    except checkpoint.StorageError:
        return {}, {}  # changed by the mutation before


def _arrays(draw: random.Random, folder: Path) -> None:
    """An array of a checkpoint with other numbers, shape or dtype, or gone."""
    path = _newest(folder)
    meta, arrays = _loaded(path) if path is not None else ({}, {})
    if path is not None and arrays:
        name = draw.choice(sorted(arrays))
        changed = other(draw, arrays[name])
        checkpoint.save_checkpoint(path, meta, {**arrays, name: changed})


def _zips(draw: random.Random, folder: Path) -> None:
    """Another zip in the place of a checkpoint: bombs, strange names, pickles, sizes that lie."""
    path = _newest(folder)
    if path is None:
        return
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        name = draw.choice(("a", "../a", "/etc/a", "a/" * 40 + "b", "a.zip", "\u202e", "ring/Position.x"))
        header = {"format": "ecs_fluid checkpoint", "meta": {"version": 1}, "arrays": [name]}
        if draw.random() < 0.2:
            header["arrays"] = [name] * 100_000
        archive.writestr("checkpoint.json", "[" * 100_000 if draw.random() < 0.1 else json.dumps(header))
        archive.writestr(name + ".npy", forged_array(draw))
        if draw.random() < 0.1:
            for k in range(20_000):
                archive.writestr(f"m{k}.npy", b"")
        archive.comment = b"ecs_fluid checkpoint format 000001 blake2b " + b"0" * 64
    path.write_bytes(sealed(buffer.getvalue()))


def _trajectory(draw: random.Random, folder: Path) -> None:
    """Datasets, attributes and links of an HDF5 file changed."""
    files = [path for path in _files(folder) if path.suffix == ".vtkhdf"]
    if not files:
        return
    try:
        with h5py.File(draw.choice(files), "r+") as file:
            _hdf(draw, file)
    except (OSError, RuntimeError, KeyError, ValueError, TypeError):
        return  # changed by the mutation before


def _hdf(draw: random.Random, file: h5py.File) -> None:
    names: list[str] = []
    file.visit(names.append)
    name = draw.choice(sorted(names))
    item = file[name]
    match draw.randrange(6):
        case 0:
            del file[name]
        case 1:
            del file[name]
            file[name] = draw.choice(
                (h5py.ExternalLink("/etc/passwd", "/"), h5py.ExternalLink("smoke.vtkhdf", "/VTKHDF"),
                 h5py.SoftLink("/"), h5py.SoftLink("/" + name))
            )  # fmt: skip
        case 2 if isinstance(item, h5py.Dataset) and item.maxshape and item.maxshape[0] is None:
            item.resize(draw.choice((0, 1, len(item) + 1, 10**12)), axis=0)
        case 3 if isinstance(item, h5py.Dataset) and item.size:
            values = item[()]
            values.ravel()[draw.randrange(values.size)] = draw.choice((0, 127, -1 % 128))
            item[...] = values
        case 4 if isinstance(item, h5py.Dataset):
            shape, data = item.shape, draw.choice((b"text", 1.5, np.zeros(item.shape, "u1")))
            del file[name]
            if draw.random() < 0.3:
                file.create_dataset(name, (10**9,), "f8", chunks=(10**6,), compression="gzip")
            elif draw.random() < 0.3:
                file.create_dataset(name, shape, "f4", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])
            else:
                file[name] = data
        case _:
            holders = [n for n in sorted(names) if len(file[n].attrs)]
            if holders:
                attributes = file[draw.choice(holders)].attrs
                key = draw.choice(sorted(attributes))
                huge = '{"Position.x": ["float32", [1000000000, 3]]}'
                value: Any = draw.choice((-1, 0, 10**18, 2.5, "x", "[" * 5000, huge, np.zeros(6)))
                del attributes[key]
                if draw.random() < 0.8:
                    attributes[key] = value


def _journal(draw: random.Random, folder: Path) -> None:
    """A journal with a checksum that fits, which says what it likes."""
    name = draw.choice(("ring.vtkhdf", "smoke.vtkhdf", "../run.vtkhdf", "run.json", "no.vtkhdf", 7))
    size = draw.choice((0, 100, 125_048, 10**15, -1, 2**70, "x"))
    pages = draw.choice(([], [[0, 4096]], [[2**60, 10]], [[-1, 10]], [[0, 10**9]], [["a", 1]], 7))
    index: Any = draw.choice(
        ([{"name": name, "size": size, "pages": pages}], {}, [7], [[]], "x", 10**5 * [[]])
    )
    body = _MAGIC + json.dumps(index).encode() + b"\n" + bytes(draw.randrange(256) for _ in range(4096))
    (folder / "trajectory").mkdir(exist_ok=True)
    digest = hashlib.blake2b(body, digest_size=32).digest()
    (folder / "trajectory" / JOURNAL).write_bytes(body + digest)


MUTATIONS: tuple[Callable[[random.Random, Path], None], ...] = (
    _bytes, _bytes, _info, _info, _plan, _recipe, _records, _places, _places, _sealed_bytes, _meta, _meta,
    _arrays, _zips, _trajectory, _trajectory, _trajectory, _journal,
)  # fmt: skip
