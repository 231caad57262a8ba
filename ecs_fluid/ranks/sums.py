"""Sums over all vortons, whose targets are divided among the ranks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.kernels.biot_savart.target_blocks import POINTS_PER_BLOCK
from ecs_fluid.ranks.balance import Balance
from ecs_fluid.ranks.comm import Comm
from ecs_fluid.ranks.divided_vortons import DividedVortons
from ecs_fluid.ranks.machine import Machine
from ecs_fluid.targets import Targets

BLOCK = 256
"""Targets in a block, for solvers that need no blocks of their own."""


Send = Callable[[Array, Array, Array | None], None]
"""Brings velocities (r, 3) and gradients (r, 3, 3) at rows (r,) to the ranks that hold these; collective."""


class VortonTargets(NamedTuple):
    """The vortons as targets of their own sum."""

    x: Array
    """(n, 3) m, the targets; without values if each machine has a part of them"""
    row: Array
    """(n,) row of each target among all rows of the populations, one after the other"""
    send: Send
    """takes results to the rows that they belong to"""
    divided: DividedVortons | None
    """the vortons in parts, if each machine has one"""


class SharedSum:
    """A sum at many targets; each rank takes some of them, its part.

    Args:
        send: brings results to the ranks that hold their rows; None where every rank needs all results.
        rows: rows of this rank's targets, for `send`.
    """

    def __init__(self, comm: Comm, balance: Balance, part: Targets, send: Send | None, rows: Array) -> None:
        self.part = part
        self._comm, self._balance, self._send, self._rows = comm, balance, send, rows
        self._counts: list[int] = []
        self._begun = 0.0

    @classmethod
    def of_all(cls, comm: Comm, balance: Balance, targets: Targets, at: VortonTargets | None) -> SharedSum:
        """A sum at targets that all ranks have; times of former sums decide how many blocks each takes."""
        blocks, m = targets.blocks, len(targets.x)
        starts = np.append(np.arange(0, m, BLOCK), m) if blocks is None else blocks[1]
        edges = starts[balance.pieces(len(starts) - 1)]
        first, last = int(edges[comm.rank]), int(edges[comm.rank + 1])
        if blocks is None:
            rows, part = np.arange(first, last), Targets.at(targets.x[first:last], targets.du is not None)
        else:
            rows = blocks[0][first:last]
            part = Targets.at(np.ascontiguousarray(targets.x[rows]), targets.du is not None)
            own = starts[(starts >= first) & (starts <= last)] - first
            part.blocks = np.arange(last - first, dtype=np.int64), own
        found = cls(comm, balance, part, at and at.send, rows if at is None else at.row[rows])
        found._counts = np.diff(edges).tolist()
        return found

    @classmethod
    def of_divided(
        cls, comm: Comm, balance: Balance, vortons: DividedVortons, gradient: bool, send: Send
    ) -> SharedSum:
        """A sum at all vortons, which machines have in parts; the blocks are those of `point_blocks`."""
        x, rows = vortons.targets(balance.pieces(-(-vortons.total // POINTS_PER_BLOCK)))
        part = Targets.at(x, gradient)
        part.blocks = (
            np.arange(len(x), dtype=np.int64),
            np.append(np.arange(0, len(x), POINTS_PER_BLOCK), len(x)),
        )
        return cls(comm, balance, part, send, rows)

    def begin(self) -> None:
        """Start the clock of the sum."""
        self._begun = time.perf_counter()

    def join(self, machine: Machine, targets: Targets, pairs: int) -> None:
        """Bring the results of all ranks together, at the rows by `send`, or in `targets` on every rank.

        If `targets.u` is shared memory (`Machine.array`), the leader of each machine writes it.
        """
        comm, part = self._comm, self.part
        self._balance.record(time.perf_counter() - self._begun, pairs)
        if self._send is not None:
            self._send(self._rows, part.u, part.du)
            return
        every: Any = slice(None) if targets.blocks is None else targets.blocks[0]
        if machine.is_shared(targets.u):
            whole = machine.gather_on_leaders(part.u, self._counts, "velocity")
            if whole is not None:
                targets.u[every] = whole
            machine.barrier()
        else:
            targets.u[every] = comm.gather_rows(part.u, self._counts, "velocity")
        if targets.du is not None and part.du is not None:
            targets.du[every] = comm.gather_rows(part.du, self._counts, "velocity")


class SharedPieces:
    """Divides the leaves of the fast multipole method's target tree among ranks; see its `SharedLeaves`."""

    def __init__(self, comm: Comm, balance: Balance) -> None:
        self._comm, self._balance = comm, balance
        self._edges = np.zeros(1, np.int64)
        self._begun = 0.0

    def part(self, count: int) -> tuple[int, int]:
        """First and last + 1 of this rank's pieces of `count`."""
        self._edges = self._balance.pieces(count)
        self._begun = time.perf_counter()
        return int(self._edges[self._comm.rank]), int(self._edges[self._comm.rank + 1])

    def join(self, order: Array, rows: Array, results: list[Array], pairs: int) -> None:
        """Fill in the results of the other ranks' pieces."""
        self._balance.record(time.perf_counter() - self._begun, pairs)
        ends = rows[self._edges]
        mine = order[ends[self._comm.rank] : ends[self._comm.rank + 1]]
        for result in results:
            result[order] = self._comm.gather_rows(result[mine], np.diff(ends).tolist(), "velocity")
