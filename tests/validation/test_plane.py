"""Flow in a plane, whole worlds with the shipped solvers: validation cases 25 and 48 to 52, and merging."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flows import Array
from scipy.special import j0, j1, jn_zeros

import ecs_fluid as ef

SOLVERS = ("direct", "tree", "fmm", "auto", "poisson", "hybrid")


def lattice(h: float, x: float, y: float) -> Array:
    """Centres (n, 3) of square cells that cover |x|, |y| up to those, the origin at a corner."""
    axes = [h * (np.arange(-math.ceil(e / h), math.ceil(e / h)) + 0.5) for e in (x, y)]
    return np.stack(np.meshgrid(*axes, [0.0], indexing="ij"), axis=-1).reshape(-1, 3)


def within(x: Array, h: float) -> Array:
    """Points (n, 64, 2) that divide each cell evenly, for the mean of what has an edge."""
    sub = h * ((np.arange(8) + 0.5) / 8 - 0.5)
    return x[:, None, :2] + np.stack(np.meshgrid(sub, sub), axis=-1).reshape(1, -1, 2)


def world_of(x: Array, omega: Array, h: float, dt: float, solver: str = "direct", **more: Any) -> ef.World:
    """Vortices omega h^2 with cores of 1.5 h."""
    precision = more.pop("precision", "double")
    world = ef.World(dt=dt, integrator=more.pop("integrator", "rk4"), precision=precision, dimension=2)
    alpha = np.zeros_like(x)
    alpha[:, 2] = omega * h * h
    sigma = np.full(len(x), more.pop("sigma", 1.5 * h))
    world.spawn(
        "v", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(sigma), ef.Volume(np.full(len(x), h * h))
    )
    world.set_fluid(viscosity=more.pop("viscosity", 0.0))
    systems = more.pop("systems", ())
    world.add_systems([ef.VelocitySystem(solver=solver, **more), *systems, ef.AdvectionSystem()])
    return world


def state(world: ef.World) -> tuple[Array, Array]:
    """Positions (n, 2) and circulations (n,)."""
    return world["v"][ef.Position].x[:, :2], world["v"][ef.Strength].alpha[:, 2]


def orders(errors: list[float], ratio: float = 2.0) -> Array:
    return np.log(np.array(errors[:-1]) / errors[1:]) / math.log(ratio)


# ---------------------------------------------------------------- solvers


@pytest.mark.parametrize(
    ("solver", "precision", "kernel"),
    [
        ("fmm", "single", "winckelmans"),
        *((solver, "double", "winckelmans") for solver in ("tree", "auto")),
        *((solver, "double", "gaussian") for solver in ("poisson", "hybrid")),
        *(
            pytest.param(solver, "double", "gaussian", marks=pytest.mark.nightly)
            for solver in ("tree", "fmm", "auto")
        ),
    ],
)
def test_solvers_keep_their_tolerance(solver: str, precision: str, kernel: str) -> None:
    """Velocity and gradient of a patch with a hole of the other sign, against the direct sum.

    1e-3 for fmm and auto; the tree at angle 0.5 has 1e-2 (velocity) of validation case 54; the grids have the
    errors of docs/velocity.md for gaussian cores at two and three cells, of a grid as fine. By day trees have
    precisions and cores of which other worlds in a plane have the kernels.
    """
    draw, n = np.random.default_rng(8), 2500
    x = np.concatenate([0.3 * draw.standard_normal((n, 2)), np.zeros((n, 1))], axis=1)
    r2 = (x**2).sum(axis=1)
    omega = np.exp(-r2 / 0.1) - 0.5 * np.exp(-((x[:, 0] - 0.2) ** 2 + x[:, 1] ** 2) / 0.02)
    found = []
    for name in ("direct", solver):
        world = world_of(x, omega, 0.02, 0.01, name, sigma=0.04, kernel=kernel, precision=precision)
        world.evaluate()
        found.append((world["v"][ef.Velocity].u.copy(), world["v"][ef.VelocityGradient].du.copy()))
        assert (world["v"][ef.Velocity].u[:, 2] == 0.0).all()
    gates = {"tree": (1e-2, 1e-2), "poisson": (2.5e-3, 7.6e-3), "hybrid": (5.4e-3, 5.6e-3)}
    for exact, value, gate in zip(*found, gates.get(solver, (1e-3, 1e-3)), strict=True):
        assert np.sqrt(((value - exact) ** 2).mean() / (exact**2).mean()) < gate


@pytest.mark.parametrize(
    "solver", [pytest.param(name, marks=pytest.mark.nightly if name == "tree" else ()) for name in SOLVERS]
)
def test_one_vortex_spreads_as_lamb_and_oseen_say(solver: str) -> None:
    """Case 25: u = (1 - exp(-r^2/(4 nu t)))/(2 pi r); a gaussian blob that spreads is that vortex exactly.

    Direct to 1e-12 (the square of the core is integrated); tree and multipoles of one vorton are the direct
    sum; grids have two and three cells per core.
    """
    spreading = ef.DiffusionSystem(method="core_spreading")
    world = world_of(
        np.zeros((1, 3)), np.ones(1), 1.0, 0.1, solver, sigma=0.5, kernel="gaussian", viscosity=0.05,
        systems=(spreading,), integrator="rk2",
    )  # fmt: skip
    world.step(10)
    square = 2 * (0.5**2 + 2 * 0.05 * world.time)  # 4 nu t of the textbook's clock
    radii = math.sqrt(square) * np.array((0.3, 0.6, 1.120906, 1.8, 2.0))
    points = np.stack([radii * 0.6, radii * 0.8, 0 * radii], axis=1)
    found = (world.velocity(points) * np.stack([-points[:, 1], points[:, 0], 0 * radii], axis=1)).sum(axis=1)
    theory = -np.expm1(-(radii**2) / square) / (2 * np.pi * radii)
    gate = {"poisson": 2e-2, "hybrid": 2e-2}.get(solver, 1e-12)
    assert found / radii == pytest.approx(theory, rel=gate)
    assert theory.max() == pytest.approx(0.638173 / (2 * np.pi * math.sqrt(square)), rel=1e-6)


@pytest.mark.nightly
def test_lamb_and_oseen_by_exchange() -> None:
    """Case 25 by fourth-order exchange among vortices that move: order 4 and 1e-4 at the finest.

    Over a whole core radius, 1.5 spacings: over 5/6 of it sums over the lattice are 5e-5 off at any spacing.

    The circulations start as a Gaussian of variance 1 - sigma^2, which the blobs make one of variance 1.
    """
    errors, viscosity = [], 0.25
    for h in (1 / 3, 1 / 4.5, 1 / 6.75):
        sigma = 1.5 * h
        x = lattice(h, 6.5, 6.5)
        start = 1 - sigma**2
        omega = np.exp(-(x**2).sum(axis=1) / (2 * start)) / (2 * np.pi * start)
        world = world_of(
            x, omega, h, 1 / 30, kernel="gaussian", viscosity=viscosity, gradient=False,
            systems=(ef.DiffusionSystem(order=4, radius=1.0),),
        )  # fmt: skip
        world.step(30)
        square = 2 * (1 + 2 * viscosity * world.time)
        radii = np.linspace(0.2, 4.0, 20)
        points = np.stack([radii, 0 * radii, 0 * radii], axis=1)
        theory = -np.expm1(-(radii**2) / square) / (2 * np.pi * radii)
        errors.append(float(np.abs(world.velocity(points)[:, 1] - theory).max() / theory.max()))
    print(errors, orders(errors, 1.5))
    assert errors[-1] < 1e-4 and (orders(errors, 1.5) > 3.5).all()


def all_solvers() -> list[str]:
    """State hashes after diffusion, buoyancy, remeshing and motion by every solver."""
    draw, n, hashes = np.random.default_rng(1), 2500, []
    places = np.concatenate([0.3 * draw.standard_normal((n, 2)), np.zeros((n, 1))], axis=1)
    density = 1.2 + 0.01 * draw.random(n)
    for solver in SOLVERS:
        systems = (ef.DiffusionSystem(), ef.BaroclinicSystem(), ef.RemeshSystem(every=3))
        world = world_of(
            places, np.exp(-(places**2).sum(axis=1) / 0.1), 0.02, 0.01, solver, sigma=0.05, viscosity=1e-4,
            systems=systems,
        )  # fmt: skip
        world.set_fluid(gravity=(0.0, -9.81, 0.0))
        world["v"][ef.Density].rho[...] = density
        world.step(4)
        hashes.append(world.state_hash())
    return hashes


@pytest.mark.nightly
def test_any_number_of_threads_gives_the_same_bits() -> None:
    found = set()
    for threads in ("1", "2", "4", "8"):
        code = f"import sys; sys.path[:0] = {sys.path!r}; import test_plane; print(test_plane.all_solvers())"
        out = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "NUMBA_NUM_THREADS": threads, "PYTHONPATH": str(Path(__file__).parent)},
        )  # fmt: skip
        found.add(out.stdout)
    assert len(found) == 1 and len(found.pop()) > 6 * 32


# ---------------------------------------------------------------- exact motions


def polygon(count: int, ticks_a_turn: int, turns: int) -> float:
    """Largest error (m) of vortices on the unit circle after whole turns of Omega = (N - 1)/(4 pi R^2)."""
    angle = 2 * np.pi * np.arange(count) / count
    x = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    turn = 2 * np.pi / ((count - 1) / (4 * np.pi))
    world = world_of(
        x, np.ones(count), 1.0, turn / ticks_a_turn, sigma=1e-3, kernel="gaussian", gradient=False
    )
    world.step(turns * ticks_a_turn)
    return float(np.abs(state(world)[0] - x[:, :2]).max())


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
def test_vortices_on_a_circle() -> None:
    """Case 48, one turn: the fourth order of RK4, whose error of the phase is (Omega dt)^4/120 a radian.

    At 100 ticks a turn that is (2 pi/100)^4 (2 pi)/120 = 8e-7 of a plain circle; here 40 times less is left.
    """
    coarse, fine = polygon(5, 25, 1), polygon(5, 50, 1)
    assert math.log2(coarse / fine) == pytest.approx(4.0, abs=0.2)
    assert fine < 1e-6


@pytest.mark.nightly
@pytest.mark.parametrize("count", [2, 3, 5, 6, 7, 8])
def test_vortices_on_a_circle_for_ten_turns(count: int) -> None:
    """Case 48: 1e-8 after 10 turns; 240 ticks a turn. Up to seven are stable (Thomson); of eight rounding
    grows to a tenth of the radius."""
    off = polygon(count, 240, 10)
    assert off < 1e-8 if count < 8 else off > 1e-2


def perlman(h: float, sigma: float, time: float, ticks: int) -> float:
    """RMS error of the velocity at the vortices of (1 - r^2)^7, relative to its RMS, after `time` s."""
    x = lattice(h, 1.0, 1.0)
    r = np.hypot(x[:, 0], x[:, 1])
    x, r = x[r < 1], r[r < 1]
    world = world_of(x, (1 - r**2) ** 7, h, time / ticks, sigma=sigma, gradient=False)
    world.step(ticks)
    world.evaluate()
    places = state(world)[0]
    r = np.hypot(*places.T)
    speed = (1 - np.maximum(1 - r**2, 0) ** 8) / (16 * r)
    exact = (speed / r)[:, None] * np.stack([-places[:, 1], places[:, 0]], axis=1)
    error = world["v"][ef.Velocity].u[:, :2] - exact
    return float(np.sqrt((error**2).sum() / (exact**2).sum()))


@pytest.mark.parametrize(
    ("time", "ticks", "power"), [(0.1, 1, 1.0), pytest.param(4 * np.pi, 40, 0.75, marks=pytest.mark.nightly)]
)
def test_perlmans_patch(time: float, ticks: int, power: float) -> None:
    """Case 49: u = (1 - (1 - r^2)^8)/(16 r) to second order in the cores, 1.5 spacings wide at h = 0.1.

    By t = 4 pi the shear has pulled the lattice apart: there cores shrink like h^(3/4), so that more of them
    overlap; with cores of 1.5 spacings the order is 1.75 then.
    """
    spacings = np.array((0.1, 0.05, 0.025))
    cores = 0.15 * (spacings / 0.1) ** power
    errors = [perlman(h, sigma, time, ticks) for h, sigma in zip(spacings, cores, strict=True)]
    found = orders(errors) / power
    print(errors, found)
    assert found == pytest.approx([2.0, 2.0], abs=0.25)


def ellipse(h: float, turn: float, ticks: int, solver: str = "direct") -> tuple[float, float]:
    """Turning rate of Kirchhoff's ellipse 2:1 of vorticity 1 over 2/9 1/s, less 1; aspect at the end."""
    x = lattice(h, 2.2, 1.2)
    points = within(x, h)
    part = ((points / (2.0, 1.0)) ** 2).sum(axis=-1) <= 1
    share = part.mean(axis=1)
    period = 2 * np.pi / (2 / 9)
    world = world_of(
        x[share > 0], share[share > 0], h, turn * period / ticks, solver, gradient=False, tolerance=1e-4
    )

    def moments() -> tuple[float, float]:
        places, gamma = state(world)
        off = places - (gamma[:, None] * places).sum(axis=0) / gamma.sum()
        tensor = (gamma[:, None, None] * off[:, :, None] * off[:, None, :]).sum(axis=0)
        small, large = np.linalg.eigvalsh(tensor)
        return 0.5 * math.atan2(2 * tensor[0, 1], tensor[0, 0] - tensor[1, 1]), math.sqrt(large / small)

    angle = [moments()[0]]
    for _ in range(ticks):
        world.step()
        angle.append(moments()[0])
    turned = np.unwrap(angle, period=np.pi)
    return float(turned[-1] / (turn * 2 * np.pi)) - 1, moments()[1]


