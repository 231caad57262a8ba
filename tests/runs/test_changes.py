"""Runs that go on with other values from a checkpoint on: `resume --set`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.cli import main
from ecs_fluid.errors import FluidError
from ecs_fluid.runs.runner import Runner

WORLD = """
[world]
dt = 0.5
duration = 3.0

[fluid]
gravity = [0.0, 0.0, -9.0]

[[entity]]
kind = "tracers"
name = "dust"
points = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]

[[system]]
kind = "wind"
velocity = [1.0, 0.0, 0.0]

[[system]]
kind = "wind"
velocity = [0.0, 0.0, 0.0]
on = ["dust"]
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two of six ticks of dust in a wind of 1 m/s along x."""
    (tmp_path / "dust.toml").write_text(WORLD, encoding="utf-8")
    ef.run(tmp_path / "dust.toml", ticks=2, out=tmp_path / "run", progress=False)
    return tmp_path / "run"


def moved(run: Path) -> list[tuple[float, float, float]]:
    """How far the dust has moved since the start, m, in each stored frame."""
    frames = [frame["dust"]["Position.x"] for frame in ef.open_run(run)]
    return [tuple((x - frames[0]).mean(axis=0).round(5).tolist()) for x in frames]


def test_a_run_goes_on_with_other_values_from_its_checkpoint_on(run: Path) -> None:
    """1 m/s for two ticks of 0.5 s, then 2 m/s along y, also after the next resume; bits as set in Python."""
    by_hand = ef.resume(newest(run))
    by_hand.system(ef.WindSystem).velocity = (0.0, 2.0, 0.0)
    by_hand.set_fluid(gravity=(0.0, -3.0, 0.0))
    by_hand.step(2)
    before = ef.open_run(run).info["state_hash"]
    settings = ["system.wind.velocity=[0, 2, 0]", "fluid.gravity=[0, -3, 0]"]
    assert main(["resume", str(run), "--ticks", "4", "--set", settings[0], "--set", settings[1]]) == 0
    told = ef.open_run(run)
    assert told.info["state_hash"] == by_hand.state_hash() != before
    assert told.info["stretches"][-1]["settings"] == [
        "system.wind.velocity=[0, 2, 0]",
        "fluid.gravity=[0, -3, 0]",
    ]
    assert told.resume(5, progress=False).info["ticks"] == 5
    assert moved(run) == [(0, 0, 0), (0.5, 0, 0), (1, 0, 0), (1, 1, 0), (1, 2, 0), (1, 3, 0)]
    again = ef.resume(newest(run))
    assert again.recipe is not None and again.recipe["system"][0]["velocity"] == [0, 2, 0]
    np.testing.assert_array_equal(again.gravity, [0.0, -3.0, 0.0])


def newest(run: Path) -> Path:
    return max((run / "checkpoints").iterdir(), key=lambda path: path.name)


def test_the_length_of_a_run_can_be_set(run: Path) -> None:
    again = ef.open_run(run).resume(None, "world.duration=2.0", progress=False)
    assert (again.info["ticks"], again.info["plan"]["last_tick"]) == (4, 4)
    longer = again.resume(5, "world.duration=9.0", "output.checkpoint_seconds=7", progress=False)
    assert (longer.info["ticks"], longer.info["plan"]["checkpoint_seconds"]) == (5, 7.0)


def test_what_was_set_is_told_and_stays_where_the_run_is_killed_before_its_next_checkpoint(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job, _ = Runner.resume(run, 6, settings=("system.wind.velocity.x=4",))

    def fails(world: ef.World, last: int) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job.execute(fails)
    assert ef.resume(newest(run)).tick == 2
    assert ef.open_run(run).resume(6, progress=False).info["ticks"] == 6
    assert moved(run)[-1] == (1.0 + 4 * 2.0, 0.0, 0.0)
    assert main(["info", str(run)]) == 0
    said = capsys.readouterr().out
    assert said.count("from tick 2 ") == 1 and "system.wind.velocity.x=4" in said


def test_the_world_file_of_the_run_has_what_was_set_beside_colours_that_were_edited(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = run / "world.toml"
    file.write_text(file.read_text(encoding="utf-8") + '\n[output]\nlook = "paper"\n', encoding="utf-8")
    assert main(["resume", str(run), "--ticks", "3", "--set", "system.1.velocity.y=50"]) == 0
    text = file.read_text(encoding="utf-8")
    assert "50" in text and 'look = "paper"' in text
    assert main(["resume", str(run), "--ticks", "4"]) == 0
    assert moved(run)[-1] == (2.0, 50.0, 0.0)  # two winds add up: 50 m/s for two ticks of 0.5 s
    assert "was edited" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("world.dt=0.1", r"\[world\] dt cannot change while a run goes on, since times are ticks times dt"),
        ("world.precision=double", r"\[world\] precision cannot change while a run goes on; parameters of"),
        ("output.every=2", r"\[output\] every cannot change"),
        ("dust.per_cell=8", r"\[\[entity\]\] 'dust' cannot change while a run goes on, since"),
        ("fluid.viscosity=0.1", "whether there is a system 'diffusion' cannot change"),
        ("system.accelerate.acceleration=[1,0,0]", "whether there is a system 'accelerate' cannot change"),
        ("system.wind.velosity=3", "did you mean 'velocity'"),
        ("system.wind.velocity=fast", "velocity"),
        ("fluid.viscosity=-1", "viscosity = -1; a number at least 0.0 is needed"),
        ("wind=3", "write NAME.wind="),
    ],
)
def test_what_cannot_change_is_refused_and_nothing_is_written(run: Path, setting: str, words: str) -> None:
    files = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(FluidError, match=words):
        ef.open_run(run).resume(4, setting, progress=False)
    assert all(path.read_bytes() == held for path, held in files.items())


def test_a_world_made_in_python_has_no_file_to_set(tmp_path: Path) -> None:
    world = ef.World(dt=0.5)
    world.spawn("dust", ef.Position([[0.0, 0.0, 0.0]]))
    world.add_system(ef.WindSystem(velocity=(1.0, 0.0, 0.0)))
    made = ef.run(world, ticks=1, out=tmp_path / "made", progress=False)
    with pytest.raises(FluidError, match="was made in Python, without a file whose values could be set"):
        made.resume(2, "system.wind.velocity.x=0", progress=False)
