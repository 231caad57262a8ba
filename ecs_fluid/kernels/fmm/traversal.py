"""The walk of the fast multipole method: from pieces of the target tree down to its leaves.

On the way down the target tree, a node inherits the source nodes that were too close for its parent. Those
far enough away act on its local expansion (``expansions``), larger ones are replaced by their children, and
the rest is left to its own two children. A leaf evaluates its expansion; the source nodes that remain are its
list for ``near_field``.

Pieces do not depend on one another, and every target adds its sources in an order that depends on the points
alone, so the result has the same bits for any number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import get_thread_id, njit
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart.pairwise import SCALE
from ecs_fluid.kernels.biot_savart.regularisation import RECORDS, Code
from ecs_fluid.kernels.biot_savart.regularisation_dispatch import by_code
from ecs_fluid.kernels.compiled import FAST_LOOP
from ecs_fluid.kernels.compiled.parallel import atomic_add, parallel
from ecs_fluid.kernels.fmm.accuracy import Settings
from ecs_fluid.kernels.fmm.expansions import evaluate, local_curl, local_down
from ecs_fluid.kernels.fmm.lane_rows import PART, for_threads, lanes
from ecs_fluid.kernels.fmm.m2l import (
    add_local,
    collect_lanes,
    fill_derivatives,
    gather_moments,
    prepare_lanes,
    softened,
)
from ecs_fluid.kernels.fmm.multi_indices import Orders
from ecs_fluid.kernels.fmm.point_tree import PointTree

POTENTIAL, VELOCITY, GRADIENT = 0, 1, 2
"""What a walk computes."""

_LEAST_ORDER = 2  # the gradient of the velocity is a second derivative
_ORDERS = 64  # a node and an order share a number: node * _ORDERS + order


_far_enough = by_code(
    "far_enough",
    [blob.far_enough for blob in RECORDS],
    "distance, r2, least, mean, largest, spread, clearance, mixed",
)


class Sources(NamedTuple):
    """Vortons, prepared for sums with one regularisation."""

    code: Code
    settings: Settings
    orders: Orders
    tree: PointTree
    sa: NDArray[Any]
    """(3, n) strengths in the order of the tree, m^3/s"""
    ssigma: NDArray[Any]
    """(n,) core radii in the order of the tree, m"""
    moments: NDArray[Any]
    """(nodes, c, 3)"""
    packed: NDArray[Any]
    """(8, n and some) the same and more, ready for the pair loops"""
    cards: NDArray[np.float64]
    """(nodes, 8) what the walk reads of a node, on one cache line: mean, least and largest sigma^2, m^2; sum
    of |alpha|, m^3/s; centre and radius, m"""


class Scratch(NamedTuple):
    """Working arrays of a walk: rows of lanes for a batch of source nodes or of targets, and expansions.

    Either those of all threads, with the thread as the first index, or those of one thread.
    """

    direction: Any
    f: Any
    ratios: Any
    gathered: Any
    powers: Any
    d: Any
    lanes_local: Any
    offsets: Any
    out: Any
    local: Any
    """(levels + 1, c, 3) local expansions down to a leaf"""
    curl: Any
    """(c, 3) expansion of the velocity"""
    shift: Any
    """(3,) way between the centres of a node and its child"""
    places: Any
    """(lanes,) where the moments of the batch's nodes begin"""


def scratch(o: Orders, levels: int, dtype: Any) -> Scratch:
    """Scratch for ``walk`` over pieces of ``levels`` levels below their node."""
    c = o.degree.size
    rows = (5, o.order + 1, o.order + 2, 3 * c + 8, o.order + 1, (o.order + 1) * c, 3 * c, 3, 12)
    arrays = [for_threads(count, dtype) for count in rows]
    threads = arrays[0].shape[0]
    arrays += [np.empty((threads, levels + 1, c, 3), dtype), np.empty((threads, c, 3), dtype)]
    arrays += [np.empty((threads, 3)), np.empty((threads, lanes(dtype)), np.int64)]
    return Scratch(*arrays)


