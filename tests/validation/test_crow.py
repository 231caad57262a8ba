"""Long-wave instability of a vortex pair: validation case 43."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from flows import Blobs, RowSolver, world_of
from oracles import RING_CONSTANT, Array
from scipy.optimize import minimize_scalar
from scipy.special import k0, k1, sici

import ecs_fluid as ef

NIGHTLY = pytest.mark.nightly
IMAGES = 20
"""Copies of the wavelength on either side."""


def crow_rates(kb: float, cut: float) -> tuple[float, float]:
    """(A, B) of Crow's symmetric mode, dy/dt = A z, dz/dt = B y, in Gamma/(2 pi b^2); `cut` is d/b.

    Crow, AIAA J. 8 (1970): growth = sqrt(A B) with A = 1 - psi + (kb)^2 w and B = 1 + chi - (kb)^2 w, where
    chi = kb K1, psi = (kb)^2 K0 + kb K1 and w(kd) = (1/2)((cos - 1)/(kd)^2 + sin/(kd) - Ci) is the line's
    own rotation with the cut-off length d. z is across the plane of the pair, y along it.
    """
    own = kb * cut
    omega = 0.5 * ((math.cos(own) - 1) / own**2 + math.sin(own) / own - float(sici(own)[1]))
    chi, psi = kb * float(k1(kb)), kb**2 * float(k0(kb)) + kb * float(k1(kb))
    return 1 - psi + kb**2 * omega, 1 + chi - kb**2 * omega


def growth(rates: tuple[float, float]) -> float:
    return math.sqrt(max(rates[0] * rates[1], 0.0))


def best(rate: object, low: float, high: float) -> float:
    return float(minimize_scalar(lambda k: -rate(k), (low, high), (low, high), method="bounded").x)  # type: ignore[operator]


def cut_off(kernel: str, sigma: float) -> float:
    """Cut-off length of a line of blobs: sigma e^(-C)/2.

    Cutting |s| < d out of a circle's own sum leaves U = Gamma/(4 pi R) ln(4 R/d); blobs: ln(8 R/sigma) + C.
    """
    return 0.5 * sigma * math.exp(-RING_CONSTANT[kernel])


def pair(k: float, count: int, sigma: float, y: float, z: float) -> tuple[Blobs, Blobs]:
    """One wavelength of both lines, b = Gamma = 1, and its images; displaced by (y, z) cos kx, mirrored in y.

    Lines along x at y = 1/2 and -1/2 with circulations 1 and -1; `y` moves them apart, `z` up.
    """
    length = 2 * math.pi / k
    s = length * (np.arange(count) + 0.5) / count
    wave, slope = np.cos(k * s), -k * np.sin(k * s)
    zero = np.zeros(count)
    x, alpha = [], []
    for side in (1.0, -1.0):
        x.append(np.stack([s, side * (0.5 + y * wave), z * wave], axis=1))
        along = np.stack([zero + 1.0, side * y * slope, z * slope], axis=1)
        alpha.append(side * length / count * along)
    x, alpha = np.concatenate(x), np.concatenate(alpha)
    shifts = [length * m for m in range(-IMAGES, IMAGES + 1) if m]
    copies = np.concatenate([x + np.array((shift, 0.0, 0.0)) for shift in shifts])
    core = np.full(len(x), sigma)
    repeated = np.tile(alpha, (len(shifts), 1)), np.tile(core, len(shifts))
    return (x, alpha, core), (copies, *repeated)


def measured_rates(
    k: float, sigma: float, kernel: str = "winckelmans", small: float = 1e-4
) -> tuple[float, float]:
    """(A, B) from the velocity that two small displacements, along y and along z, give the line at y = 1/2.

    In the pair's own frame, in which a line displaced alike everywhere stays so: the mean of the line is
    taken off. In units of Gamma/(2 pi b^2).
    """
    count = math.ceil(2.4 * 2 * math.pi / (k * sigma))
    found = []
    for y, z, component in ((0.0, small, 1), (small, 0.0, 2)):
        blobs = pair(k, count, sigma, y, z)
        world = world_of(list(blobs), velocity={"kernel": kernel})
        x = blobs[0][0][:count]
        u = world.velocity(x)[:, component]
        found.append(2 * math.pi * 2 * float(np.mean(u * np.cos(k * x[:, 0]))) / small)
    return found[0], found[1]


@pytest.mark.parametrize(
    ("cut", "kb", "rate"), [(0.063, 0.736, 0.827), (0.0642, 0.738, 0.827), (0.1284, 0.853, 0.806)]
)
def test_crows_formula(cut: float, kb: float, rate: float) -> None:
    """The oracle gives the values of case 43 to their digits: d/b = 0.063, uniform a/b 0.1 and 0.2."""
    found = best(lambda k: growth(crow_rates(k, cut)), 0.4, 1.2)
    assert found == pytest.approx(kb, abs=2e-3)
    assert growth(crow_rates(found, cut)) == pytest.approx(rate, abs=1e-3)
    if cut == 0.063:
        a, b = crow_rates(found, cut)
        assert math.degrees(math.atan2(math.sqrt(b), math.sqrt(a))) == pytest.approx(47.7, abs=0.2)


@pytest.mark.parametrize(("kernel", "sigma"), [("winckelmans", 0.15), ("gaussian", 0.1)])
def test_growth_of_small_waves(kernel: str, sigma: float) -> None:
    """Case 43: growth and number of the fastest wave within 5 % of Crow's formula, its plane within 1 degree.

    d/b = 0.124 and 0.144. Measured (theory): winckelmans kb 0.844 (0.845), growth 0.806 (0.808), plane 47.66
    (47.75) degrees; gaussian 0.880 (0.880), 0.802 (0.802), 47.74 (47.75). What is left is the cut-off theory
    itself, of order (k d)^2, and the far images (1/41^2).
    """
    cut = cut_off(kernel, sigma)
    kb = best(lambda k: growth(crow_rates(k, cut)), 0.4, 1.2)
    waves = kb * np.array((0.8, 0.9, 1.0, 1.1, 1.2))
    rates = [measured_rates(float(k), sigma, kernel) for k in waves]
    curve = np.polynomial.Polynomial.fit(waves, [growth(r) for r in rates], 3)
    fastest = best(curve, float(waves[0]), float(waves[-1]))
    assert fastest == pytest.approx(kb, rel=0.05)
    assert float(curve(fastest)) == pytest.approx(growth(crow_rates(kb, cut)), rel=0.05)
    planes = [
        math.degrees(math.atan2(math.sqrt(b), math.sqrt(a))) for a, b in (rates[2], crow_rates(kb, cut))
    ]
    assert planes[0] == pytest.approx(planes[1], abs=1.0)


def marched(part: float, scheme: str, overlap: float) -> float:
    """Growth that is marched at `part` of the fastest wave number over that of Crow's formula, less 1."""
    sigma = 0.15
    cut = cut_off("winckelmans", sigma)
    k = part * best(lambda kb: growth(crow_rates(kb, cut)), 0.4, 1.2)

    def make(blobs: list[Blobs], dt: float) -> ef.World:
        solver = ef.VelocitySystem.with_solver(RowSolver, length=2 * math.pi / k)
        return world_of(blobs, solver, dt=dt, integrator="rk3", stretch=scheme)

    return marched_growth(k, sigma, overlap, make) / (growth(crow_rates(k, cut)) / (2 * math.pi)) - 1


