"""Stretching and tilting of vorticity by the velocity gradient."""

from __future__ import annotations

from typing import Any

from numba import njit, prange
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import CHUNKS, FAST


@njit(parallel=True, cache=True, fastmath=FAST)
def stretch(
    du: NDArray[Any], alpha: NDArray[Any], dalpha: NDArray[Any], classical: float, transposed: float
) -> None:
    """dalpha_i += classical du_i/dx_j alpha_j + transposed du_j/dx_i alpha_j.

    Args:
        du: velocity gradient (n, 3, 3), du[p, i, j] = du_i/dx_j, 1/s.
        alpha: strengths (n, 3), m^3/s.
        dalpha: their rates (n, 3), m^3/s^2, added to.
        classical, transposed: weights of the two forms, of the arrays' dtype.
    """
    n = len(alpha)
    span = (n + CHUNKS - 1) // CHUNKS
    for chunk in prange(CHUNKS):
        for p in range(chunk * span, min(n, (chunk + 1) * span)):
            for i in range(3):
                straight = du[p, i, 0] * alpha[p, 0] + du[p, i, 1] * alpha[p, 1] + du[p, i, 2] * alpha[p, 2]
                turned = du[p, 0, i] * alpha[p, 0] + du[p, 1, i] * alpha[p, 1] + du[p, 2, i] * alpha[p, 2]
                dalpha[p, i] += classical * straight + transposed * turned
