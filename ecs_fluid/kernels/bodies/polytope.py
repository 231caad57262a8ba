"""Convex polytopes: exact signed distance, normal and closest point, and a cheap bound from their planes.

A polytope is the set of points x with n_k . x <= d_k for all its planes k. Inside, the largest plane distance
n_k . x - d_k is the exact signed distance. Outside it is only a lower bound: near edges and corners the
closest point is searched on the faces and their edges. One `Hulls` holds many polytopes end to end, each in
its own axes with the origin inside, except for parts of a body, whose origin is the body's centre of mass.
Everything is float64.

Source: Fluid Simulation for Video Games, part 13, whose plane distance this completes.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.vector3 import (
    INLINE_EXACT,
    Vector,
    add_scaled,
    cross_of,
    divided,
    dot,
    minus,
    row_of,
)

ROUNDING_MARGIN = 1.0 - 1e-9
"""Margin for rounding in comparisons with a bound."""


class Hulls(NamedTuple):
    """Polytopes end to end: hull h owns planes plane_start[h]:plane_start[h + 1], and so on.

    planes (p, 4): outward unit normal and distance d, m. loops (l,): vertex numbers of each face, counter-
    clockwise seen from outside; face k owns loops[loop_start[k]:loop_start[k + 1]]. vertices (v, 3) m.
    edges (e, 2): vertex numbers. Vertex numbers count from the hull's own first vertex. radius (h,): of the
    ball about the origin that holds the hull, inner (h,): of the one about its own centre of mass that it
    holds, m.
    """

    planes: Array
    loops: Array
    loop_start: Array
    vertices: Array
    edges: Array
    plane_start: Array
    vertex_start: Array
    edge_start: Array
    radius: Array
    inner: Array


@njit(**INLINE_EXACT)
def plane_gap(planes: Array, k: int, p: Vector) -> float:
    """Signed distance of the point p from plane k of ``planes`` (n, 4), m; positive outside."""
    return dot(row_of(planes, k), p) - planes[k, 3]


@njit(cache=True, error_model="numpy")
def plane_bound(hulls: Hulls, hull: int, p: Vector) -> tuple[float, int]:
    """(Largest plane distance, its plane): exact inside, a lower bound outside, m."""
    worst, at = -math.inf, -1
    planes = hulls.planes
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        gap = plane_gap(planes, k, p)
        if gap > worst:
            worst, at = gap, k
    return worst, at


@njit(**INLINE_EXACT)
def beyond_a_plane(planes: Array, first: int, last: int, p: Vector, distance: float) -> bool:
    """Whether a place is beyond one plane of a polytope by more than a distance, and so farther from it."""
    for k in range(first, last):
        gap = plane_gap(planes, k, p)
        if gap > 0.0 and ROUNDING_MARGIN * gap >= distance:
            return True
    return False


@njit(cache=True, error_model="numpy")
def extent_along(hulls: Hulls, hull: int, axis: Vector) -> tuple[float, float]:
    """Least and largest ``axis`` . x over the corners of a polytope, m."""
    least, most = math.inf, -math.inf
    for k in range(hulls.vertex_start[hull], hulls.vertex_start[hull + 1]):
        along = dot(axis, row_of(hulls.vertices, k))
        least, most = min(least, along), max(most, along)
    return least, most


@njit(cache=True, error_model="numpy")
def has_place(hulls: Hulls, hull: int, p: Vector, near: float) -> bool:
    """Whether the place p is at most `near` m outside all planes of a polytope."""
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        if plane_gap(hulls.planes, k, p) > near:
            return False
    return True


@njit(cache=True, error_model="numpy")
def goes_on_beyond(hulls: Hulls, hull: int, p: Vector, n: Vector, near: float) -> bool:
    """Whether a polytope has the place p and goes on beyond the plane there across n, both to `near` m."""
    return has_place(hulls, hull, p, near) and extent_along(hulls, hull, n)[1] > dot(n, p) + near


@njit(cache=True, error_model="numpy")
def _closest_on_segment(a: Vector, b: Vector, p: Vector) -> Vector:
    """Point of the segment a b that is closest to p."""
    way = minus(b, a)
    return add_scaled(a, min(max(dot(minus(p, a), way) / dot(way, way), 0.0), 1.0), way)


@njit(cache=True, error_model="numpy")
def projects_onto_face(hulls: Hulls, hull: int, k: int, p: Vector) -> bool:
    """Whether the point lies above (or below) the polygon of face k."""
    first, last = hulls.loop_start[k], hulls.loop_start[k + 1]
    normal = row_of(hulls.planes, k)
    base = hulls.vertex_start[hull]
    a = row_of(hulls.vertices, base + hulls.loops[last - 1])
    for j in range(first, last):
        b = row_of(hulls.vertices, base + hulls.loops[j])
        # Outward normal of the side wall that stands on this edge.
        if dot(cross_of(minus(b, a), normal), minus(p, a)) > 0.0:
            return False
        a = b
    return True


@njit(cache=True, error_model="numpy")
def closest(hulls: Hulls, hull: int, p: Vector) -> tuple[float, Vector, Vector]:
    """(Signed distance, outward normal, closest surface point) of the point p, in body axes, m.

    Inside, the normal is that of the nearest face. Where an edge or corner is closest, it points from there
    to p.
    """
    worst, at = plane_bound(hulls, hull, p)
    planes = hulls.planes
    normal = row_of(planes, at)
    if worst <= 0.0 or projects_onto_face(hulls, hull, at, p):
        return worst, normal, add_scaled(p, -worst, normal)
    base = hulls.vertex_start[hull]
    best, place = math.inf, normal
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        gap = plane_gap(planes, k, p)
        if gap <= 0.0:
            continue
        if projects_onto_face(hulls, hull, k, p):
            normal = row_of(planes, k)
            return gap, normal, add_scaled(p, -gap, normal)
        first, last = hulls.loop_start[k], hulls.loop_start[k + 1]
        a = row_of(hulls.vertices, base + hulls.loops[last - 1])
        for j in range(first, last):
            b = row_of(hulls.vertices, base + hulls.loops[j])
            point = _closest_on_segment(a, b, p)
            away = minus(p, point)
            if dot(away, away) < best:
                best, place = dot(away, away), point
            a = b
    distance = math.sqrt(best)
    if distance > 1e-14 * hulls.radius[hull]:
        normal = divided(minus(p, place), distance)
    return distance, normal, place


def joined_hulls(parts: list[Hulls]) -> Hulls:
    """One `Hulls` that holds those of all the parts, in order."""

    def ends(name: str) -> Array:
        sizes = [np.diff(getattr(part, name)) for part in parts]
        return np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]))

    def rows(name: str, shape: tuple[int, ...], kind: type) -> Array:
        return np.concatenate([np.zeros(shape, kind), *(getattr(part, name) for part in parts)], dtype=kind)

    kinds = {"planes": ((0, 4), float), "loops": ((0,), np.int64), "vertices": ((0, 3), float),
             "edges": ((0, 2), np.int64), "radius": ((0,), float), "inner": ((0,), float)}  # fmt: skip
    return Hulls(*(rows(name, *kinds[name]) if name in kinds else ends(name) for name in Hulls._fields))
