"""Populations of a world laid end to end, so that one kernel call serves them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.entity import Entity


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
    """Every entity, and where its rows are in arrays of all of them laid end to end."""
    first = 0
    for entity in entities:
        yield entity, slice(first, first + len(entity))
        first += len(entity)


def add_spread(rows: Array, targets: Iterable[Array]) -> None:
    """Like `spread`, but add instead of overwrite."""
    for target in targets:
        target += rows[: len(target)]
        rows = rows[len(target) :]
