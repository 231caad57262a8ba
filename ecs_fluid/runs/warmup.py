"""Compiles the kernels by stepping tiny worlds that use each of them once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from typing import Any, Literal

import numpy as np

from ecs_fluid.component import Array, Component
from ecs_fluid.components import (
    CoreRadius,
    Density,
    InertialVelocity,
    Position,
    Species,
    Strength,
    Temperature,
    Volume,
)
from ecs_fluid.errors import FluidWarning
from ecs_fluid.systems import (
    AdvectionSystem,
    BaroclinicSystem,
    BodyScript,
    BodySystem,
    CollisionSystem,
    CombustionSystem,
    CoolingSystem,
    DiagnosticsSystem,
    DiffusionSystem,
    SamplingSystem,
    SphSystem,
    StretchSystem,
    SurfaceBarrierSystem,
    SurfaceSystem,
    SurfaceTensionSystem,
    ThermalSystem,
    TransferSystem,
    VelocitySystem,
)
from ecs_fluid.world import World
from ecs_fluid.world_options import Precision


def compile_kernels(precision: Precision) -> None:
    """Compile (or load) every kernel that a world of this precision may use."""
    for part in PARTS:
        compile_part(part, precision)


def compile_on_all_cores(precisions: Iterable[Precision], say: Callable[[str], None]) -> None:
    """`compile_kernels` for these precisions, in a process per core; `say` gets sentences on the progress."""
    jobs = [(part, precision) for part in PARTS for precision in precisions]
    cores = min(os.cpu_count() or 1, len(jobs))
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(compile_part, *job) for job in jobs]
        for done, each in enumerate(as_completed(running)):
            each.result()
            say(f"compiling kernels, once per machine: {done + 1} of {len(jobs)} parts done")


def compile_for(world: World) -> None:
    """Compile the kernels of a world's first ticks, in its own precision, by stepping it."""
    observer = world.system(DiagnosticsSystem)
    if observer is not None and observer.every:
        observer.every = 1
    with _quiet():
        world.step(2)  # a surface is found in the first tick and carried in the second
    if observer is not None:
        world.diagnostics()


def compile_part(part: str, precision: Precision) -> None:
    """Compile the kernels of one of `PARTS`."""
    with _quiet():
        for world in PARTS[part](np.random.default_rng(1).random((400, 3)), precision):
            compile_for(world)


_quiet = partial(warnings.catch_warnings, action="ignore", category=FluidWarning)
"""While active, there are no warnings: worlds made only to compile kernels are too coarse for physics."""


_Flow = tuple[Literal["euler", "rk2"], dict[str, Any], Any]


def _flows(*choices: _Flow) -> Callable[[Array, Precision], Iterator[World]]:
    """Worlds of vortons and tracers: integrator, settings of the velocity, method of diffusion."""

    def worlds(x: Array, precision: Precision) -> Iterator[World]:
        for integrator, velocity, method in choices:
            world = World(integrator=integrator, precision=precision, dt=1e-6)
            world.spawn("vortons", *_vortons(x))
            world.spawn("tracers", Position(x))
            world.set_fluid(viscosity=1e-6)
            diffusion = DiffusionSystem(method=method, rate=1e-6 if method == "index_space" else 0.0)
            world.add_systems([VelocitySystem(**velocity), StretchSystem(), diffusion, AdvectionSystem()])
            world.require(DiagnosticsSystem)
            yield world

    return worlds


def _vortons(x: Array) -> tuple[Component, ...]:
    """Tables of vortons at `x` (n, 3) m."""
    n = len(x)
    return Position(x), Strength(1e-3 * x), CoreRadius(np.full(n, 0.2)), Volume(np.full(n, 0.0025))


def _many(solver: str, count: int) -> Callable[[Array, Precision], Iterator[World]]:
    """A world of so many vortons and tracers that this solver sums at neither of them by all pairs."""

    def worlds(x: Array, precision: Precision) -> Iterator[World]:
        many = np.random.default_rng(2).random((count, 3))
        yield from _flows(("euler", {"solver": solver, "tracers": "solver"}, "pse"))(many, precision)

    return worlds


def _fires(x: Array, precision: Precision) -> Iterator[World]:
    """Hot vortons with fuel, and tracers that show them."""
    for kernel, gradient in (("linear", "neighbours"), ("m4", "grid")):
        yield _fire(x, precision, kernel, gradient)


