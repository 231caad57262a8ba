"""What a system may do wrong to tables: each is told in one sentence, and nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import ComponentError, RecipeError, ScheduleError


class Careless(ef.System):
    """Calls what a test says, with the table of positions."""

    writes = (ef.Position,)
    may_read = (ef.Age,)
    phase = "move"

    def __init__(self, act: Callable[[Any], object]) -> None:
        super().__init__()
        self.act = act

    def process(self, dt: float) -> None:
        self.act(self)


def dust(act: Callable[[Any], object], debug: bool = False) -> ef.World:
    world = ef.World(dt=0.1, debug=debug)
    world.spawn("dust", ef.Position(np.arange(12.0).reshape(4, 3)))
    world.add_system(Careless(act))
    return world


def of_first(change: Callable[[Any], object]) -> Callable[[Any], object]:
    """Does something to the array of positions."""
    return lambda system: [change(table.x) for (table,) in system.query(ef.Position)]


def set_shape(x: np.ndarray) -> None:
    x.shape = (12,)


def set_dtype(x: np.ndarray) -> None:
    x.dtype = np.int32


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda x: x.resize((7, 3), refcheck=False),
            "has shape (7, 3) {when}, but RowId has 4 rows",
        ),
        (
            lambda x: x.resize((2, 3), refcheck=False),
            "has shape (2, 3) {when}, but RowId has 4 rows",
        ),
        (
            set_shape,
            "has shape (12,) {when}, but RowId has 4 rows; add rows by spawn, remove them by kill",
        ),
        (set_dtype, "has dtype int32 {when}; float32 is needed, since the dtype"),
    ],
)
def test_columns_that_a_system_resizes_are_told_and_put_back(change: Any, sentence: str, debug: bool) -> None:
    """They were read beyond their ends, or took the numbers of another type, in silence."""
    world = dust(of_first(change), debug)
    before = world.state_hash()
    said = sentence.format(when=f"after process of {__name__}:Careless")
    with pytest.raises(ComponentError, match=re.escape(f"entity 'dust': Position.x {said}")):
        world.step()
    assert world.state_hash() == before and world["dust"][ef.Position].x.shape == (4, 3)


def test_columns_that_were_resized_between_ticks_are_told() -> None:
    world = dust(lambda system: None)
    world["dust"][ef.Position].x.resize((2, 3), refcheck=False)
    with pytest.raises(
        ComponentError, match=r"Position.x has shape \(2, 3\) before the tick, but RowId has 4 rows"
    ):
        world.step()


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ("Position", "'Position'"),
        ((ef.Position, ef.Age), "(<class"),
        (None, "None"),
        (ef.AdvectionSystem, "<class"),
        (ef.Position(np.zeros((1, 3))), "Position(x: (1, 3) m)"),
    ],
)
@pytest.mark.parametrize("way", ["query", "entities", "chosen", "joined", "field"])
def test_what_is_no_component_is_told_with_what_is_allowed(
    wrong: Any, shown: str, way: str, debug: bool
) -> None:
    """A line of ours failed, with "'str' object has no attribute '__name__'"."""
    world = dust(lambda system: list(getattr(system, way)(wrong)), debug)
    allowed = "allowed are those that it declares, without quotes: Age, Position"
    with pytest.raises(ScheduleError) as refused:
        world.step()
    said = str(refused.value)
    assert said.startswith(f"Careless accesses {shown}") and said.endswith(
        f"which is not a component class; {allowed}"
    )


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    "ask",
    [lambda entity: entity["Position"], lambda entity: "Position" in entity, lambda entity: None in entity],
)
def test_entities_are_asked_by_classes(ask: Any, debug: bool) -> None:
    """`"Position" in entity` was False, without a word."""
    world = dust(lambda system: ask(system.world["dust"]), debug)
    with pytest.raises(ComponentError, match=r"is not a component class; pass a class such as ef\.Position"):
        world.step()


def broken(self: Any, *rest: Any) -> None:
    raise KeyError("gone")


def of_methods(methods: dict[str, Any]) -> ef.World:
    """A world with a system of these methods, beside another one."""
    world = dust(lambda system: None)
    base = {"reads": (ef.Position,), "phase": "observe", "process": lambda self, dt: None}
    world.add_system(type("Broken", (ef.System,), {**base, **methods})())
    return world


def watch(self: ef.System, world: ef.World) -> None:
    self.watching = True


@pytest.mark.parametrize(
    "methods",
    [
        {"__post_init__": broken},
        {"added": watch, "before_system": broken},
        {"added": watch, "after_system": broken},
    ],
)
def test_every_hook_that_fails_is_told_with_its_line(methods: dict[str, Any]) -> None:
    """These three were tracebacks, also at the command line."""
    hook = next(name for name, method in methods.items() if method is broken)
    line = broken.__code__.co_firstlineno + 1
    said = rf"^{hook} of {__name__}:Broken fails: KeyError: 'gone' \(line {line} of {re.escape(__file__)}\)$"
    with pytest.raises(RecipeError, match=said):
        of_methods(methods).step()


def test_the_line_that_is_told_is_the_users_own() -> None:
    """Not that of the library which it calls."""

    def inverts(self: Any, dt: float) -> None:
        np.linalg.inv(np.zeros((2, 2)))

    line = inverts.__code__.co_firstlineno + 1
    with pytest.raises(RecipeError, match=rf"\(line {line} of {re.escape(__file__)}\)$"):
        of_methods({"process": inverts}).step()


def test_a_process_that_would_do_nothing_is_refused() -> None:
    """Of a method with a yield a call runs no line."""

    def yields(self: Any, dt: float) -> Any:
        yield dt

    async def waits(self: Any, dt: float) -> None:
        pass

    for method in (yields, waits):
        with pytest.raises(ScheduleError, match=r"^Broken\.process has a yield or is async, so a"):
            of_methods({"process": method})


def test_a_type_that_is_not_there_is_told_with_its_class() -> None:
    """It was "line 1 of <string>"."""
    with pytest.raises(ScheduleError, match=r"^Broken: the type of a parameter cannot be read: name"):
        type("Broken", (ef.System,), {"__annotations__": {"spin": "Nothing"}, "spin": 3})


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"tick": 3},
            "Broken records 'tick', but this tick's record already has that name; choose another one",
        ),
        ({"time": 3}, "Broken records 'time', but this tick's record already has that name"),
        ({"energy": 3}, "Broken records 'energy', but this tick's record already has that name"),
        ({"a": {1, 2}}, "Broken records a = {1, 2}; a number, text or a list of them is needed"),
        ({"a": [1, object]}, "Broken records a = [1, <class 'object'>]; a number, text or a list of"),
    ],
)
def test_records_that_cannot_be_are_told_with_who_made_them(values: dict[str, Any], sentence: str) -> None:
    """A tick of one's own made a run that could not be resumed; an energy took the place of the other."""
    world = of_methods({"process": lambda self, dt: self.record(**values)})
    early = {"phase": "observe", "before": "*", "process": lambda self, dt: self.record(energy=1.0)}
    world.add_system(type("Early", (ef.System,), early)())
    with pytest.raises(ScheduleError, match=re.escape(sentence)):
        world.step()


def test_records_are_made_by_observers() -> None:
    """In other phases they were those of the tick before."""
    world = dust(lambda system: system.record(a=1))
    with pytest.raises(
        ScheduleError, match=r"^Careless records in the phase 'move', before the tick is over"
    ):
        world.step()
    numbers = {"a": np.float32(0.1), "b": np.arange(3), "c": [np.int64(3), 2.5], "d": True}
    told = of_methods({"process": lambda self, dt: (self.record(**numbers), self.record(a=2))})
    told.step(2)
    assert told.history[-1] == {"tick": 2, "time": 0.2, "a": 2, "b": [0, 1, 2], "c": [3, 2.5], "d": True}
