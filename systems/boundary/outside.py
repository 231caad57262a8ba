"""The potential flow outside several bodies: each of them is in the flow of the sheets of all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.input_limits import check_memory
from ecs_fluid.systems.shared.body_tables import near_bodies, some_of

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies
    from ecs_fluid.kernels.panels.panels import Panels
    from ecs_fluid.systems.boundary.sheets import Covered, Sheet, Surface

CLOSEST = 0.25
"""Least distance at which a panel counts from another body, in roots of its area (or lengths of segments).

Where surfaces touch, the fluid between them cannot flow: two panels that face each other at distance 0 would
make the matrix singular.
"""

PAIR = 90.0
"""Memory of a pair of panels while the matrices are made, bytes; 64 to 81 measured in a plane."""


class Outside(NamedTuple):
    """The problem outside all bodies, with p panels: the matrix S (p, p) m, and the factors of 1/2 - K."""

    single: Array
    factors: tuple[Array, Array]


def outside_of(covered: Covered) -> Outside:
    """The matrices for all surfaces at their present places; (1/2 - K) phi = -S g, as for one body."""
    from ecs_fluid.kernels.panels.panel_flow import factorise

    bodies, hulls, surfaces, sheet = covered
    p = len(sheet.owner)
    check_memory(PAIR, float(p) ** 2, "pairs of panels for BoundarySystem", "use fewer panels or bodies")
    single, double = _layer_potentials(bodies, surfaces, sheet.center)
    seen = _retracted_centers(bodies, hulls, sheet)
    if (seen != sheet.center).any():
        others = sheet.owner[:, None] != sheet.owner
        for own, there in zip((single, double), _layer_potentials(bodies, surfaces, seen), strict=True):
            own[others] = there[others]
    matrix, pivot = 0.5 * np.eye(p) - double, np.empty(p, np.int64)
    factorise(matrix, pivot)
    return Outside(single, (matrix, pivot))


def circulations(outside: Outside, surfaces: list[Surface], normal_velocities: Array) -> list[list[Array]]:
    """Circulations, m^2/s, of the rings of each surface, for each of the k normal velocities (k, p) m/s.

    This generalises `kernels.panels.panel_flow.ring_circulations`, for one body. The potential inside a body
    is still solved for each body by itself.
    """
    from ecs_fluid.kernels.panels.panel_flow import product_many, solve_many

    weights = [s.panels.area / s.panels.area.sum() for s in surfaces]
    given = normal_velocities.T.copy()
    for k, velocity in enumerate(normal_velocities):
        for s, weight in zip(surfaces, weights, strict=True):
            given[s.rows, k] -= (velocity[s.rows] * weight).sum()
    out = -solve_many(*outside.factors, product_many(outside.single, given))
    for s in surfaces:
        out[s.rows] -= solve_many(*s.factors.inside, product_many(s.factors.single, given[s.rows]))
    found = []
    for jump in out.T:
        pairs = [(jump[s.rows], weight) for s, weight in zip(surfaces, weights, strict=True)]
        found.append([np.asarray((part * weight).sum() - part) for part, weight in pairs])
    return found


def _layer_potentials(bodies: Bodies, surfaces: list[Surface], seen: Array) -> tuple[Array, Array]:
    """S (p, p) m and K (p, p) 1: potentials of all panels j at the places `seen` (p, 3) of the panels i."""
    from ecs_fluid.kernels.panels.outlines import segment_layers
    from ecs_fluid.kernels.panels.panel_flow import triangle_layers

    panels = _joined(bodies, surfaces)._replace(center=seen)
    if panels.corners.shape[1] == 2:
        return segment_layers(panels)
    single, double = np.empty((2, len(seen), len(seen)))
    triangle_layers(panels.center, panels.vertices, panels.corners, single, double)
    return single, double


def _joined(bodies: Bodies, surfaces: list[Surface]) -> Panels:
    """The panels of all bodies in the world as one surface."""
    from ecs_fluid.systems.boundary.sheets import turned

    parts = [s.panels for s in surfaces]
    starts = np.cumsum([0, *(len(each.vertices) for each in parts)])
    places = [turned(s.turn, s.panels.vertices) + x for s, x in zip(surfaces, bodies.x, strict=True)]
    return parts[0]._replace(
        vertices=np.concatenate(places),
        corners=np.concatenate([each.corners + k for each, k in zip(parts, starts, strict=False)]),
        normal=np.concatenate([turned(s.turn, s.panels.normal) for s in surfaces]),
        area=np.concatenate([each.area for each in parts]),
    )


def _retracted_centers(bodies: Bodies, hulls: Hulls, sheet: Sheet) -> Array:
    """Centres (p, 3) of the panels, moved into their bodies where another body is closer than CLOSEST."""
    seen = sheet.center.copy()
    for i in range(len(bodies.x)):
        mine = np.flatnonzero(sheet.owner == i)
        least = CLOSEST * (sheet.volume / sheet.area)[mine]
        others = some_of(bodies, np.arange(len(bodies.x)) != i)
        rows, _, gap, _ = near_bodies(others, hulls, sheet.center[mine], least)
        seen[mine[rows]] -= (least[rows] - gap)[:, None] * sheet.normal[mine[rows]]
    return seen
