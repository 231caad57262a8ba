"""Inflows of liquid: their volume, where the jet flies, what has no room, and the same bits every time."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import ComponentError, FluidError, FluidWarning, LimitError, RecipeError
from ecs_fluid.systems.inflow import LOOSE, Inflow

TAP = {"name": "tap", "into": "water", "center": [0.0, 0.0, 0.0], "spacing": 0.05}


def world_of(
    *taps: dict[str, Any], precision: str = "single", pressure: str = "explicit", **fluid: Any
) -> ef.World:
    """A world in which liquid flows in."""
    entities = [{"kind": "inflow", **TAP, **tap} for tap in taps]
    table = {"dt": 0.01, "integrator": "euler", "precision": precision, "debug": True}
    fluid = {"gravity": [0.0, 0.0, -9.81], **fluid}
    sph = {"kind": "sph", "pressure": pressure}
    return ef.load({"world": table, "fluid": fluid, "entity": entities, "system": [sph]})


def volume(world: ef.World, name: str = "water") -> float:
    from ecs_fluid.components.liquid import Liquid

    return float(world[name][Liquid].volume.sum(dtype=np.float64)) if len(world[name]) else 0.0


@pytest.mark.parametrize(
    ("shape", "size", "area"),
    [("disc", [0.2, 0.2], 0.01 * math.pi), ("disc", [0.31, 0.17], 0.31 * 0.17 * math.pi / 4),
     ("rectangle", [0.2, 0.1], 0.02), ("rectangle", [0.27, 0.06], 0.27 * 0.06)],
)  # fmt: skip
@pytest.mark.parametrize("speed", [0.7, {"keys": [[0.0, 0.0], [0.1, 2.0], [0.2, 0.5]]}])
def test_volume_is_area_times_way(shape: str, size: list[float], area: float, speed: Any) -> None:
    """To half a layer, at any time, for lattices that fit the opening and for those that do not."""
    world = world_of({"shape": shape, "size": size, "speed": speed, "start": 0.02, "stop": 0.25})
    system = world.system(ef.InflowSystem)
    assert system is not None
    layer = len(system.inflows[0].layer()) * 0.05**3
    for _ in range(30):
        world.step()
        time = np.linspace(0.02, min(max(world.time, 0.02), 0.25), 2001)
        keys = speed["keys"] if isinstance(speed, dict) else [[0.0, speed]]
        way = np.trapezoid(np.interp(time, *zip(*keys, strict=True)), time)
        assert abs(volume(world) - area * way) < layer * 0.501


@pytest.mark.parametrize("pressure", ["explicit", "implicit"])
def test_a_jet_flies_as_a_thrown_stone(pressure: str) -> None:
    """Nothing pushes its layers off the parabola: they are no denser than liquid at rest. Jets whose lattice
    was burst at the opening within ten layers, at 0.2 of their speed across."""
    jet = {"direction": [1.0, 0.0, 0.0], "speed": 3.0, "size": [0.35, 0.35]}
    world = world_of(jet, pressure=pressure)
    world.step(20)
    x, v = world["water"][ef.Position].x, world["water"][ef.InertialVelocity].v
    time = x[:, 0] / 3.0
    np.testing.assert_allclose(v, np.stack([0 * time + 3.0, 0 * time, -9.81 * time], axis=1), atol=0.05)
    inner = time > 0.02
    assert (x[:, 2] + 0.5 * 9.81 * time**2)[inner].mean() == pytest.approx(0.0, abs=2e-3)


@pytest.mark.parametrize("direction", [[0, 0, 1], [0, 0, -2], [1, 1, 0], [0.3, -0.5, 0.2]])
def test_the_opening_lies_across_its_direction(direction: list[float]) -> None:
    """Its first width is horizontal; in any direction it is as wide."""
    world = world_of(
        {"direction": direction, "shape": "rectangle", "size": [0.4, 0.2], "speed": 2.0},
        precision="double", gravity=[0.0, 0.0, 0.0],
    )  # fmt: skip
    world.step(3)
    way = np.array(direction) / np.linalg.norm(direction)
    x, v = world["water"][ef.Position].x, world["water"][ef.InertialVelocity].v
    np.testing.assert_allclose(v, np.broadcast_to(2.0 * way, v.shape), atol=1e-9)
    flat = x - (x @ way)[:, None] * way
    first = np.cross([0.0, 0.0, 1.0], way) if np.hypot(*way[:2]) > 0 else np.array([1.0, 0.0, 0.0])
    first /= np.linalg.norm(first)
    second = np.cross(way, first)
    assert np.ptp(flat @ first) == pytest.approx(LOOSE * 0.35)
    assert np.ptp(flat @ second) == pytest.approx(LOOSE * 0.15)


def test_a_hose_may_move_and_turn() -> None:
    """Layers leave where the opening was when they were born, with its velocity beside the speed; a little
    they push each other, as the opening turns."""
    center = {"keys": [[0.0, [0.0, 0.0, 0.0]], [0.2, [2.0, 0.0, 0.0]]]}
    turn = {"keys": [[0.0, [0.0, 1.0, 0.0]], [0.2, [0.0, 0.0, 1.0]]]}
    world = world_of(
        {"center": center, "direction": turn, "speed": 1.0, "size": [0.05, 0.05]},
        precision="double", gravity=[0.0, 0.0, 0.0],
    )  # fmt: skip
    world.step(19)
    x, v = world["water"][ef.Position].x, world["water"][ef.InertialVelocity].v
    born = 0.2 * v[:, 2] / (v[:, 1] + v[:, 2])
    assert len(x) >= 3
    np.testing.assert_allclose(np.hypot(v[:, 1], v[:, 2]), 1.0, rtol=0.06)
    np.testing.assert_allclose(np.hypot(x[:, 1], x[:, 2]), 0.19 - born, atol=0.01)
    np.testing.assert_allclose(v[:, 0], 10.0, rtol=1e-6)
    np.testing.assert_allclose(x[:, 0], 1.9, rtol=1e-6)


@pytest.mark.parametrize("moves", [1.0, 3.0])
def test_a_jet_from_a_nozzle_that_moves_along_it_keeps_together(moves: float) -> None:
    """Its layers leave at their speed as seen from the nozzle, so nothing is crowded."""
    center = {"keys": [[0.0, [0.0, 0.0, 0.0]], [1.0, [moves, 0.0, 0.0]]]}
    world = world_of({"center": center, "direction": [1.0, 0.0, 0.0], "speed": 3.0}, gravity=[0.0, 0.0, 0.0])
    world.step(25)
    v = world["water"][ef.InertialVelocity].v
    np.testing.assert_allclose(v, np.tile([3.0 + moves, 0.0, 0.0], (len(v), 1)), atol=1e-3)


def test_a_turning_container_carries_its_opening_along() -> None:
    """A sprinkler: one particle a layer leaves 0.5 m off the axis, outwards, at 1 m/s; the container turns at
    2 rad/s about z and goes along x at 0.3 m/s. Each flies on with the velocity of its place beside that; the
    k-th is born at (k - 1/2) a^3 / A / (1 m/s). A little they push each other."""
    keys = {
        "rotation": {"keys": [[0, [0, 0, 0]], [1, [0, 0, 2.0]]]},
        "center": {"keys": [[0, [0, 0, 0]], [1, [0.3, 0, 0]]]},
    }
    room = {"kind": "container", "name": "room", "shape": {"shape": "box", "size": [6.0, 6.0, 1.0]}, **keys}
    arm = {"center": [0.5, 0.0, 0.0], "direction": [1.0, 0.0, 0.0], "size": [0.05, 0.05], "speed": 1.0}
    world = ef.load(
        {"world": {"dt": 0.01, "integrator": "euler", "precision": "double", "debug": True},
         "fluid": {"gravity": [0.0, 0.0, 0.0]},
         "entity": [room, {"kind": "inflow", **TAP, **arm, "attached": "room"}]}
    )  # fmt: skip
    world.step(40)
    x, v = world["water"][ef.Position].x, world["water"][ef.InertialVelocity].v
    born = (np.arange(1, len(x) + 1) - 0.5) * 0.05 / (np.pi / 4)
    out = np.stack([np.cos(2 * born), np.sin(2 * born), 0 * born], axis=1)
    along = np.stack([-out[:, 1], out[:, 0], 0 * born], axis=1)
    assert len(x) == 6
    np.testing.assert_allclose(v, [0.3, 0, 0] + out + 2.0 * 0.5 * along, atol=0.06)
    place = born[:, None] * [0.3, 0, 0] + 0.5 * out + (0.4 - born)[:, None] * v
    np.testing.assert_allclose(x, place, atol=0.01)


def test_an_opening_goes_with_what_carries_it(tmp_path: Path) -> None:
    """Of one particle a layer at 1 m/s two are born by 0.1 s, at 0.032 and 0.095 s; no third one comes, in a
    resumed world neither."""
    room = {"kind": "container", "name": "room", "shape": {"shape": "box", "size": [6.0, 6.0, 1.0]}}
    arm = {"direction": [1.0, 0.0, 0.0], "size": [0.05, 0.05], "speed": 1.0, "attached": "room"}
    world = ef.load(
        {"world": {"dt": 0.01, "precision": "double"}, "entity": [room, {"kind": "inflow", **TAP, **arm}]}
    )
    world.step(10)
    world["room"].kill([0])
    world.step(10)
    world.save(tmp_path / "gone.npz")
    world = ef.resume(tmp_path / "gone.npz")
    world.step(10)
    assert len(world["water"]) == 2


def test_a_body_of_parts_carries_an_opening_as_the_whole_does() -> None:
    """A cart goes at 0.5 m/s by keys and lets liquid out ahead of it at 1 m/s more: 1.5 m/s.

    (One of parts was refused, as it had 2 bodies.)
    """
    half = {"shape": "box", "size": [0.1, 0.2, 0.2]}
    cut = {"shape": "compound", "parts": [{"shape": half, "center": [x, 0, 0]} for x in (-0.05, 0.05)]}
    keys = {"keys": [[0.0, [0.0, 0.0, 0.0]], [1.0, [0.5, 0.0, 0.0]]]}
    arm = {"center": [0.3, 0, 0], "direction": [1, 0, 0], "size": [0.05, 0.05], "attached": "cart"}
    found = []
    for shape in ({"shape": "box", "size": [0.2, 0.2, 0.2]}, cut):
        cart = {"kind": "body", "name": "cart", "motion": "scripted", "shape": shape, "center": keys}
        tables = {"world": {"dt": 0.01, "precision": "double"}, "fluid": {"gravity": [0.0, 0.0, 0.0]}}
        world = ef.load({**tables, "entity": [cart, {"kind": "inflow", "speed": 1.0, **TAP, **arm}]})
        world.step(10)
        found.append(world["water"][ef.Position].x)
        np.testing.assert_allclose(world["water"][ef.InertialVelocity].v, [[1.5, 0.0, 0.0]] * 2, atol=1e-12)
    np.testing.assert_allclose(*found, atol=1e-12)


@pytest.mark.parametrize("pressure", ["explicit", "implicit"])
@pytest.mark.parametrize("jump", [0.05, 0.2])
def test_a_nozzle_that_jumps_into_its_jet_leaves_it_as_it_is(jump: float, pressure: str) -> None:
    """What it has let out flies on at 2 m/s, and it goes on behind that. All was thrown apart, at 15 m/s."""
    keys = {"keys": [[0.0, [0.0, 0.0, 0.0]], [0.1, [jump, 0.0, 0.0]]], "between": "step"}
    tap = {"center": keys, "direction": [1.0, 0.0, 0.0], "speed": 2.0, "size": [0.15, 0.15]}
    world = world_of(tap, pressure=pressure, gravity=[0.0, 0.0, 0.0])
    with pytest.warns(FluidWarning, match="inflow 'tap' have no room"):
        world.step(25)
    v = world["water"][ef.InertialVelocity].v
    np.testing.assert_allclose(v, np.tile([2.0, 0.0, 0.0], (len(v), 1)), atol=0.02)
    assert volume(world) == pytest.approx((0.5 - jump) * np.pi / 4 * 0.15**2, rel=0.15)


def tank(level: float, **tap: Any) -> ef.World:
    box = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [0.4, 0.4, 0.6]}}
    pool = {"kind": "liquid", "name": "pool", "fills": "tank", "level": level, "hydrostatic": True}
    inflow = {"kind": "inflow", **TAP, "size": [0.15, 0.15], **tap}
    return ef.load({"world": {"dt": 0.01, "integrator": "euler"}, "entity": [box, pool, inflow]})


def test_an_opening_under_water_lets_nothing_in_and_says_so() -> None:
    world = tank(0.1, center=[0.0, 0.0, -0.1])
    system = world.system(ef.InflowSystem)
    assert system is not None and "have no room" in system.lint(world)[-1]
    with pytest.warns(FluidWarning, match="inflow 'tap' have no room"):
        world.step(10)
    assert not len(world["water"])
    assert np.linalg.norm(world["pool"][ef.InertialVelocity].v, axis=1).max() < 0.3


def test_an_opening_above_water_fills_the_tank_and_stays_clear_of_it() -> None:
    """What flies in meets what is there without a burst: no faster than it fell."""
    world = tank(-0.1, center=[0.0, 0.0, 0.15], speed=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "InflowSystem: the jet of 'tap' is [23] particles thick")
        world.step(40)
    assert volume(world) == pytest.approx(0.4 * 0.5 * math.pi / 4 * 0.15**2, rel=0.1)
    speed = np.linalg.norm(world["water"][ef.InertialVelocity].v, axis=1).max()
    assert speed < 1.3 * math.sqrt(0.5**2 + 2 * 9.81 * 0.25)


def test_nothing_flows_into_solids_or_out_of_containers() -> None:
    outside = tank(-0.1, center=[0.5, 0.0, 0.2])
    ball = {"kind": "body", "name": "ball", "shape": {"shape": "ball", "radius": 0.3}, "motion": "fixed"}
    inside = ef.load(
        {"world": {"dt": 0.01, "integrator": "euler"}, "entity": [ball, {"kind": "inflow", **TAP}]}
    )
    for world in (outside, inside):
        with pytest.warns(FluidWarning, match="have no room"):
            world.step(10)
        assert not len(world["water"])


@pytest.mark.parametrize("pressure", ["explicit", "implicit"])
def test_what_flows_along_a_wall_is_not_thrown_off_it(pressure: str) -> None:
    """A row nearer to a wall than 0.4 spacings is nearer to its image than any two particles: it burst."""
    box = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [0.8, 0.5, 0.8]}}
    jet = {"center": [-0.2, 0.0, -0.3], "direction": [1, 0, 0], "speed": 2.0, "size": [0.3, 0.3]}
    world = ef.load(
        {"world": {"dt": 0.01, "integrator": "euler"}, "fluid": {"gravity": [0.0, 0.0, 0.0]},
         "entity": [box, {"kind": "inflow", **TAP, **jet}], "system": [{"kind": "sph", "pressure": pressure}]}
    )  # fmt: skip
    with pytest.warns(FluidWarning, match="inflow 'tap' have no room"):
        world.step(12)
    assert len(world["water"]) > 100
    assert np.linalg.norm(world["water"][ef.InertialVelocity].v, axis=1).max() < 1.2 * 2.0


def test_an_opening_that_touches_a_wall_gives_all_its_volume() -> None:
    jet = {"shape": "rectangle", "size": [0.1, 0.1], "center": [0.0, 0.15, 0.2], "direction": [1, 0, 0]}
    world = tank(-0.2, **jet)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "InflowSystem: the jet of 'tap' is [23] particles thick")
        world.step(20)
    assert volume(world) == pytest.approx(0.2 * 0.01, rel=0.1)


def test_it_is_told_when_nothing_flows_though_some_lacked_room_before() -> None:
    """Half of it lies in the wall; later it is outside."""
    keys = [[0.0, [0.2, 0.0, 0.1]], [0.2, [1.0, 0.0, 0.1]]]
    world = tank(-0.2, center={"keys": keys, "between": "step"})
    with pytest.warns(FluidWarning, match=r"[1-8] of 9 particles of inflow 'tap' have no room"):
        world.step(15)
    with pytest.warns(FluidWarning, match="9 of 9 particles of inflow 'tap' have no room"):
        world.step(15)


def test_what_flows_in_has_the_weight_that_its_surroundings_leave() -> None:
    """A jet as dense as what surrounds it goes straight."""
    world = world_of({"direction": [1.0, 0.0, 0.0]}, precision="double", density=1000.0)
    system = world.system(ef.SphSystem)
    assert system is not None
    system.surrounded = True
    world.step(20)
    assert np.abs(world["water"][ef.InertialVelocity].v[:, 2]).max() < 1e-6


def test_layers_further_apart_than_the_pipe_is_long() -> None:
    """One particle in a long while; the pipe is empty at times."""
    world = world_of({"spacing": 1.0, "size": [0.3, 0.3], "speed": 20.0}, gravity=[0.0, 0.0, 0.0])
    world.step(80)
    assert len(world["water"]) == 1


def test_two_taps_one_liquid_resumed_to_the_bit(tmp_path: Path) -> None:
    left = {"name": "left", "center": [-0.3, 0.0, 0.0], "direction": [1.0, 0.0, 0.3], "speed": 2.0}
    right = {"name": "right", "center": [0.3, 0.0, 0.0], "direction": [-1.0, 0.0, 0.3], "speed": 1.5}
    once, twice = (world_of(left, right) for _ in range(2))
    once.step(25)
    twice.step(12)
    twice.save(tmp_path / "state.npz")
    again = ef.resume(tmp_path / "state.npz")
    again.step(13)
    assert len(once["water"]) and again.state_hash() == once.state_hash()


def test_speed_of_sound_follows_what_flows_in() -> None:
    """10 sqrt(g H + v^2 / 2), H from the floor to the opening, also without liquid at the start."""
    from ecs_fluid.components.liquid import LiquidModel

    box = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1.0, 1.0, 2.0]}}
    world = ef.load(
        {"world": {"dt": 0.01, "integrator": "euler"}, "fluid": {"gravity": [0.0, 0.0, -10.0]},
         "entity": [box, {"kind": "inflow", **TAP, "center": [0.0, 0.0, 0.5], "speed": 4.0}]}
    )  # fmt: skip
    world.step(3)
    stiffness = float(world.fluid[LiquidModel].stiffness[0])
    # From the middle of the lowest layer, and a spacing for the liquid's own extent.
    height = 1.5 - 0.025 + 0.05
    assert math.sqrt(7 * stiffness / 1000.0) == pytest.approx(10 * math.sqrt(10 * height + 8.0), rel=1e-6)


def test_further_components_and_drains() -> None:
    """Particles carry what they are given; a kill box takes what has flown far."""
    table = {"kind": "Temperature", "T": 350.0}
    world = world_of({"speed": 2.0, "component": [table]})
    world.add_system(ef.KillBoxSystem(low=(-9.0, -9.0, -0.3), high=(9.0, 9.0, 9.0), on=("water",)))
    world.step(60)
    assert np.all(np.float32(350.0) == world["water"][ef.Temperature].T)
    assert world["water"][ef.Position].x[:, 2].min() > -0.4 and 0 < len(world["water"]) < 200


@pytest.mark.parametrize(
    ("tap", "words"),
    [
        ({"speed": -1.0}, "speed = -1.0; a number from 0 to 1e6 m/s is needed"),
        ({"speed": {"keys": [[0, 1], [1, -2]]}}, "speed = -2"),
        ({"direction": [0, 0, 0]}, "direction needs at least one component that is not zero"),
        ({"direction": {"keys": [[0, [0, 0, 1]], [1, [0, 0, -3]]]}}, "direction reverses between"),
        ({"start": 2.0, "stop": 1.0}, "stop = 1 s must be after start = 2 s"),
        ({"size": 0.2}, "size = 0.2"),
        ({"velocity": [0, 0, 1]}, "unknown key 'velocity'"),
    ],
)
def test_mistakes_give_one_sentence(tap: dict[str, Any], words: str) -> None:
    with pytest.raises(RecipeError) as caught:
        world_of(tap)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(RecipeError, match="two inflows are called 'tap'"):
        ef.World().add_system(ef.InflowSystem(inflows=[Inflow(**TAP), Inflow(**TAP)]))
    with pytest.raises(FluidError, match="all liquids need the same viscosity"):
        world_of({"viscosity": 1e-3}, {"name": "other", "into": "oil", "viscosity": 2e-3})
    world = tank(-0.1, center=[0.0, 0.0, 0.2], spacing=0.06, size=[0.2, 0.2])
    with pytest.raises(FluidError, match=r"inflow 'tap': spacing = 0\.06 m, but"):
        world.step()
    world = tank(-0.1, center=[0.0, 0.0, 0.2])
    world.step()
    later = Inflow(name="later", into="water", center=(0.1, 0.0, 0.2), spacing=0.02, size=(0.1, 0.1))
    world.add_system(ef.InflowSystem(inflows=[later]))
    with pytest.raises(FluidError, match=r"inflow 'later': spacing = 0\.02 m, but"):
        world.step()
    tracers = {"kind": "tracers", "name": "smoke", "points": [[0, 0, 0]]}
    with pytest.raises(ComponentError, match="entity 'smoke' has no Liquid"):
        ef.load({"entity": [tracers, {"kind": "inflow", **TAP, "into": "smoke"}]})


def test_what_is_left_open_is_that_of_the_liquid_there() -> None:
    """Or of another opening that tells it. A second density in one liquid, or none of the surroundings', is
    told."""
    box = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [0.4, 0.4, 0.6]}}
    pool = {"kind": "liquid", "name": "oil", "fills": "tank", "level": -0.1, "spacing": 0.04}
    pool = {**pool, "density": 900.0, "viscosity": 1e-3}
    taps = [
        {"kind": "inflow", "name": name, "into": into, "center": [0.0, 0.0, z], **told}
        for name, into, z, told in (
            ("a", "oil", 0.1, {}), ("b", "oil", 0.2, {"density": 1000.0}), ("c", "dye", 0.0, {}),
            ("d", "dye", -0.1, {"density": 1200.0}),
        )
    ]  # fmt: skip
    world = ef.load({"world": {"dt": 0.01}, "entity": [box, pool, *taps]})
    system = world.system(ef.InflowSystem)
    assert system is not None
    found = {one.name: (one.density, one.viscosity, one.spacing) for one in system.inflows}
    edge = pytest.approx(0.04, rel=1e-6)
    nu = pytest.approx(1e-3, rel=1e-6)
    assert found == {
        name: (pytest.approx(rho, rel=1e-6), nu, edge)
        for name, rho in (("a", 900.0), ("b", 1000.0), ("c", 1200.0), ("d", 1200.0))
    }
    said = [text for text in system.lint(world) if "leave density out" in text]
    assert [text.split(";")[0] for text in said] == [
        "InflowSystem: 'b' adds liquid of 1000 kg/m^3 to 'oil', but the liquid there has 900 kg/m^3"
    ]
    heavy = world_of({}, density=1000.0)
    assert any("the liquid of 'tap' has a density of 1000 kg/m^3" in text for text in heavy.lint())


def test_memory_is_counted_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ef.limits(), "memory", 1e5)
    with pytest.raises(LimitError, match="particles in a layer of 'tap'"):
        world_of({"size": [1e6, 1e6]})
    with pytest.raises(LimitError, match="particles in a tick by inflow 'tap'"):
        world_of({"speed": 1e6})
    world = world_of({"speed": 5.0})
    with pytest.raises(LimitError, match="more by inflow 'tap' would take"):
        world.step(200)
