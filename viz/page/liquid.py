"""A liquid as one mesh for the viewer: its surface, and its drops as icosahedra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ecs_fluid.exports.colours import Colour
from ecs_fluid.exports.surfaces import Liquid
from ecs_fluid.viz.columns import Columns
from ecs_fluid.viz.liquid_surface import DROP, FOAM, drop_colours, surface_colours

LONG = 0.5 * (1.0 + np.sqrt(5.0))
CORNERS = np.array([np.roll((0.0, a, b * LONG), k) for k in range(3) for a in (-1, 1) for b in (-1, 1)])
"""Corners (12, 3) of an icosahedron whose edges are 2 long"""
FACES = np.array(
    [
        face if np.linalg.det(CORNERS[list(face)]) > 0.0 else face[::-1]
        for face in combinations(range(12), 3)
        if all(np.linalg.norm(CORNERS[a] - CORNERS[b]) < 2.1 for a, b in combinations(face, 2))
    ]
)
"""Its faces (20, 3), counterclockwise from outside"""
BALL = CORNERS / np.hypot(1.0, LONG)


class DrawnLiquid(NamedTuple):
    """Vertices (v, 3) m, triangles (t, 3), speeds (v,) m/s, and colours (v, 3) from 0 to 1, or None."""

    vertices: np.ndarray
    triangles: np.ndarray
    speed: np.ndarray
    colour: np.ndarray | None


def drawn_liquid(
    liquid: Liquid, colours: Mapping[str, Colour], water: Colour, whitewater: Sequence[Columns]
) -> DrawnLiquid:
    """The surface of a liquid and its drops as in pictures, in `colours` by population, else `water`."""
    vertices, triangles = liquid.vertices, liquid.mesh.triangles
    speed, made = np.linalg.norm(liquid.vertex_velocity, axis=1), liquid.made_of
    if made is None:
        return DrawnLiquid(vertices, triangles, speed, None)
    x, u, drops, spacing, counts = made
    plain, white = (
        np.repeat([colours.get(name, other) for name in counts], list(counts.values()), axis=0)
        for other in (water, FOAM)
    )
    colour = np.zeros((0, 3))
    if len(vertices):
        colour = surface_colours(vertices, x, u, drops, spacing, plain, whitewater)
    if drops.any():
        n, k = int(drops.sum()), len(BALL)
        around = x[drops][:, None] + DROP * spacing * BALL
        more = len(vertices) + k * np.arange(n)[:, None, None] + FACES
        of_drops = drop_colours(x, u, drops, spacing, plain, white)
        vertices = np.concatenate((vertices, around.reshape(-1, 3)))
        triangles = np.concatenate((triangles, more.reshape(-1, 3)))
        speed = np.concatenate((speed, np.repeat(np.linalg.norm(u[drops], axis=1), k)))
        colour = np.concatenate((colour, np.repeat(of_drops, k, axis=0)))
    return DrawnLiquid(vertices, triangles, speed, colour)
