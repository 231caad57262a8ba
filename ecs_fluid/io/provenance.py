"""What the bits of a result depend on besides its recipe: versions, processor, settings and code."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ecs_fluid.errors import StorageError
from ecs_fluid.own_code import digest

PACKAGES = ("ecs-fluid", "numpy", "numba", "llvmlite", "scipy", "esper", "h5py", "pydantic")

CODE_VARIABLES = (
    "NPY_DISABLE_CPU_FEATURES",
    "NPY_ENABLE_CPU_FEATURES",
    "OPENBLAS_CORETYPE",
    "GLIBC_TUNABLES",
)
"""Environment variables by which numpy, its linear algebra and the C library choose their code."""

LONGEST = 300
"""Most characters of one entry"""

Text = Annotated[str, Field(max_length=LONGEST)]
Provenance = Annotated[dict[Text, Text], Field(max_length=1000)]
"""What `provenance` returns, as files hold it."""


@cache
def provenance() -> dict[str, str]:
    """What this process computes with, by name; where all are equal, the same state gives the same bits."""
    from llvmlite import binding
    from numba import config
    from numba.core.registry import cpu_target

    from ecs_fluid.kernels.compiled import DEFAULT_SETTINGS, cache_folder

    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    found["libc"] = " ".join([platform.system(), *platform.libc_ver()])
    # Numpy chooses code for this processor; numba compiles for it, or for the one that its variables name.
    here = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    _, *target = cpu_target.target_context.codegen().magic_tuple()
    found["processor"] = f"{here[0]} {platform.machine()} {digest(here[1].encode())}"
    if target != [*here]:
        found["processor"] += f" as {target[0]} {digest(target[1].encode())}"
    for name, usual in DEFAULT_SETTINGS.items():
        value = getattr(config, name)
        is_max = getattr(value, "is_opt_max", False)  # level "max" equals 3 as a number
        if is_max or value != usual:
            found[f"numba's {name}"] = "max" if is_max else f"{value:d}"
    found |= {name: value for name in CODE_VARIABLES if (value := os.environ.get(name))}
    found |= {"code": _code(Path(__file__).parents[1]), "kernels": cache_folder().name}
    return {name: value[:LONGEST] for name, value in found.items()}


def digest_of(file: Path) -> str:
    """Digest of the content of a file."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, partial(hashlib.blake2b, digest_size=8)).hexdigest()


def _code(package: Path) -> str:
    """Digest of the modules that make, step and store a world; the kernels have their own."""
    digests = []
    for path, folders, names in os.walk(package, followlinks=True):
        others = {"cli", "exports", "viz", "kernels", "sweeps"}
        folders[:] = sorted(name for name in folders if name not in others and name[0] != ".")
        for name in sorted(names):
            if name.endswith(".py") and name[0] != ".":
                with suppress(OSError):
                    digests.append(digest_of(Path(path, name)))
    return digest("".join(digests).encode())


def differences(other: Mapping[str, str], ours: Mapping[str, str] | None = None) -> list[str]:
    """Where another provenance differs from ours, by default this process's, in words."""
    ours = provenance() if ours is None else ours
    return [
        f"{name} {other.get(name, '(unknown)')} (here {ours.get(name, 'none')})"
        for name in dict.fromkeys([*other, *ours])
        if other.get(name) != ours.get(name)
    ]


def refuse_other_provenance(
    path: object, then: Mapping[str, str], anyway: bool, ours: Mapping[str, str] | None = None
) -> None:
    """Raise StorageError where a state was computed with something else, unless `anyway`."""
    if not anyway and (found := differences(then, ours)):
        more = f" and {len(found) - 6} more" if len(found) > 6 else ""
        raise StorageError(
            f"{path} was computed with {', '.join(found[:6])}{more}, so the bits may change if it is "
            "continued here; continue it where it was made, or accept that: --anyway, in Python anyway=True"
        )
