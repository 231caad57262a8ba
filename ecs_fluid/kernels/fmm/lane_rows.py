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
from ecs_fluid.kernels.compiled.lanes import BYTES, FLAGS, lanes_type, load_and_store, vector_at

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

    ``numbers`` is contiguous and read as one row. Pieces of 16 bytes are loaded and transposed in registers:
    number by number, this took ten times as long.
    """
    kind = lanes_type(rows.dtype)
    across = 128 // rows.dtype.bitwidth  # numbers of a piece

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given = dict(zip(("rows", "numbers", "places", "factors", "grades"), signature.args, strict=False))
        arrays = {
            name: context.make_array(of)(context, builder, value).data
            for (name, of), value in zip(given.items(), args, strict=False)
        }
        element, align, at = arrays["rows"].type.pointee, rows.dtype.bitwidth // 8, args[5]

        def vector(data: Any, place: Any, count: int) -> Any:
            step = cgutils.gep_inbounds(builder, data, place)
            return builder.bitcast(step, ir.VectorType(element, count).as_pointer())

        def picked(a: Any, b: Any, places: list[int]) -> Any:
            mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
            return builder.shuffle_vector(a, b, mask)

        def interleaved(a: Any, b: Any, size: int, half: int) -> Any:
            """Groups of ``size`` of a and b in turn, from one half of every piece."""
            places = []
            for start in range(half * across // 2, kind.count, across):
                for low in range(start, start + across // 2, size):
                    places += [low + i for i in range(size)] + [kind.count + low + i for i in range(size)]
            return picked(a, b, places)

        starts = [
            builder.add(
                builder.load(cgutils.gep_inbounds(builder, arrays["places"], ir.Constant(at.type, i))), at
            )
            for i in range(kind.count)
        ]
        for low in range(0, 8, across):
            columns = []
            for i in range(across):
                pieces = []
                for j in range(i, kind.count, across):
                    place = builder.add(starts[j], ir.Constant(at.type, low))
                    pieces.append(builder.load(vector(arrays["numbers"], place, across), align=align))
                while len(pieces) > 1:
                    wide = list(range(2 * pieces[0].type.count))
                    pieces = [picked(a, b, wide) for a, b in zip(pieces[::2], pieces[1::2], strict=True)]
                columns.append(pieces[0])
            if across == 4:
                a, b, c, d = columns
                pairs = [(interleaved(a, b, 1, half), interleaved(c, d, 1, half)) for half in (0, 1)]
                columns = [interleaved(x, y, 2, half) for x, y in pairs for half in (0, 1)]
            else:
                columns = [interleaved(columns[0], columns[1], 1, half) for half in (0, 1)]
            for i, column in enumerate(columns):
                row = builder.add(at, ir.Constant(at.type, low + i))
                grade = builder.load(cgutils.gep_inbounds(builder, arrays["grades"], row))
                place = builder.mul(grade, ir.Constant(at.type, kind.count))
                factor = builder.load(vector(arrays["factors"], place, kind.count), align=align)
                place = builder.mul(row, ir.Constant(at.type, kind.count))
                value = builder.fmul(column, factor, flags=FLAGS)
                builder.store(value, vector(arrays["rows"], place, kind.count), align=align)
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
