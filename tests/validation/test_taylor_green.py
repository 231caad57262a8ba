"""Taylor and Green's vortices in the plane: validation case 46."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.kernels.grids.differences import curl
from ecs_fluid.kernels.poisson.poisson import dirichlet


def test_decay() -> None:
    """omega = 2 sin x sin y decays by exp(-2 nu t), to 1e-4, under exchange of fourth order.

    h = 2 pi/64, eps = 1.5 h: the kernel's error is of order (k eps)^4 = 5e-4 of the rate, times 2 nu t = 0.2.
    RK2 errs by (2 nu dt)^2/6 per unit of 2 nu t: 2e-5 with 20 steps. The lattice ends at 1.5 pi; that spreads
    inward by a few sqrt(4 nu t) = 0.63, and exp(-((1.5 pi - 0.5 pi)/0.63)^2) = 2e-11 of it reach |x| < pi/2.
    """
    h, viscosity = 2 * math.pi / 64, 0.1
    axis = h * (np.arange(-48, 48) + 0.5)
    plane = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    x = np.concatenate([plane, np.zeros((len(plane), 1))], axis=1)
    omega = 2 * np.sin(x[:, 0]) * np.sin(x[:, 1])
    alpha = np.zeros_like(x)
    alpha[:, 2] = omega * h**2
    world = ef.World(dt=0.05, integrator="rk2", precision="double", dimension=2)
    world.spawn(
        "vortices",
        ef.Position(x),
        ef.Strength(alpha),
        ef.CoreRadius(np.full(len(x), 1.5 * h)),
        ef.Volume(np.full(len(x), h**2)),
    )
    world.set_fluid(viscosity=viscosity)
    world.add_system(ef.DiffusionSystem(order=4))
    world.add_system(ef.AdvectionSystem())
    world.step(20)
    inside = np.abs(x[:, :2]).max(axis=1) < math.pi / 2
    found = world["vortices"][ef.Strength].alpha[inside, 2] / h**2
    exact = omega[inside] * math.exp(-2 * viscosity * world.time)
    assert np.linalg.norm(found - exact) < 1e-4 * np.linalg.norm(exact)


@pytest.mark.parametrize(("cells", "gate"), [(64, 5e-4), (144, 1e-4)])
def test_velocity_from_vorticity(cells: int, gate: float) -> None:
    """Poisson's inverse of omega = 2 sin x sin y on [0, pi]^2 is A = sin x sin y, to h^2/12 of itself.

    5-point differences have the symbol -k^2 (1 - (k h)^2/12) per axis: 2e-4 and 4e-5. A vanishes on the
    faces, so walls are exact; the layer has no extent in z. u = curl A by fourth-order differences.
    """
    axis = np.linspace(0.0, math.pi, cells + 1)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    omega = np.zeros((cells + 1, cells + 1, 1, 3))
    omega[..., 0, 2] = 2 * np.sin(x) * np.sin(y)
    spacing = np.array((math.pi / cells, math.pi / cells, 0.0))
    potential = dirichlet(omega, spacing, tolerance=1e-8)
    exact = np.sin(x) * np.sin(y)
    # The error of the second difference itself: (h^2/12) A, to relative (k h)^2.
    error = potential[..., 0, 2] - exact
    assert np.abs(error).max() == pytest.approx(spacing[0] ** 2 / 12, rel=0.01)
    assert np.linalg.norm(error) < gate * np.linalg.norm(exact)
    u = curl(potential, spacing, order=4)[:, :, 0]
    flow = np.stack([np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y), np.zeros_like(x)], axis=-1)
    assert np.linalg.norm((u - flow)[2:-2, 2:-2]) < gate * np.linalg.norm(flow)
