"""A callback before kernels are compiled, which happens once per machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def before_compiling(act: Callable[[str], object]) -> Iterator[None]:
    """While active, `act` is called before a kernel is compiled, with its name; not for kernels it calls."""
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
