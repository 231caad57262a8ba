"""Heat between bodies and fluid. Validation case 71; articles B9, B10, C7."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from solids import balls, body_world, box, room, solid

import ecs_fluid as ef
from ecs_fluid.systems.shared.body_tables import body_entities, gathered, near_bodies

Array = np.ndarray
RHO, CP = 1.2, 1005.0


def around(draw: np.random.Generator, n: int, radius: float, depth: float) -> Array:
    """Places spread evenly over the layer from `radius` to `radius` + `depth`."""
    x = draw.standard_normal((n, 3))
    r = np.cbrt(draw.uniform(radius**3, (radius + depth) ** 3, n))
    return x / np.linalg.norm(x, axis=1, keepdims=True) * r[:, None]


def gas(world: ef.World, x: Array, volume: float, T: Any) -> ef.Entity:
    """Particles of fluid without strength."""
    n = len(x)
    return world.spawn(
        "gas",
        ef.Position(x), ef.Strength(np.zeros((n, 3))), ef.CoreRadius(np.full(n, 0.1)),
        ef.Volume(np.full(n, volume)), ef.Temperature(np.full(n, 1.0) * T),
    )  # fmt: skip


def hot_ball(world: ef.World, T: float, capacity: float, transfer: float, radius: float = 0.5) -> ef.Entity:
    """A fixed ball with a temperature."""
    ball = balls(world, "ball", [0, 0, 0], radius=radius, motion="fixed")
    world.attach("ball", ef.BodyHeat([T], [capacity], [transfer]))
    return ball


def energy(world: ef.World) -> float:
    """C T of all bodies and rho_0 c_p V T of all particles, J."""
    total = sum(
        float((heat.capacity.astype(float) * (heat.T.astype(float) + heat.rest)).sum())
        for (heat,) in world.query(ef.BodyHeat)
    )
    for volume, T in world.query(ef.Volume, ef.Temperature):
        total += RHO * CP * float((volume.volume.astype(float) * T.T.astype(float)).sum())
    return total


@pytest.mark.parametrize("precision", ["single", "double"])
def test_energy_is_kept(precision: str) -> None:
    """Cases 71, B10: C T_b + sum m c_p T of two bodies, a container, and particles of all temperatures.

    200 ticks in double precision: 2e-13, as 1e-12 in 1,000. In single precision the particles' temperatures
    are rounded; the sum follows what they hold, so that 1e-7 of rounding capacities and volumes once remains.
    """
    world = body_world(dt=0.02, precision=precision)
    draw = np.random.default_rng(1)
    gas(world, draw.uniform(-0.99, 0.99, (2000, 3)), 1e-3, draw.uniform(280, 900, 2000))
    hot_ball(world, 600.0, 300.0, 40.0, radius=0.3)
    solid(world, "block", box(0.4, 0.3, 0.2), center=(0.5, 0.5, 0.5), motion="fixed")
    world.attach("block", ef.BodyHeat([290.0], [50.0], [25.0]))
    room(world, "room", box(2, 2, 2))
    world.attach("room", ef.BodyHeat([400.0], [900.0], [10.0]))
    world.set_fluid(density=RHO)
    world.add_systems([ef.CollisionSystem(), ef.ConductionSystem(reach=0.1)])
    before, former = energy(world), [heat.T[0] for (heat,) in world.query(ef.BodyHeat)]
    world.step(200)
    assert abs(energy(world) - before) < (2e-13 if precision == "double" else 1e-7) * before
    after = [heat.T[0] for (heat,) in world.query(ef.BodyHeat)]
    assert all(abs(a - b) > 1 for a, b in zip(former, after, strict=True))


@pytest.mark.parametrize("dt", [0.02, 0.5, 10.0])
@pytest.mark.parametrize("n", [300, 3000])
def test_a_body_relaxes_exponentially(dt: float, n: int) -> None:
    """Case 71: T_b - T_m falls by exp(-t/tau), 1/tau = h A (1/C + 1/(sum m c_p)), for any dt and n: 1e-9.

    The particles fill the layer between 0.5 m and 0.7 m around the ball exactly, 300 or 3,000 of them.
    """
    world = body_world(dt=dt)
    whole = 4 / 3 * np.pi * (0.7**3 - 0.5**3)
    gas(world, around(np.random.default_rng(2), n, 0.5, 0.1999), whole / n, 300.0)
    ball = hot_ball(world, 600.0, 200.0, 15.0)
    world.set_fluid(density=RHO)
    world.add_systems([ef.ConductionSystem(reach=0.2)])
    store = RHO * CP * whole
    rate = 15.0 * 4 * np.pi * 0.25 * (1 / 200 + 1 / store)
    world.step(round(10 / dt))
    heat, T = ball[ef.BodyHeat], world["gas"][ef.Temperature].T
    assert np.isclose(heat.T[0] + heat.rest[0] - T.mean(), 300 * np.exp(-10 * rate), rtol=1e-9)
    assert np.ptp(T) < 1e-9  # all the same from the start, all by the same law


PART = {"shape": "box", "size": [0.3, 0.2, 0.4]}
BESIDE = [{"shape": PART}, {"shape": PART, "center": [0.3, 0.0, 0.1]}]
SECTIONS: dict[str, tuple[dict[str, Any], float, float]] = {
    "disk": ({"shape": "ball", "radius": 0.2}, 0.4 * np.pi, np.pi * 0.04),
    "box": (PART, 1.4, 0.12),
    "two boxes side by side": ({"shape": "compound", "parts": BESIDE}, 2.8 - 2 * 0.3, 0.24),
}


@pytest.mark.parametrize("name", SECTIONS)
def test_a_body_of_a_plane_relaxes_exponentially(name: str) -> None:
    """Case 71 in a plane, by perimeter and volume per metre, of parts without their seam: 1e-9.

    The particles stand in the layer of the volume P r + pi r^2, of which they fill the half.
    """
    shape, around_it, section = SECTIONS[name]
    body = {
        "kind": "body", "name": "it", "shape": shape, "motion": "fixed", "density": 1.0,
        "rotation": [0.0, 0.7, 0.0],
        "heat": {"temperature": 600.0, "heat_capacity": 2000.0, "transfer": 5.0},
    }  # fmt: skip
    world = ef.load(
        {
            "world": {"dimension": 2, "plane": "xz", "dt": 1.0, "precision": "double"},
            "entity": [body], "system": [{"kind": "conduction", "reach": 0.1}],
        }
    )  # fmt: skip
    x = np.random.default_rng(4).uniform(-0.8, 0.8, (3_000, 3)) * [1, 0, 1]
    rows, _, gap, _ = near_bodies(*gathered(body_entities(world)), x, np.full(len(x), 0.0999))
    x = x[rows[gap > 1e-3]]
    layer = around_it * 0.1 + np.pi * 0.01
    gas(world, x, 0.5 * layer / len(x), 300.0)
    world.set_fluid(density=RHO)
    world.step(10)
    C, store = 2000.0 * section, RHO * CP * 0.5 * layer
    heat, T = world["it"][ef.BodyHeat], world["gas"][ef.Temperature].T
    rate = 0.5 * 5.0 * around_it * (1 / C + 1 / store)
    assert np.isclose(heat.T[0] + heat.rest[0] - T.mean(), 300 * np.exp(-10 * rate), rtol=1e-9)
    assert np.isclose(C * (heat.T[0] + heat.rest[0]) + store * T.mean(), C * 600 + store * 300, rtol=1e-12)


def test_few_particles_take_their_share() -> None:
    """A tenth of the layer filled: the particles warm at the same pace, h A/(rho c_p V_layer), to 1e-9.

    Of the ball's heat a tenth leaves it; with open air the rest goes to the ambient fluid, at 300 K too, so
    that T_b follows exp(-h A t/C) as in a full layer of fluid kept at 300 K, here within a step's splitting.
    """
    layer = 4 / 3 * np.pi * (0.7**3 - 0.5**3)
    for open_air in (False, True):
        world = body_world(dt=0.01)
        gas(world, around(np.random.default_rng(3), 50, 0.5, 0.19), 0.1 * layer / 50, 300.0)
        ball = hot_ball(world, 600.0, 1e6, 15.0)
        world.set_fluid(density=RHO)
        world.add_systems([ef.ConductionSystem(reach=0.2, open_air=open_air)])
        world.step(100)
        pace = 15.0 * np.pi / (RHO * CP * layer)
        warmth = world["gas"][ef.Temperature].T.mean() - 300
        assert np.isclose(warmth, 300 * -np.expm1(-pace), rtol=1e-3)  # the ball cools by 1e-4 of it
        lost = 600 - ball[ef.BodyHeat].T[0]
        given = 0.1 * layer * RHO * CP * warmth / 1e6
        spent = 0.9 * 15.0 * np.pi * 300 / 1e6 if open_air else 0.0
        assert np.isclose(lost, given + spent, rtol=1e-4)


def test_temperatures_stay_between() -> None:
    """Never beyond what was there: 10^4 s in one tick leave all near particles and the body at one value."""
    world = body_world(dt=1e4)
    draw = np.random.default_rng(4)
    gas(world, around(draw, 500, 0.5, 0.1), 1e-3, draw.uniform(250, 350, 500))
    ball = hot_ball(world, 900.0, 100.0, 50.0)
    world.set_fluid(density=RHO)
    world.add_systems([ef.ConductionSystem(reach=0.2)])
    before = energy(world)
    world.step()
    mean = before / (100 + RHO * CP * 0.5)
    assert np.allclose(world["gas"][ef.Temperature].T, mean, rtol=1e-12)
    assert np.isclose(ball[ef.BodyHeat].T[0], mean, rtol=1e-12)


def test_only_what_is_near_conducts() -> None:
    """Particles beyond the reach keep their bits; those near a cold and a hot body go with the nearer one."""
    world = body_world(dt=0.1)
    x = np.array([[0.55, 0, 0], [0.75, 0, 0], [1.0, 0, 0], [5.0, 0, 0]])
    gas(world, x, 1e-3, 300.0)
    hot_ball(world, 400.0, 1e3, 100.0)
    other = balls(world, "other", [1.5, 0, 0], radius=0.6, motion="fixed")
    world.attach("other", ef.BodyHeat([200.0], [1e3], [100.0]))
    world.set_fluid(density=RHO)
    world.add_systems([ef.ConductionSystem(reach=0.2)])
    world.step()
    T = world["gas"][ef.Temperature].T
    assert T[0] > 300 and T[3] == 300
    # 0.75 is 0.25 m from the hot ball and 0.15 m from the cold one; 1.0 is inside the latter.
    assert T[1] < 300 and T[2] < 300
    assert len(other) == 1


def test_hot_ball_starts_a_plume() -> None:
    """B9, C7: fluid around a hot ball warms, monotonically and never beyond the ball; vortons get spin.

    The vortons form a shell of fluid at rest; they grow light, so that their impulse grows upwards.
    """
    world = body_world(dt=0.02)
    draw = np.random.default_rng(5)
    gas(world, around(draw, 800, 0.3, 0.15), 2e-4, 300.0)
    ball = hot_ball(world, 600.0, 1e6, 30.0, radius=0.3)
    world.set_fluid(density=RHO, temperature=300.0, law="ideal_gas")
    world.add_systems(
        [
            ef.VelocitySystem(solver="direct", at="vortons"),
            ef.BaroclinicSystem(),
            ef.ThermalSystem(),
            ef.CollisionSystem(),
            ef.ConductionSystem(reach=0.1),
            ef.DiagnosticsSystem(every=0),
        ]
    )
    means = []
    for _ in range(12):
        world.step()
        means.append(float(world["gas"][ef.Temperature].T.mean()))
    assert all(np.diff(means) > 0) and means[-1] > 305
    assert world["gas"][ef.Temperature].T.max() < ball[ef.BodyHeat].T[0]
    assert world.diagnostics()["impulse"][2] > 0


def test_balloon_heated_by_gas_rises() -> None:
    """C7: at 300 K the ball is 2 % too heavy and sinks; hot gas warms it until it rises.

    Its heat is 4 J/K and gas gives it 15 W/K, so it takes 0.27 s, and some 0.02 s to be 6 K warmer: to float.
    """
    world = body_world(dt=0.02)
    cold = RHO * 4 / 3 * np.pi * 0.2**3
    gas(world, around(np.random.default_rng(6), 500, 0.2, 0.3), 1e-3, 400.0)
    ball = balls(world, "ball", [0, 0, 0], radius=0.2, mass=1.02 * cold)
    world.attach("ball", ef.BodyHeat([300.0], [100.0], [30.0], expansion=[1 / 300]))
    world.set_fluid(density=RHO)
    world.add_systems(
        [
            ef.BuoyancySystem(local=False),
            ef.DragSystem(),
            ef.ConductionSystem(reach=0.1),
        ]
    )
    world.step()
    assert ball[ef.RigidMotion].v[0, 2] < 0
    world.step(150)
    assert ball[ef.BodyHeat].T[0] > 320 and ball[ef.RigidMotion].v[0, 2] > 0
