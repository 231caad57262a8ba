"""Gradient of a quantity that particles carry, from neighbours, such that its first two moments are exact.

With extensive values m_p (excess mass [kg]: excess density times volume) the result approximates
V_q grad(m / V) at x_q:

    G_q = - sum_p m_p V_q w_pq B_p (x_q - x_p - c_p),   w_pq = (1 - |x_q - x_p|^2 / h_pq^2)^2.

c_p is the centroid of the neighbours of p (p included) relative to x_p, weighted by V w; B_p is the inverse
of their second moments about the centroid; h_pq^2 is the mean of the squares of both reaches. So
sum_q G_q = 0, and the impulse of a cloud grows by exactly its weight: docs/notes/vorticity.md."""

from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import CHUNKS, FAST
from ecs_fluid.kernels.compiled.columns import bounds
from ecs_fluid.kernels.compiled.lanes import lanes_of, load, spread, store
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors
from ecs_fluid.kernels.grids.neighbours import (
    box_of,
    lane_groups,
    lane_runs,
    lane_scratch,
    packed,
    search_grid,
)
from ecs_fluid.kernels.grids.partition import partition
from ecs_fluid.kernels.vorticity.neighbour_moments import (
    CELL_EDGE,
    add_moments,
    closeness,
    inverse_moments,
)

_FIRST, _SECOND = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)
"""Row and column of the six entries xx, yy, zz, xy, xz, yz of a symmetric matrix."""


@parallel(fastmath=FAST, error_model="numpy")
def _neighbour_moments(
    chunk: int,
    rows: np.ndarray, start: np.ndarray, origin: np.ndarray, spacing: np.ndarray, cells: np.ndarray,
    reach: float, flat: int, uniform: bool, needed_box: np.ndarray, order: np.ndarray,
    needed_rows: int, moments: np.ndarray,
) -> None:  # fmt: skip
    """Fill ``moments`` (n, 13) from the rows x, y, z, h^2, V and m.

    Its columns are x, y, z, h^2, m_p B_p c_p (3) and the six entries of m_p B_p. The last nine are left 0
    where nobody needs them: in groups of rows further than ``reach`` from ``needed_box`` (2, 3), and in
    groups without any of the first ``needed_rows`` rows before sorting (``order`` has their numbers)."""
    runs, box, targets, sums = lane_scratch(rows, cells, 10)
    inverse = np.empty(9, np.float64)
    for p, end in lane_groups(chunk, 0, len(rows), start, cells[2], lanes_of(rows)):
        box_of(rows, p, end, box)
        if _least_row(order, p, end) >= needed_rows or _are_apart(box, needed_box, reach):
            for t in range(p, end):
                for c in range(13):
                    moments[t, c] = rows[t, c] if c < 4 else 0.0
            continue
        number = lane_runs(rows, p, end, start, origin, spacing, cells, reach, box, runs, targets)
        add_moments(rows, runs, number, targets, uniform, sums)
        for t in range(p, end):
            inverse_moments(sums, t - p, np.float64(rows[t, 3]), flat, inverse)
            for c in range(4):
                moments[t, c] = rows[t, c]
            for c in range(9):
                moments[t, 4 + c] = rows[t, 5] * inverse[c]


@njit(error_model="numpy", forceinline=True)
def _are_apart(box: np.ndarray, other: np.ndarray, reach: float) -> bool:
    """Whether two boxes, each (2, 3) with lower and upper corner, are further apart than ``reach``."""
    square = 0.0
    for c in range(3):
        gap = max(box[0, c] - other[1, c], other[0, c] - box[1, c], 0.0)
        square += gap * gap
    return square > reach * reach


@njit(error_model="numpy", forceinline=True)
def _least_row(order: np.ndarray, first: int, last: int) -> int:
    """The smallest of ``order[first:last]``."""
    least = order[first]
    for t in range(first + 1, last):
        least = min(least, order[t])
    return int(least)


