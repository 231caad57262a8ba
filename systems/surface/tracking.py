"""A signed distance carried by the flow: its grid follows it, steps have bounded length, volume is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.input_limits import GRID_POINT, check_memory

if TYPE_CHECKING:
    from ecs_fluid.systems.surface.motion import Motion

NEAR = 5.0
"""Distance from the surface, in cells, within which the field is advanced."""
STRIDE = 2.0
"""Most cells that the surface moves in one step; longer ways take several steps."""
SHORT = 0.5
"""If the surface moves less than this in a tick, in cells, points take the velocity of the nearest surface
point."""
HELD = 2.5
"""Distance from the surface, in cells, within which advanced values are kept, not recomputed."""
ROOM = 6
"""Layers of points that the grid keeps around the liquid."""


class Level(NamedTuple):
    """Signed distances (px, py, pz) m on a grid of cells (3,) m whose first point is at the origin (3,) m."""

    phi: Array
    origin: Array
    spacing: Array

    @property
    def widest(self) -> float:
        """Largest spacing, m, of the axes that have more than one point."""
        return float(np.asarray(self.spacing)[np.array(self.phi.shape) > 1].max(initial=0.0))


def redistanced(level: Level, order: int, limit: float | None) -> tuple[Level, bool]:
    """True distances from the surface where the field is 0, and whether there is such a surface."""
    from ecs_fluid.kernels.surface.eikonal import distances
    from ecs_fluid.kernels.surface.level_set import kept_distances

    wide = np.array(level.phi.shape) > 1
    cell = float(np.asarray(level.spacing)[wide].min(initial=np.inf))
    phi, pinned = kept_distances(level.phi, level.spacing, HELD * cell)
    found = distances(phi, pinned, level.spacing, 2 if order == 2 else 1, limit)
    return level._replace(phi=found.phi), found.surface


def refitted(level: Level) -> Level:
    """The level on a larger or smaller grid of the same lattice, with `ROOM` layers around the liquid.

    New points hold the largest distance, as outside; the grid stays as it is while nothing is inside.
    """
    inside = np.argwhere(level.phi < 0)
    if not len(inside):
        return level
    shape = np.array(level.phi.shape)
    wide = shape > 1
    low = np.where(wide, inside.min(axis=0) - ROOM, 0)
    high = np.where(wide, inside.max(axis=0) + ROOM + 1, 1)
    # Not at every step: one point of slack per side keeps the grid until the liquid has moved by a cell.
    if ((np.abs(low) <= 1) & (np.abs(shape - high) <= 1)).all():
        return level
    what = f"grid points of {float(np.asarray(level.spacing).max()):g} m around the liquid"
    check_memory(GRID_POINT, float(np.prod(high - low)), what, "use larger cells")
    phi = np.full(high - low, np.abs(level.phi).max(), level.phi.dtype)
    first, last = np.maximum(low, 0), np.minimum(high, shape)
    taken = tuple(slice(a, b) for a, b in zip(first, last, strict=True))
    put = tuple(slice(a, b) for a, b in zip(first - low, last - low, strict=True))
    phi[put] = level.phi[taken]
    origin = np.asarray(level.origin, np.float64) + low * np.asarray(level.spacing, np.float64)
    return Level(phi, origin.astype(level.origin.dtype), level.spacing)


def advanced(level: Level, motion: Motion, dt: float, order: int, limit: float | None) -> tuple[Level, bool]:
    """The surface after `dt` s of that motion, as true distances, kept out of bodies; and whether there is
    one.

    If the surface moves less than `SHORT` cells, every point takes the velocity of the surface point nearest
    to it. Velocities that are constant along normals keep the field a distance (Adalsteinsson and Sethian, J.
    Comput. Phys. 148 (1999) 2), so that kept values stay smooth. If each point took its own velocity, strain
    would compress the levels until some had to be recomputed, which roughens the curvature. On longer ways
    the nearest surface point changes on the way, which would cost the second order, so each point then takes
    its own velocity.
    """
    from ecs_fluid.kernels.surface.level_set import advected, grid_rows, surface_points

    wide = np.array(level.phi.shape) > 1
    cell = float(np.asarray(level.spacing)[wide].min())
    surface, left = True, 1.0
    while surface and left > 0:
        level = refitted(level)
        near = np.abs(level.phi) <= NEAR * cell
        u = motion.velocity(surface_points(level.phi, level.origin, level.spacing, near)).astype(
            level.phi.dtype
        )
        fastest = _largest(u)
        if fastest * left * dt > SHORT * cell:
            own = grid_rows(level.phi, level.origin, level.spacing, near)
            u = motion.velocity(own).astype(level.phi.dtype)
            fastest = _largest(u)
        if fastest * dt == 0:
            # At rest nothing is recomputed: even a smooth surface would lose a little by it.
            return level, bool((level.phi < 0).any() and (level.phi >= 0).any())
        part = min(left, STRIDE * cell / (fastest * dt))
        moved = advected(level.phi, level.origin, level.spacing, near, u, part * dt)
        solid = depth_in_obstacles(level, motion)
        moved = moved if solid is None else np.maximum(moved, solid)
        level, surface = redistanced(level._replace(phi=moved), order, limit)
        left = left - part if left - part > 1e-9 else 0.0
    return level, surface


def _largest(u: Array) -> float:
    """Largest speed among velocities (n, 3), m/s."""
    return float(np.sqrt((u.astype(np.float64) ** 2).sum(axis=1).max())) if len(u) else 0.0


def depth_in_obstacles(level: Level, motion: Motion) -> Array | None:
    """Depth (px, py, pz) m in solid bodies or outside containers near the surface; -inf elsewhere.

    None without bodies. Outside them, the liquid's distance is the larger of its own and this.
    """
    from ecs_fluid.kernels.surface.level_set import grid_rows

    near = np.abs(level.phi) <= NEAR * float(np.asarray(level.spacing).max())
    depth = motion.depth(grid_rows(level.phi, level.origin, level.spacing, near))
    if depth is None:
        return None
    field = np.full(level.phi.shape, -np.inf, level.phi.dtype)
    field[near] = np.where(depth > 0, depth, -np.inf)
    return field


def with_volume(level: Level, volume: float, solid: Array | None = None) -> Level:
    """The surface moved along its normal, by at most half a cell, so that it encloses `volume` m^3.

    A distance plus a constant c is still a distance. dV/dc = -area, with which Newton's method takes three
    steps. The liquid stays out of ``solid`` (see `depth_in_obstacles`).
    """
    from ecs_fluid.kernels.surface.facets import enclosed

    def moved(by: float) -> Array:
        phi = level.phi + level.phi.dtype.type(by)
        return phi if solid is None else np.asarray(np.maximum(phi, solid))

    wide = np.array(level.phi.shape) > 1
    most = 0.5 * float(np.asarray(level.spacing)[wide].min())
    shift = 0.0
    for _ in range(3):
        found, area = enclosed(moved(shift), level.spacing)
        if area <= 0.0:
            return level
        shift = min(max(shift + (found - volume) / area, -most), most)
    return level._replace(phi=moved(shift))
