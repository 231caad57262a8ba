"""What pictures need of a run folder: frames, distances, polytopes, velocities; also in other processes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecs_fluid.component import Array, Component
from ecs_fluid.components import (
    CoreRadius,
    Density,
    Dilatation,
    Position,
    Species,
    Strength,
    Temperature,
    Volume,
)
from ecs_fluid.errors import FluidError, StorageError
from ecs_fluid.exports.frames import selected_frames
from ecs_fluid.io.fields import field_ticks
from ecs_fluid.io.lock import LOCK, WriterLock
from ecs_fluid.io.runfolder import RECIPE, RunFolder
from ecs_fluid.io.trajectory import Trajectory
from ecs_fluid.own_code import is_shipped
from ecs_fluid.plugins import searching, without_kind
from ecs_fluid.runs.stored_recipe import tables_of
from ecs_fluid.runs.surface_frames import NAME, stored_surface
from ecs_fluid.tables import within_range
from ecs_fluid.viz.flow import Flow
from ecs_fluid.world import World
from ecs_fluid.world_options import WorldOptions

if TYPE_CHECKING:
    from ecs_fluid.exports.bodies import Polytopes
    from ecs_fluid.system import System
    from ecs_fluid.systems import VelocitySystem
    from ecs_fluid.viz.surface_scene import TimedDistances
    from ecs_fluid.viz.surfaces import Distances
    from ecs_fluid.worlds.world_recipe import WorldRecipe

Frame = dict[str, dict[str, Array]]
Velocity = Callable[[Any], Any]


def hulls_of_run(folder: Path) -> Polytopes:
    """Polytopes of a run; they never change, so any checkpoint holds them."""
    from ecs_fluid.exports.bodies import polytopes

    try:
        return polytopes(RunFolder.open(folder).newest_checkpoint().arrays)
    except StorageError:
        return {}  # a trajectory can be drawn without checkpoints


def world_of_run(folder: Path) -> WorldOptions:
    """Options of the world of a run, such as its periods and dimension; defaults if its file is damaged."""
    from ecs_fluid.worlds.world_tables import WorldTable

    try:
        return WorldTable(**tables_of(RunFolder.open(folder)).get("world", {}))
    except (FluidError, TypeError):
        return WorldOptions()  # a damaged recipe does not hide the particles


def status_of(run: RunFolder) -> str:
    """The stored status, but "killed" for a run that was running and that no process writes any more."""
    status = str(run.read_info().get("status"))
    if status == "running":
        with suppress(StorageError):
            WriterLock(run.path / LOCK).release()
            return "killed"
    return status


def look_of_run(folder: Path) -> str:
    """The look that the world of a run names; a damaged recipe does not hide the particles."""
    try:
        return look_of_tables(tables_of(RunFolder.open(folder)))
    except FluidError:
        return "smoke"


def look_of_tables(tables: dict[str, Any]) -> str:
    """The look that a world file names; else "liquid" where there is a liquid, or "smoke".

    The surface of a liquid hides what is in it, so tracers that fill one are shown as smoke, and it too.
    """
    from ecs_fluid.viz.style import LOOKS

    output, entities = tables.get("output"), tables.get("entity")
    found = output.get("look") if isinstance(output, dict) else None
    if isinstance(found, str) and found in LOOKS:
        return found
    listed = entities if isinstance(entities, list | tuple) else ()
    items = [item for item in listed if isinstance(item, dict)]
    liquids = [item.get("name") for item in items if item.get("kind") in ("liquid", "inflow")]
    filled = [item.get("fills") for item in items if item.get("kind") == "tracers"]
    dyed = any(name is not None and name in liquids for name in filled)
    return "liquid" if liquids and not dyed else "smoke"


def frame_of_run(folder: Path, number: int) -> tuple[float, Frame, Flow]:
    """Time [s], columns and velocity function of a stored frame."""
    stored = _trajectory(folder)
    if not -len(stored) <= number < len(stored):
        raise StorageError(f"frame {number}: {folder} has frames 0 to {len(stored) - 1}, or -1 for the last")
    columns = stored.frame(number)
    time = float(stored.times[number])
    # Made when a picture needs it: a damaged recipe does not hide the particles.
    return time, columns, Flow(lambda: VelocityOf(folder).world_of(columns, time), columns)


def load_code_of_run(folder: Path) -> None:
    """Import the run's velocity solver, if it is a class in a module beside the world file: runs its code."""
    from ecs_fluid.runs.runner import code_folder
    from ecs_fluid.systems import VelocitySystem

    run = RunFolder.open(folder)
    with searching(code_folder(folder)):
        fluid = tables_of(run).get("fluid")
        velocity = fluid.get("velocity") if isinstance(fluid, dict) else None
        VelocitySystem.load_code(velocity, f"{run.path / RECIPE}: [fluid] velocity")


def chosen_frames(folder: Path, frames: str | int | slice | None) -> tuple[Trajectory, range]:
    """The trajectory of a run, and the numbers of the frames that ``first:stop:step`` picks."""
    stored = _trajectory(folder)
    return stored, selected_frames(frames, len(stored), folder)


