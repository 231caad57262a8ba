"""The longest stable time step of a liquid."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError
from ecs_fluid.systems.shared.liquid_places import bodies_at, near_solids
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.sph.step import LiquidLaw

MOST_STEPS = 1000

MOST_SOUND = 3.5
"""Longest way of sound in a step of implicit pressure, in reaches: longer steps need more iterations in
all."""

STIFFEST = 45.0
"""Least R^2 / (nu step), nu the viscosity. Friction damps the shortest waves of a lattice at the rate
71 nu / R^2, so they grow with steps above R^2 / (35 nu); there is a margin for liquid denser than the
lattice."""

HELD = 75.0
"""The same with no-slip walls: three that meet in a corner add friction of the rate 80 nu / R^2."""

CAPILLARY = 0.5
"""Longest step over sqrt(rho a^3 / (2 pi sigma)), the time of the shortest capillary waves, where a is the
spacing (Brackbill, Kothe and Zemach, J. Comput. Phys. 100, 1992)."""

FEW = 64
"""Only the fastest particles, one in this many, are checked for encounters: all would take longer than a
step."""


def capillary_step(mass: float, tension: float) -> float:
    """Longest step, s, of particles of `mass` kg with the surface tension `tension`, N/m; rho a^3 is the
    mass."""
    return CAPILLARY * math.sqrt(mass / (2 * math.pi * tension))


class StepLimits(NamedTuple):
    """What limits the steps of a tick.

    sound: largest speed of sound c at rest, m/s. pull: largest acceleration by gravity and other pushes,
    m/s^2. courant: step over the time that sound takes for half a reach. stride: with implicit pressure, the
    way in a step over the reach, of the fastest particle that meets another; 0 with explicit pressure. most:
    steps per tick that the user set, or 0. lightest: least mass of a particle, kg.
    """

    world: World
    law: LiquidLaw
    sound: float
    pull: float
    courant: float
    stride: float
    most: int
    lightest: float = 1.0

    def steps_needed(self, left: float, done: int, x: Array, v: Array, speed: float, peak: float) -> int:
        """Number of steps for the `left` s of a tick, after `done` steps.

        ``x`` and ``v`` (n, 3) are in m and m/s; ``speed`` is the largest speed and ``peak`` the largest
        compression. Raises FluidError if more steps are needed than are allowed.
        """
        if self.stride:
            longest = self._implicit_step(self._meeting_speed(left, speed, x, v))
        else:
            # By Tait's law the speed of sound grows as the third power of the compression.
            way = 0.5 * self.courant * self.law.reach
            longest = way / (self.sound * max(peak, 1.0) ** 3 + speed)
        if self.pull > 0:
            longest = min(longest, math.sqrt(0.06 * self.law.reach / self.pull))
        if self.law.viscosity > 0:
            stiffest = HELD if self.law.no_slip else STIFFEST
            longest = min(longest, self.law.reach**2 / (stiffest * self.law.viscosity))
        if self.law.tension > 0:
            longest = min(longest, capillary_step(self.lightest, self.law.tension))
        # The guard reports a speed that is not finite.
        steps = math.ceil(left / longest * (1 - 1e-9)) if math.isfinite(longest) and longest > 0 else 1
        steps = max(steps, 1)
        if done + steps > (self.most or MOST_STEPS):
            raise FluidError(self._step_error(longest))
        return self.most - done if self.most else steps

    def _implicit_step(self, meeting: float) -> float:
        """Longest step of implicit pressure, s, for the speed `meeting`, m/s, of particles that meet."""
        meeting = max(meeting + self.pull * self.world.dt, 1e-9 * self.sound)
        return self.law.reach * min(MOST_SOUND / self.sound, self.stride / meeting)

    def _meeting_speed(self, left: float, speed: float, x: Array, v: Array) -> float:
        """The speed that limits an implicit step, m/s.

        It is half the relative speed of two particles that meet in the `left` s of the tick, or the speed of
        one towards a wall that it meets. Only the fastest particles, one in `FEW`, are checked; the others
        count with their speed.
        """
        from ecs_fluid.kernels.sph.meeting_speeds import meeting_speed, wall_speed
        from ecs_fluid.kernels.sph.mirror_images import container_planes

        dt, reach = self.world.dt, self.law.reach
        enough = self.stride * reach / left - self.pull * dt
        if not enough < speed < math.inf:
            return speed
        speeds = np.sqrt(np.einsum("ij,ij->i", v, v, dtype=np.float64))
        others = len(v) - 1 - len(v) // FEW
        slow = max(enough, float(np.partition(speeds, others)[others]))
        swift = np.flatnonzero(speeds > slow)
        if not len(swift):
            return speed
        found = max(slow, 0.5 * meeting_speed(x, v, swift, reach, left))
        obstacles, hulls = bodies_at(self.world, dt, reach)
        if obstacles is None or hulls is None:
            return min(found, speed)
        place, velocity = x[swift].astype(np.float64), v[swift].astype(np.float64)
        planes = container_planes(obstacles, hulls)[0]
        found = max(found, wall_speed(place, velocity, planes, np.array(self.law.gravity), reach, left))
        if len(obstacles.containers) < len(obstacles.x1):
            way = dt * (speed + float(np.linalg.norm(obstacles.v, axis=1).max()))
            close = near_solids(self.world, place, reach + way)
            found = max(found, float(speeds[swift][close].max(initial=0.0)))
        return min(found, speed)

    def _step_error(self, longest: float) -> str:
        dt, wanted = self.world.dt, math.ceil(self.world.dt / longest)
        said = f"steps = {self.most}" if self.most else f"at most {MOST_STEPS} steps"
        what = "pressure waves would overtake the particles and throw them apart"
        if self.stride:
            what = "particles would go through others unseen"
        return (
            f"SphSystem: dt = {dt:.4g} s with {said} makes steps longer than {longest:.3g} s, in which "
            f"{what}; use dt <= {longest * (self.most or MOST_STEPS):.2g} s"
            f"{f' or steps = {wanted}' if wanted <= MOST_STEPS else ''}"
        )
