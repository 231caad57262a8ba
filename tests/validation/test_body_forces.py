"""Buoyancy, added mass and drag of bodies. Validation cases 79 to 85."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from solids import Motor, balls, body_world, box, solid

import ecs_fluid as ef

G = 9.81


def afloat(dt: float = 0.02, gravity: float = G, **ambient: Any) -> ef.World:
    """A world with a BodySystem, and an ambient fluid of the given properties."""
    world = body_world(dt=dt, gravity=(0.0, 0.0, -gravity))
    world.set_fluid(**ambient)
    return world


@pytest.mark.parametrize(
    "shape", [{"shape": "ball", "radius": 0.3}, box(0.4, 0.7, 0.2), {"shape": "icosahedron", "radius": 0.4}]
)
@pytest.mark.parametrize("added_mass", [True, False])
def test_a_neutral_body_stays(shape: dict[str, Any], added_mass: bool) -> None:
    """Case 79: of the density of the fluid, in any pose: acceleration below 1e-10 g, no torque.

    1 s makes g t = 9.8 m/s of 1 g; 1e-10 of it is allowed.
    """
    world = afloat(density=997.0)
    body = solid(world, "body", shape, density=997.0, rotation=(0.4, -1.0, 0.3), center=(1, 2, 3))
    world.add_system(ef.BuoyancySystem(added_mass=added_mass))
    world.step(50)
    assert np.linalg.norm(body[ef.RigidMotion].v) < 1e-10 * G
    assert np.linalg.norm(body[ef.RigidMotion].angular_velocity) < 1e-9


@pytest.mark.parametrize("shape", [{"shape": "ball", "radius": 0.3}, box(0.4, 0.7, 0.2)])
def test_archimedes_in_a_linear_profile(shape: dict[str, Any]) -> None:
    """rho = rho_c - s z: F = rho(centre) V g exactly, and T = -int r cross (rho g) = -g s (S_yz, -S_xz, 0).

    S = int r r^T dV, from the box's inertia rotated; 0 off the diagonal for a ball.
    """
    heights = [[-5.0, 2000.0], [5.0, 1000.0]]  # s = 100 kg/m^4
    world = afloat(density=1500.0, density_profile=heights)
    body = solid(world, "body", shape, rotation=(0.4, -1.0, 0.3), center=(0.3, 0.1, 0.7), motion="fixed")
    world.add_system(ef.BuoyancySystem())
    world.step()
    inertia = body[ef.Body].inertia[0] / 1000.0
    volume = body[ef.Body].mass[0] / 1000.0
    from ecs_fluid.kernels.bodies.rotation import matrix_of

    turn = matrix_of(body[ef.Pose].q[0])
    second = turn @ (0.5 * np.trace(inertia) * np.eye(3) - inertia) @ turn.T
    load = body[ef.BodyLoad]
    assert np.allclose(load.force[0], [0, 0, (1500 - 100 * 0.7) * volume * G], rtol=1e-13)
    # r cross z = (y, -x, 0); -int r cross (-s r_z)(-g z) dV = -s g (S_yz, -S_xz, 0).
    wanted = -100 * G * np.array([second[1, 2], -second[0, 2], 0.0])
    assert np.allclose(load.torque[0], wanted, atol=1e-11)


def test_archimedes_in_gas_between_two_temperatures() -> None:
    """T = 300 K + 150 K/m z in ideal gas: at 1 m rho = 1.2 x 300/450 = 0.8 kg/m^3, not the mean of the ends.

    So a small ball of 0.8 floats there; the mean over its volume is 1 + (150 R/450)^2/5 times that, 2e-6 up.
    """
    ambient = {"law": "ideal_gas", "density": 1.2, "temperature": 300.0}
    world = afloat(dt=0.001, temperature_profile=[[0, 300], [2, 600]], **ambient)
    ball = solid(world, "ball", {"shape": "ball", "radius": 0.01}, density=0.8, center=(0, 0, 1))
    world.add_system(ef.BuoyancySystem())
    world.step()
    assert abs(ball[ef.RigidMotion].v[0, 2]) < 1e-5 * G * 0.001


def test_displaced_mass_across_a_jump() -> None:
    """A sharp interface through a ball: rho_1 V_1 + rho_2 V_2 with the cap V = pi h^2 (3 R - h)/3.

    The jump is a ramp 1e-9 m wide, so the cap is met to 1e-9.
    """
    world = afloat(density=1.0, density_profile=[[-5e-10, 3.0], [5e-10, 1.0]])
    body = solid(world, "body", {"shape": "ball", "radius": 0.5}, center=(0, 0, 0.2), motion="fixed")
    world.add_system(ef.BuoyancySystem(local=False))
    world.step()
    depth = 0.3
    below = np.pi * depth**2 * (3 * 0.5 - depth) / 3
    whole = 4 / 3 * np.pi * 0.5**3
    assert np.isclose(body[ef.BodyLoad].force[0, 2], G * (3 * below + (whole - below)), rtol=1e-8)


@pytest.mark.parametrize("fine", [1.5, 3.0, 6.0])
@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_displaced_mass_of_what_particles_carry(fine: float, slope: float) -> None:
    """A ball in a lattice of particles of excess 2 + slope z, with none in it, displaces (3 + slope z) V.

    A cell off its surface the linear kernel sees the gap in the corners of cells alone, 1 % of the excess;
    half a cell off it is 4 to 16 %.
    """
    h, place = 0.15 / fine, np.array([0.02, 0.01, -0.015])
    line = h * (np.arange(-np.ceil(0.5 / h), np.ceil(0.5 / h)) + 0.5)
    x = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    x = x[np.linalg.norm(x - place, axis=1) > 0.15]
    world = afloat(density=1.0)
    body = solid(world, "body", {"shape": "ball", "radius": 0.15}, center=tuple(place), motion="fixed")
    world.spawn("water", ef.Position(x), ef.Volume(np.full(len(x), h**3)), ef.Density(3 + slope * x[:, 2]))
    world.add_system(ef.BuoyancySystem())
    world.step()
    carried = body[ef.BodyLoad].force[0, 2] / (G * 4 / 3 * np.pi * 0.15**3) - 1
    assert carried == pytest.approx(2 + slope * place[2], rel=0.02)


SHARES = (0.25, 0.5, 0.8)


@cache
def settled(kind: str) -> dict[float, tuple[float, float]]:
    """Height and speed after 40 s of three such bodies side by side, by the share that is to be submerged."""
    world = afloat(dt=0.1, density=1000.0, density_profile=[[-1e-4, 1100.0], [1e-4, 1000.0]])
    shape = {"shape": "ball", "radius": 0.1} if kind == "ball" else box(0.2, 0.3, 0.15)
    bodies = {
        share: solid(world, f"body{k}", shape, density=1000 + 100 * share, center=(5.0 * k, 0, 0.05))
        for k, share in enumerate(SHARES)
    }
    world.set_fluid(viscosity=2e-3)
    world.add_systems([ef.BuoyancySystem(), ef.DragSystem()])
    world.step(400)
    return {
        share: (float(body[ef.Pose].x[0, 2]), float(np.abs(body[ef.RigidMotion].v).max()))
        for share, body in bodies.items()
    }


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("kind", ["ball", pytest.param("box", marks=pytest.mark.nightly)])
def test_between_two_layers(share: float, kind: str) -> None:
    """Case 81: the submerged part of the volume is (rho_b - rho_1)/(rho_2 - rho_1), here to 1e-3 (gate 2 %).

    Light water above, brine below; drag brings the body to rest within the 40 s.
    """
    z, speed = settled(kind)[share]
    assert speed < 1e-4
    if kind == "ball":
        depth = 0.1 - z
        below = depth**2 * (0.3 - depth) / (4 * 0.1**3)
    else:
        below = (0.075 - z) / 0.15
    assert abs(below - share) < 1e-3


@pytest.mark.parametrize("heavy", [0.1, 0.5, 2.0, 8.0])
def test_added_mass_of_a_released_ball(heavy: float) -> None:
    """Case 82: a = (m - m_f) g/(m + m_f/2), upwards for light balls, to rounding (gate 3 %)."""
    world = afloat(density=1000.0)
    ball = balls(world, "ball", [0, 0, 0], radius=0.1, mass=heavy * 1000 * 4 / 3 * np.pi * 1e-3)
    world.add_system(ef.BuoyancySystem())
    world.step(10)
    a = -(heavy - 1) * G / (heavy + 0.5)
    assert np.isclose(ball[ef.RigidMotion].v[0, 2], a * 0.2, rtol=1e-12)
    assert np.isclose(ball[ef.Pose].x[0, 2], a * 0.2**2 / 2, rtol=1e-12)


def test_a_given_added_mass_turns_with_the_body() -> None:
    """A plate with C = diag(0, 0, 2), turned by 90 degrees about y, has it along x: it falls as without.

    Upright it falls with (m - m_f) g/(m + 2 m_f).
    """
    for turn, added in ((0.0, 2.0), (np.pi / 2, 0.0)):
        world = afloat(density=1000.0)
        plate = solid(world, "plate", box(1, 1, 0.1), density=4000.0, rotation=(0, turn, 0))
        world.attach("plate", ef.AddedMass([np.diag([0.0, 0.0, 2.0])]))
        world.add_system(ef.BuoyancySystem())
        world.step(5)
        assert np.isclose(plate[ef.RigidMotion].v[0, 2], -3 * G / (4 + added) * 0.1, rtol=1e-12)


def test_stokes_settling() -> None:
    """Case 83: v = 2 (rho_b - rho_f) g R^2/(9 mu), reached along 1 - exp(-t/tau), tau = (m + m_f/2)/k.

    To 1e-9 at every tick, of 0.15 tau each: the exponential is exact (gate 1 %).
    """
    rho, nu, radius = 1000.0, 1e-3, 1e-3
    mass = 2500 * 4 / 3 * np.pi * radius**3
    k = 6 * np.pi * rho * nu * radius
    tau = (mass + 0.5 * mass * rho / 2500) / k
    world = afloat(dt=0.15 * tau, density=rho)
    ball = balls(world, "ball", [0, 0, 0], radius=radius, mass=mass)
    world.set_fluid(viscosity=nu)
    world.add_systems([ef.BuoyancySystem(), ef.DragSystem(law="stokes")])
    limit = -2 * (2500 - rho) * G * radius**2 / (9 * rho * nu)
    for tick in range(1, 41):
        world.step()
        wanted = limit * -np.expm1(-0.15 * tick)
        assert np.isclose(ball[ef.RigidMotion].v[0, 2], wanted, rtol=1e-9)


@pytest.mark.parametrize(
    ("rho", "mu", "law", "measured"),
    [
        (970, 0.373, 0.0409, 0.038),
        (965, 0.212, 0.0635, 0.060),
        (962, 0.113, 0.0939, 0.091),
        (960, 0.058, 0.1290, 0.128),
    ],
)
def test_terminal_velocity_of_ten_cate(rho: float, mu: float, law: float, measured: float) -> None:
    """Case 84: a nylon ball, 15 mm, 1120 kg/m^3, in four silicone oils; 1 % of the law, 10 % of the tank.

    After 2 s, ten times as long as the slowest change takes.
    Source: ten Cate, Nieuwstad, Derksen and Van den Akker, Phys. Fluids 14 (2002), as quoted by the test case
    "sedimenting sphere" of the coupling of Palabos and LIGGGHTS.
    """
    world = afloat(dt=0.02, density=rho)
    ball = balls(world, "ball", [0, 0, 0], radius=7.5e-3, mass=1120 * 4 / 3 * np.pi * 7.5e-3**3)
    world.set_fluid(viscosity=mu / rho)
    world.add_systems([ef.BuoyancySystem(), ef.DragSystem()])
    world.step(100)
    speed = -ball[ef.RigidMotion].v[0, 2]
    assert abs(speed - law) < 0.01 * law
    assert abs(speed - measured) < 0.1 * measured


def test_drag_coefficients() -> None:
    """Case 84: C_d at Re 1, 10, 100, 200, 300 by the law, to the four digits of the table; 0.44 beyond 1000.

    From the force: the deceleration in a small step is C_d pi R^2 rho w^2/(2 m), by dt -> 0 to 1e-4.
    """
    table = {1: 27.60, 10: 4.151, 100: 1.0917, 200: 0.8056, 300: 0.6839, 2000: 0.44}
    for reynolds, wanted in table.items():
        world = afloat(dt=1e-6, gravity=0.0, density=1.0)
        ball = balls(world, "ball", [0, 0, 0], radius=0.5, mass=1.0, v=[reynolds * 1e-2, 0, 0])
        world.set_fluid(viscosity=1e-2)
        world.add_systems([ef.DragSystem()])
        world.step()
        w = reynolds * 1e-2
        found = -ball[ef.BodyLoad].force[0, 0] / (0.5 * np.pi * 0.25 * w * w)
        assert abs(found - wanted) < 2e-4 * wanted


def test_drag_without_flow_is_drag_in_fluid_at_rest() -> None:
    """Also where buoyancy needs the flow: a ball beside a ring, by Stokes, slows by 6 pi mu R v alone.

    Buoyancy pushes by (m_f + m_a) Du/Dt, the same with either `flow`, so the velocities differ by the drag of
    the flow. In one tick of 0.001 s the ball, at rest, feels no drag with flow = false.
    """
    found = {}
    for flow in (True, False):
        world = ef.World(dt=0.001, precision="double", integrator="rk2")
        world.set_fluid(density=1.2, viscosity=1e-3, gravity=(0.0, 0.0, 0.0))
        world.add_system(ef.BodySystem())
        ball = solid(world, "ball", {"shape": "ball", "radius": 0.05}, density=300.0)
        x = np.array([[0.3, 0.0, 0.0], [-0.3, 0.0, 0.0]])
        alpha = np.array([[0.0, 0.1, 0.0], [0.0, -0.1, 0.0]])
        world.spawn("pair", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(np.full(2, 0.1)))
        world.add_systems([ef.VelocitySystem(solver="direct"), ef.AdvectionSystem()])
        world.add_systems([ef.DragSystem(law="stokes", flow=flow), ef.BuoyancySystem(acceleration=True)])
        world.step()
        found[flow] = float(ball[ef.RigidMotion].v[0, 2]), float(ball[ef.Surroundings].u[0, 2])
    mass = 300.0 * 4 / 3 * np.pi * 0.05**3 + 0.5 * 1.2 * 4 / 3 * np.pi * 0.05**3
    pull = 6 * np.pi * 1.2e-3 * 0.05 * found[True][1] / mass * 0.001
    assert abs(pull) > 0 and np.isclose(found[True][0] - found[False][0], pull, rtol=1e-2)


def test_spin_decays_by_the_creeping_torque() -> None:
    """Case 85: torque -8 pi mu R^3 Omega, so that the spin falls as exp(-8 pi mu R^3 t/I), to 1e-9."""
    world = afloat(dt=0.1, gravity=0.0, density=2.0)
    ball = balls(world, "ball", [0, 0, 0], radius=0.2, mass=1.0)
    ball[ef.RigidMotion].angular_velocity[0] = [1.0, -2.0, 3.0]
    world.set_fluid(viscosity=0.05)
    world.add_system(ef.DragSystem())
    world.step(20)
    rate = 8 * np.pi * 2.0 * 0.05 * 0.2**3 / (0.4 * 0.2**2)
    assert np.allclose(
        ball[ef.RigidMotion].angular_velocity[0], np.exp(-2 * rate) * np.array([1, -2, 3]), rtol=1e-9
    )


def test_spin_follows_the_vorticity() -> None:
    """Case 85 in a vortex: on a tube's axis the ball turns with omega/2, within 2 %."""
    world = afloat(dt=0.05, gravity=0.0, density=1.0)
    z = np.linspace(-6, 6, 121)
    line = np.stack([0 * z, 0 * z, z], axis=1)
    strength = np.tile([0, 0, 0.1], (121, 1))  # circulation 1 m^2/s
    world.spawn("tube", ef.Position(line), ef.Strength(strength), ef.CoreRadius(np.full(121, 0.5)))
    ball = balls(world, "ball", [0, 0, 0], radius=0.02, mass=4 / 3 * np.pi * 8e-6)
    world.set_fluid(viscosity=0.05)
    world.add_systems([ef.VelocitySystem(solver="direct", at="vortons"), ef.DragSystem()])
    world.step(20)
    # A column of Winckelmans blobs has u_phi = Gamma/(2 pi) r (r^2 + 2 s^2)/(r^2 + s^2)^2, so omega/2 on the
    # axis is Gamma/(2 pi) 2/s^2.
    assert np.allclose(
        ball[ef.RigidMotion].angular_velocity[0], [0, 0, 2 / (2 * np.pi * 0.25)], rtol=0.02, atol=1e-6
    )


