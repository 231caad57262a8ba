"""Rigid bodies: one row per body; balls or convex polytopes, solid or inside out (containers)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ecs_fluid.component import Array, Component, Tables, column, refuse_other_lengths
from ecs_fluid.components.particles import ROUNDING, Position
from ecs_fluid.errors import ComponentError

FIXED, SCRIPTED, FREE = 0, 1, 2
"""Kinds of motion: at rest; as a script says, whatever is in the way; by gravity, loads and contacts."""

KINDS_OF_MOTION = {"fixed": FIXED, "scripted": SCRIPTED, "free": FREE}


ROUNDED = 1e-3
"""Most by which the length of a quaternion or normal that users give may differ from 1."""

SUNK = 0.02
"""Most that a corner may lie behind the plane of its face, as a fraction of the polytope's radius."""


def _principal_values(label: str, tensors: Array) -> Array:
    """Principal values (n, 3), ascending, of tensors (n, 3, 3); ComponentError if one is not symmetric."""
    tensors = tensors.astype(np.float64)
    turned = np.swapaxes(tensors, 1, 2)
    skew = np.abs(tensors - turned).max(axis=(1, 2), initial=0.0)
    size = np.abs(tensors).max(axis=(1, 2), initial=0.0)
    for row in np.flatnonzero(skew > ROUNDING * size)[:1]:
        i, j = np.unravel_index(np.abs(tensors - turned)[row].argmax(), (3, 3))
        raise ComponentError(
            f"{label} row {row} has {tensors[row, i, j]:g} at [{i}, {j}] and {tensors[row, j, i]:g} at "
            f"[{j}, {i}]; a symmetric tensor is needed"
        )
    return np.asarray(np.linalg.eigvalsh(0.5 * (tensors + turned)))


class Pose(Component):
    """Where a body's centre of mass is and how the body is turned.

    q = (w, x, y, z) is a unit quaternion; a point r of the body is at x + R(q) r.
    """

    x: Array = column("m", shape=(3,), plane="in")
    q: Array = column("1", shape=(4,), in_frames=True)

    def agree(self, beside: Tables) -> None:
        """Refuse quaternions that are no unit ones."""
        length = np.sqrt(np.einsum("ij,ij->i", self.q, self.q, dtype=np.float64))
        for row in np.flatnonzero(np.abs(length - 1) > ROUNDED)[:1]:
            raise ComponentError(
                f"Pose.q row {row} has length {length[row]:g}; a unit quaternion (w, x, y, z) is needed"
            )


class RigidMotion(Component):
    """Velocity of a body's centre of mass, and its angular velocity in world axes."""

    v: Array = column("m/s", shape=(3,), default=0.0, plane="in", in_frames=True)
    angular_velocity: Array = column("rad/s", shape=(3,), default=0.0, plane="across", in_frames=True)

    def agree(self, beside: Tables) -> None:
        """Refuse velocities of what a hinge holds."""
        if Hinge not in beside or len(axis := vars(beside[Hinge])["axis"]) != len(self.v):
            return
        for row in np.flatnonzero(axis.any(axis=1) & self.v.any(axis=1))[:1]:
            raise ComponentError(
                f"RigidMotion.v row {row} is {_listed(self.v[row])} m/s, but the body has a Hinge, which "
                "stays; 0 is needed"
            )
        spin = self.angular_velocity.astype(np.float64)
        along = (spin * axis).sum(axis=1)[:, None] * axis
        across = np.linalg.norm(spin - along, axis=1) > ROUNDED * np.linalg.norm(spin, axis=1)
        for row in np.flatnonzero(axis.any(axis=1) & across)[:1]:
            raise ComponentError(
                f"RigidMotion.angular_velocity row {row} is {_listed(spin[row])} rad/s, but the body turns "
                f"about the axis {_listed(axis[row])} of its Hinge alone"
            )


