"""Heavy fluid runs along the floor of a long tank whose gate is gone, light fluid the other way.

Validation case 122.
"""

from __future__ import annotations

import numpy as np
import pytest

import ecs_fluid as ef

LENGTH, DEPTH, REDUCED_GRAVITY = 2.4, 0.6, 9.81 * 0.04


def noses(world: ef.World) -> list[float]:
    """How far from the gate the heavy fluid has come along the floor, and the light one under the lid, m."""
    x, heavy = world["water"][ef.Position].x, world["water"][ef.Density].rho > 1000.0
    low, high = heavy & (x[:, 2] < -DEPTH / 4), ~heavy & (x[:, 2] > DEPTH / 4)
    return [float(x[low, 0].max()), -float(x[high, 0].min())]


def fronts(layers: int, steps: int = 2, end: float = 0.9) -> tuple[float, float]:
    """Speeds of the heavy and the light front over sqrt(g' H), as both go from H/2 to `end` of the way.

    The exchange that loses no energy has 1/2 (Benjamin, J. Fluid Mech. 31 (1968)): in a second the length U
    on either side of the gate comes to be half heavy, half light, and the weight that lay at 3/4 of the depth
    on the left lies at 1/4 on the right, which sets free drho g H^2/4 a length. Both halves move at U, with
    rho U^2 H/2 a length, on the length 2 U: U^2 = g' H/4. Mixing and billows take their part of it. Of each
    frame, 0.04 s, there are so many `steps`: with 8 layers both speeds are 0.4368 with two and with one,
    and 0.4375 to 0.7 of the way.
    """
    h = DEPTH / layers
    water = f"water.spacing={h}", f"water.density=1000 - 20*tanh(x/{h})"
    world = ef.load("lock_exchange", *water, f"world.steps_per_frame={steps}")
    seen = [[0.0, 0.0, 0.0]]
    while max(seen[-1][1:]) < end * LENGTH / 2 and world.time < 6.0:
        world.step(steps)
        seen.append([world.time, *noses(world)])
    t, *places = np.array(seen).T
    chosen = np.minimum(*places) > DEPTH / 2
    speeds = [np.polyfit(t[chosen], place[chosen], 1)[0] for place in places]
    return tuple(float(speed) / np.sqrt(REDUCED_GRAVITY * DEPTH) for speed in speeds)  # type: ignore[return-value]


def test_fronts_of_a_lock_exchange() -> None:
    """Case 122: both fronts go at the same speed, below the one that loses no energy."""
    heavy, light = fronts(8, steps=1, end=0.7)
    assert 0.42 < heavy < 0.45
    assert heavy == pytest.approx(light, rel=0.01)


@pytest.mark.nightly
def test_fronts_converge_to_the_exchange_that_loses_no_energy() -> None:
    """Case 122: faster with each finer spacing, and 1/2 at spacing 0 by a line through the speeds."""
    layers = np.array([6, 8, 12, 16])
    speeds = [fronts(number)[0] for number in layers.tolist()]
    assert (np.diff(speeds) > 0.0).all() and speeds[-1] < 0.5
    assert np.polyfit(1.0 / layers, speeds, 1)[1] == pytest.approx(0.5, abs=0.015)
