"""Whitewater of liquids: what gives it off, how much, its motion and its life; tracers in liquids.

Cases 140 to 146.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from liquid_tank import tank
from sph_worker import splashing

import ecs_fluid as ef
from ecs_fluid.errors import ComponentError, FluidWarning, RecipeError
from ecs_fluid.kernels.sph.forces import lattice_weight, phi
from ecs_fluid.kernels.sph.step import LiquidLaw
from ecs_fluid.kernels.sph.whitewater import BUBBLE, FOAM, SPRAY, crests, properties_at
from ecs_fluid.systems.liquid.around import SURFACE, LiquidAround, carried, liquid_around
from tests.resuming import resumed

Array = np.ndarray
G, SPACING, SUPPORT = 9.81, 0.05, 2.98
REACH = SUPPORT * SPACING
W0 = lattice_weight(SUPPORT)
FOREVER = {"spray_life": 1e9, "foam_life": 1e9, "bubble_life": 1e9}


def ball(radius: float) -> Array:
    """Places (n, 3) m of a ball cut from a lattice."""
    axis = SPACING * (np.arange(-20, 20) + 0.5)
    x = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    return np.asarray(x[(x**2).sum(axis=1) < radius**2])


def seen(x: Array, v: Array) -> LiquidAround:
    """The liquid as the system sees it, without walls."""
    law = LiquidLaw(REACH, SUPPORT, SPACING**3, 0.0, 0.0)
    return liquid_around(law, x, v, np.ones(len(x)), (None, None))


def plain(x: Array, v: Array, points: Array, u: Array) -> tuple[Array, ...]:
    """Share, flow, closing and slope at points, by sums over all pairs."""
    r = points[:, None] - x
    length = np.linalg.norm(r, axis=2)
    w = W0 * phi(length / REACH)
    along = ((u[:, None] - v) * r).sum(axis=2) / np.where(length > 0, length, 1)
    share = w.sum(axis=1)
    flow = (w @ v) / np.where(share > 0, share, 1)[:, None]
    slope = (np.maximum(1 - length / REACH, 0)[..., None] ** 3 * r / REACH).sum(axis=1)
    return share, flow, (w * np.maximum(-along, 0)).sum(axis=1), slope


def plain_crest(x: Array, slope: Array) -> Array:
    """Crest of all particles, by sums over all pairs."""
    length = np.linalg.norm(slope, axis=1)
    there = length > SURFACE
    n = slope / np.where(length > 0, length, 1)[:, None]
    r = x[None] - x[:, None]
    below = (r * n[:, None]).sum(axis=2) < 0
    w = W0 * phi(np.linalg.norm(r, axis=2) / REACH)
    return np.asarray((w * (1 - n @ n.T) * below * there).sum(axis=1))


# ------------------------------------------------------------------ what gives it off


def test_sums_are_those_of_all_pairs() -> None:
    """Case 140: a shaken ball in disordered motion, at its particles and at other points."""
    draw = np.random.default_rng(1)
    x = ball(0.25)
    x += 0.3 * SPACING * (draw.random(x.shape) - 0.5)
    v, points = draw.standard_normal(x.shape), 0.3 * draw.standard_normal((200, 3))
    liquid = seen(x, v)
    for places, own in ((x, v), (points, draw.standard_normal(points.shape))):
        share, flow, closing, slope = plain(x, v, places, own)
        found = properties_at(liquid.search, places, own)
        there = share > 1e-6
        np.testing.assert_allclose(found.share, share, atol=1e-12)
        np.testing.assert_allclose(found.flow[there], flow[there], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found.closing, closing, atol=1e-12)
        np.testing.assert_allclose(found.slope, slope, atol=1e-12)
    slope = plain(x, v, x, v)[3]
    normals = liquid.normals(x, slope)
    rows = np.flatnonzero(normals[:, 3])
    assert 0 < len(rows) < len(x)
    np.testing.assert_allclose(crests(liquid.search, rows, normals), plain_crest(x, slope)[rows], atol=1e-12)


def test_a_pair_closes_in_at_its_relative_speed() -> None:
    """Case 140: two particles; a part across the line between them, or away, does not count."""
    x = np.array([[0.0, 0.0, 0.0], [0.6 * REACH, 0.0, 0.0]])
    weight = W0 * float(phi(np.array(0.6)))
    for u, closing in ((-2.0, 2.0), (2.0, 0.0)):
        v = np.array([[0.0, 0.0, 0.0], [u, 3.0, -1.0]])
        np.testing.assert_allclose(
            properties_at(seen(x, v).search, x, v).closing, weight * closing, atol=1e-7
        )


def test_a_flat_surface_has_no_crest_and_a_rounder_one_more() -> None:
    """Case 140: crest of a lattice's face, and of cylinders: less with a larger radius."""
    axis = SPACING * (np.arange(-8, 8) + 0.5)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)

    def bent(x: Array) -> float:
        liquid, v = seen(x, np.zeros_like(x)), np.zeros_like(x)
        normals = liquid.normals(x, properties_at(liquid.search, x, v).slope)
        inner = np.flatnonzero((normals[:, 3] > 0) & (np.abs(x[:, :2]).max(axis=1) < 3 * SPACING))
        top = inner[x[inner, 2] > 0]
        return float(crests(liquid.search, top, normals).mean())

    assert bent(grid) < 1e-12
    far = (grid[:, 0] ** 2 + grid[:, 2] ** 2) / SPACING**2
    narrow, wide, flat = (bent(grid[far < radius**2]) for radius in (2.0, 4.0, 8.0))
    assert narrow > 1.5 * wide > 1.5 * 1.5 * flat > 0


