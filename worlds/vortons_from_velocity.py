"""Recipe of vortons that make a given velocity field."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.component import Array
from ecs_fluid.errors import RecipeError
from ecs_fluid.input_limits import VORTON, check_memory
from ecs_fluid.recipe import Recipe
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.world import World
from ecs_fluid.worlds.cells import piece_counts
from ecs_fluid.worlds.files import data_file, read_npz, refuse_not_finite
from ecs_fluid.worlds.formula import Formula, evaluate
from ecs_fluid.worlds.parameters import Length, Overlap, Point, overlap_lint
from ecs_fluid.worlds.vortons import spawn_vortons


class VortonsFromVelocity(Recipe):
    """Vortons whose vorticity is the curl of a velocity field (part 3 of the articles recommends this).

    The field is three formulas over the place x, y, z in the world, m, and its distance r from the world's
    origin, sampled on the corners of cells that fill the box from `low` to `high`; or a grid in an .npz file
    with u (nx, ny, nz, 3) in m/s, origin (3,) and spacing (3,) in m. A cell's vorticity is the difference of
    the velocities averaged over its opposite faces, divided by the edge (second order), and its vorton at the
    centre has strength = vorticity x cell volume.
    Because neighbours share their corners, Stokes' theorem holds on the lattice: the circulation of a row
    of cells is the line integral of u around them, and a sheet where u jumps is not lost.

    In a world of two dimensions only the rectangle counts in which the box meets the plane.

    Cells with |omega| below `threshold` times the largest get no vorton. With a `threshold` of 0 every cell
    gets one; diffusion by exchange, and buoyancy in layered fluid, need such vortons around the vorticity.
    The flow that the vortons make is the solenoidal part of u, without what vorticity outside the box would
    add.
    """

    kind: ClassVar[str] = "vortons_from_velocity"
    dimensions: ClassVar[tuple[int, ...]] = (2, 3)
    ux: Formula = "0"
    """velocity along x, m/s, a formula over x, y, z, r in m"""
    uy: Formula = "0"
    """velocity along y, m/s, a formula over x, y, z, r in m"""
    uz: Formula = "0"
    """velocity along z, m/s, a formula over x, y, z, r in m"""
    file: str | None = Field(default=None, max_length=1000)
    """grid to read instead of formulas, .npz with u (m/s), origin, spacing (m)"""
    low: Point = (-1.0, -1.0, -1.0)
    """lower corner of the box for formulas, m"""
    high: Point = (1.0, 1.0, 1.0)
    """upper corner of the box for formulas, m"""
    spacing: Length = 0.1
    """largest edge of the cells for formulas, m"""
    overlap: Overlap = LEAST_OVERLAP
    """blob radius over cell edge, 1"""
    threshold: float = Field(default=1e-3, ge=0, lt=1)
    """least vorticity that makes a vorton, over the largest, 1"""

    @model_validator(mode="after")
    def _consistent(self) -> VortonsFromVelocity:
        for low, high in zip(self.low, self.high, strict=True):
            if high <= low:
                raise ValueError(
                    f"high {list(self.high)} must lie above low {list(self.low)} along every axis"
                )
        # Compared with the defaults, not with the fields that were set: a stored recipe sets all of them.
        keys = ("ux", "uy", "uz", "low", "high", "spacing")
        fields = type(self).model_fields
        changed = [key for key in keys if getattr(self, key) != fields[key].default]
        if self.file is not None and changed:
            raise ValueError(f"{changed[0]} cannot be given together with file; the grid has its own")
        if self.file is None and not {"ux", "uy", "uz"} & set(changed):
            raise ValueError("a velocity is needed: formulas ux, uy, uz or a file")
        return self

    def spawn(self, world: World) -> None:
        """Sample or read the field, take its curl and spawn the vortons."""
        u, origin, edge = self._sampled(world.across) if self.file is None else self._read(self.file)
        omega = curl_of_cells(u, edge).reshape(-1, 3)
        cells = np.array(u.shape[:3]) - 1
        size = np.linalg.norm(omega, axis=1)
        # Differences of nearly equal velocities leave round-off where the field has no curl at all.
        curled = size > 1e-12 * np.abs(u).max() / edge.min()
        if not curled.any():
            raise RecipeError("the velocity has no curl, so there would be no vortons")
        omega[~curled] = 0.0
        kept = curled & (size > self.threshold * size.max()) if self.threshold else np.ones_like(curled)
        x = (np.indices(tuple(int(part) for part in cells)).reshape(3, -1).T[kept] + 0.5) * edge + origin
        within = edge[np.arange(3) != world.across]
        sigma, volume = self.overlap * float(within.max()), float(np.prod(edge))
        spawn_vortons(world, self.name, x, omega[kept] * volume, sigma, np.full(len(x), volume))

    def _sampled(self, across: int | None) -> tuple[Array, Array, Array]:
        low, high = np.array(self.low), np.array(self.high)
        if across is not None:  # one layer of cells, a metre thick
            low[across], high[across] = -0.5, 0.5
        cells = piece_counts(high - low, self.spacing)
        cells[np.arange(3) == across] = 1
        check_memory(VORTON, float(np.prod(cells)), "cells", "use a larger spacing")
        axes = [np.linspace(a, b, int(n) + 1) for a, b, n in zip(low, high, cells, strict=True)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        points[..., np.arange(3) == across] = 0.0
        formulas = (("ux", self.ux), ("uy", self.uy), ("uz", self.uz))
        parts = [evaluate(text, points, key) for key, text in formulas]
        return np.stack(parts, axis=-1), low, (high - low) / cells

    def _read(self, file: str) -> tuple[Array, Array, Array]:
        path = data_file(file)
        shapes = {"u": "(nx, ny, nz, 3)", "origin": "(3,)", "spacing": "(3,)"}
        arrays = read_npz(path, shapes)
        for key, shape in shapes.items():
            if key not in arrays:
                raise RecipeError(f"{path} has no {key!r}; u, origin and spacing are needed")
            array = arrays[key]
            fits = array.ndim == 4 and array.shape[3] == 3 if key == "u" else array.shape == (3,)
            if not fits:
                raise RecipeError(f"{path}: {key!r} has shape {array.shape}; {shape} is needed")
            refuse_not_finite(path, key, array)
        if min(arrays["u"].shape[:3]) < 2:
            raise RecipeError(f"{path}: u needs at least 2 points along every axis")
        if (arrays["spacing"] <= 0).any():
            raise RecipeError(f"{path}: 'spacing' needs numbers above 0 m")
        check_memory(VORTON, arrays["u"].size / 3, "cells", "use a coarser grid")
        return arrays["u"], arrays["origin"], arrays["spacing"]

    def lint(self) -> list[str]:
        """Warn if blobs overlap too little; less than 1 is meant for a grid, see `DiagnosticsSystem`."""
        return overlap_lint(self.overlap, "flow") if self.overlap >= 1 else []


def curl_of_cells(u: Array, edge: Array) -> Array:
    """Curl at the centres of the cells between grid points; u (nx, ny, nz, 3) -> (nx-1, ny-1, nz-1, 3)."""

    def slope(component: int, axis: int) -> Array:
        part: Array = np.diff(u[..., component], axis=axis) / edge[axis]
        for other in range(3):
            if other != axis:
                head, tail = [slice(None)] * 3, [slice(None)] * 3
                head[other], tail[other] = slice(1, None), slice(None, -1)
                part = (part[tuple(head)] + part[tuple(tail)]) / 2
        return part

    return np.stack(
        [slope(2, 1) - slope(1, 2), slope(0, 2) - slope(2, 0), slope(1, 0) - slope(0, 1)], axis=-1
    )
