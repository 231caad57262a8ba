"""The wake of panels: vortons are shed into it, and merged where they lie close together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, Strength, Volume
from ecs_fluid.errors import FluidError
from ecs_fluid.systems.boundary.article import astray
from ecs_fluid.systems.shared.body_tables import near_bodies, some_of

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies
    from ecs_fluid.systems.boundary.sheets import Covered
    from ecs_fluid.systems.boundary.system import BoundarySystem

WAKE_COLUMNS: Any = ((Position, "x"), (Strength, "alpha"), (CoreRadius, "sigma"), (Volume, "volume"))
"""Columns of the wake, in the order of `WakeVortons`."""


class WakeVortons(NamedTuple):
    """Vortons (m rows) that go into the wake: shed by panels, or released by a body that was removed."""

    x: Array
    alpha: Array
    sigma: Array
    volume: Array


def shed_sheets(system: BoundarySystem, covered: Covered, strengths: Array, released: WakeVortons) -> None:
    """Add the sheets' vortons and the released ones to the wake, and merge those that lie close together."""
    wake, sheet = system.world[system.wake], covered.sheet
    old = len(wake)
    shed = WakeVortons(sheet.shed, strengths, sheet.sigma, sheet.volume)
    every = WakeVortons(
        *(
            np.concatenate([getattr(wake[kind], name).astype(np.float64), *fresh])
            for (kind, name), *fresh in zip(WAKE_COLUMNS, shed, released, strict=True)
        )
    )
    first, merged = _merged(system, covered, every)
    stay = first < old
    rows = first[stay]
    for (kind, name), values in zip(WAKE_COLUMNS, merged, strict=True):
        getattr(wake[kind], name)[rows] = values[stay]
    gone = np.ones(old, bool)
    gone[rows] = False
    if gone.any():
        wake.kill(gone)
    new = ~stay
    if new.any():
        wake.spawn(*(kind(values[new]) for (kind, _), values in zip(WAKE_COLUMNS, merged, strict=True)))


def _merged(system: BoundarySystem, covered: Covered, every: WakeVortons) -> tuple[Array, WakeVortons]:
    """Merge vortons that share a cell; returns the first row merged into each vorton, and the vortons.

    Cells are `merge` core radii wide, and coarser with the distance from bodies as far as `most` demands.
    """
    from ecs_fluid.kernels.vorticity.merging import cell_levels, merge

    bodies, hulls, _, sheet = covered
    x, sigma = every.x, every.sigma
    base = cell_levels(system.merge * sigma)
    distance, side = _distance(bodies, hulls, x), _normal_octant(bodies, hulls, x, sigma)
    for coarser in range(32):
        level = base + np.floor(coarser * distance).astype(np.int64)
        merged = merge(*every, level, side)
        if len(merged.first) <= system.most:
            break
    else:
        raise FluidError(
            f"BoundarySystem: {len(sheet.area)} panels shed more vortons than most = {system.most} "
            "allows; use fewer panels or a larger most"
        )
    # The centre of merged vortons may lie in a body whose surface curves between them.
    lost = astray(bodies, hulls, merged.x)
    merged.x[lost] = x[merged.first[lost]]
    return merged.first, WakeVortons(merged.x, merged.alpha, merged.sigma, merged.volume)


def _distance(bodies: Bodies, hulls: Hulls, x: Array) -> Array:
    """log2(1 + distance from the nearest body's ball, or container's walls, in its diameters) (n,)."""
    from ecs_fluid.kernels.bodies.table import CONTAINER

    least = np.full(len(x), np.inf)
    for i, (center, radius) in enumerate(zip(bodies.x, bodies.radius, strict=True)):
        gap = np.linalg.norm(x - center, axis=1) / radius - 1.0
        if bodies.shape[i] == CONTAINER:
            rows, _, walls, _ = near_bodies(
                some_of(bodies, np.array([i])), hulls, x, np.full(len(x), 2.0 * radius)
            )
            gap[rows] = walls / radius
        least = np.minimum(least, np.maximum(gap, 0.0) / 2.0)
    return np.asarray(np.log2(1.0 + least))


def _normal_octant(bodies: Bodies, hulls: Hulls, x: Array, sigma: Array) -> Array:
    """Number (n,) of the octant of the normal of a surface within two core radii, 0 where there is none."""
    rows, _, _, normal = near_bodies(bodies, hulls, x, 2.0 * sigma)
    side = np.zeros(len(x), np.int64)
    side[rows] = 1 + (normal > 0.0) @ np.array([4, 2, 1])
    return side
