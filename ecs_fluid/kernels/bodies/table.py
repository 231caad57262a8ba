"""Rigid bodies as plain arrays: the table that all kernels of bodies read."""

from __future__ import annotations

from typing import NamedTuple

from ecs_fluid.kernels.compiled import Array

BALL, SOLID, CONTAINER = 0, 1, 2
"""Shapes of bodies."""


class Bodies(NamedTuple):
    """Bodies of a world in one table: arrays of n rows, float64 and int64.

    shape: 0 ball, 1 polytope, 2 container. radius: of the ball, or of the ball round the polytope, m.
    hull: number in `Hulls`. motion: 2 for bodies that impulses move. inertia (n, 3, 3): body axes, kg m^2.
    hinge (n, 3): unit vector, body axes, about which alone a body turns, at a fixed x; 0 for no hinge.

    A body may be made of several convex parts, which are rows one after the other. All of them have the pose,
    motion, mass and inertia of the whole body, and `leader` is the number of the first: impulses act on it,
    and the others follow. Of any other body, `leader` is its own number.
    """

    x: Array
    q: Array
    v: Array
    angular_velocity: Array
    mass: Array
    inertia: Array
    motion: Array
    restitution: Array
    friction: Array
    shape: Array
    radius: Array
    hull: Array
    leader: Array
    hinge: Array
