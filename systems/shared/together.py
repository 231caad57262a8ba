"""Bodies whose accelerations are coupled by the fluid: what drives them, and their linear systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import FREE
from ecs_fluid.entity import Entity
from ecs_fluid.systems.shared.body_tables import added_masses, held_by_hinges, load_of
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.table import Bodies


class Drive(NamedTuple):
    """What accelerates free bodies between contacts."""

    push: Array
    """accelerations (n, 3) m/s^2 of bodies, with their added mass, by weight and loads; 0 for hinged ones"""
    lent: Array
    """forces (n, 3) N, of weight and loads, that accelerate the added mass"""
    heavier: Array
    """masses (n,) kg for contacts: with the mean added mass over the axes (in a plane, over those in it)"""


def drive_of(world: World, entities: list[Entity], bodies: Bodies) -> Drive:
    """The accelerations by weight and loads, (m + m_a) dv/dt = m g + F, with the added masses m_a."""
    n, free = len(bodies.x), (bodies.motion == FREE) & ~bodies.hinge.any(axis=1)
    bodies = held_by_hinges(bodies)
    if not free.any():
        return Drive(np.zeros((n, 3)), np.zeros((n, 3)), bodies.mass)
    inside = np.arange(3) != world.across
    push = np.where(free[:, None], world.gravity * inside, 0.0)
    heavier, force = bodies.mass.copy(), load_of(entities, "force")
    added, between = added_masses(world, entities)
    own = bodies.mass[:, None]
    light = added.any(axis=(1, 2))
    whole = own[light, :, None] * np.eye(3) + added[light]
    weight = own * push
    push[light] = np.linalg.solve(whole, (weight + force)[light, :, None])[..., 0]
    push[~light] += force[~light] / own[~light]
    heavier[light] += np.diagonal(added[light], axis1=1, axis2=2)[:, inside].mean(axis=1)
    if between is not None:
        some = np.flatnonzero(between.any(axis=(1, 2, 3)))
        masses = between[np.ix_(some, some)].transpose(0, 2, 1, 3).copy()
        for k, i in enumerate(some):
            masses[k, :, k, :] += bodies.mass[i] * np.eye(3)
        push[some] = solution(masses, (weight + force)[some])
        light = light | between.any(axis=(1, 2, 3))
    lent = np.where((light & free)[:, None], weight + force - own * push, 0.0)
    return Drive(np.where(free[:, None], push, 0.0), lent, heavier)


def solution(matrix: Array, right: Array) -> Array:
    """x (f, k) that solves A x = b for a matrix A (f, k, f, k); the same bits for any number of threads."""
    from ecs_fluid.kernels.panels.panel_flow import factorise, solve

    if len(right) == 1:
        return np.linalg.solve(matrix[:, :, 0], right[..., None])[..., 0]
    size = right.size
    factors, pivot = matrix.reshape(size, size).copy(), np.empty(size, np.int64)
    factorise(factors, pivot)
    return np.asarray(solve(factors, pivot, np.ascontiguousarray(right).ravel()).reshape(right.shape))
