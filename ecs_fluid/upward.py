"""Which way is up: against gravity; and the quarter turns that make another axis point upwards."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]

# Where a turn that takes z to the axis takes x, y and z: the columns of its matrix.
_FROM_Z = {
    "z": ("x", "y", "z"),
    "-z": ("x", "-y", "-z"),
    "y": ("x", "-z", "y"),
    "-y": ("x", "z", "-y"),
    "x": ("y", "z", "x"),
    "-x": ("z", "y", "-x"),
}


def axis_vector(axis: str) -> Matrix:
    """Unit vector (3,) of an axis such as "y" or "-z"."""
    return np.where(np.arange(3) == "xyz".index(axis[-1]), -1.0 if axis.startswith("-") else 1.0, 0.0)


def up_of(gravity: ArrayLike) -> str:
    """The axis nearest to the way against gravity (3,) or (k, 3), m/s^2, by the first key that is not zero.

    It is z without gravity, and where z is as near as another axis.
    """
    for pull in np.reshape(np.asarray(gravity, np.float64), (-1, 3)):
        if pull.any():
            size = np.abs(pull)
            axis = 2 if size[2] == size.max() else int(size.argmax())
            return ("-" if pull[axis] > 0.0 else "") + "xyz"[axis]
    return "z"


def turn(start: str, end: str) -> Matrix:
    """Rotation matrix (3, 3), by quarter turns, that takes one axis to another: 1, 0 and -1 alone."""
    there, back = (np.stack([axis_vector(axis) for axis in _FROM_Z[up]], axis=1) for up in (end, start))
    return np.asarray(there @ back.T) + 0.0  # + 0.0 leaves no negative zeros
