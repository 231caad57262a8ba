"""Weakly compressible liquid by smoothed particle hydrodynamics: density, pressure, viscosity of all pairs.

With q = r / R, R the reach, phi(q) = (1 - q)^4 (4 q + 1) and s_i = V_i / V_0, the compression is
nu_i = s_i w_0 sum_j phi(q_ij) + G_i + e_i (1 at rest; G of bodies, see `kernels.sph.walls`; e the excess that
a particle carries), the pressure Tait's, p = B (nu^7 - 1), 0 where nu < 1, and with P = V p / nu^2 and the
kinematic viscosity n

    F_i = sum_j (s_i P_i + s_j P_j) w_0 20 (1 - q)^3 r_ij / R^2 - P_i grad G_i
          - sum_j 10 n (m_i + m_j) / 2 (u_ij . r_ij) / r_ij^2 w_0 20 (1 - q)^3 r_ij / R^2.

The excess diffuses between pairs under pressure, images left out, such that what is at rest stays as it is:

    de_i/dt = C c R sum_j (p_j - p_i - (rho_i + rho_j) / 2 g . r_ji) / (7 B) w_0 20 (1 - q)^3 / R^2.

The other sums go over images behind walls too (`kernels.sph.images`). Each particle sums over all others, in
an order that depends on places alone. How this follows from an energy, and sources: docs/notes/liquids.md.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.vectors import double_inverse_root, wide_vectors
from ecs_fluid.kernels.grids.neighbours import WIDTH, box_of, fill_list, list_groups, runs_around

FAR = 8.0
"""Where sorted coordinates begin, in reaches: the lists' padding lies at 0, out of everybody's reach."""

NEAREST = 1e-14
"""Added to q^2, whose inverse root is a quarter of the cost of the processor's own root and quotient."""


DIFFUSION = 0.1
"""C, of the excess: 0.05 to 0.2 give the same waves."""

AIRBORNE = 0.5, 30.0
"""Compression without excess below which a particle is in the air, and the time, in R / c, in which it loses
it there."""


def phi(q: Array) -> Array:
    """Wendland's kernel without its factor, of distances over the reach."""
    u = np.maximum(1.0 - q, 0.0)
    return np.asarray(u**4 * (4.0 * q + 1.0))


@lru_cache
def lattice_weight(support: float) -> float:
    """w_0 = 1 / sum phi over a cubic lattice, whose spacing is R / `support`."""
    k = np.arange(-np.ceil(support), np.ceil(support) + 1)
    q = np.sqrt(k[:, None, None] ** 2 + k[:, None] ** 2 + k**2) / support
    return 1.0 / float(phi(q).sum())


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


@parallel(fastmath=FAST, error_model="numpy")
def compression(
    chunk: int,
    place: Array, start: Array, origin: Array, spacing: Array, cells: Array, order: Array, real: int,
    crowd: Array,
) -> None:  # fmt: skip
    """Overwrite ``crowd`` (n,) with sum_j phi(q_ij), j = i included, but for images: rows from ``real`` on.

    ``place`` (3, n + LANES) sorted coordinates in reaches, from FAR on; ``order`` (n,) their rows; ``start``
    and the grid (origin, spacing, cells), which is `stacked`, in the same units as ``partition`` made them.
    """
    near, box = np.zeros(3 * WIDTH, place.dtype), np.empty((2, 3), place.dtype)
    runs = np.empty((cells[0] * cells[1], 2), np.int64)
    for p, stop in list_groups(chunk, order, real, start):
        crowd[p:stop] = 0.0
        box_of(place.T, p, stop, box)
        number = runs_around(box, start, origin, spacing, cells, 1.0, runs)
        run = 0
        while run < number:
            count, run = fill_list(place, runs, number, run, near)
            for t in range(p, stop):
                if order[t] >= real:
                    continue
                crowd[t] += _crowd(near, count, place[0, t], place[1, t], place[2, t])


