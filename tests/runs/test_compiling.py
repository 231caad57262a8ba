"""Kernels that have to be compiled are told by name, before that."""

from __future__ import annotations

from typing import Any

import numba

from ecs_fluid.api.progress import compiling
from ecs_fluid.runs.compiling import before_compiling


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


def test_progress_counts_them() -> None:
    first, second = kernels()
    said: list[str] = []
    with compiling(said.append):
        first(3.0)
        second(3.0)
    assert said == [f"compiling kernels, once per machine: {text}" for text in ("1, first", "2, second")]
