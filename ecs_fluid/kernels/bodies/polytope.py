"""Convex polytopes: exact signed distance, normal and closest point, and the cheap bound of their planes.

A polytope lies where n_k . x <= d_k for all its planes k. Inside, the largest plane distance n_k . x - d_k
is the exact signed distance. Outside it is only a lower bound: near edges and corners the closest point is
found on the faces and their edges. Many polytopes lie end to end in one `Hulls`, each in axes of its own
with the origin inside. Everything is float64.

Source: Fluid Simulation for Video Games, part 13, whose plane distance this completes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit


class Hulls(NamedTuple):
    """Polytopes end to end: hull h owns planes plane_start[h]:plane_start[h + 1], and so on.

    planes (p, 4): outward unit normal and distance d, m. loops (l,): vertex numbers of each face, counter-
    clockwise seen from outside; face k owns loops[loop_start[k]:loop_start[k + 1]]. vertices (v, 3) m.
    edges (e, 2): vertex numbers. Vertex numbers count from the hull's own first vertex. radius (h,): of the
    ball about the origin that holds the hull, inner (h,): of the one it holds, m.
    """

    planes: np.ndarray
    loops: np.ndarray
    loop_start: np.ndarray
    vertices: np.ndarray
    edges: np.ndarray
    plane_start: np.ndarray
    vertex_start: np.ndarray
    edge_start: np.ndarray
    radius: np.ndarray
    inner: np.ndarray


@njit(cache=True, error_model="numpy")
def plane_bound(hulls: Hulls, hull: int, x: float, y: float, z: float) -> tuple[float, int]:
    """(Largest plane distance, its plane): exact inside, a lower bound outside, m."""
    worst, at = -math.inf, -1
    planes = hulls.planes
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        gap = planes[k, 0] * x + planes[k, 1] * y + planes[k, 2] * z - planes[k, 3]
        if gap > worst:
            worst, at = gap, k
    return worst, at


@njit(cache=True, error_model="numpy")
def _edge_point(a: np.ndarray, b: np.ndarray, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Closest point of the segment a b."""
    ex, ey, ez = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    size = ex * ex + ey * ey + ez * ez
    t = ((x - a[0]) * ex + (y - a[1]) * ey + (z - a[2]) * ez) / size
    t = min(max(t, 0.0), 1.0)
    return a[0] + t * ex, a[1] + t * ey, a[2] + t * ez


@njit(cache=True, error_model="numpy")
def over_face(hulls: Hulls, hull: int, k: int, x: float, y: float, z: float) -> bool:
    """Whether the point lies above (or below) the polygon of face k."""
    first, last = hulls.loop_start[k], hulls.loop_start[k + 1]
    nx, ny, nz = hulls.planes[k, 0], hulls.planes[k, 1], hulls.planes[k, 2]
    base = hulls.vertex_start[hull]
    a = hulls.vertices[base + hulls.loops[last - 1]]
    for j in range(first, last):
        b = hulls.vertices[base + hulls.loops[j]]
        ex, ey, ez = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        # Outward normal of the side wall that stands on this edge: e x n.
        sx, sy, sz = ey * nz - ez * ny, ez * nx - ex * nz, ex * ny - ey * nx
        if sx * (x - a[0]) + sy * (y - a[1]) + sz * (z - a[2]) > 0.0:
            return False
        a = b
    return True


@njit(cache=True, error_model="numpy")
def closest(hulls: Hulls, hull: int, x: float, y: float, z: float) -> tuple[float, ...]:
    """(distance, nx, ny, nz, px, py, pz): signed distance, outward normal, closest surface point; body axes.

    Inside, the normal is that of the nearest face. On an edge or corner it points from there to the point.
    """
    worst, at = plane_bound(hulls, hull, x, y, z)
    planes = hulls.planes
    nx, ny, nz = planes[at, 0], planes[at, 1], planes[at, 2]
    if worst <= 0.0 or over_face(hulls, hull, at, x, y, z):
        return worst, nx, ny, nz, x - worst * nx, y - worst * ny, z - worst * nz
    base = hulls.vertex_start[hull]
    best, px, py, pz = math.inf, 0.0, 0.0, 0.0
    for k in range(hulls.plane_start[hull], hulls.plane_start[hull + 1]):
        gap = planes[k, 0] * x + planes[k, 1] * y + planes[k, 2] * z - planes[k, 3]
        if gap <= 0.0:
            continue
        if over_face(hulls, hull, k, x, y, z):
            kx, ky, kz = planes[k, 0], planes[k, 1], planes[k, 2]
            return gap, kx, ky, kz, x - gap * kx, y - gap * ky, z - gap * kz
        first, last = hulls.loop_start[k], hulls.loop_start[k + 1]
        a = hulls.vertices[base + hulls.loops[last - 1]]
        for j in range(first, last):
            b = hulls.vertices[base + hulls.loops[j]]
            cx, cy, cz = _edge_point(a, b, x, y, z)
            size = (x - cx) ** 2 + (y - cy) ** 2 + (z - cz) ** 2
            if size < best:
                best, px, py, pz = size, cx, cy, cz
            a = b
    distance = math.sqrt(best)
    if distance > 1e-14 * hulls.radius[hull]:
        nx, ny, nz = (x - px) / distance, (y - py) / distance, (z - pz) / distance
    return distance, nx, ny, nz, px, py, pz


def joined_hulls(parts: list[Hulls]) -> Hulls:
    """One `Hulls` that holds those of all the parts, in order."""

    def ends(starts: list[np.ndarray]) -> np.ndarray:
        sizes = [np.diff(start) for start in starts]
        return np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes]))]).astype(
            np.int64
        )

    def rows(name: str, width: int, kind: type) -> np.ndarray:
        arrays: list[np.ndarray] = [np.asarray(getattr(part, name), dtype=kind) for part in parts]
        shape = (0, width) if width else (0,)
        return np.ascontiguousarray(np.concatenate([np.zeros(shape, kind), *arrays]))

    return Hulls(
        planes=rows("planes", 4, np.float64),
        loops=rows("loops", 0, np.int64),
        loop_start=ends([part.loop_start for part in parts]),
        vertices=rows("vertices", 3, np.float64),
        edges=rows("edges", 2, np.int64),
        plane_start=ends([part.plane_start for part in parts]),
        vertex_start=ends([part.vertex_start for part in parts]),
        edge_start=ends([part.edge_start for part in parts]),
        radius=rows("radius", 0, np.float64),
        inner=rows("inner", 0, np.float64),
    )
