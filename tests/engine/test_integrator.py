"""The integrator: orders, weights and the exact law of squared rates."""

from __future__ import annotations

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array, Component, column
from ecs_fluid.integrator import METHODS
from ecs_fluid.keyframes import Keyed
from ecs_fluid.system import System

ORDERS = {"euler": 1, "rk2": 2, "rk3": 3, "rk4": 4}


class Turn(System):
    """dx/dt = z cross x: every point goes round the z axis once in 2 pi s."""

    reads = (ef.Position,)
    adds = (ef.Velocity,)
    phase = "rates"

    def process(self, dt: float) -> None:
        for position, velocity in self.query(ef.Position, ef.Velocity):
            velocity.u[:, 0] -= position.x[:, 1]
            velocity.u[:, 1] += position.x[:, 0]


class Spread(System):
    """d(sigma^2)/dt = 2 nu."""

    adds = (ef.CoreRadiusRate,)
    phase = "rates"

    viscosity: float = 0.01

    def process(self, dt: float) -> None:
        for (rate,) in self.query(ef.CoreRadiusRate):
            rate.dsigma2 += 2 * self.viscosity


class Amount(Component):
    """A quantity with a rate that depends on time alone."""

    m: Array = column("kg")


class AmountRate(Component, rate_of=Amount):
    """Its rate."""

    dm: Array = column("kg/s")


class Feed(System):
    """dm/dt = power t^(power - 1), so that m = t^power."""

    adds = (AmountRate,)
    phase = "rates"

    power: int = 1

    def process(self, dt: float) -> None:
        for (rate,) in self.query(AmountRate):
            rate.dm += self.power * self.world.time ** (self.power - 1)


def turned(integrator: str, ticks: int) -> ef.World:
    world = ef.World(dt=1.0 / ticks, integrator=integrator, precision="double", debug=True)
    world.spawn("a", ef.Position([[1.0, 0.0, 0.5], [0.0, -2.0, 0.0]]))
    world.add_system(ef.AdvectionSystem())
    world.add_system(Turn())
    world.step(ticks)
    return world


@pytest.mark.parametrize("integrator", ORDERS)
def test_order_of_accuracy_on_a_rotation(integrator: str) -> None:
    """Error after 1 s by halving dt from 1/20 s: the slope of log2(error) is the order.

    The next term of the error is one order higher, 1/20 of the first at the coarsest step, which bends the
    slope by less than 0.1.
    """
    cos, sin = np.cos(1.0), np.sin(1.0)
    exact = np.array([[cos, sin, 0.5], [2 * sin, -2 * cos, 0.0]])
    worlds = [turned(integrator, ticks) for ticks in (20, 40, 80)]
    errors = [np.abs(world["a"][ef.Position].x - exact).max() for world in worlds]
    slopes = np.log2(errors[:-1]) - np.log2(errors[1:])
    assert slopes == pytest.approx([ORDERS[integrator]] * 2, abs=0.1)


@pytest.mark.parametrize("integrator", ORDERS)
def test_one_step_is_the_taylor_polynomial(integrator: str) -> None:
    """For x' = i x a method of order p gives sum (i dt)^k / k! up to k = p; rk4 has a fifth stage, and so
    a term in dt^5 of its own (1/200 for this method), which dt = 0.01 makes 5e-13."""
    world = ef.World(dt=0.01, integrator=integrator, precision="double")
    world.spawn("a", ef.Position([[1.0, 0.0, 0.0]]))
    world.add_system(ef.AdvectionSystem())
    world.add_system(Turn())
    world.step()
    z = complex(*world["a"][ef.Position].x[0, :2])
    polynomial = sum((0.01j) ** k / np.prod(np.arange(1.0, k + 1)) for k in range(ORDERS[integrator] + 1))
    assert abs(z - polynomial) < (1e-12 if integrator == "rk4" else 3e-16)


@pytest.mark.parametrize("integrator", ORDERS)
def test_weights_sum_to_one_and_match_the_moments_of_time(integrator: str) -> None:
    """Quadrature conditions sum b c^(k - 1) = 1/k for k up to the order."""
    method = METHODS[integrator]
    weights, times = np.array([s.weight for s in method]), np.array([s.c for s in method])
    for k in range(1, ORDERS[integrator] + 1):
        # rk4's published fractions are good to 24 digits, so only round-off remains.
        assert weights @ times ** (k - 1) == pytest.approx(1 / k, abs=4e-16 * len(method))


