"""How the time of the tree grows from 1,000 to 100,000 vortons: ``python benchmarks/tree_growth.py``.

Velocity and gradient of the vortons of benchmarks/fmm.py's flows, float32, by the default angle and by the
articles' box: sorting, building and summing, the sum alone, and the pairs (validation case 57). Least of
several, turn about.
"""

from __future__ import annotations

import time

import numpy as np
from fmm import cube, ring

from ecs_fluid.kernels.biot_savart import tree, tree_build
from ecs_fluid.kernels.biot_savart.regularisation import CODES
from ecs_fluid.kernels.grids.grid import uniform_grid
from ecs_fluid.kernels.grids.partition import partition

SIZES, REPEATS, ROUNDS = (1_000, 10_000, 100_000), (25, 6, 1), 4
OPENINGS = {"angle": (tree.ANGLE, 0.5), "box": (tree.BOX, 1e-4)}
VORTONS_PER_CELL = 8

CODE = CODES["winckelmans"]


class Cloud:
    """Some vortons of a flow, and room for their velocities."""

    def __init__(self, flow: str, n: int) -> None:
        x, alpha, volume = {"ring": ring, "cube": cube}[flow](n)
        self.x = x.astype(np.float32)
        self.sx = np.ascontiguousarray(self.x.T)
        self.sa = np.ascontiguousarray(alpha.astype(np.float32).T)
        self.sigma = np.full(n, 1.5 * (volume / n) ** (1 / 3), np.float32)
        self.u, self.du = np.empty((n, 3), np.float32), np.empty((n, 3, 3), np.float32)

    def run(self, criterion: int, opening: float) -> tuple[float, float, float]:
        """Seconds in all, seconds of the sum, and pairs."""
        begin = time.perf_counter()
        low, high = self.x.min(axis=0).astype(float), self.x.max(axis=0).astype(float)
        grid = uniform_grid(low, high, len(self.x) // VORTONS_PER_CELL)
        start, order = partition(self.x, *grid)
        columns = [np.ascontiguousarray(a[:, order]) for a in (self.sx, self.sa)]
        nodes = tree_build.build(*grid, start, *columns, self.sigma[order])
        built, how = time.perf_counter(), {"criterion": criterion, "opening": opening, "originals": True}
        pairs = tree.velocity(CODE, self.x, nodes, self.u, self.du, **how)
        end = time.perf_counter()
        return end - begin, end - built, pairs


def main() -> None:
    """Print the table."""
    print(f"{'flow':5s} {'opening':8s} {'ms':>23s} {'exponent':>9s} {'sum':>9s} {'pairs':>9s}")
    for flow in ("ring", "cube"):
        clouds = [Cloud(flow, n) for n in SIZES]
        for name, how in OPENINGS.items():
            runs: list[list[tuple[float, float, float]]] = [[] for _ in SIZES]
            for _ in range(ROUNDS):
                for cloud, found, repeats in zip(clouds, runs, REPEATS, strict=True):
                    found += [cloud.run(*how) for _ in range(repeats)]
            best = np.array([np.min(found, axis=0) for found in runs])
            growth = np.log(best[-1] / best[0]) / np.log(SIZES[-1] / SIZES[0])
            times = " ".join(f"{1e3 * seconds:7.2f}" for seconds in best[:, 0])
            slopes = " ".join(f"{slope:9.2f}" for slope in growth)
            print(f"{flow:5s} {name:8s} {times} {slopes}", flush=True)


if __name__ == "__main__":
    from asked import nothing

    nothing(__file__, __doc__)
    main()
