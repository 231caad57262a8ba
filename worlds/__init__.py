"""Recipes of entities, and the worlds that ship with ecs_fluid; importing this registers every kind."""

from ecs_fluid.worlds.bodies import BodyRecipe, ContainerRecipe, Spheres
from ecs_fluid.worlds.drops import Drop, Drops
from ecs_fluid.worlds.emitter import EmitterRecipe
from ecs_fluid.worlds.files import files_from
from ecs_fluid.worlds.fluid_block import FluidBlock
from ecs_fluid.worlds.hill_vortex import HillVortex
from ecs_fluid.worlds.inflow import InflowRecipe
from ecs_fluid.worlds.jet_ring import JetRing
from ecs_fluid.worlds.liquid import LiquidRecipe
from ecs_fluid.worlds.noise_box import NoiseBox
from ecs_fluid.worlds.tracers import Tracers
from ecs_fluid.worlds.vortex_curve import VortexCurve
from ecs_fluid.worlds.vortex_ring import VortexRing
from ecs_fluid.worlds.vortex_sheet import VortexSheet
from ecs_fluid.worlds.vortex_tube import VortexTube
from ecs_fluid.worlds.vortons_from_arrays import VortonsFromArrays
from ecs_fluid.worlds.vortons_from_velocity import VortonsFromVelocity
from ecs_fluid.worlds.world_recipe import WorldRecipe, load
from ecs_fluid.worlds.world_tables import FluidTable, OutputTable, WorldTable

__all__ = [
    "BodyRecipe",
    "ContainerRecipe",
    "Drop",
    "Drops",
    "EmitterRecipe",
    "FluidBlock",
    "FluidTable",
    "HillVortex",
    "InflowRecipe",
    "JetRing",
    "LiquidRecipe",
    "NoiseBox",
    "OutputTable",
    "Spheres",
    "Tracers",
    "VortexCurve",
    "VortexRing",
    "VortexSheet",
    "VortexTube",
    "VortonsFromArrays",
    "VortonsFromVelocity",
    "WorldRecipe",
    "WorldTable",
    "files_from",
    "load",
]
