"""Order in time of emission: what a steady emitter has given off, against closed forms.

Gas that is given off at the rate R for the time t, each part of it at its own moment, has the mean
(1/t) int_0^t f(a) da of anything that goes as f(a) with the time a since its birth.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest
from solids import balls

import ecs_fluid as ef

Array = np.ndarray
TIME = 1.0  # s
RATE = 1280.0  # 1/s, ten in half a tick of 1/64 s
TICKS = (8, 16, 32, 64)
AROUND, HOT = 300.0, 500.0  # K
FUEL, BURNS, COOLS, PULL = 0.1, 4.0, 2.5, 1.5  # 1, 1/s, 1/s, 1/s
HEAT = 4e5  # J/kg


class Pull(ef.System):
    """dx/dt = s x: what is carried away gains speed."""

    reads = (ef.Position,)
    adds = (ef.Velocity,)
    phase = "rates"

    def process(self, dt: float) -> None:
        for position, velocity in self.query(ef.Position, ef.Velocity):
            velocity.u += PULL * position.x


def mean_decay(rate: float) -> float:
    """Mean of exp(-rate a) over ages a from 0 to TIME."""
    return float(-np.expm1(-rate * TIME) / (rate * TIME))


def burnt_and_cooled() -> float:
    """Mean of T(a), dT/da = (Q/c_p) A Y_0 exp(-A a) - r (T - T_a), K."""
    gain = HEAT / 1005.0 * BURNS * FUEL / (COOLS - BURNS)
    return AROUND + (HOT - AROUND - gain) * mean_decay(COOLS) + gain * mean_decay(BURNS)


class Watch(ef.System):
    """How many rows there are while the tick runs."""

    reads = (ef.Position,)
    phase = "rates"

    def __post_init__(self) -> None:
        self.rows: list[int] = []

    def process(self, dt: float) -> None:
        if self.world.stage.c == 0.0:
            self.rows.append(len(self.world["smoke"]))


class Stream(NamedTuple):
    """An emitter with systems that work on what it gives off, and the mean that is known."""

    exact: float
    systems: tuple[Any, ...]
    column: tuple[type[ef.Component], str]
    emitter: dict[str, Any] = {}

    def error(self, integrator: str, ticks: int) -> float:
        """Of the mean at TIME, relative."""
        world = ef.World(dt=TIME / ticks, integrator=integrator, precision="double")
        world.set_fluid(density=1.2, temperature=AROUND, law="ideal_gas", heat_capacity=1005.0)
        empty = np.zeros((0, 3))
        world.spawn(
            "gas", ef.Position(empty), ef.Volume(empty[:, 0]), ef.Temperature(empty[:, 0]), ef.Species, ef.Age
        )
        emitter = {"name": "vent", "into": "gas", "rate": RATE, "temperature": HOT, "fuel": FUEL}
        world.add_system(ef.EmissionSystem(emitters=[{**emitter, **self.emitter}]))
        world.add_systems([ef.LifetimeSystem(), *(make() for make in self.systems), ef.AdvectionSystem()])
        world.step(ticks)
        gas = world["gas"]
        assert len(gas) == RATE * TIME
        values = vars(gas[self.column[0]])[self.column[1]]
        return float(abs(values.reshape(len(gas), -1)[:, 0].mean() / self.exact - 1))


def cooling() -> ef.System:
    return ef.CoolingSystem(rate=COOLS)


def fire() -> ef.System:
    return ef.CombustionSystem(rate=BURNS, activation=0.0, heat=HEAT)


def wind(u: Any = (3.0, 0.0, 0.0)) -> ef.System:
    return ef.WindSystem(velocity=u)


def rising_wind() -> ef.System:
    return wind(ef.Keyed(keys=[(0.0, [1.0, 0.0, 0.0]), (TIME, [5.0, 0.0, 0.0])]))


X, T = (ef.Position, "x"), (ef.Temperature, "T")
STREAMS = {
    # x = u a
    "wind": Stream(3.0 * TIME / 2, (wind,), X),
    # x = int_(t - a)^t u, and its mean (1/t) int s u(s) ds, with u = 1 + 4 s
    "rising wind": Stream(1.0 * TIME / 2 + 4.0 * TIME**2 / 3, (rising_wind,), X),
    "pull": Stream(np.expm1(PULL * TIME) / (PULL * TIME), (Pull,), X, {"center": (1.0, 0.0, 0.0)}),
    "cooling": Stream(AROUND + (HOT - AROUND) * mean_decay(COOLS), (cooling,), T),
    "fire and cooling": Stream(burnt_and_cooled(), (fire, cooling), T),
}


@pytest.mark.parametrize("integrator", ["euler", "rk2"])
def test_a_steady_wind_carries_half_as_far_as_the_first(integrator: str) -> None:
    """Without error: the mean of the two halves of a tick is that of all moments between.

    Given off at the end of each tick, all were half a tick behind: dt/t of the mean, 0.125 with 8 ticks.
    """
    assert max(STREAMS["wind"].error(integrator, ticks) for ticks in TICKS) < 1e-13


FIRE = ("cooling", "fire and cooling")
SECOND = [*((name, "rk2") for name in ("rising wind", "pull", *FIRE)), *((name, "euler") for name in FIRE)]


@pytest.mark.parametrize(("name", "integrator"), SECOND)
def test_emission_is_of_second_order_beside_what_is(name: str, integrator: str) -> None:
    """The order between 32 and 64 ticks; with a tick's worth at its end it was 1.00 to 1.02."""
    errors = [STREAMS[name].error(integrator, ticks) for ticks in TICKS[-2:]]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
    assert errors[1] < 5e-5  # 0.0030 to 0.013 before


