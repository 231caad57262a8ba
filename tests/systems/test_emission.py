"""Emitters: how many, where, and the same every time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import ecs_fluid as ef
from ecs_fluid.errors import ComponentError, FluidError, RecipeError
from ecs_fluid.systems.shared.births import births as born
from tests.resuming import resumed


def world_of(*emitters: dict[str, Any], dt: float = 0.1, seed: int = 1) -> ef.World:
    """A world of empty populations with the emitters, all into `a` unless they say otherwise."""
    world = ef.World(dt=dt, precision="double", debug=True, seed=seed)
    world.spawn("a", ef.Position)
    world.spawn("b", ef.Position)
    world.spawn("vortons", ef.Position, ef.Strength, ef.CoreRadius, ef.Volume)
    world.spawn("sparks", ef.Position, ef.InertialVelocity, ef.Age)
    if emitters:
        world.add_system(ef.EmissionSystem(emitters=[{"into": "a", **emitter} for emitter in emitters]))
    return world


def births(world: ef.World, ticks: int) -> list[int]:
    counts = []
    for _ in range(ticks):
        before = len(world["a"])
        world.step()
        counts.append(len(world["a"]) - before)
    return counts


def test_whole_particles_per_tick() -> None:
    """60 1/s at 1/30 s is 2 a tick, although 1/30 is not a binary number."""
    assert births(world_of({"name": "e", "rate": 60.0}, dt=1 / 30), 300) == [2] * 300


def test_the_fraction_is_carried() -> None:
    assert births(world_of({"name": "e", "rate": 25.0}), 6) == [2, 3, 2, 3, 2, 3]
    assert births(world_of({"name": "e", "rate": 3.0}), 11) == [0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0]


@given(st.floats(0.0, 500.0), st.sampled_from([0.01, 0.1, 1 / 30, 1 / 7]))
def test_the_total_is_the_whole_part_of_rate_times_time(rate: float, dt: float) -> None:
    world = world_of({"name": "e", "rate": rate}, dt=dt)
    world.step(10)
    exact = rate * 10 * dt
    # A total within a billionth of a whole number counts as that number.
    assert len(world["a"]) in {int(exact * (1 - 1e-12)), int(exact * (1 + 1e-12) + 1e-9)}


def test_no_drift_in_long_runs() -> None:
    """A fraction kept as float32 would lose a particle in some ten million; the count is of the total."""
    for ticks in (3_000_000, 3_000_001, 3_000_002, 3_000_003):
        assert born(10.0, 0.0, None, ticks / 30, ticks / 30)[0] == ticks // 3


@pytest.mark.parametrize("dt", [0.1, 0.05, 0.3])
def test_a_keyed_rate_gives_its_integral_whatever_the_step(dt: float) -> None:
    """From 0 to 60 1/s in 1.5 s, then constant: 45 by 1.5 s, 135 by 3 s; exact between whole particles."""
    world = world_of({"name": "e", "rate": {"keys": [[0.0, 0.0], [1.5, 60.0]]}}, dt=dt)
    world.step(round(1.5 / dt))
    assert len(world["a"]) == 45
    world.step(round(1.5 / dt))
    assert len(world["a"]) == 135


def test_a_rate_keyed_in_steps() -> None:
    keyed = {"keys": [[0.0, 10.0], [0.25, 100.0], [0.5, 0.0]], "between": "step"}
    # Tick 3 spans 0.2 to 0.3 s: 0.05 s at 10 and 0.05 s at 100 1/s; totals 1, 2, 7.5, 17.5, 27.5.
    assert births(world_of({"name": "e", "rate": keyed}), 7) == [1, 1, 5, 10, 10, 0, 0]


def test_start_and_stop_within_a_tick() -> None:
    """From 0.25 to 0.58 s at 100 1/s: 5 in the third tick, 10, 10, and 8 in the sixth."""
    world = world_of({"name": "e", "rate": 100.0, "start": 0.25, "stop": 0.58})
    assert births(world, 8) == [0, 0, 5, 10, 10, 8, 0, 0]


def test_limit() -> None:
    world = world_of({"name": "e", "rate": 30.0, "limit": 7})
    assert births(world, 5) == [3, 3, 1, 0, 0]
    assert world["e"][ef.Emission].emitted.tolist() == [7]
    # The limit is on what was given off, not on what is there.
    world["a"].kill([0, 1])
    assert births(world, 3) == [0, 0, 0]


def test_a_rate_of_nothing() -> None:
    assert births(world_of({"name": "e", "rate": 0.0}), 5) == [0] * 5


def test_an_emitter_that_joins_late_makes_up_for_nothing() -> None:
    world = world_of()
    world.step(10)
    world.add_system(ef.EmissionSystem(emitters=[{"name": "late", "into": "a", "rate": 20.0}]))
    assert births(world, 3) == [2, 2, 2]


FIRST = {"name": "first", "rate": 70.0, "spread": (1.0, 2.0, 3.0), "center": (5.0, 0.0, 0.0)}
SECOND = {"name": "second", "rate": 45.0, "spread": (1.0, 1.0, 1.0), "into": "b"}


def placed(*emitters: dict[str, Any], seed: int = 1, ticks: int = 6) -> bytes:
    world = world_of(*emitters, seed=seed)
    world.step(ticks)
    return world["a"][ef.Position].x.tobytes()


def test_random_numbers_depend_on_seed_and_name_alone() -> None:
    alone = placed(FIRST)
    assert placed(FIRST, SECOND) == alone
    assert placed(SECOND, FIRST) == alone
    assert placed(FIRST, seed=2) != alone
    assert placed({**FIRST, "name": "other"}) != alone


def test_ticks_draw_different_numbers() -> None:
    world = world_of(FIRST)
    world.step(5)
    x = world["a"][ef.Position].x
    assert len(np.unique(x.round(12), axis=0)) == 35


def test_places_fill_the_body_and_nothing_else() -> None:
    """Uniform filling, by second moments: box L^2/12, ball (L/2)^2/5, disc (L/2)^2/4 along an axis.

    With 40,000 particles the variance estimate scatters by sqrt(2/40000) = 0.7 % at most; 3 % is 4 sigma.
    """
    for shape, divisor, height in (("box", 12.0, 4.0), ("sphere", 20.0, 4.0), ("disc", 16.0, 0.0)):
        size = np.array([1.0, 2.0, height])
        emitter = {
            "name": "e",
            "rate": 400_000.0,
            "shape": shape,
            "spread": tuple(size),
            "center": (1, -1, 2),
        }
        world = world_of(emitter)
        world.step()
        x = world["a"][ef.Position].x - np.array([1.0, -1.0, 2.0])
        axes = [0, 1] if shape == "disc" else [0, 1, 2]
        scaled = 2 * x[:, axes] / size[axes]
        if shape == "box":
            assert np.abs(scaled).max() <= 1.0
        else:
            assert np.linalg.norm(scaled, axis=1).max() <= 1.0 + 1e-12
        np.testing.assert_allclose(x[:, axes].var(axis=0), size[axes] ** 2 / divisor, rtol=0.03)
        assert np.abs(x[:, axes].mean(axis=0) / size[axes]).max() < 0.01
        if shape == "disc":
            assert (x[:, 2] == 0.0).all()


def test_a_moving_emitter_leaves_a_streak() -> None:
    """Each particle is born at its own moment of the tick, at the centre of that moment."""
    path = {"keys": [[0.0, [0.0, 0.0, 0.0]], [1.0, [10.0, 0.0, 0.0]]]}
    world = world_of({"name": "e", "rate": 1000.0, "center": path})
    world.step(3)
    x = world["a"][ef.Position].x[:, 0]
    for tick in range(3):
        part = x[100 * tick : 100 * (tick + 1)]
        assert tick <= part.min() < tick + 0.1
        assert tick + 0.9 < part.max() <= tick + 1
    assert (world["a"][ef.Position].x[:, 1:] == 0.0).all()


def test_a_streak_from_a_keyed_body_of_parts() -> None:
    """Its parts carry in turn, and all move alike: the k-th of 1,000 particles a second is born k / 1000 s
    after the start, where the keys have the body then; before, by all parts but the first, where it began."""
    cube = {"shape": "box", "size": [0.1, 0.1, 0.1]}
    parts = [{"shape": cube, "center": [0.1 * k, 0.0, 0.0]} for k in range(3)]
    path = {"keys": [[0.0, [0.0, 0.0, 0.0]], [0.2, [0.2, 0.0, 0.0]], [0.3, [0.4, 0.0, 0.0]]]}
    cart = {"kind": "body", "name": "cart", "shape": {"shape": "compound", "parts": parts}, "center": path}
    tap = {"kind": "emitter", "name": "e", "into": "a", "attached": "cart", "center": [0.0, 1.0, 0.0]}
    settings = {"dt": 0.1, "duration": 1.0, "precision": "double"}
    entities = [{**cart, "motion": "scripted"}, {**tap, "rate": 1000.0}]
    world = ef.load({"world": settings, "entity": entities})
    world.step(3)
    count = np.arange(1, 101)
    expected = np.concatenate([1e-3 * count, 1e-3 * (100 + count), 0.2 + 2e-3 * count])
    np.testing.assert_allclose(np.sort(world["a"][ef.Position].x[:, 0]), expected, atol=1e-12)


def test_vortons_and_sparks_get_what_belongs_to_them() -> None:
    vorton = {"name": "v", "into": "vortons", "rate": 20.0, "core": 0.5, "strength": (1.0, 2.0, 3.0)}
    spark = {"name": "s", "into": "sparks", "rate": 3e4, "velocity": (0, 0, 4), "velocity_spread": (2, 0, 0)}
    world = world_of(vorton, spark)
    world.step()
    vortons, sparks = world["vortons"], world["sparks"]
    np.testing.assert_array_equal(vortons[ef.Strength].alpha, [[1.0, 2.0, 3.0]] * 2)
    np.testing.assert_array_equal(vortons[ef.CoreRadius].sigma, [0.5, 0.5])
    np.testing.assert_allclose(
        vortons[ef.Volume].volume, (0.5 / 1.5) ** 3, rtol=1e-15
    )  # as overlap 1.5 has it
    v = sparks[ef.InertialVelocity].v
    assert (v[:, 1:] == [0.0, 4.0]).all()
    assert np.abs(v[:, 0]).max() <= 1.0  # the full width is 2 m/s
    # A uniform law of width 2 has the variance 1/3; 3000 draws scatter by about 2 %.
    assert v[:, 0].var() == pytest.approx(1 / 3, rel=0.08)
    assert (sparks[ef.Age].t == 0.0).all()


@pytest.mark.parametrize(
    ("emitter", "words"),
    [
        ({"rate": -1.0}, "rate = -1.0; a number from 0 to 1e9 per second is needed"),
        (
            {"rate": {"keys": [[0.0, 1.0], [1.0, -2.0]]}},
            "rate = -2.0; a number from 0 to 1e9 per second is needed",
        ),
        ({"rate": {"keys": [[0.0, [1.0, 2.0, 3.0]]]}}, "keys of a number need one number each"),
        ({"center": {"keys": [[0.0, 1.0]]}}, "keys of a vector need 3 numbers each"),
        ({"start": 2.0, "stop": 1.0}, "stop = 1 s must be after start = 2 s"),
        ({"attached_by": "mean"}, "attached_by = 'mean' needs attached"),
        ({"spread": (1, -1, 1)}, "spread.1 = -1; a number at least 0"),
        ({"core": 0.0}, "core = 0.0; a number at least 1e-06 is needed"),
        ({"shape": "cube"}, "shape = 'cube'; allowed: 'box', 'sphere' or 'disc'"),
        ({"rat": 1.0}, "unknown key 'emitters.0.rat'"),
    ],
)
def test_emitters_that_make_no_sense(emitter: dict[str, Any], words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        world_of({"name": "e", **emitter})


def test_emitters_without_a_place_to_go() -> None:
    for key in ("into", "attached"):
        said = f"EmissionSystem: {key} = 'smok' of 'e': the world has no entity 'smok'; known: a"
        with pytest.raises(FluidError, match=said):
            world_of({"name": "e", key: "smok"})
    with pytest.raises(ComponentError, match="entity 'fluid' has no Position"):
        world_of({"name": "e", "into": "fluid"})


def test_two_emitters_of_one_name() -> None:
    words = "two emitters are called 'e'; every emitter needs its own name"
    with pytest.raises(RecipeError, match=words):
        world_of({"name": "e"}, {"name": "e"})
    world = world_of({"name": "e", "rate": 10.0})
    with pytest.raises(RecipeError, match=words):
        world.add_system(ef.EmissionSystem(emitters=[{"name": "e", "into": "a"}]))
    assert births(world, 2) == [1, 1]


def test_an_emitter_may_be_called_like_its_population() -> None:
    assert births(world_of({"name": "a", "rate": 20.0}), 2) == [2, 2]


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        ({"spread": (0.02, 0.9, 0.0)}, "only 0 along y"),
        ({"center": {"keys": [(0.0, (0, 0, 0)), (1.0, (0, 1, 0))]}}, "only 0 along y"),
        ({"into": "vortons", "strength": (0.0, 1.0, 0.5)}, "only the part along y"),
    ],
)
def test_an_emitter_that_leaves_the_plane_is_named(told: dict[str, Any], rule: str) -> None:
    world = ef.World(dimension=2, plane="xz")
    world.spawn("a", ef.Position)
    world.spawn("vortons", ef.Position, ef.Strength, ef.CoreRadius, ef.Volume)
    emitter = {"name": "e", "into": "a", **told}
    with pytest.raises(RecipeError, match=rf"emitter 'e': .* in the plane xz {rule} is allowed"):
        world.add_system(ef.EmissionSystem(emitters=[emitter]))


def test_an_emitter_without_bounds_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ef.limits(), "memory", 1e7)
    with pytest.raises(
        FluidError, match=r"particles with .* more by emitter 'e' would take .* at most 0.01 GB"
    ):
        world_of({"name": "e", "rate": 9e6}).step()


def test_an_emitter_that_is_changed_between_ticks_gives_off_other_particles() -> None:
    """What was made once for all its particles is made anew, also for components that came later."""
    world = world_of()
    first = {"name": "e", "into": "vortons", "rate": 20.0, "core": 0.2, "fuel": 0.25}
    system = world.add_system(ef.EmissionSystem(emitters=[first]))
    world.step()
    system.emitters = [{**first, "core": 0.3}]
    world.step()
    world.attach("vortons", ef.Species)
    world.step()
    vortons = world["vortons"]
    assert vortons[ef.CoreRadius].sigma.tolist() == [0.2, 0.2, 0.3, 0.3, 0.3, 0.3]
    assert vortons[ef.Species].fuel.tolist() == [0.0, 0.0, 0.0, 0.0, 0.25, 0.25]


@pytest.mark.parametrize(
    ("emitter", "column"), [({"volume": 1e-60}, "Volume.volume"), ({"density": 1e-60}, "Density.rho")]
)
def test_values_that_the_precision_cannot_hold_are_refused(emitter: dict[str, Any], column: str) -> None:
    """1e-60 is a number above 0, in single precision it is 0; the particle is refused as it is queued."""
    world = ef.World(dt=0.1)
    world.spawn("a", ef.Position, ef.CoreRadius, ef.Volume, ef.Density)
    world.add_system(ef.EmissionSystem(emitters=[{"name": "e", "into": "a", "rate": 10.0, **emitter}]))
    with pytest.raises(ComponentError, match=rf"'a': {column} row 0 is 0.0; .* above 0 .*rounded to float32"):
        world.step()
    assert len(world["a"]) == 0


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("Temperature", "emitter 'jet' sets Temperature by its own parameters; use those"),
        ("Age", "entity 'sparks' has no Age"),
    ],
)
def test_further_components_are_checked_when_the_emitter_joins(kind: str, words: str) -> None:
    column = {"Temperature": "T", "Age": "t"}[kind]
    world = ef.World()
    world.spawn("sparks", ef.Position(np.empty((0, 3))), ef.Temperature(np.empty(0)))
    further = {"kind": kind, column: 3.0}
    emitter = {"name": "jet", "into": "sparks", "temperature": 400.0, "component": [further]}
    with pytest.raises(FluidError, match=words):
        world.add_system(ef.EmissionSystem(emitters=[emitter]))


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (-1.0, "emitter 'e': Age.t row 0 is -1.0; values of at least 0 s are allowed"),
        (float("nan"), "Age.t row 0 is nan; finite numbers are allowed"),
        ([1.0], "Age.*t has length 1, but .* one value for all rows"),
        ([], "Age.*t has length 0, but .* one value for all rows"),
    ],
)
def test_values_of_further_components_are_checked_when_the_emitter_joins(age: Any, words: str) -> None:
    """Not when the first particle is born, in the midst of a run."""
    emitter = {"name": "e", "into": "sparks", "component": [{"kind": "Age", "t": age}]}
    with pytest.raises(FluidError, match=words):
        world_of(emitter)


@pytest.mark.parametrize("told", [{}, {"t": 0.25}])
def test_ages_are_exact_in_single_precision_however_late(told: dict[str, float]) -> None:
    """At 1e5 s float32 knows the time to 8 ms: ages are differences of float64, and none is below 0."""
    world = ef.World(dt=0.1, precision="single")
    world.spawn("a", ef.Position, ef.Age)
    emitter = {"name": "e", "into": "a", "rate": 50.0, "component": [{"kind": "Age", **told}]}
    world.add_systems([ef.EmissionSystem(emitters=[{**emitter, "start": 1e5}]), ef.LifetimeSystem()])
    world.tick = 1_000_000
    world.step(2)
    ages = np.arange(9, -1, -1) / 50 + told.get("t", 0.0)
    np.testing.assert_allclose(world["a"][ef.Age].t, ages, rtol=0, atol=1e-7)
    assert world["a"][ef.Age].t.min() >= told.get("t", 0.0)


RING = {"kind": "vortex_ring", "radius": 0.2, "core": 0.05, "spacing": 0.025, "circulation": 0.3}


AXIS = [1.0, 0.0, 0.0]


def test_puffs_give_circulation_and_impulse() -> None:
    """A ring has the circulation 0.3 m^2/s, the impulse pi 0.3 0.2^2 m^4/s along its axis, and no strength.

    Loops of straight pieces have both exactly (alpha = Gamma R dphi, a distance R from the axis). One each
    0.4 s, when a tick ends, from an orifice that moves along y by 1 m/s, and two tracers with it.
    """
    orifice = {"kind": "emitter", "rate": 2.5, "center": {"keys": [[0.0, [0, 0, 0]], [10.0, [0, 10.0, 0]]]}}
    tracers = {"kind": "tracers", "points": [[0.0, 0.2, 0.0], [0.0, -0.2, 0.0]]}
    jet = {**orifice, "name": "jet", "into": "rings", "puff": {**RING, "axis": AXIS}}
    dye = {**orifice, "name": "dye", "into": "smoke", "puff": tracers}
    world = ef.load({"world": {"dt": 0.1, "precision": "double"}, "entity": [jet, dye]})
    world.step(4)
    n = len(world["rings"])
    for k in range(1, 4):
        rings = world["rings"]
        assert len(rings) == k * n and len(world["smoke"]) == 2 * k
        x, alpha = rings[ef.Position].x[-n:], rings[ef.Strength].alpha[-n:]
        arm = x - [0.0, 0.4 * k, 0.0]
        assert np.linalg.norm(arm, axis=1) == pytest.approx(0.2, abs=1e-12)
        turning = np.cross(AXIS, arm / 0.2)
        assert (alpha * turning).sum() / (2 * np.pi * 0.2) == pytest.approx(0.3, rel=1e-12)
        impulse = 0.5 * np.cross(x, alpha).sum(axis=0)
        assert impulse == pytest.approx([np.pi * 0.3 * 0.2**2, 0.0, 0.0], abs=1e-12)
        assert np.abs(alpha.sum(axis=0)).max() < 1e-15
        assert (rings[ef.CoreRadius].sigma[-n:] == 0.05).all()
        assert world["smoke"][ef.Position].x[-2:, 1].tolist() == pytest.approx([0.4 * k + 0.2, 0.4 * k - 0.2])
        assert world["jet"][ef.Emission].emitted.tolist() == [k]
        world.step(4)


def test_a_jet_of_rings_keeps_the_impulse_that_it_was_given_and_resumes(tmp_path: Path) -> None:
    """Rings carry each other along, and keep their impulse (to 1e-5, by steps); same bits when resumed."""
    orifice = {"kind": "emitter", "name": "jet", "into": "rings", "rate": 1.0, "puff": {**RING, "axis": AXIS}}
    world = ef.load({"world": {"dt": 0.02, "precision": "double"}, "entity": [orifice]})
    world.step(110)
    resumed(world, tmp_path, 50)
    given = 3 * np.pi * 0.3 * 0.2**2
    assert world.diagnostics()["impulse"] == pytest.approx([given, 0.0, 0.0], abs=1e-4 * given)


def test_random_puffs_differ_and_others_do_not(tmp_path: Path) -> None:
    """Each has random numbers of its own, the first those of an entity of its name; same when resumed."""
    cloud = {
        "kind": "tracers",
        "box": {"low": [0, 0, 0], "high": [1, 1, 1]},
        "cell": 0.5,
        "jitter": 1.0,
        "per_cell": 1,
    }

    def world_with(jitter: float) -> ef.World:
        emitter = {"kind": "emitter", "name": "gun", "into": "dust", "rate": 1.0}
        puff = {**cloud, "jitter": jitter}
        return ef.load({"world": {"dt": 0.8, "precision": "double"}, "entity": [{**emitter, "puff": puff}]})

    world = world_with(1.0)
    world.step(3)
    resumed(world, tmp_path, 2)
    puffs = world["dust"][ef.Position].x.reshape(4, 8, 3)
    assert len({puff.tobytes() for puff in puffs}) == 4
    alone = ef.load({"world": {"precision": "double"}, "entity": [{**cloud, "name": "gun"}]})
    np.testing.assert_array_equal(puffs[0], alone["gun"][ef.Position].x)
    plain = world_with(0.0)
    plain.step(5)
    assert len({puff.tobytes() for puff in plain["dust"][ef.Position].x.reshape(4, 8, 3)}) == 1


ALONE = """
import sys
import ecs_fluid as ef
world = ef.World(dt=0.5)
world.spawn("rings", ef.Position, ef.Strength, ef.CoreRadius, ef.Volume)
ring = {"kind": "vortex_ring", "radius": 0.2, "core": 0.05, "spacing": 0.05}
emitter = ef.Emitter(name="jet", into="rings", rate=2.0, puff=ring)
assert "ecs_fluid.worlds" not in sys.modules, "this tests nothing"
world.add_system(ef.EmissionSystem(emitters=[emitter]))
world.step()
print(len(world["rings"]))
"""


@pytest.mark.parametrize(("z", "lost"), [(0.0, 25), (0.25, 0), (-0.5, 51)])
def test_a_puff_that_a_body_cuts_open_is_told(z: float, lost: int) -> None:
    """A ring of 0.2 m about x at a height z over a floor: half of its 51 vortons, none or all are in that.

    What is told is what is missing in 6 puffs; the first vorton is at the height of the middle.
    """
    place = {"into": "rings", "center": [0.0, 0.0, z]}
    jet = {"kind": "emitter", "name": "jet", **place, "puff": {**RING, "axis": AXIS}}
    shape = {"shape": "box", "size": [4.0, 4.0, 2.0]}
    floor = {"kind": "body", "name": "floor", "shape": shape, "center": [0, 0, -1.0], "motion": "fixed"}
    world = ef.load({"world": {"dt": 0.1, "precision": "double"}, "entity": [jet, floor]})
    found = [text for text in world.lint() if "leaves a gap in the puff" in text]
    assert [text.split(" particles")[0] for text in found] == [f"EmissionSystem: {lost} of the 51"] * (
        lost > 0
    )
    world.step()
    assert len(world["rings"]) == 6 * (51 - lost)


@pytest.mark.parametrize(
    ("shape", "z", "told"), [("disc", -0.1, 1.0), ("box", 0.0, 0.5), ("sphere", 0.45, 0.0)]
)
def test_an_emitter_in_a_body_is_told(shape: str, z: float, told: float) -> None:
    """Over a floor: a disc in it, a box half of which is, and a ball of 0.5 m of which 0.7 % is; the part
    that is told, of 200 places, is that of 2,000 births that is kept back within four standard deviations."""
    spread = [1.0, 1.0, 0.0 if shape == "disc" else 1.0]
    jet = {"kind": "emitter", "name": "jet", "into": "smoke", "population": "tracers", "rate": 20000.0}
    jet |= {"center": [0.0, 0.0, z], "shape": shape, "spread": spread}
    block = {"shape": "box", "size": [4.0, 4.0, 2.0]}
    floor = {"kind": "body", "name": "floor", "shape": block, "center": [0, 0, -1.0], "motion": "fixed"}
    world = ef.load({"world": {"dt": 0.1, "precision": "double"}, "entity": [jet, floor]})
    found = [text for text in world.lint() if "what is born there is kept back" in text]
    assert len(found) == (told > 0)
    world.step()
    kept = len(world["smoke"]) / 2000
    assert abs(kept - (1 - told)) < 0.05
    if found:
        percent = float(found[0].partition(" %")[0].rpartition(" ")[2])
        assert abs(percent / 100 - (1 - kept)) < 4 * np.sqrt(0.25 / 200)


def test_a_puff_needs_no_import_of_recipes() -> None:
    """The kinds were unknown where nobody had imported `ecs_fluid.worlds`; 2 pi 0.2 / 0.05 is 25.1."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "26\n"), done.stderr


