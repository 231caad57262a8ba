"""Panels that cover bodies, and the common base of the conditions that solve for vortex sheets on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import RigidMotion
from ecs_fluid.errors import FluidError
from ecs_fluid.systems.boundary.article import astray
from ecs_fluid.systems.boundary.shed_motion import MotionMemory
from ecs_fluid.systems.shared.body_tables import body_entities, corners_of, gathered
from ecs_fluid.systems.shared.populations import rows_of_each
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.targets import Targets

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies
    from ecs_fluid.kernels.panels.panel_flow import Factors
    from ecs_fluid.kernels.panels.panels import Panels
    from ecs_fluid.systems.boundary.system import BoundarySystem
    from ecs_fluid.world import World


PAST = 0.1
"""Speed of the fluid past a body, over its spin times its extent, above which `friction` is told."""


class Surface(NamedTuple):
    """Panels of one body at its present place, and the factors of its matrix."""

    panels: Panels
    """panels in the axes of the body"""
    factors: Factors
    turn: Array
    """rotation (3, 3) from these axes to the world's; 1 for balls, whose panels do not turn with them"""
    outward: float
    """1 for solids, -1 for containers, whose fluid is inside"""
    first: int
    """number of its first panel among those of all bodies"""

    @property
    def rows(self) -> slice:
        """The slice of its rows among the panels of all bodies."""
        return slice(self.first, self.first + len(self.panels.area))


class Sheet(NamedTuple):
    """The panels of all bodies in the world (p rows)."""

    owner: Array
    """number of the panel's body"""
    center: Array
    arm: Array
    """vector from the centre of the body to the panel's centre"""
    wall: Array
    """velocity of the surface at the panel's centre, m/s"""
    normal: Array
    """unit normal, into the fluid"""
    area: Array
    shed: Array
    """place where the panel's vorton is shed"""
    sigma: Array
    """core radius of that vorton"""
    volume: Array
    """volume of that vorton"""

    def around(self, spin: Array) -> Array:
        """Strengths n x (spin x r) A (p, 3) for spins (n, 3) of the bodies; a closed surface's sum is 2 spin
        V."""
        return np.asarray(self.area[:, None] * np.cross(self.normal, np.cross(spin[self.owner], self.arm)))

    def solid(self, spin: Array) -> Array:
        """Strengths 2 n (spin . r) A (p, 3) for spins (n, 3); a closed surface's sum is 2 spin V.

        They make the same flow as the vorticity 2 spin in the body. With chi, 1 in the body and 0 outside,
        the two differ by the gradient of 2 (spin . r) chi, and by Biot and Savart's law gradients make none.
        """
        along = (spin[self.owner] * self.arm).sum(axis=1)
        return np.asarray((2.0 * self.area * along)[:, None] * self.normal)

    def turning(self, spin: Array) -> Array:
        """Strengths (p, 3), in all 0, that have the vorticity 2 spin in the bodies and none outside.

        They make the flow spin x r in a body, which ends with the sheet -n x (spin x r). Where spin x r has a
        component along the normal of the surface, there is potential flow besides.
        """
        return self.solid(spin) - self.around(spin)


class Covered(NamedTuple):
    """All bodies at their present places, and the panels that cover them."""

    bodies: Bodies
    hulls: Hulls
    surfaces: list[Surface]
    sheet: Sheet

    @property
    def volumes(self) -> Array:
        """Volumes (n,) m^3 that the panels enclose."""
        return np.array([s.panels.volume for s in self.surfaces])


