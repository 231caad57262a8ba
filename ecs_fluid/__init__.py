"""Vortex-particle fluid simulation as an entity-component-system.

Worlds are entities with component arrays; ordered systems run Numba kernels on them each tick::

    import ecs_fluid as ef

    world = ef.load("vortex_ring")
    world.step(10)
    print(world["ring"][ef.Position].x, world.diagnostics()["impulse"])

Importing ecs_fluid loads neither numba nor PyVista: they come with the first tick and the first picture.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ecs_fluid.component import Component, RowId, column
    from ecs_fluid.components import (
        Acceleration,
        Age,
        CoreRadius,
        CoreRadiusRate,
        Density,
        Emission,
        Grid,
        InertialVelocity,
        Position,
        Sources,
        Species,
        Strength,
        StrengthRate,
        Temperature,
        Velocity,
        VelocityField,
        VelocityGradient,
        VelocityHistory,
        Volume,
    )
    from ecs_fluid.errors import (
        ComponentError,
        DivergedError,
        FluidError,
        FluidWarning,
        RecipeError,
        ScheduleError,
        StorageError,
    )
    from ecs_fluid.keyframes import Keyed
    from ecs_fluid.recipe import Recipe
    from ecs_fluid.state import resume
    from ecs_fluid.system import System
    from ecs_fluid.systems import (
        AccelerateSystem,
        AdvectionSystem,
        AgeLimitSystem,
        DiagnosticsSystem,
        DiffusionSystem,
        EmissionSystem,
        Emitter,
        InertiaSystem,
        KillBoxSystem,
        LifetimeSystem,
        PartitionSystem,
        StretchSystem,
        VelocitySystem,
        WindSystem,
    )
    from ecs_fluid.world import Entity, Snapshot, World
    from ecs_fluid.worlds import WorldRecipe, load

_HOMES = {
    "ecs_fluid.component": ("Component", "RowId", "column"),
    "ecs_fluid.components": (
        "Acceleration",
        "Age",
        "CoreRadius",
        "CoreRadiusRate",
        "Density",
        "Emission",
        "Grid",
        "InertialVelocity",
        "Position",
        "Sources",
        "Species",
        "Strength",
        "StrengthRate",
        "Temperature",
        "Velocity",
        "VelocityField",
        "VelocityGradient",
        "VelocityHistory",
        "Volume",
    ),
    "ecs_fluid.errors": (
        "ComponentError",
        "DivergedError",
        "FluidError",
        "FluidWarning",
        "RecipeError",
        "ScheduleError",
        "StorageError",
    ),
    "ecs_fluid.keyframes": ("Keyed",),
    "ecs_fluid.recipe": ("Recipe",),
    "ecs_fluid.state": ("resume",),
    "ecs_fluid.system": ("System",),
    "ecs_fluid.systems": (
        "AccelerateSystem",
        "AdvectionSystem",
        "AgeLimitSystem",
        "DiagnosticsSystem",
        "DiffusionSystem",
        "EmissionSystem",
        "Emitter",
        "InertiaSystem",
        "KillBoxSystem",
        "LifetimeSystem",
        "PartitionSystem",
        "StretchSystem",
        "VelocitySystem",
        "WindSystem",
    ),
    "ecs_fluid.world": ("Entity", "Snapshot", "World"),
    "ecs_fluid.worlds": ("WorldRecipe", "load"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]  # noqa: PLE0604  (names are resolved on first use)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ecs_fluid' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
