from ecs_fluid.api.pictures import (
    Picture as Picture,
    PictureKeywords as PictureKeywords,
)
from ecs_fluid.api.runs import (
    Frame as Frame,
    Run as Run,
    open_run as open_run,
    run as run,
)
from ecs_fluid.api.table import (
    Table as Table,
)
from ecs_fluid.component import (
    Array as Array,
    Component as Component,
    RowId as RowId,
    column as column,
)
from ecs_fluid.components import (
    Acceleration as Acceleration,
    AddedMass as AddedMass,
    Age as Age,
    AmbientDensity as AmbientDensity,
    BallShape as BallShape,
    BirthCells as BirthCells,
    Body as Body,
    BodyHeat as BodyHeat,
    BodyLoad as BodyLoad,
    BodyPart as BodyPart,
    BoundaryExchange as BoundaryExchange,
    BoundaryLayer as BoundaryLayer,
    BoundVorticity as BoundVorticity,
    CarrierMotion as CarrierMotion,
    CollisionCount as CollisionCount,
    Contact as Contact,
    ContactMemory as ContactMemory,
    CoreRadius as CoreRadius,
    CoreRadiusRate as CoreRadiusRate,
    Density as Density,
    DensityField as DensityField,
    Dilatation as Dilatation,
    Emission as Emission,
    FireField as FireField,
    FluidReaction as FluidReaction,
    FormerPose as FormerPose,
    FormerPosition as FormerPosition,
    Grid as Grid,
    Hinge as Hinge,
    HullShape as HullShape,
    HullTable as HullTable,
    InertialVelocity as InertialVelocity,
    Liquid as Liquid,
    LiquidBudget as LiquidBudget,
    LiquidModel as LiquidModel,
    LiquidPressure as LiquidPressure,
    LiquidPush as LiquidPush,
    LiquidState as LiquidState,
    Pose as Pose,
    Position as Position,
    RigidMotion as RigidMotion,
    ShedMotion as ShedMotion,
    SignedDistance as SignedDistance,
    SolverMeshes as SolverMeshes,
    SolverTimes as SolverTimes,
    Sources as Sources,
    Species as Species,
    SpeciesField as SpeciesField,
    SpeciesRate as SpeciesRate,
    Strength as Strength,
    StrengthRate as StrengthRate,
    SubfilterAverage as SubfilterAverage,
    SubfilterTerms as SubfilterTerms,
    SurfaceMesh as SurfaceMesh,
    Surroundings as Surroundings,
    Temperature as Temperature,
    TemperatureField as TemperatureField,
    TemperatureRate as TemperatureRate,
    TransferGrid as TransferGrid,
    Velocity as Velocity,
    VelocityField as VelocityField,
    VelocityGradient as VelocityGradient,
    VelocityHistory as VelocityHistory,
    VelocityMemory as VelocityMemory,
    Volume as Volume,
    Whitewater as Whitewater,
)
from ecs_fluid.entity import (
    Entity as Entity,
    Snapshot as Snapshot,
)
from ecs_fluid.errors import (
    ComponentError as ComponentError,
    DivergedError as DivergedError,
    FluidError as FluidError,
    FluidWarning as FluidWarning,
    LimitError as LimitError,
    RecipeError as RecipeError,
    ScheduleError as ScheduleError,
    StorageError as StorageError,
    UnknownEntityError as UnknownEntityError,
)
from ecs_fluid.exports import (
    export as export,
)
from ecs_fluid.fluid import (
    Fluid as Fluid,
    FluidOptions as FluidOptions,
)
from ecs_fluid.input_limits import (
    Limits as Limits,
    limits as limits,
)
from ecs_fluid.keyframes import (
    Keyed as Keyed,
)
from ecs_fluid.recipe import (
    Recipe as Recipe,
)
from ecs_fluid.runs.resume import (
    resume as resume,
)
from ecs_fluid.sweeps import (
    Study as Study,
    sweep as sweep,
)
from ecs_fluid.system import (
    System as System,
)
from ecs_fluid.systems import (
    AccelerateSystem as AccelerateSystem,
    AdvectionSystem as AdvectionSystem,
    AgeLimitSystem as AgeLimitSystem,
    AlignmentSystem as AlignmentSystem,
    BaroclinicSystem as BaroclinicSystem,
    BodyScript as BodyScript,
    BodySystem as BodySystem,
    BoundarySystem as BoundarySystem,
    BuoyancySystem as BuoyancySystem,
    CollisionSystem as CollisionSystem,
    CombustionSystem as CombustionSystem,
    ConductionSystem as ConductionSystem,
    CoolingSystem as CoolingSystem,
    DepartureSystem as DepartureSystem,
    DiagnosticsSystem as DiagnosticsSystem,
    DiffusionSystem as DiffusionSystem,
    DragSystem as DragSystem,
    EmissionSystem as EmissionSystem,
    Emitter as Emitter,
    ExpansionSystem as ExpansionSystem,
    HeaterSystem as HeaterSystem,
    InertiaSystem as InertiaSystem,
    Inflow as Inflow,
    InflowSystem as InflowSystem,
    KillBoxSystem as KillBoxSystem,
    LifetimeSystem as LifetimeSystem,
    LiquidPushSystem as LiquidPushSystem,
    LoadSystem as LoadSystem,
    PartitionSystem as PartitionSystem,
    ReactionSystem as ReactionSystem,
    ReformulationSystem as ReformulationSystem,
    RemeshSystem as RemeshSystem,
    SamplingSystem as SamplingSystem,
    SpeciesLimitSystem as SpeciesLimitSystem,
    SphSystem as SphSystem,
    StretchSystem as StretchSystem,
    SubfilterAverageSystem as SubfilterAverageSystem,
    SubfilterSystem as SubfilterSystem,
    SurfaceBarrierSystem as SurfaceBarrierSystem,
    SurfaceSystem as SurfaceSystem,
    SurfaceTensionSystem as SurfaceTensionSystem,
    SurroundingsSystem as SurroundingsSystem,
    ThermalSystem as ThermalSystem,
    TransferSystem as TransferSystem,
    TurbulenceSystem as TurbulenceSystem,
    VelocitySystem as VelocitySystem,
    WhitewaterSystem as WhitewaterSystem,
    WindSystem as WindSystem,
)
from ecs_fluid.systems.partition import GridNeeds as GridNeeds
from ecs_fluid.systems.velocity.mirrors import MirrorFace as MirrorFace
from ecs_fluid.systems.velocity.solver import Solver as Solver
from ecs_fluid.targets import Targets as Targets
from ecs_fluid.viz.page import (
    page as page,
)
from ecs_fluid.world import (
    World as World,
)
from ecs_fluid.worlds import (
    WorldRecipe as WorldRecipe,
    load as load,
)

__version__: str
