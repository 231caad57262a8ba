"""Worlds from checkpoints: what `World.save` wrote becomes a world that continues bit for bit."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

import ecs_fluid.components
import ecs_fluid.systems  # noqa: F401  (registers what ships)
from ecs_fluid.arguments import path_of
from ecs_fluid.component import Component, Tables
from ecs_fluid.errors import StorageError, sentences
from ecs_fluid.io.checkpoint import load_checkpoint
from ecs_fluid.io.provenance import Provenance, refuse_other_provenance
from ecs_fluid.own_code import code_named_in
from ecs_fluid.plugins import imported
from ecs_fluid.state import VERSION
from ecs_fluid.system import System
from ecs_fluid.tables import checked_tables, within_range
from ecs_fluid.validation_errors import LONGEST_NAME, NAME, validated
from ecs_fluid.world import World


class _System(BaseModel, strict=True):
    path: str = Field(alias="class")
    parameters: dict[str, Any]


class _Entity(BaseModel, strict=True):
    name: str
    components: list[str]


class _Meta(BaseModel, strict=True):
    """The description in a checkpoint, as `packed_world` builds it."""

    computed_with: Provenance
    code: Provenance = {}
    options: dict[str, Any]
    tick: int = Field(ge=0, lt=2**63)
    next_row_id: int = Field(ge=0, lt=2**63)
    systems: list[_System]
    entities: list[_Entity]
    classes: dict[str, str] = {}
    history: list[dict[str, Any]]
    recipe: dict[str, Any] | None


@sentences()
def resume(path: Any, allow_code: bool = False, anyway: bool = False) -> World:
    """The world of a checkpoint; stepping it gives the same bits as if it had never stopped.

    Classes of your own systems and components must be imported before; with `allow_code` their modules are
    imported by the names that the checkpoint holds, which runs their code. Other versions, other code or
    another processor than it was made with may compute other bits; `anyway` accepts that.

    Raises:
        StorageError: the file is missing, damaged, of another version, computed with something else, or needs
            a class that is not loaded.
    """
    file = path_of(path, "path")
    if os.path.isfile(file / "run.json"):  # False, not an error, where the path cannot be looked up
        raise StorageError(
            f"{path} is a run folder, not a checkpoint; ecs_fluid.open_run({str(path)!r}).resume() continues "
            f"the run, and {file / 'checkpoints'} holds its checkpoints"
        )
    meta, arrays = load_checkpoint(file)
    if meta.get("version") != VERSION:
        raise StorageError(
            f"{path} was made by another version of ecs_fluid: its state has version "
            f"{meta.get('version')}, but this one reads version {VERSION}; continue it with the ecs_fluid "
            "that made it"
        )
    validated(_Meta, meta, f"{path} cannot be understood", StorageError)
    refuse_other_provenance(path, meta["computed_with"], anyway)
    world = world_of(meta, arrays, path, allow_code, made_elsewhere=anyway)
    our_code = code_named_in([meta["systems"], meta.get("classes")])
    refuse_other_provenance(path, meta.get("code", {}), anyway, our_code)
    return world


def world_of(
    meta: dict[str, Any],
    arrays: dict[str, Any],
    path: Any,
    allow_code: bool = False,
    made_elsewhere: bool = False,
) -> World:
    """The world that `packed_world` described; `path` says in messages where that came from.

    It has exactly these tables and numbers, whatever systems change when they join. If it was
    `made_elsewhere`, other versions of the systems may need further tables, which are kept.
    """
    world = World(**meta["options"])
    systems = [_system(item, path, allow_code) for item in meta["systems"]]
    names, classes = set[str](), meta.get("classes", {})
    for item in meta["entities"]:
        name = item["name"]
        if name in names or not re.fullmatch(NAME, name) or len(name) > LONGEST_NAME:
            raise StorageError(
                f"{path} has an entity {name[:60]!r}, which is not a valid name or appears twice"
            )
        names.add(name)
        kinds = [_component_class(name, classes, path, allow_code) for name in item["components"]]
        tables = _tables(item["name"], kinds, arrays, path, world.dtype)
        if item["name"] == "fluid":
            for table in tables.values():
                world._add_table(world.fluid, table)
        else:
            world._create(item["name"], tables)
    world.add_systems(systems)
    _put_back(world, {item["name"]: item["components"] for item in meta["entities"]}, arrays, made_elsewhere)
    for made, item in zip(systems, meta["systems"], strict=True):
        made._implied = item.get("implied") is True
    world.tick, world._next_row_id = meta["tick"], meta["next_row_id"]
    # The sentences of `lint` are about a beginning: the run that went before has had them.
    world._ticker.warned = world.tick > 0
    world._set_fixed(history=list(meta["history"]), recipe=meta["recipe"])
    return world


def _put_back(
    world: World, components: dict[str, list[str]], arrays: dict[str, Any], made_elsewhere: bool
) -> None:
    """Put the state of the checkpoint back: systems that joined have changed numbers and added tables."""
    for entity in world.entities:
        if entity.name not in components and not made_elsewhere:
            with world._active():
                world._delete_entity(entity.name)
            continue
        for kind, table in [*entity.tables.items()]:
            if kind.derived:
                continue
            if kind.__name__ in components.get(entity.name, ()):
                for name, array in vars(table).items():
                    vars(table)[name] = arrays[f"{entity.name}/{kind.__name__}.{name}"].astype(array.dtype)
            elif not made_elsewhere:
                world._remove_table(entity, kind)


def _system(item: dict[str, Any], path: Any, allow_code: bool) -> System:
    kind = System.registry.get(item["class"])
    if kind is None and allow_code:
        kind = imported(item["class"], str(path), System)
    if kind is None:
        raise _not_loaded(path, "system", item["class"])
    if allow_code:
        kind.load_code(item["parameters"], str(path))
    return kind(**item["parameters"])


def _component_class(name: str, classes: dict[str, str], path: Any, allow_code: bool) -> type[Component]:
    """The component of that name; `classes` are the import paths of those that do not ship."""
    kind = Component.registry.get(name)
    if kind is None and allow_code and name in classes:
        kind = imported(classes[name], str(path), Component)
    if kind is None:
        raise _not_loaded(path, "component", classes.get(name, name))
    if kind.derived:
        raise StorageError(f"{path} holds {name}, which no checkpoint may hold, since systems fill it")
    return kind


def _tables(
    entity: str, kinds: list[type[Component]], arrays: dict[str, Any], path: Any, dtype: type[np.floating]
) -> Tables:
    """The tables of an entity, checked. Values that may leave their range are clipped until `_put_back`."""
    tables: list[Component] = []
    for kind in kinds:
        labels = {key: f"{entity}/{kind.__name__}.{key}" for key in kind.columns}
        for key, label in labels.items():
            if label not in arrays:
                raise StorageError(f"{path} has no column {kind.__name__}.{key} of entity {entity!r}")
        columns = {key: arrays[label] for key, label in labels.items()}
        tables.append(kind(**(columns | within_range(kind, columns))))
    return checked_tables(entity, tuple(tables), dtype, given=False)


def _not_loaded(path: Any, what: str, name: str) -> StorageError:
    """The error on a class that is not loaded: the user's own, or of another version of the package."""
    if name.startswith("ecs_fluid.") or ":" not in name:
        return StorageError(f"{path} needs the {what} {name!r}, which this ecs_fluid does not have")
    return StorageError(
        f"{path} needs the {what} {name!r}, which is not loaded; import its module first, or allow the "
        "import, which runs its code: --allow-code, in Python allow_code=True"
    )
