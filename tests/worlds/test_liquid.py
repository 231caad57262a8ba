"""The recipe of a liquid, and the shipped worlds that have one."""

from __future__ import annotations

import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
import ecs_fluid.worlds
from ecs_fluid.systems.liquid.start import fill_model
from ecs_fluid.worlds import ContainerRecipe, LiquidRecipe, WorldRecipe

FOLDER = Path(ecs_fluid.worlds.__file__).parent
TANK = {"shape": "box", "size": [1.0, 1.0, 1.0]}
WORLDS = (
    "dam_break", "sloshing_dam", "filled_container", "filling_tank", "heavy_ball_in_box", "falling_drop",
    "loaded_boat", "splash", "syrup",
)  # fmt: skip


def built(**liquid: Any) -> ef.World:
    """A liquid in a tank 1 x 0.6 x 0.8 m about (1, 2, 3)."""
    world = ef.World(precision="double")
    shape = {"shape": "box", "size": (1.0, 0.6, 0.8)}
    ContainerRecipe(name="tank", shape=shape, center=(1, 2, 3)).build(world)
    LiquidRecipe(name="water", **liquid).build(world)
    return world


def poured(*liquids: dict[str, Any]) -> ef.World:
    """Liquids with a spacing of 0.1 m and their system in the same tank."""
    world = built(spacing=0.1, **liquids[0])
    for k, liquid in enumerate(liquids[1:], start=1):
        LiquidRecipe(name=f"w{k}", spacing=0.1, **liquid).build(world)
    world.add_system(ef.SphSystem())
    return world


def test_container_is_filled_half_a_spacing_from_its_walls() -> None:
    world = built(fills="tank", spacing=0.1, density=900.0)
    x, liquid = world["water"][ef.Position].x, world["water"][ef.Liquid]
    assert len(x) == 10 * 6 * 8
    np.testing.assert_allclose(x.min(axis=0), [0.55, 1.75, 2.65], atol=1e-12)
    np.testing.assert_allclose(x.max(axis=0), [1.45, 2.25, 3.35], atol=1e-12)
    assert liquid.mass.sum() == pytest.approx(900 * 0.48) and liquid.volume.sum() == pytest.approx(0.48)


def test_level_cuts_it_off() -> None:
    # Floor at 2.6 m: 0.3 m of water are 3 layers, the topmost half a spacing below the level.
    x = built(fills="tank", spacing=0.1, level=2.9)["water"][ef.Position].x
    assert len(x) == 10 * 6 * 3 and x[:, 2].max() == pytest.approx(2.85)


def test_box_and_ball_have_their_masses() -> None:
    box = built(box={"low": (0.6, 1.8, 2.7), "high": (1.0, 2.2, 3.0)}, spacing=0.07)["water"]
    assert box[ef.Liquid].mass.sum() == pytest.approx(1000 * 0.4 * 0.4 * 0.3)
    ball = built(sphere={"center": (1, 2, 3), "radius": 0.25}, spacing=0.05)["water"]
    # A lattice counts a ball of 10 spacings across to a few percent (5.4 % here).
    assert ball[ef.Liquid].volume.sum() == pytest.approx(4 / 3 * np.pi * 0.25**3, rel=0.08)


def test_hybrid_particles_are_vortons_too() -> None:
    entity = built(fills="tank", spacing=0.1, vortons=True, overlap=2.0)["water"]
    assert not entity[ef.Strength].alpha.any() and (entity[ef.Density].rho == 1000).all()
    np.testing.assert_allclose(entity[ef.CoreRadius].sigma, 0.2)
    np.testing.assert_allclose(entity[ef.Volume].volume, 1e-3)


@pytest.mark.parametrize(
    ("liquid", "said"),
    [
        ({}, "exactly one of box, sphere, solid, fills"),
        ({"fills": "tank", "sphere": {"radius": 1}}, "sphere and fills given"),
        ({"sphere": {"radius": 1}, "level": 1.0}, "it needs fills"),
        ({"box": {"low": (0, 0, 0), "high": (1, 1, 0)}}, "no volume"),
        ({"fills": "bucket"}, "names no container that stands before"),
        ({"fills": "tank", "level": 2.0}, "below the floor"),
        ({"fills": "tank", "level": 9.0}, "is above the top of 'tank', 3.4 m; leave it out to fill it"),
        ({"fills": "tank", "spacing": 5.0}, "use a smaller spacing"),
        ({"fills": "tank", "spacing": 1e-4}, "particles of liquid of about"),
    ],
)
def test_mistakes_are_told(liquid: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, ef.FluidError), match=said):
        built(**liquid)


