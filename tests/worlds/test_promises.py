"""Every shipped world keeps the promise of its header: one number of worlds/promises.toml, measured here."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.shipped_worlds import promises, sentence, shipped
from ecs_fluid.systems.shared.body_tables import entrained
from ecs_fluid.worlds.world_recipe import WorldRecipe, read
from tests.validation.layered_flow import circulations_of, drop_in_layers, ring_in_layers
from tests.validation.test_gravity_current import noses

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")

G = 9.81
PROMISES = promises()
Measure = Callable[[], float | tuple[float, ...]]
MEASURES: dict[str, Measure] = {}


def measure(function: Measure) -> Measure:
    """A function that runs the world of its name and returns the promised quantity, or several."""
    MEASURES[function.__name__] = function
    return function


def lean(name: str, *without: str, **changes: Any) -> ef.World:
    """The world as it ships, but for tracers, these entities and systems of these kinds."""
    tables = read(name).tables()
    tables["entity"] = [
        item for item in tables["entity"] if item["kind"] != "tracers" and item["name"] not in without
    ]
    tables["system"] = [item for item in tables.get("system", []) if item["kind"] not in without]
    tables.setdefault("world", {}).update(changes)
    return WorldRecipe.from_tables(tables).build()


def march(world: ef.World, seconds: float) -> ef.World:
    """The world at this time, to the nearest tick."""
    world.step(round(seconds / world.dt) - world.tick)
    return world


def center(world: ef.World, name: str) -> Array:
    """Mean place of the vortons, weighted by their strengths, m."""
    weight = np.linalg.norm(world[name][ef.Strength].alpha, axis=1)
    return np.asarray(weight @ world[name][ef.Position].x / weight.sum())


def places(world: ef.World, *names: str) -> Array:
    """Positions of all particles of these entities, (n, 3) m."""
    return np.concatenate([world[name][ef.Position].x for name in names]).astype(np.float64)


def out_of_box(x: Array, half: Sequence[float], angle: float = 0.0) -> Array:
    """Signed distance (n,) m of points from a box of these half widths at 0, turned by `angle` about y."""
    c, s = np.cos(angle), np.sin(angle)
    beyond = np.abs(x @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])) - half
    return np.asarray(np.linalg.norm(np.maximum(beyond, 0), axis=1) + np.minimum(beyond.max(axis=1), 0))


def impulse_over_weight(name: str, seconds: float, seen: Callable[[ef.World], None] | None = None) -> float:
    """Upward impulse that the fluid gained over the time integral of its lift, both per unit density, 1.

    Whoever has `seen` each tick of the world looks at it too.
    """
    fluid = read(name).fluid
    heights, profile = zip(*(fluid.density_profile or [(0.0, fluid.density)]), strict=True)
    world = lean(name)

    def lift() -> float:
        return -G * sum(
            float((density.rho - np.interp(position.x[:, 2], heights, profile)) @ volume.volume)
            for position, density, volume, _ in world.query(ef.Position, ef.Density, ef.Volume, ef.Strength)
        )

    start, before, given = world.diagnostics()["impulse"][2], lift(), 0.0
    while world.time < seconds - 1e-9:
        world.step()
        after = lift()
        given += 0.5 * (before + after) * world.dt
        before = after
        if seen is not None:
            seen(world)
    return float((world.diagnostics()["impulse"][2] - start) / given)


# ------------------------------------------------------------------ vortices


@measure
def vortex_ring() -> float:
    world = lean("vortex_ring")
    start = center(world, "ring")[2]
    return float(center(march(world, 3.0), "ring")[2] - start) / world.time


@measure
def viscous_ring() -> float:
    def height() -> float:
        share = np.cross(ring[ef.Position].x, ring[ef.Strength].alpha)[:, 2]
        return float(share @ ring[ef.Position].x[:, 2] / share.sum())

    world = lean("viscous_ring")
    ring = world["ring"]
    start = height()
    march(world, 2.5)
    return height() - start


@measure
def jet_ring() -> float:
    """Circulation round the section: sum of the strengths along the circles over their length."""
    world = march(lean("jet_ring"), 1.0)
    x, alpha = world["jet"][ef.Position].x, world["jet"][ef.Strength].alpha
    rho = np.hypot(x[:, 1], x[:, 2])
    along = (alpha[:, 2] * x[:, 1] - alpha[:, 1] * x[:, 2]) / rho
    return float((along / (2 * np.pi * rho)).sum())


@measure
def crossed_tubes() -> float:
    # With its tracers: sums on the grid, by which the strength moves, depend on them.
    world = march(ef.load("crossed_tubes"), 6.0)
    total = sum(world[name][ef.Strength].alpha.sum(axis=0, dtype=float) for name in ("upper", "lower"))
    return float(np.linalg.norm(total))


@measure
def oblique_rings() -> float:
    return float(march(lean("oblique_rings"), 0.2).diagnostics()["impulse"][2])


@measure
def head_on_rings() -> float:
    upper = march(lean("head_on_rings"), 0.5)["upper"]
    x, alpha = upper[ef.Position].x, upper[ef.Strength].alpha
    share = (x[:, 0] * alpha[:, 1] - x[:, 1] * alpha[:, 0]) / (x[:, 0] ** 2 + x[:, 1] ** 2)
    return float(share @ np.hypot(x[:, 0], x[:, 1]) / share.sum())


@measure
def taylor_green() -> float:
    world = lean("taylor_green")
    start = world.diagnostics()["energy"]
    return float(march(world, 2.0).diagnostics()["energy"] / start)


@measure
def taylor_green_400() -> float:
    world = lean("taylor_green_400")
    start = world.diagnostics()["energy"]
    return float(march(world, 4.0).diagnostics()["energy"] / start)


@measure
def trefoil() -> float:
    return float(lean("trefoil").diagnostics()["helicity"])


@measure
def reconnection() -> float:
    """By u_y on the lines x = 0 and x = -pi of the plane, over a period."""
    world, found = lean("reconnection"), []
    y = np.linspace(-np.pi, np.pi, 128, endpoint=False)
    lines = np.concatenate([np.stack([0 * y + x, y, 0 * y], axis=1) for x in (0.0, -np.pi)])
    for seconds in (0.0, 5.0):
        u = march(world, seconds).velocity(lines)[:, 1]
        found.append(u[:128].mean() - u[128:].mean())
    return float(found[1] / found[0])


@measure
def leapfrog() -> float:
    world, radii = lean("leapfrog"), []
    for tick in (89, 90):
        world.step(tick - world.tick)
        x = world["rear"][ef.Position].x
        radii.append(float(np.hypot(x[:, 0], x[:, 1]).mean()))
    return float(np.interp(0.35 / 0.390744, [0.89, 0.90], radii))


@measure
def hill_vortex() -> float:
    world = lean("hill_vortex")
    start = center(world, "ball")[2]
    return float(center(march(world, 1.0), "ball")[2] - start)


@measure
def vortices_merge() -> float:
    world = march(lean("vortices_merge"), 20.0)
    x = places(world, "left", "right")
    gamma = np.concatenate([world[name][ef.Strength].alpha[:, 2] for name in ("left", "right")])
    return float(gamma @ (x**2).sum(axis=1) / gamma.sum())


@measure
def karman_street() -> float:
    world = march(lean("karman_street", "upper_rake", "lower_rake"), 20.0)
    times, lift = [], []
    while world.time < 40.0 - 1e-9:
        world.step()
        times.append(world.time)
        lift.append(-world["disk"][ef.BoundaryExchange].impulse[0, 1])
    t, f = np.array(times), np.array(lift)
    rising = np.flatnonzero((f[:-1] < 0.0) & (f[1:] >= 0.0))
    zeros = t[rising] - f[rising] * world.dt / (f[rising + 1] - f[rising])
    # Diameter and wind are 1.
    return float((len(zeros) - 1) / (zeros[-1] - zeros[0]))


@measure
def falling_plate() -> float:
    world = march(lean("falling_plate", "left_edge", "right_edge"), 1.0)
    gamma = world["wake"][ef.Strength].alpha[:, 1].astype(np.float64)
    impulse = gamma @ places(world, "wake")[:, 0]
    plate = world["plate"]
    displaced = 1000.0 * 0.1 * 0.0125
    return float((plate[ef.Body].mass[0] - displaced) * plate[ef.RigidMotion].v[0, 2] + 1000.0 * impulse)


@measure
def shear_layer() -> float:
    return abs(march(lean("shear_layer"), 0.2)["layer"][ef.Strength].alpha[:, 1].sum())


@measure
def wavy_sheet() -> float:
    return abs(march(lean("wavy_sheet"), 0.2)["layer"][ef.Strength].alpha[:, 1].sum())


@measure
def tube() -> float:
    return float(np.linalg.norm(march(lean("tube"), 1.0)["tube"][ef.Strength].alpha.sum(axis=0)))


@measure
def wind_fountain() -> float:
    world = march(ef.load("wind_fountain"), 1.0)
    x, age = world["drops"][ef.Position].x, world["drops"][ef.Age].t
    return float(x[np.abs(age - 5 / G) < 0.01, 2].mean())


# ------------------------------------------------------------------ density and heat


@measure
def dye_drop() -> float:
    return impulse_over_weight("dye_drop", 1.0)


@measure
def dye_drops_collide() -> float:
    world = march(lean("dye_drops_collide"), 2.0)
    return float(sum(center(world, name)[2] for name in ("heavy", "light")) / 2)


def ring_in_layers_at(world: ef.World, seconds: float) -> tuple[float, float, float]:
    """Mean height of the dye, m, and circulations of both signs, m^2/s, of stratified_ring."""
    ring, dye = march(world, seconds)["ring"], world["dye"][ef.Position].x
    spun = circulations_of(ring[ef.Position].x, ring[ef.Strength].alpha, 0.09)
    return float(dye[:, 2].mean()), *spun


@measure
def stratified_ring() -> tuple[float, float]:
    world = ef.load("stratified_ring")
    early = ring_in_layers_at(world, 1.4)
    return ring_in_layers_at(world, 2.2)[0], early[1]


@pytest.mark.nightly
def test_ring_in_layers_moves_as_by_finite_differences() -> None:
    """Mean height of the dye, to 0.03 m; and circulations of both signs. N^2 = g/rho_0 x 1.56/6 m.

    Layers roll up until they are thinner than cores. Vortons then have the circulation that the differences
    have, or as little of it as these have smeared by blobs of 0.072 m, to 0.12 of the ring's. (The box of
    vortons, and those left out, take up to 0.09. Not remeshed they had -2.03 m^2/s after 2.2 s where the
    differences have -1.60.) A ring whose own fluid alone makes vorticity, with none around, has 0.258 m at
    1.8 s and 0.098 m at 3 s.
    """
    flow = ring_in_layers(0.02, 0.18, lambda z: 9.81 * 0.26 * z, 1e-3, lambda s: (s < 0.34) * 1.0, room=1.5)
    world = ef.load("stratified_ring")
    for seconds in (0.6, 1.0, 1.4, 1.8, 2.2, 3.0, 3.6):
        flow.march(seconds)
        height, *spun = ring_in_layers_at(world, seconds)
        assert height == pytest.approx(flow.height, abs=0.03)
        for found, whole, smeared in zip(spun, flow.circulations, flow.smeared(0.072), strict=True):
            assert abs(smeared) - 0.12 < abs(found) < abs(whole) + 0.12
    assert flow.height < 0.0


def test_fluid_around_a_ring_takes_part_in_the_weight() -> None:
    """Impulse of all vortons over their weight; exchange at the ends of the cloud takes less than 1 %."""
    assert impulse_over_weight("stratified_ring", 0.4) == pytest.approx(1.0, abs=0.008)


@measure
def two_layers() -> float:
    return float(march(ef.load("two_layers"), 8.0)["drop"][ef.Position].x[:, 2].mean())


@pytest.mark.nightly
def test_drop_in_layers_moves_as_by_finite_differences() -> None:
    """Mean height and distance from the axis of the drop, m, to a core radius of 0.1 m; its rim is smeared.

    With vortons in the drop and near the interface alone it was at -0.114 and -0.358 m after 6 and 8 s.
    """

    def layers(z: Array) -> Array:
        return np.asarray(1 - 0.02 * np.clip(z / 0.1, -1, 1))

    def density(r: Array, z: Array) -> Array:
        return np.asarray(1 + (layers(z) - 1) * (1 + np.tanh((np.hypot(r, z - 0.7) - 0.3) / 0.05)) / 2)

    flow, world = drop_in_layers(0.03, layers, density, 3e-4), ef.load("two_layers")
    for seconds in (2.0, 4.0, 5.0, 6.0, 7.0, 8.0):
        flow.march(seconds)
        x = march(world, seconds)["drop"][ef.Position].x
        assert x[:, 2].mean() == pytest.approx(flow.height, abs=0.07)
        assert np.hypot(x[:, 0], x[:, 1]).mean() == pytest.approx(flow.width, abs=0.12)
    assert flow.height > 0.0


def test_layers_at_their_own_level_weigh_nothing() -> None:
    """Impulse of all vortons over the drop's weight in excess; the order of the steps leaves 1e-5."""
    assert impulse_over_weight("two_layers", 0.25) == pytest.approx(1.0, abs=1e-4)


