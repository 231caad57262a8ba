"""How tracers look by what they carry: dye by density, dye by temperature, fire by flame and smoke."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

from ecs_fluid.viz.columns import Array, Columns
from ecs_fluid.viz.style import Look, Tint

Colours = NDArray[np.float64]
FLAME, SMOKE, HEAT, RHO = "Species.flame", "Species.smoke", "Temperature.T", "Density.rho"
PAINTED = {"dye": RHO, "temperature": HEAT}
"""Column that colours the tracers, by the look's kind of paint."""

GLOW = np.array(
    [(0.0, 0.0, 0.0), (0.55, 0.09, 0.01), (1.0, 0.38, 0.05), (1.0, 0.75, 0.28), (1.0, 0.95, 0.75)]
)
"""Colours of flame from cool to hot: dark red, orange, yellow, nearly white."""


@dataclass(frozen=True)
class Paint:
    """Of each tracer: colours (n, 3) in light and in shade, share `cover` (n,) of a puff's opacity, and the
    colour `glow` (n, 3) that it adds to what is behind it; None where all tracers are alike."""

    lit: Colours
    shade: Colours
    cover: Colours | None = None
    glow: Colours | None = None


def paint(look: Look, columns: Columns, tint: Tint, limits: tuple[float, float]) -> Paint:
    """The paint of one population in a look; `limits` is the range of the painted column over all frames."""
    rows = len(columns["Position.x"])
    plain = Paint(*(np.broadcast_to(np.array(part), (rows, 3)) for part in tint))
    column = PAINTED.get(look.paint, "")
    if column in columns:
        return _coloured(look, columns[column], limits)
    if look.paint == "fire" and FLAME in columns and SMOKE in columns:
        return _burning(look, columns, plain, limits)
    return plain


def _coloured(look: Look, values: Array, limits: tuple[float, float]) -> Paint:
    """Colours of a map, in shade a third as bright."""
    low, high = limits
    share = np.clip((np.asarray(values, np.float64) - low) / max(high - low, 1e-300), 0.0, 1.0)
    start, end = look.part
    lit = np.asarray(colormaps[look.colours](start + (end - start) * share)[:, :3])
    return Paint(lit, 0.35 * lit)


def _burning(look: Look, columns: Columns, plain: Paint, limits: tuple[float, float]) -> Paint:
    """Smoke as thick as its mass fraction; flame glows by its mass fraction, in the colour of its heat.

    `limits` are the largest mass fractions of flame and of smoke in the frames. Square roots show thin smoke
    and the rim of a flame, where fractions have fallen by mixing.
    """
    flame, smoke = (np.asarray(columns[name], np.float64) for name in (FLAME, SMOKE))
    # A glow in much smoke stays a glow: flame counts as bright when there is half as much of it as of smoke.
    most_smoke = max(limits[1], 1e-9)
    most_flame = max(limits[0], 0.5 * most_smoke)
    strength = np.sqrt(np.clip(flame / most_flame, 0.0, 1.0))
    step = strength * (len(GLOW) - 1)
    below = np.minimum(step.astype(int), len(GLOW) - 2)
    part = (step - below)[:, None]
    glow = GLOW[below] * (1 - part) + GLOW[below + 1] * part
    return Paint(plain.lit, plain.shade, np.sqrt(np.clip(smoke / most_smoke, 0.0, 1.0)), glow)
