"""Source nodes act on a target node: derivatives of the kernel, and sums of products with the moments.

The sums are those of ``expansions``, for one target node and as many source nodes as a vector has lanes.
The derivatives D come from f_k = (1/r d/dr)^k G by the recurrence of McMurchie and Davidson 1978 (their
R_tuv), so all that differs between kernels is f_0 ... f_order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ecs_fluid.kernels.biot_savart.regularisation import RECORDS, Regularisation
from ecs_fluid.kernels.biot_savart.regularisation_dispatch import by_code, renamed
from ecs_fluid.kernels.compiled.lanes import lane_sum, spread
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors
from ecs_fluid.kernels.fmm.lane_rows import PART, gather_transposed, load, store


def _constant(value: bool) -> Any:
    return njit(**PART)(renamed(lambda: value, f"says_{value}".lower()))


softened = by_code("softened", [_constant(blob.softened) for blob in RECORDS], "")
"""Whether lengths are sqrt(r^2 + s2), or r."""

_in_a_plane = by_code("in_a_plane", [_constant(blob.dimension == 2) for blob in RECORDS], "")
"""Whether 4 pi G has no unit in place of 1/m."""


def _derivatives_of(blob: Regularisation) -> Any:
    """(order, direction, f): f[k] = (1/r d/dr)^k 4 pi G in units of the length; ``direction[4]`` is s2."""
    terms, coefficients, own = len(blob.series), blob.series or (0.0,), blob.derivatives

    def by_series(order: int, direction: Any, f: Any) -> None:
        wide_vectors()
        core, value = load(direction, 4), 1.0
        for k in range(order + 1):
            following = -(2 * k + 1) * value
            plain, term, power = spread(f.dtype.type(value)), following, core
            for j in range(terms):
                plain += spread(f.dtype.type(coefficients[j] * term)) * power
                term *= -(2 * (k + j) + 3)
                power = power * core
            store(f, k, plain)
            value = following

    def by_lanes(order: int, direction: Any, f: Any) -> None:
        for lane in range(f.shape[1]):
            own(order, direction[4, lane], f, lane)

    return njit(**PART)(renamed(by_series if own is None else by_lanes, f"derivatives_{blob.name}"))


_radial_derivatives = by_code(
    "radial_derivatives", [_derivatives_of(blob) for blob in RECORDS], "order, direction, f", PART
)


@njit(**PART)
def prepare_lanes(
    s: Any, order: int, target: Any, t: Any, nodes: Any, first: int, count: int, w: Any
) -> None:
    """Directions, radial derivatives and scale factors of source nodes first:first + count, one per lane.

    Lanes left over repeat the last node, and have zero for powers.
    """
    wide_vectors()
    cards, tx, ty, tz = s.cards, target.centre[t, 0], target.centre[t, 1], target.centre[t, 2]
    soft, in_a_plane, unit = softened(s.code), _in_a_plane(s.code), target.scale[t]
    for lane in range(w.d.shape[1]):
        node = nodes[first + (lane if lane < count else count - 1)]
        w.places[lane] = node * 3 * s.moments.shape[1]
        x, y, z, core = tx - cards[node, 4], ty - cards[node, 5], tz - cards[node, 6], cards[node, 0]
        square = x * x + y * y + z * z
        # In float64: in float32 directions off by a few roundings cost a digit at order 16.
        inverse = 1.0 / np.sqrt(square + core if soft else square)
        w.direction[0, lane] = x * inverse
        w.direction[1, lane] = y * inverse
        w.direction[2, lane] = z * inverse
        w.direction[3, lane] = unit * inverse
        w.direction[4, lane] = core * inverse * inverse
        w.ratios[0, lane] = 1.0
        w.ratios[1, lane] = s.tree.scale[node] * inverse
        scale = 1.0 if in_a_plane else inverse
        w.powers[0, lane] = scale if lane < count else 0.0
    ratio, power = load(w.ratios, 1), load(w.direction, 3)
    for k in range(order):
        store(w.ratios, k + 1, load(w.ratios, k) * ratio)
        store(w.powers, k + 1, load(w.powers, k) * power)
    _radial_derivatives(s.code, order, w.direction, w.f)


@njit(**PART)
def gather_moments(o: Any, order: int, m: Any, places: Any, ratios: Any, gathered: Any) -> None:
    """Moments of nodes at ``places``, one per lane, times ratios[|n|, lane]: in units of the distance."""
    wide_vectors()
    for first in range(0, 3 * o.size[order + 1], 8):
        gather_transposed(gathered, m, places, ratios, o.grades, first)


@njit(**PART)
def fill_derivatives(o: Any, order: int, direction: Any, f: Any, d: Any) -> None:
    """d[m] = D_m for |m| <= order, from radial derivatives ``f (order + 1,)`` in ``direction (3,)``.

    Row k c + m is the k-th function of r of m, from those k + 1 of lower orders; k = 0 is the derivative.
    """
    wide_vectors()
    c = o.degree.size
    for k in range(order + 1):
        store(d, k * c, load(f, k))
    for q in range(1, order + 1):
        for m in range(o.size[q], o.size[q + 1]):
            along, times = load(direction, o.axis[m]), spread(d.dtype.type(o.entry[m] - 1))
            to, first, second = m, c + o.first[m], c + o.second[m]
            for _ in range(order - q + 1):
                store(d, to, along * load(d, first) + times * load(d, second))
                to, first, second = to + c, first + c, second + c


@njit(**PART)
def add_local(o: Any, order: int, least: int, gathered: Any, powers: Any, d: Any, local: Any) -> None:
    """local[m] += powers[|m|] sum_n D_(m+n) M_n over |m| + |n| <= order, least <= |m|, one node per lane.

    Rows of lanes: ``gathered (3 c,)`` and ``local (3 c,)`` (index and axis), ``powers (order + 1,)``,
    ``d (c,)``. Three indices m at a time share the moments, or loads would take longer than what is done with
    them.
    """
    wide_vectors()
    zero = spread(d.dtype.type(0.0))
    for b in range(o.blocks[least], o.blocks[order + 1]):
        m, width = o.block[b, 0], o.block[b, 1]
        base, stop = o.start[m], o.size[order - o.degree[m] + 1]
        u = v = w = u1 = v1 = w1 = u2 = v2 = w2 = zero
        if width == 3:
            for n in range(stop):
                at = np.int64(o.sums[base + n])
                first, second, third = load(d, at), load(d, at + 1), load(d, at + 2)
                moment = load(gathered, 3 * n)
                u += first * moment
                u1 += second * moment
                u2 += third * moment
                moment = load(gathered, 3 * n + 1)
                v += first * moment
                v1 += second * moment
                v2 += third * moment
                moment = load(gathered, 3 * n + 2)
                w += first * moment
                w1 += second * moment
                w2 += third * moment
        elif width == 2:
            for n in range(stop):
                at = np.int64(o.sums[base + n])
                first, second = load(d, at), load(d, at + 1)
                moment = load(gathered, 3 * n)
                u += first * moment
                u1 += second * moment
                moment = load(gathered, 3 * n + 1)
                v += first * moment
                v1 += second * moment
                moment = load(gathered, 3 * n + 2)
                w += first * moment
                w1 += second * moment
        else:
            for n in range(stop):
                first = load(d, np.int64(o.sums[base + n]))
                u += first * load(gathered, 3 * n)
                v += first * load(gathered, 3 * n + 1)
                w += first * load(gathered, 3 * n + 2)
        power = load(powers, o.degree[m])
        _add_row(local, m, u, v, w, power)
        if width > 1:
            _add_row(local, m + 1, u1, v1, w1, power)
        if width > 2:
            _add_row(local, m + 2, u2, v2, w2, power)


@njit(**PART, forceinline=True)
def _add_row(local: Any, m: Any, u: Any, v: Any, w: Any, power: Any) -> None:
    store(local, 3 * m, u * power + load(local, 3 * m))
    store(local, 3 * m + 1, v * power + load(local, 3 * m + 1))
    store(local, 3 * m + 2, w * power + load(local, 3 * m + 2))


@njit(**PART)
def collect_lanes(lanes_local: Any, local: Any) -> None:
    """local[m, a] += sum over lanes, and empty the lanes."""
    wide_vectors()
    zero = spread(local.dtype.type(0.0))
    for m in range(local.shape[0]):
        for a in range(3):
            local[m, a] += lane_sum(load(lanes_local, 3 * m + a))
            store(lanes_local, 3 * m + a, zero)
