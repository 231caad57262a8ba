"""Runs from Python: make one, open one, read its frames, look at it, go on with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from rich.console import Console

from ecs_fluid.api.running import Progress, Source, carry_out, checked_numbers, new_runner, resumed_runner
from ecs_fluid.api.stored import VelocityOf, hulls_of_run, status_of
from ecs_fluid.api.table import NotStored, Table
from ecs_fluid.arguments import is_whole, path_of
from ecs_fluid.component import Array
from ecs_fluid.components import SignedDistance
from ecs_fluid.entity import Named
from ecs_fluid.errors import FluidError, sentences
from ecs_fluid.html import table
from ecs_fluid.io.fields import FieldFrame, newest_tick
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.io.trajectory import Trajectory
from ecs_fluid.runs.runner import Runner
from ecs_fluid.runs.surface_frames import NAME, stored_surface
from ecs_fluid.threads import use_threads
from ecs_fluid.validation_errors import shown
from ecs_fluid.world import World

if TYPE_CHECKING:
    import pyvista as pv

    from ecs_fluid.api.pictures import Picture, PictureKeywords


@sentences()
def run(
    source: Source,
    *settings: str,
    ticks: int | None = None,
    out: str | Path | None = None,
    threads: int | None = None,
    progress: bool | Progress = True,
    replace: bool = False,
    allow_code: bool = False,
) -> Run:
    """Simulate a world into a run folder, and return the run; the command `ecs-fluid run` in Python.

    Args:
        source: a shipped name, a file, its tables as a dict, a WorldRecipe, or a World, which is stepped.
        settings: ``path=value`` overrides, such as ``"fluid.viscosity=1e-4"`` (not with a recipe or a World).
        ticks: how many to run; default all of the world's duration.
        out: run folder; default ``runs/NAME``, numbered when taken.
        threads: threads of the kernels in this process from now on; by default as before, at first all cores.
        progress: True shows a bar (lines where there is no terminal or notebook), False nothing; a function
            is called after every tick with its number and that of the last one.
        replace: replace a run that is in `out` already.
        allow_code: whether the file may name classes by import path, which runs their code.

    Raises:
        FluidError: the world is refused (RecipeError), diverges (DivergedError; its last good state
            is stored), or cannot be stored (StorageError).
        KeyboardInterrupt: Ctrl-C; the tick under way was finished and stored first, so that `Run.resume` of
            ``ecs_fluid.open_run(folder)`` goes on.
    """
    ticks, threads = checked_numbers(ticks, threads, progress)
    use_threads(threads)
    runner = new_runner(source, settings, ticks=ticks, out=out, replace=replace, allow_code=allow_code)
    return _finished(runner, progress)


@sentences()
def open_run(path: str | Path) -> Run:
    """The run in a folder, to read, to look at, or to go on with. Raises StorageError if there is none."""
    return Run(path)


def _finished(runner: Runner, progress: bool | Progress) -> Run:
    """Carry out a run, and open it."""
    path = runner.folder.path
    console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True, emoji=False)
    if carry_out(runner, console, progress) == "stopped":
        raise KeyboardInterrupt(
            f"stopped at tick {runner.world.tick} of {runner.last_tick}; "
            f"ecs_fluid.open_run({str(path)!r}).resume() goes on"
        )
    return Run(path)


class Run:
    """A run on disk, finished or under way: a sequence of stored frames, and what was recorded.

    ``run[-1]["ring"]["Position.x"]`` is an array of its last frame, ``len(run)`` the number of frames; going
    through a run reads one frame at a time.
    """

    def __init__(self, path: str | Path) -> None:
        # Absolute, so that it is found from another working folder too.
        self._folder = RunFolder.open(path_of(path, "run folder").absolute())

    @property
    def path(self) -> Path:
        """The run folder, as an absolute path."""
        return self._folder.path

    @property
    def info(self) -> dict[str, Any]:
        """What ``run.json`` says: command, seed, ticks, wall time, time of every system, state hash."""
        return self._folder.read_info()

    @property
    def status(self) -> str:
        """The state of the run: "running", "finished", "stopped", "killed", "diverged" or "failed"."""
        return status_of(self._folder)

    @property
    def frames(self) -> Frames:
        """The frames that are stored now."""
        return Frames(self._folder)

    @property
    def times(self) -> Array:
        """Time of every stored frame (frames,), s."""
        return self._folder.read_trajectory().times

    @overload
    def __getitem__(self, number: int) -> Frame: ...
    @overload
    def __getitem__(self, number: slice) -> list[Frame]: ...
    def __getitem__(self, number: int | slice) -> Frame | list[Frame]:
        return self.frames[number]

    def __len__(self) -> int:
        return len(self.frames)

    def __iter__(self) -> Iterator[Frame]:
        return iter(self.frames)

    @property
    def diagnostics(self) -> Table:
        """All records: a column for tick, time and every diagnostic; ``diagnostics.to_pandas()`` too."""
        return Table(self._folder.records())

    # ------------------------------------------------------------------ pictures and exports

    @sentences()
    def show(
        self, frame: int = -1, *, save: str | Path | None = None, **drawing: Unpack[PictureKeywords]
    ) -> Picture | None:
        """Show a stored frame: in a notebook as its picture, else in a window; or write it to a .png file.

        Args:
            frame: number of the frame, from 0; -1 is the last.
            save: file to write; no window is opened then.
            drawing: what to draw and how, as in `ecs-fluid show`: see `ecs_fluid.PictureKeywords`.
        """
        from ecs_fluid.api.pictures import show, stored_moment

        if not is_whole(frame):
            raise FluidError(
                f"frame = {shown(frame)}; the number of a frame is needed, and a file name goes to save"
            )
        return show(stored_moment(self.path, int(frame)), drawing, save)

    @sentences()
    def movie(
        self,
        path: str | Path,
        frames: str | int | slice | None = None,
        *,
        fps: float | None = None,
        orbit: float = 0.0,
        jobs: int = 1,
        progress: Callable[[int], object] | None = None,
        **drawing: Unpack[PictureKeywords],
    ) -> Path:
        """Write stored frames as a movie, and return its path.

        Args:
            path: an .mp4 or .gif, or a sequence of pictures: ``"film/frame_%04d.png"``.
            frames: a slice, ``"first:stop:step"``, or one number; default all.
            fps: frames per second of the movie; default as fast as it happens.
            orbit: turn the camera by so many degrees per second of the movie.
            jobs: processes that draw side by side.
            progress: called with the number of frames done.
            drawing: what to draw and how: see `ecs_fluid.PictureKeywords`.
        """
        from ecs_fluid.api.pictures import write_movie

        return write_movie(
            self.path, path, frames, drawing, fps=fps, orbit=orbit, jobs=jobs, progress=progress
        )

    def export(
        self,
        to: str,
        frames: str | int | slice | None = None,
        out: str | Path | None = None,
        *,
        only: Sequence[str] = (),
        voxel: float | None = None,
        start: int = 0,
        up: str | None = None,
        replace: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Path:
        """Write frames for another program ("usd", "vdb", "vtp", ...); see `ecs_fluid.export`."""
        from ecs_fluid.exports import export

        return export(
            self.path,
            to,
            frames,
            out,
            only=only,
            voxel=voxel,
            start=start,
            up=up,
            replace=replace,
            progress=progress,
        )

    # ------------------------------------------------------------------ resuming

    @sentences()
    def resume(
        self,
        ticks: int | None = None,
        *settings: str,
        threads: int | None = None,
        progress: bool | Progress = True,
        allow_code: bool = False,
        anyway: bool = False,
    ) -> Run:
        """Go on from the newest checkpoint, bit for bit, and return the run; a complete run is left as it is.

        Args:
            ticks: last tick of the run, to make it longer or shorter.
            settings: ``path=value``, what changes from here on, such as ``"system.wind.velocity.x=0"``:
                parameters of systems, constants of the fluid, ``world.duration``.
            threads, progress, allow_code: as in `ecs_fluid.run`.
            anyway: go on even if other versions or another processor computed the run so far.
        """
        ticks, threads = checked_numbers(ticks, threads, progress)
        use_threads(threads)
        runner = resumed_runner(self.path, ticks, allow_code, anyway, settings)
        return self if runner is None else _finished(runner, progress)

    def __repr__(self) -> str:
        try:
            state = f"{self.status}, {len(self)} frames"
        except FluidError:  # debuggers and tracebacks call this too
            state = "cannot be read"
        return f"Run({str(self.path)!r}, {state})"

    def _repr_html_(self) -> str:
        try:
            info, frames, status = self.info, self.frames, self.status
        except FluidError as error:
            return table(str(self.path), ("run", ""), [("cannot be read", str(error))])
        rows = [
            ("status", status),
            ("ticks", f"{info.get('ticks', 0)} of {info.get('plan', {}).get('last_tick', '?')}"),
            ("simulated time", f"{info.get('time', 0.0):.6g} s"),
            ("wall time", f"{info.get('wall_seconds', 0.0):.1f} s"),
            ("stored frames", len(frames)),
            *((name, f"{count:,} rows") for name, count in info.get("particles", {}).items()),
        ]
        return table(str(self.path), ("run", ""), rows)


class Frames(Sequence["Frame"]):
    """The stored frames of a run; columns are read from disk when they are used."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder, self._stored = folder, folder.read_trajectory()

    def __len__(self) -> int:
        return len(self._stored)

    @overload
    def __getitem__(self, number: int) -> Frame: ...
    @overload
    def __getitem__(self, number: slice) -> list[Frame]: ...
    def __getitem__(self, number: int | slice) -> Frame | list[Frame]:
        if isinstance(number, slice):
            parts = (number.start, number.stop, number.step)
            if not all(part is None or is_whole(part) for part in parts) or number.step == 0:
                raise FluidError(
                    f"{shown(number)} is not a slice of frames; whole numbers and a step other than 0 are "
                    "needed, for example run[2:8]"
                )
            return [Frame(self._folder, self._stored, k) for k in range(len(self))[number]]
        if not is_whole(number):
            raise FluidError(
                f"{shown(number)} is not the number of a frame; populations are in frames, for example "
                "run[-1]['ring']"
            )
        if not -len(self) <= number < len(self):
            raise IndexError(f"{self._folder.path} has {len(self)} stored frames, no frame {number}")
        return Frame(self._folder, self._stored, number % len(self))

    def __repr__(self) -> str:
        times = self._stored.times
        span = f", t = {times[0]:.6g} to {times[-1]:.6g} s" if len(self) else ""
        return f"Frames({len(self)} of {str(self._folder.path)!r}{span})"


