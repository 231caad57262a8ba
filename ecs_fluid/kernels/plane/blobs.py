"""Blobs for flow in a plane: each is a straight line of blobs in space, across the plane.

Flow in a plane is the same at all distances from it; a vorton stands for one metre of the line. With
rho = r/sigma and r the distance from the line, a line of strength Gamma per metre has the vorticity
Gamma zeta(rho)/sigma^2. Here zeta is that of space integrated along the line, and
q = 2 pi int_0^rho zeta s ds is the part inside r. The line has the

    velocity            u   = Gamma q(rho) / (2 pi r^2) (-y, x)                                  [m/s]
    stream function     psi = Gamma G(r),  dG/dr = -q / (2 pi r),  -laplace G = zeta/sigma^2     [m^2/s]

=============== ============================ ======================== ====================================
name            q(rho)                       zeta(rho)                4 pi G
=============== ============================ ======================== ====================================
winckelmans     1 - (1 + rho^2)^-2           2/pi (1 + rho^2)^-3      sigma^2/d - ln d, d = r^2 + sigma^2
gaussian        1 - exp(-rho^2/2)            exp(-rho^2/2)/(2 pi)     -ln r^2 - E_1(rho^2/2)
rankine         1 - v^3, v^2 = 1 - rho^2     3/(2 pi) v, 0 outside    2 v^3/3 + 2 v - 2 ln(sigma + sigma v)
rosenhead_moore rho^2/(1 + rho^2)            1/pi (1 + rho^2)^-2      -ln d
=============== ============================ ======================== ====================================

Lengths in logarithms are in metres. G does not tend to 0 far away: it is below 0 beyond about 1 m. The energy
of the whole plane is infinite unless the strengths add up to zero, so a constant is left out of it (Saffman,
Vortex Dynamics, section 3.10). The functions are those that a `Regularisation` needs and fit its loops, with
r^2 the squared distance, alpha across the plane, and 2 q/r^2 in the place of q/r^3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import FAST_LOOP
from ecs_fluid.kernels.compiled.polynomials import exp_minus_half, polynomial
from ecs_fluid.kernels.compiled.wide_vectors import INLINE, double_inverse_root

# ---------------------------------------------------------------- algebraic, d = r^2 + s2


@njit(**INLINE)
def winckelmans_velocity(d: Any, s2: Any, k: Any) -> Any:
    """16 q/r^2 = 16 (1/d + s2/d^2) of winckelmans."""
    y = double_inverse_root(d)
    y2 = y * y
    return y2 * (type(d)(4.0) + s2 * y2)


@njit(**INLINE)
def winckelmans_gradient(d: Any, s2: Any, k: Any) -> Any:
    """8 g, g = 2 q/r^2, and 8 h, h = (dg/dr)/r = -4/d^2 - 8 s2/d^3."""
    real = type(d)
    y = double_inverse_root(d)
    y2 = y * y
    t = s2 * y2
    return y2 * (real(4.0) + t), -(y2 * y2) * (real(2.0) + t)


@njit(**INLINE)
def winckelmans_potential(d: Any, s2: Any, k: Any) -> Any:
    """4 pi G and 4 pi zeta/sigma^2."""
    real = type(d)
    t = s2 / d
    return t - np.log(d), real(8.0) * (t * t) / d


@njit(**FAST_LOOP)
def winckelmans_derivatives(order: int, s2: float, f: Any, lane: int) -> None:
    """(1/r d/dr)^k 4 pi G = (-2)^k (k - 1)! (1 + k s2) in units of sqrt(d), k > 0."""
    value = -2.0
    f[0, lane] = s2
    for k in range(1, order + 1):
        f[k, lane] = value * (1.0 + k * s2)
        value *= -2.0 * k


@njit(**INLINE)
def rosenhead_moore_velocity(d: Any, s2: Any, k: Any) -> Any:
    """16 q/r^2 = 16/d of rosenhead_moore."""
    y = double_inverse_root(d)
    return type(d)(4.0) * (y * y)


@njit(**INLINE)
def rosenhead_moore_gradient(d: Any, s2: Any, k: Any) -> Any:
    """8 g and 8 h, h = -4/d^2."""
    real = type(d)
    y = double_inverse_root(d)
    y2 = y * y
    return real(4.0) * y2, real(-2.0) * (y2 * y2)


@njit(**INLINE)
def rosenhead_moore_potential(d: Any, s2: Any, k: Any) -> Any:
    """4 pi G and 4 pi zeta/sigma^2."""
    return -np.log(d), type(d)(4.0) * s2 / (d * d)


@njit(**FAST_LOOP)
def point_derivatives(order: int, s2: float, f: Any, lane: int) -> None:
    """(-2)^k (k - 1)!, k > 0: derivatives of -ln d in units of sqrt(d); those of any blob beyond its edge."""
    winckelmans_derivatives(order, 0.0, f, lane)


# ---------------------------------------------------------------- gaussian, d = r^2 and k = 1/s2

_SPLIT = 2.0
_near_moment = polynomial("near_moment", (0.5**j / math.factorial(j + 2) for j in range(17, -1, -1)))
"""exp(t/2) int_0^1 v exp(-t v/2) dv = sum_j (t/2)^j / (j + 2)!, 3e-17 left on 0 <= t <= 2."""

_EIN, _TERMS = 4.0, 22
_harmonic = [sum(1.0 / i for i in range(1, n + 1)) for n in range(37)]
_near_ein = polynomial("near_ein", (_harmonic[n] / math.factorial(n) for n in range(36, -1, -1)))
"""exp(x) Ein(x) = sum_n H_n x^n / n!, Ein(x) = int_0^x (1 - exp(-s))/s ds, on 0 <= x <= 4."""


@njit(**INLINE)
def _plane_integrals(t: Any) -> Any:
    """exp(-t/2), E = (1 - exp(-t/2))/t and V = int_0^1 v exp(-t v/2) dv = -4 dE/dt, to full precision."""
    real = type(t)
    e = exp_minus_half(t)
    near_v = e * _near_moment(min(t, real(_SPLIT)))
    near_e = real(0.5) * e + real(0.25) * t * near_v
    most = max(t, real(_SPLIT))
    far_e = (real(1.0) - e) / most
    far_v = (far_e - real(0.5) * e) * real(4.0) / most
    if t < real(_SPLIT):
        return e, near_e, near_v
    return e, far_e, far_v


@njit(**INLINE)
def gaussian_velocity(d: Any, s2: Any, k: Any) -> Any:
    """16 q/r^2 of gaussian."""
    _, part, _ = _plane_integrals(d * k)
    return type(d)(16.0) * k * part


@njit(**INLINE)
def gaussian_gradient(d: Any, s2: Any, k: Any) -> Any:
    """8 g and 8 h, h = -k^2 V."""
    _, part, moment = _plane_integrals(d * k)
    real = type(d)
    return real(16.0) * k * part, real(-8.0) * (k * k) * moment


@njit(**INLINE)
def gaussian_potential(d: Any, s2: Any, k: Any) -> Any:
    """4 pi G = gamma + ln(k/2) - Ein(r^2 k/2), Ein(x) = ln x + gamma + E_1(x), and 4 pi zeta/sigma^2."""
    real = type(d)
    x = real(0.5) * d * k
    e = exp_minus_half(d * k)
    far = max(x, real(_EIN))
    # Stieltjes' continued fraction of exp(x) E_1(x): its error is 4e-17 for x >= 4.
    tail = far + real(2 * _TERMS + 1)
    for n in range(_TERMS, 0, -1):
        tail = far + real(2 * n - 1) - real(n * n) / tail
    ein = np.log(far) + real(np.euler_gamma) + e / tail
    if x < real(_EIN):
        ein = e * _near_ein(x)
    return real(np.euler_gamma) + np.log(real(0.5) * k) - ein, real(2.0) * k * e


@njit(**FAST_LOOP)
def gaussian_derivatives(order: int, s2: float, f: Any, lane: int) -> None:
    """f[k] = (1/r d/dr)^k 4 pi G in units of r: f[k + 1] = -2 k f[k] + 2 (-1/s2)^k exp(-1/(2 s2))."""
    f[0, lane] = 0.0
    square = 1.0 / np.float64(s2)
    e = np.exp(-0.5 * square)
    value, tail = -2.0 * (1.0 - e), 2.0 * e
    for k in range(1, order + 1):
        f[k, lane] = value
        tail *= -square
        value = tail - 2 * k * value


# ---------------------------------------------------------------- rankine, d = r^2 and k = s2


@njit(**INLINE)
def _rankine_height(d: Any, s2: Any) -> Any:
    """v = sqrt(1 - rho^2) of rankine, 0 outside."""
    return np.sqrt(max(s2 - d, type(d)(0.0)) / s2)


@njit(**INLINE)
def rankine_gradient(d: Any, s2: Any, k: Any) -> Any:
    """8 g, g = 2 (1 + v + v^2)/(1 + v)/s2, and 8 h, h = -2 (2 + v)/(1 + v)^2/s2^2; a point's outside."""
    real = type(d)
    v, square = _rankine_height(d, s2), real(1.0) / max(d, s2)
    one = real(1.0) + v
    g = real(16.0) * square * (one + v * v) / one
    return g, real(-16.0) * (square * square) * (one + real(1.0)) / (one * one)


@njit(**INLINE)
def rankine_velocity(d: Any, s2: Any, k: Any) -> Any:
    """16 q/r^2 of rankine."""
    return rankine_gradient(d, s2, k)[0]


@njit(**INLINE)
def rankine_potential(d: Any, s2: Any, k: Any) -> Any:
    """4 pi G and 4 pi zeta/sigma^2."""
    real = type(d)
    v = _rankine_height(d, s2)
    inside = v * (real(2.0) + real(2.0 / 3.0) * (v * v)) - real(2.0) * np.log(real(1.0) + v)
    return inside - np.log(max(d, s2)), real(6.0) / s2 * v
