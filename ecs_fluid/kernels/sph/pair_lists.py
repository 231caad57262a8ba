"""Lists of the pairs of liquid particles, and sums over them.

A pressure solve sums over the same pairs many times, and reading their data takes most of its time. So each
particle keeps a list of the rows within reach, images included. With each partner the list holds four
numbers: the slope (1 - q)^3 r / R (3), where r points from the partner to the particle, and (1 - q)^3. In
single precision they are integers of 16 bits, rounded to 3.2e-6, alike for both partners of a pair. The
values to be summed lie in groups of four too, so that a pair costs one load. Each list is filled up to whole
vectors with the row behind the last, whose values are 0. A sum is one loop over a list, in an order that
depends only on positions.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST, Array
from ecs_fluid.kernels.compiled.lanes import (
    Lanes,
    append_below,
    count_below,
    gather_fours,
    lane_sum,
    lanes_of,
    load,
    load_as,
    load_four,
    repeat_four,
    spread,
    store_columns,
    sum_fours,
    where_fourth_positive,
)
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import INLINE, LANES, double_inverse_root, wide_vectors
from ecs_fluid.kernels.grids.neighbours import (
    LIST_LENGTH,
    WIDTH,
    box_of,
    fill_list,
    list_groups,
    runs_around,
)
from ecs_fluid.kernels.sph.forces import TINY

SPARE_ROOM = 1.3
"""Room for pairs at first, relative to what a lattice needs."""

LARGEST_SLOPE = 27 / 256
"""Largest value of (1 - q)^3 q, the size of a slope."""

LARGEST_INTEGER = 2**15 - 1
"""The integer of 16 bits that stands for the largest slope, and for the largest (1 - q)^3."""

ROWS_IN_16_BITS = 2**16
"""Numbers of rows below this fit into 16 bits."""


class PairLists:
    """Room for the lists of all pairs. It is kept from step to step, but is no part of the state.

    rows (CHUNKS * room,): numbers of the partners. slope (4 * CHUNKS * room,): four numbers per pair, the
    slope (1 - q)^3 r / R in units of `unit` (3) and (1 - q)^3 in units of `unit` / `LARGEST_SLOPE`. first,
    last (n,): where the list of each particle begins and ends in ``rows``.
    """

    def __init__(self) -> None:
        self.room, self.unit = 0, 1.0
        self.rows = np.empty(0, np.int32)
        self.first = self.last = np.empty(0, np.int64)
        self.slope = np.empty(0)

    def fill(
        self, support: float, place: Array, v: Array, mass: Array, numbers: Array, start: Array,
        grid: tuple[Array, Array, Array], order: Array, real: int,
    ) -> Array:  # fmt: skip
        """Make the lists; returns sums (9, real) over the list of each particle.

        The rows of the result are the sums of phi; of the friction (1 - q)^3 (m + m') (u.r / r^2) r (3); of
        its power (1 - q)^3 (m + m') (u.r / r)^2; of the slopes (3); and of the squares of the slopes divided
        by m', the mass of the partner.

        ``place`` (n, 3) in reaches from LEAST_PLACE on, ``v`` (n, 3) m/s and ``mass`` (n,) kg are in the
        order of rows. ``start``, ``grid`` and ``order`` (n,) are as in ``forces``. ``numbers`` (n,) are the
        new numbers of the rows in sorted order: those of particles lie below ``real``, those of images from
        it on.
        """
        many, single = len(order), place.dtype == np.float32
        sorted_places = np.empty((4, many + LANES), place.dtype)
        partners = np.empty((many + 1, 8), place.dtype)
        _sort_data(place, v, mass, order, numbers, sorted_places, partners)
        # The padding is at 0, out of reach of all.
        sorted_places[:, many:], partners[many] = 0, 0
        sums, need = np.empty((9, real), place.dtype), np.empty(CHUNKS, np.int64)
        self.first, self.last = np.empty(real, np.int64), np.empty(real, np.int64)
        self.unit = LARGEST_SLOPE / LARGEST_INTEGER if single else LARGEST_SLOPE
        rows, slope = np.uint16 if many < ROWS_IN_16_BITS else np.uint32, np.int16 if single else place.dtype
        if not self.room:
            each = 4 / 3 * math.pi * support**3 + LANES
            self.room = int(SPARE_ROOM * each * -(-many // CHUNKS)) + 2 * LIST_LENGTH
        while True:
            if self.rows.size != self.room * CHUNKS or self.rows.dtype != rows or self.slope.dtype != slope:
                self.rows = np.empty(self.room * CHUNKS, rows)
                self.slope = np.empty(4 * self.room * CHUNKS, slope)
            _fill(
                sorted_places, partners, start, *grid, order, real, self.room,
                place.dtype.type(1 / self.unit), self.rows, self.slope, self.first, self.last, sums, need,
            )  # fmt: skip
            if not need.any():
                return sums
            self.room = self.room * 3 // 2


@parallel()
def _sort_data(
    chunk: int,
    place: Array, v: Array, mass: Array, order: Array, numbers: Array, sorted_places: Array, partners: Array,
) -> None:  # fmt: skip
    """Fill ``sorted_places`` (4, n or more) and ``partners`` (n + 1, 8).

    The first has positions and new numbers in sorted order, the second position, mass, velocity and 1 / mass
    by new numbers.
    """
    n = len(order)
    for s in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        row, number = order[s], numbers[s]
        for k in range(3):
            sorted_places[k, s] = partners[number, k] = place[row, k]
            partners[number, 4 + k] = v[row, k]
        sorted_places[3, s], partners[number, 3], partners[number, 7] = number, mass[row], 1 / mass[row]


@njit(fastmath=FAST, error_model="numpy")
def _append_within_reach(near: Array, count: int, x: float, y: float, z: float, kept: Array) -> int:
    """Write the numbers of the entries of the list ``near`` within reach into ``kept``; returns how many.

    ``x``, ``y``, ``z`` is the particle, in reaches.
    """
    wide_vectors()
    px, py, pz, reach = spread(x), spread(y), spread(z), spread(near.dtype.type(1))
    found = 0
    for at in range(0, count, lanes_of(near)):
        dx, dy, dz = px - load(near, at), py - load(near, WIDTH + at), pz - load(near, 2 * WIDTH + at)
        square = dx * dx + dy * dy + dz * dz
        append_below(square, reach, load(near, 3 * WIDTH + at), kept, found)
        found += count_below(square, reach, lanes_of(near))
    return found


@njit(fastmath=FAST, error_model="numpy")
def _append_pairs(
    partners: Array, kept: Array, count: int, me: int, full: float, rows: Array, slope: Array, end: int,
    columns: Array,
) -> tuple[float, float, float, float, float, float, float, float, float]:  # fmt: skip
    """Write the pairs of particle ``me`` with the first ``count`` of ``kept`` into ``rows`` and ``slope``.

    They are written from ``end`` on; ``full`` is 1 / `PairLists.unit`. Returns the sums of `PairLists.fill`
    over these pairs, those of friction times 4. ``columns`` (8, WIDTH) is scratch.
    """
    wide_vectors()
    kind = columns.dtype.type
    for part in range(0, count, lanes_of(columns)):
        store_columns(partners, kept, part, columns, part, WIDTH)
    x, y, z, m = partners[me, 0], partners[me, 1], partners[me, 2], partners[me, 3]
    vx, vy, vz = partners[me, 4], partners[me, 5], partners[me, 6]
    zero, one, four, half, tiny = kind(0), kind(1), kind(4), kind(0.5), kind(TINY)
    top = full * kind(LARGEST_SLOPE)
    total, fx, fy, fz, lost, sx, sy, sz, squares = zero, zero, zero, zero, zero, zero, zero, zero, zero
    first = np.uintp(end)
    for k in range(np.uintp(count)):
        dx, dy, dz = x - columns[0, k], y - columns[1, k], z - columns[2, k]
        r2 = dx * dx + dy * dy + dz * dz + tiny
        root = double_inverse_root(r2)
        q = half * r2 * root
        u = one - q
        u = u if u > zero else zero
        w = u * u * u
        total += w * u * (four * q + one)
        u_dot_r = (vx - columns[4, k]) * dx + (vy - columns[5, k]) * dy + (vz - columns[6, k]) * dz
        friction = w * (m + columns[3, k]) * u_dot_r * (root * root)
        fx += friction * dx
        fy += friction * dy
        fz += friction * dz
        lost += friction * u_dot_r
        gx, gy, gz = w * dx, w * dy, w * dz
        sx += gx
        sy += gy
        sz += gz
        squares += (gx * gx + gy * gy + gz * gz) * columns[7, k]
        at = np.uintp(4) * (first + k)
        slope[at], slope[at + np.uintp(1)] = full * gx, full * gy
        slope[at + np.uintp(2)], slope[at + np.uintp(3)] = full * gz, top * w
        rows[first + k] = kept[k]
    return total, fx, fy, fz, lost, sx, sy, sz, squares


@parallel(fastmath=FAST, error_model="numpy")
def _fill(
    chunk: int,
    sorted_places: Array, partners: Array, start: Array, origin: Array, spacing: Array, cells: Array,
    order: Array, real: int, room: int, full: float, rows: Array, slope: Array, first: Array, last: Array,
    sums: Array, need: Array,
) -> None:  # fmt: skip
    """The loop of ``PairLists.fill`` over one chunk of the particles.

    ``full`` is 1 / `PairLists.unit`. ``need`` (CHUNKS,) is set to 1 if the ``room`` of a chunk is too small.
    """
    n, kind, end = len(order), partners.dtype.type, chunk * room
    need[chunk] = 0
    near, columns = np.zeros(4 * WIDTH, partners.dtype), np.empty((8, WIDTH), partners.dtype)
    kept, box, quarter = np.empty(WIDTH, np.int32), np.empty((2, 3), partners.dtype), kind(0.25)
    runs = np.empty((cells[0] * cells[1], 2), np.int64)
    for p, stop in list_groups(chunk, order, real, start):
        box_of(sorted_places.T, p, stop, box)
        number = runs_around(box, start, origin, spacing, cells, 1.0, runs)
        saved = runs[:number].copy()
        count, run = fill_list(sorted_places, runs, number, 0, near)
        several = run < number
        for t in range(p, stop):
            if order[t] >= real:
                continue
            row = int(sorted_places[3, t])
            first[row] = end
            sums[:, row] = 0
            if several:
                runs[:number] = saved
                count, run = fill_list(sorted_places, runs, number, 0, near)
            while True:
                if end + count + LANES > (chunk + 1) * room:
                    need[chunk] = 1
                    return
                x, y, z = sorted_places[0, t], sorted_places[1, t], sorted_places[2, t]
                found = _append_within_reach(near, count, x, y, z, kept)
                whole = (found + LANES - 1) // LANES * LANES
                kept[found:whole] = n
                part = _append_pairs(partners, kept, whole, row, full, rows, slope, end, columns)
                sums[0, row] += part[0]
                for k in range(1, 5):
                    sums[k, row] += quarter * part[k]
                for k in range(5, 9):
                    sums[k, row] += part[k]
                end += whole
                if run == number:
                    break
                count, run = fill_list(sorted_places, runs, number, run, near)
            last[row] = end


@njit(**INLINE)
def slope_sum(slope: Array, rows: Array, first: int, last: int, fours: Array, at: int, sign: float) -> Lanes:
    """Sum over a list of slopes times (``fours`` of the partner + ``sign`` times ``fours`` of row ``at``).

    Returns four numbers: the four components of each pair are multiplied one by one. ``first`` and ``last``
    bound the list.
    """
    zero, width = fours.dtype.type(0), lanes_of(fours)
    mine, one, two = spread(sign) * repeat_four(load_four(fours, 4 * at)), spread(zero), spread(zero)
    for k in range(4 * first, 4 * last, 2 * width):
        one += (mine + gather_fours(fours, rows, k // 4)) * load_as(slope, k, zero)
        other = k + width
        two += (mine + gather_fours(fours, rows, other // 4)) * load_as(slope, other, zero)
    return sum_fours(one + two)


@njit(**INLINE)
def slope_dot_sum(slope: Array, rows: Array, first: int, last: int, fours: Array, own: Array) -> float:
    """Sum over a list of the dot products of (``own`` + ``fours`` of the partner) with the slopes.

    A dot product has four terms. Only partners count whose fourth number is above zero: those under pressure.
    """
    zero = fours.dtype.type(0)
    mine, total = repeat_four(load_four(own, 0)), spread(zero)
    for k in range(4 * first, 4 * last, lanes_of(fours)):
        theirs = gather_fours(fours, rows, k // 4)
        total += where_fourth_positive(theirs, mine + theirs) * load_as(slope, k, zero)
    return lane_sum(total)
