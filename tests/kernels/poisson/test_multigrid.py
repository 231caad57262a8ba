"""Multigrid: convergence factor, order, cost (V9), any grid, threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from ecs_fluid.kernels.poisson.multigrid import coarser, levels, solve
from ecs_fluid.kernels.poisson.transfinite import fill_from_faces
from tests.kernels.poisson.relaxation import residual, sor
from tests.threads import check_threads

Array = NDArray[Any]
Cells = tuple[int, int, int]
REALS = (np.float32, np.float64)


def noise(cells: Cells, real: Any = np.float64, m: int = 3) -> Array:
    """Random inside, zero on the faces: the error of every frequency."""
    field = np.zeros((*(n + 1 for n in cells), m), real)
    inner = field[1:-1, 1:-1, 1:-1]
    inner[...] = np.random.default_rng(4).standard_normal(inner.shape)
    return field


def factor(cells: Cells, spacing: Any, cycles: int = 7) -> float:
    """Residual left per V-cycle, averaged over the last ones (the first are better than the asymptote)."""
    field = noise(cells, m=1)
    history = solve(field, np.zeros_like(field), spacing, 0.0, cycles, full=False)
    return float((history[-1] / history[2]) ** (1.0 / (len(history) - 3)))


def manufactured(cells: Cells, real: Any = np.float64) -> tuple[Array, Array, Array]:
    """A = sin(2 x + 0.3) cos(y) exp(z) and itself times -3, on the unit box, lap A = (-4 - 1 + 1) A."""
    x, y, z = np.meshgrid(*(np.linspace(0.0, 1.0, n + 1) for n in cells), indexing="ij")
    one = np.sin(2.0 * x + 0.3) * np.cos(y) * np.exp(z)
    exact = np.stack([one, -3.0 * one], axis=-1)
    return exact.astype(real), (-4.0 * exact).astype(real), 1.0 / np.array(cells)


def with_faces_of(exact: Array) -> Array:
    field = exact.copy()
    field[1:-1, 1:-1, 1:-1] = 0.0
    return field


@pytest.mark.parametrize("n", [4, 5, 7, 8, 11, 16, 17, 21, 31, 32, 37, 48])
def test_convergence_factor_on_cubes(n: int) -> None:
    """One V(1, 1)-cycle leaves at most 0.11 on any cube, powers of two or not (measured 0.03 to 0.105)."""
    assert factor((n, n, n), np.full(3, 1.0 / n)) < 0.12


@pytest.mark.parametrize(
    ("cells", "spacing"),
    [
        ((32, 32, 32), (1.0, 1.0, 4.0)),
        ((32, 32, 32), (1.0, 4.0, 16.0)),
        ((32, 20, 11), (1.0, 1.3, 0.8)),
        ((33, 9, 64), (1.0, 1.0, 1.0)),
        ((32, 32, 2), (1.0, 1.0, 1.0)),
        ((24, 24, 24), (1.0, 1.0, 1.4)),
        ((24, 24, 24), (1.0, 1.9, 1.0)),
        ((40, 3, 40), (1.0, 0.1, 1.0)),
        ((19, 23, 41), (1.0, 0.7, 1.1)),
    ],
)
def test_convergence_factor_on_boxes_and_stretched_cells(cells: Cells, spacing: Any) -> None:
    """The bound of the task is 0.15 to 0.2; semi-coarsening keeps 1 : 4 : 16 cells inside it (0.13)."""
    assert factor(cells, np.array(spacing)) < 0.15


@settings(max_examples=25)
@given(
    cells=st.tuples(*[st.integers(1, 20)] * 3),
    spacing=st.tuples(*[st.floats(0.05, 20.0)] * 3),
)
def test_any_grid_converges(cells: Cells, spacing: Any) -> None:
    """Eight cycles leave less than 0.2^8 = 3e-6 of the residual on any box with any cells.

    0.132 was the worst of 1500 such boxes; round-off may end the cycles earlier.
    """
    field = noise(cells, m=1)
    history = solve(field, np.zeros_like(field), np.array(spacing), 0.0, 8, full=False)
    assert history[-1] <= 0.2**8 * history[0]


@pytest.mark.parametrize("cells", [(8, 8, 8), (9, 7, 6)])
def test_second_order(cells: Cells) -> None:
    """Error of the solution falls by 4 for half the spacing: orders within 0.1 of 2."""
    errors = []
    for refine in (1, 2, 4):
        finer = (cells[0] * refine, cells[1] * refine, cells[2] * refine)
        exact, rhs, spacing = manufactured(finer)
        field = with_faces_of(exact)
        solve(field, rhs, spacing, 1e-10)
        errors.append(np.abs(field - exact).max())
        assert np.all(field[-1] == exact[-1])
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - 2.0) < 0.1)


def test_full_multigrid_meets_the_error_of_the_grid_at_once() -> None:
    """From the interpolated faces, a full cycle and two more come within 10 % of the grid's own error."""
    exact, rhs, spacing = manufactured((48, 48, 48))
    field, best = with_faces_of(exact), with_faces_of(exact)
    solve(best, rhs, spacing, 1e-9)
    fill_from_faces(field, spacing)
    solve(field, rhs, spacing, 0.0, cycles=2)
    assert np.abs(field - best).max() < 0.1 * np.abs(best - exact).max()


