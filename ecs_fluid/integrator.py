"""Time integration of every state that has a rate, by Runge-Kutta methods of two registers.

Orders 1 to 4: Euler, midpoint, Williamson's third-order method (J. Comput. Phys. 35, 1980) and the
five-stage fourth-order method of Carpenter and Kennedy (NASA TM 109112, 1994).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ecs_fluid.component import Array, Component


@dataclass(frozen=True)
class Method:
    """Coefficients of a two-register method: stage s does q = a q + dt f, y = y + b q, at time c."""

    a: tuple[float, ...]
    b: tuple[float, ...]
    c: tuple[float, ...]

    @cached_property
    def stages(self) -> int:
        """Evaluations of the rates per tick."""
        return len(self.a)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """Weight of each stage's rate in the whole step; they sum to 1."""
        result = []
        for s in range(self.stages):
            carried, weight = 1.0, 0.0
            for r in range(s, self.stages):
                carried *= self.a[r] if r > s else 1.0
                weight += self.b[r] * carried
            result.append(weight)
        return tuple(result)


METHODS = {
    "euler": Method((0.0,), (1.0,), (0.0,)),
    "rk2": Method((0.0, -0.5), (0.5, 1.0), (0.0, 0.5)),
    "rk3": Method((0.0, -5 / 9, -153 / 128), (1 / 3, 15 / 16, 8 / 15), (0.0, 1 / 3, 3 / 4)),
    "rk4": Method(
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

Tables = dict[type[Component], Component]


def rated_columns(tables: Tables) -> Iterator[tuple[type[Component], Array, Array]]:
    """(rate type, flat state column, flat rate column) of every state of one entity that has a rate."""
    for kind in sorted((k for k in tables if k.rate_of in tables), key=lambda k: k.__name__):
        assert kind.rate_of is not None
        states, rates = vars(tables[kind.rate_of]), vars(tables[kind])
        for state, rate in zip(kind.rate_of.columns, kind.columns, strict=True):
            yield kind, states[state].reshape(-1), rates[rate].reshape(-1)


class Integrator:
    """Runs the stages of one method over the entities of a world; keeps the second register."""

    def __init__(self, name: str) -> None:
        self.method = METHODS[name]
        self._registers: dict[tuple[str, type[Component], int], Array] = {}

    def advance(self, entities: Iterable[tuple[str, Tables]], stage: int, dt: float) -> None:
        """Advance all rated states of (name of the entity, tables) pairs by one stage."""
        from ecs_fluid.kernels.compiled import integrate

        a, b = self.method.a[stage], self.method.b[stage]
        for entity, tables in entities:
            for part, (kind, state, rate) in enumerate(rated_columns(tables)):
                number = state.dtype.type
                if self.method.stages == 1:
                    step = integrate.euler_square if kind.squared else integrate.euler
                    step(state, rate, number(dt))
                    continue
                q = self._register((entity, kind, part), state, stage)
                move = integrate.advance_square if kind.squared else integrate.advance
                move(state, q, rate, number(a), number(b), number(dt))

    def _register(self, key: tuple[str, type[Component], int], like: Array, stage: int) -> Any:
        q = self._registers.get(key)
        if q is None or q.size != like.size or q.dtype != like.dtype:
            q = self._registers[key] = np.zeros_like(like)
        elif stage == 0:
            q.fill(0.0)
        return q
