"""Cartesian Taylor expansions of the regularised vector potential, and their translations.

With G the potential of a blob (``regularisation``), s the centre of a source node, t that of a target node,
R = t - s, x = t + e and x_i = s + d_i,

    4 pi psi(x) = sum_i alpha_i G(R + e - d_i) = sum_m L_m e^m / m!
    L_m = sum_n D_(m+n)(R) M_n,     M_n = sum_i alpha_i (-d_i)^n / n!,     D_m = d^m G,   |m| + |n| <= order

(multi-indices m, n). The derivatives are those of the *regularised* kernel, with the mean core radius of the
source node, so nodes may be smaller than the cores in them; the series of 1/sqrt(r^2 + sigma^2) converges
even faster than that of 1/r, like ((a + b)/sqrt(R^2 + sigma^2))^order for node radii a and b.

Everything is scaled: M by powers of the source node's scale, L by the target node's, D by the distance, so
that float32 does not overflow whatever the size of a flow. ``m2l`` computes the derivatives and the sums over
n.

Source: Dehnen 2002 (J. Comput. Phys. 179, 27) for the truncation by total order and the criterion.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import get_thread_id, njit

from ecs_fluid.kernels.compiled import FAST_LOOP
from ecs_fluid.kernels.compiled.lanes import spread
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors
from ecs_fluid.kernels.fmm.lane_rows import PART, for_threads, load, store
from ecs_fluid.kernels.fmm.m2l import collect_lanes
from ecs_fluid.kernels.fmm.multi_indices import Orders


class MomentScratch(NamedTuple):
    """Rows of lanes for a batch of vortons: of a thread, or of every thread."""

    given: Any
    """(6,) offsets from the vorton to the centre in units of the node, and strengths, m^3/s"""
    powers: Any
    """(c,) monomials of the offsets"""
    sums: Any
    """(3 c,) moments, one vorton per lane"""


def moment_scratch(o: Orders, dtype: Any) -> MomentScratch:
    """Scratch for ``fill_moments``."""
    c = o.degree.size
    return MomentScratch(for_threads(6, dtype), for_threads(c, dtype), for_threads(3 * c, dtype))


@njit(**PART)
def _leaf_moments(o: Any, tree: Any, k: Any, alpha: Any, sigma: Any, m: Any, cards: Any, w: Any) -> None:
    """Moments of leaf k, a vorton per lane."""
    wide_vectors()
    node, n = (np.int64(1) << np.int64(tree.depth)) - 1 + k, sigma.size
    first, last = (k * n) >> tree.depth, ((k + 1) * n) >> tree.depth
    real, width, inverse = w.given.dtype.type, w.given.shape[1], 1.0 / tree.scale[node]
    for low in range(first, last, width):
        for lane in range(width):
            i = low + lane if low + lane < last else last - 1
            for a in range(3):
                w.given[a, lane] = (tree.centre[node, a] - np.float64(tree.x[a, i])) * inverse
                # Lanes left over have no strength.
                w.given[3 + a, lane] = alpha[a, i] if low + lane < last else real(0.0)
        ax, ay, az = load(w.given, 3), load(w.given, 4), load(w.given, 5)
        power = spread(real(1.0))
        for j in range(m.shape[1]):
            if j > 0:
                power = load(w.powers, o.first[j]) * (load(w.given, o.axis[j]) * spread(real(o.inverse[j])))
            store(w.powers, j, power)
            store(w.sums, 3 * j, power * ax + load(w.sums, 3 * j))
            store(w.sums, 3 * j + 1, power * ay + load(w.sums, 3 * j + 1))
            store(w.sums, 3 * j + 2, power * az + load(w.sums, 3 * j + 2))
    for j in range(m.shape[1]):
        m[node, j, 0] = m[node, j, 1] = m[node, j, 2] = real(0.0)
    collect_lanes(w.sums, m[node])
    _leaf_card(alpha, sigma, first, last, cards, node)


@njit(**PART)
def _leaf_card(alpha: Any, sigma: Any, first: Any, last: Any, cards: Any, node: Any) -> None:
    """Mean, least and largest sigma^2 and the sum of |alpha| of a leaf."""
    total = mean = plain = largest = 0.0
    least = np.inf
    for i in range(first, last):
        ax, ay, az = alpha[0, i], alpha[1, i], alpha[2, i]
        w = np.sqrt(np.float64(ax) ** 2 + np.float64(ay) ** 2 + np.float64(az) ** 2)
        square = np.float64(sigma[i]) ** 2
        total += w
        mean += w * square
        plain += square
        least = square if square < least else least
        largest = square if square > largest else largest
    cards[node, 0] = mean / total if total > 0.0 else plain / (last - first)
    cards[node, 1] = least
    cards[node, 2] = largest
    cards[node, 3] = total


@parallel("1 << top", **FAST_LOOP)
def fill_moments(
    branch: int, o: Any, tree: Any, alpha: Any, sigma: Any, top: int, deepest: int, m: Any, cards: Any,
    scratch: Any,
) -> None:  # fmt: skip
    """Moments ``m (nodes, c, 3)`` of the nodes of level ``top`` and of all below them.

    Those deeper than ``deepest`` have theirs already. Also ``cards (nodes, 8)``: mean, least and largest
    sigma^2 [m^2], the sum of |alpha| [m^3/s], centre and radius [m]. The mean is weighted by |alpha|: it
    makes the error of one common core radius second order.
    """
    shift, moved = np.empty(3), np.empty((m.shape[1], 3), m.dtype)
    own = get_thread_id()
    w = MomentScratch(scratch.given[own], scratch.powers[own], scratch.sums[own])
    for level in range(deepest, top - 1, -1):
        for k in range(branch << (level - top), (branch + 1) << (level - top)):
            node = (np.int64(1) << np.int64(level)) - 1 + k
            if level == tree.depth:
                _leaf_moments(o, tree, k, alpha, sigma, m, cards, w)
            else:
                _join_moments(o, tree, node, m, cards, shift, moved)
            for a in range(3):
                cards[node, 4 + a] = tree.centre[node, a]
            cards[node, 7] = tree.radius[node]


@njit(**PART)
def _join_moments(o: Any, tree: Any, node: Any, m: Any, cards: Any, shift: Any, moved: Any) -> None:
    """Moments of a node from those of its two children."""
    left, right = 2 * node + 1, 2 * node + 2
    for j in range(m.shape[1]):
        m[node, j, 0] = m[node, j, 1] = m[node, j, 2] = 0.0
    for child in range(left, right + 1):
        _moments_up(o, child, node, tree.centre, tree.scale, m, shift, moved)
    total = cards[left, 3] + cards[right, 3]
    share = cards[left, 3] / total if total > 0.0 else 0.5
    cards[node, 0] = share * cards[left, 0] + (1.0 - share) * cards[right, 0]
    cards[node, 1] = cards[left, 1] if cards[left, 1] < cards[right, 1] else cards[right, 1]
    cards[node, 2] = cards[left, 2] if cards[left, 2] > cards[right, 2] else cards[right, 2]
    cards[node, 3] = total


@njit(**PART)
def _shift(table: Any, order: int, shift: Any, unit: float, rows: Any) -> None:
    """rows[m] = sum_n rows[m +- n] shift^n / n!, in place, one axis after the other.

    ``table`` steps to the neighbour, ``down`` or ``up``; going through m against it, no row is read after it
    was changed.
    """
    backwards = table[0, 0] < 0
    real = rows.dtype.type
    c = rows.shape[0]
    powers = np.empty(order + 1, rows.dtype)
    for a in range(3):
        powers[0] = 1.0
        for q in range(1, order + 1):
            powers[q] = powers[q - 1] * real(shift[a] / (unit * q))
        for i in range(c):
            m = c - 1 - i if backwards else i
            x = y = z = real(0.0)
            at, q = m, 0
            while at >= 0:
                x += powers[q] * rows[at, 0]
                y += powers[q] * rows[at, 1]
                z += powers[q] * rows[at, 2]
                at = table[at, a]
                q += 1
            rows[m, 0], rows[m, 1], rows[m, 2] = x, y, z


@njit(**PART)
def _moments_up(
    o: Any, child: Any, node: Any, centre: Any, scale: Any, m: Any, shift: Any, moved: Any
) -> None:
    """Add the moments of a child to those of its parent, about the parent's centre and in its units."""
    for a in range(3):
        shift[a] = centre[node, a] - centre[child, a]
    factor, ratio = m.dtype.type(1.0), m.dtype.type(scale[child] / scale[node])
    for q in range(o.order + 1):
        for k in range(o.size[q], o.size[q + 1]):
            for a in range(3):
                moved[k, a] = m[child, k, a] * factor
        factor *= ratio
    _shift(o.down, o.order, shift, scale[node], moved)
    for k in range(moved.shape[0]):
        for a in range(3):
            m[node, k, a] += moved[k, a]


