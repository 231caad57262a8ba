"""The fluid around bodies, for the systems that make it act on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import DensityField, TransferGrid
from ecs_fluid.components.bodies import Body, Pose, RigidMotion, Surroundings
from ecs_fluid.integrator import METHODS
from ecs_fluid.system import System
from ecs_fluid.systems.operations import WindSystem, gusts, winds
from ecs_fluid.systems.shared.body_tables import (
    SHAPES,
    arms_of_hinges,
    body_entities,
    corners_of,
    faces_of,
    gathered,
    move_freely,
    of_whole,
    planes_of,
)
from ecs_fluid.systems.shared.populations import add_spread, rows_of_each
from ecs_fluid.systems.turbulence import TurbulenceSystem
from ecs_fluid.systems.velocity.system import VelocitySystem

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies

GOLDEN = (1 + 5**0.5) / 2


class SurroundingsSystem(System):
    """The fluid around bodies, as the mean of all stages by their weights, so of second order in time.

    For a DragSystem with `flow`: the velocity that vortons, winds and turbulence make at a body's centre, and
    half the vorticity, by differences over the radius of the ball of the body's volume. For a BuoyancySystem
    with `local`: the excess density that particles carry, read one cell off the surface, as the linear
    function that fits it best. Bodies are taken where they will be at the time of the stage.

    For a BuoyancySystem with `acceleration`: also Du/Dt = du/dt + (u . grad) u at the centre. From the first
    stage to the last, a body that moves with the velocity v sees the flow change by du/dt + (v . grad) u per
    second. The mean of (v . grad) u in both stages is subtracted, which leaves du/dt. That is its value
    between the stages, and so of first order in time; in a steady flow it is 0 to second order.
    """

    reads = (Pose, RigidMotion, Body)
    may_read = (*SHAPES, TransferGrid, DensityField)
    writes = (Surroundings,)
    asks = (VelocitySystem, TurbulenceSystem, WindSystem)
    phase = "rates"
    dimensions = (2, 3)

    @property
    def needs_fields(self) -> bool:
        """Whether the fields are read in this stage."""
        return self.world.stage.weight != 0.0 and self._wanted("local")

    def _wanted(self, part: str) -> bool:
        """Whether any system that reads the Surroundings has the parameter ``part`` set."""
        return any(
            Surroundings in system.reads and getattr(system, part, False) for system in self.world.systems
        )

    def process(self, dt: float) -> None:
        """Add this stage's values, times its weight."""
        stage, tables = self.world.stage, [table for (table,) in self.query(Surroundings)]
        if stage.c == 0.0:
            for table in tables:
                for _, column in table.items():
                    column[...] = 0.0
        accelerating = self._wanted("acceleration")
        if not tables or (stage.weight == 0.0 and not accelerating):
            return
        entities = body_entities(self.world)
        bodies, hulls = gathered(entities)
        move_freely(bodies, stage.c * dt)
        columns: dict[str, Array] = {}
        if self._wanted("flow") or accelerating:
            arm = arms_of_hinges(entities, bodies)
            v = bodies.v + np.cross(bodies.angular_velocity, arm)
            u, slope = self._flow(entities, bodies.x + arm, radii(bodies, hulls, self.world.across))
            curl = [slope[:, j, k] - slope[:, k, j] for j, k in ((1, 2), (2, 0), (0, 1))]
            columns["u"], columns["turning"] = stage.weight * u, stage.weight * 0.5 * np.stack(curl, axis=1)
            if accelerating:
                columns["acceleration"] = self._acceleration(u, v, slope, dt)
        if self._wanted("local") and stage.weight != 0.0:
            excess, rise = self._excess(bodies, hulls)
            columns["excess"], columns["slope"] = stage.weight * excess, stage.weight * rise
        for name, values in columns.items():
            add_spread(values.astype(self.world.dtype), [getattr(table, name) for table in tables])

    def _acceleration(self, u: Array, v: Array, slope: Array, dt: float) -> Array:
        """Contribution (n, 3) m/s^2 of this stage to Du/Dt; u, slope by `_flow`, v the bodies' velocities."""
        stage, span = self.world.stage, METHODS[self.world.options.integrator][-1].c * dt
        along, passing = (np.einsum("nj,nji->ni", by, slope) for by in (u, v))
        side = int(stage.last) - int(stage.c == 0.0)
        return np.asarray(stage.weight * along + side * u / span - 0.5 * abs(side) * passing)

    def _flow(self, entities: list[Entity], x: Array, size: Array) -> tuple[Array, Array]:
        """Velocity (n, 3) m/s of the fluid at the centres x of bodies, and its slope (n, 3, 3) 1/s.

        slope[i, j, k] is the derivative of u_k along axis j at body i, by differences over `size` (n,) m.
        """
        even = [sum(map(self.world.value_now, winds(self.world, e.name)), np.zeros(3)) for e in entities]
        wind = np.repeat(even, [len(entity) for entity in entities], axis=0)
        velocity = self.world.system(VelocitySystem)
        uneven = [(rows, gusts(self.world, entity.name)) for entity, rows in rows_of_each(entities)]
        if velocity is None and not any(blowing for _, blowing in uneven):
            return wind, np.zeros((len(x), 3, 3))
        along = np.eye(3) * (np.arange(3) != self.world.across)
        steps = np.concatenate([np.zeros((1, 3)), along, -along])
        points = x[:, None] + size[:, None, None] * steps
        u = np.zeros((len(x), 7, 3))
        if velocity is not None:
            u += velocity.velocity_at(points.reshape(-1, 3), None).reshape(len(x), 7, 3)
        for rows, blowing in uneven:
            for gust in blowing:
                gust.add_wind(points[rows].reshape(-1, 3), u[rows].reshape(-1, 3), None)
        return u[:, 0] + wind, (u[:, 1:4] - u[:, 4:]) / (2 * size[:, None, None])

    def _excess(self, bodies: Bodies, hulls: Hulls) -> tuple[Array, Array]:
        """Excess density (n,) kg/m^3 at bodies' centres, gradient (n, 3), fitted to values around them."""
        from ecs_fluid.kernels.grids.interpolation import interpolate

        grid, field = self.field(TransferGrid), self.field(DensityField)
        found = np.zeros((len(bodies.x), 4))
        # Nearer to the surface, half of what is read would be the gap that the body leaves among particles.
        out = float(grid.spacing.min(initial=np.inf))
        if field.excess.any():
            places, owner = probes(bodies, hulls, out, self.world.across)
            inside = ((places >= grid.origin) & (places <= grid.origin + grid.spacing * grid.cells)).all(
                axis=1
            )
            excess = np.zeros(len(places))
            if inside.any():
                excess[inside] = interpolate(places[inside], grid.origin, grid.spacing, field.excess)
            owner = bodies.leader[owner]
            starts = np.searchsorted(owner, np.arange(len(bodies.x) + 1))
            for i in np.unique(owner[excess != 0]):
                rows = slice(starts[i], starts[i + 1])
                away = places[rows] - bodies.x[i]
                found[i] = np.linalg.lstsq(
                    np.column_stack([np.ones(len(away)), away]), excess[rows], rcond=None
                )[0]
        return found[:, 0], found[:, 1:]


