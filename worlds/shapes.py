"""Named shapes of rigid bodies, and shapes from planes, points or a mesh file."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.component import Array
from ecs_fluid.settings import Settings
from ecs_fluid.worlds.hulls import (
    Hull,
    about,
    hull_of_mesh,
    hull_of_planes,
    hull_of_vertices,
    hulls_of_mesh,
    placed,
    prism_of,
    section_of,
    warn_of_inner_points,
)
from ecs_fluid.worlds.meshes import check_closed, inside, read_mesh
from ecs_fluid.worlds.parameters import Coordinate, Direction, Length, Point
from ecs_fluid.worlds.space import Space, ball

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls

GOLDEN = (1 + math.sqrt(5)) / 2

MOST_PARTS = 1000
"""Most parts of a body."""

Heavy = Annotated[float, Field(ge=1e-12, le=1e18)]


class Ball(Settings):
    """A ball."""

    shape: Literal["ball"] = "ball"
    radius: Length
    """radius, m"""

    def space(self) -> Space:
        """The space that it fills, for recipes that fill it with particles."""
        return ball(self.radius)

    def hull(self) -> Hull:
        """A polytope of 180 triangles that has its volume."""
        from ecs_fluid.kernels.panels.panels import ball_panels

        return hull_of_vertices(ball_panels(self.radius, 0.35 * self.radius).vertices)


class Polytope(Settings):
    """A convex polytope."""

    @abstractmethod
    def hull(self) -> Hull:
        """The polytope, in axes about its centre of mass."""

    def space(self) -> Space:
        """The space that it fills, about its centre of mass: inside all planes or, to rounding, on them."""
        hull = self.hull()
        corners = hull.table.vertices
        low, high = corners.min(axis=0), corners.max(axis=0)
        return Space(low, high, lambda local: _within(hull.table, local), hull.center)

    def section(self, across: int) -> Hull:
        """The prism on its section by the plane through its centre of mass across an axis."""
        return section_of(self.hull(), across)


class Cornered(Polytope):
    """A convex polytope by its corners."""

    @abstractmethod
    def corners(self) -> Array:
        """Points (n, 3), m, whose hull it is."""

    def hull(self) -> Hull:
        """The hull of the corners."""
        return hull_of_vertices(self.corners())


class BoxShape(Cornered):
    """A box along the body's axes."""

    shape: Literal["box"] = "box"
    size: tuple[Length, Length, Length]
    """edges along x, y, z, m"""

    def corners(self) -> Array:
        """The eight corners."""
        return _box(self.size)


class PlateShape(Cornered):
    """A flat plate across the body's z axis."""

    shape: Literal["plate"] = "plate"
    length: Length = 1.0
    """edge along x, m"""
    width: Length = 1.0
    """edge along y, m"""
    thickness: Length = 0.05
    """extent along z, m"""

    def corners(self) -> Array:
        """The eight corners."""
        return _box((self.length, self.width, self.thickness))


class WedgeShape(Cornered):
    """A ramp: from nothing at x = 0 to its full height at x = length."""

    shape: Literal["wedge"] = "wedge"
    length: Length = 1.0
    """extent along x, m"""
    width: Length = 1.0
    """extent along y, m"""
    height: Length = 0.5
    """extent along z at the high end, m"""

    def corners(self) -> Array:
        """The six corners."""
        section = np.array([[0, 0], [self.length, 0], [self.length, self.height]])
        return _extruded(section, self.width)


class AirfoilShape(Cornered):
    """A wing of a symmetric four-digit NACA section: chord along x, leading edge first, span along y.

    Half the thickness at the part s of the chord is 5 t (0.2969 sqrt(s) - 0.1260 s - 0.3516 s^2
    + 0.2843 s^3 - 0.1036 s^4) chords, closed at the trailing edge. Its hull is taken: the section is hollow
    towards the trailing edge by less than 1e-3 chords. Source: Jacobs, Ward and Pinkerton, NACA report 460.
    """

    shape: Literal["airfoil"] = "airfoil"
    chord: Length = 1.0
    """length of the section, m"""
    span: Length = 1.0
    """extent along y, m"""
    thickness: float = Field(default=0.12, ge=0.02, le=0.4)
    """largest thickness over the chord, 1"""
    points: int = Field(default=16, ge=4, le=200)
    """points of the upper side, and of the lower"""

    def corners(self) -> Array:
        """Both ends of the section's points."""
        # Points crowd at the leading edge, where the section is round.
        s = (1 - np.cos(np.linspace(0, np.pi, self.points + 1))) / 2
        half = 5 * self.thickness * (
            0.2969 * np.sqrt(s) - 0.1260 * s - 0.3516 * s**2 + 0.2843 * s**3 - 0.1036 * s**4
        )  # fmt: skip
        half[-1] = 0.0
        section = np.concatenate([np.stack([s, half], axis=1), np.stack([s, -half], axis=1)])
        return _extruded(self.chord * section, self.span)


