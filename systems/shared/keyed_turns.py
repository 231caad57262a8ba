"""Rotations of scripted bodies in one tick, counting the whole turns that their keys prescribe."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.keyframes import Keyed, value_at

PART = 0.5
"""Mean length, rad, of one part of a keyed rotation vector's path, where whole turns are counted."""

MOST_PARTS = 1_000_000
"""Most parts of the path between two keys in one tick."""

LEAST_ANGLE = 1e-6
"""Angle between two poses, rad, below which its axis is meaningless."""


def with_turns(short: Array, rotation: Any, begin: float, end: float) -> Array:
    """Rotation vector (3,) rad from the pose at `begin` to that at `end`, with the keys' whole turns.

    `short` is the shortest rotation between both poses. A change of the keyed vector theta turns the body by
    at most |d theta|, so where theta's path is shorter than half a turn, the result is `short`. Beyond that,
    the path is cut into small parts that add up to the integral of the spin over time. Among the rotations
    between both poses, `short` and those with whole turns more about its axis, the one nearest to this
    integral is returned. If the axis turns so much in between that none is near, the integral itself is.
    """
    from ecs_fluid.kernels.bodies.rotation import rotation_along

    # By chords: a smooth path is longer than their sum, but by less than half.
    length = float(np.linalg.norm(np.diff(_sampled_keys(rotation, begin, end, 4), axis=0), axis=1).sum())
    if not length >= 2.0:
        return short
    whole = rotation_along(_sampled_keys(rotation, begin, end, min(int(length / PART) + 1, MOST_PARTS)))
    angle = float(np.linalg.norm(short))
    if angle < LEAST_ANGLE:  # the same pose again: the axis of `short` is only rounding error
        return np.asarray(whole)
    axis = short / angle
    found = short + 2 * np.pi * np.rint((whole @ axis - angle) / (2 * np.pi)) * axis
    return np.asarray(found if np.linalg.norm(found - whole) < 0.5 * np.pi else whole)


def _sampled_keys(rotation: Any, begin: float, end: float, parts: int) -> Array:
    """Values (n, 3) of a keyed vector from `begin` to `end`, s, with `parts` steps between adjacent keys."""
    times = rotation.edges(begin, end) if isinstance(rotation, Keyed) else np.array([begin, end])
    share = np.arange(parts) / parts
    fine = (times[:-1, None] + share * np.diff(times)[:, None]).ravel()
    return np.broadcast_to(value_at(rotation, np.append(fine, end)), (len(fine) + 1, 3))
