"""The functions of all regularisations, each chosen by its code while a compiled kernel runs.

Where the code is a constant, the choice is made when the kernel is compiled. The choice ends in the last
record; so whoever takes a code from outside asks ``record`` or ``check`` first, which know no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import njit

from ecs_fluid.kernels.biot_savart.regularisation import KNOWN, RECORDS
from ecs_fluid.kernels.compiled.vectors import INLINE

_COUNT = len(RECORDS)
_UNKNOWN = f"regularisation: no blob has this code; {KNOWN}"


@njit(**INLINE)
def check(code: int) -> None:
    """Raises a ValueError for a code that no regularisation has."""
    if code < 0 or code >= _COUNT:
        raise ValueError(_UNKNOWN)


def renamed(function: Any, name: str) -> Any:
    """The function under a name of its own, to be compiled.

    Compiled code that is kept on disk is found by name and types alone: of two functions with one name, what
    one process compiled would answer for the other in the next.
    """
    function.__name__ = function.__qualname__ = name
    return function


def by_code(
    name: str, functions: Sequence[Any], arguments: str, options: dict[str, Any] = INLINE, dimension: int = 0
) -> Any:
    """The compiled function (code, *arguments) that calls ``functions[code]`` (*arguments).

    Its ``name`` has to be that of no other compiled function. With a ``dimension``, who calls it has no codes
    of others.

    Loops with ``wide_vectors`` need other options than ``INLINE``, which what is called would inherit.
    """
    codes = [code for code, blob in enumerate(RECORDS) if dimension in (0, blob.dimension)]
    tests = [f"    if code == {code}:\n        return f{code}({arguments})\n" for code in codes[:-1]]
    source = f"def {name}(code, {arguments}):\n{''.join(tests)}    return f{codes[-1]}({arguments})\n"
    # Written out, for a chain of closures would be compiled link by link.
    space: dict[str, Any] = {f"f{code}": functions[code] for code in codes}
    space["__name__"] = __name__
    exec(source, space)
    return njit(**options)(space[name])


def _of_records(field: str, arguments: str, dimension: int = 0) -> Any:
    name = f"space_{field}" if dimension else field
    return by_code(name, [getattr(blob, field) for blob in RECORDS], arguments, dimension=dimension)


core_shift = _of_records("core_shift", "s2")
core_constant = _of_records("core_constant", "s2")
velocity_factor = _of_records("velocity_factor", "d, s2, k")
gradient_factors = _of_records("gradient_factors", "d, s2, k")
potential_factors = _of_records("potential_factors", "d, s2, k")

# For loops that choose at each pair, and are for space alone.
space_core_shift = _of_records("core_shift", "s2", 3)
space_core_constant = _of_records("core_constant", "s2", 3)
space_velocity_factor = _of_records("velocity_factor", "d, s2, k", 3)
space_gradient_factors = _of_records("gradient_factors", "d, s2, k", 3)
