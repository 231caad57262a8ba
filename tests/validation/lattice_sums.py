"""Velocity of blobs that repeat along some axes, by sums that share nothing with the package (Ewald).

The blob's velocity is split in that of a wide Gaussian and a rest. The rest decays fast and is summed over
images; the Gaussian's part is a Fourier sum along the periodic axes. Along open axes its Fourier integral is
done by a trapezoidal rule in one of them and by Gauss's rule over |s| in two (J_0, J_1), and where the wave
number along the periodic axes vanishes by the closed forms of a diffuse sheet, erf(z/(sqrt 2 w))/2, and of a
diffuse line, (1 - exp(-r^2/(2 w^2)))/(2 pi r). Source: Ewald, Ann. Phys. 369 (1921).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, j0, j1

Array = NDArray[Any]


def gaussian(rho: Array) -> Array:
    """q(rho) of a Gaussian blob."""
    return np.asarray(erf(rho / np.sqrt(2)) - np.sqrt(2 / np.pi) * rho * np.exp(-(rho**2) / 2))


def winckelmans(rho: Array) -> Array:
    """q(rho) of Winckelmans and Leonard's blob."""
    return np.asarray(rho**3 * (rho**2 + 2.5) / (rho**2 + 1) ** 2.5)


def rankine(rho: Array) -> Array:
    """q(rho) of a ball of uniform vorticity."""
    return np.asarray(np.minimum(rho**3, 1.0))


def velocity(
    q: Callable[[Array], Array], x: Array, sources: Array, alpha: Array, sigma: float, periods: Array,
    shells: int = 3, wide: float = 0.2,
) -> Array:  # fmt: skip
    """u (m, 3) at x (m, 3) of blobs and all their images; `wide` is the Gaussian's radius in periods."""
    w = wide * periods[periods > 0].min()
    r0 = x[:, None] - sources
    slope = np.zeros_like(r0)  # u = curl (G alpha) = grad G cross alpha, summed over images and waves first
    copies = np.ceil(shells * periods.max() / np.where(periods > 0, periods, np.inf)).astype(int)
    ranges = [range(-n, n + 1) for n in copies]
    for shift in product(*ranges):
        r = r0 + np.array(shift) * periods
        d = np.maximum(np.linalg.norm(r, axis=2), 1e-12)
        rest = (q(d / sigma) - gaussian(d / w)) / (4 * np.pi * d**3)
        slope -= rest[..., None] * r
    for wave in _waves(periods, w):
        slope += _gradient(wave, r0, periods, w)
    return np.asarray(np.cross(slope, alpha).sum(axis=1))


def _waves(periods: Array, w: float) -> list[Array]:
    """Wave numbers along the periodic axes, 0 along open ones, up to 7/w."""
    most = [int(7 / w * period / (2 * np.pi)) for period in periods]
    numbers = product(*(range(-n, n + 1) for n in most))
    safe = np.where(periods > 0, periods, 1.0)
    return [np.array(n) * 2 * np.pi / safe for n in numbers]


def _gradient(k: Array, r: Array, periods: Array, w: float) -> Array:
    """The wave k's part of grad G (m, n, 3) of a Gaussian blob at distances r (m, n, 3)."""
    open_axes = np.flatnonzero(periods == 0)
    kappa = float(np.linalg.norm(k))
    phase = np.exp(1j * (r @ k)) / np.prod(periods[periods > 0])
    out = np.zeros(r.shape)
    if len(open_axes) == 0:
        if kappa > 0:
            out = (1j * k * (phase * np.exp(-((kappa * w) ** 2) / 2) / kappa**2)[..., None]).real
    elif len(open_axes) == 1:
        (a,) = open_axes
        if kappa == 0:
            out[..., a] = -0.5 * erf(r[..., a] / (np.sqrt(2) * w)) * phase.real
        else:
            s = np.linspace(-8 / w, 8 / w, 241)
            weight = np.exp(-(kappa**2 + s**2) * w**2 / 2) / (kappa**2 + s**2) * (s[1] - s[0]) / (2 * np.pi)
            waves = np.exp(1j * r[..., a, None] * s)
            out = (1j * k * (phase * (waves @ weight))[..., None]).real
            out[..., a] += (phase * (waves @ (1j * s * weight))).real
    else:
        across = r[..., open_axes]
        d = np.maximum(np.linalg.norm(across, axis=-1), 1e-12)
        if kappa == 0:
            slope, value = -(1 - np.exp(-(d**2) / (2 * w**2))) / (2 * np.pi * d), 0.0 * d
        else:
            node, weight = np.polynomial.legendre.leggauss(200)
            s = 4 / w * (node + 1)
            weight = 4 / w * weight * s / (2 * np.pi)
            weight *= np.exp(-(kappa**2 + s**2) * w**2 / 2) / (kappa**2 + s**2)
            value, slope = j0(d[..., None] * s) @ weight, -j1(d[..., None] * s) @ (weight * s)
        out = (1j * k * (phase * value)[..., None]).real
        out[..., open_axes] += (phase * slope).real[..., None] * across / d[..., None]
    return out