def test_drag_is_relative_to_the_fluid() -> None:
    """A neutral ball in a vortex ring's jet takes on the velocity at its centre within some tau."""
    world = afloat(dt=0.02, gravity=0.0, density=1.0)
    phi = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    ring = np.stack([np.cos(phi), np.sin(phi), 0 * phi], axis=1)
    swirl = np.stack([-np.sin(phi), np.cos(phi), 0 * phi], axis=1) * (2 * np.pi / 64)
    world.spawn("ring", ef.Position(ring), ef.Strength(swirl), ef.CoreRadius(np.full(64, 0.2)))
    ball = balls(world, "ball", [0, 0, 0], radius=0.01, mass=4 / 3 * np.pi * 1e-6)
    flow = ef.VelocitySystem(solver="direct", at="vortons")
    world.set_fluid(viscosity=1.0)
    world.add_systems([flow, ef.BuoyancySystem(), ef.DragSystem(law="stokes")])
    world.step(10)
    there = world.velocity(ball[ef.Pose].x)[0]
    assert there[2] > 0.4  # Gamma/(2 R) = 1/2, less the core's share
    assert np.linalg.norm(ball[ef.RigidMotion].v[0] - there) < 0.01 * there[2]


@pytest.mark.parametrize("integrator", ["rk2", "rk3", "rk4"])
@pytest.mark.parametrize("heavy", [0.01, 1.0, 10.0])
def test_a_gust_takes_bodies_along(heavy: float, integrator: Any) -> None:
    """Fluid that accelerates by A: (m + m_f/2) dv/dt = (m_f + m_f/2) A, so 3, 1 and 1/7 A, exactly."""
    world = ef.World(dt=0.02, precision="double", integrator=integrator)
    world.set_fluid(density=1.2, gravity=(0.0, 0.0, 0.0))
    body = solid(world, "ball", {"shape": "ball", "radius": 0.1}, density=1.2 * heavy)
    gust = {"keys": [(0.0, (0.0, 0.0, 0.0)), (1.0, (2.0, 0.0, 0.0))]}
    world.add_systems([ef.WindSystem(velocity=gust), ef.BuoyancySystem(local=False, acceleration=True)])
    world.step(25)
    assert body[ef.RigidMotion].v[0, 0] == pytest.approx(1.5 / (heavy + 0.5), rel=1e-12)


