"""Closed-form distances: validation case 98."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ecs_fluid.kernels.surface import shapes

Shape = Callable[[np.ndarray], np.ndarray]
A, B = np.array([-0.3, 0.1, 0.2]), np.array([0.4, -0.2, 0.5])
N = np.array([1.0, 2.0, -2.0])

SHAPES: dict[str, Shape] = {
    "sphere": lambda x: shapes.sphere(x, A, 0.6),
    "box": lambda x: shapes.box(x, A, (1.0, 0.7, 0.4)),
    "torus": lambda x: shapes.torus(x, A, 0.6, 0.25),
    "plane": lambda x: shapes.plane(x, A, N),
    "union": lambda x: shapes.union(shapes.sphere(x, A, 0.3), shapes.sphere(x, B, 0.25)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_foot_point_lies_on_the_surface(name: str) -> None:
    """Case 98: |grad phi| = 1, so x - phi(x) grad phi(x) is on the surface, and along the way phi falls
    linearly; with the gradient by a complex-free central difference this holds to the difference's h^2."""
    shape = SHAPES[name]
    x = np.random.default_rng(3).uniform(-1.5, 1.5, (4000, 3))
    h = 1e-5
    step = h * np.eye(3)
    gradient = np.stack([(shape(x + e) - shape(x - e)) / (2 * h) for e in step], axis=-1)
    smooth = np.abs(np.linalg.norm(gradient, axis=-1) - 1.0) < 1e-6
    # Off the medial axis, which a difference over 2e-5 m straddles for a few points in 10,000 only.
    assert smooth.mean() > 0.995
    outside = smooth & (shape(x) > 0)
    foot = x - shape(x)[:, None] * gradient
    # The gradient's error is h^2 / distance^2, so the foot is off by 1e-10 / 1e-2.
    assert np.abs(shape(foot)[outside & (shape(x) > 1e-2)]).max() < 1e-7


def test_known_points() -> None:
    """Case 98 to 1e-12, at points whose distance follows from Pythagoras."""
    known = [
        (shapes.sphere([[3.0, 4.0, 0.0]], (0, 0, 0), 1.0), 4.0),
        (shapes.box([[2.0, 2.5, 0.0]], (0, 0, 0), (2, 1, 2)), np.sqrt(1.0 + 4.0)),
        (shapes.box([[0.9, 0.0, 0.0]], (0, 0, 0), (2, 4, 4)), -0.1),
        (shapes.torus([[0.0, 0.0, 0.3]], (0, 0, 0), 0.4, 0.1), 0.4),
        (shapes.plane([[1.0, 1.0, 1.0]], (0, 0, 0), N), 1.0 / 3.0),
    ]
    for found, wanted in known:
        assert abs(float(found[0]) - wanted) < 1e-12
