"""Impulses at contacts: what is remembered from the last tick, and what a solution leaves."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.kernels.bodies.contact_solver import ContactForces, contacts_at, solve, warm_start
from ecs_fluid.kernels.bodies.table import BALL, Bodies

FREE = 2


def _balls(x: np.ndarray, v: np.ndarray, mass: np.ndarray, friction: float = 0.0) -> Bodies:
    n = len(x)
    return Bodies(
        x=x, q=np.tile([1.0, 0, 0, 0], (n, 1)), v=v, angular_velocity=np.zeros((n, 3)), mass=mass,
        inertia=0.4 * mass[:, None, None] * np.eye(3), motion=np.full(n, FREE), restitution=np.zeros(n),
        friction=np.full(n, friction), shape=np.full(n, BALL), radius=np.ones(n), hull=np.zeros(n, np.int64),
        leader=np.arange(n), hinge=np.zeros((n, 3)),
    )  # fmt: skip


@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_without_friction_only_the_normal_force_is_remembered(friction: float) -> None:
    """Two balls on the x axis; 3 N along the normal and 4 N across it act for 0.1 s on the second.

    dv = F h/m = (0.15, 0.2) m/s of 2 kg. Across the normal r x F h/I = -0.4/(0.4 x 2) = -0.5 rad/s about z.
    Without friction a force across the surface, which a turned normal leaves, gives neither.
    """
    bodies = _balls(np.array([[0.0, 0, 0], [2.0, 0, 0]]), np.zeros((2, 3)), np.full(2, 2.0), friction)
    who, points = np.array([[0, 1]]), np.array([[1.0, 0, 0, 1, 0, 0, 0]])
    former = ContactForces(who, points[:, :3].copy(), np.array([[3.0, 4.0, 0.0]]))
    warm_start(bodies, former, contacts_at(bodies, who, points, np.zeros((1, 3))), 0.1)
    across = 0.2 if friction else 0.0
    assert np.allclose(bodies.v, [[-0.15, -across, 0], [0.15, across, 0]], atol=1e-15)
    assert np.allclose(bodies.angular_velocity[1], [0, 0, -2.5 * across], atol=1e-15)


def test_a_row_of_balls_is_solved_to_rounding() -> None:
    """Seven balls that touch, the first at 7 m/s, no rebound: plastic impact, all go on at 7 x 1/7 = 1 m/s.

    200 sweeps: the slowest error of a chain of n falls by cos^2(pi/n) = 0.81 each, 1e-18 in all.
    """
    x = np.zeros((7, 3))
    x[:, 1] = 2.0 * np.arange(7)
    v = np.zeros((7, 3))
    v[0, 1] = 7.0
    bodies = _balls(x, v, np.ones(7))
    who = np.stack([np.arange(6), np.arange(1, 7)], axis=1)
    points = np.zeros((6, 7))
    points[:, 1], points[:, 4] = 1.0 + 2.0 * np.arange(6), 1.0
    solve(bodies, contacts_at(bodies, who, points, np.zeros((6, 3))), np.zeros(6), 200)
    assert np.allclose(bodies.v[:, 1], 1.0, atol=1e-12)
    assert not bodies.angular_velocity.any()


def test_a_force_goes_to_one_contact() -> None:
    """One force of 3 N and two contacts where it was, or two forces and one contact: their sum stays.

    It pushes for 0.1 s: 0.3 kg m/s in the first case, 0.6 kg m/s of two such forces in the second.
    """
    for places, forces in ((2, 1), (1, 2)):
        bodies = _balls(np.array([[0.0, 0, 0], [2.0, 0, 0]]), np.zeros((2, 3)), np.full(2, 2.0))
        who, points = np.zeros((places, 2), np.int64), np.tile([1.0, 0, 0, 1, 0, 0, 0], (places, 1))
        who[:, 1] = 1
        points[:, 1] = 1e-9 * np.arange(places)
        pairs, place = np.zeros((forces, 2), np.int64), np.tile([1.0, 0, 0], (forces, 1))
        pairs[:, 1] = 1
        former = ContactForces(pairs, place, np.tile([3.0, 0, 0], (forces, 1)))
        warm_start(bodies, former, contacts_at(bodies, who, points, np.zeros((places, 3))), 0.1)
        assert np.allclose(bodies.v[:, 0], [-0.15 * forces, 0.15 * forces], atol=1e-15)
