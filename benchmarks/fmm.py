"""Fast multipole method beside direct sum, tree and FMM3D: ``python benchmarks/fmm.py [n ...]``.

Velocity and gradient at all n vortons, float32, tolerance 1e-3, of a thick ring and of a cube of random
strengths. ``fmm`` searches its order and measures its error; ``again`` begins with the settings of an earlier
sum and measures. Errors are relative RMS errors at 1000 of the vortons against the direct sum in float64. The
tree (original vortons at the leaves, Barnes-Hut angle) is opened until its errors are below the same
tolerance; nan where no angle down to 0.09 does that. Above 100,000 vortons tree and FMM3D are left out, and
the direct sum is timed on 20,000 targets and scaled. Every time is the best of three after a first run. The
last lines are the growth of time and of counted work with n. Default: n = 1000 10000 100000 1000000.

Where fmm3dpy is installed (the Flatiron Institute's FMM3D, in Fortran; ``pip install fmm3dpy``, version 2),
its time for the velocity alone is printed, too, for the widest eps whose velocity error is not above that of
ours. It knows singular vortons only and works in float64; its error is against their direct sum, in units of
the RMS velocity of our vortons, because some close pair decides the RMS of the singular ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

try:
    import fmm3dpy  # type: ignore[import-not-found]
except ImportError:
    fmm3dpy = None

from ecs_fluid.kernels.biot_savart import direct, tree, tree_build
from ecs_fluid.kernels.biot_savart.regularisation import CODES
from ecs_fluid.kernels.fmm import fast_multipole
from ecs_fluid.kernels.grids.grid import uniform_grid
from ecs_fluid.kernels.grids.partition import partition

Array = NDArray[Any]
TOLERANCE = 1e-3
SAMPLE, DIRECT_TARGETS, TREE_MOST = 1000, 20_000, 100_000
ANGLES = (0.7, 0.5, 0.35, 0.25, 0.18, 0.13, 0.09)
PEER_EPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)

CODE = CODES["winckelmans"]


def ring(n: int) -> tuple[Array, Array, float]:
    """Positions and strengths of a ring of radius 1 and section radius 0.2, and its volume."""
    rng = np.random.default_rng(5)
    angle, section = 2.0 * np.pi * rng.random((2, n))
    r = 0.2 * np.sqrt(rng.random(n))
    rho = 1.0 + r * np.cos(section)
    x = np.stack([rho * np.cos(angle), rho * np.sin(angle), r * np.sin(section)], axis=1)
    return x, np.stack([-np.sin(angle), np.cos(angle), 0.0 * angle], axis=1) / n, 2.0 * np.pi**2 * 0.04


def cube(n: int) -> tuple[Array, Array, float]:
    """Random strengths of both signs in the unit cube."""
    rng = np.random.default_rng(6)
    return rng.random((n, 3)), rng.standard_normal((n, 3)), 1.0


def best_of(run: Callable[[], Any], rounds: int = 3) -> float:
    run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def rms(a: Array) -> float:
    return float(np.sqrt(np.mean(np.sum(a.reshape(len(a), -1).astype(float) ** 2, axis=1))))


class Case:
    """One cloud of n vortons with its exact sample and result arrays."""

    def __init__(self, flow: Callable[[int], tuple[Array, Array, float]], n: int) -> None:
        x, alpha, volume = flow(n)
        self.x = x.astype(np.float32)
        self.sx = np.ascontiguousarray(self.x.T)
        self.sa = np.ascontiguousarray(alpha.astype(np.float32).T)
        self.sigma = np.full(n, 1.5 * (volume / n) ** (1 / 3), np.float32)
        self.u, self.du = np.empty((n, 3), np.float32), np.empty((n, 3, 3), np.float32)
        self.rows = np.random.default_rng(1).permutation(n)[:SAMPLE]
        self.exact_u, self.exact_du = np.empty((SAMPLE, 3)), np.empty((SAMPLE, 3, 3))
        doubles = [a.astype(float) for a in (self.x[self.rows], self.sx, self.sa, self.sigma)]
        direct.velocity_gradient(CODE, *doubles, self.exact_u, self.exact_du)

    def errors(self) -> tuple[float, float]:
        return (
            rms(self.u[self.rows] - self.exact_u) / rms(self.exact_u),
            rms(self.du[self.rows] - self.exact_du) / rms(self.exact_du),
        )

    def fmm(self) -> fast_multipole.SumReport:
        return fast_multipole.velocity(
            fast_multipole.plan(CODE, self.sx, self.sa, self.sigma, TOLERANCE), self.x, self.u, self.du
        )

    def again(self, how: Any) -> Callable[[], Any]:
        """A sum that begins with known settings."""
        rest = self.sx, self.sa, self.sigma, TOLERANCE

        def run() -> None:
            plan = fast_multipole.plan(CODE, *rest, how, check=True)
            fast_multipole.velocity(plan, self.x, self.u, self.du)

        return run

    def peer(self, eps: float) -> Array:
        """Velocity of singular vortons by FMM3D: the curl of three potentials."""
        x, a = self.sx.astype(float), self.sa.astype(float)
        g = fmm3dpy.lfmm3d(eps=eps, sources=x, charges=a, nd=3, pg=2).grad
        curl = np.stack([g[2, 1] - g[1, 2], g[0, 2] - g[2, 0], g[1, 0] - g[0, 1]], axis=1)
        return np.asarray(curl)

    def peer_time(self) -> tuple[float, float]:
        """Seconds and eps of FMM3D at our velocity error."""
        if fmm3dpy is None or len(self.x) > TREE_MOST:
            return float("nan"), float("nan")
        x, a, exact = self.sx.astype(float), self.sa.astype(float), np.empty((SAMPLE, 3))
        for i, row in enumerate(self.rows):
            d = x[:, row, None] - x
            r2 = np.einsum("ij,ij->j", d, d)
            r2[row] = np.inf
            exact[i] = np.cross(a.T, d.T).T @ r2**-1.5 / (4.0 * np.pi)
        ours = self.errors()[0]
        for eps in PEER_EPS:
            if rms(self.peer(eps)[self.rows] - exact) / rms(self.exact_u) <= ours:
                return best_of(partial(self.peer, eps), 1), eps
        return float("nan"), float("nan")

    def direct_time(self) -> float:
        m = min(len(self.x), DIRECT_TARGETS)
        targets, u, du = self.x[:m], self.u[:m], self.du[:m]
        rounds = 3 if len(self.x) <= TREE_MOST else 1
        seconds = best_of(
            lambda: direct.velocity_gradient(CODE, targets, self.sx, self.sa, self.sigma, u, du),
            rounds,
        )
        return seconds * len(self.x) / m

    def tree(self, angle: float) -> None:
        low, high = self.x.min(axis=0).astype(float), self.x.max(axis=0).astype(float)
        grid = uniform_grid(low, high, len(self.x) // 8)
        start, order = partition(self.x, *grid)
        columns = [np.ascontiguousarray(a[:, order]) for a in (self.sx, self.sa)]
        nodes = tree_build.build(*grid, start, *columns, self.sigma[order])
        tree.velocity(
            CODE,
            self.x,
            nodes,
            self.u,
            self.du,
            criterion=tree.ANGLE,
            opening=angle,
            originals=True,
        )

    def tree_time(self) -> tuple[float, float]:
        """Seconds and angle of the widest opening that keeps the tolerance; nan if none of them does."""
        for angle in ANGLES:
            self.tree(angle)
            if max(self.errors()) < TOLERANCE:
                return best_of(partial(self.tree, angle)), angle
        return float("nan"), float("nan")


def main(numbers: Sequence[int] = (1000, 10_000, 100_000, 1_000_000)) -> None:
    """Print the table."""
    print(f"velocity and gradient, float32, tolerance {TOLERANCE:g}, {numba.get_num_threads()} threads")
    print(
        f"{'flow':5s} {'n':>8s} {'fmm s':>7s} {'again':>7s} {'err u':>8s} {'err du':>8s} {'order':>5s} "
        f"{'direct s':>9s} {'x':>6s} {'tree s':>7s} {'angle':>5s} {'x':>6s} "
        f"{'fmm3d s':>7s} {'eps':>6s} {'x':>6s}"
    )
    growth = []
    for flow in (ring, cube):
        table = []
        for n in numbers:
            case = Case(flow, n)
            seconds = best_of(case.fmm)
            work = case.fmm()
            error_u, error_du = case.errors()
            slow = case.direct_time()
            middle, angle = case.tree_time() if n <= TREE_MOST else (float("nan"), float("nan"))
            second = best_of(case.again(work.settings))
            other, eps = case.peer_time()
            table.append((n, seconds, work.pairs + 400 * work.expansions))
            print(
                f"{flow.__name__:5s} {n:8d} {seconds:7.3f} {second:7.3f} {error_u:8.1e} {error_du:8.1e} "
                f"{work.settings.order:5d} {slow:9.3f} {slow / seconds:6.1f} {middle:7.3f} {angle:5.2f} "
                f"{middle / seconds:6.1f} {other:7.2f} {eps:6.0e} {other / seconds:6.1f}",
                flush=True,
            )
        for (n, t, w), (m, s, v) in pairwise(table):
            scale = np.log(m / n)
            growth.append(
                f"{flow.__name__:5s} {n} to {m}: time x {s / t:.2f}, exponent {np.log(s / t) / scale:.2f}; "
                f"work exponent {np.log(v / w) / scale:.2f}"
            )
    print("\n".join(growth))


if __name__ == "__main__":
    from asked import numbers

    main(*numbers(__file__, __doc__, "n"))
