"""Contact points of two convex polytopes: the axis that parts them best, and the faces clipped along it.

By the theorem of separating axes two polytopes are apart where a normal of one of their faces, or a cross
product of two of their edges, parts them. The axis of the largest gap (least overlap) is the normal. Where
it belongs to a face, the other body's face that looks back is clipped to the prism over it and gives up to
64 points; where it belongs to two edges, their closest points give one. Everything is float64.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.bodies.rotation import cross, matrix_of, times, times_transposed

MOST_CORNERS = 64
"""Corners of a clipped face, so contacts of a pair; clipping stops there."""

ONE_PLACE = 1e-4
"""Part of the smaller body's size within which two points of a face are one contact.

Faces of one size that lie on each other are clipped to pairs of points that rounding sets apart.
"""

FACES_FIRST = 1e-3
"""Part of a body's size by which two edges must beat the faces: faces give steadier contacts."""


@njit(cache=True)
def _placed(hulls: Hulls, hull: int, x: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners (v, 3) and planes (p, 4) in the frame where x and turn place the hull."""
    first, last = hulls.vertex_start[hull], hulls.vertex_start[hull + 1]
    corners = np.empty((last - first, 3))
    for v in range(first, last):
        corners[v - first] = x + times(turn, hulls.vertices[v])
    first, last = hulls.plane_start[hull], hulls.plane_start[hull + 1]
    planes = np.empty((last - first, 4))
    for k in range(first, last):
        normal = times(turn, hulls.planes[k, :3])
        planes[k - first, :3] = normal
        planes[k - first, 3] = hulls.planes[k, 3] + (normal * x).sum()
    return corners, planes


@njit(cache=True)
def _least(corners: np.ndarray, n: np.ndarray) -> float:
    out = math.inf
    for v in range(len(corners)):
        out = min(out, corners[v, 0] * n[0] + corners[v, 1] * n[1] + corners[v, 2] * n[2])
    return out


@njit(cache=True)
def _best_face(planes: np.ndarray, corners: np.ndarray) -> tuple[float, int]:
    """(Largest gap between one of the planes and all the corners, that plane)."""
    best, at = -math.inf, 0
    for k in range(len(planes)):
        gap = _least(corners, planes[k, :3]) - planes[k, 3]
        if gap > best:
            best, at = gap, k
    return best, at


@njit(cache=True)
def _best_edges(
    hulls: Hulls, a: int, b: int, ca: np.ndarray, cb: np.ndarray, between: np.ndarray, enough: float
) -> tuple[float, int, int]:
    """(Largest gap along a cross product of edges, its two edges); at most `enough` counts as none."""
    best, at, other = enough, -1, -1
    for i in range(hulls.edge_start[a], hulls.edge_start[a + 1]):
        along = ca[hulls.edges[i, 1]] - ca[hulls.edges[i, 0]]
        for j in range(hulls.edge_start[b], hulls.edge_start[b + 1]):
            across = cb[hulls.edges[j, 1]] - cb[hulls.edges[j, 0]]
            axis = cross(along, across)
            size = math.sqrt((axis * axis).sum())
            if size < 1e-6 * math.sqrt((along * along).sum() * (across * across).sum()):
                continue
            axis /= size
            if (axis * between).sum() < 0.0:
                axis = -axis
            # Only an edge that carries the support of its body can meet the other.
            low, high = ca[hulls.edges[i, 0]], cb[hulls.edges[j, 0]]
            gap = (axis * (high - low)).sum()
            if (
                gap > best
                and _least(cb, axis) > (axis * high).sum() - 1e-9 * hulls.radius[b]
                and -_least(ca, -axis) < (axis * low).sum() + 1e-9 * hulls.radius[a]
            ):
                best, at, other = gap, i, j
    return best, at, other


@njit(cache=True)
def _clip(polygon: np.ndarray, count: int, n: np.ndarray, d: float, out: np.ndarray) -> int:
    """The part of a polygon (count, 3) where n . x <= d; returns its number of corners."""
    made = 0
    for k in range(count):
        a, b = polygon[k], polygon[(k + 1) % count]
        ga, gb = (n * a).sum() - d, (n * b).sum() - d
        if ga <= 0.0 and made < MOST_CORNERS:
            out[made] = a
            made += 1
        if (ga < 0.0 < gb or gb < 0.0 < ga) and made < MOST_CORNERS:
            out[made] = a + (ga / (ga - gb)) * (b - a)
            made += 1
    return made


@njit(cache=True)
def _face_contacts(
    hulls: Hulls,
    a: int,
    face: int,
    ca: np.ndarray,
    plane: np.ndarray,
    b: int,
    cb: np.ndarray,
    pb: np.ndarray,
    slack: float,
    sign: float,
    out: np.ndarray,
) -> int:
    """Clip the face of b that looks at `face` of a most squarely to the prism over that face."""
    n = plane[:3]
    facing, back = math.inf, 0
    for k in range(len(pb)):
        turned = (pb[k, :3] * n).sum()
        if turned < facing:
            facing, back = turned, k
    polygon, spare = np.empty((MOST_CORNERS + 2, 3)), np.empty((MOST_CORNERS + 2, 3))
    k = hulls.plane_start[b] + back
    count = 0
    for j in range(hulls.loop_start[k], min(hulls.loop_start[k + 1], hulls.loop_start[k] + MOST_CORNERS)):
        polygon[count] = cb[hulls.loops[j]]
        count += 1
    k = hulls.plane_start[a] + face
    first, last = hulls.loop_start[k], hulls.loop_start[k + 1]
    before = ca[hulls.loops[last - 1]]
    for j in range(first, last):
        after = ca[hulls.loops[j]]
        side = cross(after - before, n)
        count = _clip(polygon, count, side, (side * before).sum(), spare)
        polygon, spare = spare, polygon
        before = after
    made = 0
    one = (ONE_PLACE * min(hulls.radius[a], hulls.radius[b])) ** 2
    for j in range(min(count, MOST_CORNERS)):
        gap = (n * polygon[j]).sum() - plane[3]
        new = True
        for i in range(made):
            away = polygon[j] - (0.5 * gap) * n - out[i, :3]
            new = new and (away * away).sum() > one
        if gap <= slack and new:
            out[made, :3] = polygon[j] - (0.5 * gap) * n
            out[made, 3:6] = sign * n
            out[made, 6] = gap
            made += 1
    return made


@njit(cache=True)
def _edge_contact(
    hulls: Hulls,
    i: int,
    ca: np.ndarray,
    j: int,
    cb: np.ndarray,
    between: np.ndarray,
    gap: float,
    out: np.ndarray,
) -> None:
    """The middle of the shortest line between two edges."""
    p, r = ca[hulls.edges[i, 0]], cb[hulls.edges[j, 0]]
    u, w = ca[hulls.edges[i, 1]] - p, cb[hulls.edges[j, 1]] - r
    n = cross(u, w)
    nn = (n * n).sum()
    s = (cross(r - p, w) * n).sum() / nn
    t = (cross(r - p, u) * n).sum() / nn
    n /= math.sqrt(nn)
    if (n * between).sum() < 0.0:
        n = -n
    out[0, :3] = 0.5 * (p + s * u + r + t * w)
    out[0, 3:6] = n
    out[0, 6] = gap


@njit(cache=True)
def hull_contacts(
    hulls: Hulls,
    a: int,
    xa: np.ndarray,
    qa: np.ndarray,
    b: int,
    xb: np.ndarray,
    qb: np.ndarray,
    slack: float,
    out: np.ndarray,
) -> int:
    """Contacts of two solid polytopes closer than `slack` m: fills out (64, 7), returns their number."""
    # In the axes of a, about its centre: no digits are lost far from the origin.
    ta = matrix_of(qa)
    turn = ta.T @ matrix_of(qb)
    between = times_transposed(ta, xb - xa)
    ca, pa = _placed(hulls, a, np.zeros(3), np.eye(3))
    cb, pb = _placed(hulls, b, between, turn)
    gap_a, face_a = _best_face(pa, cb)
    if gap_a > slack:
        return 0
    gap_b, face_b = _best_face(pb, ca)
    if gap_b > slack:
        return 0
    steady = FACES_FIRST * min(hulls.radius[a], hulls.radius[b])
    gap, i, j = _best_edges(hulls, a, b, ca, cb, between, max(gap_a, gap_b) + steady)
    count = 0
    if i >= 0:
        if gap > slack:
            return 0
        _edge_contact(hulls, i, ca, j, cb, between, gap, out)
        count = 1
    elif gap_a + 0.1 * steady >= gap_b:
        count = _face_contacts(hulls, a, face_a, ca, pa[face_a], b, cb, pb, slack, 1.0, out)
    else:
        count = _face_contacts(hulls, b, face_b, cb, pb[face_b], a, ca, pa, slack, -1.0, out)
    for k in range(count):
        place, normal = out[k, :3].copy(), out[k, 3:6].copy()
        out[k, :3] = xa + times(ta, place)
        out[k, 3:6] = times(ta, normal)
    return count
