"""Ticks beside the method of the article series in plain loops: ``python benchmarks/article.py [world ...]``.

From the same states, a tick each in turn, so that other work on the machine slows both down: three thick
rings with smoke (velocity, stretching, diffusion, tracers), and the shipped dye_drop, hot_ball and candle or
the worlds named, grown for a quarter of their run, as they are and by the articles' systems alone. Prints the
median tick of each, ms of the clock, and the RMS error of the velocities, relative to their RMS, at vortons
and at tracers against the direct sum over the same vortons in double precision.

Of shipped worlds the plain loops (``plain_loops/articles.py``) leave out what the articles do not have:
second stages of a tick, subfilter, reformulation, radiation.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import get_num_threads
from plain_loops.articles import Array, Article

import ecs_fluid as ef
from ecs_fluid.fluid import options_of
from ecs_fluid.kernels.biot_savart import direct
from ecs_fluid.kernels.biot_savart.regularisation import CODES
from ecs_fluid.worlds.world_recipe import read as recipe


def like(world: ef.World) -> Article:
    """The article's flow from the state of a world."""
    single = np.float32

    def rows(component: Any, attribute: str, populations: Sequence[ef.Entity], absent: float = 0.0) -> Array:
        """A column of all populations; `absent` for those without it, as what a body sheds has no heat."""
        found = [
            np.asarray(getattr(entity[component], attribute), single)
            if component in entity
            else np.full(len(entity), absent, single)
            for entity in populations
        ]
        return np.concatenate(found).copy()

    vortons, others = vortons_of(world), moved(world)
    flow = Article(
        world.dt,
        rows(ef.Position, "x", vortons),
        rows(ef.Strength, "alpha", vortons),
        float(rows(ef.CoreRadius, "sigma", vortons).mean()),
        rows(ef.Volume, "volume", vortons),
        rows(ef.Position, "x", others),
        exchange=0.01,
    )
    flow.ambient = float(world.fluid[ef.Fluid].density)
    warm = float(world.fluid[ef.Fluid].temperature)
    if world.system(ef.BaroclinicSystem):
        flow.gravity = tuple(world.gravity)
        dense = ef.Density in vortons[0]
        rho = (
            rows(ef.Density, "rho", vortons)
            if dense
            else flow.ambient * warm / rows(ef.Temperature, "T", vortons, warm)
        )
        flow.density = rho[:, None]
    fire = world.system(ef.CombustionSystem)
    if fire:
        names = ("fuel", "flame", "smoke")
        flow.species = np.stack([rows(ef.Species, name, vortons) for name in names], axis=1)
        rise = fire.heat / float(world.fluid[ef.Fluid].heat_capacity)
        flow.rates = fire.rate, fire.activation, rise, fire.flame_rate, fire.flame_temperature, warm
    for entity in world.entities:
        if ef.BallShape in entity:
            center = np.asarray(entity[ef.Pose].x[0], single)
            heat = np.array([600.0, 0.01, flow.ambient * warm], single)
            flow.balls.append((center, float(entity[ef.BallShape].radius[0]), heat))
    return flow


ARTICLES = (
    ef.PartitionSystem,
    ef.VelocitySystem,
    ef.StretchSystem,
    ef.DiffusionSystem,
    ef.AdvectionSystem,
    ef.BaroclinicSystem,
    ef.TransferSystem,
    ef.ThermalSystem,
    ef.CombustionSystem,
    ef.SamplingSystem,
    ef.BodySystem,
    ef.CollisionSystem,
    ef.BoundarySystem,
    ef.ConductionSystem,
)
"""Systems that do what the articles do."""