@pytest.mark.parametrize(
    ("liquids", "said"),
    [
        ([{"fills": "tank"}], []),
        ([{"fills": "tank", "jitter": 0.5}], []),
        (
            [{"box": {"low": (2, 2, 3), "high": (2.5, 2.5, 3.5)}}],
            ["125 of 125 particles of 'water' lie outside every container"],
        ),
    ],
)
def test_liquid_where_none_should_be_is_told(liquids: list[dict[str, Any]], said: list[str]) -> None:
    """The tank reaches to x = 1.5 m."""
    found = poured(*liquids).lint()
    assert len(found) == len(said) and all(part in line for part, line in zip(said, found, strict=True)), (
        found
    )


@pytest.mark.parametrize(
    ("liquids", "said"),
    [
        # A block of six spacings, all that is in reach, has twice the density, wherever its lattice stands.
        (
            [{"fills": "tank"}, {"box": {"low": (0.7, 1.7, 2.7), "high": (1.3, 2.3, 3.3)}}],
            "and 216 of 216 particles of 'w1' are compressed, up to 2 times",
        ),
        (
            [{"fills": "tank"}, {"box": {"low": (0.75, 1.7, 2.75), "high": (1.35, 2.3, 3.35)}}],
            "and 216 of 216 particles of 'w1' are compressed, up to 2 times",
        ),
        # They touch, aligned or not.
        ([{"fills": "tank", "level": 3.0}, {"box": {"low": (0.8, 1.8, 3.0), "high": (1.2, 2.2, 3.3)}}], ""),
        (
            [
                {"fills": "tank", "level": 3.0},
                {"box": {"low": (0.85, 1.85, 3.0), "high": (1.25, 2.15, 3.3)}},
            ],
            "",
        ),
        ([{"fills": "tank", "jitter": 0.5}], ""),
    ],
)
def test_liquids_in_one_place_are_told(liquids: list[dict[str, Any]], said: str) -> None:
    world = poured(*liquids)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fill_model(world.require(ef.SphSystem))
    assert [said in str(one.message) for one in found] == ([True] if said else []), found


def test_what_liquid_does_not_carry_is_told() -> None:
    """Vortons above it, and tracers in it, are not; nor tracers beside it that vortons or winds move."""
    world = poured({"fills": "tank", "level": 3.0})
    x = np.array([[1.0, 2.0, 2.8], [1.0, 2.0, 2.9], [1.0, 2.0, 3.2]])
    world.spawn("vortices", ef.Position(x), ef.Strength(0 * x), ef.CoreRadius(np.ones(3)))
    world.spawn("sand", ef.Position(x[:1]), ef.InertialVelocity(0 * x[:1]))
    world.spawn("dye", ef.Position(x))
    found = world.require(ef.SphSystem).lint(world)
    assert found == [
        "2 of 3 vortons of 'vortices' lie in liquid, which neither carries nor feels them; move them, or use "
        "tracers, which go with the liquid",
        "1 of 1 inertial particles of 'sand' lie in liquid, which neither carries nor feels them; move them, "
        "or use tracers, which go with the liquid",
    ]
    world = poured({"fills": "tank", "level": 3.0})
    world.spawn("dye", ef.Position(x[:2] + np.array([0.0, 0.0, 0.5])))
    (found,) = world.require(ef.SphSystem).lint(world)
    assert found.startswith("none of the 2 tracers of 'dye' lie in liquid, and nothing else moves them")
    world.add_system(ef.WindSystem(velocity=(1.0, 0.0, 0.0)))
    assert not world.require(ef.SphSystem).lint(world)


@pytest.mark.parametrize(("moved", "said"), [(1e-6, 0), (1e-3, 1), (0.3, 0)])
def test_a_container_that_is_all_but_a_box_is_told(moved: float, said: int) -> None:
    """One corner of a cube of 1 m lies outside by that, so planes there lean by it: 1e-6 is a box still, with
    0.3 m nobody expects one."""
    corners = [(x, y, z) for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0 + moved * x * y)]
    world = ef.World()
    ContainerRecipe(name="tank", shape={"shape": "points", "points": corners}).build(world)
    LiquidRecipe(name="water", fills="tank", spacing=0.1).build(world)
    world.add_system(ef.SphSystem())
    found = world.lint()
    assert len(found) == said and all("off right angles" in line for line in found), found


