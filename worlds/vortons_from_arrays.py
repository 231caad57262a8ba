"""Recipe of vortons read from a file."""

from __future__ import annotations

import csv
from array import array as Doubles
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.errors import RecipeError
from ecs_fluid.input_limits import VORTON, check_memory, limits
from ecs_fluid.recipe import Recipe
from ecs_fluid.systems.shared.overlap import room
from ecs_fluid.validation_errors import nearest
from ecs_fluid.world import World
from ecs_fluid.worlds.files import MOST_ARRAYS, UNREAD, data_file, read_npz, refuse_not_finite
from ecs_fluid.worlds.parameters import Length, Point
from ecs_fluid.worlds.vortons import spawn_vortons
from ecs_fluid.worlds.vtk_files import read_vtk

LABELS = {
    "Position.x": "x",
    "Strength.alpha": "alpha",
    "CoreRadius.sigma": "sigma",
    "Volume.volume": "volume",
}
"""Names of the columns in files that ecs_fluid writes."""

X, ALPHA = ("x", "y", "z"), ("alpha_x", "alpha_y", "alpha_z")
WANTED = {*LABELS, *LABELS.values(), *X, *ALPHA}
"""Columns that are read; others are ignored."""

_LONGEST = 2**20  # characters of a line


class VortonsFromArrays(Recipe):
    """Vortons from the columns of a file: positions, strengths, core radii and volumes.

    * .npz: arrays x (n, 3) or x, y, z (n,) in m; alpha (n, 3) in m^3/s; sigma (n,) in m; volume (n,) in m^3;
    * .csv: a header line with x, y, z, alpha_x, alpha_y, alpha_z, sigma, volume, then one line a vorton;
    * .vtp: points, and point data alpha (3 components), sigma, volume.

    The names that ecs_fluid itself writes (Strength.alpha, ...) are understood as well. Without a sigma
    column `core` is used for all; without a volume column a vorton stands for a cube of edge sigma/1.5, in
    a plane for a square of it.
    Strengths are taken as they are. Inside a world file only files below its folder are read.
    """

    kind: ClassVar[str] = "vortons_from_arrays"
    dimensions: ClassVar[tuple[int, ...]] = (2, 3)
    file: str = Field(min_length=1, max_length=1000)
    """path of an .npz, .csv or .vtp file, lengths in m"""
    core: Length | None = None
    """core radius of all vortons if the file has no sigma, m"""
    offset: Point = (0.0, 0.0, 0.0)
    """added to all positions, m"""

    def spawn(self, world: World) -> None:
        """Read the file and spawn the vortons."""
        path = data_file(self.file)
        table = {LABELS.get(key, key): array for key, array in self._table(path).items()}
        x = self._vector(path, table, "x", X)
        alpha = self._vector(path, table, "alpha", ALPHA)
        rows = len(x)
        check_memory(VORTON, rows, "vortons", "read a smaller file")
        if "sigma" not in table and self.core is None:
            raise RecipeError(f"{path} has no column 'sigma'; add it, or give 'core' in the recipe")
        sigma = self._scalar(path, table, "sigma", np.full(rows, self.core or 0.0))
        volume = self._scalar(path, table, "volume", room(sigma, world.dimension))
        for column, array in (("alpha", alpha), ("sigma", sigma), ("volume", volume)):
            if len(array) != rows:
                raise RecipeError(f"{path}: {column!r} has {len(array)} rows, but the positions have {rows}")
        spawn_vortons(world, self.name, x + np.asarray(self.offset), alpha, sigma, volume)

    def _table(self, path: Path) -> dict[str, Array]:
        match path.suffix.lower():
            case ".npz":
                return read_npz(path, WANTED)
            case ".csv":
                return read_csv(path)
            case ".vtp":
                return read_vtk(path, int(limits().memory / VORTON), WANTED)
        raise RecipeError(f"{path}: .npz, .csv and .vtp files can be read")

    def _vector(self, path: Path, table: dict[str, Array], column: str, parts: tuple[str, str, str]) -> Array:
        whole = table.get(column)
        if whole is not None and whole.ndim == 2:
            if whole.shape[1] != 3:
                raise RecipeError(f"{path}: {column!r} has shape {whole.shape}; (n, 3) is needed")
            refuse_not_finite(path, column, whole)
            return whole
        for part in parts:
            if part not in table:
                raise RecipeError(f"{path} has no column {part!r}; {nearest(part, table)}")
        columns = [self._scalar(path, table, part, np.empty(0)) for part in parts]
        if len({len(part) for part in columns}) > 1:
            raise RecipeError(f"{path}: {', '.join(parts)} differ in length")
        return np.stack(columns, axis=1)

    def _scalar(self, path: Path, table: dict[str, Array], column: str, default: Array) -> Array:
        array = table.get(column)
        if array is None:
            return default
        if array.ndim != 1:
            raise RecipeError(f"{path}: {column!r} has shape {array.shape}; (n,) is needed")
        refuse_not_finite(path, column, array)
        if column in ("sigma", "volume") and (array <= 0).any():
            row = int(np.flatnonzero(array <= 0)[0])
            raise RecipeError(f"{path}: {column!r} row {row} is {array[row]:g}; numbers above 0 are needed")
        return array


def read_csv(path: Path) -> dict[str, Array]:
    """Columns by the names in the header line, `UNREAD` if not `WANTED`.

    Raises:
        RecipeError: no header, a line of the wrong length, too many lines, or a field that is no number.
    """
    values = Doubles("d")  # a list of lines would take a hundred times as much memory
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            # An overlong line is read as several, which then do not match the header.
            lines = csv.reader(iter(lambda: file.readline(_LONGEST), ""))
            rows = (line for line in lines if any(field.strip() for field in line))
            header = [field.strip().removeprefix("#").strip() for field in next(rows, [])]
            if len(set(header)) != len(header):
                raise RecipeError(f"{path}: a column name stands twice in the header")
            if len(header) > MOST_ARRAYS:
                raise RecipeError(f"{path} has {len(header):,} columns; at most {MOST_ARRAYS} are allowed")
            read = [(at, name) for at, name in enumerate(header) if name in WANTED]
            for row, line in enumerate(rows):
                if row % 2**16 == 0:
                    check_memory(VORTON, row, "vortons", "read a smaller file")
                if len(line) != len(header):
                    raise RecipeError(
                        f"{path}: row {row} has {len(line)} fields, but the header has {len(header)}"
                    )
                for at, name in read:
                    values.append(_number(path, name, row, line[at]))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecipeError(f"{path} is not a readable .csv file: {error}") from None
    if not header:
        raise RecipeError(f"{path} is empty; a header line with column names is needed")
    columns = np.array(values).reshape(-1, max(len(read), 1)).T.copy()
    return dict.fromkeys(header, UNREAD) | dict(zip((name for _, name in read), columns, strict=False))


def _number(path: Path, column: str, row: int, field: str) -> float:
    try:
        return float(field)
    except ValueError:
        raise RecipeError(f"{path}: {column!r} row {row} is {field[:60]!r}; a number is needed") from None
