"""Limits: what a file asks for is counted before it is made, and everybody can set what is allowed."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.systems.shared.body_pairs import most_pairs
from ecs_fluid.world_files import read_tables
from tests.small_worlds import RING


@pytest.fixture(autouse=True)
def former() -> Iterator[None]:
    """Limits are the process's own, so each test gives them back."""
    given = ef.limits().model_dump()
    yield
    for name, value in given.items():
        setattr(ef.limits(), name, value)


def refusal(text: str, folder: Path, suffix: str = "toml") -> str:
    """The sentence for a world file with that text, which takes little memory to be found."""
    path = folder / f"world.{suffix}"
    path.write_text(text, encoding="utf-8")
    tracemalloc.start()
    try:
        with pytest.raises(ef.LimitError) as refused:
            ef.load(path)
        assert tracemalloc.get_traced_memory()[1] < 60e6 + 30 * len(text)
    finally:
        tracemalloc.stop()
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a" + ".a" * 20_000 + " = 1", "a key has 20,001 dotted parts; at most 32 are allowed"),
        ("[a" + " . a" * 100_000 + "]", "100,001 dotted parts"),
        ("x.'a'" + ".'a'" * 20_000 + " = 1", "20,002 dotted parts"),
        (r'"\""' + r'."\""' * 20_000 + " = 1", "20,001 dotted parts"),
        ("x = {a = \"'\", b" + ".b" * 20_000 + " = 1, c = \"'.x\"}", "dotted parts"),
        ("center" + ".a" * 3_000 + " = 1", "3,001 dotted parts"),
        ("a = " + "[" * 100 + "]" * 100, "33 levels of tables or lists are nested; at most 32"),
        ("a = " + "[" * 10_000 + "]" * 10_000, "nested too deeply"),
        ("k" * 1000 + " = 1", "has 1,000 characters; at most 200 are allowed"),
        ("\n[[entity]]" * 1_001, "there are 1,001 tables [[entity]]; at most 1,000 are allowed"),
        (RING + "spacing = 1e-4\nprofile = 'uniform'", "vortons of about"),
    ],
    ids=lambda value: value[:30] if value.isprintable() else None,
)  # fmt: skip
def test_small_files_that_ask_for_much(text: str, words: str, tmp_path: Path) -> None:
    ef.limits().memory = 2e9
    said = refusal(text, tmp_path)
    assert words in said
    assert "(to allow more: ECS_FLUID_LIMITS='" in said or "nested too" in said


def test_json_has_the_same_limits(tmp_path: Path) -> None:
    nested = '{"a": ' * 40 + "1" + "}" * 40
    assert "33 levels of tables or lists" in refusal(nested, tmp_path, "json")
    assert "nested too deeply" in refusal("[" * 100_000, tmp_path, "json")
    assert "has 300 characters" in refusal(f'{{"a": [{{"{"k" * 300}": 1}}]}}', tmp_path, "json")


def test_what_is_within_the_limits_is_read(tmp_path: Path) -> None:
    """Dots and brackets in values and comments count for nothing, and many numbers are no nesting."""
    path = tmp_path / "world.toml"
    path.write_text(
        "# it's " + ". " * 100 + "\n" + "a" + ".a" * 31 + " = 1\nb = '" + "[" * 100 + "...'\n"
        f"c = [{'1.5, ' * 100_000}]\n{'k' * 200} = 2\n",
        encoding="utf-8",
    )
    tables = read_tables(path)
    assert len(tables["c"]) == 100_000 and set(tables) == {"a", "b", "c", "k" * 200}


def test_limits_can_be_set(tmp_path: Path) -> None:
    path = tmp_path / "world.toml"
    path.write_text("a" + ".a" * 40 + " = 1", encoding="utf-8")
    with pytest.raises(ef.LimitError, match="nesting"):
        read_tables(path)
    ef.limits().nesting = 50
    assert read_tables(path)
    many = {"entity": [{"kind": "tracers", "name": "t", "line": line} for line in [
        {"start": [0, 0, 0], "end": [1, 0, 0], "count": 2}]]}  # fmt: skip
    ef.limits().tables = 1
    assert len(ef.WorldRecipe.from_tables(many).build()["t"]) == 2
    with pytest.raises(ef.LimitError, match="2 tables"):
        ef.WorldRecipe.from_tables({"entity": many["entity"] * 2})


