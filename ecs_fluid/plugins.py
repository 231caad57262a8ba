"""Systems of the user's own, named by their import path ``module:Class``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


def imported(path: str, place: str) -> type[System]:
    """The system class at ``module:Class``; importing runs the module's code.

    Raises:
        RecipeError: there is no such module or class, its code fails, or it is no System; `place` says where
            the path was named.
    """
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise RecipeError(f"{place}: module {module!r} cannot be imported: {error}") from None
    except AttributeError:
        raise RecipeError(f"{place}: module {module!r} has no {name!r}") from None
    except Exception as error:  # the user's module may fail in any way; the cause is chained for debugging
        raise RecipeError(f"{place}: module {module!r} fails: {type(error).__name__}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, System)):
        raise RecipeError(f"{place}: {path!r} is not a subclass of ecs_fluid.System")
    return found
