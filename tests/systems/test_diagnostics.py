"""What records advise."""

from __future__ import annotations

import pytest

import ecs_fluid as ef


@pytest.mark.parametrize(
    ("overlap", "told"),
    [
        (1.45, "1.03 times finer"),
        (0.75, "2 times finer"),
        (1.6, ""),
        (1.492, "1.01 times finer"),
        (1.499, ""),
    ],
)
def test_a_small_overlap_is_told_by_how_much(overlap: float, told: str) -> None:
    """From 1.45 to 1.5 it was "1 times finer", and from 1.495 on "overlap 1.50 is below 1.5"."""
    world = ef.World()
    diagnostics = world.add_system(ef.DiagnosticsSystem())
    assert isinstance(diagnostics, ef.DiagnosticsSystem)
    record = world.diagnostics() | {"overlap": overlap}
    assert told in diagnostics.advice(record).get("overlap", "")
    assert ("overlap" in diagnostics.advice(record)) == bool(told)
