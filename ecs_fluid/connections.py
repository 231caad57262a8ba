"""How a process that listens deals with clients that hold connections open."""

from __future__ import annotations

import errno
import logging
from contextlib import suppress
from typing import Any

FULL = "this process may open no more files; close what holds connections to it, or allow more (ulimit -n)"


class _Once(logging.Filter):
    """One sentence in place of a traceback for every connection that no file is left for."""

    told = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to tell it."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            return True
        told, self.told = self.told, True
        record.msg, record.args, record.exc_info = FULL, (), None
        return not told


_once = _Once()


def brace() -> None:
    """Allow this process and what it starts as many open files as can be; say once where they do not do."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for name in ("asyncio", "tornado.application"):
        logging.getLogger(name).addFilter(_once)


def dask_setup(server: Any) -> None:
    """Called by Dask in each server that preloads this module: no pages either, as they need no key.

    Nor does it measure what a search for garbage frees, since that opens a file, and nobody reads it.
    """
    from distributed.gc import disable_gc_diagnosis

    brace()
    disable_gc_diagnosis(force=True)
    if (pages := getattr(server, "http_server", None)) is not None:
        pages.stop()
