"""Time integration: the one system that advances every component that has a rate."""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array, Component
from ecs_fluid.integrator import SINGLE
from ecs_fluid.system import System


class AdvectionSystem(System):
    """Runge-Kutta step of every rate: dx/dt = u, d(alpha)/dt, d(sigma^2)/dt, dT/dt and so on.

    It runs once per stage of the world's integrator (``World(integrator=...)``), after the phases prepare
    and rates of that stage, and before every other system of the phase move.
    """

    phase = "move"
    distribution = "rows"
    dimensions = (2, 3)
    before = ("*",)
    integrates = True

    def __post_init__(self) -> None:
        self._registers: dict[tuple[str, type[Component], str], Array] = {}

    def process(self, dt: float) -> None:
        """Advance every state y that has a rate f by the present stage: q = a q + dt f, y = y + b q."""
        from ecs_fluid.kernels.compiled import columns

        world = self.world
        stage, number = world.stage, world.dtype
        for entity in world.entities:
            tables = entity.tables
            for kind in sorted((k for k in tables if k.rate_of in tables), key=lambda k: k.__name__):
                assert kind.rate_of is not None
                rates, states = vars(tables[kind]), vars(tables[kind.rate_of])
                for name, of in zip(kind.columns, kind.rate_of.columns, strict=True):
                    y, f = states[of].reshape(-1), rates[name].reshape(-1)
                    if stage is SINGLE:
                        (columns.euler_square if kind.squared else columns.euler)(y, f, number(dt))
                        continue
                    q = self._registers.get((entity.name, kind, name))
                    if q is None or q.size != y.size:
                        q = self._registers[entity.name, kind, name] = np.zeros_like(y)
                    elif stage.a == 0.0:
                        q.fill(0.0)
                    advance = columns.advance_square if kind.squared else columns.advance
                    advance(y, q, f, number(stage.a), number(stage.b), number(dt))
