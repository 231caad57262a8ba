"""A function has the same machine code in the process that compiles and in those that load from the cache."""

from __future__ import annotations

from llvmlite.binding import Linkage
from numba import njit

import ecs_fluid  # noqa: F401 - it is what sets how functions are compiled


def test_functions_linked_in_are_private() -> None:
    @njit
    def often(n: int) -> float:
        total = 0.0
        for k in range(n):
            for m in range(n):
                total += (k * m) % 7 / (1.0 + k)
        return total

    @njit
    def caller(n: int) -> float:
        return often(n) + often(n + 1) + often(n + 2)

    assert caller.py_func(5) == caller(5)
    (found,) = caller.overloads.values()
    linkages = {function.linkage for function in found.library.get_defined_functions()}
    assert Linkage.internal in linkages
    assert Linkage.linkonce_odr not in linkages
