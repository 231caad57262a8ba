"""The smoother of multigrid by itself, as over-relaxation of a field (px, py, pz[, m]), and its residual."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.kernels.poisson.smoothers import as_rows, relax, residual_rows, stencil

Array = NDArray[Any]


def residual(field: Array, rhs: Array, spacing: Any, out: Array | None = None) -> float:
    """Root mean square of rhs - lap A over the inner points; the residual itself goes to `out` if given."""
    out = np.empty_like(field) if out is None else out
    return residual_rows(
        as_rows(field), as_rows(rhs), stencil(field.shape, spacing, field.dtype), as_rows(out)
    )[0]


def optimal_omega(shape: tuple[int, ...], spacing: Any) -> float:
    """The fastest factor in the long run (Young 1950): 2 / (1 + sqrt(1 - rho^2)).

    rho = sum_axes cos(pi/N)/h^2 / sum_axes 1/h^2, N cells along the axis; on a cube 2 / (1 + sin(pi/N)).
    """
    weight, cells = np.asarray(spacing, float) ** -2.0, np.array(shape[:3]) - 1
    rho = np.sum(weight * np.cos(np.pi / cells)) / weight.sum()
    return float(2.0 / (1.0 + np.sqrt(1.0 - rho**2)))


def sor(field: Array, rhs: Array, spacing: Any, omega: float | None, sweeps: int) -> None:
    """Successive over-relaxation of lap A = rhs in place; None is the factor of `optimal_omega`."""
    omega = optimal_omega(field.shape, spacing) if omega is None else omega
    relax(as_rows(field), as_rows(rhs), stencil(field.shape, spacing, field.dtype), omega, sweeps)
