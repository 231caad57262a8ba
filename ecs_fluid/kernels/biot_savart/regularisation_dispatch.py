"""The functions of all regularisations, chosen by the type of the code when a kernel is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import types
from numba.extending import overload

from ecs_fluid.kernels.biot_savart.regularisation import KNOWN, RECORDS, SHIPPED, Code, record
from ecs_fluid.kernels.compiled import use_private_cache
from ecs_fluid.kernels.compiled.wide_vectors import INLINE

if RECORDS != SHIPPED:
    # Cached compiled code is found by the code's number, which another user's record may have too, and which
    # this record had before it was edited.
    use_private_cache()

_UNKNOWN = f"regularisation: no blob has this code; {KNOWN}"


def _number(code: Any) -> int:
    """The number of a code, from its numba type; -1 for anything else, which ``check`` refuses."""
    return len(code) - 1 if isinstance(code, types.UniTuple) else -1


def check(code: Code) -> None:
    """Raise ValueError unless ``code`` is the code of a regularisation."""
    record(code)


@overload(check, jit_options=INLINE)
def _check(code: Any) -> Any:
    def passes(code: Any) -> None:
        pass

    def refuses(code: Any) -> None:
        raise ValueError(_UNKNOWN)

    return passes if 0 <= _number(code) < len(RECORDS) else refuses


def renamed(function: Any, name: str) -> Any:
    """The function under a unique name, to be compiled.

    Compiled code in the cache on disk is found only by name and types: with one name for two functions, a
    process could load the code of the wrong one.
    """
    function.__name__ = function.__qualname__ = name
    return function


def by_code(name: str, functions: Sequence[Any], arguments: str, options: dict[str, Any] = INLINE) -> Any:
    """A function (code, *arguments) that calls, in compiled code, the code's own of ``functions``.

    Its ``name`` must be unique. Loops with ``wide_vectors`` need other ``options`` than ``INLINE``, which the
    called functions would inherit.
    """
    head = f"(code{', ' if arguments else ''}{arguments}):\n    return "
    space: dict[str, Any] = {"functions": functions, "_number": _number, "__name__": __name__}
    # The arguments are written out: a function of *arguments would be compiled once more for their tuple.
    sources = [f"def {name}{head}functions[len(code) - 1]({arguments})\n"]
    for number, function in enumerate(functions):
        space[f"f{number}"] = function
        sources.append(f"def {name}_{RECORDS[number].name}{head}f{number}({arguments})\n")
    choices = ", ".join(f"{name}_{blob.name}" for blob in RECORDS)
    sources.append(f"def choose{head}({choices})[_number(code)]\n")
    exec("".join(sources), space)
    overload(space[name], jit_options=options)(space["choose"])
    return space[name]


def _of_records(field: str, arguments: str) -> Any:
    return by_code(field, [getattr(blob, field) for blob in RECORDS], arguments)


core_shift = _of_records("core_shift", "s2")
core_constant = _of_records("core_constant", "s2")
velocity_factor = _of_records("velocity_factor", "d, s2, k")
gradient_factors = _of_records("gradient_factors", "d, s2, k")
potential_factors = _of_records("potential_factors", "d, s2, k")