@njit(**PART)
def _scratch_of_thread(w: Any) -> Any:
    """The scratch of the calling thread."""
    i = get_thread_id()
    return Scratch(
        w.direction[i], w.f[i], w.ratios[i], w.gathered[i], w.powers[i], w.d[i], w.lanes_local[i],
        w.offsets[i], w.out[i], w.local[i], w.curl[i], w.shift[i], w.places[i],
    )  # fmt: skip


@njit(**PART, forceinline=True)
def _order_needed(s: Any, reach: Any, x: float, y: float, z: float, radius: float, node: Any) -> int:
    """Order of expansion by which the source node ``node`` may act on a target node, 0 if it is too close.

    The target node has the centre x, y, z and the ``radius``. The series converges like (a + b)/distance to
    the power of the order, so farther pairs need fewer terms for the same error: ``reach[p]`` is the square
    of the largest ratio for which order p suffices.
    """
    how, cards = s.settings, s.cards
    x, y, z = x - cards[node, 4], y - cards[node, 5], z - cards[node, 6]
    r2 = x * x + y * y + z * z
    extent = radius + cards[node, 7]
    mean, least, largest = cards[node, 0], cards[node, 1], cards[node, 2]
    square = r2 + least if softened(s.code) else r2
    far = _far_enough(
        s.code, np.sqrt(r2) - extent, r2, least, mean, largest, how.spread, how.clearance, how.mixed_clearance
    )  # fmt: skip
    # Counted without branches, which the processor could not predict.
    order = _LEAST_ORDER
    for q in range(_LEAST_ORDER, how.order):
        order += int(extent * extent > reach[q] * square)
    return order * int(far & (extent * extent < how.opening * how.opening * square))


@njit(**PART)
def _doubled(rows: Any) -> Any:
    """The list, copied to an array of twice its length."""
    longer = np.empty(2 * rows.size, np.int64)
    for i in range(rows.size):
        longer[i] = rows[i]
    return longer


@njit(**PART)
def _divide_queue(
    s: Any, reach: Any, target: Any, t: Any, leaf: bool, queue: Any, far: Any, pending: Any, ends: Any
) -> None:
    """Divide the source nodes of ``queue`` among ``far`` and ``pending`` as long as all three have room.

    Nodes that are too close and too large go back into the queue as their two children. ``ends`` holds the
    position in the queue and the ends of queue, far and pending.
    """
    tree, cards = s.tree, s.cards
    leaves = (np.int64(1) << np.int64(tree.depth)) - 1
    targets = target.order.size >> target.depth
    direct = leaf and (targets + 1) * ((s.ssigma.size >> tree.depth) + 1) <= s.settings.pairs
    x, y, z = target.centre[t, 0], target.centre[t, 1], target.centre[t, 2]
    radius = target.radius[t]
    # A leaf opens every node.
    opened = -1.0 if leaf else radius
    head, tail, count, used = ends[0], ends[1], ends[2], ends[3]
    while head < tail and tail + 2 <= queue.size and count < far.size and used < pending.size:
        node = queue[head]
        head += 1
        order = _order_needed(s, reach, x, y, z, radius, node)
        inner = node < leaves
        met = (order > 0) & (inner | (not direct))
        split = (not met) & inner & (cards[node, 7] > opened)
        # All three are written, and counters decide what is kept: a branch would be mispredicted half the
        # time.
        far[count] = node * _ORDERS + order
        count += np.int64(met)
        queue[tail], queue[tail + 1] = 2 * node + 1, 2 * node + 2
        tail += 2 * np.int64(split)
        pending[used] = node
        used += np.int64(not (met or split))
    ends[0], ends[1], ends[2], ends[3] = head, tail, count, used


