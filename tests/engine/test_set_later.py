"""A parameter set later is as if the system had been added with it, or refused, and all is as before."""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.components import SubfilterAverage
from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.systems.subfilter import SubfilterAverageSystem
from tests.engine.test_set_by_hand import small

WORLDS = ("wind_fountain", "falling_plate", "drop_oscillates", "two_layers_ball")


def values(kind: Any, names: list[str]) -> list[Any]:
    """Some values that a parameter of the type may have; texts are names of entities."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return values(inner[0], names)
    if origin is Literal:
        return list(inner)
    if origin in (Union, types.UnionType):
        return [value for part in inner for value in values(part, names)]
    if origin is tuple and inner[1:] == (Ellipsis,):
        return [(), *((value,) for value in values(inner[0], names))]
    if origin is tuple:
        of_each = [values(part, names) for part in inner]
        return [tuple(column) for column in itertools.islice(zip(*of_each, strict=False), 2)]
    plain = {bool: [True, False], int: [1, 7, 10**9], float: [0.5, 3.0], str: [*names, "nobody"]}
    return plain.get(kind, [None] if kind is types.NoneType else [])


def changes(world: ef.World) -> Iterator[tuple[int, str, Any]]:
    """Number of a system, parameter and value: each other than the present one."""
    for number, system in enumerate(world.systems):
        for name, field in type(system.parameters).model_fields.items():
            for value in values(field.annotation, list(world)):
                if value != getattr(system, name):
                    yield number, name, value


def told(world: ef.World) -> list[Any]:
    """What each system is, its parameters, and what it touches."""
    lists = ("reads", "may_read", "writes", "adds", "asks")
    return [
        (type(one), one.parameters, one.watching, *(getattr(one, name) for name in lists))
        for one in sorted(world.systems, key=lambda one: type(one).__name__)
    ]


def held(world: ef.World) -> list[Any]:
    """Entities, their tables, and all bits."""
    return [*((entity.name, {*entity.tables}) for entity in world.entities), world.state_hash()]


@pytest.mark.parametrize("name", WORLDS)
def test_what_is_taken_later_is_what_a_resumed_world_takes(name: str, tmp_path: Path) -> None:
    """The oracle is a world that gets its systems with these parameters from the start, as resuming does."""
    world, taken = small(name), 0
    tried = list(changes(world))
    for number, parameter, value in tried:
        system = world.systems[number]
        before, former = (told(world), held(world)), getattr(system, parameter)
        try:
            setattr(system, parameter, value)
        except FluidError:
            assert (told(world), held(world)) == before, (parameter, value)
            continue
        taken += 1
        world.save(tmp_path / "world.npz")
        assert told(ef.resume(tmp_path / "world.npz")) == told(world), (parameter, value)
        setattr(system, parameter, former)
    assert 20 < taken < len(tried)


@pytest.mark.parametrize("cores", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_it_goes_on_as_a_resumed_world(cores: bool, tmp_path: Path) -> None:
    """The same bits: nothing that a system made of its parameters is left from before.

    By night other cores: each compiles its own sums, where `test_parameters_set_later` sets one by day.
    """
    start = tmp_path / "start.npz"
    world = small("wind_fountain")
    world.step(2)
    world.save(start)
    for number, parameter, value in changes(world):
        if (parameter == "kernel") != cores:
            continue
        live = ef.resume(start)
        try:
            setattr(live.systems[number], parameter, value)
        except FluidError:
            continue
        live.save(tmp_path / "live.npz")
        ends = []
        for one in (live, ef.resume(tmp_path / "live.npz")):
            try:
                one.step()
                ends.append(one.state_hash())
            except FluidError as error:  # such as a step that is unstable
                ends.append(str(error))
        assert ends[0] == ends[1], (parameter, value)


def plane() -> ef.World:
    world = ef.World(dimension=2)
    world.spawn("blobs", ef.Position([[0.0, 0.0, 0.0]]), ef.Strength([[0.0, 0.0, 1.0]]), ef.CoreRadius([0.1]))
    world.add_systems([ef.VelocitySystem(solver="auto"), ef.AdvectionSystem()])
    return world


def pool() -> ef.World:
    world = ef.World()
    places = 0.1 * np.arange(3.0)[:, None] * np.array([1.0, 0.0, 0.0])
    liquid = ef.Liquid(np.ones(3), np.full(3, 1e-3), np.full(3, 1e-6))
    world.spawn("water", ef.Position(places), ef.InertialVelocity(np.zeros((3, 3))), liquid)
    world.add_systems([ef.SphSystem(), ef.WhitewaterSystem()])
    return world


def dust(*systems: ef.System) -> ef.World:
    world = ef.World()
    world.spawn("dust", ef.Position([[0.0, 0.0, 0.0]]))
    world.add_systems(systems)
    return world


@pytest.mark.parametrize(
    ("world", "kind", "name", "value", "sentence"),
    [
        (pool, ef.WhitewaterSystem, "most", 10**9, "use a smaller most"),
        (plane, ef.VelocitySystem, "solver", "pppm", "works only in a world of dimension = 3"),
        (plane, ef.VelocitySystem, "solver", "container", "works only in a world of dimension = 3"),
        (
            lambda: dust(ef.KillBoxSystem(low=(0, 0, 0), high=(1, 1, 1))),
            ef.KillBoxSystem,
            "low",
            (0, 2, 0),
            "must be below high",
        ),
        (
            lambda: dust(ef.KillBoxSystem(low=(0, 0, 0), high=(1, 1, 1))),
            ef.KillBoxSystem,
            "on",
            ("rust",),
            "no entity 'rust'",
        ),
        (
            lambda: dust(ef.EmissionSystem(emitters=[{"name": "tap", "into": "dust"}])),
            ef.EmissionSystem,
            "emitters",
            [{"name": "tap", "into": "dust"}, {"name": "tap", "into": "dust"}],
            "two emitters are called 'tap'",
        ),
        (
            lambda: dust(ef.EmissionSystem()),
            ef.EmissionSystem,
            "emitters",
            [{"name": "tap", "into": "nobody"}],
            "no entity 'nobody'",
        ),
        (lambda: dust(ef.CollisionSystem()), ef.CollisionSystem, "on", ("fluid",), "has no Position"),
    ],
)
def test_what_adding_refuses(world: Any, kind: Any, name: str, value: Any, sentence: str) -> None:
    made = world()
    system = made.system(kind)
    before = told(made), held(made)
    with pytest.raises(FluidError, match=sentence):
        setattr(system, name, value)
    assert (told(made), held(made)) == before
    made.step()


def test_what_adding_brings() -> None:
    """An emitter that comes later has its entity; a budget that is asked for later is kept."""
    world = dust(ef.EmissionSystem(), ef.DiagnosticsSystem(every=0))
    emission, diagnostics = world.system(ef.EmissionSystem), world.system(ef.DiagnosticsSystem)
    assert emission is not None
    assert diagnostics is not None
    emission.emitters = [{"name": "tap", "into": "dust", "rate": 60}]  # type: ignore[list-item]
    diagnostics.budget = True
    world.step(2)
    assert len(world["dust"]) == 1 + 4
    assert "EmissionSystem" in diagnostics.budgets


def test_the_fluid_is_as_systems_need_it() -> None:
    world = ef.World()
    world.set_fluid(law="ideal_gas")
    blob = (
        ef.Position([[0.0, 0.0, 0.0]]),
        ef.Strength([[0.0, 0.0, 1.0]]),
        ef.CoreRadius([0.1]),
        ef.Volume([1e-3]),
        ef.Temperature([300.0]),
    )
    world.spawn("blobs", *blob)
    world.add_systems([ef.VelocitySystem(), ef.ExpansionSystem(flow=True)])
    with pytest.raises(RecipeError, match="law = 'none' nothing expands"):
        world.set_fluid(law="none", density=2.0)
    world.set_fluid(density=2.0)
    assert world.fluid[ef.Fluid].density == 2.0


def test_a_fluid_that_one_system_refuses_leaves_no_trace_in_others() -> None:
    """Vortons would get a density of their own (BaroclinicSystem), before ExpansionSystem refuses."""
    world = ef.World()
    world.set_fluid(law="ideal_gas")
    blob = ef.Position([[0.0, 0.0, 0.0]]), ef.Strength([[0.0, 0.0, 1.0]]), ef.CoreRadius([0.1])
    world.spawn("blobs", *blob, ef.Volume([1e-3]), ef.Temperature([300.0]))
    baroclinic = ef.BaroclinicSystem()
    world.add_systems([ef.VelocitySystem(), baroclinic, ef.ExpansionSystem(flow=True)])
    before, x = (told(world), held(world)), world["blobs"][ef.Position].x
    with pytest.raises(RecipeError, match="nothing expands"):
        world.set_fluid(law="none")
    assert (told(world), held(world)) == before
    assert world["blobs"][ef.Position].x is x
    assert ef.AmbientDensity not in world["blobs"]


class Light(ef.System):
    """For light fluids alone."""

    def added(self, world: ef.World) -> None:
        if world.fluid[ef.Fluid].density > 2:
            raise RecipeError("too dense")

    def process(self, dt: float) -> None:
        pass


def test_densities_are_those_of_the_fluid_that_stays() -> None:
    """ExpansionSystem puts them right before another system refuses the fluid."""
    world = ef.World()
    world.set_fluid(law="ideal_gas")
    world.spawn(
        "gas", ef.Position([[0.0, 0.0, 0.0]]), ef.Volume([1.0]), ef.Temperature([300.0]), ef.Density([1.2])
    )
    world.add_systems([ef.ExpansionSystem(), Light()])
    before = world.state_hash()
    with pytest.raises(RecipeError, match="too dense"):
        world.set_fluid(density=3.0)
    assert world.state_hash() == before
    world.set_fluid(density=1.8)
    np.testing.assert_allclose(world["gas"][ef.Density].rho, 1.8)


def test_entities_that_come_get_what_all_systems_give(tmp_path: Path) -> None:
    """The wake that bodies shed from later on has averages, and goes on as a resumed world's."""
    world = ef.load("plate_over_flame", "system.boundary.boundary=article")
    boundary = world.system(ef.BoundarySystem)
    assert boundary is not None
    assert "wake" not in world
    boundary.boundary = "layer"
    assert SubfilterAverage in world["wake"]
    world.save(tmp_path / "world.npz")
    assert told(ef.resume(tmp_path / "world.npz")) == told(world)