def lean(world: ef.World) -> ef.World:
    """A world of the same state with the systems of the articles alone, by explicit Euler."""
    copy = ef.World(dt=world.dt, integrator="euler", precision=world.options.precision)
    told = options_of(world.fluid[ef.Fluid]).model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    copy.set_fluid(**told)
    for entity in world.entities:
        if entity is not world.fluid and len(entity):
            own = [
                kind(**{column.name: array for column, array in table.items()})
                for kind, table in entity.tables.items()
                if not (kind.derived or kind is ef.RowId)
            ]
            copy.spawn(entity.name, *own)
    copy.add_systems(
        [
            type(s)(**s.parameters.model_dump(exclude_defaults=True))
            for s in world.systems
            if isinstance(s, ARTICLES)
        ]
    )
    if boundary := copy.system(ef.BoundarySystem):
        boundary.boundary = "article"
    return copy


SAMPLE, TICKS = 1000, 61

FIRST = 20
"""Ticks that are not counted: they compile, and try on how many threads systems are fastest (`threads`)."""

OURS = {"solver": "tree", "at": "grid", "angle": 0.8, "interpolation": "refined"}
"""The fastest of our solvers that keeps 1e-2: direct, pppm and hybrid were tried. It is read linearly between
points twice as fine that a spline gave."""

CASES: tuple[tuple[int, int, dict[str, Any], dict[str, float]], ...] = (
    (1_000, 50_000, OURS, {"cells_per_vorton": 2.5, "vortons_per_cell": 8.0, "padding": 0.0}),
    (16_700, 131_000, OURS, {"cells_per_vorton": 0.8, "vortons_per_cell": 4.0, "padding": 0.0}),
    (63_000, 131_000, OURS, {"cells_per_vorton": 0.6, "vortons_per_cell": 4.0, "padding": 0.0}),
)
"""Vortons, tracers, a solver that keeps 1e-2, and its grid, which ends where vortons and tracers do."""

ARTICLE = {
    "solver": "tree",
    "at": "grid",
    "interpolation": "linear",
    "leaf": "supervortons",
    "multipole": "monopole",
    "opening": "box",
    "mollify": 2.0,
    "kernel": "rankine",
}
"""The articles' choice of methods, by our systems."""


def ring_world(vortons: int, tracers: int, velocity: dict[str, Any], partition: dict[str, float]) -> ef.World:
    """A thick ring of random vortons and smoke around it."""
    draw = np.random.default_rng(7)
    angle = draw.random(vortons) * 2 * np.pi
    radius = 0.5 * np.sqrt(draw.random(vortons))
    turn = draw.random(vortons) * 2 * np.pi
    distance = 1 + radius * np.cos(turn)
    x = np.c_[distance * np.cos(angle), distance * np.sin(angle), radius * np.sin(turn)]
    direction = np.c_[-np.sin(angle), np.cos(angle), np.zeros(vortons)]
    volume = 2 * np.pi * np.pi * 0.25 / vortons
    spacing = volume ** (1 / 3)
    world = ef.World(dt=1 / 30, integrator="euler")
    world.spawn(
        "ring",
        ef.Position(x),
        ef.Strength(5.0 / (np.pi * 0.25) * volume * direction),
        ef.CoreRadius(np.full(vortons, 1.5 * spacing)),
        ef.Volume(np.full(vortons, volume)),
    )
    world.spawn("smoke", ef.Position(draw.uniform(-1.5, 1.5, (tracers, 3)) * [1, 1, 0.35]))
    world.add_system(ef.PartitionSystem(cells_per_core=0.0, **partition))
    world.add_system(ef.VelocitySystem(**velocity))
    world.add_system(ef.StretchSystem(rate=0.5))
    world.add_system(ef.DiffusionSystem(method="index_space", rate=0.01))
    world.add_system(ef.AdvectionSystem())
    return world


