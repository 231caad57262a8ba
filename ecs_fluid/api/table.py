"""Records as a table of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.entity import Named
from ecs_fluid.errors import StorageError, optional, printable
from ecs_fluid.html import table

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]


class NotStored(StorageError, KeyError):
    """A name that is not among what is stored."""

    def __str__(self) -> str:
        return printable(str(self.args[0]))  # KeyError alone would quote it


class Table(Named[Array]):
    """Columns by name, oldest record first: (n,) numbers, NaN where a record has none, or (n, 3) vectors.

    ``table["energy"]`` is an array; `to_pandas` makes a DataFrame of it where pandas is installed.
    """

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        names = dict.fromkeys(name for record in records for name in record)
        super().__init__(names)
        self.rows = len(records)
        """Number of records."""
        self._columns = {name: _column([record.get(name) for record in records]) for name in names}

    def __getitem__(self, name: str) -> Array:
        if name not in self:
            if not self.rows:
                raise NotStored(
                    f"there is no {name!r}, as nothing was recorded; set fluid.diagnostics.every to fewer "
                    "ticks than were run"
                )
            known = ", ".join(self._columns)
            raise NotStored(f"nothing called {name!r} was recorded; known: {known}")
        return self._columns[name]

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas DataFrame; a vector becomes columns such as ``impulse.x``."""
        frames = optional("pandas", "a DataFrame needs pandas: pip install pandas")
        return frames.DataFrame(self._flat())

    def _flat(self) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for name, array in self._columns.items():
            if array.ndim == 1:
                found[name] = array
            else:
                parts = "xyz" if array.shape[1] == 3 else range(array.shape[1])
                found.update({f"{name}.{part}": array[:, k] for k, part in enumerate(parts)})
        return found

    def __repr__(self) -> str:
        return f"Table({self.rows} records of {', '.join(self) or 'nothing'})"

    def _repr_html_(self) -> str:
        columns = self._flat()
        rows = (
            [f"{array[k]:.6g}" if array.dtype.kind == "f" else array[k] for array in columns.values()]
            for k in range(self.rows)
        )
        return table(f"{self.rows} records", list(columns), rows)


def _column(values: list[Any]) -> Array:
    """Numbers or equal vectors as an array of floats or whole numbers; anything else as objects."""
    present = [value for value in values if value is not None]
    try:
        shape = np.shape(present[0]) if present else ()
        if len(present) == len(values):
            array = np.array(values)
        else:
            array = np.array([np.full(shape, np.nan) if value is None else value for value in values])
        if array.dtype.kind in "iufb" and array.ndim <= 2:
            return array
    except (ValueError, OverflowError):  # rows that differ, or numbers too large
        pass
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects
