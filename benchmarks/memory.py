"""Resident memory per particle at a million each, after a tick. Run: python benchmarks/memory.py"""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys, resource, gc
import numpy as np
import ecs_fluid as ef

vortons, tracers = int(sys.argv[1]), int(sys.argv[2])
def now():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

def world_of(vortons, tracers):
    world = ef.World(dt=1e-3, integrator="euler")
    draw = np.random.default_rng(1)
    x = draw.random((vortons, 3), dtype=np.float32)
    core, volume = np.full(vortons, 0.02, np.float32), np.full(vortons, 1e-6, np.float32)
    world.spawn("v", ef.Position(x), ef.Strength(1e-9 * x), ef.CoreRadius(core), ef.Volume(volume))
    if tracers:
        world.spawn("t", ef.Position(draw.random((tracers, 3), dtype=np.float32)))
    world.add_system(ef.PartitionSystem(cells_per_core=0.0))
    velocity = dict(solver="tree", at="grid", leaf="supervortons", opening="box", kernel="rankine")
    world.add_system(ef.VelocitySystem(**velocity))
    world.add_system(ef.StretchSystem())
    world.add_system(ef.AdvectionSystem())
    return world

small = world_of(1000, 1000)
small.step()
before = now()
world = world_of(vortons, tracers)
world.step()
print(now() - before)
"""


def grown(vortons: int, tracers: int) -> int:
    """Bytes that one world of that size adds to a process that has already run a small one."""
    command = [sys.executable, "-c", CODE, str(vortons), str(tracers)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main() -> None:
    """Print bytes per vorton and per tracer."""
    million = 1_000_000
    vortons = grown(million, 0)
    both = grown(million, million)
    each = (both - vortons) / million
    print(f"resident memory: {vortons / million:.0f} bytes per vorton, {each:.0f} per tracer")


if __name__ == "__main__":
    from asked import nothing

    nothing(__file__, __doc__)
    main()
