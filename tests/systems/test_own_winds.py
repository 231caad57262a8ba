"""Winds of users' systems (`add_wind`) act on bodies, on what these shed, and on surfaces."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import expm

import ecs_fluid as ef
from ecs_fluid.kernels.surface import shapes

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")


class Linear(ef.System):
    """u = slope x + growth t, on what moves and for all that asks for the flow."""

    reads = (ef.Position,)
    adds = (ef.Velocity,)
    phase = "rates"
    dimensions = (2, 3)
    slope: tuple[tuple[float, float, float], ...] = ((0.0,) * 3,) * 3
    growth: tuple[float, float, float] = (0.0,) * 3

    def add_wind(self, x: NDArray, u: NDArray, du: NDArray | None) -> None:
        u += x @ np.transpose(self.slope) + self.world.time * np.array(self.growth)
        if du is not None:
            du += np.array(self.slope)

    def process(self, dt: float) -> None:
        for position, velocity in self.query(ef.Position, ef.Velocity):
            self.add_wind(position.x, velocity.u, None)


def spiral(dt: float) -> tuple[float, float]:
    """Error of a ball's place over its distance from the axis, and that distance, after 2 s."""
    turn, radius, rho, nu = 2.0, 0.01, 1000.0, 4e-4
    fluid, drag = rho * 4 / 3 * np.pi * radius**3, 6 * np.pi * rho * nu * radius
    lift = np.pi * rho * radius**3 * turn
    mass = 3.0 * fluid
    world = ef.load({
        "world": {"dt": dt, "integrator": "rk2", "precision": "double"},
        "fluid": {"density": rho, "viscosity": nu, "gravity": [0.0, 0.0, 0.0]},
        "entity": [{
            "kind": "body", "name": "ball", "shape": {"shape": "ball", "radius": radius},
            "center": [0.3, 0.0, 0.0], "velocity": [0.0, 0.66, 0.0],
            "angular_velocity": [0.0, 0.0, turn], "density": 3.0 * rho,
        }],
        "system": [
            {"kind": "buoyancy", "acceleration": True},
            {"kind": "drag", "law": "stokes", "lift": 1.0},
        ],
    })  # fmt: skip
    world.add_system(Linear(slope=((0.0, -turn, 0.0), (turn, 0.0, 0.0), (0.0, 0.0, 0.0))))
    world.step(round(2.0 / dt))
    k = drag - 1j * lift
    rates = [
        [0, 1],
        [(1j * turn * k - 1.5 * fluid * turn**2) / (mass + 0.5 * fluid), -k / (mass + 0.5 * fluid)],
    ]
    z = (expm(2.0 * np.array(rates)) @ [0.3, 0.66j])[0]
    x = world["ball"][ef.Pose].x[0]
    return abs(complex(x[0], x[1]) - z) / abs(z), abs(z)


def test_a_ball_in_fluid_that_turns() -> None:
    """It is thrown out along the exact spiral, to second order.

    With z = x + i y and the fluid's u = i W z, Du/Dt = -W^2 z: (m + m_f/2) z'' = -3/2 m_f W^2 z - (k - i l)
    (z' - i W z), k = 6 pi mu R and l = pi rho R^3 W the lift by the spin W, half of the fluid's vorticity.
    """
    (coarse, way), (fine, _) = spiral(0.08), spiral(0.04)
    assert way > 0.5
    assert fine < 5e-3
    assert coarse / fine == pytest.approx(4.0, abs=0.5)


def shedding(wind: ef.System) -> ef.World:
    """Two ticks of a ball of panels in a wind."""
    world = ef.load({
        "world": {"dt": 1 / 60, "integrator": "rk2", "precision": "double"},
        "fluid": {"gravity": [0.0, 0.0, 0.0], "velocity": {"solver": "direct"}, "stretch": {"rate": 0.5}},
        "entity": [{
            "kind": "body", "name": "ball", "shape": {"shape": "ball", "radius": 0.5}, "motion": "fixed",
            "center": [0.1, 0.0, 0.0],
        }],
        "system": [{"kind": "boundary", "boundary": "panels", "panels_across": 6}],
    })  # fmt: skip
    world.add_system(wind)
    world.step(2)
    return world


def test_panels_meet_a_wind_of_ones_own() -> None:
    """One that grows with time sheds what the shipped wind sheds; strain does not go through the ball.

    Without the sheet u . n of the strain has a root mean square of sqrt(<(n . diag(1, -1, 0) n)^2>) R =
    sqrt(4/15) R = 0.26 m/s, and the wind at the ball's centre adds 0.1/sqrt(3).
    """
    grown = shedding(Linear(growth=(3.0, 0.0, 1.0)))
    keyed = shedding(ef.WindSystem(velocity={"keys": [[0.0, [0.0, 0.0, 0.0]], [1.0, [3.0, 0.0, 1.0]]]}))
    alpha = [world["wake"][ef.Strength].alpha for world in (grown, keyed)]
    assert np.abs(alpha[0]).max() > 1e-4
    np.testing.assert_allclose(*alpha, rtol=0, atol=1e-12)
    strained = shedding(Linear(slope=((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 0.0))))
    n = np.random.default_rng(1).standard_normal((300, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    through = (strained.velocity([0.1, 0.0, 0.0] + 0.5 * n) * n).sum(axis=1)
    assert np.sqrt((through**2).mean()) < 0.02


def test_a_surface_goes_with_a_wind_of_ones_own() -> None:
    """A ball of 4 cells that the wind moves by 0.2 m, with tracers."""
    axis = np.arange(-0.6, 0.601, 0.1)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    world = ef.World(dt=0.05, precision="double")
    world.attach(
        "fluid",
        ef.SignedDistance(
            origin=[-0.6] * 3, spacing=[0.1] * 3, phi=shapes.sphere(points, (0.0, 0.0, 0.0), 0.4)
        ),
    )
    world.spawn("speck", ef.Position(np.zeros((1, 3))))
    world.add_systems([Linear(growth=(10.0, 0.0, 0.0)), ef.AdvectionSystem()])
    world.add_system(ef.SurfaceSystem(of="flow", carried=True))
    world.step(4)
    mesh = world.fluid[ef.SurfaceMesh]
    # At the end of a tick the wind is 10 t: sum over four ticks of 0.05 s, 10 (0.05)^2 (1 + 2 + 3 + 4).
    assert mesh.x[:, 0].mean() == pytest.approx(0.25, abs=5e-3)
    np.testing.assert_allclose(mesh.u, np.tile([2.0, 0.0, 0.0], (len(mesh.x), 1)), atol=1e-12)