@pytest.mark.parametrize("ticks", TICKS)
def test_a_moving_emitter_whose_gas_gets_cooler(ticks: int) -> None:
    """Both keyed in time: what is given off at s begins at V s with T_0 + G s, and the wind u takes it along.

    Means at t: (V + u) t/2, and T_0 + G t/2; without an error, since both are linear.
    """
    moves = ef.Keyed(keys=[(0.0, [0.0, 0.0, 0.0]), (TIME, [2.0, 0.0, 0.0])])
    warms = ef.Keyed(keys=[(0.0, HOT), (TIME, 2 * HOT)])
    emitter = {"center": moves, "temperature": warms}
    shift = 1 / (2 * RATE * TIME)  # the k-th is born when the integral of the rate is k, not k - 1/2
    place = Stream(2.0 * TIME * (0.5 + shift) + 3.0 * TIME / 2, (wind,), X, emitter)
    heat = Stream(HOT * (1.5 + shift), (), T, emitter)
    assert place.error("rk2", ticks) < 1e-13 and heat.error("rk2", ticks) < 1e-13


def test_an_emitter_carried_by_a_body() -> None:
    """On a body at V s: the mean place at t of what a wind u takes along is (V + u) t/2.

    Without wind the k-th of n stays where the body was at its moment, V t k/n: no beads, one for half a tick.
    """
    for blows in (3.0, 0.0):
        world = ef.World(dt=TIME / 8, precision="double")
        world.spawn("smoke", ef.Position(np.zeros((0, 3))))
        balls(world, "ball", [0, 0, 0], radius=0.1, motion="scripted", v=[2.0, 0, 0])
        emitter = {"name": "vent", "into": "smoke", "rate": RATE, "attached": "ball"}
        world.add_system(ef.EmissionSystem(emitters=[emitter]))
        world.add_systems(
            [ef.WindSystem(velocity=(blows, 0, 0), on=("smoke",)), ef.BodySystem(), ef.AdvectionSystem()]
        )
        world.step(8)
        x, shift = world["smoke"][ef.Position].x[:, 0], 1 / (2 * RATE * TIME)
        assert x.mean() == pytest.approx(2.0 * TIME * (0.5 + shift) + blows * TIME / 2, rel=1e-13)
    np.testing.assert_allclose(x, 2.0 * TIME * np.arange(1, len(x) + 1) / len(x), atol=1e-13)