@measure
def rayleigh_taylor() -> float:
    """Upward impulse after 2 s beyond that of the weight of both layers, over that of the heavy one, 1."""
    world = march(lean("rayleigh_taylor"), 2.0)
    layers, fluid = world["layers"], world.fluid[ef.Fluid]
    lacking = layers[ef.Volume].volume * (1 - layers[ef.Density].rho.astype(np.float64) / fluid.density)
    due = G * world.time * np.array([lacking.sum(), np.minimum(lacking, 0.0).sum()])
    return float((world.diagnostics()["impulse"][2] - due[0]) / -due[1])


@measure
def hot_plate() -> float:
    """Largest velocity through the plate over the largest upward one 0.2 m above it, 1."""
    world = march(lean("hot_plate"), 1.0)
    line = np.linspace(-0.4, 0.4, 9)
    plate = np.stack([a.ravel() for a in np.meshgrid(line, line, 0.0)], axis=1)
    through, above = (world.velocity(plate + np.array([0, 0, z]))[:, 2] for z in (0.0, 0.2))
    return float(np.abs(through).max() / above.max())


def mean_temperature(name: str, seconds: float) -> float:
    """Mean temperature of the gas, K."""
    return float(march(lean(name, "sampling"), seconds)["gas"][ef.Temperature].T.mean())


