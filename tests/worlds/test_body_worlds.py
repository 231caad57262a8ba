"""The shipped worlds with bodies do what their headers say."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.worlds.world_recipe import read
from tests.worlds.test_promises import lean as as_promised

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")


def lean(name: str, *without: str, **changes: Any) -> ef.World:
    """The world in double precision without tracers, these entities and systems of these kinds."""
    return as_promised(name, *without, precision="double", **changes)


def test_bubbles_set_off_at_twice_gravity() -> None:
    """(m_f - m)/(m + m_f/2) g = 1.99 g with air of 1.2 kg/m^3 in water; in 10 ms drag takes a few percent."""
    world = lean("bubbles")
    world.step()
    v = world["bubbles"][ef.RigidMotion].v[:, 2]
    free = v > 0
    assert free.mean() > 0.9
    assert np.median(v) == pytest.approx(2 * 9.81 * (1 - 1.5 * 1.2e-3) * 0.01, rel=0.1)


@pytest.mark.nightly
def test_balloon_sinks_warms_and_rises() -> None:
    """C7: too heavy at 300 K, the balloon starts downwards; the fire warms it, and it ends up higher.

    On the way it is as fast as lift and drag at its temperatures say, (m + m_a) dv/dt = g (rho V - m) - 1/2
    rho 0.44 pi R^2 |v| v with V = V_0 (1 + (T - 300 K) / 300 K) and m_a = rho V / 2. While it was dragged by
    the fluid at its centre, it was 0.23 m/s off.
    """
    world = lean("fire_and_balloon")
    balloon = world["balloon"]
    start, volume, v, off = float(balloon[ef.Pose].x[0, 2]), 4 / 3 * np.pi * 0.3**3, 0.0, list[float]()
    for tick in range(300):
        displaced = 1.2 * volume * (1 + (float(balloon[ef.BodyHeat].T[0]) - 300) / 300)
        force = 9.81 * (displaced - 1.23 * volume) - 0.5 * 1.2 * 0.44 * np.pi * 0.3**2 * abs(v) * v
        v += 0.02 * force / (1.23 * volume + 0.5 * displaced)
        world.step()
        off.append(abs(float(balloon[ef.RigidMotion].v[0, 2]) - v))
        assert tick != 20 or balloon[ef.Pose].x[0, 2] < start
    assert max(off) < 0.02
    assert balloon[ef.BodyHeat].T[0] > 330
    assert balloon[ef.RigidMotion].v[0, 2] > 0.5 and balloon[ef.Pose].x[0, 2] > start
    assert np.linalg.norm(balloon[ef.RigidMotion].angular_velocity[0]) < 1.0  # 48 rad/s once, in gas of 2 m/s


def test_drag_by_the_fluid_in_a_body_is_warned_of() -> None:
    """Where a BoundarySystem makes it; not in worlds that say `flow = false`."""
    told = "dragged along by the fluid at their centres"
    for setting, warned in (("system.drag.flow=true", True), ("system.drag.flow=false", False)):
        world = read("fire_and_balloon", (setting,)).build()
        assert any(told in text for text in world.lint()) == warned


def test_drag_that_feels_no_wind_is_warned_of() -> None:
    """A light ball in a wind of 5 m/s goes with it, or stays where it is."""
    ball = {"kind": "body", "name": "ball", "shape": {"shape": "ball", "radius": 0.1}, "mass": 0.01}
    for flow in (True, False):
        tables = {
            "world": {"dt": 0.05},
            "fluid": {"gravity": [0.0, 0.0, 0.0], "viscosity": 1.5e-5},
            "entity": [ball],
            "system": [{"kind": "wind", "velocity": [5.0, 0.0, 0.0]}, {"kind": "drag", "flow": flow}],
        }
        world = ef.load(tables)
        assert any("no wind acts on bodies" in text for text in world.lint()) != flow
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ef.FluidWarning)
            world.step(20)
        v = float(world["ball"][ef.RigidMotion].v[0, 0])
        assert v > 1.0 if flow else v == 0.0


def test_fluid_in_the_tanks_starts_at_rest() -> None:
    """K2: torques at walls alone would be 5e-4 m^3/s^2 and more (test_walls)."""
    for name in ("sloshing_container", "rotating_container"):
        world = lean(name)
        world.evaluate()
        assert np.abs(world["water"][ef.StrengthRate].dalpha).max() < 1e-12


@pytest.mark.nightly
def test_bubbles_gather_under_the_lid() -> None:
    """A thousand balls 400 times lighter than the water they move pack below the lid and stay in the tank.

    Nothing gives them energy but buoyancy, whose terminal velocity is 0.844 m/s (Schiller and Naumann); they
    end at rest with their centres a radius, 0.012 m, from the walls or farther in. Where overlap healed in
    parts of a substep, however short, they were thrown about at any speed.
    """
    world = ef.load("bubbles")
    fastest = 0.0
    for _ in range(30):
        world.step(10)
        fastest = max(fastest, float(np.linalg.norm(world["bubbles"][ef.RigidMotion].v, axis=1).max()))
    x = world["bubbles"][ef.Pose].x
    assert fastest < 1.1 * 0.844
    assert np.abs(x[:, :2]).max() < 0.25 - 0.012 + 1e-4 and x[:, 2].max() < 1.0 - 0.012 + 1e-4
    assert np.median(x[:, 2]) > 0.85
