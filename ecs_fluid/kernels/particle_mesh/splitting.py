"""The velocity of a blob in two parts: a smooth one for a mesh, and one that ends at a reach R.

A vorton gives u = g(r) alpha x r / (4 pi) with g = q/r^3 (`regularisation`). The smooth part has the same g
from R on, and inside a polynomial in v = 1 - r^2/R^2,

    g_long(r) = sum_{j <= M} a_j v^j.

a_0 and a_1 are those of the Taylor series of g about r = R, so that neither velocity nor gradient has a step
there; the others minimise the error of the mesh. A mesh of cells h cannot distinguish a wave k from its
aliases k_m = k + 2 pi m/h. Splines of order p multiply each by s_m = prod_axes sinc(k_m h/2)^p. With S =
sum_m s_m^2, and the factor s_0^2/S^2 (``convolution``) that corrects the wave itself, the mean square error
at random places is zeta_long(k)^2/k^2 times

    W_u = 1 - s_0^4/S^2,   W_du = k^2 (1 - 2 s_0^4/S^2) + s_0^4/S^3 sum_m k_m^2 s_m^2

for velocity and gradient (1 and k^2, all of it, for waves that are themselves aliases), with zeta the
transform of the vorticity, 1 at k = 0. With W averaged over directions, the quantity that is minimised is

    int zeta_long^2 W_du dk.

Integration by parts gives, with q = 4 pi int zeta r^2 dr, q_long = r^3 g_long and sinc(x) = sin(x)/x,

    zeta_long(k) = zeta(k) - int_0^R (q_long - q) d/dr sinc(k r) dr,

which is linear in the a_j. With D = 1/r d/dr = 2 d/d(r^2) and G the potential, 4 pi G = 1/r for a point,

    g = -D (4 pi G),   a_0 = g(R),   a_1 = -R^2/2 D g(R).

Source: Hockney and Eastwood, Computer Simulation Using Particles, section 8-3 (errors of a mesh); Hardy et
al., J. Chem. Theory Comput. 12 (2016) (splittings by polynomials, all terms those of Taylor). What is
gained: docs/notes/velocity.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ecs_fluid.kernels.biot_savart.regularisation import Code, record
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.particle_mesh.splines import ORDER

TERMS = 4
"""Degree M of the polynomial."""

TAYLOR_TERMS = 2
"""Number of terms of the polynomial that are those of the Taylor series."""

_POINT_RADIUS = 1e-4
"""Core radius, in reaches, of a blob that represents a point vortex."""

_NODES, _SHARES = np.polynomial.legendre.leggauss(160)
WAVES, WIDTHS = 2.5 * np.pi * (_NODES + 1.0), 2.5 * np.pi * _SHARES
"""Waves of a mesh of cells of 1 m, 1/m, and the weights of a quadrature."""


@lru_cache(maxsize=1)
def alias_weights() -> tuple[Array, Array]:
    """W_u and W_du at the `WAVES`, by a quadrature over directions, for aliases up to the fourth."""
    nodes, shares = np.polynomial.legendre.leggauss(24)
    up, turn = 0.5 * (nodes[:, None] + 1.0), 0.25 * np.pi * (nodes + 1.0)
    across = np.sqrt(1.0 - up**2)
    towards = np.stack([across * np.cos(turn), across * np.sin(turn), up * np.ones_like(turn)])
    k, k2 = WAVES[:, None, None, None] * towards, WAVES[:, None, None] ** 2
    aliases = k[..., None] + 2.0 * np.pi * np.arange(-4, 5)
    squares = np.sinc(0.5 * aliases / np.pi) ** (2 * ORDER)
    every = squares.sum(axis=-1)
    kept = np.prod(squares[..., 4] / every, axis=1) ** 2  # s_0^4/S^2
    steep = np.sum((squares * aliases**2).sum(axis=-1) / every, axis=1)
    other = (np.abs(k) > np.pi).any(axis=1)
    of_u = np.where(other, 1.0, 1.0 - kept)
    of_du = np.where(other, k2, k2 * (1.0 - 2.0 * kept) + kept * steep)
    share = 0.25 * shares[:, None] * shares
    return (of_u * share).sum(axis=(1, 2)), (of_du * share).sum(axis=(1, 2))


class SmoothPart(NamedTuple):
    """The smooth part for a mesh of cells of 1 m."""

    factors: Array
    """a_0 ... a_TERMS, 1/m^3"""
    spectrum: Array
    """zeta_long at the `WAVES`"""


@lru_cache(maxsize=1024)
def smooth_part(code: Code, sigma: float, reach: float) -> SmoothPart:
    """The smooth part for the core radius ``sigma`` and R = ``reach``, both in cells.

    A blob of bounded support must end inside the reach.
    """
    # For the mesh, a blob with an edge is a point vortex, since beyond its edge both are the same.
    sigma = _POINT_RADIUS * reach if has_edge(code) else max(sigma, _POINT_RADIUS * reach)
    slopes = _radial_derivatives(code, TAYLOR_TERMS, np.array([(sigma / reach) ** 2]))[:, 0]
    given = np.array([-slopes[1], 0.5 * slopes[2]]) / reach**3
    zeta, terms = _terms(code, sigma, reach)
    zeta = zeta + np.einsum("kj,j->k", terms[:, :TAYLOR_TERMS], given)
    weights = WIDTHS * alias_weights()[1]
    free = terms[:, TAYLOR_TERMS:]
    matrix, right = np.einsum("k,ki,kj->ij", weights, free, free), np.einsum("k,ki,k->i", weights, free, zeta)
    rest = -np.linalg.solve(matrix, right)
    return SmoothPart(np.append(given, rest), zeta + np.einsum("kj,j->k", free, rest))


@lru_cache(maxsize=256)
def _terms(code: Code, sigma: float, reach: float) -> tuple[Array, Array]:
    """zeta_long at the `WAVES` without the polynomial (k,), and the contribution of each term (k, 1 +
    TERMS)."""
    r = 0.5 * reach * (_NODES + 1.0)
    within = share_within(code, sigma, r)
    kr = np.outer(WAVES, r)
    slope = (np.cos(kr) - np.sin(kr) / kr) / kr * WAVES[:, None] * (0.5 * reach * _SHARES)
    own = record(code).transform
    assert own is not None  # every blob in space has one
    powers = r[:, None] ** 3 * (1.0 - (r[:, None] / reach) ** 2) ** np.arange(TERMS + 1)
    return np.asarray(own(WAVES * sigma) + slope @ within), -slope @ powers


def _radial_derivatives(code: Code, order: int, s2: Array) -> Array:
    """D^k (4 pi G) at r = 1 for k = 0 ... order, (order + 1, n), for squared core radii ``s2`` (n,)."""
    blob, found = record(code), np.zeros((order + 1, len(s2)))
    if blob.derivatives is not None:
        for lane, one in enumerate(s2):
            blob.derivatives.py_func(order, one, found, lane)
        return found
    factors = (1.0, *blob.series) if blob.softened else (1.0,)
    inverse = 1.0 / (1.0 + (s2 if blob.softened else 0.0 * s2))
    for k in range(order + 1):
        for j, factor in enumerate(factors):
            # D^n 1/sqrt(r^2 + s2) = (-1)^n (2 n - 1)!! (r^2 + s2)^(-n - 1/2)
            n = j + k
            odd = math.prod(range(1, 2 * n, 2))
            found[k] += factor * s2**j * (-1) ** n * odd * inverse**n * np.sqrt(inverse)
    return found


def has_edge(code: Code) -> bool:
    """Whether the blob has an edge, beyond which it acts as a point vortex; the edge must be within the
    reach."""
    blob = record(code)
    return blob.derivatives is None and not blob.softened


def share_within(code: Code, sigma: float | Array, reach: float | Array) -> Array:
    """q at the reach, 1, of blobs of these core radii, m: blobs alike in it are alike beyond the reach
    too."""
    slopes: Array = _radial_derivatives(code, 1, np.atleast_1d(sigma / reach) ** 2)[1]
    return -slopes
