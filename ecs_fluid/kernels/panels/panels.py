"""Triangles that cover the surface of a ball or a polytope, with the edges between them.

Every edge has a triangle on either side, so a surface that carries a potential jump per triangle is a net of
closed vortex rings. Everything is float64.
"""

from __future__ import annotations

import heapq
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ecs_fluid.kernels.bodies.mass_properties import triangles_of
from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.compiled import Array

MOST_PANELS = 5120
"""Most triangles of one body; a matrix of this many rows is factorised once."""


LONGEST_EDGE = 1.5
"""Longest edge on a polytope, over the edge that was asked for."""

SMOOTHING_ROUNDS = 10
"""Rounds of smoothing of a ball's triangles, which halve the error of their flow."""


class Panels(NamedTuple):
    """A closed surface of n triangles, in axes of its body; in a plane (`outlines`), of n straight segments.

    vertices (v, 3) m. corners (n, 3): vertex numbers of the triangles, counterclockwise seen from outside.
    edges (e, 2): vertex numbers; lines (e, 3) m: the ways along them; sides (e, 2): the triangle that has the
    edge in this direction, and the one that has it reversed. center (n, 3) m, normal (n, 3) outward, area
    (n,) m^2. volume: enclosed, m^3.
    """

    vertices: Array
    corners: Array
    edges: Array
    lines: Array
    sides: Array
    center: Array
    normal: Array
    area: Array
    volume: float


