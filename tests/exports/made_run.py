"""A small run whose every number has a formula: particles that come and go, a turning box, two balls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ecs_fluid.cli import main
from ecs_fluid.io.fields import append_field
from ecs_fluid.io.runfolder import RunFolder

FRAMES = 11
STEP = 0.04
"""Time between frames, s; four ticks of 0.01 s."""

SIZE = np.array([0.4, 0.6, 0.8])
SPIN, DRIFT = 2.0, np.array([1.0, 0.0, 0.5])
"""The box turns about z [rad/s] and drifts [m/s]."""

CORNERS = 0.5 * SIZE * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
FACES = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
"""Of the box, counter-clockwise seen from outside; corner 4 x + 2 y + z."""


GRID = 0.05
BALL_CENTER = np.array([0.3, -0.2, 1.0])
"""Spacing of the distances in the run with a liquid, m, and the centre of its growing ball."""


def time_of(frame: int) -> float:
    return STEP * frame


def box_place(time: float) -> np.ndarray:
    return np.array([0.0, 0.0, 2.0]) + DRIFT * time


def box_turn(time: float) -> np.ndarray:
    c, s = np.cos(SPIN * time), np.sin(SPIN * time)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def box_vertices(time: float) -> np.ndarray:
    """Corners (8, 3) of the box in the world, m."""
    return box_place(time) + CORNERS @ box_turn(time).T


def frame_of(number: int) -> dict[str, dict[str, np.ndarray]]:
    """All populations of a frame: 40 vortons, a cloud of 10 x number tracers, a box, one or two balls."""
    time = time_of(number)
    angle = 2 * np.pi * np.arange(40) / 40
    ring = np.stack([np.cos(angle), np.sin(angle), np.full(40, time)], axis=1)
    strength = 0.1 * np.stack([-np.sin(angle), np.cos(angle), 0.01 * angle], axis=1)
    ids = np.arange(100 + 5 * number, 100 + 15 * number)  # the five oldest die, fifteen are born
    place = np.random.default_rng(7).uniform(-1, 1, (300, 3))[ids - 100]
    half = 0.5 * SPIN * time
    balls = 2 if number < 4 else 1
    return {
        "ring": {
            "Position.x": ring.astype(np.float32),
            "Strength.alpha": strength.astype(np.float32),
            "CoreRadius.sigma": np.full(40, 0.2, np.float32),
            "Volume.volume": np.full(40, 1e-3, np.float32),
            "Velocity.u": np.tile(np.float32([0.0, 0.0, 1.0]), (40, 1)),
            "RowId.id": np.arange(40),
        },
        "smoke": {
            "Position.x": (place + np.array([0.0, 0.0, time])).astype(np.float32),
            "Velocity.u": np.tile(np.float32([0.1, 0.2, 1.0]), (len(ids), 1)),
            "Temperature.T": (300 + ids).astype(np.float32),
            "Species.smoke": (ids / 1000).astype(np.float32),
            "RowId.id": ids,
        },
        "box": {
            "Position.x": box_place(time)[None],
            "Pose.q": np.array([[np.cos(half), 0.0, 0.0, np.sin(half)]]),
            "RigidMotion.v": DRIFT[None],
            "RigidMotion.angular_velocity": np.array([[0.0, 0.0, SPIN]]),
            "HullShape.hull": np.array([0]),
            "HullShape.container": np.array([0]),
            "RowId.id": np.array([1000]),
        },
        "balls": {
            "Position.x": np.array([[2.0, time, 0.0], [0.0, 3.0, time]])[:balls],
            "Pose.q": np.tile([1.0, 0.0, 0.0, 0.0], (balls, 1)),
            "RigidMotion.v": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])[:balls],
            "RigidMotion.angular_velocity": np.zeros((balls, 3)),
            "BallShape.radius": np.array([0.25, 0.5])[:balls],
            "RowId.id": np.array([1001, 1002])[:balls],
        },
    }


def hull_table() -> dict[str, np.ndarray]:
    """The box as checkpoints hold it, as far as an export reads it."""
    return {
        "box/HullTable.vertices": CORNERS,
        "box/HullTable.loops": np.concatenate(FACES),
        "box/HullTable.loop_start": np.arange(0, 25, 4),
        "box/HullTable.plane_start": np.array([0, 6]),
        "box/HullTable.vertex_start": np.array([0, 8]),
    }


def make_run(path: Path, frames: int = FRAMES, recipe: str = "") -> Path:
    """Write a run folder as the runner does, without simulating."""
    with RunFolder.create(path, recipe, {"world": "made up"}) as run:
        with run.write_trajectory() as trajectory:
            for number in range(frames):
                trajectory.append(4 * number, time_of(number), frame_of(number))
        run.save_checkpoint(4 * (frames - 1), {}, hull_table())
    return path


def radius(frame: int) -> float:
    """Of the ball of liquid, m."""
    return 0.4 + 0.1 * frame


def make_liquid_run(path: Path) -> Path:
    """Frame 0 has particles but no surface yet; frames 1 and 2 have one, of radius 0.5 and 0.6 m."""
    axes = [np.arange(36) * GRID + start for start in BALL_CENTER - 0.875]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    cloud = np.random.default_rng(2).uniform(-0.4, 0.4, (200, 3)) + BALL_CENTER
    with RunFolder.create(path, "", {}) as run, run.write_trajectory() as trajectory:
        for frame in range(3):
            water = {"Position.x": cloud, "Velocity.u": np.tile([1.0, 2.0, 3.0], (200, 1))}
            trajectory.append(frame, 0.1 * frame, {"water": water})
            if frame:
                phi = np.linalg.norm(x - BALL_CENTER, axis=-1) - radius(frame)
                spacing = np.full(3, GRID)
                append_field(run.fields, "sdf", frame, 0.1 * frame, x[0, 0, 0], spacing, {"phi": phi})
    return path


def make_two_liquids(path: Path, colors: list[str]) -> Path:
    """One frame of two liquids in these colours, at -1 and 1 m/s along x: cubes of 4 m, 0.5 m around their
    outermost particles, side by side about the origin; and a drop of the second at x = 20 m."""
    cube = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3) - 1.5
    recipe = "".join(
        f'[[entity]]\nkind = "liquid"\nname = "water{k}"\ncolor = "{color}"\n'
        for k, color in enumerate(colors)
    )
    aside = np.array([2.0, 0.0, 0.0])
    places = [cube - aside, np.append(cube + aside, [[20.0, 0.0, 0.0]], axis=0)]
    with RunFolder.create(path, recipe, {}) as run, run.write_trajectory() as trajectory:
        liquids = {
            f"water{k}": {
                "Position.x": x,
                "Velocity.u": np.tile([2.0 * k - 1.0, 0.0, 0.0], (len(x), 1)),
                "Liquid.volume": np.ones(len(x)),
                "Liquid.mass": np.full(len(x), 1000.0),
            }
            for k, x in enumerate(places)
        }
        trajectory.append(0, 0.0, liquids)
    return path


def files_of(folder: Path) -> list[Path]:
    """All files in a folder, however deep."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def is_refused(run: Path, command: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with code 2 and one sentence that has this in it, and leaves nothing behind."""
    before = files_of(run)
    assert main([word.format(run=run) for word in command]) == 2
    text = capsys.readouterr().err
    assert sentence.format(run=run) in text
    assert text.startswith("error: ") and text.count("\n") == 1
    assert files_of(run) == before
