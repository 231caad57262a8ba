"""Whom swift particles meet in a tick: against a double loop over straight paths, and walls by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.kernels.sph.meeting_speeds import meeting_speed, wall_speed
from tests.kernels.sph.liquid_clouds import LAW, cloud


@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.nightly)])
def test_swiftest_meeting_is_that_of_the_double_loop(dtype: type) -> None:
    """A cloud four times as wide as the others, so that most particles meet few; places on the paths at 2,001
    times find all meetings but those that graze R by less than (u T / 4000)^2 / 2 R, none here."""
    x, v, _, _ = cloud(7, dtype)
    x, v, time = 4 * x, 3 * v, 0.05
    swift = np.argsort(np.linalg.norm(v, axis=1))[-20:]
    found = []
    for i in swift:
        r, u = (x[i] - x).astype(np.float64), (v[i] - v).astype(np.float64)
        way = np.linspace(0, time, 2001)[:, None, None]
        met = (np.linalg.norm(r + way * u, axis=2) < LAW.reach).any(axis=0)
        found.append(np.linalg.norm(u[met], axis=1).max())
    for rows in (swift, swift[:1], swift[5:7]):
        expected = max(speed for i, speed in zip(swift, found, strict=True) if i in rows)
        assert meeting_speed(x, v, rows, LAW.reach, time) == pytest.approx(expected, rel=1e-5)
    # Not all meet: for most there is one that they would be past faster.
    assert np.mean(found < np.linalg.norm(v[swift[:, None]] - v, axis=2).max(axis=1)) > 0.5


def test_speed_at_a_wall_counts_where_the_wall_comes_within_reach() -> None:
    """A wall z = -1 that rises by 2 m/s, reach 0.1 m, in 0.1 s. Falling by 3 m/s it closes at 5 m/s, and by
    gravity of 10 m/s^2 goes another 0.05 m: who is 0.64 m away ends at 0.64 - 0.5 - 0.05 = 0.09 < 0.1 m; who
    is 0.66 m away at 0.11, and does not count; along the wall nobody meets it."""
    plane = np.array([[0, 0, -1, 1, 0, 0, 2, 0, 0, 0, 0, 0, -1.0]])
    gravity = np.array([0, 0, -10.0])

    def speed(height: float, *velocity: float) -> float:
        return wall_speed(np.array([[0, 0, height - 1]]), np.array([velocity]), plane, gravity, 0.1, 0.1)

    assert speed(0.64, 0, 0, -3) == pytest.approx(5)
    assert speed(0.66, 0, 0, -3) == 0
    assert speed(0.05, 9, 0, 2) == pytest.approx(0)
    assert speed(0.05, 9, 0, 6) == pytest.approx(4)
    # Turned by 3 rad/s about x, half a metre off in y, the wall rises by 1.5 m/s more.
    plane[0, 7] = 3
    turned = wall_speed(np.array([[0, 0.5, -0.9]]), np.zeros((1, 3)), plane, gravity, 0.2, 0.1)
    assert turned == pytest.approx(3.5)
