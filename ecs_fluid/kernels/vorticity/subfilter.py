"""Stretching by scales below the cores of vortons: an anisotropic model and its dynamic coefficient.

    E(x) = sum_q zeta_sigma(x - x_q) (alpha_q . grad) (u(x) - u(x_q)),
    d(alpha_p)/dt = -C E(x_p) / zeta_sigma(0),  C = (alpha . L) / (alpha . m),
    L = 3/sigma (alpha . grad)(v - u) + (alpha . grad) du/dsigma,  m = sigma^3/zeta(0) dE/dsigma,

where derivatives with respect to sigma are differences to a test filter, whose velocity also replaces the
unfiltered v. All sums end at the ``reach`` of the regularisation, in core radii of the source. Source:
Alvarez and Ning, Phys. Fluids 35 (2023), arXiv 2206.03658; derivation in docs/notes/vorticity.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.biot_savart.regularisation import Code, record
from ecs_fluid.kernels.biot_savart.regularisation_dispatch import (
    core_constant,
    core_shift,
    gradient_factors,
    potential_factors,
    renamed,
)
from ecs_fluid.kernels.compiled import CHUNKS, FAST_LOOP, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import LANES, wide_vectors
from ecs_fluid.kernels.grids.grid import Grid
from ecs_fluid.kernels.grids.neighbours import GROUP, WIDTH, box_of, fill_list, runs_around

VALUES = 6
"""Number of quantities that `blob_sums` adds up at once."""


@njit(**FAST_LOOP)
def _add_blobs(
    code: Code, px: float, py: float, pz: float, near: Array, count: int, cut: float, sums: Array
) -> None:
    """Add the sums of zeta_q values_q over the first ``count`` of a list to ``sums`` (VALUES,).

    ``near`` has the columns x, y, z, s2 = sigma^2 and the values; a column of zeros adds nothing. Sources
    beyond ``cut``, the square of the reach in core radii, do not count.
    """
    wide_vectors()
    x = near[:WIDTH]
    y = near[WIDTH : 2 * WIDTH]
    z = near[2 * WIDTH : 3 * WIDTH]
    s2 = near[3 * WIDTH : 4 * WIDTH]
    v0, v1, v2 = near[4 * WIDTH : 5 * WIDTH], near[5 * WIDTH : 6 * WIDTH], near[6 * WIDTH : 7 * WIDTH]
    v3, v4, v5 = near[7 * WIDTH : 8 * WIDTH], near[8 * WIDTH : 9 * WIDTH], near[9 * WIDTH : 10 * WIDTH]
    zero = near.dtype.type(0)
    a = b = c = d = e = f = zero
    for q in range(count):
        dx, dy, dz, square = px - x[q], py - y[q], pz - z[q], s2[q]
        r2 = dx * dx + dy * dy + dz * dz
        _, w = potential_factors(code, r2 + core_shift(code, square), square, core_constant(code, square))
        w = zero if r2 >= cut * square else w
        a += w * v0[q]
        b += w * v1[q]
        c += w * v2[q]
        d += w * v3[q]
        e += w * v4[q]
        f += w * v5[q]
    for row, value in enumerate((a, b, c, d, e, f)):
        sums[row] += value


CHANGED = 8
"""Columns of a source whose core radius changes: x, y, z, squared radii before and after, strength (3)."""


@njit(**FAST_LOOP)
def _add_changes(
    code: Code, px: float, py: float, pz: float, near: Array, count: int, cut: float, sums: Array
) -> None:
    """Add 32 pi times the change of the velocity gradient by the first ``count`` of a list to ``sums`` (9,).

    A source adds g [alpha x] + h (alpha x r) r, with g and h the changes of the two factors of the gradient
    as the squared core radius goes from s2 to t2. Sources beyond ``cut`` do not count (see `_add_blobs`).
    ``near`` has the columns x, y, z, s2, t2 and the strengths.
    """
    wide_vectors()
    x = near[:WIDTH]
    y = near[WIDTH : 2 * WIDTH]
    z = near[2 * WIDTH : 3 * WIDTH]
    s2 = near[3 * WIDTH : 4 * WIDTH]
    t2 = near[4 * WIDTH : 5 * WIDTH]
    a = near[5 * WIDTH : 6 * WIDTH]
    b = near[6 * WIDTH : 7 * WIDTH]
    c = near[7 * WIDTH : 8 * WIDTH]
    zero = near.dtype.type(0)
    xx = xy = xz = yx = yy = yz = zx = zy = zz = zero
    for q in range(count):
        dx, dy, dz, wide, narrow = px - x[q], py - y[q], pz - z[q], s2[q], t2[q]
        r2 = dx * dx + dy * dy + dz * dz
        g0, h0 = gradient_factors(code, r2 + core_shift(code, wide), wide, core_constant(code, wide))
        g1, h1 = gradient_factors(code, r2 + core_shift(code, narrow), narrow, core_constant(code, narrow))
        far = r2 >= cut * wide
        g, h = zero if far else g1 - g0, zero if far else h1 - h0
        ga, gb, gc = g * a[q], g * b[q], g * c[q]
        cx, cy, cz = h * (b[q] * dz - c[q] * dy), h * (c[q] * dx - a[q] * dz), h * (a[q] * dy - b[q] * dx)
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
        sums[row] += value


def _over_neighbours(name: str, add: Any, columns: int, rows: int, scale: float) -> Any:
    """Make the kernel that fills ``out`` (m, n), m <= ``rows``, with ``scale`` times the sums of ``add``.

    The sums run over the vortons around the places ``at`` (3, n), of which each `GROUP` one after the other
    are best neighbours; ``data`` (``columns``, vortons + LANES) begins with x, y, z.
    """

    def sums_over(
        chunk: int, code: Code, at: Array, data: Array, reach: float, cut: float, start: Array, origin: Array,
        spacing: Array, cells: Array, out: Array,
    ) -> None:  # fmt: skip
        n, factor = out.shape[1], data.dtype.type(scale)
        groups = (n + GROUP - 1) // GROUP
        runs, box = np.empty((cells[0] * cells[1], 2), np.int64), np.empty((2, 3), data.dtype)
        near, sums = np.empty(columns * WIDTH, data.dtype), np.empty((GROUP, rows), data.dtype)
        for group in range(chunk * groups // CHUNKS, (chunk + 1) * groups // CHUNKS):
            first, last = group * GROUP, min((group + 1) * GROUP, n)
            box_of(at.T, first, last, box)
            number, run = runs_around(box, start, origin, spacing, cells, reach, runs), 0
            sums[:] = 0
            while run < number:
                count, run = fill_list(data, runs, number, run, near)
                for p in range(first, last):
                    add(code, at[0, p], at[1, p], at[2, p], near, count, cut, sums[p - first])
            for p in range(first, last):
                for row in range(out.shape[0]):
                    out[row, p] = factor * sums[p - first, row]

    return parallel(**FAST_LOOP)(renamed(sums_over, name))


_blob_sums = _over_neighbours("blob_sums", _add_blobs, 4 + VALUES, VALUES, 1.0 / (4.0 * math.pi))
_gradient_changes = _over_neighbours("gradient_changes", _add_changes, CHANGED, 9, 1.0 / (32.0 * math.pi))


def _reach(code: Code, sigma: Array) -> tuple[float, Any]:
    """Largest distance of neighbours, m, and the square of the regularisation's reach in core radii."""
    blob_reach = record(code).reach
    return blob_reach * float(sigma.max()) * (1 + 1e-5), sigma.dtype.type(blob_reach**2)


