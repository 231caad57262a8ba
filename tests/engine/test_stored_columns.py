"""What a frame of a run holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.exports.names import plain_names
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


@pytest.mark.parametrize("method", ["explicit", "implicit"])
def test_frames_have_the_pressure_of_a_liquid(method: str, tmp_path: Path) -> None:
    """A pool at rest: 0 before the first tick, then that of the world in memory, bit for bit, rho g depth.

    Within 8 % of rho g H after ten ticks, the gate of other pools. Checkpoints do not hold what is derived,
    and the run goes on all the same.
    """
    tables: Any = {
        "world": {"dt": 0.01, "duration": 0.1, "integrator": "euler"},
        "entity": [
            {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [0.4, 0.4, 0.6]}},
            {
                "kind": "liquid", "name": "water", "fills": "tank", "level": 0.1, "spacing": 0.05,
                "hydrostatic": True,
            },
        ],
        "system": [{"kind": "sph", "pressure": method}],
    }  # fmt: skip
    world = ef.load(tables)
    run = ef.run(tables, out=tmp_path / "pool", progress=False)
    world.step(10)
    assert not run[0]["water"]["LiquidState.pressure"].any()
    water = run[-1]["water"]
    np.testing.assert_array_equal(
        water["LiquidState.pressure"], world["water"][ef.LiquidState].pressure, strict=True
    )
    depth = 0.1 - water["Position.x"][:, 2]
    assert np.abs(water["LiquidState.pressure"] - 9810 * depth).max() < 0.08 * 9810 * 0.4
    assert run.info["columns"]["LiquidState.pressure"]["unit"] == "Pa"
    world.step(2)
    np.testing.assert_array_equal(
        run.resume(12)[-1]["water"]["LiquidState.pressure"], world["water"][ef.LiquidState].pressure
    )
    labels = [label for label in run[-1]["water"] if label != "LiquidPressure.pressure"]
    assert plain_names(labels)["LiquidState.pressure"] == "pressure"
