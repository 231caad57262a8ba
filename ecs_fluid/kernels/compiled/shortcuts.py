"""What numba makes of every function and nobody here uses is left out, which takes a fifth of the time.

* Optimising what a function calls and is only declared beside it: nine of ten functions of a module.
* The function by which C calls a compiled one.
* The function by which Python calls a compiled one, where its code is not kept in the cache: of ours, such
  are called by compiled ones alone.

Machine code of what remains is the same. Functions of other packages are compiled as ever.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, event
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.cpu import CPUContext


class LeanLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Compiled code of one function, for the making of which only what has a body is optimised."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration:
                passes, builder = self._codegen._function_pass_manager()
                passes.run(function, builder)


class _Kept(event.Listener):  # type: ignore[misc]
    """Whether the code of the functions in work, the innermost last, goes into the cache."""

    def __init__(self) -> None:
        self.innermost_last = [True]

    def on_start(self, happened: Any) -> None:
        self.innermost_last.append(not isinstance(happened.data["dispatcher"]._cache, NullCache))

    def on_end(self, happened: Any) -> None:
        self.innermost_last.pop()


def leave_out() -> None:
    """Compile functions from now on without what nobody calls."""
    for_c, for_python, kept = CPUContext.create_cfunc_wrapper, CPUContext.create_cpython_wrapper, _Kept()

    def for_c_of_others(self: Any, library: Any, fndesc: Any, *how: Any, **more: Any) -> None:
        # What numba itself is written in, as np.empty, is made for callers of ours, too.
        if not fndesc.modname.startswith(("ecs_fluid.", "numba.")):
            for_c(self, library, fndesc, *how, **more)

    def for_python_where_kept(self: Any, library: Any, fndesc: Any, *how: Any, **more: Any) -> None:
        if kept.innermost_last[-1] or not fndesc.modname.startswith("ecs_fluid."):
            for_python(self, library, fndesc, *how, **more)
        else:
            refuse(self, library, fndesc.llvm_cpython_wrapper_name)

    def refuse(context: Any, library: Any, name: str) -> None:
        """Instead, a few bytes that raise TypeError."""
        module, pointer = context.create_module("refusal"), cgutils.voidptr_t
        function = ir.Function(module, ir.FunctionType(pointer, [pointer] * 3), name)
        builder = ir.IRBuilder(function.append_basic_block())
        python = context.get_python_api(builder)
        python.err_set_string(
            "PyExc_TypeError", "a kernel that is not cached is called by compiled code alone"
        )
        builder.ret(python.get_null_object())
        library.add_ir_module(module)

    # Of the class: numba works with copies of its context, each with options of its own.
    CPUContext.create_cfunc_wrapper = for_c_of_others
    CPUContext.create_cpython_wrapper = for_python_where_kept
    event.register("numba:compile", kept)
