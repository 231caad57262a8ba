"""Columns set by hand are refused, or the world is saved, resumes, and goes on with the same bits.

The oracle is the world itself: what a checkpoint of it, resumed, is and becomes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.components import bodies
from ecs_fluid.errors import ComponentError, DivergedError, FluidError, RecipeError
from tests.resuming import resumed

KEPT = 20
"""Rows of each population that are left, so that ticks take milliseconds."""

WORLDS = ("wind_fountain", "dam_break")
FURTHER = (
    "falling_plate",
    "candle",
    "splash",
    "ball_in_tube",
    "fireball",
    "flow_past_sphere",
    "fire_and_balloon",
)
"""Between them they have nearly all components; the first two by day, since each takes 5 to 50 s."""


def small(name: str) -> ef.World:
    world = ef.load(name)
    for entity in world.entities:
        if len(entity) > KEPT and ef.Pose not in entity:
            entity.kill(np.arange(len(entity)) >= KEPT)
    return world


def odd_values(array: Any, every: bool) -> Iterator[Callable[[Any], None]]:
    """What is done to a column: all or the first number of it is another, its sign or its order."""
    one, other = (2**63 - 1, -1) if array.dtype.kind == "i" else (3.0, -1.0)
    yield lambda column: column.fill(one)
    yield lambda column: column.reshape(-1).__setitem__(0, other)
    more = (0, 1, 2, 10**6, -(2**63)) if array.dtype.kind == "i" else (np.nan, 0.0, np.inf, 1e-3, 0.7, 1e30)
    for value in (one, other, *more) if every else ():
        yield lambda column, value=value: column.fill(value)
        yield lambda column, value=value: column.reshape(-1).__setitem__(0, value)
    yield lambda column: np.copyto(column, column[::-1].copy()) if column.ndim else None
    yield lambda column: np.negative(column, out=column)


def ends_of(world: ef.World, ticks: int) -> str:
    """The hash some ticks later, or why they cannot be computed."""
    try:
        world.step(ticks)
        return world.state_hash()
    except FluidError as error:
        return str(error)


def columns_of(world: ef.World) -> Iterator[tuple[str, type[ef.Component], str]]:
    for entity in world.entities:
        for kind, table in entity.tables.items():
            for name in kind.columns:
                if not kind.derived and kind.__name__ != "RowId" and getattr(table, name).size:
                    yield entity.name, kind, name


def tried(name: str, place: Path, every: bool) -> tuple[int, int]:
    """How many changes by hand were refused, and how many were taken."""
    start, file, counts = place / "start.npz", place / "live.npz", [0, 0]
    world = small(name)
    world.step(2)
    world.save(start)
    live = ef.resume(start)
    for entity, kind, column in columns_of(world):
        for change in odd_values(getattr(world[entity][kind], column), every):
            array = getattr(live[entity][kind], column)
            before = array.copy()
            change(array)
            if np.array_equal(before, array):
                array[...] = before  # 0, where it is -0 now
                continue
            told = f"{entity} {kind.__name__}.{column} = {array.reshape(-1)[:3]}"
            try:
                live.save(file)
            except FluidError as refused:
                assert not re.search(r"\n|Traceback", str(refused)), told
                try:
                    live.step()
                except FluidError:
                    getattr(live[entity][kind], column)[...] = before  # a step may have taken other arrays
                    assert live.state_hash() == world.state_hash(), told
                else:  # the tick replaces such a value, or removes what is too old
                    live.save(file)
                    live = ef.resume(start)
                counts[0] += 1
                continue
            resumed = ef.resume(file)
            assert resumed.state_hash() == live.state_hash(), told
            ticks = 2 if every else 1
            assert ends_of(resumed, ticks) == ends_of(live, ticks), told
            counts[1] += 1
            live = ef.resume(start)
    return counts[0], counts[1]


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", WORLDS)
def test_what_is_set_is_refused_or_resumed(name: str, tmp_path: Path) -> None:
    refused, taken = tried(name, tmp_path, every=False)
    assert refused > 10
    assert taken > 20


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", WORLDS + FURTHER)
def test_all_of_what_is_set_is_refused_or_resumed(name: str, tmp_path: Path) -> None:
    refused, taken = tried(name, tmp_path, every=True)
    assert refused > 50
    assert taken > 50


TURN = [[1.0, 0.0, 0.0, 0.0]]
INERTIA = np.diag([1.0, 2.0, 2.5])[None]


@pytest.mark.parametrize(
    ("entity", "kind", "column", "change", "sentence"),
    [
        ("plate", "Pose", "q", lambda q: q.fill(0.0), "Pose.q row 0 has length 0; a unit quaternion"),
        ("plate", "Pose", "q", lambda q: q.fill(1.0), "Pose.q row 0 has length 2;"),
        ("plate", "Pose", "q", lambda q: q.fill(np.nan), "Pose.q row 0 (was not finite|is nan)"),
        ("plate", "Body", "inertia", lambda i: i.fill(0.0), "principal moments 0, 0, 0 kg m"),
        ("plate", "Body", "inertia", lambda i: np.negative(i, out=i), "each must be above 0"),
        (
            "plate",
            "Body",
            "inertia",
            lambda i: np.copyto(i, np.diag([1.0, 1.0, 3.0])),
            r"principal moments 1, 1, 3 .* at most the sum of the other two",
        ),
        (
            "plate",
            "Body",
            "inertia",
            lambda i: i.__setitem__((0, 0, 1), 0.5),
            r"0.5 at \[0, 1\] and .* at \[1, 0\]; a symm",
        ),
        (
            "plate",
            "HullShape",
            "hull",
            lambda h: h.fill(1),
            "HullShape.hull row 0 is 1, but its HullTable holds 1",
        ),
        ("plate", "HullShape", "container", lambda c: c.fill(1), "layer' is for solids, but 'plate' is"),
        ("plate", "HullTable", "planes", lambda p: np.negative(p, out=p), "outward unit normal"),
        (
            "plate",
            "HullTable",
            "loops",
            lambda v: v.fill(8),
            "loops of polytope 0 refers to vertex 8; .* 0 to 7",
        ),
        ("plate", "HullTable", "edges", lambda v: v.fill(-1), "edges of polytope 0 refers to vertex -1;"),
        ("plate", "HullTable", "plane_start", lambda s: s.fill(0), "2 numbers that rise from 0 to 6 are"),
    ],
)
def test_what_bodies_cannot_be(
    entity: str, kind: str, column: str, change: Callable[[Any], None], sentence: str
) -> None:
    """Refused by the next tick, and by a look; put back, all goes on."""
    world = ef.load("falling_plate")
    table = world[entity][ef.Component.registry[kind]]
    before = getattr(table, column).copy()
    change(getattr(table, column))
    for what in (world.step, world.lint):
        with pytest.raises(FluidError, match=sentence):
            what()
    getattr(table, column)[...] = before
    world.step()


def test_what_is_given_is_refused_alike() -> None:
    """By the same code: where an entity is made, gets a table, or rows."""
    world = ef.World()
    body = ef.RigidMotion(np.zeros((1, 3))), ef.Body([1.0], INERTIA), ef.BallShape([1.0])
    with pytest.raises(ComponentError, match=r"entity 'ball': Pose.q row 0 has length 2"):
        world.spawn("ball", ef.Pose(np.zeros((1, 3)), 2 * np.array(TURN)), *body)
    ball = world.spawn("ball", ef.Pose(np.zeros((1, 3)), TURN), *body)
    with pytest.raises(
        ComponentError, match=r"entity 'ball': Body.inertia row 0 has the principal moments 1,"
    ):
        ball.spawn(
            ef.Pose(np.ones((1, 3)), TURN), body[0], ef.Body([1.0], 4 * INERTIA - 3 * np.eye(3)), body[2]
        )
    with pytest.raises(ComponentError, match=r"AddedMass.coefficient row 0 has a principal value of -1;"):
        world.attach("ball", bodies.AddedMass([-np.eye(3)]))
    assert (len(ball), bodies.AddedMass in ball) == (1, False)
    with pytest.raises(ComponentError, match=r"fuel \+ flame \+ smoke of row 1 is 1.5; at most 1"):
        world.spawn(
            "gas", ef.Position(np.zeros((2, 3))), ef.Species(fuel=[0.5, 0.9], flame=[0, 0.6], smoke=[0, 0])
        )


def test_species_that_overshoot_resume(tmp_path: Path) -> None:
    """Exchange may take them out of their range, so their sum too; a resumed world has them as they are."""
    world = ef.load("candle")
    world.step(3)
    world["fire"][ef.Species].fuel[:] = 0.7
    world["fire"][ef.Species].smoke[:] = 0.7
    resumed(world, tmp_path)


def test_a_scripted_body_stays_one() -> None:
    world = ef.World()
    script = ef.BodyScript(name="ball", center={"keys": [[0, [0, 0, 0]], [1, [1, 0, 0]]]})
    body = ef.RigidMotion(np.zeros((1, 3))), ef.Body([1.0], INERTIA, [1]), ef.BallShape([1.0])
    world.spawn("ball", ef.Pose(np.zeros((1, 3)), TURN), *body)
    world.add_system(ef.BodySystem(scripts=[script]))
    world.step()
    world["ball"][ef.Body].motion[:] = 2
    with pytest.raises(ComponentError, match="'ball', but only a body with motion = 'scripted'"):
        world.step()


def test_what_no_system_can_calculate_is_a_sentence() -> None:
    world = ef.load("falling_plate")
    world.step()
    world.fluid[bodies.ShedMotion].added[:] = 1e30
    before = world.state_hash()
    with pytest.raises(DivergedError, match=r"tick 2 .* BodySystem could not compute .*Singular matrix"):
        world.step(2)
    assert world.state_hash() == before


def vortons() -> tuple[ef.Component, ...]:
    one = ef.Position([[0.0, 0.0, 0.5]]), ef.Strength([[0.0, 0.0, 1e-3]]), ef.CoreRadius([0.1])
    return (*one, ef.Volume([1e-3]))


def test_entities_that_come_later_resume_as_they_are(tmp_path: Path) -> None:
    """ThermalSystem gives vortons temperatures when it joins, so when it joins the resumed world, too."""
    world = ef.World(dt=1e-3)
    world.set_fluid(conductivity=0.026)
    world.spawn("first", *vortons())
    world.add_systems([ef.VelocitySystem(), ef.ThermalSystem(), ef.AdvectionSystem()])
    world.step(2)
    world.spawn("late", *vortons())
    again = resumed(world, tmp_path, 2)
    assert ef.Temperature in again["first"]
    assert ef.Temperature not in again["late"]


def test_a_system_that_comes_after_a_resume_finds_the_same(tmp_path: Path) -> None:
    """BaroclinicSystem gave vortons the ambient's density, which goes where they get a temperature."""
    world = ef.World(dt=1e-3)
    world.set_fluid(law="ideal_gas", conductivity=0.026)
    world.spawn("blobs", *vortons())
    world.add_systems([ef.VelocitySystem(), ef.BaroclinicSystem()])
    again = resumed(world, tmp_path)
    assert ef.Density in again["blobs"]
    for one in (world, again):
        one.add_system(ef.ThermalSystem())
        one.step()
        assert ef.Density not in one["blobs"]
    assert again.state_hash() == world.state_hash()


