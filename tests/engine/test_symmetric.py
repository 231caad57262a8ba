"""Symmetric systems: half a tick before the stages of the integrator, and half a tick in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import ScheduleError


class Drift(ef.System):
    """dx/dt = (y, 0, 0)."""

    reads = (ef.Position,)
    adds = (ef.Velocity,)
    phase = "rates"

    def process(self, dt: float) -> None:
        for position, velocity in self.query(ef.Position, ef.Velocity):
            velocity.u[:, 0] += position.x[:, 1]


class Pull(ef.System):
    """dy/dt = -x + t, exactly while x stays; a log of the times and steps it is given."""

    writes = (ef.Position,)
    phase = "move"
    symmetric = True

    def __post_init__(self) -> None:
        self.seen: list[tuple[float, float, float]] = []

    def process(self, dt: float) -> None:
        keyed = float(self.world.value_now(ef.Keyed(keys=[(0.0, 0.0), (9.0, 9.0)])))
        self.seen.append((self.world.time, dt, keyed))
        for (position,) in self.query(ef.Position):
            position.x[:, 1] += dt * (keyed - position.x[:, 0])


class Grow(ef.System):
    """dy/dt = y, exactly: does not commute with the pull."""

    writes = (ef.Position,)
    phase = "move"
    symmetric = True
    after = (Pull,)

    def process(self, dt: float) -> None:
        for (position,) in self.query(ef.Position):
            position.x[:, 1] *= np.exp(dt)


def ran(integrator: str, ticks: int) -> tuple[ef.World, Pull]:
    world = ef.World(dt=1.0 / ticks, integrator=integrator, precision="double", debug=True)
    world.spawn("a", ef.Position([[1.0, 0.5, 0.0]]))
    pull = Pull()
    world.add_systems([ef.AdvectionSystem(), Drift(), Grow(), pull])
    world.step(ticks)
    return world, pull


@pytest.mark.parametrize("integrator", ["euler", "rk2", "rk3", "rk4"])
def test_order_beside_rates_and_one_another(integrator: str) -> None:
    """x' = y, y' = t - x + y from (1, 1/2): x = t + 1 + exp(t/2)(a cos + b sin)(sqrt(3) t/2), a = 0,
    b = -1/sqrt(3), so that x(0) = 1 and x'(0) = 1/2. Euler's method is exact for x while y stays.
    """
    w = np.sqrt(3) / 2
    exact = 2 - np.exp(0.5) * np.sin(w) / (2 * w)
    errors = [abs(ran(integrator, ticks)[0]["a"][ef.Position].x[0, 0] - exact) for ticks in (20, 40, 80)]
    assert -np.diff(np.log2(errors)) == pytest.approx([2] * 2, abs=0.1)


def test_halves_see_both_ends_of_the_tick() -> None:
    seen = [(0.0, 0.25, 0.0), (0.5, 0.25, 0.5), (0.5, 0.25, 0.5), (1.0, 0.25, 1.0)]
    assert ran("rk2", 2)[1].seen == ran("euler", 2)[1].seen == seen


@pytest.mark.parametrize("integrator", ["rk2", "rk3"])
def test_resumed_at_any_tick(integrator: str, tmp_path: Any) -> None:
    whole = ran(integrator, 6)[0]
    half = ef.World(dt=1 / 6, integrator=integrator, precision="double")
    half.spawn("a", ef.Position([[1.0, 0.5, 0.0]]))
    half.add_systems([ef.AdvectionSystem(), Drift(), Grow(), Pull()])
    half.step(3)
    half.save(tmp_path / "half.npz")
    again = ef.resume(tmp_path / "half.npz", allow_code=True)
    again.step(3)
    assert again.state_hash() == whole.state_hash()


def test_what_cannot_be_symmetric_is_refused() -> None:
    with pytest.raises(
        ScheduleError, match="Late is symmetric and runs in the phase 'constrain'; only systems"
    ):
        type("Late", (Pull,), {"phase": "constrain"})
    looks = type("Looks", (Pull,), {"reads": (ef.VelocityGradient,), "process": lambda self, dt: None})
    world = ef.World()
    world.add_system(looks())
    with pytest.raises(
        ScheduleError,
        match="Looks is symmetric and accesses VelocityGradient, which is not filled yet when its",
    ):
        world.step()
