"""Systems that ship with ecs_fluid, one subject a file; each calls kernels on the tables it declares."""

from ecs_fluid.systems.advection import AdvectionSystem as AdvectionSystem
from ecs_fluid.systems.baroclinic import BaroclinicSystem as BaroclinicSystem
from ecs_fluid.systems.bodies import BodyScript as BodyScript, BodySystem as BodySystem
from ecs_fluid.systems.body_loads import LoadSystem as LoadSystem
from ecs_fluid.systems.boundary.system import BoundarySystem as BoundarySystem
from ecs_fluid.systems.buoyancy import BuoyancySystem as BuoyancySystem
from ecs_fluid.systems.collision import CollisionSystem as CollisionSystem, DepartureSystem as DepartureSystem
from ecs_fluid.systems.combustion import CombustionSystem as CombustionSystem
from ecs_fluid.systems.conduction import ConductionSystem as ConductionSystem
from ecs_fluid.systems.diagnostics import DiagnosticsSystem as DiagnosticsSystem
from ecs_fluid.systems.diffusion import DiffusionSystem as DiffusionSystem
from ecs_fluid.systems.drag import DragSystem as DragSystem
from ecs_fluid.systems.emission import EmissionSystem as EmissionSystem
from ecs_fluid.systems.inflow import Inflow as Inflow, InflowSystem as InflowSystem
from ecs_fluid.systems.lifetime import (
    AgeLimitSystem as AgeLimitSystem,
    KillBoxSystem as KillBoxSystem,
    LifetimeSystem as LifetimeSystem,
    SpeciesLimitSystem as SpeciesLimitSystem,
)
from ecs_fluid.systems.liquid_push import LiquidPushSystem as LiquidPushSystem
from ecs_fluid.systems.operations import (
    AccelerateSystem as AccelerateSystem,
    InertiaSystem as InertiaSystem,
    WindSystem as WindSystem,
)
from ecs_fluid.systems.particle_mesh import SamplingSystem as SamplingSystem, TransferSystem as TransferSystem
from ecs_fluid.systems.partition import PartitionSystem as PartitionSystem
from ecs_fluid.systems.pedrizzetti import AlignmentSystem as AlignmentSystem
from ecs_fluid.systems.reaction import ReactionSystem as ReactionSystem
from ecs_fluid.systems.reformulation import ReformulationSystem as ReformulationSystem
from ecs_fluid.systems.remesh import RemeshSystem as RemeshSystem
from ecs_fluid.systems.shared.emitters import Emitter as Emitter
from ecs_fluid.systems.sph import SphSystem as SphSystem
from ecs_fluid.systems.stretch import StretchSystem as StretchSystem
from ecs_fluid.systems.subfilter import (
    SubfilterAverageSystem as SubfilterAverageSystem,
    SubfilterSystem as SubfilterSystem,
)
from ecs_fluid.systems.surface.system import SurfaceSystem as SurfaceSystem
from ecs_fluid.systems.surface_barrier import SurfaceBarrierSystem as SurfaceBarrierSystem
from ecs_fluid.systems.surface_tension import SurfaceTensionSystem as SurfaceTensionSystem
from ecs_fluid.systems.surroundings import SurroundingsSystem as SurroundingsSystem
from ecs_fluid.systems.thermal import (
    CoolingSystem as CoolingSystem,
    ExpansionSystem as ExpansionSystem,
    HeaterSystem as HeaterSystem,
    ThermalSystem as ThermalSystem,
)
from ecs_fluid.systems.turbulence import TurbulenceSystem as TurbulenceSystem
from ecs_fluid.systems.velocity.system import VelocitySystem as VelocitySystem
from ecs_fluid.systems.whitewater import WhitewaterSystem as WhitewaterSystem
