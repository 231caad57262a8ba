"""The walk of the fast multipole method: from pieces of the target tree down to velocities at points.

Going down the target tree, a node inherits the source nodes that its parent could not deal with. Those far
enough away act on its local expansion (``fmm_expansions``), larger ones are opened, and the rest is left to
its two children. A leaf evaluates its expansion and sums what is left by the pair loops of the direct sum.

Every piece works by itself and every target adds its sources in an order that depends on the points alone, so
the result has the same bits for any number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ecs_fluid.kernels import FAST
from ecs_fluid.kernels.fmm_accuracy import Settings
from ecs_fluid.kernels.fmm_expansions import (
    add_local,
    collect_lanes,
    evaluate,
    evaluate_gradient,
    gather_moments,
    local_curl,
    local_down,
    prepare_lanes,
)
from ecs_fluid.kernels.fmm_lanes import rows_of_lanes
from ecs_fluid.kernels.fmm_orders import Orders
from ecs_fluid.kernels.fmm_tree import PointTree
from ecs_fluid.kernels.pairwise import (
    BLOCK,
    GRADIENT_SUMS,
    SCALE,
    VELOCITY_SCALE,
    add_gradient,
    add_potential,
    add_velocity,
    block_arrays,
    pad_pack,
    store_block,
)
from ecs_fluid.kernels.regularisation import GAUSSIAN, RANKINE, ROSENHEAD_MOORE, core_constant

_OPTIONS: dict[str, Any] = {"parallel": True, "cache": True, "fastmath": FAST, "error_model": "numpy"}
_PART: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy"}

POTENTIAL, VELOCITY, GRADIENT = 0, 1, 2
"""What a walk computes."""

_LEAST_ORDER = 2  # the gradient of the velocity is a second derivative


class Sources(NamedTuple):
    """Vortons prepared for sums with one regularisation."""

    code: int
    settings: Settings
    orders: Orders
    tree: PointTree
    sa: NDArray[Any]
    """(3, n) strengths in the order of the tree, m^3/s"""
    ssigma: NDArray[Any]
    """(n,) core radii in the order of the tree, m"""
    moments: NDArray[Any]
    """(nodes, c, 3)"""
    s2: NDArray[np.float64]
    """(nodes, 3) mean, least and largest sigma^2, m^2"""


class _Lanes(NamedTuple):
    """Scratch rows of lanes for a batch of source nodes."""

    direction: Any
    f: Any
    ratios: Any
    gathered: Any
    powers: Any
    d: Any
    local: Any
    offsets: Any
    out: Any


@njit(**_PART)
def _scratch(order: int, c: int, like: Any) -> Any:
    gathered, local = rows_of_lanes(3 * c, like), rows_of_lanes(3 * c, like)
    # Unused lanes are multiplied by zero, which is not enough for what memory may hold.
    gathered[:] = 0.0
    local[:] = 0.0
    return _Lanes(
        rows_of_lanes(3, like),
        rows_of_lanes(order + 1, like),
        rows_of_lanes(order + 1, like),
        gathered,
        rows_of_lanes(order + 1, like),
        rows_of_lanes(c, like),
        local,
        rows_of_lanes(3, like),
        rows_of_lanes(12, like),
    )


@njit(**_PART)
def _order_needed(s: Any, reach: Any, target: Any, t: Any, node: Any) -> int:
    """Order of expansion that target node t and a source node need to meet, 0 if they are too close for any.

    The series converges like (a + b)/distance to the power of the order, so pairs at less than the opening
    keep the error with fewer terms: ``reach[p]`` is the square of the ratio that order p can do.
    """
    how, tree = s.settings, s.tree
    r2 = 0.0
    for a in range(3):
        r2 += (target.centre[t, a] - tree.centre[node, a]) ** 2
    extent = target.radius[t] + tree.radius[node]
    mean, least, largest = s.s2[node, 0], s.s2[node, 1], s.s2[node, 2]
    singular = s.code in (GAUSSIAN, RANKINE)
    square = r2 if singular else r2 + least
    if extent * extent >= how.opening * how.opening * square:
        return 0
    if singular:
        clearance = how.clearance if largest - least <= how.spread * largest else how.mixed_clearance
        far = np.sqrt(r2) - extent >= clearance * np.sqrt(largest)
    elif s.code == ROSENHEAD_MOORE:
        # Change of 1 - q by that of sigma^2, from the leading term 3/2 rho^-2 of the tail, doubled because
        # strengths of both signs do not profit from the mean.
        far = 3.0 * (largest - least) <= how.spread * (r2 + mean)
    else:  # the tail is 15/8 rho^-4
        far = 3.75 * largest * (largest - least) <= how.spread * (r2 + mean) ** 2
    if not far:
        return 0
    order = _LEAST_ORDER
    while order < how.order and extent * extent > reach[order] * square:
        order += 1
    return order


@njit(**_PART)
def _sort_out(
    s: Any,
    reach: Any,
    target: Any,
    t: Any,
    leaf: bool,
    pending: Any,
    first: Any,
    last: Any,
    far: Any,
    stack: Any,
) -> Any:
    """Share the inherited source nodes ``pending[first:last]`` between expansion and what is handed down.

    Puts rows (node, order) into ``far`` and appends what is left to ``pending``; returns both lists and their
    ends. Lists are replaced by longer ones where they are too short.
    """
    tree = s.tree
    leaves = (np.int64(1) << np.int64(tree.depth)) - 1
    targets = target.order.size >> target.depth
    direct = leaf and (targets + 1) * ((s.ssigma.size >> tree.depth) + 1) <= s.settings.pairs
    used, count = last, 0
    for at in range(first, last):
        stack[0] = pending[at, 0]
        depth = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            order = 0
            if not direct or node < leaves:
                order = _order_needed(s, reach, target, t, node)
            if order > 0:
                far = _room(far, count)
                far[count, 0] = node
                far[count, 1] = order
                count += 1
            elif node < leaves and (leaf or tree.radius[node] > target.radius[t]):
                stack[depth] = 2 * node + 2
                stack[depth + 1] = 2 * node + 1
                depth += 2
            else:
                pending = _room(pending, used)
                pending[used, 0] = node
                used += 1
    return far, count, pending, used


@njit(**_PART)
def _room(rows: Any, used: Any) -> Any:
    """The list, copied to twice its length if it is full."""
    if used < rows.shape[0]:
        return rows
    longer = np.empty((2 * rows.shape[0], rows.shape[1]), rows.dtype)
    longer[: rows.shape[0]] = rows
    return longer


@njit(**_PART)
def _by_order(far: Any, count: int, highest: int) -> Any:
    """Rows (node, order) of ``far[:count]``, highest order first, otherwise in their sequence."""
    ranked = np.empty((count, 2), np.int64)
    place = np.zeros(highest + 2, np.int64)
    for i in range(count):
        place[highest - far[i, 1] + 1] += 1
    for q in range(highest + 1):
        place[q + 1] += place[q]
    for i in range(count):
        at = highest - far[i, 1]
        ranked[place[at]] = far[i]
        place[at] += 1
    return ranked


@njit(**_PART)
def _add_expansions(s: Any, target: Any, t: Any, far: Any, count: int, w: Any, local: Any) -> None:
    """The source nodes ``far[:count]`` act on the local expansion of target node t."""
    ranked = _by_order(far, count, s.orders.order)
    width = w.d.shape[1]
    for low in range(0, count, width):
        nodes, order = ranked[low : min(low + width, count), 0], ranked[low, 1]
        prepare_lanes(s, order, target, t, nodes, w)
        gather_moments(s.orders, order, s.moments, nodes, w.ratios, w.gathered)
        add_local(s.orders, order, w.direction, w.f, w.gathered, w.powers, w.d, w.local)
    collect_lanes(w.local, local)


@njit(**_PART)
def _sum_pairs(mode: int, code: int, pack: Any, filled: int, points: Any, count: int, sums: Any) -> None:
    groups = pad_pack(pack, filled)
    if mode == VELOCITY:
        add_velocity(code, pack, groups, points, count, sums)
    elif mode == GRADIENT:
        add_gradient(code, pack, groups, points, count, sums)
    else:
        add_potential(code, pack, groups, points, count, sums)


@njit(**_PART)
def _sum_near(mode: int, s: Any, near: Any, points: Any, count: int, pack: Any, sums: Any) -> int:
    """The vortons of the source leaves ``near`` act on a block of targets; returns how many they are."""
    filled, total, depth, n = 0, 0, s.tree.depth, s.ssigma.size
    leaves = (np.int64(1) << np.int64(depth)) - 1
    for node in near:
        first, last = ((node - leaves) * n) >> depth, ((node - leaves + 1) * n) >> depth
        total += last - first
        while first < last:
            if filled == pack.shape[1]:
                _sum_pairs(mode, s.code, pack, filled, points, count, sums)
                filled = 0
            step = min(last - first, pack.shape[1] - filled)
            for a in range(3):
                for i in range(step):
                    pack[a, filled + i] = s.tree.x[a, first + i]
                    pack[3 + a, filled + i] = s.sa[a, first + i]
            for i in range(step):
                square = s.ssigma[first + i] * s.ssigma[first + i]
                pack[6, filled + i] = square
                pack[7, filled + i] = core_constant(s.code, square)
            filled += step
            first += step
    if filled > 0:
        _sum_pairs(mode, s.code, pack, filled, points, count, sums)
    return int(total)


@njit(**_PART)
def _add_far(
    mode: int, o: Any, local: Any, curl: Any, target: Any, t: Any, points: Any, count: int, w: Any, sums: Any
) -> None:
    """Add the local expansion of leaf t at a block of targets to their sums."""
    scale, width = target.scale[t], w.out.shape[1]
    # The velocity loop sums eight times what the two other loops sum.
    factor = sums.dtype.type(8.0 if mode == VELOCITY else 1.0)
    rows = 12 if mode == GRADIENT else 3
    for first in range(0, count, width):
        for lane in range(width):
            at = min(first + lane, count - 1)
            for a in range(3):
                w.offsets[a, lane] = (np.float64(points[a, at]) - target.centre[t, a]) / scale
        # Rows of the gathered moments serve as scratch for the monomials.
        if mode == POTENTIAL:
            evaluate(o, o.order, local, w.offsets, w.gathered, w.out)
        elif mode == VELOCITY:
            evaluate(o, o.order - 1, curl, w.offsets, w.gathered, w.out)
        else:
            evaluate_gradient(o, o.order - 1, curl, scale, w.offsets, w.gathered, w.out)
        for row in range(rows):
            for lane in range(min(width, count - first)):
                sums[row, first + lane] += factor * w.out[row, lane]


@njit(**_PART)
def _finish_leaf(
    mode: int,
    s: Any,
    target: Any,
    t: Any,
    near: Any,
    local: Any,
    curl: Any,
    blocks: Any,
    w: Any,
    u: Any,
    du: Any,
) -> int:
    """Results at the targets of leaf t: near sources in pairs, all others by the local expansion."""
    pack, points, sums = blocks
    m, depth = target.order.size, target.depth
    k = t - ((np.int64(1) << np.int64(depth)) - 1)
    first, last, pairs = (k * m) >> depth, ((k + 1) * m) >> depth, 0
    if mode != POTENTIAL:
        local_curl(s.orders, local, target.scale[t], curl)
    for low in range(first, last, BLOCK):
        count = min(BLOCK, last - low)
        for i in range(4 * ((count + 3) // 4)):
            for a in range(3):
                points[a, i] = target.x[a, low + min(i, count - 1)]
        sums[:] = 0.0
        pairs += count * _sum_near(mode, s, near, points, count, pack, sums)
        _add_far(mode, s.orders, local, curl, target, t, points, count, w, sums)
        store_block(sums, 0, VELOCITY_SCALE if mode == VELOCITY else SCALE, target.order, low, count, u)
        if mode == GRADIENT:
            store_block(sums, 3, SCALE, target.order, low, count, du)
    return int(pairs)


@njit(**_PART)
def _walk(mode: int, s: Any, target: Any, top: int, span: Any, reach: Any, u: Any, du: Any) -> Any:
    """One piece: target node span[0] of level ``top``, from its leaf span[1] up to span[2]."""
    o, c, levels = s.orders, s.orders.degree.size, target.depth - top
    blocks, w = block_arrays(s.ssigma, GRADIENT_SUMS), _scratch(o.order, c, s.ssigma)
    local, curl = np.zeros((levels + 1, c, 3), s.ssigma.dtype), np.empty((c, 3), s.ssigma.dtype)
    shift, stack = np.empty(3), np.empty(2 * s.tree.depth + 8, np.int64)
    far, pending = np.zeros((512, 2), np.int64), np.zeros((1024, 1), np.int64)
    # Level i of the piece inherits pending[start[i] : start[i + 1]]; level 0 inherits the root.
    start = np.zeros(levels + 3, np.int64)
    start[1] = 1
    expansions = pairs = 0
    for leaf in range(span[1], span[2]):
        level = 0  # the highest level whose node is not that of the leaf before
        while leaf > span[1] and (leaf >> (levels - level)) << (levels - level) != leaf:
            level += 1
        for i in range(level, levels + 1):
            t = (np.int64(1) << np.int64(top + i)) - 1 + (span[0] << i) + (leaf >> (levels - i))
            local[i] = 0.0
            if i > 0:
                above = (t - 1) // 2
                for a in range(3):
                    shift[a] = target.centre[t, a] - target.centre[above, a]
                local_down(o, shift, local[i - 1], target.scale[above], target.scale[t], local[i])
            far, met, pending, used = _sort_out(
                s, reach, target, t, i == levels, pending, start[i], start[i + 1], far, stack
            )
            start[i + 2] = used
            expansions += met
            if met > 0:
                _add_expansions(s, target, t, far, met, w, local[i])
            if i == levels:
                near = pending[start[i + 1] : used, 0]
                pairs += _finish_leaf(mode, s, target, t, near, local[i], curl, blocks, w, u, du)
    return expansions, pairs


@njit(**_OPTIONS)
def sweep(
    mode: int, code: int, how: Any, o: Any, tree: Any, sa: Any, ssigma: Any, moments: Any, s2: Any,
    target: Any, top: int, spans: Any, work: Any, u: Any, du: Any,
) -> None:  # fmt: skip
    """Sums at the targets of some pieces of their tree; ``mode`` is POTENTIAL, VELOCITY or GRADIENT.

    From ``code`` to ``s2`` the arguments are the fields of ``Sources`` (a parallel loop takes no tuples in
    tuples). Piece i is node spans[i, 0] of level ``top``, from its leaf spans[i, 1] up to spans[i, 2].
    Results go to ``u (m, 3)`` and, with GRADIENT, ``du (m, 9)`` in the sequence of the given targets;
    ``work (pieces, 2)`` counts node pairs that met by expansion and point pairs that were summed.
    """
    reach = np.zeros(o.order + 1)
    for q in range(1, o.order + 1):
        reach[q] = how.opening ** (2.0 * o.order / q)
    for i in prange(spans.shape[0]):
        sources = Sources(code, how, o, tree, sa, ssigma, moments, s2)
        work[i, 0], work[i, 1] = _walk(mode, sources, target, top, spans[i], reach, u, du)
