"""One world on many ranks: memory, bytes, time a tick. Run: python benchmarks/ranks.py [VORTONS TRACERS]"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import ecs_fluid as ef
from ecs_fluid.ranks.machine import PER_MACHINE
from ecs_fluid.ranks.start import on_ranks

RANKS = (1, 2, 4)
TICKS = 2


def world_of(vortons: int, tracers: int) -> ef.World:
    """A cube of random vortons full of tracers, with the settings of benchmarks/memory.py."""
    world = ef.World(dt=1e-3, integrator="euler")
    draw = np.random.default_rng(1)
    x = draw.random((vortons, 3), dtype=np.float32)
    core, volume = np.full(vortons, 0.02, np.float32), np.full(vortons, 1e-6, np.float32)
    world.spawn("v", ef.Position(x), ef.Strength(1e-9 * x), ef.CoreRadius(core), ef.Volume(volume))
    world.spawn("t", ef.Position(draw.random((tracers, 3), dtype=np.float32)))
    world.add_system(ef.PartitionSystem(cells_per_core=0.0))
    velocity: dict[str, Any] = {
        "solver": "tree", "at": "grid", "leaf": "supervortons", "opening": "box", "kernel": "rankine",
    }  # fmt: skip
    world.add_system(ef.VelocitySystem(**velocity))
    world.add_system(ef.StretchSystem())
    world.add_system(ef.AdvectionSystem())
    return world


def resident() -> int:
    """Bytes of this process now."""
    from ecs_fluid.ranks.ranks import memory

    return memory()["now"]


def ticked(world: ef.World) -> dict[str, Any]:
    """Seconds of a tick after the first, and what every rank says."""
    world.step()
    begun = time.perf_counter()
    world.step(TICKS)
    seconds = (time.perf_counter() - begun) / TICKS
    return {"seconds": seconds, "hash": world.state_hash(), "ranks": world._rank_statistics()}


def worker(vortons: int, tracers: int) -> None:
    """What mpiexec starts."""
    with on_ranks() as share:
        if share is not None:
            small = world_of(1000, 1000)
            share(small)
            small.step()
            before = [rank["memory"]["now"] for rank in small.on_ranks()]
            bytes_before = [traffic(rank) for rank in small.on_ranks()]
            world = world_of(vortons, tracers)
            share(world)
            found = ticked(world)
            for rank, start, passed in zip(found["ranks"], before, bytes_before, strict=True):
                rank["grown"] = rank["memory"]["now"] - start
                rank["passed"] = [a - b for a, b in zip(traffic(rank), passed, strict=True)]
            print(json.dumps(found))


def traffic(rank: dict[str, Any]) -> list[int]:
    """Bytes sent and received by a rank for its ticks."""
    told = [v for k, v in rank["traffic"].items() if k not in ("start", "files")]
    return [sum(item[key] for item in told) for key in ("sent", "received")]


def run(count: int, vortons: int, tracers: int, **variables: str) -> dict[str, Any]:
    """What `worker` finds on so many ranks."""
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
    command = [mpiexec, "-n", str(count), sys.executable, __file__, "worker", str(vortons), str(tracers)]
    environment = dict(os.environ, **variables)
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def on_the_wire(count: int, vortons: int, tracers: int) -> tuple[float, float]:
    """Bytes that passed the loopback interface, all messages going through it, and bytes counted."""
    meter = Path("/sys/class/net/lo/statistics/rx_bytes")
    before = int(meter.read_text(encoding="utf-8"))
    # For MPICH over UCX, as its wheels have it: no shared memory, everything by TCP.
    by_tcp = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "all"}
    found = run(count, vortons, tracers, **by_tcp, **{PER_MACHINE: "1"})
    passed = int(meter.read_text(encoding="utf-8")) - before
    told = [traffic["received"] for rank in found["ranks"] for traffic in rank["traffic"].values()]
    return passed, sum(told)


def main(vortons: int, tracers: int) -> None:
    """Print one row for each number of ranks, then counted bytes against those on the wire."""
    print(f"{vortons:,} vortons, {tracers:,} tracers; of the ranks: mean and most")
    print("ranks machines  s/tick    MB grown   MB received a tick  million pairs a tick  hash")
    for count, machines in [(1, 1), *((ranks, k) for ranks in RANKS[1:] for k in (1, ranks))]:
        found = run(count, vortons, tracers, **{PER_MACHINE: str(count // machines)})
        grown = [rank["grown"] / 1e6 for rank in found["ranks"]]
        came = [rank["passed"][1] / 1e6 / (TICKS + 1) for rank in found["ranks"]]
        pairs = [
            sum(w["pairs"] for w in rank["work"].values()) / 1e6 / (TICKS + 1) for rank in found["ranks"]
        ]
        columns = [f"{np.mean(values):7.1f} {max(values):7.1f}" for values in (grown, came, pairs)]
        print(f"{count:5d} {machines:8d}  {found['seconds']:6.2f}  {'   '.join(columns)}     {found['hash']}")
    for count in RANKS[1:]:
        passed, counted = on_the_wire(count, vortons // 10, tracers // 10)
        print(f"{count} machines, a tenth: {counted / 1e6:.2f} MB counted, {passed / 1e6:.2f} MB on the wire")


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(int(sys.argv[2]), int(sys.argv[3]))
    else:
        from asked import parser, positive

        reader = parser(__file__, __doc__)
        reader.add_argument("vortons", metavar="VORTONS", nargs="?", type=positive, default=1_000_000)
        reader.add_argument("tracers", metavar="TRACERS", nargs="?", type=positive, default=4_000_000)
        main(**vars(reader.parse_args()))
