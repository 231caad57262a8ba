"""Vortons in hard and easy places, and what tests of the fast multipole method measure on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import CODES, Code
from ecs_fluid.kernels.fmm import fast_multipole

Array = NDArray[Any]
Cloud = tuple[Array, Array, Array]
WINCKELMANS = CODES["winckelmans"]


# Flows: position (n, 3), strength (n, 3), core radius (n,)


def thick_ring(n: int) -> Cloud:
    """Vortons uniform over the section (radius 0.2) of a ring of radius 1; overlap sigma/spacing 1.5."""
    rng = np.random.default_rng(5)
    angle, section = 2.0 * np.pi * rng.random((2, n))
    r = 0.2 * np.sqrt(rng.random(n))
    rho = 1.0 + r * np.cos(section)
    x = np.stack([rho * np.cos(angle), rho * np.sin(angle), r * np.sin(section)], axis=1)
    alpha = np.stack([-np.sin(angle), np.cos(angle), 0.0 * angle], axis=1) / n
    return x, alpha, np.full(n, 1.5 * (2.0 * np.pi**2 * 0.04 / n) ** (1 / 3))


def cube(n: int) -> Cloud:
    """Random strengths of both signs: far fields cancel, the hardest case for a relative error."""
    rng = np.random.default_rng(6)
    return rng.random((n, 3)), rng.standard_normal((n, 3)), np.full(n, 1.5 * n ** (-1 / 3))


def smooth_cube(n: int) -> Cloud:
    """Cores of 4.5 spacings: leaves are smaller than a core (case 55)."""
    x, alpha, sigma = cube(n)
    return x, alpha, 3.0 * sigma


def sharp_cube(n: int) -> Cloud:
    """Cores of a tenth of the spacing."""
    x, alpha, sigma = cube(n)
    return x, alpha, sigma / 15.0


def mixed_cores(n: int) -> Cloud:
    """Neighbours whose core radii differ by up to a factor of two."""
    x, alpha, sigma = cube(n)
    return x, alpha, sigma * (0.5 + 0.5 * np.random.default_rng(7).random(n))


def clusters(n: int) -> Cloud:
    """Two clouds 300 diameters apart, one of a third of the vortons in a tenth of the size."""
    x, alpha, sigma = cube(n)
    x[: n // 3] *= 0.1
    sigma[: n // 3] *= 0.1
    x[n // 3 :, 0] += 300.0
    return x, alpha, sigma


def plane(n: int) -> Cloud:
    x, alpha, sigma = cube(n)
    x[:, 2] = 0.3
    return x, alpha, 0.0 * sigma + 1.5 * n**-0.5


def line(n: int) -> Cloud:
    x, alpha, sigma = cube(n)
    x[:, 1:] = 0.3
    return x, alpha, 0.0 * sigma + 1.5 / n


def thin_ring(n: int) -> Cloud:
    """Evenly along a circle, cores of 1.5 spacings: a line with a direction."""
    angle = 2.0 * np.pi * np.arange(n) / n
    alpha = np.stack([-np.sin(angle), np.cos(angle), 0.0 * angle], axis=1) / n
    return np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1), alpha, np.full(n, 3.0 * np.pi / n)


def shell(n: int) -> Cloud:
    """The vortex sheet of a sphere in a stream."""
    x = np.random.default_rng(9).standard_normal((n, 3))
    x /= np.linalg.norm(x, axis=1)[:, None]
    return x, np.cross([0.0, 0.0, 1.0], x) / n, np.full(n, 1.5 * np.sqrt(4.0 * np.pi / n))


def all_cores(n: int) -> Cloud:
    """Neighbours whose core radii differ by up to a factor of 100."""
    x, alpha, sigma = cube(n)
    return x, alpha, sigma * 10.0 ** (-2.0 * np.random.default_rng(7).random(n))


def specks(n: int) -> Cloud:
    """Half of the vortons in eight specks of 1e-5 m, 1e-4 m apart, in a box of 1e3 m with the others."""
    rng = np.random.default_rng(10)
    x, sigma = 1e3 * rng.random((n, 3)), np.full(n, 50.0)
    x[: n // 2] = 500.0 + 1e-4 * rng.random((8, 3))[rng.integers(0, 8, n // 2)]
    x[: n // 2] += 1e-5 * rng.random((n // 2, 3))
    sigma[: n // 2] = 1e-6
    return x, rng.standard_normal((n, 3)), sigma


def strong_place(n: int) -> Cloud:
    """A ring, and half a per cent of the vortons in a place with a thousand times its velocity."""
    x, alpha, sigma = thick_ring(n)
    rng = np.random.default_rng(11)
    k = n // 200
    x[:k] = np.array([3.0, 0.0, 0.0]) + 0.02 * rng.random((k, 3))
    alpha[:k], sigma[:k] = 50.0 * rng.standard_normal((k, 3)) / n, 0.002
    return x, alpha, sigma


def dipoles(n: int) -> Cloud:
    """Opposite vortons side by side at a hundredth of their core radius: the velocity nearly cancels."""
    x, alpha, sigma = cube(n)
    x[n // 2 :] = x[: n - n // 2] + 1e-3 * np.random.default_rng(12).standard_normal((n - n // 2, 3))
    alpha[n // 2 :] = -alpha[: n - n // 2]
    return x, alpha, sigma


def uneven_strengths(n: int) -> Cloud:
    """Strengths over four decades."""
    x, alpha, sigma = cube(n)
    return x, alpha * 10.0 ** (4.0 * np.random.default_rng(13).random((n, 1)) - 2.0), sigma


def spaced(n: int) -> Cloud:
    """Distances from the origin spread over four decades, core radii a tenth of them."""
    x, direction, _ = cube(n)
    r = 10.0 ** (-4.0 * x[:, :1])
    return r * direction / np.linalg.norm(direction, axis=1)[:, None], direction * r**2, 0.1 * r[:, 0]


def pairs_of_twins(n: int) -> Cloud:
    """Every position twice, with different strengths."""
    x, alpha, sigma = cube(n)
    x[n // 2 :] = x[: n - n // 2]
    return x, alpha, sigma


FLOWS = [
    thick_ring,
    cube,
    smooth_cube,
    sharp_cube,
    mixed_cores,
    clusters,
    plane,
    line,
    spaced,
    pairs_of_twins,
    thin_ring,
    shell,
    all_cores,
    specks,
    strong_place,
    dipoles,
    uneven_strengths,
]


def arrays(cloud: Cloud, real: Any) -> tuple[Array, Array, Array, Array]:
    x, alpha, sigma = (np.ascontiguousarray(a.astype(real)) for a in cloud)
    return x, np.ascontiguousarray(x.T), np.ascontiguousarray(alpha.T), sigma


def rms(a: Array) -> float:
    return float(np.sqrt(np.mean(np.sum(a.reshape(len(a), -1).astype(float) ** 2, axis=1))))


def gradient(code: Code, cloud: Cloud, tolerance: float, real: Any = np.float64, **how: Any) -> Any:
    """u, du and the work of the method at the vortons themselves."""
    x, sx, sa, sigma = arrays(cloud, real)
    u, du = np.full_like(x, np.nan), np.full((len(x), 3, 3), np.nan, real)
    plan = fast_multipole.plan(code, sx, sa, sigma, tolerance, **how)
    work = fast_multipole.velocity(plan, x, u, du)
    return u, du, work


def exact_gradient(code: Code, cloud: Cloud) -> tuple[Array, Array]:
    x, sx, sa, sigma = arrays(cloud, np.float64)
    u, du = np.empty_like(x), np.empty((len(x), 3, 3))
    direct.velocity_gradient(code, x, sx, sa, sigma, u, du)
    return u, du


def assert_tolerance_is_kept(results: Any, exact: Any, tolerance: float) -> None:
    """RMS errors below the tolerance, no point off by more than 15 times that."""
    for result, reference in zip(results, exact, strict=True):
        assert rms(result - reference) < tolerance * rms(reference)
        assert np.abs(result - reference).max() < 15.0 * tolerance * rms(reference)
