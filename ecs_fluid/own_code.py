"""The user's own code in a world: digests of its modules as they were loaded."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

MOST_MODULES = 200
"""Modules that are read for their digests"""

_loaded: dict[tuple[str, Path], tuple[object, str, frozenset[str]]] = {}
"""By module and file: the module's spec when first asked for, and the digest and words of the file then"""


def digest(content: bytes) -> str:
    """Digest (hex) of the content of a file."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def is_shipped(kind: type) -> bool:
    """Whether a class comes with ecs_fluid."""
    return kind.__module__.startswith("ecs_fluid.")


def remember_code(kind: type) -> None:
    """Take the digests of the modules of a user's class when it is defined, before somebody edits them."""
    code_named_in(f"{kind.__module__}:{kind.__qualname__}")


def code_named_in(document: Any) -> dict[str, str]:
    """Digests, by "module NAME", of the user's loaded modules that a document names, as ``module:Class``.

    Modules beside these, and in packages beside these, are included if the code contains their names.
    """
    names = re.findall(r'"([^":]+):[\w.<>]+"', json.dumps(document, default=str, ensure_ascii=False))
    pending = {
        name: Path(file)
        for name in names
        if name.partition(".")[0] not in ("ecs_fluid", "__main__")
        and (file := getattr(sys.modules.get(name), "__file__", None))
    }
    digests: dict[str, str] = {}
    while pending and len(digests) < MOST_MODULES:
        name = next(iter(pending))
        file = pending.pop(name)
        digests[name], words = _code(name, file)
        package = name if file.stem == "__init__" else name.rpartition(".")[0]
        pending |= {
            name: path for name, path in _neighbours(file.parent, package, words) if name not in digests
        }
    return {f"module {name}": digests[name] for name in sorted(digests)}


def _neighbours(
    folder: Path, package: str, words: frozenset[str], depth: int = 4
) -> Iterator[tuple[str, Path]]:
    """Names and files of modules in a package's folder ("" for no package) or below that `words` contain."""
    with suppress(OSError):
        stems = {name.partition(".")[0] for name in os.listdir(folder)}
        for word in sorted(stems & {*words, "__init__"} - {"ecs_fluid"}):
            path = folder / word
            name = package if word == "__init__" else f"{package}.{word}".lstrip(".")
            if name and path.with_suffix(".py").is_file():
                yield name, path.with_suffix(".py")
            if depth and path.is_dir():
                yield from _neighbours(path, name, words, depth - 1)


def _code(name: str, file: Path) -> tuple[str, frozenset[str]]:
    """Digest and words of a module when first asked for after it was loaded: later edits do not run."""
    spec = getattr(sys.modules.get(name), "__spec__", None)  # loading it again makes another one
    known = _loaded.get((name, file))
    if known is None or (spec is not None and spec is not known[0]):
        try:
            source = file.read_bytes()
            words = re.findall(r"[^\W\d]\w{0,98}", source.decode(errors="replace"))
            known = spec, digest(source), frozenset(words)
        except OSError:  # the file was removed after the import
            known = spec, "gone", frozenset()
        _loaded[name, file] = known
    return known[1:]
