"""Writing and opening a page of 20,000 particles x 100 frames. Run: python benchmarks/page.py

Needs Chromium (apt-get install chromium), which draws in software here: the picture takes longer than on any
graphics card, the data do not.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROWS, FRAMES, TIMES = 20_000, 100, 3


def make_run(path: Path) -> None:
    """A cloud that swirls: places, velocities, temperatures."""
    from ecs_fluid.io.runfolder import RunFolder

    x = np.random.default_rng(0).standard_normal((ROWS, 3)) * [1.0, 1.0, 0.3]
    with RunFolder.create(path, "", {}) as run, run.write_trajectory() as trajectory:
        for number in range(FRAMES):
            u = np.cross([0.0, 0.0, 1.0], x) / (0.2 + (x**2).sum(axis=1, keepdims=True))
            columns = {"Position.x": x, "Velocity.u": u, "Temperature.T": 300 + 50 * x[:, 0]}
            single = {name: values.astype(np.float32) for name, values in columns.items()}
            trajectory.append(number, 0.04 * number, {"smoke": single})
            x = x + 0.04 * u


def main() -> None:
    """Write the page, open it a few times, print what that took."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import ecs_fluid as ef
    from tests.viz.page.chromium import Browser

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_run(folder / "run")
        wall, cpu = time.perf_counter(), time.process_time()
        page = ef.page(folder / "run", out=folder / "page")
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        size = sum(file.stat().st_size for file in page.rglob("*") if file.is_file())
        needed = sum(file.stat().st_size for file in (page / "data").glob("x_*.js"))
        print(f"writing: {wall:.1f} s, {cpu:.1f} s of processor time, {size / 1e6:.1f} MB")
        print(f"places, which are all that the first look needs: {needed / 1e6:.1f} MB")
        print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        for attempt in range(TIMES):
            with Browser(folder / f"profile{attempt}") as browser:
                browser.open(page / "index.html")
                browser.wait("ecsFluidPage.state().loaded === 1")
                state = browser.state()
                time.sleep(4.0)  # until it has found out how fine it can draw here
                before = browser.state()["draws"]
                time.sleep(5.0)
                played = browser.state()
                times = ", ".join(
                    f"{what} after {state[key] / 1000:.2f} s"
                    for what, key in (("script", "began"), ("picture", "first"), ("all data", "all"))
                )
                rate = (played["draws"] - before) / 5
                print(f"opening: {times}; plays at {rate:.1f} pictures/s, level {played['level']}")


if __name__ == "__main__":
    from asked import nothing

    nothing(__file__, __doc__)
    main()