def test_kirchhoffs_ellipse_for_a_quarter_turn() -> None:
    """Case 50 at ten cells in the small half axis: omega a b/(a + b)^2 = 2/9 1/s, to 1 %."""
    rate, aspect = ellipse(0.1, 0.25, 10)
    assert abs(rate) < 0.005 and aspect == pytest.approx(2.0, rel=0.005)


@pytest.mark.nightly
def test_kirchhoffs_ellipse() -> None:
    """Case 50 at three resolutions over half a turn; order 1.5 and more, for the edge is that of cells."""
    rates = [abs(ellipse(h, 0.5, 20, "auto")[0]) for h in (0.2, 0.1, 0.05)]
    print(rates)
    assert rates[1] < 0.005 and rates[2] < 0.002
    assert orders(rates).mean() > 1.5


def kelvin_wave(m: int, h: float, ticks: int) -> float:
    """Turning rate of a wave of m crests round a disk of vorticity 1 over (1 - 1/m)/2, less 1.

    Edge r = 1 + e cos(m theta): the disk turns it at 1/2, and its own sheet of vorticity e cos(m theta) at
    r = 1 has the radial velocity e sin(m theta)/2 there, which sets it back by 1/(2 m) (Kelvin; Lamb 158).
    The moment sum Gamma z^m turns m times as fast. It is e pi + O(e^2), so that a lattice, which has such a
    moment of its own for m = 4, is no part of it; the rate of waves of e = 0.02 is less by some e^2.
    """
    x = lattice(h, 1.1, 1.1)
    points = within(x, h)
    edge = 1 + 0.02 * np.cos(m * np.arctan2(points[..., 1], points[..., 0]))
    share = (np.hypot(points[..., 0], points[..., 1]) <= edge).mean(axis=1)
    time = 2 * np.pi
    world = world_of(x[share > 0], share[share > 0], h, time / ticks, gradient=False)

    def phase() -> float:
        places, gamma = state(world)
        return float(np.angle((gamma * (places[:, 0] + 1j * places[:, 1]) ** m).sum()))

    phases = [phase()]
    for _ in range(ticks):
        world.step()
        phases.append(phase())
    turned = np.unwrap(phases)
    return float(turned[-1] - turned[0]) / (m * time) / (0.5 - 0.5 / m) - 1


