"""Reaction of particles on bodies: impulses from tracers, angular impulses from vortons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, Strength, Velocity
from ecs_fluid.components.bodies import (
    FREE,
    Body,
    BoundaryExchange,
    Contact,
    FluidReaction,
    FormerPose,
    Pose,
    RigidMotion,
)
from ecs_fluid.entity import Entity
from ecs_fluid.errors import RecipeError
from ecs_fluid.fluid import Fluid
from ecs_fluid.recipe import Name
from ecs_fluid.system import System
from ecs_fluid.systems.boundary.system import BoundarySystem, refuse_two_spins
from ecs_fluid.systems.collision import CollisionSystem
from ecs_fluid.systems.shared.body_tables import (
    SHAPES,
    body_entities,
    column_of,
    entrained,
    gathered,
    held_by_hinges,
    hinged_names,
    set_motion,
    sum_of_parts,
)
from ecs_fluid.systems.shared.fluid_at_rest import density_lint, fluid_density
from ecs_fluid.systems.shared.populations import spread
from ecs_fluid.systems.shared.surface_areas import areas
from ecs_fluid.systems.surroundings import volumes
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies
    from ecs_fluid.systems.boundary.panels import PanelBoundary

Source = Literal["tracers", "vortons", "none"]
ANSWERED = 1.5
"""Fluid whose momentum vortons near a body carry, over that within their reach and in the body (a ball's)."""

ADRIFT = -0.5
"""Mass of the fluid that goes with a body, over its own, from which it is told; at -1 nothing resists."""


class ReactionSystem(System):
    """Reaction on bodies: the momentum that fluid loses at them, recorded in FluidReaction.

    tracers: each represents the mass `density` times `tracer_volume` of fluid. One that meets a body loses
    its velocity relative to the surface: the normal component (contact "sliding"; a stream of speed U against
    a plate exerts rho U^2 A), or all of it ("sticking", part 4). It gives its momentum once, in the first
    tick of a contact, so that forces do not depend on dt. All contacts of a tick are solved together and
    implicitly (`kernels.collision.reaction`): momentum is exact, and a light body is never thrown back.

    vortons: the body gets -`density` times the impulse, and the angular impulse about its centre, that the
    BoundarySystem gave to the vortons near it (its BoundaryExchange). A sheet of `panels` answers a change d
    of motion in the next tick, by -A d with the inertia A of the fluid that goes with the body. So the body
    gets (M + A) d = J + A d' + l, with the impulses J of this tick, the change d' of the last one, and what
    the BodySystem lent to the fluid in this tick, l (`FormerPose.lent`): thus a body of any weight moves
    steadily, and has got all of J but for the last A d. With `boundary` "layer" the
    BoundarySystem itself moves the bodies, since bodies and sheets must be solved for together; the record
    then includes the fluid in the body.

    `linear` and `angular` choose which of the two changes the bodies' velocity and spin. The article takes
    momentum from tracers, which resolve it better, and spin from vortons, as the BoundarySystem's own
    `reaction` does; `angular` is for worlds without that. Only free bodies are moved, and only along `axes`,
    as on rails: a cylinder that may swing across its wind, say. Weight, loads and contacts move them along
    the other axes too.
    Source: Fluid Simulation for Video Games, parts 4 and 7; Saffman, Vortex Dynamics, section 3.
    """

    # It also reads BoundaryExchange, but a world may have no BoundarySystem to fill it.
    reads = (Pose, Body, Position, Fluid)
    may_read = (*SHAPES, FormerPose, Velocity, Strength, Contact, BoundaryExchange)
    writes = (RigidMotion, FluidReaction)
    asks = (BoundarySystem,)
    phase = "constrain"
    dimensions = (2, 3)
    periodic = False
    after = ("CollisionSystem", "BoundarySystem")

    linear: Source = "tracers"
    """where the change of the velocity comes from"""
    angular: Source = "none"
    """where the change of the spin comes from"""
    axes: tuple[Literal["x", "y", "z"], ...] = Field(default=("x", "y", "z"), min_length=1)
    """axes along which velocities change"""
    tracer_volume: float | None = Field(default=None, gt=0, le=1e9)
    """volume of fluid that a tracer stands for, m^3"""
    contact: Literal["sliding", "sticking"] = "sliding"
    """sliding: tracers give up the part of their relative velocity that points into the surface; sticking:
    all of it"""
    density: float | None = Field(default=None, gt=0, le=1e6)
    """density of tracers and vortons, kg/m^3; default the fluid's"""
    on: tuple[Name, ...] = ()
    """tracers that count; default all particles without strength"""

    def added(self, world: World) -> None:
        """Attach the component in which particles remember the body that they touched."""
        by_tracers = [key for key in ("linear", "angular") if getattr(self, key) == "tracers"]
        if by_tracers and self.tracer_volume is None:
            raise RecipeError(
                f"ReactionSystem: {by_tracers[0]} = 'tracers' needs tracer_volume, m^3: cell^3/per_cell, or "
                "for an emitter the volume that flows through it in a second over its rate; without tracers, "
                f"give {by_tracers[0]} = 'vortons' or 'none'"
            )
        told = ", ".join(repr(axis) for axis in self.axes)
        if world.across is not None and self.axes == ("xyz"[world.across],):
            raise RecipeError(
                f"ReactionSystem: axes = [{told}] is perpendicular to the plane of this world; give an axis "
                "in the plane"
            )
        if self.linear == "none" and set(self.axes) != set("xyz"):
            raise RecipeError(
                f"ReactionSystem: axes = [{told}] has no effect with linear = 'none'; leave axes out"
            )
        world.require(CollisionSystem)
        if "vortons" in (self.linear, self.angular):
            world.require(BoundarySystem, reaction="none")
        refuse_two_spins(world)
        for name in self.on:
            world[name][Position]  # an error without one
        for entity in self._tracers(world):
            world._attach_missing(entity.name, Contact)

    def lint(self, world: World) -> list[str]:
        """Warn of another density than the fluid's, and of bodies that impulses of vortons would throw about.

        What the article changes in the vortons near a body at rest carries the momentum of 1 + c times the
        fluid that is in the body and within `reach` core radii of it, with c = 1/2 for a ball. Given to the
        body after the tick, that changes its velocity, which is answered in the next tick. Where that fluid
        is heavier than the body, each change is larger than the one before, in ticks of any length.
        """
        texts = density_lint(self, world)
        hinged = hinged_names(body_entities(world))
        if hinged and self.angular == "none":
            texts.append(
                f"ReactionSystem: angular = 'none' leaves {hinged} at rest, as bodies with a "
                "hinge only turn; set angular = 'tracers' or 'vortons'"
            )
        if self._panels(world) is not None:
            return texts + self._adrift_lint(world)
        boundary = world.system(BoundarySystem)
        if boundary is None or boundary.boundary != "article" or "vortons" not in (self.linear, self.angular):
            return texts
        cores = [entity[CoreRadius].sigma for entity, _ in world.entities_with(CoreRadius)]
        width = boundary.reach * float(np.concatenate([np.zeros(1), *cores]).max())
        for entity in body_entities(world):
            bodies, hulls = gathered([entity])
            around = _grown(volumes(bodies, hulls), areas(bodies, hulls), width)
            light = (bodies.motion == FREE) & (bodies.mass < ANSWERED * fluid_density(self) * around)
            if light.any():
                least = (ANSWERED * around / volumes(bodies, hulls))[light].max()
                texts.append(
                    f"ReactionSystem: {entity.name!r} weighs less than {least:.2g} times the fluid that it "
                    "displaces, so the impulses of vortons near it move it to and fro ever faster; use "
                    "heavier bodies, finer vortons, boundary = 'panels' or 'layer', or a DragSystem with "
                    "linear and angular other than 'vortons'"
                )
        return texts

    def _tracers(self, world: World) -> list[Entity]:
        if self.on:
            return [world[name] for name in self.on]
        return [entity for entity, _ in world.entities_with(Position) if Strength not in entity]

    def process(self, dt: float) -> None:
        """Exchange the momentum of the tick."""
        from ecs_fluid.kernels.collision.reaction import mass_matrices

        entities = body_entities(self.world)
        if not entities:
            return
        bodies, hulls = gathered(entities)
        held = held_by_hinges(bodies)
        masses = mass_matrices(held.mass, held.inertia, held.q)
        motion = np.concatenate([bodies.v, bodies.angular_velocity], axis=1)
        matrix, given = self._meetings(bodies, hulls)
        matrix, given = sum_of_parts(bodies.leader, matrix), sum_of_parts(bodies.leader, given)
        rest = given - np.einsum("nab,nb->na", matrix, motion)
        by_vortons = sum_of_parts(bodies.leader, self._from_vortons(entities))
        layered = _layered(self.world)
        free = bodies.motion == FREE
        change = np.zeros((len(free), 6))
        moved = self.moved["tracers"]
        if moved.any() and self.tracer_volume is not None:
            whole = np.where(np.outer(moved, moved), masses + matrix, np.eye(6))
            change = np.linalg.solve(whole, np.where(moved, rest, 0.0)[..., None])[..., 0]
        by_tracers = np.where(moved & free[:, None], np.einsum("nab,nb->na", masses, change), rest)
        taken = self.moved["vortons"] & (not layered)
        if taken.any():
            fluid, late = entrained(self.world, entities), np.zeros_like(motion)
            if (panels := self._panels(self.world)) is not None:
                late = panels.late(entities)
            whole = np.where(np.outer(taken, taken), masses + fluid, np.eye(6))
            lent = [column_of(entities, FormerPose, name) for name in ("lent", "lent_angular")]
            given = by_vortons + np.concatenate(lent, axis=1) + np.einsum("nab,nb->na", fluid, late)
            given = np.where(taken, given, 0.0)
            change += np.linalg.solve(whole, given[..., None])[..., 0]
        self._report(entities, by_tracers, by_vortons)
        change = np.where(free[:, None], change, 0.0)
        bodies.v[...] += change[:, :3]
        bodies.angular_velocity[...] += change[:, 3:]
        set_motion(entities, bodies, np.flatnonzero(change.any(axis=1)))

    @property
    def moved(self) -> dict[str, Array]:
        """Masks (6,) of the axes of velocity and spin along which impulses of a source move bodies."""
        rails = [axis in self.axes for axis in "xyz"]
        return {
            source: np.array(
                [*(self.linear == source and rail for rail in rails), *3 * [self.angular == source]]
            )
            for source in ("tracers", "vortons")
        }

    def _meetings(self, bodies: Bodies, hulls: Hulls) -> tuple[Array, Array]:
        """Matrices A (n, 6, 6) and right sides b (n, 6), for each body, of all tracers that met it."""
        from ecs_fluid.kernels.collision.reaction import meeting_matrices

        n = len(bodies.x)
        matrix, given = np.zeros((n, 6, 6)), np.zeros((n, 6))
        if self.tracer_volume is None:
            return matrix, given
        mass = fluid_density(self) * self.tracer_volume
        sticking = self.contact == "sticking"
        for entity in self._tracers(self.world):
            touch = entity[Contact]
            meeting_matrices(
                entity[Position].x, entity[Velocity].u, touch.body, touch.before, mass, sticking,
                bodies.shape, bodies.hull, hulls, bodies.x, bodies.q, bodies.leader, matrix, given,
            )  # fmt: skip
        return matrix, given

    def _from_vortons(self, entities: list[Entity]) -> Array:
        """Impulse and angular impulse (n, 6) that the vortons lost."""
        lost = [column_of(entities, BoundaryExchange, name) for name in ("impulse", "moment")]
        return -fluid_density(self) * np.concatenate(lost, axis=1)

    def _panels(self, world: World) -> PanelBoundary | None:
        """The panels whose impulses move bodies, if any do."""
        boundary = world.system(BoundarySystem)
        if boundary is None or boundary.boundary != "panels" or not self.moved["vortons"].any():
            return None
        return cast("PanelBoundary", boundary.sheets)

    def _adrift_lint(self, world: World) -> list[str]:
        """Warn of light bodies whose panels are too coarse to carry the momentum of the fluid in them."""
        from ecs_fluid.kernels.collision.reaction import mass_matrices

        texts, taken = [], self.moved["vortons"]
        for entity in (one for one in body_entities(world) if (one[Body].motion == FREE).any()):
            bodies, _ = gathered([entity])
            held = held_by_hinges(bodies)
            masses = mass_matrices(held.mass, held.inertia, held.q)[:, taken][:, :, taken]
            fluid = entrained(world, [entity])[:, taken][:, :, taken]
            part = np.linalg.eigvals(np.linalg.solve(masses, fluid)).real
            if (part.min(axis=1)[bodies.motion == FREE] < ADRIFT).any():
                texts.append(
                    f"ReactionSystem: {entity.name!r} is lighter than the fluid in it, whose momentum its "
                    "coarse panels do not carry, so their impulses move it ever faster; use a smaller "
                    "spacing or a heavier body"
                )
        return texts

    def _report(self, entities: list[Entity], by_tracers: Array, by_vortons: Array) -> None:
        tables = [entity[FluidReaction] for entity in entities]
        for way, impulses in (("tracers", by_tracers), ("vortons", by_vortons)):
            spread(impulses[:, :3], [getattr(table, way) for table in tables])
            spread(impulses[:, 3:], [getattr(table, f"{way}_angular") for table in tables])


def _grown(volume: Array, area: Array, width: float) -> Array:
    """Volumes (n,) m^3 of bodies and what is within `width` m of them, by their volumes and surfaces.

    By Steiner's formula, with the integral of the mean curvature of a ball of that surface, the least of all
    (Minkowski).
    """
    return np.asarray(volume + area * width + np.sqrt(4 * np.pi * area) * width**2 + 4 * np.pi * width**3 / 3)


def _layered(world: World) -> bool:
    """Whether a BoundarySystem with `boundary` "layer" moves the bodies itself, together with its sheets."""
    boundary = world.system(BoundarySystem)
    return boundary is not None and boundary.boundary == "layer"
