"""What columns are called in other programs, and their units."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from ecs_fluid.component import Column, Component

PLAIN = {
    "Velocity.u": "velocity",
    "Strength.alpha": "strength",
    "CoreRadius.sigma": "core_radius",
    "Volume.volume": "volume",
    "Density.rho": "density",
    "Temperature.T": "temperature",
    "Age.t": "age",
    "RowId.id": "id",
    "Pose.q": "orientation",
    "RigidMotion.v": "velocity",
    "RigidMotion.angular_velocity": "angular_velocity",
    "BallShape.radius": "radius",
    "HullShape.hull": "hull",
    "HullShape.container": "container",
    "BodyHeat.T": "temperature",
    "LiquidState.pressure": "pressure",
    "Whitewater.kind": "kind",
    "Whitewater.life": "life",
}
"""Names that artists and other programs expect; others become ``Class_column``, species keep theirs."""


def plain_names(labels: Iterable[str]) -> dict[str, str]:
    """A plain name for every column but the positions; each is used once."""
    names: dict[str, str] = {}
    for label in labels:
        if label == "Position.x":
            continue
        kind, _, column = label.partition(".")
        name = column if kind == "Species" else PLAIN.get(label, f"{kind}_{column}")
        names[label] = name if name not in names.values() else label.replace(".", "_")
    return names


def free_name(name: str, taken: Container[str]) -> str:
    """The name, with underscores appended until it is not `taken`."""
    while name in taken:
        name += "_"
    return name


def declared(label: str) -> Column | None:
    """The column as its component declares it; None if no component of that name is loaded."""
    import ecs_fluid.components  # noqa: F401  (registers its classes)

    kind, _, column = label.partition(".")
    found = Component.registry.get(kind)
    return found.columns.get(column) if found else None


def unit(label: str, stored: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """SI unit of a column: as a run stored it (`RunFolder.columns`), else as its component declares it.

    Empty if neither is known.
    """
    if stored and label in stored:
        return stored[label]["unit"]
    column = declared(label)
    return column.unit if column else ""
