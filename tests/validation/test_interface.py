"""A vortex ring that meets an interface between two densities, beside finite differences. Case 149.

Boussinesq, so one number tells how it goes: g A R^3/Gamma^2, 0.0037 (it passes), 0.025 (it stops above the
interface) and 0.074 (it turns back) for the densities 1 + A and 1 - A here.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from flows import lattice, vortons
from layered_flow import Array, G, LayeredFlow, ring_in_layers

import ecs_fluid as ef

RADIUS, CORE, DYE, VISCOSITY = 0.5, 0.18, 0.15, 2e-3
"""Ring of 1 m^2/s: radius, and a and b of its exp(-s^2/a^2) and its dye's exp(-s^2/b^2), m; m^2/s."""

HEIGHT, DEPTH, SIDE = 0.6, 0.125, 1.6
"""Density 1 - A tanh((z - HEIGHT)/DEPTH); vortons to begin with up to SIDE from the axis, m."""

TIMES = 0.8, 1.6, 2.4, 3.2
"""s."""


def reference(atwood: float, h: float) -> LayeredFlow:
    """Cells of h m; walls 4.5 m from the axis, which take up to 0.6 % of the height."""

    def ambient(z: Array) -> Array:
        return G * atwood * np.tanh((z - HEIGHT) / DEPTH)

    return ring_in_layers(h, CORE, ambient, VISCOSITY, lambda s: np.exp(-((s / DYE) ** 2)), room=1.5)


def at_interface(atwood: float, h: float) -> ef.World:
    """Vortons h m apart in the ring and in the interface, with cores of half of that on a grid as fine."""

    def density(z: Array) -> Array:
        return 1 - atwood * np.tanh((z - HEIGHT) / DEPTH)

    z = HEIGHT + DEPTH * np.linspace(-6, 6, 97)
    world = ef.load(
        {
            "world": {"dt": 0.04, "integrator": "rk2", "precision": "double"},
            "fluid": {
                "density": 1.0, "viscosity": VISCOSITY, "velocity": {"solver": "poisson"},
                "density_profile": np.stack([z, density(z)], axis=1).tolist(),
                "partition": {"cells_per_core": 0.5, "padding": 0.0},
                "diagnostics": {"every": 1000},
            },
            "entity": [
                {
                    "kind": "tracers", "name": "dye", "torus": {"radius": RADIUS, "core": 0.34},
                    "cell": 0.06, "per_cell": 8,
                }
            ],
            "system": [
                {"kind": "baroclinic", "reach": 4.5},
                {"kind": "remesh", "every": 3, "spacing": h, "overlap": 0.5, "fill": True},
            ],
        }
    )  # fmt: skip
    x = lattice((-SIDE, -SIDE, -0.6), (SIDE, SIDE, 1.2), h)
    r = np.hypot(x[:, 0], x[:, 1])
    omega = np.exp(-(((r - RADIUS) ** 2 + x[:, 2] ** 2) / CORE**2)) / (math.pi * CORE**2)
    kept = (omega > 1e-4 * omega.max()) | (np.abs(x[:, 2] - HEIGHT) < 4 * DEPTH)
    x, alpha = x[kept], (omega * h**3 / np.maximum(r, 1e-9))[kept]
    world.spawn(
        "ring", ef.Position(x), ef.Density(density(x[:, 2])),
        ef.Strength(np.stack([-x[:, 1] * alpha, x[:, 0] * alpha, 0 * alpha], axis=1)),
        ef.CoreRadius(np.full(len(x), h / 2)), ef.Volume(np.full(len(x), h**3)),
    )  # fmt: skip
    return world


def circulations(world: ef.World, h: float) -> tuple[float, float]:
    """Circulation of the vortons that turn one way and the other, sum alpha_phi/(2 pi r), m^2/s.

    A vorton within half a spacing of the axis counts as if it were that far off, else one that stands on the
    axis but for rounding, whose strength points anywhere, would bring any circulation.
    """
    x, alpha = vortons(world)
    part = (x[:, 0] * alpha[:, 1] - x[:, 1] * alpha[:, 0]) / np.maximum(
        (x[:, :2] ** 2).sum(axis=1), h * h / 4
    )
    return float(part[part > 0].sum() / (2 * math.pi)), float(part[part < 0].sum() / (2 * math.pi))


def by_vortons(atwood: float, h: float) -> Array:
    """Mean height of the dye, m, and circulations of both signs, m^2/s, (times, 3)."""
    world, rows = at_interface(atwood, h), []
    start = world["dye"][ef.Position].x.copy()
    away = np.hypot(np.hypot(start[:, 0], start[:, 1]) - RADIUS, start[:, 2])
    dye = np.exp(-((away / DYE) ** 2))
    for seconds in TIMES:
        world.step(round((seconds - world.time) / world.dt))
        height = float(np.average(world["dye"][ef.Position].x[:, 2], weights=dye))
        rows.append([height, *circulations(world, h)])
    return np.array(rows)


def by_differences(atwood: float, h: float) -> Array:
    """The same of the reference."""
    flow, rows = reference(atwood, h), []
    for seconds in TIMES:
        flow.march(seconds)
        rows.append([flow.height, *flow.circulations])
    return np.array(rows)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize("atwood", [0.003, 0.02, 0.06])
def test_a_ring_at_an_interface_moves_as_by_finite_differences(atwood: float) -> None:
    """Case 149: height of the dye over the largest, and both circulations over the ring's, 0.8 to 3.2 s.

    The reference errs by some 0.01, by its cells and walls. Without an interface the ring itself is 1.2 % too
    fast with 2 spacings to the core; not remeshed, circulations of both signs err by a quarter.
    """
    true = by_differences(atwood, 0.02)
    scale = np.array([true[:, 0].max(), 1.0, 1.0])
    for h, gate in ((0.09, 0.07), (0.07, 0.05)):
        found = by_vortons(atwood, h)
        error = np.abs((found - true) / scale).max(axis=0)
        assert error.max() < gate, (h, error)
