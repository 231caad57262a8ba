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

The same blobs as straight lines across a plane have the codes 4 to 7 (`kernels.plane.blobs`). Compiled code
knows a `Code` by its type, so a world compiles only the loops of its own regularisation
(``regularisation_dispatch``).

Each is one `Regularisation` in `RECORDS`, and its index there is its code. Pair loops, tree, multipole method
and filters take everything from there (``regularisation_dispatch``), so a new regularisation is one more
record. The functions of a record are small pieces for compiled loops. They take the squared distance as ``d =
r^2 + core_shift(s2)`` (s2 = sigma^2, positive: the algebraic blobs never need r^2 alone), and ``k =
core_constant(s2)``, which is computed once per source.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload

from ecs_fluid.kernels.compiled import FAST_LOOP
from ecs_fluid.kernels.compiled.polynomials import exp_minus_half, polynomial
from ecs_fluid.kernels.compiled.wide_vectors import DIVISION_IS_FASTER, INLINE, double_inverse_root
from ecs_fluid.kernels.plane import blobs

Code = tuple[int, ...]
"""The number of a regularisation, its index in ``RECORDS``, as a tuple of that many zeros and one more, so
that each code is a type of its own to compiled code."""


def code_numbered(number: int) -> Code:
    """The code of this number."""
    return (0,) * (number + 1)


class Regularisation(NamedTuple):
    """One regularisation: its functions, all compiled but the last two, and its constants."""

    name: str
    core_shift: Any
    """(s2): added to r^2 before the factors see it, m^2"""
    core_constant: Any
    """(s2): constant of the factors, computed once per source"""
    velocity_factor: Any
    """(d, s2, k): 8 q/r^3, 1/m^3; 32 pi times the velocity per alpha x r (the 8 is that of (2/sqrt d)^3)"""
    gradient_factors: Any
    """(d, s2, k): 8 g and 8 h with g = q/r^3, 1/m^3, and h = (dg/dr)/r, 1/m^5; 4 pi du_i/dx_j =
    g [alpha x]_ij + h (alpha x r)_i r_j, where [alpha x] is the matrix of the cross product"""
    potential_factors: Any
    """(d, s2, k): 4 pi G, 1/m, and 4 pi zeta/sigma^3, 1/m^3"""
    centre: float
    """zeta(0)"""
    variance: float
    """variance of zeta along each axis, 4 pi/3 int zeta rho^4 drho, in sigma^2; infinite if it diverges"""
    reach: float
    """distance, in core radii, at which sums over the vorticity of near blobs end"""
    ring_constant: float
    """C in the speed of a thin ring, U = Gamma/(4 pi R) (ln(8 R/sigma) + C): -ln 2 - int q' ln(rho) drho"""
    gaussians: tuple[tuple[float, float], ...]
    """shares, and radii in sigma, of the Gaussian blobs that represent it on a grid, narrow ones first: by
    least squares of a blob's velocity with the weight r^1.5 dr, radii up to 1.6, and shares that add up to
    one"""
    softened: bool
    """whether 4 pi G is a series in 1/sqrt(r^2 + s2) at any distance; otherwise it is 1/r beyond a
    clearance"""
    series: tuple[float, ...]
    """a_1, a_2, ... of that series, 4 pi G = sum_j a_j s2^j (1/r d/dr)^j 1/sqrt(r^2 + s2), where a_0 = 1"""
    derivatives: Any
    """(order, s2, f, lane): fills f[k, lane] with (1/r d/dr)^k 4 pi G in units of r, where s2 is in these
    units too; None takes them from the series"""
    far_enough: Any
    """(distance, r2, least, mean, largest, spread, clearance, mixed): whether an expansion may stand for
    vortons with s2 from least to largest, ``distance`` the least between points of both nodes and r2 the
    square of that of their centres; ``spread`` is the largest relative change of velocity by giving all
    the mean core"""
    clearance: Callable[[int], float]
    """(order): least distance for an expansion, in the largest core radius"""
    mixed_clearance: Callable[[float], float]
    """(digits of the tolerance): the same where core radii differ"""
    dimension: int = 3
    """dimension: 3, or 2 for a straight line of such blobs, see `kernels.plane.blobs`"""
    transform: Callable[[Any], Any] | None = None
    """(k sigma, an array): Fourier transform of zeta, 1 at 0 (of a line of blobs for k across it)"""


