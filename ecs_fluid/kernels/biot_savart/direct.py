"""Direct summation over all pairs, the reference of every other solver: N sources, M targets, N M pairs.

u(x) = sum_i q(|x - x_i|/sigma_i) alpha_i x (x - x_i) / (4 pi |x - x_i|^3); a vorton does not move itself (its
own term is exactly zero). Source: Gourlay, part 3 and part 12; blobs as in ``regularisation``.

All functions take ``code`` (of a regularisation; another is a ValueError), ``targets (m, 3)`` [m], the
sources as ``sx (3, n)`` [m], ``sa (3, n)`` [m^3/s] and ``ssigma (n,)`` [m] (positive), all of one dtype, and
overwrite their results. Threads share out blocks of targets, and each target adds its sources in the same
order whatever the threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels.biot_savart.pairwise import (
    BLOCK,
    GRADIENT_SUMS,
    PAIR_SCALE,
    POTENTIAL_SUMS,
    SCALE,
    VELOCITY_SUMS,
    add_gradient,
    add_potential,
    add_velocity,
    block_arrays,
    fill_pack,
    join_gradient,
    load_block,
    store_block,
)
from ecs_fluid.kernels.biot_savart.selection import check
from ecs_fluid.kernels.compiled import FAST

_OPTIONS: dict[str, Any] = {"parallel": True, "cache": True, "fastmath": FAST, "error_model": "numpy"}


@njit(**_OPTIONS)
def velocity(code: int, targets: Any, sx: Any, sa: Any, ssigma: Any, u: Any) -> None:
    """Velocity ``u (m, 3)`` [m/s] at the targets."""
    check(code)
    m, n = targets.shape[0], ssigma.size
    order = np.empty(0, np.int64)
    for b in prange((m + BLOCK - 1) // BLOCK):
        first = b * BLOCK
        count = min(BLOCK, m - first)
        pack, points, sums = block_arrays(ssigma, VELOCITY_SUMS)
        load_block(targets, order, first, count, points)
        sums[:] = 0.0
        for j in range(0, n, pack.shape[1]):
            groups = fill_pack(code, pack, sx, sa, ssigma, j, min(j + pack.shape[1], n))
            add_velocity(code, pack, groups, points, count, sums)
        store_block(sums, 0, PAIR_SCALE, order, first, count, u)


@njit(**_OPTIONS)
def velocity_gradient(code: int, targets: Any, sx: Any, sa: Any, ssigma: Any, u: Any, du: Any) -> None:
    """Velocity ``u (m, 3)`` [m/s] and its gradient ``du (m, 3, 3)``, du[:, i, j] = du_i/dx_j [1/s]."""
    check(code)
    m, n = targets.shape[0], ssigma.size
    order = np.empty(0, np.int64)
    rows = du.reshape(m, 9)
    for b in prange((m + BLOCK - 1) // BLOCK):
        first = b * BLOCK
        count = min(BLOCK, m - first)
        pack, points, sums = block_arrays(ssigma, GRADIENT_SUMS)
        load_block(targets, order, first, count, points)
        sums[:] = 0.0
        for j in range(0, n, pack.shape[1]):
            groups = fill_pack(code, pack, sx, sa, ssigma, j, min(j + pack.shape[1], n))
            add_gradient(code, pack, groups, points, count, sums)
        join_gradient(count, sums)
        store_block(sums, 0, PAIR_SCALE, order, first, count, u)
        store_block(sums, 3, PAIR_SCALE, order, first, count, rows)


@njit(**_OPTIONS)
def potential_vorticity(code: int, targets: Any, sx: Any, sa: Any, ssigma: Any, psi: Any, omega: Any) -> None:
    """Vector potential ``psi (m, 3)`` [m^2/s] and vorticity of the blobs ``omega (m, 3)`` [1/s].

    Kinetic energy per density is 1/2 sum alpha . psi, enstrophy 1/2 sum alpha . omega, both with the
    self-terms included.
    """
    check(code)
    m, n = targets.shape[0], ssigma.size
    order = np.empty(0, np.int64)
    for b in prange((m + BLOCK - 1) // BLOCK):
        first = b * BLOCK
        count = min(BLOCK, m - first)
        pack, points, sums = block_arrays(ssigma, POTENTIAL_SUMS)
        load_block(targets, order, first, count, points)
        sums[:] = 0.0
        for j in range(0, n, pack.shape[1]):
            groups = fill_pack(code, pack, sx, sa, ssigma, j, min(j + pack.shape[1], n))
            add_potential(code, pack, groups, points, count, sums)
        store_block(sums, 0, SCALE, order, first, count, psi)
        store_block(sums, 3, SCALE, order, first, count, omega)
