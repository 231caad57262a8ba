"""Weakly compressible liquid by smoothed particle hydrodynamics: density, pressure, viscosity of all pairs.

Pairs interact within the reach R. With q = r / R, phi(q) = (1 - q)^4 (4 q + 1) and s_i = V_i / V_0, the
compression of particle i, 1 at rest, is

    nu_i = s_i w_0 sum_j phi(q_ij) + G_i + e_i,

with G_i the part of bodies (`kernels.sph.wall_pressure`) and e_i the excess, a part that the particle
carries along.
The pressure follows Tait's law, p = B (nu^7 - 1), and is 0 where nu < 1. With P = V p / nu^2 and the
kinematic viscosity n the force is

    F_i = sum_j (s_i P_i + s_j P_j) w_0 20 (1 - q)^3 r_ij / R^2 - P_i grad G_i
          - sum_j 10 n (m_i + m_j) / 2 (u_ij . r_ij) / r_ij^2 w_0 20 (1 - q)^3 r_ij / R^2.

The excess diffuses between pairs of particles that are both under pressure, but not to images. The weight of
the liquid is subtracted from the difference of pressure, so that liquid at rest keeps its excess:

    de_i/dt = C c R sum_j (p_j - p_i - (rho_i + rho_j) / 2 g . r_ji) / (7 B) w_0 20 (1 - q)^3 / R^2,

with c the speed of sound. All other sums include the images behind walls (`kernels.sph.mirror_images`). Each
particle sums over all others, in an order that depends only on their positions. How this follows from an
energy, and sources: docs/notes/liquids.md.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import double_inverse_root, wide_vectors
from ecs_fluid.kernels.grids.neighbours import WIDTH, box_of, fill_list, list_groups, runs_around

LEAST_PLACE = 8.0
"""Least sorted coordinate, in reaches. The padding of lists lies at 0, so it is out of reach of all."""

TINY = 1e-14
"""Added to q^2, so that its inverse root exists at q = 0. Working with the inverse root costs a quarter of
the processor's own root and division."""


DIFFUSION = 0.1
"""C, the coefficient of the diffusion of the excess: any value from 0.05 to 0.2 gives the same waves."""

AIRBORNE = 0.5, 30.0
"""A particle is in the air if its compression less its excess is below the first number. There its excess
decays with the second as time constant, in units of R / c."""


def phi(q: Array) -> Array:
    """Wendland's kernel without its factor; ``q`` are distances divided by the reach."""
    u = np.maximum(1.0 - q, 0.0)
    return np.asarray(u**4 * (4.0 * q + 1.0))


@lru_cache
def lattice_weight(support: float) -> float:
    """w_0 = 1 / (sum of phi over a cubic lattice), where `support` is the reach divided by the spacing."""
    k = np.arange(-np.ceil(support), np.ceil(support) + 1)
    q = np.sqrt(k[:, None, None] ** 2 + k[:, None] ** 2 + k**2) / support
    return 1.0 / float(phi(q).sum())


@njit(fastmath=FAST, error_model="numpy")
def _sum_phi(near: Array, count: int, px: float, py: float, pz: float) -> float:
    """Sum of phi over the first ``count`` of the list ``near``, for a particle at (px, py, pz) in reaches."""
    wide_vectors()
    kind = near.dtype.type
    zero, one, four, total = kind(0), kind(1), kind(4), kind(0)
    half, tiny = kind(0.5), kind(TINY)
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
    phi_sums: Array,
) -> None:  # fmt: skip
    """Overwrite ``phi_sums`` (n,) with sum_j phi(q_ij), j = i included, of all particles.

    ``place`` (3, n + LANES) holds sorted coordinates in reaches, from LEAST_PLACE on, and ``order`` (n,)
    their rows. Rows from ``real`` on are images: they count in the sums, but ``phi_sums`` has no sums of
    their own. ``start`` and the `stacked` grid (origin, spacing, cells), in the same units, come from
    ``partition``.
    """
    near, box = np.zeros(3 * WIDTH, place.dtype), np.empty((2, 3), place.dtype)
    runs = np.empty((cells[0] * cells[1], 2), np.int64)
    for p, stop in list_groups(chunk, order, real, start):
        phi_sums[p:stop] = 0.0
        box_of(place.T, p, stop, box)
        number = runs_around(box, start, origin, spacing, cells, 1.0, runs)
        run = 0
        while run < number:
            count, run = fill_list(place, runs, number, run, near)
            for t in range(p, stop):
                if order[t] >= real:
                    continue
                phi_sums[t] += _sum_phi(near, count, place[0, t], place[1, t], place[2, t])