def test_cost_is_linear_and_that_of_over_relaxation_is_not() -> None:
    """V9 by counted work to a residual of 1e-4, slopes against the number of points N.

    Points visited per V-cycle: (1 + 1/8 + ...) = 8/7 of the finest, and the number of cycles is constant:
    slope 1. Over-relaxation at its best omega leaves omega - 1 = 1 - O(1/n) per sweep: sweeps ~ n, so
    N^(4/3) in three dimensions (the articles' N^(3/2) is that of two).
    """
    sizes = np.array([16, 32, 64])
    cycle_work, sweep_work = [], []
    for n in sizes:
        rhs = noise((n, n, n), m=1)
        spacing = np.full(3, 1.0 / n)
        field = np.zeros_like(rhs)
        cycles = len(solve(field, rhs, spacing, 1e-4, full=False)) - 1
        per_cycle = sum(level.field.size for level in levels(field, rhs, spacing))
        assert per_cycle < 8.0 / 7.0 * (1.0 + 2.0 / n) ** 3 * n**3
        cycle_work.append(cycles * per_cycle)
        # Smooth, as noise would be gone after a few sweeps.
        rhs = with_one_wave(n)
        field = np.zeros_like(rhs)
        start = residual(field, rhs, spacing)
        sweeps = 0
        while residual(field, rhs, spacing) > 1e-4 * start:
            sor(field, rhs, spacing, None, 2)
            sweeps += 2
        sweep_work.append(sweeps * n**3)
    log_points = 3.0 * np.log(sizes)
    assert np.polyfit(log_points, np.log(cycle_work), 1)[0] == pytest.approx(1.0, abs=0.07)
    assert np.polyfit(log_points, np.log(sweep_work), 1)[0] == pytest.approx(4.0 / 3.0, abs=0.07)


def with_one_wave(n: int) -> Array:
    s = np.sin(np.pi * np.arange(n + 1) / n)
    return np.asarray(s[:, None, None, None] * s[:, None, None] * s[:, None])


@pytest.mark.parametrize("real", REALS)
def test_tolerance_is_kept(real: Any) -> None:
    exact, rhs, spacing = manufactured((40, 31, 22), real)
    field = with_faces_of(exact)
    fill_from_faces(field, spacing)
    start = residual(field, rhs, spacing)
    history = solve(field, rhs, spacing, 1e-3)
    assert history[0] == pytest.approx(start, rel=1e-6)
    # The faces interpolate this A well, so the right-hand side is the larger reference.
    reference = np.sqrt(np.mean(rhs[1:-1, 1:-1, 1:-1].astype(float) ** 2))
    assert start < reference
    assert history[-1] <= 1e-3 * reference < history[-2]
    assert residual(field, rhs, spacing) < history[-1]
    assert len(history) <= 4
    assert field.dtype == real
    # A solution of a moment ago is taken as it is.
    assert len(solve(field, rhs, spacing, 1e-3, full=False)) <= 2