def in_a_vortex(*heavy: float, dt: float, wind: float = 0.0, drag: bool = False) -> tuple[ef.World, float]:
    """Small disks, so heavy beside the fluid, 0.4 m around a vortex in a plane, as fast as the flow there;
    the time s of a turn."""
    world = ef.World(dt=dt, precision="double", dimension=2)
    world.set_fluid(density=1.2, viscosity=0.01, gravity=(0.0, 0.0, 0.0))
    vortex = ef.Position(np.zeros((1, 3))), ef.Strength(np.array([[0.0, 0.0, 4.0]]))
    world.spawn("vortex", *vortex, ef.CoreRadius(np.array([0.5])))
    shape = {"shape": "ball", "radius": 0.02 if drag else 0.002}
    places = 0.4 * np.array([[np.cos(angle), np.sin(angle), 0.0] for angle in range(len(heavy))])
    for number, (place, ratio) in enumerate(zip(places, heavy, strict=True)):
        solid(world, f"disk-{number}", shape, center=tuple(place), density=1.2 * ratio)
    world.add_systems([ef.VelocitySystem(solver="direct"), ef.WindSystem(velocity=(wind, 0.0, 0.0))])
    world.add_system(ef.BuoyancySystem(local=False, acceleration=True))
    if drag:
        world.add_system(ef.DragSystem())
    flow = world.velocity(places)
    for number, u in enumerate(flow):
        world[f"disk-{number}"][ef.RigidMotion].v[0] = u
    return world, float(2 * np.pi * 0.4 / np.linalg.norm(flow[0] - [wind, 0.0, 0.0]))


