"""What the reformulated vortex particle method adds to plain stretching: cores that shrink as they spin up.

With S = J alpha and s = alpha . S / |alpha|^2,

    d(alpha)/dt = S - 3 g s alpha,  dsigma/dt = -g s sigma,  g = 1/5,

with J the velocity gradient. So |alpha| sigma^2 is constant along the path of every vorton. J or its
transpose gives the same s, since alpha . J alpha = alpha . J^T alpha. Source: Alvarez and Ning, Phys. Fluids
35 (2023), arXiv 2206.03658 (rVPM); derivation in docs/notes/vorticity.md.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.vorticity.stretch import growth_reduction


@parallel(fastmath=FAST, error_model="numpy")
def reshape_cores(
    chunk: int,
    du: NDArray[Any], alpha: NDArray[Any], sigma: NDArray[Any], g: float, own: float, dalpha: NDArray[Any],
    dsigma2: NDArray[Any],
) -> None:  # fmt: skip
    """dalpha -= 3 g s alpha and d(sigma^2)/dt -= 2 g s sigma^2, with s = alpha . J alpha / |alpha|^2.

    If growth is limited, s is reduced by the rate `growth_reduction` here too.

    Args:
        du: velocity gradient (n, 3, 3), 1/s.
        alpha, sigma: strengths (n, 3), m^3/s, and core radii (n,), m.
        g: constant of the method times the factor on stretching, of the arrays' dtype; 1/5 is rVPM, 0 changes
            nothing.
        own: as in `growth_reduction`.
        dalpha, dsigma2: rates (n, 3), m^3/s^2, and (n,), m^2/s, to which the result is added.
    """
    n = len(alpha)
    for p in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        ax, ay, az = alpha[p, 0], alpha[p, 1], alpha[p, 2]
        square = ax * ax + ay * ay + az * az
        if not square > 0:
            continue
        along = (
            ax * (du[p, 0, 0] * ax + du[p, 0, 1] * ay + du[p, 0, 2] * az)
            + ay * (du[p, 1, 0] * ax + du[p, 1, 1] * ay + du[p, 1, 2] * az)
            + az * (du[p, 2, 0] * ax + du[p, 2, 1] * ay + du[p, 2, 2] * az)
        )
        reduction = (
            alpha.dtype.type(growth_reduction(du, alpha, sigma, p, own)) if own > 0 else alpha.dtype.type(0.0)
        )
        rate = g * (along / square - reduction)
        double_rate = rate + rate
        triple_rate = double_rate + rate
        dalpha[p, 0] -= triple_rate * ax
        dalpha[p, 1] -= triple_rate * ay
        dalpha[p, 2] -= triple_rate * az
        dsigma2[p] -= double_rate * sigma[p] * sigma[p]
