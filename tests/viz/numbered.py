"""Pictures of a number each. Processes that draw them import this module, and no library that draws."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.drawers import PictureSource


class Numbers(PictureSource):
    """Pictures of one colour, their number; what `fault` says happens at the number 3."""

    def __init__(self, count: int, fault: str = "") -> None:
        self.count, self.fault = count, fault

    def __len__(self) -> int:
        return self.count

    def pictures(self, rows: range | None = None) -> Iterator[np.ndarray]:
        for row in range(self.count) if rows is None else rows:
            if row == 3 and self.fault == "error":
                raise FluidError("frame 3 is damaged")
            if row == 3 and self.fault == "dies":
                os._exit(7)
            print("this must not come between the pictures")
            yield np.full((3, 5, 3), row, np.uint8)
