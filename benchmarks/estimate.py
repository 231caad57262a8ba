"""How near `ecs-fluid run --estimate` comes: predicted over measured time and disk, for whole runs.

Run: python benchmarks/estimate.py [--cpu] [WORLD ...]

With --cpu both are measured in processor time of one thread, which others on the machine disturb less.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from pathlib import Path

WORLDS = ("vortex_ring", "candle", "jet_ring", "thermal_plume")


def main(worlds: tuple[str, ...] = WORLDS) -> None:
    """Estimate each world, run it, print the ratios."""
    import tomli_w

    from ecs_fluid.errors import FluidWarning
    from ecs_fluid.io.runfolder import RunFolder
    from ecs_fluid.runs.estimate import estimate
    from ecs_fluid.runs.runner import Runner
    from ecs_fluid.worlds.world_recipe import read

    warnings.simplefilter("ignore", FluidWarning)
    print(
        f"{'world':16} {'ticks':>5} {'seconds':>16} {'ratio':>6} {'MB':>16} {'ratio':>6} {'estimating':>10}"
    )
    for name in worlds:
        recipe = read(name)
        options = (recipe.every, recipe.output.checkpoint_seconds)
        began = time.perf_counter()
        found = estimate(
            lambda dt, name=name: read(name, (f"world.dt={dt!r}",)).build(),  # type: ignore[misc]
            recipe.world.dt,
            recipe.ticks,
            *options,
        )
        took = time.perf_counter() - began
        with tempfile.TemporaryDirectory() as place:
            folder = RunFolder.create(Path(place) / "run", tomli_w.dumps(recipe.tables()), {"world": name})
            job = Runner(recipe.build(), folder, recipe.ticks, *options)
            began = time.perf_counter()
            job.execute(lambda world, last: False)
            seconds = time.perf_counter() - began
            disk = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file())
        print(
            f"{name:16} {recipe.ticks:5} {found.seconds:7.1f} {seconds:8.1f} {found.seconds / seconds:6.2f} "
            f"{found.disk / 1e6:7.1f} {disk / 1e6:8.1f} {found.disk / disk:6.2f} {took:8.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    from asked import parser

    reader = parser(__file__, __doc__)
    reader.add_argument("--cpu", action="store_true")
    reader.add_argument("worlds", metavar="WORLD", nargs="*", default=WORLDS)
    asked = reader.parse_args()
    if asked.cpu:  # before anything of numba is loaded
        os.environ["NUMBA_NUM_THREADS"] = "1"
        time.perf_counter = time.process_time
    main(tuple(asked.worlds))
