"""Systems of the user's own, named by their import path ``module:Class``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path

from ecs_fluid.errors import RecipeError
from ecs_fluid.system import System


@contextmanager
def searching(*folders: Path | None) -> Iterator[None]:
    """Let modules in these folders be imported; None stands for no folder."""
    added = [str(folder) for folder in folders if folder is not None]
    sys.path[:0] = added
    try:
        yield
    finally:
        for folder in added:
            sys.path.remove(folder)


def refuse_hidden(path: str, place: str) -> None:
    """Raise RecipeError when another module of that name, loaded before, would be taken in its place."""
    top = path.partition(":")[0].partition(".")[0]
    loaded, here = sys.modules.get(top), PathFinder.find_spec(top)
    file = getattr(loaded, "__file__", None)
    if file and here is not None and here.origin and Path(file).resolve() != Path(here.origin).resolve():
        raise RecipeError(
            f"{place}: module {top!r} ({here.origin}) is hidden by {file}, which was loaded before; "
            "rename one of them"
        )


def imported(path: str, place: str) -> type[System]:
    """The system class at ``module:Class``; importing runs the module's code.

    Raises:
        RecipeError: there is no such module or class, its code fails, or it is no System; `place` says where
            the path was named.
    """
    module, _, name = path.partition(":")
    try:
        loaded = importlib.import_module(module)
    except ImportError as error:
        raise RecipeError(f"{place}: module {module!r} cannot be imported: {error}") from None
    except Exception as error:  # the user's module may fail in any way; the cause is chained for debugging
        raise RecipeError(f"{place}: module {module!r} fails: {type(error).__name__}: {error}") from error
    found = getattr(loaded, name, None)
    if found is None:
        raise RecipeError(f"{place}: module {module!r} has no {name!r}")
    if not (isinstance(found, type) and issubclass(found, System)):
        raise RecipeError(f"{place}: {path!r} is not a subclass of ecs_fluid.System")
    return found