_SPLIT = 4.0
_ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)


@njit(**INLINE)
def _no_shift(s2: Any) -> Any:
    return type(s2)(0.0)


@njit(**INLINE)
def _itself(s2: Any) -> Any:
    return s2


def _none(number: float) -> float:
    return 0.0


def _rosenhead_moore_transform(k: Any) -> Any:
    """Transform of (rho^2 + 1)^(-5/2), up to a factor: k K_1(k), with a Bessel function."""
    from scipy.special import k1

    safe = np.maximum(k, 1e-6)
    return safe * k1(safe)


def _winckelmans_transform(k: Any) -> Any:
    """Transform of (rho^2 + 1)^(-7/2): k^2 K_2(k)/2 = k^2 K_0(k)/2 + k K_1(k), in a tenth of K_2's time."""
    from scipy.special import k0

    safe = np.maximum(k, 1e-6)
    return safe**2 * k0(safe) / 2 + _rosenhead_moore_transform(safe)


def _gaussian_transform(k: Any) -> Any:
    return np.exp(-0.5 * k * k)


def _rankine_transform(k: Any) -> Any:
    # The closed form loses digits at small k; three terms of its series are exact to 1e-12 there.
    safe = np.maximum(k, 0.05)
    return np.where(
        k < 0.05, 1 - 0.1 * k**2 * (1 - k**2 / 28), 3 * (np.sin(safe) - safe * np.cos(safe)) / safe**3
    )


@njit(**INLINE)
def _beyond_clearance(
    distance: float, r2: float, least: float, mean: float, largest: float, spread: float, clearance: float,
    mixed: float,
) -> bool:  # fmt: skip
    needed = clearance if largest - least <= spread * largest else mixed
    return bool(distance >= needed * np.sqrt(largest))


# ---------------------------------------------------------------- winckelmans


@njit(**INLINE)
def _winckelmans_constant(s2: Any) -> Any:
    return type(s2)(0.375) * s2


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

    return divided if DIVISION_IS_FASTER and d == types.float64 else refined


@njit(**INLINE)
def _winckelmans_factor(d: Any, s2: Any, k: Any) -> Any:
    return _winckelmans_velocity(d, k)


@njit(**INLINE)
def _winckelmans_gradient(d: Any, s2: Any, k: Any) -> Any:
    real = type(d)
    y = double_inverse_root(d)
    y2 = y * y
    y3 = y2 * y
    t = k * y2
    return y3 + y3 * t, (y3 * y2) * (real(-0.75) - real(1.25) * t)


@njit(**INLINE)
def _winckelmans_potential(d: Any, s2: Any, k: Any) -> Any:
    real = type(d)
    y = real(0.5) * double_inverse_root(d)
    y2 = y * y
    w = s2 * y2
    return y * (real(1.0) + real(0.5) * w), real(7.5) * (w * w) * (y2 * y)


@njit(**INLINE)
def _winckelmans_far(
    distance: float, r2: float, least: float, mean: float, largest: float, spread: float, clearance: float,
    mixed: float,
) -> bool:  # fmt: skip
    # Change of 1 - q with sigma^2, from the leading term 15/8 rho^-4 of the tail, doubled because errors of
    # strengths of both signs do not average out.
    return bool(3.75 * largest * (largest - least) <= spread * (r2 + mean) ** 2)


WINCKELMANS = Regularisation(
    name="winckelmans",
    core_shift=_itself,
    core_constant=_winckelmans_constant,
    velocity_factor=_winckelmans_factor,
    gradient_factors=_winckelmans_gradient,
    potential_factors=_winckelmans_potential,
    centre=15 / (8 * math.pi),
    variance=0.5,
    reach=5.0,  # 3e-3 of the strength lies beyond
    ring_constant=-0.5,
    gaussians=((0.27206566, 0.3496552), (0.5676777, 0.58735997), (0.16025664, 1.18698602)),  # 0.2 % are left
    softened=True,
    series=(-0.5,),
    derivatives=None,
    far_enough=_winckelmans_far,
    clearance=_none,
    mixed_clearance=_none,
    transform=_winckelmans_transform,
)

