"""Runs a world into a run folder: frames, records and checkpoints, so that a kill loses one tick at most."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import DivergedError, FluidError, StorageError
from ecs_fluid.io.fields import field_names
from ecs_fluid.io.provenance import refuse_other_provenance
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.io.trajectory import Trajectory, TrajectoryWriter
from ecs_fluid.own_code import is_shipped
from ecs_fluid.plugins import searching
from ecs_fluid.runs.changes import change, with_settings
from ecs_fluid.runs.resume import resume
from ecs_fluid.runs.surface_frames import store_surface
from ecs_fluid.schedule import makers_of_vorticity
from ecs_fluid.state import packed_world
from ecs_fluid.world import World
from ecs_fluid.worlds.world_recipe import table_of

Watcher = Callable[[World, int], bool]
"""Called after every tick with the world and the last tick of the run; True ends the run there."""


def stored_columns(world: World) -> dict[str, dict[str, Array]]:
    """Columns of a frame, by entity and label.

    Entities with a Position have their state in it, bodies their place; both have their columns `in_frames`.
    """
    frame = {}
    for entity in world.entities:
        columns = world.processes.stored_columns(entity)
        fields = (field for kind in entity.tables for field in kind.columns.values())
        kept = {field.label for field in fields if field.in_frames}
        if "Position.x" in columns:
            kept.update(entity.columns(state_only=True))
            frame[entity.name] = {label: array for label, array in columns.items() if label in kept}
        elif "Pose.x" in columns:
            # Polytopes of bodies are left out: they never change, and checkpoints have them.
            own = {label: array for label, array in columns.items() if label in kept}
            frame[entity.name] = {"Position.x": columns["Pose.x"]} | own
    return frame


def declared_columns(world: World) -> dict[str, dict[str, str]]:
    """Unit and kind of every column that frames may store, by label; readers may not have its class."""
    return {
        field.label: {"unit": field.unit, "kind": field.kind}
        for entity in world.entities
        for table in entity.tables.values()
        if type(table).per_row
        for field in type(table).columns.values()
    }


def run_info(world: World) -> dict[str, Any]:
    """Command, seed and options of a run for its run.json; RunFolder adds versions and machine."""
    return {
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "seed": world.seed,
        "options": world.options.model_dump(mode="json"),
    }


def code_folder(path: Path) -> Path | None:
    """Folder of the world file of a run, which may hold the user's own systems; None if it is not known."""
    source = RunFolder.open(path).read_info().get("source")
    return Path(source).parent if source else None


