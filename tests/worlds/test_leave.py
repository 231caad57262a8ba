"""A WorldRecipe made from a stranger's data imports nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import ecs_fluid as ef
from ecs_fluid.errors import RecipeError
from ecs_fluid.system import System


def test_a_recipe_in_python_runs_no_module_without_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "strange_door.py").write_text("raise SystemExit('ran')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    ring = ef.load("vortex_ring").recipe
    assert ring is not None
    with pytest.raises(RecipeError, match="'strange_door:Door' would run your own code"):
        ef.load(ef.WorldRecipe(entity=ring["entity"], system=({"kind": "strange_door:Door"},)))
    assert "strange_door" not in sys.modules


def test_a_kind_that_ships_keeps_its_meaning() -> None:
    """Also when a system of the user's own has the same short name, which nobody asked for."""
    mine = type(
        "Wind", (ef.System,), {"__annotations__": {"speed": float}, "speed": 1.0, "__module__": "mine"}
    )
    try:
        recipe = {"kind": "wind", "velocity": (1.0, 0.0, 0.0)}
        ring = ef.load("vortex_ring").recipe
        assert ring is not None
        world = ef.load(ef.WorldRecipe(entity=ring["entity"], system=(recipe,)))
        assert world.system(ef.WindSystem) is not None
    finally:
        System.registry.pop(mine.path())
