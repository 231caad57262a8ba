"""The guard: who broke the state, the state put back, and undeclared access in debug worlds."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array, Component, column
from ecs_fluid.errors import ComponentError, DivergedError, RecipeError, ScheduleError
from ecs_fluid.system import System


class Trace(Component, derived=True, given=(ef.Position,)):
    """A derived table."""

    t: Array = column("m", shape=(3,))


class Tally(Component, per_row=False):
    """One number for an entity."""

    total: Array = column("1")


def acting(title: str, action: Any, **declared: Any) -> System:
    """A system whose process is `action(self)`."""
    return type(title, (System,), {"process": lambda self, dt: action(self), **declared})()


def breaks_at(tick: int, value: float, kind: type[Component] = ef.Position) -> Any:
    def action(system: System) -> None:
        if system.world.tick == tick:
            for (table,) in system.query(kind):
                next(iter(table.items()))[1][-1] = value

    return action


def world_of(debug: bool = True, **options: Any) -> ef.World:
    world = ef.World(dt=0.25, integrator="rk3", debug=debug, **options)
    world.spawn("a", ef.Position(np.arange(12.0).reshape(4, 3)), ef.Age)
    world.add_system(ef.WindSystem(velocity=(1.0, 0.5, 0.25)))
    world.add_system(ef.AdvectionSystem())
    world.add_system(ef.LifetimeSystem())
    source = {"name": "source", "into": "a", "rate": 8.0, "spread": (1.0, 1.0, 1.0)}
    world.add_system(ef.EmissionSystem(emitters=[source]))
    return world


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("phase", "kind", "listed"),
    [
        ("spawn", ef.Position, "writes"),
        ("prepare", ef.Position, "writes"),
        ("rates", ef.Velocity, "adds"),
        ("move", ef.Position, "writes"),
        ("constrain", ef.Age, "writes"),
        ("observe", ef.Age, "writes"),
    ],
)
def test_the_culprit_is_named_and_the_state_is_back(
    debug: bool, value: float, phase: str, kind: type[Component], listed: str
) -> None:
    world = world_of(debug)
    declared = {"phase": phase, listed: (kind,), "after": ("*",)}
    # Observers run when the clock has moved on.
    world.add_system(acting("Culprit", breaks_at(4 if phase == "observe" else 3, value, kind), **declared))
    world.step(3)
    before, rows = world.state_hash(), len(world["a"])
    label = next(iter(kind.columns.values())).label
    with pytest.raises(
        DivergedError, match=rf"tick 4 \(t = 0.75 s\): Culprit made entity 'a': {label} row \d+"
    ):
        world.step()
    assert (world.state_hash(), world.tick, len(world["a"])) == (before, 3, rows)
    # Nothing was repaired, so it happens again, from the same state.
    with pytest.raises(DivergedError, match="Culprit"):
        world.step()
    assert world.state_hash() == before


def test_a_world_that_was_put_back_goes_on_as_if_nothing_had_happened() -> None:
    world, straight = world_of(), world_of()
    fuse = [True]

    def action(system: System) -> None:
        if system.world.tick == 2 and fuse:
            fuse.clear()
            raise RuntimeError("once")

    world.add_system(acting("Once", action, phase="constrain"))
    world.step(2)
    told = r"^process of .*:Once fails: RuntimeError: once \(line \d+ of .*test_guard.py\)$"
    with pytest.raises(RecipeError, match=told) as error:
        world.step()
    assert isinstance(error.value.__cause__, RuntimeError)
    world.step(3)
    straight.step(5)
    assert world.state_hash() == straight.state_hash()


@pytest.mark.parametrize("phase", ["spawn", "prepare", "rates", "move", "constrain"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_inside_a_tick_puts_the_state_back(phase: str, error: type[BaseException]) -> None:
    world = world_of()

    def action(system: System) -> None:
        for (position,) in system.query(ef.Position):
            position.x += 1.0
        if system.world.stage.last:
            system.world["a"].spawn(ef.Position([[9.0, 9.0, 9.0]]))
        system.world["a"].kill([0])
        if system.world.tick == 2:
            raise error("no")

    world.add_system(acting("Fails", action, phase=phase, writes=(ef.Position,), after=("*",)))
    world.step(2)
    before = world.state_hash()
    with pytest.raises(RecipeError if error is ValueError else error, match="no"):
        world.step()
    assert (world.state_hash(), world.tick, world.time) == (before, 2, 0.5)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SystemExit(), "SystemExit"),
        (SystemExit(3), "SystemExit: 3"),
        (RecursionError("deep"), "Recurs.*: deep"),
    ],
)
def test_a_system_that_ends_the_program_or_calls_itself_is_told(error: BaseException, told: str) -> None:
    """An exit ended a run with its own code, 0 among them, and no word."""
    world = world_of()

    def action(system: System) -> None:
        raise error

    world.add_system(acting("Quits", action, phase="move"))
    with pytest.raises(
        RecipeError, match=rf"^process of .*:Quits fails: {told}.* \(line \d+ of .*test_guard.py\)$"
    ):
        world.step()
    assert world.tick == 0


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (None, "returns None; a list"),
        ("text", "returns 'text'; a list"),
        (3, "fails: TypeE"),
    ],
)
def test_a_lint_that_fails_or_says_nothing_readable_is_told(said: object, told: str) -> None:
    """It was a traceback, of `validate` too."""
    world = world_of()

    class Doubtful(System):
        """Its doubts are none."""

        phase = "observe"

        def process(self, dt: float) -> None:
            pass

        def lint(self, world: ef.World) -> Any:
            return [*said] if said == 3 else said  # type: ignore[misc]

    world.add_system(Doubtful())
    with pytest.raises(RecipeError, match=rf"^lint of .*Doubtful {told}"):
        world.lint()


def test_a_system_that_stumbles_over_nan_does_not_hide_who_made_it() -> None:
    """Stumbling is in the second stage, over what another system did in the first."""
    world = world_of()

    def stumbles(system: System) -> None:
        for (position,) in system.query(ef.Position):
            int(position.x.max())  # a ValueError

    slow = breaks_at(1, np.nan, ef.Velocity)
    world.add_system(acting("Slow", slow, phase="rates", adds=(ef.Velocity,)))
    world.add_system(acting("Stumbles", stumbles, phase="prepare", reads=(ef.Position,)))
    world.step()
    before = world.state_hash()
    with pytest.raises(DivergedError, match=r"Slow made entity 'a'.* non-finite.*; check what it computes"):
        world.step()
    assert (world.state_hash(), world.tick) == (before, 1)


def test_what_fails_before_the_first_tick_is_told() -> None:
    class Unready(System):
        def added(self, world: ef.World) -> None:
            raise KeyError("rho")

        def process(self, dt: float) -> None: ...

    class Timeless(System):
        def process(self) -> None: ...  # type: ignore[override]

    with pytest.raises(RecipeError, match=r"^added of .*Unready fails: KeyError: 'rho' \(line \d+ of "):
        world_of().add_system(Unready())
    with pytest.raises(ScheduleError, match=r"^Timeless needs a method process\(self, dt\)$"):
        world_of().add_system(Timeless())


def test_an_exception_in_an_observer_leaves_the_finished_tick() -> None:
    """The state is whole when observers run, and writers before it have stored this tick already."""
    world, straight = world_of(), world_of()

    def action(system: System) -> None:
        system.world["a"].kill([0])
        if system.world.tick == 1:
            raise ValueError("disk full")

    world.add_system(acting("Watcher", action, phase="observe"))
    with pytest.raises(RecipeError, match=r"process of .*:Watcher fails: ValueError: disk full"):
        world.step()
    straight.step()
    assert world.tick == 1
    assert world.state_hash() == straight.state_hash()


def test_what_was_broken_between_two_ticks_is_not_blamed_on_a_system() -> None:
    world = world_of()
    world.step()
    world["a"][ef.Position].x[2, 1] = np.nan
    with pytest.raises(
        DivergedError, match=r"Position.x row 2 was not finite before the tick began; no system"
    ):
        world.step()


def test_one_number_of_an_entity_is_guarded_too() -> None:
    world = world_of()
    world.spawn("sum", Tally(1.0))

    def action(system: System) -> None:
        for (tally,) in system.query(Tally):
            tally.total = tally.total * np.float32(1e30)

    world.add_system(acting("Grows", action, writes=(Tally,)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        world.step()
        with pytest.raises(DivergedError, match=r"tick 2 .* Grows made entity 'sum': Tally.total row 0"):
            world.step()
    assert world["sum"][Tally].total.shape == ()
    assert world["sum"][Tally].total == np.float32(1e30)


def test_large_finite_numbers_pass_without_a_word() -> None:
    """Their sum overflows in float32, which must neither stop the run nor warn."""
    world = ef.World(dt=0.1, debug=True)
    world.spawn("a", ef.Position(np.full((4, 3), 3e38)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        world.step(2)
    assert (world["a"][ef.Position].x == np.float32(3e38)).all()


def test_a_huge_step_is_stopped_with_words() -> None:
    world = ef.World(dt=1e30, debug=True)
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]))
    world.add_system(ef.WindSystem(velocity=(1e9, 0.0, 0.0)))
    world.add_system(ef.AdvectionSystem())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(
            DivergedError, match=r"AdvectionSystem made entity 'a': Position.x row 0 .*smaller dt"
        ):
            world.step()


@pytest.mark.parametrize("there", [False, True])
def test_a_divergence_asks_for_no_systems_that_are_there(there: bool) -> None:
    """A stove that ran away with both of them ran on with an eddy viscosity 2.5 times as large."""
    world = ef.World(dt=1e30, integrator="euler")
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]), ef.Strength([[0.0, 0.0, 0.0]]))
    world.add_systems([ef.WindSystem(velocity=(1e9, 0.0, 0.0)), ef.AdvectionSystem()])
    if there:
        world.add_systems([ef.StretchSystem(), ef.ReformulationSystem(), ef.SubfilterSystem()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DivergedError, match="higher viscosity") as error:
            world.step()
    assert ("reformulation and subfilter" in str(error.value)) is not there


@pytest.mark.parametrize(("method", "told"), [("pse", True), ("core_spreading", False)])
def test_a_divergence_of_what_exchanges_tells_of_core_spreading(method: str, told: bool) -> None:
    """Three drops of ink that sink for 4 s ran away at 2.4 s by exchange, at 1.7 s with reformulation and
    subfilter too, whose vortons had drifted to an overlap of 0.3; with core spreading beside both, dt grad u
    is 1.2 at the end, without these 1,000."""
    world = ef.World(dt=1e30, integrator="euler")
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]), ef.Strength([[0.0, 0.0, 0.0]]))
    world.add_systems([ef.WindSystem(velocity=(1e9, 0.0, 0.0)), ef.AdvectionSystem()])
    world.add_systems([ef.DiffusionSystem(method=method, eddy_viscosity=1e-30)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DivergedError, match="reformulation and subfilter together") as error:
            world.step()
    assert ("together with [fluid] diffusion = { method = 'core_spreading' }" in str(error.value)) is told


@pytest.mark.parametrize(("scheme", "told"), [("auto", True), ("none", False)])
def test_a_divergence_behind_bodies_tells_of_stretching(scheme: str, told: bool) -> None:
    """Wakes of a fan and of a crate that drops on a floor ran away by half the rate, and by reformulation and
    subfilter together; without stretching they did not (`docs/bodies.md`, what it is good for)."""
    world = ef.World(dt=1e30, integrator="euler")
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]), ef.Strength([[0.0, 0.0, 0.0]]))
    world.add_systems([ef.WindSystem(velocity=(1e9, 0.0, 0.0)), ef.AdvectionSystem()])
    world.add_systems([ef.StretchSystem(scheme=scheme), ef.BoundarySystem(boundary="panels")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DivergedError, match="use a smaller dt") as error:
            world.step()
    assert ("behind bodies [fluid] stretch = { scheme = 'none' }" in str(error.value)) is told


@pytest.mark.parametrize(
    ("systems", "said"),
    [((), "use a smaller dt"), ((ef.BodySystem(),), "use a smaller dt, or heavier free bodies")],
)
def test_a_divergence_without_vortons_does_not_speak_of_them(
    systems: tuple[ef.System, ...], said: str
) -> None:
    world = ef.World(dt=1e30, integrator="euler")
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]))
    world.add_systems([ef.WindSystem(velocity=(1e9, 0.0, 0.0)), ef.AdvectionSystem(), *systems])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DivergedError, match=f"of that tick; {said}$"):
            world.step()


def test_a_table_attached_by_an_observer_goes_when_the_tick_is_taken_back() -> None:
    world = world_of()

    def attach(system: System) -> None:
        if ef.Species not in system.world["a"]:
            system.world.attach("a", ef.Species)

    def spoil(system: System) -> None:
        for (age,) in system.query(ef.Age):
            age.t[0] = np.nan

    world.add_system(acting("Attaches", attach, phase="observe", may_read=(ef.Species,)))
    world.add_system(acting("Spoils", spoil, phase="observe", writes=(ef.Age,), after=("Attaches",)))
    before = world.state_hash()
    with pytest.raises(DivergedError, match="Spoils"):
        world.step()
    assert world.state_hash() == before
    assert ef.Species not in world["a"]


# ------------------------------------------------------------------ debug worlds


@pytest.mark.parametrize("phase", ["spawn", "prepare", "rates", "move", "constrain", "observe"])
def test_an_undeclared_write_is_caught(phase: str) -> None:
    def action(system: System) -> None:
        for (position,) in system.query(ef.Position):
            position.x[0, 2] += 1.0

    world = world_of()
    world.add_system(acting("Sneaks", action, phase=phase, reads=(ef.Position,)))
    with pytest.raises(
        ScheduleError, match="Sneaks changed Position of entity 'a' without declaring it; add"
    ):
        world.step()
    if phase != "observe":
        assert world.tick == 0
        assert world["a"][ef.Position].x[0, 2] == 2.0


def test_an_undeclared_write_past_the_query_is_caught() -> None:
    def action(system: System) -> None:
        system.world["a"][ef.Age].t[1] = 5.0

    world = world_of()
    world.add_system(acting("Bypasses", action, may_read=(ef.Age,)))
    with pytest.raises(ScheduleError, match="Bypasses changed Age of entity 'a'"):
        world.step()


@pytest.mark.parametrize("listed", ["writes", "adds"])
def test_a_declared_write_is_not_caught(listed: str) -> None:
    def action(system: System) -> None:
        for (age,) in system.query(ef.Age):
            age.t += 1.0

    world = world_of()
    world.add_system(acting("Honest", action, phase="constrain", **{listed: (ef.Age,)}))
    world.step()
    assert world["a"][ef.Age].t[0] == 1.25  # 0.25 s by LifetimeSystem


def test_poison_shows_a_table_that_was_declared_but_not_written() -> None:
    seen = []

    def look(system: System) -> None:
        seen.extend(table.t.copy() for (table,) in system.query(Trace))

    for debug in (True, False):
        world = world_of(debug)
        world.add_system(acting("Forgets", lambda system: None, phase="prepare", writes=(Trace,)))
        world.add_system(acting("Looks", look, phase="constrain", reads=(Trace,)))
        world.step()
    assert np.isnan(seen[0]).all()
    assert (seen[1] == 0.0).all()


def test_poison_that_reaches_the_state_stops_the_tick() -> None:
    def use(system: System) -> None:
        for position, trace in system.query(ef.Position, Trace):
            position.x += trace.t

    world = world_of()
    world.add_system(acting("ForgetsToo", lambda system: None, phase="prepare", writes=(Trace,)))
    world.add_system(acting("Uses", use, phase="constrain", reads=(Trace,), writes=(ef.Position,)))
    # The table that was left poisoned is found before the system that trusted it.
    with pytest.raises(DivergedError, match=r"ForgetsToo made entity 'a': Trace.t row 0"):
        world.step()


def test_debug_changes_no_bit_of_the_result() -> None:
    worlds = [world_of(debug) for debug in (True, False)]
    for world in worlds:
        world.step(4)
    assert worlds[0].state_hash() == worlds[1].state_hash()


def test_components_are_checked_in_systems_too() -> None:
    def action(system: System) -> None:
        for (position,) in system.query(ef.Position):
            position.x = position.x[:1]

    world = world_of()
    world.add_system(acting("Cuts", action, writes=(ef.Position,), phase="constrain"))
    with pytest.raises(ComponentError, match=r"Position.x has 1 rows, but this Position has 5"):
        world.step()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("column", ["Position.x", "Strength.alpha", "CoreRadius.sigma"])
@pytest.mark.parametrize("ticks", [0, 1])
def test_what_is_not_finite_is_named_whatever_is_asked(
    value: float, column: str, ticks: int, tmp_path: Path
) -> None:
    """Also before the first tick, whose lint would stumble over it first."""
    world = ef.load("vortex_ring", "entity.1.per_cell=1")
    world.step(ticks)
    world["ring"].columns()[column][3] = value
    asked: list[Any] = [
        world.step, world.lint, world.diagnostics, world.evaluate,
        lambda: world.velocity([[0.0, 0.0, 1.0]]), lambda: world.save(tmp_path / "refused.npz"),
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(DivergedError, match=rf"tick {ticks + 1} .*'ring': {column} row 3 was not finite"):
            ask()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("column", ["Position.x", "Velocity.u"])
def test_a_column_that_nobody_may_write_is_named(column: str) -> None:
    world = world_of(debug=False)
    world.step()
    emission = world.system(ef.EmissionSystem)
    assert emission is not None
    emission.emitters = []  # new rows come into columns that are made anew
    before = world.state_hash()
    array = world["a"].columns()[column]
    array.setflags(write=False)
    with pytest.raises(ComponentError, match=rf"entity 'a': {column} is read-only, .*setflags\(write=True\)"):
        world.step()
    assert world.state_hash() == before
    array.setflags(write=True)
    world.step()
    assert world.tick == 2
