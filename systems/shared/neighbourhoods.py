"""Particles that exchange with their neighbours, and the images of these behind walls or in a periodic world.

Behind a wall that mirrors, the fluid goes on as its own mirror image; a world that repeats goes on as copies
of its box. An amount, such as heat, is the same in an image, so nothing of it flows through the wall. A
strength is a pseudovector: its image is mirrored and turned round, so that there is no vorticity along a wall
at which fluid slips. A pair of a particle p and an image of q has its counterpart across the wall, q and the
image of p, so what one gains the other loses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.entity import Entity
from ecs_fluid.periodic import images
from ecs_fluid.systems.shared.fluid_walls import fluid_walls
from ecs_fluid.systems.shared.walls import Walls, along, images_behind, vortex_walls
from ecs_fluid.world import World

DEEP = 0.5
"""How far outside of walls a particle may be and still count as inside, in exchange radii: the stages of a
tick, and walls that move, may leave it there."""


class Neighbourhood(NamedTuple):
    """Particles between which there is no wall, followed by images of them."""

    held: Array
    """(k,) rows of the particles"""
    shown: Array
    """(m,) row of the particle that each image shows"""
    number: Array
    """(m,) 1 for the first image of a particle, 2 for its second one, and so on"""
    places: Array
    """(m, 3) m of the images"""
    turns: Array
    """(m, 3, 3) map of a strength to that of the image; (0, 3, 3) if images are moved only"""

    @classmethod
    def periodic(cls, x: Array, periods: Array, reach: float) -> Self:
        """All particles x (n, 3) m, and their copies within `reach` m of a periodic box."""
        from ecs_fluid.kernels.grids.wall_images import numbered

        shown, places = images(x, periods, reach)
        return cls(np.arange(len(x)), shown, numbered(shown, len(x)), places, np.zeros((0, 3, 3)))

    @classmethod
    def inside(cls, walls: Walls, x: Array, held: Array, reach: float) -> Self:
        """The particles x[held] m, and their images within `reach` m behind planes at right angles.

        The images are in the order of their numbers, and those of one number in the order of the rows, by
        which several processes can sort them too.
        """
        from ecs_fluid.kernels.grids.wall_images import numbered

        images = images_behind(walls, x, held, reach, deep=np.inf)
        number = numbered(images.shown, len(x))
        order = np.lexsort((images.shown, number))
        signs = np.where(images.planes % 2, -1.0, 1.0)[:, None, None]
        turns = (signs * images.turns)[order]
        return cls(held, images.shown[order], number[order], images.places[order], turns)

    def near(self, x: Array, reach: float) -> Neighbourhood:
        """The same with only those images that are within `reach` m of the box around the particles."""
        low, high = x[self.held].min(axis=0) - reach, x[self.held].max(axis=0) + reach
        images = [column[((self.places >= low) & (self.places <= high)).all(axis=1)] for column in self[1:]]
        return Neighbourhood(self.held, *images)

    def all_of(self, column: Array) -> Array:
        """A column (n, ...) of all particles at the rows held, followed by the values of images."""
        if len(self.held) == len(column) and not len(self.shown):
            return column
        return np.concatenate([column[self.held], column[self.shown]])

    def all_strengths(self, alpha: Array) -> Array:
        """Like `all_of`, of pseudovectors (n, 3), which mirrors R turn round: det(R) R alpha."""
        found = self.all_of(alpha)
        if len(self.turns):
            found[len(self.held) :] = along(self.turns, alpha[self.shown].T[:, :, None])
        return found

    def all_places(self, x: Array) -> Array:
        """Like `all_of`, of the places x (n, 3) m."""
        if len(self.held) == len(x) and not len(self.shown):
            return x
        return np.concatenate([x[self.held], self.places.astype(x.dtype)])


def neighbourhoods(
    world: World, x: Array, radius: Array, reach: float, bounds: list[Walls]
) -> list[Neighbourhood]:
    """The particles x (n, 3) m, by the walls (`bounds`) that hold them, with images within `reach` m.

    ``radius`` (n,) m are exchange radii. Those planes of a container have images that are parallel or at
    right angles to all others. Particles that no walls hold come last. In a periodic world, and without
    walls, all are in one neighbourhood.
    """
    if world.periods.any():
        return [Neighbourhood.periodic(x, world.periods, reach)]
    left, found = np.ones(len(x), bool), []
    for walls in bounds:
        held = left & walls.inside(x, -DEEP * radius)
        left &= ~held
        found.append(Neighbourhood.inside(walls.at_right_angles(), x, np.flatnonzero(held), reach))
    none = np.zeros(0, np.int64)
    return [*found, Neighbourhood(np.flatnonzero(left), none, none, np.zeros((0, 3)), np.zeros((0, 3, 3)))]


def _walls(world: World, strengths: bool) -> list[Walls]:
    """Walls behind which amounts have images, or `strengths`: these only where the flow has them."""
    return vortex_walls(world) if strengths else fluid_walls(world)


def together(hoods: Sequence[Neighbourhood], count: int) -> Neighbourhood:
    """One neighbourhood of all `count` particles, and of the images of all."""
    columns = zip(*[(hood.shown, hood.number, hood.places, hood.turns) for hood in hoods], strict=True)
    return Neighbourhood(np.arange(count), *(np.concatenate(parts) for parts in columns))


def laid_apart(
    world: World, x: Array, radius: Array, reach: float, strengths: bool = False
) -> tuple[Neighbourhood, Array]:
    """The particles x (n, 3) m as one neighbourhood, and their places (n, 3) m to search within `reach` m.

    Neighbourhoods that a wall divides are moved apart, out of reach of each other.
    """
    hoods = neighbourhoods(world, x, radius, reach, _walls(world, strengths))
    axis = 1 if world.across == 0 else 0
    step = (float(np.ptp(x[:, axis])) if len(x) else 0.0) + 4.0 * reach
    x = x.astype(np.float64)
    for k, hood in enumerate(hoods):
        x[hood.held, axis] += k * step
        hood.places[:, axis] += k * step
    return together(hoods, len(x)), x


def exchanged(
    world: World, entities: Sequence[Entity], x: Array, values: Array, eps: Array, volume: Array,
    diffusivity: float, order: int, dimension: int, strengths: bool = False,
) -> tuple[Array, Array]:  # fmt: skip
    """Rates of extensive `values` (n, k) by exchange with neighbours and images, and losses (n,) 1/s.

    `values` are amounts, or `strengths` (n, 3) m^3/s. For the rest see `World.processes.exchanged`.
    """
    from ecs_fluid.kernels.vorticity.strength_exchange import reach_of

    (widest,) = world.processes.largest([float(eps.max(initial=0.0))])
    reach = reach_of(eps.dtype.type(widest), order, dimension)
    if not world.periods.any():
        # A particle just outside of a wall reaches images of particles that lie so much deeper inside.
        reach += DEEP * widest
    rate, loss = np.empty_like(values), np.empty_like(eps)
    hoods = neighbourhoods(world, x, eps, reach, _walls(world, strengths))
    for hood in hoods:
        k, columns = len(hood.held), (hood.all_of(eps), hood.all_of(volume))
        amounts = hood.all_strengths(values) if strengths else hood.all_of(values)
        rows = np.concatenate([hood.held, hood.shown])
        number = np.concatenate([np.zeros(k, np.int64), hood.number])
        rates, losses = world.processes.exchanged(
            entities, rows, number, hood.all_places(x), amounts, *columns, diffusivity, order, dimension
        )
        if len(hoods) == 1:
            return rates[:k], losses[:k]
        rate[hood.held], loss[hood.held] = rates[:k], losses[:k]
    return rate, loss


def longest_step(world: World, loss: Array) -> float:
    """Largest stable step, s, with the losses (n,) 1/s of this process's rows; the same on all processes."""
    from ecs_fluid.kernels.vorticity.strength_exchange import stable_step

    return stable_step(np.array(world.processes.largest([float(loss.max(initial=0.0))])))