class CylinderShape(Cornered):
    """A cylinder along the body's z axis: a prism of that many sides with the cylinder's own volume."""

    shape: Literal["cylinder"] = "cylinder"
    radius: Length
    """radius, m"""
    height: Length
    """extent along z, m"""
    sides: int = Field(default=24, ge=3, le=256)
    """sides of the prism"""

    def corners(self) -> Array:
        """Corners of both ends."""
        turn = 2 * np.pi / self.sides
        # A regular polygon of circumscribed radius R has the area n/2 R^2 sin(2 pi/n).
        out = self.radius * math.sqrt(turn / math.sin(turn))
        phi = turn * np.arange(self.sides)
        ring = out * np.stack([np.cos(phi), np.sin(phi)], axis=1)
        ends = [np.column_stack([ring, np.full(self.sides, z * self.height / 2)]) for z in (-1, 1)]
        return np.concatenate(ends)


class PlatonicShape(Cornered):
    """A regular polytope."""

    shape: Literal["tetrahedron", "octahedron", "cube", "dodecahedron", "icosahedron"]
    """which one"""
    radius: Length
    """distance of the corners from the centre, m"""

    def corners(self) -> Array:
        """The corners."""
        points = _platonic()[self.shape]
        return np.asarray(self.radius * points / np.linalg.norm(points, axis=1, keepdims=True))


class PointsShape(Cornered):
    """The convex hull of points; in a plane, points that all lie in it are the corners of the outline."""

    shape: Literal["points"] = "points"
    points: list[Point] = Field(min_length=3, max_length=100_000)
    """points, m"""

    def corners(self) -> Array:
        """The points."""
        return np.array(self.points)

    def hull(self) -> Hull:
        """The hull of the points, with a warning of points inside it."""
        hull = super().hull()
        warn_of_inner_points(self.corners(), hull)
        return hull

    def section(self, across: int) -> Hull:
        """The prism on the points, if they lie in the plane, else on the section of their hull."""
        points = self.corners()
        if points[:, across].any():
            return super().section(across)
        prism = prism_of(points, across)
        warn_of_inner_points(points, prism)
        return prism


class PlanesShape(Polytope):
    """The polytope inside planes: n . x <= d for each [nx, ny, nz, d]."""

    shape: Literal["planes"] = "planes"
    planes: list[tuple[Coordinate, Coordinate, Coordinate, Coordinate]] = Field(min_length=4, max_length=4096)
    """outward normals of any length, and offsets, m"""

    def hull(self) -> Hull:
        """The polytope inside the planes."""
        return hull_of_planes(np.array(self.planes))


class MeshShape(Polytope):
    """A mesh file (STL, OBJ, PLY, VTK, ...).

    A body is the convex hull of its points, with a warning if the hull fills hollows. Particles fill the
    actual inside of its faces: the places around which a surface of outward faces winds.
    """

    shape: Literal["mesh"] = "mesh"
    file: str
    """mesh file, in the folder of the world file"""
    scale: float = Field(default=1.0, ge=1e-12, le=1e12)
    """how many times as large as in the file, whose lengths are in m, 1"""

    def hull(self) -> Hull:
        """The hull of the mesh's points."""
        return hull_of_mesh(self.file, self.scale)

    def space(self) -> Space:
        """The inside of the faces, with a warning if they do not close."""
        from ecs_fluid.kernels.bodies.winding_numbers import columns_of

        mesh = read_mesh(self.file, self.scale)
        check_closed(mesh, self.file)
        columns = columns_of(mesh.triangles - mesh.center)
        return Space(columns.low, columns.high, lambda local: inside(columns, local, self.file), mesh.center)


_Polytopes = (
    BoxShape
    | PlateShape
    | WedgeShape
    | AirfoilShape
    | CylinderShape
    | PlatonicShape
    | PointsShape
    | PlanesShape
    | MeshShape
)
AnyPolytope = Annotated[_Polytopes, Field(discriminator="shape")]
AnyRoom = Annotated[Ball | _Polytopes, Field(discriminator="shape")]


class Part(Settings):
    """A convex part of a body, with its place in the axes of the body's shape."""

    shape: AnyPolytope
    """shape: {shape = 'box', size = [1, 1, 1]}, for example"""
    center: Point | None = None
    """centre of mass of the part, m; default where the shape's own coordinates have it"""
    rotation: Point = (0.0, 0.0, 0.0)
    """rotation vector about that centre, axis times angle, rad"""
    density: Heavy | None = None
    """density, kg/m^3; default that of the body"""
    copies: int = Field(default=1, ge=1, le=MOST_PARTS)
    """number of such parts, each turned on by an equal part of a whole turn, 1"""
    around: Direction = (0.0, 0.0, 1.0)
    """axis through the origin about which copies are turned, in the axes of the body's shape, 1"""

    def hulls(self, across: int | None) -> list[Hull]:
        """The part and its copies at their places; in a plane across an axis sections through the centres."""
        from ecs_fluid.kernels.bodies.rotation import matrix_of, quaternion_of

        hull = self.shape.hull() if across is None else self.shape.section(across)
        center = hull.center if self.center is None else np.array(self.center)
        rotation = matrix_of(quaternion_of(np.array(self.rotation, np.float64)))
        step = np.array(self.around) * (2.0 * math.pi / self.copies / np.linalg.norm(self.around))
        turns = [matrix_of(quaternion_of(k * step)) for k in range(self.copies)]
        return [placed(hull, turn @ rotation, turn @ center) for turn in turns]