def test_rows_of_a_puff_carry_what_the_emitter_and_the_puff_have() -> None:
    """Ages are those of the moment of birth (0.25 and 0.5 s, with ticks of 0.2 s), for all rows alike."""
    block = {"kind": "fluid_block", "sphere": {"radius": 0.3}, "spacing": 0.1, "temperature": "400 + 10*x"}
    emitter = {"kind": "emitter", "name": "e", "into": "gas", "rate": 4.0, "puff": block, "smoke": 0.1}
    limit = {"kind": "age_limit", "seconds": 9.0, "on": ["gas"]}
    fluid = {"law": "ideal_gas", "velocity": {"solver": "direct"}}
    options = {"dt": 0.2, "precision": "double"}
    world = ef.load({"world": options, "fluid": fluid, "entity": [emitter], "system": [limit]})
    world.step(3)
    gas = world["gas"]
    n = len(gas) // 2
    assert gas[ef.Age].t == pytest.approx(np.repeat([0.35, 0.1], n), abs=1e-6)
    assert gas[ef.Temperature].T[:n].max() > 402.0
    assert gas[ef.Temperature].T[:n].tolist() == gas[ef.Temperature].T[n:].tolist()
    assert (gas[ef.Species].smoke == 0.1).all() and (gas[ef.CoreRadius].sigma > 0.1).all()


