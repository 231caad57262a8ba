"""The folder of one run: what was run and with what, its trajectory, checkpoints and diagnostics.

::

    RUN/world.toml           the recipe as run
    RUN/run.json             seed, command, versions and machine; kept up to date: status, ticks, timings
    RUN/diagnostics.jsonl    one record per line
    RUN/trajectory/          one VTKHDF file per population
    RUN/trajectory/fields/   grid fields, one VTKHDF image per stored tick
    RUN/checkpoints/         the last two checkpoints

A run can be repeated from its folder alone. One process writes it at a time.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from ecs_fluid.arguments import path_of
from ecs_fluid.errors import StorageError, printable, warn
from ecs_fluid.input_limits import check_limit
from ecs_fluid.io import checkpoint
from ecs_fluid.io.disk import make_folder, replace_text, storage_error
from ecs_fluid.io.fields import drop_fields_after, field_names, missing_files
from ecs_fluid.io.lock import LOCK, WriterLock
from ecs_fluid.io.provenance import Provenance, Text, provenance
from ecs_fluid.io.records import append_record, drop_records_after, read_records
from ecs_fluid.io.trajectory import Trajectory, TrajectoryWriter
from ecs_fluid.io.untrusted import read_bytes, read_document, refuse_linked
from ecs_fluid.validation_errors import closest, shown, validated

FORMAT = "ecs_fluid run"
VERSION = 2
RUN, RECIPE = "run.json", "world.toml"
"""Files of a run: what makes a folder a run, and its world."""
_OWN_FILES = (RUN, RECIPE, "diagnostics.jsonl", "trajectory", "checkpoints", LOCK)
_UNFINISHED = tuple(f".{name}.tmp" for name in _OWN_FILES)
_MOST_NAMED = 3  # missing files that a message names


Count = Annotated[int, Field(lt=2**63)]


class _Plan(BaseModel, strict=True, allow_inf_nan=False):
    last_tick: Count = Field(ge=1)
    every: Count = Field(ge=1)
    checkpoint_seconds: float


class _Timing(BaseModel, strict=True, allow_inf_nan=False):
    seconds: float
    calls: Count = Field(ge=0)


class _Stretch(BaseModel, strict=True):
    """Part of a run that was computed with one set of versions, processor and code: first tick, and these.

    ``settings`` are values of the world file that changed when it began. ``winds`` are tables of systems that
    blow on everything.
    """

    first_tick: Count = Field(ge=0)
    started: Text
    computed_with: Annotated[Provenance, Field(min_length=1)]
    code: Provenance = {}
    settings: Annotated[list[Text], Field(max_length=10_000)] = []
    winds: Annotated[list[dict[str, Any]], Field(max_length=1_000)] = []


class _Declared(BaseModel, strict=True):
    """What a component declares of a stored column: its SI unit, and the kind of its numbers."""

    unit: Text
    kind: Literal["float", "double", "int"]


class _Info(BaseModel, strict=True, allow_inf_nan=False):
    """Entries of ``run.json`` that are checked; it may hold more."""

    stretches: list[_Stretch] = Field(min_length=1, max_length=10_000)
    world: str | None = None
    source: str | None = None
    command: str | list[Any] | None = None
    status: str | None = None
    state_hash: str | None = None
    error: str | None = None
    ticks: Count = Field(default=0, ge=0)
    time: float = 0.0
    wall_seconds: float = 0.0
    ticks_per_second: float = 0.0
    plan: _Plan = _Plan(last_tick=1, every=1, checkpoint_seconds=0.0)
    particles: dict[str, Count] = {}
    systems: dict[str, _Timing] = {}
    columns: Annotated[dict[Text, _Declared], Field(max_length=10_000)] = {}
    populations: Annotated[list[Text], Field(max_length=10_000)] = []
    fields: Annotated[list[Text], Field(max_length=100)] = []

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        begun = [stretch.first_tick for stretch in self.stretches]
        if begun != sorted({*begun}) or begun[-1] > self.ticks:
            raise ValueError(
                f"stretches begin at {shown(begun)}; increasing ticks up to ticks = {self.ticks} are needed"
            )
        return self


class RunFolder:
    """A run's files by name. Make one with ``create``, ``open`` (to read) or ``resume`` (to write on).

    ``create`` and ``resume`` hold the folder until ``close``; ``with`` does that too.
    """

    def __init__(self, path: Path, lock: WriterLock | None = None) -> None:
        self.path = path
        self._lock = lock
        self.trajectory: Path = path / "trajectory"
        """Folder of the trajectory"""
        self.checkpoints: Path = path / "checkpoints"
        """Folder of the checkpoints"""
        self.fields = self.trajectory / "fields"
        """Folder of the grid fields; see ``ecs_fluid.io.fields``"""
        self.diagnostics = path / "diagnostics.jsonl"
        """File with one JSON record per line"""

    @classmethod
    def create(
        cls,
        path: str | Path,
        recipe_toml: str,
        info: Mapping[str, Any],
        existing: Literal["refuse", "replace"] = "refuse",
    ) -> RunFolder:
        """Start a run in ``path``: write ``world.toml``, then ``run.json`` (``info`` plus what it ran on).

        ``info`` holds plain JSON values, for example ``seed``, ``command`` and ``precision``. Raises
        StorageError: a former run is there and ``existing`` is ``"refuse"``; the folder holds something that
        is not a run; another process writes there; the disk says no; and LimitError: a world file that could
        not be read again.
        """
        folder = path_of(path, "run folder")
        length = len(recipe_toml.encode())
        check_limit("text", length, f"the world file of {folder} would have {length:,} bytes")
        document = _json(
            {
                "format": FORMAT,
                "version": VERSION,
                **info,
                "stretches": [_stretch(0, {})],
                "status": "running",
            },
            folder,
        )
        make_folder(folder)
        _check_empty_or_run(folder, existing)
        lock = WriterLock(folder / LOCK)
        try:
            _check_empty_or_run(folder, existing)  # again: another process may have been here in between
            _clear(folder)
            replace_text(folder / RECIPE, recipe_toml, "write recipe")
            for part in ("trajectory", "checkpoints"):
                make_folder(folder / part)
            replace_text(folder / RUN, document, "write run information")  # last: now it is a run
        except BaseException:
            lock.release()
            raise
        return cls(folder, lock)

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Open a run to read it, also while it is being written. Raises StorageError if it is not a run."""
        run = cls(path_of(path, "run folder"))
        run.read_info()
        return run

    @classmethod
    def resume(cls, path: str | Path) -> RunFolder:
        """Open a run to continue it; the lock of a process that died is void. Raises StorageError."""
        run = cls.open(path)
        for part in (run.trajectory, run.checkpoints, run.fields):
            refuse_linked(part)
        return cls(run.path, WriterLock(run.path / LOCK))

    @property
    def recipe(self) -> str:
        """The world file as run, TOML."""
        try:
            return read_bytes(self.path / RECIPE, "read recipe").decode()
        except UnicodeDecodeError as error:
            raise StorageError(
                f"recipe {self.path / 'world.toml'} is damaged: it is not UTF-8 text"
            ) from error

    def write_recipe(self, text: str) -> None:
        """Replace the world file."""
        self._check_writable()
        replace_text(self.path / RECIPE, text, "write recipe")

    def read_info(self) -> dict[str, Any]:
        """What ``run.json`` says. Raises StorageError if it is missing, damaged or of another version."""
        where = self.path / RUN
        if not self.path.is_dir():
            what = "it is a file" if self.path.is_file() else f"there is no such folder{self._suggestion()}"
            raise StorageError(f"{self.path} is not a run folder: {what}")
        if not where.exists() and (self.path / "sweep.json").is_file():
            raise StorageError(
                f"{self.path} is a sweep: the runs are in {self.path / 'members'}, and table.csv has the "
                "results of all; the same `ecs-fluid sweep` command again continues it"
            )
        if not where.exists():
            around = [folder for folder in self.path.parents[:2] if is_run(folder)]
            hint = f"; {around[0]} is one" if around else ""
            raise StorageError(f"{self.path} is not a run folder: it has no run.json{hint}")
        info = read_document(self.path, "run", VERSION)
        validated(_Info, info, f"run information {where} is damaged", StorageError)
        return info

    def columns(self) -> dict[str, dict[str, str]]:
        """Unit and kind of the stored columns, by label, as their components declared them.

        Empty for a run of an earlier version.
        """
        found: dict[str, dict[str, str]] = self.read_info().get("columns", {})
        return found

    def _suggestion(self) -> str:
        """A hint at a run of this or a close name, in the same folder or in `runs`; "" if there is none."""
        with suppress(OSError):
            beside = runs_in(self.path.parent)
            names = {path.name: path for path in [*beside, Path("runs", self.path.name)]}
            close = closest(self.path.name, [name for name, path in names.items() if is_run(path)])
            return f"; {names[close]} is one" if close is not None else ""
        return ""

    def update(self, **changes: Any) -> None:
        """Set entries of ``run.json`` (``ended``, ``status``, ``ticks``, ``timings``, ...), all or none."""
        self._check_writable()
        info = {**self.read_info(), **changes}
        document = _json(info, self.path)
        # Never write a file that could not be read again.
        validated(_Info, info, f"run information for {self.path} is refused", StorageError)
        replace_text(self.path / RUN, document, "write run information")

    def record(self, **values: Any) -> None:
        """Append one diagnostics record; give it ``tick`` and ``time``, so that resuming can drop it."""
        self._check_writable()
        append_record(self.diagnostics, values)

    def records(self) -> list[dict[str, Any]]:
        """All finished diagnostics records, oldest first. Raises StorageError where the folder is gone."""
        self.read_info()
        return read_records(self.diagnostics)

    def save_checkpoint(
        self, tick: int, meta: Mapping[str, Any], arrays: Mapping[str, Any], keep: int = 2
    ) -> Path:
        """Save the checkpoint of ``tick``, then delete all but the ``keep`` newest; return its path."""
        self._check_writable()
        make_folder(self.checkpoints)
        path = checkpoint.checkpoint_path(self.checkpoints, tick)
        checkpoint.save_checkpoint(path, meta, arrays)
        checkpoint.keep_last(self.checkpoints, keep)
        return path

    def newest_checkpoint(self) -> checkpoint.LoadedCheckpoint:
        """The newest intact checkpoint; its ``skipped`` says which newer ones were damaged."""
        return checkpoint.newest_checkpoint(self.checkpoints)

    def write_trajectory(self, resume_at_tick: int | None = None) -> TrajectoryWriter:
        """A writer for the trajectory of this run."""
        self._check_writable()
        return TrajectoryWriter(self.trajectory, resume_at_tick)

    def read_trajectory(self) -> Trajectory:
        """A reader for the trajectory of this run; warns of populations and fields that lack files."""
        trajectory = Trajectory(self.trajectory)
        for text in filter(None, (self.missing(trajectory), self.missing_fields())):
            warn(f"{text}; the run is read without what was stored there")
        return trajectory

    def missing(self, trajectory: Trajectory) -> str:
        """Which files of populations are missing in the trajectory, in words; "" if none is."""
        known = self.read_info().get("populations", [])
        return _missing_text(
            [f"{name}.vtkhdf" for name in known if name not in trajectory.populations], self.trajectory
        )

    def missing_fields(self) -> str:
        """Which files of grid fields are missing, in words; "" if none is."""
        known = self.read_info().get("fields", [])
        return _missing_text(
            [file for name in known for file in missing_files(self.fields, name)], self.fields
        )

    def begin_stretch(
        self,
        tick: int,
        code: Mapping[str, str],
        settings: Sequence[str] = (),
        winds: Sequence[Mapping[str, Any]] = (),
        **changes: Any,
    ) -> None:
        """Note what computes the run from ``tick`` on, and ``update``; ``code``: digests of user modules.

        ``settings`` have changed now, and these ``winds`` blow.
        """
        # Stretches that began here or later are computed anew.
        known = self.read_info()["stretches"]
        earlier = [each for each in known if each["first_tick"] < tick]
        new = _stretch(tick, code) | {"winds": list(winds)}
        # What was set when the run went on from this tick before is in its checkpoint.
        here = [one for each in known if each["first_tick"] == tick for one in each.get("settings", ())]
        if both := [*here, *settings]:
            new["settings"] = both
        alike = ("computed_with", "code", "winds")
        if both or not earlier or any(earlier[-1].get(key) != new[key] for key in alike):
            earlier.append(new)
        self.update(**{"ticks": tick, **changes, "stretches": earlier})

    def rewind(self, tick: int, frames: int) -> None:
        """Drop diagnostics and checkpoints after ``tick``, and the grid fields of frames after ``frames``.

        They are computed anew. The trajectory is cut by ``write_trajectory(resume_at_tick=frames)``.
        """
        self._check_writable()
        drop_records_after(self.diagnostics, tick)
        checkpoint.drop_after(self.checkpoints, tick)
        for name in field_names(self.fields):
            drop_fields_after(self.fields, name, frames)

    def close(self) -> None:
        """Let other processes write here; harmless when repeated."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_writable(self) -> None:
        if self._lock is None:
            raise StorageError(f"run {self.path} was opened read-only; resume it to write")


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run."""
    return (folder / RUN).is_file()


