"""The longest stable time step of a liquid."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError
from ecs_fluid.systems.liquid.constants import TAIT
from ecs_fluid.systems.liquid.places import bodies_at, near_solids
from ecs_fluid.systems.liquid.tick_warnings import warn_of_speed

if TYPE_CHECKING:
    from ecs_fluid.kernels.sph.step import LiquidLaw
    from ecs_fluid.systems.liquid.all_liquid import AllLiquid

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


class StepLimits:
    """What limits the steps of a tick.

    sound: largest speed of sound c at rest, m/s. pull: largest acceleration by gravity and other pushes,
    m/s^2. stride: with implicit pressure, the way in a step over the reach, of the fastest particle that
    meets another; 0 with explicit pressure.
    """

    def __init__(self, liquid: AllLiquid, law: LiquidLaw, pull: Array) -> None:
        """The accelerations `pull` (n, 3) m/s^2 are those beside the forces."""
        from ecs_fluid.kernels.compiled.columns import max_norm

        self.liquid, self.law, self.sph, self.world = liquid, law, liquid.sph, liquid.world
        _, _, mass, size, _ = liquid.particles
        # A light liquid beside a heavy one is equally stiff, so sound is faster in it.
        self.sound = math.sqrt(TAIT * law.stiffness * law.volume * float((size / mass).max()))
        if liquid.push is None:
            self.pull = liquid.largest_weight(liquid.density) * float(np.linalg.norm(self.world.gravity))
        else:
            self.pull = max_norm(pull)
        self.stride = self.sph.stride if self.sph.pressure == "implicit" else 0.0
        self._lightest = float(mass.min())

    def steps_needed(self, left: float, done: int, peak: float) -> int:
        """Number of steps for the `left` s of a tick, after `done` steps; `peak` is the largest compression.

        Raises FluidError if more steps are needed than are allowed.
        """
        from ecs_fluid.kernels.compiled.columns import max_norm

        most, speed = self.sph.steps, max_norm(self.liquid.particles.v)
        warn_of_speed(self.sph, speed, self.sound)
        if self.stride:
            longest = self._implicit_step(self._meeting_speed(left, speed))
        else:
            # By Tait's law the speed of sound grows as the third power of the compression.
            way = 0.5 * self.sph.courant * self.law.reach
            longest = way / (self.sound * max(peak, 1.0) ** 3 + speed)
        if self.pull > 0:
            longest = min(longest, math.sqrt(0.06 * self.law.reach / self.pull))
        if self.law.viscosity > 0:
            stiffest = HELD if self.law.no_slip else STIFFEST
            longest = min(longest, self.law.reach**2 / (stiffest * self.law.viscosity))
        if self.law.tension > 0:
            longest = min(longest, capillary_step(self._lightest, self.law.tension))
        # The guard reports a speed that is not finite.
        steps = math.ceil(left / longest * (1 - 1e-9)) if math.isfinite(longest) and longest > 0 else 1
        steps = max(steps, 1)
        if done + steps > (most or MOST_STEPS):
            raise FluidError(self._step_error(longest))
        return most - done if most else steps

    def _implicit_step(self, meeting: float) -> float:
        """Longest step of implicit pressure, s, for the speed `meeting`, m/s, of particles that meet."""
        meeting = max(meeting + self.pull * self.world.dt, 1e-9 * self.sound)
        return self.law.reach * min(MOST_SOUND / self.sound, self.stride / meeting)

    def _meeting_speed(self, left: float, speed: float) -> float:
        """The speed that limits an implicit step, m/s.

        It is half the relative speed of two particles that meet in the `left` s of the tick, or the speed of
        one towards a wall that it meets. Only the fastest particles, one in `FEW`, are checked; the others
        count with their speed.
        """
        from ecs_fluid.kernels.sph.meeting_speeds import meeting_speed, wall_speed
        from ecs_fluid.kernels.sph.mirror_images import container_planes

        dt, reach = self.world.dt, self.law.reach
        x, v, *_ = self.liquid.particles
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
        dt, most, wanted = self.world.dt, self.sph.steps, math.ceil(self.world.dt / longest)
        said = f"steps = {most}" if most else f"at most {MOST_STEPS} steps"
        what = "pressure waves would overtake the particles and throw them apart"
        if self.stride:
            what = "particles would go through others unseen"
        return (
            f"SphSystem: dt = {dt:.4g} s with {said} makes steps longer than {longest:.3g} s, in which "
            f"{what}; use dt <= {longest * (most or MOST_STEPS):.2g} s"
            f"{f' or steps = {wanted}' if wanted <= MOST_STEPS else ''}"
        )
