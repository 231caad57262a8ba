"""Components that ship with ecs_fluid: typed tables with units, no behaviour."""

from ecs_fluid.component import RowId
from ecs_fluid.components.ambient import Ambient
from ecs_fluid.components.fields import (
    DensityField,
    FireField,
    Grid,
    SpeciesField,
    TemperatureField,
    TransferGrid,
    VelocityField,
)
from ecs_fluid.components.particles import (
    Acceleration,
    Age,
    CoreRadius,
    CoreRadiusRate,
    Density,
    InertialVelocity,
    Position,
    Species,
    SpeciesRate,
    Strength,
    StrengthRate,
    Temperature,
    TemperatureRate,
    Velocity,
    VelocityGradient,
    VelocityMemory,
    Volume,
)
from ecs_fluid.components.sources import Emission, SolverTimes, Sources, VelocityHistory
from ecs_fluid.components.subfilter import SubfilterAverage, SubfilterTerms

__all__ = [
    "Acceleration",
    "Age",
    "Ambient",
    "CoreRadius",
    "CoreRadiusRate",
    "Density",
    "DensityField",
    "Emission",
    "FireField",
    "Grid",
    "InertialVelocity",
    "Position",
    "RowId",
    "SolverTimes",
    "Sources",
    "Species",
    "SpeciesField",
    "SpeciesRate",
    "Strength",
    "StrengthRate",
    "SubfilterAverage",
    "SubfilterTerms",
    "Temperature",
    "TemperatureField",
    "TemperatureRate",
    "TransferGrid",
    "Velocity",
    "VelocityField",
    "VelocityGradient",
    "VelocityHistory",
    "VelocityMemory",
    "Volume",
]
