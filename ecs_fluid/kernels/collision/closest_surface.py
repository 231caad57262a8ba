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

from ecs_fluid.kernels.bodies.contacts import BALL, SOLID
from ecs_fluid.kernels.bodies.polytope import Hulls, closest, plane_bound
from ecs_fluid.kernels.collision.swept_bodies import Obstacles, cell_of
from ecs_fluid.kernels.compiled import CHUNKS

ROWS = 64
"""Fewest rows for which a loop of their own is worth its start."""

SURELY = 1.0 - 1e-9
"""Room for rounding where a bound decides."""


@njit(forceinline=True, error_model="numpy")
def _surface_of_ball(radius: float, dx: float, dy: float, dz: float) -> tuple[float, float, float, float]:
    """(Signed distance from a ball, m, normal towards the fluid) of a place (dx, dy, dz) from its centre."""
    size = math.sqrt(dx * dx + dy * dy + dz * dz)
    if size > 0.0:
        return size - radius, dx / size, dy / size, dz / size
    return -radius, 0.0, 0.0, 1.0


@njit(forceinline=True, error_model="numpy")
def _beyond_a_plane(
    planes: np.ndarray, first: int, last: int, rx: float, ry: float, rz: float, distance: float
) -> bool:
    """Whether a place is beyond one plane of a polytope by more than a distance, and so farther from it."""
    for k in range(first, last):
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
    # Taken out of the table once: what a loop over rows takes out of it counts references at every row.
    centers, radius, shape, containers = obstacles.x1, obstacles.radius, obstacles.shape, obstacles.containers
    origin, edge, cells, start, near = (
        obstacles.origin, obstacles.edge, obstacles.cells, obstacles.start, obstacles.near,
    )  # fmt: skip
    hull, t, planes, plane_start = obstacles.hull, obstacles.turn1, hulls.planes, hulls.plane_start
    chunks = min(CHUNKS, rows // ROWS + 1)
    for chunk in prange(chunks):
        for row in range(chunk * rows // chunks, (chunk + 1) * rows // chunks):
            body[row] = -1
            best = float(reach[row])
            px, py, pz = np.float64(x[row, 0]), np.float64(x[row, 1]), np.float64(x[row, 2])
            a = cell_of(px, origin[0], edge[0])
            b = cell_of(py, origin[1], edge[1])
            c = cell_of(pz, origin[2], edge[2])
            first, last = 0, 0
            if 0 <= a < cells[0] and 0 <= b < cells[1] and 0 <= c < cells[2]:
                cell = (a * cells[1] + b) * cells[2] + c
                first, last = start[cell], start[cell + 1]
            count = last - first
            for s in range(count + len(containers)):
                i = near[first + s] if s < count else containers[s - count]
                dx, dy, dz = px - centers[i, 0], py - centers[i, 1], pz - centers[i, 2]
                # Not nearer than the ball around it is.
                if s < count and SURELY * math.sqrt(dx * dx + dy * dy + dz * dz) - radius[i] >= best:
                    continue
                if shape[i] == BALL:
                    distance, nx, ny, nz = _surface_of_ball(radius[i], dx, dy, dz)
                else:
                    rx = t[i, 0, 0] * dx + t[i, 1, 0] * dy + t[i, 2, 0] * dz
                    ry = t[i, 0, 1] * dx + t[i, 1, 1] * dy + t[i, 2, 1] * dz
                    rz = t[i, 0, 2] * dx + t[i, 1, 2] * dy + t[i, 2, 2] * dz
                    h = hull[i]
                    if shape[i] == SOLID:
                        if _beyond_a_plane(planes, plane_start[h], plane_start[h + 1], rx, ry, rz, best):
                            continue
                        distance, mx, my, mz, _, _, _ = closest(hulls, h, rx, ry, rz)
                    else:
                        bound, face = plane_bound(hulls, h, rx, ry, rz)
                        distance, mx, my, mz = -bound, -planes[face, 0], -planes[face, 1], -planes[face, 2]
                    nx = t[i, 0, 0] * mx + t[i, 0, 1] * my + t[i, 0, 2] * mz
                    ny = t[i, 1, 0] * mx + t[i, 1, 1] * my + t[i, 1, 2] * mz
                    nz = t[i, 2, 0] * mx + t[i, 2, 1] * my + t[i, 2, 2] * mz
                if distance >= best or (s >= count and distance < 0.0):
                    continue
                best = distance
                body[row], gap[row] = i, distance
                normal[row, 0], normal[row, 1], normal[row, 2] = nx, ny, nz
