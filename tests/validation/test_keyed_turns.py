"""Keyed rotations of more than half a turn in a tick: the spin goes the way the keys go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from solids import body_world, box, solid

import ecs_fluid as ef
from ecs_fluid.kernels.bodies.rotation import matrix_of, product, quaternion_of
from ecs_fluid.keyframes import Between, Keyed, value_at

Array = np.ndarray


def turned_by(rotation: dict[str, Any], dt: float, ticks: int) -> tuple[ef.Entity, Array, Array]:
    """(The body, its spins (ticks, 3) rad/s, its quaternions (ticks + 1, 4)) on a keyed rotation."""
    world = body_world(dt=dt, gravity=(0.0, 0.0, 0.0))
    body = solid(world, "paddle", box(1, 0.5, 0.2), motion="scripted", rotation=rotation)
    world.system(ef.BodySystem).scripts = [ef.BodyScript(name="paddle", rotation=rotation)]
    spins, poses = [], [body[ef.Pose].q[0].copy()]
    for _ in range(ticks):
        world.step()
        spins.append(body[ef.RigidMotion].angular_velocity[0].copy())
        poses.append(body[ef.Pose].q[0].copy())
    return body, np.array(spins), np.array(poses)


def integral_of_spin(keyed: Keyed, begin: float, end: float, parts: int = 20_000) -> Array:
    """Of spin = theta' + (1 - cos a)/a^2 theta x theta' + (a - sin a)/a^3 theta x (theta x theta')."""
    times = begin + (end - begin) * (np.arange(parts) + 0.5) / parts
    theta, h = value_at(keyed, times), 1e-7
    rate = (value_at(keyed, times + h) - value_at(keyed, times - h)) / (2 * h)
    a = np.linalg.norm(theta, axis=1, keepdims=True) + 1e-9
    once = np.cross(theta, rate)
    angular_velocity = rate + (1 - np.cos(a)) / a**2 * once + (a - np.sin(a)) / a**3 * np.cross(theta, once)
    return np.asarray(angular_velocity.mean(axis=0) * (end - begin))


def same_turn(a: Array, b: Array) -> float:
    """Largest difference of the rotation matrices of two quaternions."""
    return float(np.abs(matrix_of(a) - matrix_of(b)).max())


@pytest.mark.parametrize("rate", [40.0, -40.0, 20 * np.pi, 31.4, 31.5, 1234.5, -1e5])
@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.6, -0.64, 0.48)])
def test_spin_about_a_fixed_axis(rate: float, axis: tuple[float, ...]) -> None:
    """Keys 10 s apart at `rate` rad/s: that is the spin in every tick of 0.1 s, to 1e-9, whole turns too.

    By the shorter way between poses, 40 rad/s became -22.8, and 20 pi rad/s nothing.
    """
    way = np.array(axis)
    keyed = {"keys": [(0.0, [0.0, 0.0, 0.0]), (10.0, (10 * rate * way).tolist())]}
    _, spins, poses = turned_by(keyed, 0.1, 5)
    assert np.abs(spins - rate * way).max() < 1e-9 * abs(rate)
    assert same_turn(poses[-1], quaternion_of(0.5 * rate * way)) < 1e-9 * max(1.0, abs(rate) / 1e3)


def test_smooth_turns_about_a_fixed_axis() -> None:
    """From rest to rest over 100 turns: a tick's spin is the change of 3 s^2 - 2 s^3, whole turns too."""
    way, dt, end = 200 * np.pi * np.array([0.6, -0.64, 0.48]), 0.05, 2.0
    keyed = {"keys": [(0.0, [0.0, 0.0, 0.0]), (end, way.tolist())], "between": "smooth"}
    _, spins, _ = turned_by(keyed, dt, 42)
    s = np.minimum(np.arange(43) * dt / end, 1.0)
    turned = (3 * s**2 - 2 * s**3)[:, None] * way
    np.testing.assert_allclose(spins, np.diff(turned, axis=0) / dt, atol=1e-9 * np.abs(way).max())


