"""Prints hashes of pair sums of every solver, regularisation and precision; run by test_determinism."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ecs_fluid.kernels.biot_savart import direct, tree, tree_build
from ecs_fluid.kernels.biot_savart.regularisation import CODES, Code
from ecs_fluid.kernels.fmm import fast_multipole
from ecs_fluid.kernels.grids.grid import uniform_grid
from ecs_fluid.kernels.grids.partition import partition

COUNT = 700


def shown(name: str, *arrays: np.ndarray) -> None:
    digest = hashlib.md5(b"".join(array.tobytes() for array in arrays), usedforsecurity=False)
    print(f"{name} {digest.hexdigest()}")


def sums(name: str, code: Code, kind: type[np.floating[Any]]) -> None:
    """Velocity, gradient and potential of vortons in a cube."""
    draw = np.random.default_rng(0)
    x = draw.random((COUNT, 3)).astype(kind)
    sx, sa = np.ascontiguousarray(x.T), draw.standard_normal((3, COUNT)).astype(kind)
    sigma = draw.uniform(0.05, 0.15, COUNT).astype(kind)
    u, du, psi, omega = np.empty_like(x), np.empty((COUNT, 3, 3), kind), np.empty_like(x), np.empty_like(x)
    direct.velocity_gradient(code, x, sx, sa, sigma, u, du)
    shown(f"{name} direct gradient", u, du)
    direct.velocity(code, x, sx, sa, sigma, u)
    shown(f"{name} direct velocity", u)
    direct.potential_vorticity(code, x, sx, sa, sigma, psi, omega)
    shown(f"{name} direct potential", psi, omega)
    fast_multipole.velocity(fast_multipole.plan(code, sx, sa, sigma, 1e-3), x, u, du)
    shown(f"{name} fmm gradient", u, du)
    mesh = uniform_grid(x.min(axis=0).astype(float), x.max(axis=0).astype(float), COUNT)
    start, order = partition(x, *mesh)
    nodes = tree_build.build(*mesh, start, sx[:, order].copy(), sa[:, order].copy(), sigma[order])
    how = {"criterion": tree.ANGLE, "opening": 0.5, "originals": True}
    tree.velocity(code, x, nodes, u, du, **how)
    shown(f"{name} tree gradient", u, du)
    tree.velocity(code, x, nodes, u, **how)
    shown(f"{name} tree velocity", u)


if __name__ == "__main__":
    for precision in (np.float32, np.float64):
        for regularisation, number in CODES.items():
            sums(f"{precision.__name__} {regularisation}", number, precision)
