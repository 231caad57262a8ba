"""The liquid: books of momentum and energy, rest, dam break, sloshing, containers. Articles K1, K3, K5."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from liquid_tank import tank
from scipy.optimize import curve_fit
from scipy.spatial import cKDTree
from sph_worker import rocking_tank
from thread_hashes import printed_hashes

import ecs_fluid as ef
from ecs_fluid.worlds import BodyRecipe, ContainerRecipe, FluidBlock, LiquidRecipe
from ecs_fluid.worlds.world_recipe import read

Array = np.ndarray
G = 9.81


def places(world: ef.World, name: str = "water") -> Array:
    return np.asarray(world[name][ef.Position].x.astype(np.float64))


# ---------------------------------------------------------------------- books


def test_free_drop_keeps_its_books() -> None:
    """Two half drops collide without gravity: momenta stay to rounding, energy less what viscosity took
    to the order of the time step."""
    world, system = tank(
        None,
        {"sphere": {"radius": 0.2}, "spacing": 0.04, "jitter": 0.3, "velocity": (0.3, 0.2, 0.1)},
        precision="double", gravity=(0, 0, 0), sound_speed=10.0, artificial=0.02,
    )  # fmt: skip
    v, x = world["water"][ef.InertialVelocity].v, world["water"][ef.Position].x
    v += np.where(x[:, :1] > 0, -1.0, 1.0) * np.array([1.0, 0.3, 0.0])
    before = system.measure()
    world.step(20)
    after = system.measure()
    scale = before["mass"] * 1.5
    np.testing.assert_allclose(after["momentum"], before["momentum"], atol=1e-12 * scale)
    np.testing.assert_allclose(after["angular_momentum"], before["angular_momentum"], atol=1e-12 * scale)
    assert after["dissipated"] > 0.05 * before["kinetic"]
    # Measured 4e-3; it starts from a random, strongly compressed packing.
    lost = after["energy"] + after["dissipated"] - before["energy"]
    assert abs(lost) < 1e-2 * before["energy"]


@pytest.mark.parametrize(("size", "steps"), [((0.4, 0.4, 0.4), (16, 32)), (None, (16, 256))])
def test_energy_error_is_of_second_order(
    size: tuple[float, float, float] | None, steps: tuple[int, int]
) -> None:
    """Half the step, a quarter of the error, without viscosity: drift, kick, drift, and the excess at the
    middle of the step.

    In a container under pressure, 5 % above the density at rest, with a sound wave between its walls of which
    the diffusion takes a quarter: measured 3.87, and 3.93, 3.97, 3.97 with further halvings. In a free drop
    pressures meet 0, where the diffusion stops, at other steps: its error falls by 2.3 to 7.4 from half to
    half, hence four halvings, measured 4.26^4.
    """
    errors = []
    for number in steps:
        liquid = {"fills": "tank"} if size else {"sphere": {"radius": 0.15}}
        world, system = tank(
            size, {**liquid, "spacing": 0.04}, dt=0.02,
            precision="double", gravity=(0, 0, 0), sound_speed=10.0, artificial=0.0, steps=number,
        )  # fmt: skip
        v, x = world["water"][ef.InertialVelocity].v, world["water"][ef.Position].x
        v -= 0.2 * (np.sin(2 * np.pi * x / 0.4) if size else x)
        world["water"][ef.Liquid].excess += 0.05 if size else 0.0
        before = system.measure()["energy"]
        world.step(1)
        after = system.measure()
        errors.append(abs(after["energy"] + after["dissipated"] - before))
    order = np.log(errors[0] / errors[1]) / np.log(steps[1] / steps[0])
    assert 2**order == pytest.approx(4.0, rel=0.25)


def test_falling_freely_is_exact() -> None:
    # z = -g t^2 / 2 at every tick for drift-kick-drift, whatever the steps.
    world, _ = tank(None, {"sphere": {"radius": 0.1}, "spacing": 0.04}, precision="double")
    before = places(world)
    world.step(20)
    fall = np.tile([0, 0, -0.5 * G * 0.04], (len(before), 1))
    np.testing.assert_allclose(places(world) - before, fall, atol=1e-9)


@pytest.mark.parametrize("pressure", ["explicit", "implicit"])
def test_liquid_goes_on_when_the_last_body_is_gone(pressure: str) -> None:
    """A drop that falls, with a ball far away for two ticks, and without."""
    found = []
    for accompanied in (False, True):
        world, _ = tank(
            None, {"sphere": {"radius": 0.1}, "spacing": 0.05}, sound_speed=20.0, pressure=pressure
        )
        if accompanied:
            BodyRecipe(name="ball", shape={"shape": "ball", "radius": 0.1}, center=(2.0, 0, 0)).build(world)
            world.step(2)
            world["ball"].kill(np.array([True]))
            world.step(3)
        else:
            world.step(5)
        found.append(places(world))
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)


# ---------------------------------------------------------------------- pushes


@pytest.mark.parametrize("pressure", ["explicit", "implicit"])
def test_an_acceleration_is_as_gravity(pressure: str) -> None:
    """A column that collapses in a tank, by gravity and by a push of 9.81 m/s^2 in its place: the same
    places, steps and stiffness; what it loses of its potential energy is what the push gives."""
    worlds, books = [], []
    for pushed in (False, True):
        box = {"low": (0, 0, 0), "high": (0.3, 0.2, 0.3)}
        world, system = tank(
            (0.5, 0.2, 0.4), {"box": box, "spacing": 0.05}, precision="double", pressure=pressure,
            gravity=(0, 0, 0) if pushed else (0, 0, -G),
        )  # fmt: skip
        if pushed:
            world.add_systems([ef.AdvectionSystem(), ef.AccelerateSystem(acceleration=(0, 0, -G))])
        before = system.measure()
        world.step(12)
        worlds.append(world)
        books.append((before, system.measure()))
    weighed, pushed = (world.fluid[ef.LiquidBudget] for world in worlds)
    np.testing.assert_allclose(places(worlds[1]), places(worlds[0]), atol=1e-9)
    np.testing.assert_array_equal(pushed.steps, weighed.steps)
    stiffness = [world.fluid[ef.LiquidModel].stiffness[0] for world in worlds]
    assert stiffness[1] == pytest.approx(stiffness[0], rel=1e-12)
    (start, end), (_, now) = books
    assert now["work"] == pytest.approx(start["potential"] - end["potential"], rel=1e-6) != 0.0
    assert now["dissipated"] == pytest.approx(end["dissipated"], rel=1e-6)
    np.testing.assert_allclose(pushed.pushes, weighed.gravity, rtol=1e-9)
    given = pushed.pushes + pushed.walls
    np.testing.assert_allclose(now["momentum"], given, atol=1e-9 * np.abs(pushed.pushes).max())


class Attraction(ef.System):
    """Everything is drawn to the origin: a = -k x - d v, v being that of this stage."""

    reads = (ef.Position, ef.InertialVelocity)
    adds = (ef.Acceleration,)
    phase = "rates"
    k: float = 20.0
    d: float = 0.0

    def process(self, dt: float) -> None:
        for position, own, acceleration in self.query(ef.Position, ef.InertialVelocity, ef.Acceleration):
            acceleration.a -= self.k * position.x + self.d * own.v


def test_books_close_in_a_push_of_ones_own() -> None:
    """A drop that a spring draws: energy + dissipated - work stays; its work is what m k x^2 / 2 loses and
    its centre goes as cos(sqrt(k) t), both to the order of the tick, for which a push stays as it is.

    c by the strongest pull, times the drop's height along it: 100 k x (0.3 + spacing), less its corners.
    """
    world, system = tank(
        None, {"sphere": {"radius": 0.15, "center": (0.1, 0, 0)}, "spacing": 0.05},
        precision="double", gravity=(0, 0, 0), dt=0.005,
    )  # fmt: skip
    spring = Attraction()
    world.add_systems([ef.AdvectionSystem(), spring])
    mass = world["water"][ef.Liquid].mass

    def stored() -> float:
        return 0.5 * spring.k * float((mass[:, None] * places(world) ** 2).sum())

    before, full = system.measure(), stored()
    head = spring.k * np.linalg.norm(places(world), axis=1).max() * 0.35
    assert 7 * world.fluid[ef.LiquidModel].stiffness[0] / 1000 == pytest.approx(100 * head, rel=0.15)
    world.step(40)
    after = system.measure()
    lost = after["energy"] + after["dissipated"] - after["work"] - before["energy"]
    # Measured 2.4e-3, with half and a quarter of the step 6e-4 and 4e-4; the gate is that of a dam break.
    assert abs(lost) < 5e-3 * after["kinetic"]
    # Measured 2.2 %, with twice the tick 4.5 %.
    assert after["work"] == pytest.approx(full - stored(), rel=0.04)
    assert after["center"][0] == pytest.approx(0.1 * np.cos(spring.k**0.5 * world.time), abs=3e-3)
    assert after["momentum"] == pytest.approx(world.fluid[ef.LiquidBudget].pushes, abs=1e-9)


def test_a_push_is_the_mean_over_the_stages_and_ends_in_no_jump() -> None:
    """Far from all else v' = -d v: by rk2 a tick leaves 1 - d t + (d t)^2 / 2 of the speed, and the way is
    the mean of both speeds times t. A push that is far too strong for the speed of sound is told."""
    liquid = {"sphere": {"radius": 0.1}, "spacing": 0.05, "velocity": (2.0, 0.0, 0.0)}
    world = ef.World(dt=0.01, integrator="rk2", precision="double")
    world.set_fluid(gravity=(0, 0, 0))
    LiquidRecipe(name="water", **liquid).build(world)
    spring = Attraction(k=0.0, d=5.0)
    world.add_systems([ef.AdvectionSystem(), spring, ef.SphSystem(sound_speed=15.0)])
    before = places(world)
    world.step()
    kept = 1 - 0.05 + 0.05**2 / 2
    np.testing.assert_allclose(
        world["water"][ef.InertialVelocity].v.mean(axis=0), [2 * kept, 0, 0], atol=1e-12
    )
    np.testing.assert_allclose((places(world) - before).mean(axis=0), [0.01 * (1 + kept), 0, 0], atol=1e-12)
    spring.d = 60.0
    with pytest.warns(ef.FluidWarning, match=r"accelerations of up to 79.9 m/s\^2 compress liquid"):
        world.step()


def test_a_weak_push_is_not_blamed_for_what_gravity_compresses() -> None:
    """A column that gravity compresses by 10 % at its foot, and 0.1 m/s^2 beside it: no warning. 20 m/s^2 are
    told."""
    box = {"low": (0, 0, 0), "high": (0.2, 0.2, 0.4)}
    for push, told in ((0.1, 0), (20.0, 1)):
        world, _ = tank((0.4, 0.2, 0.6), {"box": box, "spacing": 0.05}, sound_speed=6.5)
        world.add_systems([ef.AdvectionSystem(), ef.AccelerateSystem(acceleration=(push, 0, 0))])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            world.step()
        assert sum("accelerations of up to" in str(one.message) for one in caught) == told


# ---------------------------------------------------------------------- rest


def test_filled_container_comes_to_rest() -> None:
    """A tank filled to the brim: pressure rho g depth, weight on the floor, and nothing moves.

    The cubic lattice of the start gives way to a disordered packing, 2 to 3 % denser, which sets it in motion
    for half a second; it must be over after 0.8 s. Speeds are told as shares of sqrt(g H), that of waves:
    measured 0.06 %, gate 2 %. Pressure: mean of layers that do not touch a wall, measured within 2 % of
    rho g H, gate 8 % (K3: no spurious gradient at walls).
    """
    size, depth = (0.4, 0.4, 0.5), 0.5
    world, system = tank(size, {"fills": "tank", "spacing": 0.05, "hydrostatic": True}, artificial=0.3)
    start = system.measure()
    world.step(80)
    record, wave = system.measure(), np.sqrt(G * depth)
    assert np.sqrt(2 * record["kinetic"] / record["mass"]) < 0.02 * wave
    assert abs(record["center"][2] - start["center"][2]) < 0.02 * depth
    np.testing.assert_allclose(record["center"][:2], start["center"][:2], atol=1e-3 * depth)
    state, x = world["water"][ef.LiquidState], places(world)
    inside = np.abs(x[:, :2] - 0.2).max(axis=1) < 0.13
    whole = 1000 * G * depth
    for low in (0.1, 0.2, 0.3):
        layer = inside & (x[:, 2] > low) & (x[:, 2] < low + 0.1)
        hydrostatic = 1000 * G * (depth - x[layer, 2].mean())
        assert state.pressure[layer].mean() == pytest.approx(hydrostatic, abs=0.08 * whole)
    # Walls gave back what gravity gave, but for the momentum that the liquid has.
    books = world.fluid[ef.LiquidBudget]
    total = books.gravity + books.walls
    np.testing.assert_allclose(total, record["momentum"], atol=1e-3 * abs(books.gravity[2]))
    assert books.gravity[2] == pytest.approx(-record["mass"] * G * 0.8, rel=1e-4)


def test_open_tank_settles_with_its_books_in_order() -> None:
    """With a free surface: energy and what viscosity took stay; the surface sinks by less than a spacing."""
    size, depth, edge = (0.3, 0.3, 0.5), 0.25, 0.0375
    liquid = {"fills": "tank", "level": depth, "spacing": edge, "hydrostatic": True}
    world, system = tank(size, liquid, artificial=0.1)
    before = system.measure()
    world.step(60)
    after = system.measure()
    fall = before["potential"] - after["potential"]
    assert 0 < fall < before["mass"] * G * 0.5 * edge
    assert abs(after["energy"] + after["dissipated"] - before["energy"]) < 0.02 * fall
    assert np.sqrt(2 * after["kinetic"] / after["mass"]) < 0.05 * np.sqrt(G * depth)
    assert depth - edge < np.sort(places(world)[:, 2])[-20:].mean() + edge / 2 < depth + 0.1 * edge
    # Nobody came through a wall, on pressure alone.
    assert places(world).min() > 0.0 and places(world)[:, :2].max() < 0.3


@pytest.mark.parametrize(
    ("around", "ticks", "least", "most"),
    [
        (None, 60, 1.0, 1.1**3),
        pytest.param(500.0, 60, 1.0, 1.1**3, marks=pytest.mark.nightly),
        pytest.param(None, 740, 0.95, 1.05, marks=pytest.mark.nightly),
    ],
)
def test_liquid_carries_a_body(around: float | None, ticks: int, least: float, most: float) -> None:
    """Buoyancy of a ball held under water: rho g V of a ball up to 0.3 spacings larger in radius.

    A medium around of half the liquid's density bears (rho / 2) g V and takes half the liquid's weight, so
    the sum is the same: 1.06 rho g V.
    Walls are planes to the liquid, so a round one of 3 spacings' radius keeps it a little farther away:
    measured 1.08 rho g V. The excess next to it diffuses away, so that it gets smaller: 0.96 after 8 s.
    Pressure waves of the closed tank swing it by half of that, hence the mean. Sideways nothing pulls, by
    symmetry.
    """
    world = ef.World(dt=0.01, integrator="euler")
    shape, radius, edge = {"shape": "box", "size": (0.48, 0.48, 0.48)}, 0.12, 0.04
    ContainerRecipe(name="tank", shape=shape).build(world)
    ball = {"shape": "ball", "radius": radius}
    BodyRecipe(name="ball", shape=ball, center=(0, 0, 0), motion="fixed").build(world)
    LiquidRecipe(name="water", fills="tank", spacing=edge).build(world)
    whole = len(world["water"])
    world.add_systems([ef.SphSystem(hydrostatic=("water",), artificial=0.3), ef.BodySystem()])
    if around is not None:
        world.set_fluid(density=around)
        world.add_system(ef.BuoyancySystem())
    # Those inside, and those too near, are gone: between the ball and one a spacing larger in radius.
    gone = (whole - len(world["water"])) * edge**3
    assert 4 / 3 * np.pi * radius**3 < gone < 4 / 3 * np.pi * (radius + edge) ** 3
    world.step(ticks)
    force = np.zeros(3)
    for _ in range(60):
        world.step()
        force += world["ball"][ef.BodyLoad].force[0] / 60
    weight = 1000 * G * 4 / 3 * np.pi * radius**3
    assert least < force[2] / weight < most
    assert np.abs(force[:2]).max() < 1e-2 * weight


CYLINDER = {"shape": "cylinder", "radius": 0.25, "height": 0.5}
LEANING = (0.24, 0.32, 0.0)
"""Rotation vector of 0.4 rad, about no axis of the container."""


def in_container(shape: dict[str, Any], rotation: tuple[float, ...], level: float = 0.1) -> ef.World:
    """Liquid with defaults that starts at rest in a container about the origin."""
    world = ef.World(dt=0.01, integrator="euler", precision="single")
    world.set_fluid(gravity=(0.0, 0.0, -G))
    ContainerRecipe(name="tank", shape=shape, rotation=rotation).build(world)
    LiquidRecipe(name="water", fills="tank", level=level, spacing=0.03).build(world)
    world.add_system(ef.SphSystem(hydrostatic=("water",)))
    return world


def gained(world: ef.World, ticks: int) -> tuple[float, float]:
    """What energy and dissipation gain in so many ticks, over m g H and per second, and the rms speed at the
    end over sqrt(g H)."""
    system = world.system(ef.SphSystem)
    assert system is not None
    before, x = system.measure(), places(world)
    world.step(ticks)
    after, depth = system.measure(), float(np.ptp(x[:, 2]))
    gain = after["energy"] + after["dissipated"] - before["energy"] - before["dissipated"]
    speed = np.sqrt(2 * after["kinetic"] / after["mass"])
    return gain / (after["mass"] * G * depth * ticks * 0.01), float(speed / np.sqrt(G * depth))


@pytest.mark.parametrize(
    ("sides", "rotation"), [(6, (0.0, 0.0, 0.0)), pytest.param(80, LEANING, marks=pytest.mark.nightly)]
)
def test_walls_of_a_cylinder_do_not_heat(sides: int, rotation: tuple[float, ...]) -> None:
    """Energy and what viscosity took stay, in half a second of settling: 1e-3 of m g H per second is allowed.

    Measured 3.5e-4 and 1.4e-4. Walls that were added in the order of their distances, six at most: 8e-3 and
    0.45.
    """
    world = in_container({**CYLINDER, "sides": sides}, rotation)
    world.step(50)
    assert gained(world, 50)[0] < 1e-3


@pytest.mark.nightly
@pytest.mark.parametrize("rotation", [(0.0, 0.0, 0.0), LEANING], ids=["upright", "leaning"])
@pytest.mark.parametrize(
    "shape",
    [
        {**CYLINDER, "sides": 6},
        {**CYLINDER, "sides": 12},
        {**CYLINDER, "sides": 80},
        {"shape": "octahedron", "radius": 0.35},
        {"shape": "icosahedron", "radius": 0.35},
    ],
    ids=["6 sides", "12 sides", "80 sides", "octahedron", "icosahedron"],
)
def test_liquid_rests_in_any_container(shape: dict[str, Any], rotation: tuple[float, ...]) -> None:
    """From 1 to 2 s energy grows by less than 1e-3 m g H, and after 2 s the liquid moves at less than 2 % of
    sqrt(g H). Measured 2e-4 to 4e-4 in cylinders, below 4e-5 in the others; 0.8 to 1.6 %.

    At the floor of an upright cylinder the pressure is what the weight above it makes, per area, within 3 %
    of that at the bottom: mean of half a second and of the layer 1.5 spacings from it, away from the sides.
    Measured 1.0 to 1.6 %, as in boxes; where floors were no mirrors 5 %.
    """
    world = in_container(shape, rotation, 0.1 if "sides" in shape else 0.05)
    world.step(100)
    gain, speed = gained(world, 100)
    assert gain < 1e-3
    assert speed < 0.02
    if "sides" not in shape or any(rotation):
        return
    area, mass = np.pi * 0.25**2, world["water"][ef.Liquid].mass.astype(np.float64)
    wrong = []
    for _ in range(50):
        world.step()
        x, p = places(world), world["water"][ef.LiquidState].pressure.astype(np.float64)
        layer = (np.abs(x[:, 2] + 0.25 - 0.045) < 0.015) & (np.hypot(x[:, 0], x[:, 1]) < 0.18)
        above = np.array([(x[:, 2] > z).sum() + 0.5 for z in x[layer, 2]]) * mass[0]
        wrong.append((p[layer] - above * G / area).mean() / (mass.sum() * G / area))
    assert abs(np.mean(wrong)) < 0.03


# ---------------------------------------------------------------------- motion


def test_sloshing_has_the_frequency_of_theory() -> None:
    """First mode of a tank of length L and depth h: omega^2 = g k tanh(k h), k = pi / L (Lamb, section 257).

    Started with the velocity of the standing wave; gate 2 %, measured 1.3 %.
    """
    length, depth, edge = 0.4, 0.2, 0.02
    box = {"low": (0, 0, 0), "high": (length, 3 * edge, depth)}
    world, _ = tank(
        (length, 3 * edge, 0.4), {"box": box, "spacing": edge, "hydrostatic": True}, sound_speed=14.0
    )
    x, v, k = places(world), world["water"][ef.InertialVelocity].v, np.pi / length
    v[:, 0] = 0.15 * np.sin(k * x[:, 0]) * np.cosh(k * x[:, 2]) / np.sinh(k * depth)
    v[:, 2] = -0.15 * np.cos(k * x[:, 0]) * np.sinh(k * x[:, 2]) / np.sinh(k * depth)
    time, center = [], []
    for _ in range(150):
        world.step()
        time.append(world.time)
        center.append(places(world)[:, 0].mean() - length / 2)
    theory = np.sqrt(G * k * np.tanh(k * depth))

    def swing(t: Array, size: float, omega: float, decay: float, phase: float, middle: float) -> Array:
        return np.asarray(size * np.exp(-decay * t) * np.sin(omega * t + phase) + middle)

    found, _ = curve_fit(swing, np.array(time), np.array(center), p0=(max(center), theory, 0.1, 0.0, 0.0))
    assert found[1] == pytest.approx(theory, rel=0.02)
    assert found[2] > 0


def standing_wave(mode: int, layers: int) -> tuple[float, float, float, float]:
    """Standing wave in a tank of length L = 0.4 m and depth h = 0.2 m, by default.

    Its frequency over sqrt(g k tanh(k h)), k = mode pi / L; what a period leaves of it; what viscosity alone
    would leave, by 2 nu k^2 (Lamb, section 348); the noise of the pressure over rho g h. It starts with the
    velocity of linear theory and an amplitude of h / 20; its part in the mode is fitted by a damped cosine,
    the pressure by a hydrostatic one and the wave's.
    """
    length, depth = 0.4, 0.2
    edge, k = depth / layers, mode * np.pi / length
    theory = np.sqrt(G * k * np.tanh(k * depth))
    period = 2 * np.pi / theory
    box = {"low": (0, 0, 0), "high": (length, 5 * edge, depth)}
    liquid = {"box": box, "spacing": edge, "hydrostatic": True}
    world, system = tank((length, 5 * edge, 2 * depth), liquid, dt=period / 24)

    def shape(x: Array) -> Array:
        u = np.zeros_like(x)
        u[:, 0] = np.sin(k * x[:, 0]) * np.cosh(k * x[:, 2]) / np.sinh(k * depth)
        u[:, 2] = -np.cos(k * x[:, 0]) * np.sinh(k * x[:, 2]) / np.sinh(k * depth)
        return u

    v = world["water"][ef.InertialVelocity].v
    v += 0.05 * depth * theory * shape(places(world))
    time, part, noise = [0.0], [1.0], []
    for _ in range(30):
        world.step()
        x = places(world)
        u = shape(x)
        time.append(world.time)
        part.append((v * u).sum() / (u * u).sum() / (0.05 * depth * theory))
        reach = np.array([length / 2 - 2 * edge, edge, depth / 2 - 2 * edge])
        inside = (np.abs(x - [length / 2, 2.5 * edge, depth / 2]) < reach).all(axis=1)
        x, p = x[inside], world["water"][ef.LiquidState].pressure[inside]
        wave = np.cos(k * x[:, 0]) * np.cosh(k * x[:, 2])
        linear = np.stack([np.ones(len(x)), x[:, 2], wave], axis=1)
        noise.append((p - linear @ np.linalg.lstsq(linear, p)[0]).std() / (1000 * G * depth))

    def swing(t: Array, size: float, omega: float, decay: float, phase: float) -> Array:
        return np.asarray(size * np.exp(-decay * t) * np.cos(omega * t + phase))

    (_, omega, decay, _), _ = curve_fit(swing, np.array(time), np.array(part), p0=(1.0, theory, 0.1, 0.0))
    model = world.fluid[ef.LiquidModel]
    sound = np.sqrt(7 * model.stiffness[0] / 1000)
    viscous = 2 * system.artificial * sound * model.reach[0] / 20 * k**2
    kept, bound = np.exp(-decay * period), np.exp(-viscous * period)
    return omega / theory, float(kept), float(bound), float(np.mean(noise))


@pytest.mark.parametrize("mode", [1, 2])
def test_standing_wave_lives(mode: int) -> None:
    """Case 116: ten layers deep 0.85 is left after a period, and the frequency is right to 2 %.

    Measured 0.939 and 0.861, frequency +1.7 and -1.6 %, noise of the pressure 0.002 and 0.003 of rho g h
    (0.55, 0.70 and 0.15 where walls were a function of the distance and the surface had no excess). Viscosity
    alone would leave 0.935 and 0.833: at least half of that loss has to be there.
    """
    frequency, kept, viscous, noise = standing_wave(mode, 10)
    assert frequency == pytest.approx(1.0, rel=0.02)
    assert 0.85 <= kept < np.sqrt(viscous)
    assert noise < 0.01


@pytest.mark.nightly
@pytest.mark.parametrize("mode", [1, 2])
def test_standing_wave_lives_longer_with_more_layers(mode: int) -> None:
    """Case 116: with 10, 14, 20 layers 0.939, 0.956, 0.969 of mode 1 are left, 0.861, 0.892, 0.921 of mode 2.

    What is lost goes with the artificial viscosity, that with the spacing: of first order, measured 0.99 and
    0.86. The frequency of mode 2 is 1.6 % low, 0.2 % low, 0.7 % high. That of mode 1 is 1.7, 2.1, 2.4 %
    high: a lattice under pressure resists shear however fine it is (docs/notes/liquids.md).
    """
    found = np.array([standing_wave(mode, layers) for layers in (10, 14, 20)])
    assert np.abs(found[:, 0] - 1).max() < 0.03
    assert np.log2(np.log(found[0, 1]) / np.log(found[2, 1])) > 0.8
    assert (np.diff(found[:, 1]) > 0).all() and (np.diff(found[:, 3]) < 0).all()


def test_nothing_leaves_a_moving_container() -> None:
    """K1: two liquids and a ball in a box that rolls; all inside at every tick, nowhere crowded.

    Nearest neighbours, in spacings, measured: median 0.73, nearest percent 0.27, nearest of all 0.16 (in
    spray, where nothing holds particles apart).
    """
    world = rocking_tank()
    collision, system = world.system(ef.CollisionSystem), world.system(ef.SphSystem)
    assert collision is not None and system is not None
    for _ in range(30):
        world.step()
        x = np.concatenate([world[name][ef.Position].x for name in ("water", "oil")])
        assert collision.overlap(x).max() < 1e-6
    near = cKDTree(x).query(x, k=2)[0][:, 1] / 0.03
    assert near.min() > 0.05 and np.percentile(near, 1) > 0.2 and np.median(near) > 0.6
    assert system.measure()["largest"] < 1.2
    assert int(world.fluid[ef.CollisionCount].trapped[0]) == 0


def fallen_drop(kind: str) -> float:
    """Width over height of a drop, 3 times as dense as its surroundings, that fell for 0.8 s: of vortons, of
    liquid, or of the hybrid of both."""
    world = ef.World(dt=0.02, integrator="euler", precision="double", seed=1)
    drop = {"sphere": {"radius": 1.0}, "spacing": 0.2, "density": 3.0}
    if kind == "vortons":
        FluidBlock(name="drop", agitation=1e-3, **drop).build(world)
    else:
        LiquidRecipe(name="drop", vortons=kind == "hybrid", **drop).build(world)
    world.set_fluid(density=1.0, gravity=(0, 0, -10))
    systems: list[ef.System] = [ef.AdvectionSystem()]
    if kind != "liquid":
        systems += [ef.VelocitySystem(solver="direct", at="vortons"), ef.BaroclinicSystem(model="full")]
    if kind != "vortons":
        systems.append(ef.SphSystem(surrounded=True, sound_speed=40.0))
    world.add_systems(systems)
    world.step(40)
    x = places(world, "drop")
    return float(x[:, 0].std() / x[:, 2].std())


def test_hybrid_drop_lies_between_vortons_and_liquid() -> None:
    """Articles K4 (part 16, figure 3): vortons become a ring, liquid stays a ball, the hybrid is between.

    Measured 1.69, 1.00 and 1.67.
    """
    ring, ball, hybrid = (fallen_drop(kind) for kind in ("vortons", "liquid", "hybrid"))
    assert ball == pytest.approx(1.0, abs=0.01)
    assert ring > 1.5
    assert 1.3 < hybrid < ring


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["dam_break", "sloshing_dam", "heavy_ball_in_box", "falling_drop"])
def test_shipped_world_to_its_end(name: str) -> None:
    """K5: nobody leaves, energy never grows where no wall moves, and the liquid lies on the floor at the end.

    Energy of gravity, motion and compression, from one quarter of a second to the next; 0.2 % of what there
    was to fall is allowed for the time steps of impacts.
    """
    recipe = read(name)
    world = recipe.build()
    system, collision = world.system(ef.SphSystem), world.system(ef.CollisionSystem)
    assert system is not None and collision is not None
    start = system.measure()
    ticks = round(0.25 / world.dt)
    energy = [start["energy"]]
    for _ in range(recipe.ticks // ticks):
        world.step(ticks)
        for entity in (entity for entity in world.entities if ef.Liquid in entity):
            assert collision.overlap(entity[ef.Position].x).max() < 1e-5
        energy.append(system.measure()["energy"])
    fall = start["potential"] - system.measure()["potential"]
    assert fall > 0
    if name != "sloshing_dam":
        assert np.diff(energy).max() < 2e-3 * fall
    assert int(world.fluid[ef.CollisionCount].trapped[0]) == 0


# ---------------------------------------------------------------------- machinery


def test_same_bits_for_any_number_of_threads() -> None:
    found = printed_hashes("sph_worker.py", "1,2,4,8")
    assert len(found) == 4 and len(set(found.values())) == 1


def test_too_long_a_step_is_refused_in_a_sentence() -> None:
    liquid = {"sphere": {"radius": 0.1}, "spacing": 0.04}
    world, _ = tank(None, liquid, dt=0.1, steps=2, sound_speed=20.0)
    with pytest.raises(ef.FluidError, match=r"dt = 0.1 s with steps = 2 .* use dt <= \S+ s or steps = \d+"):
        world.step()
    # As many steps as no tick may have are not proposed.
    world, _ = tank(None, liquid, dt=100.0, sound_speed=20.0)
    with pytest.raises(ef.FluidError, match=r"dt = 100 s with at most 1000 steps .*; use dt <= 3.6 s$"):
        world.step()
    world, _ = tank(None, liquid, dt=0.1, sound_speed=20.0)
    world.step()
    # 1.2 (R/2) / (c + u) = 1.2 * 0.0596 / 20 = 3.58 ms at first and 3.41 as they fall at 1 m/s at the end.
    assert 28 <= int(world.fluid[ef.LiquidBudget].steps[0]) <= 30


@pytest.mark.parametrize("pressure", ["explicit", "implicit"])
def test_air_in_water_is_driven_up_and_rests_under_the_lid(pressure: str) -> None:
    """It starts with (rho_s / rho - 1) g, 832 g here, which steps and the speed of sound have to follow, and
    with the pressure of a column that stands on the lid; it ended as not a number in the first tick."""
    world = ef.World(dt=1e-3, integrator="euler")
    world.set_fluid(density=1000.0)
    ContainerRecipe(name="tank", shape={"shape": "box", "size": (0.4, 0.4, 0.4)}).build(world)
    LiquidRecipe(
        name="air",
        density=1.2,
        box={"low": (-0.1, -0.1, -0.1), "high": (0.1, 0.1, 0.1)},
        spacing=0.05,
        hydrostatic=True,
    ).build(world)
    world.add_system(ef.SphSystem(pressure=pressure, surrounded=True, hydrostatic=("air",)))
    world.step()
    rise = world["air"][ef.InertialVelocity].v[:, 2]
    assert np.isclose(rise.mean(), (1000.0 / 1.2 - 1) * 9.81 * 1e-3, rtol=1e-5)
    world.step(30)
    # 64 particles of 0.05 m fill 0.4 m x 0.4 m one layer deep; a second one is there for a while.
    assert 0.05 < places(world, "air")[:, 2].mean() < 0.2


@pytest.mark.parametrize("keyed", [True, False])
def test_sound_is_fast_enough_for_the_gravity_to_come(keyed: bool) -> None:
    """A hundredth of gravity in the first tick, all of it later: the stiffness is rho 100 g H / 7 of all.

    The compression at the floor is (1 + 7 / 100)^(1/7) - 1 = 1 % then, and below 4 % while the liquid swings.
    """
    least, most = (0.0, 0.0, -G / 100), (0.0, 0.0, -G)
    later = ef.Keyed(keys=[(0.0, list(least)), (0.01, list(most))])
    world, system = tank((0.3, 0.3, 0.5), {"fills": "tank", "level": 0.25, "spacing": 0.05}, gravity=least)
    if keyed:
        world.set_fluid(gravity=later)
    world.step()
    if not keyed:
        world.set_fluid(gravity=most)
    world.step(20)
    assert world.fluid[ef.LiquidModel].stiffness[0] == pytest.approx(1000 * 100 * G * 0.25 / 7, rel=1e-6)
    assert system.measure()["largest"] < 1.04


def test_viscosity_is_the_liquids_own() -> None:
    """0.05 m^2/s of its own does what the artificial one of c R / 20 times 20 nu / (c R) does, to rounding.

    The viscosity of the fluid around, of which there is as much, does nothing.
    """
    ends, nu, sound, edge = [], 0.05, 10.0, 0.04
    for own, artificial in ((nu, 0.0), (0.0, 20 * nu / (sound * 2.98 * edge))):
        liquid = {"box": {"low": (0, 0, 0), "high": (0.4, 0.4, 0.2)}, "spacing": edge, "viscosity": own}
        world, system = tank(
            None, liquid, precision="double", gravity=(0, 0, 0), sound_speed=sound, artificial=artificial
        )
        world.set_fluid(viscosity=nu)
        world["water"][ef.InertialVelocity].v[:, 0] = places(world)[:, 2]
        world.step(3)
        ends.append(places(world))
        assert system.measure()["dissipated"] > 0
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-12)


def test_without_gravity_a_speed_of_sound_is_asked_for() -> None:
    """Refused, the liquid is as before: once it moves at 2 m/s, its sound has the default of 20 m/s."""
    world, system = tank(None, {"sphere": {"radius": 0.1}, "spacing": 0.04}, gravity=(0, 0, 0))
    for refused in (world.step, system.measure):
        with pytest.raises(ef.RecipeError, match="sound_speed"):
            refused()
    world["water"][ef.InertialVelocity].v[:, 0] = 2.0
    system.measure()
    assert world.fluid[ef.LiquidModel].stiffness[0] == pytest.approx(1000 * 20.0**2 / 7)


def test_particles_of_very_different_size_are_refused() -> None:
    world, _ = tank(None, {"sphere": {"radius": 0.1}, "spacing": 0.04})
    LiquidRecipe(name="fine", sphere={"center": (1, 0, 0), "radius": 0.1}, spacing=0.02).build(world)
    with pytest.raises(ef.FluidError, match="spacings that differ by less than 7 %"):
        world.step()


def test_nothing_is_measured_of_no_liquid() -> None:
    world, system = tank(None, {"sphere": {"radius": 0.2}, "spacing": 0.1})
    world["water"].kill(np.arange(len(world["water"])))
    world.step()
    with pytest.raises(ef.FluidError, match="SphSystem: there is no liquid to measure"):
        system.measure()
