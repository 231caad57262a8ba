"""Braked motion over a whole tick, against matrix exponentials."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from ecs_fluid.kernels.bodies.linear_resistance import momentum_change, response

Array = np.ndarray


def tensor(draw: np.random.Generator, spread: float) -> Array:
    """A symmetric positive matrix in axes at random, with eigenvalues from 1 to `spread`."""
    axes, _ = np.linalg.qr(draw.standard_normal((3, 3)))
    return np.asarray((axes * np.array([1.0, np.sqrt(spread), spread])) @ axes.T)


def changed(mass: Array, loss: Array, pull: Array, motion: Array, dt: float) -> Array:
    """M^-1 times the momentum gained."""
    gained = np.empty((1, 3))
    momentum_change(mass[None], loss[None], pull[None], motion[None], dt, gained)
    return np.asarray(np.linalg.solve(mass, gained[0]))


@pytest.mark.parametrize("dt", [1e-6, 0.01, 1.0, 30.0])
def test_a_tick_is_the_exponential(dt: float) -> None:
    """w(dt) = w_e + exp(-M^-1 K dt) (w - w_e) with K w_e = p, also where K turns w; 1e-12 of w and w_e."""
    draw = np.random.default_rng(2)
    for _ in range(10):
        mass, pull, motion = tensor(draw, 20.0), draw.standard_normal(3), draw.standard_normal(3)
        x, y, z = 5.0 * draw.standard_normal(3)
        loss = 0.7 * np.eye(3) + np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
        rest = np.linalg.solve(loss, pull)
        wanted = (expm(-dt * np.linalg.solve(mass, loss)) - np.eye(3)) @ (motion - rest)
        found = changed(mass, loss, pull, motion, dt)
        assert np.abs(found - wanted).max() < 1e-12 * (np.linalg.norm(motion) + np.linalg.norm(rest))


@pytest.mark.parametrize("dt", [1e-9, 1.0, 1e9, 1e200])
def test_energy_falls_for_any_step(dt: float) -> None:
    """Without a pull w^T M w never grows, nor does |w| where K is a number; w ends as 0 where dt is long."""
    draw = np.random.default_rng(3)
    for spread in (1.0, 30.0, 1e4):
        mass, motion = tensor(draw, spread), draw.standard_normal(3)
        after = motion + changed(mass, np.eye(3), np.zeros(3), motion, dt)
        assert after @ mass @ after <= (motion @ mass @ motion) * (1 + 1e-14)
        assert after @ after <= (motion @ motion) * (1 + 1e-14)
        if dt > 1e6:
            assert np.abs(after).max() < 1e-10


def test_what_a_pull_holds_up_stays() -> None:
    """At the terminal velocity nothing is gained, not even rounding: p = K w to the last bit."""
    mass, motion = np.diag([1.0, 2.0, 3.0]), np.array([1.0, -2.0, 0.5])
    assert not changed(mass, 4.0 * np.eye(3), 4.0 * motion, motion, 1e3).any()


def test_a_matrix_that_is_not_finite_ends() -> None:
    """The doublings stop; what comes out is not finite either, and the tick's guard says so."""
    assert not np.isfinite(response(np.full((3, 3), np.inf), 1.0)).all()
