"""A program whose kernel goes into the cache, for processes that tests start."""

from __future__ import annotations

from pathlib import Path


def program(folder: Path) -> Path:
    """A kernel that says its result, and whether it was found in the cache."""
    module = folder / "kept.py"
    module.write_text(
        "import numpy as np\n"
        "from ecs_fluid.kernels.compiled.parallel import parallel\n\n\n"
        '@parallel("len(x)")\n'
        "def fill(i, x):\n    x[i] = i\n\n\n"
        "x = np.zeros(5)\nfill(x)\n"
        "print(x.sum(), sum(fill.stats.cache_hits.values()))\n",
        encoding="utf-8",
    )
    return module