@measure
def thermal_plume() -> float:
    return mean_temperature("thermal_plume", 1.0) - 300.0


@measure
def buoyant_plume() -> float:
    """Upward impulse over the integral of the weight that the gas lacks, by the trapezoidal rule."""
    world, lifts = lean("buoyant_plume", "seed", "sampling"), [0.0]
    gas, fluid = world["gas"], world.fluid[ef.Fluid]
    while world.time < 4.0 - world.dt / 2:
        world.step()
        warmth = gas[ef.Volume].volume * (gas[ef.Temperature].T.astype(np.float64) - fluid.temperature)
        lifts.append(float(G * fluid.expansion * warmth.sum()))
    return float(world.diagnostics()["impulse"][2] / np.trapezoid(lifts, dx=world.dt))


@measure
def candle() -> float:
    return mean_temperature("candle", 1.0)


@measure
def large_flame() -> float:
    return mean_temperature("large_flame", 1.0)


@measure
def fireball() -> float:
    gas = march(lean("fireball", "cooling", "sampling"), 0.4)["gas"]
    mass = 1.2 * 300 / gas[ef.Temperature].T * gas[ef.Volume].volume
    fuel = float((mass * gas[ef.Species].fuel).sum(dtype=np.float64))
    return float(gas[ef.Volume].volume.sum(dtype=np.float64)) + 2.8e7 * fuel / (1.2 * 300 * 1005)


