"""Files that strangers made: pipes and devices are not waited for, links do not lead a write out of a run."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from ecs_fluid.errors import LimitError, StorageError
from ecs_fluid.input_limits import limits
from ecs_fluid.io import checkpoint as ck
from ecs_fluid.io.disk import storage_error
from ecs_fluid.io.fields import append_field, read_field
from ecs_fluid.io.lock import WriterLock
from ecs_fluid.io.records import append_record, read_records
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.io.trajectory import Trajectory, TrajectoryWriter
from ecs_fluid.io.transaction import _MAGIC, JOURNAL
from ecs_fluid.io.untrusted import read_bytes

READERS: list[tuple[str, Callable[[Path], Any]]] = [
    ("checkpoint", ck.load_checkpoint),
    ("records", read_records),
    ("text", lambda path: read_bytes(path, "read")),
    ("field", lambda path: read_field(path.parent, "t", 0)),
    ("trajectory", lambda path: Trajectory(path.parent)),
]


@pytest.mark.parametrize("make", ["pipe", "device", "loop", "folder"])
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader[0])
def test_only_ordinary_files_are_read(make: str, reader: tuple[str, Any], tmp_path: Path) -> None:
    # Opening a pipe waits for a writer, and /dev/zero never ends: without the check this test hangs.
    what, read = reader
    path = tmp_path / {"field": "t-00000000.vtkhdf", "trajectory": "t.vtkhdf"}.get(what, "file")
    if make == "pipe":
        os.mkfifo(path)
    elif make == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if make == "device" else path.name)
    with pytest.raises(StorageError) as refused:
        read(path)
    assert "\n" not in str(refused.value) and path.name in str(refused.value)


def test_a_sparse_file_of_a_terabyte_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-1.npz"
    with path.open("wb") as file:
        file.truncate(2**40)
    for read in (ck.load_checkpoint, read_records, lambda p: read_bytes(p, "read")):
        with pytest.raises(StorageError, match="1,099,511,627,776 bytes"):
            read(path)


def _field(folder: Path, tick: int) -> Path:
    return append_field(folder, "f", tick, 0.1 * tick, np.zeros(3), np.ones(3), {"T": np.zeros((2, 3, 4))})


def test_links_do_not_lead_a_write_out_of_the_folder(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    run = tmp_path / "run"
    run.mkdir()
    for name in ("writer.lock", "diagnostics.jsonl", ".checkpoint-1.npz.tmp"):
        (run / name).symlink_to(victim)
    with pytest.raises(StorageError):
        WriterLock(run / "writer.lock")
    with pytest.raises(StorageError):
        append_record(run / "diagnostics.jsonl", {"tick": 1})
    ck.save_checkpoint(run / "checkpoint-1.npz", {}, {"x": np.zeros(3)})
    assert victim.read_text() == "mine" and not (run / "checkpoint-1.npz").is_symlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (run / "f.vtkhdf.series").symlink_to(victim)
    victim.write_text(listed := (_field(tmp_path, 0).parent / "f.vtkhdf.series").read_text())
    _field(run, 1)
    assert victim.read_text() == listed and not (run / "f.vtkhdf.series").is_symlink()
    (run / "trajectory").symlink_to(elsewhere)
    with pytest.raises(StorageError, match="symbolic link"):
        TrajectoryWriter(run / "trajectory")
    assert not list(elsewhere.iterdir())


def test_resuming_refuses_folders_that_are_links(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", "", {}).close()
    (tmp_path / "run/checkpoints").rmdir()
    (tmp_path / "run/checkpoints").symlink_to(tmp_path)
    with pytest.raises(StorageError, match="checkpoints is a symbolic link"):
        RunFolder.resume(tmp_path / "run")


@pytest.mark.parametrize(
    "change",
    [
        {"plan": None}, {"plan": {"last_tick": 5}},
        {"plan": {"last_tick": 0, "every": 1, "checkpoint_seconds": 1}},
        {"ticks": "5"}, {"ticks": True}, {"time": float("nan")}, {"wall_seconds": 10**400}, {"systems": []},
        {"systems": {"A": {"seconds": 1.0}}}, {"particles": {"ring": "x"}}, {"source": 5}, {"particles": 5},
    ],
)  # fmt: skip
def test_damaged_run_information_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", "", {}).close()
    path = tmp_path / "run/run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(StorageError, match=r"run\.json is damaged"):
        RunFolder.open(tmp_path / "run")


def sealed(members: dict[str, bytes], header: Any, method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip under a seal that fits it, as an attacker would make it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("checkpoint.json", header if isinstance(header, str) else json.dumps(header))
        for name, data in members.items():
            archive.writestr(name, data)
        archive.comment = b"ecs_fluid checkpoint format 000001 blake2b " + b"0" * 64
    body = buffer.getvalue()[:-64]
    return body + hashlib.blake2b(body, digest_size=32).hexdigest().encode()


def array(descr: str = "'<f4'", shape: str = "(3,)", payload: bytes = b"\0" * 12) -> bytes:
    """An array file that claims what it likes."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + payload