def test_liquid_that_moves_or_turns_as_a_whole_traps_no_air() -> None:
    """Case 141: any frame sees the same trapped air, and a rigid rotation none; the published potential,
    |u| (1 - cos), sees it. What is pressed together does."""
    x = ball(0.3)
    draw = np.random.default_rng(2)
    stirred = draw.standard_normal(x.shape)
    still = properties_at(seen(x, stirred).search, x, stirred).closing
    frame = stirred + np.array([30.0, -20.0, 10.0])
    np.testing.assert_allclose(properties_at(seen(x, frame).search, x, frame).closing, still, atol=1e-10)
    turning = np.cross([3.0, -4.0, 12.0], x)
    assert properties_at(seen(x, turning).search, x, turning).closing.max() < 1e-12 * np.abs(turning).max()
    pressed = -x * [0.0, 0.0, 5.0]
    middle = np.linalg.norm(x, axis=1).argmin()
    found = properties_at(seen(x, pressed).search, x, pressed).closing[middle]
    assert found == pytest.approx(plain(x, pressed, x, pressed)[2][middle]) and found > 0.09


def test_still_liquid_gives_off_nothing() -> None:
    """Case 141: a tank with the pressure of its own weight."""
    world, _ = tank((0.5, 0.5, 0.5), {"fills": "tank", "level": 0.3, "spacing": 0.05, "hydrostatic": True},
                    precision="double")  # fmt: skip
    world.add_system(ef.WhitewaterSystem())
    world.step(30)
    assert len(world["whitewater"]) == 0


# ------------------------------------------------------------------ how much


def flying_drop(dt: float, **parameters: Any) -> ef.World:
    """A drop that flies without gravity, as it is: its front is a crest that gives off the same for ever."""
    liquid = {"sphere": {"center": (0.0, 0.0, 0.0), "radius": 0.2}, "velocity": (0.0, 0.0, 5.0)}
    world, _ = tank(None, liquid, dt, precision="double", gravity=(0.0, 0.0, 0.0))
    world.add_system(ef.WhitewaterSystem(speed=(1.0, 2.0), crest=(0.0, 0.2), **parameters))
    return world


@pytest.mark.parametrize("dt", [0.01, 0.005])
def test_births_are_the_integral_of_the_rate(dt: float) -> None:
    """Case 142: by plain sums over all pairs; each tick is rounded by less than one, at random."""
    world = flying_drop(dt, **FOREVER)
    x = world["water"][ef.Position].x.astype(np.float64)
    slope = plain(x, 0 * x, x, 0 * x)[3]
    ahead = slope[:, 2] / np.linalg.norm(slope, axis=1)
    forward = (ahead >= 0.6) & (np.linalg.norm(slope, axis=1) > SURFACE)
    rate = 400.0 * np.clip(plain_crest(x, slope) / 0.2, 0, 1)[forward].sum()
    ticks = round(0.2 / dt)
    world.step(ticks)
    assert len(world["whitewater"]) == pytest.approx(0.2 * rate, abs=2 * math.sqrt(ticks))
    assert 0.2 * rate > 300


def test_they_are_born_in_cylinders_about_the_way() -> None:
    """Case 142: within the radius of a particle's volume, and as far back as it came in the tick; up to
    `spread` of its speed across."""
    world = flying_drop(0.01, spread=0.2, wave_crests=8000.0, **FOREVER)
    world.step()
    born, water = world["whitewater"], world["water"][ef.Position].x
    x, v = born[ef.Position].x, born[ef.InertialVelocity].v
    radius = (3 / (4 * math.pi)) ** (1 / 3) * SPACING
    across = np.linalg.norm((x[:, None] - water)[..., :2], axis=2)
    behind = water[:, 2] - x[:, 2, None]
    fits = (across < radius) & (behind > 0) & (behind < 0.05)
    assert len(x) > 20 and fits.any(axis=1).all()
    np.testing.assert_allclose(v[:, 2], 5.0)
    out = np.linalg.norm(v[:, :2], axis=1)
    assert 0.8 < out.max() <= 1.0 and out.mean() == pytest.approx(2 / 3, abs=0.1)


