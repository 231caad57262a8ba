"""Sharing out work by the time it took before."""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.ranks.comm import Comm

DAMPING = 0.5
"""Part of the way that edges go to where the last times say that they belong."""


class Balance:
    """Edges (size + 1,) in [0, 1] of the ranks' parts of one kind of work; only time depends on them."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self.edges: Array = np.linspace(0.0, 1.0, comm.size + 1)
        self.rounds, self.pairs, self.seconds = 0, 0, 0.0
        """What this rank did so far: rounds, pairs of target and source, s."""

    def pieces(self, count: int) -> Array:
        """Edges (size + 1,) of every rank's part of `count` pieces."""
        return np.round(self.edges * count).astype(np.int64)

    def took(self, seconds: float, pairs: int) -> None:
        """Take this rank's time and pairs, and move the edges; called by all ranks."""
        self.rounds, self.pairs, self.seconds = self.rounds + 1, self.pairs + pairs, self.seconds + seconds
        times = np.maximum(self._comm.gather_numbers(np.float64(seconds)), 1e-9)
        widths = np.maximum(np.diff(self.edges), 1e-6)
        # Cost is taken as even within a part: its integral is broken at the edges, and inverted.
        cost = np.concatenate([[0.0], np.cumsum(times)])
        aims = np.interp(
            np.linspace(0.0, cost[-1], len(cost)), cost, np.concatenate([[0.0], np.cumsum(widths)])
        )
        aims /= aims[-1]
        self.edges = (1.0 - DAMPING) * self.edges + DAMPING * aims
        self.edges[0], self.edges[-1] = 0.0, 1.0
