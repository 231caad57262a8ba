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

FACE_STRIDE, FINE = 2, 16
"""Axes of at least FINE cells have the potential summed at every second point of the faces; between them it
is interpolated with third order, for it varies over CLEARANCE core radii at least."""

FEW_PAIRS = 2**26
"""Up to this many pairs of vorton and face point the faces are summed directly."""


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
        from ecs_fluid.kernels.differences import curl

        self.sources, self.sigma, self.grid, self.code = sources, sigma, grid, code
        self.transfer = transfer
        self._mesh = (grid.origin, grid.spacing, grid.cells)
        potential = self._open() if boundary == "open" else self._dirichlet(boundary == "faces")
        self.velocity = curl(potential, grid.spacing, order=4)
        """Velocity (px, py, pz, 3) m/s at the grid points."""
        self._jacobian: Array | None = None

    def sample(self, targets: Array, u: Array, du: Array | None = None) -> Array:
        """Interpolate u (m, 3) and, unless None, du (m, 3, 3); returns the rows that lie off the grid."""
        from ecs_fluid.kernels.cubic import interpolate
        from ecs_fluid.kernels.differences import jacobian

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
        from ecs_fluid.kernels.freespace import hockney

        total: Array | None = None
        for sigma, omega in self._vorticity():
            part = hockney(omega, self.grid.spacing, "blob", self.code, sigma)
            total = part if total is None else total + part
        assert total is not None
        return total

    def _dirichlet(self, faces: bool) -> Array:
        from ecs_fluid.kernels.poisson import dirichlet
        from ecs_fluid.kernels.smoothing import M4_PRIME, TRILINEAR, widen

        spacing = self.grid.spacing
        scattered = M4_PRIME if self.transfer == "m4_prime" else TRILINEAR
        omega: Array | None = None
        for sigma, part in self._vorticity():
            part = widen(part, spacing, sigma, self.code, scattered)
            omega = part if omega is None else omega + part
        assert omega is not None
        if not faces:
            return dirichlet(omega, spacing)
        return dirichlet(omega, spacing, self._faces(omega.dtype))

    def _faces(self, dtype: Any) -> Array:
        """Potential at the `face_points` of the grid, summed at some of them and interpolated between."""
        from ecs_fluid.kernels import cubic
        from ecs_fluid.kernels.poisson import face_indices, face_points

        origin, spacing, cells = self._mesh
        fewer = np.where(cells >= FINE, cells // FACE_STRIDE, cells)
        wider = spacing * cells / fewer
        known = np.zeros((*(int(n) + 1 for n in fewer), 3), dtype)
        summed = self._potential(face_points((origin, wider, fewer), dtype))
        known.reshape(-1, 3)[face_indices(known.shape, wider)] = summed
        points = face_points(self._mesh, dtype)
        return cubic.interpolate(points, origin, wider, known)

    def _potential(self, points: Array) -> Array:
        """Vector potential (m, 3) m^2/s at (m, 3) points m."""
        from ecs_fluid.kernels import direct, fmm
        from ecs_fluid.kernels.fmm_accuracy import settings

        x, alpha = self.sources.x, self.sources.alpha
        psi = np.empty_like(points)
        if len(points) * len(self.sigma) <= FEW_PAIRS:
            direct.potential_vorticity(self.code, points, x, alpha, self.sigma, psi, np.empty_like(psi))
        else:
            how = settings(self.code, FACE_TOLERANCE)._replace(order=FACE_ORDER)
            plan = fmm.plan(self.code, x, alpha, self.sigma, FACE_TOLERANCE, how)
            fmm.potential(self.code, points, x, alpha, self.sigma, FACE_TOLERANCE, psi, prepared=plan)
        return psi

    def _vorticity(self) -> list[tuple[float, Array]]:
        """Core radii, and the scattered vorticity of the vortons that have them."""
        from ecs_fluid.kernels.partition import partition
        from ecs_fluid.kernels.poisson import vorticity_grid

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
