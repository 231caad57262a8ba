"""Contact points of two convex polytopes: the axis that separates them best, and faces clipped along it.

By the separating axis theorem two polytopes are apart if a normal of one of their faces, or a cross product
of two of their edges, separates them. The axis of the largest gap (least overlap) is the contact normal. If
it belongs to a face, the opposite face of the other body is clipped to the prism over it, which gives up to
64 points; if it belongs to two edges, their closest points give one. Everything is float64.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.bodies.rotation import matrix_of, rotation_at, times
from ecs_fluid.kernels.bodies.table import Bodies
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.vector3 import (
    INLINE_EXACT,
    Vector,
    add_scaled,
    cross_of,
    divided,
    dot,
    length,
    minus,
    rotated,
    rotated_back,
    row_of,
    scaled,
)

MOST_CONTACTS = 64
"""Most contacts of a pair, and so most corners of a clipped face; of more, containers keep the deepest."""

SAME_POINT = 1e-4
"""Distance, as a fraction of the smaller body's size, within which two points of a face are one contact.

When faces of equal size lie on each other, clipping yields pairs of points that differ only by rounding.
"""

FACES_FIRST = 1e-3
"""Two edges must have a larger gap than the faces by this fraction of a body's size: faces give steadier
contacts."""


class PlacedHull(NamedTuple):
    """A polytope at its present place: its number in `Hulls`, corners (v, 3) m, and planes (p, 4)."""

    number: int
    corners: Array
    planes: Array


@njit(**INLINE_EXACT)
def put_contact(out: Array, k: int, point: Vector, normal: Vector, gap: float) -> None:
    """Write contact k of `out`."""
    for j in range(3):
        out[k, j], out[k, 3 + j] = point[j], normal[j]
    out[k, 6] = gap


@njit(cache=True, error_model="numpy")
def _placed(hulls: Hulls, hull: int, x: Array, turn: Array) -> PlacedHull:
    """Corners and planes in the frame where x (3,) and turn (3, 3) place the hull."""
    first, last = hulls.vertex_start[hull], hulls.vertex_start[hull + 1]
    corners = np.empty((last - first, 3))
    for v in range(first, last):
        corners[v - first] = x + times(turn, hulls.vertices[v])
    first, last = hulls.plane_start[hull], hulls.plane_start[hull + 1]
    planes = np.empty((last - first, 4))
    for k in range(first, last):
        normal = times(turn, hulls.planes[k, :3])
        planes[k - first, :3] = normal
        planes[k - first, 3] = hulls.planes[k, 3] + dot(normal, x)
    return PlacedHull(hull, corners, planes)


@njit(cache=True, error_model="numpy")
def _middle(corners: Array) -> Vector:
    """The mean of corners (v, 3)."""
    out = (0.0, 0.0, 0.0)
    for v in range(len(corners)):
        out = add_scaled(out, 1.0 / len(corners), row_of(corners, v))
    return out


@njit(cache=True, error_model="numpy")
def _least_along(corners: Array, normal: Vector) -> float:
    out = math.inf
    for v in range(len(corners)):
        out = min(out, dot(row_of(corners, v), normal))
    return out


@njit(cache=True, error_model="numpy")
def _best_face(a: PlacedHull, b: PlacedHull) -> tuple[float, int]:
    """(Largest gap between one of the planes of a and all corners of b, that plane)."""
    best, at = -math.inf, 0
    for k in range(len(a.planes)):
        gap = _least_along(b.corners, row_of(a.planes, k)) - a.planes[k, 3]
        if gap > best:
            best, at = gap, k
    return best, at


@njit(cache=True, error_model="numpy")
def _best_edges(
    hulls: Hulls, a: PlacedHull, b: PlacedHull, between: Vector, enough: float
) -> tuple[float, int, int]:
    """(Largest gap along a cross product of edges, its two edges); at most `enough` counts as none."""
    best, at, other = enough, -1, -1
    for i in range(hulls.edge_start[a.number], hulls.edge_start[a.number + 1]):
        low = row_of(a.corners, hulls.edges[i, 0])
        along = minus(row_of(a.corners, hulls.edges[i, 1]), low)
        for j in range(hulls.edge_start[b.number], hulls.edge_start[b.number + 1]):
            high = row_of(b.corners, hulls.edges[j, 0])
            across = minus(row_of(b.corners, hulls.edges[j, 1]), high)
            axis = cross_of(along, across)
            size = length(axis)
            if size < 1e-6 * math.sqrt(dot(along, along) * dot(across, across)):
                continue
            axis = divided(axis, size)
            if dot(axis, between) < 0.0:
                axis = scaled(-1.0, axis)
            # Only an edge at the extreme end of its body along the axis can touch the other body.
            gap = dot(axis, minus(high, low))
            if (
                gap > best
                and _least_along(b.corners, axis) > dot(axis, high) - 1e-9 * hulls.radius[b.number]
                and -_least_along(a.corners, scaled(-1.0, axis))
                < dot(axis, low) + 1e-9 * hulls.radius[a.number]
            ):
                best, at, other = gap, i, j
    return best, at, other


@njit(cache=True, error_model="numpy")
def _clip(polygon: Array, count: int, n: Vector, d: float, out: Array) -> int:
    """The part of a polygon (count, 3) where n . x <= d; returns its number of corners."""
    made = 0
    for k in range(count):
        a, b = row_of(polygon, k), row_of(polygon, (k + 1) % count)
        ga, gb = dot(n, a) - d, dot(n, b) - d
        if ga <= 0.0 and made < MOST_CONTACTS:
            out[made, 0], out[made, 1], out[made, 2] = a
            made += 1
        if (ga < 0.0 < gb or gb < 0.0 < ga) and made < MOST_CONTACTS:
            out[made, 0], out[made, 1], out[made, 2] = add_scaled(a, ga / (ga - gb), minus(b, a))
            made += 1
    return made


@njit(cache=True, error_model="numpy")
def _face_contacts(
    hulls: Hulls, a: PlacedHull, face: int, b: PlacedHull, slack: float, sign: float, out: Array
) -> int:
    """Clip the face of b whose normal is most opposite to that of `face` of a to the prism over `face`."""
    n = row_of(a.planes, face)
    facing, back = math.inf, 0
    for k in range(len(b.planes)):
        along = dot(row_of(b.planes, k), n)
        if along < facing:
            facing, back = along, k
    polygon, spare = np.empty((MOST_CONTACTS + 2, 3)), np.empty((MOST_CONTACTS + 2, 3))
    k = hulls.plane_start[b.number] + back
    first, last = hulls.loop_start[k], hulls.loop_start[k + 1]
    count = min(last - first, MOST_CONTACTS)
    for j in range(count):
        polygon[j] = b.corners[hulls.loops[first + j]]
    k = hulls.plane_start[a.number] + face
    first, last = hulls.loop_start[k], hulls.loop_start[k + 1]
    before = row_of(a.corners, hulls.loops[last - 1])
    for j in range(first, last):
        after = row_of(a.corners, hulls.loops[j])
        side = cross_of(minus(after, before), n)
        count = _clip(polygon, count, side, dot(side, before), spare)
        polygon, spare = spare, polygon
        before = after
    made = 0
    one = (SAME_POINT * min(hulls.radius[a.number], hulls.radius[b.number])) ** 2
    for j in range(min(count, MOST_CONTACTS)):
        gap = dot(n, row_of(polygon, j)) - a.planes[face, 3]
        middle = add_scaled(row_of(polygon, j), -0.5 * gap, n)
        new = True
        for i in range(made):
            away = minus(middle, row_of(out, i))
            new = new and dot(away, away) > one
        if gap <= slack and new:
            put_contact(out, made, middle, scaled(sign, n), gap)
            made += 1
    return made


@njit(cache=True, error_model="numpy")
def _edge_contact(
    hulls: Hulls, a: PlacedHull, i: int, b: PlacedHull, j: int, between: Vector, gap: float, out: Array
) -> None:
    """The middle of the shortest line between edge i of a and edge j of b."""
    p, r = row_of(a.corners, hulls.edges[i, 0]), row_of(b.corners, hulls.edges[j, 0])
    u = minus(row_of(a.corners, hulls.edges[i, 1]), p)
    w = minus(row_of(b.corners, hulls.edges[j, 1]), r)
    n = cross_of(u, w)
    nn = dot(n, n)
    s, t = dot(cross_of(minus(r, p), w), n) / nn, dot(cross_of(minus(r, p), u), n) / nn
    n = divided(n, math.sqrt(nn))
    if dot(n, between) < 0.0:
        n = scaled(-1.0, n)
    ends = add_scaled(add_scaled(p, s, u), 1.0, r)
    put_contact(out, 0, scaled(0.5, add_scaled(ends, t, w)), n, gap)


@njit(cache=True, error_model="numpy")
def hull_contacts(bodies: Bodies, hulls: Hulls, a: int, b: int, slack: float, out: Array) -> int:
    """Contacts of two solid polytopes closer than `slack` m: fills out (64, 7), returns their number."""
    # In the axes of a, about its centre, so that no digits are lost far from the origin.
    x, turn = row_of(bodies.x, a), rotation_at(bodies.q, a)
    offset = rotated_back(turn, minus(row_of(bodies.x, b), x))
    first = _placed(hulls, bodies.hull[a], np.zeros(3), np.eye(3))
    relative = matrix_of(bodies.q[a]).T @ matrix_of(bodies.q[b])
    second = _placed(hulls, bodies.hull[b], np.array(offset), relative)
    between = minus(_middle(second.corners), _middle(first.corners))
    gap_a, face_a = _best_face(first, second)
    if gap_a > slack:
        return 0
    gap_b, face_b = _best_face(second, first)
    if gap_b > slack:
        return 0
    steady = FACES_FIRST * min(bodies.radius[a], bodies.radius[b])
    gap, i, j = _best_edges(hulls, first, second, between, max(gap_a, gap_b) + steady)
    count = 0
    if i >= 0:
        if gap > slack:
            return 0
        _edge_contact(hulls, first, i, second, j, between, gap, out)
        count = 1
    elif gap_a + 0.1 * steady >= gap_b:
        count = _face_contacts(hulls, first, face_a, second, slack, 1.0, out)
    else:
        count = _face_contacts(hulls, second, face_b, first, slack, -1.0, out)
    for k in range(count):
        normal = out[k, 3], out[k, 4], out[k, 5]
        place = add_scaled(x, 1.0, rotated(turn, row_of(out, k)))
        put_contact(out, k, place, rotated(turn, normal), out[k, 6])
    return count
