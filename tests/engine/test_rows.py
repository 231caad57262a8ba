"""Rows that come and go: the queue of a tick, row ids, and columns that stay in step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import ecs_fluid as ef
from ecs_fluid.component import Array, Component, RowId, column
from ecs_fluid.errors import ComponentError, DivergedError, FluidError
from ecs_fluid.system import System


class Echo(Component, derived=True, given=(ef.Position,)):
    """The first coordinate of the particle, written in the middle of each tick."""

    e: Array = column("m")


class EchoSystem(System):
    """Fills Echo."""

    reads = (ef.Position,)
    writes = (Echo,)

    def process(self, dt: float) -> None:
        for position, echo in self.query(ef.Position, Echo):
            echo.e[:] = position.x[:, 0]


class Scripted(System):
    """Does what the test says, in the phase that its subclass names."""

    reads = (ef.Position,)
    phase = "spawn"

    def __init__(self, *actions: Callable[[ef.World], None]) -> None:
        super().__init__()
        self.actions = list(actions)

    def process(self, dt: float) -> None:
        for action in self.actions:
            action(self.world)


class ScriptedWriter(Scripted):
    """The same, and it may write positions."""

    writes = (ef.Position,)


class ScriptedLater(Scripted):
    """The same at the end of the phase move."""

    phase = "move"
    after = ("*",)


class ScriptedObserver(Scripted):
    """The same after the tick, with a look at everything."""

    may_read = (Component,)
    phase = "observe"


def rows(*payloads: float) -> ef.Position:
    """Particles that carry a number in every coordinate."""
    return ef.Position(np.repeat(np.array(payloads, float), 3).reshape(-1, 3))


def payloads(world: ef.World, name: str) -> list[float]:
    x = world[name][ef.Position].x
    np.testing.assert_array_equal(x, x[:, :1].repeat(3, axis=1))
    return x[:, 0].tolist()


def world_of(*payload: float) -> ef.World:
    world = ef.World(debug=True)
    world.spawn("a", rows(*payload), ef.Age)
    return world


# ------------------------------------------------------------------ within one tick


def test_nothing_changes_before_the_tick_ends() -> None:
    seen = []
    world = world_of(1, 2, 3)
    world.add_system(Scripted(lambda w: w["a"].spawn(rows(4)), lambda w: w["a"].kill([0])))
    world.add_system(ScriptedLater(lambda w: seen.append(payloads(w, "a"))))
    world.add_system(ScriptedObserver(lambda w: seen.append(payloads(w, "a"))))
    world.step()
    assert seen == [[1, 2, 3], [2, 3, 4]]


def test_systems_kill_and_spawn_each_others_rows_in_one_tick() -> None:
    """Kills speak of the rows at the start of the tick, add up, and come before spawns in call order."""
    world = world_of(10, 11, 12, 13)
    world.spawn("b", rows(20, 21))
    world.add_system(
        Scripted(
            lambda w: w["a"].spawn(rows(14)),
            lambda w: w["a"].kill(np.array([True, False, False, True])),
            lambda w: w["b"].kill(1),
        )
    )
    world.add_system(
        ScriptedLater(
            lambda w: w["a"].kill([0, 1]),
            lambda w: w["b"].spawn(rows(22, 23)),
            lambda w: w["a"].spawn(rows(15)),
            lambda w: w["b"].kill([0]),
        )
    )
    world.step()
    assert payloads(world, "a") == [12, 14, 15]
    assert payloads(world, "b") == [22, 23]


def test_observers_queue_too_and_all_see_the_same_rows() -> None:
    seen = []
    world = world_of(1, 2, 3, 4)
    look = lambda w: seen.append(payloads(w, "a"))  # noqa: E731
    # Row 1 is row 1 of what the tick left, also after row 0 was killed.
    world.add_system(ScriptedObserver(lambda w: w["a"].kill(0), lambda w: w["a"].kill(1), look))
    world.step()
    assert seen == [[1, 2, 3, 4]]
    assert payloads(world, "a") == [3, 4]


def test_observers_see_derived_tables_in_step_with_the_rows() -> None:
    seen: list[list[float]] = []
    world = world_of(1, 2, 3)
    world.add_system(EchoSystem())
    world.add_system(Scripted(lambda w: w["a"].kill([1]), lambda w: w["a"].spawn(rows(9, 8))))
    world.add_system(ScriptedObserver(lambda w: seen.append(w["a"][Echo].e.tolist())))
    world.step()
    assert seen == [[1.0, 3.0, 0.0, 0.0]]  # new rows have none before their first tick


def test_velocities_survive_an_emitter() -> None:
    """What a frame stores: velocities of the last stage, not zeros because a row was added."""
    world = world_of(1, 2)
    world.add_system(ef.WindSystem(velocity=(2.0, 0.0, 0.0)))
    world.add_system(ef.AdvectionSystem())
    world.add_system(ef.EmissionSystem(emitters=[{"name": "e", "into": "a", "rate": 1 / world.dt}]))
    world.step()
    np.testing.assert_array_equal(world["a"][ef.Velocity].u[:, 0], [2.0, 2.0, 0.0])


def test_a_stream_of_rows_moves_none_of_those_that_stay() -> None:
    """The oldest 5 of 160 go and 5 come: in most ticks only the new ones are written, to memory kept ready.

    A piece made for 160 rows has room for 160 / 16 = 10 more, so a copy is made in one tick of three. Memory
    never exceeds that; and when all but 2 rows go, what they lie in is not kept for their sake.
    """
    world, expected, next_one = world_of(*range(160)), list(range(160)), 160
    stream = [
        lambda w: w["a"].kill(np.arange(5)),
        lambda w: w["a"].spawn(rows(*range(next_one, next_one + 5))),
    ]
    system = world.add_system(Scripted(*stream))
    stayed = 0
    for _ in range(30):
        before = world["a"][ef.Position].x
        world.step()
        expected = [*expected[5:], *range(next_one, next_one + 5)]
        next_one += 5
        assert payloads(world, "a") == expected
        x = world["a"][ef.Position].x
        assert x.flags.c_contiguous and x.flags.writeable
        stayed += np.shares_memory(before[5:], x[:-5])
        assert x.base is not None and len(x.base) <= 170
    assert stayed == 20
    assert world["a"][RowId].id.tolist() == expected
    system.actions = [lambda w: w["a"].kill(np.arange(158))]
    world.step()
    assert payloads(world, "a") == expected[158:]
    assert len(world["a"][ef.Position].x.base) == 2


def test_a_stream_goes_on_from_the_state_that_was_put_back() -> None:
    """Rows written ahead by a tick that failed are not seen: the next tick starts from the copies."""
    world = world_of(*range(64))
    stream = [lambda w: w["a"].kill(0), lambda w: w["a"].spawn(rows(100))]
    system = world.add_system(ScriptedWriter(*stream))
    world.step(2)
    good = payloads(world, "a")
    system.actions = [*stream, lambda w: w["a"][ef.Position].x.fill(np.nan)]
    with pytest.raises(DivergedError):
        world.step()
    assert payloads(world, "a") == good
    system.actions = stream
    world.step(2)
    assert payloads(world, "a") == [*good[2:], 100, 100]


def test_evaluate_drops_what_was_queued() -> None:
    world = world_of(1, 2)

    class Spawning(Scripted):
        phase = "rates"

    world.add_system(Spawning(lambda w: w["a"].spawn(rows(3))))
    world.evaluate()
    assert payloads(world, "a") == [1, 2]


@pytest.mark.parametrize("when", ["prepare", "rates"])
def test_rows_are_not_spawned_once_per_stage(when: str) -> None:
    # In four stages there were four new rows; in the last one alone it is one, between ticks all as ever.
    class Repeated(Scripted):
        phase = when

    def spawn(w: ef.World) -> None:
        w["a"].spawn(ef.Position(np.ones((1, 3))))

    def spawn_in_last(w: ef.World) -> None:
        if w.stage.last:
            spawn(w)

    for action, more in ((spawn, 0), (spawn_in_last, 2)):
        world = ef.World(dt=0.1, integrator="rk4")
        world.spawn("a", ef.Position(np.zeros((3, 3))))
        world.add_systems([Repeated(action), ef.AdvectionSystem()])
        if more:
            world.step(more)
        else:
            with pytest.raises(
                FluidError, match="'a' are spawned in the phase prepare or rates, which every"
            ):
                world.step()
        spawn(world)
        assert len(world["a"]) == 3 + more + 1


def test_between_ticks_changes_are_immediate() -> None:
    world = world_of(1, 2, 3)
    world["a"].kill([0, 2])
    world["a"].spawn(rows(4), ef.Age([0.5]))
    assert payloads(world, "a") == [2, 4]
    np.testing.assert_array_equal(world["a"][ef.Age].t, [0.0, 0.5])
    np.testing.assert_array_equal(world["a"][ef.RowId].id, [1, 3])


def test_between_ticks_with_a_schedule_that_is_not_complete_yet() -> None:
    world = world_of(1, 2, 3)
    world.add_system(type("ReadsEcho", (System,), {"reads": (Echo,), "process": lambda self, dt: None})())
    world["a"].kill([0])
    world.add_system(EchoSystem())
    assert payloads(world, "a") == [2, 3]


@pytest.mark.parametrize("phase", [Scripted, ScriptedLater])
@pytest.mark.parametrize(
    "action",
    [lambda w: w.spawn("c", rows(1)), lambda w: w.attach("a", ef.Species)],
)
def test_entities_and_tables_are_made_between_ticks(phase: type[Scripted], action: Any) -> None:
    world = world_of(1)
    world.add_system(phase(action))
    with pytest.raises(FluidError, match="during a tick"):
        world.step()
    assert "c" not in world
    assert ef.Species not in world["a"]


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("rows_to_kill", "words"),
    [
        ([3], "row 3 cannot be killed; there are 3 rows"),
        ([0, -1], "row -1 cannot be killed; there are 3 rows"),
        (7, "row 7 cannot be killed"),
        (np.array([True, False]), r"the kill mask has shape \(2,\); shape \(3,\) is needed"),
        (True, r"the kill mask has shape \(\); shape \(3,\) is needed"),
        ([0.0], "rows to kill have dtype float64; a mask or row numbers are allowed"),
        (["a"], "rows to kill have dtype"),
        ([[0], [1, 2]], "rows to kill have dtype object; a mask or row numbers are allowed"),
        (np.ma.array([0, 1], mask=[False, True]), "some rows to kill are masked"),
    ],
)
def test_kill_refuses(rows_to_kill: object, words: str) -> None:
    world = world_of(1, 2, 3)
    with pytest.raises(ComponentError, match=f"entity 'a': {words}"):
        world["a"].kill(rows_to_kill)
    assert payloads(world, "a") == [1, 2, 3]
    # A refused kill leaves nothing in the queue.
    world["a"].kill([])
    world.step()
    assert payloads(world, "a") == [1, 2, 3]


def test_kill_in_an_entity_without_rows() -> None:
    world = world_of()
    with pytest.raises(ComponentError, match="row 0 cannot be killed; there are 0 rows"):
        world["a"].kill([0])
    world["a"].kill(np.zeros(0, bool))


@pytest.mark.parametrize(
    ("components", "words"),
    [
        ((ef.Age([1.0]),), "new rows need Position"),
        ((rows(1), ef.Age([1.0, 2.0])), "Age has 2 rows, but Position has 1"),
        ((rows(1), ef.Density([1.0])), "has no Density, so new rows cannot have it either"),
        ((rows(1), ef.Velocity(np.zeros((1, 3)))), "Velocity is derived"),
    ],
)
def test_spawn_refuses(components: tuple[Component, ...], words: str) -> None:
    world = world_of(1)
    with pytest.raises(ComponentError, match=f"entity 'a'.*{words}"):
        world["a"].spawn(*components)
    assert payloads(world, "a") == [1]
    assert world._next_row_id == 1


def test_row_ids_are_never_used_twice() -> None:
    world = world_of(1, 2)
    world["a"].kill([1])
    world["a"].spawn(rows(3))
    world["a"].kill([0, 1])
    world["a"].spawn(rows(4))
    np.testing.assert_array_equal(world["a"][ef.RowId].id, [3])


def test_killing_all_rows_and_going_on() -> None:
    world = world_of(1, 2)
    world.add_system(ef.WindSystem(velocity=(1.0, 1.0, 1.0)))
    world.add_system(ef.AdvectionSystem())
    world.add_system(EchoSystem())
    world.step()
    world["a"].kill(np.ones(2, bool))
    world.step(2)
    assert len(world["a"]) == 0
    world["a"].spawn(rows(5))
    world.step()
    assert payloads(world, "a") == pytest.approx([5 + world.dt], rel=1e-6)  # one float32 rounding


# ------------------------------------------------------------------ against a plain list


@dataclass
class Model:
    """What the rows of one entity should be: (payload, whether it has lived through an EchoSystem)."""

    rows: list[int] = field(default_factory=list)
    echoed: set[int] = field(default_factory=set)
    killed: set[int] = field(default_factory=set)
    born: list[int] = field(default_factory=list)

    def apply(self) -> None:
        self.rows = [row for k, row in enumerate(self.rows) if k not in self.killed] + self.born
        self.killed, self.born = set(), []


MOMENTS = ("between", "spawn", "move", "observe")
ACTION = st.tuples(
    st.sampled_from(MOMENTS),
    st.sampled_from(("a", "b")),
    st.one_of(st.integers(0, 4), st.lists(st.integers(0, 30), max_size=6)),
    st.booleans(),
)


@settings(max_examples=60)
@given(st.lists(st.lists(ACTION, max_size=7), min_size=1, max_size=5))
def test_random_spawns_and_kills_keep_all_columns_in_step(ticks: list[list[Any]]) -> None:
    world = ef.World(precision="double", debug=True)
    models = {"a": Model([1, 2, 3]), "b": Model()}
    world.spawn("a", rows(1, 2, 3), ef.VelocityHistory)
    world.spawn("b", rows(), ef.Age)
    counter = iter(range(4, 10_000))
    script = {
        "spawn": world.add_system(Scripted()),
        "move": world.add_system(ScriptedLater()),
        "observe": world.add_system(ScriptedObserver()),
    }
    world.add_system(EchoSystem())
    ids: dict[int, int] = {}
    highest = -1

    def perform(name: str, what: int | list[int], as_mask: bool) -> None:
        model, entity = models[name], world[name]
        if isinstance(what, int):
            new = [next(counter) for _ in range(what)]
            entity.spawn(rows(*new))
            model.born += new
            return
        chosen = sorted({k % len(model.rows) for k in what}) if model.rows else []
        mask = np.isin(np.arange(len(model.rows)), chosen)
        entity.kill(mask if as_mask else chosen)
        model.killed |= set(chosen)

    def settle() -> None:
        for model in models.values():
            model.apply()

    for actions in ticks:
        for _, name, what, as_mask in (action for action in actions if action[0] == "between"):
            perform(name, what, as_mask)
            settle()
        for moment, system in script.items():
            system.actions = [
                lambda _, args=action[1:]: perform(*args) for action in actions if action[0] == moment
            ]
        # The model settles where the world does: after the tick proper and after the observers.
        script["observe"].actions.insert(0, lambda _: settle())
        for model in models.values():
            model.echoed = set(model.rows)
        world.step()
        settle()
        for name, model in models.items():
            entity = world[name]
            assert payloads(world, name) == model.rows
            assert {len(array) for array in entity.columns().values()} == {len(model.rows)}
            assert entity[Echo].e.tolist() == [row if row in model.echoed else 0 for row in model.rows]
        now = {
            int(payload): int(number)
            for name in models
            for payload, number in zip(payloads(world, name), world[name][ef.RowId].id, strict=True)
        }
        assert len(set(now.values())) == len(now)
        for payload, number in now.items():
            # A row keeps its id for life; an id that is new is higher than every id before.
            assert ids.get(payload, number) == number
            assert payload in ids or number > highest
        ids.update(now)
        highest = max([highest, *now.values()])
        assert world._next_row_id > highest
