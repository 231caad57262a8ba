"""The world: entities, queries, several worlds side by side, and what it refuses."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import esper
import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import ComponentError, FluidError, RecipeError
from ecs_fluid.system import System
from ecs_fluid.validation_errors import shown
from ecs_fluid.worlds.world_recipe import read


class Orbit(System):
    """dx/dt = spin z cross x, with a query of the world while esper is switched to it."""

    reads = (ef.Position,)
    adds = (ef.Velocity,)
    phase = "rates"

    spin: float = 1.0

    def process(self, dt: float) -> None:
        for position, velocity in self.query(ef.Position, ef.Velocity):
            velocity.u[:, 0] -= self.spin * position.x[:, 1]
            velocity.u[:, 1] += self.spin * position.x[:, 0]


def points(count: int, start: float = 0.0) -> ef.Position:
    return ef.Position(np.arange(start, start + 3 * count).reshape(count, 3))


def orbiting(seed: int) -> ef.World:
    world = ef.World(dt=0.01, seed=seed, integrator="rk3", debug=True)
    draw = np.random.default_rng(seed)
    world.spawn("a", ef.Position(draw.standard_normal((50, 3))), ef.Age)
    world.add_system(Orbit(spin=1.0 + seed))
    world.add_system(ef.AdvectionSystem())
    source = {"name": "source", "into": "a", "rate": 300.0, "spread": (1.0, 1.0, 1.0)}
    world.add_system(ef.EmissionSystem(emitters=[source]))
    world.add_system(ef.AgeLimitSystem(seconds=0.05, on=("a",)))
    return world


# ------------------------------------------------------------------ entities


@pytest.mark.parametrize("name", ["", "1a", "a b", "é", "-a", "a/b", "_a", None, 5])
def test_bad_names(name: object) -> None:
    with pytest.raises(ComponentError, match="letters, digits, '-' and '_' are allowed"):
        ef.World().spawn(name)  # type: ignore[arg-type]


def test_taken_names() -> None:
    world = ef.World()
    world.spawn("a-1_B", points(1))
    for name in ("a-1_B", "fluid"):
        with pytest.raises(ComponentError, match=f"the world already has an entity '{name}'"):
            world.spawn(name, points(1))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("A-1_b", "differs from 'a-1_B' in small and capital letters alone"),
        ("Fluid", "differs from 'fluid' in small"),
        ("con", "is a device on Windows"),
        ("Lpt9", "is a device on Windows"),
    ],
)
def test_names_that_files_cannot_have_everywhere(name: str, why: str) -> None:
    """Devices: learn.microsoft.com/windows/win32/fileio/naming-a-file."""
    world = ef.World()
    world.spawn("a-1_B", points(1))
    with pytest.raises(ComponentError, match=f"entity name '{name}' {why}"):
        world.spawn(name, points(1))
    world.spawn("console", points(1))


def test_unknown_names_come_with_the_nearest() -> None:
    world = ef.World()
    world.spawn("smoke", points(1))
    with pytest.raises(FluidError, match=r"the world has no entity 'smok'; did you mean 'smoke'?"):
        world["smok"]
    with pytest.raises(ComponentError, match="entity 'smoke' has no Age; it has Position, RowId"):
        world["smoke"][ef.Age]


def test_spawn_refuses_what_cannot_stand_side_by_side() -> None:
    world = ef.World()
    for components, words in (
        ((points(2), points(2)), "Position was given twice"),
        ((points(2), ef.Position), "Position was given twice"),
        ((points(2), ef.Velocity(np.zeros((2, 3)))), "Velocity is derived; systems fill it"),
        ((points(2), "x"), "'x' is not a component"),
        ((points(2), int), "<class 'int'> is not a component"),
        ((points(2), ef.CoreRadius), "CoreRadius.sigma has no default; pass a CoreRadius with values"),
        ((points(2), ef.RowId([5, 6])), "the world assigns RowId, so leave it out"),
    ):
        with pytest.raises(ComponentError, match=f"entity 'a': {words}"):
            world.spawn("a", *components)  # type: ignore[arg-type]
    assert "a" not in world
    # What was refused has used up no row ids.
    np.testing.assert_array_equal(world.spawn("a", points(2))[ef.RowId].id, [0, 1])


def test_classes_stand_for_empty_tables() -> None:
    world = ef.World()
    entity = world.spawn("empty", ef.Position, ef.CoreRadius, ef.Age)
    assert len(entity) == 0
    entity.spawn(points(3), ef.CoreRadius(np.ones(3)))
    np.testing.assert_array_equal(entity[ef.Age].t, np.zeros(3))
    np.testing.assert_array_equal(entity[ef.RowId].id, [0, 1, 2])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dt": 0}, "World: dt = 0; a number above 0.0 is needed"),
        ({"dt": np.float64(1e35)}, r"World: dt = .*1e\+35.*: a magnitude of at most 1e\+30 is needed"),
        ({"dt": np.bool_(True)}, "World: dt = .*True.*: a number is needed, written in digits"),
        ({"dt": float("inf")}, "World: dt = inf; a finite number is needed"),
        (
            {"dt": "1/0"},
            "World: dt = '1/0': a number, or a quotient of two positive numbers such as \"1/60\"",
        ),
        ({"dt": "inf/60"}, "World: dt = 'inf/60': a number, or a quotient"),
        ({"dt": "60"}, "World: dt = '60': a number, or a quotient"),
        ({"integrator": "rk5"}, "World: integrator = 'rk5'; allowed: 'euler', 'rk2', 'rk3' or 'rk4'"),
        ({"precision": "half"}, "World: precision = 'half'; allowed: 'single' or 'double'"),
        ({"seed": -1}, "World: seed = -1; a number at least 0 is needed"),
        ({"sed": 1}, "World: unknown key 'sed'; did you mean 'seed'?"),
    ],
)
def test_options(options: dict[str, object], words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        ef.World(**options)


def test_the_clock_is_fixed() -> None:
    world = ef.World(dt=0.25)
    with pytest.raises(FluidError, match=r"dt of a world cannot be set; give it to World\(...\), or in"):
        world.dt = 0.5  # type: ignore[misc]
    world.step(10)
    assert (world.tick, world.time) == (10, 2.5)


def test_what_a_world_or_a_table_does_not_have_cannot_be_set() -> None:
    """A misspelt name was a new attribute that nothing reads, and of a table one more column."""
    world = ef.load("vortex_ring")
    with pytest.raises(FluidError, match="a world has no attribute 'fluidd'; did you mean 'fluid'"):
        world.fluidd = 1  # type: ignore[attr-defined]
    with pytest.raises(FluidError, match="fluid of a world cannot be set; use set_fluid"):
        world.fluid = world["ring"]
    for name in (
        "history",
        "recipe",
        "options",
        "processes",
        "dtype",
        "periods",
        "systems",
        "time",
        "gravity",
    ):
        with pytest.raises(FluidError, match=f"{name} of a world cannot be set; [a-zA-Z]"):
            setattr(world, name, getattr(world, name))
    with pytest.raises(FluidError, match="step of a world cannot be set; it is read-only"):
        world.step = 1  # type: ignore[assignment, method-assign]
    with pytest.raises(FluidError, match="tick = -1; a whole number of at least 0 is needed"):
        world.tick = -1
    with pytest.raises(ComponentError, match="Position has no column 'y'; it has x"):
        world["ring"][ef.Position].y = np.zeros(3)  # type: ignore[attr-defined]
    with pytest.raises(FluidError, match="entity 'ring' has no attribute 'x'; set columns of its tables"):
        world["ring"].x = np.zeros(3)  # type: ignore[attr-defined]
    velocity, recipe = world.require(ef.VelocitySystem), read("vortex_ring")
    for thing, name, said in (
        (velocity, "toleranse", "VelocitySystem has no attribute 'toleranse'; did you mean 'tolerance'?"),
        (recipe.entity[0], "radios", "VortexRing has no 'radios'; did you mean 'radius'?"),
        (recipe.entity[0], "radius", "VortexRing.radius cannot be changed; give it when the VortexRing is"),
        (recipe, "entitys", "WorldRecipe has no 'entitys'; did you mean 'entity'?"),
        (world.options, "dt", "WorldOptions.dt cannot be changed"),
        (velocity.parameters, "tolerance", "VelocitySystemParameters.tolerance cannot be changed"),
    ):
        with pytest.raises(RecipeError, match=said.replace("?", "[?]")):
            setattr(thing, name, 1e-3)
    world.step()


@pytest.mark.parametrize("ticks", [-1, 1.0, "2", None, True])
def test_step_counts_whole_ticks(ticks: object) -> None:
    world = ef.World()
    with pytest.raises(FluidError, match="a whole number of at least 0 is needed"):
        world.step(ticks)  # type: ignore[arg-type]
    assert world.tick == 0


def test_step_of_no_and_of_numpy_ticks() -> None:
    world = ef.World()
    world.step(0)
    world.step(np.int64(3))  # type: ignore[arg-type]
    assert world.tick == 3


def test_attach() -> None:
    world = ef.World()
    entity = world.spawn("a", points(3))
    world.attach("a", ef.Age)
    world.attach("a", ef.CoreRadius(np.full(3, 0.5)))
    assert entity[ef.Age].t.shape == (3,)
    assert entity[ef.CoreRadius].sigma.dtype == np.float32
    for component, words in (
        (ef.Age, "already has a Age"),
        (ef.Strength, "Strength.alpha has no default"),
        (ef.Density(np.ones(2)), "Density has 2 rows, but RowId has 3"),
        (ef.Velocity, "Velocity is derived"),
    ):
        with pytest.raises(ComponentError, match=words):
            world.attach("a", component)


def test_an_emitter_may_become_a_population() -> None:
    world = ef.World()
    entity = world.spawn("a", ef.Emission)
    world.attach("a", points(2))
    np.testing.assert_array_equal(entity[ef.RowId].id, [0, 1])
    entity.spawn(points(1))
    np.testing.assert_array_equal(entity[ef.RowId].id, [0, 1, 2])


# ------------------------------------------------------------------ queries


def test_queries_come_in_the_order_of_creation_after_churn() -> None:
    """esper iterates sets of numbers, whose order is not ascending; the world sorts by creation."""
    world = ef.World()
    for k in range(40):
        world.spawn(f"e{k}", points(1, k), *((ef.Age,) if k % 3 == 0 else ()))
    for k in range(39, -1, -1):
        if k % 3:
            world.attach(f"e{k}", ef.Species)
            world.attach(f"e{k}", ef.Age)
    found = [table.x[0, 0] for table, _ in world.query(ef.Position, ef.Age)]
    assert found == list(range(40))
    names = [entity.name for entity, _ in world.entities_with(ef.Species, ef.Position)]
    assert names == [f"e{k}" for k in range(40) if k % 3]


def test_a_query_asks_for_all_types() -> None:
    world = ef.World()
    world.spawn("a", points(1))
    world.spawn("b", points(1), ef.Age)
    assert [len(found) for found in world.query(ef.Position, ef.Age)] == [2]
    assert list(world.query(ef.Position, ef.Strength)) == []


def test_len_in_names_and_repr() -> None:
    world = ef.World()
    entity = world.spawn("a", points(4))
    assert len(entity) == 4
    assert "a" in world and "b" not in world
    assert ef.Position in entity and ef.Age not in entity
    assert repr(entity) == "Entity('a', rows=4, Position, RowId)"
    assert repr(world) == "World(tick=0, time=0 s, a: 4)"


def test_a_snapshot_is_read_only_and_does_not_follow_the_world() -> None:
    world = orbiting(0)
    snapshot = world.snapshot()
    before = snapshot["a"]["Position.x"].copy()
    world.step(3)
    np.testing.assert_array_equal(snapshot["a"]["Position.x"], before)
    assert (snapshot.tick, snapshot.time) == (0, 0.0)
    with pytest.raises(ValueError, match="read-only"):
        snapshot["a"]["Position.x"][0] = 1.0
    assert "source" not in snapshot  # it has no rows


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps])
def test_worlds_are_not_copied_behind_espers_back(copying: Callable[[object], object]) -> None:
    """A copy would share its tables with the original."""
    with pytest.raises(FluidError, match=r"a world cannot be copied or pickled; use world.save"):
        copying(orbiting(1))


def test_names_of_a_world_are_gone_through_and_completed() -> None:
    """Notebooks ask `_ipython_key_completions_` for what may stand in brackets."""
    world = orbiting(1)
    snapshot = world.snapshot()
    assert list(world) == ["fluid", "a", "source"] == world._ipython_key_completions_()
    assert snapshot._ipython_key_completions_() == ["a"]
    assert repr(snapshot).startswith("Snapshot(tick=0, time=0 s, a: ")
    assert snapshot == snapshot and snapshot != world.snapshot()
    assert ["a"] not in world and ["a"] not in snapshot


def test_systems_are_pickled_and_entities_are_not() -> None:
    wind = ef.WindSystem(velocity=(0.0, 0.0, 1.0))
    assert pickle.loads(pickle.dumps(wind)).parameters == wind.parameters
    with pytest.raises(FluidError, match=r"an entity cannot be copied or pickled; take world\.snapshot"):
        pickle.dumps(orbiting(1)["a"])


@pytest.mark.parametrize("kind", ["wind", None])
def test_a_system_is_asked_for_by_its_class(kind: Any) -> None:
    with pytest.raises(FluidError, match=f"system: {kind!r} is not a system class"):
        orbiting(1).system(kind)


NO_PATHS = [None, 5, {}, b"x", "", "a\0b", np.zeros(3)]


@pytest.mark.parametrize("given", NO_PATHS, ids=repr)
def test_what_is_no_path_is_refused_wherever_one_is_needed(given: Any) -> None:
    world = orbiting(1)
    asked: list[Callable[[], object]] = [
        lambda: ef.open_run(given),
        lambda: ef.resume(given),
        lambda: world.save(given),
        lambda: ef.export(given, "npz"),
        lambda: ef.page(given),
    ]
    if not isinstance(given, dict):  # the tables of a world
        asked += [lambda: ef.load(given), lambda: ef.run(given)]
        asked.append(lambda: ef.sweep(given, {"ring.core": [0.1]}, workers=0))
    if given is not None:  # the default
        asked.append(lambda: ef.Study("vortex_ring", out=given, workers=0))
    for ask in asked:
        with pytest.raises(FluidError, match=re.escape(f"= {shown(given)}; a path is needed")):
            ask()


def test_wrong_kinds_of_keys_and_points() -> None:
    world = orbiting(1)
    for name in ({}, [], np.zeros(3)):
        with pytest.raises(FluidError, match="the world has no entity"):
            world[name]  # type: ignore[index]
    with pytest.raises(FluidError, match=r"write 'a' in place of Entity\('a'"):
        world.attach(world["a"], ef.Age)  # type: ignore[arg-type]
    for kind in (5, "Position", ef.World):
        with pytest.raises(
            ComponentError, match=r"is not a component class; pass a class such as ef\.Position"
        ):
            list(world.query(kind))  # type: ignore[call-overload]
    with pytest.raises(ComponentError, match="up to 100 letters"):
        world.spawn("a" * 101, ef.Position)
    with pytest.raises(FluidError, match=r"step: ticks = array.*; a whole number of at least 0 is needed"):
        world.step(np.zeros(3))  # type: ignore[arg-type]
    with pytest.raises(FluidError, match="solver = '5' is not known"):
        ef.load("vortex_ring").velocity([[0.0, 0.0, 0.0]], solver=5)  # type: ignore[arg-type]
    with pytest.raises(FluidError, match="setting 5: path=value is needed"):
        ef.load("vortex_ring", 5)  # type: ignore[arg-type]
    with pytest.raises(FluidError, match="the world has no entity 3; known: a, fluid, source"):
        world[3]  # type: ignore[index]
    with pytest.raises(ComponentError, match="'Position' is not a component class; pass a class such as"):
        world["a"]["Position"]  # type: ignore[index]
    for points, words in (
        ("abc", "points holds .'abc'. of dtype <U3; float32"),
        ([0.0, 0.0, 0.0], r"points has shape \(3,\); shape \(n, 3\) is needed"),
        ([[0.0, np.nan, 0.0]], "points row 0 is nan; finite numbers are allowed"),
        ([[0.0, 0.0, 0.0]], "the world has no VelocitySystem; add one with world.add_system"),
    ):
        with pytest.raises(FluidError, match=words):
            world.velocity(points)


def test_rows_spawned_by_another_thread_come_between_two_ticks() -> None:
    """The calls of one thread wait for the tick of another, so none is lost or lands inside it."""
    world = orbiting(1)
    world.spawn("b", ef.Position)

    def spawn() -> None:
        for k in range(200):
            world["b"].spawn(points(1, k))

    thread = threading.Thread(target=spawn)
    thread.start()
    while thread.is_alive():
        world.step()
    thread.join()
    # The heights, which Orbit leaves alone: row k was spawned at z = k + 2.
    np.testing.assert_array_equal(world["b"][ef.Position].x[:, 2], np.arange(200) + 2)


# ------------------------------------------------------------------ several worlds


def test_worlds_side_by_side_do_not_see_each_other() -> None:
    first, second = orbiting(1), orbiting(2)
    alone = orbiting(1)
    for _ in range(8):
        first.step()
        second.step()
    alone.step(8)
    assert first.state_hash() == alone.state_hash() != second.state_hash()


def test_six_threads_equal_serial_bit_for_bit() -> None:
    seeds = range(6)
    serial = []
    for seed in seeds:
        world = orbiting(seed)
        world.step(20)
        serial.append(world.state_hash())
    worlds = [orbiting(seed) for seed in seeds]
    start = threading.Barrier(len(worlds))

    def run(world: ef.World) -> None:
        start.wait()
        for _ in range(20):
            world.step()

    threads = [threading.Thread(target=run, args=(world,)) for world in worlds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [world.state_hash() for world in worlds] == serial
    assert len(set(serial)) == 6


def test_esper_is_left_in_the_users_own_world() -> None:
    former = esper.current_world
    esper.switch_world("mine")
    try:
        mine = esper.create_entity(points(1))
        world = orbiting(3)
        world.step(2)
        list(world.query(ef.Position))
        broken = world.add_system(type("Break", (System,), {})())
        with pytest.raises(FluidError):
            world.step()
        assert esper.current_world == "mine"
        assert [number for number, _ in esper.get_component(ef.Position)] == [mine]
        assert broken.world is world
    finally:
        esper.switch_world(former)
        esper.delete_world("mine")


def test_a_system_may_step_another_world() -> None:
    inner = orbiting(4)

    class Nested(System):
        phase = "observe"

        def process(self, dt: float) -> None:
            inner.step()

    outer = orbiting(5)
    outer.add_system(Nested())
    outer.step(4)
    alone, outside = orbiting(4), orbiting(5)
    alone.step(4)
    outside.step(4)
    assert inner.state_hash() == alone.state_hash()
    assert outer.state_hash() == outside.state_hash()


def test_a_world_leaves_nothing_behind() -> None:
    gc.collect()
    contexts = set(esper.list_worlds())
    worlds = [orbiting(seed) for seed in range(3)]
    for world in worlds:
        world.step(2)
        world.snapshot()
    watch = [weakref.ref(world) for world in worlds]
    columns = [weakref.ref(world["a"][ef.Position]) for world in worlds]
    assert len(set(esper.list_worlds()) - contexts) == 3
    del world, worlds
    gc.collect()
    assert [reference() for reference in (*watch, *columns)] == [None] * 6
    assert set(esper.list_worlds()) == contexts


def test_a_world_may_end_in_a_thread_that_the_holder_of_the_lock_waits_for() -> None:
    """Garbage is collected in any thread: one that waited for the lock then stopped a tick for ever."""
    contexts, other = set(esper.list_worlds()), orbiting(2)
    gone = [orbiting(1)]
    thread = threading.Thread(target=gone.clear, daemon=True)
    with other._active():
        thread.start()
        thread.join(10.0)
        assert not gone and not thread.is_alive()
    with other._active():
        assert len(set(esper.list_worlds()) - contexts) == 1


def test_a_handle_keeps_its_world_but_a_system_and_the_world_itself_do_not() -> None:
    world = orbiting(1)
    entity, own, system = world["a"], world.fluid, world.systems[0]
    rows = len(entity)
    del world
    gc.collect()
    assert len(entity) == rows
    assert system.world is entity.world
    del entity
    gc.collect()
    with pytest.raises(FluidError, match="the world of entity 'fluid' no longer exists"):
        len(own)
    with pytest.raises(FluidError, match="Orbit belongs to no world yet"):
        system.process(0.1)


@pytest.mark.parametrize("phase", ["rates", "observe"])
@pytest.mark.parametrize("what", ["step", "evaluate", "save", "set_fluid"])
def test_a_tick_within_a_tick_is_refused(what: str, phase: str, tmp_path: object) -> None:
    class Recursive(System):
        def process(self, dt: float) -> None:
            if what == "save":
                self.world.save(f"{tmp_path}/ck.npz")
            else:
                getattr(self.world, what)()

    Recursive.phase = phase
    world = orbiting(1)
    world.add_system(Recursive())
    with pytest.raises(FluidError, match=f"{what} is refused during a tick of the same world; do it"):
        world.step()


def test_warning_points_at_the_line_that_stepped() -> None:
    """One blob of a core far below its spacing is coarse: the warning names this file, not the package."""
    world = ef.World(dt=0.1)
    x = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    world.spawn(
        "pair",
        ef.Position(x),
        ef.Strength(np.ones((2, 3))),
        ef.CoreRadius([0.01, 0.01]),
        ef.Volume([1.0, 1.0]),
    )
    world.add_system(ef.VelocitySystem())
    with pytest.warns(ef.FluidWarning) as caught:
        world.step()
    assert {Path(warning.filename) for warning in caught} == {Path(__file__)}


def test_each_world_tells(tmp_path: Path) -> None:
    """In one line of one program, where Python by itself tells what is said again only once."""
    program = tmp_path / "worlds.py"
    program.write_text(
        "import ecs_fluid as ef\n"
        "for _ in range(3):\n"
        "    world = ef.World()\n"
        "    world.add_system(ef.AgeLimitSystem(seconds=0.001))\n"
        "    world.step()\n"
    )
    said = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert said.stderr.count("is less than half a tick") == 3
    quiet = [sys.executable, "-W", "ignore", program]
    assert not subprocess.run(quiet, capture_output=True, text=True, check=True).stderr
