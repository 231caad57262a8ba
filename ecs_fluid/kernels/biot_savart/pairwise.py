"""The pair loops: a packed list of sources acts on a small block of targets.

Direct sum and tree differ only in the list they pack. A list lies in ``pack (8, width)``, rows x, y, z [m],
alpha_x, alpha_y, alpha_z [m^3/s], sigma^2 [m^2] and the core constant; a block is ``points (3, BLOCK)`` and
its sums ``sums (k, BLOCK)`` are added to. SIMD vectors run along the sources; every loaded source serves four
targets (velocity). Each loop is compiled separately for each regularisation that is used.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.biot_savart.regularisation_dispatch import (
    core_constant,
    core_shift,
    gradient_factors,
    potential_factors,
    renamed,
    velocity_factor,
)
from ecs_fluid.kernels.compiled import CHUNKS, FAST_LOOP
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import INLINE, LANES, aligned, wide_vectors

PACK_BYTES = 4096
"""Bytes of a row of a packed list: 1024 float32 or 512 float64 sources fit into the first-level cache, and
partial sums have few terms."""

BLOCK = 128
"""Most targets in a block, a multiple of 4."""

VELOCITY_SUMS, GRADIENT_SUMS, POTENTIAL_SUMS = 3, 15, 6
"""Number of rows of ``sums`` for each loop."""

# Loops are inlined by numba, not by LLVM: LLVM would vectorise them by themselves, before it knows the
# regularisation and with the narrow vectors of a function without ``wide_vectors``.
_LOOP: dict[str, Any] = {**FAST_LOOP, "inline": "always"}


def _compiled(loop: Any) -> Any:
    """(code, pack, groups, points, count, sums): the loop as a function of its own."""

    def add(code: Code, pack: Any, groups: int, points: Any, count: int, sums: Any) -> None:
        wide_vectors()
        loop(code, pack, groups, points, count, sums)

    return njit(**FAST_LOOP)(renamed(add, f"add{loop.py_func.__name__}"))


@njit(**FAST_LOOP)
def fill_pack(code: Code, pack: Any, sx: Any, sa: Any, ssigma: Any, first: int, last: int) -> int:
    """Pack sources first:last (at most the width of the pack) and return the number of LANES-wide groups."""
    count = int(last - first)
    for c in range(3):
        for j in range(count):
            pack[c, j] = sx[c, first + j]
            pack[3 + c, j] = sa[c, first + j]
    for j in range(count):
        s2 = ssigma[first + j] * ssigma[first + j]
        pack[6, j] = s2
        pack[7, j] = core_constant(code, s2)
    return int(pad_pack(pack, count))


@njit(**FAST_LOOP)
def pad_pack(pack: Any, count: int) -> int:
    """Fill up the last group with sources of no strength and return the number of groups."""
    groups = (count + LANES - 1) // LANES
    for j in range(count, groups * LANES):
        for c in range(6):
            pack[c, j] = 0.0
        pack[6, j] = 1.0
        pack[7, j] = 1.0
    return groups


@parallel(**FAST_LOOP)
def sort_sources(
    c: int, code: Code, x: Any, alpha: Any, sigma: Any, order: Any, first: int, out: Any
) -> None:  # fmt: skip
    """Fill ``out`` (8, ...), from column ``first`` on, with places, strengths, sigma^2 and core constants of
    the rows ``order``, as in a pack."""
    n = order.size
    for p in range(c * n // CHUNKS, (c + 1) * n // CHUNKS):
        row, to = order[p], first + p
        for a in range(3):
            out[a, to], out[3 + a, to] = x[a, row], alpha[a, row]
        s2 = sigma[row] * sigma[row]
        out[6, to], out[7, to] = s2, core_constant(code, s2)


@njit(**INLINE)
def _velocity_pair(code: Code, px: Any, py: Any, pz: Any, source: Any) -> Any:
    x, y, z, ax, ay, az, s2, k, shift = source
    dx = px - x
    dy = py - y
    dz = pz - z
    # In this order adding the core radius costs no extra operation: three multiply-adds.
    f = velocity_factor(code, dx * dx + (dy * dy + (dz * dz + shift)), s2, k)
    return f * (ay * dz - az * dy), f * (az * dx - ax * dz), f * (ax * dy - ay * dx)


@njit(**_LOOP)
def _velocity_loop(code: Code, pack: Any, groups: int, points: Any, count: int, sums: Any) -> None:
    x, y, z, ax, ay, az, s2, k = pack[0], pack[1], pack[2], pack[3], pack[4], pack[5], pack[6], pack[7]
    for q in range(0, 4 * ((count + 3) // 4), 4):
        px0, py0, pz0 = points[0, q], points[1, q], points[2, q]
        px1, py1, pz1 = points[0, q + 1], points[1, q + 1], points[2, q + 1]
        px2, py2, pz2 = points[0, q + 2], points[1, q + 2], points[2, q + 2]
        px3, py3, pz3 = points[0, q + 3], points[1, q + 3], points[2, q + 3]
        u0 = v0 = w0 = u1 = v1 = w1 = u2 = v2 = w2 = u3 = v3 = w3 = type(px0)(0.0)
        for j in range(LANES * groups):
            s = (x[j], y[j], z[j], ax[j], ay[j], az[j], s2[j], k[j], core_shift(code, s2[j]))
            du, dv, dw = _velocity_pair(code, px0, py0, pz0, s)
            u0 += du
            v0 += dv
            w0 += dw
            du, dv, dw = _velocity_pair(code, px1, py1, pz1, s)
            u1 += du
            v1 += dv
            w1 += dw
            du, dv, dw = _velocity_pair(code, px2, py2, pz2, s)
            u2 += du
            v2 += dv
            w2 += dw
            du, dv, dw = _velocity_pair(code, px3, py3, pz3, s)
            u3 += du
            v3 += dv
            w3 += dw
        for row, a, b, c, d in ((0, u0, u1, u2, u3), (1, v0, v1, v2, v3), (2, w0, w1, w2, w3)):
            sums[row, q] += a
            sums[row, q + 1] += b
            sums[row, q + 2] += c
            sums[row, q + 3] += d


add_velocity = _compiled(_velocity_loop)
"""sums[:3] += sum 8 q/r^3 alpha x r over the list, for the first ``count`` points of the block."""


@njit(**_LOOP)
def _gradient_loop(code: Code, pack: Any, groups: int, points: Any, count: int, sums: Any) -> None:
    x, y, z, ax, ay, az, s2, k = pack[0], pack[1], pack[2], pack[3], pack[4], pack[5], pack[6], pack[7]
    for t in range(count):
        px, py, pz = points[0, t], points[1, t], points[2, t]
        u = v = w = a = b = c = type(px)(0.0)
        xx = xy = xz = yx = yy = yz = zx = zy = type(px)(0.0)
        for j in range(LANES * groups):
            dx = px - x[j]
            dy = py - y[j]
            dz = pz - z[j]
            d = dx * dx + (dy * dy + (dz * dz + core_shift(code, s2[j])))
            g, h = gradient_factors(code, d, s2[j], k[j])
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


add_gradient = _compiled(_gradient_loop)
"""sums[:3] += 32 pi u; ``join_gradient`` makes the gradient from the other rows."""


@njit(**FAST_LOOP)
def join_gradient(count: int, sums: Any) -> None:
    """Turn sums[3:12] into 32 pi du_i/dx_j, row by row, after the last pack has been added.

    Only two numbers are added at a time: the compiler may add three in one order or another, and then a
    function that is inlined into two callers would have two results.
    """
    for t in range(count):
        a, b, c = sums[12, t], sums[13, t], sums[14, t]
        sums[4, t] -= c
        sums[5, t] += b
        sums[6, t] += c
        sums[8, t] -= a
        sums[9, t] -= b
        sums[10, t] += a
        # The trace of (alpha x r) r is zero.
        sums[11, t] = -(sums[3, t] + sums[7, t])


@njit(**_LOOP)
def _potential_loop(code: Code, pack: Any, groups: int, points: Any, count: int, sums: Any) -> None:
    x, y, z, ax, ay, az, s2, k = pack[0], pack[1], pack[2], pack[3], pack[4], pack[5], pack[6], pack[7]
    for t in range(count):
        px, py, pz = points[0, t], points[1, t], points[2, t]
        a = b = c = u = v = w = type(px)(0.0)
        for j in range(LANES * groups):
            dx = px - x[j]
            dy = py - y[j]
            dz = pz - z[j]
            d = dx * dx + (dy * dy + (dz * dz + core_shift(code, s2[j])))
            green, zeta = potential_factors(code, d, s2[j], k[j])
            a += green * ax[j]
            b += green * ay[j]
            c += green * az[j]
            u += zeta * ax[j]
            v += zeta * ay[j]
            w += zeta * az[j]
        for row, value in enumerate((a, b, c, u, v, w)):
            sums[row, t] += value


add_potential = _compiled(_potential_loop)
"""sums[:3] += 4 pi psi and sums[3:6] += 4 pi omega."""


@njit(**FAST_LOOP)
def load_block(targets: Any, order: Any, first: int, count: int, points: Any) -> None:
    """points[:, :count] = targets[order[first : first + count]], the last one repeated to a multiple of four.

    An empty ``order`` means the targets in their own order.
    """
    for t in range(4 * ((count + 3) // 4)):
        row = first + min(t, count - 1)
        if order.size > 0:
            row = order[row]
        for c in range(3):
            points[c, t] = targets[row, c]


PAIR_SCALE = 1.0 / (32.0 * math.pi)
"""Scale that turns the sums of ``add_velocity`` and ``add_gradient`` into velocity and gradient."""

SCALE = 1.0 / (4.0 * math.pi)
"""Scale that turns the sums of ``add_potential``, and all those of expansions, into their results."""


@njit(**FAST_LOOP)
def store_block(sums: Any, row: int, scale: Any, order: Any, first: int, count: int, out: Any) -> None:
    """Write rows ``row``, ``row + 1``, ... of the sums, scaled, to the columns of ``out (m, k)``."""
    factor = type(sums[0, 0])(scale)
    for t in range(count):
        target = first + t
        if order.size > 0:
            target = order[target]
        for c in range(out.shape[1]):
            out[target, c] = sums[row + c, t] * factor


@njit(**FAST_LOOP)
def block_arrays(like: Any, rows: int) -> Any:
    """Scratch arrays of one chunk: an empty pack, block points and block sums, of the dtype of ``like``."""
    width = PACK_BYTES // like.itemsize
    pack = aligned(8 * width, like).reshape(8, width)
    return pack, np.empty((3, BLOCK), like.dtype), np.empty((rows, BLOCK), like.dtype)
