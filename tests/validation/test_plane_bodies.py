"""Bodies in a plane: the sheet on their outline, the layer that spreads from it, drag, torque and wake.

Validation case 53.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import kve

import ecs_fluid as ef
from ecs_fluid.worlds.bodies import BodyRecipe

Array = np.ndarray
R = 0.5
AREA = np.pi * R**2

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")


def plane_world(
    lattice: float,
    viscosity: float,
    dt: float,
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0),
    plane: str = "xy",
    precision: str = "double",
    solver: str = "auto",
    **boundary: Any,
) -> ef.World:
    """A world in a plane that waits for bodies."""
    world = ef.World(dimension=2, plane=plane, dt=dt, precision=precision)
    world.set_fluid(viscosity=viscosity, gravity=(0.0, 0.0, 0.0))
    world.add_systems(
        [
            ef.VelocitySystem(solver=solver),
            ef.AdvectionSystem(),
            ef.BodySystem(),
            ef.DiffusionSystem(),
            ef.WindSystem(velocity=wind),
            ef.BoundarySystem(boundary="layer", lattice=lattice, **boundary),
        ]
    )
    return world


def body(world: ef.World, shape: dict[str, Any] | None = None, **given: Any) -> ef.Entity:
    """A body by its recipe, a disk of the radius R by default."""
    shape = shape or {"shape": "ball", "radius": R}
    BodyRecipe(name="body", shape=shape, **{"motion": "scripted", **given}).build(world)
    return world["body"]


def vorticity(world: ef.World) -> tuple[Array, Array]:
    """Places (n, 3) and circulations (n,) times a metre of all vortons of the wake."""
    wake = world["wake"]
    return wake[ef.Position].x.astype(float), wake[ef.Strength].alpha.astype(float)[:, world.across]


def inverse_laplace(transform: Callable[[Array], Array], t: float, terms: int = 24) -> float:
    """f(t) from its transform by Talbot's contour (Abate and Valko 2004), to some 12 digits."""
    turn = np.arange(1, terms) * np.pi / terms
    cot = 1 / np.tan(turn)
    s = np.concatenate([[2 * terms / 5 + 0j], 2 * np.arange(1, terms) * np.pi / 5 * (cot + 1j)])
    weight = np.concatenate([[0.5 + 0j], 1 + 1j * turn * (1 + cot**2) - 1j * cot])
    return float(2 / (5 * t) * (weight * np.exp(s) * transform(s / t)).sum().real)


def lost_impulse(nu: float, t: float) -> float:
    """Impulse over rho U of a metre, m^2, that drag has taken by t from a flow U that starts about a disk.

    Stokes's equations with U on all of the fluid have the drag pi rho R^2 s U(s) (1 + 4 K_1(z)/(z K_0(z))),
    z^2 = s R^2/nu; the 1 is the start, and for short times 4 K_1/(z K_0) = 4/z + 2/z^2, a drag of
    4 rho U R sqrt(pi nu/t) + 2 pi rho nu U: half of the first part is Rayleigh's friction under the slip
    2 U sin(theta). Source: Stokes 1851, section 35; Landau and Lifshitz, Fluid Mechanics, section 24.
    """

    def drag(s: Array) -> Array:
        z = R * np.sqrt(s / nu)
        return np.asarray(np.pi * R**2 * 4 * kve(1, z) / (z * kve(0, z)) / s)

    return inverse_laplace(drag, t)


def test_stokes_law_for_short_times() -> None:
    """The transform above against its first two terms at nu t/R^2 = 1e-4, where the third is 1e-4 of them."""
    nu, t = 0.01, 1e-4 * R**2 / 0.01
    first = 8 * R * math.sqrt(np.pi * nu * t) + 2 * np.pi * nu * t
    assert lost_impulse(nu, t) == pytest.approx(first, rel=1e-4)


