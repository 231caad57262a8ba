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

    x: Array = column("m", shape=(3,), plane="in")
    q: Array = column("1", shape=(4,), in_frames=True)


class RigidMotion(Component):
    """Velocity of a body's centre of mass, and its angular velocity in world axes."""

    v: Array = column("m/s", shape=(3,), default=0.0, plane="in", in_frames=True)
    angular_velocity: Array = column("rad/s", shape=(3,), default=0.0, plane="across", in_frames=True)


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

    radius: Array = column("m", above=0.0, in_frames=True)


class HullShape(Component):
    """The body is polytope number `hull` of its entity's HullTable; a container is it inside out."""

    hull: Array = column("1", kind="int", default=0, minimum=0, in_frames=True)
    container: Array = column("1", kind="int", default=0, minimum=0, maximum=1, in_frames=True)


class HullTable(Component, per_row=False):
    """Convex polytopes end to end, in axes about the centres of mass; see `kernels.bodies.polytope.Hulls`."""

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


class FormerPose(Component, derived=True, given=(Pose, RigidMotion)):
    """Pose and motion of a body when the tick began."""

    x: Array = column("m", shape=(3,))
    q: Array = column("1", shape=(4,))
    v: Array = column("m/s", shape=(3,))
    angular_velocity: Array = column("rad/s", shape=(3,))


class FormerPosition(Component, derived=True, given=(Position,)):
    """Where a particle was when the tick began."""

    x: Array = column("m", shape=(3,))


class CollisionCount(Component, per_row=False):
    """What collisions have done so far: particles cleared at the start and at birth, and met by a body since.

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


class BodyLoad(Component, derived=True, given=(Pose, RigidMotion, Body)):
    """What the fluid does to a body in this tick: force, torque about the centre of mass, added mass.

    The BodySystem accelerates the body by (m + added)^-1 (m g + force) all through the tick: of second order
    in time if the force is that where the body is in its middle. torque keeps its direction in the world;
    kick is angular momentum that the body gets at once when the tick begins. brake b and swirl s are a
    resistance to its spin, with the torque s - b spin.
    """

    force: Array = column("N", shape=(3,))
    torque: Array = column("N m", shape=(3,))
    kick: Array = column("N m s", shape=(3,))
    brake: Array = column("N m s")
    swirl: Array = column("N m", shape=(3,))
    added: Array = column("kg", shape=(3, 3))


class Surroundings(Component, derived=True, given=(Pose, RigidMotion, Body)):
    """The fluid around a body, mean over the tick: velocity and half the vorticity of the flow at its centre,
    and what particles add to the ambient's density there, with its gradient.
    """

    u: Array = column("m/s", shape=(3,))
    turning: Array = column("rad/s", shape=(3,))
    excess: Array = column("kg/m^3")
    slope: Array = column("kg/m^4", shape=(3,))


class AddedMass(Component):
    """Mass of fluid that a body accelerates along, as a part of the mass of the fluid it displaces.

    A tensor in body axes; 1/2 times the unit tensor for a ball, which needs no table for it.
    """

    coefficient: Array = column("1", shape=(3, 3))


class BodyHeat(Component):
    """Temperature of a body, its heat capacity C, and how it exchanges heat and expands.

    transfer: heat flux per area and difference of temperature to the fluid. expansion: the body displaces
    V (1 + expansion (T - reference)) of fluid; its shape for contacts stays as it is. A reference of 0
    becomes the fluid's temperature at the body's height in its first tick with a BuoyancySystem. rest: what T
    is too small by, so that in single precision small amounts of heat add up.
    """

    T: Array = column("K", above=0.0, in_frames=True)
    capacity: Array = column("J/K", above=0.0)
    transfer: Array = column("W/(m^2 K)", default=0.0, minimum=0.0)
    expansion: Array = column("1/K", default=0.0)
    reference: Array = column("K", default=0.0, minimum=0.0)
    rest: Array = column("K", default=0.0)


class Contact(Component):
    """The bodies that a particle met in the last tick, and in the one before: numbers among all bodies.

    -1 for none. Filled by the CollisionSystem for the particles that have it.
    """

    body: Array = column("1", kind="int", default=-1, minimum=-1)
    before: Array = column("1", kind="int", default=-1, minimum=-1)


class FluidReaction(Component, derived=True, given=(Pose, RigidMotion, Body)):
    """Impulse that a body got from the fluid in this tick, told in two ways.

    By the momentum of the tracers that met it, and by the loss of the vortons' impulse and angular impulse
    at it, times the density. Angular parts are about the centre of mass.
    """

    tracers: Array = column("N s", shape=(3,))
    tracers_angular: Array = column("N m s", shape=(3,))
    vortons: Array = column("N s", shape=(3,))
    vortons_angular: Array = column("N m s", shape=(3,))


class BoundaryExchange(Component, derived=True, given=(Pose, RigidMotion, Body)):
    """What the boundary condition at a body gave to the vortons in this tick, per density of the fluid.

    impulse: change of 1/2 sum r cross alpha; moment: of 1/3 sum r cross (r cross alpha), both with r from the
    centre of mass; in a plane of sum r cross alpha and 1/2 sum r cross (r cross alpha). What a change of spin
    takes from the vortons the body itself has, so that this is no impulse, wherever the body is; its angular
    impulse is in the moment. With "panels" and "layer" what is inside of the body counts as fluid. slip: rms
    velocity of the fluid relative to the surface that it found where it looked.
    """

    impulse: Array = column("m^4/s", shape=(3,))
    moment: Array = column("m^5/s", shape=(3,))
    slip: Array = column("m/s")


class BoundVorticity(Component):
    """Tag of vortons that stand for the vorticity of bodies: they stay on these, whatever moves others."""


class BoundaryLayer(Component):
    """Tag of vortons that a BoundarySystem keeps on a lattice, inside of bodies too: nothing else moves,
    joins or remeshes them. within: part of their volume that is inside of the body with the RowId `body`,
    where the fluid turns with it; -1 for none.
    """

    within: Array = column("1", default=0.0)
    body: Array = column("1", kind="int", default=-1, minimum=-1)


class ShedMotion(Component, per_row=False):
    """Velocity and angular velocity of bodies for which vorticity has been shed: so much the fluid knows of.

    id: their RowId. v_change, spin_change: what the last ticks changed whose friction is on account. added:
    the mass of fluid that sheets of a boundary layer accelerate along with a free body, n rows, or n^2 for
    all pairs of bodies (i, j), of i as j moves, where several are free. bound: how many vortons on its
    surface stand for its spin, in the order of the bodies. A body that is not here has shed none yet, and one
    that is here and no more in the world leaves its vorticity to the fluid.
    """

    id: Array = column("1", shape=(None,), kind="int")
    v: Array = column("m/s", shape=(None, 3))
    angular_velocity: Array = column("rad/s", shape=(None, 3))
    v_change: Array = column("m/s", shape=(None, 3))
    spin_change: Array = column("rad/s", shape=(None, 3))
    added: Array = column("kg", shape=(None, 3, 3))
    bound: Array = column("1", shape=(None,), kind="int")
