from ecs_fluid.component import (
    Array as Array,
    Component as Component,
)
from ecs_fluid.component import (
    RowId as RowId,
)
from ecs_fluid.component import (
    column as column,
)
from ecs_fluid.components import (
    Acceleration as Acceleration,
)
from ecs_fluid.components import (
    Age as Age,
)
from ecs_fluid.components import (
    CoreRadius as CoreRadius,
)
from ecs_fluid.components import (
    CoreRadiusRate as CoreRadiusRate,
)
from ecs_fluid.components import (
    Density as Density,
)
from ecs_fluid.components import (
    Emission as Emission,
)
from ecs_fluid.components import (
    Grid as Grid,
)
from ecs_fluid.components import (
    InertialVelocity as InertialVelocity,
)
from ecs_fluid.components import (
    Position as Position,
)
from ecs_fluid.components import (
    Sources as Sources,
)
from ecs_fluid.components import (
    Species as Species,
)
from ecs_fluid.components import (
    Strength as Strength,
)
from ecs_fluid.components import (
    StrengthRate as StrengthRate,
)
from ecs_fluid.components import (
    Temperature as Temperature,
)
from ecs_fluid.components import (
    Velocity as Velocity,
)
from ecs_fluid.components import (
    VelocityField as VelocityField,
)
from ecs_fluid.components import (
    VelocityGradient as VelocityGradient,
)
from ecs_fluid.components import (
    VelocityHistory as VelocityHistory,
)
from ecs_fluid.components import (
    Volume as Volume,
)
from ecs_fluid.errors import (
    ComponentError as ComponentError,
)
from ecs_fluid.errors import (
    DivergedError as DivergedError,
)
from ecs_fluid.errors import (
    FluidError as FluidError,
)
from ecs_fluid.errors import (
    FluidWarning as FluidWarning,
)
from ecs_fluid.errors import (
    RecipeError as RecipeError,
)
from ecs_fluid.errors import (
    ScheduleError as ScheduleError,
)
from ecs_fluid.errors import (
    StorageError as StorageError,
)
from ecs_fluid.keyframes import (
    Keyed as Keyed,
)
from ecs_fluid.recipe import (
    Recipe as Recipe,
)
from ecs_fluid.state import (
    resume as resume,
)
from ecs_fluid.system import (
    System as System,
)
from ecs_fluid.systems import (
    AccelerateSystem as AccelerateSystem,
)
from ecs_fluid.systems import (
    AdvectionSystem as AdvectionSystem,
)
from ecs_fluid.systems import (
    AgeLimitSystem as AgeLimitSystem,
)
from ecs_fluid.systems import (
    DiagnosticsSystem as DiagnosticsSystem,
)
from ecs_fluid.systems import (
    DiffusionSystem as DiffusionSystem,
)
from ecs_fluid.systems import (
    EmissionSystem as EmissionSystem,
)
from ecs_fluid.systems import (
    Emitter as Emitter,
)
from ecs_fluid.systems import (
    InertiaSystem as InertiaSystem,
)
from ecs_fluid.systems import (
    KillBoxSystem as KillBoxSystem,
)
from ecs_fluid.systems import (
    LifetimeSystem as LifetimeSystem,
)
from ecs_fluid.systems import (
    PartitionSystem as PartitionSystem,
)
from ecs_fluid.systems import (
    StretchSystem as StretchSystem,
)
from ecs_fluid.systems import (
    VelocitySystem as VelocitySystem,
)
from ecs_fluid.systems import (
    WindSystem as WindSystem,
)
from ecs_fluid.world import (
    Entity as Entity,
)
from ecs_fluid.world import (
    Snapshot as Snapshot,
)
from ecs_fluid.world import (
    World as World,
)
from ecs_fluid.worlds import (
    WorldRecipe as WorldRecipe,
)
from ecs_fluid.worlds import (
    load as load,
)

__version__: str
