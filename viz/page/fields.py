"""What particles of a page can be coloured by, and the range of each over all frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import ecs_fluid.components  # noqa: F401  (all classes, so that `title` knows their units)
from ecs_fluid.exports.frames import Frames
from ecs_fluid.viz.columns import DERIVED, Array, Columns, has_scalar, known_scalars, title, unknown_name
from ecs_fluid.viz.shared_limits import is_signed, limits, widened

COVERED = {"Position.x", "Velocity.u", "Strength.alpha", "LiquidState.pressure"}
"""Columns that are not offered: positions, and those that are `speed`, `strength` and `pressure`."""


@dataclass
class Field:
    """A field for colours: name, numbers of the populations that have it, title, and range so far."""

    name: str
    populations: list[int]
    title: str
    span: tuple[float, float] | None = None

    def widen(self, values: Array) -> None:
        """Widen the range to these values, as `show` does."""
        self.span = widened(self.span, values)

    def header(self) -> dict[str, object]:
        """The field in the header that the viewer reads."""
        low, high = self.span or (0.0, 1.0)
        return {
            "name": self.name,
            "title": self.title,
            "populations": self.populations,
            "range": limits(self.name, low, high),
            "signed": is_signed(low, high),
        }


def empty_columns(frames: Frames) -> dict[str, Columns]:
    """Columns without rows, of every population of particles, for the shapes that `columns.scalar` needs."""
    return {
        name: {
            label: np.empty((0, *column.shape), column.dtype)
            for label, column in frames.columns(name).items()
        }
        for name in frames.particles
    }


def chosen_fields(frames: Frames, names: Sequence[str]) -> list[Field]:
    """The fields of those names, or all. Raises FluidError for a name that no population has."""
    tables = empty_columns(frames)
    if not names:
        offered = (name for table in tables.values() for name in known_scalars(table) if name not in COVERED)
        names = sorted(set(offered), key=lambda name: (name not in DERIVED, name))
    made = []
    for name in dict.fromkeys(names):
        owners = [k for k, table in enumerate(tables.values()) if has_scalar(table, name)]
        if not owners:
            raise unknown_name(
                "field", name, {known for table in tables.values() for known in known_scalars(table)}
            )
        made.append(Field(name, owners, title(name, frames.declared)))
    return made