@njit(**PART)
def _divide_inherited(
    s: Any, reach: Any, target: Any, t: Any, leaf: bool, pending: Any, first: Any, last: Any, far: Any,
    queue: Any, ends: Any,
) -> Any:  # fmt: skip
    """Divide the inherited source nodes ``pending[first:last]`` into far ones and those to be handed down.

    Puts nodes that act by expansion, with their orders, into ``far`` and appends the rest to ``pending``; the
    ends of both go to ``ends[2:]``. Returns the three lists, replaced by longer ones where these were short.
    """
    while queue.size < last - first + 2:
        queue = _doubled(queue)
    for at in range(last - first):
        queue[at] = pending[first + at]
    ends[0], ends[1], ends[2], ends[3] = 0, last - first, 0, last
    while True:
        _divide_queue(s, reach, target, t, leaf, queue, far, pending, ends)
        if ends[0] == ends[1]:
            return far, pending, queue
        if ends[1] + 2 > queue.size:
            queue = _doubled(queue)
        if ends[2] == far.size:
            far = _doubled(far)
        if ends[3] == pending.size:
            pending = _doubled(pending)


@njit(**PART)
def _sort_by_order(far: Any, count: int, ranked: Any, place: Any) -> None:
    """Copy the nodes of ``far[:count]`` to ``ranked``, lowest order first, otherwise in the same sequence.

    Afterwards the nodes of order q end at place[q].
    """
    for q in range(place.size):
        place[q] = 0
    for i in range(count):
        place[far[i] % _ORDERS + 1] += 1
    for q in range(1, place.size):
        place[q] += place[q - 1]
    for i in range(count):
        order = far[i] % _ORDERS
        ranked[place[order]] = far[i] // _ORDERS
        place[order] += 1


@njit(**PART)
def _add_expansions(
    mode: int, s: Any, target: Any, t: Any, far: Any, count: int, ranked: Any, place: Any, w: Any, local: Any
) -> None:
    """Add what the source nodes ``far[:count]`` contribute to ``local``, the expansion of target node t."""
    _sort_by_order(far, count, ranked, place)
    order = _LEAST_ORDER
    for low in range(0, count, w.d.shape[1]):
        met = w.d.shape[1] if w.d.shape[1] < count - low else count - low
        # The order of the last node serves the batch.
        while place[order] < low + met:
            order += 1
        prepare_lanes(s, order, target, t, ranked, low, met, w)
        gather_moments(s.orders, order, s.moments, w.places, w.ratios, w.gathered)
        fill_derivatives(s.orders, order, w.direction, w.f, w.d)
        # A constant of the potential is neither velocity nor gradient.
        least = 0 if mode == POTENTIAL else 1
        add_local(s.orders, order, least, w.gathered, w.powers, w.d, w.lanes_local)
    collect_lanes(w.lanes_local, local)


@njit(**PART)
def _evaluate_leaf(mode: int, o: Any, local: Any, target: Any, t: Any, w: Any, u: Any, du: Any) -> None:
    """Write the values of the local expansion of leaf t at its targets to u and du."""
    scale, m = target.scale[t], target.order.size
    k = t - ((np.int64(1) << np.int64(target.depth)) - 1)
    last = ((k + 1) * m) >> target.depth
    order, series, inverse = o.order, local, 1.0 / scale
    x, y, z = target.centre[t, 0], target.centre[t, 1], target.centre[t, 2]
    if mode != POTENTIAL:
        local_curl(o, local, scale, w.curl)
        order, series = o.order - 1, w.curl
    for first in range((k * m) >> target.depth, last, w.out.shape[1]):
        count = w.out.shape[1] if w.out.shape[1] < last - first else last - first
        for lane in range(count):  # the other lanes keep their former values
            w.offsets[0, lane] = (np.float64(target.x[0, first + lane]) - x) * inverse
            w.offsets[1, lane] = (np.float64(target.x[1, first + lane]) - y) * inverse
            w.offsets[2, lane] = (np.float64(target.x[2, first + lane]) - z) * inverse
        # Rows of the gathered moments serve as scratch for the monomials.
        evaluate(o, order, series, scale, SCALE, mode == GRADIENT, w.offsets, w.gathered, w.out)
        for lane in range(count):
            row = target.order[first + lane]
            for a in range(3):
                u[row, a] = w.out[a, lane]
            for a in range(du.shape[1]):
                du[row, a] = w.out[3 + a, lane]


