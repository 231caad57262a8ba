"""Velocity and fields of a world at any points, for slices and streamlines."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from numpy.typing import NDArray

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.columns import PRESSURE
from ecs_fluid.world import World


class Flow:
    """The fluid of a world: called with points (m, 3) m it gives velocities (m, 3) m/s, see also `field`.

    `make` makes the world on first use, so that errors in it do not spoil pictures of particles.
    """

    def __init__(self, make: Callable[[], World]) -> None:
        self._make, self._evaluated = make, False

    @cached_property
    def _world(self) -> World:
        return self._make()

    def __call__(self, points: NDArray) -> NDArray:
        """Velocities (m, 3) m/s at points (m, 3) m."""
        return self._world.velocity(points)

    @property
    def own_field(self) -> bool:
        """Whether the solver makes a flow without vortons too, or a wind blows."""
        from ecs_fluid.systems.velocity.system import VelocitySystem

        system = self._world.system(VelocitySystem)
        return system is not None and (system.own_field or bool(self._world._winds))

    def field(self, name: str, points: NDArray) -> NDArray:
        """Values (m,) of a field at points (m, 3) m.

        It is the pressure in the flow of vortons, Pa, or what the fluid carries: temperature K, density
        kg/m^3, fuel, flame or smoke.
        """
        from ecs_fluid.systems.shared.fields_at import fields_at

        if name == PRESSURE:
            return self._world.pressure(points)
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
