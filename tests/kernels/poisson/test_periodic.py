"""Fields of a lattice folded onto one period, and one period continued."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ecs_fluid.kernels.poisson.periodic import folded, unfolded

CELLS = (4, 5, 6)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("repeats", [(True, True, True), (True, False, True), (False, True, False)])
def test_points_a_period_apart_are_added_up(repeats: tuple[bool, bool, bool], kind: Any) -> None:
    """Small whole numbers, so that every order of adding gives the same; up to four periods along an axis."""
    first = (-3, 7, -20)
    field = np.random.default_rng(1).integers(-9, 9, (9, 12, 21, 3)).astype(kind)
    size = [n if again else length for n, again, length in zip(CELLS, repeats, field.shape, strict=False)]
    expected = np.zeros((*size, 3), kind)
    for place in np.ndindex(*field.shape[:3]):
        to = tuple(
            (p + f) % n if again else p for p, f, n, again in zip(place, first, size, repeats, strict=True)
        )
        expected[to] += field[place]
    np.testing.assert_array_equal(folded(field, first, CELLS, repeats), expected)


@pytest.mark.parametrize("repeats", [(True, True, True), (True, False, True), (False, True, False)])
def test_a_period_goes_on_beyond_its_ends(repeats: tuple[bool, bool, bool]) -> None:
    """By more points than it has along the first axis, which it then meets twice."""
    field = np.random.default_rng(2).standard_normal((*CELLS, 2))
    out = unfolded(field, 5, repeats)
    for axis, (n, again) in enumerate(zip(CELLS, repeats, strict=True)):
        assert out.shape[axis] == (n + 11 if again else n)
    for place in np.ndindex(*out.shape[:3]):
        of = tuple((p - 5) % n if again else p for p, n, again in zip(place, CELLS, repeats, strict=True))
        np.testing.assert_array_equal(out[place], field[of])
