"""The plotter of a scene, with its layers in order, its colours and their bars, and its clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pyvista as pv
from matplotlib import colormaps
from matplotlib.colors import ListedColormap

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.labels import Bars, Clock
from ecs_fluid.viz.probe import require_gl
from ecs_fluid.viz.style import LOOKS, Options, lit_from_above, readable_on

L = TypeVar("L")


class Canvas:
    """One plotter for any number of frames; its window is `factor` times as wide and high as in `options`."""

    def __init__(self, options: Options, factor: int = 1) -> None:
        require_gl()
        self.options, self.look = options, lit_from_above(LOOKS[options.look], options.up)
        window = [factor * int(length) for length in options.size]
        self.plotter = pv.Plotter(off_screen=options.off_screen, window_size=window, lighting="light kit")
        ground = self.look.background if options.background is None else options.background
        top = self.look.background_top if options.background is None else None
        try:
            self.plotter.set_background(ground, top=top)
        except ValueError:
            self.plotter.close()
            raise FluidError(f"unknown background {ground!r}: give a colour name or #rrggbb") from None
        self.text = readable_on(pv.Color(ground).float_rgb, self.look.text)
        """Colour of words"""
        self._layers: dict[str, Any] = {}
        self._tables: dict[str, pv.LookupTable] = {}
        self._bars = Bars(self.plotter, self.text, ground)
        self._clock = Clock(self.plotter, self.text)

    def close(self) -> None:
        """Free the window and its buffers."""
        self.plotter.close()

    def _reserved(self, bar: bool) -> float:
        """Width over height of the scene, below which there is room for a colour bar if it has one."""
        width, height = self.options.size
        return int(width) / (int(height) * self._bars.reserve(bar))

    def _order(self, key: str) -> Any:
        """Sort key of a layer: layers in front of others, and translucent ones, come later."""
        return key

    def _layer(self, key: str, make: Callable[[], L]) -> L:
        """The layer of that key, made when first needed, and visible."""
        if key not in self._layers:
            self._layers[key] = make()
            for each in sorted(self._layers, key=self._order):  # independent of the order of first use
                self.plotter.renderer.RemoveActor(self._layers[each].actor)
                self.plotter.renderer.AddActor(self._layers[each].actor)
        layer: Any = self._layers[key]
        layer.actor.VisibilityOn()
        found: L = layer
        return found

    def _table_of(self, span: tuple[float, float], signed: bool, painted: bool = False) -> pv.LookupTable:
        """The look's colours for a range: those of both signs, or of one; or of the column it paints."""
        one = self.look.painted_map if painted else (self.look.colours, self.look.part)
        name, part = (self.look.signed_colours, (0.0, 1.0)) if signed else one
        colours = ListedColormap(colormaps[name](np.linspace(*part, 256)))
        return pv.LookupTable(colours, n_values=256, scalar_range=span)
