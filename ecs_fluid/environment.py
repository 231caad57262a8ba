"""Environment variables with which libraries that are loaded later fail."""

from __future__ import annotations

import os
import re
import time

from ecs_fluid.errors import FluidError

LAYERS = ("tbb", "omp", "workqueue")
"""numba's libraries of threads"""


def check_environment() -> None:
    """Raise FluidError where a library would fail later, in the middle of a run.

    numba takes a number of threads that is none for its default, with a warning, but fails at one below 1.
    numpy.f2py, which scipy.spatial loads, fails where SOURCE_DATE_EPOCH is no time.
    """
    threads = os.environ.get("NUMBA_NUM_THREADS", "1")
    if re.fullmatch(r"\s*[+-]?\d{1,18}\s*", threads) and int(threads) < 1:
        raise FluidError(f"NUMBA_NUM_THREADS = {threads!r}: at least 1 thread is needed")
    layer = os.environ.get("NUMBA_THREADING_LAYER", "default")
    known = ("default", "safe", "forksafe", "threadsafe", *LAYERS)
    if layer.lower() not in known:
        raise FluidError(f"NUMBA_THREADING_LAYER = {layer!r}: one of {', '.join(known)} is needed")
    order = os.environ.get("NUMBA_THREADING_LAYER_PRIORITY", " ".join(LAYERS))
    if sorted(order.split()) != sorted(LAYERS):
        raise FluidError(
            f"NUMBA_THREADING_LAYER_PRIORITY = {order!r}: {' '.join(LAYERS)}, in any order, is needed"
        )
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is not None:
        try:
            time.asctime(time.gmtime(int(text)))
        except (ValueError, OverflowError, OSError):
            raise FluidError(
                f"SOURCE_DATE_EPOCH = {text!r}: a whole number of seconds since 1970 is needed; or unset it"
            ) from None
