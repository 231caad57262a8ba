"""The pressure inside a container at rest whose flow `container` solves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import FIXED
from ecs_fluid.errors import FluidError
from ecs_fluid.systems.partition import GHOSTS
from ecs_fluid.systems.shared.body_tables import body_entities, gathered
from ecs_fluid.systems.velocity.core_levels import levels
from ecs_fluid.systems.velocity.poisson import scattered

if TYPE_CHECKING:
    from ecs_fluid.components import Sources
    from ecs_fluid.systems.velocity.container import ContainerSolver


def head_in_container(solver: ContainerSolver, sources: Sources, weight: Array | None, x: Array) -> Array:
    """H = p/rho + u^2/2 (m,) m^2/s^2 at x (m, 3) m in the box, 0 outside of it; its mean is 0.

    laplace H = div P with P = u cross omega + f, whose normal part grad H has at the walls, as no fluid goes
    through these. u, omega and the weight f of excess density are known at the points of the solver's grid.
    Between two points lies a face, where P is the mean of both, and the difference of H is taken; at a wall
    half a cell is left, into which nothing comes from outside. So layers at rest have the pressure of their
    depth exactly. All is of second order in the spacing.

    `weight` (3, n) m^4/s^2 are the f of the sorted vortons, None without. Density goes on evenly behind
    walls.
    """
    from ecs_fluid.kernels.bodies.table import CONTAINER
    from ecs_fluid.kernels.grids.cubic import interpolate

    bodies, _ = gathered(body_entities(solver.world))
    if (bodies.motion[bodies.shape == CONTAINER] != FIXED).any():
        raise FluidError(
            "pressure: the container may move, and its acceleration, which is not known, has a part in the "
            "pressure; it is known in a container without keys and velocities"
        )
    box, spacing, push = solver.box, solver.mesh[1], solver.turned_vorticity()
    if weight is not None:
        push = push + _spread(solver, sources, box.axes.T @ weight)
    head, inner = _potential(push, spacing).astype(x.dtype)[..., None], box.inner(x.T)
    found = interpolate(np.ascontiguousarray(inner.T, x.dtype), -box.half, spacing, head)
    return np.where(box.holds(inner, x.dtype), found[:, 0], x.dtype.type(0))


def _spread(solver: ContainerSolver, sources: Sources, weight: Array) -> Array:
    """f (px, py, pz, 3) m/s^2 at the points of the grid, with images whose weight is the same."""
    from scipy import fft

    from ecs_fluid.kernels.poisson.periodic import shaped, smoothed

    vortons, mesh, dtype = solver.inside(sources), solver.mesh, sources.x.dtype
    kept = np.where(solver.box.holds(solver.box.inner(sources.x), dtype), weight, 0.0)
    vortons = vortons._replace(alpha=kept.astype(dtype))
    sides = zip(mesh[2] - 2 * GHOSTS, mesh[1], strict=True)
    waves = shaped([np.pi * np.arange(n + 1) / (n * h) for n, h in sides])
    total = np.zeros((*(mesh[2] - 2 * GHOSTS + 1), 3))
    for level in levels(sources.sigma, solver.code):
        shared = _folded(scattered(vortons, level, mesh, solver.transfer).astype(np.float64))
        blob = smoothed(waves, solver.code, level.radius)[..., None]
        total += blob * fft.dctn(shared, 1, axes=(0, 1, 2))
    return np.asarray(fft.idctn(total, 1, axes=(0, 1, 2)))


def _folded(field: Array) -> Array:
    """A field (px, py, pz, 3) on a grid with points beyond the walls, with what even images add inside."""
    for axis in range(3):
        lines = np.moveaxis(field, axis, 0)
        inner = lines[GHOSTS : len(lines) - GHOSTS].copy()
        inner[: GHOSTS + 1] += lines[GHOSTS::-1]
        inner[-GHOSTS - 1 :] += lines[: -GHOSTS - 2 : -1]
        field = np.moveaxis(inner, 0, axis)
    return field


def _potential(push: Array, spacing: Array) -> Array:
    """H (px, py, pz) with the Laplacian div P and the slope P . n at the walls; P (px, py, pz, 3)."""
    from scipy import fft

    source, squares = np.zeros(push.shape[:3]), np.zeros(push.shape[:3])
    for axis, h in enumerate(spacing):
        lines = np.moveaxis(push[..., axis], axis, 0)
        faces = (lines[1:] + lines[:-1]) / 2
        into = np.diff(faces, axis=0, prepend=0.0 * faces[:1], append=0.0 * faces[:1]) / h
        into[[0, -1]] *= 2  # half a cell
        source += np.moveaxis(into, 0, axis)
        n = push.shape[axis]
        wave = (2 - 2 * np.cos(np.pi * np.arange(n) / (n - 1))) / h**2
        squares += np.moveaxis(wave.reshape(-1, 1, 1), 0, axis)
    waves = fft.dctn(source, 1)
    squares[0, 0, 0] = np.inf
    return np.asarray(fft.idctn(-waves / squares, 1))