def test_kelvins_wave_on_a_disk() -> None:
    """Case 125 at 16 cells in the radius, three crests, half a turn of the disk: to 1 %."""
    rate = kelvin_wave(3, 1 / 16, 40)
    print(rate)
    assert abs(rate) < 0.01


@pytest.mark.nightly
def test_kelvins_waves_on_a_disk() -> None:
    """Case 125 with three and four crests at three resolutions."""
    for m in (3, 4):
        rates = [abs(kelvin_wave(m, h, 60)) for h in (1 / 8, 1 / 16, 1 / 32)]
        print(m, rates)
        assert rates[0] < 0.03 and rates[1] < 0.01 and rates[2] < 0.004


def collapse(part: float, ticks: int, core: float, integrator: str = "rk4") -> Array:
    """Squares of the sides (3,) of a triangle of vortices over 1 - t/t_c, less 1, at `part` of t_c.

    Circulations 2, 2, -1 at (-1, 0), (1, 0), (1, sqrt 2): the sums of Gamma_i Gamma_j and of those times the
    squares of sides, 4, 6, 2, vanish, so the triangle keeps its shape (Groebli 1877; Aref 1979). All squares
    go at one rate, d(l_12^2)/dt = -(2 A Gamma_3/pi) (1/l_23^2 - 1/l_31^2) with the area A = sqrt 2, and reach
    0 at t_c = 3 sqrt(2) pi.
    """
    end = 3 * math.sqrt(2) * math.pi
    world = ef.World(dt=part * end / ticks, integrator=integrator, precision="double", dimension=2)
    alpha = np.zeros((3, 3))
    alpha[:, 2] = (2, 2, -1)
    corners = np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, math.sqrt(2), 0.0]])
    world.spawn("v", ef.Position(corners), ef.Strength(alpha), ef.CoreRadius([core] * 3))
    world.add_systems([ef.VelocitySystem(gradient=False), ef.AdvectionSystem()])
    world.step(ticks)
    x, _ = state(world)
    sides = ((x - np.roll(x, -1, axis=0)) ** 2).sum(axis=1)
    return sides / (4, 2, 6) / (1 - part) - 1


