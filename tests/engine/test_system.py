"""Systems: parameters, declarations, and joining a world."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from pydantic import Field

import ecs_fluid as ef
from ecs_fluid.errors import FluidError, RecipeError, ScheduleError
from ecs_fluid.system import System


class Push(System):
    """Moves everything along x."""

    reads = writes = (ef.Position,)
    phase: str = "move"  # annotated, as users do, and still no parameter

    speed: float = Field(default=1.0, ge=0, le=10)
    """speed of the drift, m/s"""
    way: Literal["there", "back"] = Field(default="there", description="to or fro")

    def process(self, dt: float) -> None:
        sign = 1.0 if self.way == "there" else -1.0
        for (position,) in self.query(ef.Position):
            position.x[:, 0] += sign * self.speed * dt


class SlowPush(Push):
    """Only another default."""

    speed = 0.25


def one_particle(**options: object) -> ef.World:
    world = ef.World(dt=0.5, precision="double", debug=True, **options)
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]))
    return world


def place(world: ef.World) -> float:
    return float(world["a"][ef.Position].x[0, 0])


class Wary(Push):
    """Warns of every step."""

    def process(self, dt: float) -> None:
        self.warn(f"step {self.world.tick}", "steps")
        self.warn("too fast")


def test_a_warning_of_a_topic_is_given_once() -> None:
    world = one_particle()
    world.add_system(Wary())
    with pytest.warns(ef.FluidWarning) as found:
        world.step(3)
    assert [str(one.message) for one in found] == ["t = 0 s: step 0", "t = 0 s: too fast"]


def test_parameters_are_checked_by_name_and_range() -> None:
    with pytest.raises(RecipeError, match=r"Push: unknown key 'sped'; did you mean 'speed'?"):
        Push(sped=1.0)
    with pytest.raises(RecipeError, match=r"Push: speed = 11.0; a number at most 10.0 is needed"):
        Push(speed=11.0)
    with pytest.raises(RecipeError, match="Push: way = 'up'; allowed: 'there' or 'back'"):
        Push(way="up")
    with pytest.raises(RecipeError, match="Push: speed = nan; a finite number is needed"):
        Push(speed=float("nan"))
    assert set(Push.Parameters.model_fields) == {"speed", "way"}


class Keeps(Push):
    """Attributes of its own, made by its methods and by what they call."""

    limit = 3  # no parameter, and still settable

    def __init__(self, **parameters: float) -> None:
        self.early = 1
        super().__init__(**parameters)
        self.late = 2

    def process(self, dt: float) -> None:
        for name in ("seen", "counted"):
            setattr(self, name, getattr(self, name, 0) + 1)

        def further() -> None:
            self.further = self.world.tick

        further()


class Sets(System):
    """Sets what another system does not have, while it runs."""

    asks = (Keeps,)
    phase = "observe"

    def process(self, dt: float) -> None:
        asked = self.world.system(Keeps)
        assert asked is not None
        asked.sped = 2.0  # type: ignore[attr-defined]


def test_an_attribute_that_a_system_does_not_have_is_refused_but_in_its_own_methods() -> None:
    """A misspelt parameter was an attribute that nothing reads."""
    world = one_particle()
    keeps = world.add_system(Keeps(speed=2.0))
    world.step(2)
    assert (keeps.early, keeps.late, keeps.seen, keeps.counted, keeps.further) == (1, 2, 2, 2, 1)  # type: ignore[attr-defined]
    keeps.early, keeps.seen, keeps.limit, keeps.speed = 5, 5, 5, 5.0  # type: ignore[attr-defined]
    assert (keeps.early, keeps.limit, keeps.parameters.speed) == (5, 5, 5.0)  # type: ignore[attr-defined]
    for name, said in (
        ("sped", "did you mean 'speed'"),
        ("sean", "did you mean 'seen'"),
        ("q", "known: cou"),
    ):
        with pytest.raises(RecipeError, match=f"Keeps has no attribute {name!r}; {said}"):
            setattr(keeps, name, 3.0)
        assert not hasattr(keeps, name)
    world.add_system(Sets())
    with pytest.raises(RecipeError, match="Keeps has no attribute 'sped'; did you mean 'speed'"):
        world.step()


def test_a_value_without_its_type_is_named_as_no_parameter() -> None:
    class Untyped(Push):
        """A typing mistake that is easily made; constants of a class look the same, and are allowed."""

        strength = 3.0

    with pytest.raises(
        RecipeError,
        match="'strength' has no type annotation, so it is not a parameter; write for example str",
    ):
        Untyped(strength=1.0)
    assert Untyped(speed=1.0).strength == 3.0


def test_parameters_are_described_by_the_docstring_under_them() -> None:
    """Those of the bases too; a description that pydantic was given stays where there is no docstring."""
    for kind in (Push, SlowPush):
        assert kind.Parameters.descriptions() == {"speed": "speed of the drift, m/s", "way": "to or fro"}
        described = kind.Parameters.model_json_schema()["properties"]
        assert described["speed"]["description"] == "speed of the drift, m/s"
        assert described["speed"]["maximum"] == 10 and described["way"]["description"] == "to or fro"


def test_a_subclass_with_another_default_keeps_the_range() -> None:
    world = one_particle()
    world.add_system(SlowPush())
    world.step(2)
    assert place(world) == 0.25  # 2 ticks of 0.5 s at 0.25 m/s
    with pytest.raises(RecipeError, match="SlowPush: speed = -1"):
        SlowPush(speed=-1)


def test_a_parameter_changed_later_is_checked_and_saved(tmp_path: object) -> None:
    world = one_particle()
    push = world.add_system(Push())
    push.speed = 3
    world.step()
    assert place(world) == 1.5
    with pytest.raises(RecipeError, match="Push: speed = -1"):
        push.speed = -1
    assert push.speed == 3.0
    world.save(f"{tmp_path}/ck.npz")
    again = ef.resume(f"{tmp_path}/ck.npz")
    again.step()
    assert place(again) == 3.0


@pytest.mark.parametrize("name", ["kind", "world", "query", "parameters", "process"])
def test_parameter_names_that_every_system_has(name: str) -> None:
    with pytest.raises(ScheduleError, match=f"Clash has a parameter '{name}', but every system already has"):
        type("Clash", (System,), {"__annotations__": {name: float}})


def test_kind_is_the_class_name_in_snake_case() -> None:
    assert [kind.kind for kind in (Push, SlowPush, ef.AgeLimitSystem, ef.KillBoxSystem)] == [
        "push",
        "slow_push",
        "age_limit",
        "kill_box",
    ]


def test_a_system_without_process() -> None:
    kind = type("Idle", (System,), {})
    world = one_particle()
    world.add_system(kind())
    with pytest.raises(ScheduleError, match=r"Idle has no process\(self, dt\) method"):
        world.step()
    assert world.tick == 0


def test_a_system_without_a_world() -> None:
    with pytest.raises(ScheduleError, match=r"Push belongs to no world yet; use world.add_system"):
        Push().process(0.1)


def test_a_system_belongs_to_one_world_once() -> None:
    world, push = one_particle(), Push()
    world.add_system(push)
    for other in (world, one_particle()):
        with pytest.raises(ScheduleError, match="Push is already in a world; make a new one"):
            other.add_system(push)
    twice = Push()
    with pytest.raises(ScheduleError, match="Push is already in a world"):
        one_particle().add_systems([twice, twice])
    assert world.systems == [push]


def test_only_instances_of_systems_join() -> None:
    world = one_particle()
    for wrong in (Push, "push", None):
        with pytest.raises(ScheduleError, match="is not a system; pass an instance"):
            world.add_system(wrong)  # type: ignore[type-var]


def test_an_init_that_forgets_its_base() -> None:
    kind = type("Forgetful", (System,), {"__init__": lambda self: None})
    with pytest.raises(ScheduleError, match=r"Forgetful.__init__ must call super\(\).__init__\(\)"):
        one_particle().add_system(kind())


def test_a_system_refused_by_its_world_does_not_run_after_all() -> None:
    world = one_particle()
    box = ef.KillBoxSystem(low=(1, 1, 1), high=(2, 2, 2), on=("nobody",))
    said = "KillBoxSystem: on = 'nobody': the world has no entity 'nobody'; known: a, fluid"
    with pytest.raises(FluidError, match=said):
        world.add_system(box)
    assert world.systems == []
    world.step()
    assert len(world["a"]) == 1
    world.spawn("nobody", ef.Position([[0.0, 0.0, 0.0]]))
    world.add_system(box)
    world.step()
    assert (len(world["a"]), len(world["nobody"])) == (1, 0)


def test_systems_are_added_between_ticks_and_see_all_entities() -> None:
    world = one_particle()
    world.step()
    world.add_system(Push())
    world.step()
    world.spawn("b", ef.Position([[10.0, 0.0, 0.0]]))
    world.step()
    assert place(world) == 1.0
    assert world["b"][ef.Position].x[0, 0] == 10.5


def test_require_adds_what_is_missing_once() -> None:
    world = one_particle()
    world.add_system(ef.AccelerateSystem(acceleration=(0, 0, 0)))
    world.add_system(ef.AccelerateSystem(acceleration=(0, 0, 0)))
    kinds = [type(system) for system in world.systems]
    assert kinds.count(ef.InertiaSystem) == 1
    assert isinstance(world.require(ef.InertiaSystem), ef.InertiaSystem)


def test_a_chosen_system_takes_the_place_of_one_brought_along() -> None:
    """VelocitySystem brings a PartitionSystem and a DiagnosticsSystem; the user's own count, in any order."""
    chosen = [ef.PartitionSystem(padding=2.0), ef.DiagnosticsSystem(every=1), ef.VelocitySystem()]
    for order in (chosen, chosen[::-1]):
        world = one_particle()
        systems = [type(system)(**dict(system.parameters)) for system in order]
        for system in systems:
            world.add_system(system)
        assert set(world.schedule.systems) == set(systems)
    with pytest.raises(
        ScheduleError, match="there are two systems PartitionSystem, and both access Grid; keep one of them"
    ):
        world.add_system(ef.PartitionSystem())
        world.step()


def test_undeclared_queries_are_refused() -> None:
    class Curious(System):
        reads = (ef.Position,)

        def process(self, dt: float) -> None:
            for _ in self.query(ef.Position, ef.Age):
                pass

    world = ef.World()
    world.add_system(Curious())
    with pytest.raises(
        ScheduleError, match="Curious accesses Age but does not declare it; add Age to its reads"
    ):
        world.step()


def test_repr_shows_what_was_chosen() -> None:
    assert repr(Push(speed=2)) == "Push(speed=2.0)"
    assert repr(Push()) == "Push()"


def test_systems_take_numpy_numbers() -> None:
    assert Push(speed=np.float32(0.5)).speed == 0.5
