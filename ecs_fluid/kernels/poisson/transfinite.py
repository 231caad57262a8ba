"""The inside of a box from its faces: transfinite interpolation (Coons), a smooth first guess for Poisson."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ecs_fluid.kernels.compiled import FAST, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.grids.partition import view_as


@parallel("field.shape[0]", fastmath=FAST, error_model="numpy")
def _fill(i: int, field: Array, m: int, flat: Array) -> None:
    """Rows (px, py, pz m): linear in x between two faces, then corrected to meet the y and the z faces."""
    px, py, width = field.shape
    kind = field.dtype.type
    one = kind(1)
    if not flat[0] and (i == 0 or i == px - 1):
        return
    first_j, last_j = (0, py) if flat[1] else (1, py - 1)
    first_k, last_k = (0, width) if flat[2] else (m, width - m)
    points = width // m
    s = kind(0.0 if flat[0] else i / (px - 1))
    row = np.zeros(width, field.dtype)
    near, far = np.zeros(width, field.dtype), np.zeros(width, field.dtype)
    if not flat[1]:
        near[:], far[:] = field[i, 0], field[i, py - 1]
    if not flat[0]:
        for k in range(width):
            near[k] -= (one - s) * field[0, 0, k] + s * field[px - 1, 0, k]
            far[k] -= (one - s) * field[0, py - 1, k] + s * field[px - 1, py - 1, k]
    for j in range(first_j, last_j):
        t = kind(0.0 if flat[1] else j / (py - 1))
        row[:] = 0
        if not flat[0]:
            for k in range(width):
                row[k] = (one - s) * field[0, j, k] + s * field[px - 1, j, k]
        if not flat[1]:
            for k in range(width):
                row[k] += (one - t) * near[k] + t * far[k]
        out = field[i, j]
        if not flat[2]:
            for c in range(m):
                low, high = out[c] - row[c], out[width - m + c] - row[width - m + c]
                for p in range(points):
                    v = kind(p / (points - 1))
                    row[p * m + c] += (one - v) * low + v * high
        out[first_k:last_k] = row[first_k:last_k]


def fill_from_faces(field: Array, spacing: Any) -> None:
    """Overwrite the inner points of ``field`` (px, py, pz) or (px, py, pz, m), interpolated from its faces.

    With P_a the linear interpolation between the two faces of axis a, this is P_x + P_y + P_z - P_x P_y
    - P_y P_z - P_z P_x + P_x P_y P_z: exact on the faces and for fields a + b x + c y + d z + e x y + ...
    + h x y z. A flat axis (one point, or ``spacing`` 0) has no faces. Source: Gordon and Hall, Numer.
    Math. 21 (1973).
    """
    flat = np.array([n == 1 or h == 0 for n, h in zip(field.shape[:3], spacing, strict=True)])
    m = math.prod(field.shape[3:])
    _fill(view_as(field, field.shape[0], field.shape[1], field.shape[2] * m), m, flat)
