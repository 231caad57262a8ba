"""Worlds that repeat: boxes about the origin, from minus half a period to half a period along some axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import ScheduleError
from ecs_fluid.own_code import is_shipped

if TYPE_CHECKING:
    from ecs_fluid.world import World

AXES = "xyz"


def axes_of(periods: Array) -> str:
    """The periodic axes in words, such as "x and y"; "" if there is none."""
    return " and ".join(axis for axis, period in zip(AXES, periods, strict=True) if period)


def check_periodic(kind: type[Any], world: World) -> None:
    """Raise ScheduleError if the world repeats and this class of systems is not for such worlds."""
    if kind.periodic or not world.periods.any():
        return
    own = "" if is_shipped(kind) else f", or set {kind.__name__}.periodic = True if it is right in one"
    raise ScheduleError(
        f"{kind.__name__} does not work in a world that repeats, and this one repeats along "
        f"{axes_of(world.periods)}; leave it out, or make the world's periods 0{own}"
    )


def wrapped(x: Array, periods: Array) -> Array:
    """Positions (n, 3) m moved by whole periods into the box; the same array where all lie there already."""
    from ecs_fluid.kernels.compiled.columns import bounds, wrap

    half = np.where(periods > 0, 0.5 * periods, np.inf)
    low, high = bounds(x)
    if not ((low < -half) | (high >= half)).any():
        return x
    inside = x.copy()
    wrap(inside, periods.astype(x.dtype))
    return inside


def nearest_to(place: Array, x: Array, periods: Array) -> Array:
    """Positions (n, 3) m moved by whole periods to where they are nearest to `place` (3,) m."""
    return place + wrapped(x - place, periods) if periods.any() else x


def images(x: Array, periods: Array, reach: float) -> tuple[Array, Array]:
    """Copies, moved by whole periods, of particles at x (n, 3) m in the box; within `reach` m outside of it.

    Returns the rows (m,) of the copied particles and the places (m, 3) m of the copies.
    """
    rows, places = np.arange(len(x)), x
    for a in np.flatnonzero(periods):
        far, found = 0.5 * periods[a] + reach, [(rows, places)]
        for n in range(1, math.ceil(reach / periods[a]) + 1):
            for shift in (-n * periods[a], n * periods[a]):
                near = np.flatnonzero(np.abs(places[:, a] + shift) <= far)
                copy = places[near]
                copy[:, a] += x.dtype.type(shift)
                found.append((rows[near], copy))
        rows, places = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return rows[len(x) :], places[len(x) :]
