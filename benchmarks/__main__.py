"""All benchmarks, one after the other. Run: python benchmarks"""

from __future__ import annotations

import article
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

asked.nothing("", __doc__)
for benchmark in (
    overhead,
    pair_rate,
    article,
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
