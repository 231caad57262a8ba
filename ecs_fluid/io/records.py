"""One JSON record per line, appended while a run goes on: diagnostics, events. Every finished line counts."""

from __future__ import annotations

import io
import json
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ecs_fluid.errors import StorageError
from ecs_fluid.input_limits import check_bytes, limits
from ecs_fluid.io.disk import replace_file, storage_error
from ecs_fluid.io.untrusted import check_file, not_a_link, read_bytes


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Append ``record``, plain JSON values with NaN and infinity allowed, as one line of ``path``.

    What a crash or a full disk left of an unfinished line is removed first. Raises StorageError; the records
    before stay as they were.
    """
    try:
        line = json.dumps(dict(record)).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise StorageError(f"a record for {path} is not plain JSON: {error}") from error
    try:
        if path.exists():
            check_file(path, "write record to")
        with open(path, "a+b", buffering=0, opener=not_a_link) as handle:
            _cut_unfinished_line(handle)
            start = handle.seek(0, os.SEEK_END)
            try:
                written = 0
                while written < len(line):
                    written += handle.write(line[written:]) or 0
            except OSError:
                handle.truncate(start)
                raise
    except OSError as error:
        raise storage_error(error, "write record to", path) from error


def read_records(path: Path) -> list[dict[str, Any]]:
    """All finished records, oldest first; a last line without an end is ignored; no file, no records.

    Raises LimitError, and StorageError naming the line when a finished line is not a JSON object.
    """
    if not os.path.lexists(path):
        return []
    content = read_bytes(path, "read records from", limits().memory / 4)
    records, needed = [], 0
    for number, line in enumerate(io.BytesIO(content), start=1):
        if not line.endswith(b"\n"):
            break
        # An estimate of what Python takes for it, which may be thirty times as much as the text.
        needed += 240 * line.count(b"{") + 96 * (line.count(b"[") + line.count(b",")) + 4 * len(line)
        check_bytes(needed, f"{path}: its first {number:,} records would take")
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise StorageError(f"line {number} of {path} is damaged: it is not JSON") from error
        if not isinstance(record, dict):
            raise StorageError(f"line {number} of {path} is damaged: it is not a JSON object")
        records.append(record)
    return records


def drop_records_after(path: Path, tick: int) -> None:
    """Remove records whose ``"tick"`` is later than ``tick``: a run resumed there writes them anew."""
    records = read_records(path)
    for number, record in enumerate(records, start=1):
        if type(record.get("tick", tick)) not in (int, float):
            raise StorageError(f"line {number} of {path} is damaged: its tick is not a number")
    remaining = [record for record in records if not record.get("tick", tick) > tick]
    if len(remaining) == len(records):
        return

    lines = [json.dumps(record).encode() + b"\n" for record in remaining]
    replace_file(path, lambda handle: handle.writelines(lines), "rewrite records in")


def _cut_unfinished_line(handle: BinaryIO | Any) -> None:
    handle.seek(max(handle.seek(0, os.SEEK_END) - 1, 0))
    if handle.read(1) not in (b"", b"\n"):
        with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as content:
            finished = content.rfind(b"\n") + 1
        handle.truncate(finished)
