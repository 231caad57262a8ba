"""Starting and resuming runs: what `ecs_fluid.run` and the commands `run` and `resume` share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import tomli_w
from rich.console import Console

from ecs_fluid.api.progress import RunBar, compiling
from ecs_fluid.api.stopping import stopping
from ecs_fluid.arguments import MOST_THREADS, refuse_unused, whole_number_or_none
from ecs_fluid.errors import FluidError, LimitError, RecipeError, StorageError, warn
from ecs_fluid.fluid import Fluid, options_of
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.runs.runner import Runner, free_folder, run_info, stored_columns
from ecs_fluid.systems.partition import PartitionSystem
from ecs_fluid.systems.remesh import RemeshSystem
from ecs_fluid.systems.stretch import StretchSystem
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.validation_errors import shown
from ecs_fluid.world import World
from ecs_fluid.world_files import tables_in
from ecs_fluid.worlds.world_recipe import WorldRecipe, recipe_of
from ecs_fluid.worlds.world_tables import OutputTable, WorldTable

Source = str | Path | Mapping[str, Any] | WorldRecipe | World
"""What can be run: a shipped name, a file, the tables of one, a recipe, or a world in memory."""

Progress = Callable[[int, int], object]
"""Called after every tick with its number and that of the last tick."""

MADE_IN_PYTHON = "# Made in Python: entities and systems are in the checkpoints, by which the run goes on.\n"


def new_runner(
    source: Source,
    settings: tuple[str, ...] = (),
    *,
    ticks: int | None = None,
    out: str | Path | None = None,
    replace: bool = False,
    allow_code: bool = False,
    share: Callable[[World], object] = lambda world: None,
) -> Runner:
    """A run that is ready for its first tick, in a new folder; an error leaves no folder.

    The arguments are those of `run`; `share` gets the world before anything is stored.
    """
    name, place = "world", None
    refuse_unused({"replace": replace and out is None}, "without out, the folder of the run to replace")
    if isinstance(source, World):
        if settings or allow_code:
            raise FluidError("settings and allow_code cannot be given with a World, which is made already")
        world, text = source, MADE_IN_PYTHON + tomli_w.dumps(tables_of_world(source))
        table = WorldTable(**(world.recipe or {}).get("world", {}))
        output = OutputTable(**(world.recipe or {}).get("output", {}))
        last, every = _last_tick(world, ticks), output.every or table.steps_per_frame
        checkpoint_seconds = output.checkpoint_seconds
    else:
        recipe = recipe_of(source, settings, allow_code)
        for warning in recipe.lint():
            warn(warning, 3)
        world, text = recipe.build(), tomli_w.dumps(recipe.tables())
        last, every = ticks or recipe.ticks, recipe.every
        checkpoint_seconds = recipe.output.checkpoint_seconds
        if isinstance(source, str | Path):
            name, place = Path(source).stem, str(Path(source).resolve())
    world.schedule  # noqa: B018  (raises an error of its systems)
    share(world)
    if not stored_columns(world):
        warn(
            "the world holds no particles and no bodies; frames are stored from the tick at which a system "
            "makes some",
            3,
        )
    folder = RunFolder.create(
        free_folder(Path("runs") / name) if out is None else out,
        text,
        {"world": name, "source": place, **run_info(world)},
        existing="replace" if replace else "refuse",
    )
    return Runner(world, folder, last, every, checkpoint_seconds)


def _last_tick(world: World, ticks: int | None) -> int:
    """The last tick of the run of a world in memory."""
    if ticks is not None:
        return world.tick + ticks
    if world.recipe is None:
        raise FluidError(
            "a world made in Python has no duration; give the number of ticks to run, for example ticks=100"
        )
    table = WorldTable(**world.recipe.get("world", {}))
    last = WorldRecipe.model_construct(world=table).ticks
    if world.tick >= last:
        raise FluidError(
            f"the world is at tick {world.tick} of {last}; give the number of further ticks to run, for "
            "example ticks=100"
        )
    return last


def tables_of_world(world: World) -> dict[str, Any]:
    """Tables of a world file: the world's own, or just its clock and fluid; with its present solver and grid.

    For a world made in Python they tell too of stretching along lines of single vortons, by which a solver
    on a grid may read velocities.
    """
    tables = world.recipe or {
        "world": world.options.model_dump(mode="json", exclude_unset=True, exclude_none=True),
        "fluid": options_of(world.fluid[Fluid]).model_dump(mode="json", exclude_none=True),
    }
    fluid = dict(tables.get("fluid", {}))
    for key, kind in (("velocity", VelocitySystem), ("partition", PartitionSystem)):
        system = world.system(kind)
        if system is not None:
            # Those of a resumed world are all set, and TOML has no None.
            fluid[key] = system.parameters.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    stretch = world.system(StretchSystem)
    if world.recipe is None and stretch is not None and world.system(RemeshSystem) is None:
        fluid["stretch"] = {"scheme": stretch.form}
    return {**tables, "fluid": fluid}


def carry_out(runner: Runner, console: Console, progress: bool | Progress = True) -> str:
    """Run to the last tick; "finished", or "stopped" where Ctrl-C, SIGTERM or SIGHUP asked for that."""
    with ExitStack() as entered:
        bar = entered.enter_context(RunBar(runner, console)) if progress is True else None
        signals = entered.enter_context(
            stopping(lambda: console.print("stopping after this tick ...", style="yellow"))
        )
        if bar is not None:
            entered.enter_context(compiling(bar.say))

        def watch(world: World, last: int) -> bool:
            if bar is not None:
                bar.tick(world)
            elif callable(progress):
                progress(world.tick, last)
            return bool(signals)

        return runner.execute(watch)


def resumed_runner(
    path: str | Path,
    ticks: int | None = None,
    allow_code: bool = False,
    anyway: bool = False,
    settings: tuple[str, ...] = (),
) -> Runner | None:
    """A stored run at its newest checkpoint, ready to go on to tick `ticks`; None where it is complete."""
    runner, skipped = Runner.resume(Path(path), ticks, allow_code, anyway, settings)
    if not settings and _edited(runner):
        skipped.append(
            f"{runner.folder.path / 'world.toml'} was edited: the run continues with the world that it "
            "began with, and takes only colours and the look from there; run the file to begin anew"
        )
    for text in skipped:
        warn(text, 3)
    # A run killed between its last checkpoint and its last entry in run.json still has that entry to write.
    finished = runner.folder.read_info().get("status") == "finished"
    if runner.world.tick > runner.last_tick or (runner.world.tick == runner.last_tick and finished):
        runner.folder.close()
        return None
    return runner


def _edited(runner: Runner) -> bool:
    """Whether the world file of a run describes another world than the one that goes on."""

    def without_looks(tables: dict[str, Any]) -> dict[str, Any]:
        entities = [{**table, "color": None} for table in tables.get("entity", [])]
        return {**tables, "entity": entities, "output": {**tables.get("output", {}), "look": None}}

    recipe = runner.world.recipe
    with suppress(StorageError):  # a file that is gone hides nothing
        text = runner.folder.recipe
        if recipe is not None and not text.startswith(MADE_IN_PYTHON):
            try:
                return without_looks(tables_in(text, "")) != without_looks(recipe)
            except (RecipeError, LimitError, TypeError, AttributeError):  # no longer tables of a world
                return True
    return False


def checked_numbers(ticks: Any, threads: Any, progress: Any) -> tuple[int | None, int | None]:
    """Ticks and threads; FluidError for a wrong number, or a progress that is neither function nor bool."""
    if not (isinstance(progress, bool) or callable(progress)):
        raise FluidError(
            f"progress = {shown(progress)}; True, False or a function of a tick and the last one is needed"
        )
    return whole_number_or_none(ticks, "ticks", 1), whole_number_or_none(threads, "threads", 1, MOST_THREADS)
