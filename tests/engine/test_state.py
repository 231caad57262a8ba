"""State as bits: the hash, checkpoints, and going on exactly."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from docs.generator import programs
from ecs_fluid.component import Array, Component, column
from ecs_fluid.errors import StorageError
from ecs_fluid.io.checkpoint import save_checkpoint
from ecs_fluid.state import packed_world
from ecs_fluid.system import System
from tests.resuming import resumed

OWN_MODULE = '''
"""A user's component and system."""
import ecs_fluid as ef
from ecs_fluid.component import Array, Component, column


class Soot(Component):
    """Grows with a rate of its own."""
    mass: Array = column("kg", default=0.0)
    marks: Array = column("1", kind="int", default=7)


class Factor(Component, per_row=False):
    """One number of the entity."""
    f: Array = column("1")


class SootRate(Component, rate_of=ef.InertialVelocity):
    """A second rate of a shipped state."""
    v: Array = column("m/s^2", shape=(3,))


class Collect(ef.System):
    """Soot is collected on the way, and changes the way."""
    reads = (ef.Position, ef.InertialVelocity, Factor)
    writes = (Soot,)
    adds = (SootRate,)
    phase = "rates"
    pull: float = 0.5

    def process(self, dt):
        (factor,), = self.query(Factor)
        for position, soot, rate in self.query(ef.Position, Soot, SootRate):
            soot.mass += dt * factor.f * abs(position.x[:, 0])
            rate.v -= self.pull * position.x
