"""A callback before kernels are compiled, which happens once per machine where they can be kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ecs_fluid.errors import StorageError
from ecs_fluid.io.disk import storage_error


def check_cache() -> None:
    """Raise StorageError if the cache of compiled kernels cannot be written."""
    from ecs_fluid.kernels.compiled import cache_location, check_writable

    folder, variable = cache_location()
    try:
        check_writable(folder)
    except OSError as error:
        text = str(storage_error(error, "keep compiled kernels in", folder))
        raise StorageError(f"{text}; set {variable} to a writable folder") from None


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
