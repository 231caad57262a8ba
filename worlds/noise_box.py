"""Recipe of a box of random vorticity."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.input_limits import VORTON, check_memory
from ecs_fluid.recipe import Recipe
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.systems.shared.random_numbers import stream
from ecs_fluid.world import World
from ecs_fluid.worlds.cells import piece_counts
from ecs_fluid.worlds.parameters import Extent, Length, Overlap, Point, overlap_lint
from ecs_fluid.worlds.vortons import spawn_vortons


class NoiseBox(Recipe):
    """A box of random vorticity on a lattice: omega_i uniform in [-magnitude/2, magnitude/2].

    Strength = vorticity x cell volume at the cell centres. The numbers come from a counter-based stream
    keyed by the world's seed and the entity's name. The components are independent, so the field is not
    solenoidal and its total strength is random (standard deviation magnitude x cell volume x sqrt(n/12)).

    One size of zero makes a flat, two-dimensional box: one layer of vortons whose vorticity points along
    the missing axis, with areas in place of volumes (one metre of depth).

    The articles' VortexNoise with magnitude M: magnitude = k M, k as in the vortex ring.
    """

    kind: ClassVar[str] = "noise_box"
    size: tuple[Extent, Extent, Extent] = (1.0, 1.0, 1.0)
    """sizes of the box, m; one may be 0"""
    center: Point = (0.0, 0.0, 0.0)
    """centre of the box, m"""
    magnitude: float = Field(default=1.0, ge=0, le=1e9)
    """full width of the random vorticity of each component, 1/s"""
    spacing: Length = 0.1
    """largest distance between neighbouring blobs, m"""
    overlap: Overlap = LEAST_OVERLAP
    """blob radius over spacing, 1"""

    @model_validator(mode="after")
    def _has_extent(self) -> NoiseBox:
        if sum(part == 0 for part in self.size) > 1:
            raise ValueError(f"size {list(self.size)} m has no area; at most one size may be 0")
        return self

    def spawn(self, world: World) -> None:
        """Spawn the vortons, in lattice order with the last axis fastest."""
        size = np.array(self.size)
        cells = piece_counts(size, self.spacing)
        check_memory(VORTON, float(np.prod(cells)), "vortons", "use a larger spacing")
        counts = tuple(int(part) for part in cells)
        edge = size / cells
        x = (np.indices(counts).reshape(3, -1).T + 0.5) * edge - size / 2 + np.asarray(self.center)
        flat = size == 0
        volume = float(np.prod(edge[~flat]))
        omega = self.magnitude * (stream(world.seed, self.name).random(x.shape) - 0.5)
        if flat.any():
            omega[:, ~flat] = 0.0
        spawn_vortons(
            world, self.name, x, omega * volume, self.overlap * self.spacing, np.full(len(x), volume)
        )

    def lint(self) -> list[str]:
        """A sentence when the blobs do not overlap."""
        return overlap_lint(self.overlap, "flow")