def test_turns_between_many_keys() -> None:
    """There and back in one tick is no spin, and a tick with a key in it has the mean of both rates."""
    keys = [
        (0.0, [0.0, 0.0, 0.0]),
        (0.05, [0.0, 0.0, 9.0]),
        (0.1, [0.0, 0.0, 0.0]),
        (0.15, [0.0, 0.0, -20.0]),
    ]
    _, spins, _ = turned_by({"keys": keys}, 0.1, 3)
    assert np.abs(spins[:, :2]).max() < 1e-12
    assert np.allclose(spins[:, 2], [0.0, -200.0, 0.0], atol=1e-11)


@pytest.mark.parametrize("between", ["linear", "smooth"])
@pytest.mark.parametrize("dt", [pytest.param(0.02, marks=pytest.mark.nightly), 0.1, 0.35])
def test_spin_about_an_axis_that_moves(dt: float, between: Between) -> None:
    """A keyed vector whose axis tilts while it turns at 30 rad/s: the spin is near the mean of the exact one.

    Where a rotation at constant spin between both poses is near that, it is the spin: it takes one to the
    other to 1e-12. Else the mean itself, to 2 % of it, as at the few ticks that nearly end as they began.
    """
    keys = [(0.0, [0.3, -0.2, 0.5]), (2.0, [20.0, 12.0, 55.0]), (4.0, [-10.0, 5.0, 90.0])]
    keyed = Keyed(keys=keys, between=between)
    _, spins, poses = turned_by(keyed.model_dump(), dt, int(3.9 / dt))
    met = 0
    for k, angular_velocity in enumerate(spins):
        mean = integral_of_spin(keyed, k * dt, (k + 1) * dt) / dt
        there = same_turn(product(quaternion_of(dt * angular_velocity), poses[k]), poses[k + 1]) < 1e-12
        met += there
        assert np.linalg.norm(angular_velocity - mean) < (
            0.5 * np.pi / dt if there else 0.02 * np.linalg.norm(mean)
        )
        assert angular_velocity @ mean > 0
        assert same_turn(poses[k + 1], quaternion_of(value_at(keyed, (k + 1) * dt))) < 1e-12
    assert met > 0.7 * len(spins)


def test_less_than_half_a_turn_is_the_shorter_way() -> None:
    """Below pi a tick the spin takes one pose to the next exactly, about any axes."""
    keys = [(0.0, [0.3, -0.2, 0.5]), (2.0, [3.0, 1.0, 2.0]), (4.0, [-1.0, 2.0, 0.0])]
    _, spins, poses = turned_by({"keys": keys}, 0.5, 7)
    for k, angular_velocity in enumerate(spins):
        assert same_turn(product(quaternion_of(0.5 * angular_velocity), poses[k]), poses[k + 1]) < 1e-13


def test_constant_and_stepped_rotations() -> None:
    """A rotation that stays has no spin; one in steps goes the shorter way at its step, as before."""
    _, spins, _ = turned_by({"keys": [(0.0, [0.0, 0.0, 9.0])]}, 0.1, 2)
    assert not spins.any()
    steps = {"keys": [(0.0, [0.0, 0.0, 0.0]), (0.15, [0.0, 0.0, 4.0])], "between": "step"}
    _, spins, _ = turned_by(steps, 0.1, 3)
    assert np.allclose(spins[:, 2], [0.0, (4.0 - 2 * np.pi) / 0.1, 0.0], atol=1e-12)


def test_a_keyed_way_leaves_the_spin_alone() -> None:
    """With keys for the centre only, a body turns by its own spin, 3 rad/s about z: 0.9 rad after 0.3 s."""
    way = {"keys": [[0, [0, 0, 0]], [1, [2, 0, 0]]]}
    world = body_world(dt=0.1, gravity=(0.0, 0.0, 0.0))
    body = solid(
        world, "paddle", box(1, 0.5, 0.2), motion="scripted", center=way, angular_velocity=(0, 0, 3.0)
    )
    world.system(ef.BodySystem).scripts = [ef.BodyScript(name="paddle", center=way)]
    world.step(3)
    assert np.allclose(body[ef.Pose].x[0], [0.6, 0, 0], atol=1e-12)
    assert same_turn(body[ef.Pose].q[0], quaternion_of(np.array([0, 0, 0.9]))) < 1e-12
    assert np.array_equal(body[ef.RigidMotion].angular_velocity[0], [0, 0, 3.0])
