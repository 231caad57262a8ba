"""A vector of lanes for compiled code: 16 float32 or 8 float64 numbers that are neighbours in memory.

The loops of the fast multipole method are short sums of products whose operands lie in rows picked by a
table, and no compiler finds the vectors in them. Here the vectors are written down: a row of an array
``(rows, lanes(dtype))`` is loaded, multiplied and stored as a whole. 64 bytes are one vector of AVX-512, two
of AVX2 and four of NEON; nine running sums hide the latency of the multiply-adds.

All functions but ``lanes`` and ``zero_rows`` exist in compiled code only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model
from numpy.typing import NDArray

ROW_BYTES = 64
"""Bytes in a row of lanes."""

_FLAGS = ("reassoc", "contract", "arcp", "nsz", "afn")


class Lanes(types.Type):  # type: ignore[misc]
    """Numba type of a row in registers."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.count = ROW_BYTES * 8 // real.bitwidth
        super().__init__(name=f"Lanes({real})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        element = ir.FloatType() if kind.real == types.float32 else ir.DoubleType()
        super().__init__(manager, kind, ir.VectorType(element, kind.count))


def _pointer(context: Any, builder: Any, kind: Any, array: Any, row: Any, count: int) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    step = cgutils.gep_inbounds(builder, data, builder.mul(row, ir.Constant(row.type, count)))
    return builder.bitcast(step, ir.VectorType(data.type.pointee, count).as_pointer())


@intrinsic
def load(typingctx: Any, array: Any, row: Any) -> Any:
    """Row ``row`` (not negative) of the contiguous ``array (rows, lanes)``."""
    kind = Lanes(array.dtype)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1], kind.count)
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return kind(array, types.intp), codegen


@intrinsic
def store(typingctx: Any, array: Any, row: Any, value: Any) -> Any:
    """array[row] = value."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1], value.count)
        builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), codegen


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any, count: int) -> Any:
    step = cgutils.gep_inbounds(builder, context.make_array(kind)(context, builder, array).data, at)
    return builder.bitcast(step, ir.VectorType(step.type.pointee, count).as_pointer())


@intrinsic
def copy(typingctx: Any, target: Any, i: Any, source: Any, j: Any) -> Any:
    """Copy a row of lanes of a contiguous array from its j-th number on to another, from the i-th on."""
    kind = Lanes(source.dtype)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        align = source.dtype.bitwidth // 8
        given = _place(context, builder, signature.args[2], args[2], args[3], kind.count)
        taken = _place(context, builder, signature.args[0], args[0], args[1], kind.count)
        builder.store(builder.load(given, align=align), taken, align=align)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp), codegen


@intrinsic
def same(typingctx: Any, number: Any, array: Any) -> Any:
    """``number`` in every lane, for an array of that dtype."""
    kind = Lanes(array.dtype)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(args[0].type, kind.count)
        first = builder.insert_element(
            ir.Constant(vector, ir.Undefined), args[0], ir.Constant(ir.IntType(32), 0)
        )
        mask = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
        return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), mask)

    return kind(array.dtype, array), codegen


@intrinsic
def multiply(typingctx: Any, a: Any, b: Any) -> Any:
    """a b."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(args[0], args[1], flags=_FLAGS)

    return a(a, b), codegen


@intrinsic
def multiply_add(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(builder.fmul(args[0], args[1], flags=_FLAGS), args[2], flags=_FLAGS)

    return a(a, b, c), codegen


@intrinsic
def turn(typingctx: Any, rows: Any, numbers: Any, places: Any, factors: Any, grades: Any, first: Any) -> Any:
    """Rows first ... first + 7 of ``rows``: lane i of row e is numbers[places[i] + e] factors[grades[e], i].

    ``numbers`` is contiguous and read as one row. Pieces of 16 bytes are loaded and transposed in registers:
    number by number, this took ten times as long.
    """
    kind = Lanes(rows.dtype)
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
                value = builder.fmul(column, factor, flags=_FLAGS)
                builder.store(value, vector(arrays["rows"], place, kind.count), align=align)
        return context.get_dummy_value()

    return types.void(rows, numbers, places, factors, grades, types.intp), codegen


@intrinsic
def lane_sum(typingctx: Any, a: Any) -> Any:
    """Sum of all lanes, halves first: the order is fixed."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value, width = args[0], a.count
        while width > 1:
            width //= 2
            halves = []
            for start in (0, width):
                mask = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(start, start + width)))
                halves.append(builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), mask))
            value = builder.fadd(halves[0], halves[1], flags=_FLAGS)
        return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

    return a.real(a), codegen


def lanes(dtype: Any) -> int:
    """Numbers of ``dtype`` in a row of lanes."""
    return ROW_BYTES // int(np.dtype(dtype).itemsize)


def zero_rows(rows: int, dtype: Any, groups: int = 1) -> NDArray[Any]:
    """An array ``(rows, groups * lanes)`` of zeros whose rows start on cache lines."""
    width = groups * lanes(dtype)
    raw = np.zeros(rows * width + lanes(dtype), dtype)
    skip = (-raw.ctypes.data // raw.itemsize) % lanes(dtype)
    return raw[skip : skip + rows * width].reshape(rows, width)