def distance(world: ef.World, number: int = 0) -> float:
    """Of a disk from the vortex, m."""
    return float(np.linalg.norm(world[f"disk-{number}"][ef.Pose].x[0] - world["vortex"][ef.Position].x[0]))


@pytest.mark.parametrize(("wind", "most"), [(0.0, 2e-4), (1.5, 2e-3)])
def test_a_neutral_body_goes_with_a_vortex(wind: float, most: float) -> None:
    """(m + m_a) dv/dt = (m + m_a) Du/Dt is the way of the fluid itself, a circle about the vortex.

    It is left by steps of second order; where the vortex goes with a wind the flow is unsteady at a place, of
    first order. Half the step leaves a quarter of the error, and a half.
    """
    off = []
    for dt in (0.02, 0.01):
        world, turn = in_a_vortex(1.0, dt=dt, wind=wind)
        world.step(round(turn / dt))
        off.append(abs(distance(world) / 0.4 - 1))
    print(off)
    assert off[1] < most
    assert off[1] < off[0] * (0.3 if wind == 0.0 else 0.6)


def test_a_vortex_draws_bubbles_in_and_throws_stones_out() -> None:
    """Drag takes both along; before Du/Dt counted, it threw out bubbles and what is as dense as the fluid."""
    world, _ = in_a_vortex(0.01, 1.0, 3.0, dt=0.01, drag=True)
    world.step(200)
    after = [distance(world, number) for number in range(3)]
    print(after)
    assert after[0] < 0.3 and after[1] == pytest.approx(0.4, rel=5e-3) and after[2] > 0.5


