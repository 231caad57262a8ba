"""Mass of fluid that a body displaces, and its moment, in a density that is piecewise linear in the height.

Both are integrals over horizontal slices: m = int rho(z) A(z) dz and M = int rho(z) A(z) (c(z) - x) dz, where
A is the area and c the centroid of the slice, and x the body's centre. Between the heights of a polytope's
corners (in a ball, everywhere) A is quadratic in z and A c is cubic. So where the density is linear three
Gauss points integrate exactly. Everything is float64.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.bodies.rotation import matrix_of
from ecs_fluid.kernels.bodies.table import BALL
from ecs_fluid.kernels.compiled import Array

_NODES = np.array([-math.sqrt(0.6), 0.0, math.sqrt(0.6)])
_WEIGHTS = np.array([5 / 9, 8 / 9, 5 / 9])


@njit(cache=True, error_model="numpy")
def _density(z: float, heights: Array, values: Array) -> float:
    """Density kg/m^3 at the height z: linear between the heights, constant beyond."""
    last = len(heights) - 1
    if z <= heights[0]:
        return values[0]
    if z >= heights[last]:
        return values[last]
    k = np.searchsorted(heights, z, side="right") - 1
    s = (z - heights[k]) / (heights[k + 1] - heights[k])
    return (1.0 - s) * values[k] + s * values[k + 1]


@njit(cache=True, error_model="numpy")
def _slice(corners: Array, edges: Array, z: float, ring: Array) -> tuple[float, float, float]:
    """(area, x and y of the centroid) of a convex polytope's slice at the height z.

    ``ring`` (edges, 3) is scratch.
    """
    count = 0
    mx, my = 0.0, 0.0
    for e in range(len(edges)):
        a, b = corners[edges[e, 0]], corners[edges[e, 1]]
        if (a[2] < z) == (b[2] < z):
            continue
        s = (z - a[2]) / (b[2] - a[2])
        ring[count, 0] = a[0] + s * (b[0] - a[0])
        ring[count, 1] = a[1] + s * (b[1] - a[1])
        mx += ring[count, 0]
        my += ring[count, 1]
        count += 1
    if count < 3:
        return 0.0, 0.0, 0.0
    mx /= count
    my /= count
    for k in range(count):
        ring[k, 2] = math.atan2(ring[k, 1] - my, ring[k, 0] - mx)
    order = np.argsort(ring[:count, 2])
    area, cx, cy = 0.0, 0.0, 0.0
    for k in range(count):
        p, q = ring[order[k]], ring[order[(k + 1) % count]]
        ax, ay, bx, by = p[0] - mx, p[1] - my, q[0] - mx, q[1] - my
        part = 0.5 * (ax * by - ay * bx)
        area += part
        cx += part * (ax + bx) / 3.0
        cy += part * (ay + by) / 3.0
    if area <= 0.0:
        return 0.0, 0.0, 0.0
    return area, mx + cx / area, my + cy / area


@njit(cache=True, error_model="numpy")
def _cuts(low: float, high: float, corners: Array, heights: Array) -> Array:
    """Heights from `low` to `high`, rising, between which slices and the density are polynomials."""
    cuts = np.empty(2 + len(corners) + len(heights))
    cuts[0], cuts[1] = low, high
    count = 2
    for k in range(len(corners)):
        if low < corners[k, 2] < high:
            cuts[count] = corners[k, 2]
            count += 1
    for k in range(len(heights)):
        if low < heights[k] < high:
            cuts[count] = heights[k]
            count += 1
    return np.sort(cuts[:count])


@njit(cache=True, error_model="numpy")
def displaced(
    shape: Array,
    radius: Array,
    hull: Array,
    hulls: Hulls,
    x: Array,
    q: Array,
    heights: Array,
    values: Array,
    mass: Array,
    moment: Array,
    volume: Array,
) -> None:
    """Displaced mass, its moment about the centre, and volume of each body.

    Args:
        shape, radius, hull, hulls: shapes (n,), as in `Bodies`; containers displace what they hold.
        x, q: poses (n, 3) m, (n, 4).
        heights, values: density kg/m^3 over the height m, at rising heights.
        mass, moment, volume: filled; (n,) kg, (n, 3) kg m, (n,) m^3.
    """
    nothing = np.empty((0, 3))
    for i in range(len(shape)):
        mass[i], volume[i] = 0.0, 0.0
        moment[i] = 0.0
        edges = hulls.edges[:0]
        if shape[i] == BALL:
            corners = nothing
            low, high = -radius[i], radius[i]
        else:
            h = hull[i]
            edges = hulls.edges[hulls.edge_start[h] : hulls.edge_start[h + 1]]
            local = hulls.vertices[hulls.vertex_start[h] : hulls.vertex_start[h + 1]]
            corners = local @ matrix_of(q[i]).T
            low, high = corners[:, 2].min(), corners[:, 2].max()
        ring = np.empty((len(edges), 3))
        cuts = _cuts(low, high, corners, heights - x[i, 2])
        for c in range(len(cuts) - 1):
            half, middle = 0.5 * (cuts[c + 1] - cuts[c]), 0.5 * (cuts[c + 1] + cuts[c])
            for k in range(3):
                z = middle + half * _NODES[k]
                if shape[i] == BALL:
                    area, cx, cy = math.pi * (radius[i] - z) * (radius[i] + z), 0.0, 0.0
                else:
                    area, cx, cy = _slice(corners, edges, z, ring)
                share = half * _WEIGHTS[k] * area
                heavy = share * _density(x[i, 2] + z, heights, values)
                volume[i] += share
                mass[i] += heavy
                moment[i, 0] += heavy * cx
                moment[i, 1] += heavy * cy
                moment[i, 2] += heavy * z


def displaced_by_disks(radius: Array, z: Array, heights: Array, values: Array) -> tuple[Array, Array]:
    """Mass (n,) kg of fluid that upright disks a metre thick displace, and its moment (n,) kg m.

    The moment is that of heights above the disks' centres. Integrals of (a + b z) and (a + b z) z over chords
    2 sqrt(R^2 - z^2), exact in each linear piece of the density.

    Args:
        radius, z: radii of the disks and heights of their centres (n,), m.
        heights, values: density kg/m^3 over the height m, at rising heights.
    """
    mass, moment = np.zeros(len(radius)), np.zeros(len(radius))
    for i, r in enumerate(radius):
        cuts = np.unique(np.clip(np.concatenate([[-r, r], heights - z[i]]), -r, r))
        rho = np.interp(cuts + z[i], heights, values)
        slope = np.diff(rho) / np.diff(cuts)
        start = rho[:-1] - slope * cuts[:-1]
        half, angle = np.sqrt((r - cuts) * (r + cuts)), r**2 * np.arcsin(cuts / r)
        first = np.diff(cuts * half + angle)
        second = np.diff(-2 / 3 * half**3)
        third = np.diff(0.25 * (cuts * half * (2 * cuts**2 - r**2) + r**2 * angle))
        mass[i] = (start * first + slope * second).sum()
        moment[i] = (start * second + slope * third).sum()
    return mass, moment
