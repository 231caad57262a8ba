"""The layered part f(z) of the density of fluid in a container: a function of height alone, which is at rest.

f(z) makes no vorticity, since grad(f) is along gravity. At a wall that is neither level nor upright, sums
over neighbours reproduce that only approximately, so f is subtracted before they are taken: see
docs/notes/vorticity.md.
"""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.systems.shared.walls import Walls, is_filled

FINEST = 3.5
"""Wave number, times the spacing of particles, at which f has half the amplitude of the particles' values.

Layers of particles have the wave number 2 pi. Between them f must be smooth, or fluid waves lower than a
spacing would count as at rest. A tanh of the thickness of two spacings is matched to 1e-4 of its height.
"""

GAP = 0.25
"""Two particles farther apart in height than this, in spacings, do not locate a step of density."""

EXACT = 1e-5
"""Deviation from a lattice, in spacings, up to which particles count as not having moved, so that there may
be a step between them."""

CUBICS = np.array([[1, -3, 3, -1], [4, 0, -6, 3], [1, 3, 3, -3], [0, 0, 0, 1]]) / 6
"""Coefficients of the four cubic B-splines on one interval, by powers of the coordinate s in it, 0 to 1."""


def layered_part(walls: list[Walls], x: Array, values: Array, volume: Array, up: Array) -> Array:
    """f(z) (n,) at particles at x (n, 3) m in full containers, 0 elsewhere, in the unit of `values` (n,).

    volume (n,) is in m^3; z is the height along the unit vector up (3,). `is_filled` decides which containers
    are full.
    """
    layers = np.zeros(len(x))
    for wall in walls:
        rows = np.flatnonzero(wall.inside(x))
        v = volume[rows].astype(np.float64)
        if not is_filled(wall, v):
            continue
        z = (x[rows] * up).sum(axis=1)
        order = np.argsort(z, kind="stable")
        rows, z, v = rows[order], z[order], v[order]
        carried = values[rows] - layers[rows]
        spacing = float(np.cbrt(v.mean()))
        steps = _steps(z, x[rows].astype(np.float64), carried, spacing, up)
        layers[rows] += steps + _smooth(z, carried - steps, v, spacing)
    return layers


def _steps(z: Array, x: Array, values: Array, spacing: float, up: Array) -> Array:
    """The sum (n,) of all steps in the values (n,) at ascending heights z (n,) and places x (n, 3) m.

    A step lies between two particles whose difference is most of the change over two spacings above and
    below. So the differences between several layers are no steps, nor is heavy fluid above light.
    """
    jump, gap = np.diff(values), np.diff(z)
    change = np.concatenate([[0.0], np.cumsum(np.abs(jump))])
    first = np.searchsorted(z, z[:-1] - 2 * spacing)
    last = np.searchsorted(z, z[1:] + 2 * spacing, side="right") - 1
    here = np.arange(len(jump))
    is_step = np.abs(jump) > 0.5 * (change[last] - change[first])
    is_step &= (here - first >= 8) & (last - here > 8)  # too few particles do not locate a step
    steps = np.zeros(len(z))
    for at in np.flatnonzero(is_step):
        height = z - 0.5 * (z[at] + z[at + 1])
        beyond = np.abs(height) - 0.5 * gap[at]
        flat = not ((beyond > EXACT * spacing) & (beyond < GAP * spacing)).any()
        near = np.abs(height) < 2 * spacing
        if (
            flat
            or (gap[at] < GAP * spacing and _is_level(height, x - z[:, None] * up, spacing))
            or _is_lattice(x[near], np.abs(height[near]) < spacing, spacing)
        ):
            steps[at + 1 :] += jump[at]
    return steps


def _is_level(height: Array, across: Array, spacing: float) -> bool:
    """Whether the step is level: particles within a third of a spacing above and below it cover its area.

    Along a wave they do not: those below lie at its crests, those above at its troughs.
    """
    from scipy.spatial import cKDTree

    places, third = across[np.abs(height) < spacing], spacing / 3
    seen = np.ones(len(places), bool)
    for near in ((height < 0) & (height > -third), (height > 0) & (height < third)):
        seen &= cKDTree(across[near]).query(places)[0] < 3 * spacing
    return bool(seen.mean() > 0.85)


def _is_lattice(x: Array, chosen: Array, spacing: float) -> bool:
    """Whether the particles x (n, 3) m lie on a lattice of any orientation, by the rows of the mask `chosen`.

    On a lattice, neighbours on both sides of a particle lie opposite to each other. A wave displaces them by
    its curvature.
    """
    from scipy.spatial import cKDTree

    tree = cKDTree(x)
    to, nearest = (np.asarray(a) for a in tree.query(x[chosen], 7, distance_upper_bound=1.3 * spacing))
    points, neighbours = np.nonzero(np.isfinite(to) & (to > 0))
    opposite = 2 * x[chosen][points] - x[nearest[points, neighbours]]
    off = np.asarray(tree.query(opposite)[0])
    return bool(np.all((off < EXACT * spacing) | (off > 0.5 * spacing)))


def _smooth(z: Array, values: Array, volume: Array, spacing: float) -> Array:
    """A smoothing cubic spline (n,) through values (n,) at ascending heights z (n,).

    It minimises sum_p V_p (f(z_p) - values_p)^2 + c integral f''''^2 dz, with c such that waves of the wave
    number FINEST / spacing keep half their amplitude. Source of the discrete form, with differences of the
    coefficients for the derivative: Eilers and Marx, Statistical Science 11 (1996), P-splines.
    """
    from scipy.linalg import solveh_banded

    height = float(z[-1] - z[0])
    mean = float((volume * values).sum() / volume.sum())
    if height < 2 * spacing:
        return np.full(len(z), mean)
    pieces = int(np.ceil(2 * height / spacing))
    size, place = pieces + 3, (z - z[0]) * (pieces / height)
    piece = np.minimum(place.astype(np.int64), pieces - 1)
    s = place - piece
    powers = [np.ones_like(s)]
    for _ in range(6):
        powers.append(powers[-1] * s)
    moments = np.array([np.bincount(piece, volume * power, pieces) for power in powers])
    loads = np.array([np.bincount(piece, volume * (values - mean) * power, pieces) for power in powers[:4]])
    squares = np.einsum("ai,ijp,bj->abp", CUBICS, moments[np.add.outer(range(4), range(4))], CUBICS)
    bands = volume.sum() / pieces * _stiffness(size, FINEST * height / (pieces * spacing))
    right = np.zeros(size)
    for a in range(4):
        right[a : a + pieces] += CUBICS[a] @ loads
        for b in range(a + 1):
            bands[a - b, b : b + pieces] += squares[a, b]
    found = solveh_banded(bands, right, lower=True)
    a0, a1, a2, a3 = (np.lib.stride_tricks.sliding_window_view(found, 4) @ CUBICS)[piece].T
    return np.asarray(mean + a0 + s * (a1 + s * (a2 + s * a3)))


def _stiffness(size: int, cut: float) -> Array:
    """Lower bands (5, size) of the matrix of squared fourth differences, scaled for half amplitude at `cut`.

    `cut` is a phase, rad, from one coefficient to the next. Squared second differences are added with a tiny
    weight, which only matters where there are too few layers of particles to determine a cubic.
    """
    bands = np.zeros((5, size))
    for order, weight in ((4, cut**-8), (2, 1e-6)):
        difference = np.diff(np.eye(size), order, axis=0)
        square = difference.T @ difference
        for k in range(order + 1):
            bands[k, : size - k] += weight * np.diagonal(square, -k)
    return bands