# ---------------------------------------------------------------- gaussian


@njit(**INLINE)
def _inverse(s2: Any) -> Any:
    return type(s2)(1.0) / s2


_near_integral = polynomial("near_integral", (
    1.1534501029424536e-15, 5.0955182103416264e-15, 4.4464156793292994e-13, 9.188642911855373e-12,
    2.191017344574564e-10, 4.58015448579271e-09, 8.706160727240608e-08, 1.4799988995255142e-06,
    2.2200023796383562e-05, 0.0002886002880042911, 0.003174603174722068, 0.028571428571418526,
    0.20000000000000032,
))  # fmt: skip
"""exp(t/2) int_0^1 v^4 exp(-t v^2/2) dv = sum_k 3 t^k / (2 k + 5)!! on 0 <= t <= 4. Chebyshev fit of degree
12, relative error 9e-16; no term is negative, so nothing cancels."""

_far_erfcx = polynomial("far_erfcx", (
    2.0946062849500766, -10.843050405558976, 25.767584011249873, -36.965881463954254, 35.17316477970321,
    -22.59064058220918, 9.058119742921576, -1.3368359730667299, -0.6129208663801412, -0.01704502541912256,
    0.7988313179842292, -2.4054904311732184e-05,
))  # fmt: skip
"""exp(rho^2/2) erfc(rho/sqrt 2) by w = 1/rho <= 1/2; error times exp(-rho^2/2) below 2e-16. Weighted least
squares of degree 11; beyond rho = 9 it is multiplied by less than 3e-18."""


@njit(**INLINE)
def gaussian_integrals(t: Any) -> Any:
    """exp(-t/2) and the integrals over 0 < v < 1 of v^2 and v^4 exp(-t v^2/2), with t = rho^2.

    q/rho^3 is sqrt(2/pi) times the first, and its derivative by rho over rho is -sqrt(2/pi) times the second:
    entire functions of t, while the closed form with erf loses all digits at small rho.
    """
    real = type(t)
    e = exp_minus_half(t)
    near_four = e * _near_integral(min(t, real(_SPLIT)))
    near_two = (e + t * near_four) * real(1.0 / 3.0)
    w = real(0.5) * double_inverse_root(max(t, real(_SPLIT)))
    half = real(math.sqrt(0.5 * math.pi))
    far_two = (half - e * (t * w + half * _far_erfcx(w))) * (w * w * w)
    far_four = (real(3.0) * far_two - e) * (w * w)
    if t < real(_SPLIT):
        return e, near_two, near_four
    return e, far_two, far_four


@njit(**INLINE)
def _gaussian_factor(d: Any, s2: Any, k: Any) -> Any:
    _, two, _ = gaussian_integrals(d * k)
    return type(d)(8.0 * _ROOT_2_OVER_PI) * two * (k * np.sqrt(k))


@njit(**INLINE)
def _gaussian_gradient(d: Any, s2: Any, k: Any) -> Any:
    _, two, four = gaussian_integrals(d * k)
    scale = type(d)(8.0 * _ROOT_2_OVER_PI) * (k * np.sqrt(k))
    return scale * two, -(scale * k) * four


@njit(**INLINE)
def _gaussian_potential(d: Any, s2: Any, k: Any) -> Any:
    t = d * k
    e, two, _ = gaussian_integrals(t)
    scale = type(d)(_ROOT_2_OVER_PI) * np.sqrt(k)
    return scale * (e + t * two), scale * k * e


@njit(**FAST_LOOP)
def _gaussian_derivatives(order: int, s2: float, f: Any, lane: int) -> None:
    """f[k, lane] = (1/r d/dr)^k erf(r/sqrt(2 s2))/r in units of r."""
    v, value = 1.0 / np.sqrt(np.float64(s2)), 1.0
    if v < 12.0:
        value = math.erf(v * math.sqrt(0.5))
        tail = _ROOT_2_OVER_PI * v * np.exp(-0.5 * v * v)
        for k in range(order + 1):
            f[k, lane] = value
            # Differences lose digits at small v, but not digits that the singular kernel needs.
            value = tail - (2 * k + 1) * value
            tail *= -v * v
    else:
        for k in range(order + 1):
            f[k, lane] = value
            value *= -(2 * k + 1)


