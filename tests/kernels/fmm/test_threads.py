"""Work shared out among threads: results in their order, and nobody goes on behind an error."""

from __future__ import annotations

import time

import pytest

from ecs_fluid.kernels.fmm import threads


def test_results_are_in_the_order_of_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "threads", lambda: 4)
    found = threads.share(lambda first, last: list(range(first, last)), 1000)
    assert [piece for part in found for piece in part] == list(range(1000))


def test_no_batch_begins_behind_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def run(first: int, last: int) -> None:
        begun.append(first)
        if first == 0:
            raise ZeroDivisionError("piece 0")
        time.sleep(0.05)

    monkeypatch.setattr(threads, "threads", lambda: 3)
    with pytest.raises(ZeroDivisionError, match="piece 0"):
        threads.share(run, 400)
    assert len(begun) <= 4