class Body(Component):
    """Mass properties, kind of motion and surface of a body.

    inertia is the tensor about the centre of mass in body axes. motion: 0 fixed, 1 scripted, 2 free.
    """

    mass: Array = column("kg", above=0.0)
    inertia: Array = column("kg m^2", shape=(3, 3))
    motion: Array = column("1", kind="int", default=FREE, minimum=0, maximum=2)
    restitution: Array = column("1", default=0.0, minimum=0.0, maximum=1.0)
    friction: Array = column("1", default=0.5, minimum=0.0)

    def agree(self, beside: Tables) -> None:
        """Refuse tensors that no body has: each moment is above 0, and at most the sum of the two others."""
        moments = _principal_values("Body.inertia", self.inertia)
        least, middle, most = moments.T
        for row in np.flatnonzero((least <= 0) | (most > (least + middle) * (1 + ROUNDING)))[:1]:
            told = ", ".join(f"{moment:g}" for moment in moments[row])
            raise ComponentError(
                f"Body.inertia row {row} has the principal moments {told} kg m^2; each must be above 0 and "
                "at most the sum of the other two"
            )


class Hinge(Component):
    """The free body turns about a fixed axis alone; its Pose.x is a point of that axis, which stays.

    axis: unit vector, in the world; 0 for a body that has no hinge. center: centre of mass, in body axes
    about Pose.x. Shape and Body.inertia are about Pose.x too. Parts of a body have the same hinge.
    """

    axis: Array = column("1", shape=(3,), plane="across")
    center: Array = column("m", shape=(3,), default=0.0)

    def agree(self, beside: Tables) -> None:
        """Refuse axes that are neither unit vectors nor 0, and points of an axis that move."""
        length = np.sqrt(np.einsum("ij,ij->i", self.axis, self.axis, dtype=np.float64))
        for row in np.flatnonzero((np.abs(length - 1) > ROUNDED) & (length > 0))[:1]:
            raise ComponentError(
                f"Hinge.axis row {row} has length {length[row]:g}; a unit vector, or 0 for none, is needed"
            )
        for row in np.flatnonzero((length == 0) & self.center.any(axis=1))[:1]:
            raise ComponentError(
                f"Hinge.center row {row} is {_listed(self.center[row])} m, but the axis is 0; a body without "
                "a hinge has its centre of mass at Pose.x, so 0 is needed"
            )
        if BodyPart in beside:
            parts, first = beside[BodyPart], np.arange(len(length))
            if isinstance(parts, BodyPart) and len(parts.body) == len(length):
                first = parts.leaders()
            other = (self.axis != self.axis[first]) | (self.center != self.center[first])
            for row in np.flatnonzero(other.any(axis=1))[:1]:
                raise ComponentError(
                    f"Hinge row {row} is another one than that of row {first[row]}, but both are parts of "
                    "one body; all parts of a body need the same hinge"
                )


class BodyPart(Component):
    """The row is one of the convex parts of a rigid body; the body is all adjacent rows with the same number.

    Parts have the pose and motion of their body, and the polytope of a part is in axes about the body's
    centre of mass. Body.mass of a part is its own; Body.inertia is that of its mass about the body's centre,
    so that both add up to those of the body. parts: how many parts the body has.
    """

    body: Array = column("1", kind="int", minimum=0)
    parts: Array = column("1", kind="int", minimum=1)

    def agree(self, beside: Tables) -> None:
        """Refuse bodies that lack a part, or whose rows are not adjacent."""
        self.leaders()

    def leaders(self) -> Array:
        """Number (n,) of the row of the first part of each row's body.

        Raises ComponentError if a body has not as many adjacent rows as it has parts.
        """
        new = np.diff(self.body, prepend=-1) != 0
        first, group = np.flatnonzero(new), np.cumsum(new) - 1
        count = np.bincount(group)
        for row in np.flatnonzero(self.parts != count[group])[:1]:
            raise ComponentError(
                f"BodyPart.parts row {row} is {self.parts[row]}, but {count[group[row]]} adjacent rows are "
                f"body {self.body[row]}; the parts of a body are adjacent, and none can be removed alone"
            )
        return np.asarray(first[group])


class BallShape(Component):
    """The body is a ball."""

    radius: Array = column("m", above=0.0, in_frames=True)


