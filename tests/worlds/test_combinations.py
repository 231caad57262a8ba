"""World files that combine what systems do: any pair has an order, and the order in the file is no matter."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import FluidError
from ecs_fluid.schedule import build_schedule
from ecs_fluid.system import PHASES, System
from ecs_fluid.worlds.world_recipe import WorldRecipe
from tests.resuming import resumed

NEEDED: dict[str, dict[str, Any]] = {
    "age_limit": {"seconds": 1.0},
    "alignment": {"rate": 1.0},
    "conduction": {"reach": 0.1},
    "heater": {"temperature": 400.0},
    "kill_box": {"low": (0, 0, 0), "high": (1, 1, 1)},
    "species_limit": {"species": ["fuel"], "below": 0.1},
    "surface_tension": {"surface_tension": 0.1},
    "wind": {"velocity": (1, 0, 0)},
}
SHIPPED = [kind for kind in System.registry.values() if kind.__module__.startswith("ecs_fluid.systems.")]
RING = {"kind": "vortex_ring", "name": "ring", "radius": 0.5, "core": 0.2, "spacing": 0.2}
BLOCK = {"kind": "fluid_block", "name": "air", "sphere": {"radius": 0.4}, "spacing": 0.2}
BALL = {"kind": "body", "name": "ball", "shape": {"shape": "ball", "radius": 0.3}, "center": [0, 0, 1]}


def world_of(*tables: dict[str, Any], **others: Any) -> ef.World:
    """World of [[entity]] and [[system]] tables; a system's kind is that of no recipe."""
    entities = [table for table in tables if "name" in table]
    systems = [table for table in tables if "name" not in table]
    clock = {"dt": 0.01, "duration": 0.1, "precision": "double"}
    file = {"world": clock, "entity": entities, "system": systems, **others}
    return WorldRecipe.from_tables(file).build()


@pytest.mark.parametrize("phase", PHASES)
def test_any_two_shipped_systems_have_an_order(phase: str) -> None:
    """Nobody can give systems of a file a before or after, so each pair must know who is first, alone too.

    With them are the systems that they ask, and those that these ask.
    """
    members = [kind for kind in SHIPPED if kind.phase == phase]
    assert len(members) >= 2
    for pair in itertools.combinations(members, 2):
        kinds = dict.fromkeys([*pair, ef.LoadSystem])
        for kind in list(kinds):
            kinds.update(dict.fromkeys(asked(kind)))
        systems = [kind(**NEEDED.get(kind.kind, {})) for kind in kinds]
        for system in systems:
            # Tables of other phases are not the question here.
            system.reads = tuple(kind for kind in system.reads if not kind.derived)
        build_schedule(systems)


def asked(kind: type[System]) -> list[type[System]]:
    """Systems that one of this kind asks, directly or through others."""
    direct = [other for other in SHIPPED if other in kind.asks or other.__name__ in kind.asks]
    return [*direct, *(further for other in direct for further in asked(other))]


def test_a_world_file_may_do_without_gradients() -> None:
    fluid = {"velocity": {"gradient": False}, "stretch": {"scheme": "none"}}
    world = world_of(RING, fluid=fluid)
    world.step()
    assert ef.VelocityGradient not in world["ring"]


HOT = {"kind": "thermal", "eddy_diffusivity": 1e-4}
FLOATS = {"kind": "baroclinic"}
FULL = {"kind": "baroclinic", "model": "full"}
FIRE = {"kind": "combustion"}
TOUCHED = {"kind": "conduction", "reach": 0.1}
MODEL = {"kind": "subfilter"}


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize("way", ["panels", "layer"])
@pytest.mark.parametrize("other", [HOT, FLOATS, FULL, FIRE, TOUCHED, MODEL], ids=lambda table: table["kind"])
def test_what_bodies_shed_goes_together_with_heat(way: str, other: dict[str, Any], tmp_path: Path) -> None:
    """The wake, made anew in each tick, has no heat to give; the file's order and a resume change no bit.

    Once the wake had heat or not as the order of the file would have it, and on resuming it always had.
    """
    shed = {"kind": "boundary", "boundary": way, "panels_across": 2, "lattice": 0.15}
    moved = {"kind": "wind", "velocity": (1.0, 0.0, 0.0)}
    warm = {**BLOCK, "temperature": 350.0}
    first, last = (
        world_of(warm, BALL, *order, fluid={"law": "ideal_gas"})
        for order in ([moved, shed, other], [other, shed, moved])
    )
    for world in (first, last):
        world.step(2)
        assert len(world["wake"]) > 10
        assert {ef.Temperature, ef.Density, ef.Species}.isdisjoint(world["wake"].tables)
    assert first.state_hash() == last.state_hash()
    resumed(first, tmp_path, 2)


