"""Pairs nearer than the reach: the part of their velocity that the smooth part (``splitting``) leaves.

As in ``biot_savart.pairwise``, a packed list of sources acts on the targets one after the other; here the
list holds all sources within the reach of a box of targets.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from ecs_fluid.kernels.biot_savart.pairwise import PACK_BYTES
from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.biot_savart.regularisation_dispatch import (
    core_shift,
    gradient_factors,
    velocity_factor,
)
from ecs_fluid.kernels.compiled import FAST_LOOP
from ecs_fluid.kernels.compiled.lanes import (
    append_below,
    count_below,
    lanes_of,
    larger,
    load,
    spread,
)
from ecs_fluid.kernels.compiled.wide_vectors import INLINE, LANES, aligned, wide_vectors


@njit(**INLINE)
def _smooth_part(v: Any, a: Any) -> Any:
    """g of the smooth part, and its derivative by v."""
    g = a[3] + v * a[4]
    slope = a[4]
    slope = g + v * slope
    g = a[2] + v * g
    slope = g + v * slope
    g = a[1] + v * g
    slope = g + v * slope
    g = a[0] + v * g
    return g, slope


@njit(**FAST_LOOP)
def add_velocity(
    code: Code, pack: Any, groups: int, points: Any, first: int, end: int, split: Any, sums: Any
) -> None:
    """sums[:3] += 32 pi u of the pairs at points first:end; ``split`` is 1/R^2 1/m^2 and 8 a_0 ... 1/m^3."""
    wide_vectors()
    x, y, z, ax, ay, az, s2, k = pack[0], pack[1], pack[2], pack[3], pack[4], pack[5], pack[6], pack[7]
    inverse, a = split[0], (split[1], split[2], split[3], split[4], split[5])
    one, none = type(inverse)(1.0), type(inverse)(0.0)
    for t in range(first, end):
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


@njit(**FAST_LOOP)
def add_gradient(
    code: Code, pack: Any, groups: int, points: Any, first: int, end: int, split: Any, sums: Any
) -> None:
    """The same, and what ``pairwise.join_gradient`` makes 32 pi du_i/dx_j of."""
    wide_vectors()
    x, y, z, ax, ay, az, s2, k = pack[0], pack[1], pack[2], pack[3], pack[4], pack[5], pack[6], pack[7]
    inverse, coefficients = split[0], (split[1], split[2], split[3], split[4], split[5])
    one, none = type(inverse)(1.0), type(inverse)(0.0)
    # d/d(r^2) of v is -1/R^2, and 1/r d/dr is twice that.
    twice = inverse + inverse
    for t in range(first, end):
        px, py, pz = points[0, t], points[1, t], points[2, t]
        u = v = w = a = b = c = none
        xx = xy = xz = yx = yy = yz = zx = zy = none
        for j in range(LANES * groups):
            dx = px - x[j]
            dy = py - y[j]
            dz = pz - z[j]
            r2 = dx * dx + (dy * dy + dz * dz)
            left = one - r2 * inverse
            smooth, slope = _smooth_part(left, coefficients)
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


@njit(**FAST_LOOP)
def near_pack(like: Any) -> Any:
    """An empty pack (8, ...) of the dtype of ``like``.

    Its rows are an odd number of cache lines long: rows a power of two apart would map to the same lines, and
    a read would wait for a write to another row.
    """
    width = PACK_BYTES // like.itemsize + LANES
    return aligned(8 * width, like).reshape(8, width)


@njit(**FAST_LOOP)
def cull(rows: Any, runs: Any, number: int, run: int, box: Any, square: Any, pack: Any) -> tuple[int, int]:
    """Pack those sources of the runs, from ``run`` on, that are nearer to the ``box`` (2, 3) m than the
    reach.

    ``square`` m^2 is the square of the reach. ``rows`` (8, ...), readable for a vector beyond each run, and
    ``pack`` (8, ...) are flattened. Returns the number of sources packed and the next run; if a run does not
    fit, its beginning is moved.
    """
    wide_vectors()
    width, stride, length = lanes_of(pack), pack.size // 8, rows.size // 8
    none, limit = spread(square - square), spread(square)
    x0, y0, z0 = spread(box[0, 0]), spread(box[0, 1]), spread(box[0, 2])
    x1, y1, z1 = spread(box[1, 0]), spread(box[1, 1]), spread(box[1, 2])
    count, last = 0, stride - 2 * LANES
    while run < number:
        here, end = runs[run, 0], runs[run, 1]
        while here < end and count <= last:
            x, y, z = load(rows, here), load(rows, length + here), load(rows, 2 * length + here)
            dx = larger(larger(x0 - x, x - x1), none)
            dy = larger(larger(y0 - y, y - y1), none)
            dz = larger(larger(z0 - z, z - z1), none)
            far = dx * dx + (dy * dy + dz * dz)
            # Lanes beyond the end of the run land behind the others, and are overwritten.
            append_below(far, limit, x, pack, count)
            append_below(far, limit, y, pack, stride + count)
            append_below(far, limit, z, pack, 2 * stride + count)
            for a in range(3, 8):
                append_below(far, limit, load(rows, a * length + here), pack, a * stride + count)
            count += count_below(far, limit, end - here)
            here += width
        if here < end:
            runs[run, 0] = here
            break
        run += 1
    return count, run
