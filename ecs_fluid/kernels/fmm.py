"""Fast multipole method for regularised vortons: velocity, its gradient and the vector potential in O(N + M).

Sources and targets each get a balanced tree (``fmm_tree``); the moments of the source nodes
(``fmm_expansions``) act on the target nodes on the way down (``fmm_sweep``). Order, opening and leaf size
follow from the tolerance (``fmm_accuracy``). The expansions are those of the *regularised* kernel, so
overlapping cores and the long tails of the algebraic blobs need no far-field guard; the clearances of
``fmm_accuracy`` guard the rest. Because no table of orders fits every flow, a sample of the targets is summed
without expansions first, and the order is raised until that sample keeps the tolerance.

Source: Greengard and Rokhlin 1987; Dehnen 2002 for the mutual criterion of two nodes; Warren and Salmon 1995
for interaction lists handed down the tree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.kernels import fmm_tree
from ecs_fluid.kernels.fmm_accuracy import DIRECT_BELOW, MARGIN, Settings, highest_order, order_for, settings
from ecs_fluid.kernels.fmm_expansions import fill_moments
from ecs_fluid.kernels.fmm_orders import orders
from ecs_fluid.kernels.fmm_near import near_gradient, near_potential, near_scratch, near_velocity
from ecs_fluid.kernels.fmm_threads import share
from ecs_fluid.kernels.fmm_tree import PointTree
from ecs_fluid.kernels.fmm_walk import GRADIENT, POTENTIAL, VELOCITY, Sources, scratch, walk
from ecs_fluid.kernels.partition import view_as

_TASK_LEVEL = 7
"""Target nodes of this level are the pieces that threads share out."""
_SAMPLE_LEAVES, _SAMPLE = 64, 128


class Plan(NamedTuple):
    """Prepared sources and the tolerance they are for; ``plan`` makes it, any number of sums may use it."""

    sources: Sources
    tolerance: float
    verified: bool
    """whether the settings are trusted, so that no sample is compared"""


class Work(NamedTuple):
    """What a sum did."""

    settings: Settings
    """order and guards that were used; ``plan`` takes them to save the sample next time"""
    expansions: int
    """node pairs that met by expansion"""
    pairs: int
    """point pairs that were summed"""
    error: float
    """relative RMS error of the sample, the larger one of the results; nan if none was taken"""


def plan(
    code: int,
    sx: NDArray[Any],
    sa: NDArray[Any],
    ssigma: NDArray[Any],
    tolerance: float,
    how: Settings | None = None,
) -> Plan:
    """Prepare sources ``sx, sa (3, n)`` [m, m^3/s] and ``ssigma (n,)`` [m] for sums over them.

    They may come in any sequence. ``code`` names the regularisation, ``tolerance`` is the relative RMS error
    of every result (1e-1 to 1e-9 in float64; float32 ends near 1e-6 by its own rounding). With ``how``
    (``Work.settings`` of an earlier sum over similar sources) these settings are trusted and no sample is
    compared. At least one source is needed.
    """
    few = ssigma.size < DIRECT_BELOW
    chosen = settings(code, tolerance) if how is None else how
    if few:
        chosen = chosen._replace(opening=0.0)
    tree = fmm_tree.build(sx, chosen.leaf)
    alpha, sigma = np.ascontiguousarray(sa[:, tree.order]), ssigma[tree.order]
    s2 = np.empty((tree.radius.size, 4))
    sources = Sources(code, chosen, orders(1), tree, alpha, sigma, np.empty((0, 0, 3), sigma.dtype), s2)
    return Plan(_with_order(sources, chosen.order), tolerance, few or how is not None)


def _with_order(s: Sources, order: int) -> Sources:
    """The same sources with moments up to another order."""
    o, tree = orders(order), s.tree
    moments = np.empty((tree.radius.size, o.degree.size, 3), s.ssigma.dtype)
    top = fmm_tree.branch_level(tree.depth, s.ssigma.size)

    def branches(first: int, last: int) -> None:
        fill_moments(o, tree, s.sa, s.ssigma, top, first, last, tree.depth, moments, s.s2)

    share(branches, 1 << top)
    if top > 0:
        fill_moments(o, tree, s.sa, s.ssigma, 0, 0, 1, top - 1, moments, s.s2)
    return s._replace(settings=s.settings._replace(order=order), orders=o, moments=moments)


def _pieces(depth: int) -> tuple[int, NDArray[np.int64]]:
    """The whole tree for ``walk``: the level of the pieces and their spans."""
    top = min(_TASK_LEVEL, depth)
    spans = np.zeros((1 << top, 3), np.int64)
    spans[:, 0], spans[:, 2] = np.arange(1 << top), 1 << (depth - top)
    return top, spans


def _sum(
    mode: int, s: Sources, target: PointTree, top: int, spans: NDArray[np.int64], u: Any, du: Any
) -> tuple[int, int]:
    """Node pairs that met by expansion, and point pairs."""
    add_near = (near_potential, near_velocity, near_gradient)[mode]

    def batch(first: int, last: int) -> tuple[int, int]:
        w = scratch(s.orders, target.depth - top, u.dtype)
        near, start, met = walk(mode, s, target, top, spans, first, last, w, u, du)
        return met, add_near(s, target, top, spans, first, last, near, start, near_scratch(u.dtype), u, du)

    work = share(batch, len(spans))
    return sum(met for met, _ in work), sum(pairs for _, pairs in work)


def _rms(a: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean(np.sum(np.asarray(a, np.float64) ** 2, axis=1))))


def _spread(first: float, last: float, count: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(first, last, max(1, count)).astype(np.int64))


def _verify(
    mode: int, p: Plan, target: PointTree, u: NDArray[Any], du: NDArray[Any]
) -> tuple[Sources, float]:
    """Raise the order until a sample of the targets keeps the tolerance; ``u`` and ``du`` are scratch.

    The sample is two or more targets in each of up to 64 leaves spread over the tree; its exact values are a
    sum without expansions, some 5 % of the whole work.
    """
    s, goal = p.sources, MARGIN * p.tolerance
    leaves, m = 1 << target.depth, target.order.size
    picked = _spread(0.5, leaves - 0.5, min(_SAMPLE_LEAVES, leaves))
    each = max(4 if leaves <= _SAMPLE_LEAVES else 2, _SAMPLE // picked.size)
    rows = np.concatenate([_spread(k * m // leaves, (k + 1) * m // leaves - 1, each) for k in picked])
    exact_u = np.empty((rows.size, 3), u.dtype)
    exact_du = np.empty((rows.size, 9) if mode == GRADIENT else (0, 0), u.dtype)
    sample = fmm_tree.build(np.ascontiguousarray(target.x[:, rows]), _SAMPLE // 4)
    exact = s._replace(settings=s.settings._replace(opening=0.0))
    _sum(mode, exact, sample, *_pieces(sample.depth), exact_u, exact_du)

    top, _ = _pieces(target.depth)
    below = target.depth - top
    leaf = picked & ((1 << below) - 1)
    spans = np.stack([picked >> below, leaf, leaf + 1], axis=1)
    given = target.order[rows]
    results = [(u, exact_u), (du, exact_du)] if mode == GRADIENT else [(u, exact_u)]
    former, before, highest = np.inf, s, highest_order(u.dtype)
    while True:
        _sum(mode, s, target, top, spans, u, du)
        norms = [_rms(reference) for _, reference in results]
        errors = [_rms(result[given] - reference) for result, reference in results]
        error = max(e / norm if norm > 0.0 else 0.0 for e, norm in zip(errors, norms, strict=True))
        if not error > goal:  # said this way, nan ends the search, too
            return s, error
        if error < 0.7 * former and s.settings.order < highest:
            former, before = error, s
            s = _with_order(s, min(order_for(s.settings, error, p.tolerance), highest))
        elif s.settings.spread > 0.1 * p.tolerance:
            # The order is not to blame; nodes of mixed core radii may be.
            former = np.inf
            s = before._replace(settings=before.settings._replace(spread=0.3 * before.settings.spread))
        else:  # the precision is exhausted
            return s, error


def _run(mode: int, targets: NDArray[Any], p: Plan, u: NDArray[Any], du: NDArray[Any]) -> Work:
    s, error = p.sources, float("nan")
    if targets.shape[0] == 0:
        return Work(s.settings, 0, 0, error)
    target = fmm_tree.build(np.ascontiguousarray(targets.T), s.settings.leaf)
    if not p.verified:
        s, error = _verify(mode, p, target, u, du)
    expansions, pairs = _sum(mode, s, target, *_pieces(target.depth), u, du)
    return Work(s.settings, int(expansions), int(pairs), error)


def velocity(
    code: int,
    targets: NDArray[Any],
    sx: NDArray[Any],
    sa: NDArray[Any],
    ssigma: NDArray[Any],
    tolerance: float,
    u: NDArray[Any],
    *,
    prepared: Plan | None = None,
) -> Work:
    """Velocity ``u (m, 3)`` [m/s] at ``targets (m, 3)`` [m]; overwrites ``u``.

    The RMS error of u over the targets is below ``tolerance`` times the RMS of u. Sources as in ``plan``;
    ``prepared`` is a plan of just these sources, code and tolerance. All arrays have one dtype.
    """
    p = plan(code, sx, sa, ssigma, tolerance) if prepared is None else prepared
    return _run(VELOCITY, targets, p, u, np.empty((0, 0), u.dtype))


def velocity_gradient(
    code: int,
    targets: NDArray[Any],
    sx: NDArray[Any],
    sa: NDArray[Any],
    ssigma: NDArray[Any],
    tolerance: float,
    u: NDArray[Any],
    du: NDArray[Any],
    *,
    prepared: Plan | None = None,
) -> Work:
    """Like ``velocity``, with the gradient ``du (m, 3, 3)``, du[:, i, j] = du_i/dx_j [1/s].

    Both keep the tolerance, each by its own RMS.
    """
    p = plan(code, sx, sa, ssigma, tolerance) if prepared is None else prepared
    return _run(GRADIENT, targets, p, u, view_as(du, targets.shape[0], 9))


def potential(
    code: int,
    targets: NDArray[Any],
    sx: NDArray[Any],
    sa: NDArray[Any],
    ssigma: NDArray[Any],
    tolerance: float,
    psi: NDArray[Any],
    *,
    prepared: Plan | None = None,
) -> Work:
    """Vector potential ``psi (m, 3)`` [m^2/s], sum alpha G(r), own core included; else as ``velocity``."""
    p = plan(code, sx, sa, ssigma, tolerance) if prepared is None else prepared
    return _run(POTENTIAL, targets, p, psi, np.empty((0, 0), psi.dtype))
