"""Pairs per second of the direct sums beside plain double loops: ``python benchmarks/pair_rate.py [n]``.

Three plain loops, all parallel over targets with ``fastmath=True``, the inner loop over sources:

* ``rows``: over arrays (n, 3), as a world holds its positions (not vectorised by LLVM);
* ``columns``: over structure-of-arrays, numbers in the formula written as they are (float64 in Python, so
  that the arithmetic on float32 arrays is in float64);
* ``tuned``: as ``columns``, with the numbers handed over in the precision of the arrays.

Every kernel runs in turn with the others and its best time counts, so that a busy machine hurts all of them
alike. Default: n = 16384 sources and as many targets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba import njit, prange

from ecs_fluid.kernels.biot_savart import direct, regularisation

ROUNDS = 25


@njit(parallel=True, fastmath=True)
def plain_rows(x: Any, alpha: Any, sigma: Any, u: Any) -> None:
    """Winckelmans velocity by a plain loop over arrays (n, 3)."""
    for i in prange(x.shape[0]):
        u0 = u1 = u2 = 0.0
        for j in range(x.shape[0]):
            dx = x[i, 0] - x[j, 0]
            dy = x[i, 1] - x[j, 1]
            dz = x[i, 2] - x[j, 2]
            s2 = sigma[j] * sigma[j]
            r2 = dx * dx + dy * dy + dz * dz
            d = r2 + s2
            f = (r2 + 2.5 * s2) / (d * d * np.sqrt(d))
            u0 += f * (alpha[j, 1] * dz - alpha[j, 2] * dy)
            u1 += f * (alpha[j, 2] * dx - alpha[j, 0] * dz)
            u2 += f * (alpha[j, 0] * dy - alpha[j, 1] * dx)
        u[i, 0] = 0.25 / np.pi * u0
        u[i, 1] = 0.25 / np.pi * u1
        u[i, 2] = 0.25 / np.pi * u2


@njit(parallel=True, fastmath=True)
def plain_columns(x: Any, alpha: Any, sigma: Any, half5: Any, scale: Any, u: Any) -> None:
    """The same over arrays (3, n); the numbers are arguments, and their precision is that of the sums."""
    for i in prange(x.shape[1]):
        u0 = u1 = u2 = half5 - half5
        for j in range(x.shape[1]):
            dx = x[0, i] - x[0, j]
            dy = x[1, i] - x[1, j]
            dz = x[2, i] - x[2, j]
            s2 = sigma[j] * sigma[j]
            r2 = dx * dx + dy * dy + dz * dz
            d = r2 + s2
            f = (r2 + half5 * s2) / (d * d * np.sqrt(d))
            u0 += f * (alpha[1, j] * dz - alpha[2, j] * dy)
            u1 += f * (alpha[2, j] * dx - alpha[0, j] * dz)
            u2 += f * (alpha[0, j] * dy - alpha[1, j] * dx)
        u[i, 0] = scale * u0
        u[i, 1] = scale * u1
        u[i, 2] = scale * u2


@njit(parallel=True, fastmath=True)
def plain_gradient(x: Any, alpha: Any, sigma: Any, half5: Any, scale: Any, u: Any, du: Any) -> None:
    """Winckelmans velocity and gradient by a plain loop over arrays (3, n); numbers as above."""
    one, five = half5 / half5, half5 + half5
    for i in prange(x.shape[1]):
        u0 = u1 = u2 = half5 - half5
        xx = xy = xz = yx = yy = yz = zx = zy = zz = half5 - half5
        for j in range(x.shape[1]):
            dx = x[0, i] - x[0, j]
            dy = x[1, i] - x[1, j]
            dz = x[2, i] - x[2, j]
            ax, ay, az = alpha[0, j], alpha[1, j], alpha[2, j]
            s2 = sigma[j] * sigma[j]
            r2 = dx * dx + dy * dy + dz * dz
            d = r2 + s2
            e = one / np.sqrt(d)
            e5 = e * e * e * e * e
            g = (r2 + half5 * s2) * e5
            h = (one + one) * e5 - five * g * e * e
            cx, cy, cz = ay * dz - az * dy, az * dx - ax * dz, ax * dy - ay * dx
            u0 += g * cx
            u1 += g * cy
            u2 += g * cz
            xx += h * cx * dx
            xy += h * cx * dy - g * az
            xz += h * cx * dz + g * ay
            yx += h * cy * dx + g * az
            yy += h * cy * dy
            yz += h * cy * dz - g * ax
            zx += h * cz * dx - g * ay
            zy += h * cz * dy + g * ax
            zz += h * cz * dz
        for row, value in enumerate((u0, u1, u2)):
            u[i, row] = scale * value
        for row, value in enumerate((xx, xy, xz, yx, yy, yz, zx, zy, zz)):
            du[i, row // 3, row % 3] = scale * value


def runs(n: int, real: Any) -> dict[str, Callable[[], None]]:
    """Functions to time, by name, all on the same n vortons in the unit cube."""
    rng = np.random.default_rng(1)
    x = rng.random((n, 3)).astype(real)
    sx = np.ascontiguousarray(x.T)
    sa = rng.standard_normal((3, n)).astype(real)
    alpha = np.ascontiguousarray(sa.T)
    sigma = np.full(n, 0.05, real)
    u, w, du = np.empty((n, 3), real), np.empty((n, 3), real), np.empty((n, 3, 3), real)
    written, tuned = (2.5, 0.25 / np.pi), (real(2.5), real(0.25 / np.pi))
    table: dict[str, Callable[[], None]] = {
        "plain velocity, rows": lambda: plain_rows(x, alpha, sigma, u),
        "plain velocity, columns": lambda: plain_columns(sx, sa, sigma, *written, u),
        "plain velocity, tuned": lambda: plain_columns(sx, sa, sigma, *tuned, u),
        "plain gradient, columns": lambda: plain_gradient(sx, sa, sigma, *written, u, du),
        "plain gradient, tuned": lambda: plain_gradient(sx, sa, sigma, *tuned, u, du),
    }
    for name, code in regularisation.CODES.items():
        table[f"velocity, {name}"] = lambda code=code: direct.velocity(code, x, sx, sa, sigma, u)  # type: ignore[misc]
    table["velocity_gradient, winckelmans"] = lambda: direct.velocity_gradient(
        regularisation.CODES["winckelmans"], x, sx, sa, sigma, u, du
    )
    table["potential_vorticity, winckelmans"] = lambda: direct.potential_vorticity(
        regularisation.CODES["winckelmans"], x, sx, sa, sigma, u, w
    )
    return table


def main(sizes: Sequence[int] = (16384,)) -> None:
    """Print the table; ratios of the gradient are to the plain gradients, all others to the velocities."""
    n = sizes[0]
    print(f"{n} sources, {n} targets, {numba.get_num_threads()} threads")
    print(f"{'kernel':46s} {'precision':9s} {'Mpairs/s':>9s}   x rows x columns x tuned")
    for real in (np.float32, np.float64):
        table = runs(n, real)
        best = dict.fromkeys(table, float("inf"))
        for run in table.values():
            run()
        for round_ in range(ROUNDS):
            for name, run in table.items():
                if round_ > 2 and (name.endswith("rows") or "gaussian" in name):
                    continue  # ten times as long as the others
                start = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - start)
        for name, seconds in best.items():
            kind = "gradient" if "gradient" in name else "velocity"
            ratios = ""
            for width, loop in ((7, "rows"), (9, "columns"), (7, "tuned")):
                plain = best.get(f"plain {kind}, {loop}")
                ratios += f" {'' if plain is None else format(plain / seconds, '.2f'):>{width}s}"
            print(f"{name:46s} {np.dtype(real).name:9s} {n * n / seconds / 1e6:9.0f}{ratios}")


if __name__ == "__main__":
    from asked import numbers

    main(*numbers(__file__, __doc__, "n", most=1))
