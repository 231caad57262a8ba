"""Parameters of a VelocitySystem that are set between two ticks: the solver in use has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef


def velocities(made_with: dict[str, Any], set_later: dict[str, Any], precision: str = "single") -> bytes:
    draw = np.random.default_rng(1)
    world = ef.World(dt=0.01, precision=precision)
    world.spawn(
        "vortons",
        ef.Position(draw.random((300, 3))),
        ef.Strength(draw.standard_normal((300, 3))),
        ef.CoreRadius(np.full(300, 0.1)),
    )
    velocity = world.add_system(ef.VelocitySystem(**made_with))
    world.evaluate()
    for name, value in set_later.items():
        setattr(velocity, name, value)
    world.evaluate()
    return world["vortons"][ef.Velocity].u.tobytes()


@pytest.mark.parametrize(
    ("precision", "made_with", "set_later"),
    [
        ("single", {"solver": "tree", "angle": 1.0}, {"angle": 0.3}),
        ("double", {"solver": "direct"}, {"kernel": "gaussian"}),  # whose sums other tests need as well
        ("single", {"solver": "direct"}, {"solver": "poisson"}),
        ("single", {"solver": "poisson"}, {"boundary": "walls"}),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_they_count_as_if_they_had_been_there_from_the_start(
    precision: str, made_with: dict[str, Any], set_later: dict[str, Any]
) -> None:
    found = velocities(made_with, set_later, precision)
    assert found == velocities({**made_with, **set_later}, {}, precision)
    assert found != velocities(made_with, {}, precision)


@pytest.mark.parametrize("solver", ["poisson", "hybrid"])
def test_the_field_is_empty_once_the_last_vorton_is_gone(solver: str) -> None:
    draw = np.random.default_rng(1)
    world = ef.World(dt=0.01)
    x, alpha = draw.random((300, 3)), draw.standard_normal((300, 3))
    world.spawn("vortons", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(np.full(300, 0.1)))
    world.spawn("tracers", ef.Position(draw.random((5, 3))))
    world.add_system(ef.VelocitySystem(solver=solver, tracers="solver"))
    world.evaluate()
    field = world.fluid[ef.VelocityField]
    assert np.abs(field.u).max() > 0.1
    world["vortons"].kill(np.arange(300))
    world.evaluate()
    assert field.u.size < 100 and not field.u.any() and not world["tracers"][ef.Velocity].u.any()
