"""What BodySystem says of bodies that the fluid does not know of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from boundary_flows import empty_world
from solids import balls

import ecs_fluid as ef

WIND = (1.0, 0.0, 0.0)
BALL: dict[str, Any] = {"shape": "ball", "radius": 0.5}
BOX: dict[str, Any] = {"shape": "box", "size": [1.0, 1.0, 1.0]}
HALF: dict[str, Any] = {"shape": "box", "size": [0.5, 1.0, 1.0]}
CUT: dict[str, Any] = {
    "shape": "compound",
    "parts": [{"shape": HALF, "center": [x, 0.0, 0.0]} for x in (-0.25, 0.25)],
}
WEIGHT = {"density": 1.0, "gravity": [0.0, 0.0, -9.81]}
MOVED = {"keys": [[0.0, [0.0, 0.0, 0.0]], [9.0, [1.0, 0.0, 0.0]]]}
STILL = {"keys": [[0.0, [1.0, 0.0, 0.0]]]}


def test_advice_on_a_wind_that_blows_through_bodies() -> None:
    """Without a boundary the fluid knows of no body. One that drifts along, and still air, are as meant."""
    for motion, wind, told in (("fixed", WIND, True), ("free", WIND, False), ("fixed", None, False)):
        world = empty_world()
        balls(world, "ball", [0, 0, 0], radius=0.5, motion=motion)
        world.spawn("smoke", ef.Position([[1.0, 0.0, 0.0]]))
        blowing = [ef.WindSystem(velocity=wind)] if wind else []
        world.add_systems([*blowing, ef.BodySystem(), ef.AdvectionSystem()])
        assert any("blows through the fixed bodies" in text for text in world.lint()) == told
    world = empty_world()
    balls(world, "ball", [0, 0, 0], radius=0.5, motion="fixed")
    world.spawn("smoke", ef.Position([[1.0, 0.0, 0.0]]))
    world.add_systems(
        [ef.WindSystem(velocity=WIND), ef.BoundarySystem(boundary="panels"), ef.AdvectionSystem()]
    )
    assert not any("blows through" in text for text in world.lint())
    tank = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1.0, 1.0, 1.0]}}
    smoke = {"kind": "tracers", "name": "smoke", "points": [[0.0, 0.0, 0.0]]}
    inside = ef.load({"entity": [tank, smoke], "system": [{"kind": "wind", "velocity": list(WIND)}]})
    assert not any("blows through" in text for text in inside.lint())


def script(**way: Any) -> dict[str, Any]:
    return {"kind": "body", "scripts": [{"name": "it", **way}]}


@pytest.mark.parametrize(
    ("told", "body", "fluid", "systems"),
    [
        (True, {"velocity": [1.0, 0.0, 0.0]}, {}, []),
        (True, {"velocity": [1.0, 0.0, 0.0]}, {}, [{"kind": "drag"}]),
        (False, {"velocity": [1.0, 0.0, 0.0]}, {}, [{"kind": "wind", "velocity": list(WIND)}]),
        (False, {"velocity": [1.0, 0.0, 0.0]}, {}, [{"kind": "boundary", "boundary": "panels"}]),
        (False, {}, {}, []),
        (False, {}, {}, [{"kind": "wind", "velocity": list(WIND)}]),  # it will drift along
        (False, {"angular_velocity": [0.0, 0.0, 1.0]}, {}, []),  # a ball slides along what is around it
        (True, {"angular_velocity": [0.0, 0.0, 1.0], "shape": BOX}, {}, []),
        (True, {}, WEIGHT, []),
        (False, {"motion": "fixed"}, WEIGHT, []),
        (True, {}, WEIGHT, [{"kind": "drag"}]),
        (True, {"density": 1.05}, WEIGHT, [{"kind": "drag"}, {"kind": "buoyancy"}]),
        (False, {"density": 1.0}, WEIGHT, [{"kind": "drag"}, {"kind": "buoyancy"}]),  # it floats
        (True, {"shape": CUT, "density": 0.95}, WEIGHT, [{"kind": "buoyancy"}]),
        (False, {"shape": CUT, "density": 1.0}, WEIGHT, [{"kind": "buoyancy"}]),
        (True, {"motion": "scripted"}, {}, [script(center=MOVED)]),
        (False, {"motion": "scripted"}, {}, [script(center=STILL)]),
        (False, {"motion": "scripted"}, {}, [script(rotation=MOVED)]),
        (True, {"motion": "scripted", "shape": BOX}, {}, [script(rotation=MOVED)]),
    ],
)
def test_advice_on_bodies_that_the_fluid_does_not_notice(
    told: bool, body: dict[str, Any], fluid: dict[str, Any], systems: list[dict[str, Any]]
) -> None:
    """Without a boundary particles are pushed by surfaces alone, and fluid stays as it is around them."""
    it = {"kind": "body", "name": "it", "shape": BALL, "center": [0.0, 0.0, 0.0], **body}
    smoke = {"kind": "tracers", "name": "smoke", "points": [[0.2, 0.2, 0.9]]}
    calm = {"viscosity": 1e-5, "gravity": [0.0, 0.0, 0.0]}
    world = ef.load({"fluid": calm | fluid, "entity": [it, smoke], "system": systems})
    assert (
        sum("bodies of 'it' move without setting the fluid in motion" in text for text in world.lint())
        == told
    )


def test_containers_and_liquids_need_no_boundary() -> None:
    """Walls are pushed through no fluid, and the pressure of a liquid lets a body push it."""
    tank = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [3.0, 3.0, 3.0]}}
    smoke = {"kind": "tracers", "name": "smoke", "points": [[0.2, 0.2, 0.9]]}
    turned = ef.load({"entity": [tank | {"angular_velocity": [0.0, 0.0, 1.0]}, smoke]})
    assert not any("notice" in text for text in turned.lint())
    it = {"kind": "body", "name": "it", "shape": BALL, "center": [0.0, 0.0, 0.0], "velocity": [1.0, 0.0, 0.0]}
    low, high = [-1.5, -1.5, -1.5], [1.5, 1.5, -1.0]
    water = {"kind": "liquid", "name": "water", "box": {"low": low, "high": high}, "spacing": 0.1}
    poured = ef.load({"entity": [tank, it, water], "system": [{"kind": "sph"}]})
    assert not any("notice" in text for text in poured.lint())


@pytest.mark.parametrize(
    ("told", "changes"),
    [
        ("", {}),
        ("sqrt(4 nu R/U) = 0.00447 m thick, so drag depends on the lattice", {"viscosity": 1e-5}),
        ("in one tick the fluid moves 1.2 spacings", {"dt": 0.06}),
        ("has no boundary layer to resolve", {"viscosity": 0.0}),
        ("'core_spreading' has no effect on them", {"diffusion": {"method": "core_spreading"}}),
    ],
)
@pytest.mark.parametrize("dimension", [2, 3])
def test_advice_on_layers(told: str, changes: dict[str, Any], dimension: int) -> None:
    """Where the lattice of a `layer` does not resolve the layer, or undoes what spreads it."""
    it = {"kind": "body", "name": "it", "shape": BALL, "motion": "fixed"}
    fluid = {"viscosity": 0.01, "stretch": {"scheme": "none"}}
    fluid |= {key: value for key, value in changes.items() if key != "dt"}
    systems = [
        {"kind": "wind", "velocity": list(WIND)},
        {"kind": "boundary", "boundary": "layer", "lattice": 0.05},
    ]
    options = {"dimension": dimension, "dt": changes.get("dt", 0.05)}
    world = ef.load({"world": options, "fluid": fluid, "entity": [it], "system": systems})
    said = [text for text in world.lint() if text.startswith("BoundarySystem")]
    assert len(said) == bool(told) and all(told in text for text in said)


@pytest.mark.parametrize("dimension", [2, 3])
def test_advice_on_heat_of_bodies_that_nothing_takes_up(dimension: int) -> None:
    """A warm body warms nothing without a system of conduction, and there is none in a plane."""
    it = {"kind": "body", "name": "it", "shape": BALL, "motion": "fixed", "heat": {"temperature": 500.0}}
    cold = ef.load({"world": {"dimension": dimension}, "entity": [it]})
    assert [text for text in cold.lint() if "no system uses the heat of 'it'" in text]
    if dimension == 3:
        warm = ef.load({"entity": [it], "system": [{"kind": "conduction", "reach": 0.1}]})
        assert not any("heat of" in text for text in warm.lint())


@pytest.mark.parametrize(
    ("density", "without", "told"),
    [
        *((0.1, "", "2.5"), (1.0, "", "1"), (2.9, "", "0.44"), (3.5, "", None)),
        *((1.0, without, None) for without in ("drag", "flow", "vortons", "free", "boundary")),
    ],
)
def test_advice_on_bodies_that_vortices_throw_out(density: float, without: str, told: str | None) -> None:
    """A ball of s times the fluid's density has (1 + 1/2)/(s + 1/2) of its acceleration by pressure."""
    world = ef.World(dt=0.01, integrator="rk2", precision="double")
    world.set_fluid(density=2.0, viscosity=1e-5)
    mass = 2.0 * density * 4 / 3 * np.pi * 0.5**3
    balls(world, "ball", [0, 0, 0], radius=0.5, mass=mass, motion="fixed" if without == "free" else "free")
    strength = [[0.0, 0.0, 0.0 if without == "vortons" else 1.0]]
    world.spawn("ring", ef.Position([[2.0, 0, 0]]), ef.Strength(strength), ef.CoreRadius([0.1]))
    drag = [] if without == "drag" else [ef.DragSystem(flow=without != "flow")]
    edge = [ef.BoundarySystem(boundary="panels")] if without == "boundary" else []
    world.add_systems([ef.BuoyancySystem(), *drag, *edge, ef.AdvectionSystem()])
    said = [text for text in world.lint() if "so vortices throw them outwards" in text]
    assert len(said) == (told is not None)
    if told is not None:
        assert f"worth {told} times its acceleration" in said[0]
        world.system(ef.BuoyancySystem).acceleration = True
        assert not any("throw them outwards" in text for text in world.lint())
