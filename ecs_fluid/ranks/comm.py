"""Messages between ranks, counted."""

from __future__ import annotations

import os
import pickle
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError

READ = 0.5
"""Seconds that mpiexec has to read what a rank says before the job ends, else it may be lost"""


@dataclass
class Traffic:
    """What one rank sent and received for one purpose: calls, bytes, seconds in them (waiting included)."""

    calls: int = 0
    sent: int = 0
    received: int = 0
    seconds: float = 0.0


class Comm:
    """Collective calls of mpi4py on arrays of rows and on small Python values; every rank makes the same.

    Args:
        comm: an mpi4py communicator.
        traffic: where bytes are counted, if somebody else counts there too.
    """

    def __init__(self, comm: Any, traffic: dict[str, Traffic] | None = None) -> None:
        self.handle = comm
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self.traffic: dict[str, Traffic] = {} if traffic is None else traffic
        self.at_work = False
        """Whether all ranks are within one call of their world"""

    def count(self, purpose: str, started: float, sent: int, received: int) -> None:
        """Note a call that began at `started` s of the clock, and its bytes."""
        traffic = self.traffic.setdefault(purpose, Traffic())
        traffic.calls += 1
        traffic.sent += sent
        traffic.received += received
        traffic.seconds += time.perf_counter() - started

    def broadcast(self, value: Any, purpose: str = "control") -> Any:
        """The value that rank 0 gives, on every rank."""
        started, first = time.perf_counter(), self.rank == 0
        data = self.handle.bcast(pickle.dumps(value) if first else None)
        self.count(purpose, started, len(data) * (self.size - 1) * first, len(data) * (not first))
        return value if first else pickle.loads(data)

    def gather_numbers(self, values: Any, purpose: str = "control") -> Array:
        """The same few numbers of every rank, (size, ...) in the order of the ranks."""
        started = time.perf_counter()
        mine = np.asarray(values, order="C")
        every = np.empty((self.size, *mine.shape), mine.dtype)
        self.handle.Allgather(mine, every)
        self.count(purpose, started, mine.nbytes * (self.size - 1), mine.nbytes * (self.size - 1))
        return every

    def gather_values(self, value: Any, purpose: str = "control") -> list[Any]:
        """A small value of every rank, in the order of the ranks; quick where all are None."""
        if not self.gather_numbers(np.int8(value is not None), purpose).any():
            return [None] * self.size
        started = time.perf_counter()
        every = self.handle.allgather(pickle.dumps(value))
        lengths = [len(data) for data in every]
        mine = lengths[self.rank]
        self.count(purpose, started, mine * (self.size - 1), sum(lengths) - mine)
        return [pickle.loads(data) for data in every]

    def gather_rows(self, part: Array, counts: Sequence[int], purpose: str = "rows") -> Array:
        """All rows (sum of counts, ...), the blocks of the ranks one after the other, on every rank."""
        started, whole = time.perf_counter(), room(part, counts)
        self.handle.Allgatherv(message(part), message(whole, counts))
        self.count(purpose, started, part.nbytes * (self.size - 1), whole.nbytes - part.nbytes)
        return whole

    def rows_to_first(self, part: Array, counts: Sequence[int], purpose: str = "files") -> Array | None:
        """Like `gather_rows`, on rank 0 alone."""
        started, whole = time.perf_counter(), None if self.rank else room(part, counts)
        self.handle.Gatherv(message(part), None if whole is None else message(whole, counts))
        sent, received = (part.nbytes, 0) if whole is None else (0, whole.nbytes - part.nbytes)
        self.count(purpose, started, sent, received)
        return whole

    def rows_from_first(self, whole: Array | None, like: Array, counts: Sequence[int]) -> Array:
        """This rank's block of rows of an array that rank 0 has; `like` (0, ...) tells shape and dtype."""
        started, part = time.perf_counter(), room(like, [counts[self.rank]])
        self.handle.Scatterv(None if whole is None else message(whole, counts), message(part))
        sent, received = (0, part.nbytes) if whole is None else (whole.nbytes - part.nbytes, 0)
        self.count("start", started, sent, received)
        return part

    def exchange(self, parts: Sequence[Array], counts: Sequence[int], purpose: str = "rows") -> list[Array]:
        """Send ``parts[r]`` to each rank r; returns the rows that came from each, ``counts[r]`` of them."""
        started, whole, came = time.perf_counter(), np.concatenate(parts), room(parts[0], counts)
        self.handle.Alltoallv(message(whole, [len(part) for part in parts]), message(came, counts))
        found = np.split(came, np.cumsum(counts)[:-1])
        kept = parts[self.rank].nbytes
        self.count(purpose, started, whole.nbytes - kept, came.nbytes - found[self.rank].nbytes)
        return found

    def exchange_counts(self, counts: Sequence[int], purpose: str = "rows") -> list[int]:
        """What every rank has for this one, from what this one has for each of them."""
        started = time.perf_counter()
        mine, came = np.array(counts, np.int64), np.empty(self.size, np.int64)
        self.handle.Alltoall(mine, came)
        self.count(purpose, started, 8 * (self.size - 1), 8 * (self.size - 1))
        return [int(count) for count in came]

    def sum(self, values: Array, purpose: str = "control") -> Array:
        """The sum over the ranks of whole numbers."""
        started = time.perf_counter()
        mine = np.asarray(values, np.int64, order="C")
        whole = np.empty_like(mine)
        self.handle.Allreduce(mine, whole)
        # By halves and doublings, as libraries do for many numbers.
        passed = 2 * mine.nbytes * (self.size - 1) // self.size
        self.count(purpose, started, passed, passed)
        return whole

    def share_error(self, error: Exception | None) -> None:
        """Raise on all ranks what one of them ran into."""
        first = next((found for found in self.gather_values(error) if found is not None), None)
        if first is not None:
            raise first

    def give_up(self, error: BaseException) -> NoReturn:
        """End all ranks at once for what one may have met alone, which would leave the others waiting."""
        from mpi4py import MPI

        code = 2 if isinstance(error, FluidError | MPI.Exception) else 1
        if code == 2:
            said = " ".join(str(error).split())
            print(f"error: rank {self.rank} of {self.size}: {said}", file=sys.stderr, flush=True)
        else:
            traceback.print_exception(error)
        time.sleep(READ)
        self.handle.Abort(code)
        os._exit(code)  # in a thread that call may return