def panels_of(vertices: Array, triangles: Array) -> Panels:
    """Edges, centres, normals and areas of a closed surface of outward triangles."""
    corners = vertices[triangles]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    size = np.linalg.norm(across, axis=1)
    ends = np.concatenate([triangles[:, [k, (k + 1) % 3]] for k in range(3)])
    owner = np.tile(np.arange(len(triangles)), 3)
    order = np.lexsort((ends[:, 0] > ends[:, 1], ends.max(axis=1), ends.min(axis=1)))
    first, second = order[0::2], order[1::2]
    return Panels(
        vertices=np.ascontiguousarray(vertices, dtype=np.float64),
        corners=np.ascontiguousarray(triangles, dtype=np.int64),
        edges=ends[first],
        lines=vertices[ends[first, 1]] - vertices[ends[first, 0]],
        sides=np.stack([owner[first], owner[second]], axis=1),
        center=corners.mean(axis=1),
        normal=across / size[:, None],
        area=0.5 * size,
        volume=float(np.einsum("ti,ti->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6),
    )


def ball_panels(radius: float, edge: float) -> Panels:
    """An icosahedron of n^2 triangles a side, blown up to a ball of that volume; edges of about `edge` m.

    The triangles hold the volume of the ball, not its corners: that makes the error of second order in the
    edge a quarter of what it is with corners on the ball.
    """
    corners, faces = _icosahedron()
    # An icosahedron inscribed in a ball of radius 1 has edges of 1.0515.
    parts = max(1, round(1.0515 * radius / edge))
    parts = min(parts, int(np.sqrt(MOST_PANELS / 20)))
    found: dict[tuple[int, ...], int] = {}
    points: list[Array] = []
    triangles = []

    def number(face: Array, weights: tuple[int, int, int]) -> int:
        pairs = sorted((int(v), w) for v, w in zip(face, weights, strict=True) if w)
        key = tuple(part for pair in pairs for part in pair)
        if key not in found:
            found[key] = len(points)
            at = sum(w * corners[v] for v, w in pairs)
            points.append(at / np.linalg.norm(at))
        return found[key]

    for face in faces:
        for i in range(parts):
            for j in range(parts - i):
                k = parts - i - j
                a = number(face, (k, i, j))
                b, c = number(face, (k - 1, i + 1, j)), number(face, (k - 1, i, j + 1))
                triangles.append((a, b, c))
                if k >= 2:
                    triangles.append((b, number(face, (k - 2, i + 1, j + 1)), c))
    sphere, faces = np.array(points), np.array(triangles)
    for _ in range(SMOOTHING_ROUNDS):
        sphere = _smoothed(sphere, faces)
    unit = panels_of(sphere, faces)
    grown = radius * (4 / 3 * np.pi / unit.volume) ** (1 / 3)
    return panels_of(grown * unit.vertices, unit.corners)


def _smoothed(points: Array, triangles: Array) -> Array:
    """Points of the unit sphere moved to the middle, by area, of the triangles round each of them."""
    now = panels_of(points, triangles)
    total = np.zeros_like(points)
    for k in range(3):
        np.add.at(total, triangles[:, k], now.area[:, None] * now.center)
    return np.asarray(total / np.linalg.norm(total, axis=1, keepdims=True))


def hull_panels(hulls: Hulls, hull: int, edge: float) -> Panels:
    """The faces of a polytope, cut until no edge is longer than 1.5 `edge` m, so that they are about `edge`.

    The longest edge is halved first, together with the triangles on both its sides, so that triangles stay
    about as compact as the faces allow.
    """
    first, last = hulls.plane_start[hull], hulls.plane_start[hull + 1]
    starts, corners = hulls.loop_start[first : last + 1], hulls.vertices[hulls.vertex_start[hull] :]
    loops = np.concatenate(
        [
            _begun_well(corners, hulls.loops[a:b], hulls.planes[first + k, :3])
            for k, (a, b) in enumerate(pairwise(starts))
        ]
    )
    points = [*corners[: hulls.vertex_start[hull + 1] - hulls.vertex_start[hull]]]
    triangles = [tuple(int(v) for v in t) for t in triangles_of(loops, starts - starts[0])]
    owners: dict[tuple[int, int], int] = {}
    heap: list[tuple[float, int, int]] = []

    def add(t: int) -> None:
        for k in range(3):
            a, b = triangles[t][k], triangles[t][(k + 1) % 3]
            owners[a, b] = t
            # Equal lengths are cut in the order of their corners, independent of the last bits of the
            # lengths.
            size = float(np.linalg.norm(points[a] - points[b]))
            heapq.heappush(heap, (-round(size / edge, 9), min(a, b), max(a, b)))

    for t in range(len(triangles)):
        add(t)
    while heap and len(triangles) < MOST_PANELS:
        size, a, b = heapq.heappop(heap)
        if -size <= LONGEST_EDGE + 1e-6:
            break
        if (a, b) not in owners or (b, a) not in owners:
            continue
        middle = len(points)
        points.append(0.5 * (points[a] + points[b]))
        for p, q in ((a, b), (b, a)):
            t = owners.pop((p, q))
            far = next(v for v in triangles[t] if v not in (p, q))
            triangles[t] = (p, middle, far)
            triangles.append((middle, q, far))
            add(t)
            add(len(triangles) - 1)
    return panels_of(np.array(points), np.array(triangles))


def _begun_well(corners: Array, loop: Array, normal: Array) -> Array:
    """The loop of a face, begun at the corner whose fan of triangles has the largest smallest height.

    Corners of hulls are rounded, so a corner between two others on an edge may lie beyond it in one face, and
    then makes a dent in the other. A fan across the dent has a triangle turned over, which covers one of the
    first face: nothing then tells what flows between the two.
    """
    least = np.empty(len(loop))
    for k in range(len(loop)):
        x = corners[np.roll(loop, -k)]
        a, b = x[1:-1] - x[0], x[2:] - x[0]
        longest = np.sqrt(np.max([(way * way).sum(axis=1) for way in (a, b, b - a)], axis=0))
        least[k] = (np.cross(a, b) @ normal / longest).min()
    return np.roll(loop, -int(np.argmax(least >= least.max() - 1e-6 * abs(least.max()))))


def _icosahedron() -> tuple[Array, Array]:
    """Corners (12, 3) on the unit sphere and outward faces (20, 3) of the regular icosahedron."""
    golden = (1 + np.sqrt(5)) / 2
    signs = np.array([(a, b) for a in (-1, 1) for b in (-1, 1)], dtype=np.float64)
    flat = np.column_stack([np.zeros(4), signs[:, 0], golden * signs[:, 1]])
    corners = np.concatenate([np.roll(flat, k, axis=1) for k in range(3)])
    corners /= np.linalg.norm(corners[0])
    gaps = np.linalg.norm(corners[:, None] - corners, axis=2)
    near = (gaps > 1e-9) & (gaps < 1.1)
    faces = []
    for a in range(12):
        for b in range(a + 1, 12):
            for c in range(b + 1, 12):
                if near[a, b] and near[b, c] and near[a, c]:
                    outward = np.linalg.det(corners[[a, b, c]]) > 0
                    faces.append((a, b, c) if outward else (a, c, b))
    return corners, np.array(faces)
