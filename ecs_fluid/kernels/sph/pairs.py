"""Lists of the pairs of liquid particles, and sums over them.

A pressure solve sums over the same pairs again and again, so each particle keeps a list: the sorted rows of
those within reach, images too, and the slope (1 - q)^3 r / R of each, r towards itself. Lists end at full
vectors; what fills them up is the row behind the last, whose values are 0. A sum is one loop over a list, in
an order that depends on places alone.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST, Array
from ecs_fluid.kernels.compiled.lanes import append_below, count_below, lanes_of, load, spread
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.vectors import LANES, double_inverse_root, wide_vectors
from ecs_fluid.kernels.grids.neighbours import (
    MOST,
    WIDTH,
    box_of,
    fill_list,
    first_cell,
    group_end,
    runs_around,
)
from ecs_fluid.kernels.sph.forces import NEAREST, _without_images

SPARE = 1.3
"""Room for pairs over what a lattice needs, at first."""


class Lists:
    """Room for the lists of all pairs: some 2.5 kB a particle, kept from step to step, no part of the state.

    rows (chunks * room,): sorted rows of the partners. slope (4, chunks * room): (1 - q)^3 r / R, and
    (1 - q)^3. first, last (n,): where the list of each sorted row begins and ends.
    """

    def __init__(self) -> None:
        self.room = 0
        self.rows = self.first = self.last = np.empty(0, np.int32)
        self.slope = np.empty((4, 0))

    def fill(
        self, support: float, data: Array, start: Array, grid: tuple[Array, Array, Array], order: Array,
        real: int, inverse: Array,
    ) -> Array:  # fmt: skip
        """Make the lists; returns sums (9, n) over each, sorted: of phi, of the friction (1 - q)^3 (m + m')
        (u.r / r^2) r / R (3), of (1 - q)^3 (m + m') (u.r / r)^2 / R, of slopes (3), and of their squares over
        m'. Arguments as ``forces`` has them, and ``inverse`` (n + LANES,) 1 / m, 0 behind."""
        n = len(order)
        place = np.empty((4, n + LANES), data.dtype)
        place[:3], place[3] = data[:3], np.arange(n + LANES)
        sums, need = np.zeros((9, n), data.dtype), np.empty(CHUNKS, np.int64)
        self.first, self.last = np.zeros(n, np.int64), np.zeros(n, np.int64)
        if not self.room:
            each = 4 / 3 * math.pi * support**3 + LANES
            self.room = int(SPARE * each * -(-n // CHUNKS)) + 2 * MOST
        while True:
            if self.slope.shape[1] != self.room * CHUNKS or self.slope.dtype != data.dtype:
                self.rows = np.empty(self.room * CHUNKS, np.int32)
                self.slope = np.empty((4, self.room * CHUNKS), data.dtype)
            _fill(
                place, data[3:6], data[7], inverse, start, *grid, order, real, self.room, self.rows,
                self.slope, self.first, self.last, sums, need,
            )  # fmt: skip
            if not need.any():
                return sums
            self.room = self.room * 3 // 2


@njit(fastmath=FAST, error_model="numpy")
def _kept(near: Array, count: int, x: float, y: float, z: float, rows: Array, end: int, away: Array) -> int:
    """Append those of the list ``near`` that are within reach: their rows to ``rows`` from ``end`` on, what
    they are away to ``away``; returns their number."""
    wide_vectors()
    px, py, pz, reach = spread(x), spread(y), spread(z), spread(near.dtype.type(1))
    found = 0
    for at in range(0, count, lanes_of(near)):
        dx, dy, dz = px - load(near, at), py - load(near, WIDTH + at), pz - load(near, 2 * WIDTH + at)
        square = dx * dx + dy * dy + dz * dz
        append_below(square, reach, load(near, 3 * WIDTH + at), rows, end + found)
        append_below(square, reach, dx, away, found)
        append_below(square, reach, dy, away, WIDTH + found)
        append_below(square, reach, dz, away, 2 * WIDTH + found)
        found += count_below(square, reach)
    return found


@njit(fastmath=FAST, error_model="numpy")
def _sloped(away: Array, count: int, slope: Array, end: int) -> float:
    """Fill ``slope`` from ``end`` on, and the fourth column of ``away`` with 4 / q^2; returns sum phi."""
    wide_vectors()
    kind = away.dtype.type
    zero, one, four, half, tiny = kind(0), kind(1), kind(4), kind(0.5), kind(NEAREST)
    total = zero
    a, b, c, d = np.uintp(0), np.uintp(1), np.uintp(2), np.uintp(3)
    y, z, last, first = np.uintp(WIDTH), np.uintp(2 * WIDTH), np.uintp(3 * WIDTH), np.uintp(end)
    for k in range(np.uintp(count)):
        dx, dy, dz = away[k], away[y + k], away[z + k]
        r2 = dx * dx + dy * dy + dz * dz + tiny
        root = double_inverse_root(r2)
        q = half * r2 * root
        u = one - q
        u = u if u > zero else zero
        w = u * u * u
        total += w * u * (four * q + one)
        away[last + k] = root * root
        slope[a, first + k], slope[b, first + k], slope[c, first + k] = w * dx, w * dy, w * dz
        slope[d, first + k] = w
    return total


@njit(fastmath=FAST, error_model="numpy")
def _rubbed(
    away: Array, count: int, rows: Array, slope: Array, end: int, v: Array, mass: Array, pu: float, pv: float,
    pw: float, m: float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Four times the sums of ``fill`` of friction and what it takes."""
    wide_vectors()
    kind = away.dtype.type
    fx, fy, fz, lost = kind(0), kind(0), kind(0), kind(0)
    a, b, c, d = np.uintp(0), np.uintp(1), np.uintp(2), np.uintp(3)
    y, z, last, first = np.uintp(WIDTH), np.uintp(2 * WIDTH), np.uintp(3 * WIDTH), np.uintp(end)
    for k in range(np.uintp(count)):
        j = np.uintp(rows[first + k])
        dx, dy, dz = away[k], away[y + k], away[z + k]
        meet = (pu - v[a, j]) * dx + (pv - v[b, j]) * dy + (pw - v[c, j]) * dz
        friction = slope[d, first + k] * (m + mass[j]) * meet * away[last + k]
        fx += friction * dx
        fy += friction * dy
        fz += friction * dz
        lost += friction * meet
    return fx, fy, fz, lost


@njit(fastmath=FAST, error_model="numpy")
def _squares(
    slope: Array, rows: Array, first: int, count: int, inverse: Array
) -> tuple[float, float, float, float]:
    """Sums of the slopes, and of their squares times the inverse mass of each."""
    wide_vectors()
    kind = slope.dtype.type
    fx, fy, fz, total = kind(0), kind(0), kind(0), kind(0)
    a, b, c, start = np.uintp(0), np.uintp(1), np.uintp(2), np.uintp(first)
    for s in range(np.uintp(count)):
        k = start + s
        dx, dy, dz = slope[a, k], slope[b, k], slope[c, k]
        fx += dx
        fy += dy
        fz += dz
        total += (dx * dx + dy * dy + dz * dz) * inverse[np.uintp(rows[k])]
    return fx, fy, fz, total


@parallel(fastmath=FAST, error_model="numpy")
def _fill(
    chunk: int,
    place: Array, v: Array, mass: Array, inverse: Array, start: Array, origin: Array, spacing: Array,
    cells: Array, order: Array, real: int, room: int, rows: Array, slope: Array, first: Array, last: Array,
    sums: Array, need: Array,
) -> None:  # fmt: skip
    """As ``Lists.fill`` tells; ``place`` (4, n + LANES) with the sorted rows behind the coordinates; ``need``
    (CHUNKS,) is 1 where the ``room`` of a chunk ends too soon."""
    n = len(order)
    p, behind = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
    need[chunk] = 0
    if p == behind:
        return
    near, away = np.zeros(4 * WIDTH, place.dtype), np.zeros(4 * WIDTH, place.dtype)
    box, quarter = np.empty((2, 3), place.dtype), place.dtype.type(0.25)
    runs = np.empty((cells[0] * cells[1], 2), np.int64)
    cell, end = first_cell(p, start), chunk * room
    while p < behind:
        cell, after = group_end(p, behind, start, cell)
        p, stop = _without_images(order, real, p, after)
        if p == stop:
            p = after
            continue
        box_of(place.T, p, stop, box)
        number = runs_around(box, start, origin, spacing, cells, 1.0, runs)
        saved = runs[:number].copy()
        count, run = fill_list(place, runs, number, 0, near)
        several = run < number
        for t in range(p, stop):
            if order[t] >= real:
                continue
            first[t] = end
            sums[:, t] = 0
            if several:
                runs[:number] = saved
                count, run = fill_list(place, runs, number, 0, near)
            while True:
                if end + count + LANES > (chunk + 1) * room:
                    need[chunk] = 1
                    return
                found = _kept(near, count, place[0, t], place[1, t], place[2, t], rows, end, away)
                whole = (found + LANES - 1) // LANES * LANES
                for k in range(found, whole):
                    # Out of reach, of no mass and no speed.
                    rows[end + k], away[k] = n, 2.0
                sums[0, t] += _sloped(away, whole, slope, end)
                fx, fy, fz, lost = _rubbed(
                    away, whole, rows, slope, end, v, mass, v[0, t], v[1, t], v[2, t], mass[t]
                )
                sums[1, t] += quarter * fx
                sums[2, t] += quarter * fy
                sums[3, t] += quarter * fz
                sums[4, t] += quarter * lost
                fx, fy, fz, lost = _squares(slope, rows, end, whole, inverse)
                sums[5, t] += fx
                sums[6, t] += fy
                sums[7, t] += fz
                sums[8, t] += lost
                end += whole
                if run == number:
                    break
                count, run = fill_list(place, runs, number, run, near)
            last[t] = end
        p = after


@njit(fastmath=FAST, error_model="numpy")
def pushed(
    slope: Array, rows: Array, first: int, last: int, load: Array, own: float
) -> tuple[float, float, float]:
    """Sum over a list of the loads of both times the slope."""
    wide_vectors()
    kind = slope.dtype.type
    fx, fy, fz = kind(0), kind(0), kind(0)
    a, b, c = np.uintp(0), np.uintp(1), np.uintp(2)
    for k in range(np.uintp(first), np.uintp(last)):
        both = own + load[np.uintp(rows[k])]
        fx += both * slope[a, k]
        fy += both * slope[b, k]
        fz += both * slope[c, k]
    return fx, fy, fz


@njit(fastmath=FAST, error_model="numpy")
def closing(
    slope: Array, rows: Array, first: int, last: int, v: Array, pu: float, pv: float, pw: float
) -> float:
    """Sum over a list of the slopes times the velocity away from each."""
    wide_vectors()
    total = slope.dtype.type(0)
    a, b, c = np.uintp(0), np.uintp(1), np.uintp(2)
    for k in range(np.uintp(first), np.uintp(last)):
        j = np.uintp(rows[k])
        total += (pu - v[a, j]) * slope[a, k] + (pv - v[b, j]) * slope[b, k] + (pw - v[c, j]) * slope[c, k]
    return total


@njit(fastmath=FAST, error_model="numpy")
def uneven(
    slope: Array, rows: Array, first: int, last: int, push: Array, own: float, mass: Array, m: float,
    gx: float, gy: float, gz: float, lifted: float,
) -> float:  # fmt: skip
    """Sum over a list of (1 - q)^3 times what V_0 p differs by from that at rest, as ``forces`` has it."""
    wide_vectors()
    kind = slope.dtype.type
    half, zero, flow = kind(0.5), kind(0), kind(0)
    a, b, c, d = np.uintp(0), np.uintp(1), np.uintp(2), np.uintp(3)
    for k in range(np.uintp(first), np.uintp(last)):
        j = np.uintp(rows[k])
        theirs = push[j]
        fall = gx * slope[a, k] + gy * slope[b, k] + gz * slope[c, k]
        part = slope[d, k] * (theirs - own) + (half * (m + mass[j]) - lifted) * fall
        flow += part if theirs > zero else zero
    return flow
