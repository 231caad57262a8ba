"""Handles of entities, and read-only copies of their tables."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ecs_fluid.component import Array, Component, Tables, refuse_no_component
from ecs_fluid.errors import ComponentError, FluidError
from ecs_fluid.html import table as html_table

if TYPE_CHECKING:
    from ecs_fluid.world import World

C = TypeVar("C", bound=Component)
T = TypeVar("T")


class Entity:
    """Handle of one entity of a world: ``entity[Position].x``, ``len(entity)``, ``entity.name``."""

    def __init__(self, world: World, number: int, name: str, keep_world: bool = False) -> None:
        # The world's own handles must not keep it alive; those it gives to users do, so that
        # ``load("ring")["ring"]`` works on a world that nobody else holds.
        self._world, self._strong_world = weakref.ref(world), world if keep_world else None
        self.number, self.name = number, name

    if not TYPE_CHECKING:  # checkers find such names themselves

        def __setattr__(self, name: str, value: object) -> None:
            """Refuse all attributes once the handle is made; values are in tables."""
            if "name" in vars(self):
                raise FluidError(
                    f"entity {self.name!r} has no attribute {name!r}; set columns of its tables, such as "
                    f"world[{self.name!r}][Position].x, or add a table by World.attach"
                )
            super().__setattr__(name, value)

    @property
    def world(self) -> World:
        """The world the entity lives in."""
        world = self._world()
        if world is None:
            raise FluidError(f"the world of entity {self.name!r} no longer exists")
        return world

    @property
    def tables(self) -> Tables:
        """All component tables by type, to read; `World.attach` adds one."""
        world = self._world() or self.world
        try:
            return world._visible_tables[self.number]
        except KeyError:
            raise FluidError(f"entity {self.name!r} was removed from its world") from None

    def __getitem__(self, kind: type[C]) -> C:
        tables = self.tables
        if kind in tables:
            return tables[kind]  # type: ignore[return-value]
        refuse_no_component(kind)
        names = (other.__name__ for other in tables)
        wanted = getattr(kind, "__name__", repr(kind))
        raise ComponentError(f"entity {self.name!r} has no {wanted}; it has {', '.join(names)}")

    def __contains__(self, kind: type[Component]) -> bool:
        if kind in self.tables:
            return True
        refuse_no_component(kind)
        return False

    @property
    def rows_here(self) -> int:
        """Number of rows that this process holds."""
        for kind, table in self.world._tables_by_number[self.number].items():
            if kind.per_row:
                return table.rows or 0
        return 0

    def __len__(self) -> int:
        return self.world.processes.rows(self)

    def spawn(self, *components: Component) -> None:
        """Add rows; during a tick they appear when it ends. See `World.spawn_rows`."""
        self.world.spawn_rows(self.name, *components)

    def kill(self, rows: Any) -> None:
        """Remove rows, given as a mask or as row numbers; during a tick when it ends."""
        self.world.kill_rows(self.name, rows)

    def columns(self, state_only: bool = False) -> dict[str, Array]:
        """Per-row columns by their label ``Component.column``; views, not copies."""
        return {
            field.label: array
            for kind, table in sorted(self.tables.items(), key=lambda item: item[0].__name__)
            if kind.per_row and not (state_only and kind.derived)
            for field, array in table.items()
        }

    def __reduce__(self) -> Any:
        raise FluidError(
            "an entity cannot be copied or pickled; take world.snapshot()[name] or its tables instead"
        )

    def __repr__(self) -> str:
        return f"Entity({self.name!r}, rows={len(self)}, {', '.join(k.__name__ for k in self.tables)})"

    def _repr_html_(self) -> str:
        rows = [
            (field.label, field.unit, " x ".join(map(str, array.shape)), _range(array))
            for table in self.tables.values()
            for field, array in table.items()
        ]
        caption = f"Entity {self.name}, {len(self):,} rows"
        return html_table(caption, ("column", "unit", "shape", "range"), rows)


def _range(array: Array) -> str:
    """Least and largest number of a column."""
    return f"{array.min():.6g} to {array.max():.6g}" if array.size else ""


class Named(Mapping[str, T]):
    """A mapping by names, which notebooks complete. It equals only itself, as arrays have no truth value."""

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)


class Snapshot(Named[dict[str, Array]]):
    """Columns by population name and label, at one tick."""

    def __init__(self, tick: int, time: float, populations: dict[str, dict[str, Array]]) -> None:
        super().__init__(populations)
        self.tick, self.time, self._populations = tick, time, populations

    def __getitem__(self, name: str) -> dict[str, Array]:
        return self._populations[name]

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}: {len(columns)} columns" for name, columns in self.items())
        return f"Snapshot(tick={self.tick}, time={self.time:.6g} s, {rows})"


def frozen(array: Array) -> Array:
    """A read-only copy."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy
