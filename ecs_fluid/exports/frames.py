"""The frames of a run that an export writes, read one at a time: memory does not grow with their number."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ecs_fluid.arguments import check_progress, is_whole, names_of
from ecs_fluid.errors import StorageError
from ecs_fluid.exports.names import declared, free_name, plain_names, unit
from ecs_fluid.exports.turning import POSE, turned
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.io.vtkhdf import POINTS, Column
from ecs_fluid.runs.stored_recipe import up_of_run
from ecs_fluid.runs.surface_frames import surface_ticks
from ecs_fluid.upward import turn
from ecs_fluid.validation_errors import nearest

FARTHEST = float(np.finfo(np.float32).max)
"""Coordinate [m] that files in single precision hold."""

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Frame:
    """One stored frame: its number in the run, tick, time [s], time code, and columns by population.

    ``code`` of the first frame is the whole part of its time divided by the usual time between exported
    frames, plus the code of t = 0; those of the others are as many of these times later. ``file`` is the
    number in file names: the first code, and one more for each frame. Programs that play sequences need
    numbers without gaps, and show whole codes; Blender looks for the volumes of a USD stage by time code.
    ``everything`` has the populations that were not chosen, too.
    """

    number: int
    tick: int
    time: float
    code: float
    file: int
    particles: dict[str, Columns]
    bodies: dict[str, Columns]
    everything: dict[str, Columns]


@dataclass(frozen=True)
class Job:
    """Frames to write, the folder to write in, where that will stand, and the edge of a voxel [m]."""

    frames: Frames
    folder: Path
    target: Path
    voxel: float | None


class Frames:
    """Chosen frames and populations of a run.

    ``declared`` is what the run says of its columns (`RunFolder.columns`). ``numbers``, ``ticks``, ``times``
    [s], ``codes`` and ``files`` describe the frames, as in `Frame`; ``rate`` [1/s] is the number of frames
    per second of simulated time, and ``start`` the code of t = 0. ``particles`` and ``bodies`` name the
    populations; ``surface`` names that of a liquid's surface, which the run stored at ``surface_ticks``; if
    at none, and with ``of_particles``, it is that of the particles of ``liquids``. It is None without either.
    Its vertices move as the particles of the populations ``beside``; ``all_liquids`` are those of the run.
    ``only`` are the names that were given. ``matrix`` (3, 3) turns the world as it was simulated into that of
    the frames, in which the axis ``up`` is upwards: what ``upwards`` makes of the axis that the world has.
    """

    def __init__(
        self,
        run: RunFolder,
        chosen: str | int | slice | None = None,
        only: Sequence[str] = (),
        progress: Callable[[int], None] | None = None,
        of_particles: bool = True,
        start: int = 0,
        upwards: Callable[[str], str] = lambda own: own,
    ) -> None:
        self.run, self._progress = run, progress
        own = up_of_run(run)
        self.up = upwards(own)
        self.matrix = turn(own, self.up)
        self._turned = self.up != own
        self.declared = run.columns()
        self.stored = run.read_trajectory()
        if not len(self.stored):
            raise StorageError(f"{run.path} has no stored frames")
        self.name = re.sub(r"[^A-Za-z0-9_-]", "_", run.path.resolve().name)
        rows = selected_frames(chosen, len(self.stored), run.path)
        self.numbers = tuple(rows)
        self.ticks = self.stored.ticks[list(rows)]
        self.times = self.stored.times[list(rows)]
        self.interval = _interval(self.times) or _interval(self.stored.times) or 1.0 / 24.0
        self.rate = float(f"{1.0 / self.interval:.9g}")  # 25, not 24.999999999999996
        first = start + math.floor(_rounded(self.times[:1] / self.interval)[0])
        self.codes = first + _rounded((self.times - self.times[0]) / self.interval)
        self.files = tuple(range(int(self.codes[0]), int(self.codes[0]) + len(rows)))
        self.surface_ticks = surface_ticks(self.run.fields)
        self.all_liquids = self._liquids()
        self.liquids = self.all_liquids if of_particles and not self.surface_ticks else ()
        has_surface = self.surface_ticks or self.liquids
        self.surface = free_name("surface", self.stored.populations) if has_surface else None
        known = [*self.stored.populations, *([self.surface] if self.surface else [])]
        self.only = only = names_of(only, "only")
        check_progress(progress)
        for name in only:
            if name not in known:
                raise StorageError(f"{run.path} stores no population {name!r}; {nearest(name, known)}")
        if only and self.surface not in only:
            self.surface, self.liquids = None, ()
        names = [name for name in self.stored.populations if name in only or not only]
        self.bodies = tuple(name for name in names if POSE in self.columns(name))
        self.particles = tuple(name for name in names if name not in self.bodies)
        self.around = tuple(name for name in self.stored.populations if POSE in self.columns(name))
        particles = tuple(name for name in self.stored.populations if name not in self.around)
        self.beside = (self.liquids or particles) if self.surface else ()
        self._read = tuple(dict.fromkeys([*names, *(self.around if self.liquids else ()), *self.beside]))
        for name in self._read:
            self._check(name)

    def _liquids(self) -> tuple[str, ...]:
        needed = {POINTS, "Liquid.volume"}
        return tuple(name for name in self.stored.populations if needed <= set(self.columns(name)))

    def columns(self, name: str) -> dict[str, Column]:
        """Type and row shape of every column of a population."""
        return self.stored.index(name).columns

    def unit(self, label: str) -> str:
        """SI unit of a column; empty if neither the run nor a component that is loaded says it."""
        return unit(label, self.declared)

    def told(self, name: str, held: Container[str] | None = None) -> dict[str, dict[str, str]]:
        """What ``export.json`` says of the columns of a population that the files have: `held`, or all."""
        return {
            plain: {"column": label, "unit": self.unit(label)}
            for label, plain in plain_names(self.columns(name)).items()
            if held is None or label in held
        }

    def kind(self, label: str) -> str:
        """Kind of a column's numbers, see `component.column`; empty if neither says it."""
        column = declared(label)
        return self.declared[label]["kind"] if label in self.declared else column.kind if column else ""

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Frame]:
        for done in range(len(self)):
            yield self.frame(done)
            if self._progress is not None:
                self._progress(done + 1)

    def frame(self, which: int) -> Frame:
        """Read the chosen frame number ``which``, from 0. Raises StorageError, also for NaN as a place."""
        number = self.numbers[which]
        columns = self.stored.frame(number)
        self._refuse_nan(number, {name: columns[name][POINTS] for name in self._read})
        if self._turned:
            columns = {name: turned(table, self.matrix) for name, table in columns.items()}
        return Frame(
            number,
            int(self.ticks[which]),
            float(self.times[which]),
            float(self.codes[which]),
            self.files[which],
            {name: columns[name] for name in self.particles},
            {name: columns[name] for name in self.bodies},
            columns,
        )

    def fullest(self, names: Sequence[str]) -> np.ndarray:
        """Places (n, 3) m of populations in the frame of the run that has most of their particles.

        All frames count, chosen or not, so that parts of a run that are exported one by one look the same.
        """
        counts = [self.stored.index(name).counts[: len(self.stored)] for name in names]
        number = int(np.argmax(np.sum(counts, axis=0)))
        places = {name: self.stored.column(number, name, POINTS) for name in names}
        self._refuse_nan(number, places)
        return np.concatenate(list(places.values()))

    def _refuse_nan(self, number: int, places: dict[str, np.ndarray]) -> None:
        for name, x in places.items():
            if not (np.abs(x) <= FARTHEST).all():
                raise StorageError(
                    f"frame {number} of {self.run.path}: {name!r} has a position that is not a finite number "
                    "of single precision"
                )

    def _check(self, name: str) -> None:
        """Refuse columns unlike those of their components: the files may come from anyone."""
        columns = self.columns(name)
        for label, column in columns.items():
            expected = declared(label)
            if expected is not None and expected.shape != column.shape:
                raise StorageError(
                    f"{self.run.path}: {label} of {name!r} has rows of shape {column.shape}; "
                    f"{expected.shape} is needed"
                )
        if name in self.bodies and "RowId.id" not in columns:
            raise StorageError(f"{self.run.path}: the bodies {name!r} have no RowId.id")


