"""The fluid block, and what emitters give their particles to carry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.components import Pose
from ecs_fluid.errors import RecipeError
from ecs_fluid.kernels.bodies.rotation import matrix_of
from ecs_fluid.recipe import entity_recipe
from ecs_fluid.worlds import FluidBlock


def built(**given: Any) -> ef.World:
    world = ef.World(precision="double", seed=3)
    entity_recipe({"kind": "fluid_block", "name": "block", **given}, "test").build(world)
    return world


BOX = {"box": {"low": [0, 0, 0], "high": [1.0, 0.5, 0.25]}, "spacing": 0.05}


def test_box_is_filled_exactly() -> None:
    """20 x 10 x 5 cells of 0.05^3: the volumes sum to that of the box, everything is at rest."""
    block = built(**BOX, density=1.3)["block"]
    assert len(block) == 1000
    assert block[ef.Volume].volume.sum() == pytest.approx(0.125, rel=1e-12)
    assert (block[ef.Strength].alpha == 0.0).all()
    np.testing.assert_allclose(block[ef.CoreRadius].sigma, 0.075, rtol=1e-15)
    np.testing.assert_allclose(block[ef.Position].x.mean(axis=0), [0.5, 0.25, 0.125], atol=1e-12)
    assert (block[ef.Density].rho == 1.3).all()
    assert ef.Temperature not in block and ef.Species not in block


def test_ball_and_ring_by_their_volumes() -> None:
    """Cell centres inside count: 4/3 pi R^3 and 2 pi^2 R a^2 to 2 %."""
    ball = built(sphere={"radius": 0.5}, spacing=0.04, density=1.0)["block"]
    assert ball[ef.Volume].volume.sum() == pytest.approx(4 / 3 * np.pi / 8, rel=0.01)
    ring = built(torus={"radius": 0.6, "core": 0.2}, spacing=0.03, density=1.0)["block"]
    assert ring[ef.Volume].volume.sum() == pytest.approx(2 * np.pi**2 * 0.6 * 0.04, rel=0.02)


def in_tank(shape: dict[str, Any], **block: Any) -> ef.World:
    """A tank that leans and stands off the origin, fluid that fills it, and tracers that do."""
    tank = {"kind": "container", "name": "tank", "shape": shape, "center": [1.0, 2.0, 3.0]}
    tank["rotation"] = [0.3, -0.2, 0.7]
    water = {"kind": "fluid_block", "name": "water", "fills": "tank", **block}
    dye = {"kind": "tracers", "name": "dye", "fills": "tank", "cell": 0.1, "per_cell": 8}
    return ef.load({"world": {"precision": "double"}, "entity": [tank, water, dye]})


@pytest.mark.parametrize(
    ("shape", "volume"),
    [
        ({"shape": "box", "size": [0.6, 0.4, 0.8]}, 0.6 * 0.4 * 0.8),
        # a prism with the cylinder's own volume
        ({"shape": "cylinder", "radius": 0.4, "height": 0.8, "sides": 16}, np.pi * 0.16 * 0.8),
    ],
)
def test_a_container_is_filled(shape: dict[str, Any], volume: float) -> None:
    """The whole of it, wall to wall, and nothing else: in its own axes all lies inside, to half a cell."""
    coarse, world = in_tank(shape, spacing=0.15), in_tank(shape, spacing=0.025)
    for each in (coarse, world):
        assert each["water"][ef.Volume].volume.sum() == pytest.approx(volume, rel=1e-6)
    turn = matrix_of(world["tank"][Pose].q[0].astype(np.float64))
    for name, gap in (("water", 0.0125), ("dye", 0.05)):
        local = (world[name][ef.Position].x - [1.0, 2.0, 3.0]) @ turn
        assert np.abs(local[:, 2]).max() == pytest.approx(0.4, abs=1.01 * gap)
        assert np.abs(local[:, 2]).max() < 0.4
        np.testing.assert_allclose(local.mean(axis=0), 0.0, atol=0.01)


@pytest.mark.parametrize("kind", ["fluid_block", "tracers"])
@pytest.mark.parametrize("name", ["tank", "ring"])
def test_what_is_no_container_cannot_be_filled(kind: str, name: str) -> None:
    """What stands behind, and what is no container, is refused by its name."""
    entities = [
        {"kind": "body", "name": "ring", "shape": {"shape": "box", "size": [1, 1, 1]}},
        {"kind": kind, "name": "water", "fills": name},
        {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1, 1, 1]}},
    ]
    with pytest.raises(RecipeError, match=f"'water': fills = '{name}'.* container.* before"):
        ef.load({"entity": entities})
    with pytest.raises(RecipeError, match="did you mean 'tank'"):
        ef.load({"entity": [entities[2], {"kind": kind, "name": "water", "fills": "tonk"}]})
    emitter = {"kind": "emitter", "name": "tap", "into": "gas", "puff": {"kind": kind, "fills": "tank"}}
    with pytest.raises(RecipeError, match="puff of emitter 'tap': fills is not for puffs"):
        ef.load({"entity": [entities[2], emitter]})


def test_tracers_in_a_container_need_the_size_of_their_cells() -> None:
    tank = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1, 1, 1]}}
    with pytest.raises(RecipeError, match="fills = 'tank' names a container, so it needs 'cell'"):
        ef.load({"entity": [tank, {"kind": "tracers", "name": "dye", "fills": "tank"}]})


def test_flow_through_the_walls_of_a_container_is_told() -> None:
    """Particles stop at a container's walls, and the flow of vortons knows them if it is told to alone."""
    tank = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1, 1, 1]}}

    def said(system: str = "", center: float = 0.0, **velocity: Any) -> bool:
        ring = {"kind": "vortex_ring", "name": "ring", "radius": 0.2, "core": 0.1, "center": [0, 0, center]}
        tables = {"fluid": {"velocity": velocity}, "entity": [tank, ring]}
        tables["system"] = [{"kind": system}] if system else []
        return any(
            text.startswith("'tank' holds vortons, but flow passes") for text in ef.load(tables).lint()
        )

    assert said() and said(mirrors=[])
    assert not said(solver="container") and not said("boundary")
    assert not said(mirrors=[{"body": "tank", "side": "-z"}])
    assert not said(center=5.0)  # beside it
    tank["shape"] = {"shape": "box", "size": [9, 9, 9]}
    assert not said()  # so far from its walls that 0.003 of the flow at the ring gets there
    vent = {"kind": "emitter", "name": "vent", "into": "gas", "population": "vortons", "temperature": 400}
    (text,) = [
        text for text in ef.load({"entity": [tank, vent]}).lint() if "passes through its walls" in text
    ]
    assert text.endswith("boundary = 'panels'")


