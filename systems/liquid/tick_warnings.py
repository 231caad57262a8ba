"""Warnings about a liquid while it moves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Position
from ecs_fluid.components.bodies import FREE, Body, Hinge
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.systems.liquid.heads import head_of_push
from ecs_fluid.systems.shared.body_tables import body_entities, column_of, leaders_of, of_whole
from ecs_fluid.systems.shared.populations import rows_of_each

if TYPE_CHECKING:
    from ecs_fluid.systems.liquid.all_liquid import AllLiquid
    from ecs_fluid.systems.sph import SphSystem

SQUEEZED = 0.05
"""Compression by accelerations other than gravity from which on a warning is given."""

CROWDED = 1.3
"""Compression at the start that counts as crowded: two lattices that overlap by 0.6 spacings have it."""

FEW_CROWDED = 0.01
"""Part of an entity that may be crowded: of a lattice with the largest jitter one particle in 1e5 is."""


def warn_of_crowds(sph: SphSystem, nu: Array) -> None:
    """Warn once of liquid that is far denser at the start than at rest; `nu` (n,) is its compression, 1."""
    crowds = [
        (entity, int((nu[rows] > CROWDED).sum()))
        for entity, rows in rows_of_each(entity for entity, _ in sph.entities(Position, Liquid))
    ]
    if any(count > FEW_CROWDED * len(entity) for entity, count in crowds):
        told = [f"{count} of {len(entity)} particles of {entity.name!r}" for entity, count in crowds if count]
        sph.warn(
            f"{' and '.join(told)} are compressed, up to {nu.max():.3g} times, and will fly apart: liquids "
            "overlap there, or reach through a wall; fill each place only once",
            "crowded",
        )


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


def warn_of_thrown_bodies(sph: SphSystem, force: Array, dt: float, c: float) -> None:
    """Warn once of a free body that the `force` (n, 3) N of liquid throws in a tick of `dt` s.

    The liquid's speed of sound `c`, m/s, is ten times the largest velocity that it is meant for, by default.
    """
    entities = body_entities(sph.world)
    if not entities:
        return
    leader = leaders_of(entities)
    mass, force = (of_whole(leader, of) for of in (column_of(entities, Body, "mass"), force))
    free = (column_of(entities, Body, "motion") == FREE) & ~column_of(entities, Hinge, "axis").any(axis=1)
    gain = np.where(free, dt * np.linalg.norm(force, axis=1) / mass, 0.0)
    for entity, rows in rows_of_each(entities):
        most = float(gain[rows].max(initial=0.0))
        if most > 0.1 * c:
            sph.warn(
                f"in one tick the liquid changes the velocity of the body {entity.name!r} by {most:.3g} m/s, "
                f"more than the {0.1 * c:.3g} m/s that liquid is meant to move at: free bodies move once in "
                "a tick, and light ones are thrown; use a smaller dt, or a heavier body",
                "thrown",
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
