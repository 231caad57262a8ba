"""Grid transfer: exact for linear fields, restriction is the scaled transpose, any numbers of points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ecs_fluid.kernels.poisson.grid_transfer import prolong, prolongation, restrict, restriction

Array = NDArray[Any]
Shape = tuple[int, int, int]
PAIRS = [
    ((9, 9, 9), (5, 5, 5)),
    ((8, 10, 6), (5, 6, 4)),
    ((4, 7, 12), (3, 4, 12)),
    ((5, 5, 6), (5, 3, 4)),
    ((1, 9, 8), (1, 5, 5)),
    ((41, 34, 27), (21, 18, 14)),
]


def rows(field: Array) -> Array:
    return field.reshape(field.shape[0], field.shape[1], -1)


def polynomial(shape: Shape) -> Array:
    """1 + x - 2 y + 3 z + 5 x y z on the unit box and twice that, as two components."""
    x, y, z = np.meshgrid(*(np.arange(n) / max(n - 1, 1) for n in shape), indexing="ij")
    value = 1.0 + x - 2.0 * y + 3.0 * z + 5.0 * x * y * z
    return np.stack([value, 2.0 * value], axis=-1)


def spans(shape: Shape, margin: int, components: int = 1) -> NDArray[np.int64]:
    ends = np.array([[0, n] if n == 1 else [margin, n - margin] for n in shape])
    ends[2] *= components
    return ends


@pytest.mark.parametrize(("fine", "coarse"), PAIRS)
def test_sampling_is_exact_for_trilinear_fields(fine: Shape, coarse: Shape) -> None:
    """Up and down, added to the inner points and to no others."""
    for target, source in ((fine, coarse), (coarse, fine)):
        how = prolongation((*target, 2), (*source, 2), np.float64)
        out, inside = polynomial(target), spans(target, 1)
        prolong(rows(polynomial(source)), rows(out), how, spans(target, 1, 2))
        factor = np.ones((*target, 1))
        factor[tuple(slice(*ends) for ends in inside)] = 2.0
        assert np.allclose(out, factor * polynomial(target), rtol=0.0, atol=4e-14)


@pytest.mark.parametrize(("fine", "coarse"), PAIRS)
def test_restriction_is_the_transpose_of_interpolation(fine: Shape, coarse: Shape) -> None:
    """<R f, c> = (product of N/n) <f, P c> for all f, c that vanish on the faces."""
    rng = np.random.default_rng(1)
    f, c = np.zeros((*fine, 3)), np.zeros((*coarse, 3))
    for field, shape in ((f, fine), (c, coarse)):
        inner = tuple(slice(*ends) for ends in spans(shape, 1))
        field[inner] = rng.standard_normal(field[inner].shape)
    down, up = np.zeros_like(c), np.zeros_like(f)
    back = restriction((*coarse, 3), (*fine, 3), np.float64)
    restrict(rows(f), rows(down), back, spans(coarse, 1, 3))
    forth = prolongation((*fine, 3), (*coarse, 3), np.float64)
    prolong(rows(c), rows(up), forth, spans(fine, 1, 3))
    ratio = np.prod([(b - 1) / (a - 1) for a, b in zip(fine, coarse, strict=True) if a > 1])
    # Sums of some ten thousand terms of order 1: round-off grows with the root of their number.
    assert np.vdot(down, c) == pytest.approx(ratio * np.vdot(f, up), rel=1e-11, abs=1e-11)


def test_nested_restriction_is_full_weighting() -> None:
    """A spike of 64 at a common, a face, an edge and a corner point gives 8, 4, 2, 1 (articles, part 6)."""
    tables = restriction((5, 5, 5), (9, 9, 9), np.float64)
    for at, expected in (((4, 4, 4), 8.0), ((4, 4, 5), 4.0), ((4, 5, 5), 2.0), ((5, 5, 5), 1.0)):
        fine, coarse = np.zeros((9, 9, 9)), np.zeros((5, 5, 5))
        fine[at] = 64.0
        restrict(fine, coarse, tables, spans((5, 5, 5), 1))
        assert coarse[2, 2, 2] == expected