class Keen(ef.System):
    """Changes what it finds each time it joins."""

    def added(self, world: ef.World) -> None:
        if "dust" in world:
            world["dust"][ef.Position].x[...] += 1.0
            if ef.Age not in world["dust"]:
                world.attach("dust", ef.Age)

    def process(self, dt: float) -> None:
        pass


def test_what_systems_do_when_they_join_does_not_change_a_resumed_world(tmp_path: Path) -> None:
    world = ef.World()
    world.add_system(Keen())
    world.spawn("dust", ef.Position([[0.0, 0.0, 0.0]]))
    assert ef.Age not in resumed(world, tmp_path)["dust"]


class Hungry(ef.System):
    """Makes an entity, and is refused then."""

    into: str = "plate"
    """entity that it makes"""

    def spawns(self, world: ef.World) -> None:
        world.spawn(self.into, ef.Position(np.zeros((1, 3))))

    def added(self, world: ef.World) -> None:
        world.require(ef.InertiaSystem)
        world["nobody"]

    def process(self, dt: float) -> None:
        pass


def test_a_refused_system_leaves_nothing() -> None:
    world = ef.World()
    world.spawn("dust", ef.Position(np.zeros((1, 3))))
    before, system = world.state_hash(), Hungry()
    for _ in range(2):
        with pytest.raises(FluidError, match="no entity 'nobody'"):
            world.add_system(system)
        assert [*world] == ["fluid", "dust"]
        assert world.systems == []
        assert world.state_hash() == before
    world.spawn("nobody", ef.Position(np.zeros((1, 3))))
    assert world.add_system(system).world is world
    assert "plate" in world


