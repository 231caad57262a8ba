"""Surfaces of bodies: of those of several parts what the parts do not cover of each other, exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.systems.shared.body_tables import corners_of, faces_of, of_whole, planes_of

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies


def areas(bodies: Bodies, hulls: Hulls, across: int | None = None) -> Array:
    """Surfaces (n,) m^2 of bodies, of parts that of their body: of the union of its parts.

    In a plane, whose normal is the axis `across`, of one metre of them.
    """
    from ecs_fluid.kernels.bodies.seams import TOUCHING
    from ecs_fluid.kernels.bodies.table import BALL

    out = 4 * np.pi * bodies.radius**2 if across is None else 2 * np.pi * bodies.radius
    polytopes = bodies.shape != BALL
    lone = np.bincount(bodies.leader, minlength=len(out))[bodies.leader] == 1
    parts = np.flatnonzero(~lone)
    for h in np.unique(bodies.hull[polytopes & lone]):
        out[polytopes & lone & (bodies.hull == h)] = sum(_area(face) for _, face in _faces(hulls, h, across))
    corners = [corners_of(hulls, h) for h in bodies.hull[parts]]
    low, high = (np.array([end(own, axis=0) for own in corners]) for end in (np.min, np.max))
    for k, i in enumerate(parts.tolist()):
        near = TOUCHING * bodies.radius[i]
        close = (bodies.leader[parts] == bodies.leader[i]) & (parts != i)
        close &= ((low <= high[k] + near) & (high >= low[k] - near)).all(axis=1)
        out[i] = _bare_area(bodies, hulls, i, parts[close], near, across)
    return of_whole(bodies.leader, out)


def frontal_areas(bodies: Bodies, hulls: Hulls) -> Array:
    """Mean over all directions of the area (n,) m^2 that a body hides.

    Of a convex body it is a quarter of its surface (Cauchy). Of parts, which may hide each other, it is less
    than that, and than that of their convex hull; the smaller one is taken.
    """
    out = np.asarray(areas(bodies, hulls) / 4)
    for first in np.flatnonzero(np.bincount(bodies.leader) > 1):
        from scipy.spatial import ConvexHull  # 0.15 s, which worlds without parts do without

        rows = bodies.leader == first
        whole = ConvexHull(np.concatenate([corners_of(hulls, h) for h in bodies.hull[rows]]))
        out[rows] = np.minimum(out[rows], whole.area / 4)
    return out


def _area(polygon: Array) -> float:
    cross = np.cross(polygon[1:-1] - polygon[0], polygon[2:] - polygon[0]).sum(axis=0)
    return 0.5 * float(np.linalg.norm(cross))


def _faces(hulls: Hulls, h: int, across: int | None) -> list[tuple[Array, Array]]:
    """Plane (4,) and polygon (k, 3) of each face; in a plane of the sides, one metre wide across it."""
    faces = zip(planes_of(hulls, h), faces_of(hulls, h), strict=True)
    if across is None:
        return list(faces)
    sides = [(plane, face.copy()) for plane, face in faces if abs(plane[across]) < 0.5]
    for _, face in sides:
        face[:, across] = np.copysign(0.5, face[:, across])
    return sides


def _bare_area(bodies: Bodies, hulls: Hulls, i: int, close: Array, near: float, across: int | None) -> float:
    """Area, m^2, of part i that other parts do not cover: those `close` to it, within `near` m."""
    others = [(j < i, np.array([plane for plane, _ in _faces(hulls, bodies.hull[j], across)])) for j in close]
    total = 0.0
    for plane, face in _faces(hulls, bodies.hull[i], across):
        pieces = [face]
        for before, planes in others:
            pieces = [rest for piece in pieces for rest in _uncovered(piece, plane, planes, before, near)]
        total += sum(map(_area, pieces))
    return total


def _uncovered(polygon: Array, plane: Array, planes: Array, before: bool, near: float) -> list[Array]:
    """Convex pieces (k, 3) of a convex polygon in a `plane` that a polytope of these `planes` leaves bare.

    Where faces of both lie in one plane and look the same way, that of the part `before` counts.
    """
    gaps = _gaps(polygon, planes)
    flush = (np.abs(gaps) <= near).all(axis=0)
    outside = (gaps.min(axis=0) >= -near)[~flush].any()
    if outside or (not before and (planes[flush, :3] @ plane[:3] > 0).any()):
        return [polygon]
    bare = []
    for cut in planes[~flush]:
        gap = _gaps(polygon, cut)
        beyond, polygon = _side(polygon, gap), _side(polygon, -gap)
        if len(beyond) > 2:
            bare.append(beyond)
        if len(polygon) < 3:
            break
    return bare


def _gaps(x: Array, planes: Array) -> Array:
    """Distances, m, of places (k, 3) beyond planes (p, 4)."""
    return np.asarray(x @ planes[..., :3].T - planes[..., 3])


def _side(polygon: Array, gap: Array) -> Array:
    """What of a polygon (k, 3) lies beyond a plane, by the distances (k,) of its corners beyond it."""
    after = np.roll(gap, -1)
    crossed = gap * after < 0
    part = np.divide(gap, gap - after, out=np.zeros_like(gap), where=crossed)
    cuts = polygon + part[:, None] * (np.roll(polygon, -1, axis=0) - polygon)
    kept = np.stack([gap >= 0, crossed], axis=1).ravel()
    return np.stack([polygon, cuts], axis=1).reshape(-1, 3)[kept]
