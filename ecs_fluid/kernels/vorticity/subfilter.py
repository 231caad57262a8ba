"""Stretching below the cores of the vortons: an anisotropic model and its dynamic coefficient.

    E(x) = sum_q zeta_sigma(x - x_q) (alpha_q . grad) (u(x) - u(x_q)),
    d(alpha_p)/dt = -C E(x_p) / zeta_sigma(0),  C = (alpha . L) / (alpha . m),
    L = 3/sigma (alpha . grad)(v - u) + (alpha . grad) du/dsigma,  m = sigma^3/zeta(0) dE/dsigma,

where derivatives are differences to a test filter, whose velocity also stands for the unfiltered v. All sums
end at the regularisation's ``reach``, in core radii of the source. Source: Alvarez and Ning, Phys. Fluids 35
(2023), arXiv 2206.03658; derivation in docs/notes/vorticity.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart.regularisation import EXACT, RECORDS, Code, Regularisation, record
from ecs_fluid.kernels.biot_savart.selection import (
    by_code,
    core_constant,
    core_shift,
    gradient_factors,
    renamed,
)
from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.grids.neighbours import box_of, runs_around

Array = NDArray[Any]
Grid = tuple[Array, Array, Array]

_OPTIONS: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy"}


_RUN: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy", "forceinline": True}


def _densities_of(blob: Regularisation) -> Any:
    density = blob.density

    def fill(
        px: float, py: float, pz: float, x: Array, y: Array, z: Array, s2: Array, cut: float, w: Array
    ) -> None:
        zero = w.dtype.type(0)
        for q in range(x.shape[0]):
            dx, dy, dz, square = px - x[q], py - y[q], pz - z[q], s2[q]
            r2 = dx * dx + dy * dy + dz * dz
            value = density(r2, square)
            w[q] = zero if r2 > cut * square else value

    return njit(**EXACT)(renamed(fill, f"densities_{blob.name}"))


_densities = by_code(
    "densities", [_densities_of(blob) for blob in RECORDS], "px, py, pz, x, y, z, s2, cut, w"
)
"""w_q = zeta_q at p for one run of sources, 0 beyond the cut."""


@njit(**_RUN)
def _factor_changes(
    code: Code, px: float, py: float, pz: float, x: Array, y: Array, z: Array, s2: Array, t2: Array,
    cut: float, g: Array, h: Array,
) -> None:  # fmt: skip
    """Changes of the gradient's factors from core radii squared ``s2`` to ``t2``, 0 beyond the cut."""
    real = g.dtype.type
    scale, zero = real(1.0 / (32.0 * math.pi)), real(0)
    for q in range(x.shape[0]):
        dx, dy, dz, wide, narrow = px - x[q], py - y[q], pz - z[q], s2[q], t2[q]
        r2 = dx * dx + dy * dy + dz * dz
        g0, h0 = gradient_factors(code, r2 + core_shift(code, wide), wide, core_constant(code, wide))
        g1, h1 = gradient_factors(code, r2 + core_shift(code, narrow), narrow, core_constant(code, narrow))
        far = r2 > cut * wide
        g[q] = zero if far else scale * (g1 - g0)
        h[q] = zero if far else scale * (h1 - h0)


@njit(**_RUN)
def _add_gradients(
    px: float, py: float, pz: float, x: Array, y: Array, z: Array, a: Array, b: Array, c: Array, g: Array,
    h: Array, out: Array,
) -> None:  # fmt: skip
    """Add g [alpha x] + h (alpha x r) r of one run of sources to ``out`` (9,)."""
    zero = out.dtype.type(0)
    xx, xy, xz, yx, yy, yz, zx, zy, zz = zero, zero, zero, zero, zero, zero, zero, zero, zero
    for q in range(x.shape[0]):
        dx, dy, dz = px - x[q], py - y[q], pz - z[q]
        cx = h[q] * (b[q] * dz - c[q] * dy)
        cy = h[q] * (c[q] * dx - a[q] * dz)
        cz = h[q] * (a[q] * dy - b[q] * dx)
        ga, gb, gc = g[q] * a[q], g[q] * b[q], g[q] * c[q]
        xx += cx * dx
        xy += cx * dy - gc
        xz += cx * dz + gb
        yx += cy * dx + gc
        yy += cy * dy
        yz += cy * dz - ga
        zx += cz * dx - gb
        zy += cz * dy + ga
        zz += cz * dz
    for row, value in enumerate((xx, xy, xz, yx, yy, yz, zx, zy, zz)):
        out[row] += value