@parallel(fastmath=FAST, error_model="numpy")
def _compressions(
    chunk: int, phi_sums: Array, order: Array, added: Array, size: Array, weight: float, stiffness: float,
    volume: float, nu: Array, load: Array,
) -> None:  # fmt: skip
    many, kind = len(order), nu.dtype.type
    one, zero = kind(1), kind(0)
    scale = kind(stiffness * volume)
    for s in range(chunk * many // CHUNKS, (chunk + 1) * many // CHUNKS):
        i = order[s]
        if i < len(nu):
            value = size[i] * kind(weight) * phi_sums[s] + added[i]
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
    phi_sums: Array, order: Array, owner: Array, added: Array, size: Array, weight: float, stiffness: float,
    volume: float, nu: Array, load: Array, sorted_load: Array, sorted_push: Array,
) -> None:  # fmt: skip
    """Fill ``nu`` (n,), the compression, and ``load`` (n,), s P [J] with P = V p / nu^2, of every particle.

    ``phi_sums`` (m,) is the result of ``compression``, in sorted order, and ``order`` (m,) the rows.
    ``owner`` (m - n,) are the rows of the particles that the images show; ``added`` (n,) is G + e, ``size``
    (n,) s, ``weight`` w_0, ``stiffness`` B [Pa], ``volume`` V_0 [m^3]. ``sorted_load`` and ``sorted_push`` (m
    or more,) get the load and V_0 p [J] in sorted order. An image has the load of its particle, and a push of
    0.
    """
    _compressions(phi_sums, order, added, size, weight, stiffness, volume, nu, load)
    _sorted_loads(order, owner, size, nu, load, sorted_load, sorted_push)


@njit(fastmath=FAST, error_model="numpy")
def _pair_sums(
    near: Array, count: int, px: float, py: float, pz: float, pu: float, pv: float, pw: float,
    load: float, mass: float, push: float, drag: float, gx: float, gy: float, gz: float,
    displaced_mass: float,
) -> tuple[float, float, float, float, float]:  # fmt: skip
    """Sums over the first ``count`` of the list ``near``, of five quantities.

    The force (1 - q)^3 (load_i + load_j - drag (m_i + m_j) u.r / r^2) r (3), the viscous loss, and (1 - q)^3
    times the difference of V_0 p between the two, less the difference at rest, which balances gravity.
    """
    wide_vectors()
    kind = near.dtype.type
    zero, one, half, tiny, quarter = kind(0), kind(1), kind(0.5), kind(TINY), kind(0.25) * drag
    fx, fy, fz, lost, flow = zero, zero, zero, zero, zero
    for j in range(count):
        dx, dy, dz = px - near[j], py - near[WIDTH + j], pz - near[2 * WIDTH + j]
        r2 = dx * dx + dy * dy + dz * dz + tiny
        root = double_inverse_root(r2)
        q = one - half * r2 * root
        q = q if q > zero else zero
        w = q * q * q
        u_dot_r = (
            (pu - near[3 * WIDTH + j]) * dx
            + (pv - near[4 * WIDTH + j]) * dy
            + (pw - near[5 * WIDTH + j]) * dz
        )  # fmt: skip
        both, theirs = mass + near[7 * WIDTH + j], near[8 * WIDTH + j]
        friction = w * (quarter * both) * u_dot_r * (root * root)
        f = w * (load + near[6 * WIDTH + j]) - friction
        fx += f * dx
        fy += f * dy
        fz += f * dz
        lost += friction * u_dot_r
        g_dot_r = gx * dx + gy * dy + gz * dz
        uneven = theirs - push + (half * both - displaced_mass) * g_dot_r
        flow += w * uneven if theirs > zero else zero
    return fx, fy, fz, lost, flow


@parallel(fastmath=FAST, error_model="numpy")
def forces(
    chunk: int,
    data: Array, start: Array, origin: Array, spacing: Array, cells: Array, order: Array, real: int,
    scale: float, drag: float, gravity: Array, displaced_mass: float, sums: Array,
) -> None:  # fmt: skip
    """Overwrite ``sums`` (5, n) with the sums of all particles over their pairs, images included as partners.

    Rows 0 to 2 are the force [N] of pressure and viscosity. Row 3 is the power [W] that viscosity takes, half
    of each pair's. Row 4 is the sum of (1 - q)^3 times the difference of V_0 p [J] between the two, less the
    difference at rest, over partners under pressure; it is 0 for a particle without pressure.

    ``data`` (9, n + LANES) holds sorted coordinates in reaches from LEAST_PLACE on, velocity [m/s], load s P
    [J], mass [kg] and V_0 p [J]; ``order`` (n,) are their rows, and rows from ``real`` on are images.
    ``scale`` is 20 w_0 / R [1/m], ``drag`` 5 n / R [m/s], ``gravity`` (3,) is g R [m^2/s^2].
    ``displaced_mass`` [kg] is that of the surrounding fluid in the place of a particle.
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
                fx, fy, fz, lost, flow = _pair_sums(
                    near, count, data[0, t], data[1, t], data[2, t], data[3, t], data[4, t], data[5, t],
                    data[6, t], data[7, t], data[8, t], drag, gx, gy, gz, displaced_mass,
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
