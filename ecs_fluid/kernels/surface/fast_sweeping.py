"""One Gauss-Seidel sweep of the eikonal equation over blocks of tiles; see `kernels.surface.eikonal`.

Arrays are laid out as in `kernels.surface.sweep_tiles`: no two points of a row are neighbours, so all
points of a row can be updated at once, as vectors.

No fast-math here: the vector loop, its remainder and a plain loop must round alike.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.surface.sweep_tiles import PAD, mark, refresh

VECTOR = 16
"""Rows are cut at multiples of this number of points, so that vector loops leave no remainder, except in the
narrowest tiles."""


@njit(forceinline=True, error_model="numpy")
def _first_order_line(
    here: Array,
    fixed: Array,
    left: Array,
    right: Array,
    t: int,
    low: int,
    high: int,
    h: float,
    limit: float,
    shrink: float,
) -> int:
    """First-order update of the points low <= s < high in row ``t`` of the tile ``here``, for cubic cells.

    Returns how many of them came closer to the surface. ``left`` and ``right`` are the tiles before and after
    it along i, ``h`` is the edge of a cell. A new distance must be below ``shrink`` times the old one, and at
    most ``limit``.
    """
    kind = here.dtype.type
    zero, half, two, three, third = kind(0), kind(0.5), kind(2), kind(3), kind(1) / kind(3)
    hh = h * h
    changed = 0
    # Unsigned indices need no test for negative ones. Taking slices of these short rows cost as much time as
    # the loop itself, so the loop indexes the whole tile.
    row, one, two_pads, pad = np.uintp(t + PAD), np.uintp(1), np.uintp(PAD + 1), np.uintp(PAD)
    line, previous, following = np.uintp(t), row - one, row + one
    for s in range(np.uintp(low), np.uintp(high)):
        m, less, more = s + pad, s + np.uintp(PAD - 1), s + two_pads
        old = here[row, m]
        x0, x1 = abs(left[row, m]), abs(right[row, m])
        y0, y1 = abs(here[previous, less]), abs(here[following, more])
        z0, z1 = abs(here[previous, m]), abs(here[following, m])
        x = x0 if x0 < x1 else x1
        y = y0 if y0 < y1 else y1
        z = z0 if z0 < z1 else z1
        low, high = (x if x < y else y), (y if x < y else x)
        c, middle = (high if high > z else z), (z if high > z else high)
        a, b = (low if low < middle else middle), (middle if low < middle else low)
        d, e = b - a, c - a
        # a <= b <= c are the smaller neighbour values of the three axes. The axis of b takes part unless the
        # quadratic without it is already >= 0 at u = b, that is a + h <= b; likewise the axis of c.
        alone, pair = d >= h, e * e + (e - d) * (e - d) >= hh
        part = d if pair else d + e
        w = (two * hh - d * d) if pair else (three * hh - two * (d * d + e * e - d * e))
        root = np.sqrt(w if w > zero else zero)
        new = a + (h if alone else (part + root) * (half if pair else third))
        better = (new < abs(old) * shrink) & (new <= limit) & (fixed[line, s] == 0)
        here[row, m] = (new if old > zero else -new) if better else old
        changed += 1 if better else 0
    return changed


@njit(forceinline=True, error_model="numpy")
def _upwind_lines(
    here: Array, left: Array, right: Array, left2: Array, right2: Array, near: float, out: Array
) -> None:
    """Fill ``out`` with the upwind value along i of each point: above 0 for second order, below for first.

    The one-sided difference of second order, (u - (4 u_1 - u_2) / 3) / (2 h / 3), has the form of the first
    order, (u - u_1) / h, with another value and another spacing. So ``out`` gets (4 u_1 - u_2) / 3 where the
    second neighbour can be used, and -u_1 where it cannot. ``left``, ``right`` are the rows of the next tiles
    along i, ``left2``, ``right2`` those behind them; second neighbours count below the distance ``near``.
    The loop is apart from `_general_line` since compilers vectorise only loops over few arrays.
    """
    kind = here.dtype.type
    zero, one, four, third = kind(0), kind(1), kind(4), kind(1) / kind(3)
    tiny = kind(np.finfo(here.dtype).tiny)
    for s in range(here.size):
        side = one if here[s] > zero else -one
        x0, x1 = abs(left[s]), abs(right[s])
        # The second neighbour may lie on the other side of the surface, behind a pinned point. So it is not
        # the absolute value that counts but the value on this point's side, negative across the surface.
        xx0, xx1 = left2[s] * side, right2[s] * side
        use0, use1 = (xx0 <= x0) & (abs(xx0) < near), (xx1 <= x1) & (abs(xx1) < near)
        lower = x0 < x1
        x, xx, use = (x0 if lower else x1), (xx0 if lower else xx1), (use0 if lower else use1)
        out[s] = (four * x - xx) * third if use else -(x if x > tiny else tiny)


@njit(forceinline=True, error_model="numpy")
def _general_line(
    here: Array,
    fixed: Array,
    across: Array,
    before: Array,
    after: Array,
    before2: Array,
    after2: Array,
    spacing: tuple[float, float, float],
    near: float,
    limit: float,
    shrink: float,
    settled: float,
) -> int:
    """Update one row, for either order and any spacing; returns how many points changed.

    ``across`` holds the values of `_upwind_lines`. ``before`` and ``before2`` are the rows t - 1 and t - 2
    and begin one and two points before ``here``; ``after`` and ``after2`` are the rows t + 1 and t + 2 and
    end one and two points behind it. ``near``, ``limit`` and ``shrink`` are as in the other updates. With
    ``settled`` < 0 a distance may only fall; otherwise it is replaced if it changes by more than ``settled``.
    """
    kind = here.dtype.type
    zero, one, four, third = kind(0), kind(1), kind(4), kind(1) / kind(3)
    hx, hy, hz = spacing
    two_thirds = kind(2) / kind(3)
    rx, ry, rz = hx * two_thirds, hy * two_thirds, hz * two_thirds
    falling = settled < zero
    changed = 0
    for s in range(here.size):
        old = here[s]
        side = one if old > zero else -one
        y0, y1 = abs(before[s]), abs(after[s + 1])
        z0, z1 = abs(before[s + 1]), abs(after[s])
        yy0, yy1 = before2[s] * side, after2[s + 2] * side
        zz0, zz1 = before2[s + 2] * side, after2[s] * side
        # Load the neighbours on both sides before choosing one: loads under a condition are not vectorised.
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
        changed += 1 if better else 0
    return changed


@njit(forceinline=True, error_model="numpy")
def _sweep_chunk(
    here: Array,
    left: Array,
    right: Array,
    left2: Array,
    right2: Array,
    fixed: Array,
    first: int,
    last: int,
    nz: int,
    forward: bool,
    spacing: tuple[float, float, float],
    order: int,
    limit: float,
    settled: float,
    across: Array,
) -> int:
    """Update the rows first <= t < last of a tile, one after the other; returns how many points changed.

    ``forward`` is the direction of the sweep. ``left2`` and ``right2`` are the second tiles to either side
    along i; ``across`` (width,) is scratch.
    """
    kind = here.dtype.type
    one = kind(1)
    near = kind(np.inf) if order == 2 else -one
    shrink = one if order == 2 else one - kind(4) * kind(np.finfo(here.dtype).eps)
    simple = order == 1 and spacing[0] == spacing[1] and spacing[1] == spacing[2]
    changed, width = 0, fixed.shape[1]
    for number in range(last - first):
        t = first + number if forward else last - 1 - number
        # Rows at both ends of a tile hold few points of the grid. What is updated with them to fill up whole
        # vectors is marked as fixed.
        low = max(0, t - nz + 1) // VECTOR * VECTOR
        high = min(width, (t + VECTOR) // VECTOR * VECTOR)
        if simple:
            changed += _first_order_line(here, fixed, left, right, t, low, high, spacing[0], limit, shrink)
            continue
        a, b, row = low + PAD, high + PAD, t + PAD
        line, held = here[row, a:b], fixed[t, low:high]
        before, after = here[row - 1, a - 1 : b], here[row + 1, a : b + 1]
        before2, after2 = here[row - 2, a - 2 : b], here[row + 2, a : b + 2]
        _upwind_lines(line, left[row, a:b], right[row, a:b], left2[row, a:b], right2[row, a:b], near, across)
        changed += _general_line(
            line, held, across, before, after, before2, after2, spacing, near, limit, shrink, settled
        )
    return changed


@parallel("end - start + 1")
def _sweep_diagonal(
    task: int, diagonal: int, start: int, end: int, v: Array, fixed: Array, active: Array, nz: int,
    height: int, shift: int, forward_i: bool, forward_t: bool, block: int, spacing: Array, order: int,
    limit: float, settled: float, counts: Array,
) -> None:  # fmt: skip
    kind = v.dtype.type
    nx, _, rows, width = fixed.shape
    h = (kind(spacing[0]), kind(spacing[1]), kind(spacing[2]))
    reach, least = kind(limit), kind(settled)
    (ni, nj), chunks = counts.shape, (rows + height - 1) // height
    # Blocks without work lie side by side, and consecutive tasks share a thread: give it every other block.
    half = (end - start + 2) // 2
    place = start + (2 * task if task < half else 2 * (task - half) + 1)
    p = place if forward_i else ni - 1 - place
    q = diagonal - place if forward_t else nj - 1 - diagonal + place
    i0, i1 = p * block, min(p * block + block, nx)
    across = np.empty(width, v.dtype)
    for number in range(i1 - i0):
        i = i0 + number if forward_i else i1 - 1 - number
        marks = active[i + PAD, q + 1, shift + 1 : shift + 1 + chunks]
        if not marks.any():
            continue
        refresh(v, i, q, nz, order)
        a = i + PAD
        for step in range(chunks):
            c = step if forward_t else chunks - 1 - step
            if marks[c] == 0:
                continue
            marks[c] = 0
            changed = _sweep_chunk(
                v[a, q], v[a - 1, q], v[a + 1, q], v[a - 2, q], v[a + 2, q], fixed[i, q], c * height,
                min(c * height + height, rows), nz, forward_t, h, order, reach, least, across,
            )  # fmt: skip
            if changed > 0:
                counts[p, q] += changed
                mark(active, i, q, c, shift, order)


@njit(cache=True)
def sweep(
    v: Array,
    fixed: Array,
    active: Array,
    nz: int,
    height: int,
    shift: int,
    forward_i: bool,
    forward_t: bool,
    block: int,
    spacing: Array,
    order: int,
    limit: float,
    settled: float,
) -> int:
    """Sweep once along i and t, forward or backward; returns how many points changed.

    Arrays are as in `kernels.surface.sweep_tiles`: ``v`` the signed distances (infinite where unknown),
    ``fixed`` the points that must stay, ``active`` the chunks of ``height`` rows that need a visit (no other
    would change). A block is ``block`` tiles along i. It may start when the blocks before it along i and
    along j are done, so the blocks of one diagonal run in parallel. ``spacing`` (3,) and ``limit`` are in
    units of v. ``settled`` is the smallest change that counts, or -1 if distances may only fall.
    """
    ni, nj = (fixed.shape[0] + block - 1) // block, fixed.shape[1]
    counts = np.zeros((ni, nj), np.int64)
    how = v, fixed, active, nz, height, shift, forward_i, forward_t, block, spacing, order, limit, settled
    for diagonal in range(ni + nj - 1):
        start, end = max(0, diagonal - nj + 1), min(ni - 1, diagonal)
        _sweep_diagonal(diagonal, start, end, *how, counts)
    return int(counts.sum())
