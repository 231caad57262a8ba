"""All bodies of a world in one table of plain float64 arrays, and back."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array, Component, RowId
from ecs_fluid.components.bodies import (
    FIXED,
    FREE,
    BallShape,
    Body,
    BodyLoad,
    BodyPart,
    Hinge,
    HullShape,
    HullTable,
    Pose,
    RigidMotion,
    ShedMotion,
)
from ecs_fluid.entity import Entity
from ecs_fluid.errors import FluidError
from ecs_fluid.schedule import named
from ecs_fluid.systems.shared.populations import add_spread, rows_of_each
from ecs_fluid.tables import refuse_contradiction

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies
    from ecs_fluid.kernels.collision.swept_bodies import Obstacles
    from ecs_fluid.world import World

SHAPES = (BallShape, HullShape, HullTable, BodyPart, Hinge)
"""What bodies may have: a BallShape, or a HullShape and a HullTable; rows may be parts of one, or hinged."""

HELD_MASS, HELD_INERTIA = 1e12, 1e8
"""Factors on the mass of a hinged body and on its inertia about axes across the hinge: so it turns about that
alone. The second is smaller, since the inertia about the hinge itself is kept in the same matrix only to
HELD_INERTIA times rounding."""

ASIDE = 1e-9
"""How far from a place `are_misplaced` looks around it, over the largest length at hand."""

BODIES = (Pose, RigidMotion, Body, *SHAPES)
"""Components that describe where bodies are and how they move."""


def body_entities(world: World) -> list[Entity]:
    """Entities whose rows are bodies.

    Raises FluidError when one of them lacks a component of a body, or has not exactly one shape.
    """
    found = []
    for entity in world.entities:
        tables = entity.tables
        if Pose not in tables:
            continue
        for needed in (RigidMotion, Body):
            if needed not in tables:
                raise FluidError(
                    f"entity {entity.name!r} has a Pose but no {needed.__name__}; bodies need both"
                )
        if (BallShape in tables) == (HullShape in tables):
            raise FluidError(
                f"entity {entity.name!r} has a Pose; exactly one of BallShape and HullShape is needed"
            )
        if HullShape in tables and HullTable not in tables:
            raise FluidError(f"entity {entity.name!r} has a HullShape but no HullTable of polytopes")
        found.append(entity)
    return found


def gathered(entities: list[Entity]) -> tuple[Bodies, Hulls]:
    """Copies of all bodies' tables, concatenated in the order of the entities, and of their polytopes.

    Parts of a body have the mass, inertia, pose and motion of the whole.
    """
    from ecs_fluid.kernels.bodies.polytope import joined_hulls
    from ecs_fluid.kernels.bodies.table import BALL, CONTAINER, SOLID, Bodies

    mass, inertia, restitution, friction = (
        column_of(entities, Body, name) for name in ("mass", "inertia", "restitution", "friction")
    )
    motion = column_of(entities, Body, "motion").astype(np.int64)
    shape, hull, radius = np.full(len(mass), BALL), np.zeros(len(mass), np.int64), np.empty(len(mass))
    hulls = joined_hulls([exact_hulls(entity[HullTable]) for entity in entities if HullShape in entity])
    known = 0
    for entity, rows in rows_of_each(entities):
        if BallShape in entity:
            radius[rows] = entity[BallShape].radius
        else:
            own, table = entity[HullShape], entity[HullTable]
            refuse_contradiction(entity.name, HullShape, {HullShape: own, HullTable: table})
            shape[rows] = np.where(own.container == 1, CONTAINER, SOLID)
            hull[rows] = own.hull + known
            radius[rows] = hulls.radius[hull[rows]]
            known += len(table.radius)
    x, q = (column_of(entities, Pose, name) for name in ("x", "q"))
    moving = (motion != FIXED)[:, None].astype(np.float64)
    v, spin = (moving * column_of(entities, RigidMotion, name) for name in ("v", "angular_velocity"))
    leader = leaders_of(entities)
    mass, inertia = of_whole(leader, mass), of_whole(leader, inertia)
    x, q, v, spin, motion, hinge = (
        column[leader] for column in (x, q, v, spin, motion, _hinges(entities, q, motion))
    )
    return Bodies(
        x, q, v, spin, mass, inertia, motion, restitution, friction, shape, radius, hull, leader, hinge
    ), hulls


def _hinges(entities: list[Entity], q: Array, motion: Array) -> Array:
    """Unit vectors (n, 3), in body axes, of the hinges of free bodies; 0 for those without one."""
    from ecs_fluid.kernels.bodies.rotation import matrix_of

    axes = np.where((motion == FREE)[:, None], column_of(entities, Hinge, "axis"), 0.0)
    for i in np.flatnonzero(axes.any(axis=1)):
        axes[i] = matrix_of(q[i]).T @ (axes[i] / np.linalg.norm(axes[i]))
    return axes


def hinged_names(entities: list[Entity]) -> str:
    """The entities that have hinged bodies, as text for a message; "" if none has."""
    return " and ".join(repr(one.name) for one in entities if Hinge in one and one[Hinge].axis.any())


def held_by_hinges(bodies: Bodies) -> Bodies:
    """The bodies with the masses and inertias by which impulses move them, see HELD_MASS."""
    rows = np.flatnonzero(bodies.hinge.any(axis=1))
    if not len(rows):
        return bodies
    mass, inertia = bodies.mass.copy(), bodies.inertia.copy()
    mass[rows] *= HELD_MASS
    for i in rows:
        along = np.outer(bodies.hinge[i], bodies.hinge[i])
        about = bodies.hinge[i] @ inertia[i] @ bodies.hinge[i]
        inertia[i] = about * (along + HELD_INERTIA * (np.eye(3) - along))
    return bodies._replace(mass=mass, inertia=inertia)


def arms_of_hinges(entities: list[Entity], bodies: Bodies) -> Array:
    """From the hinges of bodies to their centres of mass, (n, 3) m in world axes; 0 for those without one."""
    from ecs_fluid.kernels.bodies.rotation import matrix_of

    arms = np.where(bodies.hinge.any(axis=1, keepdims=True), column_of(entities, Hinge, "center"), 0.0)
    for i in np.flatnonzero(arms.any(axis=1)):
        arms[i] = matrix_of(bodies.q[i]) @ arms[i]
    return arms


def keep_on_hinges(bodies: Bodies) -> None:
    """Take from hinged bodies, in place, the velocity and the spin across the hinge that rounding gave."""
    from ecs_fluid.kernels.bodies.rotation import matrix_of

    for i in np.flatnonzero(bodies.hinge.any(axis=1)):
        axis = matrix_of(bodies.q[i]) @ bodies.hinge[i]
        bodies.v[i], bodies.angular_velocity[i] = 0.0, (bodies.angular_velocity[i] @ axis) * axis


def leaders_of(entities: list[Entity]) -> Array:
    """Number (n,) of the row that each body's motion is that of: its own, or that of its first part."""
    leader = np.arange(sum(len(entity) for entity in entities))
    for entity, rows in rows_of_each(entities):
        if BodyPart in entity:
            leader[rows] = rows.start + entity[BodyPart].leaders()
    return leader


