"""The surface of a liquid: signed distance, mesh, volume and number of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import (
    Liquid,
    Position,
    SignedDistance,
    Species,
    SurfaceMesh,
    Temperature,
    TransferGrid,
    Volume,
)
from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.fluid import Fluid
from ecs_fluid.system import System, Types
from ecs_fluid.systems.collision import CollisionSystem
from ecs_fluid.systems.particle_mesh import TransferSystem
from ecs_fluid.systems.shared.body_tables import BODIES
from ecs_fluid.systems.shared.fluid_at_rest import density_at, fluid_at_rest, temperature_at
from ecs_fluid.systems.shared.properties import CARRIED, carrying_matter
from ecs_fluid.systems.surface.contour import contour
from ecs_fluid.systems.surface.motion import Motion
from ecs_fluid.systems.surface.smooth_field import filled_part, has_liquid, mixed_field
from ecs_fluid.systems.surface.tracking import Level, advanced, depth_in_obstacles, with_volume
from ecs_fluid.world import World

FIELDS: dict[str, Types] = {
    "density": (),
    "temperature": (Temperature,),
    **dict.fromkeys(Species.columns, (Species,)),
}
"""Fields, and the components by which particles carry them; liquids, too, have a density."""
AT_REST = {"density": density_at, "temperature": temperature_at}
"""Fields that are layered where the fluid at rest is, and functions of their values at each height."""
FILLED = (Fluid, TransferGrid)
"""What a field needs besides particles; a surface of the flow or of a liquid does without it."""
NEAR = 3.5
"""Distance from the surface, in half cells, up to which distances are found at half cells."""
if TYPE_CHECKING:
    FieldName = str
else:
    FieldName = Literal[(*FIELDS, "liquid", "flow")]


class SurfaceSystem(System):
    """Signed distance phi to the surface of a liquid, |grad phi| = 1, negative inside; and its mesh.

    The liquid is where a field `of` the particles (see TransferSystem) is nearer to `inside` than to
    `outside`. With `of` = "liquid" (and with "density", where nothing else has one) it is where the particles
    of a SphSystem fill more than half of space. With `of` = "flow" it is given by the SignedDistance that was
    attached to the `fluid` entity. For `facets` (below) a particle is spread as the cubic B-spline that is a
    cell of the TransferGrid wide (for a liquid, as wide as a particle) and read at half cells, so that the
    surface goes with the particles, wherever the grid's points are.

    Without `carried` the surface is found anew every `every` ticks. With it, that is done once, and from then
    on the flow carries the surface in every tick: d phi / dt + u . grad phi = 0, semi-Lagrangian, on a grid
    that follows the surface. Distances are computed anew after each step, and with `keep_volume` the surface
    is moved along its normal so that its volume stays. Parts merge and split by themselves; what is thinner
    than two cells is lost, and its volume goes to the rest. What moves all particles moves the surface too:
    winds and bodies. It never overlaps bodies, nor does one that is found; the volume that they take goes to
    the rest. (Operations on some entities only, by `on`, do not move it.)

    `method` = "facets" measures distances beside the surface to facets at the value midway between `inside`
    and `outside`, "crossings" along the axes by the article's rule. All other distances come from fast
    sweeping of first or second `order`. Every `every` ticks the mesh is made and volume [m^3], area [m^2] and
    number of parts are recorded.

    Source: Fluid Simulation for Video Games, parts 17 and 18; Zhao, Math. Comp. 74 (2005) 603.
    """

    phase = "observe"
    periodic = False
    dimensions = (2, 3)
    writes = (SignedDistance, SurfaceMesh)
    may_read = (*BODIES, *CARRIED, *FILLED, Position, Volume, Liquid)
    asks = (CollisionSystem, TransferSystem, "BodySystem", "VelocitySystem", "WindSystem")
    # Its numbers join the record of the same tick.
    after = ("DiagnosticsSystem",)

    of: FieldName = "density"
    """field that tells inside from outside; liquid: that of the SphSystem; flow: the attached
    SignedDistance"""
    outside: float | None = None
    """value outside, unit of the field; default that of the ambient, 0 for species; where the ambient is
    layered, its value at each height is subtracted"""
    inside: float | None = None
    """value inside, unit of the field; default its mean, each point weighted by what it differs from
    outside; with "crossings" mean plus standard deviation of all points, at most the largest value"""
    method: Literal["facets", "crossings"] = "facets"
    """distances beside the surface"""
    order: Literal[1, 2] = 2
    """order of the distances elsewhere"""
    band: float | None = Field(default=None, ge=8, le=1e6)
    """width of the band with distances on each side, cells; default all"""
    carried: bool = False
    """let the flow carry the surface, once there is one"""
    keep_volume: bool = True
    """keep the volume of a carried surface"""
    every: int = Field(default=1, ge=1)
    """ticks from one surface (or mesh) to the next"""
    mesh: bool = True
    """make the mesh"""

    def added(self, world: World) -> None:
        """Set which components are read; require what fills the field, and a place for the distances."""
        reads: Types = (Position, Liquid) if self.of == "liquid" else ()
        if self.of in FIELDS:
            reads = (*FILLED, *FIELDS[self.of])
        self.reads = reads  # type: ignore[misc]  # the schedule asks the instance
        if self.of == "flow" and not self.carried:
            raise RecipeError(
                "SurfaceSystem: of = 'flow' needs carried = true; nothing else changes the surface"
            )
        if self.of in FIELDS:
            world.require(TransferSystem)
        if SignedDistance not in world.fluid:
            if self.of == "flow":
                raise RecipeError(
                    "SurfaceSystem: of = 'flow' needs a surface to start with; attach a SignedDistance to "
                    "world.fluid first"
                )
            world.attach(world.fluid.name, SignedDistance)
        if self.inside is not None and self.inside == self.outside:
            raise RecipeError(
                f"SurfaceSystem: inside and outside are both {self.inside:g}; two different values are needed"
            )

    def process(self, dt: float) -> None:
        """Carry the surface, or find it; mesh and record when due."""
        table = self.field(SignedDistance)
        due = self.world.tick % self.every == 0
        if self.carried and table.phi.size:
            self._carry(table, dt)
        elif due:
            self._store_level(table, *self.found_surface())
        if due and self.mesh and table.surface[0]:
            self._fill_mesh(table)
        else:
            self._clear_mesh()
        if due:
            self.record(**self.surface_measure())

    # ------------------------------------------------------------------ distances

    def _carry(self, table: SignedDistance, dt: float) -> None:
        from ecs_fluid.kernels.surface.facets import enclosed

        level = Level(table.phi, table.origin, table.spacing)
        if self.keep_volume and table.volume[0] == 0:
            table.volume = np.array([enclosed(level.phi, level.spacing)[0]], self.world.dtype)
        motion = Motion(self.world, dt)
        level, surface = advanced(level, motion, dt, self.order, self._distance_limit(level))
        if surface and self.keep_volume:
            level = with_volume(level, float(table.volume[0]), depth_in_obstacles(level, motion))
        self._store_level(table, level, surface)

    def found_surface(self) -> tuple[Level, bool]:
        """Distances [m] to the surface of the present field, and whether there is one; nothing is changed.

        The field must be filled: by a tick, or by `World.evaluate` before the first.
        """
        from ecs_fluid.kernels.surface.eikonal import distances
        from ecs_fluid.kernels.surface.facets import facet_distances
        from ecs_fluid.kernels.surface.grid_crossings import crossing_distances, full_value

        # Part 17's rule takes the surface to where the field ends, so its particles are a cell wide.
        smooth, inside = self.method == "facets", self.inside
        if self._of_liquid():
            origin, step, values = filled_part(self.world, smooth)
            outside, inside = self.outside or 0.0, 1.0 if inside is None else inside
        else:
            origin, step, values = self._values(smooth)
            outside = self._outside_value()
        # Of a smooth field every second point is one of the surface's grid.
        every = (slice(None, None, 2 if smooth else 1),) * 3
        spacing, coarse = step * every[0].step, np.ascontiguousarray(values[every])
        solid = self._depth_in_solids(coarse, outside, origin, spacing)
        if inside is None:
            if smooth and solid is None:
                inside = _mean_inside(values, outside)
            elif smooth:
                # A point at a wall stands for half a cell of fluid.
                inside = _mean_inside(coarse, outside, np.clip(0.5 - solid / spacing.max(), 0.0, 1.0))
            else:
                inside = full_value(values, outside)
        if abs(inside - outside) <= 1e-5 * max(abs(inside), abs(outside)):
            # The field is the same everywhere, to single precision: nothing is inside.
            inside = outside + max(1.0, abs(outside))
        if smooth:
            # In parts of the full value, so that nothing overflows and inside is negative.
            middle, scale = 0.5 * (inside + outside), 1.0 / (outside - inside)
            field = ((values - values.dtype.type(middle)) * values.dtype.type(scale)).astype(values.dtype)
            phi, pinned = facet_distances(field, step)
        else:
            phi, pinned = crossing_distances(values, outside, inside, step)
        if smooth:
            # Beside the surface distances are found between the points of the grid as well.
            near = NEAR * float(step[np.array(phi.shape) > 1].max(initial=0.0))
            phi = np.ascontiguousarray(distances(phi, pinned, step, self.order, near).phi[every])
            pinned = np.abs(phi) < near
        level = Level(phi, origin.astype(self.world.dtype), spacing.astype(self.world.dtype))
        found = distances(phi, pinned, spacing, self.order, self._distance_limit(level))
        phi = found.phi
        if solid is not None and found.surface:
            phi = np.maximum(phi, solid.astype(phi.dtype))
        return level._replace(phi=phi), found.surface and bool((phi < 0).any())

    def _depth_in_solids(self, values: Array, outside: float, origin: Array, spacing: Array) -> Array | None:
        """Depth (px, py, pz) m in bodies or outside containers at the points of a field, which goes on there
        by images of the particles; minus the distance beside them. -inf more than a cell away from all that
        differs from outside, None without bodies."""
        from scipy.ndimage import binary_dilation

        from ecs_fluid.kernels.surface.level_set import grid_rows

        some = binary_dilation(values != outside, np.ones((3, 3, 3), bool))
        depth = Motion(self.world, self.world.dt).depth(
            grid_rows(values, origin, spacing, some), 2.0 * float(spacing.max())
        )
        if depth is None:
            return None
        solid = np.full(values.shape, -np.inf)
        solid[some] = depth
        return solid

    def _of_liquid(self) -> bool:
        """Whether the surface is that of a SphSystem's particles, which bring nothing to the fields."""
        if self.of == "liquid":
            return True
        return self.of == "density" and not carrying_matter(self.world) and has_liquid(self.world)

    def _values(self, smooth: bool) -> tuple[Array, Array, Array]:
        """Origin, spacing and values of the field, without the ambient's layers; a flat world has a single
        layer of points."""
        origin, spacing, values = mixed_field(self.world, self.of, self._outside_value(), smooth)
        if self.outside is None and self.of in AT_REST and (fluid := fluid_at_rest(self.world)).layered:
            z = (origin[2] + spacing[2] * np.arange(values.shape[2])).astype(values.dtype)
            values = values - (AT_REST[self.of](fluid, z) - values.dtype.type(self._outside_value()))
        return origin, spacing, np.ascontiguousarray(values)

    def _outside_value(self) -> float:
        if self.outside is not None:
            return self.outside
        if self.of not in AT_REST:
            return 0.0
        return float(self.world.dtype(getattr(self.field(Fluid), self.of)))

    def _distance_limit(self, level: Level) -> float | None:
        return None if self.band is None else self.band * level.widest

    def _store_level(self, table: SignedDistance, level: Level, surface: bool) -> None:
        table.phi, table.origin, table.spacing = level.phi, level.origin, level.spacing
        table.surface = np.array([surface], np.int64)

    # ------------------------------------------------------------------ mesh and record

    def _fill_mesh(self, table: SignedDistance) -> None:
        from ecs_fluid.kernels.surface.level_set import geometry, sample

        mesh = self.field(SurfaceMesh)
        x, faces = contour(table.phi, table.origin, table.spacing)
        mesh.x, mesh.faces = x, faces
        cell = Level(table.phi, table.origin, table.spacing).widest
        shape = geometry(table.phi, table.spacing, 2.0 * cell) if len(x) else np.zeros((1, 1, 1, 4), x.dtype)
        read = sample(x, table.origin, table.spacing, shape)
        length = np.linalg.norm(read[:, :3], axis=1, keepdims=True)
        mesh.normal = np.asarray(read[:, :3] / np.where(length > 0, length, 1), x.dtype)
        mesh.curvature = np.ascontiguousarray(read[:, 3])
        mesh.u = np.asarray(Motion(self.world, self.world.dt).velocity(x), x.dtype)

    def _clear_mesh(self) -> None:
        mesh, number = self.field(SurfaceMesh), self.world.dtype
        mesh.x = mesh.normal = mesh.u = np.zeros((0, 3), number)
        mesh.faces, mesh.curvature = np.zeros((0, 3), np.int64), np.zeros(0, number)

    def surface_measure(self) -> dict[str, float | int]:
        """Numbers of the present surface.

        * surface_volume: volume inside, m^3; in a plane the area, m^2
        * surface_area: area of the surface, m^2; in a plane the length, m
        * surface_parts: number of separate parts, 1; points inside that touch along an axis are one part
        """
        from scipy.ndimage import label

        from ecs_fluid.kernels.surface.facets import enclosed

        table = self.world.fluid[SignedDistance]
        if not table.phi.size:
            raise FluidError("SurfaceSystem: there is no surface yet; it is found in the first tick")
        volume, area = enclosed(table.phi, table.spacing)
        parts = int(label(table.phi < 0)[1])
        return {"surface_volume": volume, "surface_area": area, "surface_parts": parts}


def _mean_inside(values: Array, outside: float, share: Array | float = 1.0) -> float:
    """Mean of a field, each point weighted by what it differs from outside: empty space has no weight.

    `share` is the part of each point's surroundings that counts, 0 to 1.
    """
    above = np.asarray(values, np.float64) - outside
    sign = 1.0 if above.max(initial=0.0) >= -above.min(initial=0.0) else -1.0
    above = np.maximum(sign * above, 0.0)
    most = above.max(initial=0.0)
    parts = above / (most or 1.0)  # whose squares do not overflow
    total = (share * parts).sum()
    return outside + sign * float(most * (share * parts**2).sum() / total) if total > 0.0 else outside