class SheetBoundary(ABC):
    """Base of the conditions with vortex sheets on all bodies; caches the matrix factors of each shape.

    The cache is not state: the factors follow from the shapes.
    """

    def __init__(self, system: BoundarySystem) -> None:
        self.system = system
        self._known: dict[bytes, tuple[Panels, Factors]] = {}
        self.memory = MotionMemory(system)
        self.residual = 0.0

    @property
    def world(self) -> World:
        """The world of the system."""
        return self.system.world

    @abstractmethod
    def spawns(self, world: World) -> None:
        """Make the entities of shed vortons, and the component ShedMotion."""

    @abstractmethod
    def process(self, entities: list[Entity]) -> None:
        """Solve for the sheets, and shed them into the fluid."""

    def speeds_and_extents(self, entities: list[Entity]) -> tuple[Array, Array]:
        """Speeds (n,) m/s of the wind past bodies, and their extents (n,) m."""
        from ecs_fluid.systems.operations import wind_at

        if not any(len(entity) for entity in entities):
            return np.zeros(0), np.zeros(0)
        bodies, hulls = gathered(entities)
        speed = np.linalg.norm(wind_at(self.world, self.world.time) - bodies.v, axis=1)
        return speed, self.extents(bodies, hulls)

    def friction_lint(self, entities: list[Entity]) -> list[str]:
        """Warn of `friction` where fluid flows past bodies."""
        past, extent = self.speeds_and_extents(entities)
        spins = [np.linalg.norm(entity[RigidMotion].angular_velocity, axis=1) for entity in entities]
        fast = past > PAST * extent * np.concatenate([np.zeros(0), *spins])
        if not fast.any():
            return []
        return [
            "BoundarySystem: friction = true is for bodies that turn on the spot, but fluid flows past one "
            f"at {past[fast].max():.3g} m/s, and would get energy that no body loses; leave friction out"
        ]

    def covered(self, bodies: Bodies, hulls: Hulls) -> Covered:
        """All bodies with their panels."""
        surfaces = list(self._surfaces(bodies, hulls))
        return Covered(bodies, hulls, surfaces, self._sheet(bodies, hulls, surfaces))

    def _surfaces(self, bodies: Bodies, hulls: Hulls) -> Iterator[Surface]:
        """The panels of each body, made and factorised when a body of that shape first occurs."""
        from ecs_fluid.kernels.bodies.rotation import matrix_of
        from ecs_fluid.kernels.bodies.table import BALL, CONTAINER
        from ecs_fluid.kernels.panels.panel_flow import are_regular, ring_factors

        first = 0
        for i in range(len(bodies.x)):
            ball = bodies.shape[i] == BALL
            radius, corners = float(bodies.radius[i]), _corners(bodies, hulls, i)
            edge = self.edge(self._extent(bodies, hulls, i))
            key = np.append(radius if ball else corners, edge).tobytes()
            if key not in self._known:
                panels = self._panels(bodies, hulls, i, edge)
                self._known[key] = panels, ring_factors(panels)
                if not are_regular(self._known[key][1]):
                    raise FluidError(
                        f"BoundarySystem: nothing solves for the flow around {self._name_of(i)} with its "
                        f"{len(panels.area)} panels, since some lie on others; use a shape without slivers"
                    )
            panels, factors = self._known[key]
            turn = np.eye(3) if ball else matrix_of(bodies.q[i])
            yield Surface(panels, factors, turn, -1.0 if bodies.shape[i] == CONTAINER else 1.0, first)
            first += len(panels.area)

    def _name_of(self, i: int) -> str:
        """The name of the entity of body i, and the number of its row there, for messages."""
        for entity, rows in rows_of_each(self.system._with_sheets(body_entities(self.world))):
            if i < rows.stop:
                return f"{entity.name!r} (row {i - rows.start})"
        raise IndexError(i)

    def edge(self, extent: float) -> float:
        """Edge of the panels of a body of this extent, m."""
        return self.system.spacing or extent / self.system.panels_across

    def _panels(self, bodies: Bodies, hulls: Hulls, i: int, edge: float) -> Panels:
        """Panels on body i, in its own axes."""
        from ecs_fluid.kernels.bodies.table import BALL
        from ecs_fluid.kernels.panels.outlines import disk_outline, prism_outline
        from ecs_fluid.kernels.panels.panels import ball_panels, hull_panels

        across, hull, radius = self.world.across, int(bodies.hull[i]), float(bodies.radius[i])
        if bodies.shape[i] == BALL:
            return ball_panels(radius, edge) if across is None else disk_outline(radius, edge, across)
        return hull_panels(hulls, hull, edge) if across is None else prism_outline(hulls, hull, edge, across)

    def extents(self, bodies: Bodies, hulls: Hulls) -> Array:
        """Longest extent (n,) m of each body."""
        return np.array([self._extent(bodies, hulls, i) for i in range(len(bodies.x))])

    def _extent(self, bodies: Bodies, hulls: Hulls, i: int) -> float:
        """Longest extent of the body of row i, all parts, along its axes (in a plane, of those in it), m."""
        parts = np.flatnonzero(bodies.leader == bodies.leader[i]).tolist()
        corners = np.concatenate([_corners(bodies, hulls, k) for k in parts])
        if not len(corners):
            return 2.0 * float(bodies.radius[i])
        return float(np.ptp(corners, axis=0)[np.arange(3) != self.world.across].max())

    def _sheet(self, bodies: Bodies, hulls: Hulls, surfaces: list[Surface]) -> Sheet:
        """All panels in the world."""
        owner = np.concatenate([np.full(len(s.panels.area), i) for i, s in enumerate(surfaces)])
        center = np.concatenate(
            [turned(s.turn, s.panels.center) + x for s, x in zip(surfaces, bodies.x, strict=True)]
        )
        normal = np.concatenate([s.outward * turned(s.turn, s.panels.normal) for s in surfaces])
        area = np.concatenate([s.panels.area for s in surfaces])
        # One size for a whole body: vortons of equal cores keep their total strength when they stretch.
        size = np.concatenate([np.full(len(s.panels.area), self._size(s.panels)) for s in surfaces])
        shed = center + (self.system.offset * size)[:, None] * normal
        mirrors = self.world.require(VelocitySystem).mirror_planes
        for part in (0.5, 0.25, 0.0):
            # Nearer to the surface where another body is closer than that.
            lost = np.any([astray(bodies, hulls, shed), *(one.is_behind(shed) for one in mirrors)], axis=0)
            shed[lost] = center[lost] + (part * self.system.offset * size[lost])[:, None] * normal[lost]
        arm = center - bodies.x[owner]
        wall = bodies.v[owner] + np.cross(bodies.angular_velocity[owner], arm)
        sigma = self.system.overlap * size
        return Sheet(owner, center, arm, wall, normal, area, shed, sigma, size * area)

    def _size(self, panels: Panels) -> float:
        """Mean over the surface of the root of the triangles' area, or of the length of segments, m."""
        mean = float((panels.area**2).sum() / panels.area.sum())
        return mean if self.world.dimension == 2 else float(np.sqrt(mean))

    def velocity_at(self, points: Array, x: Array, alpha: Array, sigma: Array, images: bool = True) -> Array:
        """Velocity (m, 3) m/s that vortons, and their `images` behind mirrors, induce at points (m, 3).

        By the direct sum in double precision.
        """
        from ecs_fluid.kernels.biot_savart.direct import velocity

        rows = np.ascontiguousarray(x.T), np.ascontiguousarray(alpha.T), np.ascontiguousarray(sigma)
        system = self.world.require(VelocitySystem)

        def fill(targets: Targets) -> None:
            velocity(system.code, targets.x, *rows, targets.u)

        targets = Targets.at(np.ascontiguousarray(points), gradient=False)
        fill(targets)
        for mirror in system.mirror_planes if images else ():
            mirror.add(targets, fill)
        return targets.u


def _corners(bodies: Bodies, hulls: Hulls, i: int) -> Array:
    """Corners (m, 3) of body i, m, in its own axes; none for a ball."""
    from ecs_fluid.kernels.bodies.table import BALL

    return hulls.vertices[:0] if bodies.shape[i] == BALL else corners_of(hulls, int(bodies.hull[i]))


def strengths_of_rings(surfaces: list[Surface], mu: list[Array]) -> Array:
    """Strengths (p, 3) m^3/s, in world axes, of rings with the circulations mu, m^2/s, of each surface."""
    from ecs_fluid.kernels.panels.panel_flow import sheet_strengths

    parts = [turned(s.turn, sheet_strengths(s.panels, m)) for s, m in zip(surfaces, mu, strict=True)]
    return np.concatenate(parts)


def turned(turn: Array, vectors: Array) -> Array:
    """Vectors (n, 3) turned by a matrix (3, 3); not by BLAS, whose sums depend on its threads."""
    return np.asarray(np.einsum("ij,nj->ni", turn, vectors))


def rms(values: Array, area: Array) -> float:
    """Root mean square of values over the surface, weighted by area."""
    return float(np.sqrt(((values**2).sum(axis=1) * area).sum() / area.sum()))
