"""Surfaces and liquids have the same bits for 1, 2, 4 and 8 threads: cases 102 and 109, S3 and S9."""

from __future__ import annotations

import pytest
from liquid_threads_worker import SOME, cases
from thread_hashes import printed_hashes


def check(which: str) -> dict[str, str]:
    """Assert that 2, 4 and 8 threads give the hashes of 1; returns those."""
    by_count = printed_hashes("liquid_threads_worker.py", "1,2,4,8", which)
    assert set(by_count) == {"1", "2", "4", "8"}
    for threads, found in by_count.items():
        assert found == by_count["1"], f"{threads} threads"
    # Every case is a flow of its own: a hash that saw nothing of it would be the same twice.
    assert len(set(by_count["1"].values())) == len(by_count["1"])
    return dict(by_count["1"])


def test_threads_do_not_matter() -> None:
    """Cases 102, 109: kernels of distances and meshes, a liquid, a drop, a carried surface at a wall."""
    assert set(check("some")) == set(SOME)


@pytest.mark.nightly
def test_threads_do_not_matter_for_any_liquid() -> None:
    """The same for all shipped worlds of liquids and drops and for both precisions, 24 cases."""
    assert set(check("all")) == set(cases())
