"""VelocitySystem without velocity gradients: the same velocities, and no silent loss of stretching."""

from __future__ import annotations

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import FluidError, ScheduleError
from ecs_fluid.worlds import VortexRing


def ring(gradient: bool) -> ef.World:
    world = ef.World(dt=0.01, precision="double")
    VortexRing(name="ring", radius=1.0, core=0.2, circulation=1.0, spacing=0.1).build(world)
    world.add_system(ef.VelocitySystem(gradient=gradient))
    world.add_system(ef.AdvectionSystem())
    return world


def test_velocities_are_those_of_the_one_sided_sum() -> None:
    """Every pair met once or twice: 30 terms of one sign per component leave less than 1e-13 of round-off."""
    with_gradient, without = ring(True), ring(False)
    for world in (with_gradient, without):
        for _ in range(3):
            world.step()
    x, y = (world["ring"][ef.Position].x for world in (with_gradient, without))
    assert np.abs(x - y).max() < 1e-13
    assert ef.VelocityGradient not in without["ring"]
    assert without.diagnostics()["dt_grad_u"] == pytest.approx(with_gradient.diagnostics()["dt_grad_u"])


def test_core_radii_may_differ() -> None:
    world = ring(False)
    world["ring"][ef.CoreRadius].sigma[0] *= 2.0
    world.step()
    assert np.isfinite(world["ring"][ef.Velocity].u).all()


def test_stretching_without_gradients_is_refused() -> None:
    world = ring(False)
    world.add_system(ef.StretchSystem())
    with pytest.raises(ScheduleError, match="StretchSystem reads VelocityGradient"):
        world.step()


def test_gradients_cannot_be_left_out_later() -> None:
    world = ring(True)
    world.step()
    with pytest.raises(FluidError, match="gradient cannot be changed"):
        world.system(ef.VelocitySystem).gradient = False
    world.step()  # nothing has changed
