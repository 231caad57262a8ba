"""State of a world as bits: its hash, and what a checkpoint holds of it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ecs_fluid.arguments import path_of
from ecs_fluid.errors import StorageError
from ecs_fluid.io.provenance import provenance
from ecs_fluid.own_code import code_named_in, is_shipped
from ecs_fluid.plugins import import_path
from ecs_fluid.settings import plain_data
from ecs_fluid.world import World

VERSION = 4
"""Version of the description in a checkpoint; it names classes by module, so moving a class raises it."""


def _state(world: World) -> dict[str, Any]:
    """Every state column by ``entity/Component.column``, in a fixed order."""
    return {
        f"{entity.name}/{field.label}": world.processes.stored_column(entity, field.label, array)
        for entity in world.entities
        for kind, table in sorted(entity.tables.items(), key=lambda item: item[0].__name__)
        if not kind.derived
        for field, array in table.items()
    }


def state_hash(world: World) -> str:
    """BLAKE2 hash (128 bits, hex) of tick, time step, row counter and every state column."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([world.tick, world.dt, world._next_row_id]).encode())
    for name, array in _state(world).items():
        digest.update(f"{name} {array.dtype} {array.shape};".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def packed_world(world: World) -> tuple[dict[str, Any], dict[str, Any]]:
    """Description and arrays of a world between two ticks, for a checkpoint."""
    world._ticker.between_ticks("save")
    systems = []
    for system in world.systems:
        parameters = plain_data(system.parameters, f"{type(system).__name__} cannot be saved", StorageError)
        # Implied: added by another system, so one that the user adds replaces it, and lint ignores it.
        systems.append({"class": type(system).path(), "parameters": parameters, "implied": system._implied})
    classes = {
        kind.__name__: import_path(kind)
        for entity in world.entities
        for kind in entity.tables
        if not kind.derived and not is_shipped(kind)
    }
    meta = {
        "version": VERSION,
        "computed_with": provenance(),
        "code": code_named_in([systems, classes]),
        "options": world.options.model_dump(mode="json"),
        "tick": world.tick,
        "next_row_id": world._next_row_id,
        "systems": systems,
        "entities": [
            {
                "name": entity.name,
                "components": sorted(kind.__name__ for kind in entity.tables if not kind.derived),
            }
            for entity in world.entities
        ],
        "classes": classes,
        "history": world.history[-1:],
        "recipe": world.recipe,
    }
    return meta, _state(world)


def save(world: World, path: Any) -> None:
    """Write a checkpoint of the world between two ticks."""
    from ecs_fluid.io.checkpoint import save_checkpoint

    save_checkpoint(path_of(path, "path"), *packed_world(world))
