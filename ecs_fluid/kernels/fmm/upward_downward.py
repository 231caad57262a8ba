"""Passes of the fast multipole method over prepared sources: moments upward, expansions downward, pairs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.kernels.fmm.expansions import fill_moments, moment_scratch
from ecs_fluid.kernels.fmm.multi_indices import orders
from ecs_fluid.kernels.fmm.near_field import near_gradient, near_potential, near_scratch, near_velocity
from ecs_fluid.kernels.fmm.point_tree import PointTree, branch_level
from ecs_fluid.kernels.fmm.traversal import Sources, scratch, walk

_TASK_LEVEL = 7
"""Target nodes of this level have the runs of leaves that threads share out."""
_NEAR = 512
"""Room at first for near source leaves, per target leaf; what is not used costs nothing."""


Results = list[NDArray[Any]]
"""``u (m, 3)``, and ``du (m, 9)`` where gradients are asked for."""


class LeafRuns(NamedTuple):
    """Runs of leaves of a target tree."""

    top: int
    """level of the nodes"""
    spans: NDArray[np.int64]
    """(k, 3) node of that level, its first leaf, end of its leaves"""


def all_leaves(target: PointTree) -> LeafRuns:
    """All of the tree."""
    top = min(_TASK_LEVEL, target.depth)
    spans = np.zeros((1 << top, 3), np.int64)
    spans[:, 0], spans[:, 2] = np.arange(1 << top), 1 << (target.depth - top)
    return LeafRuns(top, spans)


def single_leaves(target: PointTree, leaves: NDArray[np.int64]) -> LeafRuns:
    """Single leaves of the tree."""
    top = min(_TASK_LEVEL, target.depth)
    below = target.depth - top
    leaf = leaves & ((1 << below) - 1)
    return LeafRuns(top, np.stack([leaves >> below, leaf, leaf + 1], axis=1))


def with_order(s: Sources, order: int) -> Sources:
    """The same sources with moments up to another order."""
    o, tree = orders(order), s.tree
    shape = tree.radius.size, o.degree.size, 3
    # They are read in eights, beyond the last one.
    moments = np.empty(math.prod(shape) + 8, s.ssigma.dtype)[:-8].reshape(shape)
    top, w = branch_level(tree.depth, s.ssigma.size), moment_scratch(o, s.ssigma.dtype)
    fill_moments(o, tree, s.sa, s.ssigma, top, tree.depth, moments, s.cards, w)
    if top > 0:
        fill_moments(o, tree, s.sa, s.ssigma, 0, top - 1, moments, s.cards, w)
    return s._replace(settings=s.settings._replace(order=order), orders=o, moments=moments)


def velocity_and_gradient(results: Results) -> tuple[NDArray[Any], NDArray[Any]]:
    """u and du; without a du, an array of the shape (0, 0) in its place."""
    return results[0], results[1] if len(results) > 1 else results[0][:0, :0]


def sum_at_leaves(
    mode: int, s: Sources, target: PointTree, runs: LeafRuns, results: Results
) -> tuple[int, int]:
    """Fill the results at the targets of the leaves: velocity or potential and, with GRADIENT, its gradient.

    Returns the number of node pairs that met by expansion and of point pairs.
    """
    add_near, both = (near_potential, near_velocity, near_gradient)[mode], velocity_and_gradient(results)
    dtype, leaves = results[0].dtype, int((runs.spans[:, 2] - runs.spans[:, 1]).sum())
    near, used = np.empty(_NEAR * leaves, np.int64), np.zeros(1, np.int64)
    ends, met, pairs = np.empty((1 << target.depth, 2), np.int64), *np.empty((2, len(runs.spans)), np.int64)
    w = scratch(s.orders, target.depth - runs.top, dtype)
    walk(mode, s, target, *runs, w, near, used, ends, met, *both)
    if used[0] > near.size:
        near, used = np.empty(used[0], np.int64), np.zeros(1, np.int64)
        walk(mode, s, target, *runs, w, near, used, ends, met, *both)
    add_near(s, target, *runs, near, ends, near_scratch(dtype), pairs, *both)
    return int(met.sum()), int(pairs.sum())
