"""Time integration of every state that has a rate, by Runge-Kutta methods with two registers.

Orders 1 to 4: Euler, midpoint, Williamson's third-order method (J. Comput. Phys. 35, 1980) and the
five-stage fourth-order method of Carpenter and Kennedy (NASA TM 109112, 1994).
"""

from __future__ import annotations

from typing import NamedTuple


class Stage(NamedTuple):
    """One stage of a two-register method: q = a q + dt f(t + c dt, y), y = y + b q."""

    a: float
    b: float
    c: float
    weight: float
    """weight of this stage's rate in the whole step; the weights of all stages sum to 1"""
    last: bool
    """whether it is the last of its tick"""


SINGLE = Stage(0.0, 1.0, 0.0, 1.0, True)
"""The whole step at once: Euler's method, and the only stage of a tick without an integrating system."""


END = SINGLE._replace(c=1.0)
"""The end of the tick, at which symmetric systems do their second half."""


def _stages(a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...]) -> tuple[Stage, ...]:
    """The stages, each with its weight: b_s + b_(s+1) a_(s+1) + b_(s+2) a_(s+2) a_(s+1) + ..."""
    stages: list[Stage] = []
    for s in range(len(a)):
        carried, weight = 1.0, 0.0
        for r in range(s, len(a)):
            carried *= a[r] if r > s else 1.0
            weight += b[r] * carried
        stages.append(Stage(a[s], b[s], c[s], weight, s == len(a) - 1))
    return tuple(stages)


METHODS = {
    "euler": (SINGLE,),
    "rk2": _stages((0.0, -0.5), (0.5, 1.0), (0.0, 0.5)),
    "rk3": _stages((0.0, -5 / 9, -153 / 128), (1 / 3, 15 / 16, 8 / 15), (0.0, 1 / 3, 3 / 4)),
    "rk4": _stages(
        (
            0.0,
            -567301805773 / 1357537059087,
            -2404267990393 / 2016746695238,
            -3550918686646 / 2091501179385,
            -1275806237668 / 842570457699,
        ),
        (
            1432997174477 / 9575080441755,
            5161836677717 / 13612068292357,
            1720146321549 / 2090206949498,
            3134564353537 / 4481467310338,
            2277821191437 / 14882151754819,
        ),
        (
            0.0,
            1432997174477 / 9575080441755,
            2526269341429 / 6820363962896,
            2006345519317 / 3224310063776,
            2802321613138 / 2924317926251,
        ),
    ),
}