def test_lives_are_of_the_mean_that_was_asked_for() -> None:
    """Case 143: of what is born at a rate r and lives T in the mean r T (1 - exp(-t / T)) are there."""
    life = 0.1
    world = flying_drop(0.01, spray_life=life, foam_life=life, bubble_life=life)
    forever = flying_drop(0.01, **FOREVER)
    world.step(30)
    forever.step(30)
    rate = len(forever["whitewater"]) / 0.3
    # Born at the end of a tick, and gone at the end of one: sums over the ticks.
    expected = rate * 0.01 * np.exp(-0.01 * np.arange(30) / life).sum()
    assert len(world["whitewater"]) == pytest.approx(expected, abs=4 * math.sqrt(expected))


def test_there_are_never_more_than_most() -> None:
    world = flying_drop(0.01, most=100)
    with pytest.warns(FluidWarning, match="more than most = 100") as told:
        world.step(10)
    assert len(told) == 1 and 90 <= len(world["whitewater"]) <= 100


# ------------------------------------------------------------------ motion


def strewn(x: Array, v: Array, world: ef.World) -> None:
    """Add whitewater that lives for ever."""
    rows = len(x)
    white = ef.Whitewater(kind=np.zeros(rows, np.int64), life=np.full(rows, 1e9))
    world.spawn_rows("whitewater", ef.Position(x), ef.InertialVelocity(v), white)


@pytest.mark.parametrize("drag", [0.0, 1e-3, 2.5])
def test_spray_flies_its_parabola(drag: float) -> None:
    """Case 144: x = v0 t + g t^2 / 2, with drag k: v = v0 e + g (1 - e) / k, e = exp(-k t)."""
    world, _ = tank((4.0, 4.0, 4.0), {"box": {"low": (0.0, 0.0, 0.0), "high": (0.2, 0.2, 0.2)}},
                    precision="double")  # fmt: skip
    world.add_system(ef.WhitewaterSystem(drag=drag, trapped_air=0.0, wave_crests=0.0))
    start, v0, t = np.array([[1.0, 1.0, 1.0]]), np.array([[1.5, -0.5, 4.0]]), 0.3
    strewn(start, v0, world)
    world.step(30)
    g, drop = np.array([0.0, 0.0, -G]), world["whitewater"]
    if drag:
        e = math.exp(-drag * t)
        v = v0 * e + g * (1 - e) / drag
        x = start + v0 * (1 - e) / drag + g * (t - (1 - e) / drag) / drag
    else:
        v, x = v0 + g * t, start + v0 * t + 0.5 * g * t**2
    assert drop[ef.Whitewater].kind.tolist() == [SPRAY]
    # The drag of 1e-3 1/s loses digits in the closed form, not in the series of the system.
    np.testing.assert_allclose(drop[ef.Position].x, x, atol=1e-9)
    np.testing.assert_allclose(drop[ef.InertialVelocity].v, v, atol=1e-9)


def test_it_flies_on_when_the_liquid_is_gone() -> None:
    """Case 144: as spray, whatever it was."""
    world = flying_drop(0.01, trapped_air=0.0, wave_crests=0.0)
    strewn(np.zeros((1, 3)), np.array([[0.0, 0.0, 5.0]]), world)
    world.step(2)
    white = world["whitewater"]
    assert white[ef.Whitewater].kind.tolist() == [BUBBLE]
    world["water"].kill(np.ones(len(world["water"]), bool))
    world.step(3)
    assert white[ef.Whitewater].kind.tolist() == [SPRAY]
    np.testing.assert_allclose(white[ef.Position].x, [[0.0, 0.0, 0.25]], atol=1e-9)


