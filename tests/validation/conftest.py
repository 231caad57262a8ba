"""Shared set-up of the validation tests: helper modules by name, and threads that fit small worlds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numba
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """One thread for the quick tests, all for the nightly ones.

    Worlds of a few hundred vortons wait longer for a second thread on a busy machine than they compute,
    and results do not depend on the number of threads (`test_determinism`).
    """
    before = numba.get_num_threads()
    if request.node.get_closest_marker("nightly") is None:
        numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)