class HullShape(Component):
    """The body is polytope number `hull` of its entity's HullTable; inside out, if container is 1."""

    hull: Array = column("1", kind="int", default=0, minimum=0, in_frames=True)
    container: Array = column("1", kind="int", default=0, minimum=0, maximum=1, in_frames=True)

    def agree(self, beside: Tables) -> None:
        """Refuse numbers of polytopes that the entity's HullTable does not hold."""
        if HullTable not in beside or not len(self.hull):
            return
        row, held = int(self.hull.argmax()), len(vars(beside[HullTable])["radius"])
        if self.hull[row] >= held:
            raise ComponentError(
                f"HullShape.hull row {row} is {self.hull[row]}, but its HullTable holds {held} polytopes; "
                f"numbers from 0 up to, but not including, {held} are allowed"
            )


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
    radius: Array = column("m", shape=(None,), above=0.0)
    inner: Array = column("m", shape=(None,))

    def agree(self, beside: Tables) -> None:
        """Refuse numbers that make no closed polytopes, and too few of them for the bodies."""
        refuse_other_lengths(self, "radius", "inner")
        count = len(self.radius)
        planes = self._part_bounds("plane", self.planes, count)
        vertices = self._part_bounds("vertex", self.vertices, count)
        edges = self._part_bounds("edge", self.edges, count)
        faces = self._part_bounds("loop", self.loops, len(self.planes))
        for h in range(count):
            corners = self.vertices[slice(*vertices[h])].astype(np.float64)
            self._refuse_numbers("edges", self.edges[slice(*edges[h])], h, len(corners))
            for k in range(*planes[h]):
                face = self.loops[slice(*faces[k])]
                self._refuse_numbers("loops", face, h, len(corners))
                self._refuse_plane(k, h, corners, face)
        if HullShape in beside:
            beside[HullShape].agree({HullTable: self})

    def _part_bounds(self, name: str, array: Array, count: int) -> list[tuple[int, int]]:
        """Where the parts of a column begin and end: there are `count`, one after the other, none empty."""
        starts = vars(self)[f"{name}_start"]
        if len(starts) != count + 1 or starts[0] or starts[-1] != len(array) or (np.diff(starts) <= 0).any():
            raise ComponentError(
                f"HullTable.{name}_start is {_listed(starts)}; {count + 1} numbers that rise from 0 to "
                f"{len(array)} are needed"
            )
        return list(pairwise(starts.tolist()))

    def _refuse_numbers(self, name: str, numbers: Array, h: int, corners: int) -> None:
        if (least := int(numbers.min())) < 0 or (most := int(numbers.max())) >= corners:
            raise ComponentError(
                f"HullTable.{name} of polytope {h} refers to vertex {least if least < 0 else most}; its "
                f"vertices are numbered from 0 to {corners - 1}"
            )

    def _refuse_plane(self, k: int, h: int, corners: Array, face: Array) -> None:
        """Refuse a plane that does not hold the corners of its face, or has others outside."""
        plane, size = self.planes[k].astype(np.float64), float(self.radius[h])
        gap = corners @ plane[:3] - plane[3]
        unit = abs(np.linalg.norm(plane[:3]) - 1) <= ROUNDED
        if not unit or gap.max() > ROUNDED * size or gap[face].min() < -SUNK * size:
            raise ComponentError(
                f"HullTable.planes row {k} is {_listed(plane)}, but vertices of polytope {h} lie up to "
                f"{gap.max():g} m outside that plane, and those of its face up to {-gap[face].min():g} m "
                "inside; the outward unit normal of a face and its distance from the origin are needed"
            )


def _listed(numbers: Array) -> str:
    """The first numbers of an array."""
    return ", ".join(f"{number:g}" for number in numbers[:4]) + (", ..." if len(numbers) > 4 else "")


class FormerPose(Component, derived=True, given=(Pose, RigidMotion)):
    """Pose and motion of a body when the tick began, and what the BodySystem gave to its added mass since.

    lent, lent_angular: of the impulses of weight, loads and contacts in this tick, those by which the fluid
    that goes with the body is foreseen to gain momentum; the body itself has gained the rest.
    """

    x: Array = column("m", shape=(3,))
    q: Array = column("1", shape=(4,))
    v: Array = column("m/s", shape=(3,))
    angular_velocity: Array = column("rad/s", shape=(3,))
    lent: Array = column("N s", shape=(3,))
    lent_angular: Array = column("N m s", shape=(3,))


