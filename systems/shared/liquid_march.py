"""The time steps of a liquid through one tick."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array

if TYPE_CHECKING:
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.collision.swept_bodies import Obstacles
    from ecs_fluid.kernels.sph.step import Evaluation, LiquidLaw

    Bodies = tuple[Obstacles | None, Hulls | None]


class Particles(NamedTuple):
    """All particles of liquid, concatenated: positions (n, 3) m, velocities (n, 3) m/s, masses (n,) kg, V /
    V_0 (n,) and excess (n,)."""

    x: Array
    v: Array
    mass: Array
    size: Array
    excess: Array


class MarchResult(NamedTuple):
    """Results of a tick: the last forces; mean loads (bodies, 6) in N and N m; energy lost, J; number of
    steps."""

    last: Evaluation
    loads: Array
    lost: float
    steps: int


def march(
    law: LiquidLaw, liquid: Particles, real: int, bodies: Bodies, pull: Array, dt: float,
    steps_needed: Callable[[float, int, float | None], int],
    forces: Callable[[Particles, Bodies, float], Evaluation],
) -> MarchResult:  # fmt: skip
    """Advance the liquid in place through a tick of `dt` s, in drift-kick-drift steps as long as allowed.

    Rows from `real` on are in the pipes of inflows: they push others, and keep their velocities. `bodies` are
    as the tick begins; `pull` (n, 3) m/s^2 is the acceleration beside the forces. ``needed(left, done,
    peak)`` returns the number of steps for the `left` s of the tick, after `done` steps, with the largest
    compression `peak` (None at first). ``forces(liquid, bodies, step)`` returns the forces in the middle of a
    step.
    """
    from ecs_fluid.kernels.sph.step import mirror_into_containers, moved_bodies

    (x, v, mass, _, excess), kind = liquid, liquid.x.dtype.type
    obstacles, hulls = bodies
    loads, lost = np.zeros((0 if obstacles is None else len(obstacles.x0), 6)), 0.0
    ahead = np.zeros_like(excess)
    time, done, more = 0.0, 0, steps_needed(dt, 0, None)
    step, held = dt / more, None
    x += kind(step / 2) * v
    while more:
        there = None if obstacles is None else moved_bodies(obstacles, time + step / 2)
        given, held = mirror_into_containers(law, x[:real], v[:real], mass, there, hulls, held)
        loads += given / dt
        # Extrapolated by half a step with the last rate: second order, except in the first step of a tick.
        found = forces(liquid._replace(excess=excess + kind(step / 2) * ahead), (there, hulls), step)
        time, done = time + step, done + 1
        more = 0 if more == 1 else steps_needed(dt - time, done, float(found.nu.max()))
        following = (dt - time) / more if more else 0.0
        found.force[real:] = 0
        v += kind(step) * (found.force / mass[:, None] + pull)
        x += kind((step + following) / 2) * v
        ahead = found.rate
        ahead[real:] = 0
        excess += kind(step) * ahead
        loads += found.loads * (step / dt)
        lost += step * found.loss
        step = following
    there = None if obstacles is None else moved_bodies(obstacles, dt)
    loads += mirror_into_containers(law, x[:real], v[:real], mass, there, hulls, held)[0] / dt
    return MarchResult(found, loads, lost, done)