def sum_of_parts(leader: Array, values: Array) -> Array:
    """Values (n, ...) of bodies: the first part of a body has the sum of all its parts, the others 0."""
    if (leader == np.arange(len(leader))).all():
        return values
    out = np.zeros_like(values)
    np.add.at(out, leader, values)
    return out


def of_whole(leader: Array, values: Array) -> Array:
    """Values (n, ...) of bodies, where each part has the sum of all parts of its body."""
    total = sum_of_parts(leader, values)
    return values if total is values else total[leader]


def some_of(bodies: Bodies, rows: Array) -> Bodies:
    """The bodies of these rows, numbers or a mask; parts follow the first part if that is among them."""
    some = type(bodies)(*(column[rows] for column in bodies))
    place = np.full(len(bodies.x), -1)
    place[rows] = own = np.arange(len(some.x))
    leader = place[some.leader]
    return some._replace(leader=np.where(leader < 0, own, leader))


def move_freely(bodies: Bodies, dt: float) -> None:
    """Move all moving bodies, in place, for dt seconds at their present velocities, turning freely."""
    from ecs_fluid.kernels.bodies.isolated_bodies import drift

    nothing = np.zeros_like(bodies.x)
    drift(held_by_hinges(bodies), np.ones(len(nothing), bool), nothing, nothing, dt, 1)


def move_to_stage(world: World, entities: list[Entity], bodies: Bodies) -> None:
    """Move all bodies, in place, to where they will be at the time of the integrator's stage.

    Scripted bodies get the velocities of this tick. Without a BodySystem bodies stay where they are.
    """
    from ecs_fluid.systems.bodies import BodySystem

    mover = world.system(BodySystem)
    if mover is not None:
        mover.set_scripted_motion(entities, bodies, world.dt)
        if world.stage.c:
            move_freely(bodies, world.stage.c * world.dt)


