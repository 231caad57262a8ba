"""Rigid bodies: scripted motion, or motion under gravity and loads, with free rotation and contacts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.component import Array
from ecs_fluid.components import InertialVelocity, Liquid, Strength, Velocity
from ecs_fluid.components.bodies import (
    FIXED,
    FREE,
    SCRIPTED,
    Body,
    BodyHeat,
    BodyLoad,
    ContactMemory,
    FormerPose,
    HullTable,
    Pose,
    RigidMotion,
    ShedMotion,
)
from ecs_fluid.entity import Entity
from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.fluid import Fluid
from ecs_fluid.keyframes import Keyed, KeyedVector, value_at, varies
from ecs_fluid.recipe import Name
from ecs_fluid.schedule import named
from ecs_fluid.settings import Settings
from ecs_fluid.system import System
from ecs_fluid.systems.shared.body_overlaps import misplaced_lint, overlap_lint, part_overlap_lint
from ecs_fluid.systems.shared.body_pairs import check_pairs
from ecs_fluid.systems.shared.body_tables import (
    SHAPES,
    arms_of_hinges,
    body_entities,
    column_of,
    entrained,
    gathered,
    held_by_hinges,
    leaders_of,
    load_of,
    move_freely,
    of_whole,
    row_ids,
    rows_of,
    some_of,
    write_back,
)
from ecs_fluid.systems.shared.braking import brake_spin
from ecs_fluid.systems.shared.keyed_turns import with_turns
from ecs_fluid.systems.shared.populations import rows_of_each, spread
from ecs_fluid.systems.shared.together import Drive, drive_of
from ecs_fluid.systems.shared.walls import shaken_containers
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.contact_solver import ContactForces
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies

MOST_SUBSTEPS = 128
"""Most substeps of a tick."""

HELD = 1e12
"""Factor on a body's inertia about axes in the plane, in a world of two dimensions: so it turns only
across."""

UPRIGHT = 1e-6
"""Component of a normal across a plane, or in it, that may be rounding in a world of single precision."""


FAR = 10.0
"""Way of a body in a tick, over its width, above which it was probably not meant."""

AFLOAT = 0.01
"""Difference of a body's mass from that of the fluid it displaces, over its mass, up to which it floats."""


class BodyScript(Settings):
    """Place and orientation of a scripted body over time."""

    name: Name
    """entity of one scripted body"""
    center: KeyedVector | None = None
    """centre of mass, m; may be keyed in time"""
    rotation: KeyedVector | None = None
    """rotation vector, axis times angle, rad; may be keyed in time, over whole turns too"""

    @model_validator(mode="after")
    def _has_motion(self) -> Self:
        if self.center is None and self.rotation is None:
            raise ValueError("at least one of center and rotation is needed")
        return self


