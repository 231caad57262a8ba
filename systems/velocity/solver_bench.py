"""Times and errors of the velocity solvers, measured on a thick vortex ring."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numba
import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, SolverTimes, Strength, Velocity, VelocityGradient
from ecs_fluid.systems.partition import PartitionSystem
from ecs_fluid.systems.velocity.pppm import relative_error, size
from ecs_fluid.systems.velocity.solver import solver_class, solver_names
from ecs_fluid.systems.velocity.solver_times import NEVER, SHAPE, SIZES, TIMED, TOLERANCES
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.world import World
from ecs_fluid.world_options import Precision

SAMPLE = 1000
"""Number of vortons at which errors are measured."""

ROUNDS, ENOUGH, LONG = 3, 0.1, 1.0
"""The best of this many rounds counts: of more while they take less than ENOUGH s, of fewer above LONG s."""

PASSES = 2
"""Times for ``auto`` are measured in this many passes over all sizes."""

ANGLES = (1.0, 0.85, 0.7, 0.6, 0.5, 0.42, 0.35, 0.3, 0.25, 0.2)
"""Opening angles to try; the tree takes the widest that keeps the tolerance."""


class Measured(NamedTuple):
    """Times and errors of one solver at one number of vortons."""

    solver: str
    vortons: int
    setting: str
    seconds: float
    """best time, s, for velocity and gradient at all vortons, including all copying"""
    error: float
    """RMS error of the velocity relative to its RMS on the sample, compared with the direct sum in float64"""
    worst: float
    """largest error of the velocity, relative to the RMS velocity"""
    gradient_error: float
    """RMS error of the gradient relative to its RMS; 0 without gradients"""


def ring(n: int) -> dict[str, Array]:
    """n vortons at random in a torus of radii 1 m and 0.2 m, circulation 1 m^2/s, Gaussian profile."""
    draw = np.random.default_rng(5)
    angle, section = 2.0 * np.pi * draw.random((2, n))
    s = 0.2 * np.sqrt(draw.random(n))
    rho = 1.0 + s * np.cos(section)
    x = np.stack([rho * np.cos(angle), rho * np.sin(angle), s * np.sin(section)], axis=1)
    along = np.stack([-np.sin(angle), np.cos(angle), np.zeros(n)], axis=1)
    volume = 2.0 * np.pi * np.pi * 0.2**2 / n
    omega = np.exp(-((s / 0.1) ** 2)) / (np.pi * 0.1**2)
    sigma = np.full(n, 1.5 * volume ** (1.0 / 3.0))
    return {"x": x, "alpha": along * (omega * volume)[:, None], "sigma": sigma}


def measure(n: int, solver: str, precision: Precision, gradient: bool, tolerance: float) -> Measured:
    """Measure one solver; the tree takes its widest angle that keeps the tolerance, or the time NEVER."""
    if solver == "tree":
        found = None
        for angle in ANGLES:
            found = measure_with(
                n, precision, gradient, {"solver": "tree", "angle": angle}, setting=f"angle {angle:g}"
            )
            if max(found.error, found.gradient_error) <= tolerance:
                return found
        assert found is not None
        return found._replace(seconds=NEVER)
    if solver_class(solver).on_grid:
        return measure_with(n, precision, gradient, {"solver": solver})
    setting = f"tolerance {tolerance:.0e}" if solver in ("fmm", "pppm", "auto") else ""
    found = measure_with(n, precision, gradient, {"solver": solver, "tolerance": tolerance}, setting=setting)
    kept = solver == "direct" or max(found.error, found.gradient_error) <= tolerance
    return found if kept else found._replace(seconds=NEVER)


def calibrate(precision: Precision, say: Callable[[str], None]) -> Array:
    """Measure the times for `SolverTimes`; `say` is called with a line for each step.

    A time is that of ``auto`` with a single solver to choose from: with the angle that it found, and with the
    direct sum after it where the solver does not keep the tolerance. The best of PASSES counts, since other
    work slows a machine down for seconds, and would then do so for one solver only.
    """
    seconds = np.full(SHAPE, NEVER)
    for turn, (i, n) in itertools.product(range(PASSES), enumerate(SIZES)):
        say(f"pass {turn + 1} of {PASSES}, {precision} precision, {n} vortons")
        for (k, gradient), (t, tolerance), s in itertools.product(
            enumerate((False, True)), enumerate(TOLERANCES), range(len(TIMED))
        ):
            if s == 0 and t > 0:
                seconds[k, t, s, i] = seconds[k, 0, s, i]
                continue
            only = np.full(SHAPE, NEVER)
            only[:, :, s] = 1.0
            parameters = {"solver": "auto", "tolerance": tolerance}
            found = measure_with(n, precision, gradient, parameters, times=only)
            seconds[k, t, s, i] = min(seconds[k, t, s, i], found.seconds)
    return seconds


def table(
    sizes: tuple[int, ...], tolerance: float, precision: Precision, more: tuple[str, ...] = ()
) -> Iterator[Measured]:
    """Measure every solver that ships, that an installed package offers or that `more` names, by size."""
    for n, solver in itertools.product(sizes, solver_names(more)):
        yield measure(n, solver, precision, True, tolerance)


def measure_with(
    n: int,
    precision: Precision,
    gradient: bool,
    parameters: dict[str, Any],
    grids: dict[str, Any] | None = None,
    *,
    setting: str = "",
    times: Array | None = None,
) -> Measured:
    """Measure a solver with given parameters of the VelocitySystem and `grids` for the PartitionSystem.

    ``auto`` chooses by `times`, or by default by the times of this machine.
    """
    cloud = ring(n)
    world = World(dt=1e-3, precision=precision)
    world.spawn("ring", Position(cloud["x"]), Strength(cloud["alpha"]), CoreRadius(cloud["sigma"]))
    if times is not None:
        world.attach(world.fluid.name, SolverTimes(seconds=times))
    partition = world.add_system(PartitionSystem(**(grids or {})))
    velocity = world.add_system(VelocitySystem(gradient=gradient, **parameters))
    assert world.schedule.systems
    best, rounds, spent = np.inf, 0, 0.0
    world._ticker.warned = True  # advice on a world in which nothing moves is useless
    world.step()  # nothing moves; ``auto`` measures in this tick, and not in the next seven
    with world._active():
        partition.process(world.dt)
        while spent < (LONG if rounds < ROUNDS else ENOUGH):
            start = time.perf_counter()
            velocity.process(world.dt)
            seconds = time.perf_counter() - start
            best, rounds, spent = min(best, seconds), rounds + 1, spent + seconds
    rows = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
    u, du = _exact(cloud, rows, parameters.get("kernel", "winckelmans"))
    found = world["ring"][Velocity].u[rows]
    slope = relative_error(world["ring"][VelocityGradient].du[rows], du) if gradient else 0.0
    worst = float(np.linalg.norm(found - u, axis=1).max()) / size(u)
    return Measured(parameters["solver"], n, setting, best, relative_error(found, u), worst, slope)


def _exact(cloud: dict[str, Array], rows: Array, kernel: str) -> tuple[Array, Array]:
    from ecs_fluid.kernels.biot_savart import direct, regularisation

    x = np.ascontiguousarray(cloud["x"][rows])
    sx, sa = (np.ascontiguousarray(cloud[key].T) for key in ("x", "alpha"))
    u, du = np.empty_like(x), np.empty((len(x), 3, 3))
    code = regularisation.CODES[kernel]
    direct.velocity_gradient(code, x, sx, sa, cloud["sigma"], u, du)
    return u, du


def threads() -> int:
    """Threads that the kernels use."""
    import ecs_fluid.kernels  # noqa: F401  (it chooses their library, and asking starts them)

    return int(numba.get_num_threads())
