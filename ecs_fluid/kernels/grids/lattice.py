"""Particles shared among the points of a regular lattice by weights that keep moments.

    linear    trilinear: moments 0 and 1, never negative; adds f (1 - f) h^2 to the variance of an axis
    m4_prime  M4' of ``scatter``: moments 0, 1 and 2, some weights negative
    m6_prime  M6' of ``scatter``: moments 0 to 4, some weights negative
    positive  linear, then the mean (w, 1 - 2 w, w) along every axis: moments 0 and 1, never negative, and
              more than zero wherever M4' is not zero; adds f (1 - f) h^2 + 2 w h^2

Lattice points are integer multiples of the spacing. Results are float64 whatever the particles are. Source:
Monaghan, J. Comput. Phys. 60 (1985); Cottet and Koumoutsakos, Vortex Methods (2000), section 7.1.
"""

from __future__ import annotations

import numpy as np

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.grids import interpolation
from ecs_fluid.kernels.grids.partition import gather_sorted, partition
from ecs_fluid.kernels.grids.scatter import m4_prime, m6_prime

SCATTERS = {"m4_prime": m4_prime, "m6_prime": m6_prime}
"""Scatters by weights; the other weights, linear and positive, begin with the trilinear scatter."""

MARGINS = {"m6_prime": 3}
"""Cells that a lattice leaves free on every side: two that M6' reaches and one for rounding; otherwise 1."""

BLUR_WEIGHT = 1.0 / 24.0
"""w of ``positive``: small, since it blurs, but not so small that points at the rim hold almost nothing."""


def lattice_box(
    x: Array, spacing: float | Array, flat: Array, weights: str = "m4_prime"
) -> tuple[Array, Array]:
    """Lowest lattice index and number of cells, (3,) int64 each, of the lattice around positions (n, 3) m.

    Cells are left free on every side as far as the weights reach. A flat axis has one cell, whose lower end
    stands for the plane wherever that is.
    """
    margin = MARGINS.get(weights, 1)
    low = np.floor(np.asarray(x.min(axis=0), np.float64) / spacing)
    high = np.floor(np.asarray(x.max(axis=0), np.float64) / spacing)
    lowest, cells = np.where(flat, 0.0, low - margin), np.where(flat, 1.0, high - low + 1 + 2 * margin)
    return lowest.astype(np.int64), cells.astype(np.int64)


def to_lattice(
    weights: str, x: Array, values: Array, spacing: float | Array, flat: Array, room: str = ""
) -> tuple[Array, Array]:
    """Share the rows of ``values`` (n, m) among lattice points: (low, field (px, py, pz, m)).

    field[i, j, k] = sum_p w_p values_p, float64, belongs to the point spacing * (low + (i, j, k)), low (3,)
    int64, so its sum over the lattice is that of the rows, and so are its first moments (with m4_prime the
    second too, with m6_prime those to the fourth), about any point.

    Args:
        weights: linear, m4_prime, m6_prime or positive.
        x: positions (n, 3) m, n > 0.
        values: (n, m), any extensive quantities.
        spacing: of the lattice, m; one for all axes, or (3,).
        flat: bool (3,), axes along which all positions are equal and nothing is shared.
        room: the weights that set how far the lattice reaches; default: these.
    """
    low, cells = lattice_box(x, spacing, flat, room or weights)
    exact = x.astype(np.float64)
    origin = np.where(flat, exact[0], spacing * low)
    edges = np.full(3, spacing, np.float64)
    start, order = partition(exact, origin, edges, cells)
    columns = gather_sorted(values.astype(np.float64), order)
    scatter = SCATTERS.get(weights, interpolation.scatter)
    field = scatter(gather_sorted(exact, order), columns, start, origin, edges, cells)
    if weights == "positive":
        for axis in np.flatnonzero(~np.asarray(flat)):
            _blur(np.moveaxis(field, axis, 0))
    return low, field


def _blur(field: Array) -> None:
    """field_i <- w field_(i-1) + (1 - 2 w) field_i + w field_(i+1) along the first axis (its ends are 0)."""
    change = -2.0 * field
    change[1:] += field[:-1]
    change[:-1] += field[1:]
    field += BLUR_WEIGHT * change
