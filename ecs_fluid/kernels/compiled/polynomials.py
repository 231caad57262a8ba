"""Polynomials and the exponential function for loops that must vectorise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled.wide_vectors import INLINE, two_to_the


def polynomial(name: str, coefficients: Iterable[float]) -> Any:
    """A compiled function of x: the polynomial of these coefficients, highest power first, in x's precision.

    No other compiled function may have its ``name``.
    """
    first, *others = (f"real({number!r})" for number in coefficients)
    # Horner's rule written out: a loop here would keep the loop around it from being vectorised.
    steps = "".join(f"    y = y * x + {number}\n" for number in others)
    space: dict[str, Any] = {"__name__": __name__}
    exec(f"def {name}(x):\n    real = type(x)\n    y = {first}\n{steps}    return y\n", space)
    return njit(**INLINE)(space[name])


_exponential_series = polynomial("exponential_series", (1.0 / math.factorial(k) for k in range(12, -1, -1)))


@njit(**INLINE)
def exp_minus_half(t: Any) -> Any:
    """exp(-t/2) for t >= 0, 1e-38 where it is smaller than that (nothing here can tell the difference)."""
    real = type(t)
    x = max(real(-0.5) * t, real(-87.0))
    n = np.floor(x * real(1.4426950408889634) + real(0.5))
    # ln 2 in two parts, the first with zeros at its end in both precisions, so that n times it is exact.
    x = (x - n * real(0.693359375)) + n * real(2.1219444005469058e-4)
    return _exponential_series(x) * two_to_the(n)
