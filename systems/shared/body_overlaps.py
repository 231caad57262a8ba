"""Warnings of bodies, and of parts of bodies, that overlap, or lie where they cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import FREE, BodyPart
from ecs_fluid.entity import Entity
from ecs_fluid.systems.shared.body_tables import as_obstacles, corners_of, depths, planes_of, some_of
from ecs_fluid.systems.shared.populations import rows_of_each

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies

THIN = 0.015
"""Overlap, in radii of the ball inside the thinner body, up to which bodies count as touching. Cylinders have
corners outside of their radius, by 0.0057 of it at 24 sides: two that lie on each other share 0.0115."""

FAR = 1e-6
"""Rounding of a position in single precision, with some digits to spare, over its distance from the
origin."""

SHARED = 0.05
"""Overlap of two parts of a body, in radii of the ball inside the thinner, above which it is told."""

TOLD = 3
"""Most pairs that a sentence names."""

MOST_EDGES = 10_000
"""Above this many pairs of edges, two polytopes have so many faces that face normals alone suffice as
separating directions."""


class Solid(NamedTuple):
    """A ball, or a polytope, in world axes."""

    x: Array
    """centre (3,) m"""
    corners: Array
    """(v, 3) m; of a ball its centre"""
    normals: Array
    """outward normals of the faces (f, 3)"""
    starts: Array
    """start of each edge (e, 3) m"""
    along: Array
    """vector from the start of each edge to its end (e, 3) m"""
    radius: float
    """radius of a ball, m, else 0"""


Told = dict[tuple[str, str], float]
"""Names of two entities, and the largest overlap of their bodies, m."""


def overlap_lint(entities: list[Entity], bodies: Bodies, hulls: Hulls) -> list[str]:
    """Sentences on bodies that overlap now and that nothing separates.

    `bodies` are the bodies of all `entities`, end to end.
    """
    from ecs_fluid.kernels.bodies.close_bodies import close_pairs
    from ecs_fluid.kernels.bodies.table import BALL, CONTAINER

    held = np.flatnonzero(bodies.motion != FREE)
    if len(held) < 2:
        return []
    names = np.concatenate([np.full(len(entity), entity.name, object) for entity in entities])[held]
    some = some_of(bodies, held)
    inner = np.where(some.shape == BALL, some.radius, hulls.inner[some.hull] if len(hulls.inner) else 0.0)
    rounding = FAR * (np.abs(some.x).max(axis=1) + some.radius)
    pairs = close_pairs(some.x, some.radius, some.shape, np.full(len(held), FREE), some.leader)
    walls = some.shape[pairs[:, 0]] == CONTAINER
    apart: Told = {}
    within: Told = {}
    for (a, b), wall, depth in zip(pairs, walls, _depths(some, hulls, pairs, walls), strict=True):
        if depth > THIN * min(inner[a], inner[b]) + max(rounding[a], rounding[b]):
            found, key = within if wall else apart, (names[b], names[a]) if wall else (names[a], names[b])
            found[key] = max(depth, found.get(key, 0.0))
    texts = []
    if apart:
        what = _listed(apart, lambda a, b: f"{a!r} and {b!r}" if a != b else f"two of {a!r}")
        texts.append(
            f"BodySystem: fixed or scripted bodies overlap at the start: {what}; what one pushes out may "
            "end up in the other, so let them touch at most"
        )
    if within:
        what = _listed(within, lambda a, b: f"{a!r} into that of {b!r}")
        texts.append(
            f"BodySystem: fixed or scripted bodies reach into the wall of a container: {what}; what they "
            "push out may end up in the wall, so let them touch it at most"
        )
    return texts


def misplaced_lint(entities: list[Entity], bodies: Bodies, hulls: Hulls) -> list[str]:
    """Sentences on free bodies in others, beside containers, and in containers too narrow for them.

    `bodies` are the bodies of all `entities`, end to end. Bodies of several parts may have their centre in
    another body, and hinges may be in a wall.
    """
    from ecs_fluid.kernels.bodies.rotation import matrix_of
    from ecs_fluid.kernels.bodies.table import BALL, CONTAINER

    hollow, loose = bodies.shape == CONTAINER, (bodies.motion == FREE) & ~bodies.hinge.any(axis=1)
    first = bodies.leader == np.arange(len(loose))
    alone = np.bincount(bodies.leader, minlength=len(loose)) == 1
    inside, beside = np.zeros(len(loose), bool), np.zeros(len(loose), bool)
    if loose.any():
        for held, wrong in ((~loose & ~hollow, inside), (hollow, beside)):
            if held.any():
                obstacles = as_obstacles(some_of(bodies, held), hulls, 0.0)
                wrong[loose] = depths(obstacles, hulls, bodies.x[loose]) > 0.0
    texts = []
    for entity, rows in rows_of_each(entities):
        many = np.count_nonzero(first[rows])
        if count := np.count_nonzero((inside & first & alone)[rows]):
            texts.append(
                f"BodySystem: {count} of {many} free bodies of {entity.name!r} have their centres in "
                "fixed or scripted bodies, which throw them out; move one or the other"
            )
        if count := np.count_nonzero((beside & first)[rows]):
            texts.append(
                f"BodySystem: {count} of {many} free bodies of {entity.name!r} have their centres "
                "outside all containers, which draw them in; move them, or the containers"
            )
    inner = hulls.inner[bodies.hull] if len(hulls.inner) else 0.0
    width = 2 * np.where(bodies.shape == BALL, bodies.radius, inner)
    names = np.concatenate([np.full(len(entity), entity.name, object) for entity in entities])
    for c in np.flatnonzero(hollow):
        planes, corners = planes_of(hulls, bodies.hull[c]), corners_of(hulls, bodies.hull[c])
        room = float(np.ptp(corners @ planes[:, :3].T, axis=0).min())
        large = loose & (width > room * (1 + FAR))
        local = (bodies.x[large] - bodies.x[c]) @ matrix_of(bodies.q[c])
        large[large] = (local @ planes[:, :3].T <= planes[:, 3]).all(axis=1)
        for name in dict.fromkeys(names[large]):
            most = width[large & (names == name)].max()
            texts.append(
                f"BodySystem: {name!r} is {most:.3g} m wide, but {names[c]!r}, in which it lies, {room:.3g} "
                "m; make it smaller, or the container wider"
            )
    return texts


def part_overlap_lint(entities: list[Entity], bodies: Bodies, hulls: Hulls) -> list[str]:
    """A sentence on each entity whose free bodies have parts that overlap, by how much at most."""
    from ecs_fluid.kernels.bodies.close_bodies import close_pairs

    texts = []
    for entity, rows in rows_of_each(entities):
        which = np.arange(rows.start, rows.stop)[bodies.motion[rows] == FREE]
        if BodyPart not in entity or len(which) < 2:
            continue
        some = some_of(bodies, which)
        alone, free = np.arange(len(which)), np.full(len(which), FREE)
        corners = [_solid(some, hulls, k).corners for k in range(len(which))]
        middle = np.array([each.mean(axis=0) for each in corners])
        reach = np.array(
            [np.linalg.norm(each - x, axis=1).max() for each, x in zip(corners, middle, strict=True)]
        )
        pairs = close_pairs(middle, reach, some.shape, free, alone)
        pairs = pairs[some.leader[pairs[:, 0]] == some.leader[pairs[:, 1]]]
        least = SHARED * np.minimum(*hulls.inner[some.hull[pairs]].T)
        # No pair overlaps by more than the boxes around both do along any axis.
        low, high = (np.array([end(each, axis=0) for each in corners]) for end in (np.min, np.max))
        first, second = pairs.T
        shared = np.minimum(high[first], high[second]) - np.maximum(low[first], low[second])
        pairs, least = (rows[shared.min(axis=1) > least] for rows in (pairs, least))
        depth = _depths(some, hulls, pairs, np.zeros(len(pairs), bool))
        if (deep := depth[depth > least]).size:
            texts.append(
                f"BodySystem: parts of {entity.name!r} overlap, by up to {deep.max():.3g} m; what they share "
                "counts twice in mass and buoyancy, so let them touch at most"
            )
    return texts


def _listed(found: Told, pair: Callable[[str, str], str]) -> str:
    parts = [
        f"{pair(*names)} by {depth:.3g} m"
        for names, depth in sorted(found.items(), key=lambda item: -item[1])
    ]
    more = f" and {len(parts) - TOLD} more" if len(parts) > TOLD else ""
    return f"{', '.join(parts[:TOLD])}{more}"


def _depths(bodies: Bodies, hulls: Hulls, pairs: Array, walls: Array) -> Array:
    """Overlap (m,) m of the bodies of each pair (m, 2); 0 or less where they do not overlap."""
    solids = {k: _solid(bodies, hulls, k) for k in np.unique(pairs)}
    measures = (_beyond if wall else _depth for wall in walls)
    return np.array([f(solids[a], solids[b]) for f, (a, b) in zip(measures, pairs, strict=True)])


def _solid(bodies: Bodies, hulls: Hulls, k: int) -> Solid:
    from ecs_fluid.kernels.bodies.rotation import matrix_of
    from ecs_fluid.kernels.bodies.table import BALL

    x, hull = bodies.x[k], bodies.hull[k]
    if bodies.shape[k] == BALL:
        none = np.zeros((0, 3))
        return Solid(x, x[None], none, none, none, bodies.radius[k])
    turn = matrix_of(bodies.q[k])
    edges = hulls.edges[hulls.edge_start[hull] : hulls.edge_start[hull + 1]]
    corners = x + corners_of(hulls, hull) @ turn.T
    start, end = corners[edges[:, 0]], corners[edges[:, 1]]
    return Solid(x, corners, planes_of(hulls, hull)[:, :3] @ turn.T, start, end - start, 0.0)


def _depth(a: Solid, b: Solid) -> float:
    """Distance, m, to move two solids apart: the least overlap of their projections onto any direction.

    The candidate directions are the normals of faces; for two polytopes, the cross products of an edge of
    each; for a ball, the directions from corners and edges to its centre. A negative value is a gap.
    """
    directions = [np.eye(3), a.normals, b.normals]
    if len(a.along) * len(b.along) <= MOST_EDGES:
        directions.append(np.cross(a.along[:, None], b.along).reshape(-1, 3))
    for ball, other in ((a, b), (b, a)):
        if ball.radius:
            offset = ball.x - other.starts
            share = (offset * other.along).sum(axis=1) / (other.along**2).sum(axis=1)
            directions += [ball.x - other.corners, offset - share[:, None] * other.along]
    n = np.concatenate(directions)
    length = np.linalg.norm(n, axis=1, keepdims=True)
    long = (length > 1e-9 * length.max())[:, 0]
    n = n[long] / length[long]
    overlap = min(
        float((_reach(a.corners, sign * n) + _reach(b.corners, -sign * n)).min()) for sign in (1.0, -1.0)
    )
    return overlap + a.radius + b.radius


def _reach(corners: Array, directions: Array) -> Array:
    """Largest coordinate (m,) of the corners (v, 3) along each direction (m, 3), m."""
    parts = np.array_split(directions, 1 + len(directions) * len(corners) // 10**6)
    return np.concatenate([(part @ corners.T).max(axis=1) for part in parts])


def _beyond(container: Solid, b: Solid) -> float:
    """How far a solid reaches beyond the walls of a container, m; 0 where none of it is inside."""
    points = np.concatenate([b.corners, b.x[None]]) if not b.radius else b.corners
    walls = _reach(container.corners, container.normals)
    out = points @ container.normals.T - walls
    return float(out.max() + b.radius) if out.max(axis=1).min() < b.radius else 0.0
