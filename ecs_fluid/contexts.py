"""One context of the library esper for each world.

esper keeps one world at a time in module globals. Every call of a World that touches it holds one
process-wide lock, switches esper to the context of that world and puts the former one back, so that several
worlds live side by side, also in threads. Holding that lock for a whole tick also prevents that two threads
run parallel kernels at the same time, which numba's simplest threading layer does not allow.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import esper

_LOCK = threading.RLock()
_ENDED: list[str] = []
"""Contexts of worlds that are gone; the next holder of the lock deletes their tables."""


def new_context(owner: object) -> str:
    """The name of a context that ends with its owner."""
    context = f"ecs_fluid/{uuid.uuid4()}"
    weakref.finalize(owner, _forget, context)
    return context


@contextmanager
def active_context(context: str) -> Iterator[None]:
    """Hold the process-wide lock with esper switched to that context; then switch back to the former one."""
    with _LOCK:
        if _ENDED:
            _delete_ended()
        former = esper.current_world
        if former != context:
            esper.switch_world(context)
        try:
            yield
        finally:
            if former != context:
                esper.switch_world(former)


def _forget(context: str) -> None:
    # Garbage may be collected in any thread, also in one that the holder of the lock waits for: never wait.
    _ENDED.append(context)
    if _LOCK.acquire(blocking=False):
        try:
            _delete_ended()
        finally:
            _LOCK.release()


def _delete_ended() -> None:
    while _ENDED:
        context = _ENDED.pop()
        if esper.current_world != context and context in esper.list_worlds():
            esper.delete_world(context)
