"""Stage of a two-register Runge-Kutta method on flat columns.

A stage of Williamson's low-storage form is q <- a q + dt f(y), y <- y + b q (J. H. Williamson, J. Comput.
Phys. 35, 1980). Columns come flattened, so that one kernel serves every shape.

Chunks are slices with loops from 0: of an index that starts elsewhere the compiler has to test whether it is
negative, and then the loop does not become one over vectors (81 in place of 15 us for 150,000 numbers). The
kernels of squares, which only core radii need, stay scalar: over vectors the last bit of y^2 + b q depends on
where a row lies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import CHUNKS, FAST


@njit(parallel=True, cache=True, fastmath=FAST)
def advance(y: NDArray[Any], q: NDArray[Any], rate: NDArray[Any], a: float, b: float, dt: float) -> None:
    """One stage for all columns: y and q are updated in place; all arrays (n,), one dtype."""
    n = y.size
    for chunk in prange(CHUNKS):
        first, last = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
        state, register, slope = y[first:last], q[first:last], rate[first:last]
        for k in range(state.size):
            register[k] = a * register[k] + dt * slope[k]
            state[k] += b * register[k]


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
    for chunk in prange(CHUNKS):
        first, last = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
        state, slope = y[first:last], rate[first:last]
        for k in range(state.size):
            state[k] += dt * slope[k]


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
    flat = rows.reshape(rows.size)
    x, y, z = by[0], by[1], by[2]
    for chunk in prange(CHUNKS):
        part = flat[3 * (chunk * n // CHUNKS) : 3 * ((chunk + 1) * n // CHUNKS)]
        for k in range(part.size // 3):
            part[3 * k] += x
            part[3 * k + 1] += y
            part[3 * k + 2] += z
