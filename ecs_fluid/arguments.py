"""Arguments of functions that users call: each is what it must be, or one sentence says what is needed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ecs_fluid.errors import FluidError
from ecs_fluid.validation_errors import shown

MOST_THREADS = 1024
"""Most threads of the kernels in one process."""


def path_of(given: Any, place: str) -> Path:
    """The path that an argument names; FluidError if it is no path, or an empty one."""
    with suppress(TypeError, UnicodeEncodeError):
        path = Path(given)
        os.fsencode(path)
        if given != "" and "\0" not in str(path):
            return path
    raise FluidError(f"{place} = {shown(given)}; a path is needed, as text or a Path")


def is_whole(given: Any) -> bool:
    """Whether this is a whole number, Python's or NumPy's; True and False are none."""
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


def is_number(given: Any) -> bool:
    """Whether this is a real number, Python's or NumPy's; True and False are none."""
    return isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)


def whole_number(given: Any, place: str, least: int, most: int = 2**63 - 1) -> int:
    """The argument as Python's int; FluidError if it is no whole number from `least` to `most`."""
    if is_whole(given) and least <= given <= most:
        return int(given)
    allowed = f"of at least {least:,}" if most == 2**63 - 1 else f"from {least:,} to {most:,}"
    raise FluidError(f"{place} = {shown(given)}; a whole number {allowed} is needed")


def whole_number_or_none(given: Any, place: str, least: int, most: int = 2**63 - 1) -> int | None:
    """`whole_number` for an argument that may be None."""
    return None if given is None else whole_number(given, place, least, most)


def names_of(given: Any, place: str, allowed: str = "a name or a list of names") -> Sequence[str]:
    """The argument as a list of texts: of names, or of what `allowed` says; one text may stand alone."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, Sequence) and all(isinstance(name, str) for name in given):
        return given
    raise FluidError(f"{place} = {shown(given)}; {allowed} is needed")


def check_progress(given: Any) -> None:
    """Raise FluidError for a `progress` that is neither None nor callable."""
    if given is not None and not callable(given):
        raise FluidError(
            f"progress = {shown(given)}; None or a function that takes the number of frames done is needed"
        )


def refuse_unused(given: Mapping[str, object], where: str) -> None:
    """Raise FluidError if options were given that have no effect `where` they stand.

    Options that are None, False, 0 or empty count as not given.
    """
    if named := [name for name, value in given.items() if value]:
        has = "has" if len(named) == 1 else "have"
        raise FluidError(f"{' and '.join(named)} {has} no effect {where}")
