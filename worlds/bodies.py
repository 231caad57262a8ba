"""Recipes of rigid bodies: one of any shape, many balls, and containers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, PrivateAttr, model_validator

from ecs_fluid.component import Array, Component
from ecs_fluid.components.bodies import (
    KINDS_OF_MOTION,
    AddedMass,
    BallShape,
    Body,
    BodyHeat,
    BodyPart,
    Hinge,
    HullShape,
    HullTable,
    Pose,
    RigidMotion,
)
from ecs_fluid.errors import RecipeError
from ecs_fluid.input_limits import SPHERE
from ecs_fluid.keyframes import Keyed, KeyedVector, value_at
from ecs_fluid.periodic import AXES
from ecs_fluid.recipe import Recipe
from ecs_fluid.settings import Settings
from ecs_fluid.system import System
from ecs_fluid.systems.bodies import BodyScript, BodySystem
from ecs_fluid.systems.collision import CollisionSystem
from ecs_fluid.systems.shared.fluid_at_rest import fluid_at_rest, temperature_at
from ecs_fluid.systems.shared.random_numbers import stream
from ecs_fluid.world import World
from ecs_fluid.worlds.cells import lattice_of_at_most
from ecs_fluid.worlds.hulls import about
from ecs_fluid.worlds.parameters import Direction, Length, Point
from ecs_fluid.worlds.regions import Box
from ecs_fluid.worlds.shapes import AnyRoom, AnyShape, Ball, CompoundShape, CylinderShape, Heavy

Friction = Annotated[float, Field(ge=0, le=100)]
AddedPart = Annotated[float, Field(ge=0, le=1e3)]
Restitution = Annotated[float, Field(ge=0, le=1)]
Motion = Literal["fixed", "scripted", "free"]
"""Keys of `KINDS_OF_MOTION`."""


class Warmth(Settings):
    """Properties with which a body exchanges heat with the fluid, by a ConductionSystem, and expands."""

    temperature: float | None = Field(default=None, gt=0, le=1e6)
    """temperature at the start, K; default the fluid's at the body's height"""
    heat_capacity: float = Field(default=900.0, gt=0, le=1e18)
    """specific heat capacity, J/(kg K)"""
    transfer: float = Field(default=10.0, ge=0, le=1e9)
    """heat transfer coefficient between body and fluid, W/(m^2 K)"""
    expansion: float = Field(default=0.0, ge=-1, le=1)
    """relative growth of the displaced volume with the temperature, 1/K"""
    reference: float | None = Field(default=None, gt=0, le=1e6)
    """temperature at which the volume is that of the shape, K; default that at the start"""

    def table(self, world: World, centers: Array, mass: Array) -> BodyHeat:
        """Temperatures and heat capacities of bodies with these masses (n,) kg and centres (n, 3) m."""
        one = np.ones(len(mass))
        fluids = temperature_at(fluid_at_rest(world), centers[:, 2])
        temperature = fluids if self.temperature is None else self.temperature * one
        reference = temperature if self.reference is None else self.reference * one
        return BodyHeat(
            temperature,
            self.heat_capacity * mass,
            self.transfer * one,
            self.expansion * one,
            reference,
            0.0 * one,
        )


class HingeRecipe(Settings):
    """The axis about which alone a body turns, without friction; it stays where it is."""

    axis: Direction
    """direction of the axis at the start, 1; of any length; in the world's axes, not in the body's"""
    point: Point | None = None
    """point of the axis, m, in the world like `center`, not in the shape's coordinates; default the
    centre of mass"""


def _spawn(
    recipe: _Placed | Spheres, world: World, motion: Motion, center: Array, rotation: Array, velocity: Array,
    spin: Array, mass: Array, inertia: Array, *shape: Component,
) -> None:  # fmt: skip
    """Spawn bodies of these centres (n, 3) m, rotation (3,) rad of all, velocities (n, 3) m/s and rad/s,
    masses (n,) kg and moments of inertia (n, 3, 3) kg m^2."""
    from ecs_fluid.kernels.bodies.rotation import quaternion_of

    one = np.ones(len(mass))
    numbers = np.full(len(mass), KINDS_OF_MOTION[motion])
    world.spawn(
        recipe.name,
        Pose(center, np.tile(quaternion_of(rotation), (len(mass), 1))),
        RigidMotion(velocity, spin),
        Body(mass, inertia, numbers, recipe.restitution * one, recipe.friction * one),
        *shape,
        *(() if recipe.heat is None else (recipe.heat.table(world, center, mass),)),
    )


class _Placed(Recipe):
    """Base of recipes of one body, solid or container: its place, rotation and script."""

    center: KeyedVector | None = None
    """centre of mass, m; may be keyed in time; default where the shape's own coordinates have it"""
    origin: Point | None = None
    """where the origin of the shape's own coordinates is at the start, m; in place of center"""
    rotation: KeyedVector = (0.0, 0.0, 0.0)
    """rotation vector, axis times angle, rad; may be keyed in time"""
    velocity: Point = (0.0, 0.0, 0.0)
    """velocity, m/s"""
    angular_velocity: Point = (0.0, 0.0, 0.0)
    """angular velocity in world axes, rad/s"""
    restitution: Restitution = 0.0
    """coefficient of restitution, 1; of two bodies the larger counts"""
    friction: Friction = 0.5
    """coefficient of Coulomb friction, 1; of two bodies the geometric mean counts"""
    heat: Warmth | None = None
    """temperature, and exchange of heat with the fluid"""
    _own_origin: Array = PrivateAttr(default_factory=lambda: np.zeros(3))

    @property
    def own_origin(self) -> Array:
        """The origin of the shape's own coordinates in the frame of the body, once it was built: (3,) m."""
        return self._own_origin

    @abstractmethod
    def _motion(self) -> Motion: ...

    @model_validator(mode="after")
    def _motion_is_consistent(self) -> Self:
        motion = self._motion()
        if self.origin is not None and self.center is not None:
            raise ValueError("center and origin are both given; only one of them is allowed")
        if self._keyed() and motion != "scripted":
            raise ValueError(f"center or rotation is keyed in time, but motion is {motion!r}; use 'scripted'")
        if motion == "fixed" and (any(self.velocity) or any(self.angular_velocity)):
            raise ValueError("velocity is given, but motion is 'fixed'; use 'scripted' or 'free'")
        for key, rate in (("center", self.velocity), ("rotation", self.angular_velocity)):
            if key in self._keyed() and any(rate):
                raise ValueError(f"{key} is keyed in time, so its rate of change cannot be given too")
        return self

    def _keyed(self) -> list[str]:
        return [key for key in ("center", "rotation") if hasattr(getattr(self, key), "keys")]

    def systems(self) -> list[System]:
        """Systems that move bodies, with a script if this one has keys, and keep particles out of them."""
        keyed = {key: getattr(self, key) for key in self._keyed()}
        return [BodySystem(scripts=[BodyScript(name=self.name, **keyed)] if keyed else []), CollisionSystem()]

    def _place(self, default: Array) -> Array:
        """Where Pose.x is at the start, (3,) m, for a shape with its centre of mass at `default`."""
        if self.origin is not None:
            return np.asarray(self.origin + self._turned() @ default)
        return default if self.center is None else np.asarray(value_at(self.center, 0.0), np.float64)

    def _arm(self, center: Array) -> Array:
        """From the centre of mass, `center` in the shape's coordinates, to `_place`: (3,) m, body axes."""
        return np.asarray(self._turned().T @ (self._place(center) - _Placed._place(self, center)))

    def _turned(self) -> Array:
        """The rotation matrix (3, 3) at the start."""
        from ecs_fluid.kernels.bodies.rotation import matrix_of, quaternion_of

        turned = quaternion_of(np.asarray(value_at(self.rotation, 0.0), np.float64))
        return np.asarray(matrix_of(turned))

    def _spawn(self, world: World, default: Array, mass: Array, inertia: Array, *shape: Component) -> None:
        """Spawn the body with the masses (n,) kg and inertia tensors (n, 3, 3) kg m^2 of its parts."""
        center = self._place(default)
        found = -(self._arm(default) + default)
        reach = max(np.max(table.radius) for table in shape if isinstance(table, BallShape | HullTable))
        rounding = 1e-12 * (reach + np.abs(default).max() + np.abs(center).max())
        self._own_origin = np.where(np.abs(found) > rounding, found, 0.0)
        rotation = np.asarray(value_at(self.rotation, 0.0), np.float64)
        one = np.ones((len(mass), 1))
        moving = one * self.velocity, one * self.angular_velocity
        _spawn(self, world, self._motion(), one * center, rotation, *moving, mass, inertia, *shape)