def radii(bodies: Bodies, hulls: Hulls, across: int | None = None) -> Array:
    """Radii (n,) m of balls of the bodies' volumes; in a plane, of disks of their sections' areas."""
    if across is not None:
        return np.asarray(np.sqrt(volumes(bodies, hulls, across) / np.pi))
    return np.asarray(np.cbrt(3 * volumes(bodies, hulls) / (4 * np.pi)))


def volumes(bodies: Bodies, hulls: Hulls, across: int | None = None) -> Array:
    """Volumes (n,) m^3 of bodies, of parts that of their body; in a plane, per metre across it."""
    own = displacement(bodies, hulls, np.zeros(1), np.ones(1), across)[2]
    return of_whole(bodies.leader, own)


def displacement(
    bodies: Bodies, hulls: Hulls, heights: Array, rho: Array, across: int | None = None
) -> tuple[Array, Array, Array]:
    """Displaced mass (n,) kg, its moment (n, 3) kg m about the centre, and volume (n,) m^3 of each body.

    The fluid has the densities `rho` kg/m^3 at rising `heights` m. In a plane, whose normal is the axis
    `across`, all are per metre across it.
    """
    from ecs_fluid.kernels.bodies.buoyancy import displaced, displaced_by_disks
    from ecs_fluid.kernels.bodies.table import BALL

    n = len(bodies.x)
    if across == 2:  # the plane lies at one height
        heights, rho = np.zeros(1), np.interp([0.0], heights, rho)
    mass, moment, volume = np.empty(n), np.empty((n, 3)), np.empty(n)
    shapes = bodies.shape, bodies.radius, bodies.hull, hulls
    displaced(*shapes, bodies.x, bodies.q, heights, rho, mass, moment, volume)
    if across is not None:
        disks = bodies.shape == BALL
        thick = np.ones(n)
        for i in np.flatnonzero(~disks):
            thick[i] = np.ptp(corners_of(hulls, bodies.hull[i])[:, across])
        mass, moment, volume = mass / thick, moment / thick[:, None], volume / thick
        volume[disks] = np.pi * bodies.radius[disks] ** 2
        mass[disks], moment[disks, 2] = displaced_by_disks(
            bodies.radius[disks], bodies.x[disks, 2], heights, rho
        )
    return mass, moment, volume