def _gaussian_clearance(order: int) -> float:
    """Derivatives of order p of exp(-rho^2/2) are large up to rho = sqrt(2 p), the turning point of a Hermite
    function. With sqrt(p) between the points themselves (measured, dipoles in a cube) order 16 has an error
    of 8e-5 instead of 8e-4 at 2.3, and at the worst point 14 instead of 20 times it, for a third more
    pairs."""
    return 1.1 * math.sqrt(order)


def _gaussian_mixed(digits: float) -> float:
    # 1 - q = sqrt(2/pi) rho exp(-rho^2/2) to leading order.
    return math.sqrt(2.0 * math.log(10.0) * digits) + 1.0


GAUSSIAN = Regularisation(
    name="gaussian",
    core_shift=_no_shift,
    core_constant=_inverse,
    velocity_factor=_gaussian_factor,
    gradient_factors=_gaussian_gradient,
    potential_factors=_gaussian_potential,
    centre=(2 * math.pi) ** -1.5,
    variance=1.0,
    reach=5.0,  # 1.5e-5
    ring_constant=-0.5 * (2.0 - np.euler_gamma + math.log(2.0)),
    gaussians=((1.0, 1.0),),
    softened=False,
    series=(),
    derivatives=_gaussian_derivatives,
    far_enough=_beyond_clearance,
    clearance=_gaussian_clearance,
    mixed_clearance=_gaussian_mixed,
    transform=_gaussian_transform,
)

# ---------------------------------------------------------------- rankine


@njit(**INLINE)
def _rankine_factor(d: Any, s2: Any, k: Any) -> Any:
    y = double_inverse_root(max(d, s2))
    return y * y * y


@njit(**INLINE)
def _rankine_gradient(d: Any, s2: Any, k: Any) -> Any:
    real = type(d)
    y = double_inverse_root(max(d, s2))
    g = y * y * y
    if d < s2:
        return g, real(0.0)
    return g, real(-0.75) * g * (y * y)


@njit(**INLINE)
def _rankine_potential(d: Any, s2: Any, k: Any) -> Any:
    real = type(d)
    y = real(0.5) * double_inverse_root(max(d, s2))
    if d < s2:
        y3 = y * y * y
        return (real(1.5) * s2 - real(0.5) * d) * y3, real(3.0) * y3
    return y, real(0.0)


def _one(number: float) -> float:
    # The potential has a kink at one core radius.
    return 1.0


_RANKINE_RING = 1.0 / 3.0 - math.log(2.0)
RANKINE = Regularisation(
    name="rankine",
    core_shift=_no_shift,
    core_constant=_itself,
    velocity_factor=_rankine_factor,
    gradient_factors=_rankine_gradient,
    potential_factors=_rankine_potential,
    centre=3 / (4 * math.pi),
    variance=0.2,
    reach=1.0,
    ring_constant=_RANKINE_RING,
    # No mixture of Gaussians has its sharp edge; this one Gaussian gives thin rings the same speed.
    gaussians=((1.0, math.exp(GAUSSIAN.ring_constant - _RANKINE_RING)),),
    softened=False,
    series=(),
    derivatives=None,
    far_enough=_beyond_clearance,
    clearance=_one,
    mixed_clearance=_one,
    transform=_rankine_transform,
)

# ---------------------------------------------------------------- rosenhead_moore


@njit(**INLINE)
def _rosenhead_moore_factor(d: Any, s2: Any, k: Any) -> Any:
    y = double_inverse_root(d)
    return y * y * y


@njit(**INLINE)
def _rosenhead_moore_gradient(d: Any, s2: Any, k: Any) -> Any:
    y = double_inverse_root(d)
    y2 = y * y
    y3 = y2 * y
    return y3, type(d)(-0.75) * (y3 * y2)


@njit(**INLINE)
def _rosenhead_moore_potential(d: Any, s2: Any, k: Any) -> Any:
    real = type(d)
    y = real(0.5) * double_inverse_root(d)
    y2 = y * y
    return y, real(3.0) * s2 * y2 * (y2 * y)


