"""Kernels have no more functions around them than somebody calls."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numba
import numba.extending
import numpy as np
import pytest
from numba.core.compiler import Flags

from ecs_fluid.kernels.compiled import columns, vector3


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
        vector3.dot(pair, pair)
    assert numba.njit(lambda a: vector3.dot(a, a))(pair) == 14.0


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


def test_settings_of_the_compiler_are_equal_where_all_options_are() -> None:
    """Whether an option was set to what it is anyway, or never, does not matter."""
    plain, same, other = Flags(), Flags(), Flags()
    same.boundscheck = plain.boundscheck
    other.boundscheck = not plain.boundscheck
    assert plain == same and hash(plain) == hash(same)
    assert plain != other and len({plain, same, other}) == 2
    assert plain != object()


def test_garbage_is_searched_for_as_often_as_before_once_a_function_is_compiled() -> None:
    usual, during = gc.get_threshold(), []

    def same(x: Any) -> Any:
        return x

    @numba.extending.overload(same)
    def compiled_same(x: Any) -> Any:
        """Asked for by the compiler, at its work."""
        during.append(gc.get_threshold()[0])
        return same

    assert numba.njit(lambda x: same(x))(2.0) == 2.0
    assert set(during) == {10_000} and gc.get_threshold() == usual


def test_arrays_of_unequal_shapes_are_told_of_shortly_by_kernels_and_at_length_by_others() -> None:
    def assign(x: Any, y: Any) -> None:
        x[:] = y

    ours = types.FunctionType(assign.__code__, {"__name__": "ecs_fluid.kernels.made_up"}, "assign")
    for function, told in ((ours, "different shape$"), (assign, "from input of shape ")):
        inner, x = numba.njit(function), np.zeros(3)
        compiled = numba.njit(lambda x, y, inner=inner: inner(x, y))
        compiled(x, np.ones(3))
        assert x.all()
        with pytest.raises(ValueError, match=told):
            compiled(x, np.ones(2))


def test_functions_of_others_compile_in_every_mode_of_numba() -> None:
    """Python amid compiled code, loops alone that are compiled, a generator, a function of no module."""

    @numba.njit
    def in_python(x: Any) -> Any:
        with numba.objmode(y="float64[:]"):
            y = np.fft.fftfreq(len(x))
        return y.sum()

    @numba.jit(forceobj=True, looplift=True)
    def lifted(x: Any) -> Any:
        total, text = 0.0, [str(len(x))]
        for i in range(len(x)):
            total += x[i]
        return total, text

    @numba.njit
    def one_by_one(x: Any) -> Any:
        for i in range(len(x)):
            half = 0.5 * x[i]
            yield half
            yield half + i

    assert list(one_by_one(np.ones(2))) == [0.5, 0.5, 0.5, 1.5]

    names: dict[str, Any] = {}
    exec("def homeless(x):\n    return x + 1\n", names)
    assert in_python(np.ones(4)) == -0.5
    assert lifted(np.ones(4)) == (4.0, ["4"])
    assert numba.njit(names["homeless"])(1) == 2
    assert numba.njit(lambda x: x)(1) == 1  # nothing of the others is left behind


OF_A_NEWER_NUMBA = """
import sys
import numba
numba.version_info = numba.version_info._replace(short=(0, 999))
import numpy as np
from ecs_fluid.kernels.compiled import columns
low, high = columns.bounds(np.array([[1.0, 2.0, 3.0], [0.0, 5.0, 3.0]]))
assert (low.tolist(), high.tolist()) == ([0.0, 2.0, 3.0], [1.0, 5.0, 3.0])
assert not {f"ecs_fluid.kernels.compiled.{name}" for name in ("copies", "shortcuts")} & {*sys.modules}
"""


def test_a_newer_numba_compiles_by_itself(tmp_path: Path) -> None:
    """What its inside looks like is not known, so nothing of it is changed."""
    environment = {**os.environ, "ECS_FLUID_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", OF_A_NEWER_NUMBA], env=environment, check=True, timeout=120)
