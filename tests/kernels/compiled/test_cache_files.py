"""Damaged files of compiled code, and two processes that write them, cost a compilation and nothing else."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from docs.generator import programs
from ecs_fluid.kernels.compiled.cache_files import CacheFiles, KernelsNotKept
from tests.kernels.compiled.cached_program import program


def files(folder: Path) -> CacheFiles:
    return CacheFiles(str(folder), "step-7.py311", "as of today")


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut short": lambda data: data[: len(data) // 2],
    "zeros where the disk was not written": lambda data: data[:-64] + bytes(64),
    "one bit": lambda data: data[:50] + bytes([data[50] ^ 4]) + data[51:],
    "something else": lambda data: b"cos\nsystem\n" * 9,
}


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_code_counts_as_none(tmp_path: Path, damage: str, ending: str) -> None:
    """An index has no checksum: what can be read of it leads to a file that has one."""
    kept = files(tmp_path)
    kept.save(("float64",), b"machine code" * 20)
    assert kept.load(("float64",)) == b"machine code" * 20
    (path,) = tmp_path.glob(f"*.{ending}")
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    assert kept.load(("float64",)) in ((None,) if ending == "nbc" else (None, b"machine code" * 20))
    kept.save(("float64",), b"compiled anew")
    assert kept.load(("float64",)) == b"compiled anew"


def test_two_processes_at_once_never_find_the_code_of_other_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both read the index before either writes it, and each has a file of its own all the same."""
    single, double = files(tmp_path), files(tmp_path)
    monkeypatch.setattr(double, "_load_index", dict)
    single.save(("float32",), "single")
    double.save(("float64",), "double")
    monkeypatch.undo()
    assert len(list(tmp_path.glob("*.nbc"))) == 2
    assert double.load(("float64",)) == "double"
    assert single.load(("float32",)) is None


def test_a_full_disk_costs_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the run nor what was kept before; and a file that cannot be read counts as none."""
    kept = files(tmp_path)
    kept.save(("float32",), "single")

    def full(path: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(kept, "_open_for_write", full)
    with pytest.warns(KernelsNotKept, match=r"not kept \(No space left on device\)") as told:
        kept.save(("float64",), "double")
        kept.save(("int64",), "whole")
    assert len(told) == 1
    assert [kept.load((kind,)) for kind in ("float32", "float64")] == ["single", None]
    (index,) = tmp_path.glob("*.nbi")
    index.unlink()
    index.mkdir()
    assert kept.load(("float32",)) is None


def test_without_a_folder_for_it_nothing_is_kept_beside_the_sources(tmp_path: Path) -> None:
    """numba would keep it there, and call it although a function that the kernel calls has changed."""
    (tmp_path / "file").touch()
    environment = {"ECS_FLUID_CACHE_DIR": str(tmp_path / "file"), "PATH": "", "PYTHONPATH": str(tmp_path)}
    environment["TMPDIR"] = str(tmp_path)
    command = [sys.executable, str(program(tmp_path))]
    for _ in range(2):
        ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        assert ran.stdout == "10.0 0\n"
    assert [path.name for path in tmp_path.rglob("*") if path.suffix in (".nbi", ".nbc")] == []
    assert list(tmp_path.glob("ecs_fluid-*")) == []


def test_a_program_runs_on_when_its_compiled_code_is_damaged(tmp_path: Path) -> None:
    module, cache = program(tmp_path), tmp_path / "cache"
    environment = {"ECS_FLUID_CACHE_DIR": str(cache), "NUMBA_CACHE_DIR": ""}

    def said() -> str:
        done = programs.run(module, folder=tmp_path, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert said() == "10.0 0\n"
    assert said() == "10.0 1\n"
    for ending in ("nbi", "nbc"):
        for path in cache.rglob(f"*.{ending}"):
            path.write_bytes(path.read_bytes()[:100])
        assert said() == "10.0 0\n"
    assert said() == "10.0 1\n"
