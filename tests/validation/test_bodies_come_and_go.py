"""Bodies that come into the fluid during a run, and bodies that leave it: the vorticity is accounted for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from boundary_flows import directions, empty_world, rms, run_systems
from solids import balls, box, room, solid

import ecs_fluid as ef
from ecs_fluid.errors import FluidError

Array = np.ndarray
R = 0.25

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")


def fluid(boundary: str, dt: float = 1 / 60, precision: str = "double") -> ef.World:
    """A world at rest that is ready for bodies."""
    world = empty_world(dt, precision)
    options = {"lattice": 0.08} if boundary == "layer" else {}
    run_systems(world, boundary=boundary, panels_across=4, **options)
    world.system(ef.StretchSystem).rate = 0.0
    return world


def spinning(
    world: ef.World,
    name: str,
    x: tuple[float, float, float],
    angular_velocity: tuple[float, float, float] = (1.0, 0.0, 2.0),
) -> ef.Entity:
    """A ball that turns steadily."""
    ball = balls(world, name, x, radius=R, motion="scripted")
    ball[ef.RigidMotion].angular_velocity[0] = angular_velocity
    return ball


def total(world: ef.World, *names: str) -> Array:
    """Sum of the strengths of entities, m^3/s."""
    names = names or tuple(name for name in ("wake", "wake-bound") if name in world)
    return sum(world[name][ef.Strength].alpha.sum(axis=0, dtype=np.float64) for name in names)


class Before(ef.System):
    """Remembers impulse and total of all vortons as the boundary condition finds them."""

    may_read = (ef.Position, ef.Strength)
    phase = "constrain"
    after = ("CollisionSystem",)
    before = ("BoundarySystem",)

    def process(self, dt: float) -> None:
        """Look at the tables."""
        self.seen = impulse(self.world)


def impulse(world: ef.World) -> Array:
    """1/2 sum x cross alpha of all vortons, m^4/s."""
    tables = world["wake"], world["wake-bound"]
    return 0.5 * sum(np.cross(each[ef.Position].x, each[ef.Strength].alpha).sum(axis=0) for each in tables)


def test_stretched_bound_vorticity_is_accounted_for() -> None:
    """A ball that goes and turns: the sum stays zero, and it gives what the boundary condition changes.

    The flow moves and stretches the vortons on its surface, which then go back to what they were. The sum of
    strengths drifted by a few per cent of 2 spin V in ten ticks, and of the impulse across its way the ball
    had none. Vortons are joined here only where they are close, which changes impulses by less than 1e-3.
    """
    world = fluid("panels")
    world.system(ef.StretchSystem).rate = 1.0
    world.system(ef.BoundarySystem).merge = 1e-3
    before = world.add_system(Before())
    ball = balls(world, "ball", (0.0, 0.0, 0.0), radius=R, motion="scripted")
    ball[ef.RigidMotion].v[0], ball[ef.RigidMotion].angular_velocity[0] = (1.0, 0.0, 0.0), (0.0, 0.0, 8.0)
    for tick in range(8):
        world.step()
        if tick:
            gained = impulse(world) - before.seen
            given = ball[ef.BoundaryExchange].impulse[0]
            assert np.abs(given - gained).max() < 1e-3 * np.abs(gained).max()
    assert np.abs(total(world)).max() < 1e-12
    assert np.abs(gained[1]) > 0.1 * np.abs(gained[0])


@pytest.mark.parametrize("boundary", ["panels", "layer"])
def test_a_body_that_comes_later(boundary: str) -> None:
    """It sheds what it would have shed at the start, wherever and whenever it comes; the total stays zero.

    A run stopped with "entity has no ShedMotion". Without other bodies around, the sheet that it
    sheds is the one of a world in which it was from the start, to the last bit.
    """
    late, early = fluid(boundary), fluid(boundary)
    late.step(2)
    for world in (late, early):
        spinning(world, "ball", (0.0, 0.0, 0.0))
        world.step()
    assert np.array_equal(late["wake"][ef.Strength].alpha, early["wake"][ef.Strength].alpha)
    assert len(late["wake"]) > 50 and np.abs(total(late)).max() < 1e-12
    spinning(late, "other", (0.9, 0.1, 0.0), (0.0, 3.0, 0.0))
    solid(
        late,
        "plate",
        box(0.6, 0.4, 0.1),
        center=(-0.8, 0.0, 0.0),
        motion="scripted",
        angular_velocity=(0.0, 1.0, 0.5),
    )
    for _ in range(3):
        late.step()
        assert np.abs(total(late)).max() < 1e-12
    assert late["other"][ef.BoundaryExchange].slip[0] > 0.0


def test_a_moving_body_after_fixed_ones() -> None:
    """Bound vorticity appears with the first body that turns, 2 Omega V of it."""
    world = fluid("panels")
    balls(world, "fixed", [2.0, 0, 0], radius=R, motion="fixed")
    world.step()
    assert len(world["wake-bound"]) == 0
    spinning(world, "ball", (0.0, 0.0, 0.0))
    world.step()
    volume = 4 / 3 * np.pi * R**3
    assert np.abs(total(world, "wake-bound") - 2 * volume * np.array([1.0, 0, 2.0])).max() < 1e-12
    assert np.abs(total(world)).max() < 1e-12


@pytest.mark.parametrize("others", [0, 1])
def test_the_vorticity_of_a_body_that_goes_is_the_fluids(others: int) -> None:
    """Wake -0.2, bound +0.2, and then wake 0, bound 0: the total of both is zero in every tick, to 1e-12.

    The flow does not change as the body goes, inside of it and outside, but for the joining of vortons: 1 %.
    """
    world = fluid("panels", dt=1e-6)
    ball = spinning(world, "ball", (0.0, 0.0, 0.0))
    for k in range(others):
        spinning(world, f"other{k}", (0.9, 0.2, 0.0), (0.0, 3.0, 0.0))
    world.step(3)
    bound = 2 * 4 / 3 * np.pi * R**3 * np.array([1.0, 0.0, 2.0])
    before_wake = total(world, "wake")
    points = R * np.concatenate([0.5 * directions(100), 1.5 * directions(100)])
    flow = world.velocity(points)
    ball.kill([0])
    assert np.abs(total(world)).max() < 1e-12
    world.step()
    assert np.abs(total(world)).max() < 1e-12
    assert np.abs(total(world, "wake") - before_wake - bound).max() < 1e-12
    assert rms(world.velocity(points) - flow) < 0.01 * rms(flow)
    world.step(3)
    assert np.abs(total(world)).max() < 1e-12
    assert len(world["wake-bound"]) == others * 80


def test_rows_of_one_entity_come_and_go() -> None:
    """Balls of one population, killed and spawned in any order, in the same tick too; no total but zero."""
    world = fluid("panels")
    x = np.array([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    swarm = balls(world, "swarm", x, radius=R, motion="scripted")
    swarm[ef.RigidMotion].angular_velocity[:] = [[0, 0, 4.0], [1.0, 0, 0], [0, 2.0, 0], [1.0, 1.0, 1.0]]
    world.step(2)
    swarm.kill([1])
    new = ef.Pose([[2.0, 0, 0]], [[1.0, 0, 0, 0]]), ef.RigidMotion([[0.0, 0, 0]], [[5.0, 0, 0]])
    body = ef.Body([1.0], [0.4 * R**2 * np.eye(3)], [1])
    swarm.spawn(*new, body, ef.BallShape([R]))
    for _ in range(2):
        world.step()
        assert np.abs(total(world)).max() < 1e-12
        assert len(world["wake-bound"]) == 4 * 80
    volume = 4 / 3 * np.pi * R**3
    assert np.allclose(total(world, "wake-bound"), 2 * volume * np.array([6.0, 3.0, 5.0]), atol=1e-12)
    swarm.kill(np.ones(4, bool))
    for _ in range(3):
        world.step()
        assert len(world["wake-bound"]) == 0 and np.abs(total(world)).max() < 1e-12
    swarm.spawn(*new, body, ef.BallShape([R]))
    world.step(2)
    assert len(world["wake-bound"]) == 80 and np.abs(total(world)).max() < 1e-12


def test_a_layer_keeps_the_vorticity_of_a_body_that_goes() -> None:
    """Beside another that spins, and alone: what a ball had inside stays, so the total stays zero.

    1e-10 of the strength that each ball holds is allowed for the sums over the lattice.
    """
    world = fluid("layer")
    spinning(world, "ball", (0.0, 0.0, 0.0), (0.0, 0.0, 4.0))
    other = spinning(world, "other", (0.0, 0.55, 0.0), (3.0, 0.0, 0.0))
    world.step(3)
    assert np.abs(total(world)).max() < 1e-10
    points = 0.4 * R * directions(50)
    flow = world.velocity(points)
    world["ball"].kill([0])
    for tick in range(3):
        world.step()
        assert np.abs(total(world)).max() < 1e-10
        if tick == 0:  # it turned at 4 rad/s and goes on
            assert rms(world.velocity(points) - flow) < 0.2 * rms(flow)
    other.kill([0])
    world.step(2)
    assert np.abs(total(world)).max() < 1e-10 and len(world["wake"]) > 100


def test_a_box_that_ends_at_a_body_takes_none_of_its_vorticity() -> None:
    """Half of a turning ball was beyond it: its vortons there went, and the next tick was an IndexError."""
    world = fluid("panels")
    spinning(world, "ball", (0.0, 0.0, 0.0))
    world.add_system(ef.KillBoxSystem(low=(-1, -1, -1), high=(1, 1, 0)))
    world.step(3)
    assert len(world["wake-bound"]) == 80
    world["wake-bound"].kill([0])
    with pytest.raises(
        FluidError, match="'wake-bound' has 79 rows, but 80 are needed; they represent the spin"
    ):
        world.step()


@pytest.mark.parametrize("boundary", ["panels", "layer"])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_resume_before_and_after_a_change(boundary: str, precision: str, tmp_path: Path) -> None:
    """Saved as soon as a body has come and one has gone, and changed alike after resuming: the same bits."""
    world = fluid(boundary, precision=precision)
    spinning(world, "ball", (0.0, 0.0, 0.0))
    spinning(world, "other", (0.0, 0.6, 0.0))
    world.step(2)
    world["ball"].kill([0])
    spinning(world, "third", (0.7, 0.0, 0.0), (0.0, 0.0, -3.0))
    world.save(tmp_path / "middle.npz")
    again = ef.resume(tmp_path / "middle.npz")
    for each in (world, again):
        each.step(2)
        each["other"].kill([0])
        spinning(each, "fourth", (0.0, 0.0, 0.7), (0.0, 1.0, -3.0))
        each.step(2)
    assert world.state_hash() == again.state_hash()
    assert np.abs(total(again)).max() < (1e-12 if precision == "double" and boundary == "panels" else 1e-5)


def test_containers_come_and_go() -> None:
    """They bind nothing and leave nothing; the ball in them does."""
    world = fluid("panels")
    ball = spinning(world, "ball", (0.0, 0.0, 0.0))
    world.step()
    tank = room(world, "room", box(2, 2, 2))
    world.step()
    tank.kill([0])
    world.step()
    assert len(world["wake-bound"]) == 80
    ball.kill([0])
    world.step()
    assert np.abs(total(world)).max() < 1e-12
