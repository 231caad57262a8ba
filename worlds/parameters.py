"""Kinds of numbers that recipes share: allowed ranges, directions, and lints on overlap and waves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.systems.shared.ranges import Length as Length

Extent = Annotated[float, Field(ge=0, le=1e6)]
Coordinate = Annotated[float, Field(ge=-1e6, le=1e6)]
Amount = Annotated[float, Field(ge=-1e9, le=1e9)]
Overlap = Annotated[float, Field(ge=0.1, le=10)]
Point = tuple[Coordinate, Coordinate, Coordinate]
Profile = Literal["thin", "gaussian", "uniform", "article"]


def _not_zero(vector: Point) -> Point:
    if not any(abs(part) > 1e-9 for part in vector):
        raise ValueError("a direction needs at least one component that is not zero")
    return vector


Direction = Annotated[Point, AfterValidator(_not_zero)]


def one_of(recipe: object, names: Sequence[str]) -> str:
    """The one of these parameters that is given; raises ValueError unless it is exactly one."""
    given = [name for name in names if getattr(recipe, name) is not None]
    if len(given) != 1:
        said = " and ".join(given) or "none"
        raise ValueError(f"{said} given; exactly one of {', '.join(names)} is needed")
    return given[0]


def waves_lint(spacing: float, *waves: float) -> list[str]:
    """Warn of wavelengths, m, along which there are too few blobs."""
    return [
        f"{wave / spacing:.1f} blobs per wave < 8; use spacing <= {wave / 8:.3g} m"
        for wave in waves
        if wave < 8 * spacing * (1 - 1e-6)
    ]


def overlap_lint(overlap: float, what: str) -> list[str]:
    """Warn if the blobs of a vortex, flow, ... do not overlap."""
    if overlap >= LEAST_OVERLAP:
        return []
    return [
        f"overlap {overlap:.2f} < {LEAST_OVERLAP}, the {what} will be noisy; use overlap >= {LEAST_OVERLAP}"
    ]