class BodySystem(System):
    """Newton-Euler motion of rigid bodies, (m + m_a) dv/dt = m g + F, dL/dt = T, and their contacts.

    Fixed bodies stay. Scripted bodies follow their script or, without one, keep their velocity and spin. Free
    bodies feel gravity, the loads of the fluid, and contacts. Between contacts (m + m_a) dv/dt = m g + F and
    dL/dt = T; without a torque T, the angular momentum L and the energy of a tumbling body are kept to
    rounding. Contacts are impulses with the restitution e, the larger of both bodies', and Coulomb friction
    of the coefficient sqrt(mu_a mu_b); impacts add no energy (`kernels.bodies.restitution`). F, T and the
    added mass m_a are columns of the BodyLoad, to which other systems (BuoyancySystem, DragSystem, your own)
    add before this one runs. Its `kick` is added to L when the tick begins; its `brake` acts over half the
    tick then, and over the other half when all bodies have moved. Contacts use m plus the mean of m_a over
    the axes (in a plane, over those in it). Bodies that nothing can touch within the tick take no substeps.
    Where a ReactionSystem moves bodies by the vortons of panels or a layer, m_a is that of their sheets, with
    panels the moment of inertia too; `FormerPose` has what so went to the fluid.

    Balls and polytopes collide with each other and with the walls of the containers that hold their centres
    (if none does, of the nearest); containers do not collide with containers. See
    `kernels.bodies.rigid_substep` and `kernels.bodies.impacts`. More substeps are taken if a polytope would
    otherwise move by more than half its inner radius, or turn by more than half a radian, in one substep.

    A body with a Hinge turns about a fixed axis alone, I dw/dt = T + (c cross m g) along it, with c from the
    axis to its centre of mass, taken in the middle of the tick. Forces on it are borne by the hinge.
    """

    reads = (Body, Fluid)
    may_read = (*SHAPES, BodyLoad, ShedMotion)
    writes = (Pose, RigidMotion, FormerPose, ContactMemory)
    phase = "move"
    dimensions = (2, 3)
    periodic = False

    substeps: int = Field(default=8, ge=1, le=MOST_SUBSTEPS)
    """least substeps of a tick"""
    sweeps: int = Field(default=100, ge=1, le=10_000)
    """most sweeps of the impulse solver per substep"""
    least_bounce: float = Field(default=0.01, ge=0)
    """approach speed below which nothing bounces, m/s; at least 2 g h of a substep h"""
    scripts: list[BodyScript] = Field(default_factory=list)
    """motions of scripted bodies"""

    def lint(self, world: World) -> list[str]:
        """Warn of bodies that overlap, heat without effect, wind that blows through bodies, and a fluid on
        which bodies do not act."""
        from ecs_fluid.kernels.bodies.table import CONTAINER
        from ecs_fluid.systems.boundary.system import BoundarySystem
        from ecs_fluid.systems.operations import winds
        from ecs_fluid.systems.velocity.system import VelocitySystem

        # Bodies act by pressure on liquid, which carries tracers; inertial particles do not follow the fluid.
        liquid = any(Liquid in entity for entity in world.entities)
        seen = any(
            (Strength if liquid else Velocity) in entity
            and not {Liquid, InertialVelocity} & entity.tables.keys()
            for entity in world.entities
        )
        entities = [entity for entity in body_entities(world) if len(entity)]
        bodies, hulls = gathered(entities)
        texts = [*_unused_heat_lint(world, entities), *overlap_lint(entities, bodies, hulls)]
        texts += part_overlap_lint(entities, bodies, hulls) + self._far_lint(world, entities, bodies)
        texts += misplaced_lint(entities, bodies, hulls) if entities else []
        texts += self._left_behind_lint(world, entities, bodies)
        if not (entities and seen) or world.system(BoundarySystem) is not None:
            return texts
        solid = bodies.shape != CONTAINER
        boundary = "panels" if world.dimension == 3 else "layer"
        velocity, still = world.system(VelocitySystem), solid & (bodies.motion == FIXED)
        mirrors = velocity.mirror_bodies if velocity else ()  # it tells of these itself
        if winds(world) and any(
            still[rows].any() and entity.name not in mirrors for entity, rows in rows_of_each(entities)
        ):
            texts.append(
                "BodySystem: the wind blows through the fixed bodies, which only stop particles at the "
                f"surface; a system of kind = 'boundary' with boundary = {boundary!r} makes the fluid flow "
                "around them"
            )
        moving = solid & self._will_move(world, entities, bodies, hulls)
        names = [repr(entity.name) for entity, rows in rows_of_each(entities) if moving[rows].any()]
        if names:
            texts.append(
                f"BodySystem: bodies of {' and '.join(names)} move without setting the fluid in motion, and "
                "only push particles at their surfaces; a system of kind = 'boundary' with "
                f"boundary = {boundary!r} makes the fluid flow around them"
            )
        return texts

    def _far_lint(self, world: World, entities: list[Entity], bodies: Bodies) -> list[str]:
        """Warn of bodies that move in a tick by many times their size, through everything in their way."""
        far = np.linalg.norm(bodies.v, axis=1) * world.dt * (bodies.motion != FIXED)
        rows = {entity.name: rows for entity, rows in rows_of_each(entities)}
        for script in (one for one in self.scripts if one.name in rows):
            if isinstance(script.center, Keyed):
                ticks = np.floor(script.center.times / world.dt)[:, None] + [-1, 0, 1]
                begin, end = (value_at(script.center, (ticks + k).ravel() * world.dt) for k in (0, 1))
                far[rows[script.name]] = np.linalg.norm(end - begin, axis=1).max()
        width = np.zeros(len(far))
        np.maximum.at(width, bodies.leader, 2 * bodies.radius)  # all radii are about the body's own place
        texts = []
        for name, own in rows.items():
            times = far[own] / width[bodies.leader[own]]
            if times.max(initial=0.0) > FAR:
                texts.append(
                    f"BodySystem: {name!r} moves by up to {far[own][times.argmax()]:.3g} m in a tick, "
                    f"{times.max():.3g} times its width; check its velocity and keys, or use a smaller dt"
                )
        return texts

    def _left_behind_lint(self, world: World, entities: list[Entity], bodies: Bodies) -> list[str]:
        """Warn of containers that move through their fluid, which nothing takes along."""
        from ecs_fluid.kernels.bodies.table import CONTAINER
        from ecs_fluid.systems.boundary.system import BoundarySystem
        from ecs_fluid.systems.velocity.system import VelocitySystem

        velocity = world.system(VelocitySystem)
        held = world.system(BoundarySystem) is not None or (velocity and velocity.solver == "container")
        carried = [entity for entity in world.entities if Velocity in entity]
        if held or world.dimension == 2 or not carried or any(Liquid in entity for entity in carried):
            return []
        keyed, texts = shaken_containers(world), []
        for entity, rows in rows_of_each(entities):
            going = entity.name in keyed or bodies.v[rows].any()
            if going and (bodies.shape[rows] == CONTAINER).any():
                texts.append(
                    f"BodySystem: container {entity.name!r} moves without the fluid in it, and its walls "
                    "only push particles; in a box solver = 'container' of [fluid] velocity takes the fluid "
                    "along, in any shape a system of kind = 'boundary' with boundary = 'panels'"
                )
        return texts

    def _will_move(self, world: World, entities: list[Entity], bodies: Bodies, hulls: Hulls) -> Array:
        """Mask (n,) of bodies that move or will move, other than with the wind: by script, velocity or
        weight."""
        from ecs_fluid.kernels.bodies.table import BALL
        from ecs_fluid.systems.operations import wind_at

        along = (bodies.v != 0.0).any(axis=1) & (bodies.v != wind_at(world, world.time)).any(axis=1)
        turning = (bodies.shape != BALL) & (bodies.angular_velocity != 0.0).any(axis=1)
        going = (bodies.motion != FIXED) & (along | turning)
        heavy = ~bodies.hinge.any(axis=1) | arms_of_hinges(entities, bodies).any(axis=1)
        going |= (bodies.motion == FREE) & heavy & self._sink_or_rise(world, bodies, hulls)
        rows = {entity.name: rows for entity, rows in rows_of_each(entities)}
        for script in (one for one in self.scripts if one.name in rows):
            own = rows[script.name]
            ways = [script.center, None if (bodies.shape[own] == BALL).all() else script.rotation]
            going[own] = any(varies(way) for way in ways)
        return np.asarray(going)

    def _sink_or_rise(self, world: World, bodies: Bodies, hulls: Hulls) -> Array:
        """Mask (n,) of bodies that gravity sets in motion, as far as laws of drag and buoyancy tell.

        What a liquid or a system of one's own does to them is not known beforehand. Densities that particles
        carry and bodies that swell by heat do not count.
        """
        from ecs_fluid.systems.buoyancy import profile
        from ecs_fluid.systems.shared.fluid_at_rest import fluid_at_rest
        from ecs_fluid.systems.surroundings import displacement

        loads = [other for other in world.systems if BodyLoad in other.adds]
        lifting, dragging = named(loads, "BuoyancySystem"), named(loads, "DragSystem")
        displaced = np.zeros(len(bodies.x))
        if not world.fluid[Fluid].gravity.any() or len(loads) > len(lifting) + len(dragging):
            return displaced > 0.0
        if lifting:
            mass = displacement(bodies, hulls, *profile(fluid_at_rest(world)), world.across)[0]
            displaced = of_whole(bodies.leader, mass)
        return np.asarray(np.abs(bodies.mass - displaced) > AFLOAT * bodies.mass)

    def added(self, world: World) -> None:
        """Check the scripts, and attach the component that remembers contacts."""
        names = [script.name for script in self.scripts]
        for name in names:
            if names.count(name) > 1:
                raise RecipeError(f"BodySystem: two scripts move the body {name!r}; one is allowed")
        world._attach_missing("fluid", ContactMemory)

    def must_hold(self, world: World) -> None:
        """Check that each script moves one scripted body."""
        for script in self.scripts:
            entity = world[script.name]
            if Body not in entity or (entity[Body].motion != SCRIPTED).any():
                raise RecipeError(
                    f"BodySystem: a script moves {script.name!r}, but only a body with motion = 'scripted' "
                    f"(Body.motion = {SCRIPTED}) can be moved by one"
                )
            if (count := len(set(leaders_of([entity]).tolist()))) > 1:  # a body that is gone may come back
                raise RecipeError(
                    f"BodySystem: a script moves {script.name!r}, which has {count} bodies; exactly "
                    "one is needed"
                )

    def process(self, dt: float) -> None:
        """Move all bodies by one tick."""
        from ecs_fluid.kernels.bodies.isolated_bodies import move_isolated

        entities = body_entities(self.world)
        across = self.world.across
        if across is not None:
            _check_in_plane(entities, across)
        for entity in entities:
            pose, former = entity[Pose], entity[FormerPose]
            former.x[...], former.q[...] = pose.x, pose.q
            former.lent[...] = former.lent_angular[...] = 0.0
            motion = entity[RigidMotion]
            former.v[...], former.angular_velocity[...] = motion.v, motion.angular_velocity
        moving = any((entity[Body].motion != FIXED).any() for entity in entities)
        if not (moving or (entities and self.scripts)):
            self._forget_contacts()
            return
        ends = self.scripted(dt)
        for entity, *_, v, spin in ends:
            entity[RigidMotion].v[...], entity[RigidMotion].angular_velocity[...] = v, spin
        bodies, hulls = gathered(entities)
        points = bodies.x.copy()
        if across is not None:
            bodies = _kept_from_tilting(bodies, across)
        free = bodies.motion == FREE
        brake, swirl = free * load_of(entities, "brake"), free[:, None] * load_of(entities, "swirl")
        own, drive = bodies, drive_of(self.world, entities, bodies)
        fluid = np.ascontiguousarray(entrained(self.world, entities)[:, 3:, 3:])
        bodies, torque = self._loaded(entities, bodies, drive, fluid, dt)
        loads = drive.push, torque
        brake_spin(bodies, brake, swirl, 0.5 * dt)
        check_pairs(bodies, drive.push, dt)
        rest, steps, fastest = move_isolated(bodies, hulls, *loads, dt, self.substeps, MOST_SUBSTEPS)
        least = max(self.least_bounce, 2.0 * fastest * dt / steps)
        self._advance(entities, bodies, hulls, loads, rest, dt, steps, least)
        brake_spin(bodies, brake, swirl, 0.5 * dt)
        hinged = bodies.hinge.any(axis=1)
        bodies.x[hinged] = points[hinged]
        if across is not None:
            _keep_in_plane(bodies, across)
        _record_lent(entities, own, bodies, drive, fluid, dt)
        write_back(entities, bodies)
        for entity, x, q, *_ in ends:
            entity[Pose].x[...], entity[Pose].q[...] = x, q

    def _loaded(
        self, entities: list[Entity], bodies: Bodies, drive: Drive, fluid: Array, dt: float
    ) -> tuple[Bodies, Array]:
        """Bodies with added mass, the inertia (n, 3, 3) of `fluid` and `kick` applied; torques (n, 3) N m."""
        from ecs_fluid.kernels.bodies.rigid_substep import apply_torque

        free = (bodies.motion == FREE)[:, None]
        torque = load_of(entities, "torque") + self._weight_on_hinges(entities, bodies, dt)
        if fluid.any():
            bodies = bodies._replace(inertia=bodies.inertia + _in_body(fluid, bodies.q))
        bodies = held_by_hinges(bodies)
        kick = free * load_of(entities, "kick")
        if kick.any():
            apply_torque(bodies, kick, 1.0)
        return bodies._replace(mass=drive.heavier), np.where(free, torque, 0.0)

    def _weight_on_hinges(self, entities: list[Entity], bodies: Bodies, dt: float) -> Array:
        """Torques (n, 3) N m of the weight of hinged bodies, as they are turned in the middle of the tick."""
        if not arms_of_hinges(entities, bodies).any():
            return np.zeros_like(bodies.x)
        moved = {name: getattr(bodies, name).copy() for name in ("x", "q", "v", "angular_velocity")}
        ahead = bodies._replace(**moved)
        move_freely(ahead, 0.5 * dt)
        return np.cross(arms_of_hinges(entities, ahead), bodies.mass[:, None] * self.world.gravity)

    def _advance(
        self,
        entities: list[Entity],
        bodies: Bodies,
        hulls: Hulls,
        loads: tuple[Array, Array],
        rest: Array,
        dt: float,
        steps: int,
        least: float,
    ) -> None:
        """Advance the bodies that may touch others, the rows `rest`, and store their contacts."""
        from ecs_fluid.kernels.bodies.impacts import advance

        table, (push, torque) = self.field(ContactMemory), loads
        if not len(rest):
            self._forget_contacts()
            return
        some = some_of(bodies, rest)
        ids = row_ids(entities)
        memory = advance(
            some,
            hulls,
            _remembered_contacts(table, ids[rest]),
            push[rest],
            torque[rest],
            dt,
            steps,
            self.sweeps,
            least,
        )
        for name in ("x", "q", "v", "angular_velocity"):
            getattr(bodies, name)[rest] = getattr(some, name)
        number = self.world.dtype
        table.ids = ids[rest][memory.pairs]
        table.place, table.force = memory.place.astype(number), memory.force.astype(number)

    def _forget_contacts(self) -> None:
        """Empty the ContactMemory, as no bodies touch."""
        table, nothing = self.field(ContactMemory), np.zeros((0, 3), self.world.dtype)
        if len(table.ids):
            table.ids, table.place, table.force = np.zeros((0, 2), np.int64), nothing, nothing.copy()

    def scripted(self, dt: float) -> list[tuple[Entity, Array, Array, Array, Array]]:
        """Scripted bodies that exist: place and orientation at the end of the tick, and the velocity (3,) m/s
        and spin (3,) rad/s that lead there; the same in every stage of the tick."""
        from ecs_fluid.kernels.bodies.rotation import product, quaternion_of, turn_between

        ends, start = [], self.world.tick * self.world.dt
        self.must_hold(self.world)
        for script in self.scripts:
            entity, end = self.world[script.name], start + dt
            if not len(entity):
                continue
            pose, motion = entity[Pose], entity[RigidMotion]
            x, q, v, spin = (
                array[0].astype(np.float64) for array in (pose.x, pose.q, motion.v, motion.angular_velocity)
            )
            if script.center is None:
                target = x + dt * v
            else:
                target = value_at(script.center, end)
                v = (target - x) / dt
            if script.rotation is None:
                turned = product(quaternion_of(dt * spin), q)
            else:
                turned = quaternion_of(value_at(script.rotation, end))
                short = turn_between(q, turned)
                spin = with_turns(short, script.rotation, start, end) / dt
            ends.append((entity, target, turned, v, spin))
        return ends

    def set_scripted_motion(self, entities: list[Entity], bodies: Bodies, dt: float) -> None:
        """Set the velocities that scripted bodies have in a tick of `dt` s in the table of these entities."""
        rows = {entity.name: rows for entity, rows in rows_of_each(entities)}
        for entity, *_, v, spin in self.scripted(dt):
            bodies.v[rows[entity.name]], bodies.angular_velocity[rows[entity.name]] = v, spin


