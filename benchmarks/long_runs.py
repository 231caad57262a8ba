"""What keeps long runs alive: ``python benchmarks/long_runs.py [picture.png]``, a minute on two cores.

Two wavy rings of opposite circulation run into each other without viscosity and burst into vortons that the
cores no longer resolve. The table says how long each method lasts and what it does to energy and enstrophy,
which the true flow keeps and raises; with a file name the energies are drawn into it.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np

import ecs_fluid as ef

SECONDS, DT, LINES, BLOBS, WAVES = 14.0, 0.05, 6, 63, 5

TRANSPOSED: tuple[type[ef.System], dict[str, Any]] = (ef.StretchSystem, {"scheme": "transposed"})

METHODS: dict[str, tuple[tuple[type[ef.System], dict[str, Any]], ...]] = {
    "limited (default)": (),
    "transposed": (TRANSPOSED,),
    "alignment, 3/s": ((ef.AlignmentSystem, {"rate": 3.0}),),
    "subfilter": ((ef.SubfilterSystem, {}),),
    "subfilter, C = 1": ((ef.SubfilterSystem, {"coefficient": "constant"}),),
    "reformulation (transposed)": (TRANSPOSED, (ef.ReformulationSystem, {})),
    "reformulation + subfilter (transposed)": (
        TRANSPOSED,
        (ef.ReformulationSystem, {}),
        (ef.SubfilterSystem, {}),
    ),
    "the same, impulse kept": (
        TRANSPOSED,
        (ef.ReformulationSystem, {}),
        (ef.SubfilterSystem, {"keeps_impulse": True}),
    ),
}


def ring(height: float, circulation: float, amplitude: float) -> list[ef.Component]:
    """A line of blobs and six around it, all with the same helical wave."""
    phi = 2 * math.pi * np.arange(BLOBS) / BLOBS
    wave, slope = amplitude * np.cos(WAVES * phi), -WAVES * amplitude * np.sin(WAVES * phi)
    places = [(0.0, 0.0)] + [
        (0.1 * math.cos(2 * math.pi * k / LINES), 0.1 * math.sin(2 * math.pi * k / LINES))
        for k in range(LINES)
    ]
    shares = np.array([math.exp(-(s * s + z * z) / 0.09**2) for s, z in places])
    x, alpha = [], []
    for (s, z), share in zip(places, shares / shares.sum(), strict=True):
        r = 1 + s + wave
        x.append([r * np.cos(phi), r * np.sin(phi), height + z + amplitude * np.sin(WAVES * phi)])
        along = [slope * np.cos(phi) - r * np.sin(phi), slope * np.sin(phi) + r * np.cos(phi), WAVES * wave]
        alpha.append(circulation * share * 2 * math.pi / BLOBS * np.array(along))
    rows = [np.concatenate(np.array(parts), axis=1).T for parts in (x, alpha)]
    return [ef.Position(rows[0]), ef.Strength(rows[1]), ef.CoreRadius(np.full(len(rows[0]), 0.15))]


def run(systems: tuple[tuple[type[ef.System], dict[str, Any]], ...]) -> tuple[list[tuple[float, ...]], float]:
    """(time, energy, enstrophy) each half second over their first values; wall-clock time of a tick, s."""
    world = ef.World(dt=DT, integrator="rk3", precision="double")
    world.spawn("below", *ring(-0.6, 1.0, 0.05))
    world.spawn("above", *ring(0.6, -1.0, -0.05))
    world.add_systems([kind(**parameters) for kind, parameters in systems])
    if world.system(ef.StretchSystem) is None:
        world.add_system(ef.StretchSystem())
    world.add_systems([ef.VelocitySystem(), ef.AdvectionSystem()])
    first = world.diagnostics()
    records, spent = [(0.0, 1.0, 1.0)], 0.0
    while world.time < SECONDS - 1e-9 and records[-1][2] < 1e3:
        began = time.perf_counter()
        try:
            world.step(10)
        except ef.DivergedError:
            records.append((world.time, math.inf, math.inf))
            break
        # The first ticks may compile.
        spent += time.perf_counter() - began if world.tick > 10 else 0.0
        now = world.diagnostics()
        records.append((world.time, now["energy"] / first["energy"], now["enstrophy"] / first["enstrophy"]))
    return records, spent / max(world.tick - 10, 1)


def draw(found: dict[str, list[tuple[float, ...]]], path: str) -> None:
    """Energy over time into a PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.6), dpi=110)
    axes.axhline(1.0, color="0.8", linewidth=6, label="true flow")
    for name, records in found.items():
        t, energy, _ = np.array(records).T
        axes.plot(t, energy, label=name)
    axes.set(xlim=(0, SECONDS), ylim=(0, 2.6), xlabel="time, s", ylabel="energy / energy at the start")
    axes.legend(fontsize=8, loc="upper left")
    figure.tight_layout()
    figure.savefig(path)


def main(picture: str | None = None) -> None:
    """Print the table; draw if asked."""
    warnings.simplefilter("ignore")
    found = {}
    print(
        f"{'method':38} {'lasts, s':>9} {'E at 4 s':>9} {'E at 8 s':>9} {'E at 12 s':>9} {'Z at 8 s':>9} "
        f"{'ms/tick':>8}"
    )
    for name, systems in METHODS.items():
        records, tick = run(systems)
        found[name] = records
        blown = records[-1][2] >= 1e3
        lasts = f"{records[-2][0]:.1f}" if blown else f"> {SECONDS:.0f}"
        shown = [
            f"{records[k][i]:9.2f}" if k < len(records) - blown else f"{'-':>9}"
            for k, i in ((8, 1), (16, 1), (24, 1), (16, 2))
        ]
        print(f"{name:38} {lasts:>9} {' '.join(shown)} {1e3 * tick:8.1f}")
    if picture:
        draw(found, picture)


if __name__ == "__main__":
    from asked import picture

    main(picture(__file__, __doc__))