def test_nothing_is_written_that_could_not_be_read_again(tmp_path: Path) -> None:
    """Before, a world with a rake of many points ran, but could neither be resumed nor drawn."""
    points = [[0.001 * k, 0.0, 0.0] for k in range(200)]
    world = ef.load({"entity": [{"kind": "tracers", "name": "t", "points": points}]})
    ef.limits().text = 2000.0
    with pytest.raises(ef.LimitError, match=r"world file of .*run would have [\d,]+ bytes; at most 2,000"):
        ef.run(world, ticks=1, out=tmp_path / "run", progress=False)
    with pytest.raises(ef.LimitError, match=r"description in checkpoint .* at most 2,000 are allowed"):
        world.save(tmp_path / "t.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("nesting", -1, "nesting = -1; a number at least 1 is needed"),
        ("memory", "much", "memory = 'much'"),
        ("memmory", 1, "unknown key 'memmory'; did you mean 'memory'"),
    ],
)
def test_limits_that_are_none(name: str, value: Any, words: str) -> None:
    with pytest.raises(ef.RecipeError, match=words):
        setattr(ef.limits(), name, value)


def told_by(code: str, **environment: str) -> str:
    """What a new process prints."""
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip


def test_limits_of_the_environment_and_of_the_process() -> None:
    """Half of what ulimit leaves a process; what the environment says goes before it."""
    ask = "import ecs_fluid as ef\nprint(ef.limits().memory)"
    code = f"import resource\nresource.setrlimit(resource.RLIMIT_AS, (3 * 2**30,) * 2)\n{ask}"
    assert float(told_by(code)) == 1.5 * 2**30
    assert float(told_by(code, ECS_FLUID_LIMITS="memory=7e9, key=10")) == 7e9
    wrong = "import ecs_fluid as ef\ntry: ef.limits()\nexcept ef.FluidError as error: print(error)"
    assert told_by(wrong, ECS_FLUID_LIMITS="memory") == (
        "ECS_FLUID_LIMITS = 'memory': memory = ''; a valid number is needed\n"
    )


def test_particles_and_grids_are_counted_before_they_are_made(tmp_path: Path) -> None:
    """Of recipes, of emitters, of the cells that the tree asks for: refused with little memory taken."""
    ef.limits().memory = 1e9
    region = {"slab": {"size": 1.0, "thickness": 1.0}, "cell": 1e-3}
    for table in (
        {"kind": "tracers", "name": "t", **region},
        {"kind": "spheres", "name": "b", "box": {"low": [0, 0, 0], "high": [1, 1, 1]}, "spacing": 1e-3,
         "radius": 1e-4, "density": 1.0},
    ):  # fmt: skip
        tracemalloc.start()
        with pytest.raises(ef.LimitError, match="at most 1 GB are allowed, use a"):
            ef.WorldRecipe.from_tables({"entity": [table]}).build()
        assert tracemalloc.get_traced_memory()[1] < 30e6
        tracemalloc.stop()
    path = tmp_path / "world.toml"
    path.write_text(RING + "spacing = 0.05\nprofile = 'uniform'", encoding="utf-8")
    for setting, what in (("vortons_per_cell=1e-3", "cells of the tree"), ("cells=900000000", "grid points")):
        world = ef.load(path, f"fluid.partition.{setting}")
        ef.limits().memory = 1e7
        with pytest.raises(ef.LimitError, match=f"{what} of about"):
            world.step()
        ef.limits().memory = 1e9


ONE = {"kind": "noise_box", "name": "b", "size": [1, 1, 1], "spacing": 1.0, "overlap": 1.5}
"""A vorton"""


