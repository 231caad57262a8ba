"""Commands that measure this machine: bench velocity."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from ecs_fluid.cli import Threads, app, err, out
from ecs_fluid.component import Array
from ecs_fluid.errors import FluidWarning
from ecs_fluid.io.disk import make_folder, replace_text
from ecs_fluid.plugins import searching
from ecs_fluid.threads import use_threads

bench = App(name="bench", help="Measure the speed and the errors of solvers on this machine.")
app.command(bench)


@bench.command
def velocity(
    *,
    sizes: Annotated[
        tuple[int, ...],
        Parameter(help="numbers of vortons; default 1000 to 64000", validator=Number(gte=100, lte=10**7)),
    ] = (),
    tolerance: Annotated[
        float,
        Parameter(help="relative RMS error that fmm, tree and auto keep", validator=Number(gte=1e-9, lte=1)),
    ] = 1e-3,
    precision: Literal["single", "double"] = "single",
    solver: Annotated[
        tuple[str, ...], Parameter(help="a solver of yours for the table, module:Class in this folder")
    ] = (),
    calibrate: Annotated[
        bool | None,
        Parameter(
            negative="--no-calibrate",
            help="measure what `auto` chooses by, and keep it; default: only without --sizes",
        ),
    ] = None,
    threads: Threads = None,
) -> None:
    """Time and error of every velocity solver; without --sizes also what `auto` chooses by.

    Velocity and gradient at all vortons of a thick ring; errors at 1,000 of them against the direct sum in
    double precision.
    """
    use_threads(threads)
    calibrate = not sizes if calibrate is None else calibrate
    sizes = sizes or (1000, 4000, 16000, 64000)
    from ecs_fluid.systems.velocity import solver_bench, solver_times
    from ecs_fluid.systems.velocity.solver import solver_class

    with searching(Path.cwd()):
        names = tuple(solver_class(name, allow_code=True).name for name in solver)
    if calibrate:
        # Calibration finds out which solvers miss a tolerance, so their warnings are left out.
        with warnings.catch_warnings(action="ignore", category=FluidWarning):
            times = solver_bench.calibrate(precision, err.print)
        path = _store(precision, times)
        out.print(f"times for `auto` kept in {path}")
    out.print(
        f"velocity and gradient of a thick ring, {precision} precision, {solver_bench.threads()} threads; "
        "errors relative to the RMS"
    )
    out.print(
        f"{'vortons':>9s} {'solver':8s} {'setting':16s} {'ms':>9s} "
        f"{'u RMS':>8s} {'u worst':>8s} {'du RMS':>8s}"
    )
    for row in solver_bench.table(sizes, tolerance, precision, names):
        spent = f"{1e3 * row.seconds:9.2f}" if row.seconds < solver_times.NEVER else f"{'missed':>9s}"
        out.print(
            f"{row.vortons:9d} {row.solver:8s} {row.setting:16s} {spent} "
            f"{row.error:8.1e} {row.worst:8.1e} {row.gradient_error:8.1e}"
        )


def _store(precision: str, seconds: Array) -> Path:
    """Keep the times for `auto`; returns the file."""
    from ecs_fluid.systems.velocity import solver_times

    path = solver_times.stored_path()
    try:
        document = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        document = {}
    document[precision] = [[[[float(f"{s:.4g}") for s in row] for row in b] for b in a] for a in seconds]
    make_folder(path.parent)
    replace_text(path, json.dumps(document, indent=1) + "\n", "store the times")
    solver_times.stored.cache_clear()
    return path
