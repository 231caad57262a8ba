"""What the dynamic subfilter model stores for every vorton."""

from __future__ import annotations

from ecs_fluid.component import Array, Component, column
from ecs_fluid.components.particles import CoreRadius, Position, Strength


class SubfilterTerms(Component, derived=True, given=(Position, Strength, CoreRadius)):
    """The two sides whose ratio is the model's coefficient, at the first stage of a tick."""

    production: Array = column("m^6/s^3")
    model: Array = column("m^6/s^3")


class SubfilterAverage(Component):
    """The two sides of SubfilterTerms, averaged along the path of a vorton."""

    production: Array = column("m^6/s^3", default=0.0)
    model: Array = column("m^6/s^3", default=0.0)
