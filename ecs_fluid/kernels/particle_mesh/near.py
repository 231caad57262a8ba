"""Pairs that are nearer than the reach: what the smooth part (``splitting``) leaves of each.

As in ``biot_savart.pairwise`` a list of sources, here all that lie within the reach of a block of targets,
is packed side by side and acts on the targets one after the other.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from ecs_fluid.kernels.biot_savart.pairwise import pad_pack
from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.biot_savart.selection import (
    core_constant,
    core_shift,
    gradient_factors,
    velocity_factor,
)
from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.lanes import lanes_of, load, store
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.vectors import INLINE, LANES, wide_vectors

PART: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy"}


@njit(**INLINE)
def _smooth(v: Any, a: Any) -> Any:
    """The smooth part's g and its derivative by v."""
    g = a[3] + v * a[4]
    slope = a[4]
    slope = g + v * slope
    g = a[2] + v * g
    slope = g + v * slope
    g = a[1] + v * g
    slope = g + v * slope
    g = a[0] + v * g
    return g, slope


@njit(**PART)
def add_velocity(code: Code, pack: Any, groups: int, points: Any, count: int, split: Any, sums: Any) -> None:
    """sums[:3] += 32 pi u of the pairs; ``split`` is 1/R^2 1/m^2 and 8 a_0 ... 8 a_4 1/m^3."""
    wide_vectors()
    x, y, z, ax, ay, az, s2, k = pack[0], pack[1], pack[2], pack[3], pack[4], pack[5], pack[6], pack[7]
    inverse, a = split[0], (split[1], split[2], split[3], split[4], split[5])
    one, none = type(inverse)(1.0), type(inverse)(0.0)
    for t in range(count):
        px, py, pz = points[0, t], points[1, t], points[2, t]
        u = v = w = none
        for j in range(LANES * groups):
            dx = px - x[j]
            dy = py - y[j]
            dz = pz - z[j]
            r2 = dx * dx + (dy * dy + dz * dz)
            left = one - r2 * inverse
            smooth = a[0] + left * (a[1] + left * (a[2] + left * (a[3] + left * a[4])))
            f = velocity_factor(code, r2 + core_shift(code, s2[j]), s2[j], k[j]) - smooth
            f = f if left > none else none
            u += f * (ay[j] * dz - az[j] * dy)
            v += f * (az[j] * dx - ax[j] * dz)
            w += f * (ax[j] * dy - ay[j] * dx)
        sums[0, t] += u
        sums[1, t] += v
        sums[2, t] += w


@njit(**PART)
def add_gradient(code: Code, pack: Any, groups: int, points: Any, count: int, split: Any, sums: Any) -> None:
    """The same, and what ``pairwise.join_gradient`` makes 32 pi du_i/dx_j of."""
    wide_vectors()
    x, y, z, ax, ay, az, s2, k = pack[0], pack[1], pack[2], pack[3], pack[4], pack[5], pack[6], pack[7]
    inverse, coefficients = split[0], (split[1], split[2], split[3], split[4], split[5])
    one, none = type(inverse)(1.0), type(inverse)(0.0)
    # d/d(r^2) of v is -1/R^2, and 1/r d/dr is twice that.
    twice = inverse + inverse
    for t in range(count):
        px, py, pz = points[0, t], points[1, t], points[2, t]
        u = v = w = a = b = c = none
        xx = xy = xz = yx = yy = yz = zx = zy = none
        for j in range(LANES * groups):
            dx = px - x[j]
            dy = py - y[j]
            dz = pz - z[j]
            r2 = dx * dx + (dy * dy + dz * dz)
            left = one - r2 * inverse
            smooth, slope = _smooth(left, coefficients)
            g, h = gradient_factors(code, r2 + core_shift(code, s2[j]), s2[j], k[j])
            g = g - smooth if left > none else none
            h = h + twice * slope if left > none else none
            cx = ay[j] * dz - az[j] * dy
            cy = az[j] * dx - ax[j] * dz
            cz = ax[j] * dy - ay[j] * dx
            u += g * cx
            v += g * cy
            w += g * cz
            a += g * ax[j]
            b += g * ay[j]
            c += g * az[j]
            cx *= h
            cy *= h
            cz *= h
            xx += cx * dx
            xy += cx * dy
            xz += cx * dz
            yx += cy * dx
            yy += cy * dy
            yz += cy * dz
            zx += cz * dx
            zy += cz * dy
        for row, value in enumerate((u, v, w, xx, xy, xz, yx, yy, yz, zx, zy)):
            sums[row, t] += value
        for row, value in enumerate((a, b, c)):
            sums[12 + row, t] += value


@parallel(**PART)
def sort_sources(c: int, code: Code, x: Any, alpha: Any, sigma: Any, order: Any, out: Any) -> None:
    """Fill ``out`` (8, n) with places, strengths, sigma^2 and core constants of these rows, as in a pack."""
    n = order.size
    for p in range(c * n // CHUNKS, (c + 1) * n // CHUNKS):
        row = order[p]
        for a in range(3):
            out[a, p], out[3 + a, p] = x[a, row], alpha[a, row]
        s2 = sigma[row] * sigma[row]
        out[6, p], out[7, p] = s2, core_constant(code, s2)


@njit(**PART)
def fill_near(rows: Any, runs: Any, number: int, run: int, pack: Any) -> tuple[int, int]:
    """Pack the sources of the runs, from ``run`` on, whole vectors at a time: ``rows`` (8, n + LANES).

    Returns groups of LANES in the pack and the next run; moves the beginning of one that does not fit.
    """
    room, count, width = pack.shape[1] - LANES, 0, lanes_of(pack)
    while run < number:
        first = runs[run, 0]
        take = min(runs[run, 1] - first, room - count)
        for a in range(8):
            for q in range(0, take, width):
                # What is copied beyond the run is overwritten next, or blanked at the end.
                store(pack[a], count + q, load(rows[a], first + q))
        count += take
        if first + take < runs[run, 1]:
            runs[run, 0] = first + take
            break
        run += 1
    return pad_pack(pack, count), run
