"""Free rotation of rigid bodies against Euler's exact solution, and quaternions against scipy."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation
from scipy.special import ellipj

from ecs_fluid.component import Array
from ecs_fluid.kernels.bodies.rotation import (
    free_rotation,
    matrix_of,
    product,
    quaternion_of,
    rotation_vector,
)

ONE = np.array([1.0, 0.0, 0.0, 0.0])


def inverse_of(matrix: Array) -> Array:
    """Inverse, its columns one after the other as LAPACK leaves it to ticks, whose kernel this then is."""
    return np.asfortranarray(np.linalg.inv(matrix))


def test_quaternions_are_scipys() -> None:
    """Rotation vectors to matrices and back, and products, for angles from 1e-12 to nearly pi."""
    draw = np.random.default_rng(1)
    for angle in (0.0, 1e-12, 1e-5, 0.3, 2.0, 3.14):
        axis = draw.standard_normal(3)
        turn = angle * axis / np.linalg.norm(axis)
        q = quaternion_of(turn)
        theirs = Rotation.from_rotvec(turn)
        assert np.allclose(matrix_of(q), theirs.as_matrix(), atol=1e-15)
        assert np.allclose(rotation_vector(q), turn, atol=1e-14)
        assert np.allclose(rotation_vector(-q), turn, atol=1e-14)
        other = Rotation.random(random_state=draw)
        p = np.roll(other.as_quat(), 1)
        assert np.allclose(matrix_of(product(p, q)), (other * theirs).as_matrix(), atol=1e-15)


def test_tumbling_is_jacobis() -> None:
    """Angular velocity of a body with moments 1, 2, 3 against elliptic functions (Landau and Lifshitz, 37).

    With 2 E I_2 < L^2: w1 = a cn, w2 = b sn, w3 = c dn of tau = t sqrt((I3 - I2)(L^2 - 2 E I1)/(I1 I2 I3)).
    The orientation has to take the body's momentum to the world's fixed one all the time.
    """
    i1, i2, i3 = 1.0, 2.0, 3.0
    inertia = np.diag([i1, i2, i3])
    a, c = 0.7, 1.1
    energy2, momentum2 = i1 * a**2 + i3 * c**2, (i1 * a) ** 2 + (i3 * c) ** 2
    assert momentum2 > energy2 * i2
    rate = np.sqrt((i3 - i2) * (momentum2 - energy2 * i1) / (i1 * i2 * i3))
    m = (i2 - i1) * (energy2 * i3 - momentum2) / ((i3 - i2) * (momentum2 - energy2 * i1))
    b = np.sqrt((energy2 * i3 - momentum2) / (i2 * (i3 - i2)))
    q, angular_velocity = ONE, np.array([a, 0.0, c])
    momentum = inertia @ angular_velocity
    for dt in (0.01, 0.3, 2.0, 7.0):
        turned, after = free_rotation(q, angular_velocity, inertia, inverse_of(inertia), dt)
        sn, cn, dn, _ = ellipj(rate * dt, m)
        body = matrix_of(turned).T @ after
        # Of order 6 in steps of 0.1 rad: h^7/720/64 a step is 2e-12, times 100 steps.
        assert np.allclose(body, [a * cn, b * sn, c * dn], atol=1e-10) or np.allclose(
            body, [a * cn, -b * sn, c * dn], atol=1e-10
        )
        assert np.allclose(matrix_of(turned) @ inertia @ body, momentum, atol=1e-14)


def test_one_long_step_is_many_short_ones() -> None:
    """Orientation after 5 s by 1 and by 500 calls: both follow Euler's equations, so they meet, to 1e-10."""
    draw = np.random.default_rng(2)
    inertia = np.diag([0.2, 0.5, 0.6])
    turn = Rotation.random(random_state=draw).as_matrix()
    inertia = turn @ inertia @ turn.T
    inverse = inverse_of(inertia)
    start = np.array([0.3, 2.0, -1.0])
    q, angular_velocity = free_rotation(ONE, start, inertia, inverse, 5.0)
    p, other = ONE, start
    for _ in range(500):
        p, other = free_rotation(p, other, inertia, inverse, 0.01)
    assert np.allclose(q, p, atol=1e-10) and np.allclose(angular_velocity, other, atol=1e-10)


def test_energy_and_angular_momentum_stay() -> None:
    """10,000 ticks of unstable tumbling (about the middle axis): both drift by rounding only.

    10^4 roundings of 2.2e-16 that all went one way would make 2e-12.
    """
    inertia = np.diag([1.0, 2.0, 3.0])
    inverse = inverse_of(inertia)
    q, angular_velocity = ONE, np.array([1e-3, 3.0, 1e-3])
    momentum, energy = inertia @ angular_velocity, angular_velocity @ inertia @ angular_velocity
    turned = 0.0
    for _ in range(10_000):
        q, angular_velocity = free_rotation(q, angular_velocity, inertia, inverse, 1 / 30)
        turned = min(turned, (matrix_of(q).T @ angular_velocity)[1])
    world = matrix_of(q) @ inertia @ matrix_of(q).T
    assert turned < -2.9  # it did turn over
    assert np.abs(world @ angular_velocity - momentum).max() < 2e-12 * np.linalg.norm(momentum)
    assert abs(angular_velocity @ world @ angular_velocity - energy) < 2e-12 * energy