@pytest.mark.parametrize(
    ("entities", "said"),
    [
        (
            [{"kind": "liquid", "name": "water", "box": {"low": (0.0, -0.5, -0.5), "high": (1.0, 0.5, 0.0)}}],
            ["250 of 500 particles of liquid 'water' lie outside all containers, and were removed"],
        ),
        (
            [
                {"kind": "liquid", "name": "water", "fills": "tank", "level": 0.0},
                {"kind": "container", "name": "other", "shape": TANK, "center": (1.4, 0.0, 0.0)},
                {"kind": "liquid", "name": "oil", "fills": "other", "level": 0.0},
            ],
            ["two containers with liquid are 0.4 m apart, so their liquids act on each other"],
        ),
        (
            [
                {"kind": "liquid", "name": "water", "fills": "tank", "level": 0.0},
                {"kind": "container", "name": "other", "shape": TANK, "center": (1.7, 0.0, 0.0)},
                {"kind": "liquid", "name": "oil", "fills": "other", "level": 0.0},
            ],
            [],
        ),
    ],
)
def test_liquid_in_files_that_is_not_where_it_should_be(
    entities: list[dict[str, Any]], said: list[str]
) -> None:
    """Spacings of 0.1 m reach 0.298 m: two containers need 0.596 m between them."""
    tables = {
        "entity": [
            {"kind": "container", "name": "tank", "shape": TANK},
            *({**entity, "spacing": 0.1} if entity["kind"] == "liquid" else entity for entity in entities),
        ]
    }
    found = WorldRecipe.from_tables(tables).build().lint()
    assert len(found) == len(said) and all(part in line for part, line in zip(said, found, strict=True)), (
        found
    )


def test_sound_of_a_liquid_without_gravity_goes_by_its_velocity() -> None:
    """Tait's stiffness rho c^2 / 7, with c ten times the largest velocity; of what rests there is none."""
    drop = {"kind": "liquid", "name": "drop", "sphere": {"radius": 0.2}, "spacing": 0.1}
    free = {"fluid": {"gravity": [0.0, 0.0, 0.0]}}
    world = WorldRecipe.from_tables(free | {"entity": [drop | {"velocity": [0.0, 3.0, -4.0]}]}).build()
    world.step()
    assert world.fluid[ef.LiquidModel].stiffness[0] == pytest.approx(1000.0 * 50.0**2 / 7.0)
    with pytest.raises(ef.FluidError, match="sound_speed has no default without gravity and velocities"):
        WorldRecipe.from_tables(free | {"entity": [drop]}).build().step()


def test_hydrostatic_start_is_compressed_by_its_weight() -> None:
    """Each layer sinks by the strain below it; the surface by g H^2 / (2 c^2) to first order in it."""
    world = built(fills="tank", spacing=0.1)
    before = world["water"][ef.Position].x.copy()
    system = world.add_system(ef.SphSystem(hydrostatic=("water",), sound_speed=40.0))
    system.measure()
    sunk = before[:, 2] - world["water"][ef.Position].x[:, 2]
    z = before[:, 2] - 2.6
    # Tait: 1 - (1 + 7 e)^(-1/7) = e - 4 e^2, with e <= 9.81 * 0.8 / 1600 = 0.5 %: 2 % of the strain at most.
    np.testing.assert_allclose(sunk, 9.81 / 1600 * (0.8 * z - z**2 / 2), rtol=0.03)
    np.testing.assert_allclose(world["water"][ef.Position].x[:, :2], before[:, :2])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_hydrostatic_start_of_two_liquids_of_which_one_has_no_particles_yet() -> None:
    """As one that an emitter is to fill; the mean of no densities was a warning of numpy's."""
    world = built(fills="tank", spacing=0.2)
    kinds = [kind for kind in world["water"].tables if kind is not ef.RowId]
    world.spawn("later", *(kind.blank(0, world.dtype) for kind in kinds))
    world.add_system(ef.SphSystem(hydrostatic=("water", "later"), sound_speed=40.0))
    world.step()


