"""What rigid bodies are: one row per body, spheres or convex polytopes, solid or inside out."""

from __future__ import annotations

from ecs_fluid.component import Array, Component, column
from ecs_fluid.components.particles import Position

FIXED, SCRIPTED, FREE = 0, 1, 2
"""Kinds of motion: at rest, moved along as told whatever it meets, moved by gravity and contacts."""

KINDS_OF_MOTION = {"fixed": FIXED, "scripted": SCRIPTED, "free": FREE}


class Pose(Component):
    """Where a body's centre of mass is and how the body is turned.

    q = (w, x, y, z) is a unit quaternion; a point r of the body is at x + R(q) r.
    """

    x: Array = column("m", shape=(3,))
    q: Array = column("1", shape=(4,))


class RigidMotion(Component):
    """Velocity of a body's centre of mass, and its angular velocity in world axes."""

    v: Array = column("m/s", shape=(3,), default=0.0)
    spin: Array = column("rad/s", shape=(3,), default=0.0)


class Body(Component):
    """Mass properties, kind of motion and surface of a body.

    inertia is the tensor about the centre of mass in body axes. motion: 0 fixed, 1 scripted, 2 free.
    """

    mass: Array = column("kg", above=0.0)
    inertia: Array = column("kg m^2", shape=(3, 3))
    motion: Array = column("1", kind="int", default=FREE, minimum=0, maximum=2)
    restitution: Array = column("1", default=0.0, minimum=0.0, maximum=1.0)
    friction: Array = column("1", default=0.5, minimum=0.0)


class BallShape(Component):
    """The body is a ball."""

    radius: Array = column("m", above=0.0)


class HullShape(Component):
    """The body is polytope number `hull` of its entity's HullTable; a container is it inside out."""

    hull: Array = column("1", kind="int", default=0, minimum=0)
    container: Array = column("1", kind="int", default=0, minimum=0, maximum=1)


class HullTable(Component, per_row=False):
    """Convex polytopes end to end, in axes about their centres of mass; see `kernels.polytope.Hulls`."""

    planes: Array = column("m", shape=(None, 4))
    loops: Array = column("1", shape=(None,), kind="int")
    loop_start: Array = column("1", shape=(None,), kind="int")
    vertices: Array = column("m", shape=(None, 3))
    edges: Array = column("1", shape=(None, 2), kind="int")
    plane_start: Array = column("1", shape=(None,), kind="int")
    vertex_start: Array = column("1", shape=(None,), kind="int")
    edge_start: Array = column("1", shape=(None,), kind="int")
    radius: Array = column("m", shape=(None,))
    inner: Array = column("m", shape=(None,))


class FormerPose(Component, derived=True, given=(Pose,)):
    """Pose of a body when the tick began."""

    x: Array = column("m", shape=(3,))
    q: Array = column("1", shape=(4,))


class FormerPosition(Component, derived=True, given=(Position,)):
    """Where a particle was when the tick began."""

    x: Array = column("m", shape=(3,))


class CollisionCount(Component, per_row=False):
    """What collisions have done so far: particles cleared at the start, and met by a body since.

    squeezed: particles found in a place that two bodies close up between them, and moved out of it.
    trapped: those for which no place was found.
    """

    cleared: Array = column("1", shape=(1,), kind="int", default=0)
    met: Array = column("1", shape=(1,), kind="int", default=0)
    squeezed: Array = column("1", shape=(1,), kind="int", default=0)
    trapped: Array = column("1", shape=(1,), kind="int", default=0)


class ContactMemory(Component, per_row=False):
    """Forces between bodies at the end of the last tick, from which the next solution starts.

    ids: RowId of the two bodies. It is state, so that a resumed run settles as the straight one does.
    """

    ids: Array = column("1", shape=(None, 2), kind="int")
    place: Array = column("m", shape=(None, 3))
    force: Array = column("N", shape=(None, 3))