def test_foam_and_bubbles_go_with_the_liquid() -> None:
    """Case 145: in a drop that flies at 5 m/s without gravity, by rounding, wherever they lie in it."""
    world = flying_drop(0.01, trapped_air=0.0, wave_crests=0.0)
    x = np.random.default_rng(3).uniform(-0.1, 0.1, (50, 3))
    x = np.concatenate([x, np.linspace(0.16, 0.21, 6)[:, None] * [1.0, 0.0, 0.0]])
    strewn(x, np.tile([0.0, 0.0, 5.0], (len(x), 1)), world)
    world.step(20)
    white = world["whitewater"]
    assert {FOAM, BUBBLE} <= set(white[ef.Whitewater].kind.tolist())
    np.testing.assert_allclose(white[ef.Position].x, x + np.array([0.0, 0.0, 1.0]), atol=1e-9)
    np.testing.assert_allclose(white[ef.Velocity].u, np.tile([0.0, 0.0, 5.0], (len(x), 1)), atol=1e-9)


def test_tracers_go_with_the_liquid_and_stand_still_in_the_air() -> None:
    """In the same drop: x = u t in it, whatever the tick; none of its flow 0.6 spacings above its surface."""
    world = flying_drop(0.01, trapped_air=0.0, wave_crests=0.0)
    x = np.random.default_rng(3).uniform(-0.1, 0.1, (50, 3))
    world.spawn("dye", ef.Position(np.concatenate([x, [[0.3, 0.0, 0.5]]])))
    world.spawn("thrown", ef.Position(x), ef.InertialVelocity(np.zeros_like(x)))
    world.step(20)
    way = np.array([0.0, 0.0, 1.0])
    np.testing.assert_allclose(world["dye"][ef.Position].x[:-1], x + way, atol=1e-9)
    np.testing.assert_allclose(world["dye"][ef.Velocity].u[:-1], np.tile(5 * way, (len(x), 1)), atol=1e-9)
    assert world["dye"][ef.Position].x[-1].tolist() == [0.3, 0.0, 0.5]
    np.testing.assert_array_equal(world["thrown"][ef.Position].x, x)


def test_tracers_go_round_with_liquid_that_turns() -> None:
    """One turn in 20 steps of 18 degrees, to what the lattice is off its middle; Euler's steps would end
    (1 + (pi / 10)^2)^10 = 2.6 times as far out."""
    points = np.random.default_rng(3).uniform(-0.1, 0.1, (50, 3))
    c, s = math.cos(math.pi / 10), math.sin(math.pi / 10)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    x, now = ball(0.3), points
    for step in range(1, 21):
        now = now + carried(seen(x, x @ turn.T - x), now)
        x = x @ turn.T
        expected = points @ np.linalg.matrix_power(turn, step).T
        assert np.linalg.norm(now - expected, axis=1).max() < 0.01 * SPACING


def test_bubbles_rise_at_their_speed_and_become_foam() -> None:
    """Case 145: dv/dt = 2 g (1 - v / w) from rest, so x = w (t - T (1 - exp(-t / T))), T = w / (2 g), in
    liquid at rest, whose own motion is below 0.3 % of sqrt(g H). They stay at the surface."""
    world, _ = tank((0.4, 0.4, 0.7), {"fills": "tank", "level": 0.5, "spacing": 0.05, "hydrostatic": True},
                    precision="double")  # fmt: skip
    world.add_system(ef.WhitewaterSystem(rise=0.3))
    x = np.array([[0.2, 0.25, 0.1], [0.31, 0.2, 0.12]])
    strewn(x, 0 * x, world)
    world.step(50)
    late, t = 0.3 / (2 * G), 0.5
    white, way = world["whitewater"], 0.3 * (t - late * (1 - math.exp(-t / late)))
    assert white[ef.Whitewater].kind.tolist() == [BUBBLE, BUBBLE]
    np.testing.assert_allclose(white[ef.Position].x - x, np.tile([0.0, 0.0, way], (2, 1)), atol=1e-3)
    world.step(130)
    assert white[ef.Whitewater].kind.tolist() == [FOAM, FOAM]
    assert (np.abs(white[ef.Position].x[:, 2] - 0.5) < SPACING).all()


def test_spray_stays_within_walls_and_out_of_bodies() -> None:
    """Case 145: thrown at walls, lid and ball of a tank that rolls; what falls into the liquid is spray no
    more."""
    world = splashing("double")
    system = world.system(ef.CollisionSystem)
    assert system is not None
    draw = np.random.default_rng(4)
    x = draw.uniform([-0.2, -0.1, 0.05], [0.2, 0.1, 0.15], (300, 3))
    x = x[system.overlap(x) < 0]
    strewn(x, 5.0 * draw.standard_normal(x.shape), world)
    spray = []
    for _ in range(10):
        world.step()
        white = world["whitewater"]
        assert system.overlap(white[ef.Position].x).max() < 1e-9
        spray.append(np.count_nonzero(white[ef.Whitewater].kind[: len(x)] == SPRAY))
    assert len(white) > 500 and 0 < spray[-1] < 0.7 * spray[0]


