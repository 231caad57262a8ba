"""Work divided among ranks by the time that it took before."""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.ranks.comm import Comm

DAMPING = 0.5
"""Part of the way that edges move to where the last times would put them."""


class Balance:
    """Edges (size + 1,) in [0, 1] of the ranks' parts of one kind of work; results do not depend on them."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self.edges: Array = np.linspace(0.0, 1.0, comm.size + 1)
        self.rounds, self.pairs, self.seconds = 0, 0, 0.0
        """Work of this rank so far: rounds, pairs of target and source, s."""

    def pieces(self, count: int) -> Array:
        """Edges (size + 1,) of every rank's part of `count` pieces."""
        return np.round(self.edges * count).astype(np.int64)

    def record(self, seconds: float, pairs: int) -> None:
        """Add the time and the pairs of this rank, and move the edges; called by all ranks."""
        self.rounds, self.pairs, self.seconds = self.rounds + 1, self.pairs + pairs, self.seconds + seconds
        times = np.maximum(self._comm.gather_numbers(np.float64(seconds)), 1e-9)
        widths = np.maximum(np.diff(self.edges), 1e-6)
        # Cost is taken as uniform within a part, so its integral is piecewise linear; it is inverted.
        cost = np.concatenate([[0.0], np.cumsum(times)])
        aims = np.interp(
            np.linspace(0.0, cost[-1], len(cost)), cost, np.concatenate([[0.0], np.cumsum(widths)])
        )
        aims /= aims[-1]
        self.edges = (1.0 - DAMPING) * self.edges + DAMPING * aims
        self.edges[0], self.edges[-1] = 0.0, 1.0
