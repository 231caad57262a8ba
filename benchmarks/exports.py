"""Time, size and memory of exports of 100,000 particles. Run: python benchmarks/exports.py

Each format runs in a process of its own, whose largest resident memory is told.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROWS, FRAMES = 100_000, 100
FORMATS = ("usd", "vtp", "npz", "ply", "gltf", "xdmf", "vti", "vdb")


def make_run(path: Path) -> None:
    """A cloud that drifts, with velocities, temperatures and ids."""
    from ecs_fluid.io.runfolder import RunFolder

    x = np.random.default_rng(0).standard_normal((ROWS, 3)).astype(np.float32)
    with RunFolder.create(path, "", {}) as run, run.write_trajectory() as trajectory:
        for number in range(FRAMES):
            x += np.float32(0.01)
            columns = {"Position.x": x, "Velocity.u": 2 * x, "Temperature.T": 300 + x[:, 0] ** 2}
            trajectory.append(number, 0.04 * number, {"smoke": columns | {"RowId.id": np.arange(ROWS)}})


def measure(path: Path, to: str) -> None:
    """Export a tenth of the frames, then all, and print what that took."""
    import ecs_fluid as ef
    from ecs_fluid.exports import VOLUMES

    for frames in (FRAMES // 10, *([] if to in ("vti", "vdb") else [FRAMES])):
        wall, cpu = time.perf_counter(), time.process_time()
        voxel = 0.1 if to in VOLUMES else None
        target = ef.export(path, to, f":{frames}", path.parent / to, voxel=voxel, replace=True)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        size = sum(file.stat().st_size for file in target.iterdir()) / 1e6
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{to:5} {frames:4} frames: {wall:6.2f} s, cpu {cpu:6.2f} s, {size:6.1f} MB, peak {peak:4.0f} MB"
        )


def main() -> None:
    """All formats; one whose package is missing says so."""
    with tempfile.TemporaryDirectory() as place:
        make_run(Path(place) / "run")
        for to in FORMATS:
            subprocess.run([sys.executable, __file__, place, to], check=False)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        from ecs_fluid.errors import FluidError

        try:
            measure(Path(sys.argv[1]) / "run", sys.argv[2])
        except FluidError as error:
            print(f"{sys.argv[2]}: {error}")
    else:
        from asked import nothing

        nothing(__file__, __doc__)
        main()