def _record_lent(
    entities: list[Entity], own: Bodies, moved: Bodies, drive: Drive, fluid: Array, dt: float
) -> None:
    """Write what weight, loads and contacts gave to the fluid that goes with the bodies.

    `own` are the bodies as they were, without that fluid, whose inertia (n, 3, 3) was `fluid`. It goes on
    turning with them: it has gained what its spin makes of its inertia, as that is turned now, over what it
    was.
    """
    from ecs_fluid.kernels.bodies.rotation import in_world

    q, v, spin = (column_of(entities, FormerPose, name) for name in ("q", "v", "angular_velocity"))
    hit = (moved.motion == FREE)[:, None] * (moved.v - v - dt * drive.push)
    lent = dt * drive.lent + (drive.heavier - own.mass)[:, None] * hit
    spread(lent, [entity[FormerPose].lent for entity in entities])
    if fluid.any():
        turned = in_world(_in_body(fluid, q), moved.q)
        now, before = turned @ moved.angular_velocity[..., None], fluid @ spin[..., None]
        spread((now - before)[..., 0], [entity[FormerPose].lent_angular for entity in entities])


def _in_body(tensors: Array, q: Array) -> Array:
    """Tensors (n, 3, 3) from world axes to those of bodies turned by q (n, 4)."""
    from ecs_fluid.kernels.bodies.rotation import in_world

    return np.asarray(in_world(tensors, q * (1.0, -1.0, -1.0, -1.0)))