@pytest.mark.parametrize("integrator", ORDERS)
def test_stage_times_match_their_stage_values(integrator: str) -> None:
    """c_s is the sum of what a constant rate of 1 has moved when stage s begins."""
    method = METHODS[integrator]
    moved, q = 0.0, 0.0
    for stage in method:
        assert moved == pytest.approx(stage.c, abs=1e-15)
        q = stage.a * q + 1.0
        moved += stage.b * q
    assert moved == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("integrator", ORDERS)
def test_rates_of_time_are_exact_up_to_the_order(integrator: str) -> None:
    """m = t^p has an error of zero for p up to the order: the systems see the time of their stage."""
    for power in range(1, ORDERS[integrator] + 1):
        world = ef.World(dt=0.25, integrator=integrator, precision="double", debug=True)
        world.spawn("a", Amount([0.0]))
        world.add_system(Feed(power=power))
        world.add_system(ef.AdvectionSystem())
        world.step(8)
        assert world["a"][Amount].m[0] == pytest.approx(2.0**power, rel=1e-14)


@pytest.mark.parametrize("integrator", ORDERS)
def test_squared_rates_are_exact_in_time(integrator: str) -> None:
    """sigma^2 = sigma0^2 + 2 nu t, whatever the method and however long the step."""
    world = ef.World(dt=0.7, integrator=integrator, precision="double", debug=True)
    start = np.array([0.1, 1.0, 3.0])
    world.spawn("a", ef.CoreRadius(start))
    world.add_system(Spread(viscosity=0.01))
    world.add_system(ef.AdvectionSystem())
    world.step(50)
    np.testing.assert_allclose(
        world["a"][ef.CoreRadius].sigma, np.sqrt(start**2 + 2 * 0.01 * 35.0), rtol=1e-12
    )


@pytest.mark.parametrize("integrator", ORDERS)
def test_stages_are_counted_and_weighted(integrator: str) -> None:
    """A system of the phase rates runs once per stage, one of any other phase once per tick."""
    seen: list[tuple[float, float]] = []

    class Clockwork(System):
        adds = (ef.Velocity,)
        phase = "rates"

        def process(self, dt: float) -> None:
            seen.append((self.world.time, self.world.stage.weight))

    world = ef.World(dt=2.0, integrator=integrator)
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]))
    world.add_system(Clockwork())
    world.step()
    assert seen == [(0.0, 1.0)]  # nothing integrates, so there is one evaluation
    seen.clear()
    world.add_system(ef.AdvectionSystem())
    world.step()
    method = METHODS[integrator]
    assert [time for time, _ in seen] == [2.0 * (1 + stage.c) for stage in method]
    assert sum(weight for _, weight in seen) == pytest.approx(1.0, abs=1e-15)


def test_a_population_that_changes_size_starts_with_a_clean_register() -> None:
    """The second register of a two-register method must not leak from one tick into the next."""
    world = turned("rk3", 4)
    world["a"].kill([0])
    world["a"].spawn(ef.Position([[1.0, 0.0, 0.5]]))
    fresh = ef.World(dt=0.25, integrator="rk3", precision="double")
    fresh.spawn("a", ef.Position(world["a"][ef.Position].x))
    fresh.add_system(ef.AdvectionSystem())
    fresh.add_system(Turn())
    world.step(2)
    fresh.step(2)
    assert world["a"][ef.Position].x.tobytes() == fresh["a"][ef.Position].x.tobytes()


def test_wind_keyed_in_time_is_integrated_at_the_stages() -> None:
    """u = t from 0 to 1 s: after 1 s the path is 1/2 m, which the midpoint method has exactly."""
    world = ef.World(dt=0.25, integrator="rk2", precision="double", debug=True)
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]))
    world.add_system(ef.WindSystem(velocity=Keyed(keys=[(0.0, [0.0, 0.0, 0.0]), (1.0, [1.0, 0.0, -2.0])])))
    world.add_system(ef.AdvectionSystem())
    world.step(4)
    np.testing.assert_array_equal(world["a"][ef.Position].x, [[0.5, 0.0, -1.0]])
    world.step(4)  # after the last key the wind stays
    np.testing.assert_array_equal(world["a"][ef.Position].x, [[1.5, 0.0, -3.0]])


@pytest.mark.parametrize("integrator", ["euler", "rk2", "rk3", "rk4"])
def test_single_precision_stays_single(integrator: str) -> None:
    world = ef.World(dt=0.1, integrator=integrator, precision="single", debug=True)
    world.spawn("a", ef.Position([[1.0, 0.0, 0.0]]), ef.CoreRadius([0.5]))
    for system in (Turn(), Spread(), ef.AdvectionSystem()):
        world.add_system(system)
    world.step(3)
    assert {array.dtype for array in world["a"].columns().values()} == {np.dtype("f4"), np.dtype("i8")}
