"""Frames that tests draw: rings whose numbers are known without a simulation."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.viz.columns import Frame

RADIUS = 1.0
TUBE = 0.2


def ring_frame(height: float = 0.0, tracers: int = 4000) -> dict[str, dict[str, np.ndarray]]:
    """A ring of 60 vortons around z, and tracers that fill a torus of tube radius 0.2 m around them."""
    angle = 2.0 * np.pi * np.arange(60) / 60
    tangent = np.stack((-np.sin(angle), np.cos(angle), 0.0 * angle), axis=1)
    x = np.stack((RADIUS * np.cos(angle), RADIUS * np.sin(angle), height + 0.0 * angle), axis=1)
    draw = np.random.default_rng(3)
    around, across = draw.uniform(0.0, 2.0 * np.pi, (2, tracers))
    inner = TUBE * np.sqrt(draw.uniform(0.0, 1.0, tracers))
    from_axis = RADIUS + inner * np.cos(across)
    smoke = (from_axis * np.cos(around), from_axis * np.sin(around), height + inner * np.sin(across))
    return {
        "ring": {
            "Position.x": x,
            "Velocity.u": np.tile([0.0, 0.0, 2.0], (60, 1)),
            "Strength.alpha": 0.5 * tangent * (1.0 + np.arange(60) / 60)[:, None],
            "Volume.volume": np.full(60, 0.01),
            "CoreRadius.sigma": np.full(60, 0.15),
            "RowId.id": np.arange(60),
        },
        "smoke": {
            "Position.x": np.stack(smoke, axis=1),
            "Velocity.u": np.tile([0.0, 3.0, 4.0], (tracers, 1)),
            "Age.t": np.linspace(0.0, 2.0, tracers),
        },
    }


@pytest.fixture
def frame() -> Frame:
    return ring_frame()
