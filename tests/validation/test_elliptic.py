"""Short-wave (elliptic) instability of two antiparallel vortices: validation case 148."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.systems.partition import GHOSTS
from tests.validation.spectral import PeriodicFlow, PlaneFlowWithWave

SIDE = 2 * math.pi
APART = SIDE / 4
"""Distance b of the vortices, m."""
CIRCULATION = 2 * math.pi * APART**2
"""m^2/s; so that the strain of one vortex at the other, circulation/(2 pi b^2), is 1/s."""
REYNOLDS = 2500.0
"""Circulation over viscosity."""
CORE = 0.2
"""Core radius of the Gaussian vortices at the start over b."""
DT = 0.01
"""Step of the series, s: vorticity turns by 0.3 of a radian in it."""
SPREADING = 3.0
"""Time in which the pair gets its steady shape, s."""
SECONDS = 1.0
"""Time over which rates are compared, s."""
WAVES = (4.5, 5.0, 6.0)
"""Wave numbers, 1/m: below, near and above the one that grows most."""
POINTS = ((45, 72), (50, 75), (48, 72))
"""Vortons along a side of the box for each wave: 9 or 10, and 12 to 16 for its length."""


def vortices(points: int, core: float) -> tuple[Array, Array]:
    """Vorticity, 1/s, of the left and of the right vortex, (2, n, n), and their gradients (2, 2, n, n)."""
    axis = SIDE / points * np.arange(points) - math.pi
    x, y = np.meshgrid(axis, axis, indexing="ij")
    omega, slope = np.zeros((2, points, points)), np.zeros((2, 2, points, points))
    for i, side in enumerate((-1, 1)):
        for shift in np.ndindex(3, 3):
            d = np.stack([x - side * APART / 2, y]) + SIDE * (np.array(shift)[:, None, None] - 1)
            blob = -side * CIRCULATION / (math.pi * core**2) * np.exp(-(d**2).sum(axis=0) / core**2)
            omega[i] += blob
            slope[i] -= 2 * d / core**2 * blob
    return omega, slope


def bent(points: int, wave: float, core: float, viscosity: float) -> PlaneFlowWithWave:
    """The pair displaced by exp(i m z) along (1, 1), left, and (1, -1), right: the reverse of mirror images.

    Of the two symmetries of the pair this is the one whose waves grow more.
    """
    base, slope = vortices(points, core)
    ways = np.array([[1.0, 1.0], [1.0, -1.0]])
    along = 1j * wave * np.einsum("sc,sxy->cxy", ways, base)
    omega = np.stack([*along, -np.einsum("sc,scxy->xy", ways, slope)])
    return PlaneFlowWithWave(base.sum(axis=0), omega, wave, viscosity)


def growing(wave: float, points: int = 80, dt: float = DT) -> tuple[PlaneFlowWithWave, float]:
    """The pair with its growing wave alone, of energy 1 m^2/s^2, and the wave's rate, 1/s.

    The pair spreads for `SPREADING`. Then its viscosity is taken away, so that it stays as it is, while the
    wave goes on for 8 s; the rate is that of the last two. The viscosity is back in what is returned.
    """
    flow = bent(points, wave, CORE * APART, CIRCULATION / REYNOLDS)
    for _ in range(round(SPREADING / dt)):
        flow.step(dt)
    flow.base_viscosity, energies = 0.0, []
    for _ in range(4):
        for _ in range(round(2 / dt)):
            flow.step(dt)
        energies.append(flow.energy)
    flow.waves[1:] /= math.sqrt(flow.energy)
    flow.base_viscosity = flow.viscosity
    return flow, math.log(energies[-1] / energies[-2]) / 4


def standing_wave() -> float:
    """m a of the first bending wave with a node that stands still on a vortex exp(-r^2/a^2): 2.2608.

    Small waves (i U, v, w, p) exp(i (theta + m z)) of Euler's equations, steady, on the angular velocity
    W(r), with the vorticity Z and q = p/r + Z U:

        U' = -U/r + q/(r W) + m^2 p/W,   p' = -((2 Z W - W^2) U + 2 W p/r)/W.

    From U = 1, p = -r at the axis; U and p grow without bounds as r does unless m is that of a wave. The
    strain of a second vortex makes waves grow that stand still (Tsai and Widnall 1976).
    """

    def outside(m: float) -> float:
        def rates(r: float, state: Array) -> list[float]:
            u, p = state
            turn, vorticity = -math.expm1(-(r**2)) / r**2, 2 * math.exp(-(r**2))
            q = p / r + vorticity * u
            return [
                -u / r + q / (r * turn) + m**2 * p / turn,
                -(2 * vorticity - turn) * u - 2 * p / r,
            ]

        return float(solve_ivp(rates, (1e-3, 5.0), (1.0, -1e-3), rtol=1e-9, atol=1e-12).y[1, -1])

    return float(brentq(outside, 1.5, 3.0, xtol=1e-6))


def test_linear_equations_are_those_of_small_waves() -> None:
    """Two flows in space, with a wave and its reverse, differ by what the plane flow with the wave has.

    Half the difference is u cos 2z to the square of the amplitude; 24 points, for half a turn of a vortex.
    """
    points, wave, small, dt = 24, 2, 1e-4, 0.02
    plane = bent(points, wave, 0.4 * APART, 0.05)
    z = SIDE / points * np.arange(points) - math.pi
    base = np.stack([np.zeros((points, points))] * 2 + [np.fft.ifft2(plane.waves[0]).real])
    omega = np.fft.ifft2(1j * np.cross(plane.k, plane.waves[1:], axis=0))
    change = small * (omega[..., None] * np.exp(1j * wave * z)).real
    flows = [
        PeriodicFlow.of_vorticity(np.moveaxis(base[..., None] + sign * change, 0, -1), 0.05)
        for sign in (1, -1)
    ]
    for flow in (plane, *flows):
        for _ in range(30):
            flow.step(dt)
    found = (flows[0].velocity() - flows[1].velocity()) / (2 * small)
    exact = (np.fft.ifft2(plane.waves[1:])[..., None] * np.exp(1j * wave * z)).real
    assert np.abs(found - exact).max() < 1e-6 * np.abs(exact).max()


def vortons(flow: PlaneFlowWithWave, points: int) -> ef.World:
    """One wavelength of the flow as vortons, `points` along x and y and as far apart along z: whole numbers.

    The wave's energy is 1e-6 m^2/s^2. Cores of an eighth of a spacing, on a grid of the lattice's spacing.
    """
    wave = float(flow.k[2, 0, 0])
    h, along = SIDE / points, round(points / wave)
    vorticity, omega = flow.vorticity_at(points)
    x = h * np.stack(np.indices((points, points, along)), axis=-1).reshape(-1, 3) + h / 2
    x -= (SIDE / 2, SIDE / 2, along * h / 2)
    field = 1e-3 * (omega[..., None] * np.exp(1j * wave * x[:along, 2])).real
    field[2] += vorticity[..., None]
    world = ef.World(dt=0.02, integrator="rk3", precision="double", periodic=(SIDE, SIDE, along * h))
    alpha, n = np.moveaxis(field, 0, -1).reshape(-1, 3) * h**3, len(x)
    world.spawn(
        "pair", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(np.full(n, h / 8)),
        ef.Volume(np.full(n, h**3)),
    )  # fmt: skip
    world.set_fluid(viscosity=flow.viscosity)
    world.add_systems(
        [
            ef.PartitionSystem(cells=points**2 * along),
            ef.VelocitySystem(solver="poisson", kernel="gaussian"),
            ef.StretchSystem(),
            ef.DiffusionSystem(order=4, radius=10.0),
            ef.RemeshSystem(
                every=2, spacing=h, overlap=0.125, weights="m6_prime", loss=1e-3, solenoidal=True
            ),
            ef.AdvectionSystem(),
        ]
    )
    return world


def energy_of_wave(world: ef.World) -> float:
    """Mean of |u|^2/2 of the wave as long as the box, m^2/s^2, u complex as that of the series."""
    world.evaluate()
    inner = slice(GHOSTS, -GHOSTS - 1)
    waves = np.fft.fft(world.fluid[ef.VelocityField].u[inner, inner, inner], axis=2)
    return float(2 * (np.abs(waves[:, :, 1]) ** 2).sum(axis=-1).mean() / waves.shape[2] ** 2)


def growth(energies: list[float]) -> float:
    """Rate of the wave, 1/s, from its energies at the start and after `SECONDS`."""
    return math.log(energies[1] / energies[0]) / (2 * SECONDS)


def by_series(flow: PlaneFlowWithWave) -> float:
    """Rate of the wave while the pair spreads, 1/s."""
    energies = [flow.energy]
    for _ in range(round(SECONDS / DT)):
        flow.step(DT)
    return growth([*energies, flow.energy])


def by_vortons(flow: PlaneFlowWithWave, points: int) -> float:
    """The same of the vortons, 1/s."""
    world = vortons(flow, points)
    energies = [energy_of_wave(world)]
    world.step(round(SECONDS / world.dt))
    return growth([*energies, energy_of_wave(world)])


def fastest(rates: list[float]) -> float:
    """Wave number of the largest rate, 1/m, by a parabola through those of `WAVES`."""
    a, b, _ = np.polyfit(WAVES, rates, 2)
    return float(-b / (2 * a))


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
def test_short_waves_grow_as_by_fourier_series() -> None:
    """Case 148: growth over a second of three waves around the fastest, until it is 2.5 times as high.

    Measured: -11, -2.0, +8.7 % with h = a/3, a/3.3, a/3.2 and -2.3, -0.0, +3.0 % with h = a/4.8, a/5, a/4.8,
    a the core radius at that time. The fastest wave is 4.6 and 1.4 % too short. By the series it is 4.2 %
    longer than the wave that stands still on a lone vortex as wide as these are then: viscosity damps short
    waves. On a pair that does not spread the second has 0.9515/s with 96 points and steps of 1/160 s.
    """
    steady, exact, coarse, fine = [], [], [], []
    for wave, points in zip(WAVES, POINTS, strict=True):
        flow, rate = growing(wave)
        steady.append(rate)
        coarse.append(by_vortons(flow, points[0]))
        fine.append(by_vortons(flow, points[1]))
        exact.append(by_series(flow))
    assert steady[1] == pytest.approx(0.9515, rel=2e-3)
    misses = np.abs(np.array([coarse, fine]) / exact - 1)
    assert misses[0].max() < 0.12 and misses[1].max() < 0.04
    assert (misses[1] < misses[0] / 2).all()
    assert fastest(fine) == pytest.approx(fastest(exact), rel=0.03)
    core = APART * math.sqrt(CORE**2 + 8 * math.pi / REYNOLDS * (SPREADING + SECONDS / 2))
    assert fastest(exact) == pytest.approx(standing_wave() / core, rel=0.1)
