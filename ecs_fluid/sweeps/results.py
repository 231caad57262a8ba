"""Tables of a sweep: every record of every member over time, and one row for each member."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ecs_fluid.errors import StorageError
from ecs_fluid.io.disk import replace_file, replace_text
from ecs_fluid.sweeps.axes import Point

if TYPE_CHECKING:
    from ecs_fluid.io.trajectory import Trajectory

Row = dict[str, Any]

TABLE = "table.csv"
MEMBERS = "members.csv"
_CLOCK = ("tick", "time")


@dataclass(frozen=True)
class Member:
    """One member of a sweep and how it ended.

    Attributes:
        name: of the member and its folder.
        values: what it sets, by path.
        path: its run folder, as `ecs-fluid show`, `info` and `resume` take it.
        status: finished, stopped, diverged, failed, or waiting (not begun).
        ticks, time: how far it came; time in s.
        state_hash: of its last state.
        error: why it failed, one sentence.
    """

    name: str
    values: Point
    path: Path
    status: str = "waiting"
    ticks: int = 0
    time: float = 0.0
    state_hash: str = ""
    error: str = ""

    @property
    def finished(self) -> bool:
        """Whether it came to its end."""
        return self.status == "finished"

    def records(self) -> list[dict[str, Any]]:
        """Its diagnostics over time, oldest first."""
        from ecs_fluid.io.runfolder import RunFolder

        return RunFolder.open(self.path).records() if (self.path / "run.json").is_file() else []

    def trajectory(self) -> Trajectory:
        """Its stored frames."""
        from ecs_fluid.io.runfolder import RunFolder

        return RunFolder.open(self.path).read_trajectory()


def readable_records(member: Member) -> list[dict[str, Any]]:
    """Records of a member, none of one that is damaged: the tables of the others are made all the same."""
    try:
        return member.records()
    except StorageError:
        return []


def rows_over_time(members: Iterable[Member], diagnostics: Sequence[str] | None = None) -> list[Row]:
    """One row for each record of each member: member, what it sets, tick, time, diagnostics.

    Vectors become columns such as ``impulse.x``. Of `diagnostics` a name may be a vector or one such part;
    None takes all that the records hold.
    """
    rows = []
    for member in members:
        for record in readable_records(member):
            flat = _flat(record, diagnostics)
            rows.append({"member": member.name, **_cells(member.values), **flat})
    return rows


def rows_of_members(members: Iterable[Member], diagnostics: Sequence[str] | None = None) -> list[Row]:
    """One row for each member: what it sets, how it ended, and its last record."""
    rows = []
    for member in members:
        records = readable_records(member)
        rows.append(
            {
                "member": member.name,
                **_cells(member.values),
                "status": member.status,
                "ticks": member.ticks,
                "end": member.time,
                "state_hash": member.state_hash,
                "error": member.error,
                **(_flat(records[-1], diagnostics) if records else {}),
            }
        )
    return rows


def write_tables(folder: Path, members: Sequence[Member], diagnostics: Sequence[str] | None) -> list[Path]:
    """Write table.csv and members.csv, and table.parquet where pyarrow is installed; returns their paths."""
    over_time = rows_over_time(members, diagnostics)
    replace_text(folder / TABLE, _csv(over_time), "write table")
    replace_text(folder / MEMBERS, _csv(rows_of_members(members, diagnostics)), "write table")
    written = [folder / TABLE, folder / MEMBERS]
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return written
    columns = _columns(over_time)
    table = pyarrow.table({name: [row.get(name) for row in over_time] for name in columns})

    def write(handle: BinaryIO) -> None:
        pyarrow.parquet.write_table(table, handle)

    replace_file(folder / "table.parquet", write, "write table")
    return [folder / TABLE, folder / "table.parquet", folder / MEMBERS]


def _cells(values: Point) -> Row:
    """Values as cells: lists and tables become JSON text, since a cell holds one value."""
    return {
        path: value if isinstance(value, int | float | str) else json.dumps(value, default=str)
        for path, value in values.items()
    }


def _flat(record: dict[str, Any], diagnostics: Sequence[str] | None) -> Row:
    flat: Row = {}
    for name, value in record.items():
        if isinstance(value, list):
            parts = "xyz" if len(value) == 3 else range(len(value))
            flat.update((f"{name}.{part}", item) for part, item in zip(parts, value, strict=True))
        else:
            flat[name] = value
    if diagnostics is None:
        return flat
    chosen = {name: flat[name] for name in _CLOCK if name in flat}
    for name in diagnostics:
        chosen.update(
            (key, value) for key, value in flat.items() if key == name or key.startswith(name + ".")
        )
    return chosen


def _columns(rows: Iterable[Row]) -> list[str]:
    """All columns in the order in which they first come."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, _columns(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