@cache
def smouldered() -> ef.Species:
    """What the gas of smoulder holds after 2.4 s."""
    return march(lean("smoulder", "sampling"), 2.4)["gas"][ef.Species]


def test_smouldering_makes_little_flame_and_much_smoke() -> None:
    assert 0 < smouldered().flame.sum() < 0.3 * smouldered().smoke.sum()


@measure
def smoulder() -> float:
    """Fuel burns with 15 times its mass of air, and 0.05 of smoke was there before."""
    species = smouldered()
    return float((species.fuel + (species.flame + species.smoke - 0.05) / 16).mean())


# ------------------------------------------------------------------ bodies


@measure
def ball_in_tube() -> float:
    """Spin of the ball over half the vorticity where it is."""
    world, step = lean("ball_in_tube"), 0.15  # m, over which DragSystem takes it too: the ball's radius
    at = world["ball"][ef.Pose].x[0].copy()
    world.step()
    sides = world.velocity(at + step * np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]]))
    vorticity = (sides[0, 1] - sides[1, 1] - sides[2, 0] + sides[3, 0]) / (2 * step)
    return float(world["ball"][ef.RigidMotion].angular_velocity[0, 2] / (0.5 * vorticity))


@measure
def bubbles() -> float:
    return float(np.median(march(lean("bubbles"), 0.3)["bubbles"][ef.RigidMotion].v[:, 2]))


@measure
def curve_ball() -> float:
    return float(march(lean("curve_ball", "boundary", "air"), 1.6)["ball"][ef.Pose].x[0, 2])


def way(name: str, body: str) -> float:
    """Length m of the way of a body in 1.6 s."""
    world, places = lean(name), list[Array]()
    while world.time < 1.6 - 1e-9:
        places.append(world[body][ef.Pose].x[0].astype(np.float64))
        world.step()
    places.append(world[body][ef.Pose].x[0].astype(np.float64))
    return float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())


@measure
def rifled_ball() -> float:
    return way("rifled_ball", "ball")


@measure
def flow_past_sphere() -> float:
    world = lean("flow_past_sphere")
    world.step()
    return float(world.velocity(np.zeros((1, 3)))[0, 0])


@measure
def hot_ball() -> float:
    world = lean("hot_ball", "boundary", "sampling")
    air = world["air"]
    before = air[ef.Temperature].T.copy()
    world.step()
    return 1.2 * 1005 * float(air[ef.Volume].volume @ (air[ef.Temperature].T - before))


@measure
def spinning_ball() -> float:
    return float(march(lean("spinning_ball"), 0.2).diagnostics()["impulse"][2])


@measure
def spinning_box() -> float:
    return way("spinning_box", "box")


def braked(mass: float, speed: float, law: Callable[[float], float]) -> float:
    """Way m in 1.6 s of a body with this mass kg and first speed m/s that slows by rho/2 law(v) v^2/mass."""
    gone, step = 0.0, 1e-3
    for _ in range(1600):
        middle = speed - 0.25 * step * 1.2 * law(speed) * speed**2 / mass
        gone += step * middle
        speed -= 0.5 * step * 1.2 * law(middle) * middle**2 / mass
    return gone


