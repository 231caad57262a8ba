"""Mirror images of particles behind the walls of a convex container."""

from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import Array


@njit(error_model="numpy")
def _height(at: Array, i: int, normals: Array, offsets: Array, k: int) -> float:
    """Of the place at[i] above plane k, m: below 0 inside of it."""
    along = at[i, 0] * normals[k, 0] + at[i, 1] * normals[k, 1] + at[i, 2] * normals[k, 2]
    return float(along - offsets[k])


@njit(cache=True, error_model="numpy")
def reflect(
    at: Array, original: Array, plane: Array, first: int, count: int, k: int, normals: Array, offsets: Array,
    beside: Array, reach: float, deep: float,
) -> int:  # fmt: skip
    """Append images in plane k of the places at[first:count] m, which need room; returns the new count.

    Those within ``reach`` m of the plane, inside of it or up to ``deep`` m outside, have one, unless it would
    lie in the container, at least ``deep`` m from its walls, or the foot in the plane lies beyond a wall m
    with beside[j, m], j = 0 for particles and 1 for images. ``original`` is the row of what an image mirrors
    in ``plane``, and -1 for a particle.
    """
    n = count
    for i in range(first, count):
        gap = -_height(at, i, normals, offsets, k)
        if gap <= -deep or gap >= reach:
            continue
        for c in range(3):
            at[n, c] = at[i, c] + gap * normals[k, c]
        hidden = False
        for m in range(len(offsets)):
            if beside[min(original[i] + 1, 1), m] and _height(at, n, normals, offsets, m) > 0.0:
                hidden = True
        if hidden:
            continue
        for c in range(3):
            at[n, c] = at[i, c] + 2.0 * gap * normals[k, c]
        within = True
        for m in range(len(offsets)):
            if _height(at, n, normals, offsets, m) > -deep:
                within = False
        if within:
            continue
        original[n], plane[n] = i, k
        n += 1
    return n


@njit(cache=True, error_model="numpy")
def composed(original: Array, plane: Array, normals: Array, real: int) -> tuple[Array, Array, Array]:
    """Row (m,) of the particle that each image shows, linear part (m, 3, 3) of the map from it, and the
    number (m,) of planes in which it is mirrored; the first ``real`` rows are particles."""
    m = len(original) - real
    shown, turns, planes = np.empty(m, np.int64), np.empty((m, 3, 3)), np.empty(m, np.int64)
    for n in range(m):
        i, k = original[real + n] - real, plane[real + n]
        shown[n], planes[n] = i + real, 1
        if i >= 0:
            shown[n], planes[n] = shown[i], planes[i] + 1
        for b in range(3):
            for a in range(3):
                turns[n, a, b] = turns[i, a, b] if i >= 0 else 1.0 if a == b else 0.0
            along = 0.0
            for a in range(3):
                along += normals[k, a] * turns[n, a, b]
            for a in range(3):
                turns[n, a, b] -= 2.0 * along * normals[k, a]
    return shown, turns, planes


@njit(cache=True, error_model="numpy")
def numbered(shown: Array, rows: int) -> Array:
    """Number (m,), from 1 on, of each entry among the equal ones of ``shown`` (m,), each below ``rows``."""
    seen, number = np.zeros(rows, np.int64), np.empty(len(shown), np.int64)
    for i in range(len(shown)):
        seen[shown[i]] += 1
        number[i] = seen[shown[i]]
    return number
