"""One compiled function, one machine code: its bits depend neither on its caller nor on what came before.

numba optimises a function that another one calls twice, by itself and again within its caller, into which it
is linked; and once more in the caller's caller. Here callers are shown what they call so that they can take
it into themselves, and what they do not take in is called where it lies. Copies were a fifth of the time that
compiling takes. Machine code that a function calls is kept in the cache with it: a process that loads it may
have compiled nothing else.

Of functions that are not ours, or that are made within another function, whose names do not tell which one it
is, and of a few of ours (`_COPIED`) callers have copies as ever. They are private to the caller: the linker
would else keep whichever was loaded first, and that is another one in the process that compiles than in those
that load from the cache.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from llvmlite.binding import Linkage, parse_assembly
from numba.core.cpu import CPUContext
from numba.core.registry import cpu_target

from ecs_fluid.kernels.compiled.shortcuts import LeanLibrary

_OURS = "_ZN9ecs_fluid"
"""How names of our machine code begin."""

_COPIED = ("_3clocals_3e", "7kernels13particle_mesh", "9vorticity9subfilter")
"""In names of what callers have copies of: what is made within another function, and sums whose last bits,
and those of worlds, would be others if they were not optimised once more in their callers."""


LARGE = 200
"""Functions of more lines of LLVM's text are hardly ever taken into their callers, unless they must be."""


class MachineCode(NamedTuple):
    """What one function became."""

    names: tuple[str, ...]  # by which others call it
    code: bytes
    calls: tuple[str, ...]  # names of others' machine code


_made: dict[str, MachineCode] = {}
"""Our machine code in this process, by name."""

_loaded: list[Any] = []
"""Libraries of machine code that came with a caller: LLVM's modules point at them and do not hold them."""


class OwnCopies(LeanLibrary):
    """Compiled code of one function; what it calls is machine code elsewhere, or a copy that is private."""

    _private: tuple[str, ...] = ()
    _shared_module: Any
    _final_module: Any

    def _finalize_final_module(self) -> None:
        """Hide the functions linked in; code that comes from the cache holds none to hide."""
        self._private = self._relink(self._final_module, Linkage.linkonce_odr, "internal")
        functions = [f for f in self._final_module.functions if _is_shared(f.name)]
        calls = tuple(_made[f.name].names[0] for f in functions if f.is_declaration)
        super()._finalize_final_module()
        names = tuple(f.name for f in functions if f.linkage == Linkage.external and not f.is_declaration)
        if names:
            _register(MachineCode(names, self._get_compiled_object(), calls))

    def _get_module_for_linking(self) -> Any:
        """Return the code that callers link in: ours to be taken in or called, the rest to be copied."""
        if self._shared_module is None:
            self._ensure_finalized()
            shared = self._final_module.clone()
            for name in self._relink(shared, Linkage.external, "linkonce_odr"):
                if name in _made:
                    shared.get_function(name).linkage = "available_externally"
            for name in self._private:
                shared.get_function(name).linkage = "linkonce_odr"
            self._shared_module = _without_large_bodies(shared)
        return super()._get_module_for_linking()

    def called(self) -> list[MachineCode]:
        """Our machine code that this one needs, each after what it calls itself."""
        found: dict[str, MachineCode] = {}

        def look(names: Iterable[str]) -> None:
            for made in [_made[name] for name in names if name in _made]:
                if made.names[0] not in found:
                    look(made.calls)
                    found[made.names[0]] = made

        look(function.name for function in self._final_module.functions)
        return list(found.values())

    def serialize_using_object_code(self) -> Any:
        """Return what goes into the cache, with the machine code of ours that it needs."""
        state, called = super().serialize_using_object_code(), self.called()
        return (*state, called) if called else state

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, kind, data, *called = state
        for made in called[0] if called else ():
            new = made.names[0] not in _made
            _register(made)
            if new and made.code != data[0]:
                library = codegen.create_library(made.names[0])
                library.enable_object_caching()
                library._set_compiled_object(made.code)
                library._finalize_final_module()
                _loaded.append(library)
        return super()._unserialize(codegen, (name, kind, data))

    @staticmethod
    def _relink(module: Any, old: Linkage, new: str) -> tuple[str, ...]:
        """Give the functions defined with one linkage another; return their names."""
        defined = [f for f in module.functions if not f.is_declaration and f.linkage == old]
        for function in defined:
            function.linkage = new
        return tuple(function.name for function in defined)


def _without_large_bodies(module: Any) -> Any:
    """Return the module with those of our functions that no caller would take in declared alone.

    Passes over the caller's module would go over them, too. llvmlite cannot take a body away, the text can.
    """
    text = str(module)
    if text.count("\n") <= LARGE:
        return module
    taken_in = re.findall(r"^attributes (#\d+) = .*\balwaysinline\b", text, re.M)
    parts = re.split(r"^(?=define |declare |attributes )", text, flags=re.M)
    for i, part in enumerate(parts):
        head = part.partition(" {\n")[0]
        large = head.startswith("define available_externally ") and part.count("\n") > LARGE
        if large and head.rpartition(" ")[2] not in taken_in:
            parts[i] = head.replace("define available_externally", "declare", 1) + "\n"
    return parse_assembly("".join(parts))


def _is_shared(name: str) -> bool:
    return name.startswith(_OURS) and not any(part in name for part in _COPIED)


def _register(made: MachineCode) -> None:
    _made.update(dict.fromkeys(made.names, made))


def _parts_by_rounding() -> None:
    """Keep apart what numba itself writes in Python and compiles for whoever needs it, as ``x ** 2``.

    It rounds as its first caller may (`fastmath`), and numba would give the same to all others.
    """
    usual, parts = CPUContext.subtarget, defaultdict[Any, dict[Any, Any]](dict)

    def subtarget(self: Any, **options: Any) -> Any:
        context = usual(self, **options)
        rounding = frozenset(getattr(context.fastmath, "flags", ()))
        context.cached_internal_func = parts[context.codegen(), rounding]
        return context

    CPUContext.subtarget = subtarget


def own_copies() -> None:
    """Compile everything from now on this way."""
    cpu_target.target_context.codegen()._library_class = OwnCopies
    _parts_by_rounding()
