"""Values handed over to neighbours, such that their sum and first moments are conserved.

Each particle p gives its value r_p away, to the particles q around it and to itself, in the shares

    W_pq = V_q w_pq (1 / S_p - (x_q - x_p - c_p) . B_p c_p),    S_p = sum_q V_q w_pq,

where c_p is the centroid of the particles around p, relative to p, and B_p the inverse of their second
moments about it (`neighbour_moments`). So sum_q W_pq = 1 and sum_q W_pq (x_q - x_p) = 0: the value stays
centred at p. If the particles around p hardly extend along some direction, the first moment along it is
conserved only in part.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import FAST, Array
from ecs_fluid.kernels.compiled.lanes import lanes_of, load, spread, store
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors
from ecs_fluid.kernels.grids.neighbours import (
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
    moment_of_lane,
)

GIVER_COLUMNS = 11
"""Columns of a particle that gives: x, y, z, h^2, 1 / S + c . B c, B c (3 columns), r (3)."""


@parallel(fastmath=FAST, error_model="numpy")
def _fill_givers(
    chunk: int, rows: Array, start: Array, origin: Array, spacing: Array, cells: Array, reach: float,
    uniform: bool, givers: Array,
) -> None:  # fmt: skip
    """Fill ``givers`` (n, GIVER_COLUMNS) from the rows x, y, z, h^2, V and r (3 columns)."""
    runs, box, targets, sums = lane_scratch(rows, cells, 10)
    inverse = np.empty(9, np.float64)
    for p, end in lane_groups(chunk, 0, len(rows), start, cells[2], lanes_of(rows)):
        number = lane_runs(rows, p, end, start, origin, spacing, cells, reach, box, runs, targets)
        add_moments(rows, runs, number, targets, uniform, sums)
        for t in range(p, end):
            inverse_moments(sums, t - p, np.float64(rows[t, 3]), -1, inverse)
            whole = moment_of_lane(sums, t - p, 0)
            share = 1.0 / whole
            for c in range(3):
                share += moment_of_lane(sums, t - p, 1 + c) / whole * inverse[c]
                givers[t, 5 + c], givers[t, 8 + c] = inverse[c], rows[t, 5 + c]
            for c in range(4):
                givers[t, c] = rows[t, c]
            givers[t, 4] = share


@njit(fastmath=FAST, error_model="numpy")
def _add_received(
    givers: Array, runs: Array, number: int, targets: Array, uniform: bool, sums: Array
) -> None:
    """Write what one target per lane gets from its neighbours, divided by its V, into ``sums``."""
    wide_vectors()
    kind, width = givers.dtype.type, lanes_of(givers)
    zero, one, two = spread(kind(0)), spread(kind(1)), spread(kind(2))
    px, py, pz = load(targets, 0), load(targets, width), load(targets, 2 * width)
    hq = load(targets, 3 * width)
    inverse = one / hq
    gx = gy = gz = zero
    for run in range(number):
        for p in range(runs[run, 0], runs[run, 1]):
            dx, dy, dz = px - spread(givers[p, 0]), py - spread(givers[p, 1]), pz - spread(givers[p, 2])
            if not uniform:
                inverse = two / (hq + spread(givers[p, 3]))
            slope = dx * spread(givers[p, 5]) + dy * spread(givers[p, 6]) + dz * spread(givers[p, 7])
            part = closeness(dx, dy, dz, inverse, one, zero) * (spread(givers[p, 4]) - slope)
            gx += part * spread(givers[p, 8])
            gy += part * spread(givers[p, 9])
            gz += part * spread(givers[p, 10])
    store(sums, 0, gx)
    store(sums, width, gy)
    store(sums, 2 * width, gz)


@parallel(fastmath=FAST, error_model="numpy")
def _received(
    chunk: int, givers: Array, volume: Array, start: Array, origin: Array, spacing: Array, cells: Array,
    reach: float, uniform: bool, order: Array, out: Array,
) -> None:  # fmt: skip
    """Fill ``out`` (n, 3) with what each row gets; ``givers`` are sorted by ``order``."""
    width = lanes_of(givers)
    runs, box, targets, sums = lane_scratch(givers, cells, 3)
    for p, end in lane_groups(chunk, 0, len(givers), start, cells[2], width):
        number = lane_runs(givers, p, end, start, origin, spacing, cells, reach, box, runs, targets)
        _add_received(givers, runs, number, targets, uniform, sums)
        for t in range(p, end):
            for c in range(3):
                out[order[t], c] = volume[order[t]] * sums[c * width + t - p]


def shared_with_neighbours(x: Array, values: Array, reach: Array) -> Array:
    """What each particle gets (n, 3) if all give their ``values`` (n, 3) away (see above), in the same unit.

    ``x`` (n, 3) m; ``reach`` (n,) m is the distance beyond which there are no neighbours. V is taken as
    proportional to the cube of the reach.
    """
    out = np.empty_like(values)
    if not len(x):
        return out
    far = float(reach.max())
    grid = search_grid(x, far * CELL_EDGE, max(len(x), 64))
    start, order = partition(x, *grid)
    volume = (reach / reach.max()) ** 3
    rows = packed(x, reach * reach, volume, values).take(order, axis=0)
    givers = np.empty((len(x), GIVER_COLUMNS), x.dtype)
    # A little further than the reach, so that a pair at its end is met from both sides or from neither.
    far *= 1.0 + 1e-5
    uniform = bool(reach.min() == reach.max())
    _fill_givers(rows, start, *grid, far, uniform, givers)
    _received(givers, volume, start, *grid, far, uniform, order, out)
    return out