def header(*names: str) -> dict[str, Any]:
    return {"format": "ecs_fluid checkpoint", "meta": {"tick": 1}, "arrays": list(names)}


def test_the_forged_checkpoint_of_these_tests_would_be_read_if_it_were_sound(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(sealed({"x.npy": array()}, header("x")))
    assert ck.load_checkpoint(tmp_path / "a.npz")[1]["x"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "forged",
    [
        lambda: sealed({"x.npy": b"\0" * 50_000_000}, header("x"), zipfile.ZIP_DEFLATED),
        lambda: sealed({"x.npy": array(shape="(1000000000000,)")}, header("x")),
        lambda: sealed({"x.npy": array(shape="(-1, -3)")}, header("x")),
        lambda: sealed({"x.npy": array("'|O'")}, header("x")),
        lambda: sealed({"x.npy": array("'|V0'", f"({10**30},)", b"")}, header("x")),
        lambda: sealed({"x.npy": array("[('a', '<f4')]")}, header("x")),
        lambda: sealed({"x.npy": array("'<M8[s]'", "(3,)", b"\0" * 24)}, header("x")),
        lambda: sealed({"x.npy": array(shape="(" * 90 + ")" * 90)}, header("x")),
        lambda: sealed({"x.npy": array(shape="(3,), (")}, header("x")),
        lambda: sealed({"../x.npy": array()}, header("../x")),
        lambda: sealed({"/etc/x.npy": array()}, header("/etc/x")),
        lambda: sealed({"x.npy": array(), "y.npy": array()}, header("x")),
        lambda: sealed({"x.npy": array()}, header("x", "y")),
        lambda: sealed({"x.npy": array()}, header(*["x"] * 100_000)),
        lambda: sealed({f"m{k}.npy": b"" for k in range(5000)}, header()),
        lambda: sealed({}, "[" * 100_000),
        lambda: sealed({}, "7"),
        lambda: sealed({}, {"meta": 7, "arrays": []}),
        lambda: sealed({"x.npy": array()}, header("x")).replace(b"x.npy", b"checkpoint.json"[:5]),
    ],
)  # fmt: skip
def test_forged_checkpoints_are_refused(forged: Callable[[], bytes], tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-1.npz"
    path.write_bytes(forged())
    with pytest.raises(StorageError, match=r"checkpoint-1\.npz") as refused:
        ck.load_checkpoint(path)
    assert "\n" not in str(refused.value)


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    data = bytearray(sealed({"x.npy": array()}, header("x")))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.rfind(signature) + flags] |= 1
    data[-64:] = hashlib.blake2b(data[:-64], digest_size=32).hexdigest().encode()
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(StorageError, match="cannot be understood"):
        ck.load_checkpoint(tmp_path / "a.npz")


def stored(folder: Path) -> Path:
    with TrajectoryWriter(folder) as writer:
        for tick in range(3):
            writer.append(tick, 0.1 * tick, {"a": {"Position.x": np.zeros((5, 3))}})
    return folder / "a.vtkhdf"


@pytest.mark.parametrize(
    "name",
    ["VTKHDF/Points", "VTKHDF/Steps/PartOffsets", "VTKHDF/Vertices/Offsets", "VTKHDF/Lines/NumberOfCells"],
)
def test_a_dataset_that_claims_a_million_million_rows_is_not_cut(name: str, tmp_path: Path) -> None:
    # HDF5 goes through all chunks when it shortens one: this took minutes that no signal ended.
    with h5py.File(stored(tmp_path), "r+") as file:
        file[name].resize(10**12, axis=0)
    with pytest.raises(StorageError, match=r"a\.vtkhdf is damaged.*1000000000000"):
        TrajectoryWriter(tmp_path, resume_at_tick=1)


def test_ticks_and_times_must_grow(tmp_path: Path) -> None:
    path = stored(tmp_path)
    for name, bad in (("ecs_fluid/ticks", 0), ("VTKHDF/Steps/Values", np.nan)):
        with h5py.File(path, "r+") as file:
            former, file[name][1] = file[name][1], bad
        with pytest.raises(StorageError, match="do not increase"):
            Trajectory(tmp_path)
        with h5py.File(path, "r+") as file:
            file[name][1] = former
    assert len(Trajectory(tmp_path)) == 3


def test_packed_numbers_are_refused(tmp_path: Path) -> None:
    """Of a chunk that packs 800 MB into 0.8 MB all would be unpacked to read five rows."""
    with h5py.File(stored(tmp_path), "r+") as file:
        del file["VTKHDF/Points"]
        points = file.create_dataset(
            "VTKHDF/Points", (15, 3), "f8", maxshape=(None, 3), chunks=(2**20, 3), compression="gzip"
        )
        points[:] = np.random.default_rng(0).normal(size=(15, 3))
        assert points.id.get_storage_size() > 15 * 24
    with pytest.raises(StorageError, match="Points is packed"):
        Trajectory(tmp_path).frame(0)


def test_rows_are_counted_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame of 5 points takes 120 bytes."""
    stored(tmp_path)
    monkeypatch.setattr(limits(), "memory", 119.0)
    with pytest.raises(LimitError, match="5 rows of VTKHDF/Points take"):
        Trajectory(tmp_path).frame(0)


def test_records_are_counted_as_what_they_become(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 of 3 bytes become tables of 64 bytes and more, with a place in a list."""
    (tmp_path / "a.jsonl").write_text("{}\n" * 100_000)
    assert len(read_records(tmp_path / "a.jsonl")) == 100_000
    monkeypatch.setattr(limits(), "memory", 8e6)
    with pytest.raises(LimitError, match=r"a\.jsonl: its first [0-9,]+ records would take 0\.008 GB"):
        read_records(tmp_path / "a.jsonl")


def test_descriptions_have_the_limit_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RunFolder.create(tmp_path / "run", "", {}).close()
    (tmp_path / "a.npz").write_bytes(sealed({"x.npy": array()}, header("x")))
    monkeypatch.setattr(limits(), "text", 60)
    with pytest.raises(LimitError, match=r"has [0-9]+ bytes; at most 60 are allowed"):
        ck.load_checkpoint(tmp_path / "a.npz")
    with pytest.raises(StorageError, match="at most 60 are read"):
        RunFolder.open(tmp_path / "run")


@pytest.mark.parametrize("size, pages", [(10**15, []), (100, [[2**60, 10]]), (-1, []), (100, [[0, 10**9]])])
def test_a_forged_journal_is_refused(size: int, pages: list[Any], tmp_path: Path) -> None:
    before = stored(tmp_path).read_bytes()
    body = (
        _MAGIC
        + json.dumps([{"name": "a.vtkhdf", "size": size, "pages": pages}]).encode()
        + b"\n"
        + b"\0" * 100
    )
    (tmp_path / JOURNAL).write_bytes(body + hashlib.blake2b(body, digest_size=32).digest())
    for use in (Trajectory, lambda folder: TrajectoryWriter(folder, resume_at_tick=9)):
        with pytest.raises(StorageError, match=r"journal .* cannot be understood"):
            use(tmp_path)
    assert (tmp_path / "a.vtkhdf").read_bytes() == before


def test_fields_are_stored_in_their_own_file_and_as_large_as_they_claim(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(96)) * 2)
    path = _field(tmp_path, 0)
    whole = path.read_bytes()
    (tmp_path / "other.vtkhdf").write_bytes(whole)
    for kind in ("external", "link", "group", "virtual", "empty"):
        path.write_bytes(whole)
        with h5py.File(path, "r+") as file:
            data = file["VTKHDF/PointData"]
            del data["T"]
            if kind == "external":
                data.create_dataset("T", (4, 3, 2), "f8", external=[(str(secret), 0, 192)])
            elif kind == "link":
                data["T"] = h5py.ExternalLink("other.vtkhdf", "/VTKHDF/PointData/T")
            elif kind == "group":  # a link on the way
                del file["VTKHDF/PointData"]
                file["VTKHDF/PointData"] = h5py.ExternalLink("other.vtkhdf", "/VTKHDF/PointData")
            elif kind == "virtual":
                layout = h5py.VirtualLayout((4, 3, 2), "f8")
                layout[:] = h5py.VirtualSource("other.vtkhdf", "VTKHDF/PointData/T", (4, 3, 2))
                data.create_virtual_dataset("T", layout)
            else:
                data.create_dataset("T", (10**9,), "f8", chunks=(1000,))
            if kind not in ("link", "group"):
                data["T"].attrs["row_shape"] = np.array([], dtype=np.int64)
        with pytest.raises(StorageError, match="is damaged, or another kind of file"):
            read_field(tmp_path, "f", 0)


def test_no_file_takes_the_place_of_a_device_or_a_pipe(tmp_path: Path) -> None:
    """A rename would: as root, `world.save("/dev/null")` did."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(StorageError, match="is a device or a pipe"):
        ck.save_checkpoint(pipe, {}, {"x": np.zeros(3)})
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM])
def test_a_file_that_may_not_be_read_is_not_called_read_only(code: int) -> None:
    """It was told to choose another folder."""
    said = str(storage_error(OSError(code, os.strerror(code)), "read world file", Path("secret.toml")))
    assert said.startswith("cannot read world file secret.toml: you have no permission to read it; ")
    assert "read-only" in str(storage_error(OSError(code, os.strerror(code)), "write export", Path("a")))
