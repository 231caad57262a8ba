"""Systems, recipes and components of the user's own, named by an import path or an entry point."""

from __future__ import annotations

import importlib
import os
import site
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from importlib.machinery import PathFinder
from importlib.metadata import entry_points
from inspect import getattr_static, signature
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.own_code import is_shipped
from ecs_fluid.validation_errors import nearest, shown

T = TypeVar("T")


@contextmanager
def searching(*folders: Path | None) -> Iterator[None]:
    """While active, modules in these folders are found before all others; None stands for no folder.

    Afterwards the folders are the last to be searched, for imports inside functions of these modules.
    """
    added = [str(folder) for folder in folders if folder is not None]
    sys.path[:0] = added
    try:
        yield
    finally:
        for folder in added:
            sys.path.remove(folder)
            sys.path += [folder] if folder not in sys.path else []


def refuse_hidden(path: str, place: str) -> None:
    """Raise RecipeError if another module of that name is loaded already and would be used instead."""
    top = path.partition(":")[0].partition(".")[0]
    loaded, here = sys.modules.get(top), PathFinder.find_spec(top)
    file = getattr(loaded, "__file__", None)
    if file and here is not None and here.origin and Path(file).resolve() != Path(here.origin).resolve():
        raise RecipeError(
            f"{place}: module {top!r} ({here.origin}) is hidden by {file}, which was loaded before; "
            "rename one of them"
        )


@contextmanager
def users_code(what: str, *passed: type[BaseException]) -> Iterator[None]:
    """Raise RecipeError, with cause and line, for errors in a user's code.

    FluidError, MemoryError and those `passed` go on as they are. An exit counts as an error: the program
    would end in the middle, with any exit code and without a word.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, (FluidError, MemoryError, *passed)):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        last = next((frame for frame in reversed(frames) if is_users(frame.filename)), frames[-1])
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise RecipeError(f"{what} fails: {text} (line {last.lineno} of {last.filename})") from error


def is_users(file: str) -> bool:
    """Whether a file is one of the user's: not ours, Python's, an installed package's or none at all.

    Files beside these, in the folder of the environment, are the user's.
    """
    return not os.path.normcase(file).startswith(("<", *_folders_of_others()))


@cache
def _folders_of_others() -> tuple[str, ...]:
    """Folders of our files, of Python's and of installed packages, each with a separator at its end."""
    python = map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib", "scripts"))
    folders = (str(Path(__file__).parent), *python, *site.getsitepackages(), site.getusersitepackages())
    return tuple(os.path.normcase(os.path.join(folder, "")) for folder in folders)


def users_method(kind: type, name: str) -> AbstractContextManager[None]:
    """`users_code` for a method of a class of the user's; nothing for a class that ships."""
    return nullcontext() if is_shipped(kind) else users_code(f"{name} of {import_path(kind)}")


def import_path(kind: type) -> str:
    """``module:Class``, the name of a class in checkpoints and world files."""
    return f"{kind.__module__}:{kind.__qualname__}"


def offered_name(kind: type, base: type) -> str | None:
    """The name under which a package offers a class among those derived from `base`, if one does."""
    points = entry_points(group=group_of(base))
    return next((one.name for one in points if f"{one.module}:{one.attr}" == import_path(kind)), None)


def refuse_shipped_name(kind: type, name: str, known: Mapping[str, type]) -> None:
    """Raise RecipeError if a user's class would take the name of one that ships."""
    other = known.get(name)
    if other is not None and is_shipped(other) and not is_shipped(kind):
        raise RecipeError(
            f"{import_path(kind)} would take the name {name!r}, which belongs to {other.__name__} of "
            "ecs_fluid; give it another name"
        )


