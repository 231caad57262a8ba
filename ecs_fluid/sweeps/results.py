"""Tables of a sweep: every record of every member over time, and one row for each member."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ecs_fluid.errors import StorageError
from ecs_fluid.io.disk import replace_file, replace_text
from ecs_fluid.sweeps.axes import Point
from ecs_fluid.sweeps.member import Member

Row = dict[str, Any]


def readable_records(member: Member) -> list[dict[str, Any]]:
    """Records of a member; none if they are damaged, so that the others still get their tables."""
    try:
        return member.records()
    except StorageError:
        return []


def write_tables(folder: Path, members: Sequence[Member], diagnostics: Sequence[str] | None) -> list[Path]:
    """Write table.csv and members.csv, and table.parquet where pyarrow is installed; returns their paths.

    The first has one row for each record of each member (member, what it sets, tick, time, diagnostics), the
    second one row for each member (what it sets, how it ended, its last record). Vectors become columns such
    as ``impulse.x``. A name in `diagnostics` is that of a number, a vector or such a part; None takes all.
    """
    over_time: list[Row] = []
    of_members: list[Row] = []
    for member in members:
        first = {"member": member.name, **_cells(member.values)}
        records = [_flat(record, diagnostics) for record in readable_records(member)]
        over_time += [{**first, **record} for record in records]
        ended = {
            "status": member.status,
            "ticks": member.ticks,
            "end": member.time,
            "state_hash": member.state_hash,
            "error": member.error,
        }
        of_members.append({**first, **ended, **(records[-1] if records else {})})
    written = []
    for name, rows in (("table.csv", over_time), ("members.csv", of_members)):
        text = io.StringIO()
        writer = csv.DictWriter(text, _columns(rows), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        replace_text(folder / name, text.getvalue(), "write table")
        written.append(folder / name)
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return written
    table = pyarrow.table({name: [row.get(name) for row in over_time] for name in _columns(over_time)})

    target = folder / "table.parquet"
    replace_file(target, lambda handle: pyarrow.parquet.write_table(table, handle), "write table")
    return [*written, target]


def _cells(values: Point) -> Row:
    """Values as cells: lists and tables become JSON text, since a cell holds one value."""
    return {
        path: value if isinstance(value, int | float | str) else json.dumps(value, default=str)
        for path, value in values.items()
    }


def _flat(record: dict[str, Any], diagnostics: Sequence[str] | None) -> Row:
    """A record with its vectors as parts such as ``impulse.x``, and of `diagnostics` alone if given."""
    flat: Row = {}
    for name, value in record.items():
        if isinstance(value, list):
            parts = "xyz" if len(value) == 3 else range(len(value))
            flat.update((f"{name}.{part}", item) for part, item in zip(parts, value, strict=True))
        else:
            flat[name] = value
    if diagnostics is None:
        return flat
    chosen = ("tick", "time", *diagnostics)
    return {key: flat[key] for name in chosen for key in flat if key == name or key.startswith(f"{name}.")}


def _columns(rows: Sequence[Row]) -> list[str]:
    """Names of all columns, in the order of their first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))
