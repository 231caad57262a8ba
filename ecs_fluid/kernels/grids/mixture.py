"""The mixture in the cells of a grid: mean density, temperature and species, and light of fire, in one pass.

With sums over particles per cell volume, each point holds filled = sum w V, mass = sum w rho V, heat =
sum w T rho V and sum w Y rho V of each species. The rest of its cell, max(1 - filled, 0), is ambient fluid of
the density rho_a(z) and the temperature T_a(z), except for the fraction sum w V_alone / filled: where
particles fill a container and represent all fluid there, the rest is more of the same (from `EDGE` on). Then,
with the room that is left for ambient fluid,

    total = mass + room rho_a,  rho = total / (filled + room),
    T = (heat + room rho_a T_a) / total,  Y = sum w Y rho V / total,
    luminosity = sum_s c_s Y_s (T^4 - T_a^4),  opacity = sum_s e_s rho Y_s,

with T clipped to given limits and Y to [0, 1], which rounding may exceed slightly, and rho to limits where
kernels have negative weights. There are as many species as coefficients c_s. ``mix`` takes the sums of any
kernel. ``share`` makes those of the linear kernel, w = w_x w_y w_z of ``interpolation``, for one line of
points along z at a time, and mixes each line while it is in the cache: most lines have no particle near, and
storing their sums would be most of the writing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS
from ecs_fluid.kernels.compiled.lanes import load_four, spread_four, store_four
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import INLINE
from ecs_fluid.kernels.grids.interpolation import axis_weight
from ecs_fluid.kernels.grids.partition import axis_cell

AMOUNTS = 5
"""Number of amounts before those of the species: volume, mass, excess mass, m T, and volume alone."""

MEANS = 3
"""Number of fields before those of the species: density, excess, temperature; luminosity and opacity
follow."""

EDGE = 0.1
"""A cell filled up to this fraction lies at the edge of particles that are alone: beyond is ambient fluid."""

TINY = 1e-37
"""Least mass per volume used as a divisor, kg/m^3."""

OPTIONS: Any = {"fastmath": {"contract"}, "error_model": "numpy"}
_PART: Any = {**INLINE, "fastmath": {"contract"}}


@njit(**_PART)
def _width(species: Any) -> int:
    """Numbers per point while particles are summed, rounded up to whole vectors of four."""
    return (AMOUNTS + len(species) + 3) // 4 * 4


@njit(**_PART)
def _fill_ambient(rho_ambient: Any, T_ambient: Any, row: int, out: Any) -> None:
    """Write ambient fluid only, as at most points around a flame."""
    zero = out.dtype.type(0)
    for c in range(out.shape[0]):
        line = out[c, row]
        for k in range(rho_ambient.size):
            line[k] = rho_ambient[k] if c == 0 else (T_ambient[k] if c == 2 else zero)


@njit(**_PART)
def _mix_line(
    shared: Any, rho_ambient: Any, T_ambient: Any, limits: Any, row: int, first: int, last: int, out: Any
) -> None:
    """Points first:last of a line, of which ``shared`` (nz+1, 5 + species or more) are the amounts."""
    least_T, largest_T, least_rho, largest_rho, emission, extinction, clipped = limits
    kind = out.dtype.type
    zero, one, least = kind(0), kind(1), kind(TINY)
    species = len(emission)
    for k in range(first, last):
        filled, mass, heat = shared[k, 0], shared[k, 1], shared[k, 3]
        if filled == zero and mass == zero:
            continue
        if clipped:
            filled, mass, heat = max(filled, zero), max(mass, zero), max(heat, zero)
        own = min(max(shared[k, 4] / filled, zero), one) if filled > kind(EDGE) else zero
        room = max(one - filled, zero) * (one - own)
        ambient_mass = room * rho_ambient[k]
        total = mass + ambient_mass
        inverse = one / max(total, least)
        rho = total / (filled + room if own > zero else max(filled, one))
        if clipped:
            rho = min(max(rho, least_rho), largest_rho)
        T = min(max((heat + ambient_mass * T_ambient[k]) * inverse, least_T), largest_T)
        hot, cold = T * T, T_ambient[k] * T_ambient[k]
        out[0, row, k] = rho
        out[1, row, k] = shared[k, 2]
        out[2, row, k] = T
        luminosity = opacity = zero
        for s in range(species):
            part = min(max(shared[k, AMOUNTS + s] * inverse, zero), one)
            out[MEANS + s, row, k] = part
            luminosity += emission[s] * part
            opacity += extinction[s] * rho * part
        out[MEANS + species, row, k] = luminosity * max(hot * hot - cold * cold, zero)
        out[MEANS + species + 1, row, k] = opacity


@parallel(**OPTIONS)
def mix(
    chunk: int,
    shared: np.ndarray, rho_ambient: np.ndarray, T_ambient: np.ndarray, least_T: float, largest_T: float,
    least_rho: float, largest_rho: float, emission: tuple[float, ...], extinction: tuple[float, ...],
    clipped: bool, out: np.ndarray,
) -> None:  # fmt: skip
    """Fields ``out`` (5 + species, rows, nz+1) from ``shared`` (rows, nz+1, 5 + species) per cell volume.

    ``rho_ambient``, ``T_ambient`` (nz+1,) are the ambient density [kg/m^3] and temperature [K] of each
    height; ``least_T`` and ``largest_T`` [K] limit the temperature; ``emission`` is 4 a sigma_SB [W/(m^3
    K^4)] of each species and ``extinction`` its extinction per mass [m^2/kg]. ``clipped``: amounts below
    zero, which kernels with negative weights leave, count as zero, and densities stay from ``least_rho`` to
    ``largest_rho`` [kg/m^3]. All of one dtype.
    """
    rows, points = shared.shape[0], shared.shape[1]
    for row in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
        _fill_ambient(rho_ambient, T_ambient, row, out)
        constants = least_T, largest_T, least_rho, largest_rho, emission, extinction, clipped
        _mix_line(shared[row], rho_ambient, T_ambient, constants, row, 0, points, out)


@njit(**_PART)
def _store_place(
    x: Any, amounts: Any, row: int, first: int, width: int, origin: Any, spacing: Any, cells: Any, places: Any
) -> None:
    """Weights of the upper points along x, y, z, the cell along z, and the amounts of a particle."""
    for a in range(3):
        inverse = 1.0 / spacing[a]
        cell = axis_cell(x[row, a], origin[a], inverse, cells[a])
        places[first + a] = axis_weight(x[row, a], origin[a], inverse, cell)
        places[first + 3] = cell
    for c in range(amounts.shape[0]):
        places[first + 4 + c] = amounts[c, row]
    for c in range(amounts.shape[0], width):
        places[first + 4 + c] = 0.0


@njit(**_PART)
def _add(places: Any, first: Any, width: Any, lower: Any, upper: Any, sums: Any, to: Any) -> None:
    """Add the amounts from ``places[first]`` on to those of a point and of the one above it."""
    w, v = spread_four(lower), spread_four(upper)
    for c in range(0, width, 4):
        amounts = load_four(places, first + c)
        store_four(sums, to + c, load_four(sums, to + c) + w * amounts)
        above = to + width + c
        store_four(sums, above, load_four(sums, above) + v * amounts)


@parallel(**OPTIONS)
def _find_places(
    chunk: int, x: np.ndarray, amounts: np.ndarray, order: np.ndarray, width: int, origin: np.ndarray,
    spacing: np.ndarray, cells: np.ndarray, places: np.ndarray,
) -> None:  # fmt: skip
    n = order.shape[0]
    for p in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        _store_place(x, amounts, order[p], p * (4 + width), width, origin, spacing, cells, places)


@parallel(**OPTIONS)
def _add_rows(
    chunk: int, places: np.ndarray, start: np.ndarray, width: int, cells: np.ndarray, inverse: float,
    rho_ambient: np.ndarray, T_ambient: np.ndarray, constants: Any, out: np.ndarray,
) -> None:  # fmt: skip
    nx, ny, nz = cells[0], cells[1], cells[2]
    kind = out.dtype.type
    one, zero, scale = kind(1), kind(0), kind(inverse)
    rows = (nx + 1) * (ny + 1)
    flat = np.zeros((nz + 1) * width, out.dtype)
    sums = flat.reshape((nz + 1, width))
    for row in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
        _fill_ambient(rho_ambient, T_ambient, row, out)
        i, j = row // (ny + 1), row % (ny + 1)
        first, last = np.int64(nz + 1), np.int64(0)
        # The four rows of cells along z that have this line as an edge.
        for corner in range(4):
            ci, cj = i - 1 + corner // 2, j - 1 + corner % 2
            if ci < 0 or cj < 0 or ci >= nx or cj >= ny:
                continue
            cell = (ci * ny + cj) * nz
            for p in range(start[cell], start[cell + nz]):
                at = p * (4 + width)
                fx, fy, fz, k = places[at], places[at + 1], places[at + 2], np.int64(places[at + 3])
                w = (fx if ci < i else one - fx) * (fy if cj < j else one - fy) * scale
                _add(places, at + 4, width, w * (one - fz), w * fz, flat, k * width)
                first, last = min(first, k), max(last, np.int64(k + 2))
        _mix_line(sums, rho_ambient, T_ambient, constants, row, first, last, out)
        for point in range(first, last):
            for c in range(width):
                sums[point, c] = zero


@njit(**OPTIONS, cache=True)
def share(
    x: np.ndarray, amounts: np.ndarray, start: np.ndarray, order: np.ndarray, origin: np.ndarray,
    spacing: np.ndarray, cells: np.ndarray, inverse: float, rho_ambient: np.ndarray, T_ambient: np.ndarray,
    least_T: float,
    largest_T: float, emission: tuple[float, ...], extinction: tuple[float, ...], out: np.ndarray,
) -> None:  # fmt: skip
    """Fields ``out`` (5 + species, (nx+1) (ny+1), nz+1) of particles that share their amounts linearly.

    ``x`` (n, 3) m and ``amounts`` (5 + species, n), with ``start`` and ``order`` as ``partition`` made them
    for this grid; ``inverse`` is 1 / cell volume [1/m^3]; the rest as for ``mix``.
    """
    width, constants = _width(emission), (least_T, largest_T, least_T, largest_T, emission, extinction, False)
    places = np.empty(order.shape[0] * (4 + width), out.dtype)
    _find_places(x, amounts, order, width, origin, spacing, cells, places)
    _add_rows(places, start, width, cells, inverse, rho_ambient, T_ambient, constants, out)