# ------------------------------------------------------------------ machinery


def test_resumed_whitewater_is_the_straight_one(tmp_path: Path) -> None:
    """Case 146: threads are those of the liquid, in test_sph."""
    world = splashing()
    world.step(4)
    resumed(world, tmp_path, 4)
    assert len(world["whitewater"]) > 50


def test_other_systems_leave_it_alone() -> None:
    """Neither inertia nor gravity moves it once more, and nothing is looked at that is not declared."""
    found = []
    for more in ([], [ef.InertiaSystem(), ef.AccelerateSystem()]):
        world = ef.World(dt=0.01, integrator="euler", precision="double", debug=True)
        world.set_fluid(gravity=(0.0, 0.0, -G))
        world.spawn(
            "water", ef.Position([[0.0, 0.0, 0.0]]), ef.InertialVelocity([[0.0, 0.0, 0.0]]),
            ef.Liquid(*(np.full(1, value) for value in (0.125, 1.25e-4, 0.0))),
        )  # fmt: skip
        world.spawn("sparks", ef.Position([[2.0, 0.0, 0.0]]), ef.InertialVelocity([[1.0, 0.0, 0.0]]))
        world.add_systems([ef.AdvectionSystem(), ef.SphSystem(), ef.WhitewaterSystem(), *more])
        strewn(np.array([[1.0, 0.0, 0.0]]), np.array([[1.0, 0.0, 2.0]]), world)
        world.step(5)
        found.append(world["whitewater"][ef.Position].x.copy())
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"crest": (0.2, 0.1)}, r"crest = \(0.2, 0.1\): two increasing numbers"),
     ({"speed": (-1.0, 0.1)}, r"speed = \(-1.0, 0.1\)"), ({"into": "water"}, "Whitewater"),
     ({"most": 10**9}, "use a smaller most")],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_a_sentence(parameters: dict[str, Any], words: str) -> None:
    world, _ = tank((0.5, 0.5, 0.5), {"fills": "tank", "level": 0.3, "spacing": 0.05})
    with pytest.raises((RecipeError, ComponentError, ef.LimitError), match=words):
        world.add_system(ef.WhitewaterSystem(**parameters))


def test_default_ranges_follow_gravity_that_is_switched_off() -> None:
    """Without gravity and surface tension eddies have a fortieth of the speed of sound, sqrt(7 B / rho)."""
    world, _ = tank((0.5, 0.5, 0.5), {"fills": "tank", "level": 0.3, "spacing": 0.05})
    system = world.add_system(ef.WhitewaterSystem())
    world.step()
    world.set_fluid(gravity=(0.0, 0.0, 0.0))
    sound = np.sqrt(7 * world.fluid[ef.LiquidModel].stiffness[0] / 1000.0)
    np.testing.assert_allclose(system._ranges()[0], np.array([0.2, 0.6]) * sound / 40, rtol=1e-6)


def test_ranges_and_most_may_be_changed_while_the_world_runs() -> None:
    """Ranges that cannot be are refused then too; a `most` below what is there gives nothing off."""
    world, _ = tank((0.5, 0.5, 0.5), {"fills": "tank", "level": 0.3, "spacing": 0.05})
    system = ef.WhitewaterSystem()
    world.add_system(system)
    strewn(np.zeros((3, 3)), np.zeros((3, 3)), world)
    with pytest.raises(RecipeError, match="two increasing numbers"):
        system.closing = (0.5, 0.1)
    system.closing, system.most = (0.1, 0.5), 1
    world.step()
    assert len(world["whitewater"]) == 3


def test_lint_tells_of_a_world_without_liquid() -> None:
    world = ef.World(dt=0.01)
    world.add_system(ef.WhitewaterSystem())
    assert any("reads Liquid" in text for text in world.lint())
    with pytest.warns(FluidWarning, match="reads Liquid"):
        world.step()
    assert len(world["whitewater"]) == 0


def test_lint_tells_of_speeds_that_are_not_reached() -> None:
    """A fall from the top to the floor of 0.3 m gives sqrt(2 g 0.3 m) = 2.43 m/s; a velocity more."""
    liquid = {"fills": "tank", "level": 0.3, "spacing": 0.05}
    for velocity, speed, told in ((0.0, 2.5, True), (0.0, 2.3, False), (1.0, 2.5, False)):
        world, _ = tank((0.5, 0.5, 0.5), liquid | {"velocity": (velocity, 0.0, 0.0)})
        world.add_system(ef.WhitewaterSystem(speed=(speed, 9.0)))
        said = [text for text in world.lint() if "can reach by falling" in text]
        assert bool(said) == told
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        world.step()
