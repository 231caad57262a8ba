"""The trajectory of a run: every stored frame of every population, written crash-safely, read back exactly.

``RUN/trajectory/`` holds one ``<population>.vtkhdf`` per population; all have the same frames. Frames are
committed in all files together (see ``ecs_fluid.io.transaction``): a process killed at any instant loses at
most the frame it was writing, and a full disk loses that frame only.
"""

from __future__ import annotations

import contextlib
import math
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from ecs_fluid.errors import DAMAGE, StorageError
from ecs_fluid.io import vtkhdf
from ecs_fluid.io.disk import NAME, damage_error, make_folder, storage_error, temporary_name
from ecs_fluid.io.lock import LOCK, WriterLock, interrupts_delayed
from ecs_fluid.io.transaction import JOURNAL, PagedFile, abandon, commit, no_commits, read_journal, recover
from ecs_fluid.io.untrusted import check_file, refuse_linked
from ecs_fluid.io.vtkhdf import Column, Index
from ecs_fluid.io.xdmf import write_xdmf

_DAMAGE = (OSError, *DAMAGE)

CHUNKS_IN_CACHE = 521
"""Places for chunks, none of which is needed twice, in the cache of a dataset; by default they take 64 kB"""

MOST_BYTES = 2**62
"""Most bytes of a trajectory file; it is read frame by frame, so it may be larger than memory."""


@dataclass
class _OpenFile:
    paged: PagedFile
    hdf: h5py.File
    index: Index  # as it was when the file was opened
    appender: vtkhdf.FrameAppender