@njit(**INLINE)
def _rosenhead_moore_far(
    distance: float, r2: float, least: float, mean: float, largest: float, spread: float, clearance: float,
    mixed: float,
) -> bool:  # fmt: skip
    # As above, from the term 3/2 rho^-2.
    return bool(3.0 * (largest - least) <= spread * (r2 + mean))


ROSENHEAD_MOORE = Regularisation(
    name="rosenhead_moore",
    core_shift=_itself,
    core_constant=_itself,
    velocity_factor=_rosenhead_moore_factor,
    gradient_factors=_rosenhead_moore_gradient,
    potential_factors=_rosenhead_moore_potential,
    centre=3 / (4 * math.pi),
    variance=math.inf,
    reach=10.0,  # 1.5e-2
    ring_constant=-1.0,
    # Its vorticity falls too slowly for Gaussians: an error of 3 % of the velocity is left.
    gaussians=((0.50860546, 0.55070721), (0.49139454, 1.50660927)),
    softened=True,
    series=(),
    derivatives=None,
    far_enough=_rosenhead_moore_far,
    clearance=_none,
    mixed_clearance=_none,
    transform=_rosenhead_moore_transform,
)

# ---------------------------------------------------------------- in a plane


# Both criteria of expansions serve for lines too: their 1 - q have the tails (1 + rho^2)^-2 and (1 +
# rho^2)^-1.
def _as_lines(
    record: Regularisation, velocity: Any, gradient: Any, potential: Any, derivatives: Any, centre: float,
    **constants: Any,
) -> Regularisation:  # fmt: skip
    """The blobs of a record as straight lines across a plane."""
    return record._replace(
        name=f"{record.name}_plane",
        velocity_factor=velocity,
        gradient_factors=gradient,
        potential_factors=potential,
        derivatives=derivatives,
        centre=centre / math.pi,
        dimension=2,
        ring_constant=math.nan,
        series=(),
        **constants,
    )


PLANE = (
    _as_lines(
        WINCKELMANS, blobs.winckelmans_velocity, blobs.winckelmans_gradient, blobs.winckelmans_potential,
        blobs.winckelmans_derivatives, 2, core_constant=_itself,
    ),
    _as_lines(
        GAUSSIAN, blobs.gaussian_velocity, blobs.gaussian_gradient, blobs.gaussian_potential,
        blobs.gaussian_derivatives, 0.5,
    ),
    _as_lines(
        RANKINE, blobs.rankine_velocity, blobs.rankine_gradient, blobs.rankine_potential,
        blobs.point_derivatives, 1.5,
    ),
    _as_lines(
        ROSENHEAD_MOORE, blobs.rosenhead_moore_velocity, blobs.rosenhead_moore_gradient,
        blobs.rosenhead_moore_potential, blobs.point_derivatives, 1,
    ),
)  # fmt: skip
"""The same four as straight lines; their variance, reach and mixtures of Gaussians are those of the blobs."""

SPACE = (WINCKELMANS, GAUSSIAN, RANKINE, ROSENHEAD_MOORE)
"""Blobs in space."""

SHIPPED: tuple[Regularisation, ...] = (*SPACE, *PLANE)
"""All regularisations that come with the package."""

RECORDS = SHIPPED
"""All regularisations, by code."""

NAMES: tuple[str, ...] = tuple(record.name for record in SPACE)
"""Names by code, of those in space."""

CODES: dict[str, Code] = {name: code_numbered(number) for number, name in enumerate(NAMES)}
"""Codes by name, of those in space."""

IN_A_PLANE: dict[str, Code] = {name: code_numbered(len(SPACE) + number) for number, name in enumerate(NAMES)}
"""Codes in a plane by the names of the blobs."""

KNOWN = "known are " + ", ".join(f"{code} ({blob.name})" for code, blob in enumerate(RECORDS))


def code_of(name: str, dimension: int = 3) -> Code:
    """The code of that regularisation in space or in a plane; KeyError where it has no form there."""
    return (IN_A_PLANE if dimension == 2 else CODES)[name]


def record(code: Code) -> Regularisation:
    """The regularisation of this code."""
    number = len(code) - 1 if isinstance(code, tuple) else code
    if number not in range(len(RECORDS)) or code != code_numbered(number):
        raise ValueError(f"regularisation: no blob has the code {number}; {KNOWN}")
    return RECORDS[number]
