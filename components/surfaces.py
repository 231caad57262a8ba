"""Surfaces of liquids: signed distances on a grid, and meshes."""

from __future__ import annotations

from ecs_fluid.component import Array, Component, column


class SignedDistance(Component, per_row=False):
    """Signed distance to a surface at the points origin + index * spacing; negative inside.

    It stays as the SurfaceSystem left it until that runs again, so systems of every phase can read it; attach
    one to the `fluid` entity to start with a shape. An axis with one layer of points is flat (a world in a
    plane). ``surface`` is 1 if there is a surface. If not, all points hold a bound: the grid's diagonal or
    the width of the band, positive with nothing inside. ``volume`` is the volume at which the liquid is kept
    while the flow carries its surface, m^2 in a plane; 0 until then. `kernels.surface.level_set.distance_at`
    reads phi at any points.
    """

    origin: Array = column("m", shape=(3,), default=0.0)
    spacing: Array = column("m", shape=(3,), default=1.0, above=0.0)
    phi: Array = column("m", shape=(None, None, None), default=0.0)
    surface: Array = column("1", shape=(1,), kind="int", default=0)
    volume: Array = column("m^3", shape=(1,), default=0.0, minimum=0.0)


class SurfaceMesh(Component, derived=True, per_row=False):
    """The surface as a mesh, made at the SurfaceSystem's rate and empty in the ticks between.

    ``x``, ``normal`` (outward), ``u`` (velocity of the fluid) and ``curvature`` (2 / R for a ball of radius
    R) belong to vertices; ``faces`` are triangles (m, 3), counter-clockwise from outside, or segments (m, 2)
    in a plane.
    """

    x: Array = column("m", shape=(None, 3))
    faces: Array = column("1", shape=(None, None), kind="int")
    normal: Array = column("1", shape=(None, 3))
    u: Array = column("m/s", shape=(None, 3))
    curvature: Array = column("1/m", shape=(None,))
