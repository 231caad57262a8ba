"""Incompressible flow in a cube of side 2 pi that repeats, by Fourier series: an oracle for vortex methods.

du^/dt = P(k) [u x omega]^ - nu k^2 u^, P the projection on fields free of divergence; products at grid
points, waves above a third of the points left out (Orszag), RK4 with the viscous part integrated exactly.
Source: Canuto, Hussaini, Quarteroni and Zang, Spectral Methods (2007), chapter 3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ecs_fluid.worlds.formula import evaluate_along

Array = NDArray[Any]


def taylor_green(x: Array) -> tuple[Array, Array]:
    """Velocity m/s and vorticity 1/s, (..., 3), of Taylor and Green's vortices at points (..., 3) m."""
    sx, sy, sz = (np.sin(x[..., a]) for a in range(3))
    cx, cy, cz = (np.cos(x[..., a]) for a in range(3))
    u = np.stack([sx * cy * cz, -cx * sy * cz, np.zeros_like(sx)], axis=-1)
    return u, np.stack([-cx * sy * sz, -sx * cy * sz, 2 * sx * sy * cz], axis=-1)


def writhe(x: str, y: str, z: str, count: int = 400) -> float:
    """Writhe of a closed curve of formulas in t, 0 to 2 pi: Gauss' integral over two staggered sets.

    Its integrand is smooth where the sets meet, so the midpoint rule converges; for a trefoil -3.51825 with
    400 and 800 points.
    """
    t = np.pi / count * np.arange(2 * count)
    curve = np.stack([evaluate_along(text, t, "curve") for text in (x, y, z)])
    slope = fft.irfft(1j * np.arange(count + 1) * fft.rfft(curve), 2 * count)
    (a, da), (b, db) = ((curve[:, i::2].T, slope[:, i::2].T) for i in (0, 1))
    apart = a[:, None] - b
    turns = (apart * np.cross(da[:, None], db)).sum(axis=2) / np.linalg.norm(apart, axis=2) ** 3
    return float(turns.sum() * np.pi / count**2)


def vorticity_of_blobs(x: Array, alpha: Array, sigma: float, n: int) -> Array:
    """Vorticity (n, n, n, 3), 1/s, of Gaussian blobs in a cube of side 2 pi, within 6 sigma of each."""
    edge = 2 * np.pi / n
    near = np.arange(-math.ceil(6 * sigma / edge), math.ceil(6 * sigma / edge) + 1)
    omega = np.zeros((3, n**3))
    for part in range(0, len(x), 200):
        at = x[part : part + 200, :, None] + np.pi
        cells = np.round(at / edge).astype(int) + near
        g = np.exp(-((cells * edge - at) ** 2) / (2 * sigma**2)) / (math.sqrt(2 * np.pi) * sigma)
        share = np.einsum("pi,pj,pk->pijk", *g.swapaxes(0, 1))
        i, j, k = np.moveaxis(cells % n, 1, 0)
        rows = ((i[:, :, None, None] * n + j[:, None, :, None]) * n + k[:, None, None]).ravel()
        for axis in range(3):
            load = share * alpha[part : part + 200, axis, None, None, None]
            omega[axis] += np.bincount(rows, load.ravel(), n**3)
    return np.moveaxis(omega.reshape(3, n, n, n), 0, -1)


def antiparallel_tubes(
    x: Array,
    circulation: float = 6.0,
    core: float = 0.4,
    apart: float = 1.6,
    wave: float = 0.5,
    plane: float = np.pi / 3,
) -> Array:
    """Vorticity (..., 3) 1/s at points (..., 3) m of tubes along z and -z, bent towards each other at z = 0.

    The centre of the left one is at x = -apart/2 + A cos z cos p, y = A cos z sin p, A the `wave` in m and p
    the `plane` in rad; the right one is its image in x = 0. Over sections z = const omega_z is
    circulation/(pi core^2) exp(-s^2/core^2), and omega goes along the bent lines, so its divergence is 0.
    """
    omega, cos, sin = np.zeros_like(x), wave * np.cos(x[..., 2]), wave * np.sin(x[..., 2])
    for side in (-1, 1):
        slope = np.stack([side * sin * np.cos(plane), -sin * np.sin(plane), np.ones_like(sin)], axis=-1)
        dx = x[..., 0] - side * (apart / 2 - cos * np.cos(plane))
        dy = x[..., 1] - cos * np.sin(plane)
        for shift in np.ndindex(3, 3):
            s2 = (dx + 2 * np.pi * (shift[0] - 1)) ** 2 + (dy + 2 * np.pi * (shift[1] - 1)) ** 2
            omega -= side * circulation / (np.pi * core**2) * np.exp(-s2 / core**2)[..., None] * slope
    return omega


