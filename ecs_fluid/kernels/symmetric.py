"""Direct summation at the vortons themselves, each pair met once.

Where the targets are the sources and all have one core radius sigma, the partners i, j of a pair share the
factors g and h of ``regularisation.gradient_factors``. With r = x_i - x_j, i gets from j

    u += alpha_j x (g r) / 4 pi,   du/dx += (g [alpha_j x] + (alpha_j x r) (h r)^T) / 4 pi

and j from i the same with -r and alpha_i; what ``direct`` does twice for a pair is done once. Same equations,
same accuracy. Source: as ``direct``; the rest is Newton's third law, as used in molecular dynamics.

Vortons lie in blocks of LANES around a circle: a block meets itself and the half circle after it. A task owns
a run of blocks and adds up, in arrays of its own, what it gives to all it meets; then every vorton collects
its parts in the order of the tasks. The tasks depend on the number of vortons alone, so the bits are the same
for any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels import FAST
from ecs_fluid.kernels.pairwise import SCALE, VELOCITY_SCALE
from ecs_fluid.kernels.regularisation import (
    GAUSSIAN,
    RANKINE,
    ROSENHEAD_MOORE,
    WINCKELMANS,
    core_constant,
    core_shift,
    gradient_factors,
    velocity_factor,
)
from ecs_fluid.kernels.vectors import INLINE, LANES, wide_vectors

MAX_VORTONS = 131_072
"""Above it the tasks' arrays (17 results: 27 MB for float32 velocities, 125 MB with gradients) are no trifle,
and other solvers are faster than any sum over all pairs."""

MAX_TASKS, MIN_BLOCKS = 32, 4
"""Tasks at most, and blocks of a task at least."""

WIDTH, NARROW = 1040, 528
"""Vortons of a list, for velocities and for gradients: float32 lists stay in the first-level cache (or near).
Odd numbers of cache lines, for rows a power of two apart would fall upon the same lines of the cache."""

_OPTIONS: dict[str, Any] = {"parallel": True, "cache": True, "fastmath": FAST, "error_model": "numpy"}
_TILE: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy"}
# Loops are inlined by numba, not by LLVM: see ``pairwise``.
_LOOP: dict[str, Any] = {**_TILE, "inline": "always"}

# A list is one flat array of rows x, y, z, alpha_x, alpha_y, alpha_z, the sums and two spare ones, each WIDTH
# or NARROW long: with constant distances the compiler knows that what it writes is not what it reads.
_VELOCITY_SUMS, _GRADIENT_SUMS = 3, 14


def applies(ssigma: Any) -> bool:
    """Whether core radii ``ssigma (n,)`` can be served here: all equal, 1 to MAX_VORTONS of them."""
    return bool(0 < ssigma.size <= MAX_VORTONS and ssigma.min() == ssigma.max())


@njit(**INLINE)
def _partners(block: int, blocks: int) -> int:
    """Blocks after it that a block meets: half the circle; two opposite blocks meet once."""
    if blocks % 2 == 0 and block < blocks // 2:
        return blocks // 2
    return (blocks - 1) // 2


@njit(**INLINE)
def _aligned(size: int, like: Any) -> Any:
    # Rows start on cache lines, or every vector load would touch two.
    raw = np.empty(size + 64 // like.itemsize, like.dtype)
    skip = (-(raw.ctypes.data // like.itemsize)) % (64 // like.itemsize)
    return raw[skip : skip + size]


@njit(**INLINE)
def _fill(flat: Any, width: int, rows: int, sx: Any, sa: Any, first: int, count: int) -> None:
    """A list of ``count`` blocks from block ``first`` on, around the circle, with ``rows`` sums at zero.

    The last block is filled up with vortons of no strength.
    """
    n = sx.shape[1]
    blocks = (n + LANES - 1) // LANES
    for b in range(count):
        row = ((first + b) % blocks) * LANES
        real = min(LANES, n - row)
        for c in range(3):
            at = c * width + b * LANES
            for e in range(real):
                flat[at + e] = sx[c, row + e]
                flat[at + 3 * width + e] = sa[c, row + e]
            for e in range(real, LANES):
                flat[at + e] = 0.0
                flat[at + 3 * width + e] = 0.0
    for c in range(6, 6 + rows):
        flat[c * width : c * width + count * LANES] = 0.0


@njit(**INLINE)
def _arm(code: int, vorton: Any, x: Any, y: Any, z: Any, s2: Any, k: Any, shift: Any) -> Any:
    """8 g r from a point to a vorton."""
    dx = vorton[0] - x
    dy = vorton[1] - y
    dz = vorton[2] - z
    f = velocity_factor(code, dx * dx + (dy * dy + (dz * dz + shift)), s2, k)
    return f * dx, f * dy, f * dz


@njit(**INLINE)
def _vorton(own: Any, i: int) -> Any:
    return own[0, i], own[1, i], own[2, i], own[3, i], own[4, i], own[5, i]


@njit(**_LOOP)
def _velocity_loop(code: int, flat: Any, count: int, own: Any, sums: Any, s2: Any) -> None:
    k, shift = core_constant(code, s2), core_shift(code, s2)
    # One vorton at a time: with two, the compiler may order the sums of the list in several ways, and fresh
    # and cached code had different bits.
    for i in range(LANES):
        own_vorton = _vorton(own, i)
        _, _, _, a, b, c = own_vorton
        u = v = w = type(s2)(0.0)
        for j in range(LANES * count):
            x, y, z = flat[j], flat[WIDTH + j], flat[2 * WIDTH + j]
            ax, ay, az = flat[3 * WIDTH + j], flat[4 * WIDTH + j], flat[5 * WIDTH + j]
            fu, fv, fw = flat[6 * WIDTH + j], flat[7 * WIDTH + j], flat[8 * WIDTH + j]
            dx, dy, dz = _arm(code, own_vorton, x, y, z, s2, k, shift)
            u += ay * dz - az * dy
            v += az * dx - ax * dz
            w += ax * dy - ay * dx
            flat[6 * WIDTH + j] = fu - (b * dz - c * dy)
            flat[7 * WIDTH + j] = fv - (c * dx - a * dz)
            flat[8 * WIDTH + j] = fw - (a * dy - b * dx)
        sums[0, i] += u
        sums[1, i] += v
        sums[2, i] += w


@njit(**_LOOP)
def _gradient_loop(code: int, flat: Any, count: int, own: Any, sums: Any, s2: Any) -> None:
    # Sums: g alpha x r, g alpha, and (alpha x r) (h r)^T but for its last entry: its trace is zero.
    k, shift = core_constant(code, s2), core_shift(code, s2)
    for i in range(LANES):
        px, py, pz, pa, pb, pc = _vorton(own, i)
        # The factors are one long chain of operations; in a loop of their own many chains run side by side.
        for j in range(LANES * count):
            dx, dy, dz = px - flat[j], py - flat[NARROW + j], pz - flat[2 * NARROW + j]
            g, h = gradient_factors(code, dx * dx + (dy * dy + (dz * dz + shift)), s2, k)
            flat[20 * NARROW + j] = g
            flat[21 * NARROW + j] = h
        u = v = w = a = b = c = xx = xy = xz = yx = yy = yz = zx = zy = type(s2)(0.0)
        for j in range(LANES * count):
            dx, dy, dz = px - flat[j], py - flat[NARROW + j], pz - flat[2 * NARROW + j]
            ax, ay, az = flat[3 * NARROW + j], flat[4 * NARROW + j], flat[5 * NARROW + j]
            g, h = flat[20 * NARROW + j], flat[21 * NARROW + j]
            hx, hy, hz = h * dx, h * dy, h * dz
            cx, cy, cz = ay * dz - az * dy, az * dx - ax * dz, ax * dy - ay * dx
            u += g * cx
            v += g * cy
            w += g * cz
            a += g * ax
            b += g * ay
            c += g * az
            xx += cx * hx
            xy += cx * hy
            xz += cx * hz
            yx += cy * hx
            yy += cy * hy
            yz += cy * hz
            zx += cz * hx
            zy += cz * hy
            cx, cy, cz = pb * dz - pc * dy, pc * dx - pa * dz, pa * dy - pb * dx
            fu = flat[6 * NARROW + j] - g * cx
            fv = flat[7 * NARROW + j] - g * cy
            fw = flat[8 * NARROW + j] - g * cz
            fa = flat[9 * NARROW + j] + g * pa
            fb = flat[10 * NARROW + j] + g * pb
            fc = flat[11 * NARROW + j] + g * pc
            fxx = flat[12 * NARROW + j] + cx * hx
            fxy = flat[13 * NARROW + j] + cx * hy
            fxz = flat[14 * NARROW + j] + cx * hz
            fyx = flat[15 * NARROW + j] + cy * hx
            fyy = flat[16 * NARROW + j] + cy * hy
            fyz = flat[17 * NARROW + j] + cy * hz
            fzx = flat[18 * NARROW + j] + cz * hx
            fzy = flat[19 * NARROW + j] + cz * hy
            flat[6 * NARROW + j] = fu
            flat[7 * NARROW + j] = fv
            flat[8 * NARROW + j] = fw
            flat[9 * NARROW + j] = fa
            flat[10 * NARROW + j] = fb
            flat[11 * NARROW + j] = fc
            flat[12 * NARROW + j] = fxx
            flat[13 * NARROW + j] = fxy
            flat[14 * NARROW + j] = fxz
            flat[15 * NARROW + j] = fyx
            flat[16 * NARROW + j] = fyy
            flat[17 * NARROW + j] = fyz
            flat[18 * NARROW + j] = fzx
            flat[19 * NARROW + j] = fzy
        for row, value in enumerate((u, v, w, a, b, c, xx, xy, xz, yx, yy, yz, zx, zy)):
            sums[row, i] += value


@njit(**_TILE)
def _meet_velocity(code: int, flat: Any, count: int, own: Any, sums: Any, s2: Any) -> None:
    """The block ``own`` and ``count`` blocks of a list meet: 8 q/r^3 alpha x r to the sums of both."""
    wide_vectors()
    if code == WINCKELMANS:
        _velocity_loop(WINCKELMANS, flat, count, own, sums, s2)
    elif code == GAUSSIAN:
        _velocity_loop(GAUSSIAN, flat, count, own, sums, s2)
    elif code == RANKINE:
        _velocity_loop(RANKINE, flat, count, own, sums, s2)
    else:
        _velocity_loop(ROSENHEAD_MOORE, flat, count, own, sums, s2)


@njit(**_TILE)
def _meet_gradient(code: int, flat: Any, count: int, own: Any, sums: Any, s2: Any) -> None:
    """The block ``own`` and ``count`` blocks of a list meet: ``_gradient_loop`` to the sums of both."""
    wide_vectors()
    if code == WINCKELMANS:
        _gradient_loop(WINCKELMANS, flat, count, own, sums, s2)
    elif code == GAUSSIAN:
        _gradient_loop(GAUSSIAN, flat, count, own, sums, s2)
    elif code == RANKINE:
        _gradient_loop(RANKINE, flat, count, own, sums, s2)
    else:
        _gradient_loop(ROSENHEAD_MOORE, flat, count, own, sums, s2)


@njit(**_LOOP)
def _give(
    meet: Any, width: int, code: int, sx: Any, sa: Any, s2: Any, first: int, last: int, given: Any
) -> None:
    """Sums of all pairs that blocks first:last meet: ``given`` lists the vortons from block ``first`` on."""
    n = sx.shape[1]
    rows = given.shape[0]
    blocks = (n + LANES - 1) // LANES
    flat, own = _aligned((8 + rows) * width, given), np.empty((6, LANES), given.dtype)
    sums = np.zeros((last - first + 1, rows, LANES), given.dtype)
    reach = last - first + blocks // 2
    # Lists of about equal length: short ones cost more per pair.
    lists = (reach * LANES + width - 1) // width
    for part in range(lists):
        start, stop = reach * part // lists, reach * (part + 1) // lists
        _fill(flat, width, rows, sx, sa, first + start, stop - start)
        for b in range(last - first):
            lo, hi = max(b + 1, start), min(b + 1 + _partners(first + b, blocks), stop)
            _load(sx, sa, first + b, own)
            if start <= b < stop:
                # The block meets itself: every pair comes twice, so one side of it is left in the spare sums.
                meet(code, flat[(b - start) * LANES :], 1, own, sums[last - first], s2)
            if hi > lo:
                meet(code, flat[(lo - start) * LANES :], hi - lo, own, sums[b], s2)
        for c in range(rows):
            for e in range((stop - start) * LANES):
                given[c, start * LANES + e] = flat[(6 + c) * width + e]
    for b in range(last - first):
        for c in range(rows):
            for e in range(LANES):
                given[c, b * LANES + e] += sums[b, c, e]


@njit(**INLINE)
def _load(sx: Any, sa: Any, block: int, own: Any) -> None:
    row = block * LANES
    real = min(LANES, sx.shape[1] - row)
    own[:, real:] = 0.0
    for c in range(3):
        for e in range(real):
            own[c, e] = sx[c, row + e]
            own[3 + c, e] = sa[c, row + e]


@njit(**INLINE)
def _collect(given: Any, task: int, blocks: int, total: Any) -> None:
    """Add up what the blocks of a task were given, first by itself, then by the tasks before it."""
    tasks = given.shape[0]
    first, last = blocks * task // tasks, blocks * (task + 1) // tasks
    total[:] = 0.0
    for back in range(tasks):
        giver = (task - back) % tasks
        start = blocks * giver // tasks
        reach = blocks * (giver + 1) // tasks - start + blocks // 2
        # With few tasks the half circle of a giver may come around to its own blocks once more.
        for at in range((first - start) % blocks, reach, blocks):
            count = LANES * min(last - first, reach - at)
            for c in range(given.shape[1]):
                for e in range(count):
                    total[c, e] += given[giver, c, at * LANES + e]


@njit(**INLINE)
def _scratch(rows: int, n: int, like: Any) -> Any:
    """Number of blocks and ``given (tasks, rows, vortons that a task meets)``."""
    blocks = (n + LANES - 1) // LANES
    tasks = min(MAX_TASKS, (blocks + MIN_BLOCKS - 1) // MIN_BLOCKS)
    longest = (blocks + tasks - 1) // tasks if tasks > 0 else 0
    return blocks, np.empty((tasks, rows, LANES * (longest + blocks // 2)), like.dtype)


@njit(**_OPTIONS)
def velocity(code: int, sx: Any, sa: Any, sigma: float, u: Any) -> None:
    """Velocity ``u (n, 3)`` [m/s] at the vortons ``sx (3, n)`` [m], ``sa (3, n)`` [m^3/s], all of core radius
    ``sigma`` [m] (positive); ``code`` is the regularisation."""
    n = sx.shape[1]
    s2 = sx.dtype.type(sigma * sigma)
    blocks, given = _scratch(_VELOCITY_SUMS, n, sx)
    tasks = given.shape[0]
    for t in prange(tasks):
        first, last = blocks * t // tasks, blocks * (t + 1) // tasks
        _give(_meet_velocity, WIDTH, code, sx, sa, s2, first, last, given[t])
    factor = sx.dtype.type(VELOCITY_SCALE)
    for t in prange(tasks):
        first = LANES * (blocks * t // tasks)
        count = min(LANES * (blocks * (t + 1) // tasks), n) - first
        total = np.empty((_VELOCITY_SUMS, count + LANES), sx.dtype)
        _collect(given, t, blocks, total)
        for e in range(count):
            for c in range(3):
                u[first + e, c] = factor * total[c, e]


@njit(**_OPTIONS)
def velocity_gradient(code: int, sx: Any, sa: Any, sigma: float, u: Any, du: Any) -> None:
    """Velocity ``u (n, 3)`` [m/s] and its gradient ``du (n, 3, 3)``, du[:, i, j] = du_i/dx_j [1/s], at the
    vortons themselves; the arguments are those of ``velocity``. Its trace is zero to round-off."""
    n = sx.shape[1]
    s2 = sx.dtype.type(sigma * sigma)
    blocks, given = _scratch(_GRADIENT_SUMS, n, sx)
    tasks = given.shape[0]
    for t in prange(tasks):
        first, last = blocks * t // tasks, blocks * (t + 1) // tasks
        _give(_meet_gradient, NARROW, code, sx, sa, s2, first, last, given[t])
    factor = sx.dtype.type(SCALE)
    for t in prange(tasks):
        first = LANES * (blocks * t // tasks)
        count = min(LANES * (blocks * (t + 1) // tasks), n) - first
        total = np.empty((_GRADIENT_SUMS, count + LANES), sx.dtype)
        _collect(given, t, blocks, total)
        for e in range(count):
            for c in range(3):
                u[first + e, c] = factor * total[c, e]
            ga, gb, gc = total[3, e], total[4, e], total[5, e]
            row = du[first + e]
            row[0, 0] = factor * total[6, e]
            row[0, 1] = factor * (total[7, e] - gc)
            row[0, 2] = factor * (total[8, e] + gb)
            row[1, 0] = factor * (total[9, e] + gc)
            row[1, 1] = factor * total[10, e]
            row[1, 2] = factor * (total[11, e] - ga)
            row[2, 0] = factor * (total[12, e] - gb)
            row[2, 1] = factor * (total[13, e] + ga)
            row[2, 2] = -factor * (total[6, e] + total[10, e])
