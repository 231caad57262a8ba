"""One compiled function, one machine code: the bits of a run do not depend on what was compiled before it.

numba optimises a function that another one calls twice: by itself, and again within its caller, into which
it is linked. Both copies carry one name, the linker keeps whichever was loaded first, and that is another one
in the process that compiles than in those that load from the cache. The two are optimised apart, so sums may
differ in the last bit. Here a caller's copy is private to the caller: it is never taken for another.
"""

from __future__ import annotations

from typing import Any

from llvmlite.binding import Linkage
from numba.core.registry import cpu_target

from ecs_fluid.kernels.compiled.shortcuts import LeanLibrary


class OwnCopies(LeanLibrary):
    """Compiled code of one function, in which functions linked in from others are private."""

    _private: tuple[str, ...] = ()
    _shared_module: Any

    def _finalize_final_module(self) -> None:
        """Hide the functions linked in; code that comes from the cache holds none to hide."""
        self._private = self._relink(self._final_module, Linkage.linkonce_odr, "internal")
        super()._finalize_final_module()

    def _get_module_for_linking(self) -> Any:
        """Return the code that callers link in, where every function may be merged with its like."""
        if self._shared_module is None and self._private:
            self._ensure_finalized()
            shared = self._final_module.clone()
            self._relink(shared, Linkage.external, "linkonce_odr")
            for name in self._private:
                shared.get_function(name).linkage = "linkonce_odr"
            self._shared_module = shared
        return super()._get_module_for_linking()

    @staticmethod
    def _relink(module: Any, old: Linkage, new: str) -> tuple[str, ...]:
        """Give the functions defined with one linkage another; return their names."""
        defined = [f for f in module.functions if not f.is_declaration and f.linkage == old]
        for function in defined:
            function.linkage = new
        return tuple(function.name for function in defined)


def own_copies() -> None:
    """Compile everything from now on this way."""
    cpu_target.target_context.codegen()._library_class = OwnCopies
