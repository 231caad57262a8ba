"""What systems say that they touch: the order that follows from it, and what is refused."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array, Component, column
from ecs_fluid.components.bodies import FREE
from ecs_fluid.errors import ScheduleError
from ecs_fluid.lint import idle_parameters_lint, unmatched_lint
from ecs_fluid.schedule import build_schedule
from ecs_fluid.system import System
from ecs_fluid.systems.operations import gusts
from ecs_fluid.worlds.world_recipe import shipped


class Heat(Component, derived=True, given=(ef.Position,)):
    """A derived table that systems fill and add to."""

    w: Array = column("W")


def make(title: str, **declared: Any) -> type[System]:
    return type(title, (System,), {"process": lambda self, dt: None, **declared})


def names(*kinds: type[System]) -> list[str]:
    return [type(system).__name__ for system in build_schedule([kind() for kind in kinds]).systems]


def refused(sentence: str) -> pytest.RaisesExc:
    return pytest.raises(ScheduleError, match=f"^{re.escape(sentence)}$")


# ---------------------------------------------------------------------- order


def test_may_read_comes_after_writers_and_adders_and_may_go_without_them() -> None:
    write = make("Fill", writes=(Heat,), phase="constrain")
    add = make("Warm", adds=(Heat,), phase="constrain")
    glance = make("Glance", may_read=(Heat,), phase="constrain")
    assert names(glance, add, write) == ["Fill", "Warm", "Glance"]
    assert names(glance) == ["Glance"]


def test_may_read_is_a_conflict_like_any_read() -> None:
    mover, glance = make("Mover", writes=(ef.Position,)), make("Glance", may_read=(ef.Position,))
    with refused(
        "Mover and Glance both access Position in the phase 'move', but nothing says which of them runs "
        "first; "
        "give one of them before or after, for example Glance.after = (Mover,)"
    ):
        names(mover, glance)
    glance.after = (mover,)
    assert names(glance, mover) == ["Mover", "Glance"]


def test_may_read_of_what_is_filled_too_late_is_refused() -> None:
    late, glance = make("Late", writes=(Heat,), phase="observe"), make("Glance", may_read=(Heat,))
    with refused(
        "Glance reads Heat, which no system writes before it; add a system that writes Heat earlier (Late "
        "does so only in the phase 'observe')"
    ):
        names(glance, late)


def test_may_read_of_every_component() -> None:
    """`Component` stands for all of them: what anybody writes counts."""
    glance = make("Glance", may_read=(Component,))
    with refused(
        "Mover and Glance both access Position in the phase 'move', but nothing says which of them runs "
        "first; "
        "give one of them before or after, for example Glance.after = (Mover,)"
    ):
        names(make("Mover", writes=(ef.Position,)), glance)


# ---------------------------------------------------------------------- loads


def flight(thruster: type[System], first: bool, loads: bool = True, debug: bool = True) -> ef.World:
    """A free ball of 2 kg without gravity, and a thruster added before or after its BodySystem."""
    world = ef.World(dt=0.1, precision="double", debug=debug)
    ball = (np.zeros((1, 3)), np.tile([1.0, 0, 0, 0], (1, 1)))
    world.spawn(
        "ball",
        ef.Pose(*ball),
        ef.RigidMotion(np.zeros((1, 3)), np.zeros((1, 3))),
        ef.Body([2.0], np.eye(3)[None], [FREE], [0.0], [0.0]),
        ef.BallShape([0.1]),
    )
    world.set_fluid(gravity=(0, 0, 0))
    bodies = [ef.BodySystem(), *([ef.LoadSystem()] if loads else [])]
    world.add_systems([thruster(), *bodies] if first else [*bodies, thruster()])
    return world


def thruster(**declared: Any) -> type[System]:
    def process(self: System, dt: float) -> None:
        for (load,) in self.query(ef.BodyLoad):
            load.force[:, 0] += 3.0

    return type("Thruster", (System,), {"adds": (ef.BodyLoad,), "process": process, **declared})


@pytest.mark.parametrize("first", [True, False])
def test_a_thruster_acts_wherever_it_is_added(first: bool) -> None:
    """v = F t/m = 3 N * 1 s / 2 kg, before BodySystem in the list or after it."""
    world = flight(thruster(), first)
    world.step(10)
    assert world["ball"][ef.RigidMotion].v[0, 0] == pytest.approx(1.5, abs=1e-12)


@pytest.mark.parametrize("value", [3.0, 0.0])
def test_an_assignment_to_what_is_added_to_is_caught(value: float) -> None:
    """Wherever it is added, and whether it would be overtaken by another or overtake it."""

    def assign(self: System, dt: float) -> None:
        for (load,) in self.query(ef.BodyLoad):
            load.force[:, 0] = value

    for first in (True, False):
        world = flight(thruster(process=assign), first)
        with refused(
            "Thruster declares only to add to BodyLoad.force, but overwrites it in entity 'ball'; write += "
            "in "
            "place of =, or move BodyLoad from its adds to its writes"
        ):
            world.step()
        assert not world["ball"][ef.RigidMotion].v.any()


def test_the_search_for_assignments_leaves_nothing_behind() -> None:
    """A system with a memory, tables to write and commands acts as often as without debug."""

    def process(self: Any, dt: float) -> None:
        self.calls += 1
        self.draws.append(self.random.random())
        for load, motion in self.query(ef.BodyLoad, ef.RigidMotion):
            load.force[:, 0] += self.draws[-1]
            motion.v[:, 1] += self.calls
            self.world.spawn_rows("dust", ef.Position([[self.calls, 0.0, 0.0]]))

    def remember(self: Any) -> None:
        self.calls, self.draws, self.random = 0, [], np.random.default_rng(1)

    states = []
    for debug in (True, False):
        busy = thruster(
            process=process, __post_init__=remember, writes=(ef.RigidMotion,), before=("BodySystem",)
        )
        world = flight(busy, True, debug=debug)
        world.spawn("dust", ef.Position(np.zeros((0, 3))))
        world.step(3)
        assert len(world["dust"]) == 3
        states.append(world.state_hash())
    assert states[0] == states[1]


@pytest.mark.parametrize("first", [True, False])
def test_a_thruster_where_it_cannot_act_is_refused(first: bool) -> None:
    for phase in ("constrain", "observe"):
        with refused(
            f"Thruster adds to BodyLoad in the phase '{phase}', after BodySystem has read it, so that it has "
            "no effect; set Thruster.phase to 'move'"
        ):
            flight(thruster(phase=phase), first).step()
    for phase in ("prepare", "rates"):
        with refused(
            f"Thruster adds to BodyLoad in the phase '{phase}', in every stage of the integrator, but "
            "LoadSystem resets it only once per tick; set Thruster.phase to 'move'"
        ):
            flight(thruster(phase=phase), first).step()
    with pytest.raises(ScheduleError, match=r"circle: .*BodySystem before Thruster"):
        flight(thruster(after=("BodySystem",)), first).step()


def test_a_load_that_nobody_empties_is_refused() -> None:
    """It would grow from tick to tick."""
    with refused(
        "Thruster adds to BodyLoad, but no system resets it when a tick begins; add a system that writes "
        "BodyLoad, such as LoadSystem"
    ):
        flight(thruster(), True, loads=False).step()


def test_what_is_added_before_it_is_written_is_refused() -> None:
    late, early = make("Late", writes=(Heat,)), make("Early", adds=(Heat,), phase="spawn")
    with refused(
        "Early adds to Heat in the phase 'spawn', before Late writes it, so that it has no effect; set "
        "Early.phase to a later one than 'move'"
    ):
        names(late, early)


# ---------------------------------------------------------------------- what is looked at


def look(body: Any, debug: bool = True, **declared: Any) -> ef.World:
    """A world with particles of an age, and a system Looks that reads their Position and calls body(self)."""
    world = ef.World(dt=0.5, debug=debug)
    world.spawn("dust", ef.Position([[1.0, 2.0, 3.0]]), ef.Age([4.0]))
    process = {"process": lambda self, dt: body(self)}
    world.add_system(
        type("Looks", (System,), {"reads": (ef.Position,), "phase": "observe", **process, **declared})()
    )
    return world


UNDECLARED = "Looks accesses Age but does not declare it; add Age to its reads, may_read, writes or adds"
WAYS: dict[str, Any] = {
    "entity[Age]": lambda self: self.world["dust"][ef.Age],
    "Age in entity": lambda self: ef.Age in self.world["dust"],
    "absent": lambda self: ef.Age in self.world.fluid,
    "tables[Age]": lambda self: self.world["dust"].tables[ef.Age],
    "tables.get(Age)": lambda self: self.world["dust"].tables.get(ef.Age),
    "fluid[Age]": lambda self: self.world.fluid[ef.Age],
    "world.query(Age)": lambda self: list(self.world.query(ef.Position, ef.Age)),
    "world.entities_with(Age)": lambda self: list(self.world.entities_with(ef.Age)),
    "query(Age)": lambda self: list(self.query(ef.Age)),
    "field(Age)": lambda self: self.field(ef.Age),
    "of a list": lambda self: [entity[ef.Age] for entity in self.world.entities if ef.Position in entity],
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_a_system_looks_at_it_declares(way: str) -> None:
    with refused(UNDECLARED):
        look(WAYS[way]).step()


@pytest.mark.parametrize("listed", ["reads", "may_read", "writes", "adds"])
def test_declared_in_any_list_it_may_look(listed: str) -> None:
    seen: list[float] = []
    world = look(
        lambda self: seen.append(float(self.world["dust"][ef.Age].t[0])),
        **{"reads": (), listed: (ef.Age,)},
    )
    world.step()
    assert seen == [4.0]


def test_all_tables_at_once_are_every_component() -> None:
    ways: list[Any] = [
        lambda tables: list(tables.items()),
        lambda tables: list(tables.values()),
        dict,
        lambda tables: tables.copy(),
        lambda tables: tables | {},
        lambda tables: {} | tables,
        lambda tables: {**tables},
    ]
    for way in ways:
        with refused(UNDECLARED):
            look(lambda self, way=way: way(self.world["dust"].tables)).step()
        seen: list[Any] = []
        look(
            lambda self, way=way, seen=seen: seen.append(len(way(self.world["dust"].tables))),
            may_read=(Component,),
        ).step()
        assert seen == [3]  # with the names of the rows
    with refused(UNDECLARED):
        look(lambda self: dict(self.world._named_tables)["dust"][ef.Age]).step()


def test_names_of_rows_and_of_components_are_free() -> None:
    seen: list[Any] = []

    def body(self: System) -> None:
        seen.append([kind.__name__ for kind in self.world["dust"].tables])
        seen.append(self.world["dust"][ef.RowId].id.tolist() if hasattr(ef, "RowId") else [0])

    look(body).step()
    assert seen == [["Position", "Age", "RowId"], [0]]


def test_between_ticks_and_without_debug_everything_is_free() -> None:
    def added(self: System, world: ef.World) -> None:
        assert ef.Age in world["dust"]

    def lint(self: System, world: ef.World) -> list[str]:
        return [f"{world['dust'][ef.Age].t[0]:g}"]

    world = look(lambda self: None, added=added, lint=lint)
    assert world.lint() == ["4"]
    with pytest.warns(ef.FluidWarning, match="^4$"):
        world.step()
    look(WAYS["entity[Age]"], debug=False).step()


def test_an_observer_of_other_systems_runs_under_its_own_declarations() -> None:
    def watch(self: System) -> None:
        self.watching = True

    world = look(
        lambda self: None, __post_init__=watch, before_system=lambda self, system: self.world["dust"][ef.Age]
    )
    with refused(UNDECLARED):
        world.step()


# ---------------------------------------------------------------------- what systems ask of one another


class Clock(System):
    """Tells the oldest age."""

    reads = (ef.Age,)
    phase = "observe"
    slow: float = 2.0

    def process(self, dt: float) -> None:
        pass

    @property
    def half(self) -> float:
        return self.slow / 2

    def oldest(self, faster: float = 1.0) -> float:
        return faster * max(
            float(entity[ef.Age].t.max()) for entity in self.world.entities if ef.Age in entity
        )

    def ages(self) -> Iterator[float]:
        yield from (float(age.t[0]) for (age,) in self.query(ef.Age))
        yield float(self.world["dust"][ef.Age].t[0])

    def farthest(self) -> float:
        return float(self.world["dust"][ef.Strength].alpha.max())


def ask(body: Any, **declared: Any) -> ef.World:
    world = look(body, **declared)
    world.add_system(Clock())
    return world


def test_who_asks_another_system_says_so() -> None:
    seen: list[Any] = []

    def body(self: System) -> None:
        clock = self.world.system(Clock)
        seen.append((isinstance(clock, Clock), hasattr(clock, "oldest"), clock.slow, clock.half))
        seen.append(clock.oldest(faster=0.5))

    with refused("Looks calls Clock.oldest without declaring it; add Clock to its asks"):
        ask(body).step()
    assert seen == [(True, True, 2.0, 1.0)]  # parameters are free: they change between two ticks alone
    for asks in (Clock, "Clock"):
        seen.clear()
        # Clock's reading of Age is its own.
        ask(body, asks=asks).step()
        assert seen[1] == 2.0
    ages: list[float] = []

    def each(self: System) -> None:
        for age in self.world.system(Clock).ages():  # type: ignore[union-attr]
            ages.append(age)
            if len(ages) == 2:  # between two of them the one that asks is back under its own declarations
                self.world["dust"][ef.Age]

    with refused(UNDECLARED):
        ask(each, asks=Clock).step()
    assert ages == [4.0, 4.0]


@pytest.mark.parametrize("debug", [False, True])
def test_what_a_world_is_made_of_stays_during_a_tick(debug: bool) -> None:
    changes: dict[str, Any] = {
        "a change of Clock.slow": lambda self: setattr(self.world.system(Clock), "slow", 3.0),
        "attach to entity 'dust'": lambda self: self.world.attach("dust", ef.CoreRadius),
        "add_systems": lambda self: self.world.add_system(ef.AdvectionSystem()),
        "spawn of an entity 'smoke'": lambda self: self.world.spawn("smoke", ef.Age),
    }
    for what, change in changes.items():
        world = ask(change, phase="rates", debug=debug)
        with pytest.raises(
            ef.FluidError,
            match=f"^{what} is refused during a tick of the same world; do it between two ticks$",
        ):
            world.step()
        assert (len(world.systems), world.system(Clock).slow) == (2, 2.0)  # type: ignore[union-attr]
    world = ask(changes["a change of Clock.slow"], debug=debug)  # of an observer, for the next tick
    world.step()
    assert world.system(Clock).slow == 3.0  # type: ignore[union-attr]


def test_a_slip_in_a_declaration_is_told() -> None:
    for slip, right in (("raeds", "reads"), ("write", "writes"), ("befor", "before")):
        with refused(f"Slip.{slip} is not a declaration; did you mean {right!r}?"):
            make("Slip", **{slip: (ef.Position,)})
    with refused("Slip.phse is not a declaration; did you mean 'phase'?"):
        make("Slip", phse="rates")
    make("Slip", writer=None, spread=(1.0, 2.0))  # what is no declaration


@pytest.mark.parametrize("listed", ["before", "after", "asks"])
def test_a_name_that_no_system_has_is_told(listed: str) -> None:
    """Once, before the first tick: a system that is known but not there is no mistake."""
    names = ("AdvectionSytem", "DiffusionSystem", "*", "Wobbly")
    world = look(lambda self: None, **{listed: names})
    said = f"Looks.{listed} names {{!r}}, but no loaded system has that name; "
    assert world.lint() == [
        said.format("AdvectionSytem") + "did you mean 'AdvectionSystem'?",
        said.format("Wobbly") + "give its name, or leave it out",
    ]


def test_who_is_asked_runs_under_its_own_declarations() -> None:
    with refused(
        "Clock accesses Strength but does not declare it; add Strength to its reads, may_read, writes or adds"
    ):
        ask(lambda self: self.world.system(Clock).farthest(), asks=Clock).step()
    # And what asks it, under its own again.
    with refused(UNDECLARED):
        ask(lambda self: (self.world.system(Clock).oldest(), self.world["dust"][ef.Age]), asks=Clock).step()


def test_who_asks_reads_what_the_answer_comes_from() -> None:
    """A mover of what VelocitySystem reads has to come before or after whoever asks it."""
    mover, asker = make("Mover", writes=(ef.Strength,)), make("Asker", asks=("VelocitySystem",))
    assert names(mover, asker) == ["Mover", "Asker"]
    fluid = (ef.VelocitySystem, ef.PartitionSystem)
    with refused(
        "Mover and Asker both access Strength in the phase 'move', but nothing says which of them runs "
        "first; "
        "give one of them before or after, for example Asker.after = (Mover,)"
    ):
        names(mover, asker, *fluid)
    asker.before = ("Mover",)
    assert names(mover, asker, *fluid)[-2:] == ["Asker", "Mover"]


def test_who_asks_comes_after_who_is_asked_unless_it_says_before() -> None:
    told = make("Told", writes=(Heat,))
    asker = make("Asker", asks=(told,))
    assert names(asker, told) == ["Told", "Asker"]
    asker.before = (told,)
    assert names(told, asker) == ["Asker", "Told"]


def test_questions_to_the_world_are_questions_to_its_systems() -> None:
    with refused(
        "Looks calls VelocitySystem.velocity_at without declaring it; add VelocitySystem to its asks"
    ):
        world = look(lambda self: self.world.velocity(np.zeros((1, 3))))
        world.add_systems([ef.VelocitySystem(), ef.AdvectionSystem()])
        world.step()


class Draught(System):
    """A wind as fast as the oldest is old, m/s."""

    reads = (ef.Age,)
    phase = "rates"

    def process(self, dt: float) -> None:
        pass

    def add_wind(self, x: Array, u: Array, du: Array | None) -> None:
        u[:, 0] += self.world["dust"][ef.Age].t.max()


def test_winds_run_under_their_own_declarations() -> None:
    """For all who ask for the flow, of which they are a part; they ran under those of the caller, who had to
    declare what they read."""
    seen = []
    for draught in (Draught, type("Blind", (Draught,), {"reads": ()})):
        for look_up in (
            lambda self: self.world.velocity(np.zeros((1, 3)))[0, 0],
            lambda self: (
                [gust.add_wind(np.zeros((1, 3)), u := np.zeros((1, 3)), None) for gust in gusts(self.world)]
                and u[0, 0]
            ),
        ):
            world = look(lambda self, way=look_up: seen.append(float(way(self))), asks=(ef.VelocitySystem,))
            world.add_systems([ef.VelocitySystem(), ef.AdvectionSystem(), draught()])
            with nullcontext() if draught is Draught else refused(UNDECLARED.replace("Looks", "Blind")):
                world.step()
    assert seen == [4.0, 4.0]


def test_a_wind_that_the_asker_does_not_name_is_refused() -> None:
    with refused("Looks calls Draught.add_wind without declaring it; add Draught to its asks"):
        world = look(lambda self: gusts(self.world)[0].add_wind(np.zeros((1, 3)), np.zeros((1, 3)), None))
        world.add_system(Draught())
        world.step()


def test_who_asks_for_the_flow_comes_after_what_its_winds_read() -> None:
    blow = make("Blow", reads=(Heat,), phase="rates", add_wind=lambda self, x, u, du: None)
    asker = make("Asker", asks=("VelocitySystem",), phase="rates")
    fill = make("Fill", writes=(Heat,), phase="rates")
    assert names(asker, fill, blow) == ["Fill", "Asker", "Blow"]


# ---------------------------------------------------------------------- systems that match nothing


def test_a_system_whose_reads_no_entity_has_is_said() -> None:
    world = ef.World()
    world.spawn("dust", ef.Position([[0.0, 0.0, 0.0]]))
    grows = make("Grows", reads=(ef.Position, ef.Age), may_read=(ef.Density,), phase="observe")
    world.add_system(grows())
    sentence = (
        "Grows reads Age, which no entity has, so it does nothing; give an entity one, or leave the system "
        "out"
    )
    assert world.lint() == [sentence]
    with pytest.warns(ef.FluidWarning, match=f"^{re.escape(sentence)}$"):
        world.step()
    world.attach("dust", ef.Age)
    assert world.lint() == []


def test_systems_that_others_bring_along_may_match_nothing() -> None:
    """VelocitySystem brings a PartitionSystem; the one that was asked for is the one that is said."""
    world = ef.World()
    world.spawn("dust", ef.Position([[0.0, 0.0, 0.0]]))
    world.add_systems([ef.VelocitySystem(), ef.AdvectionSystem()])
    assert [text.split(",")[0] for text in world.lint()] == ["VelocitySystem reads Strength and CoreRadius"]


def test_an_entity_that_an_emitter_will_fill_is_matched() -> None:
    world = ef.World()
    world.spawn("dust", ef.Position(np.zeros((0, 3))), ef.Age)
    world.add_system(make("Grows", reads=(ef.Position, ef.Age), phase="observe")())
    assert world.lint() == []


def drifting(*systems: System) -> ef.World:
    """A ring of one vorton, and sparks with an own velocity."""
    world = ef.World()
    world.spawn("ring", ef.Position(np.zeros((1, 3))), ef.Strength([[0.0, 0.0, 1.0]]), ef.CoreRadius([0.5]))
    world.spawn("sparks", ef.Position(np.zeros((0, 3))), ef.InertialVelocity)
    world.add_systems(systems)
    return world


def searching(*types: type[Component], **declared: Any) -> System:
    """A system Searches that asks for entities with all the `types`."""
    return make("Searches", reads=types, process=lambda self, dt: list(self.chosen(*types)), **declared)()


ACCELERATION = "Acceleration (comes with InertialVelocity)"
IN_VAIN: list[tuple[System, str]] = [
    (
        searching(ef.Strength, ef.InertialVelocity),
        "Searches does nothing: no entity has Strength and InertialVelocity together",
    ),
    (
        searching(ef.Strength, ef.InertialVelocity, on=("sparks", "ring")),
        "Searches does nothing with 'sparks': it does not have Strength|"
        "Searches does nothing with 'ring': it does not have InertialVelocity",
    ),
    (
        ef.AccelerateSystem(on=("ring",)),
        f"AccelerateSystem does nothing with 'ring': it does not have {ACCELERATION}",
    ),
    (
        ef.AccelerateSystem(on=("sparks", "ring")),
        f"AccelerateSystem does nothing with 'ring': it does not have {ACCELERATION}",
    ),
    (
        ef.WindSystem(velocity=(1.0, 0.0, 0.0), on=("fluid",)),
        "WindSystem does nothing with 'fluid': it does not have Velocity (comes with Position)",
    ),
    (searching(ef.Strength, on="ring", __annotations__={"on": str}), ""),  # one name, and no tuple
    (ef.AccelerateSystem(), ""),
    (searching(ef.Position, ef.InertialVelocity), ""),
    (make("Looks", reads=(ef.Strength, ef.InertialVelocity))(), ""),
]


@pytest.mark.parametrize(("system", "said"), IN_VAIN)
def test_a_system_that_finds_no_entity_is_said_once(system: System, said: str) -> None:
    """By what it asked for in its first tick, where each of its components is somewhere."""
    world = drifting(ef.AdvectionSystem(), system)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        world.step(2)
    sentences = [f"{text}; add what is missing, or leave it out" for text in said.split("|") if text]
    assert [str(warning.message) for warning in heard] == sentences
    assert all(warning.filename == __file__ for warning in heard)


def test_a_system_whose_methods_another_one_calls_may_find_no_entity() -> None:
    """The same system by itself is warned of, see `IN_VAIN`."""
    called, caller = searching(ef.Strength, ef.InertialVelocity), make("Caller", asks=("Searches",))()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        drifting(ef.AdvectionSystem(), called, caller).step()
    assert not heard


def test_rates_that_nobody_integrates_are_said() -> None:
    """Unless their state is moved, or they are read, by another system."""
    wind = ef.WindSystem(velocity=(1.0, 0.0, 0.0))
    said = (
        "no system integrates rates, which leaves Acceleration and Velocity without effect; add an "
        "AdvectionSystem"
    )
    gravity = ef.AccelerateSystem()
    assert drifting(wind, gravity).lint() == [said]
    others: list[System] = [
        ef.AdvectionSystem(),
        make("Moves", writes=(ef.Position, ef.InertialVelocity))(),
        make("Looks", reads=(ef.Velocity, ef.Acceleration), phase="observe")(),
    ]
    for other in others:
        blown = ef.WindSystem(velocity=(1.0, 0.0, 0.0))
        assert drifting(blown, ef.AccelerateSystem(), other).lint() == []


class Paints(System):
    """A system of a user's own, some of whose parameters are for one of its ways."""

    phase = "observe"
    way: Literal["brush", "roller", "spray"] | None = None
    """how it paints; default by the wall"""
    bristles: int = 100
    """brush: number of bristles, 1"""
    width: float = 0.1
    """brush, roller: width, m"""
    hint: str = ""
    """note: said aloud"""

    def process(self, dt: float) -> None:
        """Paint nothing."""


