"""Frames and their columns: what can be drawn, under which name, in which unit."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.components import Species
from ecs_fluid.errors import FluidError
from ecs_fluid.exports.names import unit

Array = NDArray[Any]
Columns = Mapping[str, Array]
Frame = Mapping[str, Columns]

POSITION = "Position.x"
AXES = {"x": 0, "y": 1, "z": 2}
PRESSURE = "pressure"
"""The name under which a slice shows the pressure in the flow of vortons, and particles that of a liquid"""

DERIVED = {
    "speed": ("m/s", ("Velocity.u",)),
    "vorticity": ("1/s", ("Strength.alpha", "Volume.volume")),
    "strength": ("m^3/s", ("Strength.alpha",)),
    PRESSURE: ("Pa", ("LiquidState.pressure",)),
}


FIELDS = {"temperature": "K", "density": "kg/m^3"} | dict.fromkeys(Species.columns, "1")
"""What the fluid carries and a slice may show, with their units."""

UNITS = {
    **{name: unit_of for name, (unit_of, _) in DERIVED.items()},
    **FIELDS,
    **dict.fromkeys(("u.x", "u.y", "u.z"), "m/s"),
}
"""Units of names that are not stored columns."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> FluidError:
    """The error for an unknown `name`: one sentence with the nearest known name and all of them."""
    names = sorted(known)
    if not names and kind == "colour":
        return FluidError(f"unknown {kind} {name!r}: there are no particles yet, or no longer, that have any")
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return FluidError(f"unknown {kind} {name!r}: known are {', '.join(names) or 'none'}{hint}")


def positions(columns: Columns, population: str = "population") -> Array:
    """Positions (n, 3) m, after checking that every column has as many rows as there are positions."""
    if POSITION not in columns:
        raise FluidError(
            f"{population} has no {POSITION}, so it cannot be drawn; "
            f"it has {', '.join(sorted(columns)) or 'nothing'}"
        )
    x = np.asarray(columns[POSITION])
    if x.ndim != 2 or x.shape[1] != 3:
        raise FluidError(f"{POSITION} of {population} has shape {x.shape}; (rows, 3) is needed")
    for name, values in columns.items():
        if np.ndim(values) == 0 or len(values) != len(x):
            raise FluidError(
                f"{name} of {population} has shape {np.shape(values)}, but there are {len(x)} positions"
            )
    return x


def drawable(frame: Frame) -> Iterator[tuple[str, Columns, Array]]:
    """The populations of a frame that have rows, as (name, columns, positions); bodies are no particles."""
    for name, columns in frame.items():
        if POSITION in columns and "Pose.q" not in columns:
            x = positions(columns, name)
            if len(x):
                yield name, columns, x


def known_scalars(columns: Columns) -> list[str]:
    """Names that `scalar` understands for these columns (components of vectors, `Velocity.u.z`, too)."""
    derived = [name for name, (_, needs) in DERIVED.items() if all(need in columns for need in needs)]
    return derived + sorted(columns)


def has_scalar(columns: Columns, name: str) -> bool:
    """Whether `scalar` knows the name for these columns."""
    return _resolve(columns, name) is not None


def scalar(columns: Columns, name: str) -> Array:
    """One number per row, shape (n,), for the colour `name`.

    `name` is ``speed`` |u| [m/s], ``vorticity`` |alpha| / V [1/s], ``strength`` |alpha| [m^3/s], ``pressure``
    of a liquid [Pa], a column (``Temperature.T``; of a vector, its magnitude), one component of a vector
    (``Velocity.u.z``) or a component class with a single column (``Temperature``). Raises FluidError for an
    unknown name.
    """
    resolved = _resolve(columns, name)
    if resolved is None:
        raise unknown_name("colour", name, known_scalars(columns))
    if resolved == "vorticity":
        return scalar(columns, "strength") / columns["Volume.volume"]
    column, _, axis = DERIVED.get(resolved, ("", (resolved,)))[1][0].partition("|")
    values: Array = np.asarray(columns[column])
    if axis:
        return values[:, AXES[axis]]
    if values.ndim > 1:
        values = np.linalg.norm(values.reshape(len(values), math.prod(values.shape[1:])), axis=1)
    return values


def _resolve(columns: Columns, name: str) -> str | None:
    """A derived name, `column` or `column|axis`; None for an unknown name."""
    if name in DERIVED:
        return name if all(need in columns for need in DERIVED[name][1]) else None
    if name in columns:
        return name
    head, _, last = name.rpartition(".")
    if last in AXES and head in columns and np.shape(columns[head])[1:] == (3,):
        return f"{head}|{last}"
    of_class = [column for column in columns if column.split(".")[0] == name]
    return of_class[0] if len(of_class) == 1 else None


def title(name: str, stored: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """Title of a scalar bar: the name and, in brackets, the unit; `stored`: `RunFolder.columns`."""
    if name == "vorticity_normal":
        return "vorticity through the plane [1/s]"
    declared = UNITS.get(name) or unit(".".join(name.split(".")[:2]), stored)
    return f"{name} [{declared}]" if declared not in ("", "1") else name
