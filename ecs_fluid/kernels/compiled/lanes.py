"""Explicit SIMD vectors: one target per lane, for loops in which every source acts on a few targets at once.

A compiler vectorises the innermost loop. If that is the loop over sources, the sources must first be copied
side by side, every target needs a final sum across lanes, and lists that do not fill a vector are padded.
With one target per lane, all lanes share each source, which is read in place, and a target adds its sources
in their order, whatever targets the other lanes hold.

`Lanes` supports ``+``, ``-``, ``*`` and ``/`` with vectors of the same type; the functions below exist only
in compiled code. A loop that uses them belongs in a function that begins with ``vectors.wide_vectors()``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, lower_builtin, register_model, type_callable

from ecs_fluid.kernels.compiled import FAST

BYTES = 64
"""Size of the vectors made here, bytes: one register of AVX-512, two of AVX2, four of NEON."""

FLAGS = tuple(sorted(FAST))


class Lanes(types.Type):  # type: ignore[misc]
    """Numba type of a vector of ``count`` numbers of the type ``real``, held in registers."""

    def __init__(self, real: Any, count: int) -> None:
        self.real, self.count = real, count
        super().__init__(name=f"Lanes({real}, {count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        element = ir.FloatType() if kind.real == types.float32 else ir.DoubleType()
        super().__init__(manager, kind, ir.VectorType(element, kind.count))


@intrinsic
def lanes_of(typingctx: Any, array: Any) -> Any:
    """How many numbers of the array's dtype fill a vector: a constant, unlike a quotient of ``itemsize``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.get_constant(types.intp, 8 * BYTES // array.dtype.bitwidth)

    return types.intp(array), codegen