AXIS, SPIN = np.array([1.0, 2.0, 2.0]) / 3.0, 5.0  # 1, rad/s
WAY = np.array([0.2, 0.0, -0.1])  # m/s
ARM, THROWN = np.array([1.5, -1.4, 1.3]), np.array([0.3, 0.1, -0.2])  # m, m/s, in axes of the body


def on_a_turning_box(ticks: int, **emitter: Any) -> ef.World:
    """A box that goes along WAY and turns about AXIS by keys, with an emitter, after TIME."""
    keys = {
        name: {"keys": [[0.0, [0.0] * 3], [TIME, (TIME * rate).tolist()]]}
        for name, rate in (("center", WAY), ("rotation", SPIN * AXIS))
    }
    box = {"shape": "box", "size": [0.4, 0.2, 0.1]}
    emitter = {"kind": "emitter", "name": "tap", "into": "a", "attached": "box", "rate": 80.0, **emitter}
    body = {"kind": "body", "name": "box", "shape": box, "motion": "scripted", **keys}
    table = {
        "world": {"dt": TIME / ticks, "precision": "double", "debug": True},
        "fluid": {"gravity": [0, 0, 0]},
    }
    world = ef.load({**table, "entity": [body, emitter]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ef.FluidWarning)
        world.step(ticks)
    return world


def turned(vector: Array, moments: Array) -> Array:
    """A vector (3,) of the box's axes at moments (n,): Rodrigues' rotation about AXIS by SPIN t."""
    c, s = np.cos(SPIN * moments)[:, None], np.sin(SPIN * moments)[:, None]
    return vector * c + np.cross(AXIS, vector) * s + AXIS * (AXIS @ vector) * (1 - c)


@pytest.mark.parametrize("ticks", [8, 16])
def test_an_emitter_turns_with_its_body(ticks: int) -> None:
    """Each is born where the emitter is at its own moment k/R, whatever the step: to rounding, since the keys
    turn the box evenly. What is inertial leaves with the velocity of that place, and flies straight on."""
    moments = np.arange(1, 81) / 80.0
    place = moments[:, None] * WAY + turned(ARM, moments)
    dust = on_a_turning_box(ticks, center=ARM.tolist())["a"]
    np.testing.assert_allclose(dust[ef.Position].x, place, atol=1e-13)
    for part in (1.0, 0.25):
        thrown = {"population": "inertial", "velocity": THROWN.tolist(), "inherit": part}
        sparks = on_a_turning_box(ticks, center=ARM.tolist(), **thrown)["a"]
        v = turned(THROWN, moments) + part * (WAY + SPIN * np.cross(AXIS, turned(ARM, moments)))
        np.testing.assert_allclose(sparks[ef.InertialVelocity].v, v, atol=1e-13)
        np.testing.assert_allclose(sparks[ef.Position].x, place + (TIME - moments)[:, None] * v, atol=1e-13)


def test_regions_strengths_and_puffs_turn_with_the_body() -> None:
    """In the box's axes: a region 0.4 by 0 by 0.1 m; strengths; rings about x, of the impulse pi Gamma R^2
    and no strength, the k-th at k/4 s. All are too weak to move anything."""
    moments = np.arange(1, 81) / 80.0
    vortons = {"population": "vortons", "strength": [1e-15, 2e-15, 3e-15], "spread": [0.4, 0.0, 0.1]}
    found = on_a_turning_box(8, center=ARM.tolist(), **vortons)["a"]
    np.testing.assert_allclose(
        1e15 * found[ef.Strength].alpha, turned(np.array([1.0, 2.0, 3.0]), moments), atol=1e-9
    )
    away = found[ef.Position].x - moments[:, None] * WAY - turned(ARM, moments)
    along = np.stack([(away * turned(axis, moments)).sum(axis=1) for axis in np.eye(3)])
    assert np.abs(along[0]).max() <= 0.2 and np.abs(along[2]).max() <= 0.05
    assert np.ptp(along[0]) > 0.3 and np.ptp(along[2]) > 0.08
    np.testing.assert_allclose(along[1], 0.0, atol=1e-13)
    ring = {"kind": "vortex_ring", "radius": 0.2, "core": 0.05, "spacing": 0.05, "circulation": 3e-13}
    puff = {"puff": {**ring, "axis": [1.0, 0.0, 0.0]}, "rate": 4.0}
    rings = on_a_turning_box(8, center=ARM.tolist(), **puff)["a"]
    x, alpha = (part.reshape(4, -1, 3) for part in (rings[ef.Position].x, rings[ef.Strength].alpha))
    quarter = np.arange(1, 5) / 4.0
    np.testing.assert_allclose(alpha.sum(axis=1), 0.0, atol=1e-26)
    impulse = 0.5 * np.cross(x, alpha).sum(axis=1)
    expected = np.pi * 0.3 * 0.2**2 * turned(np.array([1.0, 0.0, 0.0]), quarter)
    np.testing.assert_allclose(1e12 * impulse, expected, atol=1e-9)
    np.testing.assert_allclose(x.mean(axis=1), quarter[:, None] * WAY + turned(ARM, quarter), atol=1e-12)


def sparks(*entities: Any, ticks: int = 8, **emitter: Any) -> ef.World:
    """A world after TIME of inertial particles that nothing but bodies stops, 80 a second."""
    emitter = {
        "kind": "emitter",
        "name": "tap",
        "into": "a",
        "population": "inertial",
        "rate": 80.0,
        **emitter,
    }
    options = {"dt": TIME / ticks, "precision": "double", "debug": True}
    system = [{"kind": "accelerate", "acceleration": [0.0, 0.0, 0.0]}]
    world = ef.load({"world": options, "entity": [*entities, emitter], "system": system})
    world.step(ticks)
    return world


def test_what_is_inertial_leaves_no_beads() -> None:
    """The k-th has flown v (T - k/R), born in the first half of a tick or in the second, also from the face
    of a body: those of the first half flew for the whole tick, a bead of half a tick's particles."""
    wall = {"shape": "box", "size": [2.0, 1.0, 1.0]}
    body = {"kind": "body", "name": "wall", "shape": wall, "center": [-1.0, 0, 0], "motion": "fixed"}
    moments = np.arange(1, 81) / 80.0
    for entities, from_face in (((), 0.0), ((body,), 1e-9)):
        world = sparks(*entities, center=[from_face, 0.0, 0.0], velocity=[3.0, 0.0, 0.0])
        np.testing.assert_allclose(
            world["a"][ef.Position].x[:, 0], from_face + 3.0 * (TIME - moments), atol=1e-13
        )


def test_what_is_inertial_does_not_fly_through_a_wall_as_it_is_born() -> None:
    """In half a tick they fly 0.19 m, through a wall 0.02 m thick and 0.05 m off: all stay before it."""
    thin = {"shape": "box", "size": [0.02, 1.0, 1.0]}
    body = {"kind": "body", "name": "wall", "shape": thin, "center": [0.06, 0, 0], "motion": "fixed"}
    x = sparks(body, velocity=[3.0, 0.0, 0.0])["a"][ef.Position].x
    assert len(x) == 80 and x[:, 0].max() <= 0.05 + 1e-12


def test_what_is_inertial_stays_with_an_emitter_that_lets_it_go() -> None:
    """Without a velocity as seen from it, where it moves by keys at 2 m/s; or with a part of that."""
    path = {"keys": [[0.0, [0, 0, 0]], [TIME, [2.0 * TIME, 0, 0]]]}
    moments = np.arange(1, 81) / 80.0
    for part in (1.0, 0.5, 0.0):
        x = sparks(center=path, inherit=part)["a"][ef.Position].x[:, 0]
        np.testing.assert_allclose(x, 2.0 * (moments + part * (TIME - moments)), atol=1e-13)


def test_bodies_of_one_entity_carry_an_emitter_in_turn_and_take_it_with_them() -> None:
    """Three balls, of which the middle one is removed at 1/2 s, and the others at 3/4 s."""
    world = ef.World(dt=0.25, precision="double", debug=True)
    world.spawn("smoke", ef.Position(np.zeros((0, 3))))
    balls(world, "ball", [[0.0, 0, 0], [5.0, 0, 0], [9.0, 0, 0]], motion="fixed")
    emitter = {"name": "vent", "into": "smoke", "rate": 24.0, "attached": "ball", "center": [0, 0, 1.0]}
    world.add_systems([ef.EmissionSystem(emitters=[emitter]), ef.BodySystem()])
    for kept, gone in (([0, 5, 9], [1]), ([0, 9], [0, 1]), ([], [])):
        before = len(world["smoke"])
        world.step(2 if gone == [1] else 1)
        born = world["smoke"][ef.Position].x[before:]
        assert sorted(born[:, 0]) == sorted(kept * (len(born) // max(len(kept), 1)))
        assert len(born) == {3: 12, 2: 6, 0: 0}[len(kept)] and (born[:, 2] == 1.0).all()
        world["ball"].kill(gone)


@pytest.mark.parametrize(("start", "stop"), [(0.0, None), (0.21, None), (0.3125, 0.71)])
def test_ages_are_those_of_the_moments_of_birth(start: float, stop: float | None) -> None:
    """The k-th particle is born k/R after the start, whatever the tick, also where that is within one."""
    world = ef.World(dt=TIME / 8, precision="double")
    world.spawn("smoke", ef.Position(np.zeros((0, 3))), ef.Age)
    emitter = {"name": "vent", "into": "smoke", "rate": 100.0, "start": start, "stop": stop}
    world.add_systems([ef.EmissionSystem(emitters=[emitter]), ef.LifetimeSystem()])
    world.step(8)
    born = start + np.arange(1, 101) / 100.0
    born = born[born <= (stop or TIME) + 1e-9]
    np.testing.assert_allclose(world["smoke"][ef.Age].t, TIME - born, atol=1e-14)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("seconds", [0.5, 0.53, 0.6])
def test_a_stream_of_limited_age_has_rate_times_age_particles(precision: str, seconds: float) -> None:
    """Whatever part of a tick of 0.1 s the limit is; and they fill a wind of 3 m/s up to 3 m/s times it.

    While a tick runs there are as many: what dies in its first half is gone, what is born then is there.
    """
    world = ef.World(dt=0.1, precision=precision)
    world.spawn("smoke", ef.Position(np.zeros((0, 3))), ef.Age)
    emitter = {"name": "vent", "into": "smoke", "rate": 1000.0}
    world.add_systems([ef.EmissionSystem(emitters=[emitter]), ef.AgeLimitSystem(seconds=seconds)])
    world.add_systems([wind(), ef.AdvectionSystem(), watch := Watch()])
    world.step(30)
    smoke = world["smoke"]
    assert len(smoke) == pytest.approx(1000 * seconds, abs=1)
    assert watch.rows[10:] == pytest.approx([1000 * seconds] * 20, abs=1)
    assert smoke[ef.Age].t.max() <= seconds
    # Places are those of the nearest half tick: the last of them make 0.05 s of those that there are.
    assert smoke[ef.Position].x[:, 0].mean() == pytest.approx(1.5 * seconds, rel=0.02)


@pytest.mark.parametrize("seconds", [0.05, 0.03, 0.001])
def test_a_limit_below_half_a_tick_is_told(seconds: float) -> None:
    """What is born in the second half of a tick of 0.1 s is there as it ends: 1e4/s times 0.05 s."""
    world = ef.World(dt=0.1)
    world.spawn("smoke", ef.Position(np.zeros((0, 3))), ef.Age)
    emitter = {"name": "vent", "into": "smoke", "rate": 1e4}
    world.add_systems([ef.EmissionSystem(emitters=[emitter]), ef.AgeLimitSystem(seconds=seconds)])
    said = [text for text in world.lint() if "AgeLimitSystem" in text]
    assert len(said) == (seconds < 0.05)
    assert not said or f"seconds = {seconds:g} s is less than half a tick of 0.1 s" in said[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ef.FluidWarning)
        world.step(3)
    assert len(world["smoke"]) == 500
