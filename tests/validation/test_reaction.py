"""Momentum between particles and bodies. Validation case 87; articles F1, F2, F8."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from solids import balls, body_world, box, momenta, solid

import ecs_fluid as ef
from tests.resuming import resumed

Array = np.ndarray


def stream(world: ef.World, x: Array, speed: tuple[float, float, float]) -> ef.Entity:
    """Tracers at x in a wind."""
    world.spawn("smoke", ef.Position(x))
    world.add_system(ef.WindSystem(velocity=speed))
    return world["smoke"]


def lattice(low: tuple[float, ...], high: tuple[float, ...], h: float) -> Array:
    """Points (n, 3) at the middles of cells of edge h."""
    lines = [np.arange(a + h / 2, b, h) for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 3)


@pytest.mark.parametrize("contact", ["sliding", "sticking"])
@pytest.mark.parametrize("dt", [0.05, 0.02, pytest.param(0.0075, marks=pytest.mark.nightly)])
def test_a_stream_against_a_plate(contact: str, dt: float) -> None:
    """All of the stream's momentum goes into the plate: the impulse is rho U A T U, whatever dt is.

    1 m^2 in the way of 1.2 kg/m^3 at 2 m/s for 0.6 s: 1.2 x 2 x 0.6 x 2 = 2.88 N s. The tracers stand on a
    lattice of layers 0.05 m apart, the first of them 0.025 m off, so that 24 arrive. Each
    gives its momentum once, though it is pressed on the plate from then on.
    """
    world = body_world(dt=dt)
    smoke = stream(world, lattice((-2.0, -0.5, -0.5), (0.0, 0.5, 0.5), 0.05), (2.0, 0, 0))
    assert len(smoke) == 40 * 20 * 20
    plate = solid(world, "plate", box(0.1, 3, 3), center=(0.05, 0, 0), motion="fixed")
    world.add_systems([ef.ReactionSystem(tracer_volume=0.05**3, contact=contact)])
    total = np.zeros(3)
    for _ in range(round(0.6 / dt)):
        world.step()
        total += plate[ef.FluidReaction].tracers[0]
    assert np.allclose(total, [2.88, 0, 0], rtol=1e-12, atol=1e-12)
    assert not plate[ef.RigidMotion].v.any()


@pytest.mark.parametrize("parts", [1, 4])
def test_parts_of_a_body_are_one_body(parts: int) -> None:
    """21 tracers of 1.2 g meet a wall at 1 m/s and slide along its parts: rho V n u = 0.0252 N s."""
    height = 0.8 / parts
    places = [[0.0, 0.0, -0.4 + height * (k + 0.5)] for k in range(parts)]
    shape = {"shape": "compound", "parts": [{"shape": box(0.4, 0.4, height), "center": at} for at in places]}
    world = body_world(dt=0.02)
    wall = solid(world, "wall", shape, motion="fixed")
    stream(world, np.array([[-0.25, 0.01 * k, -0.35] for k in range(-10, 11)]), (1.0, 0.0, 1.0))
    world.add_system(ef.ReactionSystem(tracer_volume=0.001))
    total = np.zeros(3)
    for _ in range(40):
        world.step()
        total += wall[ef.FluidReaction].tracers.sum(axis=0)
    assert np.allclose(total, [0.0252, 0, 0], rtol=1e-9, atol=1e-12)


def gained(world: ef.World, mass: float, former: tuple[Array, Array]) -> tuple[Array, Array]:
    """Momentum, and angular momentum about the origin, of tracers that now stick to the body: m (v - u)."""
    smoke, pose, motion = world["smoke"], world["ball"][ef.Pose], world["ball"][ef.RigidMotion]
    hit = (smoke[ef.Contact].body == 0) & (smoke[ef.Contact].before < 0)
    arm = smoke[ef.Position].x[hit] - pose.x[0]
    change = mass * (motion.v[0] + np.cross(motion.angular_velocity[0], arm) - smoke[ef.Velocity].u[hit])
    turned = np.cross(smoke[ef.Position].x[hit], change)
    return former[0] + change.sum(axis=0), former[1] + turned.sum(axis=0)


def test_a_ball_through_smoke_slows() -> None:
    """F1, case 87: momentum and angular momentum that the ball loses are those that the tracers gain, 1e-13.

    The smoke lies on one side of the path only, so the ball is turned as well.
    """
    world = body_world(dt=0.02, gravity=(0.0, 0.0, 0.0))
    draw = np.random.default_rng(1)
    stream(world, draw.uniform([0, -0.3, 0.05], [1.5, 0.3, 0.4], (20_000, 3)), (0.1, 0.3, 0.0))
    ball = balls(world, "ball", [-0.3, 0, 0], radius=0.2, mass=0.2, v=[2.0, 0, 0])
    mass = 1e-5
    world.add_system(ef.ReactionSystem(tracer_volume=mass / 1.2, contact="sticking", angular="tracers"))
    linear, angular, _ = momenta(world)
    books = (np.zeros(3), np.zeros(3))
    for _ in range(40):
        before = momenta(world)
        world.step()
        after = momenta(world)
        step = gained(world, mass, (np.zeros(3), np.zeros(3)))
        assert np.abs(after[0] - before[0] + step[0]).max() < 1e-15
        # Moving on at its velocity leaves the body's own angular momentum about the origin as it is.
        assert np.abs(after[1] - before[1] + step[1]).max() < 1e-15
        books = (books[0] + step[0], books[1] + step[1])
    now = momenta(world)
    assert 0.5 < ball[ef.RigidMotion].v[0, 0] < 1.9
    assert np.abs(now[0] - linear + books[0]).max() < 1e-13
    assert np.abs(now[1] - angular + books[1]).max() < 1e-13
    assert np.abs(ball[ef.RigidMotion].angular_velocity[0]).max() > 0.1


def test_a_feather_goes_along() -> None:
    """10^4 times lighter than the tracers that hit it: it ends with their velocity, and not beyond it."""
    world = body_world(dt=0.05, gravity=(0.0, 0.0, 0.0))
    stream(world, lattice((-1.0, -0.4, -0.4), (-0.2, 0.4, 0.4), 0.05), (1.0, 0, 0))
    ball = balls(world, "ball", [0, 0, 0], radius=0.2, mass=1e-4)
    world.add_system(ef.ReactionSystem(tracer_volume=1e-2 / 1.2, contact="sticking", angular="tracers"))
    for _ in range(20):
        world.step()
        v = ball[ef.RigidMotion].v[0]
        assert -1e-12 < v[0] <= 1 + 1e-12
    assert v[0] > 0.99


@pytest.mark.parametrize(("linear", "angular"), [("vortons", "none"), ("vortons", "vortons")])
def test_vortons_give_back_what_they_gain(linear: str, angular: str) -> None:
    """Cases 87, F2: d(m v) + rho d(impulse) = 0 and d(I spin) + rho d(angular impulse) = 0, 1e-12 a tick.

    The impulses are taken here from the vortons' tables, right before and after the BoundarySystem.
    """
    world = body_world(dt=0.02, gravity=(0.0, 0.0, 0.0))
    draw = np.random.default_rng(2)
    x = draw.standard_normal((300, 3))
    x *= draw.uniform(0.32, 0.6, (300, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
    world.spawn(
        "vortons",
        ef.Position(x), ef.Strength(1e-3 * draw.standard_normal((300, 3))), ef.CoreRadius(np.full(300, 0.08)),
    )  # fmt: skip
    ball = balls(world, "ball", [0, 0, 0], radius=0.3, mass=0.5, v=[0.4, 0.1, 0.0])
    rho = 1.3

    class Books(ef.System):
        """Watches the BoundarySystem."""

        phase = "observe"

        def integrals(self) -> Array:
            at, alpha = (self.world["vortons"][kind] for kind in (ef.Position, ef.Strength))
            arm = at.x - self.world["ball"][ef.Pose].x[0]
            impulse = 0.5 * np.cross(at.x, alpha.alpha).sum(axis=0)
            return np.append(impulse, np.cross(arm, np.cross(arm, alpha.alpha)).sum(axis=0) / 3)

        def process(self, dt: float) -> None:
            """Nothing."""

        def before_system(self, system: ef.System) -> None:
            """Note the integrals."""
            self.note = self.integrals()

        def after_system(self, system: ef.System) -> None:
            """And their change."""
            if type(system).__name__ == "BoundarySystem":
                self.change = self.integrals() - self.note

    books = Books()
    books.watching = True
    world.add_systems(
        [
            ef.VelocitySystem(solver="direct", at="vortons"),
            ef.StretchSystem(),
            ef.BoundarySystem(reaction="none"),
            ef.ReactionSystem(linear=linear, angular=angular, density=rho),
            books,
        ]
    )
    moved = 0.0
    for _ in range(10):
        v, angular_velocity = (
            getattr(ball[ef.RigidMotion], name)[0].copy() for name in ("v", "angular_velocity")
        )
        world.step()
        after = ball[ef.RigidMotion]
        assert np.abs(0.5 * (after.v[0] - v) + rho * books.change[:3]).max() < 1e-12
        turned = 0.4 * 0.5 * 0.09 * (after.angular_velocity[0] - angular_velocity)
        wanted = -rho * books.change[3:] if angular == "vortons" else 0.0
        assert np.abs(turned - wanted).max() < 1e-12
        assert np.allclose(ball[ef.FluidReaction].vortons[0], -rho * books.change[:3], atol=1e-14)
        moved = max(moved, float(np.abs(books.change).max()))
    assert moved > 1e-6


@pytest.mark.parametrize(("fluids", "own"), [(1.2, None), (1000.0, None), (1.2, 1000.0)])
def test_tracers_weigh_what_the_fluid_weighs(fluids: float, own: float | None) -> None:
    """One tracer of the volume V at 1 m/s that a fixed plate stops gives rho V, rho the fluid's or told."""
    world = body_world(dt=0.1)
    world.set_fluid(density=fluids)
    stream(world, np.array([[-0.05, 0.0, 0.0]]), (1.0, 0, 0))
    plate = solid(world, "plate", box(0.1, 3, 3), center=(0.05, 0, 0), motion="fixed")
    world.add_systems([ef.ReactionSystem(tracer_volume=0.25, density=own)])
    world.step()
    assert plate[ef.FluidReaction].tracers[0, 0] == pytest.approx(0.25 * (own or fluids), rel=1e-12)


