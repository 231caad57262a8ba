"""Worlds whose order in time is measured: each shipped system alone, and several together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from solids import balls, box, solid

import ecs_fluid as ef

Array = np.ndarray
STEPS = (8, 16, 32, 64)
"""Ticks in which the same time is marched: three differences, two slopes."""

SPACING = 0.25


def puff(world: ef.World, swirl: float = 12.0, **species: float) -> ef.Entity:
    """125 overlapping vortons of a lattice that was shaken: a swirl, warm in the middle, of fuel or flame."""
    draw = np.random.default_rng(7)
    axis = SPACING * np.arange(-2, 3)
    x = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    x = x + draw.uniform(-0.1, 0.1, x.shape) * SPACING
    near, n = np.exp(-3 * (x**2).sum(axis=1)), len(x)
    turn = np.stack([-x[:, 1], x[:, 0] + 0.3 * x[:, 2], 0.2 + 0.4 * x[:, 0]], axis=1)
    tables: list[ef.Component] = [ef.Temperature(300 + 60 * near)]
    if species:
        tables.append(
            ef.Species(
                **{"fuel": 0.0 * near, "flame": 0.0 * near, "smoke": 0.0 * near}
                | {name: part * near for name, part in species.items()}
            )
        )
    return world.spawn(
        "puff", ef.Position(x), ef.Strength(swirl * SPACING**3 * near[:, None] * turn),
        ef.CoreRadius(np.full(n, 1.6 * SPACING)), ef.Volume(np.full(n, SPACING**3)), *tables,
    )  # fmt: skip


def made(dt: float, integrator: str, *systems: ef.System, **fluid: Any) -> ef.World:
    """A double-precision world of these systems, with motion; its fluid is at rest in no gravity."""
    world = ef.World(dt=dt, integrator=integrator, precision="double")
    world.set_fluid(**{"gravity": (0.0, 0.0, 0.0), **fluid})
    world.add_systems([*systems, ef.AdvectionSystem()])
    return world


def of_puff(
    *kinds: Callable[[], ef.System],
    time: float = 0.6,
    swirl: float = 12.0,
    species: dict[str, float] | None = None,
    **fluid: Any,
) -> Callable[[str, int], ef.World]:
    """What marches a puff under these systems to `time` s."""

    def march(integrator: str, ticks: int) -> ef.World:
        world = ef.World(dt=time / ticks, integrator=integrator, precision="double")
        world.set_fluid(**{"gravity": (0.0, 0.0, 0.0), **fluid})
        puff(world, swirl, **(species or {}))
        world.add_systems([*(kind() for kind in kinds), ef.AdvectionSystem()])
        world.step(ticks)
        return world

    return march


def columns(world: ef.World) -> dict[str, Array]:
    """Every column of the state, float64."""
    return {
        f"{entity.name}/{field.label}": array.astype(np.float64)
        for entity in world.entities
        for kind, table in entity.tables.items()
        if not kind.derived and entity.name != "fluid"
        for field, array in table.items()
        if array.dtype.kind == "f"
    }


def errors(
    march: Callable[[str, int], ef.World], integrator: str, steps: Sequence[int] = STEPS
) -> dict[str, list[float]]:
    """Root of the sum of squares of the differences between one step and its half, by column."""
    found = [columns(march(integrator, ticks)) for ticks in steps]
    return {
        name: [float(np.linalg.norm(a[name] - b[name])) for a, b in zip(found, found[1:])]
        for name in found[0]
    }


HOT = {"law": "ideal_gas", "temperature": 300.0, "density": 1.2}
FALLING = {"gravity": (0.0, 0.0, -9.81)}
LAYERS = {"density": 1.2, "density_profile": [(-5.0, 2.2), (5.0, 0.2)]}


def of_bodies(
    *kinds: Callable[[], ef.System],
    time: float = 1.0,
    cloud: bool = False,
    hot: bool = False,
    shape: Any = None,
    **fluid: Any,
) -> Callable[[str, int], ef.World]:
    """What marches a body beside or without a puff; a ball, or a box that tumbles."""

    def march(integrator: str, ticks: int) -> ef.World:
        world = ef.World(dt=time / ticks, integrator=integrator, precision="double")
        world.set_fluid(**{"gravity": (0.0, 0.0, 0.0), **fluid})
        if cloud:
            puff(world)
        if shape is None:
            body = balls(world, "ball", [1.2, 0.3, 0.0], radius=0.2, mass=0.06, v=[-0.4, 0.5, 0.3])
        else:
            body = solid(
                world, "ball", shape, density=2.0, rotation=(0.3, 1.0, -0.2), velocity=(0.4, 0.5, 0.3)
            )
        body[ef.RigidMotion].angular_velocity[0] = (3.0, -2.0, 5.0)
        if hot:
            world.attach("ball", ef.BodyHeat([500.0], capacity=[20.0], transfer=[30.0]))
        world.add_systems([*(kind() for kind in kinds), ef.BodySystem(), ef.AdvectionSystem()])
        world.step(ticks)
        return world

    return march


CASES: dict[str, Callable[[str, int], ef.World]] = {
    "velocity": of_puff(ef.VelocitySystem),
    "stretch": of_puff(ef.VelocitySystem, ef.StretchSystem),
    "diffusion": of_puff(ef.DiffusionSystem, viscosity=0.02),
    "core_spreading": of_puff(
        ef.VelocitySystem, lambda: ef.DiffusionSystem(method="core_spreading"), viscosity=0.02
    ),
    "baroclinic": of_puff(ef.VelocitySystem, ef.BaroclinicSystem, time=0.3, **HOT, **FALLING),
    "full": of_puff(ef.VelocitySystem, lambda: ef.BaroclinicSystem(model="full"), time=0.3, **HOT, **FALLING),
    "thermal": of_puff(ef.VelocitySystem, ef.ThermalSystem, conductivity=24.0),
    "species": of_puff(
        ef.VelocitySystem, lambda: ef.ThermalSystem(species_diffusivity=0.02), species={"fuel": 0.2}
    ),
    "turbulence": of_puff(lambda: ef.TurbulenceSystem(speed=0.2, scale=1.0)),
    "reformulation": of_puff(ef.VelocitySystem, ef.StretchSystem, ef.ReformulationSystem),
    "combustion": of_puff(
        lambda: ef.CombustionSystem(rate=60.0, activation=1200.0, heat=1e6),
        time=2.0,
        species={"fuel": 0.2, "flame": 0.2},
    ),
    "combustion_limited": of_puff(
        lambda: ef.CombustionSystem(rate=60.0, activation=1200.0, heat=1e6, oxygen="limited", air_need=3.0),
        time=2.0,
        species={"fuel": 0.2, "flame": 0.2},
    ),
    "cooling": of_puff(lambda: ef.CoolingSystem(rate=0.8, absorption=20.0)),
    "alignment": of_puff(ef.VelocitySystem, ef.StretchSystem, lambda: ef.AlignmentSystem(rate=0.5)),
    "subfilter": of_puff(
        ef.VelocitySystem, ef.StretchSystem, lambda: ef.SubfilterSystem(coefficient="constant", constant=0.3)
    ),
    "heat and motion": of_puff(
        ef.VelocitySystem,
        ef.StretchSystem,
        ef.DiffusionSystem,
        ef.BaroclinicSystem,
        ef.ThermalSystem,
        time=0.3,
        viscosity=0.02,
        conductivity=24.0,
        **HOT,
        **FALLING,
    ),
    "fire": of_puff(
        ef.VelocitySystem,
        ef.StretchSystem,
        ef.DiffusionSystem,
        ef.BaroclinicSystem,
        ef.ThermalSystem,
        lambda: ef.CombustionSystem(rate=60.0, activation=1200.0, heat=1e6),
        lambda: ef.CoolingSystem(rate=0.8, absorption=20.0),
        time=0.3,
        viscosity=0.02,
        conductivity=24.0,
        species={"fuel": 0.2, "flame": 0.2},
        **HOT,
        **FALLING,
    ),
    "drag": of_bodies(ef.DragSystem, viscosity=1e-3, **FALLING),
    "lift": of_bodies(lambda: ef.DragSystem(lift=1.0), viscosity=1e-3, **FALLING),
    "tumbling": of_bodies(ef.DragSystem, viscosity=0.05, shape=box(0.4, 0.2, 0.1)),
    "layers": of_bodies(ef.BuoyancySystem, **LAYERS, **FALLING),
    "drag in a flow": of_bodies(ef.VelocitySystem, ef.DragSystem, cloud=True, viscosity=1e-2),
    "buoyancy in a puff": of_bodies(
        ef.VelocitySystem, ef.BuoyancySystem, cloud=True, time=0.4, **HOT, **FALLING
    ),
    "conduction": of_bodies(
        lambda: ef.ConductionSystem(reach=6.0),
        ef.VelocitySystem,
        ef.BaroclinicSystem,
        ef.ThermalSystem,
        cloud=True,
        hot=True,
        time=0.3,
        conductivity=24.0,
        **HOT,
        **FALLING,
    ),
}
