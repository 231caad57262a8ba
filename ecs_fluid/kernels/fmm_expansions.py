"""Cartesian Taylor expansions of the regularised vector potential, and their translations.

With G the potential of a blob (``regularisation``), s the centre of a source node, t that of a target node,
R = t - s, x = t + e and x_i = s + d_i,

    4 pi psi(x) = sum_i alpha_i G(R + e - d_i) = sum_m L_m e^m / m!
    L_m = sum_n D_(m+n)(R) M_n,     M_n = sum_i alpha_i (-d_i)^n / n!,     D_m = d^m G,   |m| + |n| <= order

(multi-indices m, n). The derivatives are those of the *regularised* kernel, with the mean core radius of the
source node, so core size and node size are free of each other; the series of 1/sqrt(r^2 + sigma^2) converges
even faster than that of 1/r, like ((a + b)/sqrt(R^2 + sigma^2))^order for node radii a and b.

D comes from f_k = (1/r d/dr)^k G by the recurrence of McMurchie and Davidson 1978 (their R_tuv), which
needs a kernel for nothing but f_0 ... f_order. Everything is scaled: M by powers of the source node's
scale, L by the target node's, D by the distance, so that float32 has room for any size of a flow.

Source: Dehnen 2002 (J. Comput. Phys. 179, 27) for the truncation by total order and the criterion.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, prange

from ecs_fluid.kernels import FAST
from ecs_fluid.kernels.fmm_lanes import lane_sum, load, multiply, multiply_add, same, store
from ecs_fluid.kernels.regularisation import GAUSSIAN, RANKINE, WINCKELMANS
from ecs_fluid.kernels.vectors import wide_vectors

_OPTIONS: dict[str, Any] = {"parallel": True, "cache": True, "fastmath": FAST, "error_model": "numpy"}
_PART: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy"}

_ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)


@njit(**_PART)
def monomials(o: Any, order: int, x: float, y: float, z: float, out: Any) -> None:
    """out[m] = (x, y, z)^m / m! for |m| <= order."""
    out[0] = 1.0
    for m in range(1, o.size[order + 1]):
        a = o.axis[m]
        d = x if a == 0 else (y if a == 1 else z)
        out[m] = out[o.first[m]] * (d * o.inverse[m])


@njit(**_OPTIONS)
def fill_moments(
    o: Any, depth: int, centre: Any, scale: Any, x: Any, alpha: Any, sigma: Any, m: Any, s2: Any
) -> None:
    """Moments ``m (nodes, c, 3)`` of all nodes and ``s2 (nodes, 3)``: mean, least and largest sigma^2 [m^2].

    The mean is weighted by |alpha|: it makes the error of one common core radius second order.
    """
    n, c = sigma.size, m.shape[1]
    weight = np.empty(scale.size)
    leaves = np.int64(1) << np.int64(depth)
    for k in prange(leaves):
        node = leaves - 1 + k
        powers = np.empty(c)
        m[node] = 0.0
        total = mean = plain = largest = 0.0
        least = np.inf
        first, last = (k * n) >> depth, ((k + 1) * n) >> depth
        for i in range(first, last):
            d0 = (centre[node, 0] - np.float64(x[0, i])) / scale[node]
            d1 = (centre[node, 1] - np.float64(x[1, i])) / scale[node]
            d2 = (centre[node, 2] - np.float64(x[2, i])) / scale[node]
            monomials(o, o.order, d0, d1, d2, powers)
            ax, ay, az = alpha[0, i], alpha[1, i], alpha[2, i]
            for j in range(c):
                p = type(ax)(powers[j])
                m[node, j, 0] += p * ax
                m[node, j, 1] += p * ay
                m[node, j, 2] += p * az
            w = np.sqrt(np.float64(ax) ** 2 + np.float64(ay) ** 2 + np.float64(az) ** 2)
            square = np.float64(sigma[i]) ** 2
            total += w
            mean += w * square
            plain += square
            least = min(least, square)
            largest = max(largest, square)
        weight[node] = total
        s2[node, 0] = mean / total if total > 0.0 else plain / (last - first)
        s2[node, 1] = least
        s2[node, 2] = largest
    for up in range(depth):
        nodes = leaves >> (up + 1)
        for k in prange(nodes):
            node = nodes - 1 + k
            left, right = 2 * node + 1, 2 * node + 2
            shift, moved = np.empty(3), np.empty((c, 3), m.dtype)
            m[node] = 0.0
            for child in (left, right):
                _moments_up(o, child, node, centre, scale, m, shift, moved)
            total = weight[left] + weight[right]
            weight[node] = total
            share = weight[left] / total if total > 0.0 else 0.5
            s2[node, 0] = share * s2[left, 0] + (1.0 - share) * s2[right, 0]
            s2[node, 1] = min(s2[left, 1], s2[right, 1])
            s2[node, 2] = max(s2[left, 2], s2[right, 2])


@njit(**_PART)
def _shift(table: Any, order: int, shift: Any, unit: float, rows: Any, backwards: bool) -> None:
    """rows[m] = sum_n rows[m +- n] shift^n / n!, in place, one axis after the other.

    ``table`` steps to the neighbour; going through m away from it, no row is read after it was changed.
    """
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


@njit(**_PART)
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
    _shift(o.down, o.order, shift, scale[node], moved, True)
    for k in range(moved.shape[0]):
        for a in range(3):
            m[node, k, a] += moved[k, a]


@njit(**_PART)
def local_down(o: Any, shift: Any, above: Any, scale_above: float, scale: float, below: Any) -> None:
    """Local expansion ``below`` about a centre moved by ``shift`` [m] from that of ``above``."""
    below[:] = above
    _shift(o.up, o.order, shift, scale_above, below, False)
    factor, ratio = below.dtype.type(1.0), below.dtype.type(scale / scale_above)
    for q in range(o.order + 1):
        for k in range(o.size[q], o.size[q + 1]):
            for a in range(3):
                below[k, a] *= factor
        factor *= ratio


@njit(**_PART)
def _radial_derivatives(code: int, order: int, distance: float, s2: float, f: Any, lane: int) -> None:
    """f[k, lane] = (1/r d/dr)^k G in units of the distance: sqrt(r^2 + s2) for algebraic blobs, else r."""
    w = s2 / (distance * distance)
    if code == GAUSSIAN:
        v = 1.0 / np.sqrt(w)
        if v < 12.0:
            value = math.erf(v * math.sqrt(0.5))
            tail = _ROOT_2_OVER_PI * v * np.exp(-0.5 * v * v)
            for k in range(order + 1):
                f[k, lane] = value
                # Differences lose digits at small v, but only such that the singular kernel does not need.
                value = tail - (2 * k + 1) * value
                tail *= -v * v
            return
    value = 1.0
    for k in range(order + 1):
        following = -(2 * k + 1) * value
        f[k, lane] = value - 0.5 * w * following if code == WINCKELMANS else value
        value = following


@njit(**_PART)
def prepare_lanes(s: Any, order: int, target: Any, t: Any, nodes: Any, w: Any) -> None:
    """Directions, radial derivatives and scale factors of the source ``nodes``, one per lane."""
    centre, algebraic = s.tree.centre, s.code not in (GAUSSIAN, RANKINE)
    for lane in range(w.d.shape[1]):
        if lane >= nodes.size:
            for a in range(3):
                w.direction[a, lane] = 0.0
            for k in range(order + 1):
                w.f[k, lane] = 0.0
                w.powers[k, lane] = 0.0
            continue
        node = nodes[lane]
        x, y = target.centre[t, 0] - centre[node, 0], target.centre[t, 1] - centre[node, 1]
        z = target.centre[t, 2] - centre[node, 2]
        square = x * x + y * y + z * z
        if algebraic:
            square += s.s2[node, 0]
        inverse = 1.0 / np.sqrt(square)
        w.direction[0, lane] = x * inverse
        w.direction[1, lane] = y * inverse
        w.direction[2, lane] = z * inverse
        _radial_derivatives(s.code, order, 1.0 / inverse, s.s2[node, 0], w.f, lane)
        power, ratio = inverse, 1.0
        for k in range(order + 1):
            w.ratios[k, lane] = ratio
            w.powers[k, lane] = power
            ratio *= s.tree.scale[node] * inverse
            power *= target.scale[t] * inverse


@njit(**_PART)
def gather_moments(o: Any, order: int, m: Any, nodes: Any, ratios: Any, gathered: Any) -> None:
    """Moments of the source ``nodes``, one per lane, times ratios[|n|, lane] (to units of the distance).

    One total order at a time, so that the rows being filled stay in the first-level cache.
    """
    for q in range(order + 1):
        for lane in range(nodes.size):
            node, factor = nodes[lane], ratios[q, lane]
            for n in range(o.size[q], o.size[q + 1]):
                gathered[3 * n, lane] = m[node, n, 0] * factor
                gathered[3 * n + 1, lane] = m[node, n, 1] * factor
                gathered[3 * n + 2, lane] = m[node, n, 2] * factor


@njit(**_PART)
def add_local(
    o: Any, order: int, direction: Any, f: Any, gathered: Any, powers: Any, d: Any, local: Any
) -> None:
    """local[m] += powers[|m|] sum_n D_(m+n) M_n over |m| + |n| <= order, one source node per lane.

    Rows of lanes: ``direction (3,)`` is R in units of the distance, ``f (order + 1,)``, ``gathered (3 c,)``
    and ``local (3 c,)`` (index and axis), ``powers (order + 1,)``, ``d (c,)`` scratch.
    """
    wide_vectors()
    x, y, z = load(direction, 0), load(direction, 1), load(direction, 2)
    store(d, 0, load(f, order))
    for k in range(order - 1, -1, -1):
        # In place from the top: an entry needs only lower orders, which are still those of k + 1.
        for m in range(o.size[order - k + 1] - 1, 0, -1):
            a = o.axis[m]
            below = load(d, o.first[m])
            if a == 0:
                value = multiply(x, below)
            elif a == 1:
                value = multiply(y, below)
            else:
                value = multiply(z, below)
            if o.second[m] >= 0:
                value = multiply_add(same(d.dtype.type(o.entry[m] - 1), d), load(d, o.second[m]), value)
            store(d, m, value)
        store(d, 0, load(f, k))
    for m in range(o.size[order + 1]):
        base = o.start[m]
        u = v = w = same(d.dtype.type(0.0), d)
        for n in range(o.size[order - o.degree[m] + 1]):
            derivative = load(d, o.sums[base + n])
            u = multiply_add(derivative, load(gathered, 3 * n), u)
            v = multiply_add(derivative, load(gathered, 3 * n + 1), v)
            w = multiply_add(derivative, load(gathered, 3 * n + 2), w)
        power = load(powers, o.degree[m])
        store(local, 3 * m, multiply_add(u, power, load(local, 3 * m)))
        store(local, 3 * m + 1, multiply_add(v, power, load(local, 3 * m + 1)))
        store(local, 3 * m + 2, multiply_add(w, power, load(local, 3 * m + 2)))


@njit(**_PART)
def collect_lanes(lanes_local: Any, local: Any) -> None:
    """local[m, a] += sum over lanes, and empty the lanes."""
    wide_vectors()
    zero = same(local.dtype.type(0.0), lanes_local)
    for m in range(local.shape[0]):
        for a in range(3):
            local[m, a] += lane_sum(load(lanes_local, 3 * m + a))
            store(lanes_local, 3 * m + a, zero)


@njit(**_PART)
def local_curl(o: Any, local: Any, scale: float, curl: Any) -> None:
    """Local expansion of 4 pi u = curl(4 pi psi), one order lower."""
    inverse = local.dtype.type(1.0 / scale)
    for m in range(o.size[o.order]):
        x, y, z = o.up[m, 0], o.up[m, 1], o.up[m, 2]
        curl[m, 0] = (local[y, 2] - local[z, 1]) * inverse
        curl[m, 1] = (local[z, 0] - local[x, 2]) * inverse
        curl[m, 2] = (local[x, 1] - local[y, 0]) * inverse


@njit(**_PART)
def _lane_monomials(o: Any, order: int, offsets: Any, powers: Any) -> None:
    x, y, z = load(offsets, 0), load(offsets, 1), load(offsets, 2)
    store(powers, 0, same(offsets.dtype.type(1.0), offsets))
    for m in range(1, o.size[order + 1]):
        a = o.axis[m]
        value = multiply(load(powers, o.first[m]), same(offsets.dtype.type(o.inverse[m]), offsets))
        if a == 0:
            value = multiply(x, value)
        elif a == 1:
            value = multiply(y, value)
        else:
            value = multiply(z, value)
        store(powers, m, value)


@njit(**_PART)
def evaluate(o: Any, order: int, local: Any, offsets: Any, powers: Any, out: Any) -> None:
    """out[a] = sum_m local[m, a] e^m / m! over |m| <= order, one target per lane; ``offsets (3,)`` is e."""
    wide_vectors()
    _lane_monomials(o, order, offsets, powers)
    u = v = w = same(offsets.dtype.type(0.0), offsets)
    for m in range(o.size[order + 1]):
        power = load(powers, m)
        u = multiply_add(same(local[m, 0], offsets), power, u)
        v = multiply_add(same(local[m, 1], offsets), power, v)
        w = multiply_add(same(local[m, 2], offsets), power, w)
    store(out, 0, u)
    store(out, 1, v)
    store(out, 2, w)


@njit(**_PART)
def evaluate_gradient(
    o: Any, order: int, local: Any, scale: float, offsets: Any, powers: Any, out: Any
) -> None:
    """Like ``evaluate``, with the gradient in out[3 + 3 i + j] = d out[i]/dx_j."""
    wide_vectors()
    evaluate(o, order, local, offsets, powers, out)
    inverse = local.dtype.type(1.0 / scale)
    for j in range(3):
        u = v = w = same(offsets.dtype.type(0.0), offsets)
        for m in range(o.size[order]):
            power, row = load(powers, m), o.up[m, j]
            u = multiply_add(same(local[row, 0] * inverse, offsets), power, u)
            v = multiply_add(same(local[row, 1] * inverse, offsets), power, v)
            w = multiply_add(same(local[row, 2] * inverse, offsets), power, w)
        store(out, 3 + j, u)
        store(out, 6 + j, v)
        store(out, 9 + j, w)