def selected_frames(chosen: str | int | slice | None, count: int, run: Path) -> range:
    """Frame numbers that ``first:stop:step``, a number or a slice picks from ``count`` frames.

    Unlike with Python's slices, ends outside the run are refused: mostly they are mistakes.
    """
    if chosen is None:
        return range(count)
    shown = str(chosen)
    if isinstance(chosen, str):
        chosen = _parsed(chosen)
    one = not isinstance(chosen, slice)
    ends = (chosen.start, chosen.stop, chosen.step) if isinstance(chosen, slice) else (chosen,)
    if not all(is_whole(end) or (end is None and not one) for end in ends):
        raise StorageError(
            f"frames = {shown}: a number, a slice of numbers or text such as '0:100:10' is needed"
        )
    every = range(count)
    for end in ends[:2]:
        if end is not None and not -count <= end <= count - one:
            raise StorageError(f"frames {shown}: {run} has frames 0 to {count - 1}, or -1 for the last")
    if not isinstance(chosen, slice):
        return every[chosen % count : chosen % count + 1]
    if chosen.step is not None and chosen.step < 1:
        raise StorageError(f"frames {shown}: a step of at least 1 is needed, since frames go forward in time")
    if not every[chosen]:
        raise StorageError(f"frames {shown} select none of {run}; it has frames 0 to {count - 1}")
    return every[chosen]


def _parsed(text: str) -> int | slice:
    """The number, or the slice as Python writes it, in a text."""
    words = [word.strip() for word in text.split(":")]
    if len(words) > 3 or words == [""] or not all(re.fullmatch(r"(-?\d{1,18})?", word) for word in words):
        raise StorageError(
            f"frames {text!r} cannot be understood; one number or first:stop:step without stop itself is "
            "needed, for example 0:100:10"
        )
    numbers = [int(word) if word else None for word in words]
    return slice(*numbers) if len(numbers) > 1 else int(words[0])


def flat_rows(values: np.ndarray) -> np.ndarray:
    """Rows of numbers (n, k) from rows of any shape, also when there are none."""
    return values.reshape(len(values), math.prod(values.shape[1:]))


def _interval(times: np.ndarray) -> float:
    """Usual time between frames, s; 0 for fewer than two."""
    return float(np.median(np.diff(times))) if len(times) > 1 else 0.0


def _rounded(values: np.ndarray) -> np.ndarray:
    """Values, rounded if they are whole numbers apart from the rounding of products such as 3 x 0.1."""
    near = np.rint(values)
    return np.where(np.abs(values - near) < 1e-6 * np.maximum(1.0, np.abs(values)), near, values)
