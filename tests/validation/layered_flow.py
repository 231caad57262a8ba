"""Rings and drops in layered fluid, solved apart from the package: finite differences in r and z, no swirl.

Boussinesq, with omega of the direction phi, the buoyancy beta(r, z, t) = -g rho/rho_0 that the fluid carries,
beta_a(z) that of fluid at rest at its own level, and u_r = -(1/r) dpsi/dz, u_z = (1/r) dpsi/dr:

    D(omega/r)/Dt = (nu (laplacian - 1/r^2) omega - db/dr)/r,    b = beta - beta_a,    D(beta)/Dt = 0,
    d^2(psi)/dz^2 + r d((1/r) dpsi/dr)/dr = -r omega,    psi = 0 on the axis and at the walls.

In a `HeatedFlow` a source gives buoyancy, and D(beta)/Dt = kappa laplacian(beta) + q.

Fluxes are of second order with van Leer's limiter, time steps those of Heun.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.sparse import diags_array, eye_array, kron
from scipy.sparse.linalg import splu

Array = NDArray[Any]
Profile = Callable[[Array], Array]
G = 9.81
WALLS = 3.0, -2.4, 2.8
"""Radius, and lower and upper end of the room, m."""


class LayeredFlow:
    """Fluid at rest in layers, `ambient` m/s^2 by the height m, with dye that may turn or weigh.

    `start` has for the points r, z the vorticity 1/s, the buoyancy m/s^2 beside the layers', and the dye 1.
    Walls are `room` times `WALLS` away; they slow a vortex ring by its inverse third power.
    """

    slowness = 0.5
    """Largest time step over h, s/m."""

    def __init__(
        self,
        h: float,
        ambient: Profile,
        viscosity: float,
        start: Callable[[Array, Array], Sequence[Array]],
        room: float = 1.0,
    ) -> None:
        self.h, self.viscosity, self.time = h, viscosity, 0.0
        radius, self.low, high = (room * wall for wall in WALLS)
        r = (np.arange(round(radius / h)) + 0.5) * h
        z = self.low + (np.arange(round((high - self.low) / h)) + 0.5) * h
        self.r, self.z = np.meshgrid(r, z, indexing="ij")
        self.ambient, self.solve = ambient(self.z), splu(_poisson(r, len(z), h)).solve
        vorticity, buoyancy, dye = start(self.r, self.z)
        self.state = np.stack([vorticity / self.r, self.ambient + buoyancy, dye])

    def march(self, seconds: float) -> None:
        """To this time, s."""
        ticks = max(round((seconds - self.time) / (self.slowness * self.h)), 1)
        dt = (seconds - self.time) / ticks
        for _ in range(ticks):
            first = self._rate(self.state)
            self.state = self.state + dt / 2 * (first + self._rate(self.state + dt * first))
        self.time = seconds

    @property
    def height(self) -> float:
        """Mean height of the dye, m."""
        return self._mean(self.z)

    @property
    def width(self) -> float:
        """Mean distance of the dye from the axis, m."""
        return self._mean(self.r)

    @property
    def circulations(self) -> tuple[float, float]:
        """Circulation of the parts that turn one way and the other, int omega dr dz, m^2/s."""
        return of_both_signs(self.state[0] * self.r * self.h**2)

    def smeared(self, width: float) -> tuple[float, float]:
        """The same of the vorticity times exp(-s^2/(2 width^2)) / (2 pi width^2) around each place, in m."""
        omega = self.state[0] * self.r * self.h**2
        both = np.concatenate([-omega[::-1], omega])  # odd in r
        return of_both_signs(gaussian_filter(both, width / self.h)[len(omega) :])

    def _mean(self, of: Array) -> float:
        dye = self.r * self.state[2]
        return float((dye * of).sum() / dye.sum())

    def _rate(self, state: Array) -> Array:
        over_r, buoyancy, _ = state
        psi = self.solve((-(self.r**2) * over_r).ravel()).reshape(self.r.shape)
        corner = np.zeros(np.add(psi.shape, 1))
        corner[1:-1, 1:-1] = (psi[1:, 1:] + psi[:-1, 1:] + psi[1:, :-1] + psi[:-1, :-1]) / 4
        fluxes = -np.diff(corner, axis=1), np.diff(corner, axis=0)
        rate = np.stack([_carried(q, fluxes) for q in state]) / (self.r * self.h**2)
        turned = np.gradient(buoyancy - self.ambient, self.h, axis=0)
        omega = over_r * self.r
        diffused = self.viscosity * (self._laplacian(omega, -1) - omega / self.r**2)
        rate[0] += (diffused - turned) / self.r
        return rate

    def _laplacian(self, f: Array, parity: int) -> Array:
        around = np.pad(f, 1, mode="edge")
        around[0] *= parity  # even or odd in r
        out, within = around[2:, 1:-1], around[:-2, 1:-1]
        rest = around[1:-1, 2:] + around[1:-1, :-2] - 4 * f
        return np.asarray((out + within + rest) / self.h**2 + (out - within) / (2 * self.h * self.r))


class HeatedFlow(LayeredFlow):
    """Fluid at rest that a source exp(-|x|^2/width^2) gives `power` m^4/s^3 of buoyancy; kappa is nu."""

    slowness = 0.2

    def __init__(self, h: float, viscosity: float, power: float, width: float) -> None:
        super().__init__(h, lambda z: 0 * z, viscosity, lambda r, z: (0 * r, 0 * r, 0 * r))
        self.source = power * np.exp(-(self.r**2 + self.z**2) / width**2) / (math.pi**1.5 * width**3)

    def _rate(self, state: Array) -> Array:
        rate = super()._rate(state)
        rate[1] += self.viscosity * self._laplacian(state[1], 1) + self.source
        return rate

    def across(self, height: float) -> tuple[float, float, float]:
        """w on the axis m/s, int w^2 dA m^4/s^2 and int b dA m^3/s^2 at a height, m."""
        psi = self.solve((-(self.r**2) * self.state[0]).ravel()).reshape(self.r.shape)
        k = int((height - self.low) / self.h - 0.5)
        part = (height - self.low) / self.h - 0.5 - k
        psi, b = ((1 - part) * of[:, k] + part * of[:, k + 1] for of in (psi, self.state[1]))
        even = np.concatenate([psi[1::-1], psi, [0.0, 0.0]])
        edges = (9 * (even[1:-2] + even[2:-1]) - even[:-3] - even[3:]) / 16
        edges[0] = 0.0
        r = self.r[:, 0]
        w = np.diff(edges[: len(r) + 1]) / (r * self.h)
        area = 2 * math.pi * r * self.h
        axis = (81 * psi[0] - psi[1]) / (9 * self.h**2)  # psi = w r^2/2 + O(r^4)
        return float(axis), float((w**2 * area).sum()), float((b * area).sum())


def ring_in_layers(
    h: float, core: float, ambient: Profile, viscosity: float, dye: Profile, room: float = 1.0
) -> LayeredFlow:
    """A ring of 1 m^2/s and 0.5 m with exp(-s^2/core^2), and `dye` by the distance s from its circle, m."""

    def start(r: Array, z: Array) -> tuple[Array, Array, Array]:
        away = np.hypot(r - 0.5, z)
        return np.exp(-((away / core) ** 2)) / (np.pi * core**2), 0 * r, dye(away)

    return LayeredFlow(h, ambient, viscosity, start, room)


def drop_in_layers(
    h: float, ambient: Profile, density: Callable[[Array, Array], Array], viscosity: float
) -> LayeredFlow:
    """A drop at rest whose dye is within 0.3 m of 0.7 m up; densities by r and z, over that of reference."""

    def start(r: Array, z: Array) -> tuple[Array, Array, Array]:
        return 0 * r, -G * (density(r, z) - ambient(z)), (np.hypot(r, z - 0.7) < 0.3) * 1.0

    return LayeredFlow(h, lambda z: -G * ambient(z), viscosity, start)


def of_both_signs(parts: Array) -> tuple[float, float]:
    """Sum of the positive and of the negative ones."""
    return float(parts[parts > 0].sum()), float(parts[parts < 0].sum())


def circulations_of(x: Array, alpha: Array, width: float) -> tuple[float, float]:
    """Circulation, m^2/s, of rings of vortons (x m, alpha m^3/s) that turn one way, and of those the other.

    Rings have a section of `width`^2. Gamma = sum alpha_phi/(2 pi r), with the mean r of a ring's volume in
    place of a vorton's: near the axis single vortons would count without bound.
    """
    x, alpha = x.astype(np.float64), alpha.astype(np.float64)
    r = np.hypot(x[:, 0], x[:, 1])
    around = (x[:, 0] * alpha[:, 1] - x[:, 1] * alpha[:, 0]) / np.maximum(r, 1e-12)
    ring, layer = (np.floor(of / width + shift).astype(np.int64) for of, shift in ((r, 0.0), (x[:, 2], 0.5)))
    layer -= layer.min()
    sums = np.bincount(ring * (layer.max() + 1) + layer, around, (ring.max() + 1) * (layer.max() + 1))
    k = np.arange(ring.max() + 1)
    middle = 2 / 3 * width * (3 * k**2 + 3 * k + 1) / (2 * k + 1)  # int r^2 dr / int r dr
    return of_both_signs(sums.reshape(len(k), -1) / (2 * np.pi * middle[:, None]))


def _poisson(r: Array, count: int, h: float) -> Any:
    """d^2/dz^2 + r d(1/r d/dr)/dr, psi like r^2 at the axis and 0 at the walls."""
    out, within = r / (r + h / 2) / h**2, r / np.maximum(r - h / 2, h / 2) / h**2
    middle = -out - within
    middle[0] = -out[0] - 2 / (r[0] * h)
    across = diags_array([middle, out[:-1], within[1:]], offsets=[0, 1, -1])
    ends = np.full(count, -2.0)
    ends[[0, -1]] -= 1
    along = diags_array([ends, np.ones(count - 1), np.ones(count - 1)], offsets=[0, 1, -1]) / h**2
    return (kron(across, eye_array(count)) + kron(eye_array(len(r)), along)).tocsc()


def _carried(q: Array, fluxes: tuple[Array, Array]) -> Array:
    """What flows into each cell a second, q times volume over 2 pi."""
    total = np.zeros_like(q)
    for axis, flux in enumerate(fluxes):
        wide = np.moveaxis(np.pad(q, [(2, 2) if k == axis else (0, 0) for k in (0, 1)], mode="edge"), axis, 0)
        step = np.diff(wide, axis=0)
        alike = step[1:] * step[:-1] > 0
        half = np.divide(step[1:] * step[:-1], step[1:] + step[:-1], out=np.zeros_like(step[1:]), where=alike)
        flow, cells = np.moveaxis(flux, axis, 0), wide[1:-1]
        face = flow * np.where(flow > 0, (cells + half)[:-1], (cells - half)[1:])
        total -= np.moveaxis(np.diff(face, axis=0), 0, axis)
    return total
