"""The colours of a page before a field is chosen: those of `show`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.viz.colours import Paint, paint
from ecs_fluid.viz.columns import Array, Columns, positions
from ecs_fluid.viz.shared_limits import View, is_cloud
from ecs_fluid.viz.smoke import Puff, illumination
from ecs_fluid.viz.style import Colour, Look

SOLID: Colour = (0.72, 0.7, 0.66)
EDGE: Colour = (0.75, 0.8, 0.88)
WATER: Colour = (0.24, 0.52, 0.82)
"""Bodies, edges of containers and liquids, as in ``viz.bodies`` and ``viz.surfaces``, which need PyVista."""

SMALL = 0.6
"""Radius of the strongest vortons within smoke, in that of vortons alone, as in ``viz.scene``."""


def is_liquid(columns: Columns) -> bool:
    """Particles of liquid fill their volume: they are beads of water, not puffs of smoke."""
    return "Liquid.mass" in columns


def is_smoke(columns: Columns) -> bool:
    """Tracers of a gas."""
    return is_cloud(columns) and not is_liquid(columns)


class Smoke:
    """Bytes that colour the puffs of a frame: their light (1 plane), or colour and cover (4 planes).

    One plane does for looks that paint all tracers of a cloud alike: the viewer mixes light and shade.
    """

    def __init__(self, look: Look, view: View, puff: Puff) -> None:
        self._look, self._view, self._puff = look, view, puff
        self.planes = 4 if look.paint else 1

    def of(self, particles: Mapping[str, Columns], clouds: Sequence[str]) -> dict[str, bytes]:
        """Planes, end to end, of every cloud that has rows in a frame."""
        painted = [
            (name, positions(particles[name]), self._paint(name, particles[name]))
            for name in clouds
            if len(particles[name]["Position.x"])
        ]
        if not painted:
            return {}
        x = np.concatenate([np.asarray(places, np.float64) for _, places, _ in painted])
        cover = _cover([part for _, _, part in painted])
        # Half the cross-section, as in viz.layers.Smoke, of which this is the colour.
        light = illumination(
            x, np.array(self._look.light), self._puff.spacing, 0.5 * self._puff.cross_section, cover
        )
        done, made = 0, {}
        for name, places, part in painted:
            rows = slice(done, done + len(places))
            done += len(places)
            made[name] = self._bytes(light[rows], part)
        return made

    def _paint(self, name: str, columns: Columns) -> Paint:
        return paint(self._look, columns, self._look.tint(name, self._view.clouds), self._view.painted)

    def _bytes(self, light: Array, part: Paint) -> bytes:
        if self.planes == 1:
            return _byte(light).tobytes()
        colour = part.shade + light[:, None] * (part.lit - part.shade)
        cover = np.ones(len(light)) if part.cover is None else part.cover
        if part.glow is not None:
            flame = part.glow.max(axis=1)
            colour = colour * (1.0 - flame[:, None]) + part.glow * flame[:, None]
            cover = np.maximum(cover, 0.8 * flame)
        return _byte(np.column_stack((colour, cover)).T).tobytes()


def _cover(paints: Sequence[Paint]) -> Array | None:
    if all(part.cover is None for part in paints):
        return None
    return np.concatenate([np.ones(len(part.lit)) if part.cover is None else part.cover for part in paints])


def _byte(shares: Array) -> NDArray[np.uint8]:
    return np.rint(255.0 * np.clip(shares, 0.0, 1.0)).astype(np.uint8)
