"""The order of systems: what decides it, and what is refused in which words."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array, Component, column
from ecs_fluid.errors import ScheduleError
from ecs_fluid.schedule import build_schedule
from ecs_fluid.system import PHASES, System


class Speed(Component, derived=True, given=(ef.Position,)):
    """A derived table that some system fills."""

    s: Array = column("m/s")


class Excess(Component, derived=True, given=(ef.Position,)):
    """A derived table that several systems add to."""

    e: Array = column("m/s")


def make(title: str, **declared: Any) -> type[System]:
    return type(title, (System,), {"process": lambda self, dt: None, **declared})


def names(*kinds: type[System]) -> list[str]:
    return [type(system).__name__ for system in build_schedule([kind() for kind in kinds]).systems]


def refused(pattern: str) -> pytest.RaisesExc:
    return pytest.raises(ScheduleError, match=pattern)


def test_phases_order_whatever_the_order_of_adding() -> None:
    kinds = [make(f"In{phase.title()}", phase=phase) for phase in PHASES]
    wanted = ["InSpawn", "InPrepare", "InRates", "InMove", "InConstrain", "InObserve"]
    assert names(*kinds) == wanted
    assert names(*reversed(kinds)) == wanted


def test_unrelated_systems_keep_the_order_of_adding() -> None:
    kinds = [make(f"Free{k}") for k in range(6)]
    for order in (kinds, kinds[::-1], kinds[3:] + kinds[:3]):
        assert names(*order) == [kind.__name__ for kind in order]


def test_derived_tables_are_written_added_to_then_read() -> None:
    write = make("Write", writes=(Excess,), phase="constrain")
    add = make("Add", adds=(Excess,), phase="constrain")
    add_too = make("AddToo", adds=(Excess,), phase="constrain")
    read = make("Read", reads=(Excess,), phase="constrain")
    for order in itertools.permutations((write, add, add_too, read)):
        got = names(*order)
        assert got[0] == "Write"
        assert got[-1] == "Read"
        # Adders need no order among themselves: they stay as added.
        assert got[1:3] == [kind.__name__ for kind in order if kind in (add, add_too)]


def test_who_reads_and_adds_a_rate_comes_after_those_who_only_add() -> None:
    wind = make("Blow", adds=(ef.Velocity,), phase="rates")
    brake = make("Brake", reads=(ef.Velocity,), adds=(ef.Velocity,), phase="rates")
    assert names(brake, wind) == ["Blow", "Brake"]
    second = make("Brake2", reads=(ef.Velocity,), adds=(ef.Velocity,), phase="rates")
    with refused("Brake and Brake2 both access Velocity in the phase 'rates', but nothing says which"):
        names(brake, second)
    ordered = make("Brake3", reads=(ef.Velocity,), adds=(ef.Velocity,), phase="rates", before=("Brake",))
    assert names(brake, ordered, wind) == ["Blow", "Brake3", "Brake"]


def test_before_and_after_by_class_and_by_name() -> None:
    a = make("Alpha", writes=(ef.Position,))
    for other in (a, "Alpha", "System"):
        assert names(make("Zeta", writes=(ef.Position,), before=(other,)), a) == ["Zeta", "Alpha"]
        assert names(a, make("Zeta", writes=(ef.Position,), before=(other,))) == ["Zeta", "Alpha"]
        assert names(make("Zeta", writes=(ef.Position,), after=(other,)), a) == ["Alpha", "Zeta"]
        assert names(a, make("Zeta", writes=(ef.Position,), after=(other,))) == ["Alpha", "Zeta"]
    assert names(make("Zeta", before=a), a) == ["Zeta", "Alpha"]


def test_an_order_named_for_a_class_holds_for_its_subclasses() -> None:
    parent = make("Parent", writes=(ef.Position,))
    child = type("Child", (parent,), {})
    assert names(child, make("Early", writes=(ef.Position,), before=(parent,))) == ["Early", "Child"]


def test_absent_systems_in_before_and_after_are_no_error() -> None:
    assert names(make("Alone", before=("NotThere",), after=("NorThis",))) == ["Alone"]


def test_star_means_all_others_but_gives_way_to_what_they_say_by_name() -> None:
    first = make("First", before=("*",))
    last = make("Last", after=("*",))
    plain = make("Plain")
    assert names(last, plain, first) == ["First", "Plain", "Last"]
    earlier = make("Earlier", before=("First",))
    assert names(last, plain, first, earlier) == ["Earlier", "First", "Plain", "Last"]


def test_a_circle_names_all_its_members() -> None:
    a = make("RoundA", before=("RoundB",))
    b = make("RoundB", before=("RoundC",))
    c = make("RoundC", before=("RoundA",))
    outside = make("Outside", after=("RoundA",))
    with refused("the systems of the phase 'move' are ordered in a circle: ") as caught:
        names(outside, a, b, c)
    circle = re.search(r"circle: (.*);", str(caught.value))
    assert circle is not None
    loop = circle[1].split(" before ")
    assert loop[0] == loop[-1]
    assert set(loop) == {"RoundA", "RoundB", "RoundC"}
    allowed = {("RoundA", "RoundB"), ("RoundB", "RoundC"), ("RoundC", "RoundA")}
    assert set(itertools.pairwise(loop)) == allowed
    assert "remove one before or after" in str(caught.value)


def test_two_that_want_to_be_the_last() -> None:
    last = make("TheLast", after=("*",))
    with refused("there are 2 systems TheLast in the phase 'move', each of which .* keep one of them"):
        names(last, make("Between"), last)


def test_a_circle_with_the_data_flow() -> None:
    write = make("FlowWrite", writes=(Speed,), phase="constrain", after=("FlowRead",))
    read = make("FlowRead", reads=(Speed,), phase="constrain")
    with refused("FlowRead before FlowWrite before FlowRead|FlowWrite before FlowRead before FlowWrite"):
        names(write, read)


@pytest.mark.parametrize(
    ("first", "second"), [("writes", "writes"), ("writes", "reads"), ("reads", "writes")]
)
def test_an_undecided_order_names_both_and_the_fix(first: str, second: str) -> None:
    a, b = make("Undecided1", **{first: (ef.Position,)}), make("Undecided2", **{second: (ef.Position,)})
    with refused(
        "Undecided1 and Undecided2 both access Position in the phase 'move', but nothing says which of "
        r"them runs first; give one of them before or after, for example Undecided2.after = \(Undecided1,\)"
    ):
        names(a, b)
    b.after = (a,)
    assert names(b, a) == ["Undecided1", "Undecided2"]


def test_an_order_may_be_decided_through_a_third_system() -> None:
    a = make("Chain1", writes=(ef.Position,))
    b = make("Chain2", after=("Chain1",))
    c = make("Chain3", writes=(ef.Position,), after=("Chain2",))
    assert names(c, b, a) == ["Chain1", "Chain2", "Chain3"]


def test_readers_need_no_order() -> None:
    readers = [make(f"Reader{k}", reads=(ef.Position, ef.Age)) for k in range(3)]
    assert names(*readers) == ["Reader0", "Reader1", "Reader2"]


def test_two_that_would_do_the_same_twice() -> None:
    """They only add to rates, so tables allow it; with two tables of `thermal` heat spread twice as fast."""
    with refused("there are two systems ThermalSystem, which would do the same twice; keep one of them"):
        build_schedule([ef.ThermalSystem(), ef.ThermalSystem(species_diffusivity=1e-3)])


def test_two_of_one_kind_that_write_the_same() -> None:
    kind = make("Twin", writes=(ef.Position,))
    with refused("there are two systems Twin, and both access Position; keep one of them"):
        names(kind, kind)


def test_a_derived_table_that_nobody_fills() -> None:
    with refused("Wanting reads Speed, which no system writes before it; add a system that writes Speed$"):
        names(make("Wanting", reads=(Speed,)))
    with refused("reads VelocityGradient, .*; VelocitySystem would, but its parameters leave it out$"):
        build_schedule([ef.PartitionSystem(), ef.VelocitySystem(gradient=False), ef.StretchSystem()])


def test_a_derived_table_that_is_filled_too_late() -> None:
    late = make("LateWriter", writes=(Speed,), phase="observe")
    with refused(r"reads Speed, .* earlier \(LateWriter does so only in the phase 'observe'\)"):
        names(make("Impatient", reads=(Speed,), phase="move"), late)
    assert names(make("Patient", reads=(Speed,), phase="observe"), late) == ["LateWriter", "Patient"]


def test_state_may_be_read_without_a_writer_and_own_tables_too() -> None:
    assert names(make("Looks", reads=(ef.Position,))) == ["Looks"]
    assert names(make("Own", reads=(Speed,), writes=(Speed,))) == ["Own"]


def test_a_rate_is_zero_without_adders_but_stale_before_the_rates() -> None:
    assert names(make("AfterRates", reads=(ef.Velocity,), phase="move")) == ["AfterRates"]
    adder = make("LaterAdder", adds=(ef.Velocity,), phase="rates")
    for phase in ("spawn", "prepare"):
        with refused("TooEarly reads Velocity, which no system writes before it"):
            names(make("TooEarly", reads=(ef.Velocity,), phase=phase), adder)


@pytest.mark.parametrize("phase", ["spawn", "move", "constrain", "observe"])
def test_adding_to_a_rate_where_it_is_lost(phase: str) -> None:
    with refused(
        f"Lost changes the rate Velocity in the phase '{phase}', where it has no effect; "
        "set Lost.phase = 'rates'"
    ):
        names(make("Lost", adds=(ef.Velocity,), phase=phase))


@pytest.mark.parametrize("phase", ["prepare", "rates"])
def test_adding_to_a_rate_where_it_counts(phase: str) -> None:
    assert names(make("Counts", adds=(ef.Velocity,), phase=phase)) == ["Counts"]


@pytest.mark.parametrize("listed", ["before", "after"])
def test_before_and_after_order_one_phase_only(listed: str) -> None:
    other = make("Elsewhere", phase="observe")
    with refused(
        f"Mover.{listed} names Elsewhere, which runs in the phase 'observe', not 'move'; before and after"
    ):
        names(make("Mover", **{listed: (other,)}), other)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (
            {"phase": "later"},
            "Bad.phase is 'later'; the phases are spawn, prepare, rates, move, constrain, observe",
        ),
        ({"reads": (int,)}, "Bad.reads holds <class 'int'>; component classes are allowed"),
        ({"writes": "Position"}, "Bad.writes holds 'Position'; component classes are allowed"),
        ({"before": (3,)}, "Bad.before holds 3; system classes or their names are allowed"),
        ({"after": (ef.Position,)}, "Bad.after holds .*Position.*; system classes or their names"),
    ],
)
def test_bad_declarations_are_refused_with_the_class(declared: dict[str, Any], words: str) -> None:
    with refused(words):
        make("Bad", **declared)


def test_a_single_component_or_name_needs_no_tuple() -> None:
    kind = make("Single", reads=ef.Position, before="Other")
    assert kind.reads == (ef.Position,)
    assert kind.before == ("Other",)


def test_the_schedule_prints_as_a_table() -> None:
    world = ef.World()
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]))
    world.add_system(make("Sight", reads=(ef.Position,), phase="observe")())
    world.add_system(ef.AdvectionSystem())
    world.add_system(ef.WindSystem(velocity=(1.0, 0.0, 0.0)))
    lines = str(world.schedule).splitlines()
    assert lines[0].split() == ["phase", "system", "reads", "writes", "last", "ms"]
    assert [line.split()[:2] for line in lines[2:]] == [
        ["rates", "WindSystem"],
        ["move", "AdvectionSystem"],
        ["observe", "Sight"],
    ]
    assert "+Velocity" in lines[2]
    assert "every state with a rate" in lines[3]
    assert lines[4].split()[2:4] == ["Position", "-"]


def test_systems_of_one_kind_keep_their_own_timings() -> None:
    world = ef.World()
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]))
    for _ in range(2):
        world.add_system(ef.WindSystem(velocity=(1.0, 0.0, 0.0)))
    world.add_system(ef.AdvectionSystem())
    world.step(3)
    before = {name: timing.calls for name, timing in world.timings().items()}
    assert list(before) == ["WindSystem", "WindSystem 2", "AdvectionSystem"]
    world.step(3)
    # rk2, the default, has two stages a tick.
    assert [timing.calls - before[name] for name, timing in world.timings().items()] == [6, 6, 6]
