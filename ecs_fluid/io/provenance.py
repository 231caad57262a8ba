"""What the bits of a result depend on beside its recipe: versions, processor, and the code of the kernels."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from ecs_fluid.errors import StorageError

PACKAGES = ("ecs-fluid", "numpy", "numba", "llvmlite", "scipy", "esper", "h5py", "pydantic")


@cache
def provenance() -> dict[str, str]:
    """By name what this process computes with; equal ones compute the same bits from the same state."""
    from llvmlite import binding
    from numba import config

    from ecs_fluid.kernels.compiled import cache_folder

    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    # As numba compiles for: the processor found, or what its variables name.
    features = config.CPU_FEATURES
    if features is None:
        features = "" if config.CPU_NAME == "generic" else binding.get_host_cpu_features().flatten()
    digest = hashlib.blake2b(features.encode(), digest_size=4).hexdigest()
    found["processor"] = f"{config.CPU_NAME or binding.get_host_cpu_name()} {platform.machine()} {digest}"
    return {**found, "kernels": cache_folder().name}


def differences(other: Mapping[str, str]) -> list[str]:
    """Where another provenance differs from this process's, in words."""
    ours = provenance()
    return [
        f"{name} {other.get(name, '(unknown)')} (here {ours.get(name, 'none')})"
        for name in dict.fromkeys([*other, *ours])
        if other.get(name) != ours.get(name)
    ]


def refuse_elsewhere(path: object, then: Mapping[str, str], anyway: bool) -> None:
    """Raise StorageError where a state was computed with something else, unless `anyway`."""
    if not anyway and (found := differences(then)):
        raise StorageError(
            f"{path} was computed with {', '.join(found)}: its bits would not go on as there; "
            "continue where it was made, or accept that: --anyway, in Python anyway=True"
        )
