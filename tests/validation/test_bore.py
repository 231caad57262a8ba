"""A wall that is pushed into still liquid drives a bore ahead of it: validation case 126."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import ecs_fluid as ef

G = 9.81


def jump(depth: float, speed: float) -> tuple[float, float]:
    """Depth behind a bore, m, and its speed, m/s, that a wall of this speed drives into still liquid.

    What the bore passes moves as the wall does. Per width and density mass is h1 c = h2 (c - V), and the
    momentum h1 c V that it gets a second is the difference of the hydrostatic forces, g (h2^2 - h1^2)/2. So
    V = (h2 - h1) sqrt(g (h1 + h2)/(2 h1 h2)) and c = V h2/(h2 - h1), whatever the front looks like and
    dissipates (Stoker, Water Waves, 10.7).
    """

    def missing(h: float) -> float:
        return speed - (h - depth) * math.sqrt(G * (depth + h) / (2 * depth * h))

    behind = brentq(missing, depth * (1 + 1e-9), 20 * depth)
    return behind, speed * behind / (behind - depth)


def bore(layers: int, speed: float, time: float = 1.0, across: int = 5) -> tuple[float, float]:
    """Speed and depth of the bore over those of `jump`, less 1, in liquid 0.2 m deep, after `time` s.

    The tank is so many spacings `across`, on which the bore does not depend.

    The speed is that by which momentum grows, M = rho h1 c V t a metre across. The wall at the other end
    moves away, and what it lets fall reaches no farther than sqrt(g h1) t; liquid there is left out. The
    depth is the mean over the middle half of what moves.
    """
    h1, length, h = 0.2, 4.0, 0.2 / layers
    width, dt = across * h, 1 / 240
    tank = {"shape": "box", "size": [length, width, 1.0]}
    world = ef.load(
        {
            "world": {"dt": dt, "duration": 2 * time, "integrator": "euler"},
            "entity": [
                {"kind": "container", "name": "tank", "shape": tank, "velocity": [speed, 0, 0]},
                {
                    "kind": "liquid", "name": "water", "fills": "tank", "level": h1 - 0.5, "spacing": h,
                    "hydrostatic": True,
                },
            ],
        }
    )  # fmt: skip
    behind, wanted = jump(h1, speed)
    world.step(round(time / dt))
    water = world["water"]
    x = water[ef.Position].x[:, 0] + 0.5 * length
    part = water[ef.Liquid].volume / width
    near = x < length - 1.1 * math.sqrt(G * h1) * time
    momentum = (water[ef.InertialVelocity].v[near, 0] * part[near]).sum()
    moved = (wanted - speed) * time
    middle = np.abs(x - speed * time - 0.5 * moved) < 0.25 * moved
    depth = part[middle].sum() / (0.5 * moved)
    return momentum / (h1 * speed * time) / wanted - 1, depth / behind - 1


def test_a_bore_is_as_fast_and_deep_as_mass_and_momentum_have_it() -> None:
    """Case 126 at eight layers, V = 0.5 sqrt(g h1): speed to 2 %, depth to 5 %."""
    speed, depth = bore(8, 0.7, across=3)
    print(speed, depth)
    assert abs(speed) < 0.02 and abs(depth) < 0.05


@pytest.mark.nightly
def test_a_strong_bore() -> None:
    """Case 126 where the front breaks, V = 0.86 sqrt(g h1), at 8 and 12 layers: speed to 2 %.

    The roller heaves, and the depth of a moment with it: it is 5 % too much at 8 layers.
    """
    for layers in (8, 12):
        speed, depth = bore(layers, 1.2)
        print(layers, speed, depth)
        assert abs(speed) < 0.02 and abs(depth) < 0.08
