"""Sharing among lattice points: moments, reach, threads. Validation case 23."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ecs_fluid.kernels.grids.lattice import BLUR_WEIGHT, to_lattice
from ecs_fluid.kernels.grids.scatter import QUINTICS
from ecs_fluid.kernels.vorticity.strength_moments import moments, monomials, with_moments
from tests.threads import check_threads

SOLID = np.zeros(3, dtype=bool)
PRIMES = ("m4_prime", "m6_prime")


def cloud(dtype: type = np.float64, n: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Random points on both sides of the origin, some exactly on lattice points and planes, and strengths."""
    draw = np.random.default_rng(8)
    x = draw.uniform(-1.3, 2.1, (n, 3))
    x[:20] = np.round(x[:20] / 0.25) * 0.25
    x[20:40, 0] = 0.25
    return x.astype(dtype), draw.standard_normal((n, 3))


def points(low: np.ndarray, field: np.ndarray, h: float) -> np.ndarray:
    """Positions of all points of a field, (n, 3)."""
    return h * (np.indices(field.shape[:3]).reshape(3, -1).T + low)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "kept"), [("linear", 4), ("positive", 4), *((name, 10) for name in PRIMES)])
def test_moments(name: str, kept: int, dtype: type) -> None:
    """Case 23: moments 0 and 1, with M4' also 2, of all components stay to 1e-14 of sum |alpha|.

    (The gate is 1e-12.)

    About the origin: 1, x_i, x_i x_j (i <= j). So do sum alpha, impulse and angular impulse, which are among
    them. The weights that are never negative spread by f (1 - f) h^2 and more: second moments must differ.
    """
    x, alpha = cloud(dtype)
    low, field = to_lattice(name, x, alpha, 0.25, SOLID)
    before = moments(monomials(x, np.zeros(3), 1.0), alpha.T)
    after = moments(monomials(points(low, field, 0.25), np.zeros(3), 1.0), field.reshape(-1, 3).T)
    error = np.abs(after - before) / np.abs(alpha).sum()
    assert error[:kept].max() < 1e-14
    if kept == 4:
        assert error[4:].max() > 1e-5


def test_moments_three_and_four() -> None:
    """M6' keeps the moments 0 to 4 of a particle about itself to rounding; M4' the third and fourth not.

    Of a particle at the fraction f of a cell, M4' has the third moment f (1 - f) (1 - 2 f) h^3 along an axis.
    """
    x, one = np.array([[0.3, 0.5, 0.15]]), np.ones((1, 1))
    for name, third in (("m4_prime", 0.3 * 0.7 * 0.4), ("m6_prime", 0.0)):
        low, field = to_lattice(name, x, one, 1.0, SOLID)
        away = points(low, field, 1.0) - x
        assert (field.reshape(-1) @ away[:, 0] ** 3) == pytest.approx(third, abs=1e-12)
        if name == "m6_prime":
            for powers in np.ndindex(5, 5, 5):
                if 0 < sum(powers) < 5:
                    assert abs(field.reshape(-1) @ (away**powers).prod(axis=1)) < 1e-12


def test_the_weights_of_six_points_follow_from_their_conditions() -> None:
    """Quintics of three pieces: 18 numbers that these conditions fix.

    1 at 0, 0 at 1, 2, 3, even, two continuous derivatives, and sum_s w(f - s) (s - f)^p = 0 for p = 1 to 4
    and 1 for p = 0, at any f.
    """

    def row(order: int, piece: int, d: float) -> np.ndarray:
        """Derivative of that order at the distance d, as factors of the 18 numbers."""
        out = np.zeros(18)
        for n in range(order, 6):
            out[6 * piece + n] = math.perm(n, order) * (d - piece) ** (n - order)
        return out

    rows = [row(0, 0, 0), row(1, 0, 0), row(0, 0, 1), row(0, 1, 2)]
    rows += [row(k, 0, 1) - row(k, 1, 1) for k in range(3)] + [row(k, 1, 2) - row(k, 2, 2) for k in range(3)]
    rows += [row(k, 2, 3) for k in range(3)]
    sums = [1.0] + [0.0] * 12
    for f in (0.1, 0.25, 0.4, 0.6, 0.7, 0.9):
        away = f - np.arange(-2, 4)
        around = [row(0, int(abs(d)), abs(d)) for d in away]
        rows += [sum(w * (-d) ** p for w, d in zip(around, away, strict=True)) for p in range(5)]
        sums += [1.0, 0.0, 0.0, 0.0, 0.0]
    found, _, rank, _ = np.linalg.lstsq(np.array(rows), np.array(sums), rcond=1e-10)
    assert rank == 18
    powers = np.arange(6)
    for f in (0.01, 0.3, 0.8, 0.99):
        pieces = [row(0, int(abs(d)), abs(d)) @ found for d in f - np.arange(-2, 4)]
        assert QUINTICS @ f**powers == pytest.approx(pieces, abs=1e-8)


