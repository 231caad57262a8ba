"""Pairs per second of the direct sums beside a plain double loop: ``python benchmarks/pair_rate.py [n]``.

The plain loop is what one writes first: structure-of-arrays sources, a parallel loop over targets, an inner
loop over sources, ``fastmath=True``, all arithmetic in the precision of the arrays. Every kernel runs in turn
with the others and its best time counts, so that a busy machine hurts all of them alike. Default: n = 16384
sources and as many targets. The symmetric sums serve targets that are the sources, which all have one core
radius here: they meet each pair once, and its two interactions count as two pairs, as for the others.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import njit, prange

from ecs_fluid.kernels import direct, regularisation, symmetric

ROUNDS = 25


@njit(parallel=True, fastmath=True)
def plain_velocity(
    px: Any,
    py: Any,
    pz: Any,
    x: Any,
    y: Any,
    z: Any,
    ax: Any,
    ay: Any,
    az: Any,
    s: Any,
    half5: Any,
    scale: Any,
    u: Any,
) -> None:
    """Winckelmans velocity by the plain loop; constants are arguments so that nothing turns to float64."""
    for i in prange(px.size):
        zero = half5 - half5
        u0 = u1 = u2 = zero
        for j in range(x.size):
            dx = px[i] - x[j]
            dy = py[i] - y[j]
            dz = pz[i] - z[j]
            s2 = s[j] * s[j]
            r2 = dx * dx + dy * dy + dz * dz
            d = r2 + s2
            f = (r2 + half5 * s2) / (d * d * np.sqrt(d))
            u0 += f * (ay[j] * dz - az[j] * dy)
            u1 += f * (az[j] * dx - ax[j] * dz)
            u2 += f * (ax[j] * dy - ay[j] * dx)
        u[i, 0] = scale * u0
        u[i, 1] = scale * u1
        u[i, 2] = scale * u2


def runs(n: int, real: Any) -> dict[str, Callable[[], None]]:
    """Functions to time, by name, all on the same n vortons in the unit cube."""
    rng = np.random.default_rng(1)
    x = rng.random((n, 3)).astype(real)
    sx = np.ascontiguousarray(x.T)
    sa = rng.standard_normal((3, n)).astype(real)
    sigma = np.full(n, 0.05, real)
    u, w, du = np.empty((n, 3), real), np.empty((n, 3), real), np.empty((n, 3, 3), real)
    half5, scale = real(2.5), real(0.25 / np.pi)
    table: dict[str, Callable[[], None]] = {
        "plain loop, winckelmans": lambda: plain_velocity(*sx, *sx, *sa, sigma, half5, scale, u)
    }
    for code, name in enumerate(regularisation.NAMES):
        table[f"velocity, {name}"] = lambda code=code: direct.velocity(code, x, sx, sa, sigma, u)  # type: ignore[misc]
        table[f"  at the vortons (symmetric), {name}"] = lambda code=code: symmetric.velocity(  # type: ignore[misc]
            code, sx, sa, 0.05, u
        )
    table["velocity_gradient, winckelmans"] = lambda: direct.velocity_gradient(0, x, sx, sa, sigma, u, du)
    table["potential_vorticity, winckelmans"] = lambda: direct.potential_vorticity(0, x, sx, sa, sigma, u, w)
    return table


def main() -> None:
    """Print the table."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 16384
    print(f"{n} sources, {n} targets, {numba.get_num_threads()} threads")
    print(f"{'kernel':46s} {'precision':9s} {'Mpairs/s':>9s} {'x plain':>8s}")
    for real in (np.float32, np.float64):
        table = runs(n, real)
        best = dict.fromkeys(table, float("inf"))
        for run in table.values():
            run()
        for _ in range(ROUNDS):
            for name, run in table.items():
                start = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - start)
        plain = best["plain loop, winckelmans"]
        for name, seconds in best.items():
            rate = n * n / seconds / 1e6
            print(f"{name:46s} {np.dtype(real).name:9s} {rate:9.0f} {plain / seconds:8.2f}")


if __name__ == "__main__":
    main()