def runs_in(folder: Path) -> list[Path]:
    """The runs directly in a folder."""
    return [path.parent for path in folder.glob(f"*/{RUN}")]


def _stretch(tick: int, code: Mapping[str, str]) -> dict[str, Any]:
    """The entry for a stretch of a run that begins now; it names neither host nor user."""
    here, cores = platform.uname(), os.cpu_count()
    machine = {"cpus": cores, "processor": here.machine, "system": here.system, "kernel": here.release}
    started = datetime.now(UTC).isoformat(timespec="seconds")
    what = {"computed_with": provenance(), "code": dict(code)}
    return {"first_tick": tick, "started": started, **what, "machine": machine}


def _json(document: Mapping[str, Any], folder: Path) -> str:
    try:
        return json.dumps(document, indent=2) + "\n"
    except (TypeError, ValueError) as error:
        raise StorageError(f"run information for {folder} must be plain JSON values: {error}") from error


def _check_empty_or_run(folder: Path, existing: str) -> None:
    try:
        names = {entry.name for entry in folder.iterdir()}
    except OSError as error:
        raise storage_error(error, "use run folder", folder) from error
    if RUN in names:
        RunFolder(folder).read_info()  # refuses a run.json that is not ours
        if existing != "replace":
            raise StorageError(
                f"{folder} already holds a run; resume it, replace it (--replace, in Python "
                "replace=True), or choose another folder"
            )
        return
    # The lock is made first: with it, this is a run of ours that was killed at its start.
    if foreign := sorted(names - {*_OWN_FILES, *_UNFINISHED} if LOCK in names else names):
        raise StorageError(
            f"{folder} is not empty and not a run folder (it holds {foreign[0]!r}); choose another folder"
        )


def _clear(folder: Path) -> None:
    """Remove a former run, ``run.json`` first; files of the user's beside it are left alone."""
    try:
        for name in (*_OWN_FILES[:-1], *_UNFINISHED):
            path = folder / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, "replace run in", folder) from error


def _missing_text(files: list[str], folder: Path) -> str:
    """The beginning of a sentence that these files are missing; "" if there are none."""
    if not files:
        return ""
    more = len(files) - _MOST_NAMED
    names = ", ".join(files if more < 2 else [*files[:_MOST_NAMED], f"{more} others"])
    return printable(f"{names} {'is' if len(files) == 1 else 'are'} missing in {folder}")
