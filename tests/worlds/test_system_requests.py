"""Systems that recipes need, joined with those that the file names."""

from __future__ import annotations

from typing import Any

import pytest

import ecs_fluid as ef
from ecs_fluid.errors import RecipeError
from ecs_fluid.system import System
from ecs_fluid.worlds import BodyRecipe
from ecs_fluid.worlds.system_requests import merged

BALL = {"kind": "body", "shape": {"shape": "ball", "radius": 0.1}, "motion": "scripted"}
ROUND = {"keys": [[0.0, [0, 0, 0]], [1.0, [1, 0, 0]]]}
TANK = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1, 1, 1]}}


def built(*entities: dict[str, Any], system: tuple[dict[str, Any], ...] = ()) -> ef.World:
    return ef.WorldRecipe(entity=entities, system=system).build()


def only(world: ef.World, kind: type[System]) -> Any:
    (found,) = [system for system in world.systems if isinstance(system, kind)]
    return found


def test_lists_of_all_entities_and_of_the_file_add_up_in_one_system() -> None:
    """The script that stands in [[system]] goes first, then those of the entities in their order."""
    world = built(
        {**BALL, "name": "a", "center": ROUND},
        {**BALL, "name": "b", "rotation": ROUND},
        {**BALL, "name": "c", "velocity": [0, 0, 1]},
        {**BALL, "name": "d"},
        system=({"kind": "body", "substeps": 3, "scripts": [{"name": "d", "center": ROUND}]},),
    )
    bodies = only(world, ef.BodySystem)
    assert [script.name for script in bodies.scripts] == ["d", "a", "b"]
    assert bodies.substeps == 3
    only(world, ef.CollisionSystem)


def test_every_liquid_is_told_to_the_one_system() -> None:
    boxes = [{"low": [x, 0, 0], "high": [x + 0.2, 0.2, 0.2]} for x in (0.0, 0.5, 1.0)]
    water = [
        {"kind": "liquid", "name": f"water{number}", "box": box, "hydrostatic": number != 1}
        for number, box in enumerate(boxes)
    ]
    assert only(built(*water), ef.SphSystem).hydrostatic == ("water0", "water2")


@pytest.mark.parametrize(("population", "inert"), [("inertial", True), ("tracers", False)])
def test_emitters_bring_what_moves_their_particles(population: str, inert: bool) -> None:
    jets = [
        {"kind": "emitter", "name": name, "into": "spray", "population": population}
        for name in ("left", "right")
    ]
    world = built(*jets)
    assert [emitter.name for emitter in only(world, ef.EmissionSystem).emitters] == ["left", "right"]
    assert (world.system(ef.InertiaSystem) is not None) == inert
    dragged = built(*jets, system=({"kind": "inertia", "drag": 2.0},))
    assert only(dragged, ef.InertiaSystem).drag == 2.0


def test_needed_systems_join_before_those_of_the_file() -> None:
    world = built(TANK, system=({"kind": "wind", "velocity": [1, 0, 0]},))
    kinds = [type(system) for system in world.systems]
    assert kinds.index(ef.AdvectionSystem) < kinds.index(ef.BodySystem) < kinds.index(ef.WindSystem)


class Breeze(BodyRecipe):
    """A body that brings a wind with it."""

    wind: tuple[float, float, float]
    on: tuple[str, ...] = ()

    def systems(self) -> list[System]:
        return [*super().systems(), ef.WindSystem(velocity=self.wind, on=self.on)]


def breeze(name: str, wind: tuple[float, float, float], on: tuple[str, ...] = ()) -> Breeze:
    return Breeze(name=name, shape={"shape": "ball", "radius": 0.1}, wind=wind, on=on)


def test_equal_values_agree_and_a_list_names_nothing_twice() -> None:
    world = ef.WorldRecipe(
        entity=(breeze("a", (1, 0, 0), ("a", "b")), breeze("b", (1, 0, 0), ("b",)))
    ).build()
    wind = only(world, ef.WindSystem)
    assert (wind.velocity, wind.on) == ((1.0, 0.0, 0.0), ("a", "b"))


