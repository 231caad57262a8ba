"""Fast multipole method for regularised vortons: velocity, its gradient and the vector potential in O(N + M).

Sources and targets each get a balanced tree (``point_tree``). On the way down the target tree the moments of
source nodes (``expansions``) act on target nodes that are far enough away (``traversal``); near ones are
summed in pairs (``near_field``). Order, opening and leaf size follow from the tolerance (``accuracy``). The
expansions are those of the *regularised* kernel, so overlapping cores and the long tails of the algebraic
blobs need no far-field guard; the clearances of ``accuracy`` guard the rest. Because no table of orders fits
every flow, the error of every sum is measured on a sample of its targets (``error_estimate``), and the order
is raised until the tolerance is kept.

Source: Greengard and Rokhlin 1987; Dehnen 2002 for the mutual criterion of two nodes; Warren and Salmon 1995
for interaction lists handed down the tree.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart.pairwise import sort_sources
from ecs_fluid.kernels.biot_savart.regularisation import Code, record
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.fmm import point_tree
from ecs_fluid.kernels.fmm.accuracy import DIRECT_BELOW, Settings, settings
from ecs_fluid.kernels.fmm.error_estimate import SettingsSearch, choose_order, measured_error
from ecs_fluid.kernels.fmm.lane_rows import lanes, zero_rows
from ecs_fluid.kernels.fmm.multi_indices import orders
from ecs_fluid.kernels.fmm.traversal import GRADIENT, POTENTIAL, VELOCITY, Sources
from ecs_fluid.kernels.fmm.upward_downward import all_leaves, sum_at_leaves, with_order
from ecs_fluid.kernels.grids.partition import view_as

_WIDE, _WIDE_LEAVES = 4.0, 512
"""Targets that extend over this many radii of the sources are cut into at least this many leaves: expansions
would not reach most of a few leaves, as these would be too wide."""


class Plan(NamedTuple):
    """Prepared sources and their tolerance; any number of sums may use it."""

    sources: Sources
    tolerance: float
    trusted: bool
    """whether the settings surely keep the tolerance, so that no sample is compared"""


class SumReport(NamedTuple):
    """Report of a sum."""

    settings: Settings
    """order and guards that were used; ``plan`` takes them to save the search next time"""
    expansions: int
    """node pairs that met by expansion"""
    pairs: int
    """point pairs that were summed"""
    error: float
    """measured relative RMS error, the larger one of the results; nan if it was not measured"""


def plan(
    code: Code, sx: Array, sa: Array, ssigma: Array, tolerance: float, how: Settings | None = None, *,
    check: bool = False,
) -> Plan:  # fmt: skip
    """Prepare sources ``sx, sa (3, n)`` [m, m^3/s] and ``ssigma (n,)`` [m] for sums over them.

    They may come in any sequence. ``code`` names the regularisation, ``tolerance`` is the relative RMS error
    of every result (1e-1 to 1e-9 in float64; float32 ends near 1e-6 by its own rounding). ``how``
    (``SumReport.settings`` of an earlier sum over similar sources) saves the search for an order: these
    settings are trusted, or with ``check`` are where the search begins.
    """
    if ssigma.size == 0:  # equivalent to one source of strength 0
        sx, sa, ssigma = np.zeros((3, 1), sx.dtype), np.zeros((3, 1), sx.dtype), np.ones(1, sx.dtype)
    few = ssigma.size < DIRECT_BELOW
    chosen = settings(code, tolerance, ssigma.size) if how is None else how
    if few:
        chosen = chosen._replace(opening=0.0)
    tree = point_tree.build(sx, chosen.leaf)
    n, dtype = ssigma.size, ssigma.dtype
    packed = np.zeros((8, n + lanes(dtype)), dtype)
    sort_sources(code, *map(np.ascontiguousarray, (sx, sa, ssigma)), tree.order, 0, packed)
    alpha, sigma = packed[3:6, :n].copy(), ssigma[tree.order]
    moments = np.empty((0, 0, 3), sigma.dtype)
    cards = zero_rows(tree.radius.size, np.float64)
    sources = Sources(code, chosen, orders(1), tree, alpha, sigma, moments, packed, cards)
    return Plan(with_order(sources, chosen.order), tolerance, few or (how is not None and not check))


class SharedLeaves(Protocol):
    """Processes that divide the leaves of a target tree, and have the same sources and targets."""

    def part(self, count: int) -> tuple[int, int]:
        """First and behind the last of this process's runs of leaves, of `count`."""

    def join(
        self, order: NDArray[np.int64], rows: NDArray[np.int64], results: list[Array], pairs: int
    ) -> None:
        """Fill in the rows ``order[rows[k]:rows[k + 1]]`` of every other process's runs k.

        `pairs` is the number of pairs that this process summed.
        """


