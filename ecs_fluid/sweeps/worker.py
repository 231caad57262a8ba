"""A worker process of a local sweep: ``python -m ecs_fluid.sweeps.worker SCHEDULER NAME TOPIC``.

Its standard input is a pipe that only the sweep holds open. When it closes, because the sweep is done or was
killed in any way, the member under way stops after its tick with everything stored, and the process ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading

from ecs_fluid.sweeps.member import IDLE, LEAVE

PATIENCE = 20.0
"""How long a member under way has for its last tick and its checkpoint, s."""


def main() -> None:
    """Serve the scheduler until it, or the sweep, is gone."""
    threading.Thread(target=_leave_with_the_sweep, daemon=True).start()
    asyncio.run(_serve(*sys.argv[1:4]))
    LEAVE.set()
    IDLE.wait(PATIENCE)  # members run in a daemon thread, which would end in the middle of a tick


async def _serve(address: str, name: str, topic: str) -> None:
    from distributed import Worker

    logging.getLogger("distributed").setLevel(logging.WARNING)
    # No limit of memory: at 95 % of it Dask would kill a member that may well end.
    async with Worker(address, nthreads=1, name=name, memory_limit=0) as worker:
        worker.log_event(topic, ("", 0, 0, name))  # now it can work
        await worker.finished()


def _leave_with_the_sweep() -> None:
    sys.stdin.buffer.read()
    LEAVE.set()
    IDLE.wait(PATIENCE)
    os._exit(0)


if __name__ == "__main__":
    main()
