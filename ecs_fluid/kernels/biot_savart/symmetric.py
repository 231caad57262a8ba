"""Direct summation at the vortons themselves, each pair met once.

Where the targets are the sources and all have one core radius sigma, the partners i, j of a pair share the
factor g = q/r^3 of ``regularisation.velocity_factor``. With r = x_i - x_j, i gets from j

    u += alpha_j x (g r) / 4 pi

and j from i the same with -r and alpha_i; what ``direct`` does twice for a pair is done once. Same equation,
same accuracy. Source: as ``direct``; the rest is Newton's third law, as used in molecular dynamics.

Velocity alone: for the gradient the 14 sums of each partner no longer fit in registers, and the symmetric
sum was 0.85 to 0.97 times as fast as the one-sided one (float64, float32).

Vortons lie in blocks of LANES around a circle: a block meets itself and the half circle after it. A task owns
a run of blocks and adds up, in arrays of its own, what it gives to all it meets; then every vorton collects
its parts in the order of the tasks. The tasks depend on the number of vortons alone, so the bits are the same
for any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numba.extending import overload

from ecs_fluid.kernels.biot_savart.pairwise import PAIR_SCALE
from ecs_fluid.kernels.biot_savart.regularisation import (
    GAUSSIAN,
    RANKINE,
    ROSENHEAD_MOORE,
    WINCKELMANS,
    core_constant,
    core_shift,
    velocity_factor,
)
from ecs_fluid.kernels.compiled import FAST
from ecs_fluid.kernels.compiled.vectors import INLINE, LANES, wide_vectors

MAX_VORTONS = 131_072
"""Above it the tasks' arrays (27 MB in float32) are no trifle, and other solvers are faster than any sum over
all pairs."""

MAX_TASKS, MIN_BLOCKS = 32, 4
"""Tasks at most, and blocks of a task at least."""

ROW_BYTES = 57 * 64
"""Length of a row of a list, so that its rows stay in a first-level cache of 48 KB (or near). An odd number
of cache lines, for rows a power of two apart would fall upon the same lines of the cache."""

_OPTIONS: dict[str, Any] = {"parallel": True, "cache": True, "fastmath": FAST, "error_model": "numpy"}
_TILE: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy"}
# Loops are inlined by numba, not by LLVM: see ``pairwise``.
_LOOP: dict[str, Any] = {**_TILE, "inline": "always"}

# A list is one flat array of rows x, y, z, alpha_x, alpha_y, alpha_z, three sums and the factors of a vorton
# with all of them: with constant distances the compiler knows that what it writes is not what it reads.


def applies(ssigma: Any) -> bool:
    """Whether core radii ``ssigma (n,)`` can be served here: all equal, 1 to MAX_VORTONS of them."""
    return bool(0 < ssigma.size <= MAX_VORTONS and ssigma.min() == ssigma.max())


def _width(flat: Any) -> int:
    """Vortons of a list; in compiled code a constant, for it depends on the precision alone."""
    return ROW_BYTES // int(flat.itemsize)


@overload(_width, jit_options=INLINE)
def _compiled_width(flat: Any) -> Any:
    width: int = ROW_BYTES * 8 // flat.dtype.bitwidth

    def constant(flat: Any) -> int:
        return width

    return constant


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
def _fill(flat: Any, sx: Any, sa: Any, first: int, count: int) -> None:
    """A list of ``count`` blocks from block ``first`` on, around the circle, with sums at zero.

    The last block is filled up with vortons of no strength.
    """
    n, width = sx.shape[1], _width(flat)
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
    for c in range(6, 9):
        flat[c * width : c * width + count * LANES] = 0.0


@njit(**_LOOP)
def _velocity_loop(code: int, flat: Any, count: int, own: Any, sums: Any, s2: Any) -> None:
    k, shift, width = core_constant(code, s2), core_shift(code, s2), _width(flat)
    # One vorton at a time: with two, the compiler may order the sums of the list in several ways, and fresh
    # and cached code had different bits. Factors first, then what they multiply: in one loop the chain from
    # distance to sum is too long for the processor to have enough pairs under way.
    for i in range(LANES):
        px, py, pz, a, b, c = own[0, i], own[1, i], own[2, i], own[3, i], own[4, i], own[5, i]
        for j in range(LANES * count):
            dx, dy, dz = px - flat[j], py - flat[width + j], pz - flat[2 * width + j]
            flat[9 * width + j] = velocity_factor(code, dx * dx + (dy * dy + (dz * dz + shift)), s2, k)
        u = v = w = type(s2)(0.0)
        for j in range(LANES * count):
            f = flat[9 * width + j]
            ax, ay, az = flat[3 * width + j], flat[4 * width + j], flat[5 * width + j]
            fu, fv, fw = flat[6 * width + j], flat[7 * width + j], flat[8 * width + j]
            dx = f * (px - flat[j])
            dy = f * (py - flat[width + j])
            dz = f * (pz - flat[2 * width + j])
            u += ay * dz - az * dy
            v += az * dx - ax * dz
            w += ax * dy - ay * dx
            flat[6 * width + j] = fu - (b * dz - c * dy)
            flat[7 * width + j] = fv - (c * dx - a * dz)
            flat[8 * width + j] = fw - (a * dy - b * dx)
        sums[0, i] += u
        sums[1, i] += v
        sums[2, i] += w


@njit(**_TILE)
def _meet(code: int, flat: Any, count: int, own: Any, sums: Any, s2: Any) -> None:
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


@njit(**_LOOP)
def _give(code: int, sx: Any, sa: Any, s2: Any, first: int, last: int, given: Any) -> None:
    """Sums of all pairs that blocks first:last meet: ``given`` lists the vortons from block ``first`` on."""
    n = sx.shape[1]
    blocks = (n + LANES - 1) // LANES
    width = _width(given)
    most = width // LANES
    flat, own = _aligned(10 * width, given), np.empty((6, LANES), given.dtype)
    sums = np.zeros((last - first + 1, 3, LANES), given.dtype)
    reach = last - first + blocks // 2
    # Lists of about equal length: short ones cost more per pair.
    lists = (reach + most - 1) // most
    for part in range(lists):
        start, stop = reach * part // lists, reach * (part + 1) // lists
        _fill(flat, sx, sa, first + start, stop - start)
        for b in range(last - first):
            lo, hi = max(b + 1, start), min(b + 1 + _partners(first + b, blocks), stop)
            _load(sx, sa, first + b, own)
            if start <= b < stop:
                # The block meets itself: every pair comes twice, so one side of it is left in the spare sums.
                _meet(code, flat[(b - start) * LANES :], 1, own, sums[last - first], s2)
            if hi > lo:
                _meet(code, flat[(lo - start) * LANES :], hi - lo, own, sums[b], s2)
        for c in range(3):
            for e in range((stop - start) * LANES):
                given[c, start * LANES + e] = flat[(6 + c) * width + e]
    for b in range(last - first):
        for c in range(3):
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
            for c in range(3):
                for e in range(count):
                    total[c, e] += given[giver, c, at * LANES + e]


@njit(**INLINE)
def _scratch(n: int, like: Any) -> Any:
    """Number of blocks and ``given (tasks, 3, vortons that a task meets)``."""
    blocks = (n + LANES - 1) // LANES
    tasks = min(MAX_TASKS, (blocks + MIN_BLOCKS - 1) // MIN_BLOCKS)
    longest = (blocks + tasks - 1) // tasks if tasks > 0 else 0
    return blocks, np.empty((tasks, 3, LANES * (longest + blocks // 2)), like.dtype)


@njit(**_OPTIONS)
def velocity(code: int, sx: Any, sa: Any, sigma: float, u: Any) -> None:
    """Velocity ``u (n, 3)`` [m/s] at the vortons ``sx (3, n)`` [m], ``sa (3, n)`` [m^3/s], all of core radius
    ``sigma`` [m] (positive); ``code`` is the regularisation."""
    n = sx.shape[1]
    s2 = sx.dtype.type(sigma * sigma)
    blocks, given = _scratch(n, sx)
    tasks = given.shape[0]
    for t in prange(tasks):
        first, last = blocks * t // tasks, blocks * (t + 1) // tasks
        _give(code, sx, sa, s2, first, last, given[t])
    factor = sx.dtype.type(PAIR_SCALE)
    for t in prange(tasks):
        first = LANES * (blocks * t // tasks)
        count = min(LANES * (blocks * (t + 1) // tasks), n) - first
        total = np.empty((3, count + LANES), sx.dtype)
        _collect(given, t, blocks, total)
        for e in range(count):
            for c in range(3):
                u[first + e, c] = factor * total[c, e]
