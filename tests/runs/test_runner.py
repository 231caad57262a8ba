"""Runs that go on from a checkpoint beside a trajectory: the two belong to one run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef

RING = {"kind": "vortex_ring", "name": "ring", "core": 0.3, "spacing": 0.3}
WORLD = {"world": {"dt": 0.02, "duration": 0.08}, "entity": [RING], "output": {"every": 2}}
LAST = "checkpoints/checkpoint-00000004.npz"


def run(out: Path, *settings: str, **more: Any) -> ef.Run:
    return ef.run(WORLD, *settings, out=str(out), progress=False, **more)


@pytest.mark.filterwarnings("ignore::ecs_fluid.FluidWarning")
@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("ring.circulation=2", "ring: Position.x"),
        ("ring.spacing=0.2", "ring: CoreRadius.sigma|ring: Position.x"),
        ("ring.name=other", "other: Position.x|other: CoreRadius.sigma"),
        ("world.dt=0.01", "time"),
    ],
)
@pytest.mark.parametrize("part", ["checkpoint", "trajectory"])
def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path, setting: str, what: str, part: str) -> None:
    """Its flow went on after the frames of the other; with another dt no frame could be read afterwards."""
    own, other = run(tmp_path / "own"), run(tmp_path / "other", setting, ticks=4)
    if part == "checkpoint":
        shutil.copy(other.path / LAST, own.path / LAST)
    else:
        shutil.rmtree(own.path / "trajectory")
        shutil.copytree(other.path / "trajectory", own.path / "trajectory")
        what = what if setting == "world.dt=0.01" else "ring: "
    before = [frame.time for frame in own]
    with pytest.raises(ef.FluidError, match=rf"is not of the run .* has another ({what}).* at tick 4; put"):
        own.resume(6)
    assert [frame.time for frame in ef.open_run(own.path)] == before
    (own.path / LAST).unlink()  # as the sentence says
    if part == "checkpoint":
        again = own.resume(6)
        assert again.times.tolist() == pytest.approx([0.0, 0.04, 0.08, 0.12], abs=1e-12)
        whole = run(tmp_path / "whole", ticks=6)
        assert np.array_equal(again[-1]["ring"]["Position.x"], whole[-1]["ring"]["Position.x"])


def test_without_its_trajectory_a_run_goes_on_with_a_new_one(tmp_path: Path) -> None:
    own = run(tmp_path / "own")
    shutil.rmtree(own.path / "trajectory")
    assert own.resume(6).times.tolist() == pytest.approx([0.08, 0.12], abs=1e-12)
