"""Sums over all vortons whose targets the ranks share out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.kernels.biot_savart.blocks import POINTS, block_boxes
from ecs_fluid.ranks.balance import Balance
from ecs_fluid.ranks.comm import Comm, Route
from ecs_fluid.ranks.divided_vortons import DividedVortons
from ecs_fluid.ranks.machine import Machine

BLOCK = 256
"""Targets of a block where the solver needs none of its own."""


class RowHolders(NamedTuple):
    """Where results belong that only the rank needs which holds the target's row."""

    row: Array
    """(m,) row of each target among all rows of the populations, one after the other"""
    first: Array
    """(k,) first row of each block of rows, ascending"""
    holder: Array
    """(k,) the rank that holds it"""
    store: Callable[[Array, Array, Array | None], None]
    """takes rows (r,), velocities (r, 3) and gradients (r, 3, 3) of rows that this rank holds"""


Fetch = Callable[[Array, Array], None]
"""Gets what the sums read for blocks of targets between these low and high corners (b, 3); collective."""


def on_all(
    comm: Comm,
    machine: Machine,
    balance: Balance,
    targets: Array,
    u: Array,
    du: Array | None,
    blocks: tuple[Array, Array] | None,
    evaluate: Any,
    holders: RowHolders | None = None,
    fetch: Fetch | None = None,
) -> None:
    """Fill u (m, 3) and, unless None, du (m, 3, 3) at targets (m, 3), which are the same on all ranks.

    Each rank calls `evaluate` (targets, u, du, blocks) for a run of the blocks, as long as the times of
    former calls say. Then all get what the others found; where `u` is shared memory (`Machine.array`), the
    leader writes it. With `holders` each rank gets its rows alone, by `holders.store`; u, du are not filled.
    A target's value must depend on nothing but its block.
    """
    starts = np.append(np.arange(0, len(targets), BLOCK), len(targets)) if blocks is None else blocks[1]
    edges = starts[balance.pieces(len(starts) - 1)]
    first, last = int(edges[comm.rank]), int(edges[comm.rank + 1])
    own = None
    if blocks is None:
        some = targets[first:last]
    else:
        some = np.ascontiguousarray(targets[blocks[0][first:last]])
        own = np.arange(last - first, dtype=np.int64), starts[(starts >= first) & (starts <= last)] - first
    if fetch is not None:
        fetch(*block_boxes(some, starts[(starts >= first) & (starts <= last)] - first))
    begun = time.perf_counter()
    velocity = np.empty_like(some)
    gradient = None if du is None else np.empty((len(some), 3, 3), du.dtype)
    pairs = evaluate(some, velocity, gradient, own) if len(some) else 0
    balance.took(time.perf_counter() - begun, pairs)
    if holders is not None:
        rows = holders.row[first:last] if blocks is None else holders.row[blocks[0][first:last]]
        _send_home(comm, holders, rows, velocity, gradient)
        return
    every: Any = slice(None) if blocks is None else blocks[0]
    counts = np.diff(edges).tolist()
    if machine.shares(u):
        whole = machine.gathered(velocity, counts, "velocity")
        if whole is not None:
            u[every] = whole
        machine.barrier()
    else:
        u[every] = comm.gather_rows(velocity, counts, "velocity")
    if du is not None and gradient is not None:
        du[every] = comm.gather_rows(gradient, counts, "velocity")


def at_vortons(
    comm: Comm,
    balance: Balance,
    vortons: DividedVortons,
    gradient: bool,
    evaluate: Any,
    holders: RowHolders,
    fetch: Fetch,
) -> None:
    """Sums at all vortons, of which each machine has its part; the results go where `holders` says.

    Bits are those of `on_all` with the blocks of `point_blocks`.
    """
    blocks = -(-vortons.total // POINTS)
    targets, rows = vortons.targets(balance.pieces(blocks))
    starts = np.append(np.arange(0, len(targets), POINTS), len(targets))
    fetch(*block_boxes(targets, starts))
    begun = time.perf_counter()
    velocity = np.empty_like(targets)
    jacobian = np.empty((len(targets), 3, 3), targets.dtype) if gradient else None
    own = np.arange(len(targets), dtype=np.int64), starts
    pairs = evaluate(targets, velocity, jacobian, own) if len(targets) else 0
    balance.took(time.perf_counter() - begun, pairs)
    _send_home(comm, holders, rows, velocity, jacobian)


def _send_home(comm: Comm, holders: RowHolders, rows: Array, velocity: Array, gradient: Array | None) -> None:
    """Send each row's results to the rank that holds it."""
    holder = holders.holder[np.searchsorted(holders.first, rows, side="right") - 1]
    found = [rows, velocity] if gradient is None else [rows, velocity, gradient]
    row, u, *du = Route(comm, holder, "velocity").send(found)
    holders.store(row, u, du[0] if du else None)


class SharedPieces:
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
            result[order] = self._comm.gather_rows(result[mine], np.diff(ends).tolist(), "velocity")
