"""Weakly compressible liquid by smoothed particle hydrodynamics: density, pressure, viscosity of all pairs.

With q = r / R, R the reach, phi(q) = (1 - q)^4 (4 q + 1) and s_i = V_i / V_0, the compression is
nu_i = s_i w_0 sum_j phi(q_ij) + G_i (1 at rest; G of walls, see `kernels.sph.walls`), the pressure Tait's,
p = B (nu^7 - 1), 0 where nu < 1, and with P = V p / nu^2 and the kinematic viscosity n

    F_i = sum_j (s_i P_i + s_j P_j) w_0 20 (1 - q)^3 r_ij / R^2 - P_i grad G_i
          - sum_j 10 n (m_i + m_j) / 2 (u_ij . r_ij) / r_ij^2 w_0 20 (1 - q)^3 r_ij / R^2.

Each particle sums over all others, in an order that depends on places alone. How this follows from an energy,
and sources: docs/notes/liquids.md.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels.compiled import CHUNKS, FAST, Array
from ecs_fluid.kernels.compiled.vectors import double_inverse_root, wide_vectors
from ecs_fluid.kernels.grids.neighbours import WIDTH, box_of, fill_list, first_cell, group_end, runs_around

FAR = 8.0
"""Where sorted coordinates begin, in reaches: the lists' padding lies at 0, out of everybody's reach."""

NEAREST = 1e-14
"""Added to q^2, whose inverse root is a quarter of the cost of the processor's own root and quotient."""


@lru_cache
def lattice_weight(support: float) -> float:
    """w_0 = 1 / sum phi over a cubic lattice, whose spacing is R / `support`."""
    k = np.arange(-np.ceil(support), np.ceil(support) + 1)
    q = np.sqrt(k[:, None, None] ** 2 + k[:, None] ** 2 + k**2) / support
    u = np.maximum(1.0 - q, 0.0)
    return 1.0 / float((u**4 * (4.0 * q + 1.0)).sum())


@njit(fastmath=FAST, error_model="numpy")
def _crowd(near: Array, count: int, px: float, py: float, pz: float) -> float:
    """Sum of phi over a list."""
    wide_vectors()
    kind = near.dtype.type
    zero, one, four, total = kind(0), kind(1), kind(4), kind(0)
    half, tiny = kind(0.5), kind(NEAREST)
    for j in range(count):
        dx, dy, dz = near[j] - px, near[WIDTH + j] - py, near[2 * WIDTH + j] - pz
        r2 = dx * dx + dy * dy + dz * dz + tiny
        q = half * r2 * double_inverse_root(r2)
        u = one - q
        u = u if u > zero else zero
        u2 = u * u
        total += u2 * u2 * (four * q + one)
    return total


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def compression(
    place: Array, start: Array, origin: Array, spacing: Array, cells: Array,
    crowd: Array,
) -> None:  # fmt: skip
    """Overwrite ``crowd`` (n,) with sum_j phi(q_ij), j = i included.

    ``place`` (3, n + LANES) sorted coordinates in reaches, from FAR on; ``start`` and the grid (origin,
    spacing, cells), which is `stacked`, in the same units as ``partition`` made them.
    """
    n = crowd.shape[0]
    for chunk in prange(CHUNKS):
        p, last = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
        if p == last:
            continue
        near, box = np.zeros(3 * WIDTH, place.dtype), np.empty((2, 3), place.dtype)
        runs = np.empty((cells[0] * cells[1], 2), np.int64)
        cell = first_cell(p, start)
        while p < last:
            cell, end = group_end(p, last, start, cell)
            crowd[p:end] = 0.0
            box_of(place.T, p, end, box)
            number = runs_around(box, start, origin, spacing, cells, 1.0, runs)
            run = 0
            while run < number:
                count, run = fill_list(place, runs, number, run, near)
                for t in range(p, end):
                    crowd[t] += _crowd(near, count, place[0, t], place[1, t], place[2, t])
            p = end


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def tait(
    crowd: Array, order: Array, wall: Array, size: Array, weight: float, stiffness: float,
    volume: float, nu: Array, load: Array, sorted_load: Array,
) -> None:  # fmt: skip
    """Compression nu (n,) and load s P (n,), P = V p / nu^2 [J], of every particle.

    ``crowd`` (n,) as ``compression`` makes it, sorted, with ``order`` (n,) the rows; ``wall`` (n,) G,
    ``size`` (n,) s, ``weight`` w_0, ``stiffness`` B [Pa], ``volume`` V_0 [m^3]. ``sorted_load`` (n or more,)
    gets the load in sorted order too.
    """
    n, kind = len(crowd), nu.dtype.type
    one, zero = kind(1), kind(0)
    scale = kind(stiffness * volume)
    for chunk in prange(CHUNKS):
        for s in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
            i = order[s]
            value = size[i] * kind(weight) * crowd[s] + wall[i]
            nu[i] = value
            cube = value * value * value
            excess = cube * cube * value - one
            load[i] = size[i] * size[i] * scale * excess / (value * value) if excess > zero else zero
            sorted_load[s] = load[i]


