"""Motion of rigid bodies: free flight, impacts, resting stacks, scripts. Validation cases 89 to 91 and 93."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from solids import balls, body_world, box, floor, momenta, momenta_of, room, solid

import ecs_fluid as ef
from tests.resuming import resumed

G = 9.81


def test_free_fall_is_the_parabola() -> None:
    """x = x0 + v t - g t^2/2 at every tick, whatever the step: 1e-12 for 100 ticks of rounding."""
    world = body_world(dt=0.1)
    ball = balls(world, "ball", [1.0, 2.0, 3.0], v=[0.5, 0.0, 7.0])
    world.step(100)
    t = 10.0
    assert np.allclose(ball[ef.Pose].x[0], [1 + 0.5 * t, 2, 3 + 7 * t - G * t * t / 2], atol=1e-11)


@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.9, 1.0])
def test_rebound_height(restitution: float) -> None:
    """Case 89: dropped from h the ball rises to e^2 h; the highest point by energy, z + v^2/(2 g).

    1e-9: the impact speed sqrt(v^2 + 2 g gap) is that of the fall, so only rounding is lost.
    """
    world = body_world(dt=1 / 60)
    floor(world)
    ball = balls(world, "ball", [0.3, 0.1, 1.1], restitution=restitution)  # 1 m above the floor
    tops = []
    for _ in range(60):
        world.step()
        z, v = ball[ef.Pose].x[0, 2] - 0.1, ball[ef.RigidMotion].v[0, 2]
        tops.append(z + v * abs(v) / (2 * G) if v > 0 else np.inf)
    wanted = restitution**2 if restitution else 0.0
    bounced = [top for top in tops if np.isfinite(top)]
    if restitution:
        assert abs(bounced[0] - wanted) < 1e-9
        assert np.abs(ball[ef.Pose].x[0, :2] - [0.3, 0.1]).max() < 1e-9
    else:
        assert abs(ball[ef.Pose].x[0, 2] - 0.1) < 1e-9


def test_tangential_velocity_is_kept_without_friction() -> None:
    """Case 89: an oblique impact on a smooth floor turns v_n into -e v_n and leaves v_t alone, spin too."""
    world = body_world(gravity=(0.0, 0.0, 0.0))
    floor(world, friction=0.0)
    ball = balls(world, "ball", [0, 0, 0.5], v=[3.0, -1.0, -4.0], restitution=0.7)
    world.step(30)
    assert np.allclose(ball[ef.RigidMotion].v[0], [3.0, -1.0, 2.8], atol=1e-13)
    assert not ball[ef.RigidMotion].angular_velocity.any()


@pytest.mark.parametrize("offset", [0.0, 0.08, 0.19])
@pytest.mark.parametrize("restitution", [0.0, 0.6, 1.0])
def test_pair_of_balls(offset: float, restitution: float) -> None:
    """Case 90: momentum kept to 1e-14, energy lost (1 - e^2) mu v_n^2/2 with v_n along the line of centres.

    The line of centres is that at the touch, at sin = offset/(2 R), so v_n = v cos; to 1e-12.
    """
    world = body_world(dt=0.05, gravity=(0.0, 0.0, 0.0))
    balls(world, "one", [-1.0, 0, 0], v=[40.0, 0, 0], mass=1.0, restitution=restitution)
    balls(world, "two", [1.0, offset, 0], mass=3.0)
    linear, angular, energy = momenta(world)
    world.step(4)
    after = momenta(world)
    assert np.abs(after[0] - linear).max() < 40e-14 and np.abs(after[1] - angular).max() < 40e-14
    vn = 40.0 * np.sqrt(1 - (offset / 0.2) ** 2)
    lost = 0.5 * 0.75 * (1 - restitution**2) * vn**2
    assert abs(energy - after[2] - lost) < 1e-12 * energy


def test_balls_that_miss_do_not_touch() -> None:
    """Case 90: paths that pass at 1.001 diameters, 40 diameters a tick, leave both velocities alone."""
    world = body_world(dt=0.1, gravity=(0.0, 0.0, 0.0))
    one = balls(world, "one", [-4.0, 0, 0], v=[80.0, 0, 0])
    two = balls(world, "two", [4.0, 0.2002, 0], v=[-80.0, 0, 0])
    world.step(2)
    assert one[ef.Pose].x[0, 0] > 4 and np.array_equal(one[ef.RigidMotion].v[0], [80, 0, 0])
    assert np.array_equal(two[ef.RigidMotion].v[0], [-80, 0, 0])


def test_oblique_impacts_are_exact_wherever_they_come() -> None:
    """Case 90: 300 touches at any offset and any moment of a tick, glancing ones too; speeds to 1e-9.

    With n the line of centres at the touch, sin = offset/(2 R), an elastic impact hands v n_x n over. Offsets
    end at 1.99 R: beyond, v_n < 0.5 m/s loses more digits of n. Neither in the substep of the touch nor in
    one before it may anything brake the ball that comes. The pairs are 1 m apart, so no other is met.
    """
    draw = np.random.default_rng(0)
    chosen = [(0.1967, 3.0), (0.1967, 3.99), *draw.uniform([0.0, 3.0], [0.199, 4.0], (300, 2))]
    offset, ahead = np.array(chosen).T
    none, apart = np.zeros(len(offset)), np.arange(len(offset)) - 151.0
    world, coming = body_world(dt=0.02, gravity=(0.0, 0.0, 0.0)), np.tile([5.0, 0.0, 0.0], (len(offset), 1))
    places = {"coming": np.stack([-ahead, none, apart], 1), "met": np.stack([none, offset, apart], 1)}
    speeds = {"coming": coming, "met": 0.0 * coming}
    pairs = [balls(world, name, places[name], v=speeds[name], restitution=1.0) for name in places]
    world.step(50)
    n = np.stack([np.sqrt(0.04 - offset**2), offset, none], 1) / 0.2
    handed = 5.0 * n[:, :1] * n
    for found, expected in zip(pairs, (coming - handed, handed), strict=True):
        assert np.abs(found[ef.RigidMotion].v - expected).max() < 1e-9


@pytest.mark.parametrize("speed", [5.0, 20.0, 100.0])
def test_no_near_miss_is_a_hit(speed: float) -> None:
    """Case 90: balls that pass at 2 R + 1e-8 to 1e-2 m, at any moment of a tick: no bit changes."""
    draw = np.random.default_rng(1)
    clear, ahead = 10 ** draw.uniform(-8, -2, 60), draw.uniform(2, 3, 60)
    none, apart = np.zeros(60), np.arange(60) - 30.0
    world, start = body_world(dt=0.02, gravity=(0.0, 0.0, 0.0)), np.tile([speed, 0.0, 0.0], (60, 1))
    coming = balls(world, "coming", np.stack([-ahead, none, apart], 1), v=start, restitution=1.0)
    missed = balls(world, "missed", np.stack([none, 0.2 + clear, apart], 1), v=0.0 * start, restitution=1.0)
    world.step(int(4 / speed / 0.02) + 2)
    assert np.array_equal(coming[ef.RigidMotion].v, start)
    assert not missed[ef.RigidMotion].v.any()


def test_a_ball_that_passes_a_corner_is_not_braked() -> None:
    """A ball past the edge of a fixed box, 1e-6 to 1e-3 m clear: its velocity stays bit for bit."""
    draw = np.random.default_rng(2)
    high = 0.1 * np.sqrt(2) * np.sin(0.6 + np.pi / 4)  # the highest edge of a box of 0.2 m turned by 0.6
    world = body_world(dt=0.02, gravity=(0.0, 0.0, 0.0))
    places = []
    for number in range(60):  # 1 m apart, so no other is met
        clear, ahead = 10 ** draw.uniform(-6, -3), draw.uniform(2, 3)
        solid(
            world, f"block{number}", box(0.2, 0.2, 0.2), center=(0, 0, number), rotation=(0, 0, 0.6),
            motion="fixed", restitution=1.0,
        )  # fmt: skip
        places.append([-ahead, high + 0.1 + clear, number])
    start = np.tile([5.0, 0.0, 0.0], (60, 1))
    passing = balls(world, "passing", places, v=start, restitution=1.0)
    world.step(50)
    assert np.array_equal(passing[ef.RigidMotion].v, start)
    assert (passing[ef.Pose].x[:, 0] > 1.9).all()


@pytest.mark.nightly
def test_elastic_balls_keep_their_energy_in_a_container() -> None:
    """Case 91, eight balls: thousands of impacts with each other and the walls in 60 s; energy to 1e-12."""
    world = body_world(dt=0.02, gravity=(0.0, 0.0, 0.0), least_bounce=0.0)
    room(world, "room", box(1, 1, 1), friction=0.0)
    places = np.array(list(itertools.product((-0.25, 0.25), repeat=3)))
    speeds = 1.5 * np.random.default_rng(1).standard_normal((8, 3))
    crowd = balls(world, "crowd", places, v=speeds, restitution=1.0)
    energy = momenta(world)[2]
    world.step(3000)
    assert abs(momenta(world)[2] / energy - 1) < 1e-12
    assert np.abs(crowd[ef.Pose].x).max() <= 0.4 + 1e-9
    apart = crowd[ef.Pose].x[:, None] - crowd[ef.Pose].x
    assert np.sqrt((apart**2).sum(-1))[np.triu_indices(8, 1)].min() > 0.2 - 1e-9


@pytest.mark.nightly
def test_elastic_ball_in_a_box() -> None:
    """Case 91: 10^4 impacts, energy within 1e-6 (here 1e-12, as nothing is lost), never outside.

    The speed components keep their size, so the number of impacts is at least t sum(|v_k|)/(edge - 2 R).
    """
    world = body_world(dt=0.05, gravity=(0.0, 0.0, 0.0), substeps=4)
    room(world, "room", box(1, 1, 1))
    start = 6.0 * np.array([7.1, -5.3, 3.7])
    ball = balls(world, "ball", [0.1, 0.0, -0.2], v=start, restitution=1.0)
    ticks = 1_920
    impacts = ticks * 0.05 * np.abs(start).sum() / 0.8
    assert impacts > 1e4
    for _ in range(ticks):
        world.step()
        assert np.abs(ball[ef.Pose].x).max() <= 0.4 + 1e-12
    assert np.allclose(np.abs(ball[ef.RigidMotion].v[0]), np.abs(start), atol=1e-11)


def test_elastic_ball_bouncing_under_gravity() -> None:
    """Case 91 with gravity: floor and ceiling, 60 s; kinetic plus potential energy within 1e-9."""
    world = body_world(dt=1 / 15)
    room(world, "room", box(1, 1, 1), friction=0.0)
    ball = balls(world, "ball", [0.0, 0.0, 0.2], v=[0.7, 0.3, 4.0], restitution=1.0)

    def energy() -> float:
        return 0.5 * (ball[ef.RigidMotion].v[0] ** 2).sum() + G * ball[ef.Pose].x[0, 2]

    before = energy()
    for _ in range(900):
        world.step()
        assert np.abs(ball[ef.Pose].x).max() <= 0.4 + 1e-9
    # A ball that was just stopped by a wall starts from it at the end of the substep, at its full speed.
    assert abs(energy() - before) < 1e-9 * before


def stack(world: ef.World, count: int, edge: float = 0.2) -> list[ef.Entity]:
    """Boxes on a floor, each 1/20 of its edge beside the one below."""
    floor(world)
    return [
        solid(
            world, f"box{k}", box(edge, edge, edge),
            center=(0.05 * edge * (k % 2), 0.0, edge * (k + 0.5)), rotation=(0, 0, 0.05 * k),
        )
        for k in range(count)
    ]  # fmt: skip


@pytest.mark.nightly
def test_resting_stack() -> None:
    """Case 93: five boxes for 10 s; sinking < 1e-3 of the half edge, jitter < 1e-4, no energy gained."""
    world = body_world(dt=1 / 60)
    boxes = stack(world, 5)
    half = 0.1
    world.step(60)
    first = np.array([entity[ef.Pose].x[0] for entity in boxes])
    worst = 0.0
    for _ in range(540):
        world.step()
        now = np.array([entity[ef.Pose].x[0] for entity in boxes])
        worst = max(worst, np.abs(now - first).max())
        assert momenta(world)[2] < 1e-9
    assert worst < 1e-4 * half
    heights = now[:, 2] - 0.2 * (np.arange(5) + 0.5)
    assert np.abs(heights).max() < 1e-3 * half


@pytest.mark.parametrize(("count", "aside"), [pytest.param(12, 0.0, marks=pytest.mark.nightly), (10, 0.1)])
def test_a_tall_stack_comes_to_rest(count: int, aside: float) -> None:
    """Equal boxes, all defaults: after 4 s no speed above 1e-4 m/s (1e-11 found), no drift of 1e-4 edges."""
    world = body_world(dt=1 / 60)
    floor(world)
    boxes = [
        solid(world, f"box{k}", box(1, 1, 1), center=(aside * (k % 2), 0, k + 0.5)) for k in range(count)
    ]
    before = np.array([entity[ef.Pose].x[0] for entity in boxes])
    world.step(240)
    for entity, place in zip(boxes, before, strict=True):
        assert np.abs(entity[ef.RigidMotion].v).max() < 1e-4
        assert np.abs(entity[ef.Pose].x[0] - place).max() < 1e-4


def test_resting_stack_in_single_precision() -> None:
    """Case 93 with float32 tables: rounding of 3e-8 m per tick does not make it creep: < 1e-3 half edges."""
    world = body_world(dt=1 / 60, precision="single")
    boxes = stack(world, 3)
    world.step(30)
    first = np.array([entity[ef.Pose].x[0] for entity in boxes], dtype=np.float64)
    world.step(270)
    now = np.array([entity[ef.Pose].x[0] for entity in boxes], dtype=np.float64)
    assert np.abs(now - first).max() < 1e-3 * 0.1


@pytest.mark.nightly
def test_pile_of_shapes_comes_to_rest() -> None:
    """Balls and polytopes dropped into a container end at rest inside it, none in another.

    Depths below 1 % of the smallest radius: what the solver leaves in a pile that has just settled.
    """
    world = body_world(dt=1 / 60)
    room(world, "room", box(1, 1, 4), center=(0, 0, 2))
    kinds = [{"shape": "ball", "radius": 0.15}, box(0.3, 0.25, 0.2), {"shape": "icosahedron", "radius": 0.2}]
    bodies = [
        solid(world, f"thing{k}", kinds[k % 3], center=(0.1 * (k % 2), 0.15 * (k % 3) - 0.1, 0.3 + 0.4 * k))
        for k in range(9)
    ]
    world.step(480)
    assert momenta(world)[2] < 1e-3 * G * sum(float(body[ef.Body].mass[0]) for body in bodies)
    for body in bodies:
        x = body[ef.Pose].x[0]
        assert np.abs(x[:2]).max() < 0.5 and 0 < x[2] < 4
    from ecs_fluid.kernels.bodies.contacts import contacts_of_pair
    from ecs_fluid.systems.shared.body_tables import body_entities, gathered

    table, hulls = gathered(body_entities(world))
    out, still = np.empty((64, 7)), np.zeros_like(table.x)
    touching = 0
    for a, b in itertools.combinations(range(len(table.x)), 2):
        count = contacts_of_pair(table, hulls, still, a, b, 1e-3, out)
        touching += count > 0
        assert not count or out[:count, 6].min() > -1.5e-3
    assert touching >= 9


def test_polytopes_are_those_of_the_tables_now() -> None:
    """One changed in place shows at once."""
    from ecs_fluid.systems.shared.body_tables import body_entities, gathered

    world = body_world()
    block = solid(world, "block", box(1, 2, 3))
    _, before = gathered(body_entities(world))
    block[ef.HullTable].planes[:, 3] *= 2
    bodies, after = gathered(body_entities(world))
    assert np.array_equal(after.planes[:, 3], 2 * before.planes[:, 3])
    block[ef.HullTable].radius[0] = 7.0
    bodies, after = gathered(body_entities(world))
    assert bodies.radius[0] == after.radius[0] == 7.0
    with pytest.raises(
        ef.FluidError, match=r"'block': HullShape\.hull row 0 is 1, but its HullTable holds 1"
    ):
        block[ef.HullShape].hull[0] = 1
        gathered(body_entities(world))


@pytest.mark.parametrize(("friction", "slides"), [(0.4, True), (0.6, False)])
def test_block_on_a_slope(friction: float, slides: bool) -> None:
    """Coulomb: at 0.5 the slope holds a block if mu > 0.5; else it slides at g (sin - mu cos), to 1 %.

    The block starts at rest on the slope; 1 % is for the first substeps, in which contacts form.
    """
    world = body_world(dt=1 / 120)
    angle = np.arctan(0.5)
    turn = (0.0, angle, 0.0)
    solid(world, "slope", box(40, 4, 2), center=(0, 0, 0), rotation=turn, motion="fixed", friction=friction)
    up = np.array([np.sin(angle), 0, np.cos(angle)])
    down = np.array([np.cos(angle), 0, -np.sin(angle)])
    block = solid(
        world, "block", box(0.4, 0.4, 0.2), center=tuple(1.1 * up), rotation=turn, friction=friction
    )
    world.step(120)
    speed = float(block[ef.RigidMotion].v[0] @ down)
    expected = G * (np.sin(angle) - friction * np.cos(angle)) if slides else 0.0
    assert abs(speed - expected) < 0.01 * max(expected, 0.01)


def test_rolling_down_a_slope() -> None:
    """A solid ball that rolls gets 5/7 of g sin: a = g sin/(1 + 2/5); and v = R spin. To 1 %."""
    world = body_world(dt=1 / 120)
    angle = 0.3
    solid(
        world, "slope", box(60, 4, 2), center=(0, 0, 0), rotation=(0, angle, 0), motion="fixed", friction=1.0
    )
    up = np.array([np.sin(angle), 0, np.cos(angle)])
    ball = balls(world, "ball", 1.1 * up, friction=1.0)
    world.step(120)
    speed = np.linalg.norm(ball[ef.RigidMotion].v[0])
    assert abs(speed - 5 / 7 * G * np.sin(angle)) < 0.01 * speed
    assert abs(ball[ef.RigidMotion].angular_velocity[0, 1] * 0.1 - speed) < 1e-3 * speed


@pytest.mark.parametrize(("dt", "edge"), [(0.02, 0.02), (0.05, 0.02), (1 / 60, 0.1)])
def test_what_friction_holds_stays(dt: float, edge: float) -> None:
    """At rest on a slope of 0.35 rad, mu = 0.5 > tan: in 10 s a block moves by less than 1e-9 of its edge."""
    world = body_world(dt=dt)
    angle = 0.35
    up, turn = np.array([np.sin(angle), 0, np.cos(angle)]), (0.0, angle, 0.0)
    size = 20 * edge
    solid(world, "slope", box(size, size, size), center=tuple(-size / 2 * up), rotation=turn, motion="fixed",
          friction=0.5)  # fmt: skip
    block = solid(world, "block", box(edge, edge, edge / 2), center=tuple(edge / 4 * up), rotation=turn,
                  friction=0.5)  # fmt: skip
    before = block[ef.Pose].x.copy()
    world.step(round(10 / dt))
    assert np.abs(block[ef.Pose].x - before).max() < 1e-9 * edge


@pytest.mark.parametrize(("dt", "edge", "duration"), [(0.01, 1e-3, 0.05), (0.05, 0.4, 1.0)])
def test_a_sliding_block_goes_as_far_as_it_should(dt: float, edge: float, duration: float) -> None:
    """s = a t^2/2 and v = a t with a = g (sin - mu cos): constant forces, so exact for any step; to 1e-10."""
    world = body_world(dt=dt)
    angle, friction = 0.5, 0.2
    up, turn = np.array([np.sin(angle), 0, np.cos(angle)]), (0.0, angle, 0.0)
    down = np.array([np.cos(angle), 0, -np.sin(angle)])
    size = 200 * edge
    solid(world, "slope", box(size, size, size), center=tuple(-size / 2 * up), rotation=turn, motion="fixed",
          friction=friction)  # fmt: skip
    block = solid(world, "block", box(edge, edge, edge / 2), center=tuple(edge / 4 * up), rotation=turn,
                  friction=friction)  # fmt: skip
    before = block[ef.Pose].x[0].copy()
    world.step(round(duration / dt))
    rate = G * (np.sin(angle) - friction * np.cos(angle))
    assert abs(block[ef.RigidMotion].v[0] @ down / (rate * duration) - 1) < 1e-10
    assert abs((block[ef.Pose].x[0] - before) @ down / (rate * duration**2 / 2) - 1) < 1e-10


@pytest.mark.parametrize("size", [(1.0, 0.2, 0.2), (0.5, 0.3, 0.3)])
def test_friction_points_against_the_slip(size: tuple[float, float, float]) -> None:
    """A block that slides at any angle to its sides goes straight, brakes by mu g, and does not turn.

    Forces mu N along -v at corners r, whose weights N bear the moment of friction: sum N r is along v, so
    its cross product with v, the torque about the vertical, is 0. Constant forces are exact; to 1e-9.
    """
    world, friction, v, angle = body_world(dt=0.01), 0.3, 2.0, np.deg2rad(30)
    solid(world, "floor", box(40, 40, 2), center=(0, 0, -1), motion="fixed", friction=friction)
    way = np.array([np.cos(angle), np.sin(angle), 0.0])
    block = solid(world, "block", box(*size), center=(0, 0, size[2] / 2), velocity=tuple(v * way),
                  friction=friction)  # fmt: skip
    world.step(50)
    wanted = (v * 0.5 - friction * G * 0.5**2 / 2) * way + [0, 0, size[2] / 2]
    assert np.abs(block[ef.Pose].x[0] - wanted).max() < 1e-9
    assert np.abs(block[ef.RigidMotion].angular_velocity).max() < 1e-9


def test_friction_brakes_a_block_that_spins() -> None:
    """A square block spins on a floor: each corner slips across its arm d, so I dw/dt = -mu m g d, to 1e-9.

    It lies across the axes: no direction in which friction is solved for may be favoured.
    """
    world, friction, edge, spin = body_world(dt=0.01), 0.3, 0.4, 8.0
    solid(world, "floor", box(8, 8, 2), center=(0, 0, -1), motion="fixed", friction=friction)
    block = solid(world, "block", box(edge, edge, 0.1), center=(0, 0, 0.05), rotation=(0, 0, 0.3),
                  angular_velocity=(0.0, 0.0, spin), friction=friction)  # fmt: skip
    world.step(15)
    lost = friction * G * (edge / np.sqrt(2)) / (edge**2 / 6) * 0.15
    assert abs((spin - block[ef.RigidMotion].angular_velocity[0, 2]) / lost - 1) < 1e-9


@pytest.mark.parametrize("dt", [1 / 60, 0.05])
def test_a_rolling_ball_goes_as_far_as_it_should(dt: float) -> None:
    """A solid ball that rolls: s = a t^2/2, v = a t, v = R spin with a = 5/7 g sin; exact, to 1e-10."""
    world = body_world(dt=dt)
    angle = 0.3
    solid(
        world, "slope", box(60, 4, 2), center=(0, 0, 0), rotation=(0, angle, 0), motion="fixed", friction=1.0
    )
    start = 1.1 * np.array([np.sin(angle), 0, np.cos(angle)])
    ball = balls(world, "ball", start, friction=1.0)
    world.step(round(1 / dt))
    rate, down = 5 / 7 * G * np.sin(angle), np.array([np.cos(angle), 0, -np.sin(angle)])
    assert abs((ball[ef.Pose].x[0] - start) @ down / (rate / 2) - 1) < 1e-10
    assert abs(ball[ef.RigidMotion].v[0] @ down / rate - 1) < 1e-10
    assert abs(0.1 * ball[ef.RigidMotion].angular_velocity[0, 1] / rate - 1) < 1e-10


@pytest.mark.parametrize("friction", [0.3, 0.0])
def test_crowd_keeps_momentum(friction: float) -> None:
    """Case 87 among bodies: 60 balls and boxes that collide in the void keep both momenta to rounding.

    Every impulse is given and taken at one point, so linear and angular momentum about any point stay; the
    point lies off the line of centres by no more than the overlap. 1e-11 for some thousand impulses. Without
    friction forces act along the normal, through the centre of a ball, so not a bit of spin comes from them,
    of touches to come neither.
    """
    world = body_world(dt=1 / 60, gravity=(0.0, 0.0, 0.0))
    draw = np.random.default_rng(2)
    x = np.stack(np.meshgrid(*[np.arange(-1.5, 2)] * 3), axis=-1).reshape(-1, 3)[:54] * 0.4
    v = -2 * x + draw.standard_normal(x.shape)
    crowd = balls(world, "crowd", x, v=v, restitution=0.5, friction=friction)
    for k in range(6):
        solid(world, f"box{k}", box(0.2, 0.3, 0.25), center=(2 + 0.3 * k, 0.05 * k, 0.02 * k), mass=2.0,
              velocity=(-4.0, 0.0, 0.0),
              angular_velocity=tuple(draw.standard_normal(3)), friction=friction)  # fmt: skip
    linear, angular, energy = momenta(world)
    world.step(60)
    after = momenta(world)
    assert np.abs(after[0] - linear).max() < 1e-11 * 100
    assert np.abs(after[1] - angular).max() < 1e-11 * 100
    assert after[2] < 0.9 * energy  # they did collide
    assert friction or not crowd[ef.RigidMotion].angular_velocity.any()


def _thrown_boxes(count: int, restitution: float, pairs: bool) -> tuple[ef.World, list[list[ef.Entity]]]:
    """Boxes thrown in the void, each at a floor or, in `pairs`, at another box; 10 m from each other."""
    world, draw = body_world(gravity=(0.0, 0.0, 0.0), least_bounce=0.0), np.random.default_rng(5)
    rough = {"friction": 0.5, "restitution": restitution}
    if not pairs:
        solid(world, "floor", box(900, 20, 2), center=(0, 0, -1), motion="fixed", **rough)
    groups = []
    for k in range(count):
        group = []
        for name, height in (("upper", 1.0), ("lower", -0.5))[: 1 + pairs]:
            v = [*draw.uniform(-3, 3, 2), -draw.uniform(2, 5)] if name == "upper" else [0.0, 0.0, 0.0]
            group.append(
                solid(
                    world, f"{name}{k}", box(*draw.uniform(0.3, 1, 3)), center=(10.0 * k - 300, 0, height),
                    mass=1.0, velocity=v, angular_velocity=tuple(draw.uniform(-4, 4, 3)),
                    rotation=tuple(draw.uniform(-2, 2, 3)), **rough,
                )
            )  # fmt: skip
        groups.append(group)
    return world, groups


@pytest.mark.parametrize("restitution", [1.0, 0.8])
@pytest.mark.parametrize("pairs", [False, True])
def test_boxes_with_friction_gain_no_energy(restitution: float, pairs: bool) -> None:
    """60 boxes thrown at a floor, or 30 at a box that turns: none has more than before, to rounding.

    By Newton's law alone 19 of the 60 gain up to 0.33 of their energy, and 7 of the pairs up to 0.14, as
    friction that turns the slip round drives v_n = e c (Kane's paradox). In the void so that the energy is
    that of the motion; pairs keep their momenta too.
    """
    world, groups = _thrown_boxes(30 if pairs else 60, restitution, pairs)
    before = [momenta_of(group) for group in groups]
    world.step(60)
    after = [momenta_of(group) for group in groups]
    ratios = np.array([new[2] / old[2] for new, old in zip(after, before, strict=True)])
    assert ratios.max() < 1 + 1e-9
    assert (ratios < 0.95).sum() > 10  # they did collide
    if pairs:
        for new, old in zip(after, before, strict=True):
            assert np.abs(new[0] - old[0]).max() < 1e-10
            assert np.abs(new[1] - old[1]).max() < 1e-8


def test_a_thin_fast_plate_does_not_tunnel() -> None:
    """A plate 1 cm thick at 30 m/s, 50 thicknesses a tick, is stopped by another one."""
    world = body_world(dt=1 / 60, gravity=(0.0, 0.0, 0.0))
    shape = {"shape": "plate", "thickness": 0.01}
    solid(world, "wall", shape, motion="fixed")
    plate = solid(world, "plate", shape, center=(0.2, 0.1, 2.0), velocity=(0.0, 0.0, -30.0))
    world.step(30)
    assert 0.0099 < plate[ef.Pose].x[0, 2] < 0.1
    assert np.abs(plate[ef.RigidMotion].v).max() < 1e-6


def test_scripts_are_followed() -> None:
    """Keys of place and rotation are met at every tick, over several turns; velocities are their slopes."""
    world = body_world(dt=0.1)
    center = {"keys": [(0.0, [0.0, 0.0, 0.0]), (1.0, [2.0, 0.0, 0.0]), (2.0, [2.0, 4.0, 0.0])]}
    rotation = {"keys": [(0.0, [0.0, 0.0, 0.0]), (2.0, [0.0, 0.0, 20.0])]}
    keyed = solid(world, "paddle", box(1, 1, 1), center=center, rotation=rotation, motion="scripted")
    recipe_script = ef.BodyScript(name="paddle", center=center, rotation=rotation)
    world = body_world(dt=0.1, scripts=[])
    keyed = solid(world, "paddle", box(1, 1, 1), center=center, rotation=rotation, motion="scripted")
    world.system(ef.BodySystem).scripts = [recipe_script]
    world.step(5)
    assert np.allclose(keyed[ef.Pose].x[0], [1.0, 0, 0], atol=1e-14)
    assert np.allclose(keyed[ef.RigidMotion].v[0], [2.0, 0, 0], atol=1e-13)
    assert np.allclose(keyed[ef.RigidMotion].angular_velocity[0], [0, 0, 10.0], atol=1e-12)
    half = 5.0 / 2
    q = keyed[ef.Pose].q[0] * np.sign(keyed[ef.Pose].q[0, 0] * np.cos(half))
    assert np.allclose(q, [np.cos(half), 0, 0, np.sin(half)], atol=1e-13)
    world.step(15)
    assert np.allclose(keyed[ef.Pose].x[0], [2.0, 4.0, 0], atol=1e-14)


def test_a_scripted_body_that_is_gone_leaves_its_script(tmp_path: Path) -> None:
    """Its script waits for another one; two at a time are refused."""
    script = ef.BodyScript(name="paddle", center={"keys": [(0.0, [0.0, 0.0, 0.0]), (1.0, [2.0, 0.0, 0.0])]})
    world = body_world(dt=0.1)
    paddle = solid(world, "paddle", box(1, 1, 1), motion="scripted")
    world.system(ef.BodySystem).scripts = [script]
    world.step()
    tables = [
        kind(**{name: array.copy() for name, array in vars(table).items()})
        for kind, table in paddle.tables.items()
        if not kind.derived and kind.per_row and kind.__name__ != "RowId"
    ]
    paddle.kill([0])
    world.step()
    assert not any("paddle" in text for text in world.lint())
    world.save(tmp_path / "gone.npz")
    for one in (world, ef.resume(tmp_path / "gone.npz")):
        one["paddle"].spawn(*tables)
        one.step()
        assert np.allclose(one["paddle"][ef.Pose].x[0], [0.6, 0, 0], atol=1e-14)
    world["paddle"].spawn(*tables)
    with pytest.raises(
        ef.FluidError, match="a script moves 'paddle', which has 2 bodies; exactly one is needed"
    ):
        world.step()


def test_a_scripted_piston_pushes() -> None:
    """A ball before a piston at 1 m/s moves with it, e = 0, and twice as fast when elastic (wall frame)."""
    for restitution, expected in ((0.0, 1.0), (1.0, 2.0)):
        world = body_world(gravity=(0.0, 0.0, 0.0))
        solid(world, "piston", box(0.2, 1, 1), motion="scripted", velocity=(1.0, 0.0, 0.0))
        ball = balls(world, "ball", [0.4, 0, 0], restitution=restitution)
        world.step(30)
        assert np.allclose(ball[ef.RigidMotion].v[0], [expected, 0, 0], atol=1e-12)


def test_resumed_pile_settles_as_the_straight_one(tmp_path: Path) -> None:
    """Resume in the middle of contacts: the memory of impulses is state, so all later bits agree."""
    world = body_world(dt=1 / 60, precision="single")
    stack(world, 4)
    balls(world, "ball", [0.3, 0.0, 1.2], v=[-1.0, 0, 0], restitution=0.4, friction=0.2)
    world.step(20)
    assert len(world.fluid[ef.ContactMemory].ids) > 8
    resumed(world, tmp_path, 20, 20)


def test_each_container_keeps_its_own_bodies() -> None:
    """Two boxes side by side, a ball and a block falling in each, the balls thrown at a wall: all stay, and
    those of one box move as they do where the other is not."""
    thrown = np.array([[0.0, 0.0, 0.3], [2.0, 0.0, 0.3]])

    def world_of(boxes: tuple[float, ...]) -> ef.World:
        world = body_world(dt=1 / 120)
        for k, x in enumerate(boxes):
            room(world, f"room{k}", box(1, 1, 1), center=(x, 0.0, 0.0))
        some = thrown[[x in boxes for x in thrown[:, 0]]]
        balls(world, "ball", some, v=[[2.0, 0.0, 0.0]] * len(some), restitution=0.8)
        for k, x in enumerate(some):
            solid(world, f"block{k}", box(0.2, 0.2, 0.2), center=tuple(x - [0.2, 0.3, 0.3]), density=500.0)
        world.step(120)
        return world

    both, first, second = world_of((0.0, 2.0)), world_of((0.0,)), world_of((2.0,))
    ends = both["ball"][ef.Pose].x
    assert (np.abs(ends - [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]]) <= 0.4 + 1e-6).all()
    np.testing.assert_allclose(ends[0], first["ball"][ef.Pose].x[0], atol=1e-6)
    np.testing.assert_allclose(ends[1], second["ball"][ef.Pose].x[0], atol=1e-6)
    for k, alone in ((0, first), (1, second)):
        np.testing.assert_allclose(both[f"block{k}"][ef.Pose].x[0], alone["block0"][ef.Pose].x[0], atol=1e-6)


def test_overlaps_that_nothing_parts_are_told() -> None:
    """Depths are those of the shapes, in single precision too: balls of 0.5 m at 0.8 m, boxes 0.9 m apart, a
    ball at the edge of a box turned by 45 degrees. What touches, or is free, is not told.

    Two logs across each other, a diameter apart, touch: corners of their 24 sides share 0.0115 radii."""
    log = {"shape": "cylinder", "radius": 0.1, "height": 1.0}
    for precision in ("single", "double"):
        world = body_world(precision=precision)
        balls(world, "pair", [[0, 0, 0], [0.8, 0, 0]], 0.5, motion="fixed")
        balls(world, "row", [[0, 7, 0], [1, 7, 0], [2, 7, 0]], 0.5, motion="fixed")
        for name, x, motion in (("a", 0.0, "fixed"), ("b", 0.9, "scripted"), ("c", -1.0, "fixed")):
            solid(world, name, box(1, 1, 1), center=(x, 20.0, 0.0), motion=motion)
        solid(world, "loose", box(1, 1, 1), center=(0.5, 20.0, 0.0))
        solid(world, "turned", box(1, 1, 1), center=(0, -20, 0), rotation=(0, 0, np.pi / 4), motion="fixed")
        balls(world, "near", [[1.0, -20, 0]], 0.5, motion="fixed")
        for name, z, rotation in (("low", 0.0, (0, np.pi / 2, 0)), ("high", 0.2, (np.pi / 2, 0, 0))):
            solid(world, name, log, center=(0, 40, z), rotation=rotation, motion="fixed")
        (said,) = (text for text in world.lint() if "overlap" in text)
        assert (
            "at the start: 'turned' and 'near' by 0.207 m, two of 'pair' by 0.2 m, 'a' and 'b' by 0.1 m; what"
            in said
        )


def test_overlaps_are_measured_by_the_thinner_body() -> None:
    """A rod whose end is 6 mm in a block of 2 m has more than half of its radius, 1 cm, in it."""
    world = body_world()
    solid(world, "block", box(2, 2, 2), motion="fixed")
    rod = {"shape": "cylinder", "radius": 0.01, "height": 1.0}
    solid(world, "rod", rod, center=(0, 0, 1.494), motion="fixed")
    (said,) = (text for text in world.lint() if "overlap" in text)
    assert "'block' and 'rod' by 0.006 m; what" in said


def test_bodies_in_the_wall_of_a_container_are_told() -> None:
    """What touches the wall, stands outside, or falls free is not told."""
    world = body_world()
    room(world, "tank", box(2, 2, 2))
    solid(world, "post", {"shape": "cylinder", "radius": 0.2, "height": 2.5}, motion="fixed")
    solid(world, "block", box(0.5, 0.5, 0.5), center=(0.75, 0.75, 0.0), motion="fixed")
    balls(world, "knob", [[-0.9, 0, 0]], 0.3, motion="scripted")
    balls(world, "beside", [[3.0, 0, 0]], 1.0, motion="fixed")
    balls(world, "loose", [[-0.9, 0.9, 0]], 0.2)
    (said,) = (text for text in world.lint() if "wall" in text)
    assert (
        "container: 'post' into that of 'tank' by 0.25 m, 'knob' into that of 'tank' by 0.2 m; what" in said
    )
