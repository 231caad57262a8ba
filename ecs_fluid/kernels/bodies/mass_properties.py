"""Volume, centre of mass and inertia tensor of solid polyhedra, exactly, by their boundary triangles."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def triangles_of(loops: np.ndarray, loop_start: np.ndarray) -> np.ndarray:
    """Vertex numbers (t, 3) of the fans that cover all faces."""
    fans = []
    for first, last in pairwise(loop_start):
        face = loops[first:last]
        fans.append(np.stack([np.full(len(face) - 2, face[0]), face[1:-1], face[2:]], axis=1))
    return np.concatenate(fans)


def mass_properties(vertices: np.ndarray, triangles: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """(volume m^3, centre (3,) m, inertia per density about the centre (3, 3) m^5) of a closed surface.

    Each outward triangle (a, b, c) makes a tetrahedron with a point o inside; with 6 V = a . (b x c) and
    s = a + b + c (all from o), the integrals of 1, x and x x^T over it are V, V s/4 and
    V (s s^T + a a^T + b b^T + c c^T)/20. The tensor is tr(C) 1 - C of the second moments C.

    Args:
        vertices: (v, 3) m.
        triangles: vertex numbers (t, 3), counterclockwise seen from outside.
    """
    origin = vertices.mean(axis=0)
    a, b, c = (vertices[triangles[:, k]] - origin for k in range(3))
    volume = np.einsum("ti,ti->t", a, np.cross(b, c)) / 6
    total = float(volume.sum())
    s = a + b + c
    offset = (volume[:, None] * s).sum(axis=0) / (4 * total)
    second = sum(np.einsum("t,ti,tj->ij", volume, p, p) for p in (s, a, b, c)) / 20
    second = second - total * np.outer(offset, offset)
    inertia = np.trace(second) * np.eye(3) - second
    return total, origin + offset, 0.5 * (inertia + inertia.T)
