"""Poisson's equation in a box that repeats along some axes: velocity of blobs at grid points by Fourier sums.

Blobs of strength omega V_c at the points of a grid have the vorticity transform omega^(k) z(k sigma), where z
is the transform of the regularisation (`transform` of its record), and

    A^(k) = G(k) z(k sigma) omega^(k),    u^ = i k cross A^.

Along a periodic axis the wave numbers are those of the box. Along an open axis the field is padded with zeros
and G is the Green's function cut off at a distance R along the open axes, beyond which no two points are
apart. With d open axes, kappa the wave number along the periodic axes and s that along the open ones, G is

    d = 0    1/kappa^2, and 0 at kappa = 0: the mean vorticity is taken off, the mean velocity is zero
    d = 1    [1 - e^(-kappa R) (cos s R - (s/kappa) sin s R)]/(kappa^2 + s^2)
    d = 2    [1 + s R J_1(s R) K_0(kappa R) - kappa R J_0(s R) K_1(kappa R)]/(kappa^2 + s^2)

At kappa = 0, the mean over the periodic axes, the last two become (1 - cos s R)/s^2 for d = 1, where blobs
act as sheets with half of the jump on either side, and (1 - J_0(s R))/s^2 for d = 2, where they act as lines.
These are the transforms of -(|z| - R)/2 and -ln(r/R)/(2 pi), which are shifted so that they vanish at R. R
depends on the grid, so a constant at s = 0 takes the shift back: the potential is that of -|z|/2 and
-ln(r)/(2 pi), lengths in m. All is spectral in the grid points; what is left is the error of sharing vortons
among them. Nothing varies along an axis of one point. Source: Vico, Greengard and Ferrando, J. Comput. Phys.
323 (2016).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from scipy import fft, special

from ecs_fluid.kernels.biot_savart.regularisation import Code, record
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.parallel import parallel

Part = tuple[float, Array]
"""A core radius, m, and the vorticity (px, py, pz, 3), 1/s, that vortons of that radius give grid points."""
Steps = tuple[float, float, float]
Sizes = tuple[int, int, int]

TAILS = 2.0
"""Room for the blobs' tails along open axes, in units of the record's `reach`."""

SHORTEST = np.pi * (1 - 1e-9)
"""Wave number times spacing of the shortest wave, less some round-off."""


@parallel("out.shape[0] * out.shape[1]")
def _fold(row: int, field: Array, first: Array, m: int, out: Array) -> None:
    """Fill one line along z of ``out`` (nx, ny, nz m) with the sum of all points of ``field`` (px, py, pz m)
    that lie whole periods from it; ``field`` has the points first, first + 1, ... The order of the sums is
    that of the points along x, then y, then z."""
    nx, ny, width = out.shape
    here = out[row // ny, row % ny]
    line, lines = np.empty(field.shape[2], field.dtype), np.zeros(field.shape[2], field.dtype)
    for j in range((row % ny - first[1]) % ny, field.shape[1], ny):
        line[:] = 0
        for i in range((row // ny - first[0]) % nx, field.shape[0], nx):
            line += field[i, j]
        lines += line
    here[:] = 0
    at = first[2] * m % width
    for k in range(lines.size):
        here[at] += lines[k]
        at = at + 1 if at + 1 < width else 0


def folded(field: Array, first: Any, cells: Any, repeats: Any) -> Array:
    """Sum values at the lattice points first, first + 1, ... over all periods, along axes that repeat.

    The result has the points 0 to ``cells`` - 1 of one period there, and all points along other axes.
    """
    px, py, pz = field.shape[:3]
    m = math.prod(field.shape[3:])
    nx, ny, nz = np.where(repeats, cells, field.shape[:3]).tolist()
    out = np.empty((nx, ny, nz, *field.shape[3:]), field.dtype)
    lines = np.ascontiguousarray(field).reshape(px, py, pz * m)
    _fold(lines, np.where(repeats, first, 0), m, out.reshape(nx, ny, nz * m))
    return out


@parallel("out.shape[0] * out.shape[1]")
def _unfold(row: int, field: Array, below: Array, out: Array) -> None:
    """Fill one line along z of ``out``, which begins ``below`` (3,) points (along z: values) before ``field``
    (nx, ny, nz m), the values of one period, and repeats it."""
    nx, ny, width = field.shape
    i, j = row // out.shape[1], row % out.shape[1]
    given, taken = field[(i - below[0]) % nx, (j - below[1]) % ny], out[i, j]
    at = -below[2] % width
    for k in range(taken.size):
        taken[k] = given[at]
        at = at + 1 if at + 1 < width else 0


def unfolded(field: Array, ghosts: int, repeats: Any) -> Array:
    """The field of one period, repeated from ``ghosts`` points below it to as many above its upper end."""
    nx, ny, nz = field.shape[:3]
    m = math.prod(field.shape[3:])
    below = np.where(repeats, ghosts, 0)
    qx, qy, qz = (field.shape[:3] + np.where(repeats, 2 * ghosts + 1, 0)).tolist()
    out = np.empty((qx, qy, qz, *field.shape[3:]), field.dtype)
    lines = np.ascontiguousarray(field).reshape(nx, ny, nz * m)
    _unfold(lines, below * (1, 1, m), out.reshape(qx, qy, qz * m))
    return out


def _sizes(points: Any, spacing: Steps, repeats: Any, tail: float) -> tuple[Sizes, float]:
    """Points of the padded field, and the distance R at which the Green's function is cut off, m."""
    extent = [0.0 if again else (n - 1) * h for n, h, again in zip(points, spacing, repeats, strict=True)]
    reach = float(np.linalg.norm(extent)) + tail
    padded = [
        n if again else fft.next_fast_len(int(np.ceil((reach + side + tail) / h)) + 1, real=True)
        for n, h, again, side in zip(points, spacing, repeats, extent, strict=True)
    ]
    return (padded[0], padded[1], padded[2]), reach