def _trajectory(folder: Path) -> Trajectory:
    stored = RunFolder.open(folder).read_trajectory()
    if not len(stored):
        raise StorageError(f"{folder} has no stored frames")
    return stored


class VelocityOf:
    """Turns a stored frame into a velocity function, by the run's own velocity system."""

    def __init__(self, folder: Path) -> None:
        from ecs_fluid.worlds.world_recipe import WorldRecipe

        run = RunFolder.open(folder)
        tables = tables_of(run)
        # Only velocities are needed; looking up the user's own classes would run their code.
        made_in_python = tables.pop("entity", None) is None
        systems = [item for item in tables.pop("system", ()) if isinstance(item, dict)]
        transfer = [without_kind(item) for item in systems if item.get("kind") == "transfer"]
        # Any duration will do here, and a world made in Python has none.
        tables["world"] = {**tables.get("world", {}), "duration": sys.float_info.min}
        recipe = WorldRecipe.from_tables(tables, RECIPE)
        self._constants, self._transfer = recipe.fluid.constants(), transfer
        self._options = recipe.world.model_dump(
            include={"dt", "precision", "dimension", "plane", "periodic", "seed"}
        )
        self._parameters, self._partition = dict(recipe.fluid.velocity), dict(recipe.fluid.partition)
        # Of stretching, the file of a world made in Python tells only where strengths may follow lines.
        told = bool(recipe.fluid.stretch) or not made_in_python
        self._stretch, self._run = _stretch_by_lines(recipe, systems) if told else None, run
        info = run.read_info()
        self._makers = (
            [str(name) for name in info.get("makes_vorticity", [])],
            [str(name) for name in info.get("makes_vorticity_by_weight", [])],
        )
        self._stretches = info["stretches"]

    def __call__(self, timed: tuple[float, Any]) -> Flow:
        """Velocity and fields of one frame, given with its time [s]."""
        time, frame = timed
        return Flow(lambda: self.world_of(frame, time), frame)

    def world_of(self, frame: Any, time: float) -> World:
        """A world of the vortons, hot gas and smoke of a frame at `time` s, which give velocity and fields.

        It has tracers too, where the solver has a grid, which encloses them; and bodies, where there are
        fields, which go on evenly behind the walls of containers.
        """
        from ecs_fluid.components.bodies import Body
        from ecs_fluid.systems import PartitionSystem, StretchSystem, TransferSystem, VelocitySystem
        from ecs_fluid.systems.shared.body_tables import BODIES
        from ecs_fluid.systems.velocity.solver import solver_class

        world, system = World(**self._options), VelocitySystem(**self._parameters)
        world.tick = round(time / world.dt)
        system.makers_in_run = self._makers
        on_grid = solver_class(system.solver).on_grid
        world.set_fluid(**self._constants)
        carried = Density, Temperature, Species
        labels = {name: {label.partition(".")[0] for label in columns} for name, columns in frame.items()}
        mixed = any(
            "Volume" in kinds and any(one.__name__ in kinds for one in carried) for kinds in labels.values()
        )
        flow = system.further_reads
        for name, columns in frame.items():
            kinds = labels[name]
            vortons, gas = {"Strength", "CoreRadius"} <= kinds, "Volume" in kinds
            known: list[Any] = [kind for kind in (Strength, CoreRadius) if vortons]
            known += [kind for kind in (Volume, Dilatation, *carried) if gas and kind.__name__ in kinds]
            enclosed = on_grid and "Position" in kinds and "Pose" not in kinds
            known = [Position, *known] if known or enclosed else []
            held = {kind: {key: columns[f"{kind.__name__}.{key}"] for key in kind.columns} for kind in known}
            clipped = {kind: within_range(kind, of) for kind, of in held.items()}
            tables = [kind(**(of | clipped[kind])) for kind, of in held.items()]
            wanted = (*flow, *BODIES) if mixed and "Pose" in kinds else flow
            more = self._read_by(system, wanted, name, columns, known)
            # Without a checkpoint masses and shapes of bodies are not known.
            if flow or any(isinstance(table, Body) for table in more):
                tables += more
            if tables:
                entity = world.spawn(name, *tables)
                for kind, of in clipped.items():
                    for key in of:
                        vars(entity[kind])[key][...] = held[kind][key]
        stretch = [] if self._stretch is None else [StretchSystem(**self._stretch)]
        world.add_systems([PartitionSystem(**self._partition), system, *stretch, *self._blowing(world.tick)])
        if mixed:
            world.add_system(TransferSystem(**(self._transfer[0] if self._transfer else {})))
        return world

    def _blowing(self, tick: int) -> list[System]:
        """What blew on everything at a tick."""
        from ecs_fluid.worlds.world_recipe import named_systems

        known = named_systems()
        first, *others = self._stretches
        # The frame between two stretches is of the one that ends.
        stretch = [first, *(other for other in others if other["first_tick"] < tick)][-1]
        kinds = [(known.get(str(item.get("kind"))), item) for item in stretch.get("winds", ())]
        shipped = [(kind, item) for kind, item in kinds if kind is not None and is_shipped(kind)]
        return [kind(**without_kind(item)) for kind, item in shipped if hasattr(kind, "add_wind")]

    def _read_by(
        self,
        system: VelocitySystem,
        wanted: Sequence[type[Component]],
        name: str,
        columns: Mapping[str, Array],
        known: Sequence[type[Component]],
    ) -> list[Component]:
        """Tables of an entity, those of the kinds `wanted`, on which flow and fields depend too.

        What frames do not hold of bodies (shapes, masses) never changes, so it is taken from a checkpoint.
        """
        from ecs_fluid.components import Pose

        found = []
        for kind in dict.fromkeys(wanted):
            body = "Pose.q" in columns  # whose place stands under Position.x
            if kind in known or kind.derived or not kind.columns or (body and kind is Position):
                continue
            labels = {column: f"{kind.__name__}.{column}" for column in kind.columns}
            if body and kind is Pose:
                labels["x"] = "Position.x"
            held = {column: columns[label] for column, label in labels.items() if label in columns}
            missing = labels.keys() - held.keys()
            if any(f"{name}/{labels[column]}" not in self._kept for column in missing):
                continue  # the entity has no such table
            held |= {column: self._kept[f"{name}/{labels[column]}"] for column in missing}
            rows = {len(held[column]) for column in labels} if kind.per_row else set()
            if (missing and not is_shipped(kind)) or len(rows) > 1:
                if kind not in system.further_reads:
                    return []  # bodies have come or gone since the checkpoint: fields end at their walls
                raise StorageError(
                    f"the solver {system.solver!r} reads {kind.__name__} of {name!r}, which stored frames do "
                    "not hold, so their flow is not known; ask the world while it runs"
                )
            found.append(kind(**(held | within_range(kind, held))))
        return found

    @cached_property
    def _kept(self) -> Mapping[str, Any]:
        """Columns in the newest checkpoint, by ``entity/Component.column``; none without a checkpoint."""
        try:
            return self._run.newest_checkpoint().arrays
        except StorageError:
            return {}


