"""How far a run is, where no bar can be drawn."""

from __future__ import annotations

import io
import types
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

import ecs_fluid as ef
from ecs_fluid.api import progress
from ecs_fluid.api.progress import RunBar
from ecs_fluid.cli import main
from ecs_fluid.runs.runner import Runner


def told(monkeypatch: pytest.MonkeyPatch, seconds: float, last: int, start: int = 0) -> list[str]:
    """Lines of a run whose first tick takes 100 s, and every other `seconds`."""
    now = 0.0
    clock = types.SimpleNamespace(monotonic=lambda: now, perf_counter=lambda: now)
    monkeypatch.setattr(progress, "time", clock)
    world = ef.World(dt=0.5)
    text = io.StringIO()
    stand_in: Any = types.SimpleNamespace(
        world=types.SimpleNamespace(tick=start, time=0.5 * start, entities=world.entities), last_tick=last
    )
    bar = RunBar(cast("Runner", stand_in), Console(file=text, width=200))
    for tick in range(start + 1, last + 1):
        now += 100.0 if tick == start + 1 else seconds
        stand_in.world.tick, stand_in.world.time = tick, 0.5 * tick
        bar.tick(stand_in.world)
    return text.getvalue().splitlines()


def test_a_log_has_a_line_for_the_start_each_tenth_and_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 41 ticks the first takes 100 s, so it is told at once; tenths are done with ticks 5, 9, 13, ...

    The rate leaves out the first tick: one tick in 2 s, so after tick 9 there are (41 - 9) 2 s = 64 s left.
    """
    lines = told(monkeypatch, 2.0, 41)
    assert lines[0] == "simulating up to tick 41: 0 vortons, 0 other particles"
    assert lines[1] == "tick 1 of 41, t = 0.5 s, 0 vortons, 0 other particles"
    assert lines[3] == "tick 9 of 41, t = 4.5 s, 0.5 ticks/s, 1 min 4 s left, 0 vortons, 0 other particles"
    assert lines[-1] == "tick 41 of 41, t = 20.5 s, 0.5 ticks/s, 0 vortons, 0 other particles"
    ticks = [int(line.split()[1]) for line in lines[1:]]
    assert ticks == [1, *(-(-41 * k // 10) for k in range(1, 11))]


def test_slow_ticks_are_told_each_half_minute_and_fast_ones_each_second_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = [int(line.split()[1]) for line in told(monkeypatch, 12.0, 1000, start=990)[1:]]
    assert slow == [991, 994, 997, 1000]  # 30 s are over after three ticks
    fast = [int(line.split()[1]) for line in told(monkeypatch, 0.011, 1000)[1:]]
    assert fast == [1, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]  # a tenth takes 1.1 s
    faster = [int(line.split()[1]) for line in told(monkeypatch, 0.006, 1000)[1:]]
    assert faster == [1, 168, 335, 502, 669, 836, 1000]  # 1 s is 167 ticks, and by then another tenth is done


def test_quiet_runs_show_no_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["run", "vortex_ring", "--set", "smoke.per_cell=1", "--ticks", "1", "--out"]
    assert main([*run, "loud"]) == 0 and "simulating up to tick 1:" in capsys.readouterr().err
    assert main([*run, "quiet", "--quiet"]) == 0
    said = capsys.readouterr()
    assert not said.err and said.out.startswith("finished: tick 1 of 1")
    assert main(["resume", "quiet", "--ticks", "2", "--quiet"]) == 0 and not capsys.readouterr().err
