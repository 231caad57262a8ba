"""Strengths turned towards the vorticity around them (Pedrizzetti's relaxation).

The vorticity of vortons, sum_p alpha_p zeta_p, is not free of divergence, but the curl of the velocity that
they induce is. The difference grows as the flow carries vortons apart. Turning every strength towards
omega = curl u at its position keeps the difference small. Source: Pedrizzetti, Fluid Dyn. Res. 10 (1992).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.parallel import parallel


@parallel(fastmath=FAST, error_model="numpy")
def align(
    chunk: int, alpha: NDArray[Any], du: NDArray[Any], fraction: float, lag: float, corrected: bool
) -> None:
    """alpha <- (1 - f) alpha + f |alpha| omega/|omega|; if ``corrected``, rescaled to its old length.

    The gradient may be older than the strengths by ``lag``. Along the path of a vorton d(omega)/dt = J omega,
    so omega + lag J omega is used. The strength stays if the vorticity is below 1e-18 1/s. With ``corrected``
    it also stays if the result would be 0 (vorticity exactly opposite, f = 1/2).

    Args:
        alpha: strengths (n, 3), m^3/s, changed in place.
        du: velocity gradient (n, 3, 3), du[p, i, j] = du_i/dx_j, 1/s.
        fraction: f, from 0 to 1, of the arrays' dtype.
        lag: age of the gradient, s, of the arrays' dtype.
        corrected: whether |alpha| is kept. Otherwise a strength at the angle t to the vorticity shrinks by
            the factor sqrt(1 - 2 f (1 - f) (1 - cos t)).
    """
    n = len(alpha)
    for p in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        x = du[p, 2, 1] - du[p, 1, 2]
        y = du[p, 0, 2] - du[p, 2, 0]
        z = du[p, 1, 0] - du[p, 0, 1]
        wx = x + lag * (du[p, 0, 0] * x + du[p, 0, 1] * y + du[p, 0, 2] * z)
        wy = y + lag * (du[p, 1, 0] * x + du[p, 1, 1] * y + du[p, 1, 2] * z)
        wz = z + lag * (du[p, 2, 0] * x + du[p, 2, 1] * y + du[p, 2, 2] * z)
        ax, ay, az = alpha[p, 0], alpha[p, 1], alpha[p, 2]
        # Squares of weak strengths would underflow, so scale these up; a power of two changes no digit.
        weak = ax * ax + ay * ay + az * az < alpha.dtype.type(1e-25)
        up = alpha.dtype.type(2.0**64) if weak else alpha.dtype.type(1.0)
        ax, ay, az = up * ax, up * ay, up * az
        length = np.sqrt(ax * ax + ay * ay + az * az)
        square = wx * wx + wy * wy + wz * wz
        if not (square > alpha.dtype.type(1e-36) and length > 0):
            continue
        size = np.sqrt(square)
        pull = fraction * (length / size)
        ax = ax - fraction * ax + pull * wx
        ay = ay - fraction * ay + pull * wy
        az = az - fraction * az + pull * wz
        if corrected:
            after = np.sqrt(ax * ax + ay * ay + az * az)
            if not after > 0:
                continue
            scale = length / after
            ax, ay, az = scale * ax, scale * ay, scale * az
        alpha[p, 0], alpha[p, 1], alpha[p, 2] = ax / up, ay / up, az / up
