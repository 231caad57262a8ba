"""Axisymmetric flow without swirl, solved apart from the package: Bessel functions of r times waves in z.

The azimuthal vector potential A obeys (laplacian - 1/r^2) A = -omega. With
omega = sum w_nk J_1(j_n r/b) exp(i k z), j_n the zeros of J_1, A has the coefficients
a_nk = w_nk/(j_n^2/b^2 + k^2), and

    u_r = -dA/dz,    u_z = (1/r) d(r A)/dr = sum a_nk (j_n/b) J_0(j_n r/b) exp(i k z),
    d(omega)/dt = -d(u_r omega)/dr - d(u_z omega)/dz + nu (laplacian - 1/r^2) omega.

Integrals over r are sums over the points b j_i/j_(N+1) with the weights 2 b^2/(j_(N+1) J_2(j_i))^2, of
spectral accuracy where the vorticity ends well inside r = b (Guizar-Sicairos and Gutierrez-Vega, J. Opt. Soc.
Am. A 21, 2004). The wall at b and the images along z act on a ring as dipoles do, by a uniform wind: `speed`
of the first instant against that of free space gives it, and as the impulse stays it stays too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ellipe, ellipk, j0, j1, jn_zeros, jv

Array = NDArray[Any]


def ring_core(r: Array, z: Array, core: float) -> Array:
    """Vorticity exp(-s^2/core^2)/(pi core^2), s the distance from the circle r = 1, z = 0; circulation 1."""
    return np.exp(-((r - 1) ** 2 + z**2) / core**2) / (math.pi * core**2)


def impulse_centre_speed(core: float) -> float:
    """Speed at t = 0 of the impulse centre int omega r^2 z/int omega r^2 of `ring_core`, free space, m/s.

    int omega (r^2 u_z + 2 r z u_r)/int omega r^2, since every part of the vorticity keeps its circulation;
    sums over two lattices in the section, extrapolated by their second order, with the velocity of coaxial
    circles (Lamb, Hydrodynamics, 161). A cell itself, a ring of a square section of side h, moves at Gamma/(4
    pi r) (ln(8 r/g) - 1/2) with g = 0.447049 h, the geometric mean distance within a square: a circle's a
    exp(-1/4) gives Kelvin's ln(8 r/a) - 1/4. Cells of a quarter and an eighth of the core give 6e-6 more.
    """
    coarse, fine = (_lattice_speed(core, core / cells) for cells in (3, 6))
    return fine + (fine - coarse) / 3


def _lattice_speed(core: float, spacing: float) -> float:
    count = math.ceil(4.5 * core / spacing)
    line = spacing * np.arange(-count, count + 1)
    r, z = (x.ravel() for x in np.meshgrid(1 + line, line, indexing="ij"))
    r, z = r[inside := (np.hypot(r - 1, z) < 4.5 * core) & (r > 1e-9)], z[inside]
    strength = ring_core(r, z, core) * spacing**2
    total = 0.0
    for i in range(len(r)):
        dz = z[i] - z
        far, near = (r + r[i]) ** 2 + dz**2, (r - r[i]) ** 2 + dz**2
        far[i], near[i] = 2 * far[i], 1.0  # of no weight: the cell itself comes below
        first, second = ellipk(4 * r * r[i] / far), ellipe(4 * r * r[i] / far)
        scale = strength / (2 * math.pi * np.sqrt(far))
        scale[i] = 0.0
        u_r = (scale * dz / r[i] * ((r**2 + r[i] ** 2 + dz**2) / near * second - first)).sum()
        u_z = (scale * ((r**2 - r[i] ** 2 - dz**2) / near * second + first)).sum()
        u_z += strength[i] / (4 * math.pi * r[i]) * (math.log(8 * r[i] / (0.447049 * spacing)) - 0.5)
        total += strength[i] * (r[i] ** 2 * u_z + 2 * r[i] * z[i] * u_r)
    return float(total / (strength * r**2).sum())


class AxisymmetricFlow:
    """Vorticity on `count` points of r in (0, reach) and `along` points of z in (-length/2, length/2)."""

    def __init__(self, count: int, along: int, reach: float, length: float, viscosity: float) -> None:
        zeros = jn_zeros(1, count + 1)
        zeros, last = zeros[:-1], zeros[-1]
        self.r, self.viscosity = reach * zeros / last, viscosity
        self.z = length * (np.arange(along) / along - 0.5)
        wave = zeros / reach
        weight = 2 * (reach / last / jv(2, zeros)) ** 2
        norm = 2 / (reach * jv(2, zeros)) ** 2
        self.wave, self.values = wave, j1(np.outer(self.r, wave))
        self.slopes = j0(np.outer(self.r, wave)) * wave
        self.to_modes = norm[:, None] * self.values.T * weight
        self.to_slopes = norm[:, None] * self.slopes.T * weight
        self.weight = weight
        self.k = 2 * math.pi * np.fft.rfftfreq(along, length / along)
        self.eigen = wave[:, None] ** 2 + self.k**2
        self.kept = (self.k < 2 / 3 * self.k[-1]) & (wave < 2 / 3 * wave[-1])[:, None]
        self.modes = np.zeros((count, len(self.k)), complex)

    def set(self, omega: Array) -> None:
        """Begin with these values at (r, z), 1/s."""
        self.modes = self.to_modes @ np.fft.rfft(omega, axis=1)

    def at_points(self, table: Array, modes: Array) -> Array:
        """Values at the points of what has these modes."""
        return np.fft.irfft(table @ modes, n=len(self.z), axis=1)

    def omega(self) -> Array:
        """Vorticity at the points, 1/s."""
        return self.at_points(self.values, self.modes)

    def rate(self, modes: Array) -> Array:
        """Rate of change by transport alone."""
        potential = modes / self.eigen
        omega = self.at_points(self.values, modes)
        out = np.fft.rfft(self.at_points(self.values, -1j * self.k * potential) * omega, axis=1)
        up = np.fft.rfft(self.at_points(self.slopes, potential) * omega, axis=1)
        return self.kept * (self.to_slopes @ out - 1j * self.k * (self.to_modes @ up))

    def step(self, dt: float) -> None:
        """RK4, with viscosity exact by an integrating factor."""
        half = np.exp(-0.5 * dt * self.viscosity * self.eigen)
        a = self.rate(self.modes)
        b = self.rate(half * (self.modes + 0.5 * dt * a))
        c = self.rate(half * self.modes + 0.5 * dt * b)
        d = self.rate(half**2 * self.modes + dt * half * c)
        self.modes = half**2 * (self.modes + dt / 6 * a) + dt / 3 * half * (b + c) + dt / 6 * d

    def moments(self) -> tuple[float, float]:
        """Circulation int omega dr dz and mean radius int omega r dr dz / int omega dr dz, m."""
        line = self.omega().sum(axis=1) * (self.z[1] - self.z[0])
        circulation = (self.weight / self.r * line).sum()
        return float(circulation), float((self.weight * line).sum() / circulation)

    def peak(self) -> Array:
        """Place (r, z) of the largest vorticity, by the series between the points, m."""
        omega = self.omega()
        place = np.unravel_index(omega.argmax(), omega.shape)
        twice = np.where(self.k > 0, 2.0, 1.0)

        def less(at: Array) -> float:
            turned = (j1(self.wave * at[0]) @ self.modes) * np.exp(1j * self.k * (at[1] - self.z[0]))
            return -float((twice * turned.real).sum())

        start = (self.r[place[0]], self.z[place[1]])
        return np.asarray(minimize(less, start, method="Nelder-Mead", options={"xatol": 1e-6}).x)

    def impulse(self) -> Array:
        """int omega r^2 dr dz and int omega r^2 z dr dz: their ratio is the height of the impulse centre."""
        values = self.omega() * (self.weight * self.r)[:, None] * (self.z[1] - self.z[0])
        return np.array((values.sum(), (values @ self.z).sum()))

    def speed(self) -> float:
        """Speed of the impulse centre, in the wind of walls and images, m/s."""
        modes, whole = self.modes, self.impulse()[0]
        self.modes = self.rate(modes)
        change = self.impulse()[1]
        self.modes = modes
        return float(change / whole)


def viscous_ring(
    core: float, viscosity: float, blob: float, times: Array, dt: float = 0.0125
) -> tuple[Array, Array, Array]:
    """Way of the impulse centre, mean radius and radius of the peak at `times`, multiples of dt, m.

    The vorticity of `ring_core` is made of Gaussian blobs with the variance blob^2/2 along each axis on a
    core of core^2 - blob^2: what heat would make of that core, exp(-(blob^2/4) (wave number)^2).
    """
    flow = AxisymmetricFlow(160, 256, 5.0, 10.0, viscosity)
    flow.set(ring_core(flow.r[:, None], flow.z, core))
    wind = impulse_centre_speed(core) - flow.speed()
    flow.set(ring_core(flow.r[:, None], flow.z, math.sqrt(core**2 - blob**2)))
    flow.modes *= np.exp(-(blob**2) / 4 * flow.eigen)
    way, radius, peak, tick = [], [], [], 0
    for time in times:
        while tick < round(time / dt):
            flow.step(dt)
            tick += 1
        whole, lifted = flow.impulse()
        way.append(lifted / whole + wind * time)
        radius.append(flow.moments()[1])
        peak.append(flow.peak()[0])
    return np.array(way), np.array(radius), np.array(peak)
