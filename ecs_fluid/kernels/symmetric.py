"""Direct summation at the vortons themselves, each pair met once.

Where the targets are the sources and all have one core radius sigma, the partners i, j of a pair share the
factors g and h of ``regularisation.gradient_factors``. With r = x_i - x_j, and alpha_j for alpha in the term of i,

    u_i += alpha_j x (g r) / 4 pi                   u_j -= alpha_i x (g r) / 4 pi
    du_i/dx += (g [alpha_j x] + (alpha_j x r) (h r)^T) / 4 pi,  the same for j with alpha_i

and what ``direct`` does twice for a pair is done once. Same equations and accuracy; the sum of u_i x alpha_i,
the rate of the linear impulse, is zero pair by pair.

Vortons lie in blocks of LANES around a circle: a block meets itself and the half circle after it. A task owns
a run of blocks and adds up, in arrays of its own, what it gives to all it meets; then every vorton collects
its parts in the order of the tasks. The tasks depend on the number of vortons alone, so the bits do not depend
on the threads.
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

WIDTH = 1024
"""Vortons of a list: for float32 velocities it stays in the first-level cache."""

_OPTIONS: dict[str, Any] = {"parallel": True, "cache": True, "fastmath": FAST, "error_model": "numpy"}
_TILE: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy"}
# Loops are inlined by numba, not by LLVM: see ``pairwise``.
_LOOP: dict[str, Any] = {**_TILE, "inline": "always"}

# A list is one flat array of rows x, y, z, alpha_x, alpha_y, alpha_z and sums, each WIDTH long: with constant
# distances the compiler knows that the sums it writes are not the sources it reads.
_VELOCITY_SUMS, _GRADIENT_SUMS = 3, 14


def applies(ssigma: Any) -> bool:
    """Whether the functions here can serve sources with core radii ``ssigma (n,)``: all equal, not too many."""
    return bool(0 < ssigma.size <= MAX_VORTONS and ssigma.min() == ssigma.max())


@njit(**_TILE)
def _partners(block: int, blocks: int) -> int:
    """Blocks after it that a block meets: half the circle, and of two opposite blocks the first the second."""
    if blocks % 2 == 0 and block < blocks // 2:
        return blocks // 2
    return (blocks - 1) // 2


@njit(**_TILE)
def _aligned(rows: int, like: Any) -> Any:
    # Rows start on cache lines, or every vector load would touch two.
    raw = np.empty(rows * WIDTH + 64 // like.itemsize, like.dtype)
    skip = (-(raw.ctypes.data // like.itemsize)) % (64 // like.itemsize)
    return raw[skip : skip + rows * WIDTH]


@njit(**_TILE)
def _fill(flat: Any, rows: int, sx: Any, sa: Any, first: int, count: int) -> None:
    """A list of ``count`` blocks from block ``first`` on, around the circle, with ``rows`` sums at zero.

    The last block is filled up with vortons of no strength."""
    n = sx.shape[1]
    blocks = (n + LANES - 1) // LANES
    for b in range(count):
        row = ((first + b) % blocks) * LANES
        real = min(LANES, n - row)
        for c in range(3):
            at = c * WIDTH + b * LANES
            for e in range(real):
                flat[at + e] = sx[c, row + e]
                flat[at + 3 * WIDTH + e] = sa[c, row + e]
            for e in range(real, LANES):
                flat[at + e] = 0.0
                flat[at + 3 * WIDTH + e] = 0.0
    for c in range(6, 6 + rows):
        flat[c * WIDTH : c * WIDTH + count * LANES] = 0.0


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
    for i in range(0, LANES, 2):
        a, b = _vorton(own, i), _vorton(own, i + 1)
        ua = va = wa = ub = vb = wb = type(s2)(0.0)
        for j in range(LANES * count):
            x, y, z = flat[j], flat[WIDTH + j], flat[2 * WIDTH + j]
            ax, ay, az = flat[3 * WIDTH + j], flat[4 * WIDTH + j], flat[5 * WIDTH + j]
            u, v, w = flat[6 * WIDTH + j], flat[7 * WIDTH + j], flat[8 * WIDTH + j]
            dx, dy, dz = _arm(code, a, x, y, z, s2, k, shift)
            ua += ay * dz - az * dy
            va += az * dx - ax * dz
            wa += ax * dy - ay * dx
            u -= a[4] * dz - a[5] * dy
            v -= a[5] * dx - a[3] * dz
            w -= a[3] * dy - a[4] * dx
            dx, dy, dz = _arm(code, b, x, y, z, s2, k, shift)
            ub += ay * dz - az * dy
            vb += az * dx - ax * dz
            wb += ax * dy - ay * dx
            u -= b[4] * dz - b[5] * dy
            v -= b[5] * dx - b[3] * dz
            w -= b[3] * dy - b[4] * dx
            flat[6 * WIDTH + j] = u
            flat[7 * WIDTH + j] = v
            flat[8 * WIDTH + j] = w
        for row, first, second in ((0, ua, ub), (1, va, vb), (2, wa, wb)):
            sums[row, i] += first
            sums[row, i + 1] += second


@njit(**_LOOP)
def _gradient_loop(code: int, flat: Any, count: int, own: Any, sums: Any, s2: Any) -> None:
    # Sums: g alpha x r, g alpha, and (alpha x r) (h r)^T but for its last entry: its trace is zero.
    k, shift = core_constant(code, s2), core_shift(code, s2)
    for i in range(LANES):
        px, py, pz, pa, pb, pc = _vorton(own, i)
        u = v = w = a = b = c = xx = xy = xz = yx = yy = yz = zx = zy = type(s2)(0.0)
        for j in range(LANES * count):
            dx, dy, dz = px - flat[j], py - flat[WIDTH + j], pz - flat[2 * WIDTH + j]
            ax, ay, az = flat[3 * WIDTH + j], flat[4 * WIDTH + j], flat[5 * WIDTH + j]
            g, h = gradient_factors(code, dx * dx + (dy * dy + (dz * dz + shift)), s2, k)
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
            flat[6 * WIDTH + j] -= g * cx
            flat[7 * WIDTH + j] -= g * cy
            flat[8 * WIDTH + j] -= g * cz
            flat[9 * WIDTH + j] += g * pa
            flat[10 * WIDTH + j] += g * pb
            flat[11 * WIDTH + j] += g * pc
            flat[12 * WIDTH + j] += cx * hx
            flat[13 * WIDTH + j] += cx * hy
            flat[14 * WIDTH + j] += cx * hz
            flat[15 * WIDTH + j] += cy * hx
            flat[16 * WIDTH + j] += cy * hy
            flat[17 * WIDTH + j] += cy * hz
            flat[18 * WIDTH + j] += cz * hx
            flat[19 * WIDTH + j] += cz * hy
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
    """The block ``own`` and ``count`` blocks of a list meet: terms of ``_gradient_loop`` to the sums of both."""
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
def _give(meet: Any, code: int, sx: Any, sa: Any, s2: Any, first: int, last: int, given: Any) -> None:
    """What blocks first:last meet, laid out from block ``first`` on, to the sums ``given``; then their own."""
    n = sx.shape[1]
    rows = given.shape[0]
    blocks = (n + LANES - 1) // LANES
    flat, own = _aligned(6 + rows, given), np.empty((6, LANES), given.dtype)
    sums = np.zeros((last - first + 1, rows, LANES), given.dtype)
    reach = last - first + blocks // 2
    # Lists of about equal length: short ones cost more per pair.
    lists = (reach * LANES + WIDTH - 1) // WIDTH
    for part in range(lists):
        start, stop = reach * part // lists, reach * (part + 1) // lists
        _fill(flat, rows, sx, sa, first + start, stop - start)
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
                given[c, start * LANES + e] = flat[(6 + c) * WIDTH + e]
    for b in range(last - first):
        for c in range(rows):
            for e in range(LANES):
                given[c, b * LANES + e] += sums[b, c, e]


@njit(**_TILE)
def _load(sx: Any, sa: Any, block: int, own: Any) -> None:
    row = block * LANES
    real = min(LANES, sx.shape[1] - row)
    own[:, real:] = 0.0
    for c in range(3):
        for e in range(real):
            own[c, e] = sx[c, row + e]
            own[3 + c, e] = sa[c, row + e]


@njit(**_TILE)
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


@njit(**_TILE)
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
        _give(_meet_velocity, code, sx, sa, s2, blocks * t // tasks, blocks * (t + 1) // tasks, given[t])
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
    vortons themselves; the arguments are those of ``velocity``. The trace of the gradient is zero to the bit."""
    n = sx.shape[1]
    s2 = sx.dtype.type(sigma * sigma)
    blocks, given = _scratch(_GRADIENT_SUMS, n, sx)
    tasks = given.shape[0]
    for t in prange(tasks):
        _give(_meet_gradient, code, sx, sa, s2, blocks * t // tasks, blocks * (t + 1) // tasks, given[t])
    factor = sx.dtype.type(SCALE)
    for t in prange(tasks):
        first = LANES * (blocks * t // tasks)
        count = min(LANES * (blocks * (t + 1) // tasks), n) - first
        total = np.empty((_GRADIENT_SUMS, count + LANES), sx.dtype)
        _collect(given, t, blocks, total)
        for e in range(count):
            v = total[:, e] * factor
            for c in range(3):
                u[first + e, c] = v[c]
            a, b, c = v[3], v[4], v[5]
            du[first + e, 0, 0] = v[6]
            du[first + e, 0, 1] = v[7] - c
            du[first + e, 0, 2] = v[8] + b
            du[first + e, 1, 0] = v[9] + c
            du[first + e, 1, 1] = v[10]
            du[first + e, 1, 2] = v[11] - a
            du[first + e, 2, 0] = v[12] - b
            du[first + e, 2, 1] = v[13] + a
            du[first + e, 2, 2] = -v[6] - v[10]
