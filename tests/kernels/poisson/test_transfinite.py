"""Transfinite interpolation from the faces of a box."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ecs_fluid.kernels.poisson.transfinite import fill_from_faces


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5, 6, 7), (2, 3, 9), (3, 3, 3), (2, 2, 2)])
def test_exact_where_one_coordinate_is_linear(shape: tuple[int, int, int], real: Any) -> None:
    """P_x A = A if A is linear in x, whatever it is in y and z, and the Boolean sum keeps that; so per axis.

    A = (1 + 2 x) sin(3 y) exp(z) is one such field, and faces stay as they are in any case.
    """
    x, y, z = np.meshgrid(*(np.linspace(0.0, 1.0, n) for n in shape), indexing="ij")
    fields = [(1.0 + 2.0 * a) * np.sin(3.0 * b) * np.exp(c) for a, b, c in ((x, y, z), (y, z, x), (z, x, y))]
    exact = np.stack([*fields, x * y * z], axis=-1).astype(real)
    field = exact.copy()
    field[1:-1, 1:-1, 1:-1] = np.nan
    fill_from_faces(field, (0.1, 0.1, 0.1))
    assert np.allclose(field, exact, rtol=0.0, atol=40.0 * float(np.finfo(real).eps))
    # The same as a scalar field.
    scalar = np.ascontiguousarray(exact[..., 0])
    scalar[1:-1, 1:-1, 1:-1] = 9.0
    fill_from_faces(scalar, (0.1, 0.1, 0.1))
    assert np.allclose(scalar, field[..., 0], rtol=0.0, atol=4.0 * float(np.finfo(real).eps))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("points", [1, 3])
def test_flat_axis_is_filled_plane_by_plane(axis: int, points: int) -> None:
    """Bilinear in the plane, any from layer to layer."""
    shape = [4, 6]
    shape.insert(axis, points)
    plane = np.linspace(0.0, 1.0, 4)[:, None] * np.linspace(1.0, 3.0, 6)
    layers = (1.0 + np.arange(points) ** 2).reshape([points if a == axis else 1 for a in range(3)])
    exact = np.ascontiguousarray(np.expand_dims(plane, axis) * layers)
    field = exact.copy()
    inner = [slice(1, -1)] * 3
    inner[axis] = slice(None)
    field[tuple(inner)] = np.nan
    spacing = np.ones(3)
    spacing[axis] = 0.0
    fill_from_faces(field, spacing)
    assert np.allclose(field, exact, rtol=0.0, atol=1e-14)
