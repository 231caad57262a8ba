"""Quantities that vortons carry besides strength, passed from old vortons to new ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ecs_fluid.component import Array, Component
from ecs_fluid.components import (
    Age,
    CarrierMotion,
    CoreRadius,
    Dilatation,
    Position,
    RowId,
    Species,
    Strength,
    SubfilterAverage,
    Temperature,
    VelocityHistory,
    Volume,
)
from ecs_fluid.entity import Entity
from ecs_fluid.errors import FluidError
from ecs_fluid.systems.shared.fluid_at_rest import fluid_at_rest
from ecs_fluid.systems.shared.properties import particle_density

REPLACED = (Position, Strength, CoreRadius, Volume, RowId)
"""Tables that new vortons get from elsewhere."""

RESTARTED = (VelocityHistory, SubfilterAverage, CarrierMotion)
"""Tables that belong to the path of an old vorton: new vortons start with the defaults."""

BY_MASS = (*Temperature.columns.values(), Dilatation.columns["temperature"], *Species.columns.values())
"""Components that mix by mass, not by volume, in gas that swells."""


@dataclass(frozen=True)
class Column:
    """One column: its table and name, its index among the extensive quantities, the index of the quantity
    that it is a value per (volume or mass), and the range of its values."""

    kind: type[Component]
    name: str
    shape: tuple[int, ...]
    first: int
    per: int
    least: float
    most: float


class Cargo:
    """Extensive quantities of every vorton of an entity: volume, and value times volume of every column.

    So the Density keeps the total mass, and heat and fuel stay as ThermalSystem and CombustionSystem count
    them, per volume; where vortons swell, components in `BY_MASS` count as value times mass. Without a Volume
    every vorton counts as 1. `matter` says whether vortons carry more than an Age.

    Raises FluidError when a table can neither be shared nor started anew.
    """

    def __init__(self, entity: Entity) -> None:
        rows = len(entity)
        volume = entity[Volume].volume.astype(np.float64) if Volume in entity else np.ones(rows)
        self.has_volume = Volume in entity
        self.columns: list[Column] = []
        parts, swells = [volume], Dilatation in entity
        if swells:
            rho = particle_density(entity.tables, fluid_at_rest(entity.world))
            parts.append(volume * rho.astype(np.float64))
        for kind, table in sorted(entity.tables.items(), key=lambda item: item[0].__name__):
            if kind.derived or not kind.per_row or kind in REPLACED:
                continue
            whole = any(array.dtype.kind in "iu" for _, array in table.items())
            if kind in RESTARTED or whole:
                _check_default(entity, kind)
                continue
            for field, array in table.items():
                values = array.reshape(rows, -1).astype(np.float64)
                limits = float(values.min()), float(values.max())
                per = int(swells and field in BY_MASS)
                self.columns.append(Column(kind, field.name, array.shape[1:], len(parts), per, *limits))
                parts += list(values.T * parts[per])
        self.extensive = np.stack(parts, axis=1)
        self.matter = any(column.kind is not Age for column in self.columns)

    def tables(self, load: Array, kept: Array, cell: float) -> list[Component]:
        """Tables of new vortons at some of the lattice points that took shares of the cargo.

        Args:
            load: extensive quantities (points, k) of all the points.
            kept: which points become vortons.
            cell: volume of a vorton that carries no matter.
        """
        share = load[kept]
        volume = np.full(len(kept), cell)
        if self.matter:
            # The cargo of points left out is mixed into the others: totals and ranges of values stay.
            share = share + share[:, :1] / share[:, 0].sum() * (load.sum(axis=0) - share.sum(axis=0))
            volume = share[:, 0]
        else:  # points that got nothing get the mean age
            share = np.where(share[:, :1] > 0, share, load.sum(axis=0))
        found: dict[type[Component], dict[str, Array]] = {}
        for column in self.columns:
            width = int(np.prod(column.shape))
            held = share[:, column.first : column.first + width]
            value = held / share[:, column.per : column.per + 1]
            # New values are means of old ones, so clipping removes only rounding.
            value = np.clip(value, column.least, column.most).reshape(len(kept), *column.shape)
            found.setdefault(column.kind, {})[column.name] = value
        tables = [kind(**columns) for kind, columns in found.items()]
        return [*tables, Volume(volume)] if self.has_volume else tables


def _check_default(entity: Entity, kind: type[Component]) -> None:
    if any(field.default is None for field in kind.columns.values()):
        raise FluidError(
            f"entity {entity.name!r} has a {kind.__name__}, whose whole numbers cannot be shared among new "
            "vortons and have no default; leave the entity out with `on`, or give the column a default"
        )
