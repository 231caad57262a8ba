"""Recipe of a straight or wavy vortex tube."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.errors import RecipeError
from ecs_fluid.input_limits import VORTON, check_memory
from ecs_fluid.recipe import Recipe
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.world import World
from ecs_fluid.worlds.cells import piece_counts
from ecs_fluid.worlds.parameters import Amount, Direction, Extent, Length, Point, Profile, waves_lint
from ecs_fluid.worlds.section import CoredVortex, layers, section
from ecs_fluid.worlds.vortons import placed, spawn_vortons


class VortexTube(Recipe, CoredVortex):
    """A vortex tube of finite length along an axis, straight, bent into a wave, or swelling and thinning.

    Vortex lines run along the axis (local z) through the cells of the core's section (profiles as in the
    vortex ring). The line through the cell at (s cos a, s sin a) is

        x(z) = A cos p cos(2 pi z/lambda) + s m(z) cos a,  y(z) = A sin p cos(2 pi z/lambda) + s m(z) sin a,
        m(z) = 1 + v (1 - cos(2 pi z/lambda)),

    with amplitude A in the plane at the angle p (for axis = z from the world's x to its y,
    for -z from -x to y), variation v, wavelength lambda, and carries alpha = Gamma_k dx/dz dz, so that the
    lines are whole and every cross-section has the circulation Gamma exactly: sum(alpha_z)/length = Gamma.
    The lines end at the ends of the tube.

    In a world of two dimensions it is a plane vortex of that section.

    The articles' VortexTube(d, variation, width, periods) is profile = "article" with core = d/2, length =
    width, wavelength = width/periods and Gamma = 0.9342 k M core^2; k as in the vortex ring. (Their local
    direction of the vorticity ignores the swelling and so is not solenoidal; this one follows it.)
    """

    kind: ClassVar[str] = "vortex_tube"
    dimensions: ClassVar[tuple[int, ...]] = (2, 3)
    length: Length = 4.0
    """length along the axis, m"""
    circulation: Amount = 1.0
    """circulation about the axis, m^2/s"""
    center: Point = (0.0, 0.0, 0.0)
    """middle of the tube, m"""
    axis: Direction | None = None
    """direction of the vorticity, 1; of any length; default z, in a plane across it"""
    profile: Profile = "article"
    """vorticity over the core's section"""
    amplitude: Extent = 0.0
    """amplitude of the bending wave, m"""
    plane: float = Field(default=0.0, ge=-math.pi, le=math.pi)
    """angle of the plane of the bending wave about the axis, from local x to local y, rad"""
    variation: float = Field(default=0.0, ge=0, le=4)
    """swelling v: the core grows to 1 + 2 v times its radius, 1"""
    wavelength: Length | None = None
    """wavelength of the bending wave and of the swelling, m; the whole length if left out"""

    @model_validator(mode="after")
    def _fits(self) -> VortexTube:
        layers(*self._core)
        if self.wavelength is not None and self.wavelength > 10 * self.length:
            raise ValueError(
                f"wavelength {self.wavelength:g} m is far longer than the tube; at most "
                f"{10 * self.length:g} m is allowed"
            )
        return self

    def spawn(self, world: World) -> None:
        """Spawn the vortons."""
        self.made_for(world)
        count = layers(*self._core)[0]
        along, length = int(piece_counts(self.length, self.spacing)), self.length
        if world.dimension == 2:
            if self.amplitude or self.variation:
                raise RecipeError("a tube across a plane has no waves; leave out amplitude and variation")
            along, length = 1, 1.0
        check_memory(VORTON, float(along) * (2 * count - 1) ** 2, "vortons", "use a larger spacing")
        core = section(*self._core)
        step = length / along
        k = 2 * np.pi / (self.wavelength or length)
        z = np.repeat((np.arange(along) + 0.5) * step - length / 2, len(core.s))
        s, angle = np.tile(core.s, along), np.tile(core.angle, along)
        swell = 1 + self.variation * (1 - np.cos(k * z))
        growth = self.variation * k * np.sin(k * z)
        cos, sin = np.cos(angle), np.sin(angle)
        bend = self.amplitude * np.array([np.cos(self.plane), np.sin(self.plane)])
        wave, steep = np.cos(k * z), -k * np.sin(k * z)
        x = np.stack([bend[0] * wave + s * swell * cos, bend[1] * wave + s * swell * sin, z], axis=1)
        slope = [bend[0] * steep + s * growth * cos, bend[1] * steep + s * growth * sin, np.ones_like(z)]
        tangent = np.stack(slope, axis=1)
        alpha = (self.circulation * step * np.tile(core.share, along))[:, None] * tangent
        volume = core.area * swell**2 * step
        axis = self.axis or tuple(np.eye(3)[2 if world.across is None else world.across].tolist())
        spawn_vortons(world, self.name, *placed(x, alpha, axis, self.center), self._sigma, volume)

    def lint(self) -> list[str]:
        """Sentences on overlap, width of the blobs and resolution of the waves."""
        texts = self.core_lint("tube")
        if self.amplitude > 0 or self.variation > 0:
            texts += waves_lint(self.spacing, self.wavelength or self.length)
        swell = 1 + 2 * self.variation
        if self.profile != "thin" and self.overlap < LEAST_OVERLAP * swell and self.variation > 0:
            texts.append(
                f"where the tube swells {swell:.2g} times, the overlap falls to {self.overlap / swell:.2f} < "
                f"{LEAST_OVERLAP}; use overlap >= {LEAST_OVERLAP * swell:.2g}"
            )
        return texts
