"""Signed distances to simple shapes in closed form, negative inside, to start level sets and to check tests.

Points are (..., 3) m, results (...,) m. All are exact everywhere, except `union`, which is exact only outside
(inside it is a lower bound of the depth).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def _from(x: ArrayLike, center: ArrayLike) -> np.ndarray:
    return np.asarray(x, dtype=np.float64) - np.asarray(center, dtype=np.float64)


def sphere(x: ArrayLike, center: ArrayLike, radius: float) -> np.ndarray:
    """A ball."""
    return np.asarray(np.linalg.norm(_from(x, center), axis=-1) - radius)


def box(x: ArrayLike, center: ArrayLike, size: ArrayLike) -> np.ndarray:
    """A box with faces along the axes and edges ``size`` (3,) m."""
    q = np.abs(_from(x, center)) - 0.5 * np.asarray(size, dtype=np.float64)
    return np.asarray(np.linalg.norm(np.maximum(q, 0.0), axis=-1) + np.minimum(q.max(axis=-1), 0.0))


def torus(x: ArrayLike, center: ArrayLike, radius: float, thickness: float) -> np.ndarray:
    """A torus about the z axis: its core circle has ``radius``, its tube the radius ``thickness``."""
    r = _from(x, center)
    return np.asarray(np.hypot(np.hypot(r[..., 0], r[..., 1]) - radius, r[..., 2]) - thickness)


def plane(x: ArrayLike, point: ArrayLike, normal: ArrayLike) -> np.ndarray:
    """The half-space behind a plane whose ``normal`` (3,), of any length but 0, points out of it."""
    n = np.asarray(normal, dtype=np.float64)
    return np.asarray(_from(x, point) @ (n / np.linalg.norm(n)))


def union(*phi: np.ndarray) -> np.ndarray:
    """The points that lie in at least one of the shapes, from the distances ``phi`` to each."""
    return np.asarray(np.minimum.reduce(phi))
