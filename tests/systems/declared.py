"""Reads the source of systems: which components and which other systems they look at while they run."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any

from ecs_fluid.component import Component, RowId
from ecs_fluid.system import System
from ecs_fluid.world import World

FREE = ("added", "spawns", "lint", "__init__", "__post_init__", "__setattr__")
"""Methods that are called between two ticks, where a system may look at everything."""


def components(value: Any) -> set[type[Component]]:
    """The component classes that a value is, or holds."""
    if isinstance(value, type):
        return {value} if issubclass(value, Component) and value is not Component else set()
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list | set | frozenset):
        return {kind for part in value for kind in components(part)}
    return set()


class Source:
    """A function of the modules `within`, with what its names mean."""

    def __init__(self, function: FunctionType, owner: type | None) -> None:
        self.function, self.owner = function, owner
        (self.tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
        self.parent = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def local(self) -> dict[str, Any]:
        """Names that the function imports by itself."""
        found = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                module = importlib.import_module(node.module)
                found.update({a.asname or a.name: getattr(module, a.name, None) for a in node.names})
        return found

    def meaning(self, node: ast.AST) -> Any:
        """What a name, an attribute of `self`, or one of a module stands for; None if that is not known."""
        if isinstance(node, ast.Name):
            return self.local.get(node.id, self.function.__globals__.get(node.id))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "self" and self.owner is not None:
                return inspect.getattr_static(self.owner, node.attr, None)
            value = self.meaning(node.value)
            return getattr(value, node.attr, None) if isinstance(value, ModuleType) else None
        return None

    def parts(self) -> Iterator[ast.AST]:
        """Everything in the function but annotations."""
        hidden = set()
        for node in ast.walk(self.tree):
            for name in ("annotation", "returns"):
                said = getattr(node, name, None)
                hidden.update(ast.walk(said) if said is not None else ())
        return (node for node in ast.walk(self.tree) if node not in hidden)

    def looks_at(self, node: ast.AST) -> bool:
        """Whether a component that is named there is looked up, not made or only compared with a type."""
        above = self.parent.get(node)
        if (isinstance(above, ast.Attribute) and isinstance(node, ast.Name)) or (
            isinstance(above, ast.Call) and above.func is node
        ):
            return False
        called = isinstance(above, ast.Call) and isinstance(above.func, ast.Name)
        return not (called and above.func.id in ("isinstance", "issubclass"))

    def components(self) -> set[type[Component]]:
        """Components that it looks up."""
        found = set()
        for node in self.parts():
            if isinstance(node, ast.expr) and self.looks_at(node):
                found |= components(self.meaning(node))
            for function in self._of_world(node):
                found |= Source(function, World).components()
        return found

    @staticmethod
    def _of_world(node: ast.AST) -> Iterator[FunctionType]:
        """Properties of the world that are read there, such as its gravity."""
        if isinstance(node, ast.Attribute):
            whose = getattr(node.value, "attr", getattr(node.value, "id", None))
            value = inspect.getattr_static(World, node.attr, None)
            if whose == "world" and isinstance(value, property):
                yield value.fget

    def asked(self) -> set[type[System]]:
        """Systems one of whose methods it calls."""
        found = set()
        for node in self.parts():
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            kind = self.meaning(node.args[0])
            if (
                node.func.attr in ("require", "system")
                and isinstance(kind, type)
                and issubclass(kind, System)
            ):
                found.update({kind} if any(self._is_method(kind, name) for name in self._used(node)) else ())
        return found

    @staticmethod
    def _is_method(kind: type[System], name: str) -> bool:
        return isinstance(inspect.getattr_static(kind, name, None), FunctionType)

    def _used(self, call: ast.Call) -> list[str]:
        """Attributes of what a call returns, also of the variable that it is given to."""
        above = self.parent[call]
        if isinstance(above, ast.Attribute):
            return [above.attr]
        if not isinstance(above, ast.Assign):
            return []
        names = {target.id for target in above.targets if isinstance(target, ast.Name)}
        uses = (node for node in ast.walk(self.tree) if isinstance(node, ast.Attribute))
        return [use.attr for use in uses if isinstance(use.value, ast.Name) and use.value.id in names]


def methods(owner: type, names: Any) -> Iterator[tuple[FunctionType, type]]:
    """Functions behind these attributes of a class, and the class."""
    for name in names:
        value = inspect.getattr_static(owner, name, None)
        value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if isinstance(value, FunctionType):
            yield value, owner


def sources(system: type[System], within: str) -> list[Source]:
    """All functions of the modules `within` that run in a tick when this system does."""
    own = [
        name for cls in system.__mro__ if issubclass(cls, System) and cls is not System for name in vars(cls)
    ]
    roots = [name for name in own if not name.startswith("_") and name not in FREE]
    todo = list(methods(system, roots))
    for start, _ in methods(system, ("__init__", "__post_init__")):
        if start.__module__.startswith(within):
            todo += _mentioned(Source(start, system), within, helpers=True)
    seen: dict[Any, Source] = {}
    for function, owner in todo:
        written = function.__code__.co_filename == getattr(
            sys.modules.get(function.__module__), "__file__", None
        )
        if written and function.__module__.startswith(within) and (function, owner) not in seen:
            source = seen[function, owner] = Source(function, owner)
            todo += _mentioned(source, within)
    return list(seen.values())


def _mentioned(source: Source, within: str, helpers: bool = False) -> list[tuple[FunctionType, type | None]]:
    """Functions that a function mentions, and methods of classes; only of `helpers`, or of anything."""
    found: list[tuple[FunctionType, type | None]] = []
    for node in source.parts():
        value = source.meaning(node)
        for kind in value if isinstance(value, tuple) else (value,):
            followed = isinstance(kind, type) and not issubclass(kind, Component | System)
            if followed and kind.__module__.startswith(within):
                found += methods(kind, [name for name in dir(kind) if name not in FREE[:3]])
        if isinstance(value, FunctionType) and not helpers:
            found.append((value, source.owner if isinstance(node, ast.Attribute) else None))
        elif isinstance(value, property | staticmethod | classmethod) and not helpers:
            found += methods(source.owner or object, [node.attr] if isinstance(node, ast.Attribute) else [])
    return found


def undeclared(system: type[System], within: str = "ecs_fluid.systems") -> list[str]:
    """Names of the components and systems that a system looks at in a tick without declaring them."""
    if system.integrates:
        return []
    declared = {RowId, *system.reads, *system.may_read, *system.writes, *system.adds}
    asked = {other if isinstance(other, str) else other.__name__ for other in system.asks}
    missing = set()
    for source in sources(system, within):
        if Component not in declared:
            missing |= {kind.__name__ for kind in source.components() - declared}
        missing |= {kind.__name__ for kind in source.asked() if kind is not system} - asked
    return sorted(missing)
