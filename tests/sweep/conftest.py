"""A small world, and folders of sweeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.small_worlds import NOZZLE, RING

WORLD = f"""
[world]
dt = 0.02
duration = 0.2

[fluid]
viscosity = 1e-3
diffusion.method = "core_spreading"
diagnostics.every = 2
{RING}
core = 0.3
spacing = 0.2
{NOZZLE}
rate = 500.0

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
