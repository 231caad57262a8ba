"""What a sum by each solver takes, in pairs of the direct sum: counted, not timed.

Solvers do other work in other flows: a ring and a cube of as many vortons differ by a factor of two or more.
What they do can be counted, and a count is the same in every run, on any number of threads and on every
machine. So ``auto`` goes by counts as soon as it has them, and nothing that is measured in seconds decides
after the first ticks. The weights below are ratios of times, in which processors differ less than in times
(one thread of a Zen 5, single precision: docs/notes/velocity.md).
"""

from __future__ import annotations

import math

TREE_PAIR, TREE_POINT, TREE_CALL = 1.6, 650.0, 1e6
"""Of a pair of target and cluster, of a vorton in a tree that is grown, and of a call; in pairs with
gradient."""

FMM_PAIR, FMM_TERM, FMM_POINT, FMM_CALL = 0.95, 0.9, 450.0, 1.1e6
"""Of a pair of points, of a meeting of nodes by expansion (times (order + 1)^3.4: those far away have fewer
terms), of a point and of a call, in pairs with gradient."""

MESH_NS, MESH_CALL = 0.43, 3e5
"""Of `particle_mesh.sums.Mesh.cost`: its nanoseconds for one pair with gradient; and of a call, in such
pairs."""

ALONE = 0.46
"""Of a pair without gradient, in those with it."""


def tree_work(pairs: float, vortons: int, gradient: bool) -> float:
    """Pairs of the direct sum that take as long as so many pairs of a tree."""
    return TREE_PAIR * pairs + (TREE_POINT * vortons + TREE_CALL) / (1.0 if gradient else ALONE)


def fmm_work(pairs: float, expansions: float, order: int, points: int, gradient: bool) -> float:
    """The same of a multipole sum."""
    rest = FMM_TERM * expansions * math.pow(order + 1.0, 3.4) + FMM_POINT * points + FMM_CALL
    return FMM_PAIR * pairs + rest / (1.0 if gradient else ALONE)


def mesh_work(cost: float, gradient: bool) -> float:
    """The same of a mesh of that cost."""
    return (cost / MESH_NS + MESH_CALL) / (1.0 if gradient else ALONE)