@parallel(fastmath=FAST, error_model="numpy")
def _compressions(
    chunk: int, crowd: Array, order: Array, added: Array, size: Array, weight: float, stiffness: float,
    volume: float, nu: Array, load: Array,
) -> None:  # fmt: skip
    many, kind = len(order), nu.dtype.type
    one, zero = kind(1), kind(0)
    scale = kind(stiffness * volume)
    for s in range(chunk * many // CHUNKS, (chunk + 1) * many // CHUNKS):
        i = order[s]
        if i < len(nu):
            value = size[i] * kind(weight) * crowd[s] + added[i]
            nu[i] = value
            cube = value * value * value
            excess = cube * cube * value - one
            load[i] = size[i] * size[i] * scale * excess / (value * value) if excess > zero else zero


@parallel(fastmath=FAST, error_model="numpy")
def _sorted_loads(
    chunk: int, order: Array, owner: Array, size: Array, nu: Array, load: Array, sorted_load: Array,
    sorted_push: Array,
) -> None:  # fmt: skip
    n, many, zero = len(nu), len(order), nu.dtype.type(0)
    for s in range(chunk * many // CHUNKS, (chunk + 1) * many // CHUNKS):
        i = order[s] if order[s] < n else owner[order[s] - n]
        sorted_load[s] = load[i]
        sorted_push[s] = load[i] * (nu[i] / size[i]) ** 2 if order[s] < n else zero


def tait(
    crowd: Array, order: Array, owner: Array, added: Array, size: Array, weight: float, stiffness: float,
    volume: float, nu: Array, load: Array, sorted_load: Array, sorted_push: Array,
) -> None:  # fmt: skip
    """Compression nu (n,) and load s P (n,), P = V p / nu^2 [J], of every particle.

    ``crowd`` (m,) as ``compression`` makes it, sorted, with ``order`` (m,) the rows; ``owner`` (m - n,) the
    rows that images are of; ``added`` (n,) G + e, ``size`` (n,) s, ``weight`` w_0, ``stiffness`` B [Pa],
    ``volume`` V_0 [m^3]. ``sorted_load`` and ``sorted_push`` (m or more,) get the load and V_0 p [J] in
    sorted order: of images the load, and 0.
    """
    _compressions(crowd, order, added, size, weight, stiffness, volume, nu, load)
    _sorted_loads(order, owner, size, nu, load, sorted_load, sorted_push)


@njit(fastmath=FAST, error_model="numpy")
def _push(
    near: Array, count: int, px: float, py: float, pz: float, pu: float, pv: float, pw: float,
    load: float, mass: float, push: float, drag: float, gx: float, gy: float, gz: float, lifted: float,
) -> tuple[float, float, float, float, float]:  # fmt: skip
    """Sums over a list of (1 - q)^3 (load_ij - drag m_ij u.r / r^2) r, of the viscous loss, and of (1 - q)^3
    times what V_0 p differs from that at rest."""
    wide_vectors()
    kind = near.dtype.type
    zero, one, half, tiny, quarter = kind(0), kind(1), kind(0.5), kind(NEAREST), kind(0.25) * drag
    fx, fy, fz, lost, flow = zero, zero, zero, zero, zero
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
        both, theirs = mass + near[7 * WIDTH + j], near[8 * WIDTH + j]
        friction = w * (quarter * both) * meet * (root * root)
        f = w * (load + near[6 * WIDTH + j]) - friction
        fx += f * dx
        fy += f * dy
        fz += f * dz
        lost += friction * meet
        fall = gx * dx + gy * dy + gz * dz
        uneven = theirs - push + (half * both - lifted) * fall
        flow += w * uneven if theirs > zero else zero
    return fx, fy, fz, lost, flow


@parallel(fastmath=FAST, error_model="numpy")
def forces(
    chunk: int,
    data: Array, start: Array, origin: Array, spacing: Array, cells: Array, order: Array, real: int,
    scale: float, drag: float, gravity: Array, lifted: float, sums: Array,
) -> None:  # fmt: skip
    """Overwrite ``sums`` (5, n), but for images, rows from ``real`` on: the force [N] of pressure and
    viscosity of all pairs, what the viscosity takes [W] (half of every pair's), and sum_j (1 - q)^3 of what
    V_0 p [J] differs by from that at rest.

    ``data`` (9, n + LANES): coordinates in reaches from FAR on, velocity [m/s], load s P [J], mass [kg], V_0
    p [J]; ``order`` (n,) their rows. ``scale`` is 20 w_0 / R [1/m], ``drag`` 5 n / R [m/s], ``gravity`` (3,)
    times R [m^2/s^2], ``lifted`` the mass [kg] of what surrounds the liquid in the volume of a particle.
    """
    kind = data.dtype.type
    half, zero = kind(0.5), kind(0)
    gx, gy, gz = gravity[0], gravity[1], gravity[2]
    near, box = np.zeros(9 * WIDTH, data.dtype), np.empty((2, 3), data.dtype)
    runs = np.empty((cells[0] * cells[1], 2), np.int64)
    for p, stop in list_groups(chunk, order, real, start):
        sums[:, p:stop] = 0.0
        box_of(data.T, p, stop, box)
        number = runs_around(box, start, origin, spacing, cells, 1.0, runs)
        run = 0
        while run < number:
            count, run = fill_list(data, runs, number, run, near)
            for t in range(p, stop):
                if order[t] >= real:
                    continue
                fx, fy, fz, lost, flow = _push(
                    near, count, data[0, t], data[1, t], data[2, t], data[3, t], data[4, t], data[5, t],
                    data[6, t], data[7, t], data[8, t], drag, gx, gy, gz, lifted,
                )  # fmt: skip
                sums[0, t] += scale * fx
                sums[1, t] += scale * fy
                sums[2, t] += scale * fz
                sums[3, t] += half * scale * lost
                if data[6, t] > zero:
                    sums[4, t] += flow


def compression_energy(nu: Array, size: Array, stiffness: float, volume: float) -> float:
    """Energy of compression [J]: sum of V B (nu^6 / 6 + 1/nu - 7/6) over particles with nu > 1."""
    above = np.maximum(nu.astype(np.float64), 1.0)
    return float(stiffness * volume * (size * (above**6 / 6 + 1 / above - 7 / 6)).sum())
