"""Plot of a sweep: diagnostics of all members over time, coloured by the first varied parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from ecs_fluid.io.disk import replace_file
from ecs_fluid.sweeps.member import Member
from ecs_fluid.sweeps.plan import DIAGNOSTICS
from ecs_fluid.sweeps.results import readable_records

USUAL = (
    "energy", "enstrophy", "impulse", "speed", "overlap", "vortons", "liquid_kinetic", "liquid_energy",
    "liquid_mass",
)  # fmt: skip
MOST_PANELS = 9
MOST_LABELS = 12
WIDE = 30.0
"""Ratio of largest to smallest value from which the colour scale is logarithmic."""


def plot(
    path: Path, members: Sequence[Member], diagnostics: Sequence[str] | None = None,
    usual: Sequence[str] = USUAL,
) -> bool:  # fmt: skip
    """Draw up to nine diagnostics over time, vectors by their magnitude; False if there is none to draw.

    Without `diagnostics` they are those of the `usual` ones that are not zero throughout (in a liquid, those
    of vortons are zero), or all of the usual ones if all are zero.
    """
    records = {member.name: found for member in members if (found := readable_records(member))}
    drawn = {name: lines for name in diagnostics or usual if (lines := series(records, name))}
    if diagnostics is None:
        drawn = {name: of for name, of in drawn.items() if any(any(y) for _, y in of.values())} or drawn
    names = list(drawn)[:MOST_PANELS]
    if not names:
        return False
    from matplotlib.figure import Figure

    columns = min(3, len(names))
    rows = math.ceil(len(names) / columns)
    figure = Figure(figsize=(4.2 * columns + 1.6, 3.0 * rows + 0.4), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    shown = [member for member in members if member.name in records]
    varied = next((varied for member in shown for varied in member.values), "")
    # The distinct values in the order of the sweep; lists cannot be hashed.
    values: list[Any] = []
    for member in shown:
        if (value := member.values.get(varied)) not in values:
            values.append(value)
    colours = _colours(values)
    for panel, name in zip(panels, names, strict=False):
        for member in shown:
            if member.name in drawn[name]:
                times, heights = drawn[name][member.name]
                dots = {"marker": "o", "markersize": 4} if len(times) < 3 else {}
                colour = colours[values.index(member.values.get(varied))]
                panel.plot(times, heights, color=colour, linewidth=1.1, **dots)
        _flatten_rounding(panel)
        panel.set_title(_title(name, records), fontsize=10)
        panel.set_xlabel("t, s", fontsize=9)
        panel.tick_params(labelsize=8)
        panel.grid(alpha=0.25)
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    if varied:
        _add_legend(figure, varied, values, colours)

    replace_file(path, lambda handle: figure.savefig(handle, format="png", dpi=110), "write plot")
    return True


def _flatten_rounding(panel: Any) -> None:
    """Widen the y axis so that changes below a thousandth, mostly rounding, look level."""
    low, high = panel.get_ylim()
    middle = 0.5 * (low + high)
    if high - low < 1e-3 * abs(middle):
        panel.set_ylim(middle - 5e-4 * abs(middle), middle + 5e-4 * abs(middle))
    panel.ticklabel_format(axis="y", useOffset=False)


def series(records: dict[str, list[dict[str, Any]]], name: str) -> dict[str, tuple[list[float], list[float]]]:
    """Times and values of a diagnostic by member: the magnitude of a vector, or a part such as impulse.z."""
    whole, _, part = name.partition(".")
    found = {}
    for member, rows in records.items():
        pairs = []
        for row in rows:
            time, value = row.get("time"), row.get(whole)
            if isinstance(value, list):
                parts = value if all(_finite(one) for one in value) and len(value) == 3 else [math.nan] * 3
                value = parts["xyz".index(part)] if part in ("x", "y", "z") else math.hypot(*parts)
            if _finite(value) and _finite(time):  # a damaged file may hold anything
                pairs.append((float(time), float(value)))
        if pairs:
            found[member] = ([time for time, _ in pairs], [value for _, value in pairs])
    return found


def _finite(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and abs(value) < 1e300


def _title(name: str, records: dict[str, list[dict[str, Any]]]) -> str:
    vector = any(isinstance(row.get(name), list) for rows in records.values() for row in rows)
    unit = DIAGNOSTICS.get(name.partition(".")[0])
    return (f"|{name}|" if vector else name) + (f", {unit}" if unit else "")


def _are_numbers(values: Sequence[Any]) -> bool:
    """Whether there are several values, and all are numbers."""
    return len(values) > 1 and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def _colours(values: Sequence[Any]) -> list[Any]:
    """One colour for each value, on a linear or logarithmic scale for numbers."""
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm, Normalize

    places = np.linspace(0.0, 0.9, len(values))
    if _are_numbers(values):
        low, high = min(values), max(values)
        scale = LogNorm if low > 0 and high / low >= WIDE else Normalize
        places = 0.92 * np.asarray(scale(low, high)(values))  # the end of the map is too pale on white
    return list(colormaps["viridis"](places))


def _add_legend(figure: Any, varied: str, values: Sequence[Any], colours: Sequence[Any]) -> None:
    """Add a legend of colours and values beside the panels."""
    from matplotlib.lines import Line2D

    step = math.ceil(len(values) / MOST_LABELS)
    lines = [Line2D([], [], color=colour, linewidth=2) for colour in colours[::step]]
    texts = [f"{value:.6g}" if _are_numbers(values) else str(value) for value in values[::step]]
    where = {"loc": "outside right upper", "fontsize": 8, "title_fontsize": 9, "frameon": False}
    figure.legend(lines, texts, title=varied, **where)
