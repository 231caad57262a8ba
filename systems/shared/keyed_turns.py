"""Rotations of scripted bodies over whole turns, as their keys make them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.keyframes import Keyed, value_at

PART = 0.5
"""Radians of a keyed rotation vector in one part of its way, in the mean, where whole turns are counted."""

MOST_PARTS = 1_000_000
"""Of the way between two keys in one tick."""

LEAST_ANGLE = 1e-6
"""Radians between two poses below which their axis says nothing."""


def with_turns(short: Array, rotation: Any, begin: float, end: float) -> Array:
    """Rotation vector (3,) rad from a pose to one at the `end`, with the turns that keys make since `begin`.

    The keyed vector theta turns the body by at most |d theta|, so where theta's way is below half a turn the
    `short` rotation between both poses is it. Beyond, small parts of the way add up to int spin dt; of the
    rotations between both poses, `short` and whole turns more about its axis, the one next to that counts.
    If the axis turns so much meanwhile that none is near, it is int spin dt itself, the mean spin.
    """
    from ecs_fluid.kernels.bodies.rotation import path_turned

    # By chords; a smooth way is longer, but not by half.
    length = float(np.linalg.norm(np.diff(_way(rotation, begin, end, 4), axis=0), axis=1).sum())
    if not length >= 2.0:
        return short
    whole = path_turned(_way(rotation, begin, end, min(int(length / PART) + 1, MOST_PARTS)))
    angle = float(np.linalg.norm(short))
    if angle < LEAST_ANGLE:  # the same pose again, whose axis is that of rounding errors
        return np.asarray(whole)
    axis = short / angle
    found = short + 2 * np.pi * np.rint((whole @ axis - angle) / (2 * np.pi)) * axis
    return np.asarray(found if np.linalg.norm(found - whole) < 0.5 * np.pi else whole)


def _way(rotation: Any, begin: float, end: float, parts: int) -> Array:
    """Values (n, 3) of a keyed vector from `begin` to `end` s; `parts` from each key between to the next."""
    times = rotation.edges(begin, end) if isinstance(rotation, Keyed) else np.array([begin, end])
    share = np.arange(parts) / parts
    fine = (times[:-1, None] + share * np.diff(times)[:, None]).ravel()
    return np.broadcast_to(value_at(rotation, np.append(fine, end)), (len(fine) + 1, 3))
