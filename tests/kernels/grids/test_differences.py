"""Finite differences: exact for linear fields, second order inside, zero along flat axes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from ecs_fluid.kernels.grids import differences, grid
from tests.threads import check_threads

SPACING = np.array([0.1, 0.25, 0.4])


def divergence(u: np.ndarray, order: Literal[2, 4] = 2) -> np.ndarray:
    return np.trace(differences.jacobian(u, SPACING, order=order), axis1=-2, axis2=-1)


def points(nx: int, ny: int, nz: int, spacing: np.ndarray = SPACING) -> np.ndarray:
    return grid.grid_points((np.array([-0.3, 0.2, 1.0]), spacing, np.array([nx, ny, nz])))


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 3), (5, 4, 3)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 3e-5)])
def test_linear_fields_are_differentiated_exactly_on_every_point(shape, dtype, tolerance) -> None:
    """u = J x. float32: values of size 5 carry 3e-7 of rounding, divided by 0.1 m."""
    jacobian = np.array([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0], [0.75, 2.0, -4.0]])
    u = (points(*shape) @ jacobian.T).astype(dtype)
    computed = differences.jacobian(u, SPACING)
    assert computed.dtype == dtype
    np.testing.assert_allclose(computed, np.broadcast_to(jacobian, computed.shape), atol=tolerance)
    # curl = (J21 - J12, J02 - J20, J10 - J01), divergence = trace.
    rotation = np.broadcast_to([2.0 + 1.0, 0.5 - 0.75, 3.0 + 2.0], u.shape)
    np.testing.assert_allclose(differences.curl(u, SPACING), rotation, atol=tolerance)
    np.testing.assert_allclose(divergence(u), -2.75, atol=tolerance)
    rows = differences.gradient(np.ascontiguousarray(u[..., 1]), SPACING)
    np.testing.assert_allclose(rows, np.broadcast_to(jacobian[1], rows.shape), atol=tolerance)


def test_quadratic_fields_are_exact_inside_and_one_sided_on_the_faces() -> None:
    """f = x^2 with step h: central gives 2x, the lower face (x0, x0 + h) gives 2 x0 + h."""
    x = points(6, 3, 3)
    g = differences.gradient(x[..., 0] ** 2, SPACING)[..., 0]
    np.testing.assert_allclose(g[1:-1], 2 * x[1:-1, ..., 0], atol=1e-12)
    np.testing.assert_allclose(g[0], 2 * x[0, ..., 0] + SPACING[0], atol=1e-12)
    np.testing.assert_allclose(g[-1], 2 * x[-1, ..., 0] - SPACING[0], atol=1e-12)


def test_error_inside_falls_with_the_square_of_the_spacing() -> None:
    """Central difference of sin: relative error h^2 / 6, so halving h divides it by 4 (4.00 to h^2)."""
    errors = []
    for n in (16, 32):
        h = np.full(3, 1.0 / n)
        x = points(n, 2, 2, h)[..., 0]
        g = differences.gradient(np.sin(x), h)[1:-1, ..., 0]
        errors.append(np.abs(g - np.cos(x[1:-1])).max())
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)


def test_fourth_order_inside() -> None:
    """(8 (f1 - f-1) - (f2 - f-2)) / 12 h: exact for quartics two points from a face."""
    x = points(7, 3, 3)
    g = differences.gradient(x[..., 0] ** 4, SPACING, order=4)[2:-2, ..., 0]
    np.testing.assert_allclose(g, 4 * x[2:-2, ..., 0] ** 3, atol=1e-12)
    errors = []
    for n in (16, 32):
        h = np.full(3, 1.0 / n)
        x = points(n, 2, 2, h)[..., 0]
        g = differences.gradient(np.sin(x), h, order=4)[2:-2, ..., 0]
        errors.append(np.abs(g - np.cos(x[2:-2])).max())
    assert errors[0] / errors[1] == pytest.approx(16.0, rel=0.02)


@pytest.mark.parametrize("order", [2, 4])
def test_the_divergence_of_a_curl_is_zero_to_round_off(order) -> None:
    """Matrices along different axes commute. Two of them divide by h^2: 1e-15 of that."""
    field = np.random.default_rng(4).standard_normal((9, 8, 11, 3))
    u = differences.curl(field, SPACING, order=order)
    assert np.abs(divergence(u, order)).max() < 1e-13 / SPACING.min() ** 2


def test_derivatives_along_a_flat_axis_are_zero() -> None:
    """A flat axis is given by spacing 0; its two points may differ and still count as one plane."""
    u = np.random.default_rng(0).random((4, 5, 2, 3))
    flat = np.array([0.1, 0.2, 0.0])
    computed = differences.jacobian(u, flat)
    np.testing.assert_array_equal(computed[..., 2], 0)
    np.testing.assert_allclose(computed[0, 0, 0, :, 0], (u[1, 0, 0] - u[0, 0, 0]) / 0.1, rtol=1e-12)
    np.testing.assert_allclose(differences.curl(u, flat)[..., 0], computed[..., 2, 1], rtol=1e-12)


def test_discrete_divergence_of_a_discrete_curl_vanishes_inside() -> None:
    """Central differences commute, so div curl A = 0 to rounding two layers in (where all are central)."""
    a = np.random.default_rng(1).random((9, 8, 7, 3))
    div = divergence(differences.curl(a, SPACING))
    # Terms are of size 1 / (0.1 * 0.25) = 40, so 1e-12 is a few hundred roundings.
    np.testing.assert_allclose(div[2:-2, 2:-2, 2:-2], 0, atol=1e-12)


def test_bits_do_not_depend_on_threads() -> None:
    u = np.random.default_rng(2).random((13, 12, 11, 3)).astype(np.float32)
    check_threads(lambda: [f(u, SPACING) for f in (differences.jacobian, differences.curl)])


LOADED = """
import hashlib, numpy as np
from ecs_fluid.kernels.grids import differences
for real in (np.float32, np.float64):
    field = np.random.default_rng(1).standard_normal((20, 17, 15, 3)).astype(real)
    h = np.array([0.1, 0.2, 0.15])
    for function in (differences.curl, differences.jacobian):
        print(hashlib.blake2b(function(field, h, 4).tobytes(), digest_size=8).hexdigest())
"""


@pytest.mark.nightly
def test_bits_are_those_of_the_cache(tmp_path: Path) -> None:
    """The process that compiles a kernel has the bits of those that load it."""
    environment = {**os.environ, "ECS_FLUID_CACHE_DIR": str(tmp_path)}
    found = [
        subprocess.run(
            [sys.executable, "-c", LOADED], env=environment, capture_output=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert found[0] == found[1] and len(set(found[0].split())) == 4