def blob_sums(
    code: Code, sx: Array, sigma: Array, values: Array, start: Array, grid: Grid, at: Array | None = None
) -> Array:
    """sum_q zeta(|x_p - x_q|/sigma_q)/sigma_q^3 values_q at every vorton: (m, n), unit of values per m^3.

    ``sx`` (3, n) m, ``sigma`` (n,) m and ``values`` (m, n), m <= VALUES, are sorted by the cells of ``grid``;
    ``start`` is that of ``partition``. With the strengths as values the result is the blobs' vorticity, 1/s.
    ``at`` (3, k) m are other places x_p, of which successive ones should be close together.
    """
    (m, n), at = values.shape, sx if at is None else at
    out = np.empty((m, at.shape[1]), values.dtype)
    if n:
        data = np.zeros((4 + VALUES, n + LANES), sx.dtype)
        data[:3, :n], data[3, :n], data[4 : 4 + m, :n] = sx, sigma * sigma, values
        _blob_sums(code, at, data, *_reach(code, sigma), start, *grid, out)
    return out


def gradient_change(
    code: Code, sx: Array, sigma: Array, alpha: Array, ratio: float, start: Array, grid: Grid,
    at: Array | None = None,
) -> Array:  # fmt: skip
    """Change (9, n), 1/s, of the velocity gradient if all core radii are multiplied by ``ratio`` < 1.

    Row 3 i + j is that of du_i/dx_j. ``alpha`` (3, n) m^3/s; the other arguments are as for ``blob_sums``.
    """
    n, at = sx.shape[1], sx if at is None else at
    gradient = np.empty((9, at.shape[1]), sx.dtype)
    if n:
        small = sigma * sigma.dtype.type(ratio)
        data = np.zeros((CHANGED, n + LANES), sx.dtype)
        data[:3, :n], data[3, :n], data[4, :n], data[5:, :n] = sx, sigma * sigma, small * small, alpha
        # A test filter is smaller than the filter, so the reach of the filter serves both.
        _gradient_changes(code, at, data, *_reach(code, sigma), start, *grid, gradient)
    return gradient


@parallel(**FAST_LOOP)
def model(chunk: int, du: Array, omega: Array, smooth: Array, out: Array) -> None:
    """Fill ``out`` (3, n) 1/s^2 with E = J omega - smooth at every vorton.

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


@parallel(**FAST_LOOP)
def add_model(
    chunk: int, alpha: Array, scale: Array, model: Array, coefficient: Array, most: float, rate: Array
) -> None:
    """rate = -C E sigma^3/zeta(0), but 0 where it would increase |alpha|, and at most ``most`` |alpha|.

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
