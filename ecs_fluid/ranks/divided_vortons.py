"""Vortons and influence tree in parts: each machine has one, and fetches what its targets need of the others.

Sorted vortons, cells and nodes have the same numbers as in one process, and arrays the same lengths. A
machine fills in its part (one run of cells, and the nodes whose first child is its own) and what others send;
pages without content take no memory. So the kernels, and the bits, are those of one process.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.kernels.biot_savart import locally_essential_tree as essential, tree_build
from ecs_fluid.kernels.biot_savart.target_blocks import POINTS_PER_BLOCK, morton_keys, point_blocks
from ecs_fluid.kernels.compiled.columns import bounds
from ecs_fluid.kernels.grids.partition import cell_index, gather_sorted
from ecs_fluid.ranks.cells import BINS, Grid, enclosing, share_cells, sorted_run
from ecs_fluid.ranks.comm import Comm, Route, as_bytes, from_bytes
from ecs_fluid.ranks.machine import Machine

MOST_BOXES = 256
"""Most boxes around the targets of a rank; with more, others send less, but need longer to test them."""

GROUP = 8
"""Boxes that are merged into one while there are too many."""


class OwnVortons(NamedTuple):
    """Vortons that this rank holds."""

    x: Array
    """(m, 3) m"""
    alpha: Array
    """(m, 3) m^3/s"""
    sigma: Array
    """(m,) m"""
    row: Array
    """(m,) unsigned, number among the rows of all populations of vortons, laid end to end"""


class DividedVortons:
    """All vortons of the world, sorted by the cells of a grid, in parts.

    Args:
        rows: the vortons that this rank holds.
        total: vortons on all ranks, at least one.
        grid: origin (3,) m, spacing (3,) m and number (3,) of cells.
    """

    def __init__(self, comm: Comm, machine: Machine, rows: OwnVortons, total: int, grid: Grid) -> None:
        self._comm, self._machine, self._rows, self.total = comm, machine, rows, total
        self.grid = grid
        self._cell = cell_index(rows.x, *grid)
        self._low, self._high = enclosing(comm, *bounds(rows.x), "vortons")
        # Edges (machines + 1,) of the cells, and so of the sorted vortons, of each machine.
        cells, count = int(np.prod(grid[2])), machine.count
        self._cells, self._sorted = share_cells(comm, self._cell, cells, count, "vortons")
        self._send_rows()
        self.built: tree_build.Tree | None = None
        """The tree, once it is built"""

    # ------------------------------------------------------------------ sorted vortons

    def _send_rows(self) -> None:
        """Send every row to the machine that has its cell, and sort the rows there."""
        rows, machine, real = self._rows, self._machine, self._rows.x.dtype
        to = machine.leaders[np.searchsorted(self._cells, self._cell, side="right") - 1]
        values = np.column_stack([rows.x, rows.alpha, rows.sigma])
        row, values = Route(self._comm, to, "vortons").send([rows.row, values])
        cells, total = int(self._cells[-1]), self.total
        self.start = machine.sparse_array("part start", (cells + 1,), np.int64)
        self.order = machine.sparse_array("part order", (total,), np.int64)
        self.x = machine.sparse_array("part x", (3, total), real)
        self.alpha = machine.sparse_array("part alpha", (3, total), real)
        self.sigma = machine.sparse_array("part sigma", (total,), real)
        if machine.is_leader:
            low, high = (int(edge) for edge in self._cells[machine.number : machine.number + 2])
            first, last = (int(edge) for edge in self._sorted[machine.number : machine.number + 2])
            start, order = sorted_run(values, row, self.grid, low, high)
            self.start[low : high + 1] = first + start
            self.order[first:last] = row[order]
            columns = gather_sorted(values, order)
            self.x[:, first:last], self.alpha[:, first:last] = columns[:3], columns[3:6]
            self.sigma[first:last] = columns[6]
        machine.barrier()

    # ------------------------------------------------------------------ tree

    @property
    def tree(self) -> tree_build.Tree:
        """The tree, filled in for this machine's part and what was fetched; the first call is collective."""
        if self.built is None:
            self.built = self._build_tree()
        return self.built

    def _build_tree(self) -> tree_build.Tree:
        """The tree in shared memory, with this machine's part of it filled in, and the root."""
        machine, real = self._machine, self.x.dtype
        cells, first = tree_build.layers_of(self.grid[2])
        nodes = int(first[-1])
        tree = tree_build.Tree(
            np.asarray(self.grid[0], np.float64), np.asarray(self.grid[1], np.float64),
            np.stack([self._low, self._high]), cells, first,
            machine.sparse_array("part node x", (3, nodes), real),
            machine.sparse_array("part node alpha", (3, nodes), real),
            machine.sparse_array("part node moments", (nodes, tree_build.MOMENTS), real),
            machine.sparse_array("part node sigma", (nodes,), real),
            machine.sparse_array("part node radius", (nodes,), real),
            machine.sparse_array("part node vortons", (nodes,), np.int64),
            self.start, self.x, self.alpha, self.sigma,
        )  # fmt: skip
        self._ranges = [self._cells]
        for layer in range(1, len(cells)):
            edges = [essential.first_parent(cells, layer, int(node)) for node in self._ranges[-1]]
            self._ranges.append(np.array(edges, np.int64))
        if machine.is_leader:
            self._fill(tree)
        machine.barrier()
        return tree

    def _fill(self, tree: tree_build.Tree) -> None:
        """Fill the nodes of this machine, layer by layer, after fetching the children that others have."""
        here, cells, first = self._machine.number, tree.cells, tree.first
        weight = np.empty(int(first[-1]))
        columns = tree.x, tree.alpha, tree.moments, tree.sigma, tree.vortons, weight
        sent = tree.x, tree.alpha, tree.moments.T, tree.sigma, tree.vortons, weight
        a, b = (int(edge) for edge in self._ranges[0][here : here + 2])
        tree_build.fill_leaves(a, b, tree.start, tree.sx, tree.sa, tree.ssigma, *columns)
        for layer in range(len(cells)):
            a, behind = int(self._ranges[layer][here]), int(self._ranges[layer][here + 1])
            if layer + 1 < len(cells):
                behind = max(behind, self._fetch_ahead(layer, cells, int(first[layer]), sent))
            grid = cells, first, tree.origin, tree.spacing, tree.ends
            tree_build.fill_radii(layer, np.array([[a, behind]]), *grid, tree.x, tree.vortons, tree.radius)
            if layer + 1 < len(cells):
                span = self._ranges[layer + 1][None, here : here + 2]
                tree_build.fill_parents(layer, span, cells, first, *columns)
        # Every walk reads the root, which the first machine has.
        read = *sent[:5], tree.radius
        root = self._machine.leader_comm.broadcast(_packed([column[..., -1:] for column in read]), "nodes")
        _unpack(root, read, np.array([-1]))

    def _fetch_ahead(self, layer: int, cells: Array, first: int, columns: Sequence[Array]) -> int:
        """Fetch the nodes behind this machine's own that are children of its next layer; return their end."""
        edges, above, here = self._ranges[layer], self._ranges[layer + 1], self._machine.number
        behind = [essential.end_of_children(cells, layer + 1, int(edge)) for edge in above[1:]]
        ends = np.where(above[1:] > above[:-1], np.maximum(behind, edges[1:]), edges[1:])
        low, high = int(edges[here]), int(edges[here + 1])
        sent = [(max(low, int(a)), min(high, int(b))) for a, b in zip(edges[1:], ends, strict=True)]
        mine = int(ends[here])
        came = [(max(int(a), high), min(int(b), mine)) for a, b in pairwise(edges)]
        parts = [_packed([column[..., first + a : first + max(a, b)] for column in columns]) for a, b in sent]
        counts = [max(b - a, 0) for a, b in came]
        found = np.concatenate(self._machine.leader_comm.exchange(parts, counts, "nodes"))
        places = np.concatenate([np.arange(a, max(a, b)) for a, b in came]) + first
        _unpack(found, columns, places)
        return mine

    # ------------------------------------------------------------------ what targets need

    def fetch(self, low: Array, high: Array, criterion: int, opening: float, originals: bool) -> None:
        """Fetch all that walks of the tree for this rank's blocks of targets will read; collective.

        The boxes of the blocks are low, high (b, 3) m; the rest says when a walk opens a node.
        """
        machine, tree = self._machine, self.tree
        boxes = machine.gather_on_leader(_merged(low, high))
        if machine.is_leader:
            comm = machine.leader_comm
            counts = comm.gather_numbers(np.int64(len(boxes)), "nodes").tolist()
            every = np.split(comm.gather_rows(boxes, counts, "nodes"), np.cumsum(counts)[:-1])
            ranges = np.array([edges[machine.number : machine.number + 2] for edges in self._ranges])
            nodes, leaves = [], []
            for other, there in enumerate(every):
                if other == machine.number:
                    there = there[:0]
                opened = essential.opened_nodes(
                    tree, ranges, there[:, 0], there[:, 1],
                    criterion=criterion, opening=opening, originals=originals,
                )  # fmt: skip
                nodes.append([tree.first[layer] + found for layer, found in enumerate(opened) if layer])
                leaves.append(opened[0])
            self._exchange_nodes([np.concatenate(found) if found else leaves[0][:0] for found in nodes])
            self._exchange_leaves(leaves)
        machine.barrier()

    def _exchange_nodes(self, parents: list[Array]) -> None:
        """Send each machine the children of the nodes that it may open."""
        comm, tree = self._machine.leader_comm, self.tree
        counts = comm.exchange_counts([len(found) for found in parents], "nodes")
        names = [found.astype(np.uint32) for found in parents]
        opened = np.concatenate(comm.exchange(names, counts, "nodes"))
        sent = [self._children(found) for found in parents]
        came = [self._children(found) for found in np.split(opened.astype(np.int64), np.cumsum(counts)[:-1])]
        # A walk distinguishes none, one and more vortons.
        vortons = [np.minimum(tree.vortons[found], 2).astype(np.uint8) for found in sent]
        number = comm.exchange(vortons, [len(found) for found in came], "nodes")
        for places, found in zip(came, number, strict=True):
            tree.vortons[places] = found
        columns = tree.x, tree.alpha, tree.moments.T, tree.sigma, tree.radius
        full = [found[count > 0] for found, count in zip(sent, vortons, strict=True)]
        filled = [found[count > 0] for found, count in zip(came, number, strict=True)]
        parts = [_packed([column[..., found] for column in columns]) for found in full]
        got = comm.exchange(parts, [len(found) for found in filled], "nodes")
        _unpack(np.concatenate(got), columns, np.concatenate(filled))

    def _children(self, nodes: Array) -> Array:
        """Children, in rising order, of some nodes."""
        cells, first = self.tree.cells, self.tree.first
        found = [np.empty(0, np.int64)]
        for layer in range(len(cells) - 1, 0, -1):
            some = nodes[(nodes >= first[layer]) & (nodes < first[layer + 1])] - first[layer]
            found.append(first[layer - 1] + essential.children_of(cells, layer, some))
        return np.concatenate(found)

    def _exchange_leaves(self, leaves: list[Array]) -> None:
        """Send each machine the vortons of the leaves that it may open."""
        comm, tree = self._machine.leader_comm, self.tree
        counts = comm.exchange_counts([len(found) for found in leaves], "leaves")
        ends = [(tree.start[found], tree.start[found + 1]) for found in leaves]
        where = [
            np.column_stack([found, first, last - first]).astype(np.uint32)
            for found, (first, last) in zip(leaves, ends, strict=True)
        ]
        came = np.concatenate(comm.exchange(where, counts, "leaves")).astype(np.int64)
        tree.start[came[:, 0]] = came[:, 1]
        tree.start[came[:, 0] + 1] = came[:, 1] + came[:, 2]
        sent = [
            essential.concatenated_ranges(part[:, 1].astype(np.int64), part[:, 2].astype(np.int64))
            for part in where
        ]
        columns = tree.sx, tree.sa, tree.ssigma
        number = [int(part.sum()) for part in np.split(came[:, 2], np.cumsum(counts)[:-1])]
        parts = [_packed([column[..., found] for column in columns]) for found in sent]
        got = comm.exchange(parts, number, "leaves")
        _unpack(np.concatenate(got), columns, essential.concatenated_ranges(came[:, 1], came[:, 2]))

    # ------------------------------------------------------------------ the vortons as targets

    def targets(self, edges: Array) -> tuple[Array, Array]:
        """Positions (m, 3) m and rows (m,) of the vortons that are this rank's targets, in Z order.

        `edges` (ranks + 1,) divide the blocks of all vortons, those of `point_blocks`, among the ranks.
        """
        comm, rows, real = self._comm, self._rows, self.x.dtype
        low, high = self._low.astype(real), self._high.astype(real)
        key = morton_keys(rows.x, low, high)
        bits = min(30, max(1, int(BINS * comm.size).bit_length()))
        bins = key >> (30 - bits)
        before = np.zeros(2**bits + 1, np.int64)
        np.cumsum(comm.sum(np.bincount(bins, minlength=2**bits), "vortons"), out=before[1:])
        places = np.minimum(edges * POINTS_PER_BLOCK, self.total)
        # A whole bin goes to every rank whose part it overlaps.
        ends = np.searchsorted(before, places[1:], side="left")
        begins = np.searchsorted(before, places[:-1], side="right") - 1
        begins = np.where(places[1:] > places[:-1], begins, ends)
        by_bin = np.argsort(bins, kind="stable")
        bound = np.searchsorted(bins[by_bin], [begins, ends])
        chosen = [by_bin[a:b] for a, b in zip(*bound, strict=True)]
        to = np.repeat(np.arange(comm.size), [len(part) for part in chosen])
        every = np.concatenate(chosen)
        values = [key[every], self._cell[every].astype(np.uint32), rows.row[every], rows.x[every]]
        key, cell, row, x = Route(comm, to, "vortons").send(values)
        order = np.lexsort((row, cell, key))
        rank = comm.rank
        skipped = int(places[rank] - before[begins[rank]]) if places[rank + 1] > places[rank] else 0
        mine = order[skipped : skipped + int(places[rank + 1] - places[rank])]
        return np.ascontiguousarray(x[mine]), row[mine]


def _merged(low: Array, high: Array) -> Array:
    """At most `MOST_BOXES` boxes (b, 2, 3) around the given ones, neighbours together."""
    while len(low) > MOST_BOXES:
        order = point_blocks(0.5 * (low + high))[0]
        starts = np.arange(0, len(order), GROUP)
        low = np.minimum.reduceat(low[order], starts, axis=0)
        high = np.maximum.reduceat(high[order], starts, axis=0)
    return np.stack([low, high], axis=1)


def _packed(columns: Sequence[Array]) -> Array:
    """Columns (n,) and (k, n) as rows of bytes (n, width)."""
    return as_bytes([column.T for column in columns])


def _unpack(rows: Array, columns: Sequence[Array], places: Array) -> None:
    """Write rows of bytes (n, width) to these places of the columns."""
    like = [np.empty((0, *column.shape[:-1]), column.dtype) for column in columns]
    for column, values in zip(columns, from_bytes(rows, like), strict=True):
        column[..., places] = values.T
