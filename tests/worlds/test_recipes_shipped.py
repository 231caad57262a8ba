"""The shipped worlds: their entities are what their headers say, resolved in space and in time."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid.worlds
from ecs_fluid.component import Array
from ecs_fluid.components import CollisionCount, CoreRadius, Position, Strength
from ecs_fluid.recipe import entity_recipe
from ecs_fluid.world import World
from ecs_fluid.worlds.world_recipe import read, shipped
from tests.worlds.made_vortons import velocity

FOLDER = Path(ecs_fluid.worlds.__file__).parent
NAMES = (
    "vortex_ring",
    "jet_ring",
    "crossed_tubes",
    "oblique_rings",
    "leapfrog",
    "hill_vortex",
    "shear_layer",
    "vortices_merge",
    "wavy_sheet",
    "tube",
    "wind_fountain",
    "taylor_green",
    "viscous_ring",
    "head_on_rings",
    "reconnection",
)
HEAT = (
    "buoyant_plume", "candle", "dye_drop", "dye_drops_collide", "fireball", "hot_plate", "large_flame",
    "rayleigh_taylor", "smoulder", "stratified_ring", "thermal_plume", "two_layers",
)  # fmt: skip
"""Worlds that start at rest, or empty; `test_heat_worlds` has more on them."""
BODIES = (
    "ball_in_tube", "ball_through_smoke", "bubbles", "curve_ball", "falling_plate", "fire_and_balloon",
    "flow_past_sphere", "hot_ball", "karman_street", "lock_exchange", "plate_at_angle", "plate_over_flame",
    "rifled_ball", "rotating_container", "sloshing_container", "spinning_ball", "spinning_box",
    "two_layers_ball",
)  # fmt: skip
"""Worlds with bodies; `test_body_worlds` has more on them."""

LIQUIDS = (
    "dam_break", "drop_on_floor", "falling_drop", "filled_container", "filling_tank", "heavy_ball_in_box",
    "loaded_boat", "sloshing_dam", "splash", "syrup", "water_thread",
)  # fmt: skip
"""Worlds with a liquid; `test_liquid` has more on them."""

DROPS = ("drop_oscillates", "drops_merge")
"""Worlds with surface tension; `test_surface_tension` has more on them."""


PUBLISHED = ("trefoil", "taylor_green_400")
"""Worlds of flows in the literature, finer than the others; docs/published.md has their tests."""


def tables(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def built(name: str) -> World:
    options = {key: tables(name)["world"].get(key) for key in ("dimension", "plane")}
    world = World(precision="double", **{key: value for key, value in options.items() if value})
    for number, table in enumerate(tables(name)["entity"], start=1):
        entity_recipe(table, f"{name}: [[entity]] {number}").build(world)
    return world


def vortons(world: World) -> tuple[Array, Array, Array]:
    clouds = list(world.query(Position, Strength, CoreRadius))
    return (
        np.concatenate([position.x for position, _, _ in clouds]),
        np.concatenate([strength.alpha for _, strength, _ in clouds]),
        np.concatenate([core.sigma for _, _, core in clouds]),
    )


def test_every_shipped_world_is_tested() -> None:
    assert set(shipped()) == {*NAMES, *HEAT, *BODIES, *LIQUIDS, *DROPS, *PUBLISHED}


@pytest.mark.parametrize("name", NAMES)
def test_world_is_resolved(name: str) -> None:
    table = tables(name)
    for entity in table["entity"]:
        assert entity_recipe(entity, name).lint() == []
    world = built(name)
    x, alpha, sigma = vortons(world)
    count = sum(len(entity) for entity in world.entities)
    # Sizes for several ticks a second on two cores.
    assert len(x) <= 10_000 and count <= 80_000
    # dt |grad u| < 1 at the vortons (the engine warns above), by central differences on every 40th vorton.
    points, step = x[:: max(len(x) // 40, 1)], 1e-4

    # The sum over one period is not the flow of a world that repeats.
    images = read(name).build() if any(read(name).world.periodic) else None

    def flow(at: Array) -> Array:
        return images.velocity(at) if images else velocity(at, x, alpha, sigma)

    columns = [(flow(points + shift) - flow(points - shift)) / (2 * step) for shift in step * np.eye(3)]
    gradient = np.linalg.norm(np.stack(columns, axis=2), axis=(1, 2)).max()
    assert 0 < read(name).world.dt * gradient < 1.0


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize("name", [*HEAT, *BODIES])
def test_world_has_the_size_and_nothing_to_complain_about(name: str) -> None:
    """No sentences from the recipes or, at the start, from the systems; sizes for several ticks a second.

    But for the ball of two_layers_ball, around which the fluid stays as it is, as its header says.
    """
    recipe = read(name)
    assert recipe.lint() == []
    world = recipe.build()
    said = world.lint()
    assert len(said) == (name == "two_layers_ball")
    assert all("'ball' move without setting the fluid in motion" in one for one in said)
    count = sum(len(entity) for entity in world.entities)
    assert count <= 80_000
    assert sum(len(entity) for entity in world.entities if Strength in entity) <= 10_000
    if name in BODIES:
        # Of the blocks of fluid and smoke they clear a small part at the start: 11 % for the spinning ball.
        assert world.fluid[CollisionCount].cleared[0] < 0.15 * max(count, 1)


def test_ring_is_the_one_of_the_design() -> None:
    world, (ring, smoke) = built("vortex_ring"), tables("vortex_ring")["entity"]
    assert (ring["radius"], ring["core"], ring["circulation"], ring["spacing"]) == (1.0, 0.2, 5.0, 0.08)
    assert (smoke["name"], smoke["fills"]) == ("smoke", "ring")
    x, alpha, sigma = vortons(world)
    # Its header: 1.27 m/s; validation.md case 8 has U = 0.253455 Gamma/R at sigma = 0.2 R.
    speed = velocity(x, x, alpha, sigma)
    np.testing.assert_allclose(speed[:, 2], 5 * 0.253455, rtol=1e-5)
    np.testing.assert_allclose(speed[:, :2], 0.0, atol=1e-12)


def test_leapfrog_starts_as_the_validated_case() -> None:
    # validation.md case 35: two rings of 100 blobs, Gamma = 1, R = distance = 0.7906, sigma = R/10.
    world = built("leapfrog")
    for name, height in (("rear", 0.0), ("front", 0.7906)):
        x = world[name][Position].x
        assert len(x) == 100
        np.testing.assert_allclose(np.hypot(x[:, 0], x[:, 1]), 0.7906)
        np.testing.assert_allclose(x[:, 2], height)
        np.testing.assert_allclose(world[name][CoreRadius].sigma, 0.07906)


def test_symmetric_worlds_have_the_impulse_of_their_symmetry() -> None:
    # Oblique rings: mirror images in x, so the x impulse cancels and z is twice pi Gamma R^2 cos(angle), plus
    # the core's second moment <rho^2> = R^2 + a^2/2 with a^2 between 0.0128 (laid out) and 0.04 (made).
    x, alpha, _ = vortons(built("oblique_rings"))
    impulse = 0.5 * np.cross(x, alpha).sum(axis=0)
    cosine = 0.97 / np.hypot(0.26, 0.97)
    assert impulse[2] == pytest.approx(2 * np.pi * 2.0 * cosine * (0.64 + 0.0065), rel=0.01)
    np.testing.assert_allclose(impulse[:2], 0.0, atol=1e-10)
    # Crossed tubes: total strength = circulation x length along y and -x.
    alpha = vortons(built("crossed_tubes"))[1]
    np.testing.assert_allclose(alpha.sum(axis=0), [-12.0, 12.0, 0.0], atol=1e-9)


SAMPLED = {"dye": "density", "temperature": "temperature", "fire": "species"}
"""What a SamplingSystem has to take for a look that paints tracers by it."""


@pytest.mark.parametrize("name", [name for name in shipped() if read(name).output.look in SAMPLED])
def test_a_look_finds_what_it_paints_tracers_by(name: str) -> None:
    """Or each population of tracers has a colour of its own; else pictures come with a warning."""
    recipe = read(name)
    taken = [
        system.get("take", [*SAMPLED.values()]) for system in recipe.system if system["kind"] == "sampling"
    ]
    tracers = [entity for entity in recipe.entity if entity.kind == "tracers"]
    coloured = bool(tracers) and all(entity.color for entity in tracers)
    assert coloured or any(SAMPLED[recipe.output.look] in fields for fields in taken)