def probes(bodies: Bodies, hulls: Hulls, out: float, across: int | None = None) -> tuple[Array, Array]:
    """Points (m, 3) `out` m off the surfaces of solid bodies, and the number (m,) of each one's body, rising.

    In a plane the points lie in it. None lies in another part of the same body.
    """
    from ecs_fluid.kernels.bodies.rotation import matrix_of
    from ecs_fluid.kernels.bodies.table import BALL, SOLID

    balls = np.flatnonzero(bodies.shape == BALL)
    spheres = bodies.x[balls, None] + (bodies.radius[balls, None] + out)[..., None] * _directions(across)
    places, owner = [spheres.reshape(-1, 3)], [np.repeat(balls, spheres.shape[1])]
    flat = np.where(np.arange(3) == across, 0.0, 1.0)
    parted = (np.bincount(bodies.leader, minlength=len(bodies.x)) > 1)[bodies.leader]
    for i in np.flatnonzero(bodies.shape == SOLID):
        h = bodies.hull[i]
        corners, planes = flat * corners_of(hulls, h), planes_of(hulls, h)
        sides = np.abs(planes[:, :3][:, flat == 0.0]).sum(axis=1) < 0.5
        middles = [(flat * face).mean(axis=0) for face in faces_of(hulls, h)]
        center = corners.mean(axis=0) if parted[i] else np.zeros(3)
        arms = corners - center
        sizes = np.linalg.norm(arms, axis=1, keepdims=True)
        beside = (np.array(middles) + out * planes[:, :3])[sides]
        local = np.vstack([beside, center + arms * (1 + out / sizes)])
        places.append(bodies.x[i] + local @ matrix_of(bodies.q[i]).T)
        owner.append(np.full(len(local), i))
    whose, where = np.concatenate(owner), np.concatenate(places)
    order = np.argsort(whose, kind="stable")
    where, whose = where[order], whose[order]
    bare = np.ones(len(where), bool)
    for i in np.flatnonzero(parted):
        own = bodies.leader[whose] == bodies.leader[i]
        planes = planes_of(hulls, bodies.hull[i])
        local = (where[own] - bodies.x[i]) @ matrix_of(bodies.q[i])
        bare[own] &= (local @ planes[:, :3].T > planes[:, 3]).any(axis=1)
    return where[bare], whose[bare]


def _directions(across: int | None) -> Array:
    """Unit vectors (12, 3) to the corners of an icosahedron; in a plane, to those of a dodecagon in it.

    Means over them are exact for polynomials up to degree 5, and in a plane 11.
    """
    if across is not None:
        turn = np.arange(12) * np.pi / 6
        return np.insert(np.stack([np.cos(turn), np.sin(turn)], axis=1), across, 0.0, axis=1)
    rows = [np.roll([0.0, a, b * GOLDEN], k) for k in range(3) for a in (-1, 1) for b in (-1, 1)]
    return np.asarray(np.array(rows) / np.sqrt(1 + GOLDEN**2))