@pytest.mark.parametrize("law", ["none", "liquid"])
def test_rows_of_a_puff_are_fluid_at_rest_at_their_own_heights(law: str) -> None:
    """A ring that carries nothing of its own is no heavier or lighter than what is around it, row by row.

    Fluid of 1000 - 2 z kg/m^3: with the density at the ring's middle, its upper half was 1 kg/m^3 too heavy.
    """
    ring = {**RING, "radius": 0.5, "axis": AXIS}
    emitter = {
        "kind": "emitter",
        "name": "e",
        "into": "rings",
        "rate": 10.0,
        "center": [0, 0, 1],
        "puff": ring,
    }
    fluid = {"law": law, "density": 1000.0, "density_profile": [[-5.0, 1010.0], [5.0, 990.0]]}
    options = {"dt": 0.1, "precision": "double"}
    world = ef.load(
        {"world": options, "fluid": fluid, "entity": [emitter], "system": [{"kind": "baroclinic"}]}
    )
    world.step()  # those of the second half of a tick appear at its end, where they are
    z = world["rings"][ef.Position].x[:, 2]
    assert z.max() - z.min() > 0.9
    assert world["rings"][ef.Density].rho == pytest.approx(1000.0 - 2 * z, abs=1e-9)


def test_a_puff_that_tells_its_density_has_the_temperature_that_belongs_to_it() -> None:
    """Liquid of 1000 (1 - 2e-4 (T - 300)) kg/m^3: at 980 it has 400 K, however long, and so have an entity's.

    By the ambient's temperature a puff was as heavy as its surroundings after a tick.
    """
    block = {"kind": "fluid_block", "sphere": {"radius": 0.2}, "spacing": 0.1, "density": 980.0}
    emitter = {"kind": "emitter", "name": "e", "into": "oil", "rate": 10.0, "puff": block}
    fluid = {"law": "liquid", "density": 1000.0, "temperature": 300.0, "expansion": 2e-4}
    table = {"world": {"dt": 0.1, "precision": "double"}, "fluid": fluid, "system": [{"kind": "thermal"}]}
    world = ef.load({**table, "entity": [emitter, {**block, "name": "drop"}]})
    world.step(3)
    for name in ("oil", "drop"):
        T, rho = world[name][ef.Temperature].T, world[name][ef.Density].rho
        assert len(T)
        np.testing.assert_allclose(T, 400.0, rtol=1e-12)
        np.testing.assert_allclose(rho, 980.0, rtol=1e-12)


