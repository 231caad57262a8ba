"""The reformulated method and the subfilter model in whole worlds, up to flows that break down.

Validation cases 11 and 38 (reformulated) and 47.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from flows import axial_center, invariants, ring, skew_rings, vortons, wavy_ring, world_of
from oracles import ring_speed

import ecs_fluid as ef

# ------------------------------------------------------------------ reformulated method


def test_ring_marched_two_radii() -> None:
    """Case 11 with rVPM: nothing is stretched, so speed to 1e-4, impulse to 1e-10, and cores as they were."""
    world = world_of(ring(100, 0.15), ef.ReformulationSystem(), dt=0.05, integrator="rk3", debug=True)
    before = invariants(world)["impulse"][2]
    ticks = math.ceil(2.0 / ring_speed("winckelmans", 0.15) / 0.05)
    world.step(ticks)
    assert axial_center(world) / world.time == pytest.approx(ring_speed("winckelmans", 0.15), rel=1e-4)
    assert invariants(world)["impulse"][2] == pytest.approx(before, rel=1e-10)
    assert world["vortex0"][ef.CoreRadius].sigma == pytest.approx(np.full(100, 0.15), rel=1e-12)


def test_angular_momentum_of_every_vorton() -> None:
    """|alpha| sigma^2 stays along every path while both change, to RK3's third order in dt.

    The rates keep it exactly at each instant, d|alpha|/dt = 2/5 s |alpha| and d(sigma^2)/dt = -2/5 s sigma^2.
    """

    def spread(dt: float) -> float:
        world = world_of(skew_rings(), ef.ReformulationSystem(), dt=dt, integrator="rk3")
        before = vortons(world)[1]
        world.step(round(2.4 / dt))
        _, alpha = vortons(world)
        sigma = np.concatenate([core.sigma for (core,) in world.query(ef.CoreRadius)])
        change = np.linalg.norm(alpha, axis=1) / np.linalg.norm(before, axis=1)
        assert change.max() > 1.05 and change.min() < 0.95
        return float(np.abs(change * (sigma / 0.25) ** 2 - 1).max())

    coarse, fine = spread(0.12), spread(0.06)
    assert coarse < 2e-5
    assert coarse / fine > 6


def test_half_rate_of_stretching_halves_the_reformulation() -> None:
    """With StretchSystem(rate = 0.5) the correction is that of half the stretching; of none, none."""
    rates = []
    for rate, scheme in ((1.0, "transposed"), (0.5, "transposed"), (1.0, "none")):
        world = ef.World(precision="double")
        for number, (x, alpha, sigma) in enumerate(skew_rings()):
            world.spawn(f"v{number}", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(sigma))
        stretch = ef.StretchSystem(rate=rate, scheme=scheme)
        world.add_systems([ef.VelocitySystem(), stretch, ef.ReformulationSystem(), ef.AdvectionSystem()])
        world.evaluate()
        rates.append((world["v0"][ef.StrengthRate].dalpha, world["v0"][ef.CoreRadiusRate].dsigma2))
    for whole, half, none in zip(*rates, strict=True):
        assert half == pytest.approx(0.5 * whole, rel=1e-12)
        assert np.abs(whole).max() > 0 and not none.any()
    assert any("does nothing without stretching" in text for text in world.lint())


def test_single_lines_lose_circulation_when_stretched() -> None:
    """Case 38: on the leapfrogging lines rVPM is off by design, Z1 by +2.3 % (measured there too).

    |alpha| of a line that is stretched by the factor e grows as e^(2/5), its length as e, so the circulation
    |alpha|/length falls as e^(-3/5) at every instant: that of both rings follows to the error of RK3, of
    order 3 in the tick (1.4e-10, 1.8e-11, 2.2e-12 with 88, 175, 350).
    """
    radius, time = 0.7906, 0.35 / 0.390744
    off = []
    for ticks in (88, 175, 350):
        rings = [ring(100, 0.1 * radius, radius, center=(0.0, 0.0, z)) for z in (0.0, radius)]
        world = world_of(rings, ef.ReformulationSystem(), dt=time / ticks, integrator="rk3")
        world.step(ticks)
        worst = 0.0
        for number in range(2):
            one = world[f"vortex{number}"]
            stretched = np.hypot(*one[ef.Position].x[0, :2]) / radius
            assert abs(stretched - 1) > 0.1
            length = 2 * math.pi * radius * stretched / 100
            circulation = np.linalg.norm(one[ef.Strength].alpha[0]) / length
            worst = max(worst, abs(circulation * stretched**0.6 - 1))
        off.append(worst)
    x = world["vortex0"][ef.Position].x
    assert float(x[:, 2].mean()) / 0.488540 - 1 == pytest.approx(0.023, abs=1e-3)
    assert off[2] < 1e-11
    assert math.log(off[0] / off[1]) / math.log(175 / 88) == pytest.approx(3.0, abs=0.1)


# ------------------------------------------------------------------ breakdown


def collision(*systems: ef.System, seconds: float, **options: Any) -> list[dict[str, Any]]:
    """Records each 0.5 s of two wavy rings that run into each other and burst; stops when it blows up."""
    rings = [wavy_ring(-0.6, 1.0, 0.05), wavy_ring(0.6, -1.0, -0.05)]
    world = world_of(rings, *systems, dt=0.05, integrator="rk3", **options)
    records = [world.diagnostics()]
    try:
        while world.time < seconds - 1e-9 and records[-1]["enstrophy"] < 1e3 * records[0]["enstrophy"]:
            world.step(10)
            records.append(world.diagnostics())
    except ef.DivergedError:
        records.append({"energy": math.inf, "enstrophy": math.inf})
    return records


def ratios(records: list[dict[str, Any]], name: str) -> np.ndarray:
    """A figure of all records over its first value."""
    return np.array([record[name] for record in records]) / records[0][name]


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning", "ignore::RuntimeWarning")
def test_colliding_rings_survive_by_reformulation_and_subfilter_model() -> None:
    """882 vortons, Re infinite: transposed stretching blows up before 8 s, the default lasts, and the model.

    Measured: transposed energy 1.2 times the start at 5 s, 15 at 7 s, 1e50 at 8 s; default
    1.07 at 5 s, 5 to 7 from 7 s on, enstrophy 32 times at most. rVPM 0.49 at 8 s, with the
    enstrophy 3 times; with the subfilter model 0.20 at 12 s and never rising (case 47), enstrophy below the
    start. The price shows too: the true flow would keep its energy.
    """
    transposed = collision(seconds=8.0, stretch="transposed")
    assert ratios(transposed, "energy")[-1] > 10 and ratios(transposed, "enstrophy")[-1] > 1e3
    limited = collision(seconds=12.0)
    # It saturates: what runs away elsewhere stays at a few times the start.
    assert len(limited) == 25 and ratios(limited, "energy").max() < 1e-3 * ratios(transposed, "energy")[-1]
    reformed = collision(ef.ReformulationSystem(), seconds=9.0, stretch="transposed")
    assert len(reformed) == 19
    assert ratios(reformed, "energy").max() <= 1 and ratios(reformed, "enstrophy").max() < 4
    systems = ef.ReformulationSystem(), ef.SubfilterSystem()
    modelled = collision(*systems, seconds=12.0, stretch="transposed")
    assert len(modelled) == 25
    energy = ratios(modelled, "energy")
    assert (np.diff(energy) < 0).all() and 0.1 < energy[-1] < 0.3
    assert ratios(modelled, "enstrophy").max() <= 1.0


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize("coefficient", ["dynamic", "constant"])
def test_subfilter_model_takes_enstrophy(coefficient: str) -> None:
    """Case 47: every vorton's alpha . d(alpha)/dt by the model is at most 0, at any instant; off is off.

    Three ticks fill the averages of the dynamic coefficient, which has to stay within -1 to 1.
    """
    rings = [wavy_ring(-0.3, 1.0, 0.05), wavy_ring(0.3, -1.0, -0.05)]
    system = ef.SubfilterSystem(coefficient=coefficient)
    world = world_of(rings, system, dt=0.05, integrator="rk2", debug=True)
    world.step(3)
    world.evaluate()
    plain = ef.World(dt=0.05, integrator="rk2", precision="double")
    for entity in ("vortex0", "vortex1"):
        tables = (world[entity][kind] for kind in (ef.Position, ef.Strength, ef.CoreRadius))
        plain.spawn(entity, *tables)
    plain.add_systems([ef.VelocitySystem(), ef.StretchSystem(), ef.AdvectionSystem()])
    plain.evaluate()
    taken = []
    for entity in ("vortex0", "vortex1"):
        alpha = world[entity][ef.Strength].alpha
        change = world[entity][ef.StrengthRate].dalpha - plain[entity][ef.StrengthRate].dalpha
        taken.append((alpha * change).sum(axis=1))
    size = np.abs(np.concatenate(taken)).max()
    assert size > 0
    assert np.concatenate(taken).max() < 1e-12 * size
    if coefficient == "dynamic":
        average = world["vortex0"][ef.SubfilterAverage]
        assert np.abs(average.production).max() > 0 and np.abs(average.model).max() > 0


@pytest.mark.parametrize("coefficient", ["dynamic", "constant"])
def test_what_the_model_takes_may_leave_strength_and_impulse(coefficient: str) -> None:
    """Case 118: sum alpha and sum x cross alpha of what it does stay with `keeps_impulse`; a swirl of 552
    vortons. (On lines and at corners, where few neighbours tell no moments across, some is lost.)"""
    x = np.stack(np.meshgrid(*3 * [np.linspace(-0.5, 0.5, 10)], indexing="ij"), axis=-1).reshape(-1, 3)
    x = x[np.linalg.norm(x, axis=1) < 0.56]
    alpha = 1e-3 * np.stack([-x[:, 1], x[:, 0], np.sin(9 * x[:, 0])], axis=1)
    taken = {}
    for kept in (False, True):
        world = ef.World(dt=0.02, integrator="euler", precision="double")
        tables = ef.Position(x), ef.Strength(alpha), ef.CoreRadius(np.full(len(x), 0.2))
        world.spawn("swirl", *tables)
        systems = ef.SubfilterSystem(coefficient=coefficient, keeps_impulse=kept), ef.AdvectionSystem()
        world.add_systems([ef.VelocitySystem(), *systems])
        world.step(2 if coefficient == "dynamic" else 1)
        world.evaluate()
        swirl = world["swirl"]
        rate, x_now = swirl[ef.StrengthRate].dalpha, swirl[ef.Position].x
        size = np.abs(np.cross(x_now, rate)).sum()
        total, impulse = np.abs(rate.sum(axis=0)).max(), np.abs(np.cross(x_now, rate).sum(axis=0)).max()
        taken[kept] = total / np.abs(rate).sum(), impulse / size
        assert (swirl[ef.Strength].alpha * rate).sum() < 0
    assert max(taken[False]) > 1e-2 and max(taken[True]) < 1e-12


def test_evaluating_does_not_age_the_averages() -> None:
    """Looking at a world between two ticks changes no bit of it."""
    world = world_of(skew_rings(), ef.SubfilterSystem(), dt=0.04)
    world.step(2)
    before = world.state_hash()
    world.evaluate()
    assert world.state_hash() == before


def test_vortons_made_later_are_asked_for_averages() -> None:
    """An entity spawned after the system is named, with the call that gives it what it lacks."""
    world = world_of(skew_rings(), ef.SubfilterSystem(), dt=0.04)
    x, alpha, sigma = ring(20, 0.2)
    world.spawn("late", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(sigma))
    with pytest.raises(ef.FluidError, match=r"'late' was made after .* world\.attach\('late', "):
        world.step()
    world.attach("late", ef.SubfilterAverage)
    world.step()


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
def test_world_files_name_them() -> None:
    """[[system]] tables by kind; a ring with all four runs, and a wrong value is refused in a sentence."""
    entity = {
        "kind": "vortex_ring",
        "name": "ring",
        "radius": 1.0,
        "core": 0.3,
        "circulation": 1.0,
        "spacing": 0.2,
    }
    kinds: list[dict[str, Any]] = [
        {"kind": "reformulation"},
        {"kind": "subfilter", "average": 50},
        {"kind": "alignment", "rate": 1.0},
        {"kind": "remesh", "every": 2, "loss": 1e-3},
    ]
    world = ef.WorldRecipe.from_tables({"entity": [entity], "system": kinds}).build()
    former = world["ring"][ef.RowId].id.max()
    world.step(2)
    assert world["ring"][ef.RowId].id.min() > former
    assert np.isfinite(world["ring"][ef.Position].x).all()
    with pytest.raises(ef.RecipeError, match=r"test_filter = 0\.5; a number above 0\.66"):
        ef.SubfilterSystem(test_filter=0.5)
    with pytest.raises(ef.RecipeError, match=r"'rate' is missing"):
        ef.AlignmentSystem()
