"""Flow in a box that lets nothing through its walls, however it moves and turns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import Grid, Sources
from ecs_fluid.errors import FluidError
from ecs_fluid.systems.partition import GHOSTS, PartitionSystem
from ecs_fluid.systems.shared.body_tables import (
    BODIES,
    body_entities,
    corners_of,
    gathered,
    move_to_stage,
    planes_of,
)
from ecs_fluid.systems.shared.walls import EVEN, Walls, along, skewness
from ecs_fluid.systems.velocity.core_levels import levels
from ecs_fluid.systems.velocity.poisson import LEAST_PER_CORE, THIN, scattered
from ecs_fluid.systems.velocity.solver import PairFields, Solver
from ecs_fluid.targets import Targets

if TYPE_CHECKING:
    from ecs_fluid.world import World

OUTSIDE = 1e-5
"""A point beyond a wall by up to this fraction of the box still counts as inside: its position is rounded."""


COARSER = 0.9
"""A coarser grid is used only if it has fewer cells along each axis than this fraction of the main grid's, so
that rounding alone never makes one."""

Mesh = tuple[Array, Array, Array]
"""Origin, spacing (3,) m and cells (3,) of a grid."""


class Box(NamedTuple):
    """A container that is a box: its middle (3,) m, half its sides (3,) m, and its axes as columns (3, 3).

    `velocity` (3,) m/s is the velocity of its middle, `spin` (3,) rad/s its angular velocity, in world axes.
    """

    middle: Array
    half: Array
    axes: Array
    velocity: Array
    spin: Array

    def inner(self, x: Array) -> Array:
        """Places x (3, n) m in the axes of the box, relative to its middle."""
        return np.asarray(self.axes.T @ (x - self.middle[:, None]))

    def holds(self, y: Array, dtype: Any) -> Array:
        """Mask (n,) of the places y (3, n) m, from `inner`, that lie in the box, to rounding in `dtype`."""
        rounding = 2 * float(np.finfo(dtype).eps * np.linalg.norm(self.middle))
        return np.asarray((np.abs(y) <= self.half[:, None] * (1 + OUTSIDE) + rounding).all(axis=0))


class Inside(NamedTuple):
    """Vortons in the axes of a box: x (3, n) m, alpha (3, n) m^3/s, sigma (n,) m."""

    x: Array
    alpha: Array
    sigma: Array


class ContainerSolver(Solver):
    """The sum over the vortons in the world's container, a box, and all their mirror images behind its walls.

    No fluid goes through the walls; it slips along them. The box may move and turn: u = v + grad(phi) +
    curl A, where v is the velocity of its middle, phi the potential of the irrotational flow that turning
    walls cause, and A the vector potential of vortons and images between walls at rest. Vorticity is spread
    on a grid in the box, and sums of sines and cosines turn it into velocity (`kernels.poisson.
    between_walls`), which is interpolated with third order. Vortons outside of the box induce no velocity,
    and the velocity there is zero.
    """

    resolution: float = Field(default=3.0, ge=0.5, le=16)
    """container: cells of the grid per mean core radius, 1"""
    most_cells: int = Field(default=2**18, ge=1000, le=2**27)
    """container: most cells of the grid"""
    transfer: Literal["linear", "m4_prime"]

    reads = BODIES
    asks = ("BodySystem",)
    has_images = True
    own_field = True

    def prepare(self, sources: Sources, grid: Grid) -> None:
        """Solve for the velocity relative to the middle of the box, in its axes, on its grid."""
        from ecs_fluid.kernels.poisson import between_walls
        from ecs_fluid.kernels.poisson.between_walls import ACROSS, reflected_in, reflected_out

        self.box = box_of(self.world)
        self.mesh = self._grid_of(self.box, sources.sigma)
        vortons, cells = self.inside(sources), self.mesh[2] - 2 * GHOSTS
        parts = []
        for level in levels(sources.sigma, self.code) if len(sources.sigma) else []:
            mesh = self._coarser(level.radius)
            omega = scattered(vortons, level, mesh, self.transfer)
            parts.append((level.radius, reflected_in(omega, GHOSTS)))
        self._sums = between_walls.BetweenWalls(parts, cells, self.mesh[1], self.code, self.world.dtype)
        self._velocity = reflected_out(self._sums.velocity(), GHOSTS, ACROSS)
        spin = self.box.axes.T @ self.box.spin
        if spin.any():
            turning = between_walls.turning(cells, self.mesh[1], spin, GHOSTS)
            self._velocity += turning.astype(self.world.dtype)
        self._jacobian: Array | None = None

    def fill(self, targets: Targets) -> None:
        """Interpolate between the points of the grid, and add the motion of the box."""
        from ecs_fluid.kernels.grids.cubic import interpolate
        from ecs_fluid.kernels.grids.differences import jacobian

        box, (origin, spacing, _) = self.box, self.mesh
        inner, dtype = box.inner(targets.x.T), self.world.dtype
        y, outside = np.ascontiguousarray(inner.T, dtype), ~box.holds(inner, dtype)
        u = np.empty_like(y)
        interpolate(y, origin, spacing, self._velocity, u)
        targets.u[...] = u @ box.axes.T + box.velocity
        targets.u[outside] = 0.0
        if targets.du is not None:
            if self._jacobian is None:
                self._jacobian = jacobian(self._velocity, spacing, order=4)
            du = np.empty((len(y), 3, 3), y.dtype)
            interpolate(y, origin, spacing, self._jacobian, du)
            targets.du[...] = box.axes @ du @ box.axes.T
            targets.du[outside] = 0.0

    def pair_fields(self, x: Array) -> PairFields:
        """The fields at x (m, 3) m, with all images; the velocity includes that of the box."""
        from ecs_fluid.kernels.grids.cubic import interpolate
        from ecs_fluid.kernels.poisson.between_walls import ALONG, reflected_out

        targets = Targets.at(x, gradient=True)
        self.fill(targets)
        assert targets.du is not None
        found, y = [], np.ascontiguousarray(self.box.inner(x.T).T, x.dtype)
        for field in (self._sums.potential(), self._sums.vorticity()):
            value = np.empty_like(y)
            interpolate(y, *self.mesh[:2], reflected_out(field, GHOSTS, ALONG), value)
            found.append((value @ self.box.axes.T).astype(x.dtype))
        return PairFields(found[0], found[1], targets.u, targets.du)

    def turned_vorticity(self) -> Array:
        """u cross omega (px, py, pz, 3) m/s^2 at the points of the grid in a box at rest, in its axes."""
        return np.cross(self._sums.velocity(), self._sums.vorticity())

    def image_walls(self) -> list[Walls]:
        """The walls of the box, where they are in this stage of the tick."""
        box = box_of(self.world)
        normals = np.concatenate([box.axes.T, -box.axes.T])
        offsets = along(normals, box.middle) + np.tile(box.half, 2)
        return [Walls(normals, offsets, float(np.prod(2 * box.half)), np.zeros((0, 3)))]

    def lint(self) -> list[str]:
        """Warn of too coarse a grid and of vortons outside the box; FluidError where there is no box."""
        box, (sources, _) = box_of(self.world), self.world.require(PartitionSystem).present()
        texts: list[str] = []
        sigma = sources.sigma
        if not len(sigma):
            return texts
        if beyond := int((~box.holds(box.inner(sources.x), self.world.dtype)).sum()):
            texts.append(f"VelocitySystem: {beyond} vortons lie outside the container and have no effect")
        rank = int(THIN * len(sigma))
        radius, spacing = float(np.partition(sigma, rank)[rank]), float(self._grid_of(box, sigma)[1].max())
        if radius < LEAST_PER_CORE * spacing:
            needed = math.ceil(np.prod(2 * box.half) * (LEAST_PER_CORE / radius) ** 3)
            texts.append(
                f"VelocitySystem: {radius / spacing:.2g} cells of the container's grid ({spacing:.3g} m) per "
                f"core radius ({radius:.3g} m) are too few, at least {LEAST_PER_CORE} are needed; use a "
                f"larger resolution, most_cells >= {needed:,}, or wider cores"
            )
        return texts

    def inside(self, sources: Sources) -> Inside:
        """The vortons in the axes of the box, with strength 0 for those outside."""
        box, dtype = self.box, self.world.dtype
        y = box.inner(sources.x)
        alpha = np.where(box.holds(y, dtype), box.axes.T @ sources.alpha, 0.0)
        bound = box.half[:, None]
        return Inside(np.clip(y, -bound, bound).astype(dtype), alpha.astype(dtype), sources.sigma)

    def _grid_of(self, box: Box, sigma: Array) -> Mesh:
        """Origin, spacing (3,) m and cells (3,) of the grid, with its points beyond the walls."""
        sides = 2 * box.half
        edge = (
            float(sigma.mean(dtype=np.float64)) / self.resolution if len(sigma) else float(sides.max()) / 32
        )
        return _mesh_of(box, max(edge, float(np.prod(sides) / self.most_cells) ** (1 / 3)))

    def _coarser(self, radius: float) -> Mesh:
        """The grid for blobs of this core radius: the main one, or one with `resolution` cells per radius."""
        own = _mesh_of(self.box, radius / self.resolution)
        return own if (own[2] < COARSER * self.mesh[2]).all() else self.mesh


def _mesh_of(box: Box, edge: float) -> Mesh:
    """A grid of cells up to `edge` m wide in a box, with points beyond its walls."""
    from scipy.fft import next_fast_len

    sides = 2 * box.half
    cells = np.array([next_fast_len(max(int(np.ceil(side / edge)), GHOSTS), real=True) for side in sides])
    spacing = sides / cells
    return -box.half - GHOSTS * spacing, spacing, cells + 2 * GHOSTS


def box_of(world: World) -> Box:
    """The world's one container, a box, at its place at the time of the integrator's stage.

    Its velocity is the one that it has during this tick; keys in time determine it beforehand.

    Raises:
        FluidError: if the world has no container, several, or one of another shape.
    """
    from ecs_fluid.kernels.bodies.rotation import cross, matrix_of
    from ecs_fluid.kernels.bodies.table import CONTAINER

    entities = body_entities(world)
    bodies, hulls = gathered(entities)
    numbers, axes = np.flatnonzero(bodies.shape == CONTAINER), None
    if len(numbers) == 1:
        axes = _box_axes(planes_of(hulls, bodies.hull[numbers[0]])[:, :3])
    if axes is None:
        what = f"{len(numbers)} containers" if len(numbers) != 1 else "one of another shape"
        raise FluidError(
            f"VelocitySystem: solver = 'container' needs exactly one container, a box; the world has {what}"
        )
    (i,) = numbers
    move_to_stage(world, entities, bodies)
    corners = corners_of(hulls, bodies.hull[i]) @ axes
    low, high, turned = corners.min(axis=0), corners.max(axis=0), matrix_of(bodies.q[i]) @ axes
    arm = turned @ (low + high) / 2
    velocity = bodies.v[i] + cross(bodies.angular_velocity[i], arm)
    return Box(bodies.x[i] + arm, (high - low) / 2, turned, velocity, bodies.angular_velocity[i])


def _box_axes(normals: Array) -> Array | None:
    """Three axes as columns, if the six normals (6, 3) are opposite pairs at right angles, else None."""
    if len(normals) != 6 or skewness(normals).max() > EVEN:
        return None
    first, second = normals[0], normals[np.flatnonzero(np.abs(normals @ normals[0]) < EVEN)[0]]
    return np.stack([first, second, np.cross(first, second)], axis=1)