@njit(**PART)
def local_down(o: Any, shift: Any, above: Any, scale_above: float, scale: float, below: Any) -> None:
    """Local expansion ``below`` about a centre moved by ``shift`` [m] from that of ``above``."""
    # Element by element: assigning whole arrays drags in the text of the error for wrong shapes, 2 s of
    # compilation.
    for k in range(above.shape[0]):
        for a in range(3):
            below[k, a] = above[k, a]
    _shift(o.up, o.order, shift, scale_above, below)
    factor, ratio = below.dtype.type(1.0), below.dtype.type(scale / scale_above)
    for q in range(o.order + 1):
        for k in range(o.size[q], o.size[q + 1]):
            for a in range(3):
                below[k, a] *= factor
        factor *= ratio


@njit(**PART)
def local_curl(o: Any, local: Any, scale: float, curl: Any) -> None:
    """Local expansion of 4 pi u = curl(4 pi psi), one order lower."""
    inverse = local.dtype.type(1.0 / scale)
    for m in range(o.size[o.order]):
        x, y, z = o.up[m, 0], o.up[m, 1], o.up[m, 2]
        curl[m, 0] = (local[y, 2] - local[z, 1]) * inverse
        curl[m, 1] = (local[z, 0] - local[x, 2]) * inverse
        curl[m, 2] = (local[x, 1] - local[y, 0]) * inverse


