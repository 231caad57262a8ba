"""Which particles are near the surface of a body, and where that surface is.

Distances are exact: from the ball, or from the faces, edges and corners of a polytope; inside a container
from the nearest wall. Bodies are found by the cell of `Obstacles` in which the particle lies, so the cost
grows with what is near bodies.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels import CHUNKS
from ecs_fluid.kernels.contacts import BALL, CONTAINER
from ecs_fluid.kernels.obstacles import Obstacles, cell_of
from ecs_fluid.kernels.polytope import Hulls, closest, plane_bound
from ecs_fluid.kernels.rotation import times, times_transposed


@njit(cache=True)
def _surface(obstacles: Obstacles, hulls: Hulls, i: int, p: np.ndarray, n: np.ndarray) -> float:
    """Signed distance of p from body i at the end of the tick, m; n gets the normal towards the fluid."""
    d = p - obstacles.x1[i]
    if obstacles.shape[i] == BALL:
        size = math.sqrt((d * d).sum())
        if size > 0.0:
            n[:] = d / size
        else:
            n[:] = np.array([0.0, 0.0, 1.0])
        return size - obstacles.radius[i]
    turn = obstacles.turn1[i]
    r = times_transposed(turn, d)
    h = obstacles.hull[i]
    if obstacles.shape[i] == CONTAINER:
        gap, face = plane_bound(hulls, h, r[0], r[1], r[2])
        n[:] = -times(turn, hulls.planes[face, :3])
        return -gap
    found = closest(hulls, h, r[0], r[1], r[2])
    n[:] = times(turn, np.array([found[1], found[2], found[3]]))
    return found[0]


@njit(parallel=True, cache=True)
def near_surfaces(
    obstacles: Obstacles,
    hulls: Hulls,
    x: np.ndarray,
    reach: np.ndarray,
    body: np.ndarray,
    gap: np.ndarray,
    normal: np.ndarray,
) -> None:
    """The surface nearest to each particle, if it is within reach.

    Args:
        obstacles: bodies at the end of the tick, with a clearance of at least the largest reach.
        x: (n, 3) m.
        reach: (n,) m.
        body: (n,) filled with the number of the body, -1 where none is within reach.
        gap: (n,) filled with the distance from its surface, m, negative inside the body.
        normal: (n, 3) filled with the unit normal there, towards the fluid.

    A particle that is outside a container does not feel that container.
    """
    rows = x.shape[0]
    for chunk in prange(CHUNKS):
        p, n = np.empty(3), np.empty(3)
        cell = np.empty(3, np.int64)
        for row in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
            body[row] = -1
            best = float(reach[row])
            for k in range(3):
                p[k] = x[row, k]
                cell[k] = cell_of(p[k], obstacles.origin[k], obstacles.edge[k])
            first, last = 0, 0
            if (
                0 <= cell[0] < obstacles.cells[0]
                and 0 <= cell[1] < obstacles.cells[1]
                and 0 <= cell[2] < obstacles.cells[2]
            ):
                c = (cell[0] * obstacles.cells[1] + cell[1]) * obstacles.cells[2] + cell[2]
                first, last = obstacles.start[c], obstacles.start[c + 1]
            count = last - first
            for s in range(count + len(obstacles.containers)):
                i = obstacles.near[first + s] if s < count else obstacles.containers[s - count]
                distance = _surface(obstacles, hulls, i, p, n)
                if distance >= best or (s >= count and distance < 0.0):
                    continue
                best = distance
                body[row], gap[row] = i, distance
                for k in range(3):
                    normal[row, k] = n[k]