def test_single_precision_stops_at_round_off() -> None:
    """tolerance 0 in float32: stops by itself, within 1e-6 of the float64 solution (values up to 9)."""
    exact, rhs, spacing = manufactured((32, 32, 32), np.float32)
    field, double = with_faces_of(exact), with_faces_of(exact.astype(np.float64))
    history = solve(field, rhs, spacing, 0.0, cycles=50)
    assert len(history) < 20
    solve(double, rhs.astype(np.float64), spacing, 1e-12)
    assert np.abs(field - double).max() < 9.0 * 1e-6


def test_tiny_grids() -> None:
    """No inner point: nothing to do. One: A = -rhs / (2 sum 1/h^2). 2 x 1 x 1 of them: a 2 x 2 system."""
    for cells in ((1, 1, 1), (1, 5, 7), (4, 1, 4)):
        field = np.random.default_rng(1).standard_normal((*(n + 1 for n in cells), 3))
        before = field.copy()
        assert solve(field, np.ones_like(field), np.ones(3)) == [0.0]
        assert np.array_equal(field, before)
    field, rhs = np.zeros((3, 3, 3)), np.full((3, 3, 3), 5.0)
    solve(field, rhs, np.array([1.0, 0.5, 2.0]), 1e-12)
    assert field[1, 1, 1] == pytest.approx(-5.0 / (2.0 * (1.0 + 4.0 + 0.25)), rel=1e-14)
    # Both equal by symmetry: (1 - 6) A = rhs.
    field, rhs = np.zeros((4, 3, 3)), np.full((4, 3, 3), 5.0)
    solve(field, rhs, np.ones(3), 1e-13)
    assert np.allclose(field[1:3, 1, 1], -1.0, rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_flat_axis(axis: int) -> None:
    """Spacing 0 or a single point: planes of their own. A = x^2 + 3 x y solves lap A = 2 exactly."""
    for points in (1, 2, 4):
        shape = [13, 18]
        shape.insert(axis, points)
        spacing = np.array([0.1, 0.1, 0.1])
        spacing[axis] = 0.0
        x, y = (0.1 * np.arange(n) for n in (13, 18))
        plane = x[:, None] ** 2 + 3.0 * x[:, None] * y
        exact = np.ascontiguousarray(np.broadcast_to(np.expand_dims(plane, axis), shape))
        field = exact.copy()
        inner = [slice(1, -1)] * 3
        inner[axis] = slice(None)
        field[tuple(inner)] = 0.0
        solve(field, np.full(shape, 2.0), spacing, 1e-13)
        assert np.abs(field - exact).max() < 1e-10


def test_semi_coarsening() -> None:
    """Axes with wide cells wait: (1, 1, 4) m halves x and y twice before z."""
    shape, spacing, seen = (33, 33, 33), np.array([1.0, 1.0, 4.0]), []
    while (small := coarser(shape, spacing)) is not None:
        spacing = spacing * [(a - 1) / (b - 1) for a, b in zip(shape, small, strict=True)]
        shape = (small[0], small[1], small[2])
        seen.append(tuple(n - 1 for n in shape))
    assert seen == [(16, 16, 32), (8, 8, 32), (4, 4, 16), (2, 2, 8), (2, 2, 4), (2, 2, 2)]


@pytest.mark.parametrize("real", REALS)
def test_same_bits_for_any_number_of_threads(real: Any) -> None:
    """37 x 30 x 23 cells of three components: the finest levels are parallel, the others not."""

    def solved() -> tuple[np.ndarray, Any]:
        rhs = noise((37, 30, 23), real)
        field = np.zeros_like(rhs)
        history = solve(field, rhs, np.array([0.1, 0.11, 0.13]), 1e-4)
        return field, history

    check_threads(solved)


def test_nan_is_honest() -> None:
    """A NaN in the source reaches the solution, and the solve ends at once."""
    rhs = noise((16, 16, 16))
    rhs[8, 8, 8, 1] = np.nan
    field = np.zeros_like(rhs)
    history = solve(field, rhs, np.ones(3))
    assert len(history) == 2
    assert np.isnan(field[..., 1]).any()
    assert np.isfinite(field[..., 0]).all()
