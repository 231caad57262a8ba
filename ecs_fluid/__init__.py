"""Vortex-particle fluid simulation as an entity-component-system.

Worlds are entities with component arrays; ordered systems run Numba kernels on them each tick::

    import ecs_fluid as ef

    world = ef.load("vortex_ring")
    world.step(10)
    print(world["ring"][ef.Position].x, world.diagnostics()["impulse"])
    run = ef.run("vortex_ring", ticks=100)
    run.show()

An overview; each name has its own help, such as ``help(ef.World)``:

* make a world: `load` (a shipped name, a file, its tables), `World`, `WorldRecipe`; recipes of entities are
  in `ecs_fluid.worlds`;
* what a `World` does: `step`, `spawn`, `remove`, `add_system`, `set_fluid`, `schedule`, `save`; what it
  answers: ``world[name]``, `velocity`, `vorticity`, `velocity_gradient`, `sample`, `diagnostics`,
  `to_pyvista`, `show`;
* run it into a folder: `run`, `open_run`; a `Run` has frames, `diagnostics`, `show`, `movie`, `export`,
  `resume`; a folder in other forms: `export`, `page`; many values: `sweep`, `Study`; a checkpoint: `resume`;
* components, the tables of an entity: `Position`, `Strength`, `CoreRadius`, `Velocity`, `Temperature`, ...;
* systems: `VelocitySystem`, `StretchSystem`, `DiffusionSystem`, `BodySystem`, `SphSystem`, ...;
* your own: `System`, `Component` with `column`, `Recipe`, `Solver`; values that change over time: `Keyed`;
* errors: all are `FluidError`, in one sentence; warnings are `FluidWarning`; `limits` bound what files ask.

Importing ecs_fluid loads neither numba nor PyVista: they come with the first tick and the first picture.
"""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

__version__ = "0.1.0"

_HOMES = {
    "ecs_fluid.api.pictures": "Picture PictureKeywords",
    "ecs_fluid.api.runs": "Frame Run open_run run",
    "ecs_fluid.api.table": "Table",
    "ecs_fluid.input_limits": "Limits limits",
    "ecs_fluid.component": "Array Component RowId column",
    "ecs_fluid.components": (
        "Acceleration AddedMass Age AmbientDensity BallShape BirthCells Body BodyHeat BodyLoad "
        "BoundVorticity BoundaryExchange BoundaryLayer CarrierMotion CollisionCount Contact ContactMemory "
        "CoreRadius CoreRadiusRate Density DensityField Dilatation Emission FireField "
        "FluidReaction FormerPose FormerPosition Grid HullShape HullTable InertialVelocity Liquid "
        "LiquidBudget LiquidModel LiquidPressure LiquidPush LiquidState Pose Position RigidMotion "
        "ShedMotion SignedDistance SolverMeshes SolverTimes Sources Species SpeciesField "
        "SpeciesRate Strength StrengthRate SubfilterAverage SubfilterTerms SurfaceMesh "
        "Surroundings Temperature TemperatureField TemperatureRate TransferGrid Velocity "
        "VelocityField VelocityGradient VelocityHistory VelocityMemory Volume Whitewater"
    ),
    "ecs_fluid.errors": (
        "ComponentError DivergedError FluidError FluidWarning LimitError RecipeError ScheduleError "
        "StorageError"
    ),
    "ecs_fluid.exports": "export",
    "ecs_fluid.fluid": "Fluid FluidOptions",
    "ecs_fluid.keyframes": "Keyed",
    "ecs_fluid.targets": "Targets",
    "ecs_fluid.recipe": "Recipe",
    "ecs_fluid.runs.resume": "resume",
    "ecs_fluid.sweeps": "Study sweep",
    "ecs_fluid.system": "System",
    "ecs_fluid.systems": (
        "AccelerateSystem AdvectionSystem AgeLimitSystem AlignmentSystem "
        "BaroclinicSystem BodyScript BodySystem BoundarySystem BuoyancySystem CollisionSystem "
        "CombustionSystem ConductionSystem CoolingSystem DepartureSystem DiagnosticsSystem "
        "DiffusionSystem DragSystem EmissionSystem Emitter ExpansionSystem HeaterSystem "
        "InertiaSystem Inflow InflowSystem KillBoxSystem LifetimeSystem LiquidPushSystem LoadSystem "
        "PartitionSystem ReactionSystem ReformulationSystem RemeshSystem SamplingSystem SpeciesLimitSystem "
        "SphSystem StretchSystem SubfilterAverageSystem SubfilterSystem "
        "SurfaceBarrierSystem SurfaceSystem SurfaceTensionSystem SurroundingsSystem ThermalSystem "
        "TransferSystem TurbulenceSystem VelocitySystem WhitewaterSystem WindSystem"
    ),
    "ecs_fluid.systems.partition": "GridNeeds",
    "ecs_fluid.systems.velocity.mirrors": "MirrorFace",
    "ecs_fluid.systems.velocity.solver": "Solver",
    "ecs_fluid.entity": "Entity Snapshot",
    "ecs_fluid.viz.page": "page",
    "ecs_fluid.world": "World",
    "ecs_fluid.worlds": "WorldRecipe load",
}
"""Public names by the module that defines them; type checkers read the same list in __init__.pyi."""

_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

# There is no __all__: with one, help(ecs_fluid) is 19,000 lines of all classes, without it the text above.


def __getattr__(name: str) -> _Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ecs_fluid' has no attribute {name!r}")
    value = getattr(_importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
