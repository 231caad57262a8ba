"""Turbulence noise: strength, divergence, spectrum, repeatability."""

from __future__ import annotations

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.kernels.bodies.rotation import matrix_of, quaternion_of


def wind(x: np.ndarray, seed: int = 1, tick: int = 0, **choices: float) -> np.ndarray:
    world = ef.World(dt=0.1, precision="double", seed=seed)
    world.spawn("dust", ef.Position(x))
    world.add_system(ef.TurbulenceSystem(**{"speed": 0.5, "scale": 2.0, **choices}))
    world.tick = tick
    world.evaluate()
    return world["dust"][ef.Velocity].u


def test_root_mean_square_and_mean() -> None:
    """Over many wavelengths each wave has the mean square a^2/2: rms = speed; 20,000 points scatter by 2
    %."""
    u = wind(np.random.default_rng(2).uniform(-500, 500, (20_000, 3)))
    assert np.sqrt((u**2).sum(axis=1).mean()) == pytest.approx(0.5, rel=0.03)
    assert np.abs(u.mean(axis=0)).max() < 0.02


def test_no_divergence() -> None:
    """Centred differences of step 1e-4 m: rounding 1e-12, truncation (k step)^2 / 6 of |grad u| = 1e-6."""
    x, step = np.random.default_rng(3).uniform(-3, 3, (50, 3)), 1e-4
    parts = [
        (wind(x + step * e) - wind(x - step * e))[:, axis] / (2 * step) for axis, e in enumerate(np.eye(3))
    ]
    slope = np.abs(parts[0]).max()
    assert slope > 0.1
    assert np.abs(sum(parts)).max() < 1e-6 * slope


def test_no_wind_blows_through_mirrors() -> None:
    """In the floor and at an edge of a turned room there is no component across, to rounding.

    Along the floor image and wind agree, 2 u / sqrt(2); along the edge all four terms, 4 u / 2. Far away the
    root mean square is that of the free wind: 20,000 points scatter by 2 %. The sum is free of divergence.
    """
    turn = (0.3, -0.4, 0.2)
    room = {
        "kind": "container", "name": "room", "shape": {"shape": "box", "size": [2e3, 2e3, 2e3]},
        "rotation": turn,
    }  # fmt: skip
    axes = matrix_of(quaternion_of(np.array(turn)))

    def mirrored(y: np.ndarray, *sides: str) -> np.ndarray:
        """The wind at places in the axes of the room, in these axes."""
        mirrors = [{"body": "room", "side": side} for side in sides]
        world = ef.load({
            "world": {"dt": 0.1, "precision": "double"}, "fluid": {"velocity": {"mirrors": mirrors}},
            "entity": [room, {"kind": "tracers", "name": "dust", "points": (y @ axes.T).tolist()}],
            "system": [{"kind": "turbulence", "speed": 0.5, "scale": 2.0}],
        })  # fmt: skip
        world.evaluate()
        return np.asarray(world["dust"][ef.Velocity].u @ axes)

    y = np.random.default_rng(4).uniform(-900, 900, (20_000, 3))
    far = mirrored(y, "-z")
    assert np.sqrt((far**2).sum(axis=1).mean()) == pytest.approx(0.5, rel=0.03)
    y[:, 2] = -1000.0
    np.testing.assert_allclose(mirrored(y, "-z"), mirrored(y) * (2**0.5, 2**0.5, 0.0), rtol=0, atol=1e-9)
    y = y[:50]
    y[:, 0] = -1000.0
    np.testing.assert_allclose(mirrored(y, "-z", "-x"), mirrored(y) * (0.0, 2.0, 0.0), rtol=0, atol=1e-9)
    y, step = y + np.random.default_rng(5).uniform(0.1, 1.0, y.shape), 1e-4
    parts = [
        (mirrored(y + step * e, "-z", "-x") - mirrored(y - step * e, "-z", "-x"))[:, axis] / (2 * step)
        for axis, e in enumerate(np.eye(3))
    ]
    assert np.abs(sum(parts)).max() < 1e-4 * np.abs(parts[0]).max()


def test_bodies_that_the_wind_blows_through_are_told() -> None:
    """Not those that mirror, and none without a wind."""
    ball = {"kind": "body", "name": "ball", "shape": {"shape": "ball", "radius": 0.1}, "motion": "fixed"}
    floor = ball | {"name": "floor", "shape": {"shape": "box", "size": [1, 1, 1]}, "center": [0, 0, -1]}
    dust = {"kind": "tracers", "name": "dust", "points": [[0.5, 0.0, 0.0]]}
    mirrors = {"velocity": {"mirrors": [{"body": "floor", "side": "+z"}]}}
    for speed, told in ((0.1, ["its wind blows through 'ball': bodies only stop particles"]), (0.0, [])):
        wind = [{"kind": "turbulence", "speed": speed}]
        world = ef.load({"fluid": mirrors, "entity": [dust, ball, floor], "system": wind})
        found = [text for text in world.lint() if "TurbulenceSystem" in text]
        assert len(found) == len(told) and all(part in text for part, text in zip(told, found, strict=True))


def test_a_flake_goes_with_the_wind() -> None:
    """Its drag takes 2/9 rho_b R^2 / (rho nu) = 1.2e-6 s, so it goes where a tracer goes; nothing is told.

    Gusts that blow on other entities leave it where it is.
    """
    flake = {
        "kind": "body", "name": "flake", "shape": {"shape": "ball", "radius": 1e-5}, "density": 100.0,
        "center": [0.3, 0.1, -0.2],
    }  # fmt: skip
    for on, moved in ([], True), (["dust"], False):
        world = ef.load({
            "world": {"dt": 0.02, "precision": "double"},
            "fluid": {"gravity": [0.0, 0.0, 0.0], "viscosity": 1.5e-5},
            "entity": [flake, {"kind": "tracers", "name": "dust", "points": [[0.3001, 0.1, -0.2]]}],
            "system": [
                {"kind": "turbulence", "speed": 1.0, "scale": 10.0, "on": on},
                {"kind": "drag", "law": "stokes"},
            ],
        })  # fmt: skip
        assert not world.lint()
        world.step()  # in the first tick it gets from rest to the velocity of the wind
        dust, ball = world["dust"][ef.Position].x.copy(), world["flake"][ef.Pose].x.copy()
        world.step(20)
        way, own = world["dust"][ef.Position].x - dust, world["flake"][ef.Pose].x - ball
        assert np.linalg.norm(way) > 0.15
        np.testing.assert_allclose(own, way if moved else 0 * way, rtol=0, atol=3e-3)


def test_seed_and_time_decide() -> None:
    x = np.random.default_rng(3).uniform(-3, 3, (50, 3))
    np.testing.assert_array_equal(wind(x), wind(x))
    assert np.abs(wind(x) - wind(x, seed=2)).max() > 0.1
    near, far = (np.abs(wind(x, tick=tick) - wind(x)).max() for tick in (1, 50))
    assert 0 < near < 0.5 * far
