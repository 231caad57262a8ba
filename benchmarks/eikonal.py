"""Signed distances, meshes: ``python benchmarks/eikonal.py [points ...]``, points per edge, default 128, 256.

A sampled ball and torus become signed distances: facets beside the surface, then fast sweeping. The peer is
scikit-fmm (``pip install scikit-fmm``; it has no wheels, so it is no dependency of ours), given the same
field. Times are processor seconds of one thread, best of several, taken in turn; errors are against the exact
distance. Then the wall-clock time of two threads, and of a mesh by VTK.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np

from ecs_fluid.kernels.surface import shapes
from ecs_fluid.kernels.surface.eikonal import distances
from ecs_fluid.kernels.surface.facets import facet_distances
from ecs_fluid.systems.surface.contour import contour

try:
    import skfmm
except ImportError:
    skfmm = None

ROUNDS = 4
LARGEST_PEER = 128
"""Points per edge above which scikit-fmm is left out: 256^3 takes it 12 s and more a time."""


def fields(n: int) -> dict[str, Any]:
    """Exact distances (n, n, n) m on [-1, 1]^3."""
    x = np.linspace(-1.0, 1.0, n)
    points = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1)
    return {
        "ball": shapes.sphere(points, np.zeros(3), 0.6),
        "torus": shapes.torus(points, np.zeros(3), 0.5, 0.25),
    }


def ours(field: Any, spacing: Any, order: int) -> Any:
    """The whole way from a field to distances."""
    near, pinned = facet_distances(field, spacing)
    return distances(near, pinned, spacing, 2 if order == 2 else 1).phi


def best(run: Callable[[], Any], clock: Callable[[], float], rounds: int = ROUNDS) -> tuple[float, Any]:
    """Least time of several runs, and the last result."""
    least, result = np.inf, None
    for _ in range(rounds):
        started = clock()
        result = run()
        least = min(least, clock() - started)
    return least, result


def compare(n: int) -> dict[str, float]:
    """One thread against scikit-fmm; returns our times for the ball, s, by order and precision."""
    spacing = np.full(3, 2.0 / (n - 1))
    numba.set_num_threads(1)
    times = {}
    for name, exact in fields(n).items():
        for order in (1, 2):
            peer = None
            if skfmm is not None and n <= LARGEST_PEER:
                step = [float(h) for h in spacing]
                peer, theirs = best(
                    lambda e=exact, s=step, o=order: skfmm.distance(e, s, order=o), time.process_time, 2
                )
                error = np.abs(theirs - exact)
                print(f"{n}^3 {name} order {order} scikit-fmm       {peer:7.3f} s  L1 {error.mean():.2e}")
            for real in (np.float64, np.float32):
                field = exact.astype(real)
                ours(field, spacing, order)  # compiled
                spent, found = best(lambda f=field, o=order: ours(f, spacing, o), time.process_time)
                error = np.abs(found - exact)
                ratio = f"  {peer / spent:5.1f} times faster" if peer else ""
                print(
                    f"{n}^3 {name} order {order} {real.__name__}          {spent:7.3f} s  "
                    f"L1 {error.mean():.2e}{ratio}",
                    flush=True,
                )
                if name == "ball":
                    times[f"order {order} {real.__name__}"] = spent
    return times


def threads(n: int) -> None:
    """Efficiency of two threads: wall-clock time, taken in turn, so it needs two quiet cores."""
    spacing, exact = np.full(3, 2.0 / (n - 1)), fields(n)["ball"]
    for order in (1, 2):
        times = {1: np.inf, 2: np.inf}
        for _ in range(ROUNDS):
            for count in times:
                numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
                spent, _ = best(lambda o=order: ours(exact, spacing, o), time.perf_counter, 1)
                times[count] = min(times[count], spent)
        print(
            f"{n}^3 order {order}: {times[1]:.3f} s with one thread, {times[2]:.3f} s with two, "
            f"efficiency {times[1] / times[2] / 2:.2f}"
        )


def meshes(n: int) -> None:
    """Mesh of the ball, all that VTK does included."""
    exact = fields(n)["ball"]
    contour(exact, -np.ones(3), np.full(3, 2.0 / (n - 1)))
    spent, (x, faces) = best(
        lambda: contour(exact, -np.ones(3), np.full(3, 2.0 / (n - 1))), time.perf_counter
    )
    print(f"{n}^3 mesh: {spent:.3f} s, {len(x):,} vertices, {len(faces):,} triangles")


def main(sizes: Sequence[int] = (128, 256)) -> None:
    """Print everything for these numbers of points."""
    if skfmm is None:
        print("scikit-fmm is not installed: pip install scikit-fmm")
    found = {n: compare(n) for n in sizes}
    for small, large in itertools.pairwise(sizes):
        for kind, spent in found[large].items():
            ratio = spent / found[small][kind]
            print(f"{large}^3 takes {ratio:.1f} times as long as {small}^3, {kind}")
    threads(sizes[0])
    meshes(sizes[0])


if __name__ == "__main__":
    from asked import numbers

    main(*numbers(__file__, __doc__, "points"))
