"""Fast sweeping: validation cases 99, 100 and 102, articles S2, S3, S4 and S6."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from ecs_fluid.kernels import facets, shapes
from ecs_fluid.kernels.differences import gradient
from ecs_fluid.kernels.eikonal import DIRECTIONS, MOST_SWEEPS, SETTLED, distances
from tests.kernels.plain_sweeps import _sweep, plain


def cube(n: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(-1.0, 1.0, n)
    return np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1), np.full(3, 2.0 / (n - 1))


def shape(name: str, x: np.ndarray) -> np.ndarray:
    zero = np.zeros(3)
    return {
        "sphere": lambda: shapes.sphere(x, zero, 0.6),
        "torus": lambda: shapes.torus(x, zero, 0.5, 0.25),
        "box": lambda: shapes.box(x, zero, np.ones(3)),
    }[name]()


# Case 99: L1 and Linf of first-order sweeping with exact values pinned where |phi| < h (validation.md, A12,
# measured there with another code), the box at 64 measured here; and scikit-fmm's second order (L1, Linf).
REFERENCE = {
    ("sphere", 64): ((6.5e-3, 3.8e-2), (2.0e-3, 1.2e-2)),
    ("torus", 64): ((6.6e-3, 2.2e-2), (1.7e-3, 1.1e-2)),
    ("box", 64): ((1.27e-2, 6.0e-2), (1.3e-3, 1.0e-2)),
}


@pytest.mark.parametrize(("name", "n"), REFERENCE)
def test_errors(name: str, n: int) -> None:
    """Cases 99, 100, 101: no error above 1.1 times the reference, 8 sweeps (16 for the torus) suffice and
    one or a few more find nothing left to do; the second order is below scikit-fmm's."""
    x, h = cube(n)
    exact = shape(name, x)
    pinned = np.abs(exact) < h[0]
    (l1, linf), (second_l1, second_linf) = REFERENCE[name, n]
    first = distances(exact, pinned, h)
    error = np.abs(first.phi - exact)
    assert error.mean() <= 1.1 * l1 and error.max() <= 1.1 * linf
    assert first.settled and first.surface and first.sweeps <= 16
    second = distances(exact, pinned, h, order=2)
    error = np.abs(second.phi - exact)
    assert error.mean() <= second_l1 and error.max() <= second_linf
    assert second.settled and second.sweeps <= 40
    for found in (first, second):
        assert (found.phi[pinned] == exact[pinned]).all()
        assert ((found.phi < 0) == (exact < 0)).all()


