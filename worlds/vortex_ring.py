"""Recipe of a vortex ring."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.input_limits import VORTON, check_memory
from ecs_fluid.recipe import Recipe
from ecs_fluid.world import World
from ecs_fluid.worlds.parameters import Amount, Direction, Extent, Length, Point, waves_lint
from ecs_fluid.worlds.section import GAUSSIAN_REACH, CoredVortex, layers, section
from ecs_fluid.worlds.vortons import loop_counts, loops, placed, spawn_vortons


class VortexRing(Recipe, CoredVortex):
    """A vortex ring that travels along its axis.

    The core is one circle of blobs (``profile = "thin"``, core radius of a blob = `core`), or is filled
    with coaxial circles of blobs of radius overlap x spacing, with the vorticity at distance s from the
    core circle

    * gaussian: omega = Gamma/(pi a^2) exp(-s^2/a^2), a = `core` (cut at 3 a);
    * uniform: constant for s < `core`;
    * article: omega = M (1 + cos(pi s/t))/2 for s < t = `core`.

    A circle of radius rho carries its share Gamma_k of the circulation, alpha = Gamma_k dx/dphi dphi; the
    shares sum to `circulation` exactly, sum(alpha_phi/(2 pi rho)) = Gamma, the total strength is zero, and
    a thin ring has the impulse pi Gamma R^2. Speed of a thin core: Gamma/(4 pi R) [ln(8 R/core) + C] with
    C = -1/2 for Winckelmans blobs; of a Gaussian core C = -0.558, of a uniform core C = -1/4 (Saffman 1970).

    A magnitude M of the articles' scenes (part 3 and later; the ring has 40 in part 3, 100 in part 12, 20
    in part 20) is converted by Gamma = k M t^2 (pi/2 - 2/pi) = 0.9342 k M t^2, where k corrects what each
    part's program really made of it: 1 up to part 5, 0.524 for parts 6 to 13, 4.189 from part 17 on.
    """

    kind: ClassVar[str] = "vortex_ring"
    radius: Length = 1.0
    """radius of the core circle, m"""
    core: Length = 0.2
    """core radius, m (thin: of a blob), at most the radius"""
    circulation: Amount = 1.0
    """circulation, m^2/s; positive travels along the axis"""
    center: Point = (0.0, 0.0, 0.0)
    """centre of the ring, m"""
    axis: Direction = (0.0, 0.0, 1.0)
    """direction of travel, 1; of any length"""
    amplitude: Extent = 0.0
    """amplitude of a radial waviness of the ring, m"""
    wavenumber: int = Field(default=0, ge=0, le=1000)
    """waves around the ring, 1"""

    @model_validator(mode="after")
    def _fits(self) -> VortexRing:
        if self.core > self.radius:
            raise ValueError(
                f"core {self.core:g} m is larger than radius {self.radius:g} m; at most the radius is allowed"
            )
        if self.profile == "gaussian" and GAUSSIAN_REACH * self._layers[2] >= self.radius:
            raise ValueError(
                f"a gaussian core of {self.core:g} m reaches past the axis of a ring of radius "
                f"{self.radius:g} m; a core of at most {self.radius / GAUSSIAN_REACH:.3g} m is allowed"
            )
        room = self.radius if self.profile == "thin" else self.radius - self._layers[1]
        if self.amplitude > 0 and self.amplitude >= room:
            raise ValueError(
                f"amplitude {self.amplitude:g} m reaches the axis; an amplitude below {room:.3g} m is allowed"
            )
        if (self.amplitude > 0) != (self.wavenumber > 0):
            raise ValueError("a wavy ring needs both amplitude and wavenumber above zero")
        return self

    @property
    def _layers(self) -> tuple[int, float, float]:
        return layers(*self._core)

    def spawn(self, world: World) -> None:
        """Spawn the vortons."""
        self.made_for(world)
        around = max(2 * np.pi * self.radius / self.spacing, 8)
        cells = (2 * self._layers[0] - 1) ** 2
        check_memory(VORTON, around * cells, "vortons", "use a larger spacing")
        core = section(*self._core)
        radius = self.radius + core.s * np.cos(core.angle)
        # Loops of a wavy ring need four blobs per wave, however small the loops are.
        counts = loop_counts(radius, self.spacing, max(8, 4 * self.wavenumber))
        x, alpha, volume = loops(
            radius,
            core.s * np.sin(core.angle),
            self.circulation * core.share,
            np.full(len(radius), core.area),
            counts,
            self.amplitude,
            self.wavenumber,
        )
        spawn_vortons(world, self.name, *placed(x, alpha, self.axis, self.center), self._sigma, volume)

    def lint(self) -> list[str]:
        """Sentences on overlap, width of the blobs and resolution of the waves."""
        texts = self.core_lint("ring")
        if self.wavenumber > 0:
            texts += waves_lint(self.spacing, 2 * np.pi * self.radius / self.wavenumber)
        return texts