class BodyRecipe(_Placed):
    """One rigid body: a ball, a convex polytope, or several of these joined as parts.

    In a world of two dimensions it is the section of the shape by the plane through its centre of mass: a
    disk for a ball, or for a cylinder across the plane; a rectangle for a box. Its mass is that of a metre
    across the plane, and it turns about the axis across the plane.

    Mass and inertia follow from the shape and the density, exactly. A free body moves by gravity and
    contacts, a scripted one along its keys, or steadily by `velocity` and `angular_velocity`.
    """

    kind: ClassVar[str] = "body"
    dimensions: ClassVar[tuple[int, ...]] = (2, 3)
    shape: AnyShape
    """shape: {shape = 'box', size = [1, 1, 1]}, for example"""
    motion: Motion = "free"
    """how it moves"""
    density: Heavy = 1000.0
    """density, kg/m^3"""
    mass: Heavy | None = None
    """mass, kg; default by the density"""
    added_mass: tuple[AddedPart, AddedPart, AddedPart] | None = None
    """added mass: mass of the fluid that it takes along when accelerated along its axes x, y, z, over the
    mass that it displaces, 1; default 1/2 for a ball, 1 for a disk in a plane, 0 else"""
    hinge: HingeRecipe | None = None
    """axis that stays, about which alone a free body turns"""

    @model_validator(mode="after")
    def _hinged_bodies_turn_freely(self) -> Self:
        if self.hinge is None:
            return self
        if self.motion != "free":
            raise ValueError(f"hinge is given, but motion is {self.motion!r}; only free bodies turn on one")
        if self.added_mass is not None:
            raise ValueError("added_mass is given, but the body has a hinge, and only turns; leave it out")
        if any(self.velocity):
            raise ValueError("velocity is given, but the body has a hinge, which stays; leave velocity out")
        axis, spin = self.hinge.axis, self.angular_velocity
        if np.linalg.norm(np.cross(axis, spin)) > 1e-6 * np.linalg.norm(axis) * np.linalg.norm(spin):
            raise ValueError(
                f"angular_velocity {list(spin)} is not along the axis {list(axis)} of the hinge, about which "
                "alone the body turns"
            )
        return self

    @model_validator(mode="after")
    def _one_weight(self) -> Self:
        # Of parts the densities say how the mass is shared. A stored recipe sets all fields.
        whole, usual = not isinstance(self.shape, CompoundShape), type(self).model_fields["density"].default
        if self.mass is not None and self.density != usual and whole:
            raise ValueError("mass and density are both given; only one of them is allowed")
        return self

    def _motion(self) -> Motion:
        return self.motion

    def _place(self, default: Array) -> Array:
        """The point of the hinge or else the centre of mass, (3,) m."""
        if self.hinge is None or self.hinge.point is None:
            return super()._place(default)
        return np.array(self.hinge.point)

    def _more(self, arm: Array, rows: int) -> list[Component]:
        """Tables of what a body may have, for one of so many parts and this `_arm`."""
        tables: list[Component] = []
        if self.added_mass is not None:
            tables.append(AddedMass(np.tile(np.diag(self.added_mass), (rows, 1, 1))))
        if self.hinge is not None:
            axis = np.array(self.hinge.axis) / np.linalg.norm(self.hinge.axis)
            tables.append(Hinge(np.tile(axis, (rows, 1)), np.tile(-arm, (rows, 1))))
        return tables

    def spawn(self, world: World) -> None:
        """Spawn the body."""
        across = world.across
        if across is not None:
            self._check_plane(across)
        if isinstance(self.shape, Ball) or (across == 2 and isinstance(self.shape, CylinderShape)):
            radius = self.shape.radius
            if across is None:
                mass = self.mass or self.density * 4 / 3 * np.pi * radius**3
                inertia = 0.4 * mass * radius**2 * np.eye(3)
            else:  # one metre of a cylinder
                mass = self.mass or self.density * np.pi * radius**2
                arms = np.where(np.arange(3) == across, radius**2 / 2, radius**2 / 4)
                inertia = mass * np.diag(arms)
            if (arm := self._arm(np.zeros(3))).any():
                raise RecipeError(
                    f"hinge.point {self._place(arm).tolist()} m is not the centre of the ball, about which "
                    "alone balls turn; leave point out, or use a shape with corners"
                )
            tables = BallShape([radius]), *self._more(arm, 1)
            self._spawn(world, np.zeros(3), np.array([mass]), inertia[None], *tables)
            return
        if isinstance(self.shape, CompoundShape):
            self._spawn_parts(world, self.shape)
            return
        hull = self.shape.hull() if across is None else self.shape.section(across)
        mass = self.mass or self.density * hull.volume
        arm = self._arm(hull.center)
        inertia = hull.inertia * (mass / hull.volume) + mass * steiner(arm)
        table = about(hull, hull.center + arm) if arm.any() else hull.table
        tables = HullShape([0], [0]), HullTable(**table._asdict()), *self._more(arm, 1)
        self._spawn(world, hull.center, np.array([mass]), inertia[None], *tables)

    def _spawn_parts(self, world: World, shape: CompoundShape) -> None:
        """Spawn a body of several parts, each of which has its share of mass and inertia."""
        from ecs_fluid.kernels.bodies.polytope import joined_hulls

        hulls, mass, center = shape.hulls(self.density, world.across)
        if self.mass is not None:
            mass *= self.mass / mass.sum()
        count, inertia, pivot = len(hulls), np.empty((len(hulls), 3, 3)), self._arm(center)
        for k, hull in enumerate(hulls):
            arm = hull.center - center
            if world.across is not None and abs(arm[world.across]) > 1e-9 * hull.table.radius[0]:
                raise RecipeError(
                    f"parts of the shape have their centres of mass at different {AXES[world.across]}, part "
                    f"{k} {arm[world.across]:g} m off; in a world of dimension = 2 all are in one plane"
                )
            inertia[k] = mass[k] * (hull.inertia / hull.volume + steiner(arm - pivot))
        table = joined_hulls([about(hull, center + pivot) for hull in hulls])
        numbers = np.arange(count)
        self._spawn(
            world, center, mass, inertia, HullShape(numbers, 0 * numbers), HullTable(**table._asdict()),
            BodyPart(0 * numbers, count + 0 * numbers), *self._more(pivot, count),
        )  # fmt: skip

    def _check_plane(self, across: int) -> None:
        """Refuse rotations and spins about an axis in the plane."""
        axis = AXES[across]
        turns = self.rotation.values if isinstance(self.rotation, Keyed) else np.array([self.rotation])
        rates = np.array([self.angular_velocity])
        parts = self.shape.parts if isinstance(self.shape, CompoundShape) else []
        own = np.array([part.rotation for part in parts]).reshape(-1, 3)
        around = np.array([part.around for part in parts if part.copies > 1]).reshape(-1, 3)
        hinge = np.array([] if self.hinge is None else [self.hinge.axis]).reshape(-1, 3)
        every = {
            "rotation": turns, "angular_velocity": rates, "hinge.axis": hinge,
            "rotation of a part": own, "around of a part": around,
        }  # fmt: skip
        for name, values in every.items():
            if np.delete(values, across, axis=1).any():
                raise RecipeError(
                    f"{name} turns the body out of the plane; only a component along {axis} is allowed"
                )