def test_three_vortices_collapse() -> None:
    """Case 124: sides at 0.9 of the time; order of the integrators at 0.6."""
    found = np.abs(collapse(0.9, 400, 0.01))
    print(found)
    assert found.max() < 1e-6
    errors = {
        name: [np.abs(collapse(0.6, ticks, 0.003, name)).max() for ticks in (25, 50, 100)]
        for name in ("rk2", "rk4")
    }
    print(errors)
    assert orders(errors["rk2"]) == pytest.approx(2, abs=0.15)
    assert orders(errors["rk4"]) == pytest.approx(4, abs=0.4)


def dipole_world(h: float, dt: float, solver: str = "direct") -> ef.World:
    """The Lamb-Chaplygin dipole of radius and speed 1: omega = k^2 C J1(k r) sin(theta) inside r = 1,
    k = 3.8317, C = -2/(k J0(k)). Half of it has the circulation 6.830899."""
    k = jn_zeros(1, 1)[0]
    x = lattice(h, 1.0 + h, 1.0 + h)
    points = within(x, h)
    r = np.hypot(points[..., 0], points[..., 1])
    inside = -2 * k / j0(k) * j1(k * r) * points[..., 1] / r
    omega = np.where(r < 1, inside, 0.0).mean(axis=1)
    x, omega = x[omega != 0], omega[omega != 0]
    assert omega[x[:, 1] > 0].sum() * h * h == pytest.approx(6.830899, rel=1e-4)
    return world_of(x, omega, h, dt, solver, gradient=False, tolerance=1e-4)