class FormerPosition(Component, derived=True, given=(Position,)):
    """Where a particle was when the tick began."""

    x: Array = column("m", shape=(3,))


class CollisionCount(Component, per_row=False):
    """Numbers of particles in collisions so far; a particle counts again in each tick in which it collides.

    cleared: removed as misplaced, at the start or at birth. met: met by a body. squeezed: found in a place
    that two bodies close up between them, and moved out of it. trapped: those for which no place was found.
    """

    cleared: Array = column("1", shape=(1,), kind="int", default=0)
    met: Array = column("1", shape=(1,), kind="int", default=0)
    squeezed: Array = column("1", shape=(1,), kind="int", default=0)
    trapped: Array = column("1", shape=(1,), kind="int", default=0)


class ContactMemory(Component, per_row=False):
    """Forces between bodies at the end of the last tick, from which the next solution starts.

    ids: RowId of the two bodies. It is state, so that a resumed run settles as an uninterrupted one does.
    """

    ids: Array = column("1", shape=(None, 2), kind="int")
    place: Array = column("m", shape=(None, 3))
    force: Array = column("N", shape=(None, 3))

    def agree(self, beside: Tables) -> None:
        """Refuse columns of other lengths."""
        refuse_other_lengths(self, *type(self).columns)


class BodyLoad(Component, derived=True, given=(Pose, RigidMotion, Body)):
    """What the fluid does to a body in this tick: force, torque about the centre of mass, added mass.

    The BodySystem accelerates the body by (m + added)^-1 (m g + force) during the whole tick. This is of
    second order in time if the force is the one at the place of the body in the middle of the tick. torque
    keeps its direction in the world; kick is angular momentum that the body gets at once when the tick
    begins. brake b and swirl s describe a resistance to its spin, with the torque s - b spin.
    """

    force: Array = column("N", shape=(3,))
    torque: Array = column("N m", shape=(3,))
    kick: Array = column("N m s", shape=(3,))
    brake: Array = column("N m s")
    swirl: Array = column("N m", shape=(3,))
    added: Array = column("kg", shape=(3, 3))


class Surroundings(Component, derived=True, given=(Pose, RigidMotion, Body)):
    """The fluid around a body, averaged over the tick.

    u, turning, acceleration: velocity, half the vorticity and Du/Dt of the flow at its centre. excess, slope:
    what particles add to the density of the ambient fluid there, and the gradient of that.
    """

    u: Array = column("m/s", shape=(3,))
    turning: Array = column("rad/s", shape=(3,))
    acceleration: Array = column("m/s^2", shape=(3,))
    excess: Array = column("kg/m^3")
    slope: Array = column("kg/m^4", shape=(3,))


class AddedMass(Component):
    """Mass of fluid that accelerates with a body, divided by the mass of the fluid that it displaces.

    A tensor in body axes; 1/2 times the unit tensor for a ball, which needs no table for it.
    """

    coefficient: Array = column("1", shape=(3, 3))

    def agree(self, beside: Tables) -> None:
        """Refuse tensors by which a body would lose mass in some direction."""
        least = _principal_values("AddedMass.coefficient", self.coefficient)[:, 0]
        for row in np.flatnonzero(least < 0)[:1]:
            raise ComponentError(
                f"AddedMass.coefficient row {row} has a principal value of {least[row]:g}; principal values "
                "must be 0 or more"
            )


class BodyHeat(Component):
    """Temperature of a body, its heat capacity C, and how it exchanges heat and expands.

    transfer: heat flux per area and per difference of temperature from the fluid. expansion: the body
    displaces V (1 + expansion (T - reference)) of fluid; its shape for contacts stays as it is. A reference
    of 0 becomes the fluid's temperature at the body's height in its first tick with a BuoyancySystem. rest:
    what T is too small by after rounding, so that in single precision small amounts of heat add up. Parts of
    a body have one T, that of the first; their capacities add up, and the first one's transfer counts.
    """

    T: Array = column("K", above=0.0, in_frames=True)
    capacity: Array = column("J/K", above=0.0)
    transfer: Array = column("W/(m^2 K)", default=0.0, minimum=0.0)
    expansion: Array = column("1/K", default=0.0)
    reference: Array = column("K", default=0.0, minimum=0.0)
    rest: Array = column("K", default=0.0)