@pytest.mark.parametrize("told", [{"temperature": 400.0}, {"density": 1.0}, {"smoke": 0.1}])
def test_what_a_puff_carries_is_told_once(told: dict[str, float]) -> None:
    block = {"kind": "fluid_block", "sphere": {"radius": 0.2}, "temperature": 350.0, "fuel": 0.1}
    emitter = {"kind": "emitter", "name": "e", "into": "gas", "puff": block, **told}
    with pytest.raises(RecipeError, match=r"emitter 'e' sets .*, which its puff already determines"):
        ef.load({"fluid": {"law": "ideal_gas"}, "entity": [emitter]})


class Total(ef.Component, per_row=False):
    """A number of all particles of an entity."""

    total: ef.Array = ef.column("1", default=0.0)


TOTAL = {"kind": f"{__name__}:Total"}


@pytest.mark.parametrize(
    ("puff", "more", "words"),
    [
        ({"kind": "vortex_rin"}, {}, "puff of emitter: kind = 'vortex_rin' is not known; did you mean"),
        ({**RING, "raduis": 1.0}, {}, "puff of emitter 'e': unknown key 'raduis'; did you mean 'radius'"),
        ({"kind": "emitter", "into": "b"}, {}, "kind = 'emitter' makes no particles to emit"),
        ({"kind": "body", "shape": {"shape": "ball", "radius": 1.0}}, {}, "kind = 'body' makes no particles"),
        ({**RING, "component": [TOTAL]}, {}, "makes Total, one table for all particles of an entity"),
        (RING, {"core": 0.3}, "core is for single particles, but a puff has its own"),
        (RING, {"population": "vortons"}, "population follows from the puff"),
    ],
)
def test_puffs_that_make_no_sense(puff: dict[str, Any], more: dict[str, Any], words: str) -> None:
    emitter = {"kind": "emitter", "name": "e", "into": "a", "puff": puff, **more}
    with pytest.raises(RecipeError, match=words):
        ef.load({"entity": [emitter]})