def started_disk(cells: int, reynolds: float, ticks: int, tau: float) -> tuple[ef.World, float, float]:
    """A disk in a wind U that starts, until nu t/R^2 = `tau`: (world, impulse over rho U it took, Stokes's).

    The lattice is R/`cells`. The start takes twice the displaced fluid times U at once (area, m^2), which is
    left out: the flow about the disk has as much as what would flow through it.
    """
    nu, h = 0.01, R / cells
    speed = reynolds * nu / (2 * R)
    world = plane_world(h, nu, tau * R**2 / nu / ticks, (speed, 0.0, 0.0))
    disk = body(world, motion="fixed", center=(0.3 * h, 0.1 * h, 0.0))
    taken = np.zeros((ticks, 3))
    for tick in range(ticks):
        world.step()
        taken[tick] = -disk[ef.BoundaryExchange].impulse[0] / speed
    assert np.abs(taken[:, 1]).max() < 0.02 * np.abs(taken[:, 0]).max() and not taken[:, 2].any()
    return world, float(taken[:, 0].sum()) - 2 * AREA, lost_impulse(nu, world.time)


def test_drag_of_a_started_disk() -> None:
    """Case 53 without convection: what drag has taken by nu t/R^2 = 0.03 is Stokes's, to 2 % at R/16.

    Found: 1.5 % less. Nothing comes from nothing: the vortices add up to zero, to rounding.
    """
    world, found, law = started_disk(16, 1e-3, 31, 0.03)
    assert found == pytest.approx(law, rel=0.02)
    _, gamma = vorticity(world)
    assert abs(gamma.sum()) < 1e-13 * np.abs(gamma).sum()
    # The world's own figure of the impulse is what the body gave, but for the errors of velocities.
    assert world.diagnostics()["impulse"][0] == pytest.approx(-(found + 2 * AREA) * 1e-5, rel=2e-4)