def test_systems_find_the_wake_wherever_they_stand_in_the_file() -> None:
    shed = {"kind": "boundary", "boundary": "panels", "panels_across": 2}
    limit = {"kind": "age_limit", "seconds": 0.035, "on": ["wake"]}
    counts = []
    for order in ([limit, shed], [shed, limit]):
        world = world_of(RING, BALL, *order, {"kind": "wind", "velocity": (1.0, 0.0, 0.0)})
        world.step(8)
        counts.append(len(world["wake"]))
        assert world["wake"][ef.Age].t.max() < 0.045
    assert counts[0] == counts[1] > 0


def test_density_of_its_own_does_not_hang_on_the_order() -> None:
    """Without an equation of state density is carried, so vortons of a stratified fluid keep theirs.

    A ring that has both a temperature (by the thermal system) and a density rises through the profile and is
    then heavier than what is around it: the same whichever system was asked first.
    """
    layers = {"density_profile": [[-5.0, 2.0], [5.0, 1.0]]}
    worlds = [world_of(RING, *order, fluid=layers) for order in ([HOT, FLOATS], [FLOATS, HOT])]
    for world in worlds:
        world.step(3)
        assert np.ptp(world["ring"][ef.Density].rho) < 1e-12  # flat ring, all of one height
    assert worlds[0].state_hash() == worlds[1].state_hash()


def test_columns_do_not_hang_on_the_order() -> None:
    """With an equation of state the density is that of the temperature, whoever brings it: none is stored."""
    for others in ([HOT, FLOATS], [FIRE, FLOATS], [FLOATS, FIRE, HOT]):
        orders = [world_of(RING, *order, fluid={"law": "ideal_gas"}) for order in (others, others[::-1])]
        assert all(ef.Density not in world["ring"] for world in orders)
        assert orders[0].state_hash() == orders[1].state_hash()


@pytest.mark.parametrize("law", ["ideal_gas", "none"])
def test_systems_may_come_one_at_a_time_in_any_order(law: str) -> None:
    """Tables, places and warnings are the same; only sums of rates may be rounded otherwise."""
    worlds = []
    for order in itertools.permutations([ef.ThermalSystem, ef.BaroclinicSystem, ef.CombustionSystem]):
        world = world_of(RING, fluid={"law": law})
        for kind in order:
            world.add_system(kind())
        said = sorted(world.lint())
        world.step()
        worlds.append((world, said))
    (first, said), *others = worlds
    assert len(others) == 5
    assert any("temperature causes no buoyancy" in text for text in said) == (law == "none")
    for world, text in others:
        assert text == said
        assert world["ring"].tables.keys() == first["ring"].tables.keys()
        for kind, column in ((ef.Position, "x"), (ef.Strength, "alpha"), (ef.Temperature, "T")):
            found, expected = (getattr(one["ring"][kind], column) for one in (world, first))
            np.testing.assert_allclose(found, expected, atol=1e-14 * max(1.0, np.abs(expected).max()))


def test_what_another_system_brings_along_is_refused_with_its_name() -> None:
    world = ef.World(dimension=2)
    refused = (
        r"BoundarySystem: .* use boundary = 'layer'; ReactionSystem adds this system to a world that has none"
    )
    with pytest.raises(ef.RecipeError, match=refused):
        world.add_system(ef.ReactionSystem(linear="vortons", angular="none"))
    boundary = ef.BoundarySystem(boundary="layer")
    world.add_systems([ef.ReactionSystem(linear="vortons", angular="none"), boundary])
    assert world.system(ef.BoundarySystem) is boundary


def test_two_systems_that_spin_bodies_are_refused_in_both_orders() -> None:
    for order in (1, -1):
        world = ef.World()
        first, last = [ef.ReactionSystem(linear="none", angular="vortons"), ef.BoundarySystem()][::order]
        world.add_system(first)
        with pytest.raises(ef.RecipeError, match="BoundarySystem changes the spin of bodies too"):
            world.add_system(last)


def test_fuel_mixes_into_what_had_none_with_a_fire_and_without() -> None:
    """D laplacian(Y) asks not who carries species: so does a fire whose rates are 0, which does nothing."""
    mixing = {"kind": "thermal", "species_diffusivity": 1e-2}
    fuel = {
        **BLOCK,
        "name": "gas",
        "fuel": 0.5,
        "sphere": {"radius": 0.4, "center": [0.2, 0, 0]},
    }
    out = {**FIRE, "rate": 0.0, "flame_rate": 0.0}
    worlds = [world_of(BLOCK, fuel, mixing, *more) for more in ([], [out])]
    for world in worlds:
        world.step(3)
        carried = [
            (world[name][ef.Species].fuel * world[name][ef.Volume].volume).sum() for name in ("air", "gas")
        ]
        assert carried[0] > 0.0
        assert sum(carried) == pytest.approx(0.5 * world["gas"][ef.Volume].volume.sum(), rel=1e-12)
    assert worlds[0].state_hash() == worlds[1].state_hash()