@parallel(error_model="numpy")
def _mirrored_moments(
    chunk: int, of: np.ndarray, turns: np.ndarray, place: np.ndarray, moments: np.ndarray
) -> None:
    """Fill in the moments of images, S v and S M S^T, from those of the particles that they show, v and M.

    S is ``turns`` (m, 3, 3), ``of`` (m,) the row of the particle. ``place`` (n,) is the row in ``moments`` of
    every particle and image; images are the last m.
    """
    m = of.shape[0]
    count, full = place.shape[0] - m, np.empty((3, 3))
    for i in range(chunk * m // CHUNKS, (chunk + 1) * m // CHUNKS):
        own, image = place[of[i]], place[count + i]
        for c in range(6):
            full[_FIRST[c], _SECOND[c]] = full[_SECOND[c], _FIRST[c]] = moments[own, 7 + c]
        for a in range(3):
            total = 0.0
            for b in range(3):
                total += turns[i, a, b] * moments[own, 4 + b]
            moments[image, 4 + a] = total
        for c in range(6):
            total = 0.0
            for a in range(3):
                for b in range(3):
                    total += turns[i, _FIRST[c], a] * full[a, b] * turns[i, _SECOND[c], b]
            moments[image, 7 + c] = total


@njit(fastmath=FAST, error_model="numpy")
def _add_gradient(
    moments: np.ndarray, runs: np.ndarray, number: int, targets: np.ndarray, uniform: bool, sums: np.ndarray
) -> None:
    """Write G / V (3) of one target per lane, summed over the neighbours in ``runs``, into ``sums``."""
    wide_vectors()
    kind, width = moments.dtype.type, lanes_of(moments)
    zero, one, two = spread(kind(0)), spread(kind(1)), spread(kind(2))
    px, py, pz = load(targets, 0), load(targets, width), load(targets, 2 * width)
    hq = load(targets, 3 * width)
    inverse = one / hq
    gx = gy = gz = zero
    for run in range(number):
        for p in range(runs[run, 0], runs[run, 1]):
            dx, dy, dz = px - spread(moments[p, 0]), py - spread(moments[p, 1]), pz - spread(moments[p, 2])
            if not uniform:
                inverse = two / (hq + spread(moments[p, 3]))
            w = closeness(dx, dy, dz, inverse, one, zero)
            xy, xz, yz = spread(moments[p, 10]), spread(moments[p, 11]), spread(moments[p, 12])
            gx += w * (spread(moments[p, 4]) - spread(moments[p, 7]) * dx - xy * dy - xz * dz)
            gy += w * (spread(moments[p, 5]) - xy * dx - spread(moments[p, 8]) * dy - yz * dz)
            gz += w * (spread(moments[p, 6]) - xz * dx - yz * dy - spread(moments[p, 9]) * dz)
    store(sums, 0, gx)
    store(sums, width, gy)
    store(sums, 2 * width, gz)


@parallel(fastmath=FAST, error_model="numpy")
def _weighted_gradient(
    chunk: int,
    moments: np.ndarray, volume: np.ndarray, start: np.ndarray, origin: np.ndarray, spacing: np.ndarray,
    cells: np.ndarray, reach: float, uniform: bool, order: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Fill ``out`` (count, 3) with G of the first rows; ``moments`` (n, 13) are sorted by ``order``."""
    width = lanes_of(moments)
    runs, box, targets, sums = lane_scratch(moments, cells, 3)
    for p, end in lane_groups(chunk, 0, len(moments), start, cells[2], width):
        if _least_row(order, p, end) >= out.shape[0]:
            continue
        number = lane_runs(moments, p, end, start, origin, spacing, cells, reach, box, runs, targets)
        _add_gradient(moments, runs, number, targets, uniform, sums)
        for t in range(p, end):
            row = order[t]
            if row < out.shape[0]:
                for c in range(3):
                    out[row, c] = volume[row] * sums[c * width + t - p]


def weighted_gradient(
    x: np.ndarray,
    values: np.ndarray,
    reach: np.ndarray,
    volume: np.ndarray,
    flat: int = -1,
    count: int | None = None,
    mirrors: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """G (count, 3): volume times gradient of values per volume, with exact moments (see above).

    Args:
        x: (n, 3) m.
        values: (n,) extensive (kg, say).
        reach: (n,) m, distance beyond which there are no neighbours, about two to three spacings.
        volume: (n,) m^3; areas in m^2 with ``flat``.
        flat: 0, 1 or 2, the axis across a population that lies in one plane; G has no component along it. -1
            for populations in space.
        count: G is computed for the first ``count`` rows, all by default. The other rows are images of these
            and serve as neighbours.
        mirrors: for each image the row that it shows, and the linear part (n - count, 3, 3) of the map that
            makes it. Only for maps under which all particles and images together are symmetric: then the
            moments of images follow from those of particles, and images are needed within one reach only, not
            two.

    Returns:
        G, in the unit of the values per m.
    """
    count = len(x) if count is None else count
    out = np.empty_like(x[:count])
    if count == 0:
        return out
    far = float(reach.max())
    grid = search_grid(x, far * CELL_EDGE, max(len(x), 64))
    start, order = partition(x, *grid)
    rows = packed(x, reach * reach, volume, values).take(order, axis=0)
    moments = np.empty((len(x), 13), x.dtype)
    # A little further than the reach, so that a pair at its end is met from both sides or from neither.
    far *= 1.0 + 1e-5
    uniform = bool(reach.min() == reach.max())
    needed_box, needed_rows = np.stack(bounds(x[:count])), len(x) if mirrors is None else count
    _neighbour_moments(rows, start, *grid, far, flat, uniform, needed_box, order, needed_rows, moments)
    if mirrors is not None:
        place = np.empty(len(x), np.int64)
        place[order] = np.arange(len(x))
        _mirrored_moments(*mirrors, place, moments)
    _weighted_gradient(moments, volume, start, *grid, far, uniform, order, out)
    return out
