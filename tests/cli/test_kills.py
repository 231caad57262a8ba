"""A hundred runs killed at random moments and continued: all end with the same bits."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ecs_fluid.io.runfolder import RunFolder

RUNS, TICKS = 100, 240
COMMAND = [sys.executable, "-c", "import sys; from ecs_fluid.cli import main; sys.exit(main())"]
WORLD = f"""
[world]
dt = 0.02
duration = {0.02 * TICKS}
precision = "single"
[fluid]
viscosity = 1e-3
velocity = {{ solver = "tree" }}
[[entity]]
kind = "vortex_ring"
name = "ring"
radius = 1.0
core = 0.25
spacing = 0.18
circulation = 3.0
[[entity]]
kind = "tracers"
name = "smoke"
fills = "ring"
cell = 0.08
[[entity]]
kind = "emitter"
name = "nozzle"
into = "sparks"
population = "tracers"
rate = 300.0
spread = [0.3, 0.3, 0.1]
[[system]]
kind = "age_limit"
seconds = 1.0
on = ["sparks"]
[output]
every = 4
checkpoint_seconds = 0.05
"""


def checkpoints(out: Path) -> set[str]:
    """Names of the checkpoints that there are."""
    return {path.name for path in (out / "checkpoints").glob("*.npz")}


def ended(out: Path, threads: int) -> bool:
    """Bring a run to its end, with kills at random moments; whether it went on from a checkpoint once.

    The first kill comes from 0.2 s (imports) to 3 s after the start, whatever goes on then. The second comes
    up to 1 s after the first new checkpoint: a busy machine may need a minute to get there.
    """
    draw, went_on = random.Random(out.name), False
    for attempt in range(50):
        begun = (out / "run.json").is_file() and any((out / "checkpoints").glob("*.npz"))
        went_on |= begun
        again = ["resume", str(out)] if begun else ["run", "world.toml", "--out", str(out), "--replace"]
        process = subprocess.Popen(
            [*COMMAND, *again, "--threads", str(threads)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        if attempt == 1:
            former = checkpoints(out)
            until = time.monotonic() + 300.0
            while process.poll() is None and checkpoints(out) <= former and time.monotonic() < until:
                time.sleep(0.001)
        until = time.monotonic() + (draw.uniform(0.2, 3.0), draw.uniform(0.0, 1.0), 300.0)[min(attempt, 2)]
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), errors.decode()
        if process.returncode == 0:
            return went_on
    raise AssertionError(f"{out} did not end")


@pytest.mark.nightly
def test_a_hundred_killed_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kills each; threads 1 and 2 in turn."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "world.toml").write_text(WORLD)
    subprocess.run([*COMMAND, "run", "world.toml", "--out", "whole"], check=True, capture_output=True)
    whole = RunFolder.open(tmp_path / "whole")
    expected = whole.read_info()["state_hash"]
    continued = 0
    for number in range(RUNS):
        out = tmp_path / f"run{number}"
        went_on = ended(out, 1 + number % 2)
        run = RunFolder.open(out)
        assert run.read_info()["state_hash"] == expected, number
        assert list(run.read_trajectory().ticks) == list(whole.read_trajectory().ticks)
        continued += went_on
        for file in sorted(out.rglob("*"), reverse=True):
            os.remove(file) if file.is_file() else os.rmdir(file)
    assert continued > RUNS / 4, f"only {continued} of {RUNS} runs were continued from a checkpoint"
