"""What particles of a page can be coloured by, and the range of each over all frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import ecs_fluid.components  # noqa: F401  (all classes, so that `title` knows their units)
from ecs_fluid.exports.frames import Frames
from ecs_fluid.viz.columns import DERIVED, Array, Columns, choose, has_scalar, known_scalars, title
from ecs_fluid.viz.shared_limits import is_signed, limits, widened

COVERED = {"Position.x", "Velocity.u", "Strength.alpha"}
"""Columns that are not offered by themselves: places, and those whose size is `speed` or `strength`."""


@dataclass
class Field:
    """A colour: its name, the numbers of the populations that have it, the range of its values so far."""

    name: str
    populations: list[int]
    span: tuple[float, float] | None = None

    def widen(self, values: Array) -> None:
        """Take values into account, as `show` does."""
        self.span = widened(self.span, values)

    def told(self) -> dict[str, object]:
        """The field as the viewer knows it."""
        low, high = self.span or (0.0, 1.0)
        return {
            "name": self.name,
            "title": title(self.name),
            "populations": self.populations,
            "range": limits(self.name, low, high),
            "signed": is_signed(low, high),
        }


def samples(frames: Frames) -> dict[str, Columns]:
    """Columns without rows of every population of particles: what `columns.scalar` asks for shapes."""
    return {
        name: {
            label: np.empty((0, *column.shape), column.dtype)
            for label, column in frames.columns(name).items()
        }
        for name in frames.particles
    }


def chosen_fields(frames: Frames, names: Sequence[str]) -> list[Field]:
    """The fields of those names, or all there are. Raises FluidError for a name that nothing has."""
    tables = samples(frames)
    if not names:
        offered = (name for table in tables.values() for name in known_scalars(table) if name not in COVERED)
        names = sorted(set(offered), key=lambda name: (name not in DERIVED, name))
    made = []
    for name in dict.fromkeys(names):
        owners = [k for k, table in enumerate(tables.values()) if has_scalar(table, name)]
        if not owners:
            raise choose(
                "field", name, {known for table in tables.values() for known in known_scalars(table)}
            )
        made.append(Field(name, owners))
    return made
