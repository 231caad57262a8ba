"""State of a world as bits: its hash, and checkpoints from which it continues exactly."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ecs_fluid.component import Array, Component
from ecs_fluid.errors import StorageError
from ecs_fluid.system import System
from ecs_fluid.tables import checked_tables
from ecs_fluid.validation_errors import nearest

if TYPE_CHECKING:
    from ecs_fluid.world import World

VERSION = 1
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,199}")


def _state(world: World) -> dict[str, Any]:
    """Every state column by ``entity/Component.column``, in a fixed order."""
    ranks = world.ranks
    return {
        f"{entity.name}/{field.label}": array if ranks is None else ranks.spread(entity, field, array)
        for entity in world.entities
        for kind, table in sorted(entity.tables.items(), key=lambda item: item[0].__name__)
        if not kind.derived
        for field, array in table.items()
    }


def state_hash(world: World) -> str:
    """BLAKE2 hash (128 bits, hex) of tick, time step, row counter and every state column."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([world.tick, world.dt, world.next_row_id]).encode())
    for name, array in _state(world).items():
        digest.update(f"{name} {array.dtype} {array.shape};".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def packed(world: World) -> tuple[dict[str, Any], dict[str, Any]]:
    """Description and arrays of a world between two ticks, for a checkpoint."""
    world._ticker.between_ticks("save")
    systems = []
    for system in world.systems:
        try:
            parameters = system.parameters.model_dump(mode="json")
        except ValueError as error:
            name = type(system).__name__
            raise StorageError(
                f"{name} cannot be saved: a parameter is not plain data ({error}); "
                "use numbers, text, lists and tables as parameters"
            ) from None
        systems.append({"class": type(system).path(), "parameters": parameters})
    meta = {
        "version": VERSION,
        "options": world.options.model_dump(mode="json"),
        "tick": world.tick,
        "next_row_id": world.next_row_id,
        "systems": systems,
        "entities": [
            {
                "name": entity.name,
                "components": sorted(kind.__name__ for kind in entity.tables if not kind.derived),
            }
            for entity in world.entities
        ],
        "history": world.history[-1:],
        "recipe": world.recipe,
    }
    return meta, _state(world)


def save(world: World, path: Any) -> None:
    """Write a checkpoint of the world between two ticks."""
    from ecs_fluid.io.checkpoint import save_checkpoint

    save_checkpoint(Path(path), *packed(world))


def _check_meta(meta: dict[str, Any], path: Any) -> None:
    """Raise StorageError when the description in a checkpoint is not built as `packed` builds it."""

    def needs(holds: bool, what: str) -> None:
        if not holds:
            raise StorageError(f"{path} cannot be understood: {what}")

    def whole(value: Any) -> bool:
        return type(value) is int and 0 <= value < 2**63

    needs(isinstance(meta.get("options"), dict), "the options of the world are missing")
    needs(whole(meta.get("tick")), f"tick {str(meta.get('tick'))[:40]} is not a whole number from 0")
    needs(whole(meta.get("next_row_id")), "the row counter is not a whole number from 0")
    for key, kinds in (
        ("systems", {"class": str, "parameters": dict}),
        ("entities", {"name": str, "components": list}),
    ):
        items = meta.get(key)
        needs(isinstance(items, list), f"the list of {key} is missing")
        for item in items or ():
            fits = isinstance(item, dict) and all(isinstance(item.get(k), v) for k, v in kinds.items())
            needs(fits, f"one of its {key} lacks {' or '.join(kinds)}")
    for item in meta["entities"]:
        plain = all(isinstance(name, str) for name in item["components"])
        needs(plain, f"a component of entity {item['name'][:60]!r} is not named by text")
    history = meta.get("history")
    needs(isinstance(history, list), "the list of records is missing")
    needs(all(isinstance(record, dict) for record in history or ()), "one of its records is not a table")
    needs(meta.get("recipe") is None or isinstance(meta["recipe"], dict), "its recipe is not a table")


def resume(path: Any, allow_code: bool = False) -> World:
    """The world of a checkpoint; stepping it gives the same bits as if it had never stopped.

    Classes of your own systems and components must be imported before; with `allow_code` the modules of
    systems are imported by the name that the checkpoint holds, which runs their code.

    Raises:
        StorageError: the file is missing, damaged, of another version, or needs a class that is not loaded.
    """
    from ecs_fluid.io.checkpoint import load_checkpoint

    meta, arrays = load_checkpoint(Path(path))
    if meta.get("version") != VERSION:
        raise StorageError(
            f"{path} holds a state of version {meta.get('version')}; this ecs_fluid reads version {VERSION}"
        )
    _check_meta(meta, path)
    return world_of(meta, arrays, path, allow_code)


def world_of(meta: dict[str, Any], arrays: dict[str, Any], path: Any, allow_code: bool = False) -> World:
    """The world that `packed` described; `path` says in messages where that came from."""
    import ecs_fluid.components
    import ecs_fluid.systems  # noqa: F401  (registers what ships)
    from ecs_fluid.plugins import imported
    from ecs_fluid.world import World

    world = World(**meta["options"])
    systems = []
    for item in meta["systems"]:
        system = System.registry.get(item["class"])
        if system is None and allow_code:
            system = imported(item["class"], str(path))
        if system is None:
            raise StorageError(
                f"{path} needs the system {item['class']!r}, which is not loaded; import its module first "
                f"({nearest(item['class'], System.registry)})"
            )
        systems.append(system(**item["parameters"]))
    names: set[str] = set()
    for item in meta["entities"]:
        if item["name"] in names or not _NAME.fullmatch(item["name"]):
            raise StorageError(f"{path} has an entity {item['name'][:60]!r}, which is no name or comes twice")
        names.add(item["name"])
        tables: list[Component] = []
        strays: list[tuple[type[Component], str, Array]] = []
        for name in item["components"]:
            kind = Component.registry.get(name)
            if kind is None:
                raise StorageError(
                    f"{path} needs the component {name!r}, which is not loaded; import its module first"
                )
            if kind.derived:
                raise StorageError(f"{path} holds {name}, which systems fill; a checkpoint has no such part")
            missing = [key for key in kind.columns if f"{item['name']}/{name}.{key}" not in arrays]
            if missing:
                raise StorageError(f"{path} has no column {name}.{missing[0]} of entity {item['name']!r}")
            columns = {key: arrays[f"{item['name']}/{name}.{key}"] for key in kind.columns}
            inside = _within(kind, columns)
            strays += [(kind, key, columns[key]) for key in inside]
            tables.append(kind(**(columns | inside)))
        checked = checked_tables(item["name"], tuple(tables), world.dtype)
        for kind, key, array in strays:
            setattr(checked[kind], key, array.astype(world.dtype))
        if item["name"] == "fluid":
            for table in checked.values():
                world._put(world.fluid, table)
        else:
            world._create(item["name"], checked)
    world.add_systems(systems)
    world.tick, world.next_row_id = meta["tick"], meta["next_row_id"]
    world.history = list(meta["history"])
    world.recipe = meta["recipe"]
    return world


def _within(kind: type[Component], columns: dict[str, Array]) -> dict[str, Array]:
    """Columns of what is integrated that rounding or overshoot took out of their range, put back into it."""
    found: dict[str, Array] = {}
    if any(other.rate_of is kind for other in Component.registry.values()):
        for key, array in columns.items():
            low, high = kind.columns[key].minimum, kind.columns[key].maximum
            if (low is not None or high is not None) and array.dtype.kind == "f" and np.isfinite(array).all():
                inside = np.clip(array, low, high)
                if not np.array_equal(inside, array):
                    found[key] = inside
    return found
