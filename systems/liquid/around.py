"""The liquid around given points, and tracers that it carries."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.sph.step import LiquidLaw, Surroundings
    from ecs_fluid.kernels.sph.whitewater import SortedLiquid
    from ecs_fluid.systems.liquid.places import Bodies

SURFACE = 0.3
"""A particle with at least this slope belongs to the surface: half the slope in the first layer of a flat
one."""

LEAST_SHARE = 0.25
"""Least part of space that liquid, bodies and walls take around a tracer which the liquid carries: up to
half a spacing above a flat surface."""


class LiquidAround(NamedTuple):
    """Liquid and its images behind walls, in which points are looked up."""

    law: LiquidLaw
    near: Surroundings
    hulls: Hulls | None
    search: SortedLiquid

    def walls(self, x: Array) -> Array:
        """Share (n,) of space at `x` (n, 3) m that bodies, and walls that do not mirror, take."""
        from ecs_fluid.kernels.sph.step import wall_compression

        return wall_compression(self.law, self.near, self.hulls, x)[0]

    def normals(self, x: Array, slope: Array) -> Array:
        """Unit normals and 1 (m, 4) of particles at the surface and of their mirror images; 0 for others.

        `x` (n, 3) m and `slope` (n, 3) are those of the particles.
        """
        from ecs_fluid.kernels.sph.step import wall_compression

        images, many = self.near.images, len(slope)
        # G has twice the slope of the liquid that it represents.
        part = self.law.reach / (40 * self.search.weight)
        _, body, push = wall_compression(self.law, self.near, self.hulls, x)
        slope = slope - part * np.where(body[..., None] >= 0, push, 0).sum(axis=1)
        length = np.sqrt((slope**2).sum(axis=1))
        found = np.zeros((len(images.x), 4), x.dtype)
        rows = np.flatnonzero(length > SURFACE)
        found[rows, :3], found[rows, 3] = slope[rows] / length[rows, None], 1
        found[many:] = found[images.owner]
        for at in images.along.T:
            rows = many + np.flatnonzero(at >= 0)
            plane = self.near.planes[at[at >= 0], :3].astype(x.dtype)
            turned = found[rows, :3]
            found[rows, :3] = turned - 2 * (turned * plane).sum(axis=1, keepdims=True) * plane
        return found


def liquid_around(law: LiquidLaw, x: Array, v: Array, mass: Array, bodies: Bodies) -> LiquidAround:
    """The liquid at `x` (n, 3) m that moves at `v` (n, 3) m/s, of masses (n,) kg, among `bodies`."""
    from ecs_fluid.kernels.sph.step import surroundings_of
    from ecs_fluid.kernels.sph.whitewater import sort_liquid

    near = surroundings_of(law, x, v, mass, *bodies)
    return LiquidAround(law, near, bodies[1], sort_liquid(law, near))


def carried(liquid: LiquidAround, points: Array) -> Array:
    """Way (m, 3) m of `points` (m, 3) m with liquid whose "velocities" are its ways, m, in the same time.

    It is the mean way of the liquid around, with the weights of its compression; 0 out of the liquid. As
    places and ways belong to the same particles, points go round with liquid that turns, whatever the time.
    """
    from ecs_fluid.kernels.sph.whitewater import properties_at

    share, way, *_ = properties_at(liquid.search, points, np.zeros_like(points))
    return np.where((share + liquid.walls(points) >= LEAST_SHARE)[:, None], way, points.dtype.type(0))
