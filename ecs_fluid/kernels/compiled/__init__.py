"""How kernels are compiled: chunks, flags, threads, and the folder of compiled code.

Compiled code is cached in a folder of its own, named after a hash of every kernel source, of the numba,
llvmlite and numpy versions and of the settings: numba's own cache does not notice that a function called
from another module has changed, or a setting. Set ``ECS_FLUID_CACHE_DIR`` to move that folder, or
``NUMBA_CACHE_DIR`` to take charge of the cache yourself. Where it cannot be written to, each process
compiles anew.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import os
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba
from numpy.typing import NDArray

from ecs_fluid.kernels.compiled.cache_files import use_checked_files

Array = NDArray[Any]

CHUNKS = 64
"""Parallel loops are cut into this many pieces whatever the thread count, so sums keep their order."""

FAST = {"reassoc", "contract", "arcp", "nsz", "afn"}
"""Fast-math flags in use: all but ``nnan`` and ``ninf``, so that NaN and Inf are handled correctly."""

FAST_LOOP: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy"}
"""Options of most kernels that loop over particles or grid points."""

NEWEST_KNOWN_NUMBA = (0, 68)
"""Newest numba whose internals `shared_machine_code` and `numba_shortcuts` know; a newer one compiles
without them, more slowly."""

DEFAULT_SETTINGS = {"OPT": 3, "LOOP_VECTORIZE": 1, "SLP_VECTORIZE": 0, "DISABLE_JIT": 0, "BOUNDSCHECK": None}
DEFAULT_SETTINGS |= {"DEBUGINFO_DEFAULT": 0, "USING_SVML": False}
"""Settings of numba that change the code it generates, and their defaults."""


def cache_folder() -> Path:
    """Folder that holds the compiled kernels of exactly these sources, compiler versions and settings."""
    digest = hashlib.blake2b(digest_size=8)
    for name in ("numba", "llvmlite", "numpy"):
        digest.update(f"{name}={version(name)};".encode())
    for name in DEFAULT_SETTINGS:
        digest.update(f"{name}={getattr(numba.config, name)};".encode())
    kernels = Path(__file__).parents[1]
    for source in sorted(kernels.rglob("*.py")):
        digest.update(source.relative_to(kernels).as_posix().encode() + source.read_bytes())
    base = os.environ.get("ECS_FLUID_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache"), "ecs_fluid"
    )
    return Path(os.path.expanduser(base)) / digest.hexdigest()


def cache_location() -> tuple[Path, str]:
    """The folder of compiled code, and the environment variable that moves it."""
    own = os.environ.get("NUMBA_CACHE_DIR")
    return (Path(own), "NUMBA_CACHE_DIR") if own else (cache_folder(), "ECS_FLUID_CACHE_DIR")


def check_writable(folder: Path) -> None:
    """Make the folder if it is missing. Raises OSError if it cannot be written to."""
    if folder.parts[:1] == ("~",):  # it is left where a user has no home, as in some containers
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()


def writable_or_private(folder: Path) -> str:
    """This folder, or one of this process alone if it cannot be written to.

    Otherwise numba would use folders beside the sources, and not notice changes in other modules.
    """
    try:
        check_writable(folder)
        return str(folder)
    except OSError:
        return _private_folder()


def use_private_cache() -> None:
    """Cache functions decorated from now on for this process alone, unless the user manages the cache.

    The cache knows neither names nor contents of functions that are passed to kernels from outside.
    """
    if not os.environ.get("NUMBA_CACHE_DIR"):
        numba.config.CACHE_DIR = _private_folder()


def _private_folder() -> str:
    folder = tempfile.mkdtemp(prefix="ecs_fluid-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# GNU OpenMP's threads take 50 to 100 us to wake if they fall asleep between two loops, and a tick of a small
# world has some hundred loops with less than a millisecond of Python between any two of them. So threads spin
# for about that long (50,000 turns are 0.8 ms): a tick of the candle takes 3.9 instead of 4.5 ms. If another
# process wants the cores this is harmful: a barrier then takes a time slice, and a tick of 4 ms could take
# 50. `ecs_fluid.threads` detects that and gives systems one thread where that is faster. The library reads
# this setting when numba loads it, at the first parallel kernel.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "50000")

# numba would prefer a libtbb if the machine has one (ParaView brings one), but then a process spins in the
# library's shutdown for minutes after its last line (numba 0.68, Debian's libtbb 12.8). OpenMP exists on
# every Linux, and allows kernels from several Python threads, which the built-in "workqueue" does not.
if not {"NUMBA_THREADING_LAYER", "NUMBA_THREADING_LAYER_PRIORITY"} & set(os.environ):
    numba.config.THREADING_LAYER_PRIORITY = ["omp", "tbb", "workqueue"]

if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = writable_or_private(cache_folder())
    use_checked_files(numba.config.CACHE_DIR)

if numba.version_info.short <= NEWEST_KNOWN_NUMBA:
    from ecs_fluid.kernels.compiled.numba_shortcuts import skip_needless_work
    from ecs_fluid.kernels.compiled.shared_machine_code import share_machine_code

    share_machine_code()
    skip_needless_work()
