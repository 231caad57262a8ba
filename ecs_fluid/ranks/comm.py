"""Messages between ranks, and counts of their calls and bytes."""

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

READ_SECONDS = 0.5
"""Time, s, for mpiexec to read the message of a rank before the job ends; else it may be lost"""


@dataclass
class Traffic:
    """Traffic of a rank for one purpose: calls, bytes sent and received, seconds (waiting included)."""

    calls: int = 0
    sent: int = 0
    received: int = 0
    seconds: float = 0.0


class Comm:
    """Collective calls of mpi4py on arrays of rows and on small Python values; every rank makes the same.

    Args:
        comm: an mpi4py communicator.
        traffic: counts to add to, if they are shared with another Comm.
    """

    def __init__(self, comm: Any, traffic: dict[str, Traffic] | None = None) -> None:
        self.handle = comm
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self.traffic: dict[str, Traffic] = {} if traffic is None else traffic
        self.at_work = False
        """Whether all ranks are within the same call of their world"""

    def add_traffic(self, purpose: str, started: float, sent: int, received: int) -> None:
        """Count a call that began at `started` s of the clock, and its bytes."""
        traffic = self.traffic.setdefault(purpose, Traffic())
        traffic.calls += 1
        traffic.sent += sent
        traffic.received += received
        traffic.seconds += time.perf_counter() - started

    def broadcast(self, value: Any, purpose: str = "control") -> Any:
        """The value of rank 0, on every rank."""
        started, first = time.perf_counter(), self.rank == 0
        data = self.handle.bcast(pickle.dumps(value) if first else None)
        self.add_traffic(purpose, started, len(data) * (self.size - 1) * first, len(data) * (not first))
        return value if first else pickle.loads(data)

    def gather_numbers(self, values: Any, purpose: str = "control") -> Array:
        """The same few numbers of every rank, (size, ...) in the order of the ranks."""
        started = time.perf_counter()
        mine = np.asarray(values, order="C")
        every = np.empty((self.size, *mine.shape), mine.dtype)
        self.handle.Allgather(mine, every)
        self.add_traffic(purpose, started, mine.nbytes * (self.size - 1), mine.nbytes * (self.size - 1))
        return every

    def gather_values(self, value: Any) -> list[Any]:
        """A small value of every rank, in the order of the ranks; quick where all are None."""
        if not self.gather_numbers(np.int8(value is not None)).any():
            return [None] * self.size
        started = time.perf_counter()
        every = self.handle.allgather(pickle.dumps(value))
        lengths = [len(data) for data in every]
        mine = lengths[self.rank]
        self.add_traffic("control", started, mine * (self.size - 1), sum(lengths) - mine)
        return [pickle.loads(data) for data in every]

    def gather_rows(self, part: Array, counts: Sequence[int], purpose: str = "rows") -> Array:
        """All rows (sum of counts, ...), the blocks of the ranks one after the other, on every rank."""
        started, whole = time.perf_counter(), empty_rows(part, counts)
        self.handle.Allgatherv(mpi_buffer(part), mpi_buffer(whole, counts))
        self.add_traffic(purpose, started, part.nbytes * (self.size - 1), whole.nbytes - part.nbytes)
        return whole

    def rows_to_first(self, part: Array, counts: Sequence[int]) -> Array | None:
        """Like `gather_rows`, on rank 0 alone."""
        started, whole = time.perf_counter(), None if self.rank else empty_rows(part, counts)
        self.handle.Gatherv(mpi_buffer(part), None if whole is None else mpi_buffer(whole, counts))
        sent, received = (part.nbytes, 0) if whole is None else (0, whole.nbytes - part.nbytes)
        self.add_traffic("files", started, sent, received)
        return whole

    def rows_from_first(self, whole: Array | None, like: Array, counts: Sequence[int]) -> Array:
        """This rank's block of rows of an array on rank 0; `like` (0, ...) has their shape and dtype."""
        started, part = time.perf_counter(), empty_rows(like, [counts[self.rank]])
        self.handle.Scatterv(None if whole is None else mpi_buffer(whole, counts), mpi_buffer(part))
        sent, received = (0, part.nbytes) if whole is None else (whole.nbytes - part.nbytes, 0)
        self.add_traffic("start", started, sent, received)
        return part

    def exchange(self, parts: Sequence[Array], counts: Sequence[int], purpose: str = "rows") -> list[Array]:
        """Send ``parts[r]`` to each rank r; returns the rows that came from each, ``counts[r]`` of them."""
        started, whole, came = time.perf_counter(), np.concatenate(parts), empty_rows(parts[0], counts)
        self.handle.Alltoallv(mpi_buffer(whole, [len(part) for part in parts]), mpi_buffer(came, counts))
        received = np.split(came, np.cumsum(counts)[:-1])
        own_bytes = parts[self.rank].nbytes
        self.add_traffic(purpose, started, whole.nbytes - own_bytes, came.nbytes - received[self.rank].nbytes)
        return received

    def exchange_counts(self, counts: Sequence[int], purpose: str = "rows") -> list[int]:
        """How many rows come from each rank, where ``counts[r]`` go to rank r."""
        started = time.perf_counter()
        mine, came = np.array(counts, np.int64), np.empty(self.size, np.int64)
        self.handle.Alltoall(mine, came)
        self.add_traffic(purpose, started, 8 * (self.size - 1), 8 * (self.size - 1))
        return [int(count) for count in came]

    def sum(self, values: Array, purpose: str = "control") -> Array:
        """The sum over the ranks of whole numbers."""
        started = time.perf_counter()
        mine = np.asarray(values, np.int64, order="C")
        whole = np.empty_like(mine)
        self.handle.Allreduce(mine, whole)
        # Counted as for recursive halving and doubling, which libraries use for many numbers.
        passed = 2 * mine.nbytes * (self.size - 1) // self.size
        self.add_traffic(purpose, started, passed, passed)
        return whole

    def share_error(self, error: Exception | None) -> None:
        """Raise the error of one rank on all of them."""
        first = next((found for found in self.gather_values(error) if found is not None), None)
        if first is not None:
            raise first

    def abort(self, error: BaseException) -> NoReturn:
        """End all ranks at once, after an error on this rank that would leave the others waiting."""
        from mpi4py import MPI

        code = 2 if isinstance(error, FluidError | MPI.Exception) else 1
        if code == 2:
            text = " ".join(str(error).split())
            print(f"error: rank {self.rank} of {self.size}: {text}", file=sys.stderr, flush=True)
        else:
            traceback.print_exception(error)
        time.sleep(READ_SECONDS)
        self.handle.Abort(code)
        os._exit(code)  # Abort may return where a thread calls it


