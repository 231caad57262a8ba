"""Velocity and fields of a world at any points, for slices and streamlines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.components import Strength
from ecs_fluid.errors import FluidError
from ecs_fluid.exports.surfaces import Near
from ecs_fluid.viz.columns import PRESSURE, Columns
from ecs_fluid.viz.shared_limits import is_liquid
from ecs_fluid.world import World


class Flow:
    """The fluid of a world: called with points (m, 3) m it gives velocities (m, 3) m/s, see also `field`.

    `make` makes the world on first use, so that errors in it do not spoil pictures of particles. Liquids of
    the `frame` have the velocities of their particles.
    """

    def __init__(self, make: Callable[[], World], frame: Mapping[str, Columns]) -> None:
        self._make, self._evaluated = make, False
        liquids = [one for one in frame.values() if is_liquid(one) and len(one["Position.x"])]
        self._liquid, self._pressed = Near(liquids), Near(liquids, "LiquidState.pressure")

    @cached_property
    def _world(self) -> World:
        return self._make()

    @cached_property
    def blows(self) -> bool:
        """Whether there is a flow beside that of liquids: of vortons, of the solver, or a wind."""
        from ecs_fluid.systems.velocity.system import VelocitySystem

        system = self._world.system(VelocitySystem)
        vortons = any(Strength in entity and len(entity) for entity in self._world.entities)
        return system is not None and (vortons or system.own_field or bool(self._world._winds()))

    @property
    def within(self) -> Callable[[NDArray], NDArray] | None:
        """A function from points (m, 3) m to a mask of those where there is a flow; None: everywhere."""
        return self._liquid.holds if self._liquid and not self.blows else None

    def __call__(self, points: NDArray) -> NDArray:
        """Velocities (m, 3) m/s at points (m, 3) m."""
        if not self._liquid:
            return self._world.velocity(points)
        u = self._liquid(points)
        if self.blows and (dry := ~self._liquid.holds(points)).any():
            u[dry] = self._world.velocity(points[dry])
        return u

    def field(self, name: str, points: NDArray) -> NDArray:
        """Values (m,) of a field at points (m, 3) m.

        It is the pressure in the flow of vortons or in a liquid, Pa, or what the fluid carries: temperature
        K, density kg/m^3, fuel, flame or smoke.
        """
        from ecs_fluid.systems.shared.fields_at import fields_at

        if name == PRESSURE:
            if not self._pressed:
                return self._world.pressure(points)
            # Just outside of the surface it would go on below 0.
            return np.asarray(np.clip(self._pressed(points)[:, 0], *self._pressed.range))
        if not self._evaluated:
            self._world.evaluate()
            self._evaluated = True
        found = dict(fields_at(self._world, points))
        if name not in found:
            raise FluidError(
                f"there is no field of {name} to draw; add a TransferSystem (baroclinic and sampling add "
                "one), which makes it from particles that have a Volume and a Temperature, Density or "
                "Species"
            )
        return found[name]
