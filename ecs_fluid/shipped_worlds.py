"""The worlds that come with the package, and what they promise.

It imports little, since shell completion calls it for the names.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).parent / "worlds"


def shipped() -> dict[str, Path]:
    """Files of the worlds that come with the package, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.toml")) if path.name != "promises.toml"}


def promises() -> dict[str, dict[str, Any]]:
    """What every shipped world promises: `what`, `value`, `within`, `unit`, `why`, by name.

    `also` has further numbers of a world, with the first four keys.
    """
    return tomllib.loads((SHIPPED / "promises.toml").read_text(encoding="utf-8"))


def sentence(promise: dict[str, Any]) -> str:
    """The promise as the header of its world gives it."""
    told = []
    for part in (promise, *promise.get("also", ())):
        unit = "" if part["unit"] == "1" else f" {part['unit']}"
        told.append(f"{part['what']}: {part['value']:.6g}{unit}, within {part['within']:g}{unit}")
    return f"Promise: {'; '.join(told)}."


def describe(path: Path) -> str:
    """First comment line of a world file."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    return first.lstrip("# ").strip()
