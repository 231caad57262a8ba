"""Labels of a picture: the colour bar and the time."""

from __future__ import annotations

import numpy as np
import pyvista as pv
from vtkmodules.vtkRenderingCore import (
    vtkActor2D,
    vtkCoordinate,
    vtkPolyDataMapper2D,
    vtkProp,
    vtkRenderer,
    vtkTextActor,
)

from ecs_fluid.viz.style import clock

STRIP = 0.13  # height of the strip of the bars, in the shorter side of the picture
TITLE, NUMBER = 0.03, 0.028  # heights of the letters, in the same unit
ENDS = (0.3, 0.7)  # of a bar from left to right, in the strip
LOW, HIGH = 0.45, 0.61  # lower and upper edge of a bar, in the strip
GAP = 0.09  # between a bar and its words, in the strip
NUMBERS = 4  # at a bar


def digits(span: tuple[float, float]) -> str:
    """Format of the numbers at a bar: close ones, such as densities, need another digit to differ."""
    largest = max(map(abs, span))
    if span[1] - span[0] < 0.1 * largest:
        return "{0:.4g}"
    return "{0:.0f}" if 1e3 <= largest < 1e5 else "{0:.3g}"  # a power of ten would be wider than its place


class Bars:
    """Colour bars in a strip of their own below the scene, of which one shows at a time.

    The strip is `STRIP` of the picture's shorter side high, in the colour `ground` that the background has
    there; words and frames are in the colour `text`.
    """

    def __init__(self, plotter: pv.Plotter, text: str, ground: str) -> None:
        self._plotter, self._text = plotter, text
        self._strip = vtkRenderer()
        self._strip.SetBackground(*pv.Color(ground).float_rgb)
        self._strip.InteractiveOff()
        self._bars: dict[str, list[vtkProp]] = {}

    def reserve(self, wanted: bool) -> float:
        """Make room for a bar, or leave all to the scene; returns the scene's share of the height."""
        window, (width, height) = self._plotter.render_window, self._plotter.window_size
        share = STRIP * min(width, height) / height if wanted else 0.0
        self._plotter.renderer.SetViewport(0.0, share, 1.0, 1.0)
        self._strip.SetViewport(0.0, 0.0, 1.0, share)
        if wanted and not window.HasRenderer(self._strip):
            window.AddRenderer(self._strip)
        elif not wanted:
            window.RemoveRenderer(self._strip)
        return 1.0 - share

    def add(self, name: str, title: str, table: pv.LookupTable, span: tuple[float, float]) -> None:
        """Make the bar of that name for the colours of `table` from the first of `span` to the second.

        `title` says what they are of, and in which unit.
        """
        left, right = ENDS
        number = digits(span)
        words = [self._words(title, TITLE, 0.5, HIGH + GAP)]
        for share in np.linspace(0.0, 1.0, NUMBERS):
            value = number.format(span[0] + share * (span[1] - span[0]))
            words.append(self._words(value, NUMBER, left + share * (right - left), LOW - GAP))
            words[-1].GetTextProperty().SetVerticalJustificationToTop()
        self._bars[name] = [_patches(table.values[:, :3]), self._frame(), *words]
        for part in self._bars[name]:
            self._strip.AddViewProp(part)

    def show(self, name: str) -> None:
        """Show the bar of that name alone; none if there is no such bar."""
        for each, parts in self._bars.items():
            for part in parts:
                part.SetVisibility(each == name)

    def clear(self) -> None:
        """Forget all bars."""
        self._strip.RemoveAllViewProps()
        self._bars.clear()

    def _words(self, words: str, height: float, x: float, y: float) -> vtkTextActor:
        """Words centred about x and standing on y, in shares of the strip."""
        actor = vtkTextActor()
        actor.SetInput(words)
        actor.GetPositionCoordinate().SetCoordinateSystemToNormalizedViewport()
        actor.GetPositionCoordinate().SetValue(x, y)
        style = actor.GetTextProperty()
        style.SetFontFamilyToArial()
        style.SetFontSize(max(8, round(height * min(self._plotter.window_size))))
        style.SetColor(*pv.Color(self._text).float_rgb)
        style.SetJustificationToCentered()
        return actor

    def _frame(self) -> vtkActor2D:
        """The outline of a bar, without which an end in the colour of the background would not be seen."""
        (left, right), line = ENDS, [5, 0, 1, 2, 3, 0]
        corners = [(left, LOW, 0.0), (right, LOW, 0.0), (right, HIGH, 0.0), (left, HIGH, 0.0)]
        actor = _drawn(pv.PolyData(np.array(corners), lines=line))
        actor.GetProperty().SetColor(*pv.Color(self._text).float_rgb)
        actor.GetProperty().SetLineWidth(max(1.0, min(self._plotter.window_size) / 720))
        return actor


def _patches(colours: np.ndarray) -> vtkActor2D:
    """A bar of colours (n, 3) from left to right, as bytes."""
    n = len(colours)
    x = np.repeat(np.linspace(*ENDS, n + 1), 2)
    y = np.tile([LOW, HIGH], n + 1)
    first = 2 * np.arange(n)
    cells = np.column_stack((np.full(n, 4), first, first + 2, first + 3, first + 1))
    mesh = pv.PolyData(np.column_stack((x, y, 0.0 * x)), cells.ravel())
    mesh.cell_data.set_scalars(np.array(colours, np.uint8), "colours")
    return _drawn(mesh)


def _drawn(mesh: pv.PolyData) -> vtkActor2D:
    """A flat mesh whose points are shares of the strip."""
    shares = vtkCoordinate()
    shares.SetCoordinateSystemToNormalizedViewport()
    mapper = vtkPolyDataMapper2D()
    mapper.SetInputData(mesh)
    mapper.SetTransformCoordinate(shares)
    actor = vtkActor2D()
    actor.SetMapper(mapper)
    return actor


class Clock:
    """The time in the upper left of a picture, s, in the colour `color`."""

    def __init__(self, plotter: pv.Plotter, color: str) -> None:
        self._plotter, self._color = plotter, color
        self._text: pv.Text | None = None

    def show(self, time: float, last: float) -> None:
        """Show `time` s of what is seen up to `last` s."""
        text = clock(time, max(time, last))
        if self._text is None:
            size = max(5, self._plotter.window_size[1] // 60)
            self._text = self._plotter.add_text(
                text, position=(0.025, 0.94), viewport=True, font_size=size, color=self._color
            )
        else:
            self._text.input = text
