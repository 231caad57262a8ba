"""A picture of a sweep: diagnostics of all members over time, coloured by what is varied first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

from ecs_fluid.io.disk import replace_file
from ecs_fluid.sweeps.results import Member, readable_records

USUAL = ("energy", "enstrophy", "impulse", "speed", "overlap", "vortons")
MOST_PANELS = 9
MOST_LABELS = 12
WIDE = 30.0
"""Ratio of the largest to the smallest value from which colours follow the logarithm."""

UNITS = {
    "strength": "m^3/s",
    "impulse": "m^4/s",
    "angular_impulse": "m^5/s",
    "speed": "m/s",
    "energy": "m^5/s^2",
    "enstrophy": "m^3/s^2",
    "helicity": "m^4/s^2",
    "jerk": "m/s^3",
    "force_by_tracers": "N",
    "force_by_vortons": "N",
}


def plot(path: Path, members: Sequence[Member], diagnostics: Sequence[str] | None = None) -> bool:
    """Draw up to nine diagnostics over time, vectors by their magnitude; False if there is none to draw."""
    records = {member.name: found for member in members if (found := readable_records(member))}
    drawn = {name: lines for name in diagnostics or USUAL if (lines := series(records, name))}
    names = list(drawn)[:MOST_PANELS]
    if not names:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(3, len(names))
    rows = math.ceil(len(names) / columns)
    figure = Figure(figsize=(4.2 * columns + 1.6, 3.0 * rows + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    shown = [member for member in members if member.name in records]
    colours = _Colours(shown)
    for panel, name in zip(panels, names, strict=False):
        for member in shown:
            if member.name in drawn[name]:
                times, values = drawn[name][member.name]
                dots = {"marker": "o", "markersize": 4} if len(times) < 3 else {}
                panel.plot(times, values, color=colours.of(member), linewidth=1.1, **dots)
        _steady(panel)
        panel.set_title(_title(name, records), fontsize=10)
        panel.set_xlabel("t, s", fontsize=9)
        panel.tick_params(labelsize=8)
        panel.grid(alpha=0.25)
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    colours.explain(figure)

    def write(handle: BinaryIO) -> None:
        figure.savefig(handle, format="png", dpi=110)

    replace_file(path, write, "write plot")
    return True


def _steady(panel: Any) -> None:
    """Do not blow up rounding: what changes by less than a thousandth is drawn as a level line."""
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
            if _finite(value) and _finite(time):  # of a damaged file they may be anything
                pairs.append((float(time), float(value)))
        if pairs:
            found[member] = ([time for time, _ in pairs], [value for _, value in pairs])
    return found


def _finite(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and abs(value) < 1e300


def _title(name: str, records: dict[str, list[dict[str, Any]]]) -> str:
    vector = any(isinstance(row.get(name), list) for rows in records.values() for row in rows)
    unit = UNITS.get(name.partition(".")[0])
    return (f"|{name}|" if vector else name) + (f", {unit}" if unit else "")


class _Colours:
    """One colour for each value of what is varied first: on a scale if these are numbers, else by a list."""

    def __init__(self, members: Sequence[Member]) -> None:
        from matplotlib import colormaps

        paths = list(dict.fromkeys(path for member in members for path in member.values))
        self.path = paths[0] if paths else ""
        # In the order of the sweep, each once; lists among them cannot be hashed.
        self.values: list[Any] = []
        for member in members:
            if (value := member.values.get(self.path)) not in self.values:
                self.values.append(value)
        self.map = colormaps["viridis"]
        numbers = [v for v in self.values if isinstance(v, int | float) and not isinstance(v, bool)]
        self.scaled = len(numbers) == len(self.values) > 1
        self.low, self.high = (min(numbers), max(numbers)) if self.scaled else (0.0, 1.0)
        self.logarithmic = self.scaled and self.low > 0 and self.high / self.low >= WIDE

    def of(self, member: Member) -> Any:
        """Colour of a member's lines."""
        return self._at(member.values.get(self.path))

    def _at(self, value: Any) -> Any:
        if not self.scaled:
            return self.map(0.9 * self.values.index(value) / max(len(self.values) - 1, 1))
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return self.map(0.92 * (at - low) / (high - low))  # the end of the map is too pale on white

    def explain(self, figure: Any) -> None:
        """Say beside the panels which colour is which value."""
        from matplotlib.lines import Line2D

        if not self.path:
            return
        step = math.ceil(len(self.values) / MOST_LABELS)
        chosen = self.values[::step]
        lines = [Line2D([], [], color=self._at(value), linewidth=2) for value in chosen]
        texts = [f"{value:.6g}" if self.scaled else str(value) for value in chosen]
        where = {"loc": "outside right upper", "fontsize": 8, "title_fontsize": 9, "frameon": False}
        figure.legend(lines, texts, title=self.path, **where)