def dipole(h: float, way: float, ticks: int, solver: str = "direct") -> tuple[float, dict[str, float]]:
    """Speed of the dipole over `way` m, that of the centre of impulse, sum Gamma y x / sum Gamma y, and
    changes of invariants."""
    world = dipole_world(h, way / ticks, solver)

    def centre() -> float:
        places, gamma = state(world)
        return float((gamma * places[:, 1] * places[:, 0]).sum() / (gamma * places[:, 1]).sum())

    first, before = centre(), world.diagnostics()
    world.step(ticks)
    after = world.diagnostics()
    changes = {
        "impulse": float(
            np.abs(np.subtract(after["impulse"], before["impulse"])).max() / before["impulse"][0]
        ),
        "energy": after["energy"] / before["energy"] - 1,
    }
    return (centre() - first) / way, changes


def test_lamb_and_chaplygins_dipole() -> None:
    """Case 51: the speed over half a radius, 0.5 % at 20 cells a radius and order 2; impulse and energy stay.

    Direct sums keep the impulse to rounding, RK4 the energy to its error in time.
    """
    coarse, _ = dipole(0.1, 0.5, 10)
    fine, changes = dipole(0.05, 0.5, 10)
    assert abs(fine - 1) < 0.003
    assert math.log2(abs(coarse - 1) / abs(fine - 1)) == pytest.approx(2.0, abs=0.4)
    assert changes["impulse"] < 1e-12 and abs(changes["energy"]) < 1e-5


