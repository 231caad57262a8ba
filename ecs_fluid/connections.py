"""Open connections of a server process: allow more of them, and log one sentence when they are too many."""

from __future__ import annotations

import errno
import logging
from contextlib import suppress
from typing import Any

FULL = (
    "this process has reached its limit of open files; close programs that hold connections to it, or "
    "raise the limit (ulimit -n)"
)


class _OneReport(logging.Filter):
    """One sentence in place of a traceback for each connection that finds no free file."""

    reported = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log the record."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            return True
        reported, self.reported = self.reported, True
        record.msg, record.args, record.exc_info = FULL, (), None
        return not reported


_one_report = _OneReport()


def raise_open_file_limit() -> None:
    """Allow this process and those it starts as many open files as possible; log once if they run out."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for name in ("asyncio", "tornado.application"):
        logging.getLogger(name).addFilter(_one_report)


def dask_setup(server: Any) -> None:
    """Called by Dask in each server that preloads this module.

    It also stops the server's web pages, since they need no key, and Dask's measuring of what garbage
    collection frees, since that opens a file and nobody reads the result.
    """
    from distributed.gc import disable_gc_diagnosis

    raise_open_file_limit()
    disable_gc_diagnosis(force=True)
    if (pages := getattr(server, "http_server", None)) is not None:
        pages.stop()
