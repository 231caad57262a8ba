"""World files that went wrong: random mutations of the shipped ones, reproducible by a number."""

from __future__ import annotations

import random
import re
import tomllib
from pathlib import Path

import tomli_w
from mutations import STRUCTURAL, TEXTUAL

from ecs_fluid.worlds.world_recipe import shipped


def prepare(folder: Path) -> None:
    """The shipped worlds are there."""


WIDENED = dict.fromkeys(("head_on_rings", "oblique_rings", "viscous_ring"), "spacing|core")
"""Worlds whose cores cannot be made of blobs twice as wide, but wider ones."""


def sources(number: int) -> list[str]:
    """Texts of the shipped worlds; by day with spacings twice as wide: ticks take most of the time."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in shipped().items()}
    for name in texts if number >= 2000 else ():
        words = WIDENED.get(name, "spacing")
        texts[name] = re.sub(rf"(?m)^({words}) = ([\d.]+)", _twice, texts[name])
    return list(texts.values())


def _twice(found: re.Match[str]) -> str:
    return f"{found[1]} = {2 * float(found[2])!r}"


def trial(number: int, folder: Path) -> tuple[str, list[list[str]]]:
    """A world that is validated, and run for three ticks."""
    world = folder / "world.toml"
    world.write_bytes(mutated(number, sources(number)))
    run = ["run", str(world), "--ticks", "3", "--out", str(folder / "run")]
    return world.name, [["validate", str(world)], run]


def mutated(number: int, sources: list[str]) -> bytes:
    """World file number so and so: one to four changes to one of the `sources`."""
    draw = random.Random(number)
    text = draw.choice(sources)
    if draw.random() < 0.65:
        tables = tomllib.loads(text)
        for _ in range(draw.choice((1, 1, 2, 4))):
            draw.choice(STRUCTURAL)(draw, tables, sources)
        return tomli_w.dumps(tables).encode()
    data = text.encode()
    for _ in range(draw.choice((1, 1, 2, 4))):
        data = draw.choice(TEXTUAL)(draw, data)
    return data
