"""Numbers as the viewer reads them: whole steps from a lowest value, differences, byte planes, zlib, base64.

Particles stand in the order in which they were made, mostly neighbour after neighbour, so differences of
successive numbers are small; with the high bytes of all numbers before the low ones, zlib finds that.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.viz.columns import Array

MOST = {2: 65534, 4: 2**32 - 2}
"""Largest number of steps by the width in bytes; the next number means "no value"."""

SHADES = 2000
"""Steps of a field between its lowest and highest colour: eight for each colour of a map."""

HUGE = 1e150
"""Larger values are cut: their differences must be finite."""

Description = list[Any]
"""Description of a blob in a data file."""


def planes(counts: NDArray[np.unsignedinteger[Any]]) -> bytes:
    """Differences of unsigned numbers (n,), modulo their range; the highest byte of all first."""
    # Unsigned numbers wrap around, and so do the sums in the viewer.
    steps = np.diff(counts, prepend=counts.dtype.type(0)).astype(counts.dtype.newbyteorder(">"))
    return steps.view(np.uint8).reshape(len(counts), counts.itemsize).T.tobytes()


def places(x: Array, fine: float) -> tuple[Description, bytes]:
    """Places (n, 3) m as ``[n, width, low (3), step (3)]`` and a blob, in steps of `fine` m.

    Two bytes are enough where the box has fewer than 65,535 such steps; elsewhere they are four, and the step
    grows where even that is too little.
    """
    x = np.asarray(x, dtype=np.float64)
    if not len(x):
        return [0, 2, [0.0] * 3, [0.0] * 3], b""
    low = x.min(axis=0)
    extent = x.max(axis=0) - low
    width = 2 if extent.max() <= fine * MOST[2] else 4
    step = np.maximum(extent / MOST[width], fine)
    kind = np.uint16 if width == 2 else np.uint32
    blob = b"".join(
        planes(_counted(x[:, axis], low[axis], step[axis], MOST[width]).astype(kind)) for axis in range(3)
    )
    return [len(x), width, low.tolist(), step.tolist()], blob


def values(numbers: Array) -> tuple[Description, bytes]:
    """Numbers (n,) as ``[n, low, step]`` and a blob; ``step`` is 0, and the blob empty, if all are alike.

    Steps are 1/2,000 of the range of all but the outermost 0.5 %, or 1/65,534 of all if that is more. Numbers
    that are not finite become none (65,535); ``low`` is None if no number is finite.
    """
    numbers = np.asarray(numbers, dtype=np.float64)
    finite = np.isfinite(numbers)
    if not finite.any():
        return [len(numbers), None, 0.0], b""
    numbers = np.clip(numbers, -HUGE, HUGE)
    low, high = float(numbers[finite].min()), float(numbers[finite].max())
    if low == high and finite.all():
        return [len(numbers), low, 0.0], b""
    inner = np.percentile(numbers[finite], [0.5, 99.5])
    step = max((high - low) / MOST[2], float(inner[1] - inner[0]) / SHADES) or 1.0
    counts = np.full(len(numbers), MOST[2] + 1, dtype=np.uint16)
    counts[finite] = _counted(numbers[finite], low, step, MOST[2])
    return [len(numbers), low, step], planes(counts)


def _counted(numbers: Array, low: float, step: float, most: int) -> Array:
    """Whole steps from `low` to each number."""
    counts: Array = np.clip(np.rint((numbers - low) / step), 0, most)
    return counts


def encoded(blob: bytes) -> str:
    """A blob as text of a data file: compressed, in base64."""
    return base64.b64encode(zlib.compress(blob, 6)).decode("ascii")