def held_back(mass: float, first: float, radius: float, law: Callable[[float], float]) -> float:
    """The same of a ball in air of 2e-2 m^2/s whose layer begins with it.

    With Basset's force 6 R^2 sqrt(pi rho mu) (v_0/sqrt(t) + integral of dv/ds / sqrt(t - s)), without its
    decay at Reynolds numbers above 1 (Mei and Adrian, J. Fluid Mech. 237 (1992)): so it is too large.
    """
    gone, step, speed, pushes = 0.0, 2e-3, first, list[float]()
    basset = 6 * radius**2 * 1.2 * np.sqrt(np.pi * 2e-2)
    for tick in range(800):
        # dv/ds is constant in each step; the present one's is solved for.
        t, s = (tick + 1) * step, step * np.arange(tick)
        past = first / np.sqrt(t) + float(np.dot(pushes, 2 * (np.sqrt(t - s) - np.sqrt(t - s - step))))
        force = 0.5 * 1.2 * law(speed) * speed**2 + basset * past
        pushes.append(-force / (mass + basset * 2 * np.sqrt(step)))
        gone += step * (speed + 0.5 * step * pushes[-1])
        speed += step * pushes[-1]
    return gone


def test_promised_ways_are_those_of_the_laws_of_drag() -> None:
    """C A of the ball, and of the box, by the ball of its volume.

    The ball's way lies between that by its law alone, with the air that its panels take along, and that with
    Basset's force too and half the displaced air, as potential flow has it.
    Haider and Levenspiel, Powder Technol. 58 (1989), by the sphericity phi, in random orientations.
    """

    def ball(v: float) -> float:
        reynolds = 2 * 0.2 * v / 2e-2
        return float(np.pi * 0.2**2 * 24 / reynolds * (1 + 0.15 * reynolds**0.687))

    sides = np.array([0.2, 0.6, 0.12])
    size = (6 * sides.prod() / np.pi) ** (1 / 3)
    phi = np.pi * size**2 / (2 * sides.prod() * (1 / sides).sum())

    a, b = np.exp(2.3288 - 6.4581 * phi + 2.4486 * phi**2), 0.0964 + 0.5565 * phi
    c = np.exp(4.905 - 13.8944 * phi + 18.4222 * phi**2 - 10.2599 * phi**3)
    d = np.exp(1.4681 + 12.2584 * phi - 20.7322 * phi**2 + 15.8855 * phi**3)

    def box(v: float) -> float:
        reynolds = size * v / 2e-2
        return float(np.pi / 4 * size**2 * (24 / reynolds * (1 + a * reynolds**b) + c / (1 + d / reynolds)))

    taken_along = 0.5 * 1.2 * 4 / 3 * np.pi * 0.2**3
    by_panels = entrained(world := ef.load("rifled_ball"), [world["ball"]])[0, 0, 0]
    bounds = held_back(1.0 + taken_along, 4.0, 0.2, ball), braked(1.0 + by_panels, 4.0, ball)
    value, within = (PROMISES["rifled_ball"][key] for key in ("value", "within"))
    assert (value - within, value + within) == pytest.approx(bounds, abs=0.01)
    assert PROMISES["spinning_box"]["value"] == pytest.approx(braked(1.0, 3.0, box), abs=0.01)


@measure
def two_layers_ball() -> float:
    world, heights = lean("two_layers_ball", "baroclinic", "sampling", "interface"), []
    for _ in range(400):
        world.step()
        heights.append(float(world["ball"][ef.Pose].x[0, 2]))
    return float(np.mean(heights[300:]))


@cache
def flight_of_a_plate() -> tuple[float, float, Array]:
    """Least distance m of the particles from plate_at_angle, and how far it throws smoke behind it up, m.

    The smoke after 0.8 s, 0.6 to 1 m behind the plate's centre; the distance after 0.9 s. Also the
    coefficients (3,) of the force on the plate from 0.2 to 0.9 s: impulse of the air over 1/2 U^2 S t.
    """
    world = ef.load("plate_at_angle")
    plate, before, given = world["plate"], world["smoke"][ef.Position].x[:, 2].copy(), np.zeros(3)
    while world.time < 0.9 - 1e-9:
        world.step()
        if world.tick > 20:
            given -= plate[ef.BoundaryExchange].impulse[0]
        if world.tick == 80:
            x = world["smoke"][ef.Position].x
            behind = plate[ef.Pose].x[0, 0] - x[:, 0]
            thrown = float((x[:, 2] - before)[(behind > 0.6) & (behind < 1.0)].mean())
    away = places(world, "air", "smoke") - [3.0 * world.time - 2.6, 0, 0]
    least = float(out_of_box(away, [0.3, 0.4, 0.0125], -0.35).min())
    return least, thrown, given / (0.5 * 3.0**2 * 0.6 * 0.8 * 0.7)


