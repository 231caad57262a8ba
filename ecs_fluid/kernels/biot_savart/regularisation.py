"""Regularised vortex blobs: how the strength alpha of a vorton is spread over its core radius sigma.

With rho = r/sigma, a vorton of strength alpha [m^3/s] has the vorticity alpha zeta(rho)/sigma^3, of which the
fraction q(rho) = 4 pi int_0^rho zeta s^2 ds lies inside r, and induces

    velocity          u   = q(rho) / (4 pi r^3)  alpha x r          [m/s]
    vector potential  psi = alpha G(r),  G = int_r^inf q / (4 pi s^2) ds,  -laplace G = zeta/sigma^3

=== ================ ========================================= ===================================
code name            q(rho)                                    zeta(rho)
=== ================ ========================================= ===================================
0   winckelmans      rho^3 (rho^2 + 5/2) / (rho^2 + 1)^(5/2)   15/(8 pi) (rho^2 + 1)^(-7/2)
1   gaussian         erf(rho/sqrt 2) - sqrt(2/pi) rho e        (2 pi)^(-3/2) e,  e = exp(-rho^2/2)
2   rankine          min(rho^3, 1)                             3/(4 pi) inside, 0 outside
3   rosenhead_moore  rho^3 / (rho^2 + 1)^(3/2)                 3/(4 pi) (rho^2 + 1)^(-5/2)
=== ================ ========================================= ===================================

Sources: Winckelmans and Leonard 1993 (high-order algebraic blob); Rosenhead 1930, Moore 1972; ``rankine`` is
the vorton of Gourlay's articles (part 12: solid-body rotation inside the core).

The functions of this file are small pieces for compiled loops. They return values times 4 pi, take the
squared distance as ``d = r^2 + core_shift(code, s2)`` (s2 = sigma^2: the algebraic blobs never need r^2
alone), and ``k = core_constant(code, s2)``, whatever can be computed once per source. sigma must be positive.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from ecs_fluid.kernels.compiled.vectors import DIVIDES, INLINE, double_inverse_root, two_to_the

WINCKELMANS, GAUSSIAN, RANKINE, ROSENHEAD_MOORE = 0, 1, 2, 3

NAMES: tuple[str, ...] = ("winckelmans", "gaussian", "rankine", "rosenhead_moore")
"""Names by code."""

CODES: dict[str, int] = {name: code for code, name in enumerate(NAMES)}
"""Codes by name."""

RING_CONSTANTS: tuple[float, ...] = (
    -0.5,
    -0.5 * (2.0 - np.euler_gamma + math.log(2.0)),
    1.0 / 3.0 - math.log(2.0),
    -1.0,
)
"""C by code: a thin ring of blobs moves with U = Gamma/(4 pi R) (ln(8 R/sigma) + C).

C = -ln 2 - int_0^inf q'(rho) ln(rho) drho for any q."""

_SPLIT = 4.0
_ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)


@njit(**INLINE)
def core_shift(code: int, s2: Any) -> Any:
    """What is added to r^2 before the factors see it: sigma^2 for the algebraic blobs, else 0 [m^2]."""
    if code == GAUSSIAN:
        return type(s2)(0.0)
    if code == RANKINE:
        return type(s2)(0.0)
    return s2


@njit(**INLINE)
def core_constant(code: int, s2: Any) -> Any:
    """What the factors need once per source: 3/8 sigma^2 (winckelmans), 1/sigma^2 (gaussian)."""
    if code == WINCKELMANS:
        return type(s2)(0.375) * s2
    if code == GAUSSIAN:
        return type(s2)(1.0) / s2
    return s2


@njit(**INLINE)
def _exp_minus_half(t: Any) -> Any:
    """exp(-t/2) for t >= 0, 1e-38 where it is smaller than that (nothing here can tell the difference)."""
    real = type(t)
    x = max(real(-0.5) * t, real(-87.0))
    n = np.floor(x * real(1.4426950408889634) + real(0.5))
    # ln 2 in two parts, the first with zeros at its end in both precisions, so that n times it is exact.
    x = (x - n * real(0.693359375)) + n * real(2.1219444005469058e-4)
    y = real(1.0 / 479001600.0)
    y = y * x + real(1.0 / 39916800.0)
    y = y * x + real(1.0 / 3628800.0)
    y = y * x + real(1.0 / 362880.0)
    y = y * x + real(1.0 / 40320.0)
    y = y * x + real(1.0 / 5040.0)
    y = y * x + real(1.0 / 720.0)
    y = y * x + real(1.0 / 120.0)
    y = y * x + real(1.0 / 24.0)
    y = y * x + real(1.0 / 6.0)
    y = y * x + real(1.0 / 2.0)
    y = y * x + real(1.0)
    y = y * x + real(1.0)
    return y * two_to_the(n)


@njit(**INLINE)
def _near_integral(t: Any) -> Any:
    """exp(t/2) int_0^1 v^4 exp(-t v^2/2) dv = sum_k 3 t^k / (2 k + 5)!! on 0 <= t <= 4.

    Chebyshev fit of degree 12, relative error 9e-16; no term is negative, so nothing cancels.
    """
    real = type(t)
    y = real(1.1534501029424536e-15)
    y = y * t + real(5.0955182103416264e-15)
    y = y * t + real(4.4464156793292994e-13)
    y = y * t + real(9.188642911855373e-12)
    y = y * t + real(2.191017344574564e-10)
    y = y * t + real(4.58015448579271e-09)
    y = y * t + real(8.706160727240608e-08)
    y = y * t + real(1.4799988995255142e-06)
    y = y * t + real(2.2200023796383562e-05)
    y = y * t + real(0.0002886002880042911)
    y = y * t + real(0.003174603174722068)
    y = y * t + real(0.028571428571418526)
    y = y * t + real(0.20000000000000032)
    return y