def imported(path: str, place: str, *bases: type) -> Any:
    """The class at ``module:Class``; importing runs the module's code.

    Raises:
        RecipeError: there is no such module or class, its code fails, or it is not derived from one of
            `bases`; `place` says where the path was named.
    """
    module, _, name = path.partition(":")
    if not name or module.endswith(".py") or not all(part.isidentifier() for part in module.split(".")):
        raise RecipeError(
            f"{place}: {shown(path)} does not name a class; write swirl:Swirl for the class Swirl of swirl.py"
        )
    try:
        with users_code(f"{place}: module {module!r}", ImportError, SystemExit):
            loaded = importlib.import_module(module)
        with users_code(f"{place}: {name!r} of module {module!r}", ImportError, AttributeError, SystemExit):
            kind = attrgetter(name)(loaded)
    except ImportError as error:
        raise RecipeError(f"{place}: module {module!r} cannot be imported: {error}") from None
    except SystemExit as error:
        raise RecipeError(
            f"{place}: module {module!r} ends the program when it is imported (exit {error.code!r}); put "
            "what it does as a script under if __name__ == '__main__'"
        ) from None
    except AttributeError:
        hint = "; put the class into a module, which other processes can import"
        hint = hint if module == "__main__" else ""
        raise RecipeError(f"{place}: module {module!r} has no {name!r}{hint}") from None
    if not (isinstance(kind, type) and issubclass(kind, bases)):
        names = " or ".join(f"ecs_fluid.{base.__name__}" for base in bases)
        raise RecipeError(f"{place}: {path!r} is not a subclass of {names}")
    for method in map(partial(getattr_static, kind), dir(kind)):
        if getattr(method, "__isabstractmethod__", False):
            head = f"{method.__name__}({', '.join(signature(method).parameters)})"
            raise RecipeError(f"{place}: {path!r} has no {head} method; a class that has one is needed")
    return kind


def kind_of(table: Any, place: str, base: type, known: Mapping[str, type[T]], allow_code: bool) -> type[T]:
    """The class that the `kind` of a table names: one of `known`, an entry point, or ``module:Class``.

    Entry points are those of the group ``ecs_fluid.systems`` for systems, and so on.

    Args:
        table: the table of a world file.
        place: where it stands, for messages.
        base: the class has to be derived from it.
        known: classes by the names that are allowed without an import.
        allow_code: whether a module may be imported for it.

    Raises:
        RecipeError: the table has no kind, it is not known, its code fails, or importing is not allowed.
    """
    if not isinstance(table, dict):
        raise RecipeError(f"{place}: {shown(table)}; a table with a 'kind' is needed")
    short = {name for name in known if ":" not in name}
    if "kind" not in table:
        raise RecipeError(f"{place}: 'kind' is missing; known: {', '.join(sorted(short))}")
    name = table["kind"]
    if not isinstance(name, str):
        raise RecipeError(f"{place}: kind = {shown(name)} is not known; {nearest('', short)}")
    return class_named(name, place, base, known, allow_code)


def class_named(
    name: str, place: str, base: type, known: Mapping[str, type[T]], allow_code: bool, key: str = "kind"
) -> type[T]:
    """`kind_of` for a name alone, the value of `key` at that place."""
    if ":" not in name:
        if name in known:
            return known[name]
        short = {key for key in known if ":" not in key}
        points = {point.name: point for point in entry_points(group=group_of(base))}
        if name not in points:
            module, dot, last = name.rpartition(".")
            hint = nearest(name[:60], short | set(points))
            hint = f"a class of yours is written '{module[:60]}:{last[:60]}'" if dot else hint
            raise RecipeError(f"{place}: {key} = {shown(name)} is not known; {hint}")
        name = f"{points[name].module}:{points[name].attr}"
    else:
        refuse_code(name, place, allow_code, key)
    return imported(name, place, base)  # type: ignore[no-any-return]


def refuse_code(path: str, place: str, allow_code: bool, key: str = "kind") -> None:
    """Raise RecipeError if the code of ``module:Class`` may not run, or another module hides it."""
    if allow_code:
        refuse_hidden(path, place)
    elif path.partition(":")[0] not in sys.modules:
        raise RecipeError(
            f"{place}: {key} = {shown(path)} would run your own code; allow it with --allow-code on the "
            "command line or allow_code=True in Python"
        )


def group_of(base: type) -> str:
    """Group of the entry points that offer classes derived from `base`."""
    return f"ecs_fluid.{base.__name__.lower()}s"


def without_kind(table: dict[str, Any]) -> dict[str, Any]:
    """A table without its `kind`: its parameters."""
    return {key: value for key, value in table.items() if key != "kind"}