class Runner:
    """Carries out one run of a world in one folder; `ecs_fluid.open_run` reads what it stores.

    Args:
        world: the world at its first tick, or resumed.
        folder: the run folder, open for writing.
        last_tick: tick at which the run is complete.
        every: ticks from one stored frame to the next.
        checkpoint_seconds: wall-clock seconds between checkpoints, 0 for one after every tick.
    """

    def __init__(
        self, world: World, folder: RunFolder, last_tick: int, every: int, checkpoint_seconds: float
    ) -> None:
        self.world, self.folder, self.last_tick = world, folder, last_tick
        self.every, self.checkpoint_seconds = every, checkpoint_seconds
        self._recorded = len(world.history)
        self._saved_at = -1
        self._populations: list[str] = []  # those that have files
        self._settings: tuple[str, ...] = ()  # that change from here on, if the run is resumed
        self._recipe = ""  # the world file with these settings
        self._frames_kept: int | None = None  # last tick of the frames that are kept, if the run is resumed

    @classmethod
    def resume(
        cls,
        path: Path,
        last_tick: int | None = None,
        allow_code: bool = False,
        anyway: bool = False,
        settings: Sequence[str] = (),
    ) -> tuple[Runner, list[str]]:
        """A run that continues from its newest intact checkpoint, and sentences on damaged newer ones.

        Settings ``path=value`` change it from there on, see `changes.change`.
        """
        folder = RunFolder.resume(path)
        try:
            info = folder.read_info()
            if (plan := info.get("plan")) is None:
                raise StorageError(f"{path}: run.json has no plan of the run, so it cannot be resumed")
            refuse_other_provenance(path, info["stretches"][-1]["computed_with"], anyway)
            checkpoint = folder.newest_checkpoint()
            with searching(code_folder(path) if allow_code else None):
                world = resume(checkpoint.path, allow_code, anyway)
            if folder.trajectory.is_dir():  # without one, a new one is begun
                stored = Trajectory(folder.trajectory)
                _check_same_run(world, stored, checkpoint.path)
                if missing := folder.missing(stored):  # also a population without rows at this tick
                    raise StorageError(f"{missing}; put it back to continue the run")
            missing = folder.missing_fields()
            last, every, seconds = last_tick or plan["last_tick"], plan["every"], plan["checkpoint_seconds"]
            text = ""
            if settings:
                with searching(code_folder(path) if allow_code else None):
                    before, after = change(world, settings, allow_code)
                if last_tick is None and after.ticks != before.ticks:
                    last = after.ticks
                seconds, text = after.output.checkpoint_seconds, with_settings(folder, settings)
            # A frame at a former end of the run that is no multiple of `every` is dropped if the run goes on:
            # an uninterrupted run has none there.
            between = world.tick % every != 0 and world.tick < last
            folder.rewind(world.tick, frames=world.tick - between)
        except FluidError:
            folder.close()
            raise
        run = cls(world, folder, last, every, seconds)
        run._settings, run._recipe = tuple(settings), text
        run._frames_kept = world.tick - between
        remarks = [f"{missing}; the run continues without what was stored there"] if missing else []
        return run, [*checkpoint.skipped, *remarks]

    def execute(self, watch: Watcher) -> str:
        """Run to the last tick; returns "finished" or "stopped".

        Raises DivergedError after storing the last good state, and StorageError with the last checkpoint
        intact.
        """
        world, folder = self.world, self.folder
        plan = {key: getattr(self, key) for key in ("last_tick", "every", "checkpoint_seconds")}
        code = packed_world(world)[0]["code"]
        winds = [table_of(one, "winds") for one in world._winds() if is_shipped(type(one))]
        folder.begin_stretch(world.tick, code, self._settings, winds, status="running", plan=plan)
        self._earlier = folder.read_info()
        # A world that was stepped before this run has timings already.
        self._first_timings = {name: (timing.total, timing.calls) for name, timing in world.timings().items()}
        self._started, self._first_tick = time.perf_counter(), world.tick
        status = "failed"
        try:
            self._checkpoint()
            if self._recipe:
                folder.write_recipe(self._recipe)
            # Also at tick 0: a run that was killed before its second checkpoint has frames already.
            with folder.write_trajectory(self._frames_kept) as frames:
                if world.tick == 0 or not frames.ticks:
                    world.evaluate()
                    if not frames.ticks:
                        frames.append(world.tick, world.time, stored_columns(world))
                    store_surface(world, folder.fields)
                self._populations = list(frames.populations)
                folder.update(populations=self._populations, fields=field_names(folder.fields))
                status = self._loop(frames, watch)
                self._checkpoint()
        except DivergedError:
            status = "diverged"
            self._checkpoint()
            raise
        finally:
            try:
                self._report(status)
            finally:
                folder.close()
        return status

    def _loop(self, frames: TrajectoryWriter, watch: Watcher) -> str:
        """Step and store up to the last tick, or until `watch` says to stop; return the status."""
        world = self.world
        saved = time.perf_counter()
        while world.tick < self.last_tick:
            try:
                world.step()
            except FluidError as error:
                if world.tick > self._first_tick and not isinstance(error, DivergedError):
                    error.args = (f"tick {world.tick + 1} (t = {world.time:.6g} s): {error}",)
                raise
            if world.tick % self.every == 0 or world.tick == self.last_tick:
                frames.append(world.tick, world.time, stored_columns(world))
                store_surface(world, self.folder.fields)
                self._populations = list(frames.populations)
            for record in world.history[self._recorded :]:
                self.folder.record(**record)
            del world.history[:-1]  # they are on disk
            self._recorded = len(world.history)
            if time.perf_counter() - saved >= self.checkpoint_seconds:
                self._checkpoint()
                saved = time.perf_counter()
            if watch(world, self.last_tick):
                return "finished" if world.tick == self.last_tick else "stopped"
        return "finished"

    def _checkpoint(self) -> None:
        if self._saved_at == self.world.tick:
            return
        self.folder.save_checkpoint(self.world.tick, *packed_world(self.world))
        self._saved_at = self.world.tick
        self._report("running")

    def _report(self, status: str) -> None:
        """Note in run.json how far the run came and where its time went."""
        world, spent = self.world, time.perf_counter() - self._started
        self.folder.update(
            status=status,
            ticks=world.tick,
            time=world.time,
            wall_seconds=self._earlier.get("wall_seconds", 0.0) + spent,
            ticks_per_second=(world.tick - self._first_tick) / spent if spent else 0.0,
            particles={entity.name: len(entity) for entity in world.entities if len(entity)},
            systems=self._system_times(),
            makes_vorticity=makers_of_vorticity(world.systems, by_weight=False),
            makes_vorticity_by_weight=makers_of_vorticity(world.systems, by_weight=True),
            columns=self._earlier.get("columns", {}) | declared_columns(world),
            populations=self._populations,
            fields=field_names(self.folder.fields),
            state_hash=world.state_hash(),
            ranks=world._rank_statistics(),
        )

    def _system_times(self) -> dict[str, dict[str, float]]:
        """Seconds and calls of each system since the run began, those before a resume included."""
        found = {}
        for name, timing in self.world.timings().items():
            total, calls = self._first_timings.get(name, (0.0, 0))
            earlier = self._earlier.get("systems", {}).get(name, {"seconds": 0.0, "calls": 0})
            found[name] = {
                "seconds": timing.total - total + earlier["seconds"],
                "calls": timing.calls - calls + earlier["calls"],
            }
        return found


