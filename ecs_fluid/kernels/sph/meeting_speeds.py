"""Relative speeds at which particles of a liquid meet; they limit steps, lest particles pass through others.

Two particles keep their relative velocity for a time T, since gravity is the same for both. With
r = x_i - x_j and u = v_i - v_j they are closest at the time s = -r . u / u^2, clamped to [0, T], and they
meet if |r + s u| < R.
"""

from __future__ import annotations

import numpy as np

from ecs_fluid.kernels.compiled import CHUNKS, FAST, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.grids.grid import grid_for_radius
from ecs_fluid.kernels.grids.neighbours import runs_around, search_box
from ecs_fluid.kernels.grids.partition import gather_sorted, partition


@parallel(fastmath=FAST, error_model="numpy")
def _meeting_squares(
    chunk: int,
    swift: Array, x: Array, v: Array, place: Array, velocity: Array, start: Array, origin: Array,
    spacing: Array, cells: Array, reach: float, time: float, most: float, found: Array,
) -> None:  # fmt: skip
    """Fill ``found`` (CHUNKS,) with the squared meeting speed of one chunk of the rows ``swift``.

    ``place`` and ``velocity`` (3, n) are all particles in sorted order, ``most`` is the largest speed.
    """
    n, kind, top = len(swift), place.dtype.type, place.dtype.type(0)
    zero, near, late, tiny = kind(0), kind(reach * reach), kind(time), kind(1e-30)
    box, runs = np.empty((2, 3)), np.empty((cells[0] * cells[1], 2), np.int64)
    for k in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        i = swift[k]
        px, py, pz, pu, pv, pw = x[i, 0], x[i, 1], x[i, 2], v[i, 0], v[i, 1], v[i, 2]
        for a in range(3):
            box[0, a] = box[1, a] = x[i, a]
        far = reach + time * (np.sqrt(pu * pu + pv * pv + pw * pw) + most)
        for run in range(runs_around(box, start, origin, spacing, cells, far, runs)):
            for t in range(np.uintp(runs[run, 0]), np.uintp(runs[run, 1])):
                dx, dy, dz = px - place[0, t], py - place[1, t], pz - place[2, t]
                du, dv, dw = pu - velocity[0, t], pv - velocity[1, t], pw - velocity[2, t]
                square = du * du + dv * dv + dw * dw
                at = -(dx * du + dy * dv + dz * dw) / (square + tiny)
                at = at if at > zero else zero
                at = at if at < late else late
                dx, dy, dz = dx + at * du, dy + at * dv, dz + at * dw
                square = square if dx * dx + dy * dy + dz * dz < near else zero
                top = square if square > top else top
    found[chunk] = top


def meeting_speed(x: Array, v: Array, swift: Array, reach: float, time: float) -> float:
    """Largest relative speed, m/s, of a particle of the rows ``swift`` (k,) and any other that it meets.

    ``x``, ``v`` (n, 3) m and m/s. Two particles meet if they come within ``reach`` m in ``time`` s.
    """
    room = reach, 8 * len(x) + 64
    grid = grid_for_radius(*search_box(x, *room), *room)
    start, order = partition(x, *grid)
    place, velocity = gather_sorted(x, order), gather_sorted(v, order)
    most = float(np.sqrt((v[swift].astype(np.float64) ** 2).sum(axis=1).max()))
    found = np.empty(CHUNKS)
    _meeting_squares(swift, x, v, place, velocity, start, *grid, reach, time, most, found)
    return float(np.sqrt(found.max()))


def wall_speed(x: Array, v: Array, planes: Array, gravity: Array, reach: float, time: float) -> float:
    """Largest speed, m/s, of a particle towards or away from a plane of a container; 0 if none is near.

    A plane counts if the particle is nearer to it than ``reach`` m now or ``time`` s later. ``x``, ``v``
    (n, 3) m and m/s; ``planes`` (k, 13) from ``container_planes``; ``gravity`` (3,) m/s^2.
    """
    normal, spin = planes[:, :3], planes[:, 7:10]
    gap = planes[:, 3] - x @ normal.T
    foot = x[:, None] + gap[..., None] * normal - planes[:, 10:13]
    wall = planes[:, 4:7] + np.cross(spin, foot)
    speed = ((v[:, None] - wall) * normal).sum(axis=2)
    later = gap - time * speed - 0.5 * time**2 * (normal @ gravity)
    met = np.minimum(gap, later) < reach
    return float(np.abs(speed[met]).max(initial=0.0))
