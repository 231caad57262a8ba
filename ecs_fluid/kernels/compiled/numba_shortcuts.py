"""Skips work of numba that is not needed here, a third of the time that compiling takes.

* Optimising functions that a module only declares because it calls them: nine of ten of its functions.
* Optimising the wrapper by which Python calls a compiled function by itself; the two are optimised together
  later.
* Three passes over a module, before all others, that are repeated among those.
* Notifying listeners and clocks of every call of LLVM, hundreds for each function.
* The wrapper by which C calls a compiled function.
* The wrapper by which Python calls a compiled function, for our functions that are not cached: only compiled
  code calls those.
* Searching for garbage ten times as often as there is any.
* The part of an error text that names both shapes where an array is assigned to one of another shape.
* Comparing settings of the compiler option by option, some hundred thousand times in a minute.
* Importing SciPy's linear algebra together with numba, a tenth of a second in every process: functions that
  call it check for it themselves, when they are compiled and when they run.

The machine code that remains is the same. Functions of other packages are compiled as before.
"""

from __future__ import annotations

import gc
from functools import cache
from typing import Any

from llvmlite import ir
from llvmlite.binding import ffi
from numba.core import cgutils, event
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary, _parse_refprune_flags
from numba.core.cpu import CPUContext
from numba.core.targetconfig import TargetConfig
from numba.extending import overload
from numba.np import arrayobj, linalg

GARBAGE_THRESHOLD = 10_000
"""While functions are compiled, Python searches for garbage only after this many new objects."""

PYTHON_WRAPPER = "_ZN7cpython"
"""How the names of the wrappers begin by which Python calls compiled functions."""


class LeanLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Compiled code of one function; only functions with a body are optimised for it."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration and not function.name.startswith(PYTHON_WRAPPER):
                passes, builder = self._codegen._function_pass_manager()
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        """Inline what must be inlined, drop reference counts that cancel, then optimise the whole module."""
        builder = self._codegen._pass_builder(opt=0, loop_vectorize=False)
        passes = builder.getModulePassManager()
        passes.add_refprune_pass(_parse_refprune_flags())
        passes.run(self._final_module, builder)
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _CompileListener(event.Listener):  # type: ignore[misc]
    """Notes for each function being compiled, the innermost last, whether its code goes into the cache.

    For as long, garbage is searched for less often, and assignments in our functions get the short error
    text for unequal shapes.
    """

    def __init__(self) -> None:
        self.innermost_last = [True]
        self._usual = gc.get_threshold()
        self._texts = [arrayobj.raise_with_shape_context]

    def on_start(self, happened: Any) -> None:
        if len(self.innermost_last) == 1:
            self._usual = gc.get_threshold()
            gc.set_threshold(GARBAGE_THRESHOLD, *self._usual[1:])
        function = happened.data["dispatcher"]  # or a part of one, of numba's object mode
        self.innermost_last.append(not isinstance(getattr(function, "_cache", None), NullCache))
        module = getattr(getattr(function, "py_func", None), "__module__", None)
        ours = str(module).startswith("ecs_fluid.")
        self._texts.append(_unequal_shapes if ours else self._texts[0])
        arrayobj.raise_with_shape_context = self._texts[-1]

    def on_end(self, happened: Any) -> None:
        if len(self.innermost_last) == 1:
            return  # another listener refused this function's start before this one was notified of it
        self.innermost_last.pop()
        self._texts.pop()
        arrayobj.raise_with_shape_context = self._texts[-1]
        if len(self.innermost_last) == 1:
            gc.set_threshold(*self._usual)


@cache
def _defaults(kind: Any) -> tuple[dict[str, Any], int]:
    """Default values of a class of settings, and its hash, which numba takes from the option names alone."""
    return {name: option.default for name, option in kind.options.items()}, hash(tuple(sorted(kind.options)))


def _values(settings: Any) -> dict[str, Any]:
    return {**_defaults(settings.__class__)[0], **settings._values}


def _are_equal(settings: Any, other: Any) -> Any:
    if not isinstance(other, TargetConfig):
        return NotImplemented
    return settings._values == other._values or _values(settings) == _values(other)


def _unequal_shapes(source: Any, target: Any) -> None:
    """Called by compiled code that assigns a whole array to one of another shape; raises ValueError there."""


@overload(_unequal_shapes)
def _compiled_unequal_shapes(source: Any, target: Any) -> Any:
    def raises(source: Any, target: Any) -> None:
        raise ValueError("cannot assign slice from input of different shape")

    return raises


def _load_without_scipy() -> None:
    """Load numba's `arraymath`, which would import SciPy's linear algebra to find out whether it exists."""
    usual, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    from numba.np import arraymath  # noqa: F401

    linalg.ensure_blas = usual


def skip_needless_work() -> None:
    """Skip the work listed at the head of this file for all functions compiled from now on."""
    _load_without_scipy()
    ffi.lib._lock._cblist.clear()
    for_c = CPUContext.create_cfunc_wrapper
    for_python = CPUContext.create_cpython_wrapper
    listener = _CompileListener()

    def for_c_of_others(self: Any, library: Any, fndesc: Any, *how: Any, **more: Any) -> None:
        # numba's own implementations, such as np.empty, are compiled for our functions, too.
        if not fndesc.modname.startswith(("ecs_fluid.", "numba.")):
            for_c(self, library, fndesc, *how, **more)

    def for_python_where_kept(self: Any, library: Any, fndesc: Any, *how: Any, **more: Any) -> None:
        if listener.innermost_last[-1] or not fndesc.modname.startswith("ecs_fluid."):
            for_python(self, library, fndesc, *how, **more)
        else:
            refuse(self, library, fndesc.llvm_cpython_wrapper_name)

    def refuse(context: Any, library: Any, name: str) -> None:
        """Make a wrapper of a few bytes in its place, which raises TypeError."""
        module, pointer = context.create_module("refusal"), cgutils.voidptr_t
        function = ir.Function(module, ir.FunctionType(pointer, [pointer] * 3), name)
        builder = ir.IRBuilder(function.append_basic_block())
        python = context.get_python_api(builder)
        python.err_set_string(
            "PyExc_TypeError", "a kernel that is not cached is called by compiled code alone"
        )
        builder.ret(python.get_null_object())
        library.add_ir_module(module)

    TargetConfig.__eq__ = _are_equal
    TargetConfig.__hash__ = lambda settings: _defaults(settings.__class__)[1]
    # Set on the class, because numba works with copies of its context, each with its own options.
    CPUContext.create_cfunc_wrapper = for_c_of_others
    CPUContext.create_cpython_wrapper = for_python_where_kept
    event.register("numba:compile", listener)
