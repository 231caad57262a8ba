"""Systems that ship with ecs_fluid, one per file; each calls kernels on the tables it declares."""

from ecs_fluid.systems.advection import AdvectionSystem
from ecs_fluid.systems.diagnostics import DiagnosticsSystem
from ecs_fluid.systems.diffusion import DiffusionSystem
from ecs_fluid.systems.emission import EmissionSystem, Emitter
from ecs_fluid.systems.lifetime import AgeLimitSystem, KillBoxSystem, LifetimeSystem
from ecs_fluid.systems.operations import AccelerateSystem, InertiaSystem, WindSystem
from ecs_fluid.systems.partition import PartitionSystem
from ecs_fluid.systems.stretch import StretchSystem
from ecs_fluid.systems.velocity import VelocitySystem

__all__ = [
    "AccelerateSystem",
    "AdvectionSystem",
    "AgeLimitSystem",
    "DiagnosticsSystem",
    "DiffusionSystem",
    "EmissionSystem",
    "Emitter",
    "InertiaSystem",
    "KillBoxSystem",
    "LifetimeSystem",
    "PartitionSystem",
    "StretchSystem",
    "VelocitySystem",
    "WindSystem",
]
