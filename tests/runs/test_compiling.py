"""Kernels that have to be compiled are told by name, before that."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numba
import pytest

from ecs_fluid.api.progress import compiling
from ecs_fluid.errors import StorageError
from ecs_fluid.kernels.compiled import cache_folder, writable_or_private
from ecs_fluid.runs.compiling import before_compiling, check_cache


def kernels() -> tuple[Any, Any]:
    """Two that have never run; the first calls a third, which is compiled with it."""

    @numba.njit
    def third(x: float) -> float:
        return x / 3

    @numba.njit
    def _first(x: float) -> float:
        return third(x)

    @numba.njit
    def second(x: float) -> float:
        return x / 2

    return _first, second


def test_each_is_told_once_and_what_it_calls_is_not() -> None:
    first, second = kernels()
    told: list[str] = []
    with before_compiling(told.append):
        assert [first(3.0), first(6.0), second(3.0)] == [1.0, 2.0, 1.5]
    first(3)  # for other arguments it is compiled anew, but nobody asks any more
    assert told == ["first", "second"]


def test_they_are_told_before_they_are_compiled() -> None:
    first, _ = kernels()
    told: list[int] = []
    with before_compiling(lambda name: told.append(len(first.overloads))):
        first(3.0)
    assert told == [0] and len(first.overloads) == 1


def test_a_folder_where_none_can_be_kept_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a home that cannot be written to, every run compiled them and said that this happens once."""
    first, second = kernels()
    (tmp_path / "file").touch()
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("ECS_FLUID_CACHE_DIR", str(tmp_path / "file"))
    said: list[str] = []
    with compiling(said.append):
        first(3.0)
        second(3.0)
    assert said[0].startswith("cannot keep compiled kernels in ")
    assert said[1:] == [f"compiling kernels, in every run: {text}" for text in ("1, first", "2, second")]


def test_without_a_home_none_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first kernel was a traceback; Python leaves "~" in paths of a user who has no home."""
    monkeypatch.chdir(tmp_path)
    for variable in ("NUMBA_CACHE_DIR", "ECS_FLUID_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(StorageError, match=r"cannot keep compiled kernels in ~.*; set ECS_FLUID_CACHE_DIR"):
        check_cache()
    folder = writable_or_private(cache_folder())
    assert Path(folder).is_absolute() and not list(tmp_path.iterdir())


def test_progress_counts_them() -> None:
    first, second = kernels()
    said: list[str] = []
    with compiling(said.append):
        first(3.0)
        second(3.0)
    assert said == [f"compiling kernels, once per machine: {text}" for text in ("1, first", "2, second")]
