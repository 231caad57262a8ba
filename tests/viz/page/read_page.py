"""A page read back: the data files as Python, by other code than wrote them or plays them."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np

PUT = re.compile(r'ecsFluidPage\.put\("(\w+)",(\d+),(\[.*\]),"([A-Za-z0-9+/=]*)"\);\n')


class Page:
    """Header and streams of a page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        text = (folder / "data" / "page.js").read_text(encoding="ascii")
        call = re.fullmatch(r"ecsFluidPage\.start\((.*)\);\n", text)
        assert call
        self.header: dict[str, Any] = json.loads(call[1])

    def frame(self, stream: str, number: int) -> tuple[Any, bytes]:
        """Description and bytes of a frame in a stream."""
        groups = self.header["groups"]
        group = max(k for k, first in enumerate(groups) if first <= number)
        text = (self.folder / "data" / f"{stream}_{group:05d}.js").read_text(encoding="ascii")
        call = PUT.fullmatch(text)
        assert call and call[1] == stream and int(call[2]) == group
        told = json.loads(call[3])
        blob = zlib.decompress(base64.b64decode(call[4], validate=True))
        assert len(blob) == sum(length for _, length in told)
        which = number - groups[group]
        start = sum(length for _, length in told[:which])
        return told[which][0], blob[start : start + told[which][1]]

    def particles(self, number: int) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
        """Places (n, 3) and painted planes (planes, n) of every population, and bodies (n, 12)."""
        told, blob = self.frame("x", number)
        x, painted, bodies = [], [], []
        for population, part in zip(self.header["populations"], told["populations"], strict=True):
            places, blob = take_places(part, blob)
            size = population["planes"] * len(places)
            painted.append(np.frombuffer(blob[:size], np.uint8).reshape(population["planes"], len(places)))
            x.append(places)
            blob = blob[size:]
        for count in told["bodies"]:
            bodies.append(np.frombuffer(blob[: 48 * count], "<f4").reshape(count, 12))
            blob = blob[48 * count :]
        assert not blob
        return x, painted, bodies

    def values(self, field: int, number: int) -> dict[int, np.ndarray]:
        """Numbers of a field by population."""
        told, blob = self.frame(f"f{field}", number)
        found = {}
        for owner, part in zip(self.header["fields"][field]["populations"], told, strict=True):
            found[owner], blob = take_values(part, blob)
        assert not blob
        return found


def counts(blob: bytes, n: int, width: int) -> tuple[np.ndarray, bytes]:
    """Whole numbers (n,) of `width` bytes from the beginning of a blob, and the rest of it."""
    high_first = np.frombuffer(blob[: n * width], np.uint8).reshape(width, n).astype(np.int64)
    steps = sum(plane << (8 * (width - 1 - k)) for k, plane in enumerate(high_first))
    return np.cumsum(steps) % (1 << (8 * width)), blob[n * width :]


def take_places(told: list[Any], blob: bytes) -> tuple[np.ndarray, bytes]:
    n, width, low, step = told
    axes = []
    for axis in range(3):
        whole, blob = counts(blob, n, width)
        axes.append(low[axis] + step[axis] * whole)
    return np.stack(axes, axis=1), blob


def take_values(told: list[Any], blob: bytes) -> tuple[np.ndarray, bytes]:
    n, low, step = told
    if step == 0:
        return np.full(n, np.nan if low is None else low), blob
    whole, blob = counts(blob, n, 2)
    return np.where(whole == 65535, np.nan, low + step * whole), blob
