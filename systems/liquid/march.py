"""The time steps of a liquid through one tick."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.liquid import LiquidModel
from ecs_fluid.systems.liquid.all_liquid import AllLiquid, Particles
from ecs_fluid.systems.liquid.places import bodies_at
from ecs_fluid.systems.liquid.steps import StepLimits

if TYPE_CHECKING:
    from ecs_fluid.kernels.sph.step import Evaluation, LiquidLaw
    from ecs_fluid.systems.liquid.places import Bodies


class MarchResult(NamedTuple):
    """Results of a tick: the last forces; mean loads (bodies, 6) in N and N m; energy lost, J; number of
    steps."""

    last: Evaluation
    loads: Array
    lost: float
    steps: int


def march(
    liquid: AllLiquid, law: LiquidLaw, pull: Array, dt: float, limits: StepLimits,
    forces: Callable[[Particles, Bodies, float], Evaluation],
) -> MarchResult:  # fmt: skip
    """Advance the liquid in place through a tick of `dt` s, in drift-kick-drift steps as long as allowed.

    Particles in the pipes of inflows push others, and keep their velocities. `pull` (n, 3) m/s^2 is the
    acceleration beside the forces. ``forces(particles, bodies, step)`` returns the forces in the middle of a
    step.
    """
    from ecs_fluid.kernels.sph.step import mirror_into_containers, moved_bodies

    (x, v, mass, _, excess), count = liquid.particles, liquid.count
    kind, peak = x.dtype.type, float(liquid.sph.field(LiquidModel).peak[0])
    obstacles, hulls = bodies_at(liquid.world, dt, law.reach)
    loads, lost = np.zeros((0 if obstacles is None else len(obstacles.x0), 6)), 0.0
    ahead = np.zeros_like(excess)
    time, done, more = 0.0, 0, limits.steps_needed(dt, 0, peak)
    step, held = dt / more, None
    x += kind(step / 2) * v
    while more:
        there = None if obstacles is None else moved_bodies(obstacles, time + step / 2)
        given, held = mirror_into_containers(law, x[:count], v[:count], mass, there, hulls, held)
        loads += given / dt
        # Extrapolated by half a step with the last rate: second order, except in the first step of a tick.
        found = forces(
            liquid.particles._replace(excess=excess + kind(step / 2) * ahead), (there, hulls), step
        )
        time, done = time + step, done + 1
        more = 0 if more == 1 else limits.steps_needed(dt - time, done, float(found.nu.max()))
        following = (dt - time) / more if more else 0.0
        found.force[count:] = 0
        v += kind(step) * (found.force / mass[:, None] + pull)
        x += kind((step + following) / 2) * v
        ahead = found.rate
        ahead[count:] = 0
        excess += kind(step) * ahead
        loads += found.loads * (step / dt)
        lost += step * found.loss
        step = following
    there = None if obstacles is None else moved_bodies(obstacles, dt)
    loads += mirror_into_containers(law, x[:count], v[:count], mass, there, hulls, held)[0] / dt
    return MarchResult(found, loads, lost, done)
