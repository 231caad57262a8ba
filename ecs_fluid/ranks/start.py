"""The processes that mpiexec started, as ranks of one world."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from ecs_fluid.errors import FluidError
from ecs_fluid.hung_processes import TIMEOUT, Idle, timeout
from ecs_fluid.threads import use_threads

if TYPE_CHECKING:
    from ecs_fluid.ranks.comm import Comm
    from ecs_fluid.world import World

Share = Callable[["World"], None]
"""Divides a world among the processes."""


@contextmanager
def on_ranks(threads: int | None = None, code: Path | None = None) -> Iterator[Share | None]:
    """Yields, on rank 0, the function that divides its world among ranks; on others None, at the end.

    ::

        with on_ranks() as share:
            if share is not None:  # rank 0
                world = ef.load("vortex_ring")
                share(world)
                world.step(10)
                print(world.state_hash())

    Args:
        threads: threads for the kernels of each process; default its part of the machine's cores.
        code: folder from which systems of your own are imported on all ranks, which runs their code.

    Raises FluidError when mpi4py is not installed.
    """
    timeout()
    _close_network()
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise FluidError(
            f"a world on many ranks needs mpi4py and an MPI library: pip install 'ecs-fluid[mpi]' ({error})"
        ) from None
    here = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)
    use_threads(threads or max(1, (os.cpu_count() or 1) // here.Get_size()))
    from ecs_fluid.plugins import searching
    from ecs_fluid.ranks.comm import Comm
    from ecs_fluid.ranks.team import follow, leading

    comm = Comm(MPI.COMM_WORLD)
    processes = here.allgather((comm.rank, os.getpid()))
    if comm.rank:
        with searching(code), _watch_next_rank(comm, *processes[(here.Get_rank() + 1) % len(processes)]):
            follow(comm, allow_code=code is not None)
        yield None
        return
    with _watch_next_rank(comm, *processes[1 % len(processes)]), leading(comm) as share:
        yield share


@contextmanager
def _watch_next_rank(comm: Comm, rank: int, process: int) -> Iterator[None]:
    """End all ranks when the next one on this machine, which watches its next, is idle for the time-out."""
    from mpi4py import MPI

    over, idle, limit = Event(), Idle(), timeout()
    step = min(1.0, 0.1 * limit)

    def watch() -> None:
        while not over.wait(step):
            # Between calls ranks may sleep, as they wait for the next one of rank 0.
            if idle.for_long(process, step, sleeps=not comm.at_work):
                text = f"rank {rank} (process {process}) has not answered for {limit:g} s ({TIMEOUT})"
                comm.abort(FluidError(f"{text}; `ecs-fluid resume` continues from the newest checkpoint"))

    if process != os.getpid():
        Thread(target=watch, daemon=True).start()
    try:
        yield
    except MPI.Exception as error:
        comm.abort(error)
    finally:
        over.set()


def _close_network() -> None:
    """Keep MPI off the network where all ranks are on this machine, according to mpiexec's variables."""
    size = os.environ.get("PMI_SIZE")
    if "MPI_UNIVERSE_SIZE" in os.environ or (size and os.environ.get("MPI_LOCALNRANKS") == size):
        # For UCX or libfabric, whichever MPICH uses; not UCX's sysv memory, which the group may write.
        os.environ.setdefault("UCX_TLS", "posix,cma,self")
        os.environ.setdefault("FI_TCP_IFACE", "lo")


def check_alone() -> None:
    """Raise FluidError when mpiexec started several processes, each of which would run the same world."""
    for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE"):
        if os.environ.get(name, "1") != "1":
            raise FluidError(
                f"mpiexec started {os.environ[name]} processes, and each would run the whole world; add --mpi"
            )