@pytest.mark.parametrize("rotation", [(0.0, 0.0, 0.0), (0.4, 0.3, 0.0)])
def test_hydrostatic_start_has_the_pressure_of_its_weight_beside_bodies(rotation: tuple[float, ...]) -> None:
    """No particle is further from rho g depth than in the tank without the body.

    As it is compressed, the liquid sinks towards the upper face by 0.05 spacings: 4.9 rho g H, if the excess
    were not to allow for that.
    """

    def largest_error(*bodies: dict[str, Any]) -> float:
        tank = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1.2, 1.2, 1.2]}}
        water = {"kind": "liquid", "name": "water", "fills": "tank", "level": 0.4, "spacing": 0.1}
        world = ef.load(
            {
                "world": {"dt": 1e-5, "integrator": "euler"},
                "entity": [tank, *bodies, water | {"hydrostatic": True}],
            }
        )
        world.step()
        depth = 0.4 - world["water"][ef.Position].x[:, 2]
        return float(np.abs(world["water"][ef.LiquidState].pressure - 9810 * depth).max()) / 9810

    shape = {"shape": "box", "size": [0.6, 0.4, 0.4]}
    box = {"kind": "body", "name": "box", "shape": shape, "rotation": rotation, "motion": "fixed"}
    assert largest_error(box) < 1.01 * largest_error()


@pytest.mark.parametrize(("gravity", "tilt"), [((3.0, -4.0, -7.0), 0.0), ((0.0, 0.0, -9.81), 0.4)])
def test_hydrostatic_start_has_the_pressure_of_its_weight_beside_walls_that_lean(
    gravity: tuple[float, ...], tilt: float
) -> None:
    """rho g depth below the top, half a spacing above the highest particle, where the lattice is whole.

    As it was compressed, the liquid sank by up to 0.07 spacings, into walls that lean and away from them: 4.2
    and 2.4 rho g H off.
    """
    pull = np.linalg.norm(gravity)
    world = ef.load(
        {
            "world": {"dt": 1e-5, "integrator": "euler"},
            "fluid": {"gravity": gravity},
            "entity": [
                {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1, 1, 1]}}
                | {"rotation": [0.0, tilt, 0.0]},
                {"kind": "liquid", "name": "water", "fills": "tank", "spacing": 0.1, "hydrostatic": True},
            ],
        }
    )
    world.step()
    below = world["water"][ef.Position].x @ gravity / pull
    depth, height = below - below.min() + 0.05, np.ptp(below)
    off = world["water"][ef.LiquidState].pressure / (1000 * pull) - depth
    assert np.abs(off).max() < 1e-3 * height  # single precision: 1.5e-4


def test_a_world_with_liquid_gets_its_system() -> None:
    tables = {
        "entity": [
            {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1, 1, 1]}},
            {"kind": "liquid", "name": "water", "fills": "tank", "spacing": 0.2, "hydrostatic": True},
        ]
    }
    world = WorldRecipe.from_tables(tables).build()
    system = world.system(ef.SphSystem)
    assert system is not None and system.hydrostatic == ("water",)
    # It moves by its own velocity once: no InertiaSystem moves it a second time.
    assert world.system(ef.InertiaSystem) is None
    tables["system"] = [{"kind": "sph", "artificial": 0.2}]
    system = WorldRecipe.from_tables(tables).build().system(ef.SphSystem)
    assert system is not None and system.artificial == 0.2 and system.hydrostatic == ("water",)


def test_constants_of_the_surroundings_are_not_the_liquids() -> None:
    """[fluid] is what surrounds a liquid: with water's values there, a sentence for each says so."""
    tables: dict[str, Any] = {
        "fluid": {"density": 998.0, "viscosity": 1e-6},
        "entity": [{"kind": "liquid", "name": "water", "sphere": {"radius": 0.5}, "spacing": 0.1}],
    }
    assert WorldRecipe.from_tables(tables).build().lint() == [
        "'water' has a density of 1000 kg/m^3 and the fluid around it 998 kg/m^3; [fluid] is what surrounds "
        "a liquid, so give it the density of the surroundings, or set SphSystem.surrounded = true",
        "'water' has no viscosity, and nothing uses that of the fluid around it, 1e-06 m^2/s; give the "
        "liquid a viscosity of its own",
    ]
    tables["entity"][0]["viscosity"] = 1e-6
    tables["system"] = [{"kind": "buoyancy"}]
    assert not any("density" in text for text in WorldRecipe.from_tables(tables).build().lint())
    tables["system"] = [{"kind": "sph", "surrounded": True}]
    assert WorldRecipe.from_tables(tables).build().lint() == []
    del tables["fluid"], tables["system"]
    assert WorldRecipe.from_tables(tables).build().lint() == []


