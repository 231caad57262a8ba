"""The lattice on which vortons are replaced: in open space, in a period, or before walls that mirror."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.systems.shared.divergence import less_divergence
from ecs_fluid.systems.shared.walls import EVEN, vortex_walls

if TYPE_CHECKING:
    from ecs_fluid.world import World


class Lattice(NamedTuple):
    """Points at `origin` + i `edges`, i whole numbers.

    Where the flow has images behind a plane across an axis, the plane is halfway between points, so that
    each point beyond it shows one before it: a vorton in the plane itself could never leave it. So points -1,
    -2, ... along the axis show 0, 1, ... if `below`, and these show those if only `above`. With both the
    points before the planes are 0 to `cells` - 1.
    """

    spacing: float
    """spacing as set, m"""
    origin: Array
    """(3,) m, point 0"""
    edges: Array
    """(3,) m, from one point to the next: a period, or the way between two planes, is a whole number of
    these"""
    cells: Array
    """(3,) number of points in a period, or between two planes"""
    again: Array
    """(3,) whether space repeats along the axis"""
    flat: Array
    """(3,) whether the axis is across the plane of a world of two dimensions"""
    below: Array
    """(3,) whether there is a plane that mirrors at the lower end of the axis"""
    above: Array
    """(3,) whether there is one at the upper end"""

    @property
    def cell(self) -> float:
        """Volume of a cell, m^3, or its area in a plane, m^2."""
        return self.spacing ** int(3 - self.flat.sum()) * float(np.prod(self.edges / self.spacing))

    def places(self, points: Array, x: Array) -> Array:
        """Places (n, 3) m of points (n, 3), on the level of x (3,) m along a flat axis."""
        return np.asarray(np.where(self.flat, x, self.origin + self.edges * points))

    def shares(
        self, x: Array, values: Array, weights: str, reach: str, more: int = 0, turns: bool = False
    ) -> tuple[Array, Array]:
        """Lowest point (3,), and what each point from there on gets (px, py, pz, m), of rows at x (n, 3) m.

        What points beyond a plane get goes to those that they show.

        Args:
            x: (n, 3) m.
            values: extensive quantities (n, m).
            weights: as in `to_lattice`.
            reach: the weights that set how far the points reach.
            more: points without anything beyond these, on open sides and as far as planes let them.
            turns: whether values are pseudovectors (n, 3), such as strengths.
        """
        from ecs_fluid.kernels.grids.lattice import to_lattice
        from ecs_fluid.kernels.poisson.periodic import folded

        low, shares = to_lattice(weights, x - self.origin, values, self.edges, self.flat, reach)
        if self.again.any():
            shares = folded(shares, low, self.cells, self.again)
            low = np.where(self.again, 0, low)
        for axis in map(int, np.flatnonzero(self.below | self.above)):
            shown, image = self._shown(axis, low[axis] + np.arange(shares.shape[axis]))
            lines = np.moveaxis(_turned(shares, axis, image) if turns else shares, axis, 0)
            found = np.zeros((np.ptp(shown) + 1, *lines.shape[1:]))
            np.add.at(found, shown - shown.min(), lines)
            shares, low[axis] = np.moveaxis(found, 0, axis), shown.min()
        pads = [np.minimum(free, more) for free in self._free(low, shares.shape)]
        shares = np.pad(shares, [*zip(*pads, strict=True), (0, 0)])
        return low - pads[0], np.ascontiguousarray(shares)

    def less_divergence(self, field: Array, low: Array) -> Array:
        """Strengths (px, py, pz, 3) at points from `low` (3,) on with less of their part that is a gradient.

        On open sides `field` ends with ROOM points of zeros, or at a plane, with the strengths' images behind
        it.
        """
        inner = tuple(slice(-size, None) for size in field.shape[:3])
        mirrored = [
            side & (free == 0)
            for side, free in zip((self.below, self.above), self._free(low, field.shape), strict=True)
        ]
        for axis in map(int, np.flatnonzero(mirrored[0] | mirrored[1])):
            # Ends meet, so with images on one side there are images on both.
            every = np.ones(field.shape[axis], dtype=bool)
            images = np.flip(_turned(field, axis, every), axis)
            field = np.concatenate([images, field], axis)
        return less_divergence(field, self.edges)[inner]

    def _free(self, low: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Numbers of points (3,) beyond those from `low` on that are there too, at lower and upper ends."""
        end = low + shape[:3]
        most = np.where(self.again, 0, np.iinfo(np.int64).max)
        last = np.where(self.below, self.cells, 0)
        return np.where(self.below, low, most), np.where(self.above, last - end, most)

    def _shown(self, axis: int, points: Array) -> tuple[Array, Array]:
        """The point before the planes that each point (n,) along such an axis shows; and which are images."""
        if self.below[axis] and self.above[axis]:
            points = points % (2 * self.cells[axis])
            image = points >= self.cells[axis]
            return np.where(image, 2 * self.cells[axis] - 1 - points, points), image
        image = (points < 0) == self.below[axis]
        return np.where(image, -1 - points, points), image


def lattice_for(world: World, spacing: float) -> Lattice:
    """The lattice of about this spacing, m, in a world."""
    flat = np.arange(3) == world.across
    again = world.periods > 0
    low, high = _planes(world, flat)
    below, above = np.isfinite(low), np.isfinite(high)
    whole = again | (below & above)
    length = np.where(again, world.periods, np.where(whole, high - low, spacing))
    cells = np.maximum(np.round(length / spacing), 1).astype(np.int64)
    edges = np.where(whole, length / cells, spacing)
    origin = np.where(below, low + 0.5 * edges, np.where(above, high + 0.5 * edges, 0.0))
    return Lattice(spacing, origin, edges, cells, again, flat, below, above)


def _planes(world: World, flat: Array) -> tuple[Array, Array]:
    """Where, (3,) m each, planes across the axes mirror at their lower and upper ends; without, infinite."""
    low, high = np.full(3, -np.inf), np.full(3, np.inf)
    walls = vortex_walls(world)
    # Vortons of one population in several boxes have one lattice, which fits no more than one of these.
    for normal, offset in zip(walls[0].normals, walls[0].offsets, strict=True) if len(walls) == 1 else ():
        axis = int(np.argmax(np.abs(normal)))
        if abs(normal[axis]) > 1 - EVEN**2 and not flat[axis]:
            (high if normal[axis] > 0 else low)[axis] = offset / normal[axis]
    return low, high


def _turned(values: Array, axis: int, image: Array) -> Array:
    """Pseudovectors (px, py, pz, 3), of which points along an axis are mirror images across it where
    `image`."""
    signs = np.ones((len(image), 3))
    signs[image] = np.where(np.arange(3) == axis, 1.0, -1.0)
    shape = np.where(np.arange(4) == axis, len(image), 1)
    shape[3] = 3
    return np.asarray(values * signs.reshape(shape))
