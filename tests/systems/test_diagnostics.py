"""What records advise."""

from __future__ import annotations

import warnings

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
    record = world.diagnostics() | {"overlap": overlap, "vortons": 9}
    assert told in diagnostics.advice(record).get("overlap", "")
    assert ("overlap" in diagnostics.advice(record)) == bool(told)
    # Of eight each is a vortex of its own, such as the points of a pair in a plane.
    assert diagnostics.advice(record | {"vortons": 8}) == {}


@pytest.mark.parametrize("many", [False, True])
def test_too_long_a_step_is_told_once_and_by_the_first_tick(many: bool) -> None:
    """Of up to `pair_limit` vortons before it, of more after it: records, every tenth tick, came too late."""
    world = ef.load("vortex_ring", "smoke.per_cell=1", "ring.circulation=500", "fluid.diagnostics.every=2")
    limit = 10 if many else 4000
    diagnostics = world.system(ef.DiagnosticsSystem)
    assert diagnostics is not None
    diagnostics.pair_limit = limit
    assert any("paths are not resolved in time" in text for text in world.lint()) == (not many)
    with warnings.catch_warnings(record=True, action="always", category=ef.FluidWarning) as caught:
        world.step(1)
    told = [text for each in caught if "paths are not resolved in time" in (text := str(each.message))]
    assert len(told) == 1 and told[0].startswith("t = ") == many
    with warnings.catch_warnings(record=True, action="always", category=ef.FluidWarning) as caught:
        world.step(4)
    assert sum("paths are not resolved in time" in str(each.message) for each in caught) == (not many)