'''


def rich(seed: int, precision: str, own: Any) -> ef.World:
    """A world with everything whose state could be forgotten."""
    world = ef.World(dt=0.02, seed=seed, precision=precision, integrator="rk3", debug=True)
    draw = np.random.default_rng(5)
    world.spawn(
        "sparks",
        ef.Position(draw.standard_normal((20, 3))),
        ef.InertialVelocity,
        ef.Age,
        ef.Species,
        own.Soot,
    )
    world.spawn("dust", ef.Position(draw.standard_normal((5, 3))), ef.Age)
    world.spawn("settings", own.Factor(0.1))
    world.spawn("nothing", ef.Position, ef.Age)
    world.add_systems(
        [
            ef.AdvectionSystem(),
            ef.WindSystem(velocity={"keys": [[0.0, [1.0, 0.0, 0.0]], [0.3, [0.0, 0.0, 3.0]]]}, on=("dust",)),
            ef.AccelerateSystem(acceleration=(0.0, 0.0, -9.81)),
            ef.AgeLimitSystem(seconds=0.15, on=("sparks",)),
            ef.AgeLimitSystem(seconds=0.1, on=("dust",)),
            ef.EmissionSystem(
                emitters=[
                    {
                        "name": "torch",
                        "into": "sparks",
                        "rate": {"keys": [[0.0, 0.0], [0.5, 333.0]]},
                        "center": {
                            "keys": [[0.0, [0.0, 0.0, 0.0]], [1.0, [0.1, 0.7, 0.3]]],
                            "between": "step",
                        },
                        "spread": (0.2, 0.3, 0.4),
                        "shape": "sphere",
                        "velocity": (0.0, 0.0, 5.0),
                        "velocity_spread": (1.0, 1.0, 1.0),
                        "limit": 60,
                    },
                    {"name": "vent", "into": "dust", "rate": 77.7, "spread": (1, 1, 0), "shape": "disc"},
                ]
            ),
            own.Collect(pull=0.3),
            ef.KillBoxSystem(low=(-2, -2, -2), high=(2, 2, 2), on=("dust",)),
        ]
    )
    return world


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The user's module, imported from the user's folder."""
    import importlib

    (tmp_path / "own_of_the_user.py").write_text(OWN_MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    known, systems = dict(Component.registry), dict(System.registry)
    yield importlib.import_module("own_of_the_user")
    sys.modules.pop("own_of_the_user", None)
    for registry, former in ((Component.registry, known), (System.registry, systems)):
        registry.clear()
        registry.update(former)  # type: ignore[arg-type]


# ------------------------------------------------------------------ the hash


def small() -> ef.World:
    world = ef.World(dt=0.1)
    world.spawn("a", ef.Position(np.arange(6.0).reshape(2, 3)), ef.Age, ef.VelocityHistory)
    world.spawn("b", ef.Emission)
    return world


def test_equal_worlds_have_equal_hashes() -> None:
    assert small().state_hash() == small().state_hash()


def test_every_bit_of_every_column_counts() -> None:
    reference = small().state_hash()
    seen = {reference}
    template = small()
    for name in ("a", "b"):
        for kind in [type(table) for table in tables(template, name)]:
            for label in kind.columns:
                world = small()
                raw = getattr(world[name][kind], label).view(np.uint8).reshape(-1)
                for byte in (0, raw.size - 1):
                    raw[byte] ^= 1
                    seen.add(world.state_hash())
                    raw[byte] ^= 1
                assert world.state_hash() == reference
    # Position 1 column, Age 1, RowId 1, VelocityHistory 4, Emission 1; two flips each.
    assert len(seen) == 1 + 2 * 8


def tables(world: ef.World, name: str) -> list[Component]:
    return [table for kind, table in world[name].tables.items() if not kind.derived]


def test_the_sign_of_zero_counts() -> None:
    world = small()
    before = world.state_hash()
    world["a"][ef.Age].t[0] = -0.0
    assert world.state_hash() != before


def test_clock_step_names_rows_and_ids_count() -> None:
    def ticked() -> ef.World:
        world = small()
        world.step()
        return world

    def other_step() -> ef.World:
        world = ef.World(dt=0.1000001)
        world.spawn("a", ef.Position(np.arange(6.0).reshape(2, 3)), ef.Age, ef.VelocityHistory)
        world.spawn("b", ef.Emission)
        return world

    def renamed() -> ef.World:
        world = ef.World(dt=0.1)
        world.spawn("c", ef.Position(np.arange(6.0).reshape(2, 3)), ef.Age, ef.VelocityHistory)
        world.spawn("b", ef.Emission)
        return world

    def extra_population() -> ef.World:
        world = small()
        world.spawn("empty", ef.Position)
        return world

    def come_and_gone() -> ef.World:
        world = small()
        world["a"].spawn(ef.Position([[0.0, 0.0, 0.0]]))
        world["a"].kill([2])
        return world

    hashes = {
        make().state_hash() for make in (small, ticked, other_step, renamed, extra_population, come_and_gone)
    }
    assert len(hashes) == 6


def test_derived_tables_do_not_count() -> None:
    world, other = small(), small()
    other.add_system(ef.WindSystem(velocity=(1.0, 2.0, 3.0)))
    other.evaluate()
    assert other["a"][ef.Velocity].u[0, 2] == 3.0
    assert world.state_hash() == other.state_hash()


# ------------------------------------------------------------------ checkpoints


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("stop", [0, 1, 9])
def test_resumed_equals_straight_bit_for_bit(own: Any, tmp_path: Path, precision: str, stop: int) -> None:
    straight, first = (rich(3, precision, own) for _ in range(2))
    straight.step(20)
    first.step(stop)
    first.save(tmp_path / "ck.npz")
    resumed = ef.resume(tmp_path / "ck.npz")
    assert resumed.state_hash() == first.state_hash()
    assert (resumed.tick, resumed.time, resumed._next_row_id) == (first.tick, first.time, first._next_row_id)
    resumed.step(20 - stop)
    assert resumed.state_hash() == straight.state_hash()
    # The run had to do something: births, deaths and soot, all of it in the hash.
    assert straight["torch"][ef.Emission].emitted[0] > 10
    assert straight["dust"][ef.RowId].id[0] > 25
    assert straight["sparks"][own.Soot].mass.max() > 0


def test_resumed_again_and_again(own: Any, tmp_path: Path) -> None:
    straight = rich(4, "single", own)
    straight.step(8)
    world = rich(4, "single", own)
    for _ in range(8):
        world.step()
        world.save(tmp_path / "ck.npz")
        world = ef.resume(tmp_path / "ck.npz")
    assert world.state_hash() == straight.state_hash()


def test_a_solver_changed_on_the_way_is_resumed_exactly(tmp_path: Path) -> None:
    """What the hybrid asks of the field grid follows from its parameters, whenever they were set."""
    straight = ef.load("vortex_ring")
    velocity = straight.system(ef.VelocitySystem)
    assert velocity is not None
    straight.step()
    velocity.solver = "hybrid"
    straight.save(tmp_path / "middle.npz")
    resumed = ef.resume(tmp_path / "middle.npz")
    for world in (straight, resumed):
        world.step()
    assert straight.state_hash() == resumed.state_hash()


def test_saving_changes_nothing_and_resume_restores_the_schedule(own: Any, tmp_path: Path) -> None:
    world = rich(1, "single", own)
    world.step(2)
    before = world.state_hash()
    world.save(tmp_path / "ck.npz")
    assert world.state_hash() == before
    resumed = ef.resume(tmp_path / "ck.npz")
    assert [type(s).__name__ for s in resumed.schedule.systems] == [
        type(s).__name__ for s in world.schedule.systems
    ]
    assert resumed.options == world.options
    assert [entity.name for entity in resumed.entities] == [entity.name for entity in world.entities]
    assert packed_world(resumed)[0] == packed_world(world)[0]


def test_in_another_process_with_and_without_the_users_module(own: Any, tmp_path: Path) -> None:
    world = rich(2, "single", own)
    world.step(4)
    world.save(tmp_path / "ck.npz")
    world.step(3)

    def python(code: str) -> subprocess.CompletedProcess[str]:
        return programs.run(programs.written(tmp_path, code), folder=tmp_path)

    go_on = "w = ef.resume('ck.npz'); w.step(3); print(w.state_hash())"
    done = python(f"import ecs_fluid as ef, own_of_the_user; {go_on}")
    assert done.stdout.strip() == world.state_hash(), done.stderr
    missing = python(f"import ecs_fluid as ef; {go_on}")
    assert missing.returncode == 1
    assert re.search(
        r"ck.npz needs the (component 'own_of_the_user:Soot'|system 'own_of_the_user:Collect'), which is not "
        r"loaded; import its module first, .*--allow-code",
        missing.stderr,
    )


def test_a_system_that_is_not_loaded(own: Any, tmp_path: Path) -> None:
    world = ef.World()
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]))
    world.add_system(own.Collect())
    world.save(tmp_path / "ck.npz")
    System.registry.pop("own_of_the_user:Collect")
    with pytest.raises(StorageError, match="needs the system 'own_of_the_user:Collect', which is not loaded"):
        ef.resume(tmp_path / "ck.npz")


def test_checkpoints_of_another_version(tmp_path: Path) -> None:
    """Their classes may have other names by now, so the version is looked at before any of them."""
    world = ef.World()
    meta, arrays = packed_world(world)
    meta["version"] -= 1
    meta["systems"] = [{"class": "ecs_fluid.systems.gone:GoneSystem", "parameters": {}}]
    save_checkpoint(tmp_path / "ck.npz", meta, arrays)
    with pytest.raises(StorageError, match=r"ck.npz was made by another version of ecs_fluid: its state has"):
        ef.resume(tmp_path / "ck.npz")
    meta["version"] += 1
    save_checkpoint(tmp_path / "ck.npz", meta, arrays)
    with pytest.raises(StorageError, match=r"'ecs_fluid.systems.gone:GoneSystem', which this ecs_fluid does"):
        ef.resume(tmp_path / "ck.npz")


def test_a_component_that_has_got_another_column(tmp_path: Path) -> None:
    def define(*names: str) -> type[Component]:
        declared = {name: column("1", default=0.0) for name in names}
        return type("Changing", (Component,), {**declared, "__module__": __name__})

    world = ef.World()
    world.spawn("a", define("old")(np.ones(2)))
    world.save(tmp_path / "ck.npz")
    define("old", "new")
    with pytest.raises(StorageError, match=r"has no column Changing.new of entity 'a'"):
        ef.resume(tmp_path / "ck.npz")
    Component.registry.pop("Changing")


def test_parameters_that_are_not_plain_data(tmp_path: Path) -> None:
    class Calls(System):
        function: Any = None

        def process(self, dt: float) -> None:
            pass

    world = ef.World()
    world.add_system(Calls(function=lambda: 1))
    with pytest.raises(StorageError, match="Calls cannot be saved: a parameter is not plain data"):
        world.save(tmp_path / "ck.npz")
    assert not (tmp_path / "ck.npz").exists()


class Fuel(Component):
    """What a drain takes too much of."""

    left: Array = column("J", minimum=0.0)
    size: Array = column("m", above=0.0)
    shares: Array = column("1", kind="int", maximum=1)


class Drain(System):
    """Takes 0.6 a tick, whether it is there or not."""

    writes = (Fuel,)
    phase = "move"

    def process(self, dt: float) -> None:
        for (fuel,) in self.query(Fuel):
            fuel.left[1] -= 0.6
            fuel.size[1] -= 0.6
            fuel.shares[1] += 1


def test_a_system_of_ones_own_that_leaves_a_range_is_resumed_as_it_goes_on(tmp_path: Path) -> None:
    # 1 J - 2 x 0.6 J: it was saved, and refused when it was to be resumed.
    world = ef.World(dt=0.1)
    world.spawn("a", ef.Position(np.zeros((3, 3))), Fuel(np.ones(3), np.ones(3), np.ones(3, np.int64)))
    world.add_system(Drain())
    world.step(2)
    assert world["a"][Fuel].left[1] < -0.1
    resumed(world, tmp_path, 1, allow_code=True)


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        ef.resume(tmp_path / "no.npz")
    np.savez(tmp_path / "foreign.npz", a=np.zeros(3))
    with pytest.raises(StorageError):
        ef.resume(tmp_path / "foreign.npz")


class Gauge(Component, per_row=False):
    """A scalar and a free-length column of the entity."""

    level: Array = column("m")
    marks: Array = column("1", shape=(None,), kind="int", default=0)


def test_tables_of_the_entity_keep_their_shapes(tmp_path: Path) -> None:
    world = ef.World()
    world.spawn("g", Gauge(0.5, marks=[3, 1, 2]))
    world.spawn("h", Gauge(1.5))
    again = resumed(world, tmp_path)
    assert again["g"][Gauge].level.shape == ()
    assert again["g"][Gauge].marks.tolist() == [3, 1, 2]
    assert again["h"][Gauge].marks.shape == (0,)


class Tagged(Component):
    """A tag."""


def test_tags_are_saved(tmp_path: Path) -> None:
    world = ef.World()
    world.spawn("a", Tagged, ef.Position(np.zeros((2, 3))))
    world.save(tmp_path / "ck.npz")
    again = ef.resume(tmp_path / "ck.npz")
    assert len(list(again.query(Tagged, ef.Position))) == 1
    assert len(again["a"]) == 2


def test_a_resumed_world_knows_which_systems_nobody_chose(tmp_path):
    recipe = ef.WorldRecipe(entity=({"kind": "tracers", "name": "dust", "points": [[0.0, 0.0, 0.0]]},))
    world = ef.load(recipe)
    world.save(tmp_path / "dust.npz")
    again = ef.resume(tmp_path / "dust.npz")
    assert again.lint() == world.lint() == []
    again.add_system(ef.VelocitySystem(solver="tree"))  # takes the place of the one that came with the file
    assert [system.solver for system in again.systems if isinstance(system, ef.VelocitySystem)] == ["tree"]


def test_lints_are_told_once_for_all_stretches_of_a_run(tmp_path: Path) -> None:
    """Later they would be about another state: what an unbroken run does not say, a resumed one does not."""
    ball = {"kind": "body", "name": "it", "shape": {"shape": "ball", "radius": 0.5}, "velocity": [1, 0, 0]}
    smoke = {"kind": "tracers", "name": "smoke", "points": [[0.2, 0.2, 0.9]]}
    world = ef.load({"entity": [ball, smoke]})
    world.save(tmp_path / "begin.npz")
    for begins in (world, ef.resume(tmp_path / "begin.npz")):
        with pytest.warns(ef.FluidWarning, match="without setting the fluid in motion"):
            begins.step()
    world.save(tmp_path / "later.npz")
    with warnings.catch_warnings(action="error"):
        ef.resume(tmp_path / "later.npz").step()
