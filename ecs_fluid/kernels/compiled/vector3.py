"""Vectors of three numbers in registers: making an array for each would take longer than the arithmetic.

Arguments are tuples, or rows of arrays whose first three numbers are read; results are tuples. All functions
are inlined into their callers and round as the same formulas written out would.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import Array

Vector = tuple[float, float, float]
Matrix = tuple[float, ...]
"""Nine numbers, row after row."""

INLINE_EXACT: dict[str, Any] = {"forceinline": True, "fastmath": False, "error_model": "numpy"}


@njit(**INLINE_EXACT)
def row_of(rows: Array, i: int) -> Vector:
    """Row i of an array (n, 3) or wider, in double precision."""
    return np.float64(rows[i, 0]), np.float64(rows[i, 1]), np.float64(rows[i, 2])


@njit(**INLINE_EXACT)
def matrix_at(matrices: Array, i: int) -> Matrix:
    """Matrix i of an array (n, 3, 3)."""
    m = matrices[i]
    return m[0, 0], m[0, 1], m[0, 2], m[1, 0], m[1, 1], m[1, 2], m[2, 0], m[2, 1], m[2, 2]


@njit(**INLINE_EXACT)
def dot(a: Vector, b: Vector) -> float:
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(**INLINE_EXACT)
def cross_of(a: Vector, b: Vector) -> Vector:
    """Cross product."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@njit(**INLINE_EXACT)
def length(a: Vector) -> float:
    """Euclidean norm."""
    return math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@njit(**INLINE_EXACT)
def minus(a: Vector, b: Vector) -> Vector:
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@njit(**INLINE_EXACT)
def add_scaled(a: Vector, s: float, b: Vector) -> Vector:
    """a + s b."""
    return a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]


@njit(**INLINE_EXACT)
def scaled(s: float, a: Vector) -> Vector:
    """s a."""
    return s * a[0], s * a[1], s * a[2]


@njit(**INLINE_EXACT)
def divided(a: Vector, s: float) -> Vector:
    """a / s."""
    return a[0] / s, a[1] / s, a[2] / s


@njit(**INLINE_EXACT)
def rotated(m: Matrix, a: Vector) -> Vector:
    """Matrix times vector."""
    return (
        m[0] * a[0] + m[1] * a[1] + m[2] * a[2],
        m[3] * a[0] + m[4] * a[1] + m[5] * a[2],
        m[6] * a[0] + m[7] * a[1] + m[8] * a[2],
    )


@njit(**INLINE_EXACT)
def rotated_back(m: Matrix, a: Vector) -> Vector:
    """Transposed matrix times vector: into the axes of a body that the matrix turns."""
    return (
        m[0] * a[0] + m[3] * a[1] + m[6] * a[2],
        m[1] * a[0] + m[4] * a[1] + m[7] * a[2],
        m[2] * a[0] + m[5] * a[1] + m[8] * a[2],
    )
