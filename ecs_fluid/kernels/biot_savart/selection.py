"""The functions of all regularisations, each chosen by its code while a compiled kernel runs.

Where the code is a constant, the choice is made when the kernel is compiled. The choice ends in the last
record; so whoever takes a code from outside asks ``record`` or ``check`` first, which know no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import njit

from ecs_fluid.kernels.biot_savart.regularisation import RECORDS
from ecs_fluid.kernels.compiled.vectors import INLINE

_COUNT = len(RECORDS)
_UNKNOWN = "regularisation: no blob has this code; known are " + ", ".join(
    f"{code} ({record.name})" for code, record in enumerate(RECORDS)
)


@njit(**INLINE)
def check(code: int) -> None:
    """Raises a ValueError for a code that no regularisation has."""
    if code < 0 or code >= _COUNT:
        raise ValueError(_UNKNOWN)


def by_code(functions: Sequence[Any], arguments: str, options: dict[str, Any] = INLINE) -> Any:
    """The compiled function (code, *arguments) that calls ``functions[code]`` (*arguments).

    Loops with ``wide_vectors`` need other options than ``INLINE``, which what is called would inherit.
    """
    last = len(functions) - 1
    tests = [f"    if code == {code}:\n        return f{code}({arguments})\n" for code in range(last)]
    source = f"def chosen(code, {arguments}):\n{''.join(tests)}    return f{last}({arguments})\n"
    # Written out, for a chain of closures would be compiled link by link.
    space = {f"f{code}": function for code, function in enumerate(functions)}
    exec(source, space)
    return njit(**options)(space["chosen"])


core_shift = by_code([record.core_shift for record in RECORDS], "s2")
core_constant = by_code([record.core_constant for record in RECORDS], "s2")
velocity_factor = by_code([record.velocity_factor for record in RECORDS], "d, s2, k")
gradient_factors = by_code([record.gradient_factors for record in RECORDS], "d, s2, k")
potential_factors = by_code([record.potential_factors for record in RECORDS], "d, s2, k")