def shaped(waves: Sequence[Array]) -> list[Array]:
    """Wave numbers along the three axes, shaped so that arrays of different axes combine to a field."""
    return [k.reshape([-1 if a == axis else 1 for a in range(3)]) for axis, k in enumerate(waves)]


def smoothed(waves: Sequence[Array], code: Code, sigma: float) -> Array:
    """z(k sigma), the part that blobs of core radius `sigma` leave of each wave; ``waves`` as by `shaped`."""
    transform = record(code).transform
    assert transform is not None
    return np.asarray(transform(sigma * np.sqrt(sum(part**2 for part in waves))))


@lru_cache(maxsize=8)
def _waves(sizes: Sizes, spacing: Steps) -> list[Array]:
    """Wave numbers along the three axes, 1/m, as by `shaped`."""
    lines = zip(sizes, spacing, strict=True)
    frequencies = [fft.rfftfreq(n, h) if a == 2 else fft.fftfreq(n, h) for a, (n, h) in enumerate(lines)]
    return shaped([2 * np.pi * f for f in frequencies])


@lru_cache(maxsize=8)
def _blob(sizes: Sizes, spacing: Steps, code: Code, sigma: float, dtype: str) -> Array:
    """z(k sigma) at the wave numbers."""
    return smoothed(_waves(sizes, spacing), code, sigma).astype(dtype)


@lru_cache(maxsize=4)
def _spline(sizes: Sizes, spacing: Steps, dtype: str) -> Array:
    """Product over the axes of (2 + cos k h)/3: a wave of a cubic spline's values over that of its
    coefficients."""
    (x, y, z) = ((2 + np.cos(k * h)) / 3 for k, h in zip(_waves(sizes, spacing), spacing, strict=True))
    return np.asarray(x * y * z, dtype)


@lru_cache(maxsize=4)
def _green(sizes: Sizes, spacing: Steps, repeats: tuple[bool, ...], reach: float, dtype: str) -> Array:
    """G(k) in m^2 at the wave numbers."""
    squares = [k**2 for k in _waves(sizes, spacing)]
    kappa2, s2 = (
        sum((part for part, own in zip(squares, repeats, strict=True) if own is again), np.zeros((1, 1, 1)))
        for again in (True, False)
    )
    number = 3 - sum(repeats)
    with np.errstate(divide="ignore", invalid="ignore"):
        green = _cut_off(number, np.sqrt(kappa2), np.sqrt(s2), reach) / (kappa2 + s2)
    extent = math.prod(n * h for n, h, again in zip(sizes, spacing, repeats, strict=True) if not again)
    shift = (0.0, 0.5 * reach, math.log(reach) / (2 * np.pi))[number]
    green[0, 0, 0] = (0.0, 0.5 * reach**2, 0.25 * reach**2)[number] - shift * extent
    return np.asarray(green.astype(dtype))