def exact_hulls(table: HullTable) -> Hulls:
    """The polytopes of an entity in double precision, with normals of length 1."""
    from ecs_fluid.kernels.bodies.polytope import Hulls

    planes = table.planes.astype(np.float64)
    # In a single-precision world the length of a normal is 1 only to 1e-7.
    planes /= np.linalg.norm(planes[:, :3], axis=1, keepdims=True)
    return Hulls(**{**{name: getattr(table, name) for name in Hulls._fields}, "planes": planes})


def corners_of(hulls: Hulls | HullTable, h: int) -> Array:
    """Corners (v, 3) m of polytope number h, in its own axes."""
    return hulls.vertices[hulls.vertex_start[h] : hulls.vertex_start[h + 1]]


def planes_of(hulls: Hulls | HullTable, h: int) -> Array:
    """Outward normals and distances (p, 4), 1 and m, of the planes of polytope number h."""
    return hulls.planes[hulls.plane_start[h] : hulls.plane_start[h + 1]]


def faces_of(hulls: Hulls, h: int) -> list[Array]:
    """Corners (k, 3) m around each face of polytope number h, in the order of its planes."""
    corners, ends = corners_of(hulls, h), hulls.loop_start
    return [
        corners[hulls.loops[ends[k] : ends[k + 1]]]
        for k in range(hulls.plane_start[h], hulls.plane_start[h + 1])
    ]


def row_ids(entities: Iterable[Entity]) -> Array:
    """RowId of every body, in the order of `gathered`; ascending within each entity."""
    return np.concatenate([np.zeros(0, np.int64), *(entity[RowId].id for entity in entities)])


def rows_of(ids: Array, wanted: Array) -> tuple[Array, Array]:
    """Index in `ids` (n,) of each of the RowIds `wanted` (any shape), and a mask of those found."""
    if not len(ids):
        return np.zeros(wanted.shape, np.int64), np.zeros(wanted.shape, bool)
    order = np.argsort(ids, kind="stable")
    rows = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
    return rows, ids[rows] == wanted


def write_back(entities: list[Entity], bodies: Bodies) -> None:
    """Write the poses of moving bodies, and the velocities of free ones, into their tables."""
    for entity, rows in rows_of_each(entities):
        pose, moved = entity[Pose], bodies.motion[rows] != FIXED
        pose.x[moved], pose.q[moved] = bodies.x[rows][moved], bodies.q[rows][moved]
    set_motion(entities, bodies, np.flatnonzero(bodies.motion == FREE))


def entrained(world: World, entities: list[Entity]) -> Array:
    """Inertia (n, 6, 6), kg, kg m and kg m^2, of the fluid that goes with free bodies, each alone.

    It is that of panels whose impulses move the bodies; 0 for others, and along axes on which these do not.
    """
    boundaries = named(world.systems, "BoundarySystem")
    if boundaries and boundaries[0].boundary == "panels":
        return np.asarray(boundaries[0].sheets.entrained(entities))
    return np.zeros((sum(map(len, entities)), 6, 6))


def added_masses(world: World, entities: list[Entity]) -> tuple[Array, Array | None]:
    """Added mass (n, 3, 3) kg of the bodies that the BodySystem accelerates, and that of pairs or None.

    It is that of their BodyLoad or, if it has none, that of the sheets of panels (`entrained`), or of a
    boundary layer when they were last solved; for new bodies, what the sheets would give where they are. The
    second result (n, n, 3, 3) kg is the added mass of the first body as the second accelerates. It is given
    where sheets of a layer move several free bodies, and then stands for all of their added mass.
    """
    ids = row_ids(entities)
    added, between = entrained(world, entities)[:, :3, :3], None
    if ShedMotion in world.fluid:
        memory = world.fluid[ShedMotion]
        places, known = rows_of(memory.id, ids)
        if len(memory.added) > len(memory.id):
            pairs = memory.added.reshape(len(memory.id), len(memory.id), 3, 3).astype(np.float64)
            between = pairs[np.ix_(places, places)]
        elif memory.added.any():
            added[known] = memory.added[places[known]]
        boundaries = named(world.systems, "BoundarySystem")
        if boundaries and boundaries[0].boundary == "layer" and not known.all():
            fresh = boundaries[0].sheets.added_masses(entities)
            if len(fresh) > len(ids):
                between = fresh.reshape(len(ids), len(ids), 3, 3)
            else:
                between, added[~known] = None, fresh[~known]
    if between is not None:
        return np.einsum("nnab->nab", between).copy(), between
    own = load_of(entities, "added")
    return np.where(own.any(axis=(1, 2), keepdims=True), own, added), None