@pytest.mark.nightly
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_dipoles_speed_by_every_solver(solver: str) -> None:
    """Case 51: 0.5 % over two radii at 20 cells a radius, and at three resolutions by direct sums."""
    speed, _ = dipole(0.05, 2.0, 40, solver)
    print(solver, speed)
    assert abs(speed - 1) < 0.005
    if solver == "direct":
        errors = [abs(dipole(h, 1.0, 20)[0] - 1) for h in (0.1, 0.05, 0.025)]
        print(errors)
        assert orders(errors) == pytest.approx([2.0, 2.0], abs=0.4) and errors[-1] < 1e-3


@pytest.mark.nightly
def test_the_dipole_keeps_its_shape() -> None:
    """Case 51 over ten radii: speed to 1 % at 20 cells a radius, width to 0.5 %, and its vorticity, the mean
    over 0.25 m around each point, to 5 %, less with finer cells.

    Found at 10, 20, 30 cells: speed -1.4, -0.38, -0.14 %; vorticity 8.4, 4.4, 2.3 % off, in the mean square;
    width within 0.6, 0.3, 0.1 %. What is lost trails behind: vortices at the edge, which cores blur.
    """
    axis = np.linspace(-1.4, 1.4, 29)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 1, 2)
    off = []
    for h, ticks in ((0.1, 100), (0.05, 200)):
        world = dipole_world(h, 10.0 / ticks)
        pictures, width, centres = [], [], []
        for number in (0, ticks):
            world.step(number)
            places, gamma = state(world)
            centre = (gamma * places[:, 1] * places[:, 0]).sum() / (gamma * places[:, 1]).sum()
            square = ((grid - (places - (centre, 0.0))) ** 2).sum(axis=-1)
            pictures.append((gamma * np.exp(-square / 0.25**2)).sum(axis=1))
            width.append(math.sqrt((np.abs(gamma) * places[:, 1] ** 2).sum()))
            centres.append(centre)
        off.append(np.linalg.norm(pictures[1] - pictures[0]) / np.linalg.norm(pictures[0]))
        speed = (centres[1] - centres[0]) / 10.0
    assert abs(speed - 1) < 0.01 and width[1] / width[0] == pytest.approx(1.0, abs=0.005)
    assert off[1] < 0.05 and off[1] < 0.7 * off[0]


def nearest(ratio: float, h: float) -> float:
    """Least distance of two Gaussian vortices exp(-r^2/a^2), a = 1, within 1.5 turns, over the first a/ratio.

    Cut at 2.2 a, where 1 % is left, in cells h; the blobs' own width is taken off.
    """
    cells = lattice(h, 2.2, 2.2)
    r = np.hypot(cells[:, 0], cells[:, 1])
    cells, r = cells[r < 2.2], r[r < 2.2]
    omega = np.exp(-(r**2) / (1 - (1.5 * h) ** 2))  # winckelmans: 2 x 1/2 sigma^2
    omega /= omega.sum() * h * h
    apart, n = 1 / ratio, len(cells)
    x = np.concatenate([cells, cells])
    x[:, 0] += np.repeat((apart / 2, -apart / 2), n)
    turn = 2 * np.pi**2 * apart**2  # of two points of circulation 1
    world = world_of(x, np.tile(omega, 2), h, turn / 60, gradient=False)
    least = 1.0
    for _ in range(90):
        world.step()
        places, gamma = state(world)
        share = (gamma[:n] / gamma[:n].sum())[:, None]
        between = (share * (places[:n] - places[n:])).sum(axis=0)
        least = min(least, float(np.hypot(*between)) / apart)
    return least


