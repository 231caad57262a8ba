"""Sums over all vortons whose targets the ranks share out."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.ranks.balance import Balance
from ecs_fluid.ranks.comm import Comm

BLOCK = 256
"""Targets of a block where the solver needs none of its own."""


def on_all(
    comm: Comm,
    balance: Balance,
    targets: Array,
    u: Array,
    du: Array | None,
    blocks: tuple[Array, Array] | None,
    evaluate: Any,
    wanted: Array | None = None,
) -> None:
    """Fill u (m, 3) and, unless None, du (m, 3, 3) at targets (m, 3), which are the same on all ranks.

    Each rank calls `evaluate` (targets, u, du, blocks) for a run of the blocks, as long as the times of
    former calls say. Then all get what the others found or, with `wanted` (m,), each only the rows that
    name it; the others are left as they are. A target's value must depend on nothing but its block.
    """
    starts = np.append(np.arange(0, len(targets), BLOCK), len(targets)) if blocks is None else blocks[1]
    edges = starts[balance.pieces(len(starts) - 1)]
    first, last = int(edges[comm.rank]), int(edges[comm.rank + 1])
    begun = time.perf_counter()
    own = None
    if blocks is None:
        some = targets[first:last]
    else:
        some = np.ascontiguousarray(targets[blocks[0][first:last]])
        own = np.arange(last - first, dtype=np.int64), starts[(starts >= first) & (starts <= last)] - first
    velocity = np.empty_like(some)
    gradient = None if du is None else np.empty((len(some), 3, 3), du.dtype)
    pairs = evaluate(some, velocity, gradient, own) if len(some) else 0
    balance.took(time.perf_counter() - begun, pairs)
    results = [u] if du is None else [u, du]
    found = [velocity] if gradient is None else [velocity, gradient]
    if wanted is None:
        every: Any = slice(None) if blocks is None else blocks[0]
        for result, part in zip(results, found, strict=True):
            result[every] = comm.join(part, np.diff(edges).tolist(), "velocity")
        return
    order = np.arange(len(targets)) if blocks is None else blocks[0]
    takers = wanted[order]
    sent = [takers[first:last] == rank for rank in range(comm.size)]
    mine = np.flatnonzero(takers == comm.rank)
    counts = np.diff(np.searchsorted(mine, edges)).tolist()
    for result, part in zip(results, found, strict=True):
        came = comm.exchange([part[chosen] for chosen in sent], counts, "velocity")
        result[order[mine]] = np.concatenate(came)


class Split:
    """Shares out the pieces of the fast multipole method's target tree, see `kernels.fmm.Split`."""

    def __init__(self, comm: Comm, balance: Balance) -> None:
        self._comm, self._balance = comm, balance
        self._edges = np.zeros(1, np.int64)
        self._begun = 0.0

    def part(self, count: int) -> tuple[int, int]:
        """First and behind the last of this rank's pieces of `count`."""
        self._edges = self._balance.pieces(count)
        self._begun = time.perf_counter()
        return int(self._edges[self._comm.rank]), int(self._edges[self._comm.rank + 1])

    def join(self, order: Array, rows: Array, results: list[Array], pairs: int) -> None:
        """Fill in the results of the other ranks' pieces."""
        self._balance.took(time.perf_counter() - self._begun, pairs)
        ends = rows[self._edges]
        mine = order[ends[self._comm.rank] : ends[self._comm.rank + 1]]
        for result in results:
            result[order] = self._comm.join(result[mine], np.diff(ends).tolist(), "velocity")
