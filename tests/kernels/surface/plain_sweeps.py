"""The oracle of fast sweeping: plain triple loops, no blocks, no vectors, no skipping.

The update is written as in `kernels.surface.fast_sweeping`, since equal bits need equal operations; the order
of the visits, the neighbours and the end of the iteration are stated independently here.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ecs_fluid.kernels.surface.eikonal import DIRECTIONS, SETTLED


@njit(cache=True)
def _axis(v, index, a, size, side, second):  # type: ignore[no-untyped-def]
    """Smaller neighbour along the axis a, or what stands for it in second order, and which it is."""
    kind = v.dtype.type
    one, two, far = [kind(np.inf), kind(np.inf)], [kind(np.inf), kind(np.inf)], kind(np.inf)
    for way in range(2):
        step = 2 * way - 1
        place = [index[0], index[1], index[2]]
        place[a] += step
        if 0 <= place[a] < size:
            one[way] = abs(v[place[0], place[1], place[2]])
        place[a] += step
        if 0 <= place[a] < size:
            two[way] = v[place[0], place[1], place[2]] * side
    way = 0 if one[0] < one[1] else 1
    m, mm = one[way], two[way]
    if second and mm <= m and abs(mm) < far:
        return (kind(4) * m - mm) * (kind(1) / kind(3)), True
    return m, False


@njit(cache=True)
def _godunov(m, h):  # type: ignore[no-untyped-def]
    """Upwind solution of sum ((u - m_a) / h_a)^2 = 1 for neighbours m and widths h, three each."""
    for p, q in ((0, 1), (1, 2), (0, 1)):
        if m[q] < m[p]:
            m[p], m[q], h[p], h[q] = m[q], m[p], h[q], h[p]
    zero = m[0] - m[0]
    d, e = m[1] - m[0], m[2] - m[0]
    pa, pb, pc = h[0] * h[0], h[1] * h[1], h[2] * h[2]
    if d >= h[0]:
        return m[0] + h[0]
    if pb * (e * e) + pa * ((e - d) * (e - d)) >= pa * pb:
        w = (pa + pb) - d * d
        return m[0] + (pa * d + h[0] * h[1] * np.sqrt(max(w, zero))) / (pa + pb)
    both, weight = pc * d + pb * e, pb * pc + pa * pc + pa * pb
    w = pa * (both * both) - weight * (pc * (d * d) + pb * (e * e) - pb * pc)
    return m[0] + (pa * both + h[0] * np.sqrt(max(w, zero))) / weight


@njit(cache=True)
def _cubes(m, h):  # type: ignore[no-untyped-def]
    """The same for first order and equal widths."""
    kind = m.dtype.type
    for p, q in ((0, 1), (1, 2), (0, 1)):  # m.sort() compiles for a second
        if m[q] < m[p]:
            m[p], m[q] = m[q], m[p]
    zero = kind(0)
    d, e = m[1] - m[0], m[2] - m[0]
    if d >= h:
        return m[0] + h
    if e * e + (e - d) * (e - d) >= h * h:
        w = kind(2) * (h * h) - d * d
        return m[0] + (d + np.sqrt(max(w, zero))) * kind(0.5)
    w = kind(3) * (h * h) - kind(2) * (d * d + e * e - d * e)
    return m[0] + ((d + e) + np.sqrt(max(w, zero))) * (kind(1) / kind(3))


@njit(cache=True)
def _sweep(v, pinned, h, ways, order, limit, settled):  # type: ignore[no-untyped-def]
    nx, ny, nz = v.shape
    kind = v.dtype.type
    size = np.array([nx, ny, nz])
    shrink = kind(1) if order == 2 else kind(1) - kind(4) * kind(np.finfo(v.dtype).eps)
    cubes = order == 1 and h[0] == h[1] and h[1] == h[2]
    m, width, changed = np.empty(3, v.dtype), np.empty(3, v.dtype), 0
    for ii in range(nx):
        i = ii if ways[0] else nx - 1 - ii
        for jj in range(ny):
            j = jj if ways[1] else ny - 1 - jj
            for kk in range(nz):
                k = kk if ways[2] else nz - 1 - kk
                if pinned[i, j, k]:
                    continue
                side = kind(1) if v[i, j, k] > kind(0) else kind(-1)
                for a in range(3):
                    m[a], second = _axis(v, (i, j, k), a, size[a], side, order == 2)
                    width[a] = h[a] * (kind(2) / kind(3)) if second else h[a]
                if not np.isfinite(min(m[0], m[1], m[2])):
                    continue
                new = _cubes(m, h[0]) if cubes else _godunov(m, width)
                gain = abs(v[i, j, k]) * shrink - new
                if (gain > kind(0) if order == 1 else abs(gain) > settled) and new <= limit:
                    v[i, j, k] = new * side
                    changed += 1
    return changed


def plain(phi: np.ndarray, pinned: np.ndarray, spacing: np.ndarray, order: int, limit: float) -> np.ndarray:
    """What `eikonal.distances` has to give, bit for bit."""
    kind = phi.dtype.type
    wide = np.array(phi.shape) > 1
    unit = 2.0 ** round(math.log2(spacing[wide].max()))
    h = np.where(wide, spacing / unit, spacing[wide].max() / unit)
    v = np.where(pinned, phi * kind(1 / unit), np.where(phi < 0, kind(-np.inf), kind(np.inf))).astype(kind)
    widths, number = h.astype(kind), 0
    for stage in range(1, order + 1):
        changed = 1
        while changed:
            reverse, forward_i, forward_t = DIRECTIONS[number % 8]
            # Where k is reversed, forward along j + (last - k) is forward along j and backward along k.
            ways = (forward_i, forward_t, forward_t != reverse)
            least = kind(SETTLED * h[wide].min())
            changed = _sweep(v, pinned, widths, ways, stage, kind(limit / unit), least)
            number += 1
    bound = limit if np.isfinite(limit) else np.inf
    out = np.where(np.isfinite(v), v * kind(unit), np.copysign(kind(bound), v))
    return np.asarray(np.where(pinned, phi, out))
