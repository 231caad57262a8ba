"""Velocity on the field grid from a vector potential: lap A = -omega, u = curl A."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Grid, Sources

CLEARANCE = 3.0
"""Core radii that a grid should leave around the vortons: their vorticity is spread that far."""

BIN = 1.1
"""Core radii within this ratio are spread as one, with their mean square: a velocity error below 1 %."""

FACE_TOLERANCE, FACE_ORDER = 1e-2, 5
"""Tolerance and order of the expansions for the potential on the faces: measured 1.5e-4 of its RMS on a thick
ring and 3.5e-4 for random strengths in a cube, less than the error of the grid."""

COARSER, LEAST = 3, 7
"""The potential of the faces is summed over strengths gathered on a grid of up to COARSER cells in one, at
that grid's points of the faces, and interpolated between them with third order. Its cells are at most as wide
as the gap between faces and vortons, and no axis has fewer than LEAST. At the vortons of a ring that changes
the velocity by 2e-4 to 4e-4 of its RMS, near the faces by up to 1.6e-3 (docs/velocity.md)."""

OPEN_TOLERANCE = 2e-3
"""Multigrid's tolerance where the box acts like unbounded space. At 1e-2, a cycle less, what is left moves
the impulse of two thin rings (validation case 19) by 1.4e-4 in 100 ticks instead of 5e-5."""

FEW_PAIRS = 2**26
"""Up to this many pairs of source and face point the faces are summed directly."""


class PotentialGrid:
    """Velocity of vortons at the points of a grid, by Poisson's equation for the vector potential.

    The strengths go to the grid with the weights of `transfer`, their total kept, and are spread to their
    core radii; the potential follows by

    * ``open``: convolution with the Green's function of a blob, as in unbounded space;
    * ``walls``: multigrid, with A = 0 on the faces of the grid (articles, part 6);
    * ``faces``: multigrid, with A on the faces summed over all vortons (articles, parts 19 and 20), as in
      unbounded space;

    and the velocity is its curl: free of divergence to round-off, in the differences of the grid. The cost
    depends on the number of points and only weakly on that of vortons.

    Args:
        sources: the sorted vortons.
        sigma: their core radii (n,) m.
        grid: the grid; it should leave CLEARANCE core radii around the vortons.
        code: number of the regularisation.
        boundary: one of the three above.
        transfer: weights that share a vorton among grid points; M4' keeps its second moments, too.
    """

    def __init__(
        self,
        sources: Sources,
        sigma: Array,
        grid: Grid,
        code: int,
        boundary: Literal["open", "walls", "faces"],
        transfer: Literal["linear", "m4_prime"] = "m4_prime",
    ) -> None:
        from ecs_fluid.kernels.grids.differences import curl

        self.sources, self.sigma, self.grid, self.code = sources, sigma, grid, code
        self.transfer = transfer
        self._mesh = (grid.origin, grid.spacing, grid.cells)
        potential = self._open() if boundary == "open" else self._dirichlet(boundary == "faces")
        self.velocity = curl(potential, grid.spacing, order=4)
        """Velocity (px, py, pz, 3) m/s at the grid points."""
        self._jacobian: Array | None = None

    def sample(self, targets: Array, u: Array, du: Array | None = None) -> Array:
        """Interpolate u (m, 3) and, unless None, du (m, 3, 3); returns the rows that lie off the grid."""
        from ecs_fluid.kernels.grids.cubic import interpolate
        from ecs_fluid.kernels.grids.differences import jacobian

        grid = self.grid
        interpolate(targets, grid.origin, grid.spacing, self.velocity, u)
        if du is not None:
            if self._jacobian is None:
                self._jacobian = jacobian(self.velocity, grid.spacing, order=4)
            interpolate(targets, grid.origin, grid.spacing, self._jacobian, du)
        slack = 1e-5 * grid.spacing
        lo, hi = grid.origin - slack, grid.origin + grid.spacing * grid.cells + slack
        return np.flatnonzero(((targets < lo) | (targets > hi)).any(axis=1))

    # ------------------------------------------------------------------ potential

    def _open(self) -> Array:
        """Potential in unbounded space: one convolution for every core radius."""
        from ecs_fluid.kernels.poisson.freespace import hockney

        total: Array | None = None
        for sigma, omega in self._vorticity():
            part = hockney(omega, self.grid.spacing, "blob", self.code, sigma)
            total = part if total is None else total + part
        assert total is not None
        return total

    def _dirichlet(self, faces: bool) -> Array:
        from ecs_fluid.kernels.poisson.blob_filter import M4_PRIME, TRILINEAR, widen
        from ecs_fluid.kernels.poisson.poisson import dirichlet

        spacing = self.grid.spacing
        scattered = M4_PRIME if self.transfer == "m4_prime" else TRILINEAR
        parts = self._vorticity()
        omega: Array | None = None
        for sigma, part in parts:
            wide = widen(part, spacing, sigma, self.code, scattered)
            omega = wide if omega is None else omega + wide
        assert omega is not None
        if not faces:
            return dirichlet(omega, spacing)
        return dirichlet(omega, spacing, self._faces(parts, omega.dtype), OPEN_TOLERANCE)

    def _faces(self, parts: list[tuple[float, Array]], dtype: Any) -> Array:
        """Potential at the `face_points` of the grid, summed at some of them and interpolated between."""
        from ecs_fluid.kernels.grids import cubic
        from ecs_fluid.kernels.poisson.poisson import face_indices, face_points

        origin, spacing, cells = self._mesh
        fewer = self._fewer_cells()
        wider = spacing * cells / fewer
        known = np.zeros((*(int(n) + 1 for n in fewer), 3), dtype)
        sources = self._gathered(parts, fewer) if (fewer < cells).any() else None
        if sources is None or len(sources[2]) > len(self.sigma):
            sources = self.sources.x, self.sources.alpha, self.sigma
        summed = self._potential(face_points((origin, wider, fewer), dtype), *sources)
        known.reshape(-1, 3)[face_indices(known.shape, wider)] = summed
        if (fewer == cells).all():
            return summed
        return cubic.interpolate(face_points(self._mesh, dtype), origin, wider, known)

    def _fewer_cells(self) -> Array:
        """Cells (3,) of the grid that the faces are summed on."""
        origin, spacing, cells = self._mesh
        x = self.sources.x.astype(np.float64)
        below, above = x.min(axis=1) - origin, origin + spacing * cells - x.max(axis=1)
        gap = float((np.minimum(below, above) / spacing).min())
        # Any grid does where a place is not finite: the guard ends this tick and says which.
        clear = int(gap) if np.isfinite(gap) else 0
        return np.asarray(cells // np.clip(np.minimum(clear, cells // LEAST), 1, COARSER))

    def _gathered(self, parts: list[tuple[float, Array]], fewer: Array) -> tuple[Array, Array, Array]:
        """The vortons as blobs at points of a coarser grid: x (3, m), alpha (3, m), sigma (m,)."""
        from ecs_fluid.kernels.grids.cubic import coarsen

        origin, spacing, cells = self._mesh
        wider = spacing * cells / fewer
        x, alpha, radii = [], [], []
        for sigma, part in parts:
            strength = coarsen(part, fewer)
            index = np.nonzero(strength.any(axis=3))
            x.append(origin[:, None] + wider[:, None] * np.stack(index))
            alpha.append(strength[index].T * np.prod(spacing))
            radii.append(np.full(len(index[0]), sigma))
        dtype = self.sigma.dtype
        found = np.concatenate(x, axis=1), np.concatenate(alpha, axis=1), np.concatenate(radii)
        return found[0].astype(dtype), np.ascontiguousarray(found[1], dtype), found[2].astype(dtype)

    def _potential(self, points: Array, x: Array, alpha: Array, sigma: Array) -> Array:
        """Vector potential (m, 3) m^2/s at (m, 3) points m of sources x, alpha (3, n) and sigma (n,)."""
        from ecs_fluid.kernels.biot_savart import direct
        from ecs_fluid.kernels.fmm import fast_multipole
        from ecs_fluid.kernels.fmm.accuracy import settings

        psi = np.empty_like(points)
        if len(points) * len(sigma) <= FEW_PAIRS:
            direct.potential_vorticity(self.code, points, x, alpha, sigma, psi, np.empty_like(psi))
        else:
            how = settings(self.code, FACE_TOLERANCE)._replace(order=FACE_ORDER)
            plan = fast_multipole.plan(self.code, x, alpha, sigma, FACE_TOLERANCE, how)
            fast_multipole.potential(self.code, points, x, alpha, sigma, FACE_TOLERANCE, psi, prepared=plan)
        return psi

    def _vorticity(self) -> list[tuple[float, Array]]:
        """Core radii, and the scattered vorticity of the vortons that have them."""
        from ecs_fluid.kernels.grids.partition import partition
        from ecs_fluid.kernels.poisson.poisson import vorticity_grid

        result = []
        for sigma, rows in core_bins(self.sigma):
            x = np.ascontiguousarray(self.sources.x[:, rows])
            alpha = np.ascontiguousarray(self.sources.alpha[:, rows])
            start, order = partition(np.ascontiguousarray(x.T), *self._mesh)
            sx, sa = np.ascontiguousarray(x[:, order]), np.ascontiguousarray(alpha[:, order])
            result.append((sigma, vorticity_grid(sx, sa, start, self._mesh, self.transfer)))
        return result


def core_bins(sigma: Array) -> list[tuple[float, Array | slice]]:
    """Core radii, root mean square of a bin, and the rows of each bin, from the smallest radius on."""
    radii = sigma.astype(np.float64)
    lowest = float(radii.min())
    if float(radii.max()) <= BIN * lowest:
        return [(float(np.sqrt(np.mean(radii**2))), slice(None))]
    number = np.floor(np.log(radii / lowest) / np.log(BIN)).astype(np.int64)
    found: list[tuple[float, Array | slice]] = []
    for value in np.unique(number):
        rows = np.flatnonzero(number == value)
        found.append((float(np.sqrt(np.mean(radii[rows] ** 2))), rows))
    return found
