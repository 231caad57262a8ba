"""Worlds of surfaces for the tests: flows in closed form, lattices of heavy particles; measures of meshes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

import ecs_fluid as ef

Array = np.ndarray


class GivenFlow(ef.System):
    """A steady flow in closed form, where a VelocitySystem would be: nothing here is moved by vortons."""

    phase = "rates"
    flow: Literal["turn", "part", "close", "still"] = "turn"

    def process(self, dt: float) -> None:
        """Nothing: only the surface asks."""

    def velocity_at(self, x: Array, solver: str | None = None) -> Array:
        """turn: one turn about z per second; part: strain (10, -5, -5) / s up to |x| = 0.1 m and 1 m/s
        away from there; close: towards x = 0, slowing down within 0.1 m."""
        u = np.zeros_like(x)
        if self.flow == "turn":
            u[:, 0], u[:, 1] = -2 * np.pi * x[:, 1], 2 * np.pi * x[:, 0]
        elif self.flow == "part":
            u[:, 0] = np.clip(x[:, 0] / 0.1, -1, 1)
            u[:, 1:] = np.where(np.abs(x[:, :1]) < 0.1, -5.0 * x[:, 1:], 0.0)
        elif self.flow == "close":
            u[:, 0] = -np.clip(x[:, 0] / 0.1, -1, 1)
        return u


def sampled(
    shape: Callable[[Array], Array], h: float, low: tuple[float, ...], high: tuple[float, ...]
) -> ef.SignedDistance:
    """A start for a carried surface; an axis on which low and high agree is flat."""
    axes = [a + h * np.arange(round((b - a) / h) + 1) for a, b in zip(low, high, strict=True)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    return ef.SignedDistance(origin=np.array(low, float), spacing=np.full(3, h), phi=shape(x))


def carried_world(
    start: ef.SignedDistance, flow: str, dt: float = 0.025, precision: str = "double", **surface: Any
) -> ef.World:
    """A world in which a given flow carries the surface."""
    world = ef.World(dt=dt, precision=precision)
    world.attach("fluid", start)
    world.add_system(GivenFlow(flow=flow))
    world.add_system(ef.SurfaceSystem(of="flow", carried=True, **surface))
    return world


def heavy_particles(
    where: Callable[[Array], Array], spacing: float = 0.1, flat: bool = False, **surface: Any
) -> ef.World:
    """Particles of 1000 kg/m^3 on a lattice wherever `where` (x (n, 3)) is negative, in air of 1.2."""
    axis = np.arange(-1.0, 1.0 + spacing / 2, spacing)
    axes = (axis, axis, np.zeros(1)) if flat else (axis, axis, axis)
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    x = x[where(x) < 0]
    world = ef.World(dt=0.01, precision="double", debug=True, dimension=2 if flat else 3)
    if len(x):
        world.spawn(
            "water",
            ef.Position(x),
            ef.Volume(np.full(len(x), spacing ** (2 if flat else 3))),
            ef.Density(np.full(len(x), 1000.0)),
            ef.Strength(np.tile([0.0, 0.0, 1e-3], (len(x), 1))),
            ef.CoreRadius(np.full(len(x), 2 * spacing)),
        )
        world.add_system(ef.VelocitySystem())
    world.add_system(ef.SurfaceSystem(**surface))
    return world


def cube(n: int) -> tuple[Array, Array]:
    x = np.linspace(-1.0, 1.0, n)
    return np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1), np.full(3, 2.0 / (n - 1))


def topology(x: Array, faces: Array) -> int:
    """Euler number of a mesh, after checking that it is closed, oriented and without doubles."""
    edges = np.concatenate((faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]))
    forth, back = edges[:, 0] * len(x) + edges[:, 1], edges[:, 1] * len(x) + edges[:, 0]
    # Every edge once in each direction: two triangles that agree on which side is out.
    assert len(np.unique(forth)) == len(forth)
    assert (np.sort(forth) == np.sort(back)).all()
    assert len(np.unique(x, axis=0)) == len(x)
    assert (np.unique(faces) == np.arange(len(x))).all()
    return len(x) - len(edges) // 2 + len(faces)


def mesh_volume(x: Array, faces: Array) -> float:
    a, b, c = (x[faces[:, k]].astype(np.float64) for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)


def mesh_area(x: Array, faces: Array) -> float:
    a, b, c = (x[faces[:, k]].astype(np.float64) for k in range(3))
    return float(0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum())