class PeriodicFlow:
    """A flow with `n` points along each axis at -pi + 2 pi i/n, from its velocity (n, n, n, 3) m/s."""

    def __init__(self, u: Array, viscosity: float) -> None:
        self.n, self.viscosity, self.time = len(u), viscosity, 0.0
        k, half = fft.fftfreq(self.n, 1 / self.n), fft.rfftfreq(self.n, 1 / self.n)
        self.k = np.stack(np.meshgrid(k, k, half, indexing="ij"))
        self.k2 = (self.k**2).sum(axis=0)
        self.kept = (np.abs(self.k) < self.n / 3).all(axis=0)
        self.u = self._projected(np.stack([fft.rfftn(u[..., c]) for c in range(3)]))

    @classmethod
    def of_vorticity(cls, omega: Array, viscosity: float) -> PeriodicFlow:
        """The flow of this vorticity (n, n, n, 3) 1/s and no mean: u^ = i k x omega^/k^2."""
        flow = cls(omega, viscosity)
        flow.u = flow._projected(1j * np.cross(flow.k, flow.u, axis=0) / np.maximum(flow.k2, 1.0))
        return flow

    def velocity(self) -> Array:
        """u (3, n, n, n) m/s at the points."""
        return self._physical(self.u)

    def _projected(self, u: Array) -> Array:
        along = (self.k * u).sum(axis=0) / np.maximum(self.k2, 1.0)
        return np.asarray((u - self.k * along) * self.kept)

    def _physical(self, waves: Array) -> Array:
        return np.stack([fft.irfftn(part, (self.n,) * 3, workers=2) for part in waves])

    def vorticity(self) -> Array:
        """omega^ (3, n, n, n/2 + 1)."""
        return np.asarray(1j * np.cross(self.k, self.u, axis=0))

    def _rate(self, u: Array) -> Array:
        omega = 1j * np.cross(self.k, u, axis=0)
        force = np.cross(self._physical(u), self._physical(omega), axis=0)
        return self._projected(np.stack([fft.rfftn(part, workers=2) for part in force]))

    def step(self, dt: float) -> None:
        """One step of RK4."""
        half = np.exp(-self.viscosity * self.k2 * dt / 2)
        u = self.u
        a = self._rate(u)
        b = self._rate(half * (u + dt / 2 * a))
        c = self._rate(half * u + dt / 2 * b)
        d = self._rate(half**2 * u + dt * half * c)
        self.u = half**2 * u + dt / 6 * (half**2 * a + 2 * half * (b + c) + d)
        self.time += dt

    def _mean_square(self, waves: Array) -> float:
        weight = np.where((self.k[2] == 0) | (self.k[2] == self.n / 2), 1.0, 2.0)
        return float((weight * np.abs(waves) ** 2).sum() / self.n**6)

    @property
    def energy(self) -> float:
        """Mean of |u|^2/2, m^2/s^2."""
        return 0.5 * self._mean_square(self.u)

    @property
    def helicity(self) -> float:
        """Mean of u . omega, m/s^2."""
        return float((self._physical(self.u) * self._physical(self.vorticity())).sum() / self.n**3)

    @property
    def enstrophy(self) -> float:
        """Mean of |omega|^2/2, 1/s^2; the dissipation is 2 nu of it."""
        return 0.5 * self._mean_square(self.vorticity())