def test_formulas_are_of_the_place() -> None:
    block = built(**BOX, density="1 + 0.5*z", temperature="300 + 100*x", fuel="0.5*y", smoke=0.25)["block"]
    x = block[ef.Position].x
    np.testing.assert_allclose(block[ef.Density].rho, 1 + 0.5 * x[:, 2], rtol=1e-14)
    np.testing.assert_allclose(block[ef.Temperature].T, 300 + 100 * x[:, 0], rtol=1e-14)
    np.testing.assert_allclose(block[ef.Species].fuel, 0.5 * x[:, 1], rtol=1e-14)
    assert (block[ef.Species].smoke == 0.25).all() and (block[ef.Species].flame == 0.0).all()


def test_agitation_has_its_width_and_no_mean() -> None:
    """Uniform in +- 0.5 agitation, variance agitation^2 / 12; 1000 draws scatter by 4 % at most."""
    block = built(**BOX, density=1.0, agitation=0.02)["block"]
    omega = block[ef.Strength].alpha / block[ef.Volume].volume[:, None]
    np.testing.assert_allclose(omega.var(axis=0), 0.02**2 / 12, rtol=0.12)
    np.testing.assert_allclose(omega.sum(axis=0), 0.0, atol=1e-12)


def test_jitter_stays_in_the_cell_and_the_region() -> None:
    straight, moved = built(**BOX, density=1.0)["block"], built(**BOX, density=1.0, jitter=1.0)["block"]
    shift = moved[ef.Position].x - straight[ef.Position].x
    assert 0.02 < np.abs(shift).max() <= 0.025


def test_flat_box_counts_areas() -> None:
    block = built(box={"low": [0, 0, 0], "high": [1.0, 0.0, 0.5]}, spacing=0.1, density=2.0, agitation=0.1)[
        "block"
    ]
    assert block[ef.Volume].volume.sum() == pytest.approx(0.5, rel=1e-12)
    alpha = block[ef.Strength].alpha
    assert (alpha[:, [0, 2]] == 0.0).all() and alpha[:, 1].any()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "none given; exactly one of box, sphere, torus, solid, fills is needed"),
        ({**BOX, "sphere": {"radius": 1.0}}, "box and sphere given; exactly one"),
        ({**BOX, "density": -1.0}, "density"),
        ({**BOX, "temperature": 0.0}, "temperature"),
        ({**BOX, "fuel": 1.5}, "fuel"),
        ({**BOX, "density": "1 + q"}, "unknown name 'q'"),
        ({"box": {"low": [0, 0, 0], "high": [1, 0, 0]}, "density": 1.0}, "box has no area"),
        ({**BOX, "fuel": 0.7, "smoke": "0.2 + x"}, r"fuel \+ flame \+ smoke is .* at most 1 is allowed"),
        ({**BOX, "density": "x - 0.5"}, r"Density.rho row 0 is -0.475; values above 0"),
        ({**BOX, "fuel": "x - 0.5"}, r"Species.fuel row 0 is -0.475; values of at least 0"),
        ({"sphere": {"radius": 10.0}, "spacing": 1e-3, "density": 1.0}, "vortons of about"),
    ],
)
def test_blocks_that_make_no_sense(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ef.FluidError, match=words):
        built(**given)


