"""One compiled function, one machine code: its bits depend neither on its caller nor on what came before.

numba links a copy of every function into each of its callers. The function is optimised by itself, again
within its caller, and once more in the caller's caller; these copies took a fifth of the compile time. Here
a caller sees the body of a function that it calls, so that LLVM may inline it, but what LLVM does not inline
is called where its one machine code lies. The cache stores a function together with all machine code that it
calls, because a process that loads the function may have compiled nothing else.

Some functions are still copied into their callers: those of other packages, those defined within another
function, whose names do not identify them, and a few of ours (`_COPIED`). Each copy is private to its caller.
Otherwise the linker would keep the copy that was loaded first, which in a process that compiles is not the
same one as in a process that loads from the cache.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from llvmlite.binding import Linkage, parse_assembly
from numba.core.cpu import CPUContext
from numba.core.registry import cpu_target

from ecs_fluid.kernels.compiled.numba_shortcuts import LeanLibrary

_OURS = "_ZN9ecs_fluid"
"""How the symbol names of our functions begin."""

_COPIED = ("_3clocals_3e", "7kernels13particle_mesh", "9vorticity9subfilter")
"""Parts of the names of functions that are copied into their callers: those defined within another function,
and sums whose last bits, and so those of worlds, would change if they were not optimised again in each
caller."""


LARGE = 200
"""Functions with more lines of LLVM's text than this are hardly ever inlined, unless they must be."""


class MachineCode(NamedTuple):
    """Machine code of one function."""

    names: tuple[str, ...]  # by which others call it; a generator has two
    code: bytes
    calls: tuple[str, ...]  # names by which it calls other machine code


_machine_code: dict[str, MachineCode] = {}
"""Our machine code in this process, by name."""

_loaded: list[Any] = []
"""Libraries loaded from the cache together with a caller; LLVM's modules refer to them without keeping them
alive."""


class SharedLibrary(LeanLibrary):
    """Compiled code of one function; what it calls is machine code elsewhere, or a private copy."""

    _private: tuple[str, ...] = ()
    _shared_module: Any
    _final_module: Any

    def _finalize_final_module(self) -> None:
        """Make linked copies private to this module; code from the cache contains none."""
        self._private = self._relink(self._final_module, Linkage.linkonce_odr, "internal")
        functions = [f for f in self._final_module.functions if _is_shared(f.name)]
        calls = tuple(f.name for f in functions if f.is_declaration)
        super()._finalize_final_module()
        names = tuple(f.name for f in functions if f.linkage == Linkage.external and not f.is_declaration)
        if names:
            _register(MachineCode(names, self._get_compiled_object(), calls))

    def _get_module_for_linking(self) -> Any:
        """Return the code for callers to link: ours to be inlined or called, the rest to be copied."""
        if self._shared_module is None:
            self._ensure_finalized()
            shared = self._final_module.clone()
            for name in self._relink(shared, Linkage.external, "linkonce_odr"):
                if name in _machine_code:
                    shared.get_function(name).linkage = "available_externally"
            for name in self._private:
                shared.get_function(name).linkage = "linkonce_odr"
            self._shared_module = _without_large_bodies(shared)
        return super()._get_module_for_linking()

    def called(self) -> list[MachineCode]:
        """Our machine code that this function needs, ordered so that each comes after what it calls."""
        needed: dict[tuple[str, ...], MachineCode] = {}

        def visit(names: Iterable[str]) -> None:
            for made in [_machine_code[name] for name in names if name in _machine_code]:
                if made.names not in needed:
                    visit(made.calls)
                    needed[made.names] = made

        visit(function.name for function in self._final_module.functions)
        return list(needed.values())

    def serialize_using_object_code(self) -> Any:
        """Return what goes into the cache: numba's state, and after it our machine code that it needs."""
        state, called = super().serialize_using_object_code(), self.called()
        return (*state, called) if called else state

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, kind, data, *called = state
        for made in called[0] if called else ():
            # The name of a generator's second function has an address, which is another in each process.
            if all(own in _machine_code for own in made.names):
                continue
            _register(made)
            if made.code != data[0]:
                library = codegen.create_library(made.names[0])
                library.enable_object_caching()
                library._set_compiled_object(made.code)
                library._finalize_final_module()
                _loaded.append(library)
        return super()._unserialize(codegen, (name, kind, data))

    @staticmethod
    def _relink(module: Any, old: Linkage, new: str) -> tuple[str, ...]:
        """Change the linkage of all functions defined with linkage ``old`` to ``new``; return their names."""
        defined = [f for f in module.functions if not f.is_declaration and f.linkage == old]
        for function in defined:
            function.linkage = new
        return tuple(function.name for function in defined)


def _without_large_bodies(module: Any) -> Any:
    """Return the module in which our large functions, unless they must be inlined, are only declared.

    No caller would inline them, but the passes over the caller's module would process their bodies. llvmlite
    cannot remove a body, so the module's text is edited.
    """
    text = str(module)
    if text.count("\n") <= LARGE:
        return module
    always_inlined = re.findall(r"^attributes (#\d+) = .*\balwaysinline\b", text, re.M)
    parts = re.split(r"^(?=define |declare |attributes )", text, flags=re.M)
    for i, part in enumerate(parts):
        head = part.partition(" {\n")[0]
        large = head.startswith("define available_externally ") and part.count("\n") > LARGE
        if large and head.rpartition(" ")[2] not in always_inlined:
            parts[i] = head.replace("define available_externally", "declare", 1) + "\n"
    return parse_assembly("".join(parts))


def _is_shared(name: str) -> bool:
    return name.startswith(_OURS) and not any(part in name for part in _COPIED)


def _register(made: MachineCode) -> None:
    _machine_code.update(dict.fromkeys(made.names, made))


def _separate_by_fastmath() -> None:
    """Compile numba's own Python implementations, such as ``x ** 2``, once for each set of `fastmath` flags.

    numba compiles them with the flags of the first caller and would reuse that code for callers with others.
    """
    usual, parts = CPUContext.subtarget, defaultdict[Any, dict[Any, Any]](dict)

    def subtarget(self: Any, **options: Any) -> Any:
        context = usual(self, **options)
        rounding = frozenset(getattr(context.fastmath, "flags", ()))
        context.cached_internal_func = parts[context.codegen(), rounding]
        return context

    CPUContext.subtarget = subtarget


def share_machine_code() -> None:
    """Compile every function from now on as `SharedLibrary`."""
    cpu_target.target_context.codegen()._library_class = SharedLibrary
    _separate_by_fastmath()
