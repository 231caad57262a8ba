"""New place and strength of vortons near a surface, so that the flow there follows the surface.

Source: Fluid Simulation for Video Games, part 4.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.biot_savart.regularisation_dispatch import (
    check,
    core_constant,
    core_shift,
    velocity_factor,
)
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.vector3 import (
    add_scaled,
    cross_of,
    divided,
    dot,
    length,
    minus,
    row_of,
    scaled,
)
from ecs_fluid.kernels.compiled.wide_vectors import INLINE

HEAD_ON = 1e-6
"""Sine of the angle to the normal below which a flow has no direction along the surface."""


@njit(**INLINE)
def swirl(code: Code, r2: float, sigma: float) -> Any:
    """g(r) of a vorton's velocity g alpha x r, 1/m^3, from the squared distance r2."""
    s2 = sigma * sigma
    factor = velocity_factor(code, r2 + core_shift(code, s2), s2, core_constant(code, s2))
    return factor / (32.0 * math.pi)


@njit(cache=True, error_model="numpy")
def reassign(
    code: Code,
    x: Array,
    alpha: Array,
    sigma: Array,
    point: Array,
    normal: Array,
    slip: Array,
    bent: Array,
    floor: Array,
) -> None:
    """Give vortons (n rows, float64) near a surface the places and strengths that stop the slip, in place.

    For each, w is `slip` at its surface point P, less what the vorton itself brings there. A vorton at
    y = P + s b, with s the larger of its distance and its core radius, cancels w when

        alpha = -(|w| / (g(s) s)) e,    e = w x n / |w x n|,    b = n - (n . w) w / w^2, made a unit vector;

    with b = n instead (`bent` 0) only the component of w along the surface is cancelled. A vorton whose w is
    normal to the surface stays as it is. The direction of a very weak flow is only rounding error, so a
    vorton moves only the fraction w^2 / (w^2 + floor^2) of the way to y.

    Args:
        code: regularisation.
        x, alpha, sigma: vortons (n, 3) m, (n, 3) m^3/s, (n,) m; x and alpha are overwritten.
        point, normal: surface points (n, 3) m and unit normals into the fluid.
        slip: (n, 3) velocity of the fluid at the points less that of the surface, m/s.
        bent: (n,) 1 where b may leave the normal.
        floor: (n,) speed at which that fraction is one half, m/s.
    """
    check(code)
    for i in range(len(x)):
        r = minus(row_of(point, i), row_of(x, i))
        own = swirl(code, dot(r, r), sigma[i])
        w = add_scaled(row_of(slip, i), -own, cross_of(row_of(alpha, i), r))
        b = row_of(normal, i)
        e = cross_of(w, b)
        along, speed = length(e), length(w)
        if along <= HEAD_ON * speed:
            continue
        s = max(length(r), sigma[i])
        wanted = along
        if bent[i] == 1:
            b = add_scaled(b, -dot(b, w) / (speed * speed), w)
            b = divided(b, length(b))
            wanted = speed
        target = -wanted / (swirl(code, s * s, sigma[i]) * s * along)
        alpha[i, 0], alpha[i, 1], alpha[i, 2] = scaled(target, e)
        faint = floor[i] / speed
        way = minus(add_scaled(row_of(point, i), s, b), row_of(x, i))
        x[i, 0], x[i, 1], x[i, 2] = add_scaled(row_of(x, i), 1.0 / (1.0 + faint * faint), way)
