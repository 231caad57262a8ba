"""Colours by name, and the colours of bodies, smoke, vortons and liquids that name none: sRGB, 0 to 1."""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecs_fluid.errors import FluidError
from ecs_fluid.exports.frames import Frames
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.runs.stored_recipe import tables_of
from ecs_fluid.world_files import colors_in

Colour = tuple[float, float, float]

NAMED = {
    "orange": "#ff8c1a",
    "purple": "#a05fd6",
    "cyan": "#35c7d9",
    "pink": "#f278b6",
    "brown": "#8b5a2b",
    "white": "#f5f5f5",
    "grey": "#8c8c8c",
    "black": "#1a1a1a",
}
TINTS: dict[str, tuple[Colour, Colour]] = {
    "red": ((1.0, 0.56, 0.42), (0.31, 0.09, 0.09)),
    "blue": ((0.46, 0.73, 1.0), (0.07, 0.14, 0.34)),
    "yellow": ((1.0, 0.87, 0.46), (0.3, 0.2, 0.05)),
    "green": ((0.55, 0.92, 0.62), (0.07, 0.25, 0.14)),
}
"""Colours of smoke in light and in shade, unless a look has its own"""

SOLID: Colour = (0.72, 0.7, 0.66)
"""Colour of bodies"""
LIT: Colour = (1.0, 0.97, 0.93)
"""Colour of smoke in full light"""
PLAIN: Colour = (0.62, 0.68, 0.76)
"""Colour of vortons"""
WATER: Colour = (0.24, 0.52, 0.82)
"""Colour of surfaces of liquids"""


def by_name(color: str) -> Colour:
    """The colour of a name that recipes may use, or of #rrggbb."""
    if color in TINTS:
        return TINTS[color][0]
    digits = NAMED.get(color, color).removeprefix("#")
    red, green, blue = (int(digits[k : k + 2], 16) / 255.0 for k in (0, 2, 4))
    return red, green, blue


def named_colours(run: RunFolder) -> dict[str, str]:
    """Names of the colours that the recipe of a run gives to populations; none where it is damaged."""
    try:
        return colors_in(tables_of(run))
    except FluidError:
        return {}


def colours_of(frames: Frames) -> Mapping[str, Colour]:
    """Colours that the recipe of a run gives to populations; a surface has that which all liquids share."""
    named = named_colours(frames.run)
    shared = {named.get(name) for name in frames.all_liquids}
    if frames.surface is not None and len(shared) == 1:
        named = {frames.surface: shared.pop() or "", **named}
    return {name: by_name(color) for name, color in named.items() if color}


def liquid_colours(frames: Frames) -> dict[str, Colour]:
    """Colour of each liquid of a run by which vertices of their common surface are coloured; none for one."""
    named = named_colours(frames.run)
    found = {name: by_name(named[name]) if name in named else WATER for name in frames.all_liquids}
    return found if len(set(found.values())) > 1 else {}


def of_points(columns: Container[str]) -> Colour:
    """Colour of points with these columns whose recipe names none: of balls, vortons, water or smoke."""
    if "BallShape.radius" in columns:
        return SOLID
    if "Liquid.mass" in columns:
        return WATER
    return PLAIN if "Strength.alpha" in columns else LIT


def linear(colour: ArrayLike) -> NDArray[np.float64]:
    """Linear light of sRGB colours of any shape (IEC 61966-2-1), with which renderers compute."""
    c = np.asarray(colour, np.float64)
    return np.asarray(np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4))
