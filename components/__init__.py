"""Components that ship with ecs_fluid: typed tables with units, no behaviour."""

from ecs_fluid.component import RowId
from ecs_fluid.components.fields import Grid, VelocityField
from ecs_fluid.components.particles import (
    Acceleration,
    Age,
    CoreRadius,
    CoreRadiusRate,
    Density,
    InertialVelocity,
    Position,
    Species,
    Strength,
    StrengthRate,
    Temperature,
    Velocity,
    VelocityGradient,
    Volume,
)
from ecs_fluid.components.sources import Emission, Sources, VelocityHistory

__all__ = [
    "Acceleration",
    "Age",
    "CoreRadius",
    "CoreRadiusRate",
    "Density",
    "Emission",
    "Grid",
    "InertialVelocity",
    "Position",
    "RowId",
    "Sources",
    "Species",
    "Strength",
    "StrengthRate",
    "Temperature",
    "Velocity",
    "VelocityField",
    "VelocityGradient",
    "VelocityHistory",
    "Volume",
]
