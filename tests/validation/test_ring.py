"""Vortex rings against closed forms: validation cases 10, 11, 13, 17, 39 and article check D1."""

from __future__ import annotations

import math

import numpy as np
import pytest
from axisymmetric import impulse_centre_speed, viscous_ring
from flows import axial_center, invariants, ring, vortons, world_of
from oracles import ENCLOSED, RING_CONSTANT, ring_constant, ring_speed

import ecs_fluid as ef

KERNELS = sorted(ENCLOSED)


@pytest.mark.parametrize("kernel", KERNELS)
def test_ring_constants_follow_from_the_kernels(kernel: str) -> None:
    """The closed forms of C are those of the integral -ln 2 - int q' ln rho; 1e-10 is the quadrature."""
    assert ring_constant(kernel) == pytest.approx(RING_CONSTANT[kernel], abs=1e-10)


# Blobs per ring at sigma/R = 0.005. The smooth kernels need overlap 3.2 (trapezoidal rule, error 6e-8 there);
# the kink of the solid core leaves an error of second order in the spacing.
COUNT = {"winckelmans": 4100, "gaussian": 4100, "rosenhead_moore": 4100, "rankine": 60_000}


@pytest.mark.parametrize("kernel", KERNELS)
def test_thin_ring_law(kernel: str) -> None:
    """Case 10: U = Gamma/(4 pi R) (ln(8 R/sigma) + C) with the exact C of each kernel, to 1e-4 in C.

    At sigma/R = 0.005 the law itself is off by O((sigma/R)^2 ln) < 5e-5 (quadrature).
    """
    sigma = 0.005
    world = world_of(ring(COUNT[kernel], sigma), velocity={"kernel": kernel})
    u = world.velocity([[1.0, 0.0, 0.0]])[0]
    constant = 4 * math.pi * u[2] - math.log(8 / sigma)
    assert constant == pytest.approx(RING_CONSTANT[kernel], abs=1e-4)
    assert abs(u[0]) < 1e-9 and abs(u[1]) < 1e-9


# Quadrature values of C(sigma/R), as measured independently in validation.md, case 10; five digits.
FINITE = [
    ("winckelmans", 0.1, -0.50095),
    ("winckelmans", 0.2, -0.50388),
    ("winckelmans", 0.3, -0.50892),
    ("gaussian", 0.1, -1.05985),
    ("gaussian", 0.3, -1.07563),
]


