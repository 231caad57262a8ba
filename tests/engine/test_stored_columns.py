"""What a frame of a run holds."""

from __future__ import annotations

import numpy as np

import ecs_fluid as ef
from ecs_fluid.runs.runner import stored_columns


def test_bodies_are_stored_with_place_pose_motion_and_shape() -> None:
    """Places have the name that every stored frame needs; mass and inertia, which do not change, stay out."""
    world = ef.World(precision="double")
    q = np.array([[0.5, 0.5, 0.5, 0.5], [1.0, 0.0, 0.0, 0.0]])
    world.spawn(
        "balls",
        ef.Pose([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], q),
        ef.RigidMotion([[0.1, 0.0, 0.0]] * 2, [[0.0, 0.2, 0.0]] * 2),
        ef.Body([1.0, 1.0], np.tile(np.eye(3), (2, 1, 1)), [2, 2], [0.0, 0.0], [0.5, 0.5]),
        ef.BallShape([0.3, 0.4]),
    )
    world.spawn("dust", ef.Position([[7.0, 8.0, 9.0]]))
    stored = stored_columns(world)
    assert set(stored["dust"]) == {"Position.x", "RowId.id"}
    balls = stored["balls"]
    assert set(balls) == {
        "BallShape.radius",
        "Position.x", "Pose.q", "RigidMotion.v", "RigidMotion.angular_velocity", "RowId.id",
    }  # fmt: skip
    np.testing.assert_array_equal(balls["Position.x"], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    np.testing.assert_array_equal(balls["Pose.q"], q)
    np.testing.assert_array_equal(balls["BallShape.radius"], [0.3, 0.4])