class Contact(Component):
    """The bodies that a particle met in the last tick and in the one before.

    They are numbers among all bodies, -1 for none. The CollisionSystem fills it for particles that have it.
    """

    body: Array = column("1", kind="int", default=-1, minimum=-1)
    before: Array = column("1", kind="int", default=-1, minimum=-1)


class FluidReaction(Component, derived=True, given=(Pose, RigidMotion, Body)):
    """Impulse that a body got from the fluid in this tick, found in two ways.

    tracers: from the momentum of the tracers that met it. vortons: from the impulse and angular impulse that
    vortons lost at it, times the density. Angular parts are about the centre of mass.
    """

    tracers: Array = column("N s", shape=(3,))
    tracers_angular: Array = column("N m s", shape=(3,))
    vortons: Array = column("N s", shape=(3,))
    vortons_angular: Array = column("N m s", shape=(3,))


class BoundaryExchange(Component, derived=True, given=(Pose, RigidMotion, Body)):
    """What the boundary condition at a body gave to the vortons in this tick, per density of the fluid.

    impulse: change of 1/2 sum r cross alpha, and moment: change of 1/3 sum r cross (r cross alpha), both with
    r from the centre of mass; in a plane, of sum r cross alpha and 1/2 sum r cross (r cross alpha). Vorticity
    that a change of spin takes from the vortons is then in the body itself, so this is no impulse, wherever
    the body is; its angular impulse is part of the moment. With "panels" and "layer", the inside of the body
    counts as fluid, but with "panels" not the impulse that it gains as the body speeds up. slip: rms velocity
    of the fluid relative to the surface, at the points that it looked at.
    """

    impulse: Array = column("m^4/s", shape=(3,))
    moment: Array = column("m^5/s", shape=(3,))
    slip: Array = column("m/s")


class BoundVorticity(Component):
    """Tag of vortons that stand for the vorticity of bodies: they stay on these, whatever moves others."""


class BoundaryLayer(Component):
    """Tag of vortons that a BoundarySystem keeps on a lattice, inside of bodies too.

    Nothing else moves, joins or remeshes them. within: fraction of their volume that is inside of the body
    with the RowId `body` (-1 for none), where the fluid turns with the body.
    """

    within: Array = column("1", default=0.0)
    body: Array = column("1", kind="int", default=-1, minimum=-1)


class ShedMotion(Component, per_row=False):
    """Velocity and angular velocity of bodies for which vorticity has been shed: what the fluid knows of.

    id: RowId of the bodies. v_change, spin_change: change of both in the last tick; for free bodies with a
    boundary layer, those of the last ticks whose friction they have taken beforehand. added: mass of fluid
    that the sheets of a boundary layer accelerate along with a free body; n rows, or, if several bodies are
    free, n^2 for all pairs (i, j): that of body i as body j moves. bound: how many vortons on the surface of
    each body stand for its spin. A body that is not listed has shed no vorticity yet; one that is listed, but
    no longer in the world, leaves its vorticity to the fluid.
    """

    id: Array = column("1", shape=(None,), kind="int")
    v: Array = column("m/s", shape=(None, 3))
    angular_velocity: Array = column("rad/s", shape=(None, 3))
    v_change: Array = column("m/s", shape=(None, 3))
    spin_change: Array = column("rad/s", shape=(None, 3))
    added: Array = column("kg", shape=(None, 3, 3))
    bound: Array = column("1", shape=(None,), kind="int", minimum=0)

    def agree(self, beside: Tables) -> None:
        """Refuse columns of other lengths."""
        refuse_other_lengths(self, *(name for name in type(self).columns if name != "added"))
        if len(self.added) not in (len(self.id), len(self.id) ** 2):
            raise ComponentError(
                f"ShedMotion.added has {len(self.added)} rows for {len(self.id)} bodies; one row for each "
                "body, or for each pair of bodies, is needed"
            )