@pytest.mark.parametrize(
    ("system", "said"),
    [
        (Paints(way="spray", bristles=7), "bristles = 7 has no effect with way = 'spray', but with 'brush'"),
        (Paints(width=2.0), "width = 2.0 has no effect with way = None, but with 'brush' or 'roller'"),
        (Paints(way="roller", width=2.0, hint="wet"), ""),
        (Paints(way="spray"), ""),
        (
            ef.VelocitySystem(solver="tree", opening="box", angle=0.3),
            "angle = 0.3 has no effect with opening = 'box', but with 'angle'",
        ),
        (
            ef.SphSystem(stride=0.2),
            "stride = 0.2 has no effect with pressure = 'explicit', but with 'implicit'",
        ),
        (ef.BoundarySystem(boundary="layer", lattice=0.01), ""),
    ],
)
def test_a_parameter_that_is_for_another_choice_is_said(system: System, said: str) -> None:
    """Its docstring begins with the choices with which it counts."""
    told = list(idle_parameters_lint([system]))
    assert [text.split(": ")[1].split(";")[0] for text in told] == ([said] if said else [])


@pytest.mark.parametrize(
    ("velocity", "said"),
    [
        ({"solver": "hybrid", "tolerance": 1e-4}, "tolerance = 0.0001 has no effect with solver = 'hybrid'"),
        ({"leaf": "supervortons"}, "leaf = 'supervortons' has no effect with solver = 'direct'"),
        ({"solver": "fmm", "boundary": "walls"}, "boundary = 'walls' has no effect with solver = 'fmm'"),
        ({"solver": "auto", "tolerance": 1e-4}, ""),
        ({"solver": "hybrid", "transfer": "linear"}, ""),
    ],
)
def test_a_parameter_that_the_solver_does_not_take_is_said(velocity: dict[str, Any], said: str) -> None:
    """In a world file too. Where gas swells, fmm sums its flow to the tolerance, whatever the solver."""
    ring = {"kind": "vortex_ring", "name": "ring", "radius": 0.5, "core": 0.2}
    lint = ef.load({"fluid": {"velocity": velocity}, "entity": [ring]}).lint()
    told = [text for text in lint if "has no effect" in text]
    assert len(told) == bool(said) and all(said in text for text in told)
    gas = {"kind": "fluid_block", "name": "gas", "sphere": {"radius": 0.3}, "temperature": 500.0}
    tables = {"fluid": {"velocity": velocity, "law": "ideal_gas"}, "entity": [gas]}
    swelling = ef.load(tables | {"system": [{"kind": "expansion", "flow": True}]}).lint()
    assert any("tolerance" in text and "no effect" in text for text in swelling) is False


WORLDS = sorted(shipped())


@pytest.mark.parametrize("name", WORLDS)
def test_no_shipped_world_has_a_system_or_a_parameter_that_does_nothing(name: str) -> None:
    world = ef.load(name)
    assert list(unmatched_lint(world, world.schedule.systems)) == []
    assert list(idle_parameters_lint(world.schedule.systems)) == []