def test_second_moments_of_the_spreading_weights() -> None:
    """One particle at (0.3, 0.5, 0) of a cell: linear adds f (1 - f) h^2 per axis, positive 2 w h^2 more."""
    x, one = np.array([[0.3, 0.5, 0.0]]), np.ones((1, 1))
    linear = np.array([0.21, 0.25, 0.0])
    for name, wanted in (
        ("linear", linear),
        ("positive", linear + 2 * BLUR_WEIGHT),
        ("m6_prime", 0 * linear),
        ("m4_prime", 0 * linear),
    ):
        low, field = to_lattice(name, x, one, 1.0, SOLID)
        offsets = points(low, field, 1.0) - x
        assert (field.reshape(-1, 1) * offsets**2).sum(axis=0) == pytest.approx(wanted, abs=1e-15)


def test_a_particle_on_a_lattice_point_stays_there() -> None:
    """M4' and linear weights are 1 at 0 and 0 at all other integers; positive ones (w, 1 - 2 w, w)."""
    x, one = np.array([[0.75, -0.5, 0.0]]), np.ones((1, 1))
    for name, centre in (
        ("linear", 1.0),
        ("m6_prime", 1.0),
        ("m4_prime", 1.0),
        ("positive", (1 - 2 * BLUR_WEIGHT) ** 3),
    ):
        low, field = to_lattice(name, x, one, 0.25, SOLID)
        assert field.max() == pytest.approx(centre, rel=1e-14)
        assert points(low, field, 0.25)[field.argmax()].tolist() == x[0].tolist()
        assert (field != 0).sum() == (27 if name == "positive" else 1)


def test_positive_weights() -> None:
    """They are never negative and cover every point of M4', so that one can divide by them there."""
    x, _ = cloud()
    one = np.ones((len(x), 1))
    fields = {name: to_lattice(name, x, one, 0.25, SOLID)[1] for name in ("linear", "positive", "m4_prime")}
    assert fields["linear"].min() >= 0 and fields["positive"].min() >= 0
    assert fields["m4_prime"].min() < 0
    assert (fields["positive"][fields["m4_prime"] != 0] > 0).all()


@pytest.mark.parametrize("name", PRIMES)
def test_flat_axis(name: str) -> None:
    """Along a flat axis nothing is shared: one layer, index 0, holds what weights in a plane would."""
    x, alpha = cloud()
    x[:, 2] = 0.7
    low, field = to_lattice(name, x, alpha, 0.25, np.array([False, False, True]))
    assert not field[:, :, 1].any() and field.shape[2] == 2
    plane = points(low, field, 0.25)[:, :2]
    for power in ((2, 0), (1, 1), (0, 1), (0, 0)):
        found = (field.reshape(-1, 3) * (plane**power).prod(axis=1)[:, None]).sum(axis=0)
        wanted = (alpha * (x[:, :2] ** power).prod(axis=1)[:, None]).sum(axis=0)
        assert found == pytest.approx(wanted, abs=1e-11)


def test_far_from_the_origin_and_of_any_size() -> None:
    """Totals stay to rounding when the lattice index is 1e6, and when coordinates are 1e-6 or 1e6 m."""
    x, alpha = cloud()
    for shift, scale in ((2.5e5, 1.0), (0.0, 1e-6), (0.0, 1e6)):
        low, field = to_lattice("m4_prime", scale * (x + shift), alpha, 0.25 * scale, SOLID)
        assert field.sum(axis=(0, 1, 2)) == pytest.approx(alpha.sum(axis=0), rel=1e-11)
        mean = (field.reshape(-1, 3) * (points(low, field, 0.25) - shift)[:, :1]).sum(axis=0)
        assert mean == pytest.approx((alpha * x[:, :1]).sum(axis=0), rel=1e-8)


@pytest.mark.parametrize("name", PRIMES)
def test_threads_do_not_matter(name: str) -> None:
    """Case 109: the very same bits on any number of threads."""
    x, alpha = cloud(n=5000)
    check_threads(lambda: to_lattice(name, x, alpha, 0.1, SOLID)[1])


def test_left_out_moments_come_back() -> None:
    """Ten moments of three components of what is left out are taken up to rounding, by a small change."""
    x, alpha = cloud()
    new, residue = with_moments(x[50:], alpha[50:], x[:50], 1e-3 * alpha[:50])
    assert residue < 1e-15
    change = moments(monomials(x[50:], np.zeros(3), 1.0), (new - alpha[50:]).T)
    wanted = moments(monomials(x[:50], np.zeros(3), 1.0), 1e-3 * alpha[:50].T)
    assert change == pytest.approx(wanted, abs=1e-15 * np.abs(alpha).sum())
    # The polynomial factor is of the size of what was left out over what there is, 1e-4, times ten terms.
    assert (np.linalg.norm(new - alpha[50:], axis=1) < 2e-3 * np.linalg.norm(alpha[50:], axis=1)).all()


def test_too_few_points_say_so() -> None:
    """Two points cannot hold ten moments: what is missing is named by the residue."""
    x, alpha = cloud()
    _, residue = with_moments(x[:2], alpha[:2], x[2:4], alpha[2:4])
    assert residue > 1e-3
