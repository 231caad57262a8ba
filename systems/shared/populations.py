"""Populations of a world laid end to end, so that one kernel call serves them all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ecs_fluid.component import Array


def joined(arrays: Sequence[Array], trailing: tuple[int, ...], dtype: type) -> Array:
    """The arrays one after the other; a single one is returned as it is, without a copy."""
    if len(arrays) == 1:
        return arrays[0]
    if not arrays:
        return np.zeros((0, *trailing), dtype=dtype)
    return np.concatenate(arrays)


def spread(rows: Array, targets: Iterable[Array]) -> None:
    """Inverse of `joined`: write consecutive rows into the target arrays."""
    first = 0
    for target in targets:
        target[...] = rows[first : first + len(target)]
        first += len(target)


def add_spread(rows: Array, targets: Iterable[Array]) -> None:
    """Like `spread`, but add instead of overwrite."""
    first = 0
    for target in targets:
        target += rows[first : first + len(target)]
        first += len(target)
