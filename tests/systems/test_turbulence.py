"""Turbulence noise: strength, divergence, spectrum, repeatability."""

from __future__ import annotations

import numpy as np
import pytest

import ecs_fluid as ef


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


def test_seed_and_time_decide() -> None:
    x = np.random.default_rng(3).uniform(-3, 3, (50, 3))
    np.testing.assert_array_equal(wind(x), wind(x))
    assert np.abs(wind(x) - wind(x, seed=2)).max() > 0.1
    near, far = (np.abs(wind(x, tick=tick) - wind(x)).max() for tick in (1, 50))
    assert 0 < near < 0.5 * far