def test_tables_that_come_get_what_all_systems_give(tmp_path: Path) -> None:
    """Tracers that take species bring them, so vortons get some too, which ThermalSystem mixes."""
    world = ef.load("thermal_plume")
    sampling = world.system(ef.SamplingSystem)
    assert sampling is not None
    sampling.take = ("species",)
    assert all(ef.Species in entity for entity, _ in world.entities_with(ef.Position, ef.Strength, ef.Volume))
    world.save(tmp_path / "world.npz")
    assert ef.resume(tmp_path / "world.npz").state_hash() == world.state_hash()


def test_an_average_is_that_of_the_system_that_brought_it() -> None:
    world = ef.World()
    world.spawn("blobs", ef.Position([[0.0, 0.0, 0.0]]), ef.Strength([[0.0, 0.0, 1.0]]), ef.CoreRadius([0.1]))
    subfilter = world.add_system(ef.SubfilterSystem(average=100.0))
    subfilter.average = 50.0
    found = world.system(SubfilterAverageSystem)
    assert found is not None
    assert found.average == 50.0


def test_an_observer_sets_a_value_of_another_system() -> None:
    """Also in debug mode, where it may not itself look at what the other one checks."""

    class Slower(ef.System):
        """Half the rate after each tick."""

        phase = "observe"

        def process(self, dt: float) -> None:
            found = self.world.system(ef.EmissionSystem)
            assert found is not None
            (tap,) = found.emitters
            found.emitters = [tap.model_copy(update={"rate": 0.5 * float(tap.rate)})]  # type: ignore[arg-type]

    world = ef.World(dt=1.0, debug=True)
    world.spawn("dust", ef.Position(np.zeros((0, 3))))
    world.add_systems([ef.EmissionSystem(emitters=[{"name": "tap", "into": "dust", "rate": 4}]), Slower()])  # type: ignore[list-item]
    world.step(2)
    assert len(world["dust"]) == 4 + 2