def _unused_heat_lint(world: World, entities: list[Entity]) -> list[str]:
    """Warn of bodies whose `heat` no system uses."""
    used = any(
        BodyHeat in kinds
        for other in world.systems
        for kinds in (other.reads, other.may_read, other.writes, other.adds)
    )
    names = [repr(entity.name) for entity in entities if BodyHeat in entity]
    if used or not names:
        return []
    return [
        f"BodySystem: no system uses the heat of {' and '.join(names)}; a system of kind = 'conduction' "
        "exchanges it with the particles near them"
    ]


def _check_in_plane(entities: list[Entity], across: int) -> None:
    """Raise an error unless all bodies of a plane are disks or prisms."""
    for entity in entities:
        if HullTable in entity:
            along = np.abs(entity[HullTable].planes[:, across])
            if ((along > UPRIGHT) & (along < 1.0 - UPRIGHT)).any():
                raise FluidError(
                    f"BodySystem: a polytope of {entity.name!r} is not a prism perpendicular to the plane; a "
                    "world of dimension = 2 needs such prisms, which kind = 'body' makes"
                )


def _kept_from_tilting(bodies: Bodies, across: int) -> Bodies:
    """The bodies with an inertia so large that nothing, not even rounding in contacts, tilts them."""
    held = np.arange(3) != across
    return bodies._replace(inertia=np.where(np.diag(held), HELD * bodies.inertia, bodies.inertia))


def _keep_in_plane(bodies: Bodies, across: int) -> None:
    """Undo, in place, motion and rotation out of the plane by rounding errors."""
    held = np.arange(3) != across
    bodies.x[:, across], bodies.v[:, across] = 0.0, 0.0
    bodies.angular_velocity[:, held] = 0.0
    bodies.q[:, 1:][:, held] = 0.0
    bodies.q[...] /= np.linalg.norm(bodies.q, axis=1, keepdims=True)


def _remembered_contacts(table: ContactMemory, ids: Array) -> ContactForces:
    """The stored contacts by row numbers of bodies, without those of bodies that are gone."""
    from ecs_fluid.kernels.bodies.contact_solver import ContactForces

    rows, found = rows_of(ids, table.ids)
    both_present = found.all(axis=1)
    pairs = rows[both_present]
    rising = np.argsort(pairs[:, 0] * max(len(ids), 1) + pairs[:, 1], kind="stable")
    known = (column[both_present][rising].astype(np.float64) for column in (table.place, table.force))
    return ContactForces(pairs[rising], *known)