@measure
def plate_at_angle() -> float:
    return float(-flight_of_a_plate()[2][0])


@pytest.mark.nightly
def test_no_particle_passes_the_plate_and_some_slide_along_it() -> None:
    assert flight_of_a_plate()[0] == pytest.approx(0.0, abs=1e-5)


def suctions(aspect: float, along: int = 16, across: int = 32) -> tuple[float, float, float]:
    """K_p, K_v,le and K_v,se of a thin rectangular wing of this span over its chord, 1.

    dC_L/d(angle), and the suction at the leading edge and at both side edges over 1/2 rho U^2 S angle^2, by a
    lattice of horseshoe vortices on a chord of 1 m at U angle = 1 m/s. Each starts on the first quarter of
    its panel, and the flow follows the panel at three quarters of it. Along the wing K_p - C_Di is left for
    the leading edge. At the distance d from a side edge the circulation upstream of a place is A sqrt(d), so
    the flow around the edge has the speed A/(4 sqrt(d)) and the suction pi rho A^2/16 per length (Lamar, NASA
    TR R-428, 1974). A is read from the second strip, where the other edge takes off the factor 1 - d/span.
    """
    edge = -0.5 * aspect * np.cos(np.linspace(0, np.pi, across + 1))
    middle = -0.5 * aspect * np.cos((np.arange(across) + 0.5) * np.pi / across)
    start, y = np.repeat((np.arange(along) + 0.25) / along, across), np.tile(middle, along)
    dx, down = (start + 0.5 / along)[:, None] - start, np.zeros((len(y), len(y)))
    for ends, sign in ((edge[:-1], 1.0), (edge[1:], -1.0)):
        dy = y[:, None] - np.tile(ends, along)
        r = np.hypot(dx, dy)
        down += sign * (dy / (r * dx) + (1 + dx / r) / dy) / (4 * np.pi)
    upto = np.linalg.solve(down, np.ones(len(y))).reshape(along, across).cumsum(axis=0)
    width, trailing = np.diff(edge), np.diff(upto[-1], prepend=0.0, append=0.0)
    induced = (trailing / (middle[:, None] - edge)).sum(axis=1) / (4 * np.pi)
    slope, drag = (2 * (upto[-1] * each * width).sum() / aspect for each in (1.0, induced))
    d = aspect / 2 - middle[-2]
    square = upto[:, -2] ** 2 / (d * (1 - d / aspect))
    return float(slope), float(slope - drag), float(np.pi / 4 * square.mean() / aspect)


def test_suction_at_the_edges_of_a_wing() -> None:
    """Slender wings have K_p = pi/2 A, half of it as suction at the leading edge, and K_v,se = pi - O(A).

    Munk: no load has less drag than the elliptic one, C_L^2/(pi A); short rectangular wings hardly more.
    """
    slope, leading, side = suctions(0.1)
    assert slope == pytest.approx(np.pi / 2 * 0.1, rel=0.01)
    assert leading == pytest.approx(slope / 2, rel=0.01)
    assert side == pytest.approx(np.pi, rel=0.05)
    slope, leading, _ = suctions(2.0)
    assert 1.0 < (slope - leading) / (slope**2 / (2.0 * np.pi)) < 1.01


@pytest.mark.nightly
def test_a_plate_with_its_nose_up_throws_smoke_down() -> None:
    """As a wing does: smoke behind it goes down by 0.17 m in 0.8 s. With its nose down it went up so far."""
    assert flight_of_a_plate()[1] == pytest.approx(-0.17, abs=0.03)


def lift_by_suction() -> float:
    """Lift coefficient of the plate, K_p sin a cos^2 a + K_v cos a sin^2 a (Polhamus, NASA TN D-3767).

    The first part is that of flow that stays attached, the second that of vortices at the leading edge and,
    after Lamar, at the side edges: 1.03 + 1.94 (slender delta wings have K_v = pi).
    """
    sine, cosine = np.sin(0.35), np.cos(0.35)
    slope, leading, side = suctions(0.8 / 0.6)
    return float(slope * sine * cosine**2 + (leading + side) * cosine * sine**2)


def test_promised_drag_of_a_plate_is_that_of_lift_and_friction() -> None:
    """Normal force alone has the drag lift tan a. Both faces have the friction 1.328/sqrt(Re) + 4.12/Re.

    By Blasius and Kuo (J. Math. Phys. 32, 1953), at Re = 900 by the eddies' viscosity, 3 m/s x 0.6 m/2e-3.
    """
    friction = 2 * (1.328 / 900**0.5 + 4.12 / 900)
    expected = lift_by_suction() * np.tan(0.35) + friction * np.cos(0.35)
    assert PROMISES["plate_at_angle"]["value"] == pytest.approx(expected, abs=0.01)


