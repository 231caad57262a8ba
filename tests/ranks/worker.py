"""Runs worlds on the processes that mpiexec started; prints what came out, as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import ecs_fluid as ef
from ecs_fluid.component import RowId
from ecs_fluid.ranks.start import on_ranks


class RowSwirl(ef.System):
    """Row by row, and removes rows; on ranks each works on its own."""

    reads = (ef.Position,)
    adds = (ef.Velocity,)
    phase = "rates"
    distribution = "rows"

    def process(self, dt: float) -> None:
        for entity, (position, velocity) in self.entities(ef.Position, ef.Velocity):
            velocity.u[:, 0] -= position.x[:, 1]
            velocity.u[:, 1] += position.x[:, 0]
            if self.world.tick % 2:
                entity.kill(position.x[:, 2] > 0.9 - 0.1 * self.world.tick)


class Pull(ef.System):
    """Looks at all rows: everything is drawn to the mean position; and adds a row each tick."""

    reads = (ef.Position,)
    adds = (ef.Velocity,)
    phase = "rates"

    def process(self, dt: float) -> None:
        for entity, (position, velocity) in self.entities(ef.Position, ef.Velocity):
            assert len(entity) == len(position.x) == len(entity[ef.Position].x)
            middle = position.x.mean(axis=0, dtype=np.float64)
            velocity.u += (middle - position.x).astype(self.world.dtype)
            if self.world.stage.last:
                entity.spawn(ef.Position(middle[None, :] * [1.0, 1.0, 0.5]))


class Asks(ef.System):
    """Sees all rows, and asks systems that see those of their rank, and one that sees all as well."""

    reads = (ef.Strength,)
    writes = (ef.Position,)
    asks = (ef.VelocitySystem, ef.DiagnosticsSystem)
    phase = "constrain"

    def process(self, dt: float) -> None:
        for _, (position, strength) in self.entities(ef.Position, ef.Strength):
            fastest = self.world.diagnostics()["speed"]
            wind = self.world.velocity(position.x[:70]).mean(axis=0)
            assert len(position.x) == len(strength.alpha)
            position.x += (1e-3 * wind / fastest).astype(self.world.dtype)


class Breaks(ef.System):
    """Makes one row NaN at tick 3; or raises an error where that row is."""

    writes = (ef.Position,)
    phase = "constrain"
    distribution = "rows"
    how: str = "nan"

    def process(self, dt: float) -> None:
        if self.world.tick != 3:
            return
        for entity, (position,) in self.entities(ef.Position):
            row = np.flatnonzero(entity[RowId].id == 5)
            if self.how == "nan":
                position.x[row] = np.nan
            elif len(row):
                raise ef.FluidError("this rank does not like what it sees")


SUMS = {
    "cells": {"solver": "tree", "tracers": "cells"},
    "vortons": {"solver": "tree"},
    "solver": {"solver": "tree", "tracers": "solver", "angle": 0.8},
    "grid": {"solver": "tree", "at": "grid", "leaf": "supervortons", "opening": "box"},
    "cubic": {"solver": "tree", "opening": "box", "margin": 0.5, "interpolation": "cubic"},
    "mesh": {"solver": "pppm", "tracers": "solver"},
    "auto": {"solver": "auto", "tolerance": 1e-2},
    "strays": {"solver": "tree", "at": "grid"},
}


DIFFUSION: dict[str, Any] = {
    "vortons": {"order": 4},
    "grid": {"radius": 1.5},
    "cubic": {"method": "index_space", "rate": 1e-4},
}


def two_clouds(how: str) -> ef.World:
    """Two populations of vortons of uneven density that overlap, and tracers."""
    world = ef.World(dt=1e-3, integrator="rk2", seed=1)
    draw = np.random.default_rng(1)
    for name, rows, shift in (("first", 2500, 0.0), ("second", 801, 0.5)):
        x, core = draw.random((rows, 3)) ** 2 + shift, 0.02 + 0.02 * draw.random(rows)
        alpha, volume = 1e-3 * draw.standard_normal((rows, 3)), np.full(rows, 1e-6)
        world.spawn(name, ef.Position(x), ef.Strength(alpha), ef.CoreRadius(core), ef.Volume(volume))
    room = 0.1 if how == "cells" else 1.0  # in which points are fewer than tracers
    world.spawn("tracers", ef.Position(room * draw.random((1000, 3))))
    if how == "strays":
        world["first"][ef.Position].x[7] = (200.0, -90.0, 3.0)
        world["tracers"][ef.Position].x[[3, 900]] = (-50.0, 0.0, 1e4)
    world.add_system(ef.VelocitySystem(**SUMS[how]))
    world.add_systems([ef.StretchSystem(), ef.AdvectionSystem()])
    if how in DIFFUSION:
        world.attach("first", ef.Temperature(300.0 + np.arange(2500) % 7))
        world.set_fluid(viscosity=1e-4, law="ideal_gas")
        world.add_system(ef.DiffusionSystem(**DIFFUSION[how]))
        world.add_system(ef.ThermalSystem(eddy_diffusivity=1e-4))
    return world


def room() -> ef.World:
    """Vortons of two populations that fill a box, with heat and vorticity that spread between its walls."""
    walls = {"kind": "container", "name": "walls", "shape": {"shape": "box", "size": [1.0, 0.2, 1.0]}}
    fluid = {"viscosity": 1e-3, "conductivity": 2.0, "velocity": {"solver": "container"}}
    half = {"kind": "fluid_block", "spacing": 0.1, "agitation": 1.0, "jitter": 0.2}
    left = {
        "name": "left",
        "box": {"low": [-0.5, -0.1, -0.5], "high": [0.0, 0.1, 0.5]},
        "temperature": "300+z",
    }
    right = {"name": "right", "box": {"low": [0.0, -0.1, -0.5], "high": [0.5, 0.1, 0.5]}}
    systems = [{"kind": "thermal"}, {"kind": "subfilter"}]
    parts = [walls, half | left, half | right]
    turned = [part | {"rotation": [0.3, 0.2, 0.1]} if part is walls else part for part in parts]
    return ef.load({"world": {"dt": 0.01}, "fluid": fluid, "entity": turned, "system": systems})


def coarse() -> ef.World:
    """A grid too coarse for its solver, of which is warned once, and tracers that lie far beyond."""
    draw = np.random.default_rng(1)
    world = ef.World(dt=1e-3)
    x, alpha = draw.random((400, 3)), draw.standard_normal((400, 3))
    world.spawn("vortons", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(np.full(400, 0.02)))
    world.spawn("tracers", ef.Position(3.0 * draw.random((50, 3))))
    world.add_systems(
        [ef.PartitionSystem(cells=300), ef.VelocitySystem(solver="poisson"), ef.AdvectionSystem()]
    )
    return world


def made(name: str) -> ef.World:
    """The world of that name, with a record of every second tick where velocities are summed."""
    world = named(name)
    if record := world.system(ef.DiagnosticsSystem):
        record.every = 2
    return world


def named(name: str) -> ef.World:
    """A shipped world, one of those above by its name, or one with a solver (ring:, clouds:)."""
    if name.startswith("clouds:"):
        return two_clouds(name[7:])
    if name == "asking":
        world = ef.load("vortex_ring")
        world.add_system(Asks())
        return world
    if name == "coarse":
        return coarse()
    if name == "room":
        return room()
    if name.startswith("ring:"):
        world = ef.load("vortex_ring")
        velocity = world.system(ef.VelocitySystem)
        assert velocity is not None
        velocity.solver, velocity.tracers = name[5:], "solver"
        return world
    if name not in ("cloud", "few", "nan", "error"):
        return ef.load(name)
    world = ef.World(dt=0.05, seed=3)
    rows = 2 if name == "few" else 257
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (rows, 3))
    x[:6, 2] = -1.0  # these are not removed
    world.spawn("cloud", ef.Position(x))
    world.add_systems([RowSwirl(), Pull(), ef.AdvectionSystem()])
    if name in ("nan", "error"):
        world.add_system(Breaks(how=name))
    return world


ASKED = [[0.0, 0.0, 0.5], [1.0, 0.1, 0.2], [-3.0, 2.0, 1.0]]


def outcome(world: ef.World, ticks: int) -> dict[str, Any]:
    """What a run of the world comes to, and what it says of itself behind it."""
    try:
        world.step(ticks)
        error = ""
    except ef.FluidError as raised:
        error = f"{type(raised).__name__}: {raised}"
    return {
        "hash": world.state_hash(),
        "error": error,
        "rows": {entity.name: len(entity) for entity in world.entities},
        "tick": world.tick,
        "records": world.history,
        "remarks": world.lint(),
        "vorticity": world.vorticity(ASKED).tolist() if world.system(ef.VelocitySystem) else [],
    }


if __name__ == "__main__":
    with on_ranks(threads=1) as share:
        if share is not None:
            found = {}
            for word in sys.argv[1:]:
                name, _, ticks = word.partition("=")
                world = made(name)
                share(world)
                found[name] = outcome(world, int(ticks))
                found[name]["ranks"] = world._rank_statistics()
            print(json.dumps(found))
