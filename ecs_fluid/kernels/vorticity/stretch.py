"""Stretching and tilting of vorticity by the velocity gradient."""

from __future__ import annotations

from typing import Any

from numba import njit
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.parallel import parallel

OWN_SHARES = 0.5, 0.8
"""A vorton's growth is reduced from the first of these shares on, and stopped from the second on. The share
is that of its own blob in the vorticity at its centre."""


@njit(cache=True, fastmath=FAST, error_model="numpy")
def growth_reduction(du: NDArray[Any], alpha: NDArray[Any], sigma: NDArray[Any], p: int, own: float) -> Any:
    """Rate, 1/s, by which the growth s = alpha . J alpha / alpha^2 of the strength of vorton p is reduced.

    The blob of the vorton alone has the curl ``own`` alpha/sigma^3 at its centre, with own = 2/3 zeta(0). Let
    q be its share in the whole curl there: 1 for a vorton alone, small among overlapping blobs. The result is
    s z^2 (3 - 2 z) if s > 0, else 0, with z = (q^2 - a^2)/(b^2 - a^2) clamped to [0, 1] and a, b =
    OWN_SHARES.
    """
    ax, ay, az = alpha[p, 0], alpha[p, 1], alpha[p, 2]
    along = (
        ax * (du[p, 0, 0] * ax + du[p, 0, 1] * ay + du[p, 0, 2] * az)
        + ay * (du[p, 1, 0] * ax + du[p, 1, 1] * ay + du[p, 1, 2] * az)
        + az * (du[p, 2, 0] * ax + du[p, 2, 1] * ay + du[p, 2, 2] * az)
    )
    square = ax * ax + ay * ay + az * az
    if not (own > 0 and along > 0 and square > 0):
        return 0.0
    x, y, z = du[p, 2, 1] - du[p, 1, 2], du[p, 0, 2] - du[p, 2, 0], du[p, 1, 0] - du[p, 0, 1]
    turning = own / sigma[p] ** 3
    low, high = OWN_SHARES[0] ** 2, OWN_SHARES[1] ** 2
    part = (turning * turning * square / (x * x + y * y + z * z) - low) / (high - low)
    part = min(max(part, 0.0), 1.0)
    reduction: float = part * part * (3.0 - 2.0 * part) * along / square
    return reduction


@parallel(fastmath=FAST, error_model="numpy")
def stretch(
    chunk: int,
    du: NDArray[Any], alpha: NDArray[Any], sigma: NDArray[Any], dalpha: NDArray[Any], classical: float,
    transposed: float, own: float,
) -> None:  # fmt: skip
    """dalpha_i += classical (du_i/dx_j alpha_j - held_back alpha_i) + transposed du_j/dx_i alpha_j.

    Args:
        du: velocity gradient (n, 3, 3), du[p, i, j] = du_i/dx_j, 1/s.
        alpha: strengths (n, 3), m^3/s.
        sigma: core radii (n,), m.
        dalpha: rates of the strengths (n, 3), m^3/s^2, to which the result is added.
        classical, transposed: weights of the two forms, of the arrays' dtype.
        own: curl of a blob alone at its centre, divided by alpha/sigma^3, of the arrays' dtype; with 0 no
            growth is reduced.
    """
    n = len(alpha)
    span = (n + CHUNKS - 1) // CHUNKS
    for p in range(chunk * span, min(n, (chunk + 1) * span)):
        held = (
            alpha.dtype.type(growth_reduction(du, alpha, sigma, p, own)) if own > 0 else alpha.dtype.type(0.0)
        )
        for i in range(3):
            straight = du[p, i, 0] * alpha[p, 0] + du[p, i, 1] * alpha[p, 1] + du[p, i, 2] * alpha[p, 2]
            turned = du[p, 0, i] * alpha[p, 0] + du[p, 1, i] * alpha[p, 1] + du[p, 2, i] * alpha[p, 2]
            dalpha[p, i] += classical * (straight - held * alpha[p, i]) + transposed * turned
