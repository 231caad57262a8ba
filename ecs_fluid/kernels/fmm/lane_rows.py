"""Rows of lanes: vectors (see ``lanes``) that are rows of an array ``(rows, lanes(dtype))``.

The loops of the fast multipole method are short sums of products whose operands lie in rows picked by a
table; compilers do not vectorise them, so here the vectors are explicit. Nine running sums hide the latency
of the multiply-adds.

All functions but ``lanes``, ``zero_rows`` and ``for_threads`` exist in compiled code only.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import FAST_LOOP
from ecs_fluid.kernels.compiled.lanes import (
    BYTES,
    FLAGS,
    eight_columns,
    lanes_type,
    load_and_store,
    vector_at,
)

PART: dict[str, Any] = {**FAST_LOOP, "no_cfunc_wrapper": True, "no_cpython_wrapper": True}
"""Options of functions that only kernels call: what would serve callers in Python is left out, which for
arguments of many arrays is more code than the function itself."""

load, store = load_and_store(by_row=True)


@intrinsic
def copy_row(typingctx: Any, target: Any, i: Any, source: Any, j: Any) -> Any:
    """Copy a row of lanes of a contiguous array from its j-th number on to another, from the i-th on."""
    kind = lanes_type(source.dtype)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        align = source.dtype.bitwidth // 8
        given = vector_at(context, builder, signature.args[2], args[2], args[3], kind.count)
        taken = vector_at(context, builder, signature.args[0], args[0], args[1], kind.count)
        builder.store(builder.load(given, align=align), taken, align=align)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp), codegen


@intrinsic
def gather_transposed(
    typingctx: Any, rows: Any, numbers: Any, places: Any, factors: Any, grades: Any, first: Any
) -> Any:
    """Rows first ... first + 7 of ``rows``: lane i of row e is numbers[places[i] + e] factors[grades[e], i].

    ``numbers`` is contiguous and read as one row.
    """
    kind = lanes_type(rows.dtype)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at, align = args[5], rows.dtype.bitwidth // 8

        def single(k: int, place: Any) -> Any:
            """Number ``place`` of argument k."""
            data = context.make_array(signature.args[k])(context, builder, args[k]).data
            return builder.load(cgutils.gep_inbounds(builder, data, place))

        def lanes_at(k: int, row: Any) -> Any:
            """Pointer to a row of lanes of argument k."""
            place = builder.mul(row, ir.Constant(at.type, kind.count))
            return vector_at(context, builder, signature.args[k], args[k], place, kind.count)

        starts = [builder.add(single(2, ir.Constant(at.type, i)), at) for i in range(kind.count)]
        for e, column in enumerate(eight_columns(context, builder, signature.args[1], args[1], starts)):
            row = builder.add(at, ir.Constant(at.type, e))
            factor = builder.load(lanes_at(3, single(4, row)), align=align)
            builder.store(builder.fmul(column, factor, flags=FLAGS), lanes_at(0, row), align=align)
        return context.get_dummy_value()

    return types.void(rows, numbers, places, factors, grades, types.intp), codegen


def lanes(dtype: Any) -> int:
    """Numbers of ``dtype`` in a row of lanes."""
    return BYTES // int(np.dtype(dtype).itemsize)


def zero_rows(rows: int, dtype: Any, groups: int = 1) -> NDArray[Any]:
    """An array ``(rows, groups * lanes)`` of zeros whose rows start on cache lines."""
    width = groups * lanes(dtype)
    raw = np.zeros(rows * width + lanes(dtype), dtype)
    skip = (-raw.ctypes.data // raw.itemsize) % lanes(dtype)
    return raw[skip : skip + rows * width].reshape(rows, width)


def for_threads(rows: int, dtype: Any, groups: int = 1) -> NDArray[Any]:
    """That many rows for each thread that numba may start: ``(threads, rows, groups * lanes)``."""
    threads = int(numba.config.NUMBA_NUM_THREADS)
    return zero_rows(threads * rows, dtype, groups).reshape(threads, rows, -1)
