"""Free bodies that feel each other through the fluid, and those that springs hold in it.

Validation cases 130 to 137.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boundary_flows import empty_world
from plane_flows import AREA, Array, R, body, inverse_laplace, plane_world
from scipy.special import kve
from solids import balls

import ecs_fluid as ef
from ecs_fluid.systems.shared.body_tables import body_entities
from ecs_fluid.systems.shared.together import solution
from ecs_fluid.worlds.bodies import BodyRecipe

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")

RHO = 1.2
BALL = 4 / 3 * np.pi * R**3


def images(distance: float, power: int, sign: float) -> float:
    """Sum of the dipoles in one of two equal disks (power 2) or balls (3), over that of a lone one.

    A dipole at s from the middle of a disk of radius 1 has its image at 1/s, smaller by s^2 (s^3 in a ball,
    along the line of the middles). `sign` is +1 where the images help: disks that move side by side, or both
    towards each other, balls towards each other.
    """
    place, strength, total = 0.0, 1.0, 0.0
    for _ in range(2000):
        total += strength
        strength *= sign / (distance - place) ** power
        place = 1 / (distance - place)
    return total


def added(world: ef.World) -> Array:
    """Added masses, kg, of bodies where they are: (n, 3, 3), or (n n, 3, 3) of pairs."""
    boundary = world.system(ef.BoundarySystem)
    assert boundary is not None
    return np.asarray(boundary.sheets.added_masses(body_entities(world)))  # type: ignore[attr-defined]


def modes(world: ef.World, axis: int) -> tuple[float, float]:
    """Added mass of two bodies that go the same way along an axis, and against each other, kg each."""
    pairs = added(world).reshape(2, 2, 3, 3)
    own, other = pairs[[0, 1], [0, 1], axis, axis], pairs[[0, 1], [1, 0], axis, axis]
    assert own == pytest.approx(own[::-1], rel=1e-2) and other == pytest.approx(other[::-1], rel=1e-2)
    return float((own + other).mean()), float((own - other).mean())


def two_disks(gap: float, cells: int, ratio: float, along: int = 0, dt: float = 0.02) -> ef.World:
    """Free disks, a `gap` in radii between them along an axis, on a lattice of R/`cells`."""
    h = R / cells
    world = plane_world(h, 0.005, dt)
    world.set_fluid(density=RHO, gravity=(0.0, -1.0, 0.0))
    world.add_systems([ef.ReactionSystem(linear="vortons", angular="vortons"), ef.BuoyancySystem()])
    for k, side in enumerate((-0.5, 0.5)):
        place = np.array([0.3 * h, 0.1 * h, 0.0])
        place[along] += side * (2 + gap) * R
        BodyRecipe(
            name=f"disk{k}",
            shape={"shape": "ball", "radius": R},
            motion="free",
            mass=ratio * RHO * AREA,
            center=place,
        ).build(world)
    return world


@pytest.mark.parametrize("gap", [0.04, 0.5])
def test_added_mass_of_two_disks(gap: float) -> None:
    """Case 130: pi rho R^2 (2 sum of the images' dipoles - 1) along and across the line of the middles, 1 %.

    T/U^2 is half that by 2 pi rho R^2 U times the sum, less the displaced fluid (Lamb, section 98).
    """
    world = two_disks(gap, 16, 1.0)
    for axis, sign in ((0, -1.0), (1, 1.0)):
        wanted = [2 * images(2 + gap, 2, s) - 1 for s in (sign, -sign)]
        assert modes(world, axis) == pytest.approx(RHO * AREA * np.array(wanted), rel=0.01)


def test_added_mass_of_a_disk_at_a_wall() -> None:
    """Case 130: a fixed wall is a second disk that does as its image; 16 R wide, R/4 away, to 2 %."""
    world = plane_world(R / 12, 0.005, 0.02)
    world.set_fluid(density=RHO)
    world.add_system(ef.ReactionSystem(linear="vortons", angular="vortons"))
    body(world, motion="free", mass=1.0, center=(0.0, 1.25 * R, 0.0))
    wall = {"shape": "box", "size": [16 * R, R, 1.0]}
    BodyRecipe(name="wall", shape=wall, motion="fixed", center=(0.0, -0.5 * R, 0.0)).build(world)
    found = added(world)[0]
    wanted = RHO * AREA * (2 * images(2.5, 2, 1.0) - 1)
    assert [found[0, 0], found[1, 1]] == pytest.approx([wanted, wanted], rel=0.02)


def balls_in_line(places: list[float]) -> ef.World:
    """Free balls on the x axis, with 320 triangles each."""
    world = empty_world(dt=0.02)
    world.set_fluid(density=RHO, gravity=(0.0, 0.0, 0.0))
    balls(world, "balls", np.array([[x, 0.0, 0.0] for x in places]), radius=R, mass=RHO * BALL)
    boundary = ef.BoundarySystem(boundary="layer", lattice=R / 6)
    world.add_systems([boundary, ef.ReactionSystem(linear="vortons", angular="vortons")])
    return world


def test_added_mass_of_two_balls() -> None:
    """Case 130: over that of a lone one, which 320 triangles have 3 % too small, to 1 %; R/2 between them.

    Along the line of the middles 3 sum - 2 by images of dipoles; across it 1 +- 3/2 (R/d)^3 (Lamb, section
    138), whose next terms are of (R/d)^6, 0.4 %.
    """
    d = 2.5
    lone = added(balls_in_line([0.0]))[0]
    assert np.diag(lone) == pytest.approx(np.full(3, 0.5 * RHO * BALL), rel=0.05)
    world = balls_in_line([-0.5 * d * R, 0.5 * d * R])
    along, across = modes(world, 0), modes(world, 1)
    wanted = [3 * images(d, 3, sign) - 2 for sign in (-1.0, 1.0)]
    assert along == pytest.approx(lone[0, 0] * np.array(wanted), rel=0.01)
    assert across == pytest.approx(lone[1, 1] * (1 + 1.5 / d**3 * np.array([1.0, -1.0])), rel=0.01)


def test_light_disks_side_by_side_rise_slower_from_their_first_tick() -> None:
    """Case 130: by (m_f - m) g/(m + m_a) of both together, less what drag takes, in each of four ticks.

    Disks of a fiftieth of the fluid's density, 0.04 R apart: m_a = 1.94 m_f. They once rose as lone ones in
    their first tick, nearly twice as fast. nu dt is so small that drag takes little: found 0.92 to 0.81.
    """
    world = two_disks(0.04, 16, 0.02, dt=0.002)
    free = 0.98 / (0.02 + 2 * images(2.04, 2, 1.0) - 1)
    before = 0.0
    for _ in range(4):
        world.step()
        v = [float(world[f"disk{k}"][ef.RigidMotion].v[0, 1]) for k in range(2)]
        assert v[0] == pytest.approx(v[1], rel=0.01)
        assert 0.75 * free < (v[0] - before) / world.dt < free
        before = v[0]
    # And where they are is half of that times the tick: the BodySystem knew what they took along.
    way = world["disk0"][ef.Pose].x[0, 1] - 0.1 * R / 16
    assert way == pytest.approx(0.5 * world.time * v[0], rel=0.1)


def test_bodies_that_touch_stay_apart_and_go_on_when_resumed(tmp_path: Path) -> None:
    """A light disk rises under a heavy one: no overlap beyond 1e-3 R, and the same bits resumed."""
    world = two_disks(0.01, 8, 0.05, along=1)
    world["disk1"][ef.Body].mass[0] = 2 * RHO * AREA
    for tick in range(12):
        world.step()
        apart = world["disk1"][ef.Pose].x[0, 1] - world["disk0"][ef.Pose].x[0, 1]
        assert apart > (2 - 1e-3) * R
        if tick == 5:
            world.save(tmp_path / "middle.npz")
    again = ef.resume(tmp_path / "middle.npz")
    again.step(6)
    assert again.state_hash() == world.state_hash()
    v = [world[f"disk{k}"][ef.RigidMotion].v[0, 1] for k in range(2)]
    assert v[1] - v[0] > -1e-3


def test_free_bodies_that_meet_on_a_floor_get_no_faster() -> None:
    """A light and a heavy disk, each at 0.5 m/s towards the other: no speed above that, momentum shared.

    The impulses between them were found by a matrix that had been taken apart already: 0.60 m/s after one
    tick, both against the heavy one's way, and 1e48 after three.
    """
    h = R / 6
    world = plane_world(h, 0.005, 0.03)
    world.set_fluid(density=RHO)
    world.add_system(ef.ReactionSystem(linear="vortons", angular="vortons"))
    for name, side, mass in (("light", -1.0, 0.1), ("heavy", 1.0, 2.0)):
        place, speed = (side * R, R, 0.0), (-0.5 * side, 0.0, 0.0)
        ball = {"shape": "ball", "radius": R}
        BodyRecipe(name=name, shape=ball, mass=mass, center=place, velocity=speed).build(world)
    floor = {"shape": "box", "size": [6 * R, R, 1.0]}
    BodyRecipe(name="floor", shape=floor, motion="fixed", center=(0.0, -0.5 * R, 0.0)).build(world)
    for _ in range(3):
        world.step()
        v = [world[name][ef.RigidMotion].v[0] for name in ("light", "heavy")]
        assert max(np.linalg.norm(each) for each in v) < 0.5
        assert v[0][0] < v[1][0] + 0.01 < 0.0


def test_a_linear_system_is_left_as_it_was() -> None:
    """Its matrix is used again for what keeps bodies apart, and each solution is that of numpy."""
    draw = np.random.default_rng(0)
    matrix, right = draw.standard_normal((3, 2, 3, 2)), draw.standard_normal((3, 2))
    wanted = np.linalg.solve(matrix.reshape(6, 6), right.ravel()).reshape(3, 2)
    for _ in range(2):
        assert solution(matrix, right) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("ratio", [0.02, 1.0])
def test_a_disk_put_into_still_fluid_with_a_spin(ratio: float) -> None:
    """Case 131: it loses it as Stokes has it and never turns back, light ones neither; R/8, 10 ticks.

    (I s + 2 pi nu rho R^2 (2 + z K_0/K_1)) W = I W_0, z^2 = s R^2/nu. A light one once had -0.47 of its spin
    in the third tick. Found: off by 0.10 of W_0 in its second tick at most, by 0.015 in its tenth.
    """
    nu, h = 0.01, R / 8
    world = plane_world(h, nu, 0.3 * h**2 / nu)
    world.set_fluid(density=RHO)
    world.add_system(ef.ReactionSystem(linear="vortons", angular="vortons"))
    mass = ratio * RHO * AREA
    disk = body(
        world, motion="free", mass=mass, center=(0.3 * h, 0.1 * h, 0.0), angular_velocity=(0.0, 0.0, 1e-3)
    )
    inertia = 0.5 * mass * R**2

    def answer(s: Array) -> Array:
        z = R * np.sqrt(s / nu)
        braked = 2 * np.pi * nu * RHO * R**2 * (2 + z * kve(0, z) / kve(1, z))
        return np.asarray(inertia / (inertia * s + braked))

    spins = []
    for _ in range(10):
        world.step()
        spin = float(disk[ef.RigidMotion].angular_velocity[0, 2]) / 1e-3
        assert spin == pytest.approx(inverse_laplace(answer, world.time), abs=0.12)
        spins.append(spin)
    assert min(spins) > 0.0
    assert spins[-1] == pytest.approx(inverse_laplace(answer, world.time), abs=0.02)


class Spring(ef.System):
    """A spring from a place to the middle of each body, F = -k (|r| - rest) r/|r|."""

    reads = (ef.Pose, ef.RigidMotion)
    adds = (ef.BodyLoad,)
    phase = "move"
    dimensions = (2, 3)
    before = ("BodySystem",)
    stiffness: float = 1.0
    """N/m"""
    rest: float = 0.0
    """m"""
    height: float = 0.0
    """of the place on the y axis, m"""

    def added(self, world: ef.World) -> None:
        """Loads are emptied in each tick."""
        world.require(ef.LoadSystem)

    def process(self, dt: float) -> None:
        """Pull all bodies."""
        for pose, motion, load in self.query(ef.Pose, ef.RigidMotion, ef.BodyLoad):
            r = pose.x + 0.5 * dt * motion.v - [0.0, self.height, 0.0]
            size = np.linalg.norm(r, axis=1, keepdims=True)
            load.force[...] -= self.stiffness * (size - self.rest) * r / size


def drag(s: Any, nu: float) -> Any:
    """Drag over speed in Laplace's transform, pi rho R^2 s (1 + 4 K_1(z)/(z K_0(z))), z^2 = s R^2/nu."""
    z = R * np.sqrt(s / nu)
    return RHO * AREA * (1 + 4 * kve(1, z) / (z * kve(0, z))) * s


def swing(world: ef.World, disk: ef.Entity, ticks: int, spring: float, nu: float, mass: float) -> Array:
    """(Place along x, Stokes's) over the first one, of a disk that is let go, after each tick (t, 2).

    Stokes's equations: (m s + drag(s)) (s X - x_0) + k X = 0.
    """
    start = float(disk[ef.Pose].x[0, 0])

    def place(s: Array) -> Array:
        inert = mass * s + drag(s, nu)
        return np.asarray(inert / (inert * s + spring))

    found = []
    for _ in range(ticks):
        world.step()
        there = float(disk[ef.Pose].x[0, 0]) / start
        found.append((there, inverse_laplace(place, world.time, 32)))
    return np.array(found)


@pytest.mark.parametrize(
    ("ticks", "ratio"),
    [(32, 0.5), *(pytest.param(64, ratio, marks=pytest.mark.nightly) for ratio in (0.05, 0.5, 3.0))],
)
def test_a_disk_on_a_spring(ticks: int, ratio: float) -> None:
    """Case 132: let go in fluid at rest it swings as Stokes has it, with the added mass and drag of that.

    nu/omega = (R/10)^2, one spacing, 64 ticks a period. Found: at most 0.006 x_0 off at 0.5.
    """
    nu, omega, mass = 1e-3, 0.4, ratio * RHO * AREA
    world = plane_world(R / 10, nu, 2 * np.pi / omega / 64)
    world.set_fluid(density=RHO)
    k = (mass + RHO * AREA) * omega**2
    world.add_systems([ef.ReactionSystem(linear="vortons", angular="vortons"), Spring(stiffness=k)])
    disk = body(world, motion="free", mass=mass, center=(0.02 * R, 0.0, 0.0))
    found = swing(world, disk, ticks, k, nu, mass)
    print(f"disk {ratio} on a spring: {np.abs(found[:, 0] - found[:, 1]).max()}")
    assert math.sqrt(((found[:, 0] - found[:, 1]) ** 2).mean()) < 0.005


@pytest.mark.nightly
@pytest.mark.parametrize("cells", [8, 12])
def test_a_pendulum_in_fluid(cells: int) -> None:
    """Case 133: its way is Stokes's with the spring (m - m_f) g/L, to 0.01 of the swing rms; R/8, R/12.

    A disk of three times the fluid's density at a string 4 R long (a spring that it stretches by 2 %, which
    leaves the length as it is), 0.03 rad. Without viscosity its frequency is
    sqrt((m - m_f) g/((m + m_f) L)), which the layer lowers by 5.4 %.
    """
    nu, mass, g, length, angle = 2e-3, 3.0 * RHO * AREA, 1.0, 4 * R, 0.03
    back = (mass - RHO * AREA) * g / length
    omega = math.sqrt(back / (mass + RHO * AREA))
    world = plane_world(R / cells, nu, 2 * np.pi / omega / 64)
    world.set_fluid(density=RHO, gravity=(0.0, -g, 0.0))
    string = Spring(stiffness=50 * back, rest=length - back * length / (50 * back), height=length)
    world.add_systems([ef.ReactionSystem(linear="vortons", angular="vortons"), ef.BuoyancySystem(), string])
    place = length * np.array([math.sin(angle), 1 - math.cos(angle), 0.0])
    disk = body(world, motion="free", mass=mass, center=place)
    found = swing(world, disk, 64, back, nu, mass)
    print(f"pendulum, R/{cells}: {np.abs(found[:, 0] - found[:, 1]).max()}")
    assert math.sqrt(((found[:, 0] - found[:, 1]) ** 2).mean()) < 0.01
    nodes = []
    for way in found.T:
        k = np.flatnonzero(np.diff(np.sign(way)))
        nodes.append(k + way[k] / (way[k] - way[k + 1]))
    assert nodes[0] == pytest.approx(nodes[1], rel=0.01)


@pytest.mark.nightly
def test_a_disk_falls_at_its_terminal_speed() -> None:
    """Case 135: a resolved disk at Re = 40 falls at the speed U of C_D = 1.522, to 3 %.

    That of a steady flow by Dennis and Chang (J. Fluid Mech. 42, 1970). Twice as dense as its fluid and
    put there with U, it makes its wake on the way: it slows down to 0.83 U at first and comes back. After
    55 R it is no faster. Found at R/6 and R/8 0.98, at R/8 after 70 R 0.987.
    """
    reynolds, drag_coefficient, h = 40.0, 1.522, R / 6
    nu = 2 * R / reynolds
    world = plane_world(h, nu, 0.8 * h, precision="single", solver="fmm", loss=1e-3)
    world.set_fluid(density=RHO, gravity=(0.0, -drag_coefficient * R / AREA, 0.0))
    world.add_systems([ef.ReactionSystem(linear="vortons", angular="vortons"), ef.BuoyancySystem()])
    disk = body(world, motion="free", mass=2 * RHO * AREA, velocity=(0.0, -1.0, 0.0))
    world.step(round(55 * R / world.dt))
    v = disk[ef.RigidMotion].v[0]
    print(f"terminal speed: {-v[1]}")
    assert 0.97 < -v[1] < 1.0
    assert abs(v[0]) < 1e-2


def street(motion: str, cells: int, seconds: float, **spring: float) -> tuple[Array, ...]:
    """(t, y, C_D, C_L) of each tick of a cylinder, D = 1 m, in a wind of 1 m/s, Re = 150, mass 2 rho D^2.

    Rails along y, if it is free; a box ends the wake ten diameters behind it. A gust of 2 s or the place at
    which it is let go sets the vortices off. BoundaryExchange counts the fluid in the disk, m_f dv/dt.
    """
    h, rho = R / cells, 1.0
    world = plane_world(h, 1 / 150, 0.8 * h, (1.0, 0.0, 0.0), precision="single", solver="fmm", loss=1e-3)
    world.set_fluid(density=rho)
    world.add_systems(
        [
            ef.KillBoxSystem(low=(-20.0, -20.0, -1.0), high=(10.0, 20.0, 1.0)),
            ef.ReactionSystem(linear="vortons", axes=("y",)),
            Spring(**spring),
        ]
    )
    free = motion == "free"
    disk = body(world, motion=motion, mass=2 * rho, center=(0.0, 0.2 if free else 0.3 * h, 0.0))
    wind, rows = world.system(ef.WindSystem), []
    while world.time < seconds:
        wind.velocity = (1.0, 0.2 if not free and world.time < 2.0 else 0.0, 0.0)
        before = float(disk[ef.RigidMotion].v[0, 1])
        world.step()
        y, v = float(disk[ef.Pose].x[0, 1]), float(disk[ef.RigidMotion].v[0, 1])
        force = -rho * disk[ef.BoundaryExchange].impulse[0].astype(float) / world.dt
        force[1] += rho * AREA * (v - before) / world.dt
        rows.append((world.time, y, force[0] / (rho * R), force[1] / (rho * R)))
    return tuple(np.array(rows).T)


def beat(t: Array, values: Array) -> float:
    """Periods a second, by passages upwards through the mean."""
    swing = values - values.mean()
    k = np.flatnonzero((swing[:-1] < 0) & (swing[1:] >= 0))
    passed = t[k] - swing[k] * (t[k + 1] - t[k]) / (swing[k + 1] - swing[k])
    return float((len(k) - 1) / (passed[-1] - passed[0]))


@pytest.mark.nightly
def test_a_street_of_vortices_at_re_150() -> None:
    """Case 136: Strouhal number of Williamson's experiments (1988), 0.1834, 2 %; C_D 1.32, 4 %; R/8.

    That drag, and lift that swings by 0.5 to 0.53, are those of computations of others.
    """
    t, _, drag, lift = (column[-900:] for column in street("fixed", 8, 55.0))
    found = beat(t, lift), drag.mean(), 0.5 * np.ptp(lift)
    print("street at Re = 150: ", *found)
    assert found[0] == pytest.approx(0.1816 - 3.3265 / 150 + 1.6e-4 * 150, rel=0.02)
    assert found[1] == pytest.approx(1.32, rel=0.04)
    assert found[2] == pytest.approx(0.515, rel=0.15)


@pytest.mark.nightly
def test_a_cylinder_vibrates_by_its_vortices() -> None:
    """Case 137: at U/(f D) = 4, f by spring and mass alone, its vortices drive it, and beat as it does.

    Without a damper, mass 2 rho D^2. It is let go at 0.2 D: without work by its vortices it could not swing
    further. No figure of others for how far is at hand, so none is asked for; found 0.58 D, and 0.63 at R/6.
    Lift in phase is what mass and spring ask of a sine, m (omega_n^2 - omega^2) A, to 5 %.
    """
    omega = 2 * np.pi / 4
    t, y, _, lift = (column[-600:] for column in street("free", 8, 50.0, stiffness=2 * omega**2))
    size, rate = math.sqrt(2) * y.std(), 2 * np.pi * beat(t, y)
    print("vibration: ", size, rate / (2 * np.pi), beat(t, lift))
    assert size > 0.2
    assert beat(t, lift) == pytest.approx(rate / (2 * np.pi), rel=0.01)
    in_phase = 2 * (lift * (y - y.mean())).mean() / size * R
    assert in_phase == pytest.approx(2 * (omega**2 - rate**2) * size, rel=0.05)


def test_drag_of_disks_and_prisms_in_a_plane() -> None:
    """Case 134: they fall at a speed U of (m - m_f) g = rho C_d(Re) R U^2, to 1e-9.

    A spin stops as exp(-4 pi mu R^2 t/I). Sucker and Brauer's C_d is Lamb's 8 pi/(Re (ln(8/Re) - 0.077)) at
    Re = 0.1, to 4 %, and 10.0 at 1, 1.45 at 100, 0.96 at 1,000, where Tritton (1959) and Wieselsberger (1921)
    measured 10 to 11, 1.4, 1.0.
    """
    from ecs_fluid.systems.drag import _of_cylinders

    def law(reynolds: float) -> float:
        return float(_of_cylinders(np.ones(1), np.full(1, reynolds), 1.0)[0]) / reynolds

    assert law(0.1) == pytest.approx(8 * np.pi / 0.1 / (math.log(80) - 0.077), rel=0.04)
    assert [law(1.0), law(100.0), law(1000.0)] == pytest.approx([10.0, 1.45, 0.96], rel=0.01)
    side, nu, ratio = math.sqrt(np.pi) * R, 1e-3, 2.0
    for shape in ({"shape": "ball", "radius": R}, {"shape": "box", "size": [side, side, 3.0]}):
        world = ef.World(dimension=2, dt=8.0, precision="double")
        world.set_fluid(density=RHO, viscosity=nu, gravity=(0.0, -0.01, 0.0))
        world.add_systems([ef.BuoyancySystem(), ef.DragSystem(), ef.BodySystem()])
        disk = body(world, shape, motion="free", density=ratio * RHO, angular_velocity=(0.0, 0.0, 0.2))
        world.step(150)
        speed = -float(disk[ef.RigidMotion].v[0, 1])
        pull = (ratio - 1) * RHO * AREA * 0.01
        assert RHO * R * speed**2 * law(2 * R * speed / nu) == pytest.approx(pull, rel=1e-9)
        spin, inertia = disk[ef.RigidMotion].angular_velocity[0, 2], disk[ef.Body].inertia[0, 2, 2]
        slow = math.exp(-4 * np.pi * RHO * nu * R**2 * world.time / inertia)
        assert spin == pytest.approx(0.2 * slow, rel=1e-9)


def test_laws_of_drag_know_their_dimension() -> None:
    """Stokes's drag is none of a plane, and that of cylinders none of space."""
    for dimension, law, others in ((2, "stokes", "'sucker_brauer' or"), (3, "sucker_brauer", "'stokes' or")):
        with pytest.raises(
            ef.RecipeError, match=f"law = '{law}' is not for a world of dimension = .*; use .*{others}"
        ):
            ef.World(dimension=dimension).add_system(ef.DragSystem(law=law))
