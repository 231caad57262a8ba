"""What numba makes of every function and nobody here uses is left out, which takes a third of the time.

* Optimising what a function calls and is only declared beside it: nine of ten functions of a module.
* The function by which C calls a compiled one.
* Machine code of what compiled functions alone call, and the function by which Python would call it: all of
  ours whose code is not kept in the cache, and the closures of which numba makes its own functions. Their
  callers hold copies of them.
* Searching for garbage ten times as often as there is any.
* The text that tells both shapes where an array is assigned to one of another shape, and not only that.
* Comparing settings of the compiler option by option, some hundred thousand times in a minute.
* SciPy's linear algebra where numba is loaded, a tenth of a second in every process: functions that call it
  ask for it themselves, when they are compiled and when they run.

Machine code of what remains is the same. Functions of other packages are compiled as ever.
"""

from __future__ import annotations

import gc
from functools import cache
from typing import Any

from llvmlite import ir
from numba import _dynfunc
from numba.core import cgutils, event
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.cpu import CPUContext
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target
from numba.core.targetconfig import TargetConfig
from numba.extending import overload
from numba.np import arrayobj, linalg

OBJECTS = 10_000
"""So many new objects of Python there are before garbage is searched for while functions are compiled."""


class _Work(event.Listener):  # type: ignore[misc]
    """What is known of the functions in work, the innermost last."""

    def __init__(self) -> None:
        self.called_by_compiled = [False]
        """Whether nobody but compiled code calls it"""
        self._usual = gc.get_threshold()
        self._texts = [arrayobj.raise_with_shape_context]

    def on_start(self, happened: Any) -> None:
        if len(self._texts) == 1:
            self._usual = gc.get_threshold()
            gc.set_threshold(OBJECTS, *self._usual[1:])
        function = happened.data["dispatcher"]  # or a part of one, of numba's object mode
        source: Any = getattr(function, "py_func", None)
        module = str(getattr(source, "__module__", None))
        ours = module.startswith("ecs_fluid.")
        closure = module.startswith("numba.") and "<locals>" in source.__qualname__
        kept = not isinstance(getattr(function, "_cache", None), NullCache)
        self.called_by_compiled.append((ours or closure) and not kept)
        self._texts.append(_unequal_shapes if ours else self._texts[0])
        arrayobj.raise_with_shape_context = self._texts[-1]

    def on_end(self, happened: Any) -> None:
        self.called_by_compiled.pop()
        self._texts.pop()
        arrayobj.raise_with_shape_context = self._texts[-1]
        if len(self._texts) == 1:
            gc.set_threshold(*self._usual)


_WORK = _Work()


class LeanLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Compiled code of one function, for the making of which only what has a body is optimised."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.called_by_compiled = _WORK.called_by_compiled[-1]

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration:
                passes, builder = self._codegen._function_pass_manager()
                passes.run(function, builder)

    def _finalize_final_module(self) -> None:
        if self.called_by_compiled:
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True
            return
        super()._finalize_final_module()
        for variable in self._final_module.global_variables:
            # Constants of the functions whose copies are in here, as numba finds them when it loads a kernel.
            if variable.name.startswith("_ZN08NumbaEnv") and (found := lookup_environment(variable.name)):
                self._codegen.set_env(variable.name, found)


@cache
def _defaults(kind: Any) -> tuple[dict[str, Any], int]:
    """What options are where nobody sets them, and the hash, which numba takes of their names alone."""
    return {name: option.default for name, option in kind.options.items()}, hash(tuple(sorted(kind.options)))


def _values(settings: Any) -> dict[str, Any]:
    return {**_defaults(settings.__class__)[0], **settings._values}


def _are_equal(settings: Any, other: Any) -> Any:
    if not isinstance(other, TargetConfig):
        return NotImplemented
    return settings._values == other._values or _values(settings) == _values(other)


def _unequal_shapes(source: Any, target: Any) -> None:
    """What assigning a whole array calls where shapes differ."""


@overload(_unequal_shapes)
def _compiled_unequal_shapes(source: Any, target: Any) -> Any:
    def raises(source: Any, target: Any) -> None:
        raise ValueError("cannot assign slice from input of different shape")

    return raises


@cache
def _refusal(codegen: Any) -> tuple[Any, int]:
    """What stands for functions without machine code where Python calls them: TypeError; and its address."""
    _WORK.called_by_compiled.append(False)
    library = codegen.create_library("refusal")
    _WORK.called_by_compiled.pop()
    module, pointer = library.create_ir_module("refusal"), cgutils.voidptr_t
    function = ir.Function(module, ir.FunctionType(pointer, [pointer] * 3), "ecs_fluid_refusal")
    builder = ir.IRBuilder(function.append_basic_block())
    python = cpu_target.target_context.get_python_api(builder)
    python.err_set_string("PyExc_TypeError", "a kernel that is not cached is called by compiled code alone")
    builder.ret(python.get_null_object())
    library.add_ir_module(module)
    return library, library.get_pointer_to_function(function.name)


def _load_without_scipy() -> None:
    """Load the module of numba that would import SciPy's linear algebra to find out whether it is there."""
    usual, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    from numba.np import arraymath  # noqa: F401

    linalg.ensure_blas = usual


def leave_out() -> None:
    """Compile functions from now on without what nobody calls."""
    _load_without_scipy()
    for_c, for_python = CPUContext.create_cfunc_wrapper, CPUContext.create_cpython_wrapper
    executable = CPUContext.get_executable

    def for_c_of_others(self: Any, library: Any, fndesc: Any, *how: Any, **more: Any) -> None:
        # What numba itself is written in, as np.empty, is made for callers of ours, too.
        if not fndesc.modname.startswith(("ecs_fluid.", "numba.")):
            for_c(self, library, fndesc, *how, **more)

    def for_python_that_calls(self: Any, library: Any, fndesc: Any, *how: Any, **more: Any) -> None:
        if not library.called_by_compiled:
            for_python(self, library, fndesc, *how, **more)

    def executable_or_refusal(self: Any, library: Any, fndesc: Any, env: Any) -> Any:
        if not library.called_by_compiled:
            return executable(self, library, fndesc, env)
        library._ensure_finalized()
        held, address = _refusal(library.codegen)
        name = fndesc.qualname.split(".")[-1]
        return _dynfunc.make_function(fndesc.lookup_module(), name, "", address, env, (library, held))

    TargetConfig.__eq__ = _are_equal
    TargetConfig.__hash__ = lambda settings: _defaults(settings.__class__)[1]
    # Of the class: numba works with copies of its context, each with options of its own.
    CPUContext.create_cfunc_wrapper = for_c_of_others
    CPUContext.create_cpython_wrapper = for_python_that_calls
    CPUContext.get_executable = executable_or_refusal
    event.register("numba:compile", _WORK)