class TrajectoryWriter:
    """Append frames to the trajectory in ``folder``; one writer at a time.

    With ``resume_at_tick`` an existing trajectory is continued: frames later than that tick are dropped, so
    that a resumed run writes them again, and a commit that a crash interrupted is finished. Without it the
    folder must not hold a trajectory yet. However the process ends, all frames before stay.

    Raises StorageError: another writer, no permission, damaged files, an existing trajectory.
    """

    @interrupts_delayed()
    def __init__(self, folder: str | Path, resume_at_tick: int | None = None) -> None:
        self.folder: Path = Path(folder)
        self._files: dict[str, _OpenFile] = {}
        self._columns: dict[str, dict[str, Column]] = {}
        self._ticks, self._times = array("q"), array("d")
        make_folder(self.folder)
        refuse_linked(self.folder)
        if resume_at_tick is None and (_population_files(self.folder) or (self.folder / JOURNAL).exists()):
            raise StorageError(
                f"{self.folder} already holds a trajectory; continue it with resume_at_tick or choose "
                "another folder"
            )
        self._lock: WriterLock | None = WriterLock(self.folder / LOCK)
        try:
            for unfinished in self.folder.glob(temporary_name(Path("*.vtkhdf")).name):
                unfinished.unlink(missing_ok=True)
            recover(self.folder)
            self._open_all()
            if resume_at_tick is not None:
                self._drop_after(resume_at_tick)
        except OSError as error:
            self._close_all()
            raise storage_error(error, "continue trajectory in", self.folder) from error
        except BaseException:
            self._close_all()
            raise

    @property
    def ticks(self) -> tuple[int, ...]:
        """Ticks of the frames stored so far."""
        return tuple(self._ticks)

    @property
    def populations(self) -> tuple[str, ...]:
        """Names of the populations stored so far."""
        return tuple(self._files)

    @interrupts_delayed()
    def append(self, tick: int, time: float, populations: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Store one frame: ``populations[name][column]`` are arrays with one row per particle.

        ``tick`` must grow, ``time`` is in seconds. ``Position.x`` (n, 3) m is needed, any number of other
        columns may follow; a population keeps the columns, dtypes and row shapes of its first frame, but
        may have any number of rows, also none, may appear later and may be left out. A frame without any
        population is remembered, but stored only once the first population appears.

        Raises StorageError; the frame is then not stored, all former ones are, and appending may be tried
        again, for example after disk space was freed. Ctrl-C takes effect when the frame is stored.
        """
        described = self._check(tick, time, populations)
        try:
            new = [name for name in described if name not in self._files]
            for name in new:
                self._create_file(name, *described[name])
            for name in new:  # after all are made: closing a file takes longer the more is open
                self._open_file(name)
            for name, file in self._files.items():
                rows = described[name][0] if name in described else 0
                file.appender.append(tick, time, rows, populations.get(name, {}))
                file.hdf.flush()
                file.paged.check()
            self._commit()
        except BaseException as error:
            failures = [file.paged.failure for file in self._files.values()]
            self._roll_back()
            cause = next((failure for failure in failures if failure is not None), error)
            if isinstance(cause, OSError):
                raise storage_error(cause, "write trajectory frame in", self.folder) from error
            if isinstance(error, StorageError) and self._ticks[-1:].tolist() == [tick]:
                return  # its journal was complete before it failed, so rolling back has finished it
            raise cause from None
        self._ticks.append(tick)
        self._times.append(time)

    @interrupts_delayed()
    def close(self) -> None:
        """Finish the files and write their XDMF sidecars; harmless when repeated."""
        if self._lock is None:
            return
        self._close_all()
        stored = Trajectory(self.folder)
        for name in stored.populations:
            write_xdmf(self.folder, name, stored.index(name), range(len(stored)))

    def __enter__(self) -> TrajectoryWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.close()
        except StorageError:
            if kind is None:  # a sidecar that does not fit on a full disk must not hide the first error
                raise

    def _check(
        self, tick: int, time: float, populations: Mapping[str, Mapping[str, np.ndarray]]
    ) -> dict[str, tuple[int, dict[str, Column]]]:
        """Check a frame; return the number of rows and the columns of each population."""
        if self._lock is None:
            raise StorageError(f"the trajectory in {self.folder} is closed; no frame can be added")
        if self._ticks and tick <= self._ticks[-1]:
            raise StorageError(
                f"frame of tick {tick} cannot follow the one of tick {self._ticks[-1]} in {self.folder}; "
                "ticks must increase"
            )
        if not math.isfinite(time):
            raise StorageError(f"frame of tick {tick} has time {time}; it must be a finite number of seconds")
        described = {name: vtkhdf.describe(name, data) for name, data in populations.items()}
        for name, (_, columns) in described.items():
            known = self._columns.get(name, columns)
            if known != columns:
                changed = sorted(c for c in known.keys() | columns.keys() if known.get(c) != columns.get(c))
                raise StorageError(
                    f"population {name!r} changed its columns at tick {tick} ({', '.join(changed)}); a "
                    "trajectory keeps the columns, dtypes and row shapes of the first frame"
                )
        return described

    def _create_file(self, name: str, rows: int, columns: dict[str, Column]) -> None:
        """Give a new population its file, with an empty frame for each that went before."""
        path = self.folder / f"{name}.vtkhdf"
        unfinished = temporary_name(path)
        ticks, times = np.array(self._ticks, dtype=np.int64), np.array(self._times, dtype=np.float64)
        image = PagedFile(unfinished, writable=True, create=True)
        try:
            with contextlib.closing(image):
                try:
                    with h5py.File(image, "w", rdcc_nslots=CHUNKS_IN_CACHE) as file:
                        vtkhdf.create(file, columns, rows, ticks, times)
                except _DAMAGE as error:
                    raise image.failure or error from None
                image.check()
            unfinished.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise

    def _open_all(self) -> None:
        indices = [self._open_file(path.stem) for path in _population_files(self.folder)]
        if indices:
            shortest = min(indices, key=lambda index: len(index.ticks))
            self._ticks = array("q", shortest.ticks.tolist())
            self._times = array("d", shortest.times.tolist())
            if any((index.ticks[: len(self._ticks)] != shortest.ticks).any() for index in indices):
                raise StorageError(f"the populations in {self.folder} do not have the same frames")

    def _open_file(self, name: str) -> Index:
        path = self.folder / f"{name}.vtkhdf"
        check_file(path, "continue trajectory file", MOST_BYTES)
        try:
            with contextlib.ExitStack() as undo:
                paged = undo.enter_context(contextlib.closing(PagedFile(path, writable=True)))
                hdf = undo.enter_context(h5py.File(paged, "r+", rdcc_nslots=CHUNKS_IN_CACHE))
                index = vtkhdf.read_index(hdf)
                vtkhdf.check_extents(hdf, index)
                self._files[name] = _OpenFile(paged, hdf, index, vtkhdf.FrameAppender(hdf, index))
                undo.pop_all()
        except _DAMAGE as error:
            raise damage_error(error, "trajectory file", path) from error
        self._columns[name] = index.columns
        return index

    def _drop_after(self, tick: int) -> None:
        """Cut all files after the frame of `tick`; remove those of populations that appear only later."""
        keep = sum(stored <= tick for stored in self._ticks)
        empty = []  # populations without a frame up to that tick
        for name, file in self._files.items():
            if file.index.first_frame >= keep:
                empty.append(name)
            elif len(file.index.ticks) > keep:
                vtkhdf.cut(file.hdf, file.index, keep)
                file.hdf.flush()
        self._commit()
        self._ticks, self._times = self._ticks[:keep], self._times[:keep]
        self._close_files()  # their appenders count from the frames before the cut
        for name in empty:
            del self._columns[name]
            (self.folder / f"{name}.vtkhdf").unlink()
        self._open_all()

    def _commit(self) -> None:
        if self._files:
            files = {f"{name}.vtkhdf": file.paged for name, file in self._files.items()}
            commit(self.folder, files)

    def _roll_back(self) -> None:
        """After a failure, forget what HDF5 holds in memory and open the files as the disk holds them."""
        abandon(self.folder, [file.paged for file in self._files.values()])
        ticks, times = self._ticks, self._times
        self._close_files()
        try:
            recover(self.folder)
            self._columns.clear()
            self._open_all()
        except BaseException:
            self._close_all()
            raise
        if not self._files:
            self._ticks, self._times = ticks, times

    def _close_files(self) -> None:
        """Close all files, their datasets first: at each file HDF5 looks at all that is open."""
        files = list(self._files.values())
        self._files.clear()
        for file in files:
            file.appender.release()
        for file in files:
            with contextlib.suppress(*_DAMAGE):
                file.hdf.close()
            file.paged.close()

    def _close_all(self) -> None:
        abandon(self.folder, [file.paged for file in self._files.values()])
        self._close_files()
        if self._lock is not None:
            self._lock.release()
            self._lock = None


class Trajectory:
    """Read the trajectory in ``folder``, finished or not, also while it is being written.

    ``ticks`` (frames,) int64, ``times`` (frames,) float64 s and ``populations`` describe what is there;
    ``refresh`` reads that anew. Raises StorageError for damaged files and a missing folder.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder: Path = Path(folder)
        self.refresh()

    def refresh(self) -> None:
        """Look for new frames and populations."""
        if not self.folder.is_dir():
            raise StorageError(f"cannot read trajectory {self.folder}: there is no such folder")
        self._indices: dict[str, Index] = {}
        with no_commits(self.folder):
            for path in _population_files(self.folder):
                with self._opened(path.stem) as file:
                    self._indices[path.stem] = vtkhdf.read_index(file)
        indices = list(self._indices.values())
        count = min((len(index.ticks) for index in indices), default=0)
        self.ticks: np.ndarray = indices[0].ticks[:count] if indices else np.empty(0, dtype=np.int64)
        self.times: np.ndarray = indices[0].times[:count] if indices else np.empty(0)
        if any((index.ticks[:count] != self.ticks).any() for index in indices):
            raise StorageError(f"the populations in {self.folder} do not have the same frames")

    @property
    def populations(self) -> tuple[str, ...]:
        """Names of all populations that appear in any frame, sorted."""
        return tuple(self._indices)

    def index(self, population: str) -> Index:
        """Columns of a population, and where its frames lie in its file."""
        try:
            return self._indices[population]
        except KeyError:
            raise StorageError(
                f"the trajectory {self.folder} has no population {population!r}; it has "
                f"{', '.join(self._indices) or 'none'}"
            ) from None

    def __len__(self) -> int:
        return len(self.ticks)

    def frame(self, number: int) -> dict[str, dict[str, np.ndarray]]:
        """Frame ``number`` (negative from the end): ``{population: {column: array}}``, bit for bit."""
        number, found = self._frame_number(number), {}
        with no_commits(self.folder):
            for name, index in self._indices.items():
                with self._opened(name) as file:
                    found[name] = vtkhdf.read_frame(file, index, number)
        return found

    def column(self, number: int, population: str, name: str) -> np.ndarray:
        """One column of a population in frame ``number``; nothing else is read."""
        number, index = self._frame_number(number), self.index(population)
        with no_commits(self.folder), self._opened(population) as file:
            return vtkhdf.read_frame(file, index, number, [name])[name]

    def _frame_number(self, number: int) -> int:
        """``number`` counted from the first frame. Raises StorageError where there is no such frame."""
        if not -len(self) <= number < len(self):
            raise StorageError(f"the trajectory {self.folder} has {len(self)} frames, not frame {number}")
        return number % len(self)

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[h5py.File]:
        """Open a file to read it, with the changes of a commit that a crash interrupted laid over it."""
        path = self.folder / f"{name}.vtkhdf"
        change = read_journal(self.folder).get(path.name)
        check_file(path, "read trajectory file", MOST_BYTES)
        try:
            if change is None:
                with h5py.File(path, "r", locking=False, rdcc_nslots=CHUNKS_IN_CACHE) as file:
                    yield file
            else:
                image = PagedFile(path, writable=False, change=change)
                with contextlib.closing(image) as paged, h5py.File(paged, "r") as file:
                    yield file
        except _DAMAGE as error:
            raise damage_error(error, "trajectory file", path) from error


def _population_files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.glob("*.vtkhdf") if NAME.fullmatch(path.stem))
    except OSError as error:
        raise storage_error(error, "read trajectory", folder) from error
