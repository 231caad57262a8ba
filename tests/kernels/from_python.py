"""Kernels that only compiled code may call, called by a test."""

from __future__ import annotations

from typing import Any

from numba import njit


def from_python(kernel: Any) -> Any:
    """The same function, to be called from Python."""

    @njit
    def call(*arguments):  # type: ignore[no-untyped-def]
        return kernel(*arguments)

    return call
