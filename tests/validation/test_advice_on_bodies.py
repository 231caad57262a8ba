"""What BodySystem says of bodies that the fluid does not know of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from boundary_flows import empty_world
from solids import balls

import ecs_fluid as ef
from ecs_fluid.systems.shared.body_tables import body_entities, gathered
from ecs_fluid.systems.shared.surface_areas import frontal_areas

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
        (True, {"motion": "scripted", "shape": CUT}, {}, [script(rotation=MOVED)]),  # of several rows
        (False, {"motion": "scripted", "shape": CUT}, {}, [script(rotation=STILL)]),
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
    assert not any("in motion" in text for text in turned.lint())
    it = {"kind": "body", "name": "it", "shape": BALL, "center": [0.0, 0.0, 0.0], "velocity": [1.0, 0.0, 0.0]}
    low, high = [-1.5, -1.5, -1.5], [1.5, 1.5, -1.0]
    water = {"kind": "liquid", "name": "water", "box": {"low": low, "high": high}, "spacing": 0.1}
    carried = tank | {"velocity": [1.0, 0.0, 0.0]}
    poured = ef.load({"entity": [carried, it, water, smoke], "system": [{"kind": "sph"}]})
    assert not any("in motion" in text or "without the fluid" in text for text in poured.lint())


@pytest.mark.parametrize(
    ("told", "tank", "tables"),
    [
        (True, {"velocity": [1.0, 0.0, 0.0]}, {}),
        (True, {"center": MOVED}, {}),
        (False, {"center": STILL}, {}),
        (False, {"center": MOVED}, {"fluid": {"velocity": {"solver": "container"}}}),
        (False, {"center": MOVED}, {"system": [{"kind": "boundary", "boundary": "panels"}]}),
    ],
)
def test_advice_on_containers_that_leave_their_fluid(
    told: bool, tank: dict[str, Any], tables: dict[str, Any]
) -> None:
    """Walls alone push particles, and air stays; a flow between walls, or sheets on them, take it along."""
    room = {"kind": "container", "name": "tank", "shape": BOX, **tank}
    smoke = {"kind": "tracers", "name": "smoke", "points": [[1.0, 0.0, 0.0]]}
    world = ef.load({"entity": [room, smoke], **tables})
    assert sum("container 'tank' moves without the fluid in it" in text for text in world.lint()) == told


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
    """A warm body warms nothing without a system of conduction."""
    it = {"kind": "body", "name": "it", "shape": BALL, "motion": "fixed", "heat": {"temperature": 500.0}}
    table: dict[str, Any] = {"world": {"dimension": dimension}, "entity": [it]}
    assert [text for text in ef.load(table).lint() if "no system uses the heat of 'it'" in text]
    warm = ef.load({**table, "system": [{"kind": "conduction", "reach": 0.1}]})
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


ROOM = {"kind": "container", "name": "room", "shape": {"shape": "box", "size": [1.0, 2.0, 3.0]}}
TILTED = {"rotation": [0.0, 0.0, 0.5]}
THING = {"kind": "body", "name": "thing"}
BRICK: dict[str, Any] = {"shape": "box", "size": [0.9, 1.9, 2.9]}
ROD: dict[str, Any] = {
    "shape": "compound",
    "parts": [
        {"shape": {"shape": "box", "size": [length, 1.0, 1.0]}, "center": [x, 0.0, 0.0]}
        for length, x in ((10.0, -5.5), (1.0, 0.0), (10.0, 5.5))
    ],
}
POST = {"kind": "body", "name": "post", "motion": "fixed", "shape": BOX}


@pytest.mark.parametrize(
    ("entities", "told"),
    [
        # In the container, which is 1 m wide; a box is as wide as the ball in it, however it turns.
        ([ROOM, THING | {"shape": BALL}], None),
        ([ROOM, THING | {"shape": {"shape": "ball", "radius": 0.51}}], "is 1.02 m wide, but 'room', in"),
        ([ROOM | TILTED, THING | {"shape": BRICK}], None),
        ([ROOM | TILTED, THING | {"shape": {"shape": "box", "size": [1.1, 1.2, 1.3]}}], "1.1 m wide, but"),
        # Beside it.
        ([ROOM, THING | {"shape": BALL, "center": [1.1, 0.0, 0.0]}], "centres outside all containers"),
        ([ROOM, THING | {"shape": BALL, "center": [1.1, 0.0, 0.0], "motion": "fixed"}], None),
        # In another body, or half in it.
        ([POST, THING | {"shape": BALL, "center": [0.4, 0.0, 0.0]}], "centres in fixed or scripted"),
        ([POST, THING | {"shape": BALL, "center": [0.6, 0.0, 0.0]}], None),
        ([POST | {"motion": "free"}, THING | {"shape": BALL, "center": [0.4, 0.0, 0.0]}], None),
    ],
)  # fmt: skip
def test_free_bodies_where_they_cannot_be_are_told(entities: list[dict[str, Any]], told: str | None) -> None:
    found = [text for text in ef.load({"entity": entities}).lint() if text.startswith("BodySystem")]
    assert [told is not None and told in text for text in found] == [True] * (told is not None), found


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            {"center": {"keys": [[0.0, [0.0, 0.0, 0.0]], [1e-4, [20.0, 0.0, 0.0]]]}},
            "20 m in a tick, 20 times",
        ),
        (
            {"center": {"keys": [[0.91, [0.0, 0.0, 0.0]], [0.98, [90.0, 0.0, 0.0]]]}},
            "90 m in a tick, 90 times",
        ),
        ({"center": {"keys": [[0.0, [0.0, 0.0, 0.0]], [1.0, [90.0, 0.0, 0.0]]]}}, None),
        ({"velocity": [150.0, 0.0, 0.0]}, "15 m in a tick, 15 times its width"),
        ({"velocity": [90.0, 0.0, 0.0]}, None),
        ({"velocity": [200.0, 0.0, 0.0], "shape": ROD}, None),  # told by its middle part, 12 times as wide
    ],
)
def test_bodies_that_jump_are_told(body: dict[str, Any], told: str | None) -> None:
    """Ticks of 0.1 s, a ball of 1 m; keys of 0.07 s may lie in one tick. The rod is 21 m long."""
    thing = THING | {"shape": BALL, "motion": "scripted"} | body
    found = [text for text in ef.load({"world": {"dt": 0.1}, "entity": [thing]}).lint() if "tick" in text]
    assert [told is not None and told in text for text in found] == [True] * (told is not None), found


def test_mass_beside_density_is_refused() -> None:
    """But for parts, which share the mass by their densities."""
    both = {"mass": 2.0, "density": 300.0}
    with pytest.raises(ef.RecipeError, match="mass and density are both given; only one of them is allowed"):
        ef.load({"entity": [THING | {"shape": BALL} | both]})
    world = ef.load({"entity": [THING | {"shape": CUT} | both]})
    assert world["thing"][ef.Body].mass.tolist() == pytest.approx([1.0, 1.0])


def test_panels_around_bodies_in_liquid_alone_are_told() -> None:
    """Dye in the air, or a body that vortons push, may be what they are for."""
    water = {"kind": "liquid", "name": "water", "box": {"low": [0, 0, 0], "high": [1, 1, 1]}, "spacing": 0.25}
    post = POST | {"center": [3.0, 0.0, 0.0]}
    dust = {"kind": "tracers", "name": "dust", "points": [[5.0, 0.0, 0.0]]}
    panels = [{"kind": "boundary", "boundary": "panels"}]
    for entities, told in (([water, post], True), ([water, post, dust], False), ([post, dust], False)):
        found = ef.load({"entity": entities, "system": panels}).lint()
        assert any("only liquid is there" in text for text in found) == told


def test_balls_wider_than_their_lattice_are_told() -> None:
    """2 m of a lattice of 0.25 m; balls that just touch are not told."""
    balls = {"kind": "spheres", "name": "b", "box": {"low": [0, 0, 0], "high": [2, 2, 2]}, "spacing": 0.25}
    for radius, told in (
        (0.125, []),
        (0.13, ["'b': balls of 0.26 m overlap on a lattice of 0.25 m, and will be"]),
    ):
        found = ef.WorldRecipe(entity=(balls | {"radius": radius},)).lint()
        assert [text.startswith(part) for part, text in zip(told, found, strict=True)] == [True] * len(told)


def frontal(*parts: dict[str, Any]) -> tuple[float, list[str]]:
    """Mean frontal area of a free body of these parts, m^2, and what drag says of it."""
    body = {"kind": "body", "name": "b", "shape": {"shape": "compound", "parts": list(parts)}}
    world = ef.load({"fluid": {"viscosity": 1e-5}, "entity": [body], "system": [{"kind": "drag"}]})
    bodies, hulls = gathered(body_entities(world))
    area = frontal_areas(bodies, hulls)
    assert (area == area[0]).all()
    return float(area[0]), [text for text in world.lint() if "the ball of its volume" in text]


def test_drag_tells_of_flat_bodies_of_parts() -> None:
    """Cauchy: a quarter of the surface, 2 (ab + bc + ca)/4, for a whole box, however it is cut.

    Two cubes of 1 m that are 20 m apart hide each other in few directions, so 2 x 1.5 m^2. Three walls of a
    box hide no more than the box does. A ball of the volume of the plate, 0.01 m^3, hides
    pi (3 x 0.01/4 pi)^(2/3) = 0.0561 m^2, and the plate 9.1 times as much.
    """

    def box(size: list[float], x: float = 0.0, **more: Any) -> dict[str, Any]:
        return {"shape": {"shape": "box", "size": size}, "center": [x, 0.0, 0.0], **more}

    area, told = frontal(*(box([0.25, 1.0, 1.0], x) for x in (-0.375, -0.125, 0.125, 0.375)))
    assert area == pytest.approx(1.5, rel=1e-6) and not told
    area, _ = frontal(box([1.0, 1.0, 1.0], -10.0), box([1.0, 1.0, 1.0], 10.0))
    assert area == pytest.approx(3.0, rel=1e-6)
    walls = [box([0.01, 1.0, 1.0], -0.495), box([0.01, 1.0, 1.0], 0.495), box([0.98, 1.0, 0.01])]
    assert frontal(*walls)[0] == pytest.approx(1.5, rel=1e-6)
    area, told = frontal(box([0.5, 1.0, 0.01], 0.25), box([0.5, 1.0, 0.01], -0.25))
    assert area == pytest.approx(0.51, rel=1e-6) and len(told) == 1
    assert "'b' counts as the ball of its volume, but its mean frontal area is 9." in told[0]