@njit(**INLINE)
def _far_erfcx(w: Any) -> Any:
    """exp(rho^2/2) erfc(rho/sqrt 2) by w = 1/rho <= 1/2; error times exp(-rho^2/2) below 2e-16.

    Weighted least squares of degree 11; beyond rho = 9 it is multiplied by less than 3e-18.
    """
    real = type(w)
    y = real(2.0946062849500766)
    y = y * w + real(-10.843050405558976)
    y = y * w + real(25.767584011249873)
    y = y * w + real(-36.965881463954254)
    y = y * w + real(35.17316477970321)
    y = y * w + real(-22.59064058220918)
    y = y * w + real(9.058119742921576)
    y = y * w + real(-1.3368359730667299)
    y = y * w + real(-0.6129208663801412)
    y = y * w + real(-0.01704502541912256)
    y = y * w + real(0.7988313179842292)
    y = y * w + real(-2.4054904311732184e-05)
    return y


@njit(**INLINE)
def gaussian_integrals(t: Any) -> Any:
    """exp(-t/2) and the integrals over 0 < v < 1 of v^2 and v^4 exp(-t v^2/2), with t = rho^2.

    q/rho^3 is sqrt(2/pi) times the first, and its derivative by rho over rho is -sqrt(2/pi) times the second:
    entire functions of t, while the closed form with erf loses all digits at small rho.
    """
    real = type(t)
    e = _exp_minus_half(t)
    near_four = e * _near_integral(min(t, real(_SPLIT)))
    near_two = (e + t * near_four) * real(1.0 / 3.0)
    w = real(0.5) * double_inverse_root(max(t, real(_SPLIT)))
    half = real(math.sqrt(0.5 * math.pi))
    far_two = (half - e * (t * w + half * _far_erfcx(w))) * (w * w * w)
    far_four = (real(3.0) * far_two - e) * (w * w)
    if t < real(_SPLIT):
        return e, near_two, near_four
    return e, far_two, far_four


def _winckelmans_velocity(d: float, k: float) -> float:
    """8 (d + 4 k) / d^(5/2), for compiled code only."""
    return 8.0 * (d + 4.0 * k) / float(d * d * np.sqrt(d))


@overload(_winckelmans_velocity, jit_options=INLINE)
def _compiled_winckelmans_velocity(d: Any, k: Any) -> Any:
    def divided(d: Any, k: Any) -> Any:
        return (8.0 * d + 32.0 * k) / ((d * d) * np.sqrt(d))

    def refined(d: Any, k: Any) -> Any:
        y = double_inverse_root(d)
        y2 = y * y
        return (y2 * y) * (type(d)(1.0) + k * y2)

    return divided if DIVIDES and d == types.float64 else refined


@njit(**INLINE)
def velocity_factor(code: int, d: Any, s2: Any, k: Any) -> Any:
    """32 pi times the velocity per alpha x r, that is 8 q/r^3 [1/m^3]. (The 8 is that of (2/sqrt d)^3.)"""
    real = type(d)
    if code == GAUSSIAN:
        _, two, _ = gaussian_integrals(d * k)
        return real(8.0 * _ROOT_2_OVER_PI) * two * (k * np.sqrt(k))
    if code == RANKINE:
        y = double_inverse_root(max(d, s2))
        return y * y * y
    if code == WINCKELMANS:
        return _winckelmans_velocity(d, k)
    y = double_inverse_root(d)
    return y * y * y


@njit(**INLINE)
def gradient_factors(code: int, d: Any, s2: Any, k: Any) -> Any:
    """8 g and 8 h, with g = q/r^3 [1/m^3] and h = (dg/dr)/r [1/m^5]. (The 8 is that of (2/sqrt d)^3.)

    4 pi du_i/dx_j = g [alpha x]_ij + h (alpha x r)_i r_j, where [alpha x] is the matrix of the cross product.
    """
    real = type(d)
    if code == GAUSSIAN:
        _, two, four = gaussian_integrals(d * k)
        scale = real(8.0 * _ROOT_2_OVER_PI) * (k * np.sqrt(k))
        return scale * two, -(scale * k) * four
    if code == RANKINE:
        y = double_inverse_root(max(d, s2))
        g = y * y * y
        if d < s2:
            return g, real(0.0)
        return g, real(-0.75) * g * (y * y)
    y = double_inverse_root(d)
    y2 = y * y
    y3 = y2 * y
    if code == WINCKELMANS:
        t = k * y2
        return y3 + y3 * t, (y3 * y2) * (real(-0.75) - real(1.25) * t)
    return y3, real(-0.75) * (y3 * y2)


@njit(**INLINE)
def potential_factors(code: int, d: Any, s2: Any, k: Any) -> Any:
    """4 pi G [1/m] and 4 pi zeta/sigma^3 [1/m^3]."""
    real = type(d)
    if code == GAUSSIAN:
        t = d * k
        e, two, _ = gaussian_integrals(t)
        scale = real(_ROOT_2_OVER_PI) * np.sqrt(k)
        return scale * (e + t * two), scale * k * e
    if code == RANKINE:
        y = real(0.5) * double_inverse_root(max(d, s2))
        if d < s2:
            y3 = y * y * y
            return (real(1.5) * s2 - real(0.5) * d) * y3, real(3.0) * y3
        return y, real(0.0)
    y = real(0.5) * double_inverse_root(d)
    y2 = y * y
    if code == WINCKELMANS:
        w = s2 * y2
        return y * (real(1.0) + real(0.5) * w), real(7.5) * (w * w) * (y2 * y)
    return y, real(3.0) * s2 * y2 * (y2 * y)
