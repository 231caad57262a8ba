"""Broad phase: containers that a place is far outside of are told by the balls around them."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.bodies.rotation import matrix_of, quaternion_of
from ecs_fluid.kernels.bodies.table import CONTAINER
from ecs_fluid.kernels.collision.broad_phase import far_outside
from ecs_fluid.kernels.collision.swept_bodies import Obstacles, obstacles
from ecs_fluid.kernels.collision.swept_contact import contains
from ecs_fluid.kernels.compiled.vector3 import row_of
from ecs_fluid.worlds.shapes import PlatonicShape, WedgeShape

Array = np.ndarray
CENTER, TURN = np.array([3.0, -1.0, 2.0]), np.array([0.4, -0.7, 1.1])


@njit(error_model="numpy")
def _both(found: Obstacles, hulls: Hulls, x: Array, slack: float, out: Array) -> None:
    for row in range(len(x)):
        out[row, 0] = far_outside(found, hulls, 0, row_of(x, row), slack)
        out[row, 1] = contains(found, hulls, 0, 0.0, row_of(x, row), slack)


def told(shape: PlatonicShape | WedgeShape, x: Array, slack: float) -> tuple[Array, Array]:
    """(Far outside, contained) of places x (n, 3) m in the axes of a container that moves in the tick."""
    hulls = shape.hull().table
    poses = [(CENTER + shift, quaternion_of(angle * TURN)) for shift, angle in ((0.0, 1.0), (2.0, 1.5))]
    former, present = ((center[None], q[None]) for center, q in poses)
    one = np.array([0])
    found = obstacles(
        former, present, (np.zeros((1, 3)),) * 2, one + CONTAINER, hulls.radius.copy(), one, hulls, 0.0
    )
    out = np.empty((len(x), 2), bool)
    _both(found, hulls, CENTER + x @ matrix_of(poses[0][1]).T, slack, out)
    return out[:, 0], out[:, 1]


@pytest.mark.parametrize("slack", [1e-6, 0.3])
def test_a_tetrahedron_whose_planes_move_out_grows_by_slack_over_inner(slack: float) -> None:
    """All its planes are at 1/3 of the radius of its ball, so that the bound is reached at its corners."""
    shape = PlatonicShape(shape="tetrahedron", radius=1.0)
    hulls = shape.hull().table
    assert hulls.radius[0] == pytest.approx(3.0 * hulls.inner[0])
    corners = (1.0 + slack / hulls.inner[0]) * hulls.vertices
    near = 1e-2 * slack
    for factor, inside in ((1.0 - near, True), (1.0 + near, False)):
        far, contained = told(shape, factor * corners, slack)
        assert (contained == inside).all() and (far != inside).all()


@pytest.mark.parametrize("slack", [0.0, 1e-6, 0.05, 2.0])
def test_no_container_that_holds_a_place_is_far(slack: float) -> None:
    """Of a sharp wedge the corners move out by many times the slack."""
    shape = WedgeShape(length=3.0, width=0.5, height=0.1)
    hulls = shape.hull().table
    draw, reach = np.random.default_rng(1), (1.0 + slack / hulls.inner[0]) * hulls.radius[0]
    ways = draw.normal(size=(4000, 3))
    x = reach * draw.uniform(0.0, 2.0, (4000, 1)) * ways / np.linalg.norm(ways, axis=1, keepdims=True)
    far, contained = told(shape, x, slack)
    assert not (far & contained).any() and contained.any()
    assert (far == (np.linalg.norm(x, axis=1) > reach)).all()