@pytest.mark.nightly
def test_a_plate_at_an_angle_lifts_as_one_with_vortices_at_its_edges() -> None:
    """And none to the side; a part of the lift is friction's, 0.03 downwards."""
    _, aside, lift = -flight_of_a_plate()[2] * [1, 1, -1]
    assert lift == pytest.approx(lift_by_suction(), rel=0.2)
    assert abs(aside) < 0.02


@cache
def fire_below_a_plate() -> tuple[float, float, int, Array]:
    """Least distance m of the particles from plate_over_flame in 4 s; height m of the fire after 2.2 s, how
    often particles have met the plate by then, and how many are beyond its higher and its lower edge at a
    time, from 2.6 s on."""
    world, nearest = ef.load("plate_over_flame"), np.inf
    height, met, beyond = 0.0, 0, list[list[int]]()
    while world.time < 4.0 - 1e-9:
        world.step()
        away = places(world, "gas", "fire") - [0, 0, 0.8]
        nearest = min(nearest, float(out_of_box(away, [0.5, 0.3, 0.03], 0.25).min()))
        x = world["fire"][ef.Position].x
        if world.tick == 110:
            height, met = float(x[:, 2].max()), int(world.fluid[ef.CollisionCount].met[0])
        if world.tick >= 130:
            across = x[x[:, 2] > 0.6, 0]
            beyond.append([int((across < -0.5).sum()), int((across > 0.5).sum())])
    return nearest, height, met, np.mean(beyond, axis=0)


@measure
def plate_over_flame() -> float:
    return fire_below_a_plate()[0]


@pytest.mark.nightly
def test_fire_comes_to_the_plate() -> None:
    """C8: after 2.2 s flame has come to the plate and met it; every 0.1 s twice as much has."""
    _, height, met, _ = fire_below_a_plate()
    assert height > 0.7 and met > 100


@pytest.mark.nightly
def test_fire_goes_along_the_plate_to_its_higher_edge() -> None:
    """That is at x = -0.5 m. From seeds 1 to 8 17 and more times as many are beyond it."""
    *_, beyond = fire_below_a_plate()
    assert beyond[0] > 1000 and beyond[0] > 10 * beyond[1]


@measure
def ball_through_smoke() -> float:
    return float(march(lean("ball_through_smoke"), 0.5)["ball"][ef.Pose].x[0, 0]) + 2.4


@measure
def fire_and_balloon() -> float:
    return float(march(lean("fire_and_balloon"), 0.2)["balloon"][ef.RigidMotion].v[0, 2]) / 0.2


def through_walls(world: ef.World, angle: float, spin: float) -> float:
    """Largest velocity through the walls of a tank 1 m wide that turns about y, over the rms velocity in it.

    Off the edges, by a tenth of the tank.
    """
    tank = np.random.default_rng(5).uniform(-0.4, 0.4, (200, 3))
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    inside, through = world.velocity(tank @ turn.T), []
    for axis, side in itertools.product(range(3), (-0.5, 0.5)):
        wall = np.where(np.arange(3) == axis, side, tank) @ turn.T
        through.append((world.velocity(wall) - np.cross([0, spin, 0], wall)) @ turn[:, axis])
    return float(np.abs(through).max() / np.sqrt((inside**2).sum(axis=1).mean()))


@measure
def lock_exchange() -> float:
    world, places = lean("lock_exchange"), []
    for end in np.linspace(2.0, 4.0, 11):
        march(world, float(end))
        places.append((world.time, noses(world)[0]))
    return float(np.polyfit(*np.transpose(places), 1)[0])


@measure
def rotating_container() -> float:
    world = march(lean("rotating_container"), 1.0)
    return through_walls(world, 0.6 * world.time, 0.6)


@measure
def sloshing_container() -> float:
    return through_walls(march(lean("sloshing_container"), 1.2), 0.0, 0.0)


# ------------------------------------------------------------------ liquids


def volume_kept(world: ef.World, ticks: int) -> float:
    """Volume inside the surface after so many ticks over that of its first record, 1."""
    world.step(ticks)
    volumes = [record["surface_volume"] for record in world.history if "surface_volume" in record]
    return float(volumes[-1] / volumes[0])


def momentum_not_given(world: ef.World, mass: float) -> float:
    """Momentum of `mass` kg of liquid less what gravity and the walls gave it, over what they gave, 1."""
    given = world.fluid[ef.LiquidBudget].walls - [0, 0, mass * G * world.time]
    water = world["water"]
    momentum = water[ef.Liquid].mass @ water[ef.InertialVelocity].v
    return float(np.abs(momentum - given).max() / np.abs(given).max())


def momentum_of_coarse(name: str, mass: float) -> float:
    """`momentum_not_given` of a world with particles twice as wide, which fill its box too, after 0.5 s."""
    return momentum_not_given(march(ef.load(name, "water.spacing=0.1", "world.precision=double"), 0.5), mass)


