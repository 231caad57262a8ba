"""The near part of the fast multipole method: leaves too close for expansions, summed in pairs.

The pair loops are those of the direct sum (``pairwise``). Potential, velocity and gradient have a kernel
each, so that only the loops in use are compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import get_thread_id, njit
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart.pairwise import (
    BLOCK,
    GRADIENT_SUMS,
    PAIR_SCALE,
    POTENTIAL_SUMS,
    SCALE,
    VELOCITY_SUMS,
    add_gradient,
    add_potential,
    add_velocity,
    join_gradient,
    pad_pack,
)
from ecs_fluid.kernels.biot_savart.regularisation_dispatch import renamed
from ecs_fluid.kernels.compiled import FAST_LOOP
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors
from ecs_fluid.kernels.fmm.lane_rows import PART, copy_row, for_threads

_GROUPS = 256
"""Rows of lanes in a row of a pack, enough for most neighbourhoods of a leaf: every pack ends with sums
across the lanes for every target. One more row holds what is copied beyond the last vorton."""


def near_scratch(dtype: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """A pack, the points and the sums of a block of targets, for every thread."""
    pack = for_threads(8, dtype, _GROUPS + 1)
    threads = pack.shape[0]
    return pack, np.empty((threads, 3, BLOCK), dtype), np.empty((threads, GRADIENT_SUMS, BLOCK), dtype)


@njit(**PART)
def _append_to_pack(packed: Any, pack: Any, filled: int, first: int, count: int) -> None:
    """Put vortons first:first + count behind the ``filled`` ones of the pack, and others behind them.

    Whole rows of lanes are copied: loops of no fixed length took three times as long.
    """
    wide_vectors()
    width = pack.shape[1] // (_GROUPS + 1)
    for a in range(8):
        to, given = a * pack.shape[1] + filled, a * packed.shape[1] + first
        for i in range(0, count, width):
            copy_row(pack, to + i, packed, given + i)


@njit(**PART)
def _next_pack(s: Any, near: Any, at: Any, done: Any, last: Any, pack: Any) -> Any:
    """Fill the pack with vortons of the leaves ``near[at:last]``; ``done`` of the first leaf are done.

    Returns the number of vortons in the pack and the new ``at`` and ``done``.
    """
    filled, depth, n = np.int64(0), s.tree.depth, s.ssigma.size
    leaves = (np.int64(1) << np.int64(depth)) - 1
    room = pack.shape[1] // (_GROUPS + 1) * _GROUPS
    while at < last and filled < room:
        k = near[at] - leaves
        first, end = ((k * n) >> depth) + done, ((k + 1) * n) >> depth
        count = end - first
        if count > room - filled:
            count = room - filled
            done += count
        else:
            at += 1
            done = np.int64(0)
        _append_to_pack(s.packed, pack, filled, first, count)
        filled += count
    return filled, at, done


def _near_kernel(name: str, loop: Any, rows: int, scale: float) -> Any:
    """The kernel that sums, by this pair loop, what ``walk`` left over (same arguments and lists).

    It adds to ``u (m, 3)`` and, for a loop that also sums gradients, to ``du (m, 9)``; ``pairs`` gets the
    number of pairs of each piece.
    """

    def near_part(
        piece: int, s: Any, target: Any, top: int, spans: Any, near: Any, ends: Any, blocks: Any, pairs: Any,
        u: Any, du: Any,
    ) -> None:  # fmt: skip
        own, span = get_thread_id(), spans[piece]
        pack, points, sums = blocks[0][own], blocks[1][own], blocks[2][own]
        factor, m, depth, met = u.dtype.type(scale), target.order.size, target.depth, 0
        for leaf in range(span[1], span[2]):
            k = (span[0] << (depth - top)) + leaf
            end = ((k + 1) * m) >> depth
            for low in range((k * m) >> depth, end, BLOCK):
                count = BLOCK if end - low > BLOCK else end - low
                for i in range(4 * ((count + 3) // 4)):
                    at = low + i if i < count else low + count - 1
                    for a in range(3):
                        points[a, i] = target.x[a, at]
                    for row in range(rows):
                        sums[row, i] = 0.0
                at, done = ends[k, 0], np.int64(0)
                while at < ends[k, 1]:
                    filled, at, done = _next_pack(s, near, at, done, ends[k, 1], pack)
                    met += count * filled
                    loop(s.code, pack, pad_pack(pack, filled), points, count, sums)
                if rows == GRADIENT_SUMS:
                    join_gradient(count, sums)
                for i in range(count):
                    row = target.order[low + i]
                    for a in range(3):
                        u[row, a] += factor * sums[a, i]
                    for a in range(du.shape[1]):
                        du[row, a] += factor * sums[3 + a, i]
        pairs[piece] = met

    return parallel("spans.shape[0]", **FAST_LOOP)(renamed(near_part, name))


near_potential = _near_kernel("near_potential", add_potential, POTENTIAL_SUMS, SCALE)
near_velocity = _near_kernel("near_velocity", add_velocity, VELOCITY_SUMS, PAIR_SCALE)
near_gradient = _near_kernel("near_gradient", add_gradient, GRADIENT_SUMS, PAIR_SCALE)
