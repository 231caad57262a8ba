"""Numba kernels on plain arrays: they import numpy and numba only, and nothing else of ecs_fluid.

Compiled code is cached in a folder of its own, named after a hash of every kernel source and of the
numba, llvmlite and numpy versions: numba's own cache does not notice that a function called from
another module has changed. Set ``ECS_FLUID_CACHE_DIR`` to move that folder, or ``NUMBA_CACHE_DIR`` to
take charge of the cache yourself.
"""

from __future__ import annotations

import hashlib
import os
from importlib.metadata import version
from pathlib import Path

CHUNKS = 64
"""Parallel loops are cut into this many pieces whatever the thread count, so sums keep their order."""

FAST = {"reassoc", "contract", "arcp", "nsz", "afn"}
"""Fast-math flags in use: everything but ``nnan`` and ``ninf``, so NaN and Inf stay honest."""


def cache_folder() -> Path:
    """Folder that holds the compiled kernels of exactly these sources and these compiler versions."""
    digest = hashlib.blake2b(digest_size=8)
    for name in ("numba", "llvmlite", "numpy"):
        digest.update(f"{name}={version(name)};".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + source.read_bytes())
    base = os.environ.get("ECS_FLUID_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(Path.home(), ".cache"), "ecs_fluid"
    )
    return Path(base) / digest.hexdigest()


# GNU OpenMP threads spin at every barrier by default. When another process wants a core, each barrier then
# waits for a whole time slice: ticks of 5 ms took 140 to 370 ms on two busy cores, and 4 to 9 ms when waiting
# asleep. Spinning for a moment first costs little there, and where cores are free the short loops of
# multigrid and scatter take a third less (5.3 in place of 8.0 ms). Read by the library when numba loads it,
# at the first parallel kernel.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

if not os.environ.get("NUMBA_CACHE_DIR"):
    import numba

    numba.config.CACHE_DIR = str(cache_folder())