def test_two_values_of_one_parameter_are_refused() -> None:
    """A vector is one value: its three numbers do not add up as a list does."""
    recipe = ef.WorldRecipe(entity=(breeze("a", (1, 0, 0)), breeze("b", (0, 0, 2))))
    with pytest.raises(RecipeError) as error:
        recipe.build()
    assert str(error.value) == (
        "WindSystem: velocity = (1.0, 0.0, 0.0) by [[entity]] 'a', but (0.0, 0.0, 2.0) by [[entity]] 'b'; "
        "only one value is allowed"
    )
    told = ef.WorldRecipe(entity=(breeze("a", (1, 0, 0)),), system=({"kind": "wind", "velocity": [0, 1, 0]},))
    with pytest.raises(RecipeError, match=r"\(0.0, 1.0, 0.0\) by \[\[system\]\] 1, but \(1.0, 0.0, 0.0\) by"):
        told.build()


class Heavier(ef.BodySystem):
    """Moves rigid bodies."""


def test_a_derived_system_takes_what_is_told_to_its_base() -> None:
    needed = [("a", ef.BodySystem(substeps=4)), ("b", ef.BodySystem(sweeps=7))]
    (system,) = merged([], needed, [("c", Heavier(least_bounce=0.5))])
    assert type(system) is Heavier
    assert (system.substeps, system.sweeps, system.least_bounce) == (4, 7, 0.5)
    (system,) = merged([], [("a", Heavier())], [("c", ef.BodySystem(substeps=4))])
    assert type(system) is Heavier and system.substeps == 4


def test_a_parameter_set_later_on_is_told_and_no_other() -> None:
    bodies = ef.BodySystem()
    bodies.substeps = 4
    (system,) = merged([], [("a", bodies)], [("b", ef.BodySystem(sweeps=7))])
    assert (system.substeps, system.sweeps) == (4, 7)
    with pytest.raises(
        RecipeError, match="BodySystem: substeps = 5 by b, but 4 by a; only one value is allowed"
    ):
        merged([], [("a", bodies)], [("b", ef.BodySystem(substeps=5))])


def test_none_where_none_is_the_default_leaves_a_parameter_open() -> None:
    for speeds in ((None, 20.0), (20.0, None)):
        needed, chosen = (ef.SphSystem(sound_speed=speed) for speed in speeds)
        (system,) = merged([], [("a", needed)], [("b", chosen)])
        assert isinstance(system, ef.SphSystem) and system.sound_speed == 20.0


def test_two_systems_of_one_class_in_a_file() -> None:
    """Two winds blow; what an entity asks for is the first's. Two that move bodies are one too many."""
    winds = tuple({"kind": "wind", "velocity": [0, speed, 0]} for speed in (1, 2))
    world = ef.WorldRecipe(entity=(breeze("a", (0, 1, 0), ("a",)),), system=winds).build()
    found = [system for system in world.systems if isinstance(system, ef.WindSystem)]
    assert [(wind.velocity[1], wind.on) for wind in found] == [(1.0, ("a",)), (2.0, ())]
    with pytest.raises(ef.ScheduleError, match=r"^there are two systems BodySystem, .*; keep one of them$"):
        built(TANK, system=({"kind": "body"}, {"kind": "body"})).step()


def test_systems_made_in_python_are_as_their_tables() -> None:
    """Each world gets one of its own; a file holds them as tables, one's own by import path."""
    table = {"kind": "wind", "velocity": [1.0, 0.0, 0.0], "on": ["dust"]}
    dust = {"kind": "tracers", "name": "dust", "points": [[0.0, 0.0, 0.0]]}
    wind = ef.WindSystem(velocity=(1, 0, 0), on=("dust",))
    recipe = ef.WorldRecipe(entity=(dust,), system=(wind, Heavier(substeps=2)))
    assert recipe.tables()["system"] == [table, {"kind": Heavier.path(), "substeps": 2}]
    first, second = recipe.build(), recipe.build()
    assert only(first, ef.WindSystem) is not only(second, ef.WindSystem)
    assert only(first, ef.WindSystem).parameters == wind.parameters
    assert only(second, Heavier).substeps == 2
    assert first.recipe == recipe.tables()
    with pytest.raises(RecipeError, match="'diffusion' belongs in the \\[fluid\\] table"):
        ef.WorldRecipe(entity=(dust,), system=(ef.DiffusionSystem(),)).build()
