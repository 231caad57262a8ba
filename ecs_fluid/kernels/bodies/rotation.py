"""Rotations of rigid bodies: unit quaternions (w, x, y, z) and free rotation without torque.

A quaternion q takes body coordinates to world coordinates by the matrix R(q). Everything is float64.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.vector3 import INLINE_EXACT, Matrix, cross_of, dot, length

LARGEST_ANGLE = 0.1
"""Radians that a body may turn in one step of the momentum equation."""

MOST_STEPS = 4096

_GAUSS = math.sqrt(15.0)
_NODES = np.array([0.5 - _GAUSS / 10, 0.5, 0.5 + _GAUSS / 10])
_WEIGHTS = np.array([5 / 18, 4 / 9, 5 / 18])
_MATRIX = np.array(
    [
        [5 / 36, 2 / 9 - _GAUSS / 15, 5 / 36 - _GAUSS / 30],
        [5 / 36 + _GAUSS / 24, 2 / 9, 5 / 36 - _GAUSS / 24],
        [5 / 36 + _GAUSS / 30, 2 / 9 + _GAUSS / 15, 5 / 36],
    ]
)


@njit(cache=True, error_model="numpy")
def cross(a: Array, b: Array) -> Array:
    """Cross product of two vectors (3,)."""
    return np.array(cross_of(a, b))


@njit(cache=True, error_model="numpy")
def times(m: Array, a: Array) -> Array:
    """Matrix (3, 3) times vector (3,)."""
    out = np.empty(3)
    for i in range(3):
        out[i] = m[i, 0] * a[0] + m[i, 1] * a[1] + m[i, 2] * a[2]
    return out


@njit(cache=True, error_model="numpy")
def times_transposed(m: Array, a: Array) -> Array:
    """Transpose of a matrix (3, 3) times vector (3,)."""
    out = np.empty(3)
    for i in range(3):
        out[i] = m[0, i] * a[0] + m[1, i] * a[1] + m[2, i] * a[2]
    return out


@njit(cache=True, error_model="numpy", forceinline=False)
def rotation_of(q: tuple[float, float, float, float]) -> Matrix:
    """Rotation matrix of a quaternion, which is normalised first."""
    w, x, y, z = q
    s = 2.0 / (w * w + x * x + y * y + z * z)
    return (
        1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y),
        s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x),
        s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y),
    )  # fmt: skip


@njit(**INLINE_EXACT)
def rotation_at(q: Array, i: int) -> Matrix:
    """Rotation matrix of quaternion i of (n, 4)."""
    return rotation_of((q[i, 0], q[i, 1], q[i, 2], q[i, 3]))


@njit(cache=True, error_model="numpy")
def matrix_of(q: Array) -> Array:
    """Rotation matrix (3, 3) of a quaternion (4,), which is normalised first."""
    return np.array(rotation_of((q[0], q[1], q[2], q[3]))).reshape(3, 3)


@njit(cache=True, error_model="numpy")
def matrices_of(q: Array) -> Array:
    """Rotation matrices (n, 3, 3) of quaternions (n, 4), which are normalised first."""
    out = np.empty((len(q), 3, 3))
    for i in range(len(q)):
        out[i] = matrix_of(q[i])
    return out


@njit(cache=True, error_model="numpy")
def in_world(tensors: Array, q: Array) -> Array:
    """Tensors (n, 3, 3) of bodies turned by q (n, 4), inertia for example, from body to world axes."""
    out = np.empty((len(q), 3, 3))
    for i in range(len(q)):
        turn = matrix_of(q[i])
        out[i] = turn @ tensors[i] @ turn.T
    return out


@njit(cache=True, error_model="numpy")
def product(a: Array, b: Array) -> Array:
    """Normalised quaternion product a b: the rotation b followed by a."""
    out = np.empty(4)
    out[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3]
    out[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2]
    out[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1]
    out[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]
    size = math.sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2] + out[3] * out[3])
    for i in range(4):
        out[i] /= size
    return out


@njit(cache=True, error_model="numpy")
def quaternion_of(turn: Array) -> Array:
    """Quaternion (4,) of a rotation vector (3,): axis times angle, rad."""
    angle = length(turn)
    out = np.empty(4)
    out[0] = math.cos(0.5 * angle)
    # sin(a/2)/a by its series where the quotient would lose digits.
    ratio = math.sin(0.5 * angle) / angle if angle > 1e-8 else 0.5
    for i in range(3):
        out[i + 1] = ratio * turn[i]
    return out


@njit(cache=True, error_model="numpy")
def matrices_after(turns: Array, q: Array) -> Array:
    """Rotation matrices (n, 3, 3) of quaternions (n, 4) followed by rotation vectors (n, 3) rad."""
    out = np.empty((len(q), 3, 3))
    for i in range(len(q)):
        out[i] = matrix_of(product(quaternion_of(turns[i]), q[i]))
    return out


@njit(cache=True, error_model="numpy")
def rotation_vector(q: Array) -> Array:
    """Rotation vector (3,) of the shorter way to a quaternion (4,), |angle| <= pi."""
    sign = 1.0 if q[0] >= 0.0 else -1.0
    part = np.empty(3)
    for i in range(3):
        part[i] = sign * q[i + 1]
    size = length(part)
    ratio = 2.0 * math.atan2(size, sign * q[0]) / size if size > 1e-12 else 2.0
    for i in range(3):
        part[i] *= ratio
    return part


@njit(cache=True, error_model="numpy")
def turn_between(before: Array, after: Array) -> Array:
    """Rotation vector (3,) rad of the shorter turn from one unit quaternion (4,) to another."""
    back = np.array([before[0], -before[1], -before[2], -before[3]])
    return rotation_vector(product(after, back))


@njit(cache=True, error_model="numpy")
def rotation_along(vectors: Array) -> Array:
    """int spin dt (3,) along rotation vectors (n, 3): the sum of the rotations from each to the next."""
    total = np.zeros(3)
    before = quaternion_of(vectors[0])
    for i in range(1, len(vectors)):
        after = quaternion_of(vectors[i])
        total += turn_between(before, after)
        before = after
    return total


@njit(cache=True, error_model="numpy")
def _momentum_step(m: Array, inverse: Array, h: float) -> Array:
    """One step of dm/dt = m x (I^-1 m) by the Gauss method of order 6; keeps |m| and the energy."""
    slopes = np.empty((3, 3))
    start = cross(m, times(inverse, m))
    for s in range(3):
        slopes[s] = start
    scale = length(start) + 1e-300
    for _ in range(60):
        worst = 0.0
        for s in range(3):
            stage = m.copy()
            for r in range(3):
                for i in range(3):
                    stage[i] += h * _MATRIX[s, r] * slopes[r, i]
            fresh = cross(stage, times(inverse, stage))
            for i in range(3):
                worst = max(worst, abs(fresh[i] - slopes[s, i]))
                slopes[s, i] = fresh[i]
        if worst <= 1e-16 * scale:
            break
    out = m.copy()
    for s in range(3):
        for i in range(3):
            out[i] += h * _WEIGHTS[s] * slopes[s, i]
    return out


@njit(cache=True, error_model="numpy")
def _rotation_in_step(m0: Array, m1: Array, inverse: Array, h: float) -> Array:
    """Rotation vector in body axes while the momentum goes from m0 to m1 in h seconds.

    Magnus series of order 6 on Gauss nodes (Blanes, Casas and Ros, BIT 40, 2000). The momentum between its
    two exact ends is the polynomial of degree 5 with the right first and second derivatives there.
    """
    w0, w1 = times(inverse, m0), times(inverse, m1)
    d0, d1 = cross(m0, w0), cross(m1, w1)
    c0 = cross(d0, w0) + cross(m0, times(inverse, d0))
    c1 = cross(d1, w1) + cross(m1, times(inverse, d1))
    a = np.empty((3, 3))
    for k in range(3):
        s = _NODES[k]
        s2 = s * s
        s3, s4, s5 = s2 * s, s2 * s2, s2 * s2 * s
        m = (1.0 - 10.0 * s3 + 15.0 * s4 - 6.0 * s5) * m0 + (10.0 * s3 - 15.0 * s4 + 6.0 * s5) * m1
        m += h * (s - 6.0 * s3 + 8.0 * s4 - 3.0 * s5) * d0 + h * (-4.0 * s3 + 7.0 * s4 - 3.0 * s5) * d1
        m += (
            h * h * (0.5 * s2 - 1.5 * s3 + 1.5 * s4 - 0.5 * s5) * c0 + h * h * (0.5 * s3 - s4 + 0.5 * s5) * c1
        )
        # The transposed rotation obeys Y' = -w Y, the form the series is written for.
        a[k] = -times(inverse, m)
    first = h * a[1]
    second = (_GAUSS / 3.0) * h * (a[2] - a[0])
    third = (10.0 / 3.0) * h * (a[2] - 2.0 * a[1] + a[0])
    inner = cross(first, second)
    outer = -cross(first, 2.0 * third + inner) / 60.0
    total = first + third / 12.0 + cross(-20.0 * first - third + inner, second + outer) / 240.0
    return -total


@njit(cache=True, error_model="numpy")
def align(q: Array, m: Array, momentum: Array) -> Array:
    """The orientation nearest to q that takes body momentum m to the world's `momentum`."""
    now = times(matrix_of(q), m)
    both = length(now) * length(momentum)
    if both == 0.0:
        return q
    axis = cross(now, momentum) / both
    cosine = dot(now, momentum) / both
    size = length(axis)
    if size == 0.0:
        return q
    return product(quaternion_of(axis * (math.atan2(size, cosine) / size)), q)