@njit(**PART)
def evaluate(
    o: Any, order: int, local: Any, scale: float, factor: float, gradient: bool, offsets: Any, powers: Any,
    out: Any,
) -> None:  # fmt: skip
    """out[a] = factor sum_m local[m, a] e^m / m! over |m| <= order, a target per lane at ``offsets (3,)`` e.

    With ``gradient`` also out[3 + 3 i + j] = d out[i]/dx_j. ``powers`` is scratch for the monomials.
    """
    wide_vectors()
    store(powers, 0, spread(offsets.dtype.type(1.0)))
    for m in range(1, o.size[order + 1]):
        step = load(offsets, o.axis[m]) * spread(offsets.dtype.type(o.inverse[m]))
        store(powers, m, load(powers, o.first[m]) * step)
    u = v = w = ux = uy = uz = vx = vy = vz = wx = wy = wz = spread(offsets.dtype.type(0.0))
    inner = o.size[order] if gradient else 0
    for m in range(inner):
        power, x, y, z = load(powers, m), o.up[m, 0], o.up[m, 1], o.up[m, 2]
        u += spread(local[m, 0]) * power
        v += spread(local[m, 1]) * power
        w += spread(local[m, 2]) * power
        ux += spread(local[x, 0]) * power
        uy += spread(local[y, 0]) * power
        uz += spread(local[z, 0]) * power
        vx += spread(local[x, 1]) * power
        vy += spread(local[y, 1]) * power
        vz += spread(local[z, 1]) * power
        wx += spread(local[x, 2]) * power
        wy += spread(local[y, 2]) * power
        wz += spread(local[z, 2]) * power
    for m in range(inner, o.size[order + 1]):
        power = load(powers, m)
        u += spread(local[m, 0]) * power
        v += spread(local[m, 1]) * power
        w += spread(local[m, 2]) * power
    by = spread(offsets.dtype.type(factor))
    for row, value in enumerate((u, v, w)):
        store(out, row, value * by)
    if gradient:
        by = spread(offsets.dtype.type(factor / scale))
        for row, value in enumerate((ux, uy, uz, vx, vy, vz, wx, wy, wz)):
            store(out, 3 + row, value * by)
