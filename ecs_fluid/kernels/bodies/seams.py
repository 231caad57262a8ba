"""Seams between the convex parts of a body, where the surface of the whole goes on from one part to the next.

A face that another part covers is no surface of the body, and an edge where two parts meet in a plane is no
edge of it. Contacts with these would stop a body that slides over a seam. Everything is float64.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls, goes_on_beyond, has_place, plane_gap
from ecs_fluid.kernels.bodies.table import Bodies
from ecs_fluid.kernels.compiled.vector3 import Vector, add_scaled, dot, minus, row_of

TOUCHING = 1e-6
"""Distance up to which a place counts as on a part, over the radius of the body."""

ALONG = 0.5
"""Least cosine between a normal and that of a face that it may be a contact of."""

BESIDE = 0.01
"""Fraction of the way to a face's corners at which the face is asked whether other parts cover it."""


@njit(cache=True, error_model="numpy")
def has_parts(bodies: Bodies, i: int) -> bool:
    """Whether row i is one of several parts of a body."""
    first = bodies.leader[i]
    return first != i or (i + 1 < len(bodies.x) and bodies.leader[i + 1] == i)


@njit(cache=True, error_model="numpy")
def _is_in_another(bodies: Bodies, hulls: Hulls, i: int, p: Vector) -> bool:
    """Whether the place p, in body axes, is in or on another part of the body than part i."""
    first = bodies.leader[i]
    for c in range(first, len(bodies.x)):
        if bodies.leader[c] != first:
            break
        if c != i and has_place(hulls, bodies.hull[c], p, TOUCHING * bodies.radius[i]):
            return True
    return False


@njit(cache=True, error_model="numpy")
def reaches_beyond(bodies: Bodies, hulls: Hulls, i: int, p: Vector, n: Vector) -> bool:
    """Whether another part than i has the place p of its surface and goes on beyond the plane there.

    n is the outward normal of the plane; both in body axes. Nothing outside the body then touches part i at p
    along n.
    """
    first, touching = bodies.leader[i], TOUCHING * bodies.radius[i]
    for c in range(first, len(bodies.x)):
        if bodies.leader[c] != first:
            break
        if c != i and goes_on_beyond(hulls, bodies.hull[c], p, n, touching):
            return True
    return False


@njit(cache=True, error_model="numpy")
def _is_open(bodies: Bodies, hulls: Hulls, i: int, k: int, p: Vector) -> bool:
    """Whether face k of part i, beside its place p in body axes, is not covered by other parts."""
    base = hulls.vertex_start[bodies.hull[i]]
    for j in range(hulls.loop_start[k], hulls.loop_start[k + 1]):
        way = minus(row_of(hulls.vertices, base + hulls.loops[j]), p)
        if not _is_in_another(bodies, hulls, i, add_scaled(p, BESIDE, way)):
            return True
    return False


@njit(cache=True, error_model="numpy")
def is_on_surface(bodies: Bodies, hulls: Hulls, i: int, p: Vector, n: Vector) -> bool:
    """Whether something can touch part i at its place p along the outward normal n, both in body axes.

    Where another part stands in the way, it can in an inner corner alone: at an open face about along n that
    the other part reaches beyond.
    """
    if not reaches_beyond(bodies, hulls, i, p, n):
        return True
    hull, near = bodies.hull[i], TOUCHING * bodies.radius[i]
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        outward = row_of(hulls.planes, k)
        if (
            dot(outward, n) > ALONG
            and abs(plane_gap(hulls.planes, k, p)) <= near
            and reaches_beyond(bodies, hulls, i, p, outward)
            and _is_open(bodies, hulls, i, k, p)
        ):
            return True
    return False
