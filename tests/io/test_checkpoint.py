"""Checkpoints hold bits: what goes in comes out, and a file that was touched in any way is refused."""

from __future__ import annotations

import hashlib
import io
import json
import math
import random
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from ecs_fluid.errors import StorageError
from ecs_fluid.io import checkpoint as ck

DTYPES = st.sampled_from(
    ["float32", "float64", "int64", "int32", "uint8", "bool", ">f4", "complex128", "<U7"]
)
ARRAYS = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)))


def state() -> tuple[dict, dict[str, np.ndarray]]:
    rng = np.random.default_rng(7)
    arrays = {
        "ring/Position.x": rng.standard_normal((50, 3)).astype(np.float32),
        "ring/RowId.id": np.arange(50),
        "rng/counter": np.array(12345678901234567890, dtype=np.uint64),
    }
    return {"tick": 12, "time": 0.1 + 0.2, "seed": 2**70, "nested": {"a": [1, None, True]}}, arrays


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arrays=st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9_]{0,5}(/[A-Z][a-z]{0,5}\.x)?", fullmatch=True), ARRAYS
    )
)
def test_every_dtype_and_shape_comes_back_bit_for_bit(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    path = tmp_path / "checkpoint-1.npz"
    ck.save_checkpoint(path, {"tick": 1}, arrays)
    meta, loaded = ck.load_checkpoint(path)
    assert meta == {"tick": 1} and list(loaded) == list(arrays)
    assert all(same(loaded[name], array) and loaded[name].flags.writeable for name, array in arrays.items())


def test_non_finite_numbers_signed_zero_and_strides_survive(tmp_path: Path) -> None:
    odd = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 5e-324, math.pi])
    odd.view(np.uint64)[0] |= 0xABC  # a NaN with a payload
    arrays = {"odd": odd, "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "strided": odd[::-2]}
    ck.save_checkpoint(tmp_path / "a.npz", {"t": 0.1 + 0.2, "inf": math.inf}, arrays)
    meta, loaded = ck.load_checkpoint(tmp_path / "a.npz")
    assert meta == {"t": 0.1 + 0.2, "inf": math.inf}
    assert all(same(loaded[name], np.ascontiguousarray(array)) for name, array in arrays.items())
    assert all(array.flags.c_contiguous for array in loaded.values())


def test_the_same_state_gives_the_same_bytes_and_numpy_opens_them(tmp_path: Path) -> None:
    meta, arrays = state()
    ck.save_checkpoint(tmp_path / "a.npz", meta, arrays)
    ck.save_checkpoint(tmp_path / "b.npz", meta, arrays)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz", allow_pickle=False) as plain:
        assert same(plain["ring/Position.x"], arrays["ring/Position.x"])
    loaded_meta, loaded = ck.load_checkpoint(tmp_path / "a.npz")
    assert loaded_meta == meta and all(same(loaded[name], arrays[name]) for name in arrays)


def test_any_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-12.npz"
    ck.save_checkpoint(path, *state())
    good = path.read_bytes()
    pick = random.Random(3)
    places = [*range(100), *range(len(good) - 300, len(good)), *pick.sample(range(len(good)), 300)]
    for place in places:
        bad = bytearray(good)
        bad[place] ^= 1 << pick.randrange(8)
        path.write_bytes(bad)
        with pytest.raises(StorageError, match=r"checkpoint-12\.npz"):
            ck.load_checkpoint(path)


def test_any_cut_or_addition_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-12.npz"
    ck.save_checkpoint(path, *state())
    good = path.read_bytes()
    for length in [0, 1, 100, len(good) // 2, len(good) - 108, len(good) - 64, len(good) - 1]:
        path.write_bytes(good[:length])
        with pytest.raises(StorageError, match="not an intact ecs_fluid checkpoint"):
            ck.load_checkpoint(path)
    for changed in (good + b"\0", b"\0" + good):
        path.write_bytes(changed)
        with pytest.raises(StorageError):
            ck.load_checkpoint(path)


def test_another_version_is_refused_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint-12.npz"
    monkeypatch.setattr(ck, "VERSION", 3)
    ck.save_checkpoint(path, *state())
    monkeypatch.undo()
    with pytest.raises(StorageError, match=r"checkpoint-12\.npz has format version 3.*reads only version 1"):
        ck.load_checkpoint(path)


def test_what_is_not_a_checkpoint_is_refused_in_one_sentence(tmp_path: Path) -> None:
    np.savez(tmp_path / "plain.npz", x=np.zeros(3))
    (tmp_path / "text.npz").write_text("hello")
    cases = {
        "missing.npz": "no such file",
        "plain.npz": "not an intact ecs_fluid checkpoint",
        "text.npz": "not an intact ecs_fluid checkpoint",
        ".": "it is a folder",
    }
    for name, why in cases.items():
        with pytest.raises(StorageError, match=why) as refusal:
            ck.load_checkpoint(tmp_path / name)
        assert "\n" not in str(refusal.value) and str(tmp_path) in str(refusal.value)
    with pytest.raises(StorageError, match="it is a folder"):
        ck.save_checkpoint(tmp_path, {}, {})
    with pytest.raises(StorageError, match="no such file or folder"):
        ck.save_checkpoint(tmp_path / "no" / "a.npz", {}, {})


def test_a_sealed_file_that_lies_about_its_size_takes_no_memory(tmp_path: Path) -> None:
    """Anyone can compute a seal: here the header of an array claims 8e15 bytes, and the checksums agree."""
    path = tmp_path / "checkpoint-1.npz"
    claim = io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(claim, described)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("checkpoint.json", '{"meta": {}, "arrays": ["x"]}')
        archive.writestr("x.npy", claim.getvalue() + bytes(80))
        archive.comment = b"ecs_fluid checkpoint format 000001 blake2b " + b"0" * 64
    body = path.read_bytes()[:-64]
    path.write_bytes(body + hashlib.blake2b(body, digest_size=32).hexdigest().encode())
    with pytest.raises(StorageError, match="does not have the size it claims"):
        ck.load_checkpoint(path)


def test_objects_and_bad_names_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with pytest.raises(StorageError, match="dtype object"):
        ck.save_checkpoint(path, {}, {"x": np.array([{}])})
    with pytest.raises(StorageError, match="plain JSON"):
        ck.save_checkpoint(path, {"x": object()}, {})
    for name in ("../x", "/x", "a//b", "", "a b"):
        with pytest.raises(StorageError, match="cannot be stored"):
            ck.save_checkpoint(path, {}, {name: np.zeros(1)})
    assert not path.exists()


def test_the_newest_intact_checkpoint_is_found_and_damage_is_told(tmp_path: Path) -> None:
    meta, arrays = state()
    for tick in (5, 50, 100, 1000):
        ck.save_checkpoint(ck.checkpoint_path(tmp_path, tick), {**meta, "tick": tick}, arrays)
    (tmp_path / ".checkpoint-00000007.npz.tmp").write_bytes(b"left by a crash")
    (tmp_path / "notes.npz").write_bytes(b"of the user")
    assert [tick for tick, _ in ck.list_checkpoints(tmp_path)] == [5, 50, 100, 1000]
    ck.keep_last(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint-00000100.npz",
        "checkpoint-00001000.npz",
        "notes.npz",
    ]
    found = ck.newest_checkpoint(tmp_path)
    assert (found.tick, found.meta["tick"], found.skipped) == (1000, 1000, ())
    newest = ck.checkpoint_path(tmp_path, 1000)
    newest.write_bytes(newest.read_bytes()[:-1])
    found = ck.newest_checkpoint(tmp_path)
    assert found.tick == 100 and same(found.arrays["rng/counter"], arrays["rng/counter"])
    assert len(found.skipped) == 1 and "checkpoint-00001000.npz" in found.skipped[0]
    ck.drop_after(tmp_path, 99)
    with pytest.raises(StorageError, match="no checkpoint to resume from"):
        ck.newest_checkpoint(tmp_path)
    shutil.rmtree(tmp_path)
    with pytest.raises(StorageError, match="no checkpoint to resume from"):
        ck.newest_checkpoint(tmp_path)


def test_meta_is_json_inside(tmp_path: Path) -> None:
    ck.save_checkpoint(tmp_path / "a.npz", {"tick": 3}, {"x": np.zeros(2)})
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        header = json.loads(archive.read("checkpoint.json"))
    assert header == {"format": "ecs_fluid checkpoint", "meta": {"tick": 3}, "arrays": ["x"]}
