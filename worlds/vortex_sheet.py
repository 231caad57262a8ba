"""Recipe of a vortex sheet of finite thickness: a shear layer."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.errors import RecipeError
from ecs_fluid.input_limits import VORTON, check_memory
from ecs_fluid.recipe import Recipe
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.world import World
from ecs_fluid.worlds.cells import piece_counts
from ecs_fluid.worlds.parameters import Amount, Extent, Length, Overlap, Point, overlap_lint, waves_lint
from ecs_fluid.worlds.vortons import spawn_vortons

REACH = 3.0
"""Half height of the layer in thicknesses; tanh(3) = 0.995 of the jump lies within and is scaled to all."""


class VortexSheet(Recipe):
    """A shear layer u_x = U tanh((z - b(x))/d(y)) over a rectangle in x and y.

    d(y) = t [1 + v (1 - cos(2 pi y/w))/2] varies across the span (v = 0: the flow is two-dimensional) and
    b(x) = A sin(2 pi x/lambda) is a ripple that starts the roll-up. Vortex lines z = b + zeta d(y) run
    along y; with the circulation dG = U dx d(tanh zeta) each carries alpha = dG (0, 1, zeta d'(y)) dy, so

        omega_y = U sech^2(zeta)/d,  omega_z = omega_y zeta d'(y),

    which is solenoidal. Each column of the sheet has the jump 2 U exactly: sum(alpha_y) = 2 U length width.
    The articles (scene 8) print tanh^2 in omega_z, which neither decays nor is a curl; sech^2 is meant.
    The most unstable ripple of a tanh layer has the wavelength 14.1 t (2 pi/0.4449, Michalke 1964).

    In a world of two dimensions the layer is a metre wide and of one thickness, and in the plane "xy" it is
    u_x = U tanh((y - b(x))/t).

    A magnitude M of the articles' sheets is U = k M t with t = 1; k as in the vortex ring.
    """

    kind: ClassVar[str] = "vortex_sheet"
    dimensions: ClassVar[tuple[int, ...]] = (2, 3)
    length: Length = 4.0
    """length along the flow (x), m"""
    width: Length = 2.0
    """width across the flow (y), m"""
    thickness: Length = 0.2
    """thickness t of u = U tanh(z/t), m"""
    speed: Amount = 1.0
    """half the jump of velocity, U, m/s"""
    variation: float = Field(default=0.0, ge=0, le=4)
    """variation v across the span: the thickness reaches t (1 + v), 1"""
    variation_wavelength: Length | None = None
    """wavelength w of the variation along y, m; the width if left out"""
    ripple: Extent = 0.0
    """amplitude A of the ripple, m"""
    ripple_wavelength: Length | None = None
    """wavelength lambda of the ripple along x, m; the length if left out"""
    spacing: Length = 0.1
    """largest distance between neighbouring blobs, m"""
    overlap: Overlap = LEAST_OVERLAP
    """blob radius over spacing, 1"""
    center: Point = (0.0, 0.0, 0.0)
    """middle of the sheet, m"""

    @model_validator(mode="after")
    def _counted(self) -> VortexSheet:
        for given, wave, size in (
            ("variation", self.variation_wavelength, self.variation),
            ("ripple", self.ripple_wavelength, self.ripple),
        ):
            if wave is not None and size == 0:
                raise ValueError(f"{given}_wavelength is given, but {given} is zero; give both or none")
        return self

    def spawn(self, world: World) -> None:
        """Spawn the vortons."""
        sizes = self.length, self.width, 2 * REACH * self.thickness * (1 + self.variation)
        nx, ny, nz = (int(piece_counts(size, self.spacing)) for size in sizes)
        width, across = self.width, world.across
        if across is not None:
            if self.variation:
                raise RecipeError("a layer across a plane has one thickness; leave out variation")
            ny, width = 1, 1.0
        check_memory(VORTON, float(nx) * ny * nz, "vortons", "use a larger spacing")
        dx, dy = self.length / nx, width / ny
        edges = np.linspace(-REACH, REACH, nz + 1)
        share = np.diff(np.tanh(edges))
        share /= share.sum()
        x = (np.arange(nx) + 0.5) * dx - self.length / 2
        y = (np.arange(ny) + 0.5) * dy - width / 2
        zeta = (edges[:-1] + edges[1:]) / 2
        k = 2 * np.pi / (self.variation_wavelength or width)
        x, y, zeta = (part.ravel() for part in np.meshgrid(x, y, zeta, indexing="ij"))
        share = np.tile(share, nx * ny)
        thickness = self.thickness * (1 + self.variation * (1 - np.cos(k * y)) / 2)
        slope = self.thickness * self.variation * k * np.sin(k * y) / 2
        ripple = self.ripple * np.sin(2 * np.pi * x / (self.ripple_wavelength or self.length))
        positions = np.stack([x, y, ripple + zeta * thickness], axis=1)
        lines = np.stack([np.zeros_like(y), np.ones_like(y), zeta * slope], axis=1)
        if across == 2:  # turned about x, so that the former upward axis is y
            positions, lines = (part[:, [0, 2, 1]] * (1.0, 1.0, -1.0) + 0.0 for part in (positions, lines))
        positions += np.asarray(self.center)
        alpha = (2 * self.speed * dx * dy * share)[:, None] * lines
        volume = dx * dy * thickness * (2 * REACH / nz)
        spawn_vortons(world, self.name, positions, alpha, self.overlap * self.spacing, volume)

    def lint(self) -> list[str]:
        """Sentences on overlap and on the resolution of the layer and its waves."""
        texts = overlap_lint(self.overlap, "sheet")
        if self.spacing > self.thickness * (1 + 1e-6):
            texts.append(
                f"spacing {self.spacing:.3g} m is coarser than the thickness "
                f"{self.thickness:.3g} m, so the layer becomes wider than that; use spacing <= "
                f"{self.thickness:.3g} m"
            )
        if self.variation > 0:
            texts += waves_lint(self.spacing, self.variation_wavelength or self.width)
        if self.ripple > 0:
            texts += waves_lint(self.spacing, self.ripple_wavelength or self.length)
        return texts
