"""Recipe of a jet ring: the vorticity around a puff of jet."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ecs_fluid.input_limits import VORTON, check_memory
from ecs_fluid.recipe import Recipe
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.world import World
from ecs_fluid.worlds.cells import piece_counts
from ecs_fluid.worlds.parameters import Amount, Direction, Length, Overlap, Point, overlap_lint
from ecs_fluid.worlds.vortons import loop_counts, loops, placed, spawn_vortons


class JetRing(Recipe):
    """A puff of a jet: a broad, solenoidal ring of vorticity between the jet and the fluid around it.

    In cylindrical coordinates about the axis, for R < rho < R + t and |z| < L,

        omega_phi = U g(z) (pi/(2 t)) sin(pi (rho - R)/t),  g(z) = (1 + cos(pi z/L))/2,

    the shear of a jet U g(z) that falls to zero across the layer. Circulation U L (exact to round-off),
    impulse pi U L [R^2 + R t + t^2 (1/2 - 2/pi^2)] (to second order in the spacing), total strength zero.

    The articles' jet ring (part 3 on) has L = R and twice this vorticity: their magnitude M is U = 2 k M
    with k = 1 up to part 5, 0.524 for parts 6 to 13 and 4.189 from part 17 on (M is 20; 100 in part 12).
    """

    kind: ClassVar[str] = "jet_ring"
    radius: Length = 1.0
    """radius R of the jet's core, m"""
    thickness: Length | None = None
    """thickness t of the shear layer around it, m; default `radius`"""
    half_length: Length | None = None
    """half length L of the puff along its axis, m; default `radius`"""
    speed: Amount = 1.0
    """speed U of the jet at its middle, m/s; circulation = U L"""
    spacing: Length = 0.1
    """largest distance between neighbouring blobs, m"""
    overlap: Overlap = LEAST_OVERLAP
    """blob radius over spacing, 1"""
    center: Point = (0.0, 0.0, 0.0)
    """centre of the puff, m"""
    axis: Direction = (0.0, 0.0, 1.0)
    """direction of travel, 1; of any length"""

    @property
    def _extents(self) -> tuple[float, float]:
        """Thickness of the shear layer and half length of the puff, m."""
        return (
            self.radius if self.thickness is None else self.thickness,
            self.radius if self.half_length is None else self.half_length,
        )

    def spawn(self, world: World) -> None:
        """Spawn the vortons: circles through the cells of a meridian plane, with exact cell integrals."""
        thickness, half_length = self._extents
        across = int(piece_counts(thickness, self.spacing))
        along = int(piece_counts(2 * half_length, self.spacing))
        around = 2 * np.pi * (self.radius + thickness / 2) / self.spacing
        check_memory(VORTON, float(across) * along * max(around, 8), "vortons", "use a larger spacing")
        rho = np.linspace(0.0, 1.0, across + 1)
        z = np.linspace(-1.0, 1.0, along + 1)
        radial = np.diff(-np.cos(np.pi * rho) / 2)
        axial = np.diff((z + np.sin(np.pi * z) / np.pi) / 2)
        share = np.outer(radial, axial).ravel()
        radius = self.radius + thickness * (rho[:-1] + rho[1:]) / 2
        height = half_length * (z[:-1] + z[1:]) / 2
        area = thickness / across * 2 * half_length / along
        radii = np.repeat(radius, along)
        x, alpha, volume = loops(
            radii,
            np.tile(height, across),
            self.speed * half_length * share / share.sum(),
            np.full(len(radii), area),
            loop_counts(radii, self.spacing, 8),
        )
        sigma = self.overlap * self.spacing
        spawn_vortons(world, self.name, *placed(x, alpha, self.axis, self.center), sigma, volume)

    def lint(self) -> list[str]:
        """Sentences on overlap and on the resolution of the shear layer."""
        texts = overlap_lint(self.overlap, "jet")
        thickness, half_length = self._extents
        thinnest = min(thickness, 2 * half_length)
        if thinnest < 4 * self.spacing * (1 - 1e-6):
            texts.append(
                f"only {thinnest / self.spacing:.1f} blobs across the shear layer; "
                f"use spacing <= {thinnest / 4:.3g} m"
            )
        return texts
