"""Symmetric direct sum: the one-sided sum and invariants as oracles, lone vortons, NaN, threads."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart import direct, symmetric
from ecs_fluid.kernels.biot_savart.regularisation import CODES, NAMES

REALS = (np.float32, np.float64)
SIGMA = 0.0625  # a power of two, so that both precisions know the same core radius

# Around a vector (16), around a task (64), around halves of the circle (odd and even numbers of blocks), more
# vortons than a list holds (448 or 912: a task of 4 blocks and its half circle at 780 or 1690), and
# more than 32 tasks would need (2048).
SIZES = (0, 1, 2, 15, 16, 17, 33, 64, 65, 113, 127, 128, 129, 241, 780, 800, 1009, 1690, 1713, 2053, 3001)


def cloud(n: int, real: type) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(n)
    return rng.random((3, n)).astype(real), rng.standard_normal((3, n)).astype(real)


def symmetrically(code: int, sx: Any, sa: Any) -> NDArray[Any]:
    n = sx.shape[1]
    u = np.full((n, 3), 7.0, sx.dtype)
    symmetric.velocity(code, sx, sa, SIGMA, u)
    return u


def directly(code: int, sx: Any, sa: Any) -> NDArray[Any]:
    n = sx.shape[1]
    u = np.full((n, 3), 7.0, sx.dtype)
    direct.velocity(code, sx.T.copy(), sx, sa, np.full(n, SIGMA, sx.dtype), u)
    return u


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", SIZES)
def test_equals_the_one_sided_sum(n: int, name: str, real: type) -> None:
    """The reference is the one-sided sum in float64; its own tests allow it 2e-6 and 1e-13.

    Errors are relative to the largest value, but not below the velocity that two vortons at the ends of the
    cube give each other, about 1/(4 pi r^2) = 0.03 (a lone one has no velocity at all).
    """
    sx, sa = cloud(n, real)
    u = symmetrically(CODES[name], sx, sa)
    exact = directly(CODES[name], sx.astype(float), sa.astype(float))
    tolerance = 1e-13 if real is np.float64 else 2e-6
    scale = max(0.03, float(np.abs(exact).max(initial=0.0)))
    assert np.abs(u - exact).max(initial=0.0) <= tolerance * scale


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("name", NAMES)
def test_a_lone_vorton_does_not_move_itself(name: str, real: type) -> None:
    """Exactly: r = 0."""
    sx = np.array([[0.3], [-1.7], [2.9]], real)
    sa = np.array([[1.0], [2.0], [-3.0]], real)
    assert np.all(symmetrically(CODES[name], sx, sa) == 0.0)


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("name", NAMES)
def test_coincident_vortons_do_not_move_each_other(name: str, real: type) -> None:
    """40 vortons in one point (one block and parts of two more): r = 0, so every term is exactly zero."""
    _, sa = cloud(40, real)
    sx = np.full((3, 40), 0.7, real)
    assert np.all(symmetrically(CODES[name], sx, sa) == 0.0)


@pytest.mark.parametrize("where", ["position", "strength"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_a_bad_vorton_reaches_all_as_in_the_one_sided_sum(poison: float, name: str, where: str) -> None:
    """300 vortons in 19 blocks: all blocks meet the bad one, from before and across the end of the circle."""
    sx, sa = cloud(300, np.float32)
    (sx if where == "position" else sa)[:, 290] = poison
    u = symmetrically(CODES[name], sx, sa)
    bad = ~np.isfinite(directly(CODES[name], sx, sa)).all(axis=1)
    assert np.array_equal(~np.isfinite(u).all(axis=1), bad)
    if np.isnan(poison) or where == "strength":
        assert bad.all()


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("name", NAMES)
def test_any_number_of_threads_gives_the_same_bits(name: str, real: type) -> None:
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("one processor")
    sx, sa = cloud(1301, real)
    before = numba.get_num_threads()
    bits = []
    try:
        for threads in (t for t in (1, 2, 4, 8) if t <= numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(threads)
            bits.append(symmetrically(CODES[name], sx, sa).tobytes())
    finally:
        numba.set_num_threads(before)
    assert all(other == bits[0] for other in bits[1:])


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("name", NAMES)
def test_centre_of_vorticity_of_parallel_vortons_rests(name: str, real: type) -> None:
    """alpha_i = a_i e gives sum a_i u_i = 0: the pair i, j adds a_i a_j g (e x r) and the same with -r.

    A velocity is good to a few eps of its terms, of either sign: 4 eps of the sum of magnitudes is more than
    n of them pile up to.
    """
    sx, sa = cloud(1009, real)
    sa[:] = sa[0] * np.array([[0.36], [0.48], [0.8]], real)
    strength = sa.astype(float)
    u = symmetrically(CODES[name], sx, sa).astype(float)
    parts = np.linalg.norm(strength, axis=0)[:, None] * np.sign(strength[2])[:, None] * u
    assert np.abs(parts.sum(axis=0)).max() <= 4.0 * np.finfo(real).eps * np.abs(parts).sum()


def test_where_it_applies() -> None:
    """Equal core radii, at least one vorton, not more than MAX_VORTONS."""
    most = symmetric.MAX_VORTONS
    assert symmetric.applies(np.full(5, 0.1, np.float32))
    assert symmetric.applies(np.full(most, 0.1))
    assert not symmetric.applies(np.full(most + 1, 0.1))
    assert not symmetric.applies(np.array([0.1, 0.1, np.nextafter(0.1, 1.0)]))
    assert not symmetric.applies(np.array([0.1, np.nan, 0.1]))
    assert not symmetric.applies(np.empty(0))
