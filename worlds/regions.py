"""Regions that particles fill, and rakes of points."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.component import Array
from ecs_fluid.errors import RecipeError
from ecs_fluid.input_limits import TRACER, check_memory
from ecs_fluid.periodic import AXES
from ecs_fluid.settings import Settings
from ecs_fluid.worlds.cells import lattice, lattice_counts
from ecs_fluid.worlds.frame import frame
from ecs_fluid.worlds.parameters import Direction, Extent, Length, Point
from ecs_fluid.worlds.shapes import AnyShape, Filled


class Region(Settings):
    """A body in space, described in a frame of its own by its bounding box and a test."""

    def placement(self) -> tuple[Array, Array]:
        """Origin (3,) and orthonormal rows (3, 3) of the region's frame."""
        return np.zeros(3), np.eye(3)

    @abstractmethod
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper corner in the region's frame, m."""

    def cut(self, across: int | None) -> tuple[Array, Array]:
        """The bounds, or those of what a plane through the origin, across that axis, cuts out of them."""
        low, high = (np.array(corner, np.float64) for corner in self.bounds())
        if across is not None:
            origin, axes = self.placement()
            along = int(np.abs(axes[:, across]).argmax())
            if np.abs(np.delete(axes[:, across], along)).max() > 1e-12:
                raise RecipeError(
                    "the region leans out of the plane of a world of dimension = 2; "
                    f"turn it about {AXES[across]} alone"
                )
            low[along] = high[along] = -origin[across] * axes[along, across]
        return low, high

    def filled(self, local: Array, what: str, remedy: str = "use a smaller spacing") -> Array:
        """World coordinates of those of the local places (n, 3) that lie within; RecipeError if none does."""
        local = local[self.inside(local)]
        if not len(local):
            raise RecipeError(f"no {what} falls into the region; {remedy}")
        origin, axes = self.placement()
        return np.asarray(local @ axes + origin)

    def inside(self, local: Array) -> Array:
        """Which of the local points (n, 3) lie inside."""
        return np.ones(len(local), dtype=bool)


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

    def bounds(self) -> tuple[Array, Array]:
        """The corners."""
        return np.array(self.low), np.array(self.high)


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

    def placement(self) -> tuple[Array, Array]:
        """Local z is the normal."""
        return np.array(self.center), frame(self.normal)

    def bounds(self) -> tuple[Array, Array]:
        """Half sizes about the middle."""
        half = np.array([self.size, self.size, self.thickness]) / 2
        return -half, half


class Sphere(Region):
    """A ball."""

    center: Point = (0.0, 0.0, 0.0)
    """centre, m"""
    radius: Length
    """radius, m"""

    def placement(self) -> tuple[Array, Array]:
        """Centred."""
        return np.array(self.center), np.eye(3)

    def bounds(self) -> tuple[Array, Array]:
        """The cube around it."""
        return np.full(3, -self.radius), np.full(3, self.radius)

    def inside(self, local: Array) -> Array:
        """Distance from the centre at most the radius."""
        return np.asarray((local**2).sum(axis=1) <= self.radius**2)


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

    def placement(self) -> tuple[Array, Array]:
        """Local z is the axis."""
        return np.array(self.center), frame(self.axis)

    def bounds(self) -> tuple[Array, Array]:
        """The box around it."""
        half = np.array([self.radius + self.core, self.radius + self.core, self.core])
        return -half, half

    def inside(self, local: Array) -> Array:
        """Distance from the core circle at most `core`."""
        around = np.hypot(local[:, 0], local[:, 1]) - self.radius
        return np.asarray(around**2 + local[:, 2] ** 2 <= self.core**2)


class Solid(Region):
    """The inside of a body's shape: a polytope, or a mesh file with all its hollows."""

    shape: AnyShape
    """shape, as of a body"""
    center: Point | None = None
    """centre of mass, m; default where the shape's own points put it"""
    rotation: Point = (0.0, 0.0, 0.0)
    """rotation vector about it, axis times angle, rad"""

    @cached_property
    def of_shape(self) -> Filled:
        """What the shape fills, about its centre of mass: a mesh file is read once."""
        return self.shape.filled()

    def placement(self) -> tuple[Array, Array]:
        """The shape's own axes about its centre of mass."""
        from ecs_fluid.kernels.bodies.rotation import matrix_of, quaternion_of

        origin = self.of_shape.center if self.center is None else np.array(self.center)
        return origin, matrix_of(quaternion_of(np.array(self.rotation, np.float64))).T

    def bounds(self) -> tuple[Array, Array]:
        """The box around it."""
        return self.of_shape.low, self.of_shape.high

    def inside(self, local: Array) -> Array:
        """What the shape holds."""
        return self.of_shape.holds(local)


LEAST_CELLS = 2_000
"""Cells that a solid is cut into, or its skin, unless it is too thin for that."""

MOST_CELLS = 4_000_000
"""Cells that are looked at for them, which takes seconds."""


def cells_of(solid: Solid, skin: float, across: int | None) -> tuple[Array, Array]:
    """Middles (n, 3) and edges, vectors (3, 3), m, of cells in a solid, or outside of it up to `skin` m."""
    low, high = solid.cut(across)
    low, high = np.where(high > low, low - skin, low), np.where(high > low, high + skin, high)
    size = high - low
    extents = size[size > 0]
    cell = float(np.prod(extents) / (2 * LEAST_CELLS)) ** (1 / len(extents))
    cell = min(cell, skin / 3) if skin else cell
    found = None
    while np.prod(counts := lattice_counts(size, cell)) <= MOST_CELLS:
        local, edge = lattice(low, high, cell)
        held = solid.inside(local)
        if skin and held.any():
            from scipy.ndimage import distance_transform_edt

            away = distance_transform_edt(~held.reshape(counts.astype(int)), np.where(edge > 0, edge, 1.0))
            # From the nearest middle inside, which lies 0.2 cells below the surface in the mean of all
            # directions: volumes of skins around balls and boxes, turned or not, are right to 2 %.
            held = ~held & (away.reshape(-1) <= skin + 0.2 * cell)
        found = local[held], edge
        if len(found[0]) >= LEAST_CELLS:
            break
        cell /= 1.5
    if found is None or not len(found[0]):
        raise RecipeError(
            f"{'skin' if skin else 'solid'} is too thin: {MOST_CELLS:,} cells around the solid do not show "
            "it; use a thicker one"
        )
    origin, axes = solid.placement()
    return found[0] @ axes + origin, found[1][:, None] * axes


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
            raise ValueError(f"counts {list(self.counts)}; 2 to 10000 points along each edge are allowed")
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
