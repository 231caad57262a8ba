"""The functions of all regularisations, each chosen by its code while a compiled kernel runs.

Codes of blobs in space and of those in a plane are numbers of two types. So the type chooses, when a kernel
is compiled, among whose functions the code chooses when it runs, and no world compiles those of the other.
Where the code is a constant, all of the choice is made when the kernel is compiled. The choice ends in the
last record; so whoever takes a code from outside asks ``record`` or ``check`` first, which know no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba import types
from numba.extending import overload

from ecs_fluid.kernels.biot_savart.regularisation import KNOWN, RECORDS, record
from ecs_fluid.kernels.compiled.vectors import INLINE

_UNKNOWN = f"regularisation: no blob has this code; {KNOWN}"


def _codes(code: Any) -> list[int]:
    """The codes of this type of numba's."""
    dimension = 2 if code == types.uint8 else 3
    return [number for number, blob in enumerate(RECORDS) if blob.dimension == dimension]


def check(code: int) -> None:
    """Raises a ValueError for a code that no regularisation has."""
    record(code)


@overload(check, jit_options=INLINE)
def _check(code: Any) -> Any:
    known = tuple(_codes(code))

    def compiled(code: Any) -> None:
        if code not in known:
            raise ValueError(_UNKNOWN)

    return compiled


def renamed(function: Any, name: str) -> Any:
    """The function under a name of its own, to be compiled.

    Compiled code that is kept on disk is found by name and types alone: of two functions with one name, what
    one process compiled would answer for the other in the next.
    """
    function.__name__ = function.__qualname__ = name
    return function


def by_code(name: str, functions: Sequence[Any], arguments: str, options: dict[str, Any] = INLINE) -> Any:
    """The function (code, *arguments) that calls ``functions[code]`` (*arguments) in compiled code.

    Its ``name`` has to be that of no other. Of the functions, only those for codes of the caller's type are
    compiled. Loops with ``wide_vectors`` need other options than ``INLINE``, which what is called would
    inherit.
    """

    codes = {2: _codes(types.uint8), 3: _codes(types.int64)}
    head = f"(code, {arguments}):\n"
    source = [f"def {name}{head}    raise NotImplementedError('for compiled code only')\n"]
    # Written out, for a chain of closures would be compiled link by link.
    for dimension, own in codes.items():
        tests = [f"    if code == {code}:\n        return f{code}({arguments})\n" for code in own[:-1]]
        source += [f"def {name}_{dimension}{head}{''.join(tests)}    return f{own[-1]}({arguments})\n"]
    source += [f"def choose{head}    return {name}_2 if code == plane else {name}_3\n"]
    space: dict[str, Any] = {f"f{code}": functions[code] for own in codes.values() for code in own}
    space |= {"__name__": __name__, "plane": types.uint8}
    exec("".join(source), space)
    overload(space[name], jit_options=options)(space["choose"])
    return space[name]


def _of_records(field: str, arguments: str) -> Any:
    return by_code(field, [getattr(blob, field) for blob in RECORDS], arguments)


core_shift = _of_records("core_shift", "s2")
core_constant = _of_records("core_constant", "s2")
velocity_factor = _of_records("velocity_factor", "d, s2, k")
gradient_factors = _of_records("gradient_factors", "d, s2, k")
potential_factors = _of_records("potential_factors", "d, s2, k")