def test_a_system_that_makes_an_entity_each_time_is_named() -> None:
    world = ef.World()
    world.spawn("nobody", ef.Position(np.zeros((1, 3))))
    system = world.add_system(Hungry())
    world.add_system(ef.KillBoxSystem(low=(0, 0, 0), high=(1, 1, 1)))
    sentence = (
        "entity 'plate'; Hungry makes it each time it joins a world, .* let it check first: if 'plate' "
        "not in world"
    )
    with pytest.raises(ComponentError, match=sentence):
        world.set_fluid(density=2.0)
    assert system.into == "plate"


def test_parameters_that_belong_together_are_set_at_once() -> None:
    world = ef.World()
    gas = ef.Position(np.zeros((3, 3))), ef.Species(fuel=[0.1, 0.5, 0.9], flame=[0.0] * 3, smoke=[0.0] * 3)
    world.spawn("gas", *gas)
    limit = world.add_system(ef.SpeciesLimitSystem(species=("fuel",), below=0.05))
    with pytest.raises(RecipeError, match=r"exactly one of below and above is needed; .*put"):
        limit.above = 0.6
    assert (limit.below, limit.above) == (0.05, None)
    with pytest.raises(RecipeError, match="SpeciesLimitSystem: unknown key 'abov'"):
        limit.put(below=None, abov=0.6)
    with pytest.raises(RecipeError, match="exactly one of"):
        limit.put(below=None, above=None)
    assert (limit.below, limit.above) == (0.05, None)
    limit.put(below=None, above=0.6)
    world.step()
    assert len(world["gas"]) == 2
