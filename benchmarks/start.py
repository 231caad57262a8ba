"""Warm start: from the command to the end of its first tick. Run: python benchmarks/start.py"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    """Print the median time of ``ecs-fluid run vortex_ring --ticks 1`` with a filled cache."""
    command = Path(sys.executable).with_name("ecs-fluid")
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(6):
            started = time.perf_counter()
            subprocess.run(
                [command, "run", "vortex_ring", "--ticks", "1", "--out", f"{folder}/{number}"],
                check=True,
                capture_output=True,
            )
            times.append(time.perf_counter() - started)
    print(f"warm start to the first tick, whole command: median {statistics.median(times[1:]):.2f} s")


if __name__ == "__main__":
    from asked import nothing

    nothing(__file__, __doc__)
    main()
