"""A window that shows a world while it is simulated: keys, sliders, and the mouse for the camera."""

from __future__ import annotations

import time
from typing import Any

from ecs_fluid.viz.live import Live, Slider
from ecs_fluid.viz.scene import Scene

KEYS = "space pause, right arrow step, q quit; drag to turn, wheel to zoom, r to see all"
REST = 0.02  # s between looks at keys and mouse while nothing moves


class Window:
    """The window of a `Live` world; `run` returns when it is closed."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.scene = Scene(live.begin(), live.options)
        plotter = self.plotter = self.scene.plotter
        size = max(6, plotter.window_size[1] // 75)
        text = self.scene.text
        self._status = plotter.add_text("", position=(0.025, 0.02), viewport=True, font_size=size, color=text)
        plotter.add_text(KEYS, position=(0.025, 0.06), viewport=True, font_size=max(5, size - 2), color=text)
        for number, slider in enumerate(live.sliders):
            self._slider(number, slider)

    def run(self) -> None:
        """Show and simulate until `Live.quit`, the key q or the end of the window."""
        live, plotter = self.live, self.plotter
        live.show(self.scene)
        self._keys()
        plotter.show(interactive_update=True, auto_close=False)
        try:
            while not live.over:
                if live.advance():
                    live.show(self.scene)
                else:
                    time.sleep(REST)
                self._status.input = live.status
                plotter.update()
        finally:
            self.scene.close()

    def _keys(self) -> None:
        plotter, live = self.plotter, self.live
        for key, act in (
            ("space", live.toggle),
            ("Right", live.step),
            ("q", live.quit),
            ("Escape", live.quit),
        ):
            plotter.add_key_event(key, act)
        plotter.iren.add_observer("ExitEvent", lambda *_: live.quit())

    def _slider(self, number: int, slider: Slider) -> None:
        """Add a slider at the left side; its title shows the value, since its length may be logarithmic."""
        height = 0.16 + 0.1 * number
        widget: list[Any] = []

        def turn(share: float) -> None:
            slider.move(share)
            if widget:
                widget[0].GetRepresentation().SetTitleText(slider.text)

        widget.append(
            self.plotter.add_slider_widget(
                lambda share: turn(share) if widget else None,
                (0.0, 1.0),
                value=slider.share(),
                title=slider.text,
                pointa=(0.025, height),
                pointb=(0.3, height),
                color=self.scene.text,
                interaction_event="always",
                title_height=0.02,
                slider_width=0.02,
                tube_width=0.004,
            )
        )
        widget[0].GetRepresentation().ShowSliderLabelOff()