@measure
def drop_oscillates() -> float:
    return volume_kept(lean("drop_oscillates", precision="double"), 20)


@measure
def drops_merge() -> float:
    return volume_kept(ef.load("drops_merge", "oil.spacing=0.002", "fluid.velocity.tolerance=5e-3"), 72)


@measure
def dam_break() -> float:
    return momentum_of_coarse("dam_break", mass=500.0)


@measure
def falling_drop() -> float:
    world = lean("falling_drop")
    start = world["drop"][ef.Position].x[:, 2].mean()
    return float(start - march(world, 0.1)["drop"][ef.Position].x[:, 2].mean())


@measure
def syrup() -> float:
    x = march(lean("syrup"), 1.0)["syrup"][ef.Position].x[:, :2]
    # Of h ~ (1 - (x/r)^2)^(1/3) the mean of x^2 + y^2 is 3/7 r^2.
    return float(np.sqrt(7 / 3 * (x**2).sum(axis=1).mean()))


@measure
def water_thread() -> float:
    world = lean("water_thread")
    right = world["water"][ef.Position].x[:, 0] > 0.0
    v = march(world, 0.008)["water"][ef.InertialVelocity].v[:, 0]
    return float(v[~right].mean() - v[right].mean())


@measure
def drop_on_floor() -> float:
    world, heights = march(lean("drop_on_floor"), 0.075), []
    while world.time < 0.096 - 1e-9:
        world.step()
        heights.append(float(world["water"][ef.Position].x[:, 2].mean()))
    return 1e3 * float(np.mean(heights))


@measure
def heavy_ball_in_box() -> float:
    world = lean("heavy_ball_in_box")
    start = world["ball"][ef.Position].x[:, 2].mean()
    return float(start - march(world, 0.5)["ball"][ef.Position].x[:, 2].mean())


@measure
def loaded_boat() -> float:
    """With larger particles."""
    world, heights = march(ef.load("loaded_boat", "water.spacing=0.1"), 2.0), []
    while world.time < 3.0 - 1e-9:
        world.step()
        heights.append(float(world["boat"][ef.Pose].x[0, 2]))
    return float(np.mean(heights))


@measure
def filled_container() -> float:
    """Mean upward force of the tank on the water in the second second, N."""
    world = march(lean("filled_container"), 1.0)
    walls = world.fluid[ef.LiquidBudget].walls.copy()
    return float(march(world, 2.0).fluid[ef.LiquidBudget].walls[2] - walls[2])


@measure
def filling_tank() -> float:
    return float(march(lean("filling_tank"), 0.5)["jet"][ef.Liquid].volume.sum(dtype=np.float64))


@measure
def splash() -> float:
    """From 0.6 s on, with larger particles."""
    world = march(ef.load("splash", "water.spacing=0.08", "world.precision=double"), 0.6)
    white, began = world["whitewater"], {}
    for row in np.flatnonzero(white[ef.Whitewater].kind == 0):
        began[int(white[ef.RowId].id[row])] = white[ef.Position].x[row], white[ef.InertialVelocity].v[row]
    began = {number: (x.copy(), v.copy()) for number, (x, v) in began.items()}
    for _ in range(12):
        world.step()
        spray = set(white[ef.RowId].id[white[ef.Whitewater].kind == 0].tolist())
        began = {number: start for number, start in began.items() if number in spray}
    t, end = 12 * world.dt, dict(zip(white[ef.RowId].id.tolist(), white[ef.Position].x, strict=True))
    fall = 0.5 * t**2 * world.gravity
    off = [np.linalg.norm(end[number] - (x + t * v + fall)) for number, (x, v) in began.items()]
    assert len(off) > 50
    return float(np.median(off))


@measure
def sloshing_dam() -> float:
    return momentum_of_coarse("sloshing_dam", mass=280.0)


# ------------------------------------------------------------------ the table


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if promise.get("nightly") else ())
        for name, promise in PROMISES.items()
    ],
)
def test_promise_is_kept(name: str) -> None:
    promise, found = PROMISES[name], MEASURES[name]()
    parts = (promise, *promise.get("also", ()))
    for part, value in zip(parts, found if isinstance(found, tuple) else (found,), strict=True):
        assert value == pytest.approx(part["value"], rel=0, abs=part["within"]), part["what"]


def test_every_shipped_world_has_its_promise() -> None:
    assert set(PROMISES) == set(shipped()) == set(MEASURES)


@pytest.mark.parametrize("name", PROMISES)
def test_header_gives_the_promise(name: str) -> None:
    """The header and the table say the same."""
    header = shipped()[name].read_text(encoding="utf-8").partition("\n[")[0]
    assert " ".join(header.replace("#", " ").split()).endswith(" ".join(sentence(PROMISES[name]).split()))
