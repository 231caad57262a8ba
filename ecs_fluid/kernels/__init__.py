"""Numba kernels on plain arrays: they import numpy and numba only, and nothing else of ecs_fluid."""

import ecs_fluid.kernels.compiled  # noqa: F401  (the cache folder is set before the first kernel)