@pytest.mark.parametrize(
    ("entities", "words"),
    [
        (
            [{**ONE, "name": f"b{k}", "size": [0.2, 0.2, 0.1], "spacing": 0.01} for k in range(8)],
            "the particles up to those of [[entity]] 'b2' would take 0.012 GB",
        ),
        ([ONE, {"kind": "tracers", "name": "t", "fills": "b", "cell": 0.1, "reach": 10}], "too small for"),
        (
            [{"kind": "drops", "name": "d", "spacing": 0.1,
              "drops": [{"center": [0, 0, 1e-3 * k], "radius": 1.0} for k in range(300)]}],
            "grid points of about",
        ),
        (
            [{"kind": "tracers", "name": "t", "plane": {"corner": [0, 0, 0], "first": [1, 0, 0],
              "second": [0, 1, 0], "counts": [10_000, 10_000]}}],
            "1e+08 tracers of about 12 GB",
        ),
    ],
    ids=["many entities", "cells around a wide core", "many drops", "a plane"],
)  # fmt: skip
def test_limits_are_not_got_around(entities: list[dict[str, Any]], words: str) -> None:
    """By splitting what is too much, or by what is made on the way."""
    ef.limits().memory = 1e7
    tracemalloc.start()
    with pytest.raises(ef.RecipeError) as refused:
        ef.WorldRecipe.from_tables({"entity": entities}).build()
    assert tracemalloc.get_traced_memory()[1] < 60e6
    tracemalloc.stop()
    assert words in str(refused.value)


def test_emitters_of_one_tick_count_together() -> None:
    world = ef.World(dt=0.1)
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]))
    emitters = [{"name": f"e{k}", "into": "a", "rate": 1e5} for k in range(10)]
    world.add_system(ef.EmissionSystem(emitters=emitters))
    ef.limits().memory = 5e4 * 120
    with pytest.raises(ef.LimitError, match=r"5,000 more by emitter 'e9' would take 0\.006 GB"):
        world.step()
    ef.limits().memory = 1e6 * 120
    world.step()
    assert len(world["a"]) == 100_001


def test_memory_that_is_not_there_names_no_line_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("Unable to allocate 1 GiB")

    monkeypatch.setattr("ecs_fluid.worlds.noise_box.NoiseBox.spawn", fail)
    with pytest.raises(ef.FluidError) as told:
        ef.WorldRecipe.from_tables({"entity": [ONE]}).build()
    assert "not enough memory" in str(told.value) and ".py" not in str(told.value)


def test_pairs_of_bodies_are_counted_before_they_are_listed() -> None:
    """Of 64 balls that overlap 64 * 63/2 pairs touch; where they are apart and one is fast, all may meet."""
    ball = {"kind": "spheres", "name": "b", "box": {"low": [0, 0, 0], "high": [1, 1, 1]}, "spacing": 0.25}
    crowd = {"entity": [{**ball, "radius": 10.0, "density": 1.0}]}
    apart = {"entity": [{**ball, "radius": 0.1, "velocity": [[1e6, 0, 0]] + [[0, 0, 0]] * 63}]}
    fixed = {"entity": [{**ball, "radius": 10.0, "motion": "fixed"}]}
    for tables, memory, told in (
        (
            crowd,
            2e6,
            "2,016 pairs of bodies that touch of about 0.00202 GB; at most 0.002 GB are allowed, set",
        ),
        (apart, 1e5, "2,016 pairs of bodies that may meet in a tick of about 0.000101 GB; at most"),
        (fixed, 1e3, ""),
        ({"entity": [{**ball, "radius": 0.1}]}, 1e3, ""),
    ):
        ef.limits().memory = 1e9
        world = ef.WorldRecipe.from_tables(tables).build()
        ef.limits().memory = memory
        with pytest.raises(ef.LimitError, match=told) if told else nullcontext():
            world.step()


def test_pairs_of_unequal_bodies() -> None:
    """No less than meet, each pair tried, and no more than if all had twice their radius."""
    draw = np.random.default_rng(5)
    x, reach, free = draw.uniform(size=(300, 3)), 10 ** draw.uniform(-3, -0.5, 300), draw.random(300) < 0.5
    a, b = np.triu_indices(300, 1)
    apart, moves = np.linalg.norm(x[a] - x[b], axis=1), free[a] | free[b]
    met, wide = (np.sum(moves & (apart <= size * (reach[a] + reach[b]))) for size in (1, 2))
    assert 500 < met <= most_pairs(x, reach, free) <= wide
    exact = np.sum(moves & (apart <= 0.2))
    assert most_pairs(x, np.full(300, 0.1), free) == exact > 500
