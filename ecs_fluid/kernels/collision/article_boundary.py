"""New place and strength of vortons near a surface, so that the flow there follows the surface.

Source: Fluid Simulation for Video Games, part 4.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.biot_savart.selection import check, core_constant, core_shift, velocity_factor
from ecs_fluid.kernels.compiled.vectors import INLINE

HEAD_ON = 1e-6
"""Sine of the angle to the normal below which a flow has no direction along the surface."""


@njit(**INLINE)
def swirl(code: int, r2: float, sigma: float) -> Any:
    """g(r) of a vorton's velocity g alpha x r, 1/m^3, from the squared distance r2."""
    s2 = sigma * sigma
    factor = velocity_factor(code, r2 + core_shift(code, s2), s2, core_constant(code, s2))
    return factor / (32.0 * math.pi)


@njit(cache=True, error_model="numpy")
def reassign(
    code: int,
    x: np.ndarray,
    alpha: np.ndarray,
    sigma: np.ndarray,
    point: np.ndarray,
    normal: np.ndarray,
    slip: np.ndarray,
    bent: np.ndarray,
    floor: np.ndarray,
) -> None:
    """Give vortons (n rows, float64) near a surface the places and strengths that stop the slip, in place.

    For each, w is `slip` at its surface point P, less what the vorton itself brings there. A vorton at
    y = P + s b, with s the larger of its distance and its core radius, cancels w when

        alpha = -(|w| / (g(s) s)) e,    e = w x n / |w x n|,    b = n - (n . w) w / w^2, made a unit vector;

    with b = n instead (`bent` 0) only the part of w along the surface is cancelled. A vorton whose w is
    straight at the surface stays as it is. The direction of next to no flow is that of its rounding errors,
    so y is only approached, by the part w^2 / (w^2 + floor^2) of the way.

    Args:
        code: regularisation.
        x, alpha, sigma: vortons (n, 3) m, (n, 3) m^3/s, (n,) m; x and alpha are overwritten.
        point, normal: surface points (n, 3) m and unit normals into the fluid.
        slip: (n, 3) velocity of the fluid at the points less that of the surface, m/s.
        bent: (n,) 1 where b may leave the normal.
        floor: (n,) speed at which it is half, m/s.
    """
    check(code)
    for i in range(len(x)):
        r0, r1, r2 = point[i, 0] - x[i, 0], point[i, 1] - x[i, 1], point[i, 2] - x[i, 2]
        own = swirl(code, r0 * r0 + r1 * r1 + r2 * r2, sigma[i])
        w0 = slip[i, 0] - own * (alpha[i, 1] * r2 - alpha[i, 2] * r1)
        w1 = slip[i, 1] - own * (alpha[i, 2] * r0 - alpha[i, 0] * r2)
        w2 = slip[i, 2] - own * (alpha[i, 0] * r1 - alpha[i, 1] * r0)
        b0, b1, b2 = normal[i, 0], normal[i, 1], normal[i, 2]
        e0, e1, e2 = w1 * b2 - w2 * b1, w2 * b0 - w0 * b2, w0 * b1 - w1 * b0
        along = math.sqrt(e0 * e0 + e1 * e1 + e2 * e2)
        speed = math.sqrt(w0 * w0 + w1 * w1 + w2 * w2)
        if along <= HEAD_ON * speed:
            continue
        s = max(math.sqrt(r0 * r0 + r1 * r1 + r2 * r2), sigma[i])
        wanted = along
        if bent[i] == 1:
            part = (b0 * w0 + b1 * w1 + b2 * w2) / (speed * speed)
            b0, b1, b2 = b0 - part * w0, b1 - part * w1, b2 - part * w2
            size = math.sqrt(b0 * b0 + b1 * b1 + b2 * b2)
            b0, b1, b2 = b0 / size, b1 / size, b2 / size
            wanted = speed
        target = -wanted / (swirl(code, s * s, sigma[i]) * s * along)
        alpha[i, 0], alpha[i, 1], alpha[i, 2] = target * e0, target * e1, target * e2
        faint = floor[i] / speed
        part = 1.0 / (1.0 + faint * faint)
        x[i, 0] += part * (point[i, 0] + s * b0 - x[i, 0])
        x[i, 1] += part * (point[i, 1] + s * b1 - x[i, 1])
        x[i, 2] += part * (point[i, 2] + s * b2 - x[i, 2])