@njit(cache=True, error_model="numpy")
def free_rotation(q: Array, omega: Array, inertia: Array, inverse: Array, dt: float) -> tuple[Array, Array]:
    """Torque-free rotation of a rigid body for `dt` seconds: (quaternion (4,), angular velocity (3,)).

    Angular momentum and rotational energy are kept to rounding whatever `dt` is; the orientation follows
    Euler's equations with an error of order 6 in steps of at most 0.1 rad.

    Args:
        q: orientation (4,).
        omega: angular velocity in world axes (3,), rad/s.
        inertia, inverse: tensor in body axes and its inverse (3, 3), kg m^2 and its reciprocal.
        dt: time, s.
    """
    turn = matrix_of(q)
    m = times(inertia, times_transposed(turn, omega))
    momentum = times(turn, m)
    bound = length(m) * math.sqrt((inverse * inverse).sum()) * abs(dt)
    steps = int(min(max(math.ceil(bound / LARGEST_ANGLE), 1.0), float(MOST_STEPS)))
    h = dt / steps
    q = q.copy()
    for _ in range(steps):
        after = _momentum_step(m, inverse, h)
        q = align(product(q, quaternion_of(_rotation_in_step(m, after, inverse, h))), after, momentum)
        m = after
    return q, times(matrix_of(q), times(inverse, m))
