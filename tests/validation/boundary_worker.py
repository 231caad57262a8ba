"""Prints state hashes of worlds with a boundary condition by thread count, as JSON; run by test_boundary.

Usage: python boundary_worker.py 1,2,4
"""

from __future__ import annotations

import json
import sys

import numba
from boundary_flows import busy_world
from plane_flows import shedding


def main() -> None:
    """Print {threads: {boundary: hash}}."""
    result: dict[str, dict[str, str]] = {}
    for threads in sys.argv[1].split(","):
        numba.set_num_threads(int(threads))
        result[threads] = {}
        worlds = {"article": busy_world("article"), "panels": busy_world("panels"), "plane": shedding()}
        for boundary, world in worlds.items():
            world.step(4)
            result[threads][boundary] = world.state_hash()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