class Route:
    """Sends rows to the ranks ``to`` (n,), and results for them back; collective.

    Args:
        comm: all ranks.
        to: rank of each row.
        purpose: name under which the traffic is counted.
    """

    def __init__(self, comm: Comm, to: Array, purpose: str) -> None:
        self._comm, self._purpose = comm, purpose
        # NumPy sorts 16 bits by counting, more bits by comparing.
        self._by_rank = np.argsort(to.astype(np.uint16), kind="stable")
        self._sent = np.bincount(to, minlength=comm.size).tolist()
        self._came = comm.exchange_counts(self._sent, purpose)

    def send(self, columns: Sequence[Array]) -> list[Array]:
        """Send columns (n, ...) of rows; returns the rows received, in the order of the ranks."""
        rows = np.split(as_bytes([column[self._by_rank] for column in columns]), np.cumsum(self._sent)[:-1])
        came = self._comm.exchange(rows, self._came, self._purpose)
        return from_bytes(np.concatenate(came), columns)

    def back(self, columns: Sequence[Array]) -> list[Array]:
        """Send columns of the received rows back; returns those of the rows sent, in their order."""
        rows = np.split(as_bytes(columns), np.cumsum(self._came)[:-1])
        came = np.concatenate(self._comm.exchange(rows, self._sent, self._purpose))
        home = np.empty_like(came)
        home[self._by_rank] = came
        return from_bytes(home, columns)


def row_bytes(array: Array) -> int:
    """Bytes of a row."""
    return int(array.dtype.itemsize * np.prod(array.shape[1:], dtype=np.int64))


def empty_rows(like: Array, counts: Sequence[int]) -> Array:
    """An uninitialised array for the sum of `counts` rows, of the dtype and row shape of `like`."""
    return np.empty((int(sum(counts)), *like.shape[1:]), like.dtype)


def mpi_buffer(rows: Array, counts: Sequence[int] | None = None) -> list[Any]:
    """Rows as a buffer of bytes for MPI; with `counts`, in blocks of counts[r] rows to, or from, rank r."""
    from mpi4py import MPI

    if counts is None:
        return [np.ascontiguousarray(rows), rows.nbytes, MPI.BYTE]
    lengths = np.array(counts, np.int64) * row_bytes(rows)
    return [rows, lengths.tolist(), (np.cumsum(lengths) - lengths).tolist(), MPI.BYTE]


def as_bytes(columns: Sequence[Array]) -> Array:
    """Columns (n, ...) side by side as rows of bytes (n, width)."""
    parts = [
        np.ascontiguousarray(column).reshape(len(column), row_bytes(column) // column.itemsize)
        for column in columns
    ]
    return np.concatenate([part.view(np.uint8) for part in parts], axis=1)


def from_bytes(rows: Array, like: Sequence[Array]) -> list[Array]:
    """Columns out of rows of bytes (n, width), with the dtypes and the shapes of rows that `like` has."""
    ends = np.cumsum([row_bytes(column) for column in like])[:-1]
    parts = [np.ascontiguousarray(part) for part in np.split(rows, ends, axis=1)]
    return [
        part.view(column.dtype).reshape(len(rows), *column.shape[1:])
        for part, column in zip(parts, like, strict=True)
    ]
