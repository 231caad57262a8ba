"""Quantities that vortons carry besides strength, passed from old vortons to new ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ecs_fluid.component import Array, Component
from ecs_fluid.components import (
    Age,
    CarrierMotion,
    CoreRadius,
    Density,
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
from ecs_fluid.systems.shared.fluid_at_rest import density_at, fluid_at_rest, temperature_at
from ecs_fluid.systems.shared.properties import particle_density
from ecs_fluid.tables import within_range

REPLACED = (Position, Strength, CoreRadius, Volume, RowId)
"""Tables that new vortons get from elsewhere."""

RESTARTED = (VelocityHistory, SubfilterAverage, CarrierMotion)
"""Tables that belong to the path of an old vorton: new vortons start with the defaults."""

UNDILUTED = (Age,)
"""Components of which fluid at rest has no value: mixed with it, vortons keep theirs."""

AT_REST = 1e-4
"""Part of the largest value beyond fluid at rest below which values of the other sign are rounding."""

LAYERED = (Density, Temperature)
"""Components, of positive values, of which fluid at rest may have other values at other heights."""

BY_MASS = (*Temperature.columns.values(), Dilatation.columns["temperature"], *Species.columns.values())
"""Components that mix by mass, not by volume, in gas that swells."""


@dataclass(frozen=True)
class Column:
    """One column: its table and name, its first index among the extensive quantities, the index of the
    quantity that it is a value per (volume or mass), and the range of its values."""

    kind: type[Component]
    name: str
    shape: tuple[int, ...]
    first: int
    per: int
    least: float
    most: float
    lack: float = 0.0
    """least value beyond fluid at rest over what that has at the same height, above -1; 0 without layers"""

    @property
    def held(self) -> slice:
        """Its places among the extensive quantities."""
        return slice(self.first, self.first + int(np.prod(self.shape)))

    @property
    def with_rest(self) -> tuple[float, float]:
        """The range of values beyond fluid at rest, where there is such fluid too; 0 instead of rounding."""
        some = AT_REST * max(-self.least, self.most)
        return self.least if self.least < -some else 0.0, self.most if self.most > some else 0.0


class Cargo:
    """Extensive quantities of every vorton of an entity: volume, and value times volume of every column.

    So the Density keeps the total mass, and heat and fuel stay as ThermalSystem and CombustionSystem count
    them, per volume; where vortons swell, components in `BY_MASS` count as value times mass. Without a Volume
    every vorton counts as 1. `matter` says whether vortons carry more than an Age.

    With `fill`, values are those beyond fluid at rest at the same height, which fills the rest of the space.

    Raises FluidError as `carried_kinds` does.
    """

    def __init__(self, entity: Entity, fill: bool = False) -> None:
        self.entity, rows = entity, len(entity)
        volume = entity[Volume].volume.astype(np.float64) if Volume in entity else np.ones(rows)
        self.has_volume = Volume in entity
        self.columns: list[Column] = []
        parts, swells, kinds = [volume], Dilatation in entity, carried_kinds(entity, fill)
        if swells:
            rho = particle_density(entity.tables, fluid_at_rest(entity.world))
            parts.append(volume * rho.astype(np.float64))
        for kind in kinds:
            inside = within_range(kind, vars(entity[kind]))
            for field, array in entity[kind].items():
                array = inside.get(field.name, array)
                values, lack = array.reshape(rows, -1).astype(np.float64), 0.0
                if fill and kind not in UNDILUTED:
                    rest = self._at_rest(kind, field.name, entity[Position].x)
                    values -= rest
                    if kind in LAYERED and fluid_at_rest(entity.world).layered:
                        lack = float((values / rest).min())
                limits = float(values.min()), float(values.max())
                per = int(swells and field in BY_MASS)
                self.columns.append(Column(kind, field.name, array.shape[1:], len(parts), per, *limits, lack))
                parts += list(values.T * parts[per])
        self.extensive = np.stack(parts, axis=1)
        self.matter = has_matter(kinds)
        self.most_species = max(self._of_species(self.extensive / volume[:, None]).max(), 0.0) or 1.0

    @property
    def dilutes(self) -> Array:
        """Mask (k,) of quantities beyond fluid at rest: all but volume, and what that fluid has none of."""
        found = np.zeros(self.extensive.shape[1], dtype=bool)
        for column in self.columns:
            found[column.held] = column.kind not in UNDILUTED
        return found

    def beyond_rest(self, load: Array) -> Array:
        """What each row of `load` has beyond fluid at rest, (n,), as sums of parts of the whole."""
        held = [np.abs(load[:, c.held]).sum(axis=1) for c in self.columns if c.kind not in UNDILUTED]
        return np.asarray(sum((size / size.sum() for size in held if size.any()), np.zeros(len(load))))

    def room(self, load: Array, change: Array, space: Array) -> Array:
        """Part (...,), at most 1, of `change` by which no value leaves its range at points that hold `load`.

        Both are extensive quantities (..., k); a point stands for `space` (...,) m^3.
        """
        space = space[..., None]
        part = np.ones(load.shape[:-1])
        for column in self.columns:
            if column.kind not in UNDILUTED:
                low, high = column.with_rest
                held, more = load[..., column.held], change[..., column.held]
                free = np.where(more < 0, held - low * space, high * space - held).clip(min=0)
                size = np.abs(more)
                parts = np.divide(free, size, np.ones_like(size), where=size > free)
                part = np.minimum(part, parts.min(axis=-1))
        return part

    def _of_species(self, load: Array) -> Array:
        """What each row of `load` (n, k) holds of all species together, (n,)."""
        held = [load[:, column.held].sum(axis=1) for column in self.columns if column.kind is Species]
        return np.asarray(sum(held, np.zeros(len(load))))

    def filled(self, share: Array, places: Array, space: Array) -> list[Component]:
        """Tables of new vortons that stand for `space` (n,) m^3 each, the rest of it fluid at rest.

        Where what a point got does not fit into its space, the vorton is larger: neither a value nor the
        sum of the species leaves its range. (Fuel and what has burnt are the same gas, so a vorton with as
        much of each as others have of one would be hotter, once all burns, than any of these.) Where it got a
        little of something that no vorton has, less heat than fluid at rest among warm vortons, say, that is
        made up by all others, in proportion to what they have.

        Args:
            share: extensive quantities (n, k) of each.
            places: (n, 3) m.
            space: volume that each point stands for, m^3.
        """
        share, volume = share.copy(), space.copy()
        for column in self.columns:
            if column.kind in UNDILUTED:
                continue
            held, (low, high) = share[:, column.held], column.with_rest
            if low == 0 or high == 0:
                total, held[...] = held.sum(axis=0), held.clip(0, None) if low == 0 else held.clip(None, 0)
                left = held.sum(axis=0)
                held *= np.divide(total, left, np.ones_like(total), where=left != 0)
            if low:
                volume = np.maximum(volume, (held / self._least(column, places)).max(axis=1))
            if high:
                volume = np.maximum(volume, (held / high).max(axis=1))
        volume = np.maximum(volume, self._of_species(share) / self.most_species)
        found: dict[type[Component], dict[str, Array]] = {}
        for column in self.columns:
            held = share[:, column.held]
            if column.kind in UNDILUTED:  # the mean of the vortons there, or of all
                some = share[:, :1] > 0
                own = np.where(some, share[:, :1], share[:, 0].sum())
                value = np.where(some, held, held.sum(axis=0)) / own
            else:
                # Vortons are large enough, so clipping removes only rounding.
                value = np.clip(held / volume[:, None], self._least(column, places), column.with_rest[1])
                value = value + self._at_rest(column.kind, column.name, places)
            found.setdefault(column.kind, {})[column.name] = value.reshape(len(share), *column.shape)
        return [*(kind(**columns) for kind, columns in found.items()), Volume(volume)]

    def _least(self, column: Column, places: Array) -> Array | float:
        """Least value beyond fluid at rest that a vorton at each place may have.

        In layers no vorton lacks a larger part of what fluid at rest has at its height than some did before:
        a bubble that lacks 999 of 1000 kg/m^3 would have less than nothing where there are 800.
        """
        low = column.with_rest[0]
        if low == 0 or column.lack == 0:
            return low
        return np.maximum(low, column.lack * self._at_rest(column.kind, column.name, places))

    def _at_rest(self, kind: type[Component], name: str, x: Array) -> Array:
        """Value of a column in fluid at rest at places (n, 3) m: (n, 1), or (1, 1) if it is the default."""
        fluid, z = fluid_at_rest(self.entity.world), x[:, 2].astype(np.float64)
        if kind is Temperature:
            return temperature_at(fluid, z)[:, None]
        if kind is Density:
            return density_at(fluid, z)[:, None]
        return np.full((1, 1), next(field.default for field in kind.columns.values() if field.name == name))

    def tables(self, share: Array, cell: float) -> list[Component]:
        """Tables of new vortons from the extensive quantities (n, k) of each.

        Those that carry no matter get the volume `cell`, m^3, and if they got nothing, the mean age.
        """
        volume = share[:, 0] if self.matter else np.full(len(share), cell)
        if not self.matter:
            share = np.where(share[:, :1] > 0, share, self.extensive.sum(axis=0))
        found: dict[type[Component], dict[str, Array]] = {}
        for column in self.columns:
            value = share[:, column.held] / share[:, column.per : column.per + 1]
            # New values are means of old ones, so clipping removes only rounding.
            value = np.clip(value, column.least, column.most).reshape(len(share), *column.shape)
            found.setdefault(column.kind, {})[column.name] = value
        tables = [kind(**columns) for kind, columns in found.items()]
        return [*tables, Volume(volume)] if self.has_volume else tables


def has_matter(kinds: list[type[Component]]) -> bool:
    """Whether vortons that carry these kinds of components carry more than an Age."""
    return any(kind is not Age for kind in kinds)


def carried_kinds(entity: Entity, fill: bool) -> list[type[Component]]:
    """Kinds of components whose values new vortons share, in the order of their names.

    Raises FluidError when a table can neither be shared nor started anew, and, with `fill`, for vortons that
    swell or have no Volume, and for values that fluid at rest does not have.
    """
    if fill and Dilatation in entity:
        raise FluidError(
            f"RemeshSystem: fill = true counts heat by volume, but where vortons swell, as those of "
            f"{entity.name!r}, it counts by mass; leave fill out"
        )
    found = []
    for kind, table in sorted(entity.tables.items(), key=lambda item: item[0].__name__):
        if kind.derived or not kind.per_row or kind in REPLACED:
            continue
        whole = any(array.dtype.kind in "iu" for _, array in table.items())
        if kind in RESTARTED or whole:
            _check_default(entity, kind)
            continue
        if fill and kind not in (*UNDILUTED, *LAYERED):
            _check_at_rest(entity, kind)
        found.append(kind)
    if fill and has_matter(found) and Volume not in entity:
        raise FluidError(
            f"RemeshSystem: fill = true lets vortons fill space, but {entity.name!r} has no Volume; give "
            "it one"
        )
    return found


def _check_at_rest(entity: Entity, kind: type[Component]) -> None:
    for field in kind.columns.values():
        if field.default is None:
            raise FluidError(
                f"RemeshSystem: fill = true adds fluid at rest, of which the {kind.__name__} of "
                f"{entity.name!r} has no value; give its column {field.name!r} a default"
            )


def _check_default(entity: Entity, kind: type[Component]) -> None:
    if any(field.default is None for field in kind.columns.values()):
        raise FluidError(
            f"entity {entity.name!r} has a {kind.__name__}, whose whole numbers cannot be shared among new "
            "vortons and have no default; leave the entity out with `on`, or give the column a default"
        )
