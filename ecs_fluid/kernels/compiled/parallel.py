"""Loops over pieces of work that are shared out to threads.

``prange`` compiles its loop as a function of its own, with a wrapper, and whatever they call once more in
each. A kernel takes a third of that time by ``for_each``, which compiles the loop's body once and hands it to
numba's own pool of threads. ``prange`` cuts the loop into one part for each thread beforehand, of which the
slowest is waited for; here a thread that has done its part takes from others'. Bits are the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils, compiler, targetconfig
from numba.extending import intrinsic
from numba.np.ufunc.parallel import _launch_threads

_MOST, _LINE = 128, 8
"""Threads of a loop at most, and words of 8 bytes in a cache line."""


def _borrowed(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The argument with arrays that nobody counts references to: counting each slice would take as long as
    short loops do, and stop other threads. The caller keeps them alive."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts = zip(kind, cgutils.unpack_tuple(builder, value), strict=True)
        return context.make_tuple(builder, kind, [_borrowed(context, builder, *part) for part in parts])
    return value


@intrinsic
def for_each(typingctx: Any, body: Any, count: Any, arguments: Any) -> Any:
    """``body(i, *arguments)`` for i = 0 ... count - 1 on numba's threads, each i once; in compiled code only.

    ``body`` is a function under ``njit``, which returns nothing and is compiled by the options of its caller;
    ``arguments`` is a tuple. Neighbouring i go to one thread, but for what others are done sooner and take. A
    RuntimeError if it raised anything.
    """
    arguments = types.Tuple([types.unliteral(one) for one in arguments])
    signature = types.void(types.intp, *arguments)

    def codegen(context: Any, builder: Any, _: Any, values: Any) -> Any:
        library = context.active_code_library
        _launch_threads()  # without which the names below mean nothing; also where compiled code is loaded
        library._reload_init.add(_launch_threads)
        flags = targetconfig.ConfigStack().top().copy()
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        function = body.dispatcher.py_func
        compiled = compiler.compile_internal(
            context.typing_context, context, library, function, signature.args, types.void, flags, {}
        )
        pointer, size = cgutils.voidptr_t, context.get_value_type(types.intp)
        every = types.Tuple([types.intp, types.intp, *arguments])

        # What each thread calls once. It has a part of the pieces, whose data its core has from the loop
        # before; once it is done with them, it takes what others have not begun, so that all end together.
        # The next piece of each part is counted on a cache line of its own.
        kind = ir.FunctionType(
            ir.VoidType(), [pointer.as_pointer(), size.as_pointer(), size.as_pointer(), pointer]
        )
        work = ir.Function(builder.module, kind, builder.module.get_unique_name(function.__name__))
        work.linkage = "internal"
        given, _, _, data = work.args
        blocks = ("begin", "part", "take", "run", "following", "end")
        begin, part, take, run, following, end = (work.append_basic_block(name) for name in blocks)
        inner = ir.IRBuilder(begin)
        failed, counts, first = (inner.load(inner.gep(given, [size(k)])) for k in range(3))
        counts, first = inner.bitcast(counts, size.as_pointer()), inner.ptrtoint(first, size)
        pieces, parts, *shared = cgutils.unpack_tuple(
            inner, inner.load(inner.bitcast(data, context.get_value_type(every).as_pointer()))
        )
        inner.branch(part)
        inner.position_at_end(part)  # those of threads first, first + 1, ... and around
        turn = inner.phi(size)
        whose = inner.urem(inner.add(first, turn), parts)
        behind = inner.udiv(inner.mul(inner.add(whose, size(1)), pieces), parts)
        begun = inner.gep(counts, [inner.mul(whose, size(_LINE))])
        inner.cbranch(inner.icmp_signed("<", inner.load(begun), behind), take, following)
        inner.position_at_end(take)
        i = inner.atomic_rmw("add", begun, size(1), "monotonic")
        inner.cbranch(inner.icmp_signed("<", i, behind), run, following)
        inner.position_at_end(run)
        status, _ = context.call_internal_no_propagate(inner, compiled.fndesc, signature, [i, *shared])
        with cgutils.if_unlikely(inner, status.is_error):
            inner.store(failed.type.pointee(1), failed)
        inner.branch(take)
        inner.position_at_end(following)
        again = inner.add(turn, size(1))
        turn.add_incoming(size(0), begin)
        turn.add_incoming(again, following)
        inner.cbranch(inner.icmp_signed("<", again, parts), part, end)
        inner.position_at_end(end)
        inner.ret_void()

        def stored(value: Any) -> Any:
            return builder.bitcast(cgutils.alloca_once_value(builder, value), pointer)

        def called(name: str, returns: Any, *values: Any) -> Any:
            kind = ir.FunctionType(returns, [value.type for value in values])
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)

        threads = called("get_num_threads", size)
        threads = builder.select(builder.icmp_signed("<", threads, size(_MOST)), threads, size(_MOST))
        counts = cgutils.alloca_once(builder, size, size(_MOST * _LINE))
        with cgutils.for_range(builder, threads) as loop:
            start = builder.udiv(builder.mul(loop.index, values[1]), threads)
            builder.store(start, builder.gep(counts, [builder.mul(loop.index, size(_LINE))]))
        failure, counts = stored(cgutils.int8_t(0)), builder.bitcast(counts, pointer)
        rest = cgutils.unpack_tuple(builder, _borrowed(context, builder, arguments, values[2]))
        called(
            "numba_parallel_for",
            ir.VoidType(),
            builder.bitcast(work, pointer),
            stored(cgutils.pack_array(builder, [failure, counts, pointer(None)])),
            stored(threads),
            stored(cgutils.pack_array(builder, [size(0), size(0), size(1)])),  # `first` is moved on
            stored(context.make_tuple(builder, every, [values[1], threads, *rest])),
            size(0),
            size(3),
            threads,
        )
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, builder.load(failure))):
            context.call_conv.return_user_exc(builder, RuntimeError, ("a loop on several threads failed",))
        return context.get_dummy_value()

    return types.void(body, types.intp, arguments), codegen


@intrinsic
def add_at(typingctx: Any, numbers: Any, i: Any, amount: Any) -> Any:
    """Add ``amount`` to ``numbers[i]``, of int64, as one step for all threads; what was there before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = cgutils.gep_inbounds(builder, array.data, args[1])
        return builder.atomic_rmw("add", place, args[2], "monotonic")

    return types.int64(numbers, types.intp, types.int64), codegen


def parallel(count: str = "CHUNKS", **options: Any) -> Callable[[Callable[..., None]], Any]:
    """Decorates a function (i, *arguments): (*arguments) calls it for i = 0 ... count - 1 on all threads.

    ``count`` is an expression in the arguments; ``options`` are those of ``njit``. Compiled code is kept.
    """

    def decorate(body: Callable[..., None]) -> Any:
        code, name = body.__code__, body.__name__
        names = ", ".join(list(inspect.signature(body).parameters)[1:])
        space = {**body.__globals__, "_for_each": for_each, "_body": njit(body)}
        # Compiled code is kept by the place of its source, which is the body's.
        lines = "\n" * (code.co_firstlineno - 1)
        source = f"{lines}def {name}({names}): _for_each(_body, {count}, ({names},))"
        exec(compile(source, code.co_filename, "exec"), space)
        launch: Any = space[name]
        launch.__qualname__, launch.__doc__ = body.__qualname__, body.__doc__
        body.__qualname__ += ".piece"
        return njit(cache=True, **options)(launch)

    return decorate