def test_an_emitter_rides_on_a_body() -> None:
    """Born about the centre of the ball, x = 2 t: at the end t of a tick, at 2 t + 0.5."""
    rider = {"kind": "emitter", "name": "tap", "into": "smoke", "rate": 100.0, "attached": "ball"}
    rider["center"] = [0.5, 0.0, 0.0]
    ball = {**BALL, "center": [0, 0, 0], "velocity": [2.0, 0.0, 0.0], "motion": "scripted"}
    world = world_of(ball, rider, {"kind": "collision", "on": ["smoke"]})
    for tick in range(4):
        world.step()
        x = world["smoke"][ef.Position].x
        assert len(x) == tick + 1
        assert np.allclose(x[-1], [2 * 0.01 * (tick + 1) + 0.5, 0, 0], atol=1e-12)


def test_the_surface_of_a_liquid_that_is_not_there() -> None:
    """A world without liquid gets a sentence; one that has lost all of it has no surface."""
    surface = {"kind": "surface", "of": "liquid"}
    with pytest.raises(FluidError, match="of = 'liquid' is the surface of a liquid, but the world has none"):
        world_of(RING, surface).step()
    water = {"kind": "liquid", "name": "water", "spacing": 0.1, "box": {"low": [0, 0, 0], "high": [0.4] * 3}}
    world = world_of(water, surface, {"kind": "sph", "sound_speed": 10.0}, fluid={"gravity": [0, 0, 0]})
    world.step()
    assert world.fluid[ef.SignedDistance].surface[0] == 1
    world["water"].kill(np.ones(len(world["water"]), bool))
    world.step(2)
    table = world.fluid[ef.SignedDistance]
    assert len(world["water"]) == 0 and table.surface[0] == 0
    assert (table.phi > 0).all() and np.isfinite(table.phi).all()


@pytest.mark.parametrize("other", [HOT, FIRE, TOUCHED], ids=lambda table: table["kind"])
def test_a_light_block_stays_light_when_heat_is_added(other: dict[str, Any]) -> None:
    """With an equation of state the temperature is that of the density: 300 K times 1.2 over 0.9.

    Once such a block got the temperature around it, and with it the density: nothing rose.
    """
    light = {**BLOCK, "density": 0.9}
    world = world_of(light, FLOATS, other, fluid={"law": "ideal_gas"})
    assert np.allclose(world["air"][ef.Temperature].T, 400.0, rtol=1e-12)
    world.step()
    assert np.allclose(world["air"][ef.Density].rho, 0.9, rtol=1e-6)
    assert world["air"][ef.Strength].alpha.any()


def test_a_density_without_a_temperature_is_said() -> None:
    """rho = rho_0 (1 - 2.1e-4/K (T - 300 K)) is 1.3 rho_0 at -1129 K."""
    heavy = {**BLOCK, "density": 1.56}
    with pytest.raises(ef.FluidError, match=r"'air': row 0 has a density of 1.56 kg/m\^3, which"):
        world_of(heavy, HOT, fluid={"law": "liquid"})


def test_an_emitter_of_light_fluid_emits_it_where_heat_counts() -> None:
    """As for blocks: what is born with a density of 0.9 kg/m^3 has 400 K where the thermal system counts."""
    tap = {"kind": "emitter", "name": "tap", "into": "gas", "rate": 1000.0, "population": "vortons"}
    light = {**tap, "density": 0.9, "spread": [0.5] * 3}
    world = world_of(light, FLOATS, HOT, fluid={"law": "ideal_gas"})
    world.step()
    gas = world["gas"]
    assert len(gas) == 10
    assert np.allclose(gas[ef.Temperature].T, 400.0, rtol=1e-12)
    assert np.allclose(gas[ef.Density].rho, 0.9, rtol=1e-12)