def exact(world: ef.World) -> Array:
    """Velocities of some vortons, then of some tracers, by the direct sum."""
    vortons = vortons_of(world)
    others = moved(world)
    places = [np.concatenate([e[ef.Position].x for e in kind]) for kind in (vortons, others)]
    x = np.concatenate([place[some(place)] for place in places]).astype(float)
    sources = [
        np.ascontiguousarray(np.concatenate([getattr(e[c], name) for e in vortons]).T, float)
        for c, name in ((ef.Position, "x"), (ef.Strength, "alpha"), (ef.CoreRadius, "sigma"))
    ]
    u = np.empty_like(x)
    direct.velocity(CODES[world.require(ef.VelocitySystem).kernel], x, *sources, u)
    return u


def some(rows: Array) -> Array:
    """Indices of the sample."""
    return np.linspace(0, len(rows) - 1, SAMPLE).astype(int)


def vortons_of(world: ef.World) -> list[ef.Entity]:
    """Populations of vortons that have any."""
    return [e for e in world.entities if ef.Strength in e and len(e)]


def moved(world: ef.World) -> list[ef.Entity]:
    """Tracers."""
    kinds = ef.Strength, ef.Body
    return [e for e in world.entities if ef.Velocity in e and len(e) and not any(kind in e for kind in kinds)]


def off(found: Array, u: Array) -> str:
    """RMS errors at vortons and tracers, relative to the RMS."""
    half = len(u) // 2
    parts = slice(half), slice(half, None)
    return ", ".join(f"{np.sqrt(((found[p] - u[p]) ** 2).sum() / (u[p] ** 2).sum()):.1e}" for p in parts)


def compare(name: str, world: ef.World, kind: str, errors: Sequence[str]) -> None:
    """Print the row of a world, and of the article's method from its state."""
    flow = like(world)
    times: tuple[list[float], list[float]] = [], []
    for tick in range(FIRST + TICKS):
        for one, seconds in zip((world, flow), times, strict=True):
            begin = time.perf_counter()
            one.step()
            if tick >= FIRST:
                seconds.append(time.perf_counter() - begin)
    ours, theirs = (1e3 * statistics.median(seconds) for seconds in times)
    count = f"{len(flow.x):,} + {len(flow.tracers):,}"
    print(
        f"| {name} | {count} | {kind} | {ours:.2f} | {errors[0]} | {theirs:.2f} | {errors[1]} |", flush=True
    )


def errors(world: ef.World) -> list[str]:
    """Of the velocities that vortons induce, ours and the article's."""
    world.evaluate()
    flow, u = like(world), exact(world)
    flow.evaluate()
    vortons = vortons_of(world)
    ours = [np.concatenate([e[ef.Velocity].u for e in kind]) for kind in (vortons, moved(world))]
    pairs = ours, (flow.u, flow.tracer_u)
    return [off(np.concatenate([rows[some(rows)] for rows in pair]), u) for pair in pairs]


def main(names: Sequence[str] = ("dye_drop", "hot_ball", "candle")) -> None:
    """Print two rows for each ring and each world."""
    print(f"{get_num_threads()} threads")
    print("| world | vortons + tracers | ours | ms | errors | article ms | errors |\n" + 7 * "|---" + "|")
    rings()
    for name in names:
        world = ef.load(name)
        world.step(recipe(name).ticks // 4)
        if not (moved(world) and vortons_of(world)):
            print(f"{name} lacks vortons or tracers")
            continue
        copy = lean(world)
        found = errors(copy)
        compare(name, world, "as shipped", found)
        compare(name, copy, "the articles' systems, Euler", found)


def rings() -> None:
    """Print two rows for each ring."""
    for vortons, tracers, exactly, grid in CASES:
        for velocity, partition in ((exactly, grid), (ARTICLE, {"cells_per_vorton": 1.0})):
            world = ring_world(vortons, tracers, velocity, partition)
            kind = "the articles' choices" if velocity is ARTICLE else "tree on the grid"
            compare("ring", world, kind, errors(world))


if __name__ == "__main__":
    from asked import worlds

    with warnings.catch_warnings(action="ignore", category=ef.FluidWarning):
        main(*worlds(__file__, __doc__))
