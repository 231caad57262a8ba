"""Kernels have no more functions around them than somebody calls."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from ecs_fluid.kernels.compiled import columns, triples


def wrappers(dispatcher: Any) -> set[str]:
    """Who can call what was compiled: python, C."""
    (found, *_) = dispatcher.overloads.values()
    names = {function.name for function in found.library.get_defined_functions()}
    described = found.fndesc
    ours = {"python": described.llvm_cpython_wrapper_name, "C": described.llvm_cfunc_wrapper_name}
    return {caller for caller, name in ours.items() if name in names}


def test_a_kernel_in_the_cache_is_called_by_python_and_what_it_calls_is_not() -> None:
    assert columns.max_norm(np.array([[3.0, 4.0], [1.0, 0.0]])) == 5.0
    pair = (1.0, 2.0, 3.0)
    with pytest.raises(TypeError, match="called by compiled code alone"):
        triples.dot(pair, pair)
    assert numba.njit(lambda a: triples.dot(a, a))(pair) == 14.0


def test_functions_of_others_are_compiled_as_ever() -> None:
    @numba.njit
    def twice(x: float) -> float:
        return 2.0 * x

    assert twice(1.5) == 3.0
    assert wrappers(twice) == {"python", "C"}

    @numba.cfunc("float64(float64)")
    def thrice(x: float) -> float:
        return 3.0 * x

    assert thrice.ctypes(1.5) == 4.5
