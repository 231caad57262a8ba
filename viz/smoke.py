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
    """One tracer's picture: `spacing` between neighbours [m], splat `radius` [m], peak `opacity` (0 to 1)."""

    spacing: float
    radius: float
    opacity: float

    @property
    def cross_section(self) -> float:
        """Optical cross-section kappa = 2 pi r^2 a [m^2]."""
        return float(2.0 * np.pi * self.radius**2 * self.opacity)


def puff(x: Array, depth: float, softness: float) -> Puff:
    """The puff with which the cloud `x` (n, 3) m has the optical `depth` on average, seen along an axis.

    kappa = depth * A / n, where A is the area of the cloud's shadow, averaged over the three axes; the radius
    is `softness` times the mean spacing between tracers.
    """
    spacing = spacing_of(x)
    cell = 2.0 * spacing
    index = np.floor(x / cell).astype(np.int64)
    shadows = [distinct(np.delete(index, axis, axis=1)) for axis in range(3)]
    # Seen on edge, a flat cloud has next to no shadow: the largest one is what a camera is pointed at.
    area = float(np.mean([s for s in shadows if s >= 0.3 * max(shadows)])) * cell**2
    radius = softness * spacing
    opacity = depth * area / (len(x) * 2.0 * np.pi * radius**2)
    return Puff(spacing, radius, float(min(opacity, 0.9)))


def spacing_of(x: Array) -> float:
    """Typical distance between neighbours [m], but for strays, of whom a large cloud has some."""
    return mean_spacing(np.asarray(x), 0.5 if len(x) > 200 else 0.0)


def illumination(
    x: Array, towards_light: Vector, spacing: float, cross_section: float, cover: Array | None = None
) -> Vector:
    """Fraction of the light (n,) in [0, 1] that reaches each tracer through the others.

    `cover` (n,) is the share of `cross_section` that each tracer has; all of it if not given.

    Tracers are counted on a grid whose last axis points to the light; exp(-kappa N), N the tracers per area
    between a tracer and the light, interpolated between grid points.
    """
    from scipy import ndimage

    light = np.asarray(towards_light, dtype=np.float64)
    light = light / np.linalg.norm(light)
    side = np.cross(light, np.eye(3)[np.argmin(np.abs(light))])
    side /= np.linalg.norm(side)
    q = x @ np.column_stack((side, np.cross(light, side), light))
    lo, hi = q.min(axis=0), q.max(axis=0)
    cell = max(2.0 * spacing, float(np.prod(hi - lo + 4.0 * spacing) / MAX_CELLS) ** (1.0 / 3.0))
    where = (q - lo) / cell + 1.0
    shape = tuple(int(n) for n in np.floor(where).max(axis=0) + 3)
    # Counting tracers by cell would show a beat between the grid and tracers that stand on a lattice.
    counts = scatter(where, np.ones((len(x), 1)) if cover is None else cover[:, None], shape)
    density = ndimage.gaussian_filter(counts.reshape(shape), 0.7)
    before = np.cumsum(density[:, :, ::-1], axis=2)[:, :, ::-1] - 0.5 * density
    column = ndimage.map_coordinates(before, where.T, order=1, mode="nearest")
    reached: Vector = np.exp(-cross_section / cell**2 * column)
    return reached


def back_to_front(x: Array, camera: Vector, focal: Vector) -> NDArray[np.int64]:
    """Rows (n,) from the farthest to the nearest: the order in which translucent puffs must be blended."""
    return np.argsort(-((x - camera) @ (np.asarray(focal) - camera)), kind="stable")
