"""A regularisation that the package has not, through every sum and VelocitySystem, against sums in numpy.

Run by test_records in a process of its own, whose kernels are compiled with this record.

The algebraic blob of fourth order, with y = 1/sqrt(r^2 + s2):

    4 pi G = y + s2 y^3/2 + 3 s2^2 y^5/8 = (1 - s2 D/2 + s2^2 D^2/8) y,  D = 1/r d/dr,  D y = -y^3,
    g = q/r^3 = -D 4 pi G = y^3 + 3 s2 y^5/2 + 15 s2^2 y^7/8,
    h = D g = -3 y^5 - 15 s2 y^7/2 - 105 s2^2 y^9/8,   4 pi zeta = 3 g + r^2 h,

and 1 - q = 35/16 rho^-6 to leading order: the lower orders cancel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

import ecs_fluid as ef
from ecs_fluid.kernels.biot_savart import regularisation
from ecs_fluid.kernels.biot_savart.regularisation import WINCKELMANS
from ecs_fluid.kernels.compiled.wide_vectors import INLINE


@njit(**INLINE)
def same(s2: Any) -> Any:
    return s2


@njit(**INLINE)
def gradient(d: Any, s2: Any, k: Any) -> Any:
    y2 = 1 / d
    y3 = y2 * np.sqrt(y2)
    t = s2 * y2
    return 8 * y3 * (1 + t * (1.5 + 1.875 * t)), -8 * y3 * y2 * (3 + t * (7.5 + 13.125 * t))


@njit(**INLINE)
def velocity(d: Any, s2: Any, k: Any) -> Any:
    return gradient(d, s2, k)[0]


@njit(**INLINE)
def potential(d: Any, s2: Any, k: Any) -> Any:
    g, h = gradient(d, s2, k)
    t = s2 / d
    return (1 + t * (0.5 + 0.375 * t)) / np.sqrt(d), (3 * g + (d - s2) * h) / 8


@njit(**INLINE)
def far_enough(
    distance: Any, r2: Any, least: Any, mean: Any, largest: Any, spread: Any, clearance: Any, mixed: Any
) -> bool:
    return bool(13.125 * largest**2 * (largest - least) <= spread * (r2 + mean) ** 3)


def by_numpy(x: Any, alpha: Any, sigma: Any, targets: Any) -> tuple[Any, Any]:
    """u (m, 3) and du (m, 3, 3), du[:, i, j] = du_i/dx_j, from the formulas above."""
    r, s2 = targets[:, None] - x, sigma**2
    y = 1 / np.sqrt((r**2).sum(axis=-1) + s2)
    g = y**3 + 1.5 * s2 * y**5 + 15 / 8 * s2**2 * y**7
    h = -3 * y**5 - 7.5 * s2 * y**7 - 105 / 8 * s2**2 * y**9
    swirl = np.cross(alpha, r)
    levi = np.zeros((3, 3, 3))
    levi[[0, 1, 2], [1, 2, 0], [2, 0, 1]], levi[[0, 1, 2], [2, 0, 1], [1, 2, 0]] = 1, -1
    du = np.einsum("mn,nk,ikj->mij", g, alpha, levi) + np.einsum("mn,mni,mnj->mij", h, swirl, r)
    return (g[..., None] * swirl).sum(axis=1) / (4 * np.pi), du / (4 * np.pi)


def main() -> None:
    """Print the largest error of u and du over their RMS: direct, tree, multipoles."""
    fifth = WINCKELMANS._replace(
        name="fourth_order", core_shift=same, core_constant=same, velocity_factor=velocity,
        gradient_factors=gradient, potential_factors=potential, series=(-0.5, 0.125),
        far_enough=far_enough, centre=15 / (4 * np.pi), variance=0.0,
    )  # fmt: skip
    code = regularisation.code_numbered(len(regularisation.RECORDS))
    regularisation.RECORDS = (*regularisation.RECORDS, fifth)
    regularisation.CODES[fifth.name] = code
    from ecs_fluid.kernels.biot_savart import direct, tree, tree_build
    from ecs_fluid.kernels.fmm import fast_multipole
    from ecs_fluid.kernels.grids.grid import uniform_grid
    from ecs_fluid.kernels.grids.partition import partition

    draw, n = np.random.default_rng(1), 3000
    x, alpha, sigma = draw.random((n, 3)), draw.standard_normal((n, 3)), 0.03 + 0.01 * draw.random(n)
    grid = uniform_grid(x.min(axis=0), x.max(axis=0), n)
    start, order = partition(x, *grid)
    x, alpha, sigma = x[order], alpha[order], sigma[order]
    sources = np.ascontiguousarray(x.T), np.ascontiguousarray(alpha.T), sigma
    exact = by_numpy(x, alpha, sigma, x[::30])
    u, du = np.empty((n, 3)), np.empty((n, 3, 3))

    def told(name: str, *both: Any) -> None:
        for found, wanted in zip(both or (u[::30], du[::30]), exact, strict=True):
            print(name, np.abs(found - wanted).max() / np.sqrt((wanted**2).mean()))

    direct.velocity_gradient(code, x, *sources, u, du)
    told("direct")
    nodes = tree_build.build(*grid, start, *sources)
    tree.velocity(code, x, nodes, u, du, criterion=tree.ANGLE, opening=0.1, originals=True)
    told("tree")
    work = fast_multipole.velocity(fast_multipole.plan(code, *sources, 1e-3), x, u, du)
    assert work.expansions > 100
    told("multipoles")
    world = ef.World(precision="double")
    world.spawn("vortons", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(sigma))
    world.add_system(ef.VelocitySystem(kernel=fifth.name))
    world.evaluate()
    told("system", world["vortons"][ef.Velocity].u[::30], world["vortons"][ef.VelocityGradient].du[::30])


if __name__ == "__main__":
    main()
