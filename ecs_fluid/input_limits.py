"""Limits on what input may ask for, so that a small file cannot exhaust the machine; each can be set.

In the environment, as ``ECS_FLUID_LIMITS="memory=64e9 tables=5000"``, or in Python::

    ef.limits().memory = 64e9

What a world would allocate is counted before it is made, with the bytes that a particle or a grid point was
measured to take in a tick (docs/worlds.md).
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, cast

from pydantic import BaseModel, ConfigDict, Field

from ecs_fluid.errors import LimitError
from ecs_fluid.validation_errors import validated

VARIABLE = "ECS_FLUID_LIMITS"

VORTON, TRACER, SPHERE, GRID_POINT, TREE_CELL = 1000, 120, 2000, 160, 16
"""Bytes that one of them takes in a tick or while it is made; measured 470 to 740, 60 to 113, 920 to 1520,
110 to 156 and 16."""


def _memory_of_process() -> float:
    """Bytes that this process may have: the machine's, or less where a container or ulimit says so."""
    found = [16.0 * 2**30]
    with suppress(AttributeError, OSError, ValueError):
        found = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    with suppress(OSError, ValueError):  # "max" where there is none
        found.append(float(Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf-8")))
    with suppress(ImportError):
        import resource

        for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
            if (soft := resource.getrlimit(kind)[0]) != resource.RLIM_INFINITY:
                found.append(float(soft))
    return min(found)


class Limits(BaseModel):
    """Limits of this process, by name."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    memory: float = Field(default_factory=lambda: _memory_of_process() / 2, gt=0, le=1e18)
    """bytes that the particles and grids of a world may take, or the content of a file; by default half of
    what this process may have"""
    text: float = Field(default=16 * 2**20, gt=0)
    """bytes of a world file, of a run.json, ...; numbers by the million belong in data files"""
    nesting: int = Field(default=32, ge=1, le=200)
    """tables and lists within each other, and parts of a dotted key"""
    key: int = Field(default=200, ge=1)
    """characters of a key, and of a part of a setting's path"""
    tables: int = Field(default=1000, ge=1)
    """tables [[entity]], and as many [[system]]"""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a limit; RecipeError if the value is not allowed."""
        super().__setattr__(name, getattr(validated(Limits, {name: value}, "limits"), name))


@cache
def limits() -> Limits:
    """The limits of this process, to be read and set.

    Raises:
        RecipeError: the environment's ECS_FLUID_LIMITS cannot be understood.
    """
    given = os.environ.get(VARIABLE, "").replace(",", " ").split()
    named = dict(part.partition("=")[::2] for part in given)
    return cast(Limits, validated(Limits, named, f"{VARIABLE} = {' '.join(given)!r}"))


def check_limit(name: str, amount: float, what: str, remedy: str = "") -> None:
    """Raise LimitError if `amount` is more than the limit of that name, or not a number."""
    most = getattr(limits(), name)
    if not amount <= most:
        unit, scale = ("GB ", 1e9) if name == "memory" else ("", 1)
        raise LimitError(
            f"{what}; at most {most / scale:,.6g} {unit}are allowed{remedy and f', {remedy}'} "
            f"(to allow more: {VARIABLE}='{name}=...')"
        )


def check_memory(each: float, count: float, what: str, remedy: str = "") -> None:
    """Raise LimitError where `count` things of `each` bytes are too many, before they are made."""
    check_bytes(count * each, f"this would make {count:,.6g} {what} of about", remedy)


def check_bytes(amount: float, what: str, remedy: str = "") -> None:
    """Raise LimitError for too many bytes; the sentence names them, in GB, after `what`."""
    check_limit("memory", amount, f"{what} {amount / 1e9:,.3g} GB", remedy)