@parallel("spans.shape[0]", **FAST_LOOP)
def walk(
    piece: int, mode: int, s: Any, target: Any, top: int, spans: Any, all_scratch: Any, near: Any, used: Any,
    ends: Any, met: Any, u: Any, du: Any,
) -> None:  # fmt: skip
    """The far part of the sums at the targets of pieces of their tree.

    ``mode`` is POTENTIAL, VELOCITY or GRADIENT. Piece i is node spans[i, 0] of level ``top``, from its leaf
    spans[i, 1] up to spans[i, 2]. ``all_scratch`` is scratch. Results go to ``u (m, 3)`` and, with GRADIENT,
    ``du (m, 9)`` (else (0, 0)) in the sequence of the given targets. For the near part, leaf k has still to
    add the source leaves near[ends[k, 0] : ends[k, 1]]. used[0] counts them all, even if ``near`` is too
    short for them; then the walk must be repeated with a longer one. met[i] is the number of node pairs of
    piece i that met by expansion.
    """
    o, how, w = s.orders, s.settings, _scratch_of_thread(all_scratch)
    c, levels, node = o.degree.size, target.depth - top, spans[piece, 0]
    reach = np.empty(how.order + 1)
    for q in range(1, how.order + 1):
        # Half an order to spare: pairs that need few terms are many.
        reach[q] = 0.0 if how.full else how.opening ** ((2.0 * how.order + 1.0) / q)
    local, shift, queue = w.local, w.shift, np.empty(1024, np.int64)
    far, pending, ranked = np.empty(512, np.int64), np.empty(1024, np.int64), np.empty(512, np.int64)
    place, limits = np.empty(how.order + 2, np.int64), np.empty(4, np.int64)
    # Level i of the piece inherits pending[begin[i] : begin[i + 1]]; level 0 inherits the root.
    begin = np.empty(levels + 3, np.int64)
    begin[0], begin[1] = 0, 1
    pending[0], met[piece] = 0, 0
    for leaf in range(spans[piece, 1], spans[piece, 2]):
        level = 0  # the highest level whose node is not that of the leaf before
        while leaf > spans[piece, 1] and (leaf >> (levels - level)) << (levels - level) != leaf:
            level += 1
        for i in range(level, levels + 1):
            t = (np.int64(1) << np.int64(top + i)) - 1 + (node << i) + (leaf >> (levels - i))
            if i > 0:
                above = (t - 1) // 2
                for a in range(3):
                    shift[a] = target.centre[t, a] - target.centre[above, a]
                local_down(o, shift, local[i - 1], target.scale[above], target.scale[t], local[i])
            else:
                for m in range(c):
                    local[0, m, 0] = local[0, m, 1] = local[0, m, 2] = 0.0
            far, pending, queue = _divide_inherited(
                s, reach, target, t, i == levels, pending, begin[i], begin[i + 1], far, queue, limits
            )
            count, begin[i + 2] = limits[2], limits[3]
            met[piece] += count
            if count > 0:
                if ranked.size < far.size:
                    ranked = np.empty(far.size, np.int64)
                _add_expansions(mode, s, target, t, far, count, ranked, place, w, local[i])
        _evaluate_leaf(mode, o, w.local[levels], target, t, w, u, du)
        first, last = begin[levels + 1], begin[levels + 2]
        at = atomic_add(used, 0, last - first)
        k = (node << levels) + leaf
        ends[k, 0], ends[k, 1] = at, at + last - first
        if ends[k, 1] <= near.size:
            near[at : ends[k, 1]] = pending[first:last]