def test_acceleration_needs_two_times_of_a_tick() -> None:
    world = ef.World(dt=0.02, integrator="euler")
    with pytest.raises(
        ef.RecipeError, match='integrator = "euler" evaluates it at one; use integrator = "rk2"'
    ):
        world.add_system(ef.BuoyancySystem(acceleration=True))


def cloud(world: ef.World, slope: float) -> None:
    """Particles on a lattice around the origin, of the excess density 2 + slope (x + 2 z)."""
    line = np.linspace(-1.45, 1.45, 30)
    x = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    rho = 12 + slope * (x[:, 0] + 2 * x[:, 2])
    n = len(x)
    world.spawn(
        "fluid_of_particles",
        ef.Position(x), ef.Strength(np.zeros((n, 3))), ef.CoreRadius(np.full(n, 0.2)),
        ef.Volume(np.full(n, 1e-3)), ef.Density(rho),
    )  # fmt: skip


@pytest.mark.parametrize("shape", [{"shape": "ball", "radius": 0.3}, box(0.4, 0.3, 0.2)])
def test_particles_count(shape: dict[str, Any]) -> None:
    """Density that particles carry: F = rho(centre) V g in a linear profile, 1e-6 of the grid's rounding.

    The lattice fills the body's place too; only what is outside of it is read.
    """
    world = afloat(density=10.0)
    cloud(world, 1.5)
    body = solid(world, "body", shape, center=(0.1, 0.0, 0.05), motion="fixed")
    world.add_system(ef.BuoyancySystem())
    world.evaluate()
    world.step()
    volume = body[ef.Body].mass[0] / 1000
    wanted = (12 + 1.5 * (0.1 + 2 * 0.05)) * volume * G
    assert np.isclose(body[ef.BodyLoad].force[0, 2], wanted, rtol=1e-6)