def test_orders_of_convergence() -> None:
    """Case 99: h log h at a point source; away from the kink at its centre, distances to a ball converge with
    the first and the second order (outside, where no characteristics meet)."""
    first, second, point = [], [], []
    for n in (25, 49, 97):
        x, h = cube(n)
        exact = shapes.sphere(x, (0.0, 0.0, 0.0), 0.4)
        pinned = np.abs(exact) < h[0]
        for order, errors in ((1, first), (2, second)):
            found = distances(exact, pinned, h, order=order).phi
            errors.append(float(np.abs(found - exact)[exact > 0].mean()))
        source = np.zeros(exact.shape, bool)
        source[n // 2, n // 2, n // 2] = True
        radius = np.linalg.norm(x, axis=-1)
        point.append(float(np.abs(distances(radius, source, h).phi - radius).mean()))
    rate = [np.log2(errors[0] / errors[-1]) / 2 for errors in (first, second, point)]
    assert rate[0] > 0.9
    assert rate[1] > 1.75
    # Between 24 and 96 cells h log h falls by 4 log 24 / log 96 = 2.79, that is 2^(2 * 0.74).
    assert 0.65 < rate[2] < 0.85


def test_a_plane_is_exact() -> None:
    """Linear distances satisfy both difference schemes, so only rounding is left, downwind of the pinned."""
    x, h = cube(21)
    normal = np.array([2.0, 1.0, 2.0]) / 3.0
    exact = shapes.plane(x, (-1.0, -1.0, -1.0), normal)
    pinned = np.zeros(exact.shape, bool)
    pinned[:2], pinned[:, :2], pinned[:, :, :2] = True, True, True
    for order in (1, 2):
        found = distances(exact, pinned, h, order=order).phi
        np.testing.assert_allclose(found, exact, atol=1e-12)


def test_unit_gradient() -> None:
    """S2: |grad phi| = 1 off the kinks; the city-block distance of the articles' code would give up to
    sqrt(3) along diagonals."""
    x, h = cube(65)
    exact = shapes.sphere(x, (0, 0, 0), 0.5)
    phi, pinned = facets.facet_distances(exact, h)
    off_centre = (np.linalg.norm(x, axis=-1) > 0.15) & (np.abs(x).max(axis=-1) < 0.95)
    for order, worst in ((1, 0.06), (2, 0.02)):
        found = distances(phi, pinned, h, order=order).phi
        slope = np.linalg.norm(gradient(found, h), axis=-1)[off_centre]
        assert abs(slope.mean() - 1.0) < 0.2 * worst
        assert np.percentile(np.abs(slope - 1.0), 99) < worst


def blobs(dims: tuple[int, int, int], seed: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """A ragged field: many components, kinks and thin gaps."""
    draw = np.random.default_rng(seed)
    field = draw.standard_normal(dims)
    for axis in range(3):
        field = field + np.roll(field, 1, axis) + 0.5 * np.roll(field, 2, axis)
    return facets.facet_distances(field.astype(dtype), np.array([0.1, 0.1, 0.1]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("spacing", [(0.1, 0.1, 0.1), (0.1, 0.07, 0.13)])
def test_blocks_equal_plain_loops(dtype: type, order: int, spacing: tuple[float, ...]) -> None:
    """Case 102, S3: bits of the plain loop for blocks of 1 to everything, odd sizes, and narrow bands."""
    h = np.array(spacing)
    phi, pinned = blobs((13, 19, 11), 1, dtype)
    # Few pinned points: the rest has a way to go.
    pinned &= np.random.default_rng(2).random(pinned.shape) < 0.1
    phi = np.where(pinned, np.abs(phi), np.abs(phi) + 1).astype(dtype)
    for limit in (np.inf, 0.25):
        wanted = plain(phi, pinned, h, order, limit)
        for block in ((1, 1), (2, 3), (5, 8), (64, 64), None):
            found = distances(phi, pinned, h, order, None if limit == np.inf else limit, block)
            assert found.phi.dtype == dtype
            assert (found.phi == wanted).all(), (limit, block)


@pytest.mark.parametrize("order", [1, 2])
def test_threads_do_not_matter(order: int) -> None:
    """Case 102: same bits for 1, 2 and 4 threads."""
    phi, pinned = blobs((40, 70, 30), 4, np.float64)
    before = numba.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 4):
            numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
            near, held = blobs((40, 70, 30), 4, np.float64)
            assert (near == phi).all() and (held == pinned).all()
            found.append(distances(near, held, np.full(3, 0.1), order, block=(4, 9)).phi)
    finally:
        numba.set_num_threads(before)
    assert all((other == found[0]).all() for other in found[1:])


def test_fewer_directions_leave_points_unassigned() -> None:
    """S4: a source in the corner where a sweep ends is carried only as far as the sweeps go against it.

    Forward sweeps alone carry nothing away from the last corner but the three points beside it, whose forward
    neighbour it is; the opposite sweep then reaches everything.
    """
    n = 6
    source = np.zeros((n, n, n), bool)
    source[-1, -1, -1] = True
    v = np.where(source, 0.0, np.inf)
    one, ends = np.ones(3), (1, np.inf, -1.0)
    _sweep(v, source, one, (True, True, True), *ends)
    assert np.isfinite(v).sum() == 4
    _sweep(v, source, one, (False, False, False), *ends)
    assert np.isfinite(v).all()
    assert len({(f, i, t) for f, i, t in DIRECTIONS}) == 8
    found = distances(np.where(source, 0.0, 1.0), source, one)
    # Along the axes the distance is exact.
    np.testing.assert_allclose(found.phi[-1, -1], np.arange(n)[::-1], atol=1e-12)


def test_narrow_band() -> None:
    """Within the limit the values are those of the whole, beyond it the limit with the side's sign.

    Values beyond the limit feed none within (a distance comes from smaller ones), so the first order has the
    same bits.
    """
    x, h = cube(41)
    phi, pinned = facets.facet_distances(shapes.sphere(x, (0, 0, 0), 0.6), h)
    whole, band = distances(phi, pinned, h).phi, distances(phi, pinned, h, limit=0.2).phi
    near = np.abs(whole) <= 0.2
    assert 0.2 < near.mean() < 0.8
    assert (band[near] == whole[near]).all()
    assert (band[~near] == np.copysign(0.2, whole[~near])).all()


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("dims", [(5, 6, 7), (1, 6, 7), (2, 2, 2), (1, 1, 4), (1, 1, 1)])
def test_without_a_surface(dims: tuple[int, int, int], inside: bool) -> None:
    """S6: nothing pinned: said so, and every point is as far as the grid is large, or the limit; no NaN."""
    field = np.full(dims, -1.0 if inside else 1.0)
    phi, pinned = facets.facet_distances(field, np.full(3, 0.5))
    found = distances(phi, pinned, np.full(3, 0.5), order=2)
    diagonal = 0.5 * np.linalg.norm(np.array(dims) - 1) or 0.5
    assert not found.surface
    np.testing.assert_allclose(found.phi, -diagonal if inside else diagonal)
    assert (distances(phi, pinned, np.full(3, 0.5), limit=0.1).phi == (-0.1 if inside else 0.1)).all()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_flat_and_thin_grids(axis: int) -> None:
    """A grid with one layer is the plane's problem; one of one cell with a field that does not change across
    has the same distances, to the rounding of other sums in the first order and to where the iteration may
    end in the second."""
    x, h = cube(33)
    plane = np.take(x, [16], axis=axis)
    field = np.ascontiguousarray(shapes.sphere(plane, (0, 0, 0), 0.5))
    phi, pinned = facets.facet_distances(field, h)
    # In cells of 1/16 m: the first order is off by less than a third of a cell on average, the second by 2 %.
    for order, worst in ((1, 1 / 3), (2, 0.02)):
        flat = distances(phi, pinned, h, order=order).phi
        assert np.abs(flat - field).mean() < worst * h[0]
        twice = [np.repeat(a, 2, axis=axis) for a in (phi, pinned)]
        thick = distances(*twice, h, order=order).phi
        slack = 1e-12 if order == 1 else 5 * SETTLED * h[0]
        np.testing.assert_allclose(np.take(thick, [0], axis=axis), flat, atol=slack)
        np.testing.assert_allclose(np.take(thick, [1], axis=axis), flat, atol=slack)


def test_single_precision_of_small_cells() -> None:
    """Squares of cells of 1e-20 m vanish in single precision; distances scale all the same, bit for bit."""
    x, h = cube(17)
    phi, pinned = facets.facet_distances(shapes.sphere(x, (0, 0, 0), 0.6).astype(np.float32), h)
    scale = 2.0**-66
    wanted = distances(phi, pinned, h, order=2).phi
    found = distances((phi * np.float32(scale)), pinned, h * scale, order=2).phi
    assert (found == wanted * np.float32(scale)).all()


def test_a_maze_needs_more_than_one_cycle() -> None:
    """Sweeps go on until nothing changes: around walls (pinned far away) distances turn many corners."""
    n = 21
    walls = np.zeros((n, n, 1), bool)
    for row in range(2, n - 1, 4):
        walls[row, :-2], walls[row + 2 if row + 2 < n else row, 2:] = True, True
    source = np.zeros_like(walls)
    source[0, 0] = True
    phi = np.where(walls, 1e6, np.where(source, 0.0, 1.0))
    found = distances(phi, walls | source, np.ones(3))
    assert found.settled and 16 < found.sweeps < MOST_SWEEPS
    # Out and back along every one of the lanes between walls.
    assert found.phi[-1, 0, 0] > 8 * (n - 4)
