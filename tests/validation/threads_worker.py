"""Prints the state hash of small worlds after some ticks, as JSON; run by test_determinism.

Usage: python threads_worker.py all|some 1,2,4,8
The environment's NUMBA_NUM_THREADS must be at least the largest of the thread counts.
"""

from __future__ import annotations

import itertools
import sys
import warnings

import numpy as np
from thread_hashes import print_hashes

import ecs_fluid as ef

SOLVERS = ("direct", "tree", "fmm", "poisson", "hybrid", "auto")
PLACES = ("vortons", "grid")
PRECISIONS = ("single", "double")
INTEGRATORS = ("euler", "rk2", "rk3", "rk4")

SAME = (("poisson", "grid"), ("hybrid", "grid"))

SOME = (
    ("direct", "vortons", "double", "rk3"),
    ("direct", "grid", "single", "euler"),
    ("tree", "vortons", "single", "rk2"),
    ("tree", "grid", "double", "rk4"),
    ("fmm", "vortons", "single", "euler"),
    ("poisson", "vortons", "single", "euler"),
    ("hybrid", "vortons", "double", "euler"),
    ("auto", "grid", "single", "euler"),
    ("box", "vortons", "single", "rk2"),
)
"""One of each in the quick test, and a world that repeats; the nightly test takes the whole product."""


def busy_world(solver: str, at: str, precision: str, integrator: str, count: int = 400) -> ef.World:
    """Vortons in two populations, an emitter of more, tracers, viscosity, ageing: every system has work."""
    draw = np.random.default_rng(9)
    cells = 8000  # coarse: threads share the same work, and less of it
    world = ef.World(dt=0.02, integrator=integrator, precision=precision, seed=12)
    if solver == "box":
        periods = (2.0, 1.5, 0.0)
        world = ef.World(dt=0.02, integrator=integrator, precision=precision, seed=12, periodic=periods)
        solver, cells = "poisson", 2000
    for name, n in (("cloud", count), ("few", 13)):
        world.spawn(
            name,
            ef.Position(draw.uniform(-1, 1, (n, 3))),
            ef.Strength(0.01 * draw.standard_normal((n, 3))),
            ef.CoreRadius(draw.uniform(0.15, 0.25, n)),
            ef.Volume(draw.uniform(0.005, 0.01, n)),
        )
    world.spawn("smoke", ef.Position(draw.uniform(-1, 1, (300, 3))), ef.Age)
    emitter = ef.Emitter(
        name="tap",
        into="few",
        rate=170.0,
        spread=(0.5, 0.5, 0.5),
        strength_spread=(0.01, 0.01, 0.01),
        core=0.2,
    )
    world.set_fluid(viscosity=1e-3)
    world.add_systems(
        [
            ef.PartitionSystem(cells=cells),
            ef.VelocitySystem(solver=solver, at=at, mollify=1.0),
            ef.StretchSystem(),
            ef.DiffusionSystem(),
            ef.EmissionSystem(emitters=[emitter]),
            ef.AgeLimitSystem(seconds=0.05, on=("smoke",)),
            ef.DiagnosticsSystem(every=2, jerk=True),
            ef.AdvectionSystem(),
        ]
    )
    return world


def main() -> None:
    """Print the hashes of the chosen combinations, by name."""
    warnings.simplefilter("ignore")
    chosen = SOME
    if sys.argv[1] == "all":
        # The grid's solvers give vortons the same velocity wherever it is asked for: one flow, not two.
        every = itertools.product(SOLVERS, PLACES, PRECISIONS, INTEGRATORS)
        chosen = tuple(choice for choice in every if choice[:2] not in SAME)

    def hashed() -> dict[str, str]:
        found = {}
        for combination in chosen:
            world = busy_world(*combination)
            world.step(2)
            found["/".join(combination)] = world.state_hash()
        return found

    print_hashes(sys.argv[2], hashed)


if __name__ == "__main__":
    main()
