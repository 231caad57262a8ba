"""The colours of a page before a field is chosen: those of `show`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ecs_fluid.viz.colours import paint, shaded
from ecs_fluid.viz.columns import Columns, positions
from ecs_fluid.viz.shared_limits import View, is_cloud, is_liquid
from ecs_fluid.viz.smoke import Puff
from ecs_fluid.viz.style import Look


def is_smoke(columns: Columns) -> bool:
    """Whether they are tracers of a gas."""
    return is_cloud(columns) and not is_liquid(columns)


class Smoke:
    """Bytes that colour the puffs of a frame: their light (1 plane), or colour and cover (4 planes).

    One plane is enough for looks that colour all tracers of a cloud alike: the viewer mixes light and shade.
    """

    def __init__(self, look: Look, view: View, puff: Puff) -> None:
        self._look, self._view, self._puff = look, view, puff
        self.planes = 4 if look.paint else 1

    def of(self, particles: Mapping[str, Columns], clouds: Sequence[str]) -> dict[str, bytes]:
        """Planes, end to end, of every cloud that has rows in a frame."""
        look, view = self._look, self._view
        painted = [
            (name, positions(columns), paint(look, columns, view.tint(look, name), view.painted))
            for name, columns in ((name, particles[name]) for name in clouds)
            if len(columns["Position.x"])
        ]
        if not painted:
            return {}
        clouds_of = [(places, part) for _, places, part in painted]
        light, colour, cover = shaded(self._look, self._puff, clouds_of)
        planes = light[None]
        if self.planes > 1:
            planes = np.column_stack((colour, np.ones(len(light)) if cover is None else cover)).T
        shown = np.rint(255.0 * np.clip(planes, 0.0, 1.0)).astype(np.uint8)
        ends = np.cumsum([len(places) for _, places, _ in painted])[:-1]
        parts = np.split(shown, ends, axis=1)
        return {name: part.tobytes() for (name, _, _), part in zip(painted, parts, strict=True)}