def test_a_heated_balloon_lifts_off() -> None:
    """Part 11, corrected: a ball a little too heavy at 300 K rests; at 400 K it displaces 4/3 of its volume.

    a = (4/3 m_f - m) g/(m + 4/3 m_f/2), with m = 1.1 m_f.
    """
    for warm, wanted in ((300.0, -0.1 * G / 1.6), (400.0, (4 / 3 - 1.1) * G / (1.1 + 2 / 3))):
        world = afloat(density=1.2, dt=0.01)
        cold = 1.2 * 4 / 3 * np.pi * 0.2**3
        ball = balls(world, "ball", [0, 0, 0], radius=0.2, mass=1.1 * cold)
        world.attach("ball", ef.BodyHeat([warm], [100.0], expansion=[1 / 300], reference=[300.0]))
        world.add_system(ef.BuoyancySystem())
        world.step(10)
        assert np.isclose(ball[ef.RigidMotion].v[0, 2], wanted * 0.1, rtol=1e-10)


@pytest.mark.parametrize(("warm", "part"), [(500.0, 0.0), (600.0, 0.1)])
def test_a_body_expands_from_the_temperature_of_the_fluid(warm: float, part: float) -> None:
    """Neutral at the fluid's 500 K it stays; 100 K warmer it displaces 1.1 times as much: a = 0.1 g/1.55.

    At the height 1 m of a fluid with 500 K there, and 700 K at 0 m; what it had when released is kept.
    """
    world = afloat(density=1.2, dt=0.01)
    world.set_fluid(law="liquid", expansion=0.0, temperature=500.0)
    world.set_fluid(temperature_profile=[[0.0, 700.0], [1.0, 500.0]])
    ball = balls(world, "ball", [0, 0, 1], radius=0.2, mass=1.2 * 4 / 3 * np.pi * 0.2**3)
    world.attach("ball", ef.BodyHeat([warm], [100.0], expansion=[1e-3]))
    world.add_system(ef.BuoyancySystem())
    world.step(10)
    assert np.isclose(ball[ef.RigidMotion].v[0, 2], part * G / (1 + (1 + part) / 2) * 0.1, rtol=1e-10)
    assert ball[ef.BodyHeat].reference.tolist() == [500.0]