@pytest.mark.parametrize("part", [0.7, pytest.param(1.0, marks=NIGHTLY), pytest.param(1.2, marks=NIGHTLY)])
def test_marched_growth(part: float) -> None:
    """Case 43': amplitude 1e-3 b grows as Crow's formula says, within 0.5 %, at three waves around the
    fastest; 2 % is asked, which a rate of stretching that is 6 % wrong would keep.

    Started on the growing plane, all blobs move and stretch; 8 copies on either side (1/17^2 = 0.3 % of what
    they do) repeat the middle at every stage. The default stretching, the fastest wave (0.1285/s) at three
    overlaps.
    """
    for overlap in (2.0, 2.4, 3.2) if part == 1.0 else (2.4,):
        assert abs(marched(part, "auto", overlap)) < 0.005


@pytest.mark.nightly
@pytest.mark.parametrize("part", [0.7, 1.0, 1.2])
def test_marched_growth_by_every_form(part: float) -> None:
    """Case 43': the classical and mixed forms are within 0.5 and 2 %. The transposed one turns the strengths
    of a bent line out of it and falls short by 7, 19 and 38 %, which is why it is not the default here."""
    assert abs(marched(part, "classical", 2.4)) < 0.005
    assert abs(marched(part, "mixed", 2.4)) < 0.02
    assert -0.45 < marched(part, "transposed", 2.4) < -0.05


def marched_growth(
    k: float, sigma: float, overlap: float, make: Callable[[list[Blobs], float], ef.World]
) -> float:
    """Rate, 1/s, at which the growing mode of wave number k does so over 4 s of RK3 ticks.

    Strengths across the line turn at Gamma/(pi sigma^2) = 14/s, so RK3 needs dt < 1.73/14 s.
    """
    a, b = crow_rates(k, cut_off("winckelmans", sigma))
    turn = math.atan2(math.sqrt(b), math.sqrt(a))
    count = math.ceil(overlap * 2 * math.pi / (k * sigma))
    world = make([pair(k, count, sigma, 1e-3 * math.cos(turn), 1e-3 * math.sin(turn))[0]], 0.1)
    before = amplitude(world["vortex0"][ef.Position].x[:count], k)
    assert before == pytest.approx(1e-3, rel=1e-9)
    world.step(40)
    return math.log(amplitude(world["vortex0"][ef.Position].x[:count], k) / before) / world.time


def amplitude(x: Array, k: float) -> float:
    wave = np.cos(k * x[:, 0])
    return float(np.hypot(*(2 * np.mean((x[:, axis] - x[:, axis].mean()) * wave) for axis in (1, 2))))