def test_two_viscosities_of_liquids_are_refused() -> None:
    world = built(sphere={"center": (1, 2, 3), "radius": 0.2}, spacing=0.05, viscosity=1e-3)
    LiquidRecipe(name="oil", sphere={"center": (5, 2, 3), "radius": 0.2}, spacing=0.05).build(world)
    said = (
        r"SphSystem: 'oil' has a viscosity of 0 m\^2/s and '\w+' of 0\.001 m\^2/s; all liquids need the same"
    )
    with pytest.raises(ef.FluidError, match=said):
        world.add_system(ef.SphSystem())
    world["oil"][ef.Liquid].viscosity[:] = 1e-3
    world.add_system(ef.SphSystem())
    world["oil"][ef.Liquid].viscosity[0] = 0
    with pytest.raises(ef.FluidError, match=said):
        world.step()


@pytest.mark.parametrize(
    "region",
    [
        {"box": {"low": (0, 0, 0), "high": (1, 1, 0.1)}},
        {"solid": {"shape": {"shape": "plate", "thickness": 0.1}, "rotation": (0.5, 0, 0)}},
    ],
)
def test_thin_liquid_is_told(region: dict[str, Any]) -> None:
    with pytest.warns(ef.FluidWarning, match=r"'w': the liquid is 2 particles thick.*spacing <= 0\.025 m"):
        ef.load({"entity": [{"kind": "liquid", "name": "w", "spacing": 0.05, **region}]})


@pytest.mark.parametrize("name", WORLDS)
def test_shipped_world_runs(name: str) -> None:
    """Small enough for several ticks a second, its liquid in its container, and 2 ticks leave it there."""
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    assert "Watch for:" in text and "Physics:" in text
    world = WorldRecipe.from_tables(table, name).build()
    collision = world.system(ef.CollisionSystem)
    liquids = [entity for entity in world.entities if ef.Liquid in entity]
    assert 1000 < sum(map(len, liquids)) < 10_000 and collision is not None
    assert int(world.fluid[ef.CollisionCount].cleared[0]) == 0
    world.step(2)
    for entity in liquids:
        assert collision.overlap(entity[ef.Position].x).max() <= 1e-5
    # The steps of a tick stay few enough for that.
    assert int(world.fluid[ef.LiquidBudget].steps[0]) <= 2 * 12


@pytest.mark.parametrize(("dt", "told"), [(0.01, True), (0.005, False)])
def test_a_light_body_that_liquid_throws_is_told(dt: float, told: bool) -> None:
    """A cube of half the liquid's density, four particles wide, in a full box, at three steps a tick and two.

    At three it comes to 3 m/s within 0.1 s, where weight and buoyancy give it g t = 1 m/s at most.
    """
    box = {"shape": "box", "size": [0.6, 0.5, 0.4]}
    cube = {"shape": "box", "size": [0.2, 0.2, 0.2]}
    tables = {
        "world": {"dt": dt, "integrator": "euler"},
        "entity": [
            {"kind": "container", "name": "tank", "shape": box},
            {"kind": "liquid", "name": "water", "fills": "tank", "spacing": 0.05, "hydrostatic": True},
            {"kind": "body", "name": "cube", "shape": cube, "density": 500.0, "center": [0.05, 0.0, 0.02]},
        ],
        "system": [{"kind": "sph"}],
    }
    world = ef.load(tables)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        world.step(round(0.1 / dt))
    assert any("changes the velocity of the body 'cube'" in str(one.message) for one in said) == told


def test_a_level_is_a_height_along_z() -> None:
    """With gravity along x it is told; tilted by less than 60 degrees, as in a tank that is shaken, not."""
    liquid = {"kind": "liquid", "name": "water", "fills": "tank", "spacing": 0.1, "level": 0.0}
    tank = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1, 1, 1]}}
    for gravity, count in (([9.81, 0, 0], 1), ([5.0, 0, -9.0], 0), ([0, 0, 0], 0)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ef.load({"world": {"dt": 0.01}, "fluid": {"gravity": gravity}, "entity": [tank, liquid]})
        assert sum("is a height along z" in str(one.message) for one in said) == count
