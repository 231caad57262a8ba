"""The work of a sum by each solver, in pairs of the direct sum: counted, not timed.

The work depends on the flow: for a ring and a cube of equally many vortons it differs by a factor of two or
more. It can be counted, and a count is the same in every run, on any number of threads and on every machine.
So ``auto`` chooses by counts as soon as it has them, and after the first ticks no measured time matters. The
weights below are ratios of times, which differ less between processors than times do (one thread of a Zen 5,
single precision: docs/notes/velocity.md).
"""

from __future__ import annotations

import math

TREE_PAIR, TREE_POINT, TREE_CALL = 1.6, 650.0, 1e6
"""Work of the tree per pair of target and cluster, per vorton of a new tree, and per call; in pairs with
gradient."""

FMM_PAIR, FMM_TERM, FMM_POINT, FMM_CALL = 0.95, 0.9, 450.0, 1.1e6
"""Work of the multipole method per pair of points, per pair of nodes that meet by expansion (times
(order + 1)^3.4: distant nodes have fewer terms), per point and per call; in pairs with gradient."""

MESH_NS, MESH_CALL = 0.43, 3e5
"""Nanoseconds of `particle_mesh.pppm.Mesh.cost` that equal one pair with gradient; and work per call, in such
pairs."""

ALONE = 0.46
"""Work of a pair without gradient, in pairs with gradient."""


def tree_work(pairs: float, vortons: int, gradient: bool) -> float:
    """Work of a tree sum with that many pairs of target and cluster, in pairs of the direct sum."""
    return TREE_PAIR * pairs + (TREE_POINT * vortons + TREE_CALL) / (1.0 if gradient else ALONE)


def fmm_work(pairs: float, expansions: float, order: int, points: int, gradient: bool) -> float:
    """Work of a multipole sum, in pairs of the direct sum."""
    rest = FMM_TERM * expansions * math.pow(order + 1.0, 3.4) + FMM_POINT * points + FMM_CALL
    return FMM_PAIR * pairs + rest / (1.0 if gradient else ALONE)


def mesh_work(cost: float, gradient: bool) -> float:
    """Work of a mesh of that cost, in pairs of the direct sum."""
    return (cost / MESH_NS + MESH_CALL) / (1.0 if gradient else ALONE)