def load_of(entities: list[Entity], name: str) -> Array:
    """A column of all BodyLoads; parts of a body have the sum of those of all its parts."""
    return of_whole(leaders_of(entities), column_of(entities, BodyLoad, name))


def column_of(entities: list[Entity], kind: type[Component], name: str) -> Array:
    """A column of all bodies, concatenated; 0 where an entity lacks the component."""
    shape = tuple(length or 0 for length in kind.columns[name].shape)
    parts = [
        vars(entity[kind])[name] if kind in entity else np.zeros((len(entity), *shape)) for entity in entities
    ]
    return np.concatenate([np.zeros((0, *shape)), *parts], dtype=np.float64)


def add_loads(entities: list[Entity], **loads: Array) -> None:
    """Add `loads`, columns of all bodies concatenated, to the columns of their BodyLoads."""
    for name, values in loads.items():
        columns = [vars(entity[BodyLoad])[name] for entity in entities]
        add_spread(values.astype(columns[0].dtype), columns)


def set_motion(entities: list[Entity], bodies: Bodies, changed: Array) -> None:
    """Write velocities and spins of the bodies with the indices `changed` into their tables.

    Parts of a body get those of its first part.
    """
    keep_on_hinges(bodies)
    some, leader = np.zeros(len(bodies.x), bool), bodies.leader
    some[changed] = True
    some, v, spin = some[leader], bodies.v[leader], bodies.angular_velocity[leader]
    for entity, rows in rows_of_each(entities):
        motion, mine = entity[RigidMotion], some[rows]
        motion.v[mine], motion.angular_velocity[mine] = v[rows][mine], spin[rows][mine]


def as_obstacles(
    bodies: Bodies, hulls: Hulls, clearance: float, former: tuple[Array, Array] | None = None,
    stray: Array | None = None,
) -> Obstacles:  # fmt: skip
    """The bodies as obstacles with a clearance, m: at rest where they are, or coming from `former` (x, q).

    For `stray` see `kernels.collision.swept_bodies.obstacles`.
    """
    from ecs_fluid.kernels.collision.swept_bodies import obstacles

    pose = (bodies.x, bodies.q)
    motion, shapes = (bodies.v, bodies.angular_velocity), (bodies.shape, bodies.radius, bodies.hull)
    return obstacles(former or pose, pose, motion, *shapes, hulls, clearance, bodies.leader, stray)


def depths(obstacles: Obstacles, hulls: Hulls, x: Array) -> Array:
    """Depth (n,) m of places x (n, 3) m inside a body or outside all containers; elsewhere 0 or less.

    Obstacles count as they stand at the end of the tick.
    """
    from ecs_fluid.kernels.collision.collide import misplaced

    x = np.ascontiguousarray(x)
    depth = np.empty(len(x))
    misplaced(obstacles, hulls, x, depth)
    return depth


def are_misplaced(obstacles: Obstacles, hulls: Hulls, x: Array) -> Array:
    """Mask (n,) of places x (n, 3) m inside a body, also on a seam of its parts, or outside all containers.

    On a seam the depth in each part is 0, but all around it are places in a part; not so on the surface.
    """
    depth = depths(obstacles, hulls, x)
    lost = depth > 0.0
    if (obstacles.leader != np.arange(len(obstacles.leader))).any():
        aside = ASIDE * max(float(hulls.radius.max()), float(np.abs(x).max(initial=0.0)))
        seam = np.flatnonzero(~lost & (depth > -1e-3 * aside))
        around = x[seam, None].astype(np.float64) + aside * np.array(list(product((-0.9, 1.0), repeat=3)))
        deep = depths(obstacles, hulls, around.reshape(-1, 3)).reshape(-1, 8) > 0.0
        lost[seam] = deep.all(axis=1)
    return lost


def near_bodies(bodies: Bodies, hulls: Hulls, x: Array, reach: Array) -> tuple[Array, Array, Array, Array]:
    """(row, body, distance in m, normal) of the places x (n, 3) m within reach (n,) m of a surface."""
    from ecs_fluid.kernels.collision.closest_surface import near_surfaces

    n = len(x)
    owner, gap, normal = np.empty(n, np.int64), np.empty(n), np.empty((n, 3))
    around = as_obstacles(bodies, hulls, float(reach.max(initial=0.0)))
    near_surfaces(around, hulls, x, reach, owner, gap, normal)
    rows = np.flatnonzero(owner >= 0)
    return rows, owner[rows], gap[rows], normal[rows]
