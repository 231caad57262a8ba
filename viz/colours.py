"""Colours of tracers by what they carry (density, temperature, flame and smoke), and of hot bodies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

from ecs_fluid.exports.bodies import Placed
from ecs_fluid.viz.columns import Array, Columns
from ecs_fluid.viz.smoke import Puff, illumination
from ecs_fluid.viz.style import LOOKS, Look, Tint

Colours = NDArray[np.float64]
FLAME, SMOKE, HEAT, RHO = "Species.flame", "Species.smoke", "Temperature.T", "Density.rho"
PAINTED = {"dye": RHO, "temperature": HEAT}
"""Column that colours the tracers, by the look's kind of paint."""

FAINT = 0.02
"""Invisible share, relative to the thickest smoke or the strongest flame."""

GLOW = np.array(
    [(0.0, 0.0, 0.0), (0.55, 0.09, 0.01), (1.0, 0.38, 0.05), (1.0, 0.75, 0.28), (1.0, 0.95, 0.75)]
)
"""Colours of flame from cool to hot: dark red, orange, yellow, nearly white."""

LEAST_FLAME = 0.01
"""Mass fraction of flame below which it is not bright: there even oil, of 4.5e7 J/kg, heats air by only 450
K, too little to glow. Without this bound the remains of a fire that goes out would blaze."""

DULL, WHITE = 750.0, 2200.0
"""Temperatures at which a body begins to glow in the dark (Draper: 798 K) and at which it is white, K."""


def colours_of_bodies(
    look: Look, bodies: Sequence[Placed], colors: Mapping[str, str], span: tuple[float, float] | None
) -> Colours:
    """Colours (n, 3) of bodies: those of recipes, or the look's, and `heat_colours`."""
    plain = np.array([look.solid(body.population, colors) for body in bodies]).reshape(-1, 3)
    return heat_colours(look, plain, np.array([body.temperature for body in bodies]), span)


def heat_colours(look: Look, plain: Colours, temperature: Array, span: tuple[float, float] | None) -> Colours:
    """Colours (n, 3) of bodies at temperatures (n,) K, NaN for none; `plain` (n, 3) are those of cold bodies.

    With the range `span` they follow the look's map of temperatures; without it, bodies glow like hot metal.
    """
    known = np.isfinite(temperature)
    heat = np.where(known, temperature, 0.0)
    if span is not None:
        return np.where(known[:, None], _coloured(look, heat, span).lit, plain)
    share = np.clip((heat - DULL) / (WHITE - DULL), 0.0, 1.0)
    glow = np.stack([np.interp(share, np.linspace(0.0, 1.0, len(GLOW) - 1), part) for part in GLOW[1:].T], 1)
    cover = np.clip(5.0 * share, 0.0, 1.0)[:, None]
    return np.asarray((1.0 - cover) * plain + cover * glow)


@dataclass(frozen=True)
class Paint:
    """Colours (n, 3) of tracers in light and in shade, their shares `cover` (n,) of a puff's opacity (None:
    all 1), and the colours `glow` (n, 3) that they add to what is behind them (None: nothing)."""

    lit: Colours
    shade: Colours
    cover: Colours | None = None
    glow: Colours | None = None


def missing_columns(look: str, populations: Mapping[str, Collection[str]], own: Collection[str]) -> str:
    """Columns by which a look colours tracers, if no population of tracers has them, in words; else "".

    Where there are no tracers vortons may have the column. Populations named in ``own`` have a colour of
    their own and need none.
    """
    kind = LOOKS[look].paint if look in LOOKS else ""
    wanted = {"fire": (FLAME, SMOKE)}.get(kind, (PAINTED[kind],) if kind in PAINTED else ())
    others = {"Strength.alpha", "Pose.q"}
    tracers = {name: columns for name, columns in populations.items() if others.isdisjoint(columns)}
    if tracers and set(tracers) <= set(own):
        return ""
    coloured = tracers if tracers or kind not in PAINTED else populations
    there = not wanted or any(set(wanted) <= set(columns) for columns in coloured.values())
    return "" if there else " and ".join(wanted)


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


def spray_colours(look: Look, columns: Columns, tint: Tint, limits: tuple[float, float]) -> Colours:
    """Colours (n, 3) of a spray in full light: those of its paint, or glowing by its flame or its heat."""
    painted = paint(look, columns, tint, limits)
    if painted.glow is not None:
        flame = painted.glow.max(axis=1, keepdims=True)
        return np.asarray((1.0 - flame) * painted.lit + flame * painted.glow)
    if HEAT in columns and PAINTED.get(look.paint) != HEAT:
        return heat_colours(look, painted.lit, columns[HEAT], None)
    return painted.lit


