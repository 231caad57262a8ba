"""Reference formulas of the validation tests, written from their definitions with numpy and scipy alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad, solve_ivp
from scipy.special import ellipe, ellipk, erf

Array = NDArray[Any]

ENCLOSED: dict[str, Callable[[Any], Any]] = {
    "winckelmans": lambda rho: rho**3 * (rho**2 + 2.5) / (rho**2 + 1) ** 2.5,
    "gaussian": lambda rho: erf(rho / math.sqrt(2)) - math.sqrt(2 / math.pi) * rho * np.exp(-(rho**2) / 2),
    "rankine": lambda rho: np.minimum(rho**3, 1.0),
    "rosenhead_moore": lambda rho: rho**3 / (rho**2 + 1) ** 1.5,
}
"""q(rho): part of a blob's strength inside rho core radii."""

RING_CONSTANT = {
    "winckelmans": -1 / 2,
    "gaussian": -(2 - np.euler_gamma + math.log(2)) / 2,
    "rankine": 1 / 3 - math.log(2),
    "rosenhead_moore": -1.0,
}
"""C of a thin ring of blobs, U = Gamma/(4 pi R) (ln(8 R/sigma) + C); `ring_constant` derives it again."""


def ring_constant(kernel: str) -> float:
    """C = -ln 2 - int q'(rho) ln rho drho, with the integral taken by parts.

    From U = Gamma/(16 pi R) int_0^2pi q(2 R sin(t/2) / sigma) / sin(t/2) dt for sigma << R: with
    s = 2 R sin(t/2) and both ends alike, U = Gamma/(4 pi R) int_0^2R q(s/sigma) / (s sqrt(1 - s^2/4R^2)) ds.
    A cut at s = m, sigma << m << R, gives ln(4 R/m) outside and ln(m/sigma) - int q' ln rho inside.
    """
    q = ENCLOSED[kernel]
    inside = quad(lambda t: float(q(t)) / t, 1e-12, 1.0, epsabs=1e-13)[0]
    outside = quad(lambda t: (float(q(t)) - 1.0) / t, 1.0, np.inf, epsabs=1e-13)[0]
    # int_0^inf q' ln rho = -(int_0^1 q/rho + int_1^inf (q - 1)/rho)
    return -math.log(2) + inside + outside


def ring_speed(kernel: str, sigma: float, radius: float = 1.0, circulation: float = 1.0) -> float:
    """Speed of a closed circular line of blobs, by quadrature over the ring, m/s.

    The axial part of dl cross r is R^2 (1 - cos t) dt = 2 R^2 sin^2(t/2) dt at the distance d = 2 R sin(t/2),
    so U = Gamma/(4 pi) int q(d/sigma) 2 R^2 sin^2(t/2) / d^3 dt = Gamma/(16 pi R) int q(d/sigma)/sin(t/2) dt.
    """
    q = ENCLOSED[kernel]

    def integrand(t: float) -> float:
        s = math.sin(t / 2)
        return float(q(2 * radius * s / sigma)) / s

    edge = 2 * math.asin(min(sigma / (2 * radius), 1.0))
    parts = [(1e-12, edge), (edge, 10 * edge), (10 * edge, math.pi)]
    total = sum(quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12, limit=400)[0] for a, b in parts)
    return circulation / (16 * math.pi * radius) * 2 * total


def filament_velocity(radius: float, height: float, r: float, z: float, circulation: float) -> Array:
    """(u_r, u_z) at (r, z) of a circular line vortex of that radius and height (elliptic integrals).

    Source: Lamb, Hydrodynamics, section 161; from psi = Gamma sqrt(R r)/(2 pi) ((2/k - k) K - 2 E/k).
    """
    dz = z - height
    far, near = (radius + r) ** 2 + dz**2, (radius - r) ** 2 + dz**2
    m = 4 * radius * r / far
    first, second = ellipk(m), ellipe(m)
    scale = circulation / (2 * math.pi * math.sqrt(far))
    u_r = scale * dz / r * ((radius**2 + r**2 + dz**2) / near * second - first)
    u_z = scale * ((radius**2 - r**2 - dz**2) / near * second + first)
    return np.array((u_r, u_z))


def thin_rings(
    radii: Array, heights: Array, sigma: float, constant: float, time: float
) -> tuple[Array, Array]:
    """Radii and heights at `time` of coaxial thin rings of circulation 1 and fixed core radius.

    dR_i/dt and dZ_i/dt are the line-vortex velocities of the others, plus (ln(8 R_i/sigma) + C)/(4 pi R_i)
    along the axis (Borisov, Kilin and Mamaev, Regul. Chaotic Dyn. 18, 2013), by DOP853 at 1e-12.
    """
    count = len(radii)

    def rate(_: float, state: Array) -> Array:
        r, z = state[:count], state[count:]
        result = np.zeros_like(state)
        for i in range(count):
            result[count + i] = (math.log(8 * r[i] / sigma) + constant) / (4 * math.pi * r[i])
            for j in range(count):
                if j != i:
                    u = filament_velocity(r[j], z[j], r[i], z[i], 1.0)
                    result[i] += u[0]
                    result[count + i] += u[1]
        return result

    start = np.concatenate([radii, heights]).astype(np.float64)
    found = solve_ivp(rate, (0.0, time), start, method="DOP853", rtol=1e-12, atol=1e-13)
    return found.y[:count, -1], found.y[count:, -1]


def hill_velocity(s: Array, z: Array) -> tuple[Array, Array]:
    """(u_s, u_z) inside Hill's vortex of radius 1 and speed 1, in the frame of the fluid at rest far away."""
    return 1.5 * s * z, 1.0 + 1.5 * (1 - 2 * s**2 - z**2)


def circling_jerk(strength: float, distance: float, sigma: float) -> float:
    """|d^3 x/dt^3| of two Winckelmans blobs of equal parallel strength, normal to their distance d.

    Each moves at u = q(d/sigma) alpha/(4 pi d^2) on a circle of radius d/2, so |jerk| = u (u/(d/2))^2.
    """
    u = float(ENCLOSED["winckelmans"](distance / sigma)) * strength / (4 * math.pi * distance**2)
    return 4 * u**3 / distance**2