def _fire(x: Array, precision: Precision, kernel: Any, gradient: Any) -> World:
    world = World(integrator="euler", precision=precision, dt=1e-6)
    world.set_fluid(law="ideal_gas")
    world.spawn("gas", *_vortons(x), Temperature(300 + 100 * x[:, 0]), Species(0.1 * x[:, 1]))
    world.spawn("tracers", Position(x))
    world.add_systems(
        [
            VelocitySystem(solver="tree", at="grid"),
            TransferSystem(kernel=kernel),
            BaroclinicSystem(gradient=gradient),
            ThermalSystem(eddy_diffusivity=1e-6, species_diffusivity=1e-6),
            CombustionSystem(),
            CoolingSystem(rate=1.0, absorption=0.5),
            SamplingSystem(),
            AdvectionSystem(),
        ]
    )
    return world


def _drops(x: Array, precision: Precision) -> Iterator[World]:
    """A heavy drop whose surface is found, then carried by the flow."""
    world = World(integrator="euler", precision=precision, dt=1e-6)
    inside = x[np.abs(x - 0.5).max(axis=1) < 0.4]
    world.spawn("drop", *_vortons(inside), Density(np.full(len(inside), 1000.0)))
    world.add_systems([VelocitySystem(), SurfaceSystem(carried=True), AdvectionSystem()])
    yield world


def _liquids(x: Array, precision: Precision) -> Iterator[World]:
    """Two worlds: two liquids under one surface, in a moving tank with a ball and a block; and a drop with
    surface tension in a box, of another density than the fluid around, with sparks that its surface stops."""
    from ecs_fluid.worlds import BodyRecipe, ContainerRecipe, LiquidRecipe, load

    tank = World(integrator="euler", precision=precision, dt=1e-3)
    ContainerRecipe(
        name="tank",
        shape={"shape": "box", "size": (1.0, 1.0, 1.0)},
        velocity=(0.1, 0.0, 0.0),
        angular_velocity=(0.0, 0.1, 0.0),
    ).build(tank)
    BodyRecipe(name="ball", shape={"shape": "ball", "radius": 0.15}, density=500.0).build(tank)
    block = {"shape": "box", "size": (0.2, 0.2, 0.2)}
    BodyRecipe(name="block", shape=block, center=(0.25, 0.25, -0.2), motion="fixed").build(tank)
    for name, low, high, density in (("water", -0.5, 0.0, 1000.0), ("oil", 0.0, 0.5, 800.0)):
        box = {"low": (low, -0.5, -0.5), "high": (high, 0.5, 0.1)}
        LiquidRecipe(name=name, box=box, spacing=0.1, density=density, hydrostatic=True).build(tank)
    script = BodyScript(name="tank", center={"keys": [(0.0, (0.0, 0.0, 0.0)), (1.0, (0.1, 0.0, 0.0))]})
    moving = BodySystem(scripts=[script])
    tank.add_systems([SphSystem(), moving, CollisionSystem(), SurfaceSystem(of="liquid")])
    yield tank
    drop = load("drop_oscillates", "oil.spacing=0.005", f"world.precision={precision}")
    tension = drop.system(SurfaceTensionSystem)
    assert tension is not None
    tension.liquid_density = 900.0
    ContainerRecipe(name="box", shape={"shape": "box", "size": (0.05, 0.05, 0.05)}).build(drop)
    drop.spawn("sparks", Position(np.array([[0.0, 0.0, 0.0]])), InertialVelocity)
    drop.add_systems([CollisionSystem(), SurfaceBarrierSystem()])
    yield drop


PARTS: dict[str, Callable[[Array, Precision], Iterator[World]]] = {
    "liquids": _liquids,
    "surfaces": _drops,
    "sums": _flows(
        ("rk2", {"solver": "direct", "at": "vortons"}, "pse"),
        ("euler", {"solver": "tree", "at": "grid"}, "index_space"),
        ("rk2", {"solver": "tree", "at": "vortons"}, "core_spreading"),
        ("euler", {"solver": "tree", "at": "vortons"}, "core_spreading"),
    ),
    "grids": _flows(
        ("euler", {"solver": "poisson"}, "pse"),
        ("euler", {"solver": "hybrid", "interpolation": "cubic"}, "pse"),
    ),
    "multipoles": _many("fmm", 2_000),
    "meshes": _many("pppm", 20_000),
    "fire": _fires,
}
"""Parts with kernels of their own, those that compile longest first."""
