"""Labels of a picture: the scalar bar and the time."""

from __future__ import annotations

from typing import Any

import pyvista as pv

from ecs_fluid.viz.style import Look


def bar_title(title: str) -> str:
    """The title with a line below it, without which it would overlap the labels."""
    return title + "\n"


def digits(span: tuple[float, float]) -> str:
    """Format of the numbers at a bar: close ones, such as densities, need another digit to differ."""
    largest = max(map(abs, span))
    if span[1] - span[0] < 0.1 * largest:
        return "{0:.4g}"
    return "{0:.0f}" if 1e3 <= largest < 1e5 else "{0:.3g}"  # a power of ten would be wider than its place


def scalar_bar(
    plotter: pv.Plotter, title: str, table: pv.LookupTable, span: tuple[float, float], look: Look
) -> Any:
    """Add a bar to the lower right of the picture and return its actor; `title` says name and unit."""
    key = pv.DataSetMapper()
    key.lookup_table = table
    key.scalar_range = span
    height = plotter.window_size[1]
    return plotter.add_scalar_bar(
        bar_title(title), mapper=key, fmt=digits(span), color=look.text, n_labels=4, vertical=False,
        width=0.3, height=0.1, position_x=0.67, position_y=0.03, unconstrained_font_size=True,
        label_font_size=max(8, height // 42), title_font_size=max(8, height // 38),
    )  # fmt: skip


class Clock:
    """The time in the upper left of a picture, s."""

    def __init__(self, plotter: pv.Plotter, look: Look) -> None:
        self._plotter, self._look = plotter, look
        self._text: pv.Text | None = None

    def show(self, time: float) -> None:
        """Show `time` s."""
        text = f"t = {time:.2f} s"
        if self._text is None:
            size = max(5, self._plotter.window_size[1] // 60)
            self._text = self._plotter.add_text(
                text, position=(0.025, 0.94), viewport=True, font_size=size, color=self._look.text
            )
        else:
            self._text.input = text
