"""Particles against bodies and containers. Validation cases 92, 97; articles F6, F9, F10, K1."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bodies_worker import crowded_world
from solids import balls, box, room, solid
from thread_hashes import printed_hashes

import ecs_fluid as ef
from ecs_fluid.systems.shared.emitters import Emitter
from tests.resuming import resumed

Array = np.ndarray
PLATONIC = ("tetrahedron", "octahedron", "cube", "dodecahedron", "icosahedron")
BY_DAY_AND_NIGHT = ("single", pytest.param("double", marks=pytest.mark.nightly))
"""In single precision rounding is more likely to leave something inside; other tests here are in double."""


def particles(world: ef.World, x: Array, v: Array) -> ef.Entity:
    """Inertial particles; they move by their own velocity alone."""
    return world.spawn("dust", ef.Position(x), ef.InertialVelocity(v))


def empty_world(precision: str = "double", dt: float = 0.1) -> ef.World:
    """A world without fluid, in which inertial particles fly straight."""
    return ef.World(dt=dt, precision=precision, integrator="euler")


def run_systems(world: ef.World, **collision: Any) -> ef.CollisionSystem:
    """Give the world its systems once bodies and particles are there."""
    system = ef.CollisionSystem(**collision)
    world.set_fluid(gravity=(0.0, 0.0, 0.0))
    world.add_systems([ef.AdvectionSystem(), ef.InertiaSystem(), ef.BodySystem(), system])
    return system


def count(world: ef.World, name: str) -> int:
    """A number of the CollisionCount."""
    return int(getattr(world.fluid[ef.CollisionCount], name)[0])


def shot(precision: str, number: int, seed: int) -> int:
    """Case 92: particles shot at a thin plate and at a ball; returns how many met one. None passes.

    Speed times dt goes from 0.1 to 20 ball radii (0.2 m), through a plate of 1 mm, which moves and tilts too.
    A particle that starts above the plate's plane and ends over its middle has to be above it still; one
    that came straight at the ball is not behind it.
    """
    draw = np.random.default_rng(seed)
    reach = 0.2 * 10 ** draw.uniform(-1, np.log10(20), number)
    world = empty_world(precision)
    solid(
        world,
        "plate",
        box(100, 100, 1e-3),
        motion="scripted",
        velocity=(0.3, 0, 1.0),
        angular_velocity=(0.1, 0, 0),
    )
    x = (
        draw.uniform(-1, 1, (number, 3)) * [5, 5, 0]
        + [0, 0, 0.05]
        + draw.uniform(0, 1, (number, 1)) * [0, 0, 1]
    )
    way = draw.standard_normal((number, 3))
    way[:, 2] = -np.abs(way[:, 2])
    v = way / np.linalg.norm(way, axis=1, keepdims=True) * (reach / 0.1)[:, None]
    dust = particles(world, x, v)
    system = run_systems(world)
    for _ in range(3):
        world.step()
        pose = world["plate"][ef.Pose]
        at = dust[ef.Position].x.astype(np.float64) - pose.x[0]
        w, a = pose.q[0, 0], pose.q[0, 1]  # the plate turns about x: its normal is (0, -sin, cos)
        height = (w * w - a * a) * at[:, 2] - 2 * w * a * at[:, 1]
        assert (height > 0.5e-3 * (1 - 1e-3)).all()
        assert (system.overlap(dust[ef.Position].x) <= 0).all()
    met = count(world, "met")

    world = empty_world(precision)
    balls(world, "ball", [0, 0, 0], radius=0.2, motion="scripted", v=[0.0, 0.0, 0.5])
    x = np.stack([*draw.uniform(-0.14, 0.14, (2, number)), draw.uniform(0.5, 1.0, number)], axis=1)
    v = np.stack([np.zeros(number), np.zeros(number), -20.0 * reach / reach.max() * 2 - 0.5], axis=1)
    dust = particles(world, x, v)
    system = run_systems(world)
    world.step()
    at = dust[ef.Position].x.astype(np.float64) - world["ball"][ef.Pose].x[0]
    # Having slid off along the plane it touched, none can be in the ball's shadow: behind it, and not beside.
    assert ((at[:, 2] > 0) | (np.hypot(at[:, 0], at[:, 1]) >= 0.2 * (1 - 1e-6))).all()
    assert (system.overlap(dust[ef.Position].x) <= 0).all()
    return met + count(world, "met")


@pytest.mark.parametrize("precision", ["single", "double"])
def test_nothing_tunnels(precision: str) -> None:
    """Case 92, quick: 2 x 10^4 particles."""
    assert shot(precision, 10_000, seed=1) > 14_000


@pytest.mark.nightly
@pytest.mark.parametrize("precision", ["single", "double"])
def test_nothing_of_a_million_tunnels(precision: str) -> None:
    """Case 92 in full: 10^6 particles, no escape."""
    assert shot(precision, 500_000, seed=2) > 700_000


def test_fast_particles_come_back_to_the_face_they_came_by() -> None:
    """F10: through a 1 cm plate 30 thicknesses a tick; elastic, mirrored at the face: z -> 2 s - z."""
    world = empty_world(dt=0.01)
    solid(world, "plate", {"shape": "plate", "thickness": 0.01}, motion="fixed")
    x = np.array([[0.0, 0.0, 0.1], [0.2, 0.1, -0.1]])
    dust = particles(world, x, np.array([[1.0, 0, -30.0], [0, 2.0, 30.0]]))
    run_systems(world, restitution=1.0)
    world.step()
    # The face is at s = 0.005; the free path ends at 0.1 - 0.3 = -0.2, its mirror image at 0.01 + 0.2.
    assert np.allclose(dust[ef.Position].x, [[0.01, 0, 0.21], [0.2, 0.12, -0.21]], atol=1e-13)
    assert np.allclose(dust[ef.InertialVelocity].v, [[1, 0, 30], [0, 2, -30]], atol=1e-13)


def test_tracers_slide() -> None:
    """Without restitution only the part into the surface is lost: on to (x + v_t t, surface), to rounding."""
    world = empty_world()
    solid(world, "floor", box(20, 20, 2), center=(0, 0, -1), motion="fixed")
    dust = particles(world, np.array([[0.0, 0.0, 0.2]]), np.array([[3.0, -1.0, -5.0]]))
    run_systems(world)
    world.step()
    assert np.allclose(dust[ef.Position].x, [[0.3, -0.1, 0.0]], atol=1e-12)
    assert dust[ef.Position].x[0, 2] > 0
    assert np.allclose(dust[ef.InertialVelocity].v, [[3.0, -1.0, 0.0]], atol=1e-13)


@pytest.mark.parametrize(("bounce", "lost"), [(1.0, 0.0), (0.6, 1 - 0.6**4)])
def test_sparks_that_fall_jump_as_high_as_they_should(bounce: float, lost: float) -> None:
    """Heights by the energy g z + v^2/2 after two impacts on a floor: (1 - lost) h, second order in dt.

    Gravity goes on after an impact at the part t of a tick. If the velocity at the end of the tick were
    turned round, each impact at v would add 2 g dt (1 - t) to it: 2 g dt / v of the energy in the mean. What
    is left is at most the square of g dt / v, v the least speed of an impact.
    """
    g, heights, errors = 9.81, np.linspace(0.5, 1.5, 40), []
    for dt in (0.02, 0.01):
        world = ef.World(dt=dt, precision="double", integrator="rk2")
        solid(world, "floor", box(20, 20, 2), center=(0, 0, -1), motion="fixed")
        dust = particles(world, np.stack([0 * heights, 0 * heights, heights], axis=1), np.zeros((40, 3)))
        world.set_fluid(gravity=(0.0, 0.0, -g))
        bouncing = ef.CollisionSystem(restitution=bounce)
        world.add_systems([ef.AccelerateSystem(), ef.AdvectionSystem(), bouncing])
        met, energies = np.zeros(40, int), np.full(40, np.nan)
        while np.isnan(energies).any():
            upwards = dust[ef.InertialVelocity].v[:, 2] > 0
            world.step()
            z, v = dust[ef.Position].x[:, 2], dust[ef.InertialVelocity].v[:, 2]
            met += ~upwards & (v > 0)
            energies = np.where(np.isnan(energies) & (met == 2), g * z + v**2 / 2, energies)
        errors.append(np.sqrt(np.mean((energies / (g * heights) / (1 - lost) - 1) ** 2)))
    least = bounce * np.sqrt(2 * g * heights[0])
    assert errors[1] < (g * 0.01 / least) ** 2 and errors[0] > 3 * errors[1], errors


def test_moving_surface_gives_its_velocity() -> None:
    """A wall at 2 m/s runs over a resting particle: inelastic 2 m/s, elastic 4 m/s; it stays ahead."""
    for bounce, speed in ((0.0, 2.0), (1.0, 4.0)):
        world = empty_world()
        solid(world, "wall", box(1, 4, 4), center=(0, 0, 0), motion="scripted", velocity=(2.0, 0, 0))
        dust = particles(world, np.array([[0.6, 0.0, 0.0]]), np.zeros((1, 3)))
        run_systems(world, restitution=bounce)
        world.step()
        assert np.allclose(dust[ef.InertialVelocity].v[0], [speed, 0, 0], atol=1e-13)
        assert dust[ef.Position].x[0, 0] > 0.7


def test_a_spinning_ball_carries_nothing_along() -> None:
    """Friction belongs to the fluid: a spin of 50 rad/s leaves particles at its surface where they are."""
    world = empty_world()
    draw = np.random.default_rng(4)
    x = draw.standard_normal((500, 3))
    x *= 0.2000001 / np.linalg.norm(x, axis=1, keepdims=True)
    solid(
        world,
        "ball",
        {"shape": "ball", "radius": 0.2},
        motion="scripted",
        center=(0, 0, 0),
        angular_velocity=(0, 0, 50.0),
    )
    dust = particles(world, x, np.zeros((500, 3)))
    run_systems(world)
    world.step(3)
    assert np.array_equal(dust[ef.Position].x, x)


@pytest.mark.parametrize("shape", PLATONIC)
@pytest.mark.parametrize("precision", BY_DAY_AND_NIGHT)
def test_nothing_leaves_a_container(shape: str, precision: str) -> None:
    """Cases 97, K1: in each regular polytope, flying and spinning, hot particles stay, tick after tick."""
    world = empty_world(precision, dt=0.05)
    draw = np.random.default_rng(5)
    room(
        world,
        "room",
        {"shape": shape, "radius": 1.0},
        velocity=(3.0, 1.0, -2.0),
        angular_velocity=(1.0, -2.0, 3.0),
    )
    dust = particles(world, draw.uniform(-0.8, 0.8, (3000, 3)), 4 * draw.standard_normal((3000, 3)))
    system = run_systems(world, restitution=1.0)
    inside = len(dust)
    assert 200 < inside < 3000 and count(world, "cleared") == 3000 - inside
    for _ in range(40):
        world.step()
        assert system.overlap(dust[ef.Position].x).max() <= 0
    assert len(dust) == inside and count(world, "met") > 10 * inside
    assert count(world, "squeezed") == count(world, "trapped") == 0


@pytest.mark.nightly
def test_nothing_leaves_a_container_in_long() -> None:
    """Case 97 in full: 10^5 ticks of a spinning box in single precision, no particle outside."""
    world = empty_world("single", dt=0.05)
    draw = np.random.default_rng(6)
    room(world, "room", box(1, 2, 1.5), angular_velocity=(0.3, -0.2, 1.0))
    dust = particles(world, draw.uniform(-0.4, 0.4, (100, 3)), 4 * draw.standard_normal((100, 3)))
    system = run_systems(world, restitution=1.0)
    for _ in range(100_000):
        world.step()
        assert system.overlap(dust[ef.Position].x).max() <= 0


@pytest.mark.parametrize("precision", BY_DAY_AND_NIGHT)
def test_nothing_is_left_inside_a_body(precision: str) -> None:
    """F6 with everything at once: balls, a tumbling block, a rolling container, tracers, sparks, vortons."""
    world = crowded_world(precision)
    system = world.system(ef.CollisionSystem)
    before = {name: len(world[name]) for name in ("smoke", "sparks", "vortons")}
    assert count(world, "cleared") > 0
    for _ in range(60):
        world.step()
        for name, rows in before.items():
            assert len(world[name]) == rows
            assert system.overlap(world[name][ef.Position].x).max() <= 0
    assert count(world, "met") > 1000 and count(world, "trapped") == 0


def test_particles_in_a_closing_gap_are_moved_out() -> None:
    """Two plates close on a cloud: all is outside both in the end, whatever the plates leave between them."""
    world = empty_world(dt=0.1)
    draw = np.random.default_rng(7)
    for name, side in (("left", -1.0), ("right", 1.0)):
        solid(
            world,
            name,
            box(1, 2, 2),
            center=(1.0 * side, 0, 0),
            motion="scripted",
            velocity=(-0.25 * side, 0, 0),
        )
    dust = particles(world, draw.uniform(-0.45, 0.45, (2000, 3)), np.zeros((2000, 3)))
    system = run_systems(world)
    for _ in range(20):
        world.step()
        assert system.overlap(dust[ef.Position].x).max() <= 0
    # The plates met at half time; all 2,000 were between them.
    assert count(world, "squeezed") > 0 and count(world, "trapped") == 0
    assert np.abs(dust[ef.Position].x).max() > 1.0


def test_what_is_inside_at_the_start_is_removed_and_counted() -> None:
    """Cleared are exactly those within the ball, by distance, and outside the box, by coordinates."""
    draw = np.random.default_rng(8)
    x = draw.uniform(-1, 1, (5000, 3))
    world = empty_world()
    world.spawn("smoke", ef.Position(x))
    solid(world, "ball", {"shape": "ball", "radius": 0.5}, center=(0.1, 0, 0), motion="fixed")
    room(world, "room", box(1.6, 2.4, 2.4))
    run_systems(world)
    lost = (np.linalg.norm(x - [0.1, 0, 0], axis=1) < 0.5) | (np.abs(x[:, 0]) > 0.8)
    assert count(world, "cleared") == lost.sum() > 500
    assert np.array_equal(world["smoke"][ef.Position].x, x[~lost])


def test_a_population_that_is_gone_at_the_start_is_told() -> None:
    ring = {"kind": "vortex_ring", "name": "ring", "radius": 0.2, "core": 0.1, "circulation": 0.5}
    tank = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1.0, 1.0, 0.8]}}
    for height, there in ((0.0, True), (3.0, False)):
        tables = {"entity": [{**ring, "center": [0.0, height, 0.0]}, tank]}
        world = ef.WorldRecipe.from_tables(tables).build()
        said = [text for text in world.lint() if "'ring' lie inside a body or outside all containers" in text]
        assert (len(said) == 0, len(world["ring"]) > 0) == (there, there)


def emitter(world: ef.World, **options: Any) -> None:
    """Smoke, 100 particles a tick of 0.02 s, from a ball of 0.6 m across about the origin."""
    world.spawn("smoke", ef.Position(np.zeros((0, 3))))
    options = {"rate": 5000.0, "shape": "sphere", "spread": (0.6, 0.6, 0.6), **options}
    world.add_system(ef.EmissionSystem(emitters=[Emitter(name="nozzle", into="smoke", **options)]))


@pytest.mark.parametrize("precision", ["single", "double"])
def test_what_is_emitted_into_a_body_is_removed_and_counted(precision: str) -> None:
    """Of births evenly over a ball of 0.3 m, those within a ball of 0.2 m: 8/27 of them, 4 standard errors.

    The ball moves; that it is there at the end of the tick counts. No particle is inside after any tick.
    """
    world = empty_world(precision, dt=0.02)
    balls(world, "ball", [0, 0, 0], radius=0.2, motion="scripted", v=[0.05, 0, 0])
    emitter(world)
    system = run_systems(world)
    for _ in range(50):
        world.step()
        assert system.overlap(world["smoke"][ef.Position].x).max() <= 0
    kept, cleared = len(world["smoke"]), count(world, "cleared")
    assert kept + cleared == 5000
    assert abs(cleared / 5000 - 8 / 27) < 4 * np.sqrt(8 / 27 * 19 / 27 / 5000)


def test_what_is_emitted_outside_a_container_is_removed_and_counted() -> None:
    """A cube of 0.2 m in the middle of births: all that is there after 20 ticks of wind is within it."""
    world = empty_world("single", dt=0.02)
    room(world, "room", box(0.2, 0.2, 0.2))
    emitter(world, spread=(0.3, 0.3, 0.3))
    world.add_system(ef.WindSystem(velocity=(1.0, 0, 0)))
    run_systems(world)
    world.step(20)
    assert np.abs(world["smoke"][ef.Position].x).max() <= np.float32(0.1)
    assert len(world["smoke"]) + count(world, "cleared") == 2000 and count(world, "cleared") > 500


def test_an_emitter_inside_a_body_says_so() -> None:
    world = empty_world()
    balls(world, "ball", [0, 0, 0], radius=0.5, motion="fixed")
    emitter(world)
    run_systems(world)
    with pytest.warns(ef.FluidWarning, match="all of the last 250 particles that emitters added to 'smoke'"):
        world.step()
    assert len(world["smoke"]) == 0 and count(world, "cleared") == 500


def test_one_particle_in_a_body_is_no_emitter_in_a_body() -> None:
    """One particle in half a tick, (5/6)^3 of them in the ball, is told where eight in a row are in it."""
    for spread, told in ((1.2, False), (0.1, True)):
        world = empty_world(dt=0.01)
        balls(world, "ball", [0, 0, 0], radius=0.5, motion="fixed")
        emitter(world, rate=200.0, spread=(spread, spread, spread))
        run_systems(world)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            world.step(4)
        assert any("all of the last 8 particles" in str(one.message) for one in said) == told
        assert count(world, "cleared") > 0 and (len(world["smoke"]) > 0) != told


def test_clearance_is_kept() -> None:
    """With a clearance of 0.1 m particles slide at that distance of a ball, 0.3 m from its centre."""
    world = empty_world(dt=0.02)
    balls(world, "ball", [0, 0, 0], radius=0.2, motion="fixed")
    draw = np.random.default_rng(9)
    x = np.stack([np.full(200, -1.0), *draw.uniform(-0.25, 0.25, (2, 200))], axis=1)
    dust = particles(world, x, np.tile([5.0, 0, 0], (200, 1)))
    run_systems(world, clearance=0.1)
    least = np.inf
    for _ in range(30):
        world.step()
        least = min(least, np.linalg.norm(dust[ef.Position].x, axis=1).min())
    assert 0.3 <= least < 0.31


def test_two_rooms_keep_their_own() -> None:
    """Two containers side by side: particles stay in the one they began in."""
    world = empty_world()
    draw = np.random.default_rng(10)
    x = draw.uniform(-0.5, 0.5, (400, 3))
    x[:200, 0] -= 1.0
    x[200:, 0] += 1.0
    for name, side in (("left", -1.0), ("right", 1.0)):
        room(world, name, box(1, 1, 1), center=(side, 0.0, 0.0))
    dust = particles(world, x, 10 * draw.standard_normal((400, 3)))
    system = run_systems(world, restitution=1.0)
    world.step(30)
    assert len(dust) == 400 and system.overlap(dust[ef.Position].x).max() <= 0
    assert (dust[ef.Position].x[:200, 0] < -0.5).all() and (dust[ef.Position].x[200:, 0] > 0.5).all()


def test_threads_do_not_matter() -> None:
    """Cases 109, P2: 1, 2, 4 and 8 threads, in another process and in this one, give the same bits."""
    world = crowded_world()
    world.step(10)
    found = printed_hashes("bodies_worker.py", "1,2,4,8")
    assert len(found) == 4 and set(found.values()) == {world.state_hash()}


def test_resume_equals_a_straight_run(tmp_path: Path) -> None:
    """Case 111 with bodies, contacts and collisions in full swing."""
    world = crowded_world()
    world.step(7)
    resumed(world, tmp_path, 6, 6)


@pytest.mark.parametrize(("turn", "told"), [(0.4, False), (1.0, True)])
def test_a_body_that_turns_far_in_a_tick_is_told(turn: float, told: bool) -> None:
    """Of particles that meet the wall of a ring one in six passes it at 1 rad a tick; balls have no walls."""
    world = empty_world()
    solid(world, "bar", box(1.0, 0.1, 0.1), motion="scripted", angular_velocity=(0, 0, turn / world.dt))
    balls(world, "ball", [[3.0, 0.0, 0.0]], 0.5, motion="scripted", angular_velocity=(0, 0, 3.0 / world.dt))
    particles(world, np.array([[0.0, 0.0, 1.0]]), np.zeros((1, 3)))
    run_systems(world)
    with warnings.catch_warnings(record=True, action="always", category=ef.FluidWarning) as caught:
        world.step(2)
    text = "a body turns by 1 rad in a tick, and from 0.5 on particles may pass through its walls"
    assert [text in str(one.message) for one in caught] == [True] * told
