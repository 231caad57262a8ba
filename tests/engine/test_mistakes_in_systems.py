"""What a system may do wrong to tables: each is told in one sentence, and nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import ComponentError, ScheduleError


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
            "has shape (7, 3) {when}, beside 4 rows of RowId",
        ),
        (
            lambda x: x.resize((2, 3), refcheck=False),
            "has shape (2, 3) {when}, beside 4 rows of RowId",
        ),
        (
            set_shape,
            "has shape (12,) {when}, beside 4 rows of RowId; rows come by spawn and go by kill",
        ),
        (set_dtype, "has numbers of dtype int32 {when}; the dtype of a column stays what it is"),
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
    with pytest.raises(ComponentError, match=r"Position.x has shape \(2, 3\) before the tick, beside 4 rows"):
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
    allowed = "those that it declares are allowed, without quotes: Age, Position"
    with pytest.raises(ScheduleError) as refused:
        world.step()
    said = str(refused.value)
    assert said.startswith(f"Careless asks for {shown}") and said.endswith(
        f"which is no class of components; {allowed}"
    )


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    "ask",
    [lambda entity: entity["Position"], lambda entity: "Position" in entity, lambda entity: None in entity],
)
def test_entities_are_asked_by_classes(ask: Any, debug: bool) -> None:
    """`"Position" in entity` was False, without a word."""
    world = dust(lambda system: ask(system.world["dust"]), debug)
    with pytest.raises(ComponentError, match=r"is no class of components; one such as ef\.Position is"):
        world.step()
