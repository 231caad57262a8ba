"""Columns of particles and bodies in axes that are turned, for programs in which another axis is upwards."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.spatial.transform import Rotation

POSE = "Pose.q"
"""The column by which bodies differ from particles."""


def turned(columns: Mapping[str, np.ndarray], matrix: np.ndarray) -> dict[str, np.ndarray]:
    """The columns after quarter turns (3, 3) of the world: vectors R v, tensors R T R^T, and poses R q.

    Vectors and tensors are all columns of numbers, not whole ones, whose rows are (3,) or (3, 3); frames have
    none in axes of bodies.
    """
    axes = np.abs(matrix).argmax(axis=1)
    signs = matrix[np.arange(3), axes]
    found = dict(columns)
    for label, values in columns.items():
        if values.dtype.kind != "f":
            continue
        if label == POSE:
            q = (Rotation.from_matrix(matrix) * Rotation.from_quat(np.roll(values, -1, axis=1))).as_quat()
            found[label] = np.roll(q, 1, axis=1).astype(values.dtype)
        elif values.shape[1:] == (3,):
            found[label] = values[:, axes] * signs.astype(values.dtype)
        elif values.shape[1:] == (3, 3):
            found[label] = values[:, axes][:, :, axes] * np.outer(signs, signs).astype(values.dtype)
    return found
