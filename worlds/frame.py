"""Right-handed frames along a given direction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ecs_fluid.component import Array


def frame(axis: Sequence[float]) -> Array:
    """Orthonormal rows (e1, e2, e3), shape (3, 3), with e3 along `axis` and e1 x e2 = e3.

    e2 is horizontal where that is possible, so that axis z gives the world's own x, y, z. Local
    coordinates become world coordinates by ``center + local @ frame(axis)``.
    """
    e3 = np.asarray(axis, dtype=np.float64)
    e3 = e3 / np.abs(e3).max()
    e3 = e3 / np.linalg.norm(e3)
    if abs(e3[2]) > 1.0 - 1e-12:
        e3 = np.array([0.0, 0.0, np.sign(e3[2])])
        e2 = np.array([0.0, 1.0, 0.0])
    else:
        e2 = np.cross([0.0, 0.0, 1.0], e3)
        e2 /= np.linalg.norm(e2)
    return np.stack([np.cross(e2, e3), e2, e3])
