"""Errors of a mesh, from the spectrum of the smooth part that it carries.

For strengths of random directions with the sum S of |alpha|^2 per cubic metre, the RMS errors e_u of the
velocity and e_du of the gradient are, with zeta_long, W_u and W_du of `splitting`,

    e^2 = S / (3 pi^2) int zeta_long^2 W dk,

since (alpha x k)^2 is two thirds of alpha^2 k^2 on average. Where strengths point the same way, errors are
equally large, but velocities are larger.

Source: Hockney and Eastwood, Computer Simulation Using Particles, section 8-3.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

import numpy as np

from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.particle_mesh.splitting import WIDTHS, alias_weights, has_edge, smooth_part

REACHES = tuple(np.arange(1.5, 16.1, 0.25).tolist())
"""Allowed reaches of a mesh, in cells."""


def needed_reach(code: Code, sigma: float, velocity: float, gradient: float) -> float | None:
    """The least of `REACHES` with at most these errors, for cells of 1 m and S = 1 m^3/s^2; None if none has.

    ``sigma`` is the core radius in cells; an infinite ``gradient`` means that only velocities are needed. For
    other cells and strengths e_u is proportional to sqrt(S/h) and e_du to sqrt(S/h^3).
    """
    # Core radii are rounded down by up to a fifth, so that few spectra are needed.
    octave = np.floor(4.0 * np.log2(sigma)) / 4.0 if sigma > 0.0 else -np.inf
    core = 0.0 if has_edge(code) or octave < -3.0 else float(2.0**octave)

    def kept(reach: float) -> bool:
        of_u, of_du = errors(code, core, reach)
        return of_u <= velocity and of_du <= gradient

    least = bisect_left(REACHES, True, key=kept)
    return REACHES[least] if least < len(REACHES) else None


@lru_cache(maxsize=1024)
def errors(code: Code, sigma: float, reach: float) -> tuple[float, float]:
    """e_u and e_du on a mesh of cells of 1 m with S = 1 m^3/s^2."""
    waves = smooth_part(code, sigma, reach).spectrum ** 2 * WIDTHS
    of_u, of_du = (np.sqrt(np.sum(waves * part) / (3.0 * np.pi**2)) for part in alias_weights())
    return float(of_u), float(of_du)


def strength_around(x: Array, alpha: Array, targets: Array, low: Array, high: Array, reach: float) -> Array:
    """Sum (m,) of |alpha|^2, m^6/s^2, of the vortons within about the `reach`, m, of each target.

    The error is that of the smooth velocity within the reach, so its square is proportional to this sum.
    Vortons x (3, n) m, alpha (3, n) m^3/s, and targets (m, 3) m lie in the box from ``low`` to ``high`` (3,)
    m. The sum is over the cube of a target and the 26 cubes that touch it, with edges of one reach.
    """
    sides = tuple((np.floor((high - low) / reach).astype(np.int64) + 1).tolist())

    def cubes(place: Array) -> Array:
        cube = np.floor((place - low[:, None]) / reach).astype(np.int64)
        return np.asarray(np.ravel_multi_index(tuple(cube), sides, mode="clip"))

    square = np.einsum("ij,ij->j", alpha, alpha, dtype=np.float64)
    sums = np.bincount(cubes(x), square, minlength=int(np.prod(sides))).reshape(sides)
    for axis in range(3):
        sums = np.moveaxis(sums, axis, 0)
        wide = sums.copy()
        wide[1:] += sums[:-1]
        wide[:-1] += sums[1:]
        sums = np.moveaxis(wide, 0, axis)
    return np.asarray(sums.ravel()[cubes(targets.T)])
