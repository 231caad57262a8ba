"""Stages of the integrator on flat columns: what they compute, wherever a row lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ecs_fluid.kernels.compiled import columns

KINDS = (np.float32, np.float64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["advance", "advance_square", "euler", "euler_square"])
def test_a_stage_is_its_formula_wherever_a_row_lies(name: str, kind: Any) -> None:
    """q <- a q + dt f, y <- y + b q (or y^2), and y <- y + dt f; each within two roundings of the result.

    The last 777 of 5,000 rows get the same bits alone, in 64 chunks of 12 or 13, as among the others, in
    chunks of 78 or 79: rows of other ranks, or rows that die, change nothing for those that stay.
    """
    rng = np.random.default_rng(3)
    y, q, rate = (rng.uniform(0.5, 1.5, 5000).astype(kind) for _ in range(3))
    a, b, dt = kind(0.4), kind(0.7), kind(0.013)
    plain = name.startswith("euler")
    square = name.endswith("square")
    exact = [part.astype(np.float64) for part in (y, q, rate)]
    register = exact[2] * dt if plain else a * exact[1] + dt * exact[2]
    weight = 1.0 if plain else float(b)
    expected = np.sqrt(exact[0] ** 2 + weight * register) if square else exact[0] + weight * register
    tail = [part[-777:].copy() for part in (y, q, rate)]

    def run(y: Any, q: Any, rate: Any) -> None:
        numbers = (dt,) if plain else (a, b, dt)
        arrays = (y, rate) if plain else (y, q, rate)
        getattr(columns, name)(*arrays, *numbers)

    run(y, q, rate)
    run(*tail)
    # |y| < 2 and |q| < 1.2, so two roundings of numbers below 4 bound what is lost.
    assert np.abs(y - expected).max() < 4 * np.finfo(kind).eps
    if not plain:
        assert np.abs(q - register).max() < 2 * np.finfo(kind).eps
    np.testing.assert_array_equal(y[-777:], tail[0])
    np.testing.assert_array_equal(q[-777:], tail[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [0, 1, 63, 1000])
def test_shift_adds_one_vector_to_all_rows(kind: Any, rows: int) -> None:
    """One rounding of a sum, the same as numpy's."""
    rng = np.random.default_rng(4)
    x, by = rng.standard_normal((rows, 3)).astype(kind), rng.standard_normal(3).astype(kind)
    expected = x + by
    columns.shift(x, by)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [0, 1, 63, 1000])
def test_products_are_added_in_order(kind: Any, rows: int) -> None:
    """The same roundings as numpy's, product by product."""
    rng = np.random.default_rng(5)
    factors, vectors = rng.standard_normal((rows, 7)).astype(kind), rng.standard_normal((7, 3)).astype(kind)
    x = rng.standard_normal((rows, 3)).astype(kind)
    total = np.zeros_like(x)
    for k in range(7):
        total += factors[:, k : k + 1] * vectors[k]
    expected = x + total
    columns.add_products(factors, vectors, x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_points_move_into_the_box_by_whole_periods(kind: Any) -> None:
    """Periods of 2 and 4 m and quarters of metres, without rounding; nothing moves along the open axis."""
    x = np.array([(1, -1, 7.25), (-1.25, 9.75, -9), (0.75, -2, 0), (5, 2, np.inf)], kind)
    columns.wrap(x, np.array([2, 4, 0], kind))
    expected = [(-1, -1, 7.25), (0.75, 1.75, -9), (0.75, -2, 0), (-1, -2, np.inf)]
    np.testing.assert_array_equal(x, np.array(expected, kind))
