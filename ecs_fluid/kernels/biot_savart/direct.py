"""Direct summation over all pairs, the reference of every other solver: N sources, M targets, N M pairs.

u(x) = sum_i q(|x - x_i|/sigma_i) alpha_i x (x - x_i) / (4 pi |x - x_i|^3); a vorton does not move itself (its
own term is exactly zero). Source: Gourlay, part 3 and part 12; blobs as in ``regularisation``.

All functions take the ``code`` of a regularisation (ValueError for any other), ``targets (m, 3)`` [m], the
sources as ``sx (3, n)`` [m], ``sa (3, n)`` [m^3/s] and ``ssigma (n,)`` [m] (positive), all of one dtype, and
overwrite their results. Threads divide the blocks of targets, and each target adds its sources in the same
order for any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

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
from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.biot_savart.regularisation_dispatch import check, renamed
from ecs_fluid.kernels.compiled import CHUNKS, FAST_LOOP
from ecs_fluid.kernels.compiled.parallel import for_each


def _block_kernel(name: str, add: Any, rows: int, scale: float) -> Any:
    """Kernel of one block: the pair loop's sums, scaled, to ``first (m, 3)`` and the rest to ``second (m,
    k)``."""

    def block(
        b: int, code: Code, targets: Any, sx: Any, sa: Any, ssigma: Any, first: Any, second: Any
    ) -> None:
        n, row, order = ssigma.size, b * BLOCK, np.empty(0, np.int64)
        count = min(BLOCK, targets.shape[0] - row)
        pack, points, sums = block_arrays(ssigma, rows)
        load_block(targets, order, row, count, points)
        sums[:] = 0.0
        for j in range(0, n, pack.shape[1]):
            groups = fill_pack(code, pack, sx, sa, ssigma, j, min(j + pack.shape[1], n))
            add(code, pack, groups, points, count, sums)
        if rows == GRADIENT_SUMS:
            join_gradient(count, sums)
        store_block(sums, 0, scale, order, row, count, first)
        store_block(sums, 3, scale, order, row, count, second)

    return njit(renamed(block, name))


_velocity_block = _block_kernel("velocity_block", add_velocity, VELOCITY_SUMS, PAIR_SCALE)
_gradient_block = _block_kernel("gradient_block", add_gradient, GRADIENT_SUMS, PAIR_SCALE)
_potential_block = _block_kernel("potential_block", add_potential, POTENTIAL_SUMS, SCALE)


def _source_chunk_kernel(name: str, add: Any, rows: int) -> Any:
    """Kernel of one chunk of the sources: sums of the pair loop ``add`` at targets that form one block."""

    def some(c: int, code: Code, targets: Any, sx: Any, sa: Any, ssigma: Any, parts: Any) -> None:
        first, last = c * ssigma.size // CHUNKS, (c + 1) * ssigma.size // CHUNKS
        pack, points, sums = block_arrays(ssigma, rows)
        load_block(targets, np.empty(0, np.int64), 0, targets.shape[0], points)
        sums[:] = 0.0
        for j in range(first, last, pack.shape[1]):
            groups = fill_pack(code, pack, sx, sa, ssigma, j, min(j + pack.shape[1], last))
            add(code, pack, groups, points, targets.shape[0], sums)
        parts[c] = sums

    return njit(renamed(some, name))


_velocity_chunk = _source_chunk_kernel("few_velocity", add_velocity, VELOCITY_SUMS)
_gradient_chunk = _source_chunk_kernel("few_gradient", add_gradient, GRADIENT_SUMS)


@njit(inline="always")
def _block_count(targets: Any) -> Any:
    return (targets.shape[0] + BLOCK - 1) // BLOCK


@njit(cache=True, **FAST_LOOP)
def velocity(code: Code, targets: Any, sx: Any, sa: Any, ssigma: Any, u: Any) -> None:
    """Velocity ``u (m, 3)`` [m/s] at the targets."""
    check(code)
    for_each(_velocity_block, _block_count(targets), (code, targets, sx, sa, ssigma, u, u[:, :0]))


@njit(cache=True, **FAST_LOOP)
def velocity_gradient(code: Code, targets: Any, sx: Any, sa: Any, ssigma: Any, u: Any, du: Any) -> None:
    """Velocity ``u (m, 3)`` [m/s] and its gradient ``du (m, 3, 3)``, du[:, i, j] = du_i/dx_j [1/s]."""
    check(code)
    rows = du.reshape(targets.shape[0], 9)
    for_each(_gradient_block, _block_count(targets), (code, targets, sx, sa, ssigma, u, rows))


@njit(cache=True, **FAST_LOOP)
def potential_vorticity(
    code: Code, targets: Any, sx: Any, sa: Any, ssigma: Any, psi: Any, omega: Any
) -> None:
    """Vector potential ``psi (m, 3)`` [m^2/s] and vorticity of the blobs ``omega (m, 3)`` [1/s].

    Kinetic energy per density is 1/2 sum alpha . psi, enstrophy 1/2 sum alpha . omega, both with the
    self-terms included.
    """
    check(code)
    for_each(_potential_block, _block_count(targets), (code, targets, sx, sa, ssigma, psi, omega))


@njit(error_model="numpy")
def _sum_of_chunks(parts: Any) -> Any:
    """Sums over the first axis. `parts.sum(axis=0)` would take a second longer to compile."""
    sums = parts[0]
    for c in range(1, parts.shape[0]):
        for row in range(parts.shape[1]):
            for k in range(parts.shape[2]):
                sums[row, k] += parts[c, row, k]
    return sums


@njit(cache=True, **FAST_LOOP)
def few_velocities(code: Code, targets: Any, sx: Any, sa: Any, ssigma: Any, u: Any) -> None:
    """`velocity` at up to BLOCK targets: threads divide the sources into CHUNKS with separate sums."""
    check(code)
    parts = np.empty((CHUNKS, VELOCITY_SUMS, BLOCK), u.dtype)
    for_each(_velocity_chunk, CHUNKS, (code, targets, sx, sa, ssigma, parts))
    store_block(_sum_of_chunks(parts), 0, PAIR_SCALE, np.empty(0, np.int64), 0, len(u), u)


@njit(cache=True, **FAST_LOOP)
def few_gradients(code: Code, targets: Any, sx: Any, sa: Any, ssigma: Any, u: Any, du: Any) -> None:
    """`velocity_gradient` in the same way, ``du`` (m, 3, 3)."""
    check(code)
    parts = np.empty((CHUNKS, GRADIENT_SUMS, BLOCK), u.dtype)
    for_each(_gradient_chunk, CHUNKS, (code, targets, sx, sa, ssigma, parts))
    sums, order = _sum_of_chunks(parts), np.empty(0, np.int64)
    join_gradient(len(u), sums)
    store_block(sums, 0, PAIR_SCALE, order, 0, len(u), u)
    store_block(sums, 3, PAIR_SCALE, order, 0, len(u), du.reshape(len(u), 9))
