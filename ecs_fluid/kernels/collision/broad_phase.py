"""Broad phase: cheap tests that most paths of particles surely meet no body.

All functions are inlined into the loop that calls them: passing the tables of bodies to a function costs more
than the few tens of nanoseconds that are spent here.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.bodies.table import BALL
from ecs_fluid.kernels.collision.swept_bodies import Obstacles
from ecs_fluid.kernels.collision.swept_contact import passes_by
from ecs_fluid.kernels.compiled.vector3 import (
    INLINE_EXACT,
    Vector,
    dot,
    length,
    matrix_at,
    minus,
    rotated_back,
    row_of,
)

MOST_VISITED = 64
"""Most cells of one path that are examined; for a longer path all bodies are."""


@njit(**INLINE_EXACT)
def _cell(x: float, origin: float, inverse: float, cells: int) -> int:
    """Cell along one axis, clamped to the grid and one cell more on each side; -1 for NaN."""
    s = (x - origin) * inverse
    if not s >= 0.0:
        return -1
    if s >= cells:
        return cells
    return int(s)


@njit(**INLINE_EXACT)
def _cells_along(obstacles: Obstacles, a: Vector, b: Vector, pad: float, k: int) -> tuple[int, int]:
    """First and last cell along axis k that the path from a to b reaches into."""
    origin, inverse, cells = obstacles.origin[k], obstacles.inverse[k], obstacles.cells[k]
    first = _cell(min(a[k], b[k]) - pad, origin, inverse, cells)
    return max(first, 0), min(_cell(max(a[k], b[k]) + pad, origin, inverse, cells), cells - 1)


@njit(**INLINE_EXACT)
def cells_of_path(
    obstacles: Obstacles, a: Vector, b: Vector, pad: float
) -> tuple[int, int, int, int, int, int, int]:
    """(Number of cells that the path from a to b reaches into, first and last of them along each axis)."""
    if obstacles.bend > 0.0:
        pad += obstacles.bend * length(minus(b, a))
    i0, i1 = _cells_along(obstacles, a, b, pad, 0)
    j0, j1 = _cells_along(obstacles, a, b, pad, 1)
    k0, k1 = _cells_along(obstacles, a, b, pad, 2)
    if i1 < i0 or j1 < j0 or k1 < k0:
        return 0, 0, -1, 0, -1, 0, -1
    return (i1 - i0 + 1) * (j1 - j0 + 1) * (k1 - k0 + 1), i0, i1, j0, j1, k0, k1


@njit(**INLINE_EXACT)
def _one_plane_separates(
    obstacles: Obstacles, hulls: Hulls, i: int, a: Vector, b: Vector, pad: float
) -> bool:
    """Whether one plane of polytope i has both ends of the path outside, by more than `pad`."""
    p = rotated_back(matrix_at(obstacles.turn0, i), minus(a, row_of(obstacles.x0, i)))
    q = rotated_back(matrix_at(obstacles.turn1, i), minus(b, row_of(obstacles.x1, i)))
    hull = obstacles.hull[i]
    planes = hulls.planes
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        normal, d = row_of(planes, k), planes[k, 3] + pad
        if dot(normal, p) > d and dot(normal, q) > d:
            return True
    return False


@njit(**INLINE_EXACT)
def far_from_all(obstacles: Obstacles, hulls: Hulls, a: Vector, b: Vector, pad: float) -> bool:
    """Whether the path from a to b surely keeps `pad` from all solids.

    The path passes outside the bounding ball of every body near it, or stays above one of the body's planes.
    """
    number, i0, i1, j0, j1, k0, k1 = cells_of_path(obstacles, a, b, pad)
    if number > MOST_VISITED:
        return False
    for i in range(i0, i1 + 1):
        for j in range(j0, j1 + 1):
            for k in range(k0, k1 + 1):
                c = (i * obstacles.cells[1] + j) * obstacles.cells[2] + k
                for s in range(obstacles.start[c], obstacles.start[c + 1]):
                    body = obstacles.near[s]
                    if passes_by(obstacles, body, 0.0, a, b, obstacles.radius[body] + pad):
                        continue
                    if obstacles.shape[body] == BALL:
                        return False
                    if not _one_plane_separates(obstacles, hulls, body, a, b, pad):
                        return False
    return True


@njit(**INLINE_EXACT)
def well_inside(obstacles: Obstacles, hulls: Hulls, p: Vector, pad: float) -> bool:
    """Whether a place is `pad` inside all planes of every container at the end of the tick."""
    for i in obstacles.containers:
        hull = obstacles.hull[i]
        room = hulls.inner[hull] - pad
        d = minus(p, row_of(obstacles.x1, i))
        if room > 0.0 and dot(d, d) < room * room:
            continue
        place = rotated_back(matrix_at(obstacles.turn1, i), d)
        planes = hulls.planes
        for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
            if dot(row_of(planes, k), place) > planes[k, 3] - pad:
                return False
    return True


@njit(**INLINE_EXACT)
def far_outside(obstacles: Obstacles, hulls: Hulls, i: int, p: Vector, slack: float) -> bool:
    """Whether a place is surely more than `slack` outside a plane of container i at the start of the tick.

    All planes are at least `inner` from the centre. So moved outwards by `slack` they make the polytope, and
    the ball around it, larger by slack / inner at most.
    """
    d, hull = minus(p, row_of(obstacles.x0, i)), obstacles.hull[i]
    reach = (1.0 + 1e-9) * (1.0 + slack / hulls.inner[hull]) * hulls.radius[hull]
    return dot(d, d) > reach * reach