@njit(fastmath=FAST, error_model="numpy")
def _push(
    near: Array, count: int, px: float, py: float, pz: float, pu: float, pv: float, pw: float,
    load: float, mass: float, drag: float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Sums over a list of (1 - q)^3 (load_ij - drag m_ij u.r / r^2) r, and of the viscous loss."""
    wide_vectors()
    kind = near.dtype.type
    zero, one, half, tiny, quarter = kind(0), kind(1), kind(0.5), kind(NEAREST), kind(0.25) * drag
    fx, fy, fz, lost = zero, zero, zero, zero
    for j in range(count):
        dx, dy, dz = px - near[j], py - near[WIDTH + j], pz - near[2 * WIDTH + j]
        r2 = dx * dx + dy * dy + dz * dz + tiny
        root = double_inverse_root(r2)
        q = one - half * r2 * root
        q = q if q > zero else zero
        w = q * q * q
        meet = (
            (pu - near[3 * WIDTH + j]) * dx
            + (pv - near[4 * WIDTH + j]) * dy
            + (pw - near[5 * WIDTH + j]) * dz
        )  # fmt: skip
        friction = w * (quarter * (mass + near[7 * WIDTH + j])) * meet * (root * root)
        f = w * (load + near[6 * WIDTH + j]) - friction
        fx += f * dx
        fy += f * dy
        fz += f * dz
        lost += friction * meet
    return fx, fy, fz, lost


@njit(parallel=True, cache=True, fastmath=FAST, error_model="numpy")
def forces(
    data: Array, start: Array, origin: Array, spacing: Array, cells: Array,
    scale: float, drag: float, force: Array, loss: Array,
) -> None:  # fmt: skip
    """Overwrite ``force`` (3, n) N with pressure and viscosity of all pairs and ``loss`` (n,) W with what the
    viscosity takes (half of every pair's).

    ``data`` (8, n + LANES): coordinates in reaches from FAR on, velocity [m/s], load s P [J], mass [kg].
    ``scale`` is 20 w_0 / R [1/m], ``drag`` 5 n / R [m/s].
    """
    n = force.shape[1]
    kind = data.dtype.type
    half = kind(0.5)
    for chunk in prange(CHUNKS):
        p, last = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
        if p == last:
            continue
        near, box = np.zeros(8 * WIDTH, data.dtype), np.empty((2, 3), data.dtype)
        runs = np.empty((cells[0] * cells[1], 2), np.int64)
        cell = first_cell(p, start)
        while p < last:
            cell, end = group_end(p, last, start, cell)
            force[:, p:end] = 0.0
            loss[p:end] = 0.0
            box_of(data.T, p, end, box)
            number = runs_around(box, start, origin, spacing, cells, 1.0, runs)
            run = 0
            while run < number:
                count, run = fill_list(data, runs, number, run, near)
                for t in range(p, end):
                    fx, fy, fz, lost = _push(
                        near, count, data[0, t], data[1, t], data[2, t], data[3, t], data[4, t], data[5, t],
                        data[6, t], data[7, t], drag,
                    )  # fmt: skip
                    force[0, t] += scale * fx
                    force[1, t] += scale * fy
                    force[2, t] += scale * fz
                    loss[t] += half * scale * lost
            p = end


def compression_energy(nu: Array, size: Array, stiffness: float, volume: float) -> float:
    """Energy of compression [J]: sum of V B (nu^6 / 6 + 1/nu - 7/6) over particles with nu > 1."""
    above = np.maximum(nu.astype(np.float64), 1.0)
    return float(stiffness * volume * (size * (above**6 / 6 + 1 / above - 7 / 6)).sum())
