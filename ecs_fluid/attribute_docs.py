"""Docstrings under the attributes of a class, which describe parameters."""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise, takewhile


def attribute_docstrings(owner: type) -> dict[str, str]:
    """The docstring under each annotated attribute of a class and of its bases in the package, by name.

    They are read from the source when they are asked for, so importing a class costs nothing; a class without
    source, typed into an interpreter, has none.
    """
    found = {}
    ours = takewhile(lambda base: base.__module__ not in ("pydantic.main", "esper"), owner.__mro__)
    for base in reversed(list(ours)):
        written = _classes(base.__module__).get(base.__name__)
        for statement, below in pairwise(written.body if written else ()):
            match statement, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """Syntax trees of the top-level classes of a module, by name; empty if it has no source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, KeyError):
        return {}
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
