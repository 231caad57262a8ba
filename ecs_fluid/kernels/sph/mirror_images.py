"""Images of liquid behind the planes of containers: a wall is the liquid mirrored at it.

The image of a particle at x behind a plane n . y = d, with the velocity w of the wall at the foot of x, is

    x' = x + 2 (d - n . x) n,     u' = u - 2 n . (u - w) n,

with the same mass, load and excess. Each plane within reach, of the container that holds the particle, makes
one image. Two or three such planes at right angles make one more, mirrored at all of them. A plane mirrors
only if it is parallel or at right angles to all others of its container (all planes of a box; floor and lid
of a cylinder): then images fill the space behind walls exactly once. Forces of pairs stay symmetric, so walls
at rest neither heat nor cool the liquid. Why images: docs/notes/liquids.md.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.collision.swept_bodies import Obstacles
from ecs_fluid.kernels.compiled import CHUNKS, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.vector3 import (
    INLINE_EXACT,
    Vector,
    add_scaled,
    cross_of,
    dot,
    matrix_at,
    minus,
    rotated,
    row_of,
)

RIGHT_ANGLE = 1e-4
"""Planes count as at right angles if the cosine of the angle between their normals is below this."""

OUTSIDE = 0.5
"""How far outside a container a particle may be and still count as held by it, in reaches."""


class Images(NamedTuple):
    """The n particles, followed by their m images in the order of the particles that they show.

    x, v (n + m, 3): positions m and velocities m/s. owner (m,): row of the particle of each image. along
    (m, 3): the planes at which it is mirrored, filled up with -1. speed (m, 3): the velocity component of
    each of these planes against its outward normal, at the foot of the particle, m/s.
    """

    x: Array
    v: Array
    owner: Array
    along: Array
    speed: Array


def mirroring_planes(obstacles: Obstacles, hulls: Hulls) -> list[Array]:
    """One bool array per container, over its planes: which of them mirror.

    A plane mirrors if it is parallel or at right angles to all other planes of its container.
    """
    found = []
    for i in obstacles.containers:
        start, end = hulls.plane_start[obstacles.hull[i] : obstacles.hull[i] + 2]
        found.append(_mirroring(hulls.planes[start:end, :3].tobytes()))
    return found


def walls_of_containers(obstacles: Obstacles, hulls: Hulls) -> tuple[Array, Array, Array]:
    """`container_planes`, and a bool array over them: which mirror."""
    mirroring = np.concatenate([np.zeros(0, bool), *mirroring_planes(obstacles, hulls)])
    return *container_planes(obstacles, hulls), mirroring


@lru_cache(maxsize=64)
def _mirroring(normals: bytes) -> Array:
    n = np.frombuffer(normals).reshape(-1, 3)
    cosine = np.abs(n @ n.T)
    return np.asarray(np.minimum(cosine, np.abs(1 - cosine)).max(axis=1) < RIGHT_ANGLE)


@njit(cache=True, error_model="numpy")
def container_planes(obstacles: Obstacles, hulls: Hulls) -> tuple[Array, Array]:
    """Planes (k, 13) of all containers where they are now, and the first plane (containers + 1,) of each.

    Columns: outward normal (3), distance from the origin [m]; velocity (3), spin (3) and centre (3) of the
    container.
    """
    many = len(obstacles.containers)
    first = np.zeros(many + 1, np.int64)
    for c in range(many):
        h = obstacles.hull[obstacles.containers[c]]
        first[c + 1] = first[c] + hulls.plane_start[h + 1] - hulls.plane_start[h]
    planes = np.empty((first[many], 13))
    for c in range(many):
        i = obstacles.containers[c]
        start = hulls.plane_start[obstacles.hull[i]] - first[c]
        for k in range(first[c], first[c + 1]):
            along = rotated(matrix_at(obstacles.turn1, i), row_of(hulls.planes, start + k))
            planes[k, 3] = hulls.planes[start + k, 3] + dot(along, row_of(obstacles.x1, i))
            for axis in range(3):
                planes[k, axis] = along[axis]
                planes[k, 4 + axis] = obstacles.v[i, axis]
                planes[k, 7 + axis] = obstacles.angular_velocity[i, axis]
                planes[k, 10 + axis] = obstacles.x1[i, axis]
    return planes, first


@njit(forceinline=True, error_model="numpy")
def lower_to_nearest(
    planes: Array, first: int, last: int, left_out: Array, place: Array, depth: Array
) -> None:
    """Lower ``depth`` (n,) m to the distance from the nearest of the planes first:last, for ``place`` (3, n).

    Planes with ``left_out`` (planes,) set do not count. The loop over places vectorises.
    """
    x, y, z = place[0], place[1], place[2]
    for k in range(first, last):
        if left_out[k]:
            continue
        n0, n1, n2, away = planes[k, 0], planes[k, 1], planes[k, 2], planes[k, 3]
        for s in range(len(depth)):
            gap = away - (n0 * x[s] + n1 * y[s] + n2 * z[s])
            depth[s] = gap if gap < depth[s] else depth[s]


@parallel(error_model="numpy")
def find_containers(
    chunk: int, planes: Array, first: Array, x: Array, reach: float, container: Array, depth_inside: Array
) -> None:
    """Fill ``container`` (n,) with the number of the container that holds each particle ``x`` (n, 3) m.

    That is the container in which the particle is deepest, or else the one that it is the least outside of.
    ``depth_inside`` (n,) m gets its depth, the distance from the nearest plane, below 0 outside. A particle
    further than `OUTSIDE` reaches from all containers gets -1, and minus that distance. ``planes`` and
    ``first`` are the results of ``container_planes``; ``reach`` of the kernel, m.
    """
    n = len(x)
    begin, end = chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS
    depth, place, none = np.empty(end - begin), np.empty((3, end - begin)), np.zeros(len(planes), np.bool_)
    place[:] = x[begin:end].T
    container[begin:end], depth_inside[begin:end] = -1, -OUTSIDE * reach
    for c in range(len(first) - 1):
        depth[:] = np.inf
        lower_to_nearest(planes, first[c], first[c + 1], none, place, depth)
        for s in range(end - begin):
            if depth[s] > depth_inside[begin + s]:
                container[begin + s], depth_inside[begin + s] = c, depth[s]


@njit(inline="always")
def _record_image(owner: Array, along: Array, count: int, row: int, a: int, b: int, c: int) -> int:
    """Record an image of ``row`` at the planes a, b, c if there is room; returns ``count`` + 1 either way."""
    if count < len(owner):
        owner[count], along[count, 0], along[count, 1], along[count, 2] = row, a, b, c
    return count + 1


@parallel(error_model="numpy")
def _find_images(
    chunk: int,
    planes: Array, first: Array, mirroring: Array, container: Array, depth_inside: Array, x: Array,
    reach: float, owners: Array, alongs: Array, counts: Array,
) -> None:  # fmt: skip
    """Find the images of the particles of one chunk.

    ``counts`` (CHUNKS,) gets their number; ``owners`` (CHUNKS, m) the rows that are mirrored and ``alongs``
    (CHUNKS, m, 3) the planes at which they are, filled up with -1, for the first m images only. ``mirroring``
    tells which planes mirror; the other arguments are as in ``with_images``.
    """
    n, count = len(x), 0
    owner, along = owners[chunk], alongs[chunk]
    gap, near = np.empty(len(planes)), np.empty(len(planes), np.int64)
    for row in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        c = container[row]
        if c < 0 or depth_inside[row] >= reach:
            continue
        number = 0
        for k in range(first[c], first[c + 1]):
            if not mirroring[k]:
                continue
            gap[k] = planes[k, 3] - dot(row_of(planes, k), row_of(x, row))
            if gap[k] < reach:
                near[number] = k
                number += 1
        for a in range(number):
            ka = near[a]
            count = _record_image(owner, along, count, row, ka, -1, -1)
            for b in range(a):
                kb, far = near[b], gap[ka] ** 2 + gap[near[b]] ** 2
                if far > reach**2 or abs(dot(row_of(planes, ka), row_of(planes, kb))) > RIGHT_ANGLE:
                    continue
                count = _record_image(owner, along, count, row, ka, kb, -1)
                for e in range(b):
                    ke = near[e]
                    skew = abs(dot(row_of(planes, ka), row_of(planes, ke)))
                    skew = max(skew, abs(dot(row_of(planes, kb), row_of(planes, ke))))
                    if skew > RIGHT_ANGLE or far + gap[ke] ** 2 > reach**2:
                        continue
                    count = _record_image(owner, along, count, row, ka, kb, ke)
    counts[chunk] = count


@njit(**INLINE_EXACT)
def mirrored(planes: Array, k: int, p: Vector, u: Vector) -> tuple[Vector, float]:
    """Mirror image of the position ``p`` at plane k, and the normal component of ``u`` relative to the plane.

    The velocity of the plane is taken at the foot of ``p``.
    """
    normal = row_of(planes, k)
    gap = planes[k, 3] - dot(normal, p)
    foot = minus(add_scaled(p, gap, normal), (planes[k, 10], planes[k, 11], planes[k, 12]))
    wall = add_scaled(
        (planes[k, 4], planes[k, 5], planes[k, 6]),
        1.0,
        cross_of((planes[k, 7], planes[k, 8], planes[k, 9]), foot),
    )
    return add_scaled(p, 2 * gap, normal), dot(minus(u, wall), normal)


@parallel()
def _reflect(chunk: int, planes: Array, owners: Array, alongs: Array, begin: Array, images: Images) -> None:
    """Fill ``images`` from the results of ``_find_images``; ``begin`` (CHUNKS + 1,): first of each chunk."""
    x, v, owner, along, speed = images.x, images.v, images.owner, images.along, images.speed
    n = len(x) - len(owner)
    for g in range(begin[chunk], begin[chunk + 1]):
        at = g - begin[chunk]
        owner[g] = owners[chunk, at]
        p, u = row_of(x, owner[g]), row_of(v, owner[g])
        for s in range(3):
            k = along[g, s] = alongs[chunk, at, s]
            if k >= 0:
                normal = row_of(planes, k)
                p, speed[g, s] = mirrored(planes, k, p, (0.0, 0.0, 0.0))
                u = add_scaled(u, -2 * (dot(u, normal) + speed[g, s]), normal)
        for axis in range(3):
            x[n + g, axis], v[n + g, axis] = p[axis], u[axis]


def with_images(
    planes: Array,
    first: Array,
    mirroring: Array,
    container: Array,
    depth_inside: Array,
    x: Array,
    v: Array,
    reach: float,
) -> Images:
    """Particles (n, 3) and their images.

    Args:
        planes, first, container, depth_inside: results of ``container_planes`` and ``find_containers``.
        mirroring: (planes,) bool, whether a plane mirrors.
        x, v: (n, 3) m and m/s.
        reach: of the kernel, m.
    """
    most, counts = 0, np.full(CHUNKS, 2 * -(-len(x) // CHUNKS))
    while counts.max() > most:
        most = counts.max()
        owners, alongs = np.empty((CHUNKS, most), np.int64), np.empty((CHUNKS, most, 3), np.int32)
        _find_images(planes, first, mirroring, container, depth_inside, x, reach, owners, alongs, counts)
    begin = np.concatenate([[0], counts.cumsum()])
    many = begin[-1]
    all_x, all_v = (np.concatenate([part, np.empty((many, 3), x.dtype)]) for part in (x, v))
    found = Images(all_x, all_v, np.empty(many, np.int64), np.empty((many, 3), np.int32), np.zeros((many, 3)))
    _reflect(planes, owners, alongs, begin, found)
    return found


@njit(cache=True)
def mirror_back(
    planes: Array,
    first: Array,
    container: Array,
    depth_inside: Array,
    mass: Array,
    x: Array,
    v: Array,
    impulse: Array,
) -> None:
    """Mirror particles that have just passed a plane of their container: they continue as their images did.

    Args:
        planes, first, container, depth_inside: results of ``container_planes`` and ``find_containers``.
        mass: (n,) kg.
        x, v: (n, 3) m and m/s, mirrored in place.
        impulse: (containers, 6), to which the impulse on each container is added, N s, and N m s about its
            centre.
    """
    for row in range(len(x)):
        c = container[row]
        if c < 0 or depth_inside[row] >= 0.0:
            continue
        for k in range(first[c], first[c + 1]):
            p, normal = row_of(x, row), row_of(planes, k)
            if planes[k, 3] >= dot(normal, p):
                continue
            q, speed = mirrored(planes, k, p, row_of(v, row))
            push = 2 * mass[row] * max(speed, 0.0)
            moment = cross_of(minus(p, (planes[k, 10], planes[k, 11], planes[k, 12])), normal)
            for axis in range(3):
                x[row, axis] = q[axis]
                v[row, axis] -= 2 * max(speed, 0.0) * normal[axis]
                impulse[c, axis] += push * normal[axis]
                impulse[c, 3 + axis] += push * moment[axis]