def lanes_type(real: Any) -> Lanes:
    """The type of vectors that fill ``BYTES`` with numbers of the Numba type ``real``."""
    return Lanes(real, 8 * BYTES // real.bitwidth)


def four(real: Any) -> Lanes:
    """The type of vectors of four numbers of the Numba type ``real``, for arrays with rows of four."""
    return Lanes(real, 4)


def _arithmetic(function: Any, name: str) -> None:
    @type_callable(function)
    def typed(context: Any) -> Any:
        def typer(a: Any, b: Any) -> Any:
            return a if isinstance(a, Lanes) and a == b else None

        return typer

    @lower_builtin(function, Lanes, Lanes)
    def lowered(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return getattr(builder, name)(*args, flags=FLAGS)


for _function, _name in (
    (operator.add, "fadd"),
    (operator.iadd, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _arithmetic(_function, _name)


def vector_at(context: Any, builder: Any, kind: Any, array: Any, at: Any, count: int) -> Any:
    """Pointer to ``count`` numbers of an array from the ``at``-th on; for intrinsics."""
    step = cgutils.gep_inbounds(builder, context.make_array(kind)(context, builder, array).data, at)
    return builder.bitcast(step, ir.VectorType(step.type.pointee, count).as_pointer())


def load_and_store(by_row: bool, lanes: Callable[[Any], Lanes] = lanes_type) -> tuple[Any, Any]:
    """(load, store) for vectors of a contiguous array, addressed by the index of their first number.

    With ``by_row`` the array is taken as rows of one vector each, addressed by the index of the row.
    """

    def place(context: Any, builder: Any, kind: Any, array: Any, at: Any, count: int) -> Any:
        if by_row:
            at = builder.mul(at, ir.Constant(at.type, count))
        return vector_at(context, builder, kind, array, at, count)

    @intrinsic
    def load(typingctx: Any, array: Any, at: Any) -> Any:
        """The vector at the index ``at`` of a number or row (not negative)."""
        kind = lanes(array.dtype)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            found = place(context, builder, signature.args[0], args[0], args[1], kind.count)
            return builder.load(found, align=array.dtype.bitwidth // 8)

        return kind(array, types.intp), codegen

    @intrinsic
    def store(typingctx: Any, array: Any, at: Any, value: Any) -> Any:
        """Write the vector ``value`` at the index ``at`` of a number or row."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            found = place(context, builder, signature.args[0], args[0], args[1], value.count)
            builder.store(args[2], found, align=array.dtype.bitwidth // 8)
            return context.get_dummy_value()

        return types.void(array, types.intp, value), codegen

    return load, store


def spreading(lanes: Callable[[Any], Lanes]) -> Any:
    """The function that fills a vector of such a type with one number."""

    @intrinsic
    def spread(typingctx: Any, number: Any) -> Any:
        """``number`` in every lane."""
        kind = lanes(number)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(args[0].type, kind.count)
            nothing, first = ir.Constant(vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
            mask = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
            return builder.shuffle_vector(builder.insert_element(nothing, args[0], first), nothing, mask)

        return kind(number), codegen

    return spread


def _shuffle(builder: Any, a: Any, b: Any, chosen: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(chosen)), chosen)
    return builder.shuffle_vector(a, ir.Constant(a.type, ir.Undefined) if b is None else b, mask)


def _fold_lanes(builder: Any, value: Any, least: int) -> Any:
    """Add the upper half of the lanes to the lower half until ``least`` lanes are left."""
    width = value.type.count
    while width > least:
        width //= 2
        low, high = (_shuffle(builder, value, None, list(range(k, k + width))) for k in (0, width))
        value = builder.fadd(low, high, flags=FLAGS)
    return value


def _concatenated(builder: Any, parts: list[Any]) -> Any:
    """One vector of all parts, concatenated."""
    while len(parts) > 1:
        both = list(range(2 * parts[0].type.count))
        parts = [_shuffle(builder, a, b, both) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _transposed(builder: Any, parts: list[Any], count: int) -> list[Any]:
    """Transpose in blocks: the k-th fours of the four ``parts`` are the rows of a 4 x 4 matrix, and the k-th
    fours of the four vectors returned are its columns. All have ``count`` lanes."""

    def mixed(a: Any, b: Any, chosen: list[int]) -> Any:
        """In every four lanes, the ``chosen`` numbers of that four: 0 to 3 of ``a``, 4 to 7 of ``b``."""
        lanes = [j + c + (count - 4 if c > 3 else 0) for j in range(0, count, 4) for c in chosen]
        return _shuffle(builder, a, b, lanes)

    a, b, c, d = parts
    halves = [(mixed(a, b, chosen), mixed(c, d, chosen)) for chosen in ([0, 4, 1, 5], [2, 6, 3, 7])]
    return [mixed(*two, chosen) for two in halves for chosen in ([0, 1, 4, 5], [2, 3, 6, 7])]


def eight_columns(context: Any, builder: Any, kind: Any, array: Any, starts: list[Any]) -> list[Any]:
    """Vectors of the first, second, ..., eighth numbers of an array from each of ``starts`` on, a start for
    each lane; for intrinsics. Fours are loaded and transposed: single numbers take ten times as long."""
    columns = []
    for low in (0, 4):
        parts = []
        for q in range(4):
            # The q-th of every four starts, side by side.
            places = [builder.add(start, ir.Constant(start.type, low)) for start in starts[q::4]]
            fours = [vector_at(context, builder, kind, array, place, 4) for place in places]
            align = kind.dtype.bitwidth // 8
            parts.append(_concatenated(builder, [builder.load(four, align=align) for four in fours]))
        columns += _transposed(builder, parts, len(starts))
    return columns


@intrinsic
def load_as(typingctx: Any, array: Any, at: Any, number: Any) -> Any:
    """The vector of an array from its ``at``-th number on; whole numbers become numbers of the kind of
    ``number``, which all others are already."""
    kind = lanes_type(number)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = vector_at(context, builder, signature.args[0], args[0], args[1], kind.count)
        found = builder.load(place, align=array.dtype.bitwidth // 8)
        whole = isinstance(array.dtype, types.Integer)
        return builder.sitofp(found, context.get_value_type(kind)) if whole else found

    return kind(array, types.intp, number), codegen


@intrinsic
def gather_fours(typingctx: Any, fours: Any, rows: Any, at: Any) -> Any:
    """As many rows of ``fours`` (n, 4) as fill a vector, side by side: rows[at], rows[at + 1], ..."""
    kind = lanes_type(fours.dtype)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        named = context.make_array(signature.args[1])(context, builder, args[1]).data
        parts = []
        for k in range(kind.count // 4):
            at = builder.add(args[2], ir.Constant(args[2].type, k))
            row = builder.zext(builder.load(cgutils.gep_inbounds(builder, named, at)), at.type)
            first = builder.shl(row, ir.Constant(row.type, 2))
            place = vector_at(context, builder, signature.args[0], args[0], first, 4)
            parts.append(builder.load(place, align=fours.dtype.bitwidth // 8))
        return _concatenated(builder, parts)

    return kind(fours, rows, types.intp), codegen


@intrinsic
def store_columns(typingctx: Any, eights: Any, rows: Any, at: Any, out: Any, to: Any, width: Any) -> Any:
    """Transpose rows of ``eights`` (n, 8) into eight columns of a contiguous array.

    There are as many rows as a vector has lanes: rows[at], rows[at + 1], ... Column c is written from the
    number to + c width of ``out`` on.
    """
    count = lanes_type(eights.dtype).count

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        named = context.make_array(signature.args[1])(context, builder, args[1]).data
        first = []
        for k in range(count):
            at = builder.add(args[2], ir.Constant(args[2].type, k))
            row = builder.load(cgutils.gep_inbounds(builder, named, at))
            first.append(builder.shl(builder.zext(row, at.type), ir.Constant(at.type, 3)))
        for c, column in enumerate(eight_columns(context, builder, signature.args[0], args[0], first)):
            far = builder.mul(args[5], ir.Constant(args[5].type, c))
            place = builder.add(args[4], far)
            pointer = vector_at(context, builder, signature.args[3], args[3], place, count)
            builder.store(column, pointer, align=eights.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(eights, rows, types.intp, out, types.intp, types.intp), codegen


@intrinsic
def repeat_four(typingctx: Any, a: Any) -> Any:
    """Four numbers, repeated to fill a vector."""
    kind = lanes_type(a.real)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _shuffle(builder, args[0], None, [k % 4 for k in range(kind.count)])

    return kind(a), codegen


@intrinsic
def sum_fours(typingctx: Any, a: Any) -> Any:
    """Sum of all fours of a vector, a vector of four; by halves, so the order is fixed."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _fold_lanes(builder, args[0], 4)

    return four(a.real)(a), codegen


@intrinsic
def where_fourth_positive(typingctx: Any, a: Any, value: Any) -> Any:
    """``value`` in every four lanes in which the last number of ``a`` is above zero, else zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        last = _shuffle(builder, args[0], None, [k // 4 * 4 + 3 for k in range(a.count)])
        zero = ir.Constant(args[0].type, [0.0] * a.count)
        return builder.select(builder.fcmp_ordered(">", last, zero, flags=FLAGS), args[1], zero)

    return a(a, value), codegen


load, store = load_and_store(by_row=False)
load_four, store_four = load_and_store(by_row=False, lanes=four)
spread, spread_four = spreading(lanes_type), spreading(four)


@intrinsic
def where_at_most(typingctx: Any, a: Any, limit: Any, value: Any) -> Any:
    """``value`` where a <= limit, else zero."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zero = ir.Constant(args[2].type, [0.0] * a.count)
        return builder.select(builder.fcmp_ordered("<=", args[0], args[1], flags=FLAGS), args[2], zero)

    return value(a, limit, value), codegen


def _append_lanes(builder: Any, context: Any, signature: Any, args: Any, vector: Any) -> None:
    """Write the lanes of ``vector`` (whole numbers) where args[0] < args[1], without gaps, and behind them
    zeros to the end of the vector. The last two of ``args`` are the array and the index to begin at."""
    kind, size = signature.args[-2], vector.type.element.width
    below = builder.fcmp_ordered("<", args[0], args[1], flags=FLAGS)
    # Packed in a register: with LLVM's store of selected lanes, a tick of implicit pressure takes 1.7 times
    # as long on a Zen 4.
    compress = ir.FunctionType(vector.type, [vector.type, below.type, vector.type])
    name = f"llvm.experimental.vector.compress.v{vector.type.count}i{size}"
    function = cgutils.get_or_insert_function(builder.module, compress, name)
    zero = ir.Constant(vector.type, [0] * vector.type.count)
    packed = builder.call(function, [vector, below, zero])
    place = vector_at(context, builder, kind, args[-2], args[-1], vector.type.count)
    builder.store(packed, builder.bitcast(place, vector.type.as_pointer()), align=size // 8)


@intrinsic
def append_below(typingctx: Any, a: Any, limit: Any, value: Any, out: Any, at: Any) -> Any:
    """Write the lanes of ``value`` where a < limit, without gaps, to a contiguous array from its ``at``-th
    number on, and behind them zeros to the end of the vector.

    ``count_below`` returns how many they are. For an array of whole numbers they are converted.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # LLVM fails to fill with a floating zero on processors that have no such instruction.
        vector = ir.VectorType(ir.IntType(out.dtype.bitwidth), a.count)
        convert = builder.fptosi if isinstance(out.dtype, types.Integer) else builder.bitcast
        _append_lanes(builder, context, signature, args, convert(args[2], vector))
        return context.get_dummy_value()

    return types.void(a, limit, value, out, types.intp), codegen


@intrinsic
def append_numbers_below(typingctx: Any, a: Any, limit: Any, first: Any, out: Any, at: Any) -> Any:
    """Like ``append_below``, but write the lanes' numbers, counted from ``first``, as 32-bit integers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.IntType(out.dtype.bitwidth)
        vector, nothing = ir.VectorType(kind, a.count), ir.Constant(ir.IntType(32), 0)
        number = builder.trunc(args[2], kind)
        whole = builder.insert_element(ir.Constant(vector, ir.Undefined), number, nothing)
        whole = _shuffle(builder, whole, None, [0] * a.count)
        _append_lanes(
            builder, context, signature, args, builder.add(whole, ir.Constant(vector, list(range(a.count))))
        )
        return context.get_dummy_value()

    return types.void(a, limit, types.intp, out, types.intp), codegen


@intrinsic
def count_below(typingctx: Any, a: Any, limit: Any, lanes: Any) -> Any:
    """The number of lanes where a < limit among the first ``lanes`` of them (1 or more)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = args[2].type
        some = builder.icmp_signed("<", args[2], ir.Constant(kind, a.count))
        first = builder.not_(builder.shl(ir.Constant(kind, -1), args[2]))
        mask = builder.select(some, first, ir.Constant(kind, -1))
        bits = ir.IntType(a.count)
        ones = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(bits, [bits]), f"llvm.ctpop.i{a.count}"
        )
        below = builder.bitcast(builder.fcmp_ordered("<", *args[:2], flags=FLAGS), bits)
        below = builder.and_(below, builder.trunc(mask, bits))
        return builder.zext(builder.call(ones, [below]), context.get_value_type(types.intp))

    return types.intp(a, limit, types.intp), codegen


def _choice(sign: str, name: str) -> Any:
    @intrinsic
    def choose(typingctx: Any, a: Any, b: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            taken = builder.fcmp_ordered(sign, args[0], args[1], flags=FLAGS)
            return builder.select(taken, args[0], args[1])

        return a(a, b), codegen

    choose.__doc__ = f"The {name} of each pair; of a number and NaN, whichever is ``b``."
    return choose


smaller, larger = _choice("<", "smaller"), _choice(">", "larger")


@intrinsic
def square_root(typingctx: Any, a: Any) -> Any:
    """Square roots, to full precision."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector, real = args[0].type, "f32" if a.real == types.float32 else "f64"
        kind = ir.FunctionType(vector, [vector])
        # Without the flags of fast mathematics: they would allow an estimate.
        root = cgutils.get_or_insert_function(builder.module, kind, f"llvm.sqrt.v{a.count}{real}")
        return builder.call(root, [args[0]])

    return a(a), codegen


@intrinsic
def lane_sum(typingctx: Any, a: Any) -> Any:
    """Sum of all lanes, by halves, so the order is fixed."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.extract_element(_fold_lanes(builder, args[0], 1), ir.Constant(ir.IntType(32), 0))

    return a.real(a), codegen
