"""Vector potential and velocity from vorticity on a grid: lap A = -omega, u = curl A.

The steps are those of the articles, parts 6 and 20:

1. ``vorticity_grid`` turns strengths of vortons into vorticity at grid points and keeps the total strength;
   then ``blob_filter.widen`` gives the vortons their core radius (the articles leave this out: without it a
   vorton has a core of about half a cell);
2. boundary values: zero (walls, part 6), or the potential integrated over all vortons at ``face_points``
   (the hybrid of part 20; the box then acts like unbounded space);
3. ``dirichlet``: multigrid inside. ``freespace`` needs no boundary values instead;
4. ``differences.curl`` of A is the velocity. Its discrete divergence is zero to
   round-off at every point, whatever A is: each difference is a matrix along one axis, also where it is
   one-sided, and matrices along different axes commute.

The potential of a vorton is that of its blob (``regularisation.potential_factors``): for the articles' core
(3 sigma^2 - r^2)/(2 sigma^3), not the printed r^2/sigma^3, whose curl runs backwards.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.grids import interpolation
from ecs_fluid.kernels.grids.grid import Grid
from ecs_fluid.kernels.grids.scatter import m4_prime, spline
from ecs_fluid.kernels.poisson.multigrid import solve
from ecs_fluid.kernels.poisson.transfinite import fill_from_faces

Transfer = Literal["linear", "m4_prime", "spline"]


def vorticity_grid(sx: Array, sa: Array, start: Array, grid: Grid, transfer: Transfer = "linear") -> Array:
    """Vorticity [1/s] at the grid points, (nx+1, ny+1, nz+1, 3), from sorted vortons.

    omega = sum_p w_p alpha_p / V_c with trilinear, M4' or B-spline weights and the cell volume V_c, so that
    the sum of omega V_c over the points is sum alpha. ``sx (3, n)`` m, ``sa (3, n)`` m^3/s, ``start`` from
    ``partition`` on this same ``grid``. The shares know nothing of core radii: see ``blob_filter.widen``.
    """
    origin, spacing, cells = grid
    share = {"linear": interpolation.scatter, "m4_prime": m4_prime, "spline": spline}[transfer]
    return share(sx, sa * sa.dtype.type(1.0 / np.prod(spacing)), start, origin, spacing, cells)


def face_indices(shape: tuple[int, ...], spacing: Any = (1.0, 1.0, 1.0)) -> NDArray[np.int64]:
    """Which points of a field (px, py, pz, ...) lie on a face of the box: ascending C-order numbers.

    n^3 - (n - 2)^3 of them for n points per edge. A flat axis (one point, or ``spacing`` 0) has no faces.
    """
    inner = np.zeros(shape[:3], np.bool_)
    inside = [
        slice(None) if n == 1 or h == 0 else slice(1, n - 1) for n, h in zip(shape[:3], spacing, strict=True)
    ]
    inner[tuple(inside)] = True
    return np.flatnonzero(~inner)


def face_points(grid: Grid, dtype: Any = np.float64) -> Array:
    """Positions (m, 3) m of the grid points on the faces of the box, in the order of ``face_indices``."""
    origin, spacing, cells = grid
    shape = tuple(int(n) + 1 for n in cells)
    index = np.unravel_index(face_indices(shape, spacing), shape)
    return np.stack([origin[a] + spacing[a] * index[a] for a in range(3)], axis=1).astype(dtype)


def dirichlet(omega: Array, spacing: Any, faces: Array | None = None, tolerance: float = 1e-2) -> Array:
    """Vector potential A [m^2/s] with lap A = -omega inside and given values on the faces, by multigrid.

    ``omega`` (px, py, pz, 3) 1/s, ``spacing`` (3,) m. ``faces`` (m, 3) m^2/s are the values at
    ``face_points``; the solve starts from their interpolation into the box. None means zero, as in part 6 of
    the articles: the flow of a vortex in a box, much slowed when the box is tight. ``tolerance`` is that of
    ``multigrid.solve``: for a ring on 64^3 cells the default leaves an error of 2e-4 of the speed, where the
    grid's own is 2e-3. The divergence does not depend on it.
    """
    field = np.zeros_like(omega)
    if faces is not None:
        field.reshape(-1, omega.shape[-1])[face_indices(omega.shape, spacing)] = faces
        fill_from_faces(field, spacing)
    solve(field, -omega, spacing, tolerance)
    return field
