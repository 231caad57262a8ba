"""Recipes of entities, and the worlds that ship with ecs_fluid; importing this registers every kind."""

from ecs_fluid.worlds.bodies import (
    BodyRecipe as BodyRecipe,
    ContainerRecipe as ContainerRecipe,
    Spheres as Spheres,
)
from ecs_fluid.worlds.drops import Drop as Drop, Drops as Drops
from ecs_fluid.worlds.emitter import EmitterRecipe as EmitterRecipe
from ecs_fluid.worlds.files import files_from as files_from
from ecs_fluid.worlds.fluid_block import FluidBlock as FluidBlock
from ecs_fluid.worlds.hill_vortex import HillVortex as HillVortex
from ecs_fluid.worlds.inflow import InflowRecipe as InflowRecipe
from ecs_fluid.worlds.jet_ring import JetRing as JetRing
from ecs_fluid.worlds.liquid import LiquidRecipe as LiquidRecipe
from ecs_fluid.worlds.noise_box import NoiseBox as NoiseBox
from ecs_fluid.worlds.tracers import Tracers as Tracers
from ecs_fluid.worlds.vortex_curve import VortexCurve as VortexCurve
from ecs_fluid.worlds.vortex_ring import VortexRing as VortexRing
from ecs_fluid.worlds.vortex_sheet import VortexSheet as VortexSheet
from ecs_fluid.worlds.vortex_tube import VortexTube as VortexTube
from ecs_fluid.worlds.vortons_from_arrays import VortonsFromArrays as VortonsFromArrays
from ecs_fluid.worlds.vortons_from_velocity import VortonsFromVelocity as VortonsFromVelocity
from ecs_fluid.worlds.world_recipe import WorldRecipe as WorldRecipe, load as load
from ecs_fluid.worlds.world_tables import (
    FluidTable as FluidTable,
    OutputTable as OutputTable,
    WorldTable as WorldTable,
)