@pytest.mark.nightly
def test_drag_of_a_started_disk_converges() -> None:
    """Case 53: R/8, R/16, R/32 without convection, -5.9, -1.5, -0.4 %; R/32, R/64 at Re = 550, 6.9, 1.4 %.

    Until the flow has gone R/4 convection changes next to nothing of the drag: the first change of the
    friction goes as cos(theta), which adds up to none (Blasius 1908). So the law of Bar-Lev and Yang (1975)
    and Stokes's are the same, C_D = 4 sqrt(2 pi/(Re T)) at first, Re = 2 R U/nu, T = U t/R.
    """
    slow = [started_disk(cells, 1e-3, round(0.03 * cells**2 / 0.25), 0.03) for cells in (8, 16, 32)]
    fast = [started_disk(cells, 550.0, cells // 2, 0.25 * 2 / 550) for cells in (32, 64)]
    for runs, gate, order in ((slow, 0.006, 1.6), (fast, 0.02, 1.6)):
        errors = [found / law - 1 for _, found, law in runs]
        print(f"drag of a disk: {errors}")
        assert abs(errors[-1]) < gate
        assert math.log2(abs(errors[0] / errors[-1])) / (len(errors) - 1) > order


def spun_disk(cells: int, ticks: int, tau: float, plane: str = "xy") -> tuple[ef.World, Array, Array]:
    """A disk that turns from now on, until nu t/R^2 = `tau`: world, torque of each tick, the exact ones, N m.

    With q^2 = s/nu the velocity over spin R has the transform K_1(q r)/(s K_1(q R)), and the torque is
    -2 pi mu R^2 spin (2 + z K_0(z)/K_1(z)), z = q R, which comes down to -4 pi mu R^2 spin. rho = 1 kg/m^3.
    """
    nu, spin, h = 0.05, 0.2, R / cells
    world = plane_world(h, nu, tau * R**2 / nu / ticks, plane=plane)
    turning = np.zeros(3)
    turning[world.across] = spin
    center = np.where(np.arange(3) == world.across, 0.0, h * np.array([0.3, 0.1, 0.1]))
    disk = body(world, center=center, angular_velocity=turning)

    def angular_impulse(t: float) -> float:
        def transform(s: Array) -> Array:
            z = R * np.sqrt(s / nu)
            return np.asarray((2 + z * kve(0, z) / kve(1, z)) / s**2)

        return -2 * np.pi * nu * R**2 * spin * inverse_laplace(transform, t)

    found, exact = np.zeros(ticks), np.zeros(ticks)
    for tick in range(ticks):
        world.step()
        found[tick] = -disk[ef.BoundaryExchange].moment[0, world.across] / world.dt
        start = angular_impulse(tick * world.dt) if tick else 0.0
        exact[tick] = (angular_impulse(world.time) - start) / world.dt
    return world, found, exact


def test_a_disk_that_starts_to_turn() -> None:
    """Torque and flow of the exact transient at nu t/R^2 = 0.15: 1.1 % and, at 1.6 and 2 R, 4 % at R/8.

    At first all of the fluid is at rest but for the disk: the circulation 2 spin pi R^2 of the disk and that
    of the sheet about it add up to zero, and do so to rounding ever after.
    """
    world, torque, exact = spun_disk(8, 32, 0.15)
    assert torque[16:].mean() == pytest.approx(exact[16:].mean(), rel=0.015)
    _, gamma = vorticity(world)
    within = world["wake"][ef.BoundaryLayer].within * world["wake"][ef.Volume].volume
    assert within.sum() == pytest.approx(AREA, rel=1e-12)
    assert abs(gamma.sum()) < 1e-13 * np.abs(gamma).sum()
    radii = R * np.array([1.6, 2.0])
    center = world["body"][ef.Pose].x[0]
    u = world.velocity(center + np.stack([radii, 0 * radii, 0 * radii], axis=1))[:, 1]
    for r, found in zip(radii, u, strict=True):

        def transform(s: Array, r: float = r) -> Array:
            q = np.sqrt(s / 0.05)
            return np.asarray(0.2 * R / s * kve(1, q * r) / kve(1, q * R) * np.exp((R - r) * q))

        assert found == pytest.approx(inverse_laplace(transform, world.time), rel=0.05)


@pytest.mark.nightly
def test_torque_on_a_disk_converges() -> None:
    """Mean torque from nu t/R^2 = 0.075 to 0.15 at R/4, R/8, R/16: found 1.9, 0.7, 0.1 % less; order 2."""
    errors = []
    for cells, ticks in ((4, 8), (8, 32), (16, 128)):
        _, torque, exact = spun_disk(cells, ticks, 0.15)
        errors.append(torque[ticks // 2 :].mean() / exact[ticks // 2 :].mean() - 1)
    print(f"torque on a disk: {errors}")
    assert abs(errors[-1]) < 0.003
    assert math.log2(abs(errors[0] / errors[-1])) / 2 > 1.5


class Quicken(ef.System):
    """Scripted bodies that gain speed along x and spin at constant rates."""

    reads = (ef.Body,)
    writes = (ef.RigidMotion,)
    phase = "move"
    dimensions = (2, 3)
    before = ("BodySystem",)

    def process(self, dt: float) -> None:
        """As fast as they are at the end of the tick."""
        for (motion,) in self.query(ef.RigidMotion):
            motion.v[:, 0] = 1e-3 * (self.world.time + dt)
            motion.angular_velocity[:, 2] = 1e-2 * (self.world.time + dt)


def test_exchange_with_a_disk_that_goes_faster() -> None:
    """What fluid gets from a disk of steady acceleration a and b, that in the disk too: Stokes's, 3 and 6 %.

    Transforms of the impulses over rho: pi R^2 (2 + 4 K_1/(z K_0)) a/s^2, of which 1 is the added mass and 1
    the fluid in the disk, and (2 pi nu R^2 (2 + z K_0/K_1)/s + pi R^4/2) b/s^2. Found 1.1 and 4.3 % less
    (0.1 and 1.1 % at R/16), as friction begins a tick late.
    """
    nu, h = 0.01, R / 8
    world = plane_world(h, nu, 0.3 * h**2 / nu)
    world.add_system(Quicken())
    disk = body(world, center=(0.3 * h, 0.1 * h, 0.0))
    found = np.zeros(2)
    for _ in range(32):
        world.step()
        given = disk[ef.BoundaryExchange]
        found += given.impulse[0, 0], given.moment[0, 2]

    def impulse(s: Array) -> Array:
        z = R * np.sqrt(s / nu)
        return np.asarray(AREA * (2 + 4 * kve(1, z) / (z * kve(0, z))) * 1e-3 / s**2)

    def moment(s: Array) -> Array:
        z = R * np.sqrt(s / nu)
        friction = 2 * np.pi * nu * R**2 * (2 + z * kve(0, z) / kve(1, z)) / s
        return np.asarray((friction + np.pi * R**4 / 2) * 1e-2 / s**2)

    assert found[0] == pytest.approx(inverse_laplace(impulse, world.time), rel=0.03)
    assert found[1] == pytest.approx(inverse_laplace(moment, world.time), rel=0.06)


class Pull(ef.System):
    """A constant force along x and torque along z."""

    adds = (ef.BodyLoad,)
    phase = "move"
    dimensions = (2, 3)
    before = ("BodySystem",)
    force: float = 0.0
    """N"""
    torque: float = 0.0
    """N m"""

    def added(self, world: ef.World) -> None:
        """Loads are emptied in each tick."""
        world.require(ef.LoadSystem)

    def process(self, dt: float) -> None:
        """Pull all bodies."""
        for (load,) in self.query(ef.BodyLoad):
            load.force[:, 0] += self.force
            load.torque[:, 2] += self.torque


def pulled_disk(ratio: float, cells: int, tau: float, pull: Pull) -> tuple[float, float]:
    """(Speed or spin, Stokes's) of a disk of `ratio` times the fluid's density, pulled until nu t = tau R^2.

    It moves so little that Stokes's equations are exact: with the drag of a disk that moves, pi rho R^2 s V
    (1 + 4 K_1/(z K_0)), whose 1 is the added mass, (m s + pi rho R^2 s (1 + 4 K_1/(z K_0))) V = F/s, and with
    the torque below (I s + 2 pi nu rho R^2 (2 + z K_0/K_1)) W = T/s, z^2 = s R^2/nu.
    """
    nu, rho, h = 0.01, 1.2, R / cells
    world = plane_world(h, nu, 0.3 * h**2 / nu)
    world.set_fluid(density=rho)
    world.add_systems([ef.ReactionSystem(linear="vortons", angular="vortons"), pull])
    mass = ratio * rho * AREA
    disk = body(world, motion="free", mass=mass, center=(0.3 * h, 0.1 * h, 0.0))
    world.step(round(tau * R**2 / nu / world.dt))
    motion = disk[ef.RigidMotion]

    def answer(s: Array) -> Array:
        z = R * np.sqrt(s / nu)
        if pull.force:
            inert = (mass + rho * AREA * (1 + 4 * kve(1, z) / (z * kve(0, z)))) * s
            return np.asarray(pull.force / s / inert)
        inert = 0.5 * mass * R**2 * s + 2 * np.pi * nu * rho * R**2 * (2 + z * kve(0, z) / kve(1, z))
        return np.asarray(pull.torque / s / inert)

    found = motion.v[0, 0] if pull.force else motion.angular_velocity[0, 2]
    return float(found), inverse_laplace(answer, world.time)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 5.0])
def test_a_free_disk_that_is_pulled(ratio: float) -> None:
    """Speed as Stokes has it, 2 %, and spin, 4 %, for disks lighter than the fluid too; R/8.

    Found: speeds 1.0, 0.8, 0.4 % too large, spins 2.5, 2.9, 1.5 %; at R/16 (by night) a quarter of it.
    """
    found, exact = pulled_disk(ratio, 8, 0.15, Pull(force=1e-4))
    assert found == pytest.approx(exact, rel=0.02)
    found, exact = pulled_disk(ratio, 8, 0.15, Pull(torque=1e-4))
    assert found == pytest.approx(exact, rel=0.04)


@pytest.mark.nightly
@pytest.mark.parametrize("ratio", [0.02, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("part", ["force", "torque"])
def test_free_disks_converge(ratio: float, part: str) -> None:
    """At R/4, R/8, R/16; order 2."""
    errors = []
    for cells in (4, 8, 16):
        found, exact = pulled_disk(ratio, cells, 0.15, Pull(**{part: 1e-4}))
        errors.append(found / exact - 1)
    print(f"disk {ratio} {part}: {errors}")
    assert abs(errors[-1]) < 0.01
    assert math.log2(abs(errors[0] / errors[-1])) / 2 > 1.5


def float_table(density: float, shape: dict[str, Any], plane: str = "xz", **world: Any) -> dict[str, Any]:
    """A free body under gravity in a fluid of 1 kg/m^3 that is moved by buoyancy and vorticity."""
    return {
        "world": {"dimension": 2, "plane": plane, "dt": 0.02, "precision": "double", **world},
        "fluid": {"density": 1.0, "viscosity": 0.005, "gravity": [0.0, 0.0, -1.0]},
        "entity": [
            {
                "kind": "body",
                "name": "float",
                "shape": shape,
                "density": density,
                "motion": "free",
                "rotation": [0.0, 0.5, 0.0],
            }
        ],
        "system": [
            {"kind": "buoyancy"},
            {"kind": "boundary", "boundary": "layer", "lattice": 0.05},
            {"kind": "reaction", "linear": "vortons", "angular": "vortons"},
        ],
    }


@pytest.mark.parametrize("density", [0.01, 0.5, 2.0])
def test_a_disk_is_let_go(density: float) -> None:
    """Its first speed is (m_f - m) g dt/(m + m_f), less what friction takes, 6 % at most.

    By Rayleigh's layer friction takes 4 rho U R sqrt(pi nu t) of the impulse, 4 % of m_f U after a tick, so a
    part 4 sqrt(nu dt/pi)/(R (1 + m/m_f)) of the speed: 4.5, 3, 1.5 %. What BuoyancySystem has as added mass
    is of no consequence.
    """
    speeds = []
    for added in (True, False):
        table = float_table(density, {"shape": "ball", "radius": 0.5})
        table["system"][0]["added_mass"] = added
        world = ef.load(table)
        world.step()
        speeds.append(float(world["float"][ef.RigidMotion].v[0, 2]))
    free = (1.0 - density) / (1.0 + density) * 0.02
    part = 4 * math.sqrt(0.005 * 0.02 / np.pi) / (0.5 * (1 + density))
    assert speeds[0] == pytest.approx(speeds[1], rel=2e-3)
    assert 0.4 * part < 1 - speeds[0] / free < 1.6 * part


def test_a_prism_as_heavy_as_the_fluid_stays() -> None:
    """No force, no motion: the added mass across the plane is none, not the displaced fluid less."""
    world = ef.load(float_table(1.0, {"shape": "box", "size": [1.0, 1.0, 0.5]}))
    world.step(3)
    motion = world["float"][ef.RigidMotion]
    assert np.abs(motion.v).max() < 1e-12 and np.abs(motion.angular_velocity).max() < 1e-12
    added = world.fluid[ef.ShedMotion].added[0]
    assert added[0, 0] > 0.1 and added[2, 2] > 0.1 and not added[1].any() and not added[:, 1].any()


def test_a_light_prism_is_not_thrown_in_its_first_tick() -> None:
    """It goes half its new speed times dt, but for friction; without added mass 30 times that."""
    world = ef.load(float_table(0.01, {"shape": "box", "size": [1.0, 1.0, 0.5]}))
    world.step()
    way = world["float"][ef.Pose].x[0, 2]
    assert way == pytest.approx(0.5 * world.dt * world["float"][ef.RigidMotion].v[0, 2], rel=0.2)


@pytest.mark.parametrize("density", [0.5, 1.0, 2.0])
def test_a_body_whose_spin_alone_is_the_fluids_falls_freely(density: float) -> None:
    """With `angular` alone by vortons nothing of the fluid is added to its mass: the speed is g t."""
    table = float_table(density, {"shape": "box", "size": [1.0, 1.0, 0.5]})
    table["system"] = table["system"][1:]
    table["system"][1]["linear"] = "none"
    world = ef.load(table)
    world.step(3)
    assert world["float"][ef.RigidMotion].v[0] == pytest.approx([0.0, 0.0, -0.06], abs=1e-12)


def test_a_disk_hits_with_the_fluid_that_it_takes_along() -> None:
    """A disk with the added mass m_f meets another as a body of the mass m + m_f, in a plane.

    That has 3 (m + m_f): without a bounce both go on at a quarter of the speed.
    """
    world = ef.World(dimension=2, plane="xz", dt=0.1)
    world.set_fluid(gravity=(0.0, 0.0, 0.0))
    world.add_system(ef.BodySystem())
    ball = {"shape": "ball", "radius": 0.5}
    for name, mass, x, speed in (("light", 0.5, 0.0, 1.0), ("heavy", 4.5, 1.05, 0.0)):
        BodyRecipe(
            name=name, shape=ball, mass=mass, center=(x, 0.0, 0.0), velocity=(speed, 0.0, 0.0), motion="free"
        ).build(world)
    along = np.diag([1.0, 0.0, 1.0])

    class Taken(ef.System):
        """The light disk takes 1 kg of fluid along, in the plane."""

        adds = (ef.BodyLoad,)
        phase = "move"
        dimensions = (2, 3)
        before = ("BodySystem",)

        def added(self, world: ef.World) -> None:
            """Loads are emptied in each tick."""
            world.require(ef.LoadSystem)

        def process(self, dt: float) -> None:
            """Add it."""
            self.world["light"][ef.BodyLoad].added[0] += along

    world.add_system(Taken())
    world.step()
    speeds = [float(world[name][ef.RigidMotion].v[0, 0]) for name in ("light", "heavy")]
    assert speeds == pytest.approx([0.25, 0.25], rel=1e-6)


def test_a_plate_slides_off_and_nothing_leaves_the_plane(tmp_path: Path) -> None:
    """A light plate at an angle rises, sideways too, and plate and fluid have the momentum of the buoyancy.

    That is m v + rho (impulse of the vortons) - rho V v, since the impulse counts the fluid in the plate too,
    but for what the tick's account of friction holds. A resumed run is the same to the bit.
    """
    world = ef.load(float_table(0.2, {"shape": "box", "size": [1.0, 1.0, 0.1]}))
    plate = world["float"]
    world.step(5)
    world.save(tmp_path / "middle.npz")
    world.step(10)
    again = ef.resume(tmp_path / "middle.npz")
    again.step(10)
    assert again.state_hash() == world.state_hash()
    motion = plate[ef.RigidMotion]
    assert motion.v[0, 0] < -0.02 and motion.v[0, 2] > 0.02
    assert plate[ef.Pose].x[0, 1] == 0.0 and not motion.angular_velocity[0, ::2].any()
    x, gamma = vorticity(world)
    impulse = np.array([(x[:, 2] * -gamma).sum(), 0.0, (x[:, 0] * gamma).sum()])
    # x cross alpha of strengths along y is (-z gamma, 0, x gamma).
    total = (0.02 - 0.1) * motion.v[0] + impulse
    pushed = np.array([0.0, 0.0, (0.1 - 0.02) * 1.0 * world.time])
    assert total == pytest.approx(pushed, abs=0.02 * pushed[2])


def test_disks_and_prisms_float_in_layers() -> None:
    """Archimedes' force on a disk and a prism, in a density linear in pieces: that of small squares."""
    from ecs_fluid.systems.shared.body_tables import body_entities, gathered
    from ecs_fluid.systems.surroundings import displacement

    heights, rho = np.array([-0.3, 0.1, 0.12, 0.4]), np.array([1.3, 1.1, 0.7, 0.6])
    for shape in ({"shape": "ball", "radius": 0.5}, {"shape": "box", "size": [1.2, 0.3, 0.4]}):
        world = ef.World(dimension=2, plane="xz")
        turned = (0.0, 0.6, 0.0)
        BodyRecipe(name="body", shape=shape, center=(0.1, 0.0, 0.05), rotation=turned, motion="fixed").build(
            world
        )
        bodies, hulls = gathered(body_entities(world))
        mass, moment, volume = displacement(bodies, hulls, heights, rho, 1)
        n = 1400
        line = (np.arange(n) + 0.5) / n * 1.4 - 0.7
        x, z = np.meshgrid(line, line, indexing="ij")
        if shape["shape"] == "ball":
            inside = x**2 + z**2 < 0.25
        else:  # about y, x turns towards -z
            a, b = np.cos(0.6) * x - np.sin(0.6) * z, np.sin(0.6) * x + np.cos(0.6) * z
            inside = (np.abs(a) < 0.6) & (np.abs(b) < 0.2)
        heavy = np.interp(z + 0.05, heights, rho) * inside * (1.4 / n) ** 2
        assert volume[0] == pytest.approx(inside.sum() * (1.4 / n) ** 2, rel=1e-3)
        assert mass[0] == pytest.approx(heavy.sum(), rel=1e-3)
        assert moment[0] == pytest.approx([(heavy * x).sum(), 0.0, (heavy * z).sum()], abs=1e-4)


def test_free_bodies_meet_in_a_plane() -> None:
    """Two boxes and a disk that fall on a fixed one come to rest, upright, in the plane."""
    world = ef.World(dimension=2, plane="xz", dt=1 / 60)
    world.set_fluid(gravity=(0.0, 0.0, -9.81))
    world.add_system(ef.BodySystem())
    box = {"shape": "box", "size": [1.0, 1.0, 0.5]}
    BodyRecipe(name="floor", shape={"shape": "box", "size": [6.0, 1.0, 1.0]}, motion="fixed").build(world)
    for k in range(2):
        BodyRecipe(name=f"box{k}", shape=box, center=(0.02 * k, 0.0, 0.76 + 0.51 * k), motion="free").build(
            world
        )
    BodyRecipe(
        name="ball", shape={"shape": "ball", "radius": 0.3}, center=(0.0, 0.0, 1.9), motion="free"
    ).build(world)
    world.step(90)
    for name, height in (("box0", 0.75), ("box1", 1.25), ("ball", 1.8)):
        pose, motion = world[name][ef.Pose], world[name][ef.RigidMotion]
        assert pose.x[0, 2] == pytest.approx(height, abs=0.01)
        assert pose.x[0, 1] == 0.0 and not pose.q[0, [1, 3]].any()
        assert np.abs(motion.v[0]).max() < 0.05


def test_flow_stops_at_the_wall_of_a_rectangle() -> None:
    """After the first tick the fluid in a box that moves and turns goes with it: the sheet stops it, 3 % rms.

    Both the flow through its sides and the flow along them are that of the box then. Looked at in its middle
    half, where the cores of the vortices on the lattice, R/10, do not reach.
    """
    world = plane_world(0.05, 1e-6, 0.01)
    box = body(
        world, {"shape": "box", "size": [1.2, 0.8, 5.0]},
        rotation=(0.0, 0.0, 0.4), velocity=(1.0, 0.5, 0.0), angular_velocity=(0.0, 0.0, 1.5),
    )  # fmt: skip
    world.step()
    draw = np.random.default_rng(5).uniform(-0.5, 0.5, (200, 3)) * (0.6, 0.4, 0.0)
    turn = 0.4 + 1.5 * world.dt
    turned = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1.0]])
    arm = draw @ turned.T
    wall = np.cross([0.0, 0.0, 1.5], arm) + np.array([1.0, 0.5, 0.0])
    left = world.velocity(box[ef.Pose].x[0] + arm) - wall
    assert np.sqrt((left**2).sum() / (wall**2).sum()) < 0.03
    # The fluid got what the sheet of a rectangle holds, and no circulation.
    assert abs(vorticity(world)[1].sum()) < 1e-13 * np.abs(vorticity(world)[1]).sum()


def test_an_ellipse_that_starts_to_turn() -> None:
    """Angular impulse over the spin: pi a b (a^2 + b^2)/4 of what is inside, pi/8 (a^2 - b^2)^2 outside; 1 %.

    The first is that of fluid that turns with the body, the second that of potential flow (Lamb,
    Hydrodynamics, section 71). The body is said to have given both, and the vortons have them.
    """
    a, b, spin = 0.6, 0.3, 2.0
    phi = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    points = np.stack([a * np.cos(phi), b * np.sin(phi), 0 * phi], axis=1)
    world = plane_world(0.05, 1e-6, 0.01, solver="direct")
    ellipse = body(world, {"shape": "points", "points": points.tolist()}, angular_velocity=(0.0, 0.0, spin))
    world.step()
    law = spin * np.pi * (a * b * (a**2 + b**2) / 4 + (a**2 - b**2) ** 2 / 8)
    assert ellipse[ef.BoundaryExchange].moment[0, 2] == pytest.approx(law, rel=0.01)
    assert world.diagnostics()["angular_impulse"][2] == pytest.approx(law, rel=0.01)


def shedding(plane: str = "xy", precision: str = "single") -> ef.World:
    """A box that moves and turns beside a fixed disk, with smoke."""
    world = plane_world(0.05, 0.01, 0.04, plane=plane, precision=precision)
    first, second = ("xyz".index(axis) for axis in plane)
    place, turn, speed, size = np.zeros(3), np.zeros(3), np.zeros(3), np.ones(3)
    # In x-z the axis across is y, about which x turns to -z.
    place[second], turn[world.across], speed[first] = 1.1, 2.0 if plane == "xy" else -2.0, 1.0
    size[first], size[second] = 0.6, 0.3
    body(world, {"shape": "box", "size": size.tolist()}, velocity=speed, angular_velocity=turn)
    BodyRecipe(name="disk", shape={"shape": "ball", "radius": 0.3}, motion="fixed", center=place).build(world)
    smoke = np.zeros((300, 3))
    smoke[:, [first, second]] = np.random.default_rng(2).uniform(-1.0, 1.5, (300, 2))
    world.spawn("smoke", ef.Position(smoke))
    world.add_system(ef.CollisionSystem())
    return world


def test_both_planes_have_the_same_flow() -> None:
    """x-z is x-y turned about x: the same forces on both bodies, to 2e-3, and none of them zero.

    The disk's polygon of 38 sides begins at the first axis of the plane as seen from across, z in x-z.
    """
    found = []
    for plane in ("xy", "xz"):
        world = shedding(plane, "double")
        world.step(4)
        axes = ["xyz".index(axis) for axis in plane]
        found.append([world[name][ef.BoundaryExchange].impulse[0, axes] for name in ("body", "disk")])
        assert (world["smoke"][ef.Position].x[:, world.across] == 0.0).all()
    assert np.abs(found[0]).min() > 1e-4
    assert np.array(found[0]) == pytest.approx(np.array(found[1]), rel=2e-3)


def test_a_wind_is_a_body_that_moves() -> None:
    """A disk that goes through fluid at rest by whole spacings has the drag of a wind, to 1e-9."""
    drags = []
    for speed in (0.0, -1.0):
        world = plane_world(0.05, 0.02, 0.05, wind=(speed + 1.0, 0.0, 0.0), solver="direct")
        disk = body(world, velocity=(speed, 0.0, 0.0), center=(0.015, 0.005, 0.0))
        taken = []
        for _ in range(6):
            world.step()
            taken.append(disk[ef.BoundaryExchange].impulse[0, 0])
        drags.append(taken)
    assert np.abs(drags[0]).min() > 0.005
    assert drags[0] == pytest.approx(drags[1], rel=1e-9)


def test_sides_of_whole_spacings_are_cut_alike_in_any_units() -> None:
    """Five spacings of 0.08 m or 80 m: a side's parts are as many, whatever the last bits of their length."""
    found = []
    for unit in (1.0, 1000.0):
        world = plane_world(0.08 * unit, 0.01 * unit**2, 0.04, wind=(unit, 0.0, 0.0), solver="direct")
        size = [0.4 * unit, 0.7 * unit, unit]
        box = body(
            world, {"shape": "box", "size": size}, motion="fixed", center=(1.51 * unit, 0.307 * unit, 0.0)
        )
        world.step(2)
        found.append(box[ef.BoundaryExchange].impulse[0] / unit**3)
    assert found[0] == pytest.approx(found[1], rel=1e-9, abs=1e-12)


def test_smoke_stays_out_of_bodies() -> None:
    """Of 300 particles none is in the box or the disk after 10 ticks, to rounding, and some have been met."""
    world = shedding()
    world.step(10)
    system = world.system(ef.CollisionSystem)
    assert system is not None and (system.overlap(world["smoke"][ef.Position].x) <= 1e-6).all()
    assert world.fluid[ef.CollisionCount].met[0] > 5


def test_resumed_wakes_go_on(tmp_path: Path) -> None:
    """Lattice, spin known to the fluid and what is inside of the bodies come from the checkpoint."""
    world = shedding()
    world.step(3)
    world.save(tmp_path / "middle.npz")
    again = ef.resume(tmp_path / "middle.npz")
    world.step(3)
    again.step(3)
    assert world.state_hash() == again.state_hash()


def test_a_gradient_that_is_not_known_is_not_told_as_zero() -> None:
    """The lattice of the layer is made when the tick ends, so its vortons have had no gradient yet."""
    world = plane_world(0.125, 0.01, 0.05, wind=(1.0, 0.0, 0.0), solver="direct")
    world.add_system(ef.DiagnosticsSystem(every=1, pair_limit=10))
    body(world, motion="fixed")
    world.step(2)
    assert world.history[-1]["vortons"] > 10 and world.history[-1]["dt_grad_u"] is None
    assert world.diagnostics()["dt_grad_u"] > 0.1


@pytest.mark.parametrize("dimension", [2, 3])
def test_a_lattice_that_no_memory_holds_is_told_before_it_is_made(dimension: int) -> None:
    """By the room of the body and four spacings around: 100,008^2 points in a plane."""
    table = {
        "world": {"dimension": dimension, "dt": 0.05},
        "entity": [
            {"kind": "body", "name": "disk", "shape": {"shape": "ball", "radius": 0.5}, "motion": "fixed"}
        ],
        "system": [
            {"kind": "wind", "velocity": [1.0, 0.0, 0.0]},
            {"kind": "boundary", "boundary": "layer", "lattice": 1e-5},
        ],
    }
    with pytest.raises(ef.LimitError, match="lattice points of 1e-05 m for BoundarySystem"):
        ef.load(table).step()