def steiner(arm: Array) -> Array:
    """What the inertia (3, 3) of a mass of 1 gains about a point at `arm` (3,) m from its centre, m^2."""
    return np.asarray(arm @ arm * np.eye(3) - np.outer(arm, arm))


class ContainerRecipe(_Placed):
    """A convex polytope that is hollow: particles and bodies inside it stay inside.

    It moves along its keys, or steadily by `velocity` and `angular_velocity`, whatever it meets. Its `mass`
    matters only for its heat: the shape is that of the room inside, not of the walls.
    """

    kind: ClassVar[str] = "container"
    shape: AnyRoom
    """shape of the room inside; of a ball, 180 flat faces that enclose its volume"""
    mass: Heavy | None = None
    """mass of the walls, kg; used, and needed, with `heat` alone, whose heat capacity is per mass"""

    @model_validator(mode="after")
    def _mass_of_what_is_warm(self) -> Self:
        if (self.heat is None) != (self.mass is None):
            raise ValueError(
                "heat without mass: heat_capacity is per kg, so a container with heat needs the mass of its "
                "walls, kg"
                if self.mass is None
                else "mass without heat: a container's mass counts for its heat only; leave mass out"
            )
        return self

    def _motion(self) -> Motion:
        still = not (self._keyed() or any(self.velocity) or any(self.angular_velocity))
        return "fixed" if still else "scripted"

    def spawn(self, world: World) -> None:
        """Spawn the container; without heat its mass has no effect, since nothing pushes it."""
        hull = self.shape.hull()
        mass = np.array([self.mass or 1.0])
        tables = HullShape([0], [1]), HullTable(**hull.table._asdict())
        self._spawn(world, hull.center, mass, np.eye(3)[None], *tables)