@pytest.mark.parametrize(
    ("name", "entity", "kind", "column", "value", "sentence"),
    [
        (
            "two_layers_ball",
            "ball",
            "Body",
            "mass",
            -1.0,
            "'ball': Body.mass row 0 is -1.0; values above",
        ),
        ("two_layers_ball", "ball", "BallShape", "radius", 0.0, "values above 0 m are"),
        ("two_layers_ball", "interface", "CoreRadius", "sigma", 0.0, "values above 0 m are"),
        ("two_layers_ball", "interface", "Volume", "volume", -1.0, "values above 0 m"),
        ("two_layers_ball", "fluid", "Fluid", "law", 5, "Fluid.law is 5; values of at most 2"),
        ("wind_fountain", "drops", "Age", "t", -1.0, "values of at least 0 s"),
    ],
)
def test_columns_stay_in_their_range(
    name: str, entity: str, kind: str, column: str, value: float, sentence: str, tmp_path: Path
) -> None:
    """What is assigned out of it is refused by what comes next: a tick, a look, or a checkpoint."""
    world = ef.load(name)
    world.step()
    array = getattr(world[entity][ef.Component.registry[kind]], column)
    before = array.copy()
    array[...] = value
    for what in (world.step, world.lint, lambda: world.save(tmp_path / "world.npz")):
        with pytest.raises(FluidError, match=sentence):
            what()
    array[...] = before
    world.step()


def test_what_is_integrated_may_overshoot(tmp_path: Path) -> None:
    world = ef.World()
    dust = ef.Position([[0.0, 0.0, 0.0]]), ef.Species(fuel=[0.5], flame=[0.0], smoke=[0.0])
    world.spawn("gas", *dust)
    world["gas"][ef.Species].flame[:] = -1e-9
    world.step()
    world.save(tmp_path / "world.npz")
    assert ef.resume(tmp_path / "world.npz").state_hash() == world.state_hash()
