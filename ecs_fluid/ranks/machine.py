"""Ranks of one machine have one copy of what all ranks need: windows of shared memory (MPI-3)."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.ranks.comm import Comm, message, room

PER_MACHINE = "ECS_FLUID_RANKS_PER_MACHINE"
"""Environment variable that makes so many ranks a machine of their own, to test what several machines do."""

SPARE = 1.25
"""Windows are made larger than asked for by this, so that growing populations rarely need new ones."""


class Machine:
    """The ranks of this machine; the first of them leads.

    All methods but `leads` are collective: every rank calls them, in the same order.
    """

    def __init__(self, comm: Comm) -> None:
        from mpi4py import MPI

        self._all = comm
        each = os.environ.get(PER_MACHINE)
        if each is None:
            self._comm = comm.handle.Split_type(MPI.COMM_TYPE_SHARED)
        else:
            self._comm = comm.handle.Split(comm.rank // int(each), comm.rank)
        self.leads: bool = self._comm.Get_rank() == 0
        machines = comm.gather_numbers(np.int64(self._comm.bcast(comm.rank)))
        between = comm.handle.Split(0 if self.leads else MPI.UNDEFINED, comm.rank)
        self._between = Comm(between, comm.traffic) if self.leads else None
        self.leaders: Array = np.unique(machines)
        """The rank that leads each machine"""
        self.count: int = len(self.leaders)
        """Machines"""
        self.here = int(np.searchsorted(self.leaders, machines[comm.rank]))
        """Number of this machine"""
        self._members = [np.flatnonzero(machines == first) for first in self.leaders]
        self._windows: dict[str, tuple[Any, Array]] = {}
        self._retired: dict[str, Any] = {}

    @property
    def among_leaders(self) -> Comm:
        """Messages between the leaders of the machines, for them alone."""
        assert self._between is not None
        return self._between

    def barrier(self) -> None:
        """Wait until all ranks of the machine are here."""
        self._comm.Barrier()

    def shares(self, array: Array) -> bool:
        """Whether an array lies in the shared memory of this machine."""
        return any(np.may_share_memory(array, memory) for _, memory in self._windows.values())

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array in shared memory; a later call with that name reuses the memory."""
        from mpi4py import MPI

        kind = np.dtype(dtype)
        size = int(kind.itemsize * np.prod(shape, dtype=np.int64))
        former = self._windows.get(name)
        # Views of the window before the last may be held still; those of earlier ones are not.
        if former is None or len(former[1]) < size:
            if name in self._retired:
                self._retired.pop(name).Free()
            if former is not None:
                self._retired[name] = former[0]
            room = max(64, int(SPARE * size))
            window = MPI.Win.Allocate_shared(room if self.leads else 0, 1, comm=self._comm)
            memory, _ = window.Shared_query(0)
            self._windows[name] = window, np.asarray(memory, np.uint8)[:room]
        self.barrier()  # nobody reads what was there before
        found: Array = self._windows[name][1][:size].view(kind).reshape(shape)
        return found

    def sparse(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """Like `array`, but only what is written takes memory; that of the last call is given back."""
        found = self.array(name, shape, dtype)
        if self.leads:
            give_back(self._windows[name][1])
        self.barrier()
        return found

    def together(self, part: Array) -> Array:
        """The rows of this machine's ranks one after the other, for its leader; the others have their own."""
        every = self._comm.gather(part)
        return part if every is None else np.concatenate(every)

    def once(self, name: str, make: Callable[[], Sequence[Array]]) -> list[Array]:
        """What `make` returns where this machine's leader calls it, for all its ranks to read."""
        made = [np.ascontiguousarray(array) for array in make()] if self.leads else []
        described = self._comm.bcast([(array.shape, array.dtype.str) for array in made])
        found = [self.array(f"{name} {k}", *what) for k, what in enumerate(described)]
        for array, source in zip(found, made, strict=False):
            array[...] = source
        self.barrier()
        return found

    def gathered(self, part: Array, counts: Sequence[int], purpose: str = "rows") -> Array | None:
        """The rows of all ranks one after the other, for the leaders; None for the others."""
        started = time.perf_counter()
        shapes = [[int(counts[int(rank)]) for rank in members] for members in self._members]
        if not self.leads:
            self._comm.Gatherv(message(part), None)
            self._all.count(purpose, started, part.nbytes, 0)
            return None
        here = room(part, shapes[self.here])
        self._comm.Gatherv(message(part), message(here, shapes[self.here]))
        if len(self._members) == 1:
            self._all.count(purpose, started, 0, here.nbytes - part.nbytes)
            return here
        groups = [sum(group) for group in shapes]
        every = room(part, groups)
        self.among_leaders.handle.Allgatherv(message(here), message(every, groups))
        self._all.count(purpose, started, here.nbytes * (len(groups) - 1), every.nbytes - part.nbytes)
        order = np.concatenate(self._members)
        if (np.diff(order) > 0).all():
            return every
        ends = np.cumsum([count for group in shapes for count in group])
        pieces = np.split(every, ends[:-1])
        return np.concatenate([pieces[k] for k in np.argsort(order).tolist()])


def give_back(array: Array) -> None:
    """Return the whole pages of memory under an array to the system; what they held is lost.

    Where the system cannot do that, they stay.
    """
    page = mmap.PAGESIZE
    first = -(-array.ctypes.data // page) * page
    length = (array.ctypes.data + array.nbytes - first) // page * page
    if length > 0:
        advise = getattr(ctypes.CDLL(None, use_errno=True), "madvise", None)
        for advice in (getattr(mmap, "MADV_REMOVE", None), getattr(mmap, "MADV_DONTNEED", None)):
            # Shared memory is a file, of which the first makes a hole; private memory knows the second only.
            if advise and advice and advise(ctypes.c_void_p(first), ctypes.c_size_t(length), advice) == 0:
                return
