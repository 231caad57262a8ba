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


def by_code(name: str, functions: Sequence[Any], arguments: str, options: dict[str, Any] = INLINE) -> Any:
    """The compiled function (code, *arguments) that calls ``functions[code]`` (*arguments).

    Its ``name`` has to be that of no other compiled function.

    Loops with ``wide_vectors`` need other options than ``INLINE``, which what is called would inherit.
    """
    last = len(functions) - 1
    tests = [f"    if code == {code}:\n        return f{code}({arguments})\n" for code in range(last)]
    source = f"def {name}(code, {arguments}):\n{''.join(tests)}    return f{last}({arguments})\n"
    # Written out, for a chain of closures would be compiled link by link.
    space: dict[str, Any] = {f"f{code}": function for code, function in enumerate(functions)}
    space["__name__"] = __name__
    exec(source, space)
    return njit(**options)(space[name])


core_shift = by_code("core_shift", [record.core_shift for record in RECORDS], "s2")
core_constant = by_code("core_constant", [record.core_constant for record in RECORDS], "s2")
velocity_factor = by_code("velocity_factor", [record.velocity_factor for record in RECORDS], "d, s2, k")
gradient_factors = by_code("gradient_factors", [record.gradient_factors for record in RECORDS], "d, s2, k")
potential_factors = by_code("potential_factors", [record.potential_factors for record in RECORDS], "d, s2, k")
