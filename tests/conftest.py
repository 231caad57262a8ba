"""Settings shared by all tests."""

from __future__ import annotations

from collections.abc import Iterator

import esper
import pytest
from hypothesis import settings

# Derandomized: a red run can be repeated. No deadline: the first call of a kernel compiles it.
settings.register_profile("ecs_fluid", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ecs_fluid")


@pytest.fixture(autouse=True)
def esper_is_left_as_found() -> Iterator[None]:
    """Every test ends in the esper world in which it began."""
    former = esper.current_world
    yield
    assert esper.current_world == former
