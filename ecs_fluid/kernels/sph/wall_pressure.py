"""What bodies add to the compression of liquid near them, and the forces that follow from it.

The wall of a solid body takes the place of the layers of a lattice that would lie behind it. At the distance
d, in spacings, these layers would add S(d) to the compression. G(d), the part of a wall, is a cubic
polynomial between d = 1/2 and 3/2, where a lattice next to the wall has its layers. At both ends G = S and G'
= 2 S' (twice, since pressure acts between two particles by the gradients of both, but on a wall by that of
one). Beyond 3/2 it falls to 0 like (1 - d / D)^3, below 1/2 it rises in the same way, and below `STRAIGHT` it
is linear. The force - P grad G has a potential, so bodies at rest neither heat nor cool the liquid. The parts
of several bodies add up. Those of the convex parts of one body (`BodyPart`) are joined like the faces of a
container, below, but at a seam the surface goes on from one part to the next.

Planes of containers that do not mirror (`kernels.sph.mirror_images`) add their parts too. The space outside a
container is the space behind its faces, less what is behind two faces at an edge, which counts twice there,
plus what is behind three faces at a corner:

    G = sum_faces G_k - sum_edges m(G_k, G_l) + sum_corners t(G_k, G_l, G_n),
    m(a, b) = (a + b - sqrt((a - b)^2 + 4 kappa a b)) / 2,   kappa = (1 - max(n_k . n_l, 0)) f(a) f(b),

with n the outward normals, f the function `_free_fraction`, and t the largest of m(a, b) m(a, c) / a over the
three choices of a. G is continuous, and does not depend on the order of the faces. Why:
docs/notes/liquids.md. Source of the sum: Naiman and Wynn, Ann. Statist. 20 (1992).
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls, beyond_a_plane, closest, goes_on_beyond
from ecs_fluid.kernels.bodies.seams import TOUCHING
from ecs_fluid.kernels.bodies.table import BALL, CONTAINER
from ecs_fluid.kernels.collision.swept_bodies import Obstacles, listed_at
from ecs_fluid.kernels.compiled import CHUNKS, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.vector3 import (
    Vector,
    add_scaled,
    cross_of,
    dot,
    length,
    matrix_at,
    minus,
    rotated,
    rotated_back,
    row_of,
    scaled,
)
from ecs_fluid.kernels.sph.forces import lattice_weight
from ecs_fluid.kernels.sph.mirror_images import container_planes, lower_to_nearest

MOST_BODIES = 4
"""Largest number of bodies that press on one particle at a time."""


STRAIGHT = 0.38
"""Distance in spacings below which G is linear: a steeper wall would need shorter steps than `courant` = 1.2
gives."""


ALONE = 0.25
"""Largest G for which walls at right angles leave exactly the product of (1 - G) free; about G at half a
spacing."""


SEAM = 0.25
"""Distance in spacings of the closest point of one part of a body from another part, up to which the surface
goes on from one to the other."""


class WallLaw(NamedTuple):
    """G and dG/dd at 1/2 and at 3/2 spacings, and the distance in spacings beyond which G is 0."""

    first: float
    first_slope: float
    second: float
    second_slope: float
    reach: float


@lru_cache
def wall_law(support: float) -> WallLaw:
    """The function G of a wall, for a kernel that reaches `support` spacings."""
    (first, second), (pull, second_pull) = lattice_deficit(np.array([0.5, 1.5]), support)
    return WallLaw(first, 2 * pull, second, 2 * second_pull, 1.5 - 1.5 * second / second_pull)


def lattice_deficit(depth: Array, support: float) -> tuple[Array, Array]:
    """S and dS/dd (n,) at the depths d (n,), in spacings, below the surface of a lattice.

    S is what the compression nu lacks there, since there are no layers above.
    """
    k = np.arange(-np.ceil(support), np.ceil(support) + 1)
    across = np.hypot(k[:, None], k).ravel()
    z = depth[:, None, None] + np.arange(0.5, support + 1)[:, None]
    u = np.maximum(1 - np.hypot(across, z) / support, 0.0)
    weight = lattice_weight(support)
    lacks = weight * (u**4 * (5 - 4 * u)).sum(axis=(1, 2))
    return lacks, -20 * weight / support**2 * (u**3 * z).sum(axis=(1, 2))


@njit(forceinline=True, error_model="numpy")
def wall_part(d: float, law: WallLaw) -> tuple[float, float]:
    """G and dG/dd of a wall at the signed distance d, in spacings."""
    near = max(d, STRAIGHT)
    t, value, slope = near - 0.5, law.first, law.first_slope
    if 0.0 < t < 1.0:
        s = 1.0 - t
        rise, fall = law.second - value, law.second_slope
        return (
            value + t * t * (3.0 - 2.0 * t) * rise + t * s * (s * slope - t * fall),
            6.0 * t * s * rise + s * (s - 2.0 * t) * slope + t * (t - 2.0 * s) * fall,
        )
    if t >= 1.0:
        t, value, slope = t - 1.0, law.second, law.second_slope
    rest = 1.0 + t * slope / (3.0 * value)
    if rest <= 0.0:
        return 0.0, 0.0
    slope *= rest**2
    return value * rest**3 + slope * (d - near), slope


class Joints(NamedTuple):
    """How the planes of containers meet; a plane is named by its row in `container_planes`.

    square (planes,): whether a plane mirrors. edges (m, 2), corners (t, 3): the planes that meet there,
    sorted by the first of them; those whose first plane is k are first_edge[k]:first_edge[k + 1], and
    likewise with first_corner.
    """

    square: Array
    edges: Array
    first_edge: Array
    corners: Array
    first_corner: Array


def joints_of(obstacles: Obstacles, hulls: Hulls, square: list[Array]) -> Joints:
    """The joints of all containers; ``square`` is the result of `mirroring_planes`."""
    edges, corners, planes = [np.zeros((0, 2), np.int64)], [np.zeros((0, 3), np.int64)], 0
    for i in obstacles.containers:
        start, end = hulls.plane_start[obstacles.hull[i] : obstacles.hull[i] + 2]
        first = hulls.loop_start[start : end + 1]
        meet = _meeting_faces_of(hulls.loops[first[0] : first[-1]].tobytes(), (first - first[0]).tobytes())
        edges.append(planes + meet[0])
        corners.append(planes + meet[1])
        planes += int(end - start)
    two, three, number = np.concatenate(edges), np.concatenate(corners), np.arange(planes + 1)
    return Joints(
        np.concatenate([np.zeros(0, bool), *square]),
        two, np.searchsorted(two[:, 0], number), three, np.searchsorted(three[:, 0], number),
    )  # fmt: skip


@lru_cache(maxsize=64)
def _meeting_faces_of(loops: bytes, start: bytes) -> tuple[Array, Array]:
    corner, first = np.frombuffer(loops, np.int64).tolist(), np.frombuffer(start, np.int64)
    pairs, threes = meeting_faces([corner[a:b] for a, b in pairwise(first)])
    return np.array(sorted(pairs), np.int64).reshape(-1, 2), np.array(sorted(threes), np.int64).reshape(-1, 3)


def meeting_faces(faces: list[list[int]]) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
    """Pairs of faces that meet at edges, and triples that meet at corners, each in ascending order.

    ``faces`` are loops of corners, counterclockwise seen from outside. A corner where more than three faces
    meet counts as several corners of three, with edges of length 0 between its first face and the others.
    """
    beside = {
        (u, v): k for k, loop in enumerate(faces) for u, v in zip(loop, loop[1:] + loop[:1], strict=True)
    }
    before = {(k, v): u for (u, v), k in beside.items()}
    pairs: set[tuple[int, ...]] = set()
    threes: set[tuple[int, ...]] = set()
    for (u, v), k in beside.items():
        around, face = [k], beside.get((v, u), k)
        while face != k:
            around.append(face)
            face = beside.get((v, before[face, v]), k)
        if k == min(around):
            threes |= {tuple(sorted((k, *pair))) for pair in pairwise(around[1:])}
            pairs |= {(k, other) for other in around[1:]}
        pairs.add(tuple(sorted((k, beside.get((v, u), k)))))
    return {pair for pair in pairs if pair[0] < pair[1]}, threes


@njit(forceinline=True, error_model="numpy")
def _free_fraction(part: float) -> tuple[float, float]:
    """Fraction f that a wall with the part G leaves free for others, and df/dG.

    It is 1 - G where a lattice has its layers. It never reaches 0 however near the wall is, so that a corner
    pushes as its walls do.
    """
    if part <= ALONE:
        return 1.0 - part, -1.0
    left = (1.0 - ALONE) / (1.0 - 2.0 * ALONE + part)
    return (1.0 - ALONE) * left, -left * left


@njit(forceinline=True, error_model="numpy")
def shared_part(a: float, b: float, cosine: float) -> tuple[float, float, float]:
    """m(a, b): the part that two walls with the parts a and b share, and its derivatives by a and b.

    ``cosine`` is that of the angle between their normals.
    """
    (free_a, fall_a), (free_b, fall_b) = _free_fraction(a), _free_fraction(b)
    apart = 1.0 - max(cosine, 0.0)
    kappa = apart * free_a * free_b
    root = math.sqrt((a - b) * (a - b) + 4.0 * kappa * a * b)
    inverse = 0.5 / max(root, 1e-300)
    by_a = 0.5 - inverse * (a - b + 2.0 * b * (kappa + apart * fall_a * free_b * a))
    by_b = 0.5 - inverse * (b - a + 2.0 * a * (kappa + apart * free_a * fall_b * b))
    return 2.0 * a * b * (1.0 - kappa) / (a + b + root), by_a, by_b


@njit(forceinline=True, error_model="numpy")
def _container_part(
    planes: Array, joints: Joints, first: int, last: int, p: Vector, spacing: float, law: WallLaw,
    slope: Array, near: Array, part: Array, fall: Array, rate: Array,
) -> float:  # fmt: skip
    """G at ``p`` m of the planes first:last of a container; fills ``slope`` (3,) with its gradient [1/m].

    Returns 0, without a slope, more than two spacings outside the container. ``planes`` are those of
    ``container_planes``. ``near``, ``part``, ``fall`` and ``rate`` (planes,) are scratch; ``part`` has to be
    0 before, and is 0 after.
    """
    number, reach, total = 0, law.reach * spacing, 0.0
    for k in range(first, last):
        gap = planes[k, 3] - planes[k, 0] * p[0] - planes[k, 1] * p[1] - planes[k, 2] * p[2]
        if gap >= reach:
            continue
        if gap < -2.0 * spacing:
            for s in range(number):
                part[near[s]] = 0.0
            return 0.0
        value, steep = wall_part(gap / spacing, law)
        if value <= 0.0 or joints.square[k]:
            continue
        near[number], part[k], fall[k], rate[k] = k, value, steep, 1.0
        total += value
        number += 1
    for s in range(number):
        k = near[s]
        for e in range(joints.first_edge[k], joints.first_edge[k + 1]):
            m = joints.edges[e, 1]
            if part[m] > 0.0:
                one, by_k, by_m = shared_part(part[k], part[m], dot(row_of(planes, k), row_of(planes, m)))
                total -= one
                rate[k] -= by_k
                rate[m] -= by_m
        for e in range(joints.first_corner[k], joints.first_corner[k + 1]):
            m, n = joints.corners[e, 1], joints.corners[e, 2]
            if part[m] > 0.0 and part[n] > 0.0:
                total += _corner_part(planes, part, rate, k, m, n)
    for c in range(3):
        slope[c] = 0.0
    for s in range(number):
        k = near[s]
        part[k] = 0.0
        for c in range(3):
            slope[c] -= rate[k] * fall[k] / spacing * planes[k, c]
    return total


@njit(forceinline=True, error_model="numpy")
def _corner_part(planes: Array, part: Array, rate: Array, k: int, m: int, n: int) -> float:
    """t: the part that the three walls k, m and n share; adds its derivatives by their parts to ``rate``."""
    km, mk, mk_ = shared_part(part[k], part[m], dot(row_of(planes, k), row_of(planes, m)))
    mn, nm, nm_ = shared_part(part[m], part[n], dot(row_of(planes, m), row_of(planes, n)))
    nk, kn, kn_ = shared_part(part[n], part[k], dot(row_of(planes, n), row_of(planes, k)))
    a, b, c = part[k], part[m], part[n]
    by_k, by_m, by_n = km * nk / a, km * mn / b, mn * nk / c
    if by_k >= by_m and by_k >= by_n:
        rate[k] += (mk * nk + km * kn_ - by_k) / a
        rate[m] += mk_ * nk / a
        rate[n] += km * kn / a
        return by_k
    if by_m >= by_n:
        rate[k] += mk * mn / b
        rate[m] += (mk_ * mn + km * nm - by_m) / b
        rate[n] += km * nm_ / b
        return by_m
    rate[k] += mn * kn_ / c
    rate[m] += nm * nk / c
    rate[n] += (nm_ * nk + mn * kn - by_n) / c
    return by_n


@njit(error_model="numpy")
def gap_to(
    shape: Array, radius: Array, turn: Array, hull: Array, hulls: Hulls, i: int, d: Vector, reach: float
) -> tuple[float, Vector]:
    """(Signed distance m from the solid body ``i``, unit normal there) of a place ``d`` m from its centre.

    The columns are those of `Obstacles`. Polytopes one of whose planes is farther away than ``reach`` m are
    at ``reach``.
    """
    far = length(d)
    gap, normal = far - radius[i], scaled(1.0 / max(far, 1e-12), d)
    if gap < reach and shape[i] != BALL:
        at = matrix_at(turn, i)
        h, own = hull[i], rotated_back(at, d)
        if beyond_a_plane(hulls.planes, hulls.plane_start[h], hulls.plane_start[h + 1], own, reach):
            return reach, normal
        gap, outward, _ = closest(hulls, h, own)
        normal = rotated(at, outward)
    return gap, normal


@njit(cache=True, error_model="numpy")
def distance_to(obstacles: Obstacles, hulls: Hulls, i: int, p: Vector, reach: float) -> float:
    """Signed distance of the place ``p`` from the solid body ``i``, m; from ``reach`` m on as in `gap_to`."""
    d = minus(p, row_of(obstacles.x1, i))
    return gap_to(obstacles.shape, obstacles.radius, obstacles.turn1, obstacles.hull, hulls, i, d, reach)[0]


class Found(NamedTuple):
    """What a particle has found of the bodies near it, one entry each; of several parts that of the nearest.

    body (m,): the number. gap (m,): its distance, m. foot (m, 3): its closest point, m. value (m,): G.
    """

    body: Array
    gap: Array
    foot: Array
    value: Array


@njit(cache=True, error_model="numpy")
def _add_part(
    obstacles: Obstacles, hulls: Hulls, i: int, new: tuple[float, Vector, float, Array], found: Found,
    slope: Array, at: int, spacing: float,
) -> float:  # fmt: skip
    """Join part ``i`` with the parts of its body found before, the entry ``at``; returns what it adds to G.

    ``new`` is its gap m, closest point, G and slope of G. Two parts share m(a, b), as walls of a container
    do. But where the closest point of one lies on the other, at a seam, the surface goes on: they share all
    of the smaller G.
    """
    gap, foot, value, own = new
    before, other = found.body[at], row_of(found.foot, at)
    seam = spacing * SEAM
    apart = distance_to(obstacles, hulls, before, foot, seam)
    apart = min(apart, distance_to(obstacles, hulls, i, other, seam))
    share = min(max(apart / seam, 0.0), 1.0)
    normal, turned = row_of(slope, at), (own[0], own[1], own[2])
    size = math.sqrt(dot(normal, normal) * dot(turned, turned))
    cosine = dot(normal, turned) / max(size, 1e-300)
    one, by_a, by_b = shared_part(found.value[at], value, 1.0 - share * (1.0 - max(cosine, 0.0)))
    for k in range(3):
        slope[at, k] = (1.0 - by_a) * slope[at, k] + (1.0 - by_b) * own[k]
    found.value[at] += value - one
    if gap < found.gap[at]:
        found.body[at], found.gap[at] = i, gap
        found.foot[at, 0], found.foot[at, 1], found.foot[at, 2] = foot
    return value - one


@njit(cache=True, error_model="numpy")
def _is_hidden(obstacles: Obstacles, hulls: Hulls, i: int, near: Array, foot: Vector, n: Vector) -> bool:
    """Whether another part of the body of part i has its closest point, foot, and goes on beyond it along n.

    n is the direction from there to the particle, to which the other part is nearer then. ``near`` are the
    bodies near the particle.
    """
    d, m = minus(foot, row_of(obstacles.x1, i)), matrix_at(obstacles.turn1, i)
    place, along = rotated_back(m, d), rotated_back(m, n)
    touching = TOUCHING * obstacles.radius[i]
    for c in near:
        if c == i or obstacles.leader[c] != obstacles.leader[i]:
            continue
        if goes_on_beyond(hulls, obstacles.hull[c], place, along, touching):
            return True
    return False


@parallel(error_model="numpy")
def walls(
    chunk: int,
    obstacles: Obstacles, hulls: Hulls, joints: Joints, x: Array, spacing: float, law: WallLaw, wall: Array,
    body: Array, slope: Array,
) -> None:  # fmt: skip
    """Part G of bodies in the compression of every particle, and its gradient body by body.

    Args:
        obstacles: bodies where they are now (``x1``, ``turn1``), with a clearance of two spacings or more.
        x: (n, 3) m.
        spacing: edge of the cube that a particle takes up, m. law: result of ``wall_law``.
        wall: (n,) filled with G.
        body: (n, MOST_BODIES) filled with the numbers of the bodies that have a part in it, then -1; of a
            body of several parts, that of the nearest.
        slope: (n, MOST_BODIES, 3) filled with the gradients of their parts, 1/m.
    """
    rows, reach = x.shape[0], law.reach * spacing
    centre, turn, shape = obstacles.x1, obstacles.turn1, obstacles.shape
    radius, hull, containers = obstacles.radius, obstacles.hull, obstacles.containers
    planes, first_plane = container_planes(obstacles, hulls)
    many = len(containers)
    # Read fields outside the loop: each reading counts references, and all threads share that counter.
    origin, edge, cells = obstacles.origin, obstacles.edge, obstacles.cells
    start, near = obstacles.start, obstacles.near
    own = np.empty(3)
    leader, gap_of, value_of = obstacles.leader, np.empty(MOST_BODIES), np.empty(MOST_BODIES)
    foot_of = np.empty((MOST_BODIES, 3))
    room, part, fall = np.empty(len(planes), np.int64), np.zeros(len(planes)), np.empty(len(planes))
    rate = np.empty(len(planes))
    begin, end = chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS
    # Most particles are far from all planes of containers.
    gap, all_places = np.full(end - begin, np.inf), np.empty((3, end - begin))
    all_places[:] = x[begin:end].T
    lower_to_nearest(planes, 0, len(planes), joints.square, all_places, gap)
    for row in range(begin, end):
        wall[row] = 0.0
        for s in range(MOST_BODIES):
            body[row, s] = -1
        place = row_of(x, row)
        first, last = listed_at(origin, edge, cells, start, place)
        count = last - first
        found = 0
        for s in range(count + (many if gap[row - begin] < reach else 0)):
            i = near[first + s] if s < count else containers[s - count]
            d = minus(place, row_of(centre, i))
            far, value, gap_here, foot = length(d), 0.0, 0.0, place
            if shape[i] == CONTAINER:
                a, b = first_plane[s - count], first_plane[s - count + 1]
                value = _container_part(
                    planes, joints, a, b, place, spacing, law, own, room, part, fall, rate
                )
            elif far - radius[i] < reach:
                if shape[i] == BALL:
                    value, steep = wall_part((far - radius[i]) / spacing, law)
                    own[0], own[1], own[2] = scaled(steep / (spacing * max(far, 1e-12)), d)
                else:
                    m = matrix_at(turn, i)
                    h, local = hull[i], rotated_back(m, d)
                    if not beyond_a_plane(
                        hulls.planes, hulls.plane_start[h], hulls.plane_start[h + 1], local, reach
                    ):
                        gap_here, outward, point = closest(hulls, h, local)
                        foot = add_scaled(row_of(centre, i), 1.0, rotated(m, point))
                        value, steep = wall_part(gap_here / spacing, law)
                        own[0], own[1], own[2] = rotated(m, scaled(steep / spacing, outward))
                        away, others = rotated(m, outward), near[first:last]
                        if gap_here > 0.0 and _is_hidden(obstacles, hulls, i, others, foot, away):
                            value = 0.0
            if value <= 0.0:
                continue
            to = 0
            while to < found and leader[body[row, to]] != leader[i]:
                to += 1
            if to < found:  # another part of the same body
                entries = Found(body[row], gap_of, foot_of, value_of)
                new = gap_here, foot, value, own
                wall[row] += _add_part(obstacles, hulls, i, new, entries, slope[row], to, spacing)
            elif found < MOST_BODIES:
                wall[row] += value
                body[row, found], gap_of[found], value_of[found] = i, gap_here, value
                for k in range(3):
                    slope[row, found, k], foot_of[found, k] = own[k], foot[k]
                found += 1


@parallel()
def wall_forces(
    chunk: int,
    x: Array, pressure: Array, body: Array, slope: Array, centre: Array,
    force: Array, loads: Array,
) -> None:  # fmt: skip
    """Add -P grad G to ``force`` (n, 3) N, and the reaction on bodies to ``loads`` (CHUNKS, bodies, 6).

    ``pressure`` (n,) is P [J]. ``loads`` are force [N] and torque [N m] about ``centre`` (bodies, 3) m;
    ``body`` and ``slope`` are results of ``walls``.
    """
    rows = x.shape[0]
    for row in range(chunk * rows // CHUNKS, (chunk + 1) * rows // CHUNKS):
        if pressure[row] <= 0.0:
            continue
        for s in range(MOST_BODIES):
            i = body[row, s]
            if i < 0:
                break
            p = pressure[row]
            push = p * slope[row, s, 0], p * slope[row, s, 1], p * slope[row, s, 2]
            moment = cross_of(minus(row_of(x, row), row_of(centre, i)), push)
            for k in range(3):
                force[row, k] -= push[k]
                loads[chunk, i, k] += push[k]
                loads[chunk, i, 3 + k] += moment[k]
