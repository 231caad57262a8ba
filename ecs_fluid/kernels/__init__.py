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

import numba

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

# Where a libtbb lies on the machine (ParaView brings one), numba would take it first; a process then spins in
# the library's shutdown for minutes after its last line (numba 0.68, Debian's libtbb 12.8). OpenMP is on
# every Linux, and allows kernels from several Python threads, which the built-in "workqueue" does not.
if not {"NUMBA_THREADING_LAYER", "NUMBA_THREADING_LAYER_PRIORITY"} & set(os.environ):
    numba.config.THREADING_LAYER_PRIORITY = ["omp", "tbb", "workqueue"]

if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = str(cache_folder())
