"""Several growing files changed together: after a crash at any instant, all of a change is there or none.

HDF5 alone does not give that. Cutting an h5py file that is flushed after each frame at every write showed
that about 1 cut in 150 loses all finished frames too (a half-updated chunk index). So HDF5 writes through
``PagedFile``: what lies past the last committed end goes to the disk at once, where nothing refers to it
yet; what would change committed bytes is kept in memory. ``commit`` writes those pages of all files to one
journal with a checksum, then into the files, then deletes the journal. ``recover`` replays a complete
journal and ignores an incomplete one. A write that fails leaves the committed files as they were.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ecs_fluid.errors import StorageError
from ecs_fluid.input_limits import limits
from ecs_fluid.io.disk import NAME, storage_error, when_free
from ecs_fluid.io.lock import folder_guard
from ecs_fluid.io.untrusted import NO_LINK, read_bytes

PAGE = 4096
JOURNAL = "frame.journal"
_MOST_GROWTH = 2**30
"""Bytes by which a journal may lengthen a file: what HDF5 reserved; what it wrote is in the file already."""

_MAGIC = b"ecs_fluid journal 1\n"


@dataclass
class Change:
    """New bytes of one file: whole pages by page number, and the length of the file afterwards."""

    size: int
    pages: dict[int, bytes] = field(default_factory=dict)


class PagedFile:
    """A binary file object for ``h5py.File`` whose changes become real only through ``commit``.

    HDF5 calls these methods and does not survive exceptions in them (h5py 3.16 can segfault later), so a
    failing disk is noted in ``failure`` instead, and further writes go nowhere; ``check`` raises it.
    """

    def __init__(
        self, path: str | Path, writable: bool, change: Change | None = None, create: bool = False
    ) -> None:
        flags = (os.O_RDWR if writable else os.O_RDONLY) | getattr(os, "O_BINARY", 0)
        flags |= os.O_CREAT | os.O_TRUNC if create else 0
        flags |= NO_LINK if writable else 0
        self.path = Path(path)
        self.failure: OSError | None = None
        self._handle = os.open(self.path, flags, 0o666)
        self._committed = os.fstat(self._handle).st_size
        self._size = change.size if change else self._committed
        self._pages = {k: bytearray(v) for k, v in change.pages.items()} if change else {}
        self._position = 0
        self._discarded = False

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, target: memoryview | bytearray) -> int:
        view = memoryview(target).cast("B")
        start, length = self._position, len(view)
        data = self._stored(length, start)
        view[:] = data
        for number in range(start // PAGE, (start + length - 1) // PAGE + 1) if self._pages else ():
            page = self._pages.get(number)
            if page is not None:
                low = max(start, number * PAGE)
                high = min(start + length, number * PAGE + len(page))
                if low < high:
                    view[low - start : high - start] = page[low - number * PAGE : high - number * PAGE]
        self._position += length
        return length

    def read(self, length: int = -1) -> bytes:
        data = bytearray(self._size - self._position if length < 0 else length)
        self.readinto(data)
        return bytes(data)

    def write(self, data: memoryview | bytes) -> int:
        view = memoryview(data).cast("B")
        if not self._discarded:
            kept = min(max(self._committed - self._position, 0), len(view))
            self._change_pages(view[:kept])
            self._write_through(view[kept:], self._position + kept)
        self._position += len(view)
        self._size = max(self._size, self._position)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        self._size = self._position if size is None else size
        return self._size

    def flush(self) -> None:
        """Nothing to do: bytes are with the system already, or wait for ``commit``."""

    def _change_pages(self, view: memoryview) -> None:
        """Write to the committed part: into pages in memory, until ``commit``."""
        start = self._position
        while view:
            number, inside = divmod(start, PAGE)
            page = self._pages.get(number)
            if page is None:
                page = bytearray(self._stored(min(PAGE, self._committed - number * PAGE), number * PAGE))
                self._pages[number] = page
            part = min(len(page) - inside, len(view))
            page[inside : inside + part] = view[:part]
            view = view[part:]
            start += part

    def _write_through(self, view: memoryview, offset: int) -> None:
        try:
            _write_at(self._handle, view, offset)
        except OSError as failure:
            self.failure = failure
            self._discarded = True

    def _stored(self, length: int, offset: int) -> bytes:
        try:
            return _read_at(self._handle, length, offset).ljust(length, b"\0")
        except OSError as failure:
            self.failure = failure
            self._discarded = True
            return bytes(length)

    def check(self) -> None:
        """Raise the error that a method could not raise."""
        if self.failure is not None:
            raise self.failure

    def change(self) -> Change:
        """The pages and the length that ``commit`` has to write."""
        return Change(self._size, {number: bytes(page) for number, page in self._pages.items()})

    def mark_committed(self) -> None:
        """Take all bytes as committed, after ``commit`` wrote the change into the file."""
        self._committed = self._size
        self._pages.clear()

    def discard(self, cut: bool) -> None:
        """Ignore what HDF5 still wants to write; ``cut`` also gives back the space of uncommitted bytes."""
        self._discarded = True
        if cut:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self._committed)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def commit(folder: Path, files: Mapping[str, PagedFile]) -> None:
    """Make the changes of all ``files`` (keyed by file name in ``folder``) real, together.

    Raises StorageError when the journal cannot be written; nothing has changed then, except that a journal
    which was complete will be replayed by the next ``recover``.
    """
    changes = {name: file.change() for name, file in files.items()}
    journal = folder / JOURNAL
    try:
        for file in files.values():
            file.check()
        _write_journal(journal, changes)
        with folder_guard(folder, exclusive=True):
            for name, change in changes.items():
                _apply(folder / name, change)
            # Before the journal goes: as long as it is there, nobody cuts a file back (see abandon).
            for file in files.values():
                file.mark_committed()
            when_free(journal.unlink)
    except OSError as error:
        raise storage_error(error, "write trajectory frame in", folder) from error


def abandon(folder: Path, files: Iterable[PagedFile]) -> None:
    """Forget uncommitted changes after a failure, but keep a commit whose journal is complete."""
    decided = bool(read_journal(folder))
    for file in files:
        file.discard(cut=not decided)


@contextlib.contextmanager
def no_commits(folder: Path) -> Iterator[None]:
    """Let no commit change the files of ``folder`` while they are read; one that is waiting goes first.

    A journal means that a commit is near. Without this wait a viewer that reads all the time would hold up
    the writer; a journal that a crash left behind costs a reader 20 ms.
    """
    deadline = time.monotonic() + 0.02
    while (folder / JOURNAL).exists() and time.monotonic() < deadline:
        time.sleep(0.0005)
    with folder_guard(folder, exclusive=False):
        yield


def recover(folder: Path) -> None:
    """Finish a commit that a crash interrupted, or forget it where its journal is not complete."""
    journal = folder / JOURNAL
    try:
        with folder_guard(folder, exclusive=True):
            for name, change in read_journal(folder).items():
                _apply(folder / name, change)
            when_free(lambda: journal.unlink(missing_ok=True))
    except OSError as error:
        raise storage_error(error, "repair trajectory in", folder) from error


def read_journal(folder: Path) -> dict[str, Change]:
    """Changes of a complete journal that may not be in the files yet, by file name; empty without one."""
    if not os.path.lexists(folder / JOURNAL):
        return {}
    try:
        data = read_bytes(folder / JOURNAL, "read journal", limits().memory / 2)
    except StorageError:
        if os.path.lexists(folder / JOURNAL):
            raise
        return {}  # its commit was finished in between
    body, digest = data[:-32], data[-32:]
    if not body.startswith(_MAGIC) or _checksum(body) != digest:
        return {}
    try:
        return _parse(body, folder)
    except OSError as error:
        raise storage_error(error, "follow journal of", folder) from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise StorageError(f"journal {folder / JOURNAL} cannot be understood: {error}") from error


def _write_journal(path: Path, changes: Mapping[str, Change]) -> None:
    index = [
        {"name": name, "size": change.size, "pages": [[n, len(page)] for n, page in change.pages.items()]}
        for name, change in changes.items()
    ]
    pages = (page for change in changes.values() for page in change.pages.values())
    body = b"".join([_MAGIC, json.dumps(index).encode(), b"\n", *pages])
    try:
        when_free(lambda: path.unlink(missing_ok=True))
        with open(path, "xb") as handle:  # made anew: a link of that name is not followed
            handle.write(body)
            handle.write(_checksum(body))
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def _parse(body: bytes, folder: Path) -> dict[str, Change]:
    """The changes in a journal, by file name; ValueError for what no commit of ours would write."""
    end = body.index(b"\n", len(_MAGIC))
    offset, changes = end + 1, {}
    for entry in json.loads(body[len(_MAGIC) : end]):
        name, extension = str(entry["name"]).rsplit(".", 1)
        if not NAME.fullmatch(name) or extension != "vtkhdf":
            raise ValueError(f"it names the file {entry['name']!r}")
        change = Change(int(entry["size"]))
        stored = os.path.getsize(folder / f"{name}.vtkhdf")
        if not 0 <= change.size <= stored + _MOST_GROWTH:
            raise ValueError(f"it makes {name}.vtkhdf {change.size} bytes long")
        for number, length in entry["pages"]:
            page = body[offset : offset + int(length)]
            if not 0 < int(length) <= PAGE or len(page) != length or not 0 <= number < 2**50:
                raise ValueError(f"it has no page {number} of {length} bytes")
            change.pages[int(number)] = page
            offset += int(length)
        changes[f"{name}.vtkhdf"] = change
    return changes


def _apply(path: Path, change: Change) -> None:
    handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0) | NO_LINK)
    try:
        for number, page in change.pages.items():
            _write_at(handle, memoryview(page), number * PAGE)
        os.ftruncate(handle, change.size)
    finally:
        os.close(handle)


def _write_at(handle: int, view: memoryview, offset: int) -> None:
    os.lseek(handle, offset, os.SEEK_SET)
    while view:
        view = view[os.write(handle, view) :]


def _read_at(handle: int, length: int, offset: int) -> bytes:
    os.lseek(handle, offset, os.SEEK_SET)
    parts = []
    while length > 0 and (part := os.read(handle, length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=32).digest()
