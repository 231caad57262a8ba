"""Stage of a two-register Runge-Kutta method on flat columns.

A stage of Williamson's low-storage form is q <- a q + dt f(y), y <- y + b q (J. H. Williamson, J. Comput.
Phys. 35, 1980). Columns come flattened, so that one kernel serves every shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ecs_fluid.kernels import CHUNKS, FAST


@njit(parallel=True, cache=True, fastmath=FAST)
def advance(y: NDArray[Any], q: NDArray[Any], rate: NDArray[Any], a: float, b: float, dt: float) -> None:
    """One stage for all columns: y and q are updated in place; all arrays (n,), one dtype."""
    n = y.size
    span = (n + CHUNKS - 1) // CHUNKS
    for chunk in prange(CHUNKS):
        for k in range(chunk * span, min(n, (chunk + 1) * span)):
            q[k] = a * q[k] + dt * rate[k]
            y[k] += b * q[k]


@njit(parallel=True, cache=True, fastmath=FAST)
def advance_square(
    y: NDArray[Any], q: NDArray[Any], rate: NDArray[Any], a: float, b: float, dt: float
) -> None:
    """One stage for columns whose rate is that of their square: y^2 and q are advanced."""
    n = y.size
    span = (n + CHUNKS - 1) // CHUNKS
    for chunk in prange(CHUNKS):
        for k in range(chunk * span, min(n, (chunk + 1) * span)):
            q[k] = a * q[k] + dt * rate[k]
            y[k] = np.sqrt(y[k] * y[k] + b * q[k])


@njit(parallel=True, cache=True, fastmath=FAST)
def euler(y: NDArray[Any], rate: NDArray[Any], dt: float) -> None:
    """y <- y + dt rate, without a register."""
    n = y.size
    span = (n + CHUNKS - 1) // CHUNKS
    for chunk in prange(CHUNKS):
        for k in range(chunk * span, min(n, (chunk + 1) * span)):
            y[k] += dt * rate[k]


@njit(parallel=True, cache=True, fastmath=FAST)
def euler_square(y: NDArray[Any], rate: NDArray[Any], dt: float) -> None:
    """y^2 <- y^2 + dt rate, without a register."""
    n = y.size
    span = (n + CHUNKS - 1) // CHUNKS
    for chunk in prange(CHUNKS):
        for k in range(chunk * span, min(n, (chunk + 1) * span)):
            y[k] = np.sqrt(y[k] * y[k] + dt * rate[k])


@njit(parallel=True, cache=True, fastmath=FAST)
def shift(rows: NDArray[Any], by: NDArray[Any]) -> None:
    """Add one vector (3,) to all rows (n, 3), in place; numpy takes ten times as long over rows so short."""
    n = rows.shape[0]
    for chunk in prange(CHUNKS):
        for k in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            rows[k, 0] += by[0]
            rows[k, 1] += by[1]
            rows[k, 2] += by[2]
