"""How ranks divide the work of a system: which gathers, sorts and sums, and which gets the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Sources
from ecs_fluid.entity import Entity
from ecs_fluid.kernels.biot_savart import tree_build
from ecs_fluid.kernels.biot_savart.target_blocks import Blocks, block_boxes
from ecs_fluid.one_process import OneProcess
from ecs_fluid.ranks import cells, neighbour_exchange, sums
from ecs_fluid.ranks.balance import Balance
from ecs_fluid.ranks.comm import Comm, Route
from ecs_fluid.ranks.divided_vortons import DividedVortons, OwnVortons
from ecs_fluid.ranks.machine import Machine
from ecs_fluid.targets import Population, Targets

SHARED_PAIRS = 2**16
"""Pairs of target and vorton from which a sum is divided among ranks."""

SHARED_BLOCKS = 2**12
"""Number of targets from which one rank of each machine groups them in blocks for all."""


class SharedWork(OneProcess):
    """The rows of every population that this rank holds, and its part of the work.

    Populations are the entities with a Position; each rank holds one block of their rows, and the blocks
    follow one another in the order of the ranks. Everything else is the same on all ranks.
    """

    def __init__(self, comm: Comm, bounds: dict[str, Array]) -> None:
        super().__init__()
        self.comm, self.bounds = comm, bounds
        self.local = False
        """Whether the running system sees this rank's rows only."""
        self.machine = Machine(comm)
        self._balances: dict[str, Balance] = {}
        self._divided: DividedVortons | None = None
        """The vortons of the running stage, if each machine has a part of them"""
        self._vorton_targets: sums.VortonTargets | None = None
        """The vortons as targets, from `vorton_targets` to `to_rows`"""
        self._sent = False
        """Whether `join` has brought results of the last sum at the vortons to their rows"""
        self._shared_sum: sums.SharedSum | None = None
        """The present sum, if it is divided"""

    # ------------------------------------------------------------------ rows

    def own_rows(self, name: str) -> slice:
        """The rows of a population that this rank holds."""
        edges = self.bounds[name]
        return slice(int(edges[self.comm.rank]), int(edges[self.comm.rank + 1]))

    def row_counts(self, name: str) -> list[int]:
        """Number of rows of a population on each rank."""
        return [int(count) for count in np.diff(self.bounds[name])]

    def total(self, entities: Sequence[Entity], rows: int) -> int:
        """Rows on all ranks."""
        return sum(int(self.bounds[entity.name][-1]) for entity in entities)

    def placed(self, entity: Entity, rows: int) -> tuple[int, int, int]:
        """First and last + 1 of this rank's rows, and number of rows on all ranks."""
        if entity.name not in self.bounds:
            return super().placed(entity, rows)
        own = self.own_rows(entity.name)
        return own.start, own.stop, int(self.bounds[entity.name][-1])

    def row_numbers(self, entities: Sequence[Entity]) -> Array:
        """This rank's rows of some populations, numbered through all rows of these, laid end to end."""
        first, found = 0, [np.empty(0, np.uint32)]
        for entity in entities:
            start, stop, total = self.placed(entity, entity.rows_here)
            found.append(np.arange(first + start, first + stop, dtype=np.uint32))
            first += total
        return np.concatenate(found)

    # ------------------------------------------------------------------ numbers of all ranks

    def summed(self, values: Array) -> Array:
        """A system that sees all rows has the sums already."""
        return self.comm.sum(values) if self.local else values

    def largest(self, values: Sequence[float]) -> Sequence[float]:
        """The largest of each of these numbers on all ranks."""
        found: list[float] = self.comm.gather_numbers(np.array(values, np.float64)).max(axis=0).tolist()
        return found

    def enclosing(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The box around the boxes of all ranks."""
        return cells.enclosing(self.comm, low, high)

    def gathered(self, entities: Sequence[Entity], columns: Sequence[Array]) -> Sequence[Array]:
        """All rows on the first rank of each machine; its own on the others."""
        if not self.local or not entities:
            return columns
        ends = np.cumsum([entity.rows_here for entity in entities])[:-1]
        whole = []
        for column in columns:
            parts = zip(entities, np.split(column, ends), strict=True)
            parts_here = [
                self.machine.gather_on_leaders(part, self.row_counts(entity.name)) for entity, part in parts
            ]
            every = [part for part in parts_here if part is not None]
            whole.append(np.concatenate(every) if every else column)
        return whole

    def some_rows(self, entity: Entity, columns: Sequence[Array], rows: Array) -> Sequence[Array]:
        """Those rows of all ranks, each sent by the rank that holds it."""
        if not self.local or entity.name not in self.bounds:
            return super().some_rows(entity, columns, rows)
        edges = np.searchsorted(rows, self.bounds[entity.name])
        own = rows[edges[self.comm.rank] : edges[self.comm.rank + 1]] - self.own_rows(entity.name).start
        counts = np.diff(edges).tolist()
        return [self.comm.gather_rows(column[own], counts) for column in columns]

    def at_rows(
        self, entity: Entity, rows: Targets, fill: Callable[[Targets], None], some: Array | None = None
    ) -> None:
        """All ranks' rows are gathered, so that blocks of them are those of one process."""
        counts, own = self.row_counts(entity.name), self.own_rows(entity.name)
        x = self.comm.gather_rows(rows.x, counts)
        every = Targets.at(x, rows.du is not None, rows.place, rows.number)
        if some is None:
            fill(every)
        else:
            every.fill_rows(self.comm.gather_rows(some, counts), fill)
        chosen = slice(None) if some is None else some
        rows.u[chosen] = every.u[own][chosen]
        if rows.du is not None and every.du is not None:
            rows.du[chosen] = every.du[own][chosen]

    def once(self, name: str, make: Callable[[], Sequence[Array]]) -> Sequence[Array]:
        """Arrays in shared memory, which the first rank of each machine makes."""
        return self.machine.once(name, make)

    def result_array(
        self, name: str, former: Array, shape: tuple[int, ...], dtype: Any, shared: bool = True
    ) -> Array:
        """Results of divided sums lie in shared memory, which one rank writes."""
        if shared:
            return self.machine.array(name, shape, dtype)
        return super().result_array(name, former, shape, dtype)

    def blocks(self, targets: Targets) -> Blocks:
        """Many targets are grouped once per machine; divided vortons have blocks of their own."""
        at = self._vorton_targets
        if targets.place == "vortons" and at is not None and at.divided is not None:
            return np.empty(0, np.int64), np.zeros(1, np.int64)
        if len(targets.x) < SHARED_BLOCKS:
            return super().blocks(targets)
        order, starts = self.machine.once("blocks", lambda: super(SharedWork, self).blocks(targets))
        return order, starts

    def part(
        self, work: str, targets: Targets, sources: int, tree: tree_build.Tree | None = None, **walk: Any
    ) -> Targets:
        """This rank's blocks of targets, after fetching what their walks read; all targets of a short sum."""
        at = self._vorton_targets if targets.place == "vortons" else None
        parts = (
            self._divided if self._divided is not None and self._divided.built is tree is not None else None
        )
        self._shared_sum = None
        if at is not None and at.divided is not None:
            how = self.balance(f"{work}, at vortons"), at.divided, targets.du is not None, at.send
            self._shared_sum = sums.SharedSum.of_divided(self.comm, *how)
        elif self._worth_dividing(targets, sources):
            balance = self.balance(f"{work}, at {'points' if at is None else 'vortons'}")
            self._shared_sum = sums.SharedSum.of_all(self.comm, balance, targets, at)
        if at is not None:
            self._sent = self._shared_sum is not None
        part = targets if self._shared_sum is None else self._shared_sum.part
        if parts is not None and part.blocks is not None:
            parts.fetch(*block_boxes(part.x[part.blocks[0]], part.blocks[1]), **walk)
        if self._shared_sum is not None:
            self._shared_sum.begin()
        elif self.machine.is_shared(targets.u):
            self.machine.barrier()  # all have emptied it before one fills it
        return part

    def join(self, targets: Targets, part: Targets, pairs: int) -> None:
        """Results at the vortons go to the ranks that hold their rows, others to all."""
        if self._shared_sum is not None:
            self._shared_sum.join(self.machine, targets, pairs)
            self._shared_sum = None

    def _worth_dividing(self, targets: Targets, sources: int) -> bool:
        """Whether a sum is long enough to be divided."""
        return len(targets.x) * sources >= SHARED_PAIRS

    def balance(self, work: str) -> Balance:
        """How that work is divided at present."""
        return self._balances.setdefault(work, Balance(self.comm))

    def shared_leaves(self, work: str, targets: Targets, sources: int) -> sums.SharedPieces | None:
        """Divides the pieces of a fast multipole sum among ranks; None for a short one."""
        at = targets.place == "vortons"
        self._sent = self._sent and not at
        if not self._worth_dividing(targets, sources):
            return None
        return sums.SharedPieces(self.comm, self.balance(f"{work}, at {'vortons' if at else 'points'}"))

    def exchanged(
        self, entities: Sequence[Entity], rows: Array, number: Array, *what: Any
    ) -> tuple[Array, Array]:
        """Each rank takes the particles of a run of cells, see `neighbour_exchange.exchanged`."""
        every = sum(self.placed(entity, entity.rows_here)[2] for entity in entities)
        row = self.row_numbers(entities)[rows] + number * every
        return neighbour_exchange.exchanged(self.comm, row, *what)

    # ------------------------------------------------------------------ vortons

    def sorted_vortons(
        self,
        name: str,
        entities: Sequence[Entity],
        columns: tuple[Array, Array, Array],
        grid: tuple[Array, Array, Array],
        divisible: Callable[[], bool] | None = None,
    ) -> Sequence[Array]:
        """One rank of each machine gathers and sorts, and the others read the result.

        If `divisible`, each of several machines has a part, see `ecs_fluid.ranks.divided_vortons`.
        """
        if divisible is not None:
            self._divided = None
            total = self.total(entities, len(columns[0]))
            if self.machine.count > 1 and total and divisible():
                rows = OwnVortons(*columns, self.row_numbers(entities))
                parts = self._divided = DividedVortons(self.comm, self.machine, rows, total, grid)
                return parts.start, parts.order, parts.x, parts.alpha, parts.sigma
        x, alpha, sigma = self.gathered(entities, columns)
        alone = super().sorted_vortons
        return self.machine.once(name, lambda: alone(name, entities, (x, alpha, sigma), grid))

    def holds_part(self, sources: Sources) -> bool:
        """Whether each machine has its part of the sorted vortons."""
        return self._divided is not None and sources.x is self._divided.x

    def tree(self, sources: Sources) -> tree_build.Tree:
        """The tree in shared memory; for divided sources, each machine's own part of it."""
        if self._divided is not None and self.holds_part(sources):
            return self._divided.tree
        nodes = self.machine.once("tree", lambda: super(SharedWork, self).tree(sources)[: tree_build.NODES])
        return tree_build.Tree._make([*nodes, sources.start, sources.x, sources.alpha, sources.sigma])

    def vorton_targets(self, sources: Sources, populations: Sequence[Population]) -> Array:
        """Positions in shared memory; for divided vortons, an array without values."""
        parts = self._divided if self.holds_part(sources) else None
        if parts is None:
            (x,) = self.machine.once("vortons", lambda: [sources.x.T])
        else:
            x = np.empty_like(sources.x.T)
        send = partial(self._send, populations)
        self._vorton_targets, self._sent = sums.VortonTargets(x, sources.order, send, parts), False
        return x

    def to_rows(self, order: Array, populations: Sequence[Population], vortons: Targets) -> None:
        """Results to rows, unless `join` has sent them to the ranks already."""
        if not self._sent:
            super().to_rows(order, populations, vortons)
        self._vorton_targets = None

    def _send(self, populations: Sequence[Population], rows: Array, u: Array, du: Array | None) -> None:
        """Store results at rows, numbered through all populations, on the ranks that hold these rows."""
        edges = [self.bounds[entity.name] for entity, *_ in populations]
        ends = np.cumsum([0, *(int(blocks[-1]) for blocks in edges)])
        firsts = [end + blocks[:-1] for end, blocks in zip(ends[:-1], edges, strict=True)]
        block = np.searchsorted(np.concatenate([ends[:0], *firsts]), rows, side="right") - 1
        found = [rows, u] if du is None else [rows, u, du]
        rows, u, *gradients = Route(self.comm, block % self.comm.size, "velocity").send(found)
        du = gradients[0] if gradients else None
        first = 0
        for entity, _, velocities, gradients_there in populations:
            start, stop, total = self.placed(entity, len(velocities))
            chosen = (rows >= first + start) & (rows < first + stop)
            velocities[rows[chosen] - (first + start)] = u[chosen]
            if du is not None and gradients_there is not None:
                gradients_there[rows[chosen] - (first + start)] = du[chosen]
            first += total
