"""Bodies that are fixed or scripted, which nothing parts, where they overlap or reach into a wall."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import FREE
from ecs_fluid.entity import Entity

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies

THIN = 1e-3
"""Overlap, in radii of the ball inside the thinner body, up to which bodies touch."""

FAR = 1e-6
"""Rounding of places in single precision, some digits of it, over their distance from the origin."""

TOLD = 3
"""Pairs that a sentence names."""

Told = dict[tuple[str, str], float]
"""Names of two entities, and the largest overlap of their bodies, m."""


def overlap_lint(entities: list[Entity], bodies: Bodies, hulls: Hulls) -> list[str]:
    """Sentences on `bodies`, those of the entities end to end, that nothing parts where they overlap now."""
    from ecs_fluid.kernels.bodies.close_bodies import close_pairs
    from ecs_fluid.kernels.bodies.table import BALL, CONTAINER, Bodies

    held = np.flatnonzero(bodies.motion != FREE)
    if len(held) < 2:
        return []
    names = np.concatenate([np.full(len(entity), entity.name, object) for entity in entities])[held]
    some = Bodies(*(column[held] for column in bodies))
    inner = np.where(some.shape == BALL, some.radius, hulls.inner[some.hull] if len(hulls.inner) else 0.0)
    least = THIN * inner + FAR * (np.abs(some.x).max(axis=1) + some.radius)
    pairs = close_pairs(some.x, some.radius, some.shape, np.full(len(held), FREE))
    walls = some.shape[pairs[:, 0]] == CONTAINER
    apart: Told = {}
    within: Told = {}
    for (a, b), wall, depth in zip(pairs, walls, _depths(some, hulls, pairs, walls), strict=True):
        if depth > max(least[a], least[b]):
            found, key = within if wall else apart, (names[b], names[a]) if wall else (names[a], names[b])
            found[key] = max(depth, found.get(key, 0.0))
    said = []
    if apart:
        what = _listed(apart, lambda a, b: f"{a!r} and {b!r}" if a != b else f"two of {a!r}")
        said.append(
            f"BodySystem: fixed or scripted bodies overlap at the start: {what}; what one pushes out may be "
            "in the other, so let them touch at most"
        )
    if within:
        what = _listed(within, lambda a, b: f"{a!r} into that of {b!r}")
        said.append(
            f"BodySystem: fixed or scripted bodies reach into the wall of a container: {what}; what they "
            "push out may be in the wall, so let them touch it at most"
        )
    return said


def _listed(found: Told, pair: Callable[[str, str], str]) -> str:
    parts = [
        f"{pair(*names)} by {depth:.3g} m"
        for names, depth in sorted(found.items(), key=lambda item: -item[1])
    ]
    more = f" and {len(parts) - TOLD} more" if len(parts) > TOLD else ""
    return f"{', '.join(parts[:TOLD])}{more}"


def _depths(bodies: Bodies, hulls: Hulls, pairs: Array, walls: Array) -> Array:
    """How far the bodies of each pair (m, 2) overlap, m; 0 or less where they do not."""
    from ecs_fluid.kernels.bodies.contacts import contacts_of_pair
    from ecs_fluid.kernels.bodies.manifold import MOST_CONTACTS
    from ecs_fluid.kernels.bodies.table import BALL

    a, b = pairs.T
    depth = bodies.radius[a] + bodies.radius[b] - np.linalg.norm(bodies.x[b] - bodies.x[a], axis=1)
    still, out = np.zeros_like(bodies.x), np.empty((MOST_CONTACTS, 7))
    for k in np.flatnonzero((bodies.shape[a] != BALL) | (bodies.shape[b] != BALL)):
        if walls[k]:
            depth[k] = _beyond(bodies, hulls, a[k], b[k])
        else:
            count = contacts_of_pair(bodies, hulls, still, a[k], b[k], 0.0, out)
            depth[k] = -out[:count, 6].min(initial=0.0)
    return np.asarray(depth)


def _beyond(bodies: Bodies, hulls: Hulls, a: int, b: int) -> float:
    """How far body b reaches beyond the walls of container a, m; 0 where none of it is inside."""
    from ecs_fluid.kernels.bodies.rotation import matrix_of
    from ecs_fluid.kernels.bodies.table import BALL

    planes = hulls.planes[hulls.plane_start[bodies.hull[a]] : hulls.plane_start[bodies.hull[a] + 1]]
    points, ball = np.zeros((1, 3)), bodies.radius[b]
    if bodies.shape[b] != BALL:
        number, ball = bodies.hull[b], 0.0
        corners = hulls.vertices[hulls.vertex_start[number] : hulls.vertex_start[number + 1]]
        points = np.concatenate([points, corners @ matrix_of(bodies.q[b]).T])
    seen = (points + bodies.x[b] - bodies.x[a]) @ matrix_of(bodies.q[a])
    out = seen @ planes[:, :3].T - planes[:, 3]
    return float(out.max() + ball) if out.max(axis=1).min() < ball else 0.0