def _coloured(look: Look, values: Array, limits: tuple[float, float]) -> Paint:
    """Colours of a map, in shade a third as bright."""
    low, high = limits
    share = np.clip((np.asarray(values, np.float64) - low) / max(high - low, 1e-300), 0.0, 1.0)
    name, (start, end) = look.painted_map
    lit = np.asarray(colormaps[name](start + (end - start) * share)[:, :3])
    return Paint(lit, 0.35 * lit)


def _burning(look: Look, columns: Columns, plain: Paint, limits: tuple[float, float]) -> Paint:
    """Smoke as thick as its mass fraction; flame glows by its mass fraction, in the colour of its heat."""
    smoke, strength = _shares(columns, limits)
    step = strength * (len(GLOW) - 1)
    below = np.minimum(step.astype(int), len(GLOW) - 2)
    part = (step - below)[:, None]
    glow = GLOW[below] * (1 - part) + GLOW[below + 1] * part
    return Paint(plain.lit, plain.shade, smoke, glow)


def _shares(columns: Columns, limits: tuple[float, float]) -> tuple[Array, Array]:
    """How thick smoke and how strong flame is in each tracer, 0 to 1.

    `limits` are the largest mass fractions of flame and of smoke in the frames. Square roots show thin smoke
    and the rim of a flame, where fractions have fallen by mixing.
    """
    flame, smoke = (np.asarray(columns[name], np.float64) for name in (FLAME, SMOKE))
    # Flame within thick smoke is dim: it counts as bright if there is half as much flame as smoke.
    most_smoke = max(limits[1], 1e-9)
    most_flame = max(limits[0], 0.5 * most_smoke, LEAST_FLAME)
    parts = (smoke / most_smoke, flame / most_flame)
    thick, strong = (np.sqrt(np.clip(part, 0.0, 1.0)) for part in parts)
    return thick, strong


def visible(look: Look, columns: Columns, limits: tuple[float, float]) -> Array:
    """Which tracers (n,) a look shows: those with flame or smoke to speak of, if it paints these."""
    if look.paint == "fire" and FLAME in columns and SMOKE in columns:
        return np.asarray(np.maximum(*_shares(columns, limits)) > FAINT)
    return np.ones(len(columns["Position.x"]), bool)


def shaded(
    look: Look, puff: Puff, clouds: Sequence[tuple[Array, Paint]]
) -> tuple[Colours, Colours, Colours | None]:
    """Of all tracers of clouds at (n, 3) m: light (n,), colours (n, 3), shares of a puff's opacity (n,).

    The light is that of one side, dimmed by the tracers on its way. The shares are None where all are full;
    flame is not shaded, and hides what is behind it.
    """
    x = np.concatenate([np.asarray(points, np.float64) for points, _ in clouds])
    lit, shade = (np.concatenate([getattr(paint, k) for _, paint in clouds]) for k in ("lit", "shade"))
    cover = None
    if any(paint.cover is not None for _, paint in clouds):
        full = [np.ones(len(paint.lit)) if paint.cover is None else paint.cover for _, paint in clouds]
        cover = np.concatenate(full)
    # Half the cross-section: smoke scatters most light onwards, so its shadow is softer than its cover.
    light = np.ones(len(x))
    if not puff.flat:
        light = illumination(x, np.array(look.light), puff.spacing, 0.5 * puff.cross_section, cover)
    colour = shade + light[:, None] * (lit - shade)
    if cover is not None:
        dark = [np.zeros_like(paint.lit) if paint.glow is None else paint.glow for _, paint in clouds]
        glow = np.concatenate(dark)
        flame = glow.max(axis=1)
        colour = colour * (1.0 - flame[:, None]) + glow * flame[:, None]
        cover = np.maximum(cover, 0.8 * flame)
    return light, colour, cover


def glowing(clouds: Sequence[tuple[Array, Paint]]) -> tuple[Array, Colours]:
    """Places (n, 3) m and colours (n, 3) of the tracers of clouds that glow."""
    lights = [(points, paint.glow) for points, paint in clouds if paint.glow is not None]
    x = np.concatenate([np.zeros((0, 3)), *(points for points, _ in lights)])
    colour = np.concatenate([np.zeros((0, 3)), *(glow for _, glow in lights)])
    bright = colour.max(axis=1) > 1e-3
    return x[bright], colour[bright]