def _cut_off(open_axes: int, kappa: Array, s: Array, reach: float) -> Array:
    """(kappa^2 + s^2) G for a number of open axes and the cut-off distance ``reach``, 1."""
    if open_axes == 0:
        return np.ones(1)
    q, p = kappa * reach, s * reach
    if open_axes == 1:
        some = 1.0 - np.exp(-q) * (np.cos(p) - p / np.where(q > 0, q, 1.0) * np.sin(p))
        return np.where(q > 0, some, 1.0 - np.cos(p))
    safe = np.where(q > 0, q, 1.0)
    some = 1.0 + p * special.j1(p) * special.k0(safe) - safe * special.j0(p) * special.k1(safe)
    return np.where(q > 0, some, 1.0 - special.j0(p))


def _derivatives(sizes: Sizes, spacing: Steps) -> list[Array]:
    """i times the wave numbers; 0 for the shortest wave of an even number of points, whose slope is 0 at
    them."""
    pairs = zip(_waves(sizes, spacing), spacing, strict=True)
    return [1j * np.where(np.abs(k) * h < SHORTEST, k, 0.0) for k, h in pairs]


def solenoidal(field: Array, spacing: Any) -> Array:
    """The part (px, py, pz, 3) without divergence of vectors on a lattice that repeats along all axes.

    field^ - k (k . field^)/k^2: the part that is a gradient goes, and the mean stays.
    """
    sizes, steps = field.shape[:3], (float(spacing[0]), float(spacing[1]), float(spacing[2]))
    ik, workers = _derivatives(sizes, steps), numba.get_num_threads()
    waves = [fft.rfftn(field[..., c], workers=workers) for c in range(3)]
    squares = -sum(part**2 for part in ik).real
    along = sum(part * wave for part, wave in zip(ik, waves, strict=True)) / np.where(
        squares > 0, squares, 1.0
    )
    parts = (wave + part * along for part, wave in zip(ik, waves, strict=True))
    return np.stack([fft.irfftn(part, sizes, workers=workers) for part in parts], axis=-1)


class Fourier:
    """Fields of blobs that repeat, from the vorticity that vortons have shared among the points of a grid.

    Args:
        parts: pairs of core radius and vorticity; the points of one period along axes that repeat, of the
            whole grid along others.
        spacing: (3,) m.
        repeats: (3,) which axes repeat, one at least.
        code: of the regularisation.
        by_spline: whether the vorticity was shared with B-spline weights, whose blur is taken back here.
    """

    def __init__(
        self, parts: Sequence[Part], spacing: Any, repeats: Any, code: Code, by_spline: bool = False
    ) -> None:
        self._points, self._type = parts[0][1].shape[:3], parts[0][1].dtype
        self._steps = float(spacing[0]), float(spacing[1]), float(spacing[2])
        again = tuple(bool(one) for one in repeats)
        tail = TAILS * record(code).reach * max(sigma for sigma, _ in parts)
        self._sizes, reach = _sizes(self._points, self._steps, again, tail)
        self._green = _green(self._sizes, self._steps, again, reach, self._type.name)
        self._omega: list[Any] = [0, 0, 0]
        for sigma, omega in parts:
            blob = _blob(self._sizes, self._steps, code, float(sigma), self._type.name)
            if by_spline:
                blob = blob / _spline(self._sizes, self._steps, self._type.name)
            for c in range(3):
                waves = fft.rfftn(omega[..., c], self._sizes, workers=numba.get_num_threads())
                self._omega[c] = self._omega[c] + blob * waves

    def _back(self, waves: Sequence[Array]) -> Array:
        nx, ny, nz = self._points
        out = np.empty((nx, ny, nz, 3), self._type)
        for c in range(3):
            out[..., c] = fft.irfftn(waves[c], self._sizes, workers=numba.get_num_threads())[:nx, :ny, :nz]
        return out

    def vorticity(self) -> Array:
        """Vorticity (px, py, pz, 3) 1/s of the blobs."""
        return self._back(self._omega)

    def potential(self) -> Array:
        """Vector potential (px, py, pz, 3) m^2/s."""
        return self._back([self._green * part for part in self._omega])

    def velocity(self) -> Array:
        """Velocity (px, py, pz, 3) m/s."""
        (x, y, z), g = self._omega, self._green
        ik = [part.astype(x.dtype) for part in _derivatives(self._sizes, self._steps)]
        curl = ik[1] * z - ik[2] * y, ik[2] * x - ik[0] * z, ik[0] * y - ik[1] * x
        return self._back([g * part for part in curl])
