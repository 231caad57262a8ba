"""Particles of liquid, and what they share."""

from __future__ import annotations

from ecs_fluid.component import Array, Component, Tables, column
from ecs_fluid.components.particles import InertialVelocity, Position
from ecs_fluid.errors import ComponentError


class Liquid(Component):
    """A particle of liquid: its mass, the volume it takes up at rest without pressure, and its viscosity.

    It moves by its InertialVelocity, which the SphSystem changes. Mass over volume and viscosity are those of
    the liquid; density and viscosity of the Fluid belong to what surrounds it. excess: what the particle
    itself adds to its compression, at a surface what the sum over neighbours lacks; the SphSystem changes it.
    """

    mass: Array = column("kg", above=0.0)
    volume: Array = column("m^3", above=0.0)
    viscosity: Array = column("m^2/s", default=0.0, minimum=0.0)
    excess: Array = column("1", default=0.0)


class LiquidState(Component, derived=True, given=(Position, InertialVelocity, Liquid)):
    """Pressure and density of liquid particles in the last step of the tick.

    density: mass over the volume that neighbours and walls leave; at a free surface it is too low. Both are 0
    before the first tick and in rows that have just come.
    """

    pressure: Array = column("Pa", in_frames=True)
    density: Array = column("kg/m^3")


class LiquidPush(Component, derived=True, given=(Position, InertialVelocity, Liquid)):
    """Mean over the tick of the Acceleration of liquid particles; the SphSystem applies it in its steps."""

    a: Array = column("m/s^2", shape=(3,))


class LiquidPressure(Component, given=(Position, InertialVelocity, Liquid)):
    """Pressure that the implicit solver of the SphSystem found in the last step; where the next begins."""

    pressure: Array = column("Pa", default=0.0, minimum=0.0)


class LiquidModel(Component, per_row=False):
    """Numbers that all particles of liquid share, found when the first tick begins.

    reach: radius of the kernel. volume: mean volume of a particle. stiffness: rho c^2 / 7 of the densest
    liquid. gravity: its values at all keys when the stiffness was found; if they change, it is found anew.
    peak: largest compression in the last step, from which the next tick chooses its steps.
    """

    reach: Array = column("m", shape=(1,), default=0.0, minimum=0.0)
    volume: Array = column("m^3", shape=(1,), default=0.0, minimum=0.0)
    stiffness: Array = column("Pa", shape=(1,), default=0.0, minimum=0.0)
    gravity: Array = column("m/s^2", shape=(None, 3), kind="double", default=0.0)
    peak: Array = column("1", shape=(1,), default=1.0)

    def agree(self, beside: Tables) -> None:
        """Refuse numbers of which only some are 0: until the first tick all are, and afterwards none is."""
        found = {name: float(vars(self)[name][0]) for name in ("reach", "volume", "stiffness")}
        if len({number > 0 for number in found.values()}) > 1:
            told = ", ".join(f"{name} {number:g}" for name, number in found.items())
            raise ComponentError(f"LiquidModel has {told}; either all must be 0, or all above 0")


class LiquidBudget(Component, per_row=False):
    """Energy and momentum that the liquid has lost and gained so far.

    dissipated: energy taken by viscosity and by the diffusion of the excess. work: energy given by what adds
    to the Acceleration. gravity, pushes, walls: momentum given by gravity, by those accelerations, and by the
    pressure of bodies and containers. steps: force evaluations. None of them counts what inflows bring in,
    until the end of the tick in which it came, and what their pipes push.
    """

    dissipated: Array = column("J", shape=(1,), default=0.0)
    work: Array = column("J", shape=(1,), default=0.0)
    gravity: Array = column("N s", shape=(3,), default=0.0)
    pushes: Array = column("N s", shape=(3,), default=0.0)
    walls: Array = column("N s", shape=(3,), default=0.0)
    steps: Array = column("1", shape=(1,), kind="int", default=0)


class Whitewater(Component):
    """A particle of whitewater, which stands for drops, foam or bubbles of a liquid.

    It moves by its InertialVelocity, which the WhitewaterSystem changes. kind: 0 spray, 1 foam, 2 bubbles.
    life: what is left of its life, in mean lives of its kind; it is removed when that is below 0.
    """

    kind: Array = column("1", kind="int", default=0, minimum=0, maximum=2)
    life: Array = column("1", default=1.0)
