"""Commands about world files: list, validate, schema."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.filesize import decimal

from ecs_fluid.arguments import refuse_unused
from ecs_fluid.cli import WorldName, app, out, warn
from ecs_fluid.components import Strength
from ecs_fluid.errors import FluidError, FluidWarning
from ecs_fluid.io.disk import replace_text
from ecs_fluid.shipped_worlds import describe, shipped
from ecs_fluid.systems import VelocitySystem
from ecs_fluid.validation_errors import nearest
from ecs_fluid.worlds.bodies import BodyRecipe, ContainerRecipe
from ecs_fluid.worlds.world_recipe import read

Settings = Annotated[
    tuple[str, ...],
    Parameter(name="--set", help="override a value: path=value, for example fluid.viscosity=1e-4"),
]
AllowCode = Annotated[
    bool, Parameter(help="allow the world file to name classes by import path, which runs their code")
]

Anyway = Annotated[
    bool, Parameter(help="continue even if other versions or another processor computed the first part")
]


@app.command
def worlds(
    world: WorldName | None = None,
    /,
    *,
    schedule: bool = False,
    copy: bool = False,
    set_: Settings = (),
    allow_code: AllowCode = False,
) -> None:
    """List the worlds that come with the package; print or copy the file of one of them, to start from.

    Args:
        world: name of a shipped world; with --schedule a world file too
        schedule: print its systems instead, in running order, with what each computes
        copy: write its file into this folder, to change it there
    """
    found = shipped()
    if world is None and (schedule or copy):
        option = "--schedule" if schedule else "--copy"
        raise FluidError(f"{option}: the name of a world is needed: ecs-fluid worlds NAME {option}")
    if schedule and copy:
        raise FluidError("--schedule prints and --copy writes a file; choose one of them")
    if not schedule:
        refuse_unused({"--set": set_, "--allow-code": allow_code}, "without --schedule")
    if schedule and world is not None:
        made = read(world, set_, allow_code).build()
        stages = f", prepare and rates {made.stages} times" if made.stages > 1 else ""
        out.print(f"a tick of {world}, {made.dt:.6g} s{stages}:", end="\n\n")
        for line in made.schedule.summary().splitlines():
            out.print(line)
    elif world is None:
        width = max(len(name) for name in found)
        for name, path in found.items():
            out.print(f"{name:<{width}}  {describe(path)}")
    elif world in found and copy:
        target = Path(f"{world}.toml")
        if target.exists():
            raise FluidError(f"{target} already exists; rename it, or copy into another folder")
        replace_text(target, found[world].read_text(encoding="utf-8"), "copy the world")
        out.print(f"wrote {target}; run it with: ecs-fluid run {target}")
    elif world in found:
        print(found[world].read_text(encoding="utf-8"), end="")
    else:
        hint = "for a file add --schedule" if Path(world).is_file() else nearest(world, found)
        raise FluidError(f"there is no shipped world {world!r}; {hint}")


@app.command
def validate(world: WorldName, /, *, set_: Settings = (), allow_code: AllowCode = False) -> None:
    """Check a world file, build it, and report what it holds, what looks too coarse and what a tick costs."""

    from ecs_fluid.runs.estimate import duration, first_ticks

    with warnings.catch_warnings(record=True, action="always", category=FluidWarning) as caught:
        recipe = read(world, set_, allow_code)
        made = recipe.build()
    # An invalid world prints its error only.
    doubts = [*(str(each.message) for each in caught), *recipe.lint(), *made.lint()]
    rows = {entity.name: len(entity) for entity in made.entities if len(entity)}
    velocity = made.system(VelocitySystem)
    found, fault = None, ""
    try:
        found = first_ticks(made, recipe.ticks)
    except FluidError as error:
        if not made.tick:
            raise FluidError(f"{world}: its first tick fails: {error}") from None
        fault = f"its first ticks fail: {error}"
    particles = ", ".join(f"{name} {count:,}" for name, count in rows.items()) or "none at the start"
    out.print(f"{world}: valid; {recipe.ticks} ticks of {recipe.world.dt:g} s; particles: {particles}")
    for one in recipe.entity:
        if isinstance(one, BodyRecipe | ContainerRecipe) and one.own_origin.any():
            x, y, z = one.own_origin.tolist()
            place = f"({x:.4g}, {y:.4g}, {z:.4g}) m"
            out.print(f"frame  {one.name}: its shape's own origin is at {place} in its axes")
    if velocity is not None and any(Strength in entity for entity in made.entities):
        out.print(f"solver {velocity.solver}")
    for text in doubts:
        warn(text)
    if fault:
        warn(fault)
        return
    if found is None:
        out.print(f"time   known when its kernels are compiled, once per machine: ecs-fluid warmup {world}")
        return
    for text in found.said:
        if text not in doubts:
            warn(text)
    whole = duration(recipe.ticks * found.seconds)
    out.print(
        f"time   {duration(found.seconds)} a tick at the start; {whole} if all {recipe.ticks} are like that"
    )
    if found.memory:
        out.print(f"memory {decimal(found.memory)}")


@app.command
def schema(path: Path | None = None, /) -> None:
    """Print the JSON Schema of world files, or write it to a file."""
    from ecs_fluid.worlds.schema import schema as make

    text = json.dumps(make(), indent=2)
    if path is None:
        print(text)
        return
    replace_text(path, text + "\n", "write the schema")
