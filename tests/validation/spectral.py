"""Incompressible flow in a cube of side 2 pi that repeats, by Fourier series: an oracle for vortex methods.

du^/dt = P(k) [u x omega]^ - nu k^2 u^, P the projection on fields free of divergence; products at grid
points, waves above a third of the points left out (Orszag), RK4 with the viscous part integrated exactly.
Source: Canuto, Hussaini, Quarteroni and Zang, Spectral Methods (2007), chapter 3. Also a small wave across
a plane flow, by the same equation made linear.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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


def stepped(rate: Callable[[Array], Array], waves: Array, damping: Array, dt: float) -> Array:
    """Waves after a step dt s of RK4 by d waves/dt = rate - damping waves, the last part exactly."""
    half = np.exp(-damping * dt / 2)
    a = rate(waves)
    b = rate(half * (waves + dt / 2 * a))
    c = rate(half * waves + dt / 2 * b)
    d = rate(half**2 * waves + dt * half * c)
    return np.asarray(half**2 * waves + dt / 6 * (half**2 * a + 2 * half * (b + c) + d))


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
        self.u = stepped(self._rate, self.u, self.viscosity * self.k2, dt)
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


class PlaneFlowWithWave:
    """A plane flow (U, V, 0) of x, y with a small wave u(x, y) exp(i m z) across it, `n` points a side.

    Of the equation above what is linear in u:

        dW/dt = -U . grad W + nu lap W,  du^/dt = P [u x W e_z + (U, V, 0) x omega]^ - nu (k^2 + m^2) u^,

    W = dV/dx - dU/dy and omega = curl u, m the `wave` number in 1/m, not necessarily whole. Points as in
    `PeriodicFlow`. With `base_viscosity` 0 and `viscosity` above it, a wave decays on a flow that does not.
    """

    def __init__(self, vorticity: Array, omega: Array, wave: float, viscosity: float) -> None:
        """From W (n, n) 1/s and the wave's vorticity (3, n, n) 1/s, complex, free of divergence."""
        self.n, self.viscosity, self.base_viscosity, self.time = len(vorticity), viscosity, viscosity, 0.0
        k = fft.fftfreq(self.n, 1 / self.n)
        kx, ky = np.meshgrid(k, k, indexing="ij")
        self.k = np.stack([kx, ky, np.full_like(kx, wave)])
        self.k2 = kx**2 + ky**2
        self.kept = (np.abs(self.k[:2]) < self.n / 3).all(axis=0)
        u = 1j * np.cross(self.k, fft.fft2(omega), axis=0) / np.maximum(self._all, 1e-300)
        self.waves = np.stack([fft.fft2(vorticity), *u]) * self.kept

    @property
    def _all(self) -> Array:
        """Squares of the wave numbers in space, (n, n) 1/m^2."""
        return np.asarray(self.k2 + self.k[2] ** 2)

    def _rate(self, waves: Array) -> Array:
        w, u = waves[0], waves[1:]
        psi = w / np.maximum(self.k2, 1.0)
        kx, ky, _ = self.k
        base = np.stack([1j * ky * psi, -1j * kx * psi, w, 1j * kx * w, 1j * ky * w])
        flow_x, flow_y, w, w_x, w_y = fft.ifft2(base).real
        omega, u = fft.ifft2(1j * np.cross(self.k, u, axis=0)), fft.ifft2(u)
        force = [u[1] * w + flow_y * omega[2], -u[0] * w - flow_x * omega[2]]
        force = fft.fft2(np.stack([*force, flow_x * omega[1] - flow_y * omega[0]]))
        force -= self.k * (self.k * force).sum(axis=0) / np.maximum(self._all, 1e-300)
        return np.asarray(np.stack([-fft.fft2(flow_x * w_x + flow_y * w_y), *force]) * self.kept)

    def step(self, dt: float) -> None:
        """One step of RK4."""
        damping = np.stack([self.base_viscosity * self.k2, *[self.viscosity * self._all] * 3])
        self.waves = stepped(self._rate, self.waves, damping, dt)
        self.time += dt

    @property
    def energy(self) -> float:
        """Mean of |u|^2/2 of the wave, m^2/s^2, with u as complex as it is."""
        return float(0.5 * (np.abs(self.waves[1:]) ** 2).sum() / self.n**4)

    def vorticity_at(self, points: int) -> tuple[Array, Array]:
        """W (p, p) and the wave's omega (3, p, p), 1/s, at the middles of p x p cells of the square."""
        k = self.k[0, :, 0]
        of = np.abs(k) < min(self.n, points) / 2
        to = k[of].astype(int)
        omega = np.stack([self.waves[0], *1j * np.cross(self.k, self.waves[1:], axis=0)])
        omega = omega * np.exp(1j * (self.k[0] + self.k[1]) * np.pi / points) * (points / self.n) ** 2
        fine = np.zeros((4, points, points), dtype=complex)
        fine[:, to[:, None], to] = omega[:, of][:, :, of]
        fields = fft.ifft2(fine)
        return fields[0].real, fields[1:]
