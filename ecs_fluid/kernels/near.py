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
from ecs_fluid.kernels.contacts import BALL, CONTAINER, SOLID
from ecs_fluid.kernels.obstacles import Obstacles, cell_of
from ecs_fluid.kernels.polytope import Hulls, closest, plane_bound

SURELY = 1.0 - 1e-9
"""Room for rounding where a bound decides."""


@njit(cache=True, error_model="numpy")
def _surface(
    obstacles: Obstacles, hulls: Hulls, i: int, x: float, y: float, z: float
) -> tuple[float, float, float, float]:
    """(Signed distance from body i at the end of the tick, m, normal towards the fluid) of a place."""
    dx, dy, dz = x - obstacles.x1[i, 0], y - obstacles.x1[i, 1], z - obstacles.x1[i, 2]
    if obstacles.shape[i] == BALL:
        size = math.sqrt(dx * dx + dy * dy + dz * dz)
        if size > 0.0:
            return size - obstacles.radius[i], dx / size, dy / size, dz / size
        return -obstacles.radius[i], 0.0, 0.0, 1.0
    t = obstacles.turn1
    rx = t[i, 0, 0] * dx + t[i, 1, 0] * dy + t[i, 2, 0] * dz
    ry = t[i, 0, 1] * dx + t[i, 1, 1] * dy + t[i, 2, 1] * dz
    rz = t[i, 0, 2] * dx + t[i, 1, 2] * dy + t[i, 2, 2] * dz
    h = obstacles.hull[i]
    if obstacles.shape[i] == CONTAINER:
        gap, face = plane_bound(hulls, h, rx, ry, rz)
        distance = -gap
        nx, ny, nz = -hulls.planes[face, 0], -hulls.planes[face, 1], -hulls.planes[face, 2]
    else:
        distance, nx, ny, nz, _, _, _ = closest(hulls, h, rx, ry, rz)
    return (
        distance,
        t[i, 0, 0] * nx + t[i, 0, 1] * ny + t[i, 0, 2] * nz,
        t[i, 1, 0] * nx + t[i, 1, 1] * ny + t[i, 1, 2] * nz,
        t[i, 2, 0] * nx + t[i, 2, 1] * ny + t[i, 2, 2] * nz,
    )


@njit(forceinline=True, error_model="numpy")
def _beyond_a_plane(
    obstacles: Obstacles, hulls: Hulls, i: int, x: float, y: float, z: float, distance: float
) -> bool:
    """Whether a place is beyond one plane of polytope i by more than a distance, and so farther from it."""
    t, planes, h = obstacles.turn1, hulls.planes, obstacles.hull[i]
    dx, dy, dz = x - obstacles.x1[i, 0], y - obstacles.x1[i, 1], z - obstacles.x1[i, 2]
    rx = t[i, 0, 0] * dx + t[i, 1, 0] * dy + t[i, 2, 0] * dz
    ry = t[i, 0, 1] * dx + t[i, 1, 1] * dy + t[i, 2, 1] * dz
    rz = t[i, 0, 2] * dx + t[i, 1, 2] * dy + t[i, 2, 2] * dz
    for k in range(hulls.plane_start[h], hulls.plane_start[h + 1]):
        gap = planes[k, 0] * rx + planes[k, 1] * ry + planes[k, 2] * rz - planes[k, 3]
        if gap > 0.0 and SURELY * gap >= distance:
            return True
    return False


@njit(parallel=True, cache=True, error_model="numpy")
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
        cell = np.empty(3, np.int64)
        for row in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
            body[row] = -1
            best = float(reach[row])
            for k in range(3):
                cell[k] = cell_of(np.float64(x[row, k]), obstacles.origin[k], obstacles.edge[k])
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
                px, py, pz = np.float64(x[row, 0]), np.float64(x[row, 1]), np.float64(x[row, 2])
                if s < count:
                    # Not nearer than the ball around it is.
                    dx, dy, dz = px - obstacles.x1[i, 0], py - obstacles.x1[i, 1], pz - obstacles.x1[i, 2]
                    out = SURELY * math.sqrt(dx * dx + dy * dy + dz * dz) - obstacles.radius[i]
                    if out >= best:
                        continue
                    if obstacles.shape[i] == SOLID and _beyond_a_plane(obstacles, hulls, i, px, py, pz, best):
                        continue
                distance, nx, ny, nz = _surface(obstacles, hulls, i, px, py, pz)
                if distance >= best or (s >= count and distance < 0.0):
                    continue
                best = distance
                body[row], gap[row] = i, distance
                normal[row, 0], normal[row, 1], normal[row, 2] = nx, ny, nz
