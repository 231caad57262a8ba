"""One small run that all tests of exports read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exports.made_run import make_run


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("exports") / "small_run")