def _check_same_run(world: World, frames: Trajectory, checkpoint: Path) -> None:
    """Raise StorageError if the frame of this tick holds another state, or if times would not grow.

    The checkpoint is then of another run, and what is computed from there would belong to neither.
    """
    first, after = (int(np.searchsorted(frames.ticks, world.tick, side)) for side in ("left", "right"))
    earlier, later = frames.times[:first].max(initial=-1.0), frames.times[after:].min(initial=np.inf)
    unlike = (
        ""
        if earlier < world.time < later and (frames.times[first:after] == world.time).all()
        else "another time"
    )
    if first < after and world.tick > 0:  # at tick 0 some systems have not filled their rows yet
        unlike = unlike or _first_difference(world, frames.frame(first))
    if unlike:
        raise StorageError(
            f"{checkpoint} does not belong to the trajectory beside it, which has {unlike} at tick "
            f"{world.tick}; put together what belongs together, or remove the checkpoint to continue from "
            "an earlier one"
        )


def _first_difference(world: World, frame: Mapping[str, Mapping[str, Array]]) -> str:
    """What a frame of the same tick lacks, or the first state column with other bits; "" if none."""
    for name, columns in stored_columns(world).items():
        if name not in frame and any(array.size for array in columns.values()):
            return f"no {name!r} (is {name}.vtkhdf missing?)"
        derived = {f.label for kind in world[name].tables if kind.derived for f in kind.columns.values()}
        for label in sorted(columns.keys() - derived):
            array, stored = columns[label], frame.get(name, {}).get(label, np.empty(0))
            if array.size != stored.size or array.tobytes() != stored.tobytes():
                return f"another {name}: {label}"
    return ""


def free_folder(base: Path) -> Path:
    """The first of `base`, `base-2`, `base-3`, ... that does not exist yet."""
    for number in range(1, 100_000):
        candidate = base.with_name(f"{base.name}-{number}") if number > 1 else base
        if not candidate.exists():
            return candidate
    raise StorageError(f"{base}: 100,000 runs exist already; choose another folder")
