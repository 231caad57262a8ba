"""``ecs-fluid bench velocity``: the table, and the times that ``auto`` chooses by."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ecs_fluid.cli import main
from ecs_fluid.cli.bench import _store
from ecs_fluid.errors import FluidWarning
from ecs_fluid.systems.velocity import solver_bench, solver_times


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    """One line per solver; direct in single precision is within 1e-6 of itself in double."""
    assert main(["bench", "velocity", "--sizes", "300", "--no-calibrate"]) == 0
    told = capsys.readouterr()
    assert not told.err  # no advice on the world that is measured
    lines = [line.split() for line in told.out.splitlines()]
    rows = {line[1]: line for line in lines if line[0] == "300"}
    assert set(rows) == {"direct", "tree", "fmm", "pppm", "poisson", "hybrid", "auto"}
    assert float(rows["direct"][-3]) < 1e-6
    assert float(rows["hybrid"][-3]) < 0.1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--sizes", "7"], '"(7,)" for --sizes. Must be >= 100.'),
        (["--sizes", "1000.5"], "--sizes 1000.5: a whole number is needed"),
        (["--sizes", "300", "--sizes", "-0.4"], "--sizes -0.4: a whole number is needed"),
        (["--sizes", "nan"], "--sizes nan"),
        (["--threads", "1.5"], "--threads 1.5: a whole number is needed"),
        (["--tolerance", "2"], '"2.0" for --tolerance. Must be <= 1.'),
        (["--sizes", "many"], "many"),
    ],
)
def test_wrong_arguments(arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "velocity", *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert word in said
    assert len(said.splitlines()) == 1


def test_only_what_was_asked_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Sizes alone ask for the table; what `auto` chooses by takes all sizes, and misses are no warnings."""
    calls: list[Any] = []

    def calibrate(precision: str, say: Any) -> Any:
        warnings.warn("the tolerance is not kept", FluidWarning, stacklevel=1)
        calls.append("calibrate")
        return np.full(solver_times.SHAPE, 0.125)

    monkeypatch.setattr(solver_times, "stored_path", lambda: tmp_path / "solver_times.json")
    monkeypatch.setattr(solver_bench, "calibrate", calibrate)
    monkeypatch.setattr(solver_bench, "table", lambda sizes, *rest: calls.append(sizes) or [])
    for words in (["--sizes", "500"], ["--sizes", "500", "--calibrate"], []):
        assert main(["bench", "velocity", *words]) == 0
    assert calls == [(500,), "calibrate", (500,), "calibrate", (1000, 4000, 16000, 64000)]
    assert capsys.readouterr().err == ""


def test_measured_times_replace_those_that_ship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One precision at a time; a damaged file is passed over."""
    monkeypatch.setattr(solver_times, "stored_path", lambda: tmp_path / "folder" / "solver_times.json")
    solver_times.stored.cache_clear()
    try:
        shipped = solver_times.stored("single").copy()
        ours = np.full(solver_times.SHAPE, 0.125)
        path = _store("single", ours)
        assert np.array_equal(solver_times.stored("single"), ours)
        assert not np.array_equal(solver_times.stored("double"), ours)
        _store("double", 2 * ours)
        assert set(json.loads(path.read_text())) == {"single", "double"}
        path.write_text("{]")
        solver_times.stored.cache_clear()
        assert np.array_equal(solver_times.stored("single"), shipped)
    finally:
        solver_times.stored.cache_clear()
