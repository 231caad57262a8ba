"""Smoke from tracers: how big and how opaque a puff is, and how much light reaches it.

A tracer is drawn as a Gaussian puff of radius r and peak opacity a, so its optical cross-section is
kappa = 2 pi r^2 a [m^2]; a ray through N puffs per unit area is dimmed by exp(-N kappa). The same kappa dims
the light on its way to a puff, which makes the cloud look solid instead of like an X-ray.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.exports.volumes import distinct, mean_spacing, scatter
from ecs_fluid.viz.columns import Array

Vector = NDArray[np.float64]
MAX_CELLS = 2_000_000  # of the light grid: 16 MB


@dataclass(frozen=True)
class Puff:
    """One tracer's picture: `spacing` between neighbours [m], splat `radius` [m], peak `opacity` (0 to 1).

    `flat`: whether all tracers lie in a plane in each frame, so that none shades another.
    """

    spacing: float
    radius: float
    opacity: float
    flat: bool = False

    @property
    def cross_section(self) -> float:
        """Optical cross-section kappa = 2 pi r^2 a [m^2]."""
        return float(2.0 * np.pi * self.radius**2 * self.opacity)


def puff(x: Array, depth: float, softness: float) -> Puff:
    """The puff with which the cloud `x` (n, 3) m has the optical `depth` on average, seen along an axis.

    kappa = depth * A / n, where A is the area of the cloud's shadow, averaged over the three axes; the radius
    is `softness` times the mean spacing between tracers.
    """
    spacing = mean_spacing(x)
    cell = 2.0 * spacing
    index = np.floor(x / cell).astype(np.int64)
    shadows = [distinct(np.delete(index, axis, axis=1)) for axis in range(3)]
    # Axes with small shadows are left out: cameras do not look at a flat cloud edge-on.
    area = float(np.mean([s for s in shadows if s >= 0.3 * max(shadows)])) * cell**2
    radius = softness * spacing
    opacity = depth * area / (len(x) * 2.0 * np.pi * radius**2)
    return Puff(spacing, radius, float(min(opacity, 0.9)))


def illumination(
    x: Array, towards_light: Vector, spacing: float, cross_section: float, cover: Array | None = None
) -> Vector:
    """Fraction of the light (n,) in [0, 1] that reaches each tracer through the others.

    `cover` (n,) is the share of `cross_section` that each tracer has; all of it if not given.

    Tracers are counted on a grid whose last axis points to the light; exp(-kappa N), N the tracers per area
    between a tracer and the light, interpolated between grid points.
    """
    from scipy import ndimage

    q = x @ _axes(np.asarray(towards_light, dtype=np.float64))
    lo, hi = q.min(axis=0), q.max(axis=0)
    central = np.full(len(q), True)
    if np.prod(hi - lo + 4.0 * spacing) > MAX_CELLS * (2.0 * spacing) ** 3:
        # Strays, which are not shaded, would widen the cells until a cloud casts no shadow.
        low, high = np.percentile(q, [0.5, 99.5], axis=0)
        central = ((q >= 2.0 * low - high) & (q <= 2.0 * high - low)).all(axis=1)
        q, cover = q[central], None if cover is None else cover[central]
        lo, hi = q.min(axis=0), q.max(axis=0)
    cell = max(2.0 * spacing, float(np.prod(hi - lo + 4.0 * spacing) / MAX_CELLS) ** (1.0 / 3.0))
    where = (q - lo) / cell + 1.0
    shape = tuple(int(n) for n in np.floor(where).max(axis=0) + 3)
    # Tracers are shared among cells: counts would show a moire pattern of the grid and a tracers' lattice.
    counts = scatter(where, np.ones((len(q), 1)) if cover is None else cover[:, None], shape)
    density = ndimage.gaussian_filter(counts.reshape(shape), 0.7)
    before = np.cumsum(density[:, :, ::-1], axis=2)[:, :, ::-1] - 0.5 * density
    column = ndimage.map_coordinates(before, where.T, order=1, mode="nearest")
    reached: Vector = np.ones(len(x))
    reached[central] = np.exp(-cross_section / cell**2 * column)
    return reached


def back_to_front(x: Array, camera: Vector, focal: Vector) -> NDArray[np.int64]:
    """Rows (n,) from the farthest to the nearest: the order in which translucent puffs must be blended."""
    return np.argsort(-((x - camera) @ (np.asarray(focal) - camera)), kind="stable")


def glare(x: Array, colour: Array, camera: Vector, focal: Vector, puff: Puff) -> float:
    """Largest sum per area [1/m^2] of the light of tracers at (n, 3) m in colours (n, 3)."""
    return most_in_line(x, colour.max(axis=1), camera, focal, 2.0 * puff.radius)


def most_in_line(x: Array, weight: Array, camera: Array, focal: Array, cell: float) -> float:
    """Largest sum of weights per area [1/m^2] of points (n, 3) m seen from `camera`, in squares of `cell`."""
    flat = (x @ _axes(np.asarray(focal, dtype=np.float64) - camera))[:, :2]
    index = np.floor((flat - flat.min(axis=0)) / cell).astype(np.int64)
    sums = np.bincount(index[:, 0] * (index[:, 1].max() + 1) + index[:, 1], weights=weight)
    return float(sums.max() / cell**2)


def _axes(direction: Vector) -> Vector:
    """Unit vectors (3, 3) as columns: two across a direction, and the direction itself."""
    along = direction / np.linalg.norm(direction)
    side = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    side /= np.linalg.norm(side)
    return np.column_stack((side, np.cross(along, side), along))
