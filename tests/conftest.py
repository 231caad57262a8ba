"""Settings shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import esper
import pytest
from hypothesis import settings

# The workers of pytest share the cores: their threads had better sleep while they wait for one another.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

# Derandomized: a red run can be repeated. No deadline: the first call of a kernel compiles it.
settings.register_profile("ecs_fluid", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ecs_fluid")


@pytest.fixture(autouse=True)
def esper_is_left_as_found() -> Iterator[None]:
    """Every test ends in the esper world in which it began."""
    former = esper.current_world
    yield
    assert esper.current_world == former
