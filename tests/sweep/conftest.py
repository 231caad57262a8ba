"""A small world, and folders of sweeps."""

from __future__ import annotations

from pathlib import Path

import pytest

WORLD = """
[world]
dt = 0.02
duration = 0.2

[fluid]
viscosity = 1e-3
diffusion = { method = "core_spreading" }
diagnostics = { every = 2 }

[[entity]]
kind = "vortex_ring"
name = "ring"
radius = 1.0
core = 0.3
circulation = 5.0
spacing = 0.2

[[entity]]
kind = "emitter"
name = "nozzle"
into = "smoke"
population = "tracers"
rate = 500.0
spread = [1.0, 1.0, 0.1]

[output]
every = 5
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ring with an emitter, whose particles depend on the seed, in an otherwise empty working folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "puffs.toml"
    path.write_text(WORLD, encoding="utf-8")
    return path
