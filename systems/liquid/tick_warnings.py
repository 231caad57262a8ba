"""Warnings about a liquid while it moves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.systems.liquid.heads import head_of_push

if TYPE_CHECKING:
    from ecs_fluid.systems.liquid.all_liquid import AllLiquid
    from ecs_fluid.systems.sph import SphSystem

SQUEEZED = 0.05
"""Compression by accelerations other than gravity from which on a warning is given."""


def warn_of_push(liquid: AllLiquid, push: Array) -> None:
    """Warn once of a push (n, 3) m/s^2 that is too strong for the speed of sound."""
    c, head = liquid.sound, head_of_push(liquid, push)
    own = head - head_of_push(liquid, None)  # without the compression by gravity
    if own > SQUEEZED * c**2:
        most = float(np.linalg.norm(push.astype(np.float64), axis=1).max())
        liquid.sph.warn(
            f"accelerations of up to {most:.3g} m/s^2 compress liquid by up to another "
            f"{100 * own / c**2:.2g} % at its speed of sound, {c:.3g} m/s; use sound_speed >= "
            f"{10 * math.sqrt(head):.2g} m/s",
            "push",
        )


def warn_of_speed(sph: SphSystem, speed: float, c: float) -> None:
    """Warn once of liquid that is too fast for its speed of sound `c`, both m/s."""
    if speed > 0.5 * c:
        sph.warn(
            f"liquid moves at {speed:.3g} m/s, above half its speed of sound of {c:.3g} m/s, and is "
            f"compressed by up to a quarter; use sound_speed >= {5 * speed:.2g} m/s",
            "speed",
        )


def warn_of_error(sph: SphSystem, error: float) -> None:
    """Warn once if an implicit solve ended with an `error`, 1, far above its tolerance."""
    if error > 10 * sph.tolerance:
        sph.warn(
            f"the pressure of a liquid leaves an error of {error:.2g} times its density, far above "
            f"tolerance; use a smaller stride, or dt < {sph.world.dt:.3g} s",
            "tolerance",
        )
