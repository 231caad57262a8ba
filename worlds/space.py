"""The space that a region or a shape fills, and the lattices and cells that fill it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import RecipeError
from ecs_fluid.periodic import AXES
from ecs_fluid.strays import sample_rows
from ecs_fluid.worlds.cells import lattice, lattice_counts

LEAST_CELLS = 2_000
"""Number of cells into which a space, or the skin around it, is divided, unless it is too thin for that."""

MOST_CELLS = 4_000_000
"""Most cells examined for that, which takes seconds."""

MOST_KEPT = 50_000
"""Most of these cells that are kept to represent all, since each tick copies them."""


def _all(local: Array) -> Array:
    return np.ones(len(local), dtype=bool)


class Space(NamedTuple):
    """A region of space in a frame of its own: its bounding box, and a test of which places lie inside.

    low, high (3,): corners of the box, m. holds: function from places (n, 3) m to a mask of those inside.
    origin (3,) m and axes (3, 3), orthonormal rows, define the frame.
    """

    low: Array
    high: Array
    holds: Callable[[Array], Array] = _all
    origin: Array = np.zeros(3)
    axes: Array = np.eye(3)

    def cut(self, across: int | None) -> tuple[Array, Array]:
        """The box, or its section by the plane through the origin of the world across that axis."""
        low, high = np.array(self.low, np.float64), np.array(self.high, np.float64)
        if across is not None:
            along = int(np.abs(self.axes[:, across]).argmax())
            if np.abs(np.delete(self.axes[:, across], along)).max() > 1e-12:
                raise RecipeError(
                    "the region leans out of the plane of a world of dimension = 2; "
                    f"turn it about {AXES[across]} alone"
                )
            plane = -self.origin[across] * self.axes[along, across]
            if not low[along] - (near := 1e-9 * (1.0 + abs(plane))) <= plane <= high[along] + near:
                raise RecipeError(
                    "the region does not reach the plane of a world of dimension = 2; "
                    f"move it along {AXES[across]}"
                )
            low[along] = high[along] = plane
        return low, high

    def filled(self, local: Array, what: str, remedy: str = "use a smaller spacing") -> Array:
        """World coordinates of the local places (n, 3) m that lie inside; RecipeError if none does."""
        local = local[self.holds(local)]
        if not len(local):
            raise RecipeError(f"no {what} falls into the region; {remedy}")
        return np.asarray(local @ self.axes + self.origin)

    def cells(self, skin: float, across: int | None) -> tuple[Array, Array]:
        """Centres (n, 3) m and edge vectors (3, 3) m of cells inside or, with a `skin`, within it outside,
        m."""
        low, high = self.cut(across)
        low, high = np.where(high > low, low - skin, low), np.where(high > low, high + skin, high)
        extents = (high - low)[high > low]
        cell = float(np.prod(extents) / (2 * LEAST_CELLS)) ** (1 / len(extents))
        cell = min(cell, skin / 3) if skin else cell
        middles, edge, most, shown = np.empty((0, 3)), np.empty(3), 0.0, False
        while not shown and np.prod(counts := lattice_counts(high - low, cell)) <= MOST_CELLS:
            local, size = lattice(low, high, cell)
            held = self.holds(local)
            shown = bool(held.any())
            if skin and shown:
                held, shown = _around(held.reshape(counts.astype(int)), size, skin + 0.2 * cell)
            # The cells miss parts of a solid that is thinner than they are, and of its skin.
            volume = np.count_nonzero(held) * float(np.prod(size[size > 0]))
            if volume and not (skin and volume < most):
                middles, edge, most = local[held], size, volume
            shown &= len(middles) >= LEAST_CELLS
            cell /= 1.5
        if not len(middles):
            raise RecipeError(
                f"{'skin' if skin else 'solid'} is too thin to be resolved by {MOST_CELLS:,} cells; use a "
                f"thicker one{'' if across is None else ' that the plane of the world cuts'}"
            )
        middles = middles[sample_rows(len(middles), MOST_KEPT)]
        return middles @ self.axes + self.origin, edge[:, None] * self.axes


def _around(held: Array, size: Array, skin: float) -> tuple[Array, bool]:
    """Mask (n,) of the cells of a lattice (a, b, c) outside the cells `held`, at most `skin` m from the
    nearest.

    `size` (3,) m are the edges of a cell. Second result: whether a held cell is surrounded only by such
    cells. Distances count from the nearest held centre, which lies 0.2 cells below the surface on average
    over all directions: volumes of skins around balls and boxes, turned or not, are right to 2 %.
    """
    from scipy.ndimage import distance_transform_edt, minimum_filter

    away = distance_transform_edt(~held, np.where(size > 0, size, 1.0))
    inner = minimum_filter(held, np.where(size > 0, 3, 1).tolist(), mode="constant")
    return np.asarray(~held & (away <= skin)).reshape(-1), bool(inner.any())


def ball(radius: float) -> Space:
    """A ball about the origin."""
    half, square = np.full(3, radius), radius**2
    return Space(-half, half, lambda local: np.asarray((local**2).sum(axis=1) <= square))