@pytest.mark.parametrize(("kernel", "sigma", "constant"), FINITE)
def test_ring_of_finite_core(kernel: str, sigma: float, constant: float) -> None:
    """Case 10 at finite sigma/R: the table to its five digits, the quadrature to 1e-7 at overlap 3.2."""
    count = math.ceil(3.2 * 2 * math.pi / sigma)
    world = world_of(ring(count, sigma), velocity={"kernel": kernel})
    speed = world.velocity([[1.0, 0.0, 0.0]])[0, 2]
    assert speed == pytest.approx(ring_speed(kernel, sigma), rel=1e-7)
    assert 4 * math.pi * speed - math.log(8 / sigma) == pytest.approx(constant, abs=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_energy_of_a_thin_ring(kernel: str) -> None:
    """Case 17: E = Gamma^2 R/2 (ln(8 R/sigma) + C - 1) with the C of case 10, and dE/dR = U dI/dR exactly.

    Energy and impulse of a line of blobs of one radius are those of a Hamiltonian system, so U of case 10
    integrated over I = pi Gamma R^2 is its energy. Gaussian blobs have the energy of a ring with the core
    exp(-s^2/sigma^2), ln(8 R/a) - 2.058, as the pair sum smooths once. Found at sigma/R = 0.05: 7e-5, 1.6e-4
    and 7e-4, of second order but for the logarithm; 2e-4 with rankine, whose kink leaves a floor.
    """

    def energy(sigma: float, radius: float = 1.0) -> float:
        count = math.ceil(3.2 * 2 * math.pi / sigma)
        rings = ring(count, sigma, radius)
        return float(world_of(rings, velocity={"kernel": kernel}).diagnostics()["energy"])

    off = [2 * energy(s) / (math.log(8 / s) + RING_CONSTANT[kernel] - 1) - 1 for s in (0.1, 0.05)]
    assert abs(off[1]) < 1e-3
    if kernel == "gaussian":
        assert RING_CONSTANT[kernel] - 1 == pytest.approx(-2.058, abs=1e-3)
    step, smooth = 1e-3, kernel != "rankine"
    if smooth:
        assert math.log2(off[0] / off[1]) == pytest.approx(2.2, abs=0.2)
    slope = (energy(0.1, 1 + step) - energy(0.1, 1 - step)) / (2 * step)
    assert slope / (2 * math.pi) == pytest.approx(ring_speed(kernel, 0.1), rel=1e-6 if smooth else 1e-3)


def test_ring_marched_two_radii() -> None:
    """Case 11 and D1: speed 1e-4 of the quadrature, impulse pi Gamma R^2 to 1e-10, round, on its axis.

    A ring of equal blobs keeps its symmetry, so nothing but rounding may change its radius or push it
    sideways, and its strengths do not change. 100 blobs of sigma = 0.15 overlap 2.39 times, where a single
    sum is 7e-6 off (case 8).
    """
    speed = ring_speed("winckelmans", 0.15)
    world = world_of(ring(100, 0.15), dt=0.05, integrator="rk3", debug=True)
    before = invariants(world)
    heights = [0.0]
    while heights[-1] < 2.0:
        world.step()
        heights.append(axial_center(world))
    x, _ = vortons(world)
    rise = np.diff(heights)
    assert (rise > 0).all() and np.ptp(rise) < 1e-9 * rise.mean()
    assert heights[-1] / world.time == pytest.approx(speed, rel=1e-4)
    # D1 also asks for the speed of thin-ring theory: here with the C of the blobs and O(sigma^2) left out.
    assert speed == pytest.approx(
        (math.log(8 / 0.15) + RING_CONSTANT["winckelmans"]) / (4 * math.pi), rel=2e-3
    )
    radius = np.hypot(x[:, 0], x[:, 1])
    assert np.ptp(radius) < 1e-12 and radius.mean() == pytest.approx(1.0, abs=1e-12)
    assert np.abs(x[:, :2].mean(axis=0)).max() < 1e-13
    after = invariants(world)
    assert after["impulse"][2] == pytest.approx(before["impulse"][2], rel=1e-10)
    # 1/2 sum x cross alpha of a circle of blobs is exactly Gamma pi R^2.
    assert before["impulse"][2] == pytest.approx(math.pi, rel=1e-13)


@pytest.mark.parametrize("scheme", ["classical", "transposed", "mixed", "none"])
def test_a_ring_alone_is_not_stretched(scheme: str) -> None:
    """Case 11: all stretching forms agree on a ring that translates, whose strengths must stay.

    Every blob moves alike, so alpha . grad u = 0 along the line; 1e-12 is the rounding of 30 evaluations.
    """
    world = world_of(ring(100, 0.15), dt=0.05, integrator="rk3", stretch=scheme)
    alpha = world["vortex0"][ef.Strength].alpha.copy()
    world.step(10)
    assert np.abs(world["vortex0"][ef.Strength].alpha - alpha).max() < 1e-12 * np.abs(alpha).max()


def thick_ring(
    core: float, spacing: float, dt: float, integrator: str, velocity: dict[str, object]
) -> ef.World:
    """A ring of the recipe with a Gaussian core exp(-s^2/core^2) filled with layers of blobs."""
    recipe = {
        "kind": "vortex_ring",
        "name": "ring",
        "radius": 1.0,
        "core": core,
        "circulation": 1.0,
        "spacing": spacing,
        "profile": "gaussian",
    }
    return ef.WorldRecipe.from_tables(
        {
            "world": {"dt": dt, "integrator": integrator, "precision": "double"},
            "fluid": {"velocity": velocity},
            "entity": [recipe],
        }
    ).build()


THICK = 0.2
"""Core radius over that of the ring."""


def test_thick_ring() -> None:
    """Case 13: the impulse centre of a Gaussian core a/R = 0.2 at spacings a/2, a/3, a/4; 1 % at a/4, order
    1.8.

    The reference is the quadrature over the section, 0.23883 Gamma/R: Saffman's law of a thin core, (ln(8
    R/a) - 0.558)/(4 pi), is 4.3 % above it. Default overlap: 3.7, 1.3, 0.65 %, order 2.5.
    """
    exact = impulse_centre_speed(THICK)
    off = []
    for cells in (2, 3, 4):
        world = thick_ring(THICK, THICK / cells, 1e-3, "euler", {"solver": "fmm", "tolerance": 1e-5})
        before = axial_center(world)
        world.step()
        off.append((axial_center(world) - before) / world.time / exact - 1)
    assert abs(off[2]) < 0.01
    assert math.log2(off[0] / off[2]) > 1.8


@pytest.mark.nightly
def test_thick_ring_marched() -> None:
    """Case 13 in time: the same core at a/3 goes as far in 4 s as the axisymmetric flow does; 2 %."""
    way, *_ = viscous_ring(THICK, 0.0, 0.0, np.array([4.0]))
    world = thick_ring(THICK, THICK / 3, 0.05, "rk3", {"solver": "fmm", "tolerance": 1e-4})
    before = axial_center(world)
    world.step(80)
    assert axial_center(world) - before == pytest.approx(way[0], rel=0.02)


def test_head_on_rings_keep_the_energy_of_the_flow() -> None:
    """Case 39: two thin rings run into each other until they are 1.8 times as wide; energy to 1e-3.

    Found 0.11, 1.3e-4, 1.4e-8 with 100, 200, 400 blobs: sums over smooth closed lines err by less than any
    power of the spacing, so that each halving gains more than the one before. Blobs of one radius are a
    Hamiltonian system whose energy is their own pair sum, so it has to stay. (Cores that thin at constant
    volume have another: their pair sum grows by Gamma^2 R/4 a ring.) The rings' impulse is zero by symmetry,
    and each ring's grows as R^2.
    """
    off = []
    for count in (100, 200, 400):
        rings = [ring(count, 0.1, 1.0, side, (0, 0, -0.5 * side)) for side in (1.0, -1.0)]
        world = world_of(rings, dt=0.02, integrator="rk3", stretch=ef.StretchSystem().scheme)
        energy = world.diagnostics()["energy"]
        while np.hypot(*vortons(world)[0][0, :2]) < 1.8:
            world.step(5)
            assert world.time < 10
        off.append(abs(world.diagnostics()["energy"] / energy - 1))
        assert np.abs(invariants(world)["impulse"]).max() < 1e-9
    assert off[2] < 1e-3
    assert off[1] / off[2] > off[0] / off[1] > 2**4
