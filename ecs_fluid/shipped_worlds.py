"""The worlds that come with the package; few imports, for the completion of shells asks for their names."""

from __future__ import annotations

from pathlib import Path

SHIPPED = Path(__file__).parent / "worlds"


def shipped() -> dict[str, Path]:
    """Files of the worlds that come with the package, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.toml")) if path.name != "promises.toml"}
