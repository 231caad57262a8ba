"""All benchmarks, one after the other. Run: python benchmarks"""

from __future__ import annotations

import asked
import bodies
import eikonal
import fire
import fmm
import memory
import overhead
import pair_rate
import poisson
import recording
import solvers
import start
import ticks

asked.nothing("", __doc__)
for benchmark in (
    overhead,
    pair_rate,
    ticks,
    memory,
    start,
    poisson,
    solvers,
    fmm,
    bodies,
    fire,
    eikonal,
    recording,
):
    benchmark.main()