def test_species_may_mix_where_there_are_none() -> None:
    world = world_of(BLOCK, {"kind": "thermal", "eddy_diffusivity": 1e-4, "species_diffusivity": 1e-4})
    world.step()
    assert ef.Species not in world["air"]


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize(("density", "thrown"), [(4.0, True), (10.0, False)])
def test_light_bodies_and_impulses_of_the_article_are_warned_of(density: float, thrown: bool) -> None:
    """A ball of 0.3 m that is put into a block with cores of 0.175 m is answered by 6.3 times its fluid.

    Told is 1.5 (1 + 1.2 x 0.175/0.3)^3 = 7.4 times, in ticks of any length. Below, the second change of its
    speed is larger than the first, above it is smaller.
    """
    air = {"kind": "fluid_block", "name": "air", "spacing": 0.12, "agitation": 1e-3,
           "box": {"low": [-0.7, -0.7, 0.3], "high": [0.7, 0.7, 1.7]}}  # fmt: skip
    changed = {"kind": "boundary", "boundary": "article", "reaction": "none"}
    taken = {"kind": "reaction", "linear": "vortons"}
    fluid = {"density": 1.0, "gravity": [0, 0, 0], "velocity": {"solver": "direct"}}
    world = world_of({**BALL, "density": density, "velocity": [1, 0, 0]}, air, changed, taken, fluid=fluid)
    assert any("weighs less than 7.4 times the fluid" in text for text in world.lint()) == thrown
    speeds = [1.0]
    for _ in range(2):
        world.step()
        speeds.append(float(world["ball"][ef.RigidMotion].v[0, 0]))
    first, second = np.diff(speeds)
    assert (abs(second) > abs(first)) == thrown


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize("density", [0.01, 0.5, 20.0])
def test_light_bodies_are_not_thrown_about_by_panels(density: float) -> None:
    """A wind of 1 m/s that sets in gives a ball 1.5/(density + 0.5) m/s: (m + m_f/2) v = (m_f + m_f/2) U.

    Coarse panels have more added mass, which brings that nearer to 1 m/s. Without the fluid's inertia half
    the fluid's density had 5 m/s in 3 ticks, and more in each.
    """
    shed = {"kind": "boundary", "boundary": "panels", "panels_across": 2}
    taken = {"kind": "reaction", "linear": "vortons"}
    blown = {"kind": "wind", "velocity": [1.0, 0.0, 0.0]}
    fluid = {"density": 1.0, "gravity": [0, 0, 0]}
    world = world_of({**BALL, "density": density}, shed, taken, blown, fluid=fluid)
    assert not any("weighs less" in text for text in world.lint())
    law = 1.5 / (density + 0.5)
    for _ in range(8):
        world.step()
        v = world["ball"][ef.RigidMotion].v[0]
        assert min(law, 1.0) <= v[0] <= max(law, 1.0)
        assert np.abs(v[1:]).max() < 0.05


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize(("density", "adrift"), [(0.3, True), (3.0, False)])
def test_thin_plates_that_coarse_panels_drive_away_are_told(density: float, adrift: bool) -> None:
    """In a wind of 1 m/s a plate a twentieth as thick as wide, with four panels across, gets to 9 m/s if it
    is lighter than the fluid in it."""
    plate = {**BALL, "shape": {"shape": "box", "size": [1, 1, 0.05]}, "rotation": [0.2, 0.5, 0.0]}
    shed = {"kind": "boundary", "boundary": "panels", "panels_across": 4, "offset": 0.0}
    taken = {"kind": "reaction", "linear": "vortons", "angular": "vortons"}
    blown = {"kind": "wind", "velocity": [1.0, 0.0, 0.0]}
    fluid = {"density": 1.0, "gravity": [0, 0, 0]}
    world = world_of({**plate, "density": density}, shed, taken, blown, fluid=fluid)
    assert any("lighter than the fluid in it" in text for text in world.lint()) == adrift
    world.step(8)
    fast = float(np.abs(world["ball"][ef.RigidMotion].v).max())
    assert fast > 3.0 if adrift else fast < 1.5


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize("added_mass", [True, False])
def test_a_light_ball_rises_with_its_fluid_from_the_first_tick_on(added_mass: bool) -> None:
    """(m + A) a = (m_f - m) g with the inertia A that the sheets of its panels have, foreseen to 5 %.

    Accelerated without that fluid, a ball of a tenth of its density began at -9 times this speed, and one
    whose added mass is counted by buoyancy too was slower.
    """
    shed = {"kind": "boundary", "boundary": "panels", "panels_across": 6, "offset": 0.0}
    lifts = {"kind": "buoyancy", "added_mass": added_mass}
    taken = {"kind": "reaction", "linear": "vortons", "angular": "vortons"}
    world = world_of({**BALL, "density": 0.1}, shed, lifts, taken, fluid={"density": 1.0})
    ball, displaced = world["ball"], world["ball"][ef.Body].mass[0] / 0.1
    whole = 0.1 * displaced + world.system(ef.BoundarySystem).sheets.entrained([ball])[0, 2, 2]
    for _ in range(3):
        world.step()
        expected = 0.9 * displaced * 9.81 * world.time / whole
        assert ball[ef.RigidMotion].v[0, 2] == pytest.approx(expected, rel=0.05)


def test_a_fraction_below_zero_by_rounding_can_be_resumed(tmp_path: Path) -> None:
    """Mixing leaves -6e-12 of flame in single precision, and more with kernels that overshoot."""
    world = world_of({**BLOCK, "fuel": 0.5}, {"kind": "combustion", "rate": 0.0})
    world["air"][ef.Species].flame[0] = -6e-12
    assert resumed(world, tmp_path)["air"][ef.Species].flame[0] == -6e-12