@pytest.mark.nightly
@pytest.mark.parametrize("h", [0.35, 0.25, 0.18])
def test_two_vortices_merge_when_they_are_close(h: float) -> None:
    """Two equal Gaussian vortices merge where a/b is above the threshold 0.22, and turn in a pair below.

    a^2 is the second moment, b the distance of the centres. 0.22: Le Dizes and Verga, J. Fluid Mech. 467
    (2002), abstract, by Navier-Stokes. Within 1.5 turns; the centres of merged ones are less than half the
    distance apart (at the coarsest it is still falling then).
    """
    apart, merged = nearest(0.20, h), nearest(0.245, h)
    print(h, apart, merged)
    assert apart > 0.85 and merged < 0.45


# ---------------------------------------------------------------- the tanh layer


class Beyond(ef.System):
    """Velocity of the sheet of strength -2 m/s along y = 0 where |x| is above `half`, which nobody marches.

    u - i v = gamma/(2 pi i) (int dx'/(z - x') over all x less that up to `half`).
    """

    reads = (ef.Position,)
    adds = (ef.Velocity,)
    phase = "rates"
    dimensions = (2,)
    half: float = 1.0

    def process(self, dt: float) -> None:
        for position, velocity in self.query(ef.Position, ef.Velocity):
            z = position.x[:, 0] + 1j * position.x[:, 1]
            rest = -1j * np.pi * np.where(z.imag > 0, 1, -1) - np.log((z + self.half) / (z - self.half))
            w = -2 / (2j * np.pi) * rest
            velocity.u[:, 0] += w.real
            velocity.u[:, 1] -= w.imag


def growth(h: float, periods: int = 7) -> float:
    """Rate (U/d) of the wave k d = 0.4449 in the middle of a row of so many, U = d = 1, from t = 6 and 12.

    Lines moved up by cos(k x) are half the growing and half the decaying mode, whose velocity at y = 0 is
    sinh(s t): what is there after twice the time is 2 cosh(s t) of what is there after t.
    """
    k = 0.4449
    half = periods * np.pi / k
    columns, rows = round(2 * half / h), math.ceil(3.6 / h)
    x = (np.arange(columns) + 0.5) * (2 * half / columns) - half
    edges = np.linspace(-rows * h, rows * h, 2 * rows + 1)
    share = np.diff(np.tanh(edges)) / (2 * np.tanh(edges[-1]))
    x, y = np.meshgrid(x, 0.5 * (edges[1:] + edges[:-1]), indexing="ij")
    places = np.stack([x, y + 0.01 * np.cos(k * x) * np.exp(-k * np.abs(y)), 0 * x], axis=-1).reshape(-1, 3)
    omega = -2 * np.tile(share, columns) * (2 * half / columns) / h**2
    world = world_of(
        places, omega, h, 0.25, "fmm", tolerance=1e-5, gradient=False, systems=(Beyond(half=half),)
    )
    probes = np.zeros((240, 3))
    probes[:, 0] = (np.arange(240) + 0.5) / 240 * 6 * np.pi / k - 3 * np.pi / k  # three waves
    window = 1 + np.cos(k * probes[:, 0] / 3)
    size = []
    for _ in range(2):
        world.step(24)
        # Even in x; what the ends of the row do is odd.
        size.append(abs((window * world.velocity(probes)[:, 1] * np.cos(k * probes[:, 0])).sum()))
    return math.acosh(size[1] / size[0] / 2) / 6


@pytest.mark.nightly
def test_the_tanh_layer_grows_as_rayleighs_equation_says() -> None:
    """Case 52: 0.18970 U/d for the fastest wave, k d = 0.4449, to 3 %, at three resolutions.

    A row of seven waves and the sheet beyond it, so that it is endless but for the motion of the ends.
    """
    errors = [abs(growth(h) / 0.18970 - 1) for h in (0.5, 0.35, 0.25)]
    print(errors)
    assert max(errors[1:]) < 0.03 and (orders(errors, math.sqrt(2)) > 1.8).all()
