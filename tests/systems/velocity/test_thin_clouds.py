"""Vortons that read a grid which ends where they do, where they lie in a plane, on a line or at a point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array

CORE = 0.2  # m


def gradient(x: Array, alpha: Array, per_core: float = 3.0, **velocity: Any) -> Array:
    """Velocity gradients (n, 3, 3) 1/s at vortons of one core radius."""
    world = ef.World(dt=1e-3, precision="double")
    sigma = np.full(len(x), CORE)
    world.spawn("vortons", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(sigma))
    grid = ef.PartitionSystem(padding=0.0, cells_per_core=per_core)
    world.add_systems([grid, ef.VelocitySystem(**velocity), ef.AdvectionSystem()])
    world.evaluate()
    return world["vortons"][ef.VelocityGradient].du.copy()


@pytest.mark.parametrize("rows", [1, 5])
def test_fluid_turns_about_a_lone_vorton(rows: int) -> None:
    """In its middle a blob is u = zeta(0) / (3 sigma^3) alpha cross x, zeta(0) = 15/(8 pi) (Winckelmans).

    A spline of 3 points to a core radius is 0.04 off. Without points beside it there was no gradient.
    """
    alpha = np.array([0.1, -0.3, 0.2])
    c = 15 / (8 * np.pi) / (3 * CORE**3) * alpha
    turns = np.array([[0.0, -c[2], c[1]], [c[2], 0.0, -c[0]], [-c[1], c[0], 0.0]])
    du = gradient(np.zeros((rows, 3)), np.tile(alpha / rows, (rows, 1)), at="grid")
    np.testing.assert_allclose(du, np.tile(turns, (rows, 1, 1)), rtol=0, atol=0.05 * np.abs(turns).max())


def test_the_flow_of_a_plane_ring_changes_across_its_plane() -> None:
    """Of 64 vortons on a circle of 1 m, whose flow goes through its plane.

    The spline that ends at the ring is 0.048 off; with points on one side of the plane alone it was 0.11.
    """
    angle = 2 * np.pi * np.arange(64) / 64
    x = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    alpha = 0.1 * np.stack([-np.sin(angle), np.cos(angle), 0 * angle], axis=1)
    exact, found = gradient(x, alpha), gradient(x, alpha, at="grid")
    assert np.sqrt(((found - exact) ** 2).sum() / (exact**2).sum()) < 0.06
