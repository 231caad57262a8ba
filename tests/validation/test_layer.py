"""Bodies whose boundary layer is resolved: drag, torque and lift come from the vorticity alone.

Validation cases 85, 88; article F3.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from boundary_flows import empty_world
from plane_flows import inverse_laplace
from scipy.integrate import quad
from scipy.special import erfcx
from solids import balls, box, room

import ecs_fluid as ef
from tests.resuming import resumed

R = 0.5
VOLUME = 4 / 3 * np.pi * R**3

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")


def layer(
    world: ef.World,
    viscosity: float,
    lattice: float,
    *more: ef.System,
    solver: str = "fmm",
    **boundary: float,
) -> ef.BoundarySystem:
    """All systems of a flow past bodies with a resolved layer."""
    system = ef.BoundarySystem(boundary="layer", lattice=lattice, **boundary)
    world.set_fluid(gravity=(0.0, 0.0, 0.0), viscosity=viscosity)
    world.add_systems(
        [
            ef.VelocitySystem(solver=solver),
            ef.StretchSystem(),
            ef.AdvectionSystem(),
            ef.BodySystem(),
            ef.DiffusionSystem(),
            *more,
            system,
        ]
    )
    return system


def sphere_in_wind(lattice: float, loss: float = 1e-4) -> ef.World:
    """A ball of 0.5 m in a wind of 1 m/s that starts at once; Re = 100."""
    world = empty_world(dt=0.05, precision="single")
    balls(world, "ball", [0, 0, 0], radius=R, motion="fixed")
    layer(world, 0.01, lattice, ef.WindSystem(velocity=(1.0, 0.0, 0.0)), loss=loss)
    return world


def impulse(world: ef.World) -> float:
    """Impulse of all vortons along x over the density, m^4/s."""
    x, alpha = (
        a.astype(np.float64) for a in (world["wake"][ef.Position].x, world["wake"][ef.Strength].alpha)
    )
    return float(0.5 * np.cross(x, alpha).sum(axis=0)[0])


@pytest.mark.parametrize("step", [0.1, 0.3])
@pytest.mark.parametrize("place", [0.05, 0.35, 0.65, 0.95])
def test_wall_of_the_mirror(place: float, step: float) -> None:
    """Exchange on a lattice, then mirror and M4': a flat wall stands where the mirror is, to 0.005 spacings.

    Layers of points 1 m apart, the first in the fluid `place` above the wall, and as many in the wall as
    bodies have; nu dt = `step` m^2. Vorticity along the wall that nothing makes or takes ends as the same
    number omega in all layers; with the total 1 of a flow over L, up to the closed end above, omega = 1/L
    tells where the wall is.
    """
    from ecs_fluid.kernels.grids.lattice import to_lattice
    from ecs_fluid.kernels.vorticity.strength_exchange import exchange_rows
    from ecs_fluid.systems.boundary.layer import FILLED

    height = np.arange(-int(FILLED), 24) + place
    n, line = len(height), np.arange(-5.0, 6.0)
    x = np.stack(np.meshgrid(line, line, height, indexing="ij"), axis=-1).reshape(-1, 3)
    layers = np.tile(np.eye(n), (len(line) ** 2, 1))
    ones = np.ones(len(x))
    rate, _ = exchange_rows(x, layers, 1.5 * ones, ones, step)
    middle = (x[:, 0] == 0.0) & (x[:, 1] == 0.0)
    diffuse = np.eye(n) + rate[middle]
    mirror = np.eye(n)
    for k in np.flatnonzero(height < 0.0):
        image = np.array([[0.0, 0.0, -height[k] - place]])
        low, shares = to_lattice("m4_prime", image, np.ones((1, 1)), 1.0, np.array([True, True, False]))
        first = int(low[2]) + int(FILLED)
        column = np.zeros(n + 8)
        column[4 + first : 4 + first + shares.shape[2]] = shares.ravel()[: shares.shape[2]]
        mirror[:, k] = column[4 : 4 + n]
    values, vectors = np.linalg.eig(mirror @ diffuse)
    found = vectors[:, np.argmin(np.abs(values - 1.0))].real
    found /= found.sum()
    wall = height[-1] + 0.5 - 1.0 / found[n // 2 : n - 6].mean()
    assert abs(wall) < 0.005


def test_drag_of_a_started_sphere() -> None:
    """Case 88, at first: what the fluid loses by the drag after 0.3 s is 0.3195 m^4/s, to 5 %.

    The flow around the ball starts as a potential flow, with the impulse -3/2 V U of a ball at rest in the
    wind U. From then on the force is Stokes' and Basset's as long as convection has had no time,
    6 pi nu R U (1 + R/sqrt(pi nu t)): of the second part two thirds are the friction of Rayleigh's layer
    under the slip 3/2 U sin(theta), one third the pressure. Its integral is
    6 pi nu R U (t + 2 R sqrt(t/(pi nu))). Found: 4 % more.
    """
    world = sphere_in_wind(R / 8)
    world.step(6)
    nu, t = 0.01, 0.3
    wanted = 6 * np.pi * nu * R * (t + 2 * R * np.sqrt(t / (np.pi * nu)))
    found = -impulse(world) - 1.5 * VOLUME
    assert abs(wanted - 0.3195) < 1e-4
    assert abs(found - wanted) < 0.05 * wanted


@pytest.mark.nightly
@pytest.mark.parametrize(("speed", "part", "tau"), [(1e-3, 0.3, 0.075), (1.0, 0.04, 0.01)])
def test_drag_of_a_started_sphere_converges(speed: float, part: float, tau: float) -> None:
    """Case 88 on R/4, R/6, R/8 with nu dt = `part` h^2: impulse lost until nu t = tau R^2.

    Exchange and M4' are of order 2; found 2.3 and 2.1.

    At 1 mm/s (Re = 0.1) the law above is exact; at Re = 100 convection has changed little by U t/R = 0.5:
    R/12 has 5 % (by hand), and what is left at h = 0 by these is -1 %. With one dt for all lattices, as
    above, errors of both signs meet and no order is seen.
    """
    errors = []
    for cells in (4, 6, 8):
        h, nu = R / cells, 0.01
        world = empty_world(dt=part * h**2 / nu)
        balls(world, "ball", list(np.array((0.3, 0.1, 0.7)) * h), radius=R, motion="fixed")
        layer(world, nu, h, ef.WindSystem(velocity=(speed, 0.0, 0.0)))
        world.step(round(tau * cells**2 / part))
        t = world.time
        wanted = 6 * np.pi * nu * R * (t + 2 * R * np.sqrt(t / (np.pi * nu)))
        errors.append(abs((-impulse(world) / speed - 1.5 * VOLUME) / wanted - 1))
    print(f"drag: {speed} m/s: {errors}")
    assert errors[-1] < (0.05 if speed < 1 else 0.13)
    assert np.log(errors[0] / errors[-1]) / np.log(2) > 1.8


@pytest.mark.nightly
def test_drag_of_a_sphere_at_re_100() -> None:
    """Case 88: drag coefficient 1.09 (Schiller and Naumann) at Re = 100, 10 %, from 4 to 6 s.

    By what the impulse of the fluid loses: C_D = -dI/dt/(1/2 U^2 pi R^2). The lattice is R/6.
    """
    world = sphere_in_wind(R / 6, loss=1e-3)
    world.step(80)
    first = impulse(world)
    world.step(40)
    found = (first - impulse(world)) / 2.0 / (0.5 * np.pi * R**2)
    assert abs(found - 1.0917) < 0.1 * 1.0917


def spun_sphere(
    ticks: int, cells: int = 6, place: tuple[float, ...] = (0, 0, 0)
) -> tuple[ef.World, np.ndarray, np.ndarray]:
    """A ball that spins at 0.2 rad/s from now on, nu = 0.05 m^2/s; (world, torque of each tick, exact ones).

    The lattice is R/`cells`, and the ball's middle lies `place` of its spacings from a point. With tau =
    nu t/R^2 and k the modified spherical Bessel function, f(r, s) = R/s k_1(q r)/k_1(q R), q^2 = s/nu, is
    Laplace's transform of the velocity over Omega sin(theta), and the torque
    T = -8 pi nu R^3 Omega (1 + (1/sqrt(pi tau) - e^tau erfc(sqrt(tau)))/3), here the means of ticks.
    It is Rayleigh's friction at first and -8 pi nu R^3 Omega in the end.
    """
    nu, omega, lattice = 0.05, 0.2, R / cells
    dt = 0.3 * lattice**2 / nu
    world = empty_world(dt=dt)
    ball = balls(world, "ball", list(lattice * np.array(place)), radius=R, motion="scripted")
    ball[ef.RigidMotion].angular_velocity[0] = [0.0, 0.0, omega]
    layer(world, nu, lattice)
    found, exact, unit = [], [], nu * dt / R**2
    for tick in range(ticks):
        world.step()
        law = quad(
            lambda tau: 1 + (1 / np.sqrt(np.pi * tau) - erfcx(np.sqrt(tau))) / 3,
            tick * unit,
            (tick + 1) * unit,
        )
        found.append(-ball[ef.BoundaryExchange].moment[0, 2] / dt)
        exact.append(-8 * np.pi * nu * R**3 * omega * law[0] / unit)
    return world, np.array(found), np.array(exact)


def test_torque_on_a_sphere_that_starts_to_spin() -> None:
    """Case 85 by vorticity: torque of the exact transient to 7 % on a lattice of R/6 (found: 2 to 6 % less).

    No vorticity comes from nothing: with what is in the ball, 2 Omega V, the total stays zero.
    """
    world, torque, exact = spun_sphere(8)
    assert abs(torque[-1] - exact[-1]) < 0.07 * abs(exact[-1])
    assert np.abs(world["wake"][ef.Strength].alpha.sum(axis=0)).max() < 1e-7


@pytest.mark.nightly
def test_torque_on_a_sphere_converges() -> None:
    """Case 85 on R/4, R/6, R/8: mean torque from nu t/R^2 = 0.075 to 0.15 is 13.6, 7.3, 5.1 % too small.

    First order and more (1.5, 1.3): exchange carries vorticity over 1.5 h whatever the tick, and what it
    carries into the ball comes back mirrored as by a flat wall, which is h/R off where it is round. Half the
    tick changes 0.5 %. Where the ball lies on the lattice changes 0.5 % too, which is the noise of a single
    tick's torque.
    """
    errors = []
    for cells, ticks in ((4, 8), (6, 18), (8, 32)):
        _, torque, exact = spun_sphere(ticks, cells, (0.3, 0.1, 0.7))
        errors.append(1 - torque[ticks // 2 :].mean() / exact[ticks // 2 :].mean())
    print(f"torque: {errors}")
    assert 0 < errors[-1] < 0.06
    first, last = np.log(errors[0] / errors[1]) / np.log(6 / 4), np.log(errors[1] / errors[2]) / np.log(8 / 6)
    assert first > 1.0 and last > 1.0


@pytest.mark.parametrize("angular_velocity", [0.0, 2.0])
def test_a_spinning_ball_is_bent_by_its_own_wake(angular_velocity: float) -> None:
    """F3 without the law of lift: a free ball at 1 m/s in fluid at rest, spin along z, Re = 100.

    The fluid pushes it along spin cross v, which is +y, and not at all along z; without spin along neither.
    Only the sign is known: between a fiftieth and half of Rubinow and Keller's pi rho R^3 spin v = 0.79 N.
    The spin falls by a tenth, as that of a ball in creeping motion: by the torque -8/3 pi mu R^3 (z^2 + 3 z +
    3)/(z + 1) times the spin, z = R sqrt(s/nu), to 3 %; found 1.7 % more, as friction begins a tick late.
    """
    world = empty_world(dt=0.05, precision="single")
    ball = balls(world, "ball", [0, 0, 0], radius=R, mass=10 * VOLUME, v=[1.0, 0, 0])
    ball[ef.RigidMotion].angular_velocity[0] = [0.0, 0.0, angular_velocity]
    layer(world, 0.01, R / 6, ef.ReactionSystem(linear="vortons", angular="vortons"))
    world.step(7)
    forces = []
    for _ in range(3):
        world.step()
        forces.append(-ball[ef.BoundaryExchange].impulse[0] / 0.05)
    along, aside, over = np.mean(forces, axis=0)
    assert along < -0.2 and abs(over) < 3e-3
    if angular_velocity:
        assert 0.016 < aside < 0.4
        inertia = 0.4 * 10 * VOLUME * R**2

        def spin(s: np.ndarray) -> np.ndarray:
            z = R * np.sqrt(s / 0.01)
            braked = 8 / 3 * np.pi * 0.01 * R**3 * (z**2 + 3 * z + 3) / (z + 1)
            return np.asarray(inertia * angular_velocity / (inertia * s + braked))

        found = ball[ef.RigidMotion].angular_velocity[0, 2]
        assert found == pytest.approx(inverse_laplace(spin, world.time), rel=0.03)
    else:
        assert abs(aside) < 3e-3


@pytest.mark.parametrize("ratio", [0.05, pytest.param(2.0, marks=pytest.mark.nightly)])
def test_a_ball_that_is_let_go(ratio: float) -> None:
    """A free ball, light or heavy, as Basset has it: (m + m_f/2) v' = (m_f - m) g less drag and history, 4 %.

    The drag of slow motion is 6 pi mu R (v + R int v'/sqrt(pi nu (t - t')) dt'), so the transform of the
    speed is V = F/(s ((m + m_f/2) s + 6 pi mu R (1 + R sqrt(s/nu)))) for the force F = (m_f - m) g, which is
    so small that Stokes's equations hold. Found at R/6 and nu t/R^2 = 0.15: 2.2 and 1.8 % too large.
    """
    nu, rho, h, g = 0.05, 1.2, R / 6, 1e-4
    world = empty_world(dt=0.3 * h**2 / nu)
    mass = ratio * rho * VOLUME
    ball = balls(world, "ball", list(np.array((0.3, 0.1, 0.7)) * h), radius=R, mass=mass)
    forces = ef.ReactionSystem(linear="vortons", angular="vortons"), ef.BuoyancySystem()
    layer(world, nu, h, *forces)
    world.set_fluid(density=rho, gravity=(0.0, 0.0, -g))
    world.step(18)

    def speed(s: np.ndarray) -> np.ndarray:
        resistance = 6 * np.pi * rho * nu * R * (1 + R * np.sqrt(s / nu))
        return np.asarray((rho * VOLUME - mass) * g / s / ((mass + 0.5 * rho * VOLUME) * s + resistance))

    motion, exact = ball[ef.RigidMotion], inverse_laplace(speed, world.time)
    assert motion.v[0, 2] == pytest.approx(exact, rel=0.04)
    assert np.abs(motion.v[0, :2]).max() < 1e-3 * abs(exact)
    assert R * np.abs(motion.angular_velocity).max() < 3e-3 * abs(exact)


def test_resumed_layers_go_on(tmp_path: Path) -> None:
    """Case 111: lattice, spin known to the fluid and what is inside of the ball come from the checkpoint."""
    world, _, _ = spun_sphere(2)
    resumed(world, tmp_path, 2)


def test_containers_are_refused() -> None:
    """Nothing is reflected at walls around the fluid."""
    world = empty_world()
    room(world, "tank", box(2, 2, 2))
    with pytest.raises(ef.FluidError, match="'tank' is a container; use boundary = 'panels'"):
        layer(world, 0.01, 0.1)


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::ecs_fluid.errors.FluidWarning")
def test_a_free_body_within_a_fixed_one_takes_no_fluid_along() -> None:
    """No point of the lattice is its own; its volume was divided by their number."""
    table = {
        "world": {"dimension": 2, "plane": "xz", "dt": 0.01},
        "fluid": {"viscosity": 1e-3, "density": 1000.0},
        "entity": [
            {"kind": "body", "name": "inner", "shape": {"shape": "ball", "radius": 0.05}, "density": 2000.0},
            {"kind": "body", "name": "outer", "shape": {"shape": "ball", "radius": 0.2}, "motion": "fixed"},
        ],
        "system": [
            {"kind": "buoyancy"},
            {"kind": "boundary", "boundary": "layer", "lattice": 0.02},
            {"kind": "reaction", "linear": "vortons", "angular": "vortons"},
        ],
    }
    ef.load(table).step()