def test_lint() -> None:
    block = {"name": "b", "box": BOX["box"]}
    assert FluidBlock(**block, density=1.1).lint() == []
    assert "overlap 1.20 < 1.5" in FluidBlock(**block, density=1.1, overlap=1.2).lint()[0]


def emitted(ticks: int = 2, ambient: dict | None = None, **given: Any) -> ef.World:
    recipe = ef.WorldRecipe(
        world={"dt": 0.1, "precision": "double"},
        entity=[
            {
                "kind": "emitter",
                "name": "tap",
                "into": "puff",
                "population": "vortons",
                "rate": 100.0,
                **given,
            }
        ],
        fluid=ambient or {},
    )
    world = ef.load(recipe)
    world.step(ticks)
    return world


def test_emitted_particles_carry_what_they_are_given() -> None:
    puff = emitted(density={"keys": [[0.0, 2.0], [0.2, 4.0]]}, temperature=400.0, fuel=0.3, smoke=0.1)["puff"]
    # The value at the moment of birth, 100 a second; without an equation of state density is the emitter's.
    np.testing.assert_allclose(puff[ef.Density].rho, np.linspace(2.1, 4.0, 20), rtol=1e-12)
    assert (puff[ef.Temperature].T == 400.0).all()
    assert (puff[ef.Species].fuel == 0.3).all() and (puff[ef.Species].smoke == 0.1).all()


def test_with_an_equation_of_state_temperature_decides() -> None:
    world = ef.World(dt=0.1, precision="double")
    world.set_fluid(law="ideal_gas")
    world.spawn("puff", ef.Position, ef.Density, ef.Temperature)
    world.add_system(ef.EmissionSystem(emitters=[ef.Emitter(name="tap", into="puff", temperature=600.0)]))
    world.step()
    np.testing.assert_allclose(world["puff"][ef.Density].rho, np.full(6, 0.6), rtol=1e-12)


def test_without_values_particles_are_ambient() -> None:
    """Into a population that carries: density 1.2 - 0.1 z at each particle's height, and 300 K."""
    world = ef.World(dt=0.1, precision="double")
    world.spawn("puff", ef.Position, ef.Density, ef.Temperature, ef.Species)
    tap = ef.Emitter(name="tap", into="puff", rate=100.0, spread=(1.0, 1.0, 2.0))
    world.set_fluid(density_profile=[(-2.0, 1.4), (2.0, 1.0)])
    world.add_system(ef.EmissionSystem(emitters=[tap]))
    world.step(2)
    puff = world["puff"]
    np.testing.assert_allclose(puff[ef.Density].rho, 1.2 - 0.1 * puff[ef.Position].x[:, 2], rtol=1e-12)
    assert (puff[ef.Temperature].T == 300.0).all() and (puff[ef.Species].fuel == 0.0).all()


@pytest.mark.parametrize("by", ["each", "mean"])
def test_attached_emitter_goes_along(by: str) -> None:
    """Particles are born around their carriers in turn, or around the mean place of these, the k-th 0.05 k s
    after the start: at its own moment, but for the first, before which nothing has moved."""
    world = ef.World(dt=0.1, precision="double", debug=True)
    world.spawn("boat", ef.Position([[1.0, 0.0, 0.0], [3.0, 0.0, 2.0]]))
    world.spawn("wake", ef.Position)
    carried = {"attached": "boat", "attached_by": by}
    tap = ef.Emitter(name="tap", into="wake", rate=20.0, center=(0.0, 0.5, 0.0), **carried)
    world.add_systems(
        [
            ef.EmissionSystem(emitters=[tap]),
            ef.WindSystem(velocity=(10.0, 0, 0), on=("boat",)),
            ef.AdvectionSystem(),
        ]
    )
    world.step(3)
    moments = np.array([0.0, 0.1, 0.15, 0.2, 0.25, 0.3])
    start = np.array([[2.0, 0.5, 1.0]] * 2 if by == "mean" else [[1.0, 0.5, 0.0], [3.0, 0.5, 2.0]])
    expected = np.tile(start, (3, 1)) + 10.0 * moments[:, None] * [1.0, 0.0, 0.0]
    np.testing.assert_allclose(world["wake"][ef.Position].x, expected, atol=1e-12)
