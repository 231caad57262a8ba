"""Runs that go on from a checkpoint beside a trajectory: the two belong to one run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.runs.surface_frames import surface_ticks

RING = {"kind": "vortex_ring", "name": "ring", "core": 0.3, "spacing": 0.3}
WORLD = {"world": {"dt": 0.02, "duration": 0.08}, "entity": [RING], "output": {"every": 2}}
LAST = "checkpoints/checkpoint-00000004.npz"


def run(out: Path, *settings: str, **more: Any) -> ef.Run:
    return ef.run(WORLD, *settings, out=str(out), progress=False, **more)


@pytest.mark.filterwarnings("ignore::ecs_fluid.FluidWarning")
@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("ring.circulation=2", "another ring: Position.x"),
        ("ring.spacing=0.2", "another ring: (CoreRadius.sigma|Position.x)"),
        ("ring.name=other", "no 'other' "),
        ("world.dt=0.01", "another time"),
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
        what = what if setting == "world.dt=0.01" else "another ring: |no 'ring' .is ring.vtkhdf missing"
    before = [frame.time for frame in own]
    with pytest.raises(ef.FluidError, match=rf"does not belong to the .* has ({what}).* at tick 4; put"):
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


def test_a_run_that_goes_on_has_the_frames_of_a_straight_one(tmp_path: Path) -> None:
    """It kept the one of an end between two others: movies and files by number then went out of step."""
    own, whole = run(tmp_path / "own", ticks=3), run(tmp_path / "whole", ticks=7)
    assert [frame.tick for frame in own] == [0, 2, 3]
    assert [frame.tick for frame in own.resume(3)] == [0, 2, 3]
    assert [frame.tick for frame in own.resume(5)] == [0, 2, 4, 5]
    longer = own.resume(7)
    assert [frame.tick for frame in longer] == [frame.tick for frame in whole] == [0, 2, 4, 6, 7]
    for frame, other in zip(longer, whole, strict=True):
        assert np.array_equal(frame["ring"]["Position.x"], other["ring"]["Position.x"])


def test_a_run_that_goes_on_has_the_surfaces_of_a_straight_one(tmp_path: Path) -> None:
    own = ef.run("drop_oscillates", out=str(tmp_path / "own"), ticks=2, progress=False)
    assert surface_ticks(RunFolder.open(own.path).fields) == {0, 2}
    own.resume(4)
    assert surface_ticks(RunFolder.open(own.path).fields) == {0, 4}


@pytest.mark.parametrize(("tick", "told"), [(1, "too coarse"), (3, "tick 3 (t = 0.04 s): too coarse")])
def test_what_stops_a_run_on_its_way_is_told_with_its_time(tmp_path: Path, tick: int, told: str) -> None:
    """After an hour it is not about the world as it began. What stops the first tick is."""

    class Stops(ef.System):
        phase = "rates"

        def process(self, dt: float) -> None:
            if self.world.tick + 1 == tick:
                raise ef.StorageError("too coarse")

    world = ef.load(WORLD)
    world.add_system(Stops())
    with pytest.raises(ef.StorageError) as error:
        ef.run(world, out=str(tmp_path / "run"), progress=False)
    assert str(error.value) == told
    assert ef.open_run(tmp_path / "run").status == "failed"
