"""Which particles are near the surface of a body, and where that surface is.

Distances are exact: from the ball, or from the faces, edges and corners of a polytope; inside a container
from the nearest wall. Bodies are found by the cell of `Obstacles` in which the particle lies, so the cost
grows with what is near bodies.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

from ecs_fluid.kernels.bodies.polytope import ROUNDING_MARGIN, Hulls, beyond_a_plane, closest, plane_bound
from ecs_fluid.kernels.bodies.table import BALL, SOLID
from ecs_fluid.kernels.collision.swept_bodies import Obstacles, listed_at
from ecs_fluid.kernels.compiled import CHUNKS, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.vector3 import (
    divided,
    length,
    matrix_at,
    minus,
    rotated,
    rotated_back,
    row_of,
    scaled,
)

LEAST_ROWS = 64
"""Least number of rows for which starting a separate loop pays."""


@parallel("min(CHUNKS, x.shape[0] // LEAST_ROWS + 1)", error_model="numpy")
def near_surfaces(
    chunk: int,
    obstacles: Obstacles,
    hulls: Hulls,
    x: Array,
    reach: Array,
    body: Array,
    gap: Array,
    normal: Array,
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
    # Taken out of the table once: inside the loop, each access would count references at every row.
    centers, radius, shape, containers = obstacles.x1, obstacles.radius, obstacles.shape, obstacles.containers
    origin, edge, cells, start, near = (
        obstacles.origin, obstacles.edge, obstacles.cells, obstacles.start, obstacles.near,
    )  # fmt: skip
    hull, turns, planes, plane_start = obstacles.hull, obstacles.turn1, hulls.planes, hulls.plane_start
    chunks = min(CHUNKS, rows // LEAST_ROWS + 1)
    for row in range(chunk * rows // chunks, (chunk + 1) * rows // chunks):
        body[row] = -1
        best, place = float(reach[row]), row_of(x, row)
        first, last = listed_at(origin, edge, cells, start, place)
        count = last - first
        for s in range(count + len(containers)):
            i = near[first + s] if s < count else containers[s - count]
            d = minus(place, row_of(centers, i))
            size = length(d)
            # The body is not nearer than its bounding ball.
            if s < count and ROUNDING_MARGIN * size - radius[i] >= best:
                continue
            if shape[i] == BALL:
                distance, outward = size - radius[i], (1.0, 0.0, 0.0)  # x lies in every plane
                if size > 0.0:
                    outward = divided(d, size)
            else:
                h, turn = hull[i], matrix_at(turns, i)
                own = rotated_back(turn, d)
                if shape[i] == SOLID:
                    if beyond_a_plane(planes, plane_start[h], plane_start[h + 1], own, best):
                        continue
                    distance, outward, _ = closest(hulls, h, own)
                else:
                    bound, face = plane_bound(hulls, h, own)
                    distance, outward = -bound, scaled(-1.0, row_of(planes, face))
                outward = rotated(turn, outward)
            if distance >= best or (s >= count and distance < 0.0):
                continue
            best = distance
            body[row], gap[row] = i, distance
            normal[row, 0], normal[row, 1], normal[row, 2] = outward
