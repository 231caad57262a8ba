"""Vorticity that surface tension and a jump of density create at a surface, on the grid of its distance.

Two fluids, of density rho_i inside (chi = 1) and rho_o outside (chi = 0), share one velocity field. With m
the mean density, d = rho_i - rho_o its jump, s the surface tension [N/m], kappa the curvature, g gravity and
a the acceleration of the fluid,

    Domega/Dt - (omega . grad) u = curl f,   m f = s kappa grad(chi) + d chi g - d (chi - 1/2) a.   (*)

The net force and torque of surface tension on every closed part are made exactly zero (`without_net_force`).
How (*) follows, and what is left out: docs/notes/surfaces.md. Source: Brackbill, Kothe and Zemach, J. Comput.
Phys. 100 (1992) 335 (force); Tryggvason, J. Comput. Phys. 75 (1988) 253 (sheet between two densities).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.grids.differences import curl, gradient
from ecs_fluid.kernels.surface.level_set import geometry, sample

CELLS = 1.5
"""Half the width, in cells, of the layer in which one fluid becomes the other."""
ORDER: Final = 4
"""Order of the differences: with second order the thickness of the sheet depends on its angle to the axes."""
FARTHER = 3
"""Layers of zeros that `rotation` of a `sharpened` force needs in addition to the two that the force has."""
REPEATS = 30
SETTLED = 1e-5
"""The repetition in `settled_force` ends when the relative change of the force is below this."""


def step(phi: Array, width: float) -> Array:
    """chi, float64: 1 where phi < -``width`` (m), 0 where phi > ``width``, a sine-shaped step in between."""
    s = np.clip(phi.astype(np.float64) / width, -1.0, 1.0)
    return np.asarray(0.5 * (1.0 - s - np.sin(np.pi * s) / np.pi))


def reach(width: float, spacing: Array) -> float:
    """Distance m from the surface up to which grad(chi) is not 0: differences reach two points further."""
    return width + (ORDER / 2 + 0.01) * float(np.max(spacing))


def curvature_beside(phi: Array, origin: Array, spacing: Array, width: float) -> Array:
    """Curvature (px, py, pz) 1/m of the surface at the point nearest to each grid point within ``width`` m.

    ``phi`` (px, py, pz) m are distances; further away than ``width`` the result is 0. The curvature has to be
    taken at the surface: that of the level set through a point at the distance d would be 1 / (R + d) in
    place of 1 / R. Values are limited to 1 / spacing, that of a ball with a radius of two cells: larger ones,
    as between drops that are about to touch, are errors of the differences.
    """
    far = width + 4.0 * float(np.max(spacing))
    shape = geometry(phi, spacing, far)
    at = np.nonzero(np.abs(phi) <= width)
    slope = shape[at][:, :3]
    length = np.linalg.norm(slope, axis=1, keepdims=True)
    normal = slope / np.where(length > 0, length, 1)
    x = np.asarray(origin, np.float64) + np.stack(at, axis=1) * np.asarray(spacing, np.float64)
    foot = x - phi[at][:, None].astype(np.float64) * normal
    found = np.zeros(phi.shape)
    most = shape.dtype.type(1.0 / np.max(spacing))
    kappa = np.clip(shape[..., 3], -most, most)
    found[at] = sample(foot, origin, spacing, kappa, third_order=True)
    return found


def without_net_force(force: Array, weight: Array, parts: Array, count: int, spacing: Array) -> None:
    """Remove the net force and torque of every closed part from ``force`` (px, py, pz, 3), in place.

    ``parts`` (px, py, pz) has the number, 1 to ``count``, of the part that a point belongs to (0: none);
    ``weight`` (px, py, pz) is above 0 at the surface. What is subtracted is weight (c + e cross x): the
    change with the least sum of change^2 / weight.
    """
    for number in range(1, count + 1):
        at = np.nonzero((parts == number) & (weight > 0))
        if len(at[0]) < 3:
            continue
        w, f = weight[at], force[at]
        x = np.stack(at, axis=1) * np.asarray(spacing, np.float64)
        x = x - (w[:, None] * x).sum(axis=0) / w.sum()
        x /= np.sqrt((w[:, None] * x * x).sum() / w.sum())
        second = (w[:, None, None] * x[:, :, None] * x[:, None, :]).sum(axis=0)
        inertia = np.trace(second) * np.eye(3) - second
        for _ in range(2):  # the second time removes what rounding left
            f = f - w[:, None] * (f.sum(axis=0) / w.sum())
            turn = np.linalg.lstsq(inertia, np.cross(x, f).sum(axis=0), rcond=1e-10)[0]
            f = f - w[:, None] * np.cross(turn, x)
        force[at] = f


def tension_force(phi: Array, origin: Array, spacing: Array, width: float, parts: Array, count: int) -> Array:
    """kappa grad(chi) (px, py, pz, 3) 1/m^2, float64, without net force or torque on any closed part.

    ``phi`` (px, py, pz) m; chi changes within ``width`` m on both sides of the surface. ``parts`` (px, py,
    pz) numbers the closed parts 1 to ``count``, out to the distance `reach` from the surface of each.
    """
    h = np.asarray(spacing, np.float64)
    kappa = curvature_beside(phi, origin, h, reach(width, h))
    slope = gradient(step(phi, width), h, ORDER)
    force = kappa[..., None] * slope
    without_net_force(force, np.linalg.norm(slope, axis=-1), parts, count, h)
    return np.asarray(force)


def settled_force(force: Array, chi: Array, contrast: float, induced: Callable[[Array], Array]) -> Array:
    """f of (*): ``force`` (px, py, pz, 3) m/s^2 less the term of the acceleration a that f itself causes.

    ``contrast`` is d / m, ``chi`` is (px, py, pz). ``induced`` maps f to the acceleration (px, py, pz, 3)
    m/s^2 that curl f induces; it matters only where chi > 0.
    """
    f = force
    if contrast == 0.0 or not force.any():
        return f
    for _ in range(REPEATS):
        newer = force - contrast * chi[..., None] * induced(f) + 0.5 * contrast * f
        change = float(np.abs(newer - f).max())
        f = newer
        if change <= SETTLED * float(np.abs(f).max()):
            break
    return f


def rotation(force: Array, spacing: Array) -> Array:
    """curl of ``force`` (px, py, pz, 3) by central differences; its four outer layers have to be 0."""
    return np.asarray(curl(np.ascontiguousarray(force), np.asarray(spacing, np.float64), ORDER))


def sharpened(force: Array, part: float) -> Array:
    """force - c Laplacian(force) (px, py, pz, 3), with c = ``part`` h^2; two outer layers of it have to be 0.

    The cores of vortons and the grid give a vortex sheet a thickness. With this correction it moves itself
    as a sheet without thickness does, see `sharpening`. The Laplacian has 19 points,
    (12 neighbours along edges + 2 x 6 along axes - 24 x the middle) / 6 h^2: its error is the same in all
    directions. Net force and torque are conserved.
    """

    out = np.zeros_like(force)
    lines = (*force.shape[:2], -1)
    _sharpened(np.ascontiguousarray(force).reshape(lines), part, out.reshape(lines))
    return out


@parallel("force.shape[0] * force.shape[1]", fastmath={"contract"})
def _sharpened(row: int, force: Array, part: float, out: Array) -> None:
    """One line (3 pz) of ``force`` (px, py, 3 pz); neighbours along the line are three numbers apart."""
    px, py, n = force.shape
    i, j = row // py, row % py
    if i == 0 or j == 0 or i == px - 1 or j == py - 1:
        return
    x0, x1, y0, y1 = force[i - 1], force[i + 1], force[i, j - 1], force[i, j + 1]
    line, here = force[i, j], out[i, j]
    for k in range(3, n - 3):
        a, b = k - 3, k + 3
        beside = x0[j, k] + x1[j, k] + y0[k] + y1[k]
        edges = x0[j - 1, k] + x0[j + 1, k] + x1[j - 1, k] + x1[j + 1, k]
        edges += x0[j, a] + x1[j, a] + y0[a] + y1[a] + x0[j, b] + x1[j, b] + y0[b] + y1[b]
        axes = beside + line[a] + line[b]
        here[k] = (1.0 + 4.0 * part) * line[k] - part / 6.0 * (edges + 2.0 * axes)


@lru_cache
def sharpening(gaussians: tuple[tuple[float, float], ...], overlap: float) -> float:
    """c / h^2 of `sharpened`, for cores of ``overlap`` spacings h.

    ``gaussians`` are (share, radius) of the Gaussians that make up a core. A plane sheet whose strength is
    spread over distances z moves itself only at the fraction 1 - k <|z|> in waves of the number k, to first
    order in h. By Fourier's transform <|z|> = (2 / pi) int (1 - g) / p^2 dp, with g the transform of the
    profile. The correction subtracts (2 / pi) int c g L / p^2 dp, with -L the transform of the Laplacian. So
    c is the quotient of the two integrals, each a mean over all directions n of the sheet. g is the product
    of the transforms of the step, of the cores, of the difference in grad(chi) along each axis j, D(p n_j) /
    p, and of that in kappa along the other axes i, D'(p n_i).
    """
    p, weight = _nodes(40.0, 400)
    z, weight_z = _nodes(1.0, 16)
    turn = np.arange(16) * (np.pi / 32) + np.pi / 64  # by symmetry these stand for the whole sphere
    s = np.sqrt(1 - z**2)[:, None]
    n = np.stack([s * np.cos(turn), s * np.sin(turn), z[:, None] + 0 * turn])
    at = p * n[..., None]
    difference = (8 * np.sin(at) - np.sin(2 * at)) / 6
    slope = (4 * np.cos(at) - np.cos(2 * at)) / 3
    lattice = 0.5 * (n[..., None] * difference / p * (slope.sum(axis=0) - slope)).sum(axis=0)
    y = p * CELLS / np.pi
    cores = sum(share * np.exp(-0.5 * (radius * overlap * p) ** 2) for share, radius in gaussians)
    profile = np.sinc(y) / (1 - y**2) * cores * lattice
    mean = weight_z @ (1 - profile).mean(axis=1) @ (weight / p**2) + 1 / 40.0
    d = 2 - 2 * np.cos(at)
    laplacian = d.sum(axis=0) - (d[0] * d[1] + d[1] * d[2] + d[2] * d[0]) / 6
    return float(mean / (weight_z @ (profile * laplacian).mean(axis=1) @ (weight / p**2)))


def _nodes(high: float, number: int) -> tuple[Array, Array]:
    """``number`` nodes and weights of Gauss's quadrature on the interval from 0 to ``high``."""
    x, weight = np.polynomial.legendre.leggauss(number)
    return 0.5 * high * (x + 1), 0.5 * high * weight
