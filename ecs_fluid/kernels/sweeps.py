"""One Gauss-Seidel sweep of the eikonal equation over blocks of columns; see `kernels.eikonal`.

Arrays are padded and skewed: point (i, j, k) of a grid (nx, ny, nz) stands at v[i + PAD, t + PAD, j + PAD]
with t = j + k, or t = j + nz - 1 - k where k is reversed. Its neighbours along j and k then lie at t - 1 and
t + 1, so all points of one i and one t can be done at once, as vectors. What is no point holds infinity.

No fast-math here: vectors, their remainders and a plain loop must round alike.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

PAD = 2
"""Layers around the grid, so that no neighbour needs a test."""


@njit(forceinline=True, error_model="numpy")
def _first_line(
    here: np.ndarray,
    fixed: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    h: float,
    limit: float,
    shrink: float,
) -> int:
    """First-order update of points side by side, cubic cells of edge h; returns how many became smaller.

    ``left`` and ``right`` are the neighbours along i. ``before`` (t - 1) starts one point further left and
    ``after`` (t + 1) ends one point further right, so that both hold the neighbours along j and k.
    """
    kind = here.dtype.type
    zero, half, two, three, third = kind(0), kind(0.5), kind(2), kind(3), kind(1) / kind(3)
    hh = h * h
    found = 0
    for s in range(here.size):
        old = here[s]
        x0, x1 = abs(left[s]), abs(right[s])
        y0, y1 = abs(before[s]), abs(after[s + 1])
        z0, z1 = abs(before[s + 1]), abs(after[s])
        x = x0 if x0 < x1 else x1
        y = y0 if y0 < y1 else y1
        z = z0 if z0 < z1 else z1
        low, high = (x if x < y else y), (y if x < y else x)
        c, middle = (high if high > z else z), (z if high > z else high)
        a, b = (low if low < middle else middle), (middle if low < middle else low)
        d, e = b - a, c - a
        # Which axes take part follows from the sign of the quadratic at b and at c.
        alone, pair = d >= h, e * e + (e - d) * (e - d) >= hh
        part = d if pair else d + e
        w = (two * hh - d * d) if pair else (three * hh - two * (d * d + e * e - d * e))
        root = np.sqrt(w if w > zero else zero)
        new = a + (h if alone else (part + root) * (half if pair else third))
        better = (new < abs(old) * shrink) & (new <= limit) & (fixed[s] == 0)
        here[s] = (new if old > zero else -new) if better else old
        found += 1 if better else 0
    return found


@njit(forceinline=True, error_model="numpy")
def _upwind_lines(
    here: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    left2: np.ndarray,
    right2: np.ndarray,
    near: float,
    out: np.ndarray,
) -> None:
    """Neighbour value along i for a difference of second order, negative where only the first order fits.

    (u - (4 u_1 - u_2) / 3) / (2 h / 3) is the one-sided difference of second order in the form of the first.
    A loop of its own, since compilers vectorise loops over few arrays only.
    """
    kind = here.dtype.type
    zero, one, four, third = kind(0), kind(1), kind(4), kind(1) / kind(3)
    tiny = kind(np.finfo(here.dtype).tiny)
    for s in range(here.size):
        side = one if here[s] > zero else -one
        x0, x1 = abs(left[s]), abs(right[s])
        # Beyond a pinned point may lie the other side, so second neighbours keep their signs.
        xx0, xx1 = left2[s] * side, right2[s] * side
        use0, use1 = (xx0 <= x0) & (abs(xx0) < near), (xx1 <= x1) & (abs(xx1) < near)
        lower = x0 < x1
        x, xx, use = (x0 if lower else x1), (xx0 if lower else xx1), (use0 if lower else use1)
        out[s] = (four * x - xx) * third if use else -(x if x > tiny else tiny)


@njit(forceinline=True, error_model="numpy")
def _general_line(
    here: np.ndarray,
    fixed: np.ndarray,
    across: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    before2: np.ndarray,
    after2: np.ndarray,
    spacing: tuple[float, float, float],
    near: float,
    limit: float,
    shrink: float,
    settled: float,
) -> int:
    """Update of any order and spacing; ``before2`` and ``after2`` (t -+ 2) reach two points further.

    With ``settled`` < 0 values only fall, otherwise they are replaced where they change by more than that.
    """
    kind = here.dtype.type
    zero, one, four, third = kind(0), kind(1), kind(4), kind(1) / kind(3)
    hx, hy, hz = spacing
    two_thirds = kind(2) / kind(3)
    rx, ry, rz = hx * two_thirds, hy * two_thirds, hz * two_thirds
    falling = settled < zero
    found = 0
    for s in range(here.size):
        old = here[s]
        side = one if old > zero else -one
        y0, y1 = abs(before[s]), abs(after[s + 1])
        z0, z1 = abs(before[s + 1]), abs(after[s])
        yy0, yy1 = before2[s] * side, after2[s + 2] * side
        zz0, zz1 = before2[s + 2] * side, after2[s] * side
        # Both sides are tried before one is taken: loads under a condition are not vectorised.
        use0, use1 = (yy0 <= y0) & (abs(yy0) < near), (yy1 <= y1) & (abs(yy1) < near)
        lower = y0 < y1
        y, yy, use = (y0 if lower else y1), (yy0 if lower else yy1), (use0 if lower else use1)
        b, hb = ((four * y - yy) * third if use else y), (ry if use else hy)
        use0, use1 = (zz0 <= z0) & (abs(zz0) < near), (zz1 <= z1) & (abs(zz1) < near)
        lower = z0 < z1
        z, zz, use = (z0 if lower else z1), (zz0 if lower else zz1), (use0 if lower else use1)
        c, hc = ((four * z - zz) * third if use else z), (rz if use else hz)
        a, ha = abs(across[s]), (rx if across[s] > zero else hx)
        swap = b < a
        a, b, ha, hb = (b if swap else a), (a if swap else b), (hb if swap else ha), (ha if swap else hb)
        swap = c < b
        b, c, hb, hc = (c if swap else b), (b if swap else c), (hc if swap else hb), (hb if swap else hc)
        swap = b < a
        a, b, ha, hb = (b if swap else a), (a if swap else b), (hb if swap else ha), (ha if swap else hb)
        d, e = b - a, c - a
        pa, pb, pc = ha * ha, hb * hb, hc * hc
        alone, pair = d >= ha, pb * (e * e) + pa * ((e - d) * (e - d)) >= pa * pb
        both, bc = pc * d + pb * e, pb * pc
        weight = pa + pb if pair else bc + pa * pc + pa * pb
        square = d * d if pair else pc * (d * d) + pb * (e * e) - bc
        w = weight - square if pair else pa * (both * both) - weight * square
        root = np.sqrt(w if w > zero else zero)
        step = (pa * (d if pair else both) + (ha * hb if pair else ha) * root) / weight
        new = a + (ha if alone else step)
        gain = abs(old) * shrink - new
        better = ((gain > zero) if falling else (abs(gain) > settled)) & (new <= limit) & (fixed[s] == 0)
        here[s] = new * side if better else old
        found += 1 if better else 0
    return found


@njit(forceinline=True, error_model="numpy")
def _slab(
    v: np.ndarray,
    pinned: np.ndarray,
    i: int,
    j0: int,
    j1: int,
    nz: int,
    forward: bool,
    spacing: tuple[float, float, float],
    order: int,
    limit: float,
    settled: float,
    across: np.ndarray,
) -> int:
    """Update the points of one i and of j0 <= j < j1, in the order of t; returns how many changed."""
    kind = v.dtype.type
    one = kind(1)
    near = kind(np.inf) if order == 2 else -one
    shrink = one if order == 2 else one - kind(4) * kind(np.finfo(v.dtype).eps)
    simple = order == 1 and spacing[0] == spacing[1] and spacing[1] == spacing[2]
    found = 0
    lines = j1 - j0 + nz - 1
    for number in range(lines):
        t = j0 + number if forward else j0 + lines - 1 - number
        low, high = max(j0, t - nz + 1) + PAD, min(j1, t + 1) + PAD
        here, fixed = v[i + PAD, t + PAD, low:high], pinned[i, t, low - PAD : high - PAD]
        left, right = v[i + PAD - 1, t + PAD, low:high], v[i + PAD + 1, t + PAD, low:high]
        before, after = v[i + PAD, t + PAD - 1, low - 1 : high], v[i + PAD, t + PAD + 1, low : high + 1]
        if simple:
            found += _first_line(here, fixed, left, right, before, after, spacing[0], limit, shrink)
            continue
        left2, right2 = v[i + PAD - 2, t + PAD, low:high], v[i + PAD + 2, t + PAD, low:high]
        before2, after2 = v[i + PAD, t + PAD - 2, low - 2 : high], v[i + PAD, t + PAD + 2, low : high + 2]
        _upwind_lines(here, left, right, left2, right2, near, across)
        found += _general_line(
            here, fixed, across, before, after, before2, after2, spacing, near, limit, shrink, settled
        )
    return found


@njit(parallel=True, cache=True)
def sweep(
    v: np.ndarray,
    pinned: np.ndarray,
    active: np.ndarray,
    nz: int,
    forward_i: bool,
    forward_t: bool,
    block_i: int,
    block_j: int,
    spacing: np.ndarray,
    order: int,
    limit: float,
    settled: float,
) -> int:
    """Sweep once along i and t, forward or backward; returns how many points changed.

    ``v`` (nx + 4, ny + nz + 3, ny + 4) signed distances, infinite where unknown, ``pinned`` (nx, ny + nz - 1,
    ny) uint8 both skewed. ``active`` (nx + 4, blocks + 4) uint8 tells which parts (i, block of j) have a
    neighbour that changed since they were last done: all others would stay as they are, and are passed over.
    Blocks wait for the one before them along i and along j; those of a diagonal run in parallel.
    """
    kind = v.dtype.type
    nx, ny = v.shape[0] - 2 * PAD, v.shape[2] - 2 * PAD
    h = (kind(spacing[0]), kind(spacing[1]), kind(spacing[2]))
    reach, least = kind(limit), kind(settled)
    ni, nj = (nx + block_i - 1) // block_i, (ny + block_j - 1) // block_j
    counts = np.zeros((ni, nj), np.int64)
    for diagonal in range(ni + nj - 1):
        first, last = max(0, diagonal - nj + 1), min(ni - 1, diagonal)
        for task in prange(last - first + 1):
            p = first + task if forward_i else ni - 1 - first - task
            q = diagonal - first - task if forward_t else nj - 1 - diagonal + first + task
            i0, i1 = p * block_i, min(p * block_i + block_i, nx)
            j0, j1 = q * block_j, min(q * block_j + block_j, ny)
            across = np.empty(j1 - j0, v.dtype)
            for number in range(i1 - i0):
                i = i0 + number if forward_i else i1 - 1 - number
                if active[i + PAD, q + PAD] == 0:
                    continue
                active[i + PAD, q + PAD] = 0
                found = _slab(
                    v, pinned, i, j0, j1, nz, forward_t, h, order, reach, least, across
                )  # fmt: skip
                if found > 0:
                    counts[p, q] += found
                    active[i + PAD, q + PAD] = 1
                    for w in range(1, order + 1):
                        active[i + PAD - w, q + PAD] = active[i + PAD + w, q + PAD] = 1
                        active[i + PAD, q + PAD - w] = active[i + PAD, q + PAD + w] = 1
    total = 0
    for p in range(ni):
        for q in range(nj):
            total += counts[p, q]
    return total
