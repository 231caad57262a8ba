"""What a frame of a run holds."""

from __future__ import annotations

from pathlib import Path

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


def test_columns_are_stored_in_one_order(tmp_path: Path) -> None:
    """A world that goes on from a checkpoint has its tables in another order; its frames are the same."""
    world = ef.load("curve_ball")
    world.step()
    world.save(tmp_path / "ball.npz")
    again = ef.resume(tmp_path / "ball.npz")
    world.step()
    again.step()
    frames = [
        [(name, label) for name, columns in stored_columns(w).items() for label in columns]
        for w in (world, again)
    ]
    assert frames[0] == frames[1]
