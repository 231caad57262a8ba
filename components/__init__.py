"""Components that ship with ecs_fluid: typed tables with units, no behaviour."""

from ecs_fluid.component import RowId as RowId
from ecs_fluid.components.bodies import (
    AddedMass as AddedMass,
    BallShape as BallShape,
    Body as Body,
    BodyHeat as BodyHeat,
    BodyLoad as BodyLoad,
    BodyPart as BodyPart,
    BoundaryExchange as BoundaryExchange,
    BoundaryLayer as BoundaryLayer,
    BoundVorticity as BoundVorticity,
    CollisionCount as CollisionCount,
    Contact as Contact,
    ContactMemory as ContactMemory,
    FluidReaction as FluidReaction,
    FormerPose as FormerPose,
    FormerPosition as FormerPosition,
    Hinge as Hinge,
    HullShape as HullShape,
    HullTable as HullTable,
    Pose as Pose,
    RigidMotion as RigidMotion,
    ShedMotion as ShedMotion,
    Surroundings as Surroundings,
)
from ecs_fluid.components.fields import (
    DensityField as DensityField,
    FireField as FireField,
    Grid as Grid,
    SpeciesField as SpeciesField,
    TemperatureField as TemperatureField,
    TransferGrid as TransferGrid,
    VelocityField as VelocityField,
)
from ecs_fluid.components.liquid import (
    Liquid as Liquid,
    LiquidBudget as LiquidBudget,
    LiquidModel as LiquidModel,
    LiquidPressure as LiquidPressure,
    LiquidPush as LiquidPush,
    LiquidState as LiquidState,
    Whitewater as Whitewater,
)
from ecs_fluid.components.particles import (
    Acceleration as Acceleration,
    Age as Age,
    CoreRadius as CoreRadius,
    CoreRadiusRate as CoreRadiusRate,
    Density as Density,
    Dilatation as Dilatation,
    InertialVelocity as InertialVelocity,
    Position as Position,
    Species as Species,
    SpeciesRate as SpeciesRate,
    Strength as Strength,
    StrengthRate as StrengthRate,
    Temperature as Temperature,
    TemperatureRate as TemperatureRate,
    Velocity as Velocity,
    VelocityGradient as VelocityGradient,
    VelocityMemory as VelocityMemory,
    Volume as Volume,
)
from ecs_fluid.components.sources import (
    AmbientDensity as AmbientDensity,
    BirthCells as BirthCells,
    CarrierMotion as CarrierMotion,
    Emission as Emission,
    SolverMeshes as SolverMeshes,
    SolverTimes as SolverTimes,
    Sources as Sources,
    VelocityHistory as VelocityHistory,
)
from ecs_fluid.components.subfilter import (
    SubfilterAverage as SubfilterAverage,
    SubfilterTerms as SubfilterTerms,
)
from ecs_fluid.components.surfaces import SignedDistance as SignedDistance, SurfaceMesh as SurfaceMesh
