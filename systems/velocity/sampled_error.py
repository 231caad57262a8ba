"""Error of velocities compared with the direct sum, at a few particles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.own_code import is_shipped
from ecs_fluid.strays import sample_rows
from ecs_fluid.systems.partition import PartitionSystem
from ecs_fluid.systems.shared.populations import some_rows
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.drawn_sample import DrawnSample
from ecs_fluid.systems.velocity.vorton_flow import VortonFlow
from ecs_fluid.targets import Population, Targets

SAMPLE = 64
"""Number of vortons in the sample, and of other particles."""


def sampled_error(flow: VortonFlow, *groups: Sequence[Population]) -> float | None:
    """RMS error of the flow's velocity relative to its RMS, the largest of the groups of populations.

    It is compared with the sum over all vortons in unbounded space. None without particles, and for solvers
    of another flow: with walls, with images, and a user's own. A few particles beside thin cores or a body
    may have most of the error, so the sample is drawn by speed and by predicted error.
    """
    if (all_pairs := _all_pairs(flow)) is None:
        return None
    some = [_sample_rows(flow, populations) for populations in groups if populations]
    return max((_drawn_error(all_pairs, x, u) for x, u in some if len(x)), default=None)


def _drawn_error(all_pairs: VortonFlow, x: Array, u: Array) -> float:
    if (sample := _drawn(all_pairs, x, u)) is None:
        return math.nan
    exact, found = _exact(all_pairs, x[sample.rows]), u[sample.rows]
    # Relative to the RMS velocity that the vortons induce: the RMS of u times the sample's ratio of the two.
    induced, moved = (np.einsum("i,ij,ij->", sample.weight, v, v, dtype=np.float64) for v in (exact, found))
    error = sample.error([u], [exact])
    return error * math.sqrt(moved / induced) if moved > 0.0 and induced > 0.0 else error


def reads_well(flow: VortonFlow, populations: Sequence[Population], points: Targets, most: float) -> bool:
    """Whether the velocities that populations read between `points` of the grid are off by at most `most`.

    That is an RMS error relative to the RMS velocity. Where it is above `most`, the error of the solver's own
    sums at the points is taken off in squares, since sums at the particles would have it too. A few particles
    beside thin cores, or fast ones, may have all of the error, so the sample is drawn by both. A user's own
    flow is compared with itself at the particles, unless processes hold parts of the vortons.
    """
    if (all_pairs := _all_pairs(flow)) is None:
        if not len(flow.sources.sigma) or flow.solver.world.processes.holds_part(flow.sources):
            return True
        all_pairs = flow
    x, u = _sample_rows(flow, populations)
    if (sample := _drawn(all_pairs, x, u)) is None:
        return True
    some, grid = x[sample.rows], flow.grid
    if (error := sample.error([u], [_exact(all_pairs, some)])) <= most:
        return True
    nearest = np.clip(np.rint((some - grid.origin) / grid.spacing), 0, grid.cells).astype(np.int64)
    read = points.read
    assert read is not None
    at = np.searchsorted(np.flatnonzero(read), np.ravel_multi_index(tuple(nearest.T), read.shape))
    u[sample.rows] = points.u[at]
    own = sample.error([u], [_exact(all_pairs, points.x[at])])
    return math.sqrt(max(error**2 - own**2, 0.0)) <= most


def _all_pairs(flow: VortonFlow) -> VortonFlow | None:
    """The same flow by direct sums in unbounded space; None if the solver's flow is another one."""
    solver, sources, world = flow.solver, flow.sources, flow.solver.world
    elsewhere = solver.has_images or getattr(solver, "boundary", "open") != "open"
    if elsewhere or not is_shipped(type(solver)) or not len(sources.sigma):
        return None
    if world.processes.holds_part(sources):
        sources, _ = world.require(PartitionSystem).present()
    return VortonFlow.by(DirectSolver(solver.system), sources, flow.grid)


def _drawn(flow: VortonFlow, x: Array, u: Array) -> DrawnSample | None:
    """A sample of the rows at x (m, 3) m, drawn by their velocities u (m, 3) m/s and predicted errors."""
    from ecs_fluid.kernels.grids.spline_errors import squared_errors

    grid, vortons = flow.grid, flow.sources
    mesh = grid.origin, grid.spacing, grid.cells
    predicted = squared_errors(vortons.x, vortons.alpha, vortons.sigma, x, *mesh)
    return DrawnSample.of([u], SAMPLE, predicted)


def _exact(all_pairs: VortonFlow, x: Array) -> Array:
    exact = Targets.at(np.ascontiguousarray(x), gradient=False)
    all_pairs.fill(exact)
    return exact.u


def _sample_rows(flow: VortonFlow, populations: Sequence[Population]) -> tuple[Array, Array]:
    """Positions and velocities of some rows of one or more populations."""
    rows = [(entity, x, u) for entity, x, u, _ in populations]
    x, u = some_rows(flow.solver.world.processes, rows, sample_rows)
    return x, u
