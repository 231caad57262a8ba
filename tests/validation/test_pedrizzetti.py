"""Pedrizzetti's relaxation in whole worlds: validation cases 24 and 35."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from flows import ring, skew_rings, vortons, world_of
from oracles import thin_rings

import ecs_fluid as ef

R0 = 0.7906
TIME = 0.35 / 0.390744


def leapfrog(*systems: ef.System) -> list[float]:
    """R1, Z1, R2, Z2 of the leapfrogging rings of case 35 after 350 RK3 ticks."""
    rings = [ring(100, 0.1 * R0, R0), ring(100, 0.1 * R0, R0, center=(0.0, 0.0, R0))]
    world = world_of(rings, *systems, dt=TIME / 350, integrator="rk3")
    world.step(350)
    found: list[float] = []
    for number in range(2):
        x = world[f"vortex{number}"][ef.Position].x
        found += [float(np.hypot(x[:, 0], x[:, 1]).mean()), float(x[:, 2].mean())]
    return found


@cache
def plain_leapfrog() -> list[float]:
    """Without alignment."""
    return leapfrog()


@pytest.mark.parametrize("corrected", [True, False])
def test_leapfrog(corrected: bool) -> None:
    """Case 35 as its source runs it, turning 0.3 of the way each tick: R1, Z1, R2, Z2 within 1e-3.

    (Plain classic: test_leapfrog.py.) On circles strengths lie along the vorticity by symmetry, so aligning
    must not change the result but for rounding, of which 1e-9 leaves room for 350 ticks.
    """
    rate = -math.log(1 - 0.3) * 350 / TIME
    found = leapfrog(ef.AlignmentSystem(rate=rate, corrected=corrected))
    radii, heights = thin_rings(np.array((R0, R0)), np.array((0.0, R0)), 0.1 * R0, -0.5, TIME)
    assert found == pytest.approx([radii[0], heights[0], radii[1], heights[1]], rel=1e-3)
    assert found == pytest.approx(plain_leapfrog(), rel=1e-9)


def vorticity(world: ef.World) -> np.ndarray:
    """curl u at the vortons of the present state, by the direct sum."""
    velocity = world.system(ef.VelocitySystem)
    assert velocity is not None
    du = velocity.pair_fields(vortons(world)[0])[3]
    return np.stack([du[:, 2, 1] - du[:, 1, 2], du[:, 0, 2] - du[:, 2, 0], du[:, 1, 0] - du[:, 0, 1]], axis=1)


def misalignment(alpha: np.ndarray, omega: np.ndarray) -> float:
    """Mean sine of the angle between strengths and vorticity."""
    sines = np.linalg.norm(np.cross(alpha, omega), axis=1)
    return float((sines / (np.linalg.norm(alpha, axis=1) * np.linalg.norm(omega, axis=1))).mean())


def skew(*systems: ef.System, ticks: int = 50, dt: float = 0.04, **options: Any) -> ef.World:
    """The two skew rings after some ticks, by transposed stretching."""
    world = world_of(
        skew_rings(), *systems, dt=dt, **{"integrator": "rk3", "stretch": "transposed", **options}
    )
    world.step(ticks)
    return world


def test_strengths_stay_along_the_vorticity() -> None:
    """Case 24: transposed stretching lets strengths turn away from the vorticity; aligning halves that.

    Corrected it keeps every |alpha|, so the last application left sum |alpha| as it was, to rounding; plain
    it took some. Both change the total strength, by what `changes` says, far less than sum |alpha|.
    """
    plain_world = skew()
    off = misalignment(vortons(plain_world)[1], vorticity(plain_world))
    for corrected in (True, False):
        system = ef.AlignmentSystem(rate=5.0, corrected=corrected)
        world = skew(system, debug=corrected)
        _, alpha = vortons(world)
        total = np.linalg.norm(alpha, axis=1).sum()
        assert misalignment(alpha, vorticity(world)) < 0.5 * off
        lost = float(system.changes["magnitude"][0])
        assert abs(lost) < 1e-12 * total if corrected else -1e-3 * total < lost < -1e-9 * total
        assert 0 < np.abs(system.changes["strength"]).max() < 1e-4 * total
        assert np.abs(alpha.sum(axis=0)).max() < 2e-3 * total


def test_changes_are_those_of_the_budget() -> None:
    """What `changes` says of the last tick is what DiagnosticsSystem charges to the system over one tick."""
    system, watch = ef.AlignmentSystem(rate=5.0), ef.DiagnosticsSystem(budget=True, every=0)
    skew(system, watch, ticks=1)
    for name in ("strength", "impulse", "angular_impulse"):
        assert watch.budgets["AlignmentSystem"][name] == pytest.approx(system.changes[name], abs=1e-16)


@pytest.mark.parametrize(("integrator", "bound"), [("euler", 6e-4), ("rk2", 3e-4), ("rk3", 1.6e-4)])
def test_the_gradient_of_the_last_stage_is_brought_up_to_date(integrator: str, bound: float) -> None:
    """Turned all the way once, strengths point along the vorticity of the tick's end, not of its last stage.

    That stage is dt, dt/2 and dt/4 older, with dt = 0.08 s, in which strengths turn by up to |grad u| dt =
    0.5. The vorticity equation leaves only what the blobs filter out of it, measured 5.5e-4, 2.9e-4 and
    1.5e-4 rad, and half of that at half the step.
    """
    options = {"integrator": integrator, "stretch": "classical"}
    errors = []
    for ticks in (10, 20):
        dt = 0.8 / ticks
        omega = vorticity(skew(ticks=ticks, dt=dt, **options))
        turned = skew(ef.AlignmentSystem(rate=1e9, every=ticks), ticks=ticks, dt=dt, **options)
        errors.append(misalignment(vortons(turned)[1], omega))
    assert errors[0] < bound
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.1)


def test_every_and_rate_go_together() -> None:
    """1 - exp(-rate n dt): one application each fourth tick turns as far as four, but for what moves."""
    worlds = [skew(ef.AlignmentSystem(rate=2.0, every=every), ticks=4, dt=1e-5) for every in (1, 4)]
    still = skew(ticks=4, dt=1e-5)
    moved = [vortons(world)[1] - vortons(still)[1] for world in worlds]
    assert np.abs(moved[0] - moved[1]).max() < 1e-3 * np.abs(moved[0]).max()
    assert np.abs(moved[0]).max() > 0


def test_without_a_gradient_the_schedule_says_so() -> None:
    """The curl comes from the gradient, so a world without it cannot align."""
    world = ef.World()
    world.spawn("v", ef.Position(np.zeros((1, 3))), ef.Strength(np.ones((1, 3))), ef.CoreRadius([0.1]))
    world.add_systems([ef.AlignmentSystem(rate=1.0), ef.AdvectionSystem()])
    with pytest.raises(ef.ScheduleError, match="AlignmentSystem reads VelocityGradient"):
        world.step()


def test_not_together_with_remeshing() -> None:
    """M4' weights set part of the strength against the vorticity, which must not be turned: lint says so."""
    world = world_of(skew_rings(), ef.AlignmentSystem(rate=1.0))
    assert not any("AlignmentSystem" in text for text in world.lint())
    world.add_system(ef.RemeshSystem())
    assert any("AlignmentSystem reverses the vortons" in text for text in world.lint())