def _stretch_by_lines(recipe: WorldRecipe, systems: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Parameters of the StretchSystem, where a world that repeats may share out strengths by its form."""
    from ecs_fluid.systems import RemeshSystem
    from ecs_fluid.worlds.world_recipe import named_systems

    velocity, options = recipe.fluid.velocity, recipe.world
    if not any(options.periodic) or options.dimension == 2 or not velocity.get("gradient", True):
        return None
    if any(named_systems().get(str(item.get("kind"))) is RemeshSystem for item in systems):
        return None
    return dict(recipe.fluid.stretch)


def distances_at(fields: Path, tick: int) -> Distances:
    """Signed distances stored at ``tick`` among the fields of a run, with temperatures if it has them."""
    from ecs_fluid.viz.surfaces import Distances

    field = stored_surface(fields, tick)
    return Distances(field.arrays["phi"], field.origin, field.spacing, field.arrays.get("T"))


def at_surface(frame: Frame, flow: Velocity) -> Velocity:
    """Velocity function at a surface: by the particles of a liquid, or by the flow of vortons without one."""
    from ecs_fluid.exports.surfaces import Near

    liquids = [columns for columns in frame.values() if "Liquid.mass" in columns]
    return Near(liquids) if liquids else flow


class SurfaceRecording(Sequence["TimedDistances"]):
    """The signed distances of stored frames with their times, read when asked for.

    A frame without liquid has None. `speed` adds the velocity function of each frame.
    """

    def __init__(self, folder: Path, stored: Trajectory, rows: range, speed: bool = False) -> None:
        run = RunFolder.open(folder)
        self._fields, self._stored, self._rows = run.fields, stored, rows
        self._flow = VelocityOf(folder) if speed else None
        self._ticks = frozenset(field_ticks(run.fields, NAME))
        if not self._ticks:
            raise StorageError(
                f"{folder} holds no signed distances; a run stores them with every frame when its world has "
                "a [[system]] of kind = 'surface'"
            )

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        from ecs_fluid.viz.surface_scene import TimedDistances

        row = self._rows[index]
        time, tick = float(self._stored.times[row]), int(self._stored.ticks[row])
        if tick not in self._ticks:
            return TimedDistances(time, None, None)
        frame = {} if self._flow is None else self._stored.frame(row)
        velocity = None if self._flow is None else at_surface(frame, self._flow((time, frame)))
        return TimedDistances(time, distances_at(self._fields, tick), velocity)


def real_time_fps(times: Any) -> float:
    """Frames per second, 5 to 60, at which a movie plays in real time."""
    if len(times) < 2:
        return 30.0
    spacing = float(times[-1] - times[0]) / (len(times) - 1)
    return round(min(max(1.0 / spacing, 5.0), 60.0), 3)