def _sum(
    mode: int, targets: Array, p: Plan, results: list[Array], shared: SharedLeaves | None = None
) -> SumReport:
    s, error = p.sources, float("nan")
    if targets.shape[0] == 0:
        return SumReport(s.settings, 0, 0, error)
    target = _tree_over(targets, s)
    if not p.trusted:
        s = choose_order(mode, s, target, p.tolerance, results)
    search = SettingsSearch(s, p.tolerance)
    expansions = pairs = 0
    runs = all_leaves(target)
    count = len(runs.spans)
    while True:
        if shared is not None:
            first, last = shared.part(count)
            runs = runs._replace(spans=all_leaves(target).spans[first:last])
        met, summed = sum_at_leaves(mode, s, target, runs, results)
        if shared is not None:
            rows = (np.arange(count + 1) * targets.shape[0]) >> runs.top
            shared.join(target.order, rows, results, summed)
        expansions, pairs = expansions + met, pairs + summed
        if p.trusted:
            break
        error = measured_error(mode, s, target, results)
        following = search.better(s, error) if error > p.tolerance else None
        if following is None:
            break
        s = following
    return SumReport(s.settings, expansions, pairs, error)


def _tree_over(targets: Array, s: Sources) -> point_tree.PointTree:
    """A tree over the targets: the sources' own tree if targets and sources are the same, row by row."""
    if targets.shape[0] == s.ssigma.size and targets.dtype == s.ssigma.dtype and s.tree.holds(targets):
        return s.tree
    x = np.ascontiguousarray(targets.T)
    leaf = s.settings.leaf
    if 0.5 * float(np.ptp(x, axis=1).max()) >= _WIDE * s.tree.radius[0]:
        leaf = max(2, min(leaf, x.shape[1] // _WIDE_LEAVES))
    return point_tree.build(x, leaf)


def velocity(
    prepared: Plan, targets: Array, u: Array, du: Array | None = None, shared: SharedLeaves | None = None
) -> SumReport:
    """Velocity ``u (m, 3)`` [m/s] at ``targets (m, 3)`` [m]; overwrites ``u``.

    With ``du (m, 3, 3)`` also its gradient, du[:, i, j] = du_i/dx_j [1/s]. The RMS errors of both over the
    targets are below the plan's tolerance times the RMS of each. All arrays have one dtype. With ``shared``
    several processes, all of which call this, do a part each; the bits are those of one.
    """
    if du is None:
        return _sum(VELOCITY, targets, prepared, [u], shared)
    return _sum(GRADIENT, targets, prepared, [u, view_as(du, targets.shape[0], 9)], shared)


def potential(prepared: Plan, targets: Array, psi: Array) -> SumReport:
    """Vector potential ``psi (m, 3)`` [m^2/s], sum alpha G(r), own core included; else as ``velocity``.

    Not in a plane, where the potential of a node has a logarithm of its distance.
    """
    if record(prepared.sources.code).dimension == 2:
        raise ValueError("fast_multipole.potential: blobs in a plane have a logarithm; sum them directly")
    return _sum(POTENTIAL, targets, prepared, [psi])
