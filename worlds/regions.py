"""Regions that particles fill, and rakes of points."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.component import Array
from ecs_fluid.input_limits import TRACER, check_memory
from ecs_fluid.settings import Settings
from ecs_fluid.worlds.frame import frame
from ecs_fluid.worlds.parameters import Direction, Extent, Length, Point
from ecs_fluid.worlds.shapes import AnyShape
from ecs_fluid.worlds.space import Space, ball


class Region(Settings):
    """A body in space."""

    @abstractmethod
    def space(self) -> Space:
        """The space that it fills."""


class Box(Region):
    """A box along the axes; flat where low and high are equal."""

    low: Point
    """lower corner, m"""
    high: Point
    """upper corner, m"""

    @model_validator(mode="after")
    def _ordered(self) -> Box:
        if any(b < a for a, b in zip(self.low, self.high, strict=True)):
            raise ValueError(
                f"high {list(self.high)} lies below low {list(self.low)}; at least low is allowed"
            )
        return self

    def space(self) -> Space:
        """The space between the corners."""
        return Space(np.array(self.low), np.array(self.high))


class Slab(Region):
    """A square plate, for a slice of dye."""

    center: Point = (0.0, 0.0, 0.0)
    """middle of the plate, m"""
    normal: Direction = (0.0, 1.0, 0.0)
    """direction across the plate, 1"""
    size: Length
    """edge of the square, m"""
    thickness: Extent = 0.0
    """thickness, m; 0 makes a plane"""

    def space(self) -> Space:
        """The plate, in axes whose local z is its normal."""
        half = np.array([self.size, self.size, self.thickness]) / 2
        return Space(-half, half, origin=np.array(self.center), axes=frame(self.normal))


class Sphere(Region):
    """A ball."""

    center: Point = (0.0, 0.0, 0.0)
    """centre, m"""
    radius: Length
    """radius, m"""

    def space(self) -> Space:
        """The places at most the radius from the centre."""
        return ball(self.radius)._replace(origin=np.array(self.center))


class Torus(Region):
    """The body of a ring."""

    center: Point = (0.0, 0.0, 0.0)
    """centre, m"""
    axis: Direction = (0.0, 0.0, 1.0)
    """direction of the axis, 1"""
    radius: Length
    """radius of the core circle, m"""
    core: Length
    """radius of the tube, m"""

    def space(self) -> Space:
        """The places at most `core` from the core circle; local z is the axis."""
        half = np.array([self.radius + self.core, self.radius + self.core, self.core])
        radius, square = self.radius, self.core**2

        def holds(local: Array) -> Array:
            around = np.hypot(local[:, 0], local[:, 1]) - radius
            return np.asarray(around**2 + local[:, 2] ** 2 <= square)

        return Space(-half, half, holds, np.array(self.center), frame(self.axis))


class Solid(Region):
    """The inside of a body's shape: a polytope, or a mesh file with all its hollows."""

    shape: AnyShape
    """shape, as of a body"""
    center: Point | None = None
    """centre of mass, m; default where the shape's own coordinates have it"""
    rotation: Point = (0.0, 0.0, 0.0)
    """rotation vector about the centre of mass, axis times angle, rad"""

    def space(self) -> Space:
        """The shape's own axes about its centre of mass."""
        from ecs_fluid.kernels.bodies.rotation import matrix_of, quaternion_of

        space = self.shape.space()
        origin = space.origin if self.center is None else np.array(self.center)
        turn = matrix_of(quaternion_of(np.array(self.rotation, np.float64)))
        return space._replace(origin=origin, axes=turn.T)


class Line(Settings):
    """Points evenly along a line, both ends included."""

    start: Point
    """first point, m"""
    end: Point
    """last point, m"""
    count: int = Field(ge=2, le=1_000_000)
    """number of points"""

    @model_validator(mode="after")
    def _has_length(self) -> Line:
        if self.start == self.end:
            raise ValueError(f"start and end are both {list(self.start)} m; two different points are needed")
        return self

    def points(self) -> Array:
        """The points (count, 3), m."""
        return np.linspace(self.start, self.end, self.count)


class Plane(Settings):
    """Points evenly over a parallelogram, edges included."""

    corner: Point
    """first corner, m"""
    first: Direction
    """edge from the corner, m"""
    second: Direction
    """other edge from the corner, m"""
    counts: tuple[int, int]
    """points along the two edges, 2 to 10000 each"""

    @model_validator(mode="after")
    def _spans(self) -> Plane:
        if not all(2 <= count <= 10_000 for count in self.counts):
            raise ValueError(f"counts = {list(self.counts)}; 2 to 10000 points along each edge are allowed")
        area = np.linalg.norm(np.cross(self.first, self.second))
        if area <= 1e-9 * np.linalg.norm(self.first) * np.linalg.norm(self.second):
            raise ValueError("first and second are parallel; two edges that span an area are needed")
        return self

    def points(self) -> Array:
        """The points (counts[0] * counts[1], 3), m."""
        check_memory(TRACER, self.counts[0] * self.counts[1], "tracers", "use smaller counts")
        u, v = (np.linspace(0.0, 1.0, count) for count in self.counts)
        first, second = np.array(self.first), np.array(self.second)
        grid = np.array(self.corner) + u[:, None, None] * first + v[None, :, None] * second
        return np.asarray(grid.reshape(-1, 3))
