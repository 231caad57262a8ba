"""How far a mesh is off, from the spectrum of the smooth part that it carries.

A mesh of cells h cannot tell a wave of k from one of 2 pi/h - k; splines of order p let the second in with

    w(k) = min(1, k h / (2 pi - k h))^p

of the first, and the smooth velocity of a point has waves of size zeta(k)/k, where zeta is the transform of
its vorticity (1 at k = 0). Strengths of random directions, of which a cubic metre holds sum |alpha|^2 = S,
then have RMS errors e_u of the velocity and e_du of the gradient (whose waves are as short as the aliases),

    e_u^2  = c^2 S / (2 pi^2) int zeta^2 w^2 dk,
    e_du^2 = c^2 S / (2 pi^2) int zeta^2 w^2 (2 pi/h - k)^2 dk.

The factor c stands for directions: along most, waves are farther from their aliases than along the axes. As
measured it is 0.34 to 0.49 for blobs of all kinds, cores of 0 to 1.5 cells and reaches of 2 to 8
(docs/notes/velocity.md). Where strengths point the same way errors are as large, and velocities larger.

By parts, with q = 4 pi int zeta r^2 dr and q_long = r^3 g_long (``splitting``), and sinc(x) = sin(x)/x,

    zeta_long(k) = zeta(k) - int_0^R (q_long - q) d/dr sinc(k r) dr.

Source: Hockney and Eastwood, Computer Simulation Using Particles, section 8-3, whose sums over directions and
aliases are the integrals here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart.regularisation import Code, record
from ecs_fluid.kernels.particle_mesh.near import TERMS
from ecs_fluid.kernels.particle_mesh.splines import ORDER
from ecs_fluid.kernels.particle_mesh.splitting import ends, share_within, smooth_part

Array = NDArray[Any]

REACHES = np.arange(2.0, 16.1, 0.25)
"""Reaches, in cells, that a mesh may have."""

DIRECTIONS = 0.45
"""c."""

_POINT = 1e-4
"""Core radius, in reaches, of what stands for a point."""


def needed_reach(code: Code, sigma: float, velocity: float, gradient: float) -> float | None:
    """The least of `REACHES` with such errors on a mesh of cells of 1 m and with S = 1 m^3/s^2.

    ``sigma`` is the core radius in cells. For other cells and strengths e_u goes like sqrt(S/h) and e_du like
    sqrt(S/h^3). None if none does.
    """
    # Cores up to a fifth thinner, so that few spectra do for all.
    octave = np.floor(4.0 * np.log2(sigma)) / 4.0 if sigma > 0.0 else -np.inf
    table = _errors(code, 0.0 if ends(code) or octave < -3.0 else float(2.0**octave))
    kept = np.flatnonzero((table[0] <= velocity) & (table[1] <= gradient))
    return float(REACHES[kept[0]]) if len(kept) else None


@lru_cache(maxsize=128)
def _errors(code: Code, sigma: float) -> Array:
    """(2, reaches): e_u and e_du on a mesh of cells of 1 m."""
    nodes, weights = np.polynomial.legendre.leggauss(96)
    k, share = np.pi * (nodes + 1.0), np.pi * weights
    let_in = np.minimum(1.0, k / (2.0 * np.pi - k)) ** ORDER
    found = np.empty((2, len(REACHES)))
    for i, reach in enumerate(REACHES):
        waves = (_spectrum(code, max(sigma, _POINT * reach), float(reach), k) * let_in) ** 2 * share
        found[:, i] = np.sum(waves), np.sum(waves * (2.0 * np.pi - k) ** 2)
    return np.asarray(DIRECTIONS * np.sqrt(found / (2.0 * np.pi**2)))


def _spectrum(code: Code, sigma: float, reach: float, k: Array) -> Array:
    """zeta_long at wave numbers k 1/m."""
    nodes, weights = np.polynomial.legendre.leggauss(32)
    r = 0.5 * reach * (nodes + 1.0)
    long = r**3 * np.polyval(smooth_part(code, sigma, reach, TERMS)[::-1], 1.0 - (r / reach) ** 2)
    within = np.array([share_within(code, np.array([sigma]), float(one))[0] for one in r])
    kr = np.outer(k, r)
    slope = (np.cos(kr) - np.sin(kr) / kr) / kr * k[:, None]
    own = record(code).transform
    assert own is not None  # every blob in space has one
    return np.asarray(own(k * sigma) - slope @ (0.5 * reach * weights * (long - within)))