class Route:
    """Rows that go to the ranks ``to`` (n,), and what comes of them, which may go back; collective.

    Args:
        comm: what passes messages.
        to: rank of each row.
        purpose: for which bytes are counted.
    """

    def __init__(self, comm: Comm, to: Array, purpose: str) -> None:
        self._comm, self._purpose = comm, purpose
        # NumPy counts 16 bits; it compares more.
        self._by_rank = np.argsort(to.astype(np.uint16), kind="stable")
        self._sent = np.bincount(to, minlength=comm.size).tolist()
        self._came = comm.exchange_counts(self._sent, purpose)

    def send(self, columns: Sequence[Array]) -> list[Array]:
        """Columns (n, ...) of rows; returns those that came, in the order of the ranks."""
        rows = np.split(as_bytes([column[self._by_rank] for column in columns]), np.cumsum(self._sent)[:-1])
        came = self._comm.exchange(rows, self._came, self._purpose)
        return from_bytes(np.concatenate(came), columns)

    def back(self, columns: Sequence[Array]) -> list[Array]:
        """Columns of the rows that came; returns them on the ranks that sent these, in their order."""
        rows = np.split(as_bytes(columns), np.cumsum(self._came)[:-1])
        came = np.concatenate(self._comm.exchange(rows, self._sent, self._purpose))
        home = np.empty_like(came)
        home[self._by_rank] = came
        return from_bytes(home, columns)


def width(array: Array) -> int:
    """Bytes of a row."""
    return int(array.dtype.itemsize * np.prod(array.shape[1:], dtype=np.int64))


def room(like: Array, counts: Sequence[int]) -> Array:
    """An array for so many rows like those of another."""
    return np.empty((int(sum(counts)), *like.shape[1:]), like.dtype)


def message(rows: Array, counts: Sequence[int] | None = None) -> list[Any]:
    """Rows as MPI takes them, as bytes: all of them, or in blocks of so many rows for or from each rank."""
    from mpi4py import MPI

    if counts is None:
        return [np.ascontiguousarray(rows), rows.nbytes, MPI.BYTE]
    lengths = np.array(counts, np.int64) * width(rows)
    return [rows, lengths.tolist(), (np.cumsum(lengths) - lengths).tolist(), MPI.BYTE]


def as_bytes(columns: Sequence[Array]) -> Array:
    """Columns (n, ...) side by side as rows of bytes (n, width)."""
    parts = [
        np.ascontiguousarray(column).reshape(len(column), width(column) // column.itemsize)
        for column in columns
    ]
    return np.concatenate([part.view(np.uint8) for part in parts], axis=1)


def from_bytes(rows: Array, like: Sequence[Array]) -> list[Array]:
    """Columns out of rows of bytes (n, width), with the dtypes and the shapes of rows that `like` has."""
    ends = np.cumsum([width(column) for column in like])[:-1]
    parts = [np.ascontiguousarray(part) for part in np.split(rows, ends, axis=1)]
    return [
        part.view(column.dtype).reshape(len(rows), *column.shape[1:])
        for part, column in zip(parts, like, strict=True)
    ]
