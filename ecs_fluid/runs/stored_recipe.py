"""What the stored recipe of a run tells: its tables, and from them the fluid at rest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError
from ecs_fluid.fluid import key_values
from ecs_fluid.io.runfolder import RECIPE, RunFolder
from ecs_fluid.upward import up_of
from ecs_fluid.world_files import tables_in
from ecs_fluid.world_options import WorldOptions


def tables_of(run: RunFolder) -> dict[str, Any]:
    """Tables of the world file of a run."""
    return tables_in(run.recipe, str(run.path / RECIPE))


def temperatures_at_rest(run: RunFolder) -> Callable[[Array], Array]:
    """The temperatures (n,) K of the fluid at rest by heights (n,) m; of air if the world file is damaged."""
    from ecs_fluid.systems.shared.fluid_at_rest import fluid_at_rest, temperature_at
    from ecs_fluid.world import World
    from ecs_fluid.worlds.world_tables import FluidTable

    world = World(precision="double")
    with suppress(FluidError, TypeError, ValueError):  # a damaged recipe does not hide the particles
        world.set_fluid(**FluidTable(**tables_of(run).get("fluid", {})).constants())
    return partial(temperature_at, fluid_at_rest(world))


def axis_across(run: RunFolder) -> int | None:
    """Axis across the plane of a run in two dimensions, 1 (y) or 2 (z); None in space, or if the world file
    is damaged."""
    with suppress(FluidError, TypeError, ValueError):
        table = tables_of(run).get("world", {})
        return WorldOptions(**{key: table[key] for key in ("dimension", "plane") if key in table}).across
    return None


def up_of_run(run: RunFolder) -> str:
    """The axis that is upwards in a run, see `up_of`; z if the world file is damaged."""
    from ecs_fluid.worlds.world_tables import FluidTable

    with suppress(FluidError, TypeError, ValueError):
        return up_of(key_values(FluidTable(**tables_of(run).get("fluid", {})).gravity))
    return "z"
