"""Queue of structural changes: rows spawned and killed in a tick, applied before and after observers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Array, Component, RowId
from ecs_fluid.errors import ComponentError
from ecs_fluid.integrator import Tables

if TYPE_CHECKING:
    from ecs_fluid.world import World


class Commands:
    """Kills and spawns per entity, in the order of the calls."""

    def __init__(self) -> None:
        self._killed: dict[str, Array] = {}
        self._spawned: list[tuple[str, Tables, int]] = []

    def clear(self) -> None:
        """Forget everything queued."""
        self._killed.clear()
        self._spawned.clear()

    def spawn(self, name: str, tables: Tables, rows: int) -> None:
        """Queue `rows` new rows."""
        if rows:
            self._spawned.append((name, tables, rows))

    def kill(self, name: str, rows: Any, count: int, own: slice = slice(None)) -> None:
        """Queue the removal of rows given as a mask (count,) or as row numbers below `count`.

        Those of the `own` rows are kept; on many ranks the others are elsewhere.
        """
        chosen = np.asarray(rows)
        if chosen.dtype == np.bool_:
            if chosen.shape != (count,):
                raise ComponentError(
                    f"entity {name!r}: the kill mask has shape {chosen.shape}; shape ({count},) is needed"
                )
        elif chosen.size and chosen.dtype.kind not in "iu":
            raise ComponentError(
                f"entity {name!r}: rows to kill have dtype {chosen.dtype}; a mask or row numbers are allowed"
            )
        elif chosen.size and not ((chosen >= 0) & (chosen < count)).all():
            worst = int(chosen[(chosen < 0) | (chosen >= count)].flat[0])
            raise ComponentError(
                f"entity {name!r}: row {worst} cannot be killed; rows 0 to {count - 1} exist"
                if count
                else f"entity {name!r}: row {worst} cannot be killed; the entity has no rows"
            )
        mask = np.zeros(count, dtype=bool)
        mask[chosen if chosen.size else slice(0, 0)] = True
        former = self._killed.get(name)
        self._killed[name] = mask[own] if former is None else former | mask[own]

    def apply(self, world: World) -> None:
        """Carry out all kills, then all spawns; tables are compacted once."""
        ranks = world.ranks
        killed = {*self._killed} if ranks is None else ranks.any_of({*self._killed})
        if not killed and not self._spawned:
            return
        try:
            born: dict[str, list[tuple[Tables, int]]] = {}
            for name, tables, rows in self._spawned:
                born.setdefault(name, []).append((tables, rows))
            for name in [entity.name for entity in world.entities if entity.name in killed | {*born}]:
                self._rebuild(world, name, born.get(name, []))
                if ranks is not None:
                    ranks.settle(world, name)
        finally:
            self.clear()
        world._attach_derived()

    def _rebuild(self, world: World, name: str, born: list[tuple[Tables, int]]) -> None:
        entity = world[name]
        killed = self._killed.get(name)
        keep: Any = None if killed is None or not killed.any() else np.flatnonzero(~killed)
        if keep is None and not born:
            return
        fresh = [RowId(world._new_ids(rows)) for _, rows in born]
        if world.ranks is not None and not world.ranks.takes_new(name):
            born, fresh = [], []
        if keep is not None and len(keep) and int(keep[-1]) - int(keep[0]) == len(keep) - 1:
            keep = slice(int(keep[0]), int(keep[-1]) + 1)  # the oldest die first: one block stays
        for kind, table in entity.tables.items():
            if not kind.per_row:
                continue
            # Derived tables go along, so that observers see what belongs to the rows; it is 0 for new rows.
            parts: list[Component] = [
                tables[kind] if kind in tables else row_id if kind is RowId else kind.blank(rows, world.dtype)
                for (tables, rows), row_id in zip(born, fresh, strict=True)
            ]
            for field, array in table.items():
                kept = array if keep is None else array[keep]
                # Always an array of its own: a slice would keep the longer one alive, and alias it.
                table.__dict__[field.name] = np.concatenate(
                    [kept, *(part.__dict__[field.name] for part in parts)]
                )
