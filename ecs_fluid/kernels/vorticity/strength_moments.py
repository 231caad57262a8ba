"""Moments of strengths, and the least change of strengths that alters them by a given amount."""

from __future__ import annotations

import numpy as np

from ecs_fluid.kernels.compiled import Array


def monomials(x: Array, center: Array, length: float) -> Array:
    """Monomials 1, y_i and y_i y_j (i <= j) of y = (x - center)/length at points (n, 3): (10, n) float64."""
    y = ((x.astype(np.float64) - center) / length).T
    pairs = [y[i] * y[j] for i in range(3) for j in range(i, 3)]
    return np.stack([np.ones(len(x)), *y, *pairs])


def moments(weights: Array, values: Array) -> Array:
    """sum_p weights_kp values_ip, (k, m) from (k, n) and (m, n), added in order whatever the threads."""
    return np.asarray(np.einsum("kp,ip->ki", weights, values, optimize=False))


def with_moments(x: Array, alpha: Array, x_from: Array, alpha_from: Array) -> tuple[Array, float]:
    """Strengths at ``x`` plus the moments 0, 1 and 2 of other strengths at ``x_from``: (strengths, residue).

    The change minimises sum |change_p|^2/|alpha_p| under these 10 conditions on each component. So change_p =
    |alpha_p| P(x_p) with a quadratic polynomial P. If too few points, or points in a plane, do not determine
    the polynomial, it is the one with the smallest coefficients.

    Args:
        x, alpha: points (n, 3), m, and their strengths (n, 3), m^3/s, not all zero.
        x_from, alpha_from: points (m, 3), m, and strengths (m, 3), m^3/s, whose moments are to be added.

    Returns:
        The new strengths (n, 3), and the largest error of a moment, divided by sum |alpha|, with lengths in
        units of the root mean square radius of the points (0 to rounding, unless there are too few points).
    """
    size = np.sqrt((alpha**2).sum(axis=1))
    total = float(size.sum())
    center = (size[:, None] * x).sum(axis=0) / total
    length = float(np.sqrt((size * ((x - center) ** 2).sum(axis=1)).sum() / total)) or 1.0
    basis = monomials(x, center, length)
    wanted = moments(monomials(x_from, center, length), alpha_from.T.copy())
    matrix = moments(basis * (size / total), basis)
    factors = np.linalg.lstsq(matrix, wanted / total, rcond=1e-12)[0]
    change = size * np.einsum("ki,kp->ip", factors, basis, optimize=False)
    missed = wanted - moments(basis, change)
    return alpha + change.T, float(np.abs(missed).max() / total)