class CompoundShape(Settings):
    """Convex polytopes that make one rigid body: a table, a mug, a ring that was cut into pieces.

    Parts should touch but not overlap: what they share counts twice in volume and mass. In a plane all of
    them have their centres in it.
    """

    shape: Literal["compound"] = "compound"
    parts: list[Part] = Field(default=[], max_length=MOST_PARTS)
    """the parts"""
    file: str | None = None
    """mesh file, in the folder of the world file, each closed surface of which is a further part, where it
    is in the file: a program that cuts meshes into convex parts writes one after the other"""
    scale: float = Field(default=1.0, ge=1e-12, le=1e12)
    """how many times as large as in the file, whose lengths are in m, 1"""

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        if not self.parts and self.file is None:
            raise ValueError("parts, or a mesh file that has them, are needed")
        if (count := sum(part.copies for part in self.parts)) > MOST_PARTS:
            raise ValueError(f"parts with their copies are {count}, but a body has at most {MOST_PARTS}")
        return self

    def _every_hull(self, across: int | None) -> list[Hull]:
        """All parts at their places; in a plane across an axis their sections through their centres."""
        hulls = [hull for part in self.parts for hull in part.hulls(across)]
        if self.file is not None:
            further = hulls_of_mesh(self.file, self.scale, MOST_PARTS - len(hulls))
            hulls += further if across is None else [section_of(hull, across) for hull in further]
        return hulls

    def hulls(self, density: float, across: int | None = None) -> tuple[list[Hull], Array, Array]:
        """The parts at their places, their masses (n,) kg, and the centre of mass (3,) m of all."""
        hulls = self._every_hull(across)
        heavy = [part.density or density for part in self.parts for _ in range(part.copies)]
        heavy += [density] * (len(hulls) - len(heavy))
        mass = np.array([rho * hull.volume for rho, hull in zip(heavy, hulls, strict=True)])
        return hulls, mass, mass @ np.array([hull.center for hull in hulls]) / mass.sum()

    def space(self) -> Space:
        """The space that the parts fill, about its centre."""
        every = self._every_hull(None)
        volume = np.array([hull.volume for hull in every])
        center = volume @ np.array([hull.center for hull in every]) / volume.sum()
        tables = [about(hull, center) for hull in every]
        corners = np.concatenate([table.vertices for table in tables])

        def holds(local: Array) -> Array:
            return np.asarray(np.any([_within(table, local) for table in tables], axis=0))

        return Space(corners.min(axis=0), corners.max(axis=0), holds, center)


AnyShape = Annotated[Ball | CompoundShape | _Polytopes, Field(discriminator="shape")]


def _within(table: Hulls, local: Array) -> Array:
    """Mask (n,) of the places (n, 3) m inside all planes of a polytope or, to rounding, on them."""
    most = table.planes[:, 3] + 1e-12 * table.radius[0]
    found = np.ones(len(local), dtype=bool)
    for normal, distance in zip(table.planes[:, :3], most, strict=True):
        found[found] = local[found] @ normal <= distance
    return found


def _signs() -> Array:
    return np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


def _box(size: tuple[float, float, float]) -> Array:
    """Corners (8, 3) of a box with these edges about the origin."""
    return np.asarray(_signs() * np.array(size) / 2)


def _extruded(section: Array, width: float) -> Array:
    """Points (2 n, 3) of a section (n, 2) in the x-z plane, spread over a width along y."""
    sides = [np.column_stack([section[:, 0], np.full(len(section), y), section[:, 1]]) for y in (-0.5, 0.5)]
    return np.asarray(np.concatenate(sides) * np.array([1.0, width, 1.0]))


def _platonic() -> dict[str, Array]:
    cube = _signs()
    turns = [np.roll([0.0, a, b * GOLDEN], k) for k in range(3) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    thin = [np.roll([0.0, a / GOLDEN, b * GOLDEN], k) for k in range(3) for a in (-1, 1) for b in (-1, 1)]
    return {
        "tetrahedron": cube[np.prod(cube, axis=1) > 0],
        "cube": cube,
        "octahedron": np.vstack([np.eye(3), -np.eye(3)]),
        "icosahedron": np.array(turns),
        "dodecahedron": np.vstack([cube, thin]),
    }
