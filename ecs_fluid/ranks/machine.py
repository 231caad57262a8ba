"""Shared memory of the ranks on one machine (windows of MPI-3), for one copy of what all of them read."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError
from ecs_fluid.ranks.comm import Comm, empty_rows, mpi_buffer

PER_MACHINE = "ECS_FLUID_RANKS_PER_MACHINE"
"""Environment variable: number of ranks that count as a machine, to test several machines on one."""

SPARE = 1.25
"""Factor by which windows are larger than needed, so that growing populations rarely need new ones."""


class Machine:
    """The ranks of this machine; the first of them leads.

    All methods but `is_leader` are collective: every rank calls them, in the same order.
    """

    def __init__(self, comm: Comm) -> None:
        from mpi4py import MPI

        self._all = comm
        each = os.environ.get(PER_MACHINE)
        if each is None:
            self._comm = comm.handle.Split_type(MPI.COMM_TYPE_SHARED)
        else:
            if not each.isdecimal() or int(each) < 1:
                raise FluidError(f"{PER_MACHINE} = {each!r}: a whole number of ranks, at least 1, is needed")
            self._comm = comm.handle.Split(comm.rank // int(each), comm.rank)
        self.is_leader: bool = self._comm.Get_rank() == 0
        machines = comm.gather_numbers(np.int64(self._comm.bcast(comm.rank)))
        between = comm.handle.Split(0 if self.is_leader else MPI.UNDEFINED, comm.rank)
        self._leader_comm = Comm(between, comm.traffic) if self.is_leader else None
        self.leaders: Array = np.unique(machines)
        """The rank that leads each machine"""
        self.count: int = len(self.leaders)
        """Number of machines"""
        self.number = int(np.searchsorted(self.leaders, machines[comm.rank]))
        """Number of this machine"""
        self._members = [np.flatnonzero(machines == first) for first in self.leaders]
        self._windows: dict[str, tuple[Any, Array]] = {}
        self._retired: dict[str, Any] = {}

    @property
    def leader_comm(self) -> Comm:
        """Messages between the leaders of the machines, for them alone."""
        assert self._leader_comm is not None
        return self._leader_comm

    def barrier(self) -> None:
        """Wait until all ranks of the machine are here."""
        self._comm.Barrier()

    def is_shared(self, array: Array) -> bool:
        """Whether an array lies in the shared memory of this machine."""
        return any(np.may_share_memory(array, memory) for _, memory in self._windows.values())

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array in shared memory; a later call with that name reuses the memory."""
        from mpi4py import MPI

        kind = np.dtype(dtype)
        size = int(kind.itemsize * np.prod(shape, dtype=np.int64))
        former = self._windows.get(name)
        # Views of the previous window may still be in use; those of earlier ones are not.
        if former is None or len(former[1]) < size:
            if name in self._retired:
                self._retired.pop(name).Free()
            if former is not None:
                self._retired[name] = former[0]
            room = max(64, int(SPARE * size))
            window = MPI.Win.Allocate_shared(room if self.is_leader else 0, 1, comm=self._comm)
            memory, _ = window.Shared_query(0)
            self._windows[name] = window, np.asarray(memory, np.uint8)[:room]
        self.barrier()  # no rank still reads the former content
        found: Array = self._windows[name][1][:size].view(kind).reshape(shape)
        return found

    def sparse_array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """Like `array`, but only pages that are written take memory; those of the last call are released."""
        found = self.array(name, shape, dtype)
        if self.is_leader:
            release_pages(self._windows[name][1])
        self.barrier()
        return found

    def gather_on_leader(self, part: Array) -> Array:
        """On the leader of this machine, the rows of its ranks end to end; on other ranks their own rows."""
        every = self._comm.gather(part)
        return part if every is None else np.concatenate(every)

    def once(self, name: str, make: Callable[[], Sequence[Array]]) -> list[Array]:
        """The arrays that `make` returns, called by the leader alone, in memory that its ranks share."""
        made = [np.ascontiguousarray(array) for array in make()] if self.is_leader else []
        described = self._comm.bcast([(array.shape, array.dtype.str) for array in made])
        found = [self.array(f"{name} {k}", *what) for k, what in enumerate(described)]
        for array, source in zip(found, made, strict=False):
            array[...] = source
        self.barrier()
        return found

    def gather_on_leaders(self, part: Array, counts: Sequence[int], purpose: str = "rows") -> Array | None:
        """The rows of all ranks, end to end, on the leaders; None on the others."""
        started = time.perf_counter()
        shapes = [[int(counts[int(rank)]) for rank in members] for members in self._members]
        if not self.is_leader:
            self._comm.Gatherv(mpi_buffer(part), None)
            self._all.add_traffic(purpose, started, part.nbytes, 0)
            return None
        here = empty_rows(part, shapes[self.number])
        self._comm.Gatherv(mpi_buffer(part), mpi_buffer(here, shapes[self.number]))
        if len(self._members) == 1:
            self._all.add_traffic(purpose, started, 0, here.nbytes - part.nbytes)
            return here
        groups = [sum(group) for group in shapes]
        every = empty_rows(part, groups)
        self.leader_comm.handle.Allgatherv(mpi_buffer(here), mpi_buffer(every, groups))
        self._all.add_traffic(purpose, started, here.nbytes * (len(groups) - 1), every.nbytes - part.nbytes)
        order = np.concatenate(self._members)
        if (np.diff(order) > 0).all():
            return every
        ends = np.cumsum([count for group in shapes for count in group])
        pieces = np.split(every, ends[:-1])
        return np.concatenate([pieces[k] for k in np.argsort(order).tolist()])


def release_pages(array: Array) -> None:
    """Return the whole pages of memory under an array to the system, if it can; their content is lost."""
    page = mmap.PAGESIZE
    first = -(-array.ctypes.data // page) * page
    length = (array.ctypes.data + array.nbytes - first) // page * page
    # The first makes a hole in the file behind shared memory; private memory needs the second. Windows has
    # neither, nor a library of that name.
    known = (getattr(mmap, name, None) for name in ("MADV_REMOVE", "MADV_DONTNEED"))
    if length > 0 and (advices := [advice for advice in known if advice is not None]):
        advise = ctypes.CDLL(None, use_errno=True).madvise
        for advice in advices:
            if advise(ctypes.c_void_p(first), ctypes.c_size_t(length), advice) == 0:
                return
