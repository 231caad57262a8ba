"""Tracers that read the spline of the velocities linearly, from a grid twice as fine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.systems.velocity.pppm import relative_error
from tests.resuming import resumed
from tests.systems.velocity.test_sampled_error import made
from tests.threads import check_threads

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")


def evaluated(interpolation: Any, **velocity: Any) -> ef.World:
    world = made(cells=velocity.pop("cells", 6000), interpolation=interpolation, **velocity)
    world.evaluate()
    return world


@pytest.mark.parametrize("solver", ["direct", "hybrid"])
def test_vortons_have_the_velocity_and_gradient_of_cubic_reading(solver: str) -> None:
    """Only what needs no gradient is read from the finer grid: tracers come nearer to the cubic so."""
    smooth, fine, linear = (
        evaluated(how, solver=solver, at="grid") for how in ("cubic", "refined", "linear")
    )
    for kind, name in ((ef.Velocity, "u"), (ef.VelocityGradient, "du")):
        assert np.array_equal(getattr(smooth["ring"][kind], name), getattr(fine["ring"][kind], name))
    cubic, refined, linearly = (world["tracers"][ef.Velocity].u for world in (smooth, fine, linear))
    assert 0.0 < relative_error(refined, cubic) < 0.5 * relative_error(linearly, cubic)


def test_the_error_between_points_falls_like_h_squared_and_is_far_below_that_of_linear_reading() -> None:
    """Beside the exact sum, cells halved: 4 times less. With second derivatives a, b, c along the axes linear
    readings err by (a + b + c) h^2 / 12 in the mean and by the root of (a^2 + b^2 + c^2) h^2 / (12 sqrt 5)
    about it; the second is left, of half the width. So they have 4 times the error where a + b + c = 0,
    and at most 4 sqrt(1 + 5 * 3) = 16 times."""
    exact = evaluated("cubic", tracers="solver")["tracers"][ef.Velocity].u
    refined, linear = (
        [
            relative_error(evaluated(how, cells=cells, tracers="grid")["tracers"][ef.Velocity].u, exact)
            for cells in (60_000, 480_000)
        ]
        for how in ("refined", "linear")
    )
    assert refined[0] / refined[1] == pytest.approx(4.0, rel=0.15)
    assert 4.0 < linear[1] / refined[1] < 16.0


def test_a_run_goes_on_bit_for_bit_on_any_number_of_threads(tmp_path: Path) -> None:

    def state() -> str:
        world = made(cells=6000, interpolation="refined", tracers="cells")
        world.step(2)
        return resumed(world, tmp_path, 2).state_hash()

    check_threads(state)
