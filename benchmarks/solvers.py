"""Errors and times of all velocity solvers: ``python benchmarks/solvers.py``.

Prints the tables of docs/velocity.md and draws docs/images/solvers.png. Velocity and gradient at all vortons
of a thick ring (`systems.solver_bench.ring`), errors at 1,000 of them against the direct sum in double
precision, relative to the RMS. Single precision unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt

from ecs_fluid.systems.velocity.solver_bench import Measured, measure, measure_with, threads

SIZES = (1000, 2000, 4000, 8000, 16000, 32000, 64000)
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "solvers.png"

TURNS = 4

STYLES = {
    "direct": ("black", "o"),
    "tree": ("tab:green", "s"),
    "fmm": ("tab:blue", "^"),
    "poisson": ("tab:orange", "v"),
    "hybrid": ("tab:red", "D"),
    "auto": ("tab:gray", "x"),
}

ACCURACY: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    *((f"tree, angle {a:g}", {"solver": "tree", "angle": a}, {}) for a in (1.0, 0.7, 0.5, 0.35, 0.25)),
    *((f"fmm, tolerance {t:g}", {"solver": "fmm", "tolerance": t}, {}) for t in (1e-2, 1e-3, 1e-4)),
    *(
        (
            f"{solver}, {kernel}, {cells} cells per core",
            {"solver": solver, "kernel": kernel},
            {"cells_per_core": cells},
        )
        for solver in ("poisson", "hybrid")
        for kernel in ("gaussian", "winckelmans")
        for cells in (1.0, 2.0, 3.0)
    ),
)
"""Name, parameters of the VelocitySystem and of the PartitionSystem."""


def line(found: Measured, name: str) -> str:
    """One row of a table in Markdown."""
    return (
        f"| {found.vortons:,} | {name} | {1e3 * found.seconds:.2f} | {found.error:.1e} | {found.worst:.1e} "
        f"| {found.gradient_error:.1e} |"
    )


def main() -> None:
    """Print both tables and draw the picture."""
    print(f"{threads()} threads")
    head = "| vortons | solver | ms | u RMS | u worst | du RMS |\n|---|---|---|---|---|---|"
    print(head)
    accuracy = in_turns(
        [partial(measure_with, 4000, "single", True, velocity, grids) for _, velocity, grids in ACCURACY]
    )
    for found, (name, *_) in zip(accuracy, ACCURACY, strict=True):
        print(line(found, name), flush=True)
    print("\nfmm in double precision\n" + head)
    tolerances = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
    double = partial(measure_with, 4000, "double", True)
    for found, t in zip(
        in_turns([partial(double, {"solver": "fmm", "tolerance": t}) for t in tolerances]),
        tolerances,
        strict=True,
    ):
        print(line(found, f"fmm, tolerance {t:g}"), flush=True)
    print("\ntolerance 1e-3\n" + head)
    times: dict[str, list[Measured]] = {name: [] for name in STYLES}
    for n in SIZES:
        rows = in_turns([partial(measure, n, solver, "single", True, 1e-3) for solver in STYLES])
        for solver, found in zip(STYLES, rows, strict=True):
            times[solver].append(found)
            print(line(found, f"{solver} {found.setting}".strip()), flush=True)
    for k, n in enumerate(SIZES):
        best = min(times[solver][k].seconds for solver in ("direct", "tree", "fmm"))
        print(
            f"auto takes {times['auto'][k].seconds / best:.2f} times as long as the best with {n:,} vortons"
        )
    draw(times, accuracy)


def in_turns(measures: list[Callable[[], Measured]]) -> list[Measured]:
    """The fastest of TURNS of each; they take turns, as what else the machine does lasts for seconds."""
    turns = [[measured() for measured in measures] for _ in range(TURNS)]
    return [min(found, key=lambda found: found.seconds) for found in zip(*turns, strict=True)]


def draw(times: dict[str, list[Measured]], accuracy: list[Measured]) -> None:
    """Time against the number of vortons, and error against time."""
    matplotlib.use("Agg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    for solver, rows in times.items():
        color, marker = STYLES[solver]
        kept = [row for row in rows if row.seconds < 1e9]
        n, ms = [row.vortons for row in kept], [1e3 * row.seconds for row in kept]
        left.loglog(n, ms, color=color, marker=marker, label=solver, linewidth=1.2)
    left.set(xlabel="vortons", ylabel="velocity and gradient [ms]", title="1e-3, grids at their own error")
    left.legend(frameon=False)
    for found in accuracy:
        color, marker = STYLES[found.solver]
        right.loglog(1e3 * found.seconds, found.error, color=color, marker=marker, linestyle="none")
    right.set(
        xlabel="velocity and gradient [ms]",
        ylabel="RMS error of the velocity",
        title="4,000 vortons",
        xlim=(1, 100),
    )
    for axes in (left, right):
        axes.grid(True, which="major", alpha=0.3)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    from asked import nothing

    nothing(__file__, __doc__)
    main()
