"""Systems that ship with ecs_fluid, one per file; each calls kernels on the tables it declares."""

from ecs_fluid.systems.advection import AdvectionSystem
from ecs_fluid.systems.baroclinic import BaroclinicSystem
from ecs_fluid.systems.bodies import BodyScript, BodySystem
from ecs_fluid.systems.body_loads import LoadSystem
from ecs_fluid.systems.boundary.system import BoundarySystem
from ecs_fluid.systems.buoyancy import BuoyancySystem
from ecs_fluid.systems.collision import CollisionSystem, DepartureSystem
from ecs_fluid.systems.combustion import CombustionSystem
from ecs_fluid.systems.conduction import ConductionSystem
from ecs_fluid.systems.diagnostics import DiagnosticsSystem
from ecs_fluid.systems.diffusion import DiffusionSystem
from ecs_fluid.systems.drag import DragSystem
from ecs_fluid.systems.emission import EmissionSystem, Emitter
from ecs_fluid.systems.lifetime import AgeLimitSystem, KillBoxSystem, LifetimeSystem, SpeciesLimitSystem
from ecs_fluid.systems.operations import AccelerateSystem, InertiaSystem, WindSystem
from ecs_fluid.systems.particle_mesh import SamplingSystem, TransferSystem
from ecs_fluid.systems.partition import PartitionSystem
from ecs_fluid.systems.pedrizzetti import AlignmentSystem
from ecs_fluid.systems.reaction import ReactionSystem
from ecs_fluid.systems.reformulation import ReformulationSystem
from ecs_fluid.systems.remesh import RemeshSystem
from ecs_fluid.systems.sph import SphSystem
from ecs_fluid.systems.stretch import StretchSystem
from ecs_fluid.systems.subfilter import SubfilterAverageSystem, SubfilterSystem
from ecs_fluid.systems.surface.system import SurfaceSystem
from ecs_fluid.systems.surface_barrier import SurfaceBarrierSystem
from ecs_fluid.systems.surface_tension import SurfaceTensionSystem
from ecs_fluid.systems.thermal import CoolingSystem, ExpansionSystem, HeaterSystem, ThermalSystem
from ecs_fluid.systems.turbulence import TurbulenceSystem
from ecs_fluid.systems.velocity.system import VelocitySystem

__all__ = [
    "AccelerateSystem",
    "AdvectionSystem",
    "AgeLimitSystem",
    "AlignmentSystem",
    "BaroclinicSystem",
    "BodyScript",
    "BodySystem",
    "BoundarySystem",
    "BuoyancySystem",
    "CollisionSystem",
    "CombustionSystem",
    "ConductionSystem",
    "CoolingSystem",
    "DepartureSystem",
    "DiagnosticsSystem",
    "DiffusionSystem",
    "DragSystem",
    "EmissionSystem",
    "Emitter",
    "ExpansionSystem",
    "HeaterSystem",
    "InertiaSystem",
    "KillBoxSystem",
    "LifetimeSystem",
    "LoadSystem",
    "PartitionSystem",
    "ReactionSystem",
    "ReformulationSystem",
    "RemeshSystem",
    "SamplingSystem",
    "SpeciesLimitSystem",
    "SphSystem",
    "StretchSystem",
    "SubfilterAverageSystem",
    "SubfilterSystem",
    "SurfaceBarrierSystem",
    "SurfaceSystem",
    "SurfaceTensionSystem",
    "ThermalSystem",
    "TransferSystem",
    "TurbulenceSystem",
    "VelocitySystem",
    "WindSystem",
]