class Spheres(Recipe):
    """Balls, one per centre, as rows of one entity; any number of them.

    Centres are given, or stand on a lattice of edge `spacing` in a `box`, shifted at random by up to `jitter`
    times half of the room that the lattice leaves between the balls. Each has the mass 4/3 pi r^3 times the
    density. All move in the same way: free, steadily, or not.
    """

    kind: ClassVar[str] = "spheres"
    centers: list[Point] | None = Field(default=None, min_length=1, max_length=100_000)
    """centres, m"""
    box: Box | None = None
    """box that they fill on a lattice, m"""
    spacing: Length | None = None
    """edge of the lattice's cells, m"""
    jitter: float = Field(default=0.0, ge=0, le=1)
    """full width of a random shift along each axis, over the room that balls leave between them, 1"""
    radius: Length | list[Length]
    """radius of all, or one each, m"""
    velocity: Point | list[Point] = (0.0, 0.0, 0.0)
    """velocity of all, or one each, m/s"""
    angular_velocity: Point | list[Point] = (0.0, 0.0, 0.0)
    """angular velocity of all, or one each, rad/s"""
    density: Heavy = 1000.0
    """density, kg/m^3"""
    motion: Motion = "free"
    """how they move"""
    restitution: Restitution = 0.0
    """coefficient of restitution, 1; of two bodies the larger counts"""
    friction: Friction = 0.5
    """coefficient of Coulomb friction, 1; of two bodies the geometric mean counts"""
    heat: Warmth | None = None
    """temperature, and exchange of heat with the fluid"""

    @model_validator(mode="after")
    def _counts_agree(self) -> Self:
        if (self.centers is None) == (self.box is None) or (self.box is None) != (self.spacing is None):
            raise ValueError("either centers, or box and spacing are needed")
        count = len(self._places()[0])
        for key in ("radius", "velocity", "angular_velocity"):
            value = getattr(self, key)
            if isinstance(value, list) and len(value) != count:
                raise ValueError(
                    f"{key} has {len(value)} entries; one for all bodies, or {count}, are needed"
                )
        return self

    def _places(self) -> tuple[Array, Array]:
        """Centres (n, 3) m, and the edges (3,) m of the cells around them."""
        if self.box is None or self.spacing is None:
            return np.array(self.centers, dtype=np.float64), np.zeros(3)
        most, space = (SPHERE, "spheres", "use a larger spacing"), self.box.space()
        return lattice_of_at_most(*most, space.low, space.high, self.spacing)

    def lint(self) -> list[str]:
        """Warn of balls that are wider than the cells of their lattice."""
        edge, width = self._places()[1], 2 * float(np.max(self.radius))
        if not edge.any() or width <= edge.min() * (1 + 1e-9):
            return []
        return [
            f"balls of {width:.3g} m overlap on a lattice of {edge.min():.3g} m, and will be thrown apart; "
            "use a larger spacing, or a smaller radius"
        ]

    def systems(self) -> list[System]:
        """Systems that move bodies and keep particles out of them."""
        return [BodySystem(), CollisionSystem()]

    def spawn(self, world: World) -> None:
        """Spawn the balls."""
        centers, edge = self._places()
        rows = len(centers)

        def each(value: Any, trailing: tuple[int, ...]) -> Array:
            return np.broadcast_to(np.asarray(value, dtype=np.float64), (rows, *trailing)).copy()

        radius = each(self.radius, ())
        mass = self.density * 4 / 3 * np.pi * radius**3
        velocity, angular_velocity = each(self.velocity, (3,)), each(self.angular_velocity, (3,))
        if self.jitter:
            room = np.maximum(edge - 2 * radius[:, None], 0.0)
            centers = centers + self.jitter * room * (stream(world.seed, self.name).random((rows, 3)) - 0.5)
        if self.motion == "fixed" and (velocity.any() or angular_velocity.any()):
            raise RecipeError("velocity is given, but motion is 'fixed'; use 'scripted' or 'free'")
        moving, inertia = (velocity, angular_velocity), 0.4 * (mass * radius**2)[:, None, None] * np.eye(3)
        _spawn(self, world, self.motion, centers, np.zeros(3), *moving, mass, inertia, BallShape(radius))
