"""Poisson's equation inside a box, with the potential on its faces summed over all vortons."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.systems.partition import GridNeeds
from ecs_fluid.systems.velocity.poisson import CLEARANCE, PoissonSolver

PER_CORE = 3.0
"""Field cells per core radius: with 2, the jerk of vortons is 1.5 times that with direct sums."""

FACE_TOLERANCE, FACE_ORDER = 1e-2, 5
"""Tolerance and order of the expansions for the potential on the faces: measured 1.5e-4 of its RMS on a thick
ring and 3.5e-4 for random strengths in a cube, less than the error of the grid."""

COARSER, LEAST = 3, 7
"""For the potential on the faces, strengths are gathered on a coarser grid, whose cells are up to COARSER
field cells wide. The potential is summed at that grid's points on the faces, and interpolated between them
with third order. The coarser cells are at most as wide as the gap between faces and vortons, and there are at
least LEAST along each axis. For a ring this changes the velocity by 2e-4 to 4e-4 of its RMS at the vortons,
and by up to 1.6e-3 near the faces (docs/velocity.md)."""

OPEN_TOLERANCE = 2e-3
"""Tolerance of multigrid where the box acts like unbounded space. At 1e-2, one cycle less, the residual
changes the impulse of two thin rings (validation case 19) by 1.4e-4 in 100 ticks instead of 5e-5."""

FEW_PAIRS = 2**26
"""Up to this many pairs of source and face point, the potential on the faces is summed directly."""


class HybridSolver(PoissonSolver):
    """Multigrid in a box whose faces have the vector potential of all vortons: as in unbounded space.

    Source: Fluid Simulation for Video Games, parts 19 and 20.
    """

    def grid_needs(self) -> GridNeeds:
        """Room for the blobs, and finer cells."""
        return GridNeeds(CLEARANCE, PER_CORE)

    def potential(self) -> Array:
        """Vector potential (px, py, pz, 3) m^2/s at the grid points."""
        from ecs_fluid.kernels.poisson.poisson import dirichlet

        scattered = self.scattered()
        omega = self.spread(scattered)
        faces = self.on_faces(scattered, omega.dtype)
        return dirichlet(omega, self.steps, faces, OPEN_TOLERANCE)

    def on_faces(self, scattered: list[tuple[float, Array]], dtype: Any) -> Array:
        """Potential at the `face_points` of the grid, summed at some of them and interpolated between."""
        from ecs_fluid.kernels.grids import cubic
        from ecs_fluid.kernels.poisson.poisson import face_indices, face_points

        origin, spacing, cells = self.grid.origin, self.grid.spacing, self.grid.cells
        if self.world.across is not None:
            lines = face_points((origin, self.steps, np.where(self.steps > 0.0, cells, 0)), dtype)
            return self._summed(lines, self.sources.x, self.sources.alpha, self.sources.sigma)
        fewer = self._fewer_cells()
        wider = spacing * cells / fewer
        known = np.zeros((*(int(n) + 1 for n in fewer), 3), dtype)
        blobs = self._gathered(scattered, fewer) if (fewer < cells).any() else None
        if blobs is None or len(blobs[2]) > len(self.sources.sigma):
            blobs = self.sources.x, self.sources.alpha, self.sources.sigma
        summed = self._summed(face_points((origin, wider, fewer), dtype), *blobs)
        known.reshape(-1, 3)[face_indices(known.shape, wider)] = summed
        if (fewer == cells).all():
            return summed
        return cubic.interpolate(face_points((origin, spacing, cells), dtype), origin, wider, known)

    def _fewer_cells(self) -> Array:
        """Cells (3,) of the coarser grid on which the potential of the faces is summed."""
        grid, x = self.grid, self.sources.x.astype(np.float64)
        below = x.min(axis=1) - grid.origin
        above = grid.origin + grid.spacing * grid.cells - x.max(axis=1)
        gap = float((np.minimum(below, above) / grid.spacing).min())
        # If a position is not finite any grid will do: the guard ends this tick and reports the row.
        clear = int(gap) if np.isfinite(gap) else 0
        return np.asarray(grid.cells // np.clip(np.minimum(clear, grid.cells // LEAST), 1, COARSER))

    def _gathered(self, scattered: list[tuple[float, Array]], fewer: Array) -> tuple[Array, Array, Array]:
        """The vortons as blobs at points of a coarser grid: x (3, m), alpha (3, m), sigma (m,)."""
        from ecs_fluid.kernels.grids.cubic import coarsen

        grid = self.grid
        wider = grid.spacing * grid.cells / fewer
        x, alpha, radii = [], [], []
        for sigma, part in scattered:
            strength = coarsen(part, fewer)
            index = np.nonzero(strength.any(axis=3))
            x.append(grid.origin[:, None] + wider[:, None] * np.stack(index))
            alpha.append(strength[index].T * np.prod(grid.spacing))
            radii.append(np.full(len(index[0]), sigma))
        dtype = self.sources.sigma.dtype
        found = np.concatenate(x, axis=1), np.concatenate(alpha, axis=1), np.concatenate(radii)
        return found[0].astype(dtype), np.ascontiguousarray(found[1], dtype), found[2].astype(dtype)

    def _summed(self, points: Array, x: Array, alpha: Array, sigma: Array) -> Array:
        """Vector potential (m, 3) m^2/s at points (m, 3) m of blobs x, alpha (3, n) and sigma (n,)."""
        from ecs_fluid.kernels.biot_savart import direct
        from ecs_fluid.kernels.fmm import fast_multipole
        from ecs_fluid.kernels.fmm.accuracy import settings

        psi = np.empty_like(points)
        if len(points) * len(sigma) <= FEW_PAIRS or self.world.dimension == 2:
            direct.potential_vorticity(self.code, points, x, alpha, sigma, psi, np.empty_like(psi))
        else:
            chosen = settings(self.code, FACE_TOLERANCE)._replace(order=FACE_ORDER)
            plan = fast_multipole.plan(self.code, x, alpha, sigma, FACE_TOLERANCE, chosen)
            fast_multipole.potential(plan, points, psi)
        return psi
