"""Populations of a world concatenated, so that one kernel call serves them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Liquid, Pose, Strength, Whitewater
from ecs_fluid.components.bodies import BoundaryLayer, BoundVorticity
from ecs_fluid.entity import Entity
from ecs_fluid.input_limits import SPHERE, TRACER, VORTON, check_bytes
from ecs_fluid.one_process import OneProcess
from ecs_fluid.periodic import images
from ecs_fluid.world import World


def of_bodies(entity: Entity) -> bool:
    """Whether the entity's vortons belong to bodies: they lie at or in the bodies' surfaces."""
    return BoundVorticity in entity or BoundaryLayer in entity


def of_liquid(entity: Entity) -> bool:
    """Whether the entity's particles are liquid, or spray, foam and bubbles of one: they fall by themselves,
    and the fluid around does not carry them."""
    return Liquid in entity or Whitewater in entity


def joined(arrays: Sequence[Array], trailing: tuple[int, ...], dtype: type) -> Array:
    """The arrays one after the other; a single one is returned as it is, without a copy."""
    if len(arrays) == 1:
        return arrays[0]
    if not arrays:
        return np.zeros((0, *trailing), dtype=dtype)
    return np.concatenate(arrays)


def spread(rows: Array, targets: Iterable[Array]) -> None:
    """Inverse of `joined`: write consecutive rows into the target arrays."""
    for target in targets:
        target[...], rows = rows[: len(target)], rows[len(target) :]


def rows_of_each(entities: Iterable[Entity]) -> Iterator[tuple[Entity, slice]]:
    """Every entity, and the slice of its rows in arrays of all entities concatenated."""
    first = 0
    for entity in entities:
        start, first = first, first + len(entity)
        yield entity, slice(start, first)


def some_rows(
    processes: OneProcess,
    populations: Sequence[tuple[Entity, *tuple[Array, ...]]],
    chosen: Callable[[int], Array],
) -> list[Array]:
    """Each column of the populations, (entity, column, ...), at some rows, concatenated.

    ``chosen(count)`` returns the numbers (m,), ascending, of some of `count` rows.
    """
    totals = [processes.total([entity], len(columns[0])) for entity, *columns in populations]
    rows, first = chosen(sum(totals)), 0
    parts: list[Sequence[Array]] = []
    for (entity, *columns), total in zip(populations, totals, strict=True):
        own = rows[(rows >= first) & (rows < first + total)] - first
        parts.append(processes.some_rows(entity, columns, own))
        first += total
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def add_spread(rows: Array, targets: Iterable[Array]) -> None:
    """Like `spread`, but add instead of overwrite."""
    for target in targets:
        target += rows[: len(target)]
        rows = rows[len(target) :]


def total_strength(world: World) -> tuple[Array, float]:
    """Sum of all vortons' strengths (3,), and the sum of their magnitudes, both in m^3/s."""
    alphas = [strength.alpha.astype(np.float64) for (strength,) in world.query(Strength)]
    total = sum((alpha.sum(axis=0) for alpha in alphas), np.zeros(3))
    return total, sum(float(np.linalg.norm(alpha, axis=1).sum()) for alpha in alphas)


def with_images(world: World, x: Array, reach: float, *columns: Array) -> tuple[Array, ...]:
    """Positions (n, 3) m and columns (n, ...), with those of images within `reach` m of a periodic box."""
    if not world.periods.any():
        return x, *columns
    rows, places = images(x, world.periods, reach)
    return np.concatenate([x, places]), *(
        np.concatenate([column, column.take(rows, axis=0)]) for column in columns
    )


def particles_take(world: World) -> float:
    """Approximate memory of a world's rows in a tick, bytes."""
    each = {Strength: VORTON, Pose: SPHERE}
    return sum(
        len(entity) * next((bytes_ for kind, bytes_ in each.items() if kind in entity), TRACER)
        for entity in world.entities
    )


class Growth:
    """Memory of a world's rows with those that a tick adds; raises LimitError beyond what there is."""

    def __init__(self, world: World) -> None:
        self._world, self._taken = world, 0.0

    def add(self, count: int, each: float, source: str, remedy: str) -> None:
        """Count `count` new rows of `each` bytes by `source`; LimitError, with the remedy, if they are too
        many."""
        self._taken = (self._taken or particles_take(self._world)) + count * each
        check_bytes(self._taken, f"particles with {count:,} more by {source} would take", remedy)