def test_who_sets_the_spin_is_asked_once() -> None:
    """Two systems that both give the spin back are refused in a sentence."""
    world = body_world()
    balls(world, "ball", [0, 0, 0])
    with pytest.raises(ef.RecipeError, match="changes the spin of bodies too"):
        world.add_systems([ef.BoundarySystem(), ef.ReactionSystem(tracer_volume=1.0, angular="tracers")])
    with pytest.raises(ef.RecipeError, match=r"linear = 'tracers' needs tracer_volume, m.3: cell.3/per_cell"):
        world.add_systems([ef.ReactionSystem()])
    with pytest.raises(ef.RecipeError, match=r"axes = \['y'\] has no effect with linear = 'none'"):
        world.add_systems([ef.ReactionSystem(linear="none", axes=("y",))])


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
def test_the_fluid_that_goes_with_a_body_follows_the_kernel_of_velocities(tmp_path: Path) -> None:
    """What was found by another kernel is not used again: the resumed world finds it anew."""
    ball = {"kind": "body", "name": "ball", "shape": {"shape": "ball", "radius": 0.1}, "density": 0.5}
    table = {
        "world": {"dt": 0.01},
        "fluid": {"gravity": (0, 0, 0), "velocity": {"solver": "direct"}, "stretch": {"scheme": "none"}},
        "entity": [ball],
        "system": [
            {"kind": "wind", "velocity": [1.0, 0.0, 0.0]},
            {"kind": "boundary", "boundary": "panels", "panels_across": 3},
            {"kind": "reaction", "linear": "vortons", "angular": "vortons"},
        ],
    }
    world = ef.load(table)
    world.step(2)
    world.require(ef.VelocitySystem).kernel = "rosenhead_moore"
    resumed(world, tmp_path, 2)
