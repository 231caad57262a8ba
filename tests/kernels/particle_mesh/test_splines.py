"""Shares of points by splines of order five, and what is read with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from ecs_fluid.kernels.biot_savart.pairwise import BLOCK
from ecs_fluid.kernels.grids.partition import partition
from ecs_fluid.kernels.particle_mesh import splines
from ecs_fluid.kernels.particle_mesh.splines import ORDER, ROW, read, scatter
from tests.kernels.from_python import from_python

weigh = from_python(splines.fill_weights)

Array = NDArray[Any]
SPLINE = BSpline.basis_element(np.arange(ORDER + 1) - 0.5 * ORDER, extrapolate=False)
"""The spline of order five around 0."""


@njit
def block(x: Array) -> Array:
    """Places (3, n) with room for a whole block."""
    out = np.zeros((3, BLOCK), x.dtype)
    for axis in range(3):
        for point in range(x.shape[1]):  # as a whole it compiles for 2.5 s, to tell of unequal shapes
            out[axis, point] = x[axis, point]
    return out


def test_weights_and_slopes() -> None:
    """Those of the spline at the distances from the points."""
    places = np.array([7.0, 7.2, 7.5, 7.8, 7.9999])
    weights, corner = np.empty((6 * ORDER, BLOCK)), np.empty(BLOCK, np.int64)
    weigh(block(np.stack([places] * 3)), 5, np.zeros(3), 1.0, np.array([20, 20, 20]), weights, corner)
    weights, corner = weights[:, :5], corner[:5]
    first = corner % 20
    assert (corner == (first * 20 + first) * 20 + first).all()
    for axis in range(3):
        apart = places - first - np.arange(ORDER)[:, None]
        assert np.abs(apart).max() <= 0.5 * ORDER
        found, slopes = weights[ORDER * axis :][:ORDER], weights[ORDER * (3 + axis) :][:ORDER]
        assert np.abs(found - np.nan_to_num(SPLINE(apart))).max() < 1e-14
        assert np.abs(slopes - np.nan_to_num(SPLINE.derivative()(apart))).max() < 1e-14


@njit
def read_all(x: Array, inverse: float, points: Any, flat: Array, out: Array) -> None:
    weights, corner = np.empty((6 * ORDER, BLOCK), flat.dtype), np.empty(BLOCK, np.int64)
    lines = np.empty(3 * ROW, flat.dtype)
    weigh(block(x.T.copy()), len(x), np.zeros(3), inverse, points, weights, corner)
    for p in range(len(x)):
        read(corner[p], p, weights, points, flat, True, lines, out[p])


@pytest.mark.parametrize("real", [np.float32, pytest.param(np.float64, marks=pytest.mark.nightly)])
def test_scatter_and_read(real: Any) -> None:
    """A scatter is the sum of the shares; reading a linear field gives it and its slopes; one is the other's
    adjoint: sum over points of scattered . field = sum over places of strength . what is read there."""
    draw, points, h = np.random.default_rng(3), np.array([12, 9, 11]), 0.25
    x, strength = draw.uniform(3.0, 5.0, (50, 3)) * h, draw.standard_normal((3, 50))
    cells = np.array([6, 4, 10])
    start, order = partition(x, np.zeros(3), h * np.array([2.0, 2.0, 1.0]), cells)
    rows = np.zeros((8, 50), real)
    rows[:3], rows[3:6] = x[order].T, strength[:, order]
    out = np.full((*points, 3), np.nan, real)
    scatter(rows, start, cells, np.zeros(3), 1.0 / h, out)
    sides = [np.nan_to_num(SPLINE(x[:, a, None] / h - np.arange(points[a]))) for a in range(3)]
    exact = np.einsum("pi,pj,pk,cp->ijkc", *sides, strength)
    precision = float(np.finfo(real).eps)
    assert np.abs(out - exact).max() < 10 * precision * np.abs(exact).max()

    field = np.zeros(points.prod() * 3 + ROW, real)
    slopes = draw.standard_normal((3, 3))
    places = np.stack(np.meshgrid(*(h * np.arange(n) for n in points), indexing="ij"), axis=-1)
    field[:-ROW] = (places @ slopes.T).ravel()
    found = np.empty((50, 12), real)
    read_all(x.astype(real), 1.0 / h, tuple(int(n) for n in points), field, found)
    assert np.abs(found[:, :3] - x @ slopes.T).max() < 30 * precision
    assert np.abs(found[:, 3:] - slopes.ravel()).max() < 200 * precision
    field[:-ROW] = draw.standard_normal(field.size - ROW)
    read_all(x.astype(real), 1.0 / h, tuple(int(n) for n in points), field, found)
    scattered, there = float((exact.ravel() * field[:-ROW]).sum()), float((strength.T * found[:, :3]).sum())
    assert abs(scattered - there) < 300 * precision * np.abs(strength).sum()
