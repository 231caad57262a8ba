"""Kernels that have to be compiled, which happens once per machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def before_compiling(act: Callable[[str], object]) -> Iterator[None]:
    """Call `act` with the name of each kernel that has to be compiled, before that; not for what it calls."""
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        depth = 0

        def on_start(self, happened: Any) -> None:
            if self.depth == 0:
                act(getattr(happened.data.get("dispatcher"), "__name__", "kernel").strip("_"))
            self.depth += 1

        def on_end(self, happened: Any) -> None:
            self.depth -= 1

    with event.install_listener("numba:compile", Listener()):
        yield
