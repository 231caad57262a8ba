"""Ticks on all cores beside one process that keeps a core busy, and what threads can gain at all.

Two worlds of vortons and smoke (velocity with errors of 1e-2, stretching, diffusion), ms of the clock a tick:
one thread alone; all threads alone; all threads beside a busy process that the benchmark starts (how many
threads a tick takes is found while the world runs, which counts). The bound is the throughput of as many
processes of one thread each as there are cores: cores that share their units gain less than their number.
Run: python benchmarks/neighbour.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from article import CASES, ring_world
from asked import nothing

TICKS = 100


def child(case: int, threads: int) -> subprocess.Popen[str]:
    """A process that runs a world for TICKS ticks once it reads a line, and prints the mean of a tick, ms."""
    environment = os.environ | {"NUMBA_NUM_THREADS": str(threads)}
    command = [sys.executable, "-W", "ignore", "-c", f"import neighbour; neighbour.run({case})"]
    process = subprocess.Popen(
        command,
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parent,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def finished(*processes: subprocess.Popen[str]) -> float:
    """Let them run; their mean time of a tick, ms."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return statistics.mean(float(process.communicate()[0]) for process in processes)


def run(case: int) -> None:
    """What a child does."""
    world = ring_world(*CASES[case])
    world.step(20)
    print("ready", flush=True)
    sys.stdin.readline()
    started = time.perf_counter()
    world.step(TICKS)
    print(1e3 * (time.perf_counter() - started) / TICKS)


def main() -> None:
    """Print a line for each world."""
    cores = os.cpu_count() or 1
    for case in range(2):
        alone, every = finished(child(case, 1)), finished(child(case, cores))
        waiting = child(case, cores)
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        beside = finished(waiting)
        busy.kill()
        bound = finished(*[child(case, 1) for _ in range(cores)])
        print(f"{CASES[case][0]} + {CASES[case][1]}: one thread {alone:.1f} ms")
        print(f"  {cores} threads {every:.1f} ms, {alone / every:.2f} times as fast", end=" ")
        print(f"(bound {cores * alone / bound:.2f})")
        print(f"  beside a busy process {beside:.1f} ms, {beside / alone:.2f} times one thread alone")


if __name__ == "__main__":
    nothing(__file__, __doc__)
    main()
