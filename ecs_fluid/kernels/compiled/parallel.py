"""Loops over pieces of work that are divided among threads.

``prange`` compiles its loop as a separate function with a wrapper, and compiles every function that the loop
calls once more in each. ``for_each`` compiles the loop's body once and passes it to numba's own pool of
threads, so that a kernel compiles in a third of that time. Both divide the pieces in the same way and give
the same bits.
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

from ecs_fluid.kernels.compiled import CHUNKS


def _without_references(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The argument, its arrays without reference counts; the caller keeps them alive.

    Counting references for each slice would take as long as a short loop, and make other threads wait.
    """
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts = zip(kind, cgutils.unpack_tuple(builder, value), strict=True)
        return context.make_tuple(
            builder, kind, [_without_references(context, builder, *part) for part in parts]
        )
    return value


@intrinsic
def for_each(typingctx: Any, body: Any, count: Any, arguments: Any) -> Any:
    """Call ``body(i, *arguments)`` once for each i = 0 ... count - 1 on numba's threads; in compiled code.

    ``body`` is an ``njit`` function that returns nothing; it is compiled with the options of its caller.
    ``arguments`` is a tuple. Neighbouring i go to one thread. Raises RuntimeError if any call raised.
    """
    arguments = types.Tuple([types.unliteral(one) for one in arguments])
    signature = types.void(types.intp, *arguments)

    def codegen(context: Any, builder: Any, _: Any, values: Any) -> Any:
        library = context.active_code_library
        _launch_threads()  # defines the names called below; needed also where compiled code is loaded
        library._reload_init.add(_launch_threads)
        flags = targetconfig.ConfigStack().top().copy()
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        function = body.dispatcher.py_func
        compiled = compiler.compile_internal(
            context.typing_context, context, library, function, signature.args, types.void, flags, {}
        )
        pointer, size = cgutils.voidptr_t, context.get_value_type(types.intp)

        # What a thread calls. numba has moved its two pointers on by the thread's first i: one starts at 0
        # and moves by bytes, so it is i itself; the other, to the flag of a failure, does not move.
        kind = ir.FunctionType(
            ir.VoidType(), [pointer.as_pointer(), size.as_pointer(), size.as_pointer(), pointer]
        )
        piece = ir.Function(builder.module, kind, builder.module.get_unique_name(function.__name__))
        piece.linkage = "internal"
        moved, counts, _, data = piece.args
        inner = ir.IRBuilder(piece.append_basic_block())
        first = inner.ptrtoint(inner.load(moved), size)
        failed = inner.load(inner.gep(moved, [size(1)]))
        shared = cgutils.unpack_tuple(
            inner, inner.load(inner.bitcast(data, context.get_value_type(arguments).as_pointer()))
        )
        with cgutils.for_range(inner, inner.load(counts)) as loop:
            row = [inner.add(first, loop.index), *shared]
            status, _ = context.call_internal_no_propagate(inner, compiled.fndesc, signature, row)
            with cgutils.if_unlikely(inner, status.is_error):
                inner.store(failed.type.pointee(1), failed)
        inner.ret_void()

        def stored(value: Any) -> Any:
            return builder.bitcast(cgutils.alloca_once_value(builder, value), pointer)

        failure = stored(cgutils.int8_t(0))
        run = ir.FunctionType(ir.VoidType(), [pointer] * 5 + [size] * 3)
        threads = ir.FunctionType(size, [])
        builder.call(
            cgutils.get_or_insert_function(builder.module, run, "numba_parallel_for"),
            [
                builder.bitcast(piece, pointer),
                stored(cgutils.pack_array(builder, [pointer(None), failure])),
                stored(values[1]),
                stored(cgutils.pack_array(builder, [size(1), size(0)])),
                stored(_without_references(context, builder, arguments, values[2])),
                size(0),
                size(2),
                builder.call(cgutils.get_or_insert_function(builder.module, threads, "get_num_threads"), []),
            ],
        )
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, builder.load(failure))):
            context.call_conv.return_user_exc(builder, RuntimeError, ("a loop on several threads failed",))
        return context.get_dummy_value()

    return types.void(body, types.intp, arguments), codegen


@intrinsic
def atomic_add(typingctx: Any, numbers: Any, i: Any, amount: Any) -> Any:
    """Add ``amount`` to ``numbers[i]`` (int64) as one atomic step; returns the value before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = cgutils.gep_inbounds(builder, array.data, args[1])
        return builder.atomic_rmw("add", place, args[2], "monotonic")

    return types.int64(numbers, types.intp, types.int64), codegen


def parallel(count: str = "CHUNKS", **options: Any) -> Callable[[Callable[..., None]], Any]:
    """Decorator of a function (i, *arguments), which is then called as (*arguments).

    The call runs it for i = 0 ... count - 1 on all threads. ``count`` is an expression in the arguments, as
    text; ``options`` are those of ``njit``. Compiled code is cached.
    """

    def decorate(body: Callable[..., None]) -> Any:
        code, name = body.__code__, body.__name__
        names = ", ".join(list(inspect.signature(body).parameters)[1:])
        space = {"CHUNKS": CHUNKS, **body.__globals__, "_for_each": for_each, "_body": njit(body)}
        # The cache identifies compiled code by the place of its source, so this one gets the body's place.
        lines = "\n" * (code.co_firstlineno - 1)
        source = f"{lines}def {name}({names}): _for_each(_body, {count}, ({names},))"
        exec(compile(source, code.co_filename, "exec"), space)
        launch: Any = space[name]
        launch.__qualname__, launch.__doc__ = body.__qualname__, body.__doc__
        body.__qualname__ += ".piece"
        return njit(cache=True, **options)(launch)

    return decorate