@parallel(**_OPTIONS)
def _near_sums(
    chunk: int,
    code: Code, sx: Array, s2: Array, t2: Array, alpha: Array, values: Array, reach: float, cut: float,
    start: Array, origin: Array, spacing: Array, cells: Array, width: int, sums: Array, gradient: Array,
) -> None:  # fmt: skip
    """Over neighbours q: sums (m, n) of zeta_q values_q, and, where ``gradient`` (9, n) has rows, J' - J."""
    n, m = sx.shape[1], values.shape[0]
    w, h, total = np.empty(width, sx.dtype), np.empty(width, sx.dtype), np.empty(9, sx.dtype)
    runs, box = np.empty((cells[0] * cells[1], 2), np.int64), np.empty((2, 3), sx.dtype)
    for p in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        px, py, pz = sx[0, p], sx[1, p], sx[2, p]
        box_of(sx.T, p, p + 1, box)
        total[:] = 0
        for v in range(m):
            sums[v, p] = 0
        for run in range(runs_around(box, start, origin, spacing, cells, reach, runs)):
            first, last = runs[run, 0], runs[run, 1]
            x, y, z = sx[0, first:last], sx[1, first:last], sx[2, first:last]
            if m > 0:
                _densities(code, px, py, pz, x, y, z, s2[first:last], cut, w)
                for v in range(m):
                    source, gain = values[v, first:last], sx.dtype.type(0)
                    for q in range(source.shape[0]):
                        gain += w[q] * source[q]
                    sums[v, p] += gain
            if gradient.shape[0] > 0:
                a, b, c = alpha[0, first:last], alpha[1, first:last], alpha[2, first:last]
                _factor_changes(code, px, py, pz, x, y, z, s2[first:last], t2[first:last], cut, w, h)
                _add_gradients(px, py, pz, x, y, z, a, b, c, w, h, total)
        for v in range(gradient.shape[0]):
            gradient[v, p] = total[v]


def _sums(
    code: Code, sx: Array, sigma: Array, small: Array, alpha: Array, values: Array, start: Array, grid: Grid,
    rows: int,
) -> tuple[Array, Array]:  # fmt: skip
    n, blob_reach = sx.shape[1], record(code).reach
    sums, gradient = np.empty((len(values), n), sx.dtype), np.empty((rows, n), sx.dtype)
    if n:
        # Test filters are smaller than the filter, so that the reach of the filter serves both.
        reach = blob_reach * float(sigma.max()) * (1 + 1e-5)
        cut = sx.dtype.type(blob_reach**2)
        # Most vortons in one row of cells (fixed i, j).
        width = int(np.diff(start[:: int(grid[2][2])]).max())
        _near_sums(
            code, sx, sigma * sigma, small * small, alpha, values, reach, cut, start, *grid, width,
            sums, gradient,
        )  # fmt: skip
    return sums, gradient


def blob_sums(code: Code, sx: Array, sigma: Array, values: Array, start: Array, grid: Grid) -> Array:
    """sum_q zeta(|x_p - x_q|/sigma_q)/sigma_q^3 values_q at every vorton: (m, n), unit of values per m^3.

    ``sx`` (3, n) m, ``sigma`` (n,) m and ``values`` (m, n), sorted by the cells of ``grid`` with ``start`` as
    ``partition`` made it. With values alpha it is the blobs' vorticity, 1/s.
    """
    return _sums(code, sx, sigma, sigma, values[:3], values, start, grid, 0)[0]


def gradient_change(
    code: Code, sx: Array, sigma: Array, alpha: Array, ratio: float, start: Array, grid: Grid
) -> Array:
    """Velocity gradient with all core radii times ``ratio`` < 1, less that with the core radii: (9, n), 1/s.

    Row 3 i + j is du_i/dx_j. ``alpha`` (3, n) m^3/s; the rest as for ``blob_sums``.
    """
    small = sigma * sigma.dtype.type(ratio)
    return _sums(code, sx, sigma, small, alpha, alpha[:0], start, grid, 9)[1]


@parallel(**_OPTIONS)
def model(chunk: int, du: Array, omega: Array, smooth: Array, out: Array) -> None:
    """E = J omega - smooth of every vorton into ``out`` (3, n), 1/s^2.

    ``du`` (9, n) 1/s; ``omega`` (3, n) 1/s and ``smooth`` (3, n) 1/s^2 are the blob sums of alpha and of
    J alpha.
    """
    n = out.shape[1]
    for p in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        for i in range(3):
            out[i, p] = (
                du[3 * i, p] * omega[0, p]
                + du[3 * i + 1, p] * omega[1, p]
                + du[3 * i + 2, p] * omega[2, p]
                - smooth[i, p]
            )


@parallel(**_OPTIONS)
def add_model(
    chunk: int, alpha: Array, scale: Array, model: Array, coefficient: Array, most: float, rate: Array
) -> None:
    """rate = -C E sigma^3/zeta(0), 0 where it would make enstrophy, at most ``most`` |alpha|.

    Args:
        alpha: strengths (3, n), m^3/s.
        scale: sigma^3/zeta(0), (n,), m^3.
        model: E (3, n), 1/s^2.
        coefficient: C (n,).
        most: largest rate of decay, 1/s, of the arrays' dtype.
        rate: (3, n), m^3/s^2, overwritten.
    """
    n = alpha.shape[1]
    zero = alpha.dtype.type(0)
    for p in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        factor = coefficient[p] * scale[p]
        x, y, z = factor * model[0, p], factor * model[1, p], factor * model[2, p]
        ax, ay, az = alpha[0, p], alpha[1, p], alpha[2, p]
        if not ax * x + ay * y + az * z > zero:
            x, y, z = zero, zero, zero
        size, limit = np.sqrt(x * x + y * y + z * z), most * np.sqrt(ax * ax + ay * ay + az * az)
        if size > limit:
            cut = limit / size
            x, y, z = cut * x, cut * y, cut * z
        rate[0, p], rate[1, p], rate[2, p] = -x, -y, -z