class Frame(Named["Columns"]):
    """One stored frame: populations by name, each with its columns; ``frame["ring"]["Position.x"]``."""

    def __init__(self, folder: RunFolder, stored: Trajectory, number: int) -> None:
        super().__init__(stored.populations)
        self._folder, self._stored = folder, stored
        self.number = number
        """Number of the frame, from 0"""
        self.tick: int = int(stored.ticks[number])
        self.time: float = float(stored.times[number])

    def __getitem__(self, name: str) -> Columns:
        if name not in self:
            known = ", ".join(self) or "none"
            raise NotStored(f"{self._folder.path} has no population {name!r}; it has {known}")
        return Columns(self._stored, self.number, name)

    @property
    def distances(self) -> FieldFrame | None:
        """Signed distances to the liquid's surface: origin, spacing, and the arrays phi (m) and, if known, T.

        None if the run stored none with this frame: a SurfaceSystem makes them.
        """
        stored = newest_tick(self._folder.fields, NAME, self.tick) == self.tick
        return stored_surface(self._folder.fields, self.tick) if stored else None

    @cached_property
    def flow(self) -> World:
        """A world of this frame's vortons, gas and signed distances, to ask for velocities and samples.

        Its time is that of the frame.
        """
        world, level = VelocityOf(self._folder.path).world_of(self, self.time), self.distances
        if level is not None:
            phi = level.arrays["phi"]
            there = int(phi.min() <= 0 < phi.max())
            world.attach("fluid", SignedDistance(level.origin, level.spacing, phi, [there]))
        return world

    @sentences()
    def to_pyvista(self) -> pv.MultiBlock:
        """Populations, signed distances and bodies as PyVista objects; see `World.to_pyvista`."""
        from ecs_fluid.api.pyvista_objects import blocks, grid_of_distances

        level = self.distances
        grids = {} if level is None else {"signed_distance": grid_of_distances(level)}
        return blocks(self, grids, hulls_of_run(self._folder.path), self.time)

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}: {len(columns)} columns" for name, columns in self.items())
        return f"Frame({self.number}, tick={self.tick}, time={self.time:.6g} s, {rows})"


class Columns(Named[Array]):
    """Columns of a population in one frame, by their label ``Component.column``; read when asked for."""

    def __init__(self, stored: Trajectory, number: int, population: str) -> None:
        super().__init__(stored.index(population).columns)
        self._stored, self._number, self._population = stored, number, population

    def __getitem__(self, label: str) -> Array:
        if label not in self:
            known = ", ".join(self)
            raise NotStored(f"{self._population!r} has no column {label!r}; it has {known}")
        return self._stored.column(self._number, self._population, label)

    def __repr__(self) -> str:
        return f"Columns({self._population!r}: {', '.join(self)})"