def test_a_constant_torque_spins_a_body_up() -> None:
    """I d(spin)/dt = T: a user's own system adds to BodyLoad; spin = T t/I about a principal axis."""
    world = body_world(gravity=(0.0, 0.0, 0.0), dt=0.1)
    body = solid(world, "body", box(0.2, 0.3, 0.4), density=1000.0)
    world.add_systems([ef.LoadSystem(), Motor(torque=(0.3, 0.0, 0.0))])
    world.step(10)
    inertia = 24.0 / 12 * (0.3**2 + 0.4**2)
    assert np.allclose(
        body[ef.RigidMotion].angular_velocity[0], [0.3 / inertia, 0, 0], rtol=1e-12, atol=1e-14
    )


def test_a_spinning_ball_curves() -> None:
    """F3: backspin lifts, F = pi rho R^3 spin cross w; spin along the way does not deflect at all.

    In a small step a = F/m to 1e-3, with the drag along the way only.
    """
    for angular_velocity, way in (
        ([0.0, -5.0, 0.0], [0, 0, 1.0]),
        ([0, 0, 5.0], [0, 1.0, 0]),
        ([5.0, 0, 0], [0, 0, 0]),
    ):
        world = afloat(dt=1e-4, gravity=0.0, density=1.2)
        ball = balls(world, "ball", [0, 0, 0], radius=0.2, mass=0.1, v=[4.0, 0, 0])
        ball[ef.RigidMotion].angular_velocity[0] = angular_velocity
        world.set_fluid(viscosity=1e-3)
        world.add_system(ef.DragSystem(lift=1.0))
        world.step()
        wanted = np.pi * 1.2 * 0.2**3 * 5.0 * 4.0 / 0.1 * 1e-4
        v = ball[ef.RigidMotion].v[0]
        assert np.allclose(v[1:], wanted * np.array(way)[1:], rtol=1e-3, atol=1e-15)
        assert v[0] < 4.0


def test_spin_lifts_without_drag() -> None:
    """F3: with a coefficient of 0 a spinning ball goes in a circle, at the rate pi rho R^3 spin / m."""
    world = afloat(dt=0.1, gravity=0.0, density=1.2)
    ball = balls(world, "ball", [0, 0, 0], radius=0.2, mass=0.1, v=[4.0, 0, 0])
    ball[ef.RigidMotion].angular_velocity[0] = [0.0, 0.0, 5.0]
    world.add_system(ef.DragSystem(law="constant", coefficient=0.0, lift=1.0))
    world.step(5)
    turned = 0.5 * np.pi * 1.2 * 0.2**3 * 5.0 / 0.1
    wanted = 4.0 * np.array([np.cos(turned), np.sin(turned), 0.0])
    np.testing.assert_allclose(ball[ef.RigidMotion].v[0], wanted, rtol=0, atol=1e-12)
