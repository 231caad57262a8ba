"""Commands about world files: list, validate, schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ecs_fluid.cli import app, out, warn
from ecs_fluid.errors import FluidError
from ecs_fluid.validation_errors import nearest

Settings = Annotated[
    tuple[str, ...],
    Parameter(name="--set", help="override a value: path=value, for example fluid.viscosity=1e-4"),
]
AllowCode = Annotated[
    bool, Parameter(help="let the world file name classes by import path, which runs their code")
]

Anyway = Annotated[
    bool,
    Parameter(negative="", help="go on with what other versions or another processor computed"),
]


@app.command
def worlds(
    world: str | None = None,
    /,
    *,
    schedule: Annotated[bool, Parameter(negative="")] = False,
    set_: Settings = (),
    allow_code: AllowCode = False,
) -> None:
    """List the worlds that come with the package; print the file of one of them, to start from.

    Args:
        world: name of a shipped world; with --schedule a world file too
        schedule: print its systems instead, in running order, with what each computes
    """
    from ecs_fluid.worlds.world_recipe import describe, read, shipped

    found = shipped()
    if schedule:
        if world is None:
            raise FluidError("--schedule: the name of a world, or a world file, is needed before it")
        made = read(world, set_, allow_code).build()
        stages = f", prepare and rates {made.stages} times" if made.stages > 1 else ""
        out.print(f"a tick of {world}, {made.dt:.6g} s{stages}:", end="\n\n")
        for line in made.schedule.summary().splitlines():
            out.print(line)
    elif world is None:
        width = max(len(name) for name in found)
        for name, path in found.items():
            out.print(f"{name:<{width}}  {describe(path)}")
    elif world in found:
        print(found[world].read_text(encoding="utf-8"), end="")
    else:
        hint = "for a file add --schedule" if Path(world).is_file() else nearest(world, found)
        raise FluidError(f"there is no shipped world {world!r}; {hint}")


@app.command
def validate(world: str, /, *, set_: Settings = (), allow_code: AllowCode = False) -> None:
    """Check a world file, build it, and say what it holds and what looks coarse."""
    from ecs_fluid.worlds.world_recipe import read

    recipe = read(world, set_, allow_code)
    made = recipe.build()
    warnings = [*recipe.lint(), *made.lint()]
    rows = {entity.name: len(entity) for entity in made.entities if len(entity)}
    particles = ", ".join(f"{name} {count:,}" for name, count in rows.items()) or "none at the start"
    out.print(f"{world}: valid; {recipe.ticks} ticks of {recipe.world.dt:g} s; particles: {particles}")
    for text in warnings:
        warn(text)


@app.command
def schema(path: Path | None = None, /) -> None:
    """Print the JSON Schema of world files, or write it to a file."""
    from ecs_fluid.worlds.world_recipe import schema as make

    text = json.dumps(make(), indent=2)
    if path is None:
        print(text)
        return
    from ecs_fluid.io.disk import replace_text

    replace_text(path, text + "\n", "write the schema")
