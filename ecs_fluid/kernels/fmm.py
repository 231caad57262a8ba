"""Fast multipole method for regularised vortons: velocity, its gradient and the vector potential in O(N + M).

Sources and targets each get a balanced tree (``fmm_tree``). Going down the target tree, a node inherits the
source nodes that its parent could not deal with; those far enough away act on its local expansion
(``fmm_expansions``), larger ones are opened, and the rest is left to its two children. A leaf evaluates its
expansion and sums what is left by the pair loops of the direct sum. "Far enough" and all other numbers follow
from the tolerance (``fmm_accuracy``); expansions are those of the regularised kernel, so cores need no
far-field guard but the clearances there.

Work is cut by target nodes, every target adds its sources in an order that depends on the points alone, and
so the result has the same bits for any number of threads.

Source: Greengard and Rokhlin 1987; Dehnen 2002 for the mutual criterion of two nodes; Warren and Salmon 1995
for interaction lists handed down the tree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ecs_fluid.kernels import FAST, fmm_tree
from ecs_fluid.kernels.fmm_accuracy import Settings, settings
from ecs_fluid.kernels.fmm_expansions import (
    add_local,
    collect_lanes,
    evaluate,
    evaluate_gradient,
    fill_moments,
    gather_moments,
    local_curl,
    local_down,
    radial_derivatives,
)
from ecs_fluid.kernels.fmm_lanes import rows_of_lanes
from ecs_fluid.kernels.fmm_orders import Orders, orders
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
    load_block,
    pad_pack,
    store_block,
)
from ecs_fluid.kernels.partition import gather_sorted
from ecs_fluid.kernels.regularisation import GAUSSIAN, RANKINE, ROSENHEAD_MOORE, core_constant

_OPTIONS: dict[str, Any] = {"parallel": True, "cache": True, "fastmath": FAST, "error_model": "numpy"}
_PART: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy"}

POTENTIAL, VELOCITY, GRADIENT = 0, 1, 2
_LEAST_ORDER = 2  # the gradient of the velocity is a second derivative
_TASK_LEVEL = 7
"""Target nodes of this level are the pieces that threads share out."""


class Plan(NamedTuple):
    """Sources prepared for one regularisation and tolerance: tree, moments, settings."""

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


class Work(NamedTuple):
    """What a sum did."""

    expansions: int
    """node pairs that met by expansion"""
    pairs: int
    """point pairs that were summed"""


@njit(**_PART)
def _order_needed(code: int, how: Any, reach: Any, t: Any, target: Any, s: Any, tree: Any, s2: Any) -> int:
    """Order of expansion that target node t and source node s need to meet, 0 if they are too close for any.

    The series converges like (a + b)/distance to the power of the order, so pairs at less than the opening
    keep the error with fewer terms: ``reach[p]`` is the square of the ratio that order p can do.
    """
    r2 = 0.0
    for a in range(3):
        r2 += (target.centre[t, a] - tree.centre[s, a]) ** 2
    extent = target.radius[t] + tree.radius[s]
    least, largest = s2[s, 1], s2[s, 2]
    square = r2
    if code != GAUSSIAN and code != RANKINE:
        square += least
    if extent * extent >= how.opening * how.opening * square:
        return 0
    if code == GAUSSIAN or code == RANKINE:
        clearance = how.clearance if largest - least <= how.spread * largest else how.mixed_clearance
        far = np.sqrt(r2) - extent >= clearance * np.sqrt(largest)
    else:
        # Change of 1 - q by that of sigma^2, from the leading terms -15/8 rho^-4 and -3/2 rho^-2 of the tails.
        d = r2 + s2[s, 0]
        if code == ROSENHEAD_MOORE:
            far = 1.5 * (largest - least) <= how.spread * d
        else:
            far = 3.75 * largest * (largest - least) <= how.spread * d * d
    if not far:
        return 0
    order = _LEAST_ORDER
    while order < how.order and extent * extent > reach[order] * square:
        order += 1
    return order


@njit(**_PART)
def _expand(
    code: int, o: Any, order: int, t: Any, target: Any, tree: Any, moments: Any, s2: Any, nodes: Any,
    direction: Any, f: Any, ratios: Any, gathered: Any, powers: Any, d: Any, local: Any,
) -> None:  # fmt: skip
    """Source ``nodes``, one per lane, act on the local expansion of target node t."""
    for lane in range(d.shape[1]):
        if lane >= nodes.size:
            for a in range(3):
                direction[a, lane] = 0.0
            for k in range(order + 1):
                f[k, lane] = 0.0
                powers[k, lane] = 0.0
            continue
        s = nodes[lane]
        x = target.centre[t, 0] - tree.centre[s, 0]
        y = target.centre[t, 1] - tree.centre[s, 1]
        z = target.centre[t, 2] - tree.centre[s, 2]
        square = x * x + y * y + z * z
        if code != GAUSSIAN and code != RANKINE:
            square += s2[s, 0]
        inverse = 1.0 / np.sqrt(square)
        direction[0, lane] = x * inverse
        direction[1, lane] = y * inverse
        direction[2, lane] = z * inverse
        radial_derivatives(code, order, 1.0 / inverse, s2[s, 0], f, lane)
        power, ratio = inverse, 1.0
        for k in range(order + 1):
            ratios[k, lane] = ratio
            powers[k, lane] = power
            ratio *= tree.scale[s] * inverse
            power *= target.scale[t] * inverse
    gather_moments(o, order, moments, nodes, ratios, gathered)
    add_local(o, order, direction, f, gathered, powers, d, local)


@njit(**_PART)
def _by_order(far: Any, count: int, highest: int, sorted_far: Any) -> None:
    """Rows (node, order) of ``far[:count]`` into ``sorted_far``, highest order first, otherwise as they were."""
    place = np.zeros(highest + 2, np.int64)
    for i in range(count):
        place[highest - far[i, 1] + 1] += 1
    for q in range(highest + 1):
        place[q + 1] += place[q]
    for i in range(count):
        at = highest - far[i, 1]
        sorted_far[place[at], 0] = far[i, 0]
        sorted_far[place[at], 1] = far[i, 1]
        place[at] += 1


@njit(**_PART)
def _room(pending: Any, used: Any) -> Any:
    """The list, copied to twice its length if it is full."""
    if used < pending.shape[0]:
        return pending
    longer = np.empty((2 * pending.shape[0], pending.shape[1]), pending.dtype)
    longer[: pending.shape[0]] = pending
    return longer


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
def _sum_near(
    mode: int, code: int, tree: Any, sa: Any, ssigma: Any, near: Any, points: Any, count: int, pack: Any, sums: Any
) -> int:
    """The vortons of the source leaves ``near`` act on a block of targets; returns how many they are."""
    filled, total, n = 0, 0, ssigma.size
    leaves = (np.int64(1) << np.int64(tree.depth)) - 1
    for s in near:
        first, last = ((s - leaves) * n) >> tree.depth, ((s - leaves + 1) * n) >> tree.depth
        total += last - first
        while first < last:
            if filled == pack.shape[1]:
                _sum_pairs(mode, code, pack, filled, points, count, sums)
                filled = 0
            step = min(last - first, pack.shape[1] - filled)
            for a in range(3):
                for i in range(step):
                    pack[a, filled + i] = tree.x[a, first + i]
                    pack[3 + a, filled + i] = sa[a, first + i]
            for i in range(step):
                square = ssigma[first + i] * ssigma[first + i]
                pack[6, filled + i] = square
                pack[7, filled + i] = core_constant(code, square)
            filled += step
            first += step
    if filled > 0:
        _sum_pairs(mode, code, pack, filled, points, count, sums)
    return int(total)


@njit(**_PART)
def _add_far(
    mode: int, o: Any, local: Any, curl: Any, target: Any, t: Any, points: Any, count: int,
    offsets: Any, powers: Any, out: Any, sums: Any,
) -> None:  # fmt: skip
    """The local expansion of leaf t at a block of targets."""
    scale = target.scale[t]
    width = out.shape[1]
    # The velocity loop sums eight times what the two other loops sum.
    factor = sums.dtype.type(8.0 if mode == VELOCITY else 1.0)
    rows = 12 if mode == GRADIENT else 3
    for first in range(0, count, width):
        for lane in range(width):
            at = min(first + lane, count - 1)
            for a in range(3):
                offsets[a, lane] = (np.float64(points[a, at]) - target.centre[t, a]) / scale
        if mode == POTENTIAL:
            evaluate(o, o.order, local, offsets, powers, out)
        elif mode == VELOCITY:
            evaluate(o, o.order - 1, curl, offsets, powers, out)
        else:
            evaluate_gradient(o, o.order - 1, curl, scale, offsets, powers, out)
        for row in range(rows):
            for lane in range(min(width, count - first)):
                sums[row, first + lane] += factor * out[row, lane]


@njit(**_PART)
def _sort_out(
    code: int, how: Any, reach: Any, t: Any, target: Any, leaf: bool, targets: int, tree: Any, n: int, s2: Any,
    pending: Any, first: Any, last: Any, far: Any, stack: Any,
) -> Any:  # fmt: skip
    """Share the inherited source nodes ``pending[first:last]`` between expansion and what is handed down.

    Appends (node, order) to ``far`` and what is left to ``pending``; returns both lists and their ends.
    """
    leaves = (np.int64(1) << np.int64(tree.depth)) - 1
    used, count = last, 0
    direct = leaf and targets * ((n >> tree.depth) + 1) <= how.pairs
    for at in range(first, last):
        stack[0] = pending[at, 0]
        depth = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            order = 0
            if not direct or node < leaves:
                order = _order_needed(code, how, reach, t, target, node, tree, s2)
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


@njit(**_OPTIONS)
def _sweep(
    mode: int, code: int, how: Any, o: Any, target: Any, tree: Any, sa: Any, ssigma: Any, moments: Any, s2: Any,
    task_level: int, work: Any, u: Any, du: Any,
) -> None:  # fmt: skip
    n, m, c = ssigma.size, target.order.size, o.degree.size
    levels = target.depth - task_level
    tasks = np.int64(1) << np.int64(task_level)
    reach = np.zeros(o.order + 1)
    for q in range(1, o.order + 1):
        reach[q] = how.opening ** (2.0 * how.order / q)
    for task in prange(tasks):
        pack, points, sums = block_arrays(ssigma, GRADIENT_SUMS)
        direction, offsets, ratios = rows_of_lanes(3, ssigma), rows_of_lanes(3, ssigma), rows_of_lanes(o.order + 1, ssigma)
        f, powers = rows_of_lanes(o.order + 1, ssigma), rows_of_lanes(o.order + 1, ssigma)
        d, out = rows_of_lanes(c, ssigma), rows_of_lanes(12, ssigma)
        gathered, lanes_local = rows_of_lanes(3 * c, ssigma), rows_of_lanes(3 * c, ssigma)
        gathered[:] = 0.0
        lanes_local[:] = 0.0
        local = np.zeros((levels + 1, c, 3), ssigma.dtype)
        shift_powers, curl = np.empty(c, ssigma.dtype), np.empty((c, 3), ssigma.dtype)
        shift, width = np.empty(3), d.shape[1]
        stack = np.empty(2 * tree.depth + 8, np.int64)
        far, pending = np.zeros((512, 2), np.int64), np.zeros((1024, 1), np.int64)
        start = np.zeros(levels + 3, np.int64)
        start[1] = 1  # level 0 inherits the root
        expansions = pairs = 0
        for j in range(np.int64(1) << np.int64(levels)):
            level = 0
            while level < levels and j > 0 and (j >> (levels - level)) << (levels - level) != j:
                level += 1
            for l in range(level, levels + 1):
                k = (task << l) + (j >> (levels - l))
                t = (np.int64(1) << np.int64(task_level + l)) - 1 + k
                leaf = l == levels
                first = (k * m) >> (task_level + l)
                count = ((k + 1) * m >> (task_level + l)) - first
                if l == 0:
                    local[0] = 0.0
                else:
                    above = (t - 1) // 2
                    for a in range(3):
                        shift[a] = target.centre[t, a] - target.centre[above, a]
                    local_down(o, shift, local[l - 1], target.scale[above], target.scale[t], shift_powers, local[l])
                far, met, pending, used = _sort_out(
                    code, how, reach, t, target, leaf, count, tree, n, s2, pending, start[l], start[l + 1], far, stack
                )  # fmt: skip
                start[l + 2] = used
                if met > 0:
                    ranked = np.empty((met, 2), np.int64)
                    _by_order(far, met, o.order, ranked)
                    for low in range(0, met, width):
                        _expand(
                            code, o, ranked[low, 1], t, target, tree, moments, s2, ranked[low : min(low + width, met), 0],
                            direction, f, ratios, gathered, powers, d, lanes_local,
                        )  # fmt: skip
                    collect_lanes(lanes_local, local[l])
                expansions += met
                if not leaf:
                    continue
                if mode != POTENTIAL:
                    local_curl(o, local[l], target.scale[t], curl)
                near = pending[start[l + 1] : used, 0]
                for low in range(first, first + count, BLOCK):
                    block = min(BLOCK, first + count - low)
                    for i in range(4 * ((block + 3) // 4)):
                        for a in range(3):
                            points[a, i] = target.x[a, low + min(i, block - 1)]
                    sums[:] = 0.0
                    pairs += block * _sum_near(mode, code, tree, sa, ssigma, near, points, block, pack, sums)
                    _add_far(mode, o, local[l], curl, target, t, points, block, offsets, gathered, out, sums)
                    store_block(sums, 0, VELOCITY_SCALE if mode == VELOCITY else SCALE, target.order, low, block, u)
                    if mode == GRADIENT:
                        store_block(sums, 3, SCALE, target.order, low, block, du)
        work[task, 0] = expansions
        work[task, 1] = pairs


def plan(
    code: int, sx: NDArray[Any], sa: NDArray[Any], ssigma: NDArray[Any], tolerance: float, how: Settings | None = None
) -> Plan:
    """Tree and moments of the sources, for any number of sums with the same regularisation and tolerance."""
    how = settings(code, tolerance, ssigma.dtype) if how is None else how
    o = orders(how.order)
    tree = fmm_tree.build(sx, how.leaf)
    alpha = np.ascontiguousarray(sa[:, tree.order])
    sigma = ssigma[tree.order]
    nodes = tree.radius.size
    moments, s2 = np.empty((nodes, o.degree.size, 3), ssigma.dtype), np.empty((nodes, 3))
    fill_moments(o, tree.depth, tree.centre, tree.scale, tree.x, alpha, sigma, moments, s2)
    return Plan(code, how, o, tree, alpha, sigma, moments, s2)


def _run(mode: int, targets: NDArray[Any], p: Plan, u: NDArray[Any], du: NDArray[Any]) -> Work:
    tree = fmm_tree.build(np.ascontiguousarray(targets.T), p.settings.leaf)
    task_level = min(_TASK_LEVEL, tree.depth)
    work = np.zeros((1 << task_level, 2), np.int64)
    _sweep(mode, p.code, p.settings, p.orders, tree, p.tree, p.sa, p.ssigma, p.moments, p.s2, task_level, work, u, du)
    return Work(int(work[:, 0].sum()), int(work[:, 1].sum()))


def velocity_gradient(
    code: int, targets: NDArray[Any], sx: NDArray[Any], sa: NDArray[Any], ssigma: NDArray[Any], tolerance: float,
    u: NDArray[Any], du: NDArray[Any], p: Plan | None = None,
) -> Work:  # fmt: skip
    p = plan(code, sx, sa, ssigma, tolerance) if p is None else p
    return _run(GRADIENT, targets, p, u, du.reshape(-1, 9))


def velocity(
    code: int, targets: NDArray[Any], sx: NDArray[Any], sa: NDArray[Any], ssigma: NDArray[Any], tolerance: float,
    u: NDArray[Any], p: Plan | None = None,
) -> Work:  # fmt: skip
    p = plan(code, sx, sa, ssigma, tolerance) if p is None else p
    return _run(VELOCITY, targets, p, u, np.empty((0, 9), u.dtype))


def potential(
    code: int, targets: NDArray[Any], sx: NDArray[Any], sa: NDArray[Any], ssigma: NDArray[Any], tolerance: float,
    psi: NDArray[Any], p: Plan | None = None,
) -> Work:  # fmt: skip
    p = plan(code, sx, sa, ssigma, tolerance) if p is None else p
    return _run(POTENTIAL, targets, p, psi, np.empty((0, 9), psi.dtype))