def test_an_emitter_on_what_it_makes_is_told() -> None:
    """It gives off nothing; with particles at the start, or another emitter, it does."""
    own, other = {"name": "e", "attached": "a"}, {"name": "f"}
    found = [text for text in world_of(own).lint() if "attached" in text]
    assert found == [
        "EmissionSystem: emitter 'e' is attached to 'a', which is empty and gets particles from this emitter "
        "alone, so it never begins; attach it to something else"
    ]
    assert births(world_of(own), 3) == [0, 0, 0]
    assert not any("attached" in text for text in world_of(own, other).lint())


def test_inertial_particles_that_nothing_moves_are_told() -> None:
    """Snow without a velocity hung in the air; gravity, a wind, vortons, keys and what carries it move it."""
    cloud = {"kind": "emitter", "name": "cloud", "into": "snow", "population": "inertial"}
    keys = {"keys": [[0.0, [0.0, 0.0, 0.0]], [1.0, [1.0, 0.0, 0.0]]]}
    car = {"kind": "body", "name": "car", "shape": {"shape": "ball", "radius": 0.1}}
    wind = {"kind": "wind", "velocity": [1.0, 0.0, 0.0]}
    for emitter, entities, systems, told in (
        ({}, [], [], True),
        ({}, [car], [{"kind": "collision"}], True),
        ({"population": "tracers"}, [], [], False),
        ({"velocity": [0.0, 0.0, -1.0]}, [], [], False),
        ({"velocity_spread": [0.0, 0.0, 1.0]}, [], [], False),
        ({"center": keys}, [], [], False),
        ({"attached": "car", "center": [0.0, 0.0, 0.2]}, [car], [], False),
        ({}, [RING | {"name": "ring"}], [], False),
        ({}, [], [{"kind": "accelerate"}], False),
        ({}, [], [wind], False),
    ):
        world = ef.load({"world": {"dt": 0.01}, "entity": [*entities, cloud | emitter], "system": systems})
        assert any("stay where they are born" in text for text in world.lint()) == told
