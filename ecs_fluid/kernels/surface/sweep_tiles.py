"""Grids cut into tiles for sweeping: a tile holds the columns of one i and ``width`` neighbouring j, skewed.

Point (i, j, k) of a grid (nx, ny, nz) is stored at v[i + PAD, q, t + PAD, s + PAD] with j = q width + s and
t = s + k, or t = s + nz - 1 - k if k is reversed. Its neighbours along j and k then lie in the rows t - 1
and t + 1. So all points of a row can be updated at once, as vectors, and a tile is one piece of memory, which
is read from beginning to end. Entries that are no points of the grid hold infinity and are marked as fixed.
PAD columns on both sides repeat those of the neighbouring tiles; they are renewed before a tile is updated.

``active`` (nx + 2 PAD, tiles + 2, chunks + 2 shift + 2) uint8 tells which chunks of ``height`` rows have a
neighbour that changed since their last update; ``shift`` is ``width`` / ``height``. The borders of the array
take the marks of neighbours that do not exist.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.parallel import parallel

PAD = 2
"""Layers around the grid and columns around a tile, so that no neighbour needs a test whether it exists."""

HEIGHT = 8
"""Rows of a chunk, if the width of a tile is a multiple of it."""


def chunk_height(width: int) -> int:
    """Rows of a chunk in tiles of this width; it divides the width."""
    return HEIGHT if width % HEIGHT == 0 else width


@njit(forceinline=True)
def mark(active: Array, i: int, q: int, c: int, shift: int, order: int) -> None:
    """Mark the chunk c of tile (i, q), and all chunks that hold neighbours of its points.

    Row t of a tile continues as row t + width of the tile before it and as row t - width of the next. These
    are ``shift`` chunks away.
    """
    a, b, d = i + PAD, q + 1, c + shift + 1
    for w in range(1, order + 1):
        active[a - w, b, d] = 1
        active[a + w, b, d] = 1
    for w in range(-1, 2):
        active[a, b, d + w] = 1
        active[a, b - 1, d + shift + w] = 1
        active[a, b + 1, d - shift + w] = 1


def no_marks(nx: int, tiles: int, rows: int, width: int) -> tuple[Array, int, int]:
    """A new ``active`` of zeros, the ``height`` of a chunk, and ``shift``, the tile's width in chunks."""
    height = chunk_height(width)
    shift = width // height
    chunks = -(-rows // height)
    return np.zeros((nx + 2 * PAD, tiles + 2, chunks + 2 * shift + 2), np.uint8), height, shift


@parallel("phi.shape[0] + 2 * PAD")
def load(
    i: int,
    phi: Array,
    pinned: Array,
    scale: float,
    v: Array,
    fixed: Array,
    active: Array,
    height: int,
    shift: int,
) -> None:
    """Store pinned distances times ``scale`` in tiles, and infinity with its sign for all other points.

    Also fills ``fixed``, and marks the chunks beside pinned points in ``active``.
    """
    nx, ny, nz = phi.shape
    tiles, width = fixed.shape[1], fixed.shape[3]
    kind = v.dtype.type
    factor, far = kind(scale), kind(np.inf)
    v[i] = far
    if PAD <= i < nx + PAD:
        fixed[i - PAD] = 1
        for q in range(tiles):
            tile, fixed_tile = v[i, q], fixed[i - PAD, q]
            for s in range(min(width, ny - q * width)):
                for k in range(nz):
                    value, pin = phi[i - PAD, q * width + s, k], pinned[i - PAD, q * width + s, k]
                    tile[s + k + PAD, s + PAD] = value * factor if pin else (-far if value < kind(0) else far)
                    fixed_tile[s + k, s] = 1 if pin else 0
                    if pin:
                        mark(active, i - PAD, q, (s + k) // height, shift, 1)


@parallel("fixed.shape[0]")
def turn(i: int, v: Array, fixed: Array, nz: int, active: Array, height: int, shift: int) -> None:
    """Reverse the order of points along k in place, in ``v``, ``fixed`` and ``active``."""
    _, tiles, _, width = fixed.shape
    chunks = active.shape[2] - 2 * shift - 2
    old = np.empty(chunks, np.uint8)
    for q in range(tiles):
        tile, fixed_tile = v[i + PAD, q], fixed[i, q]
        for s in range(width):
            for k in range(nz // 2):
                a, b = s + k, s + nz - 1 - k
                tile[a + PAD, s + PAD], tile[b + PAD, s + PAD] = (
                    tile[b + PAD, s + PAD],
                    tile[a + PAD, s + PAD],
                )
                fixed_tile[a, s], fixed_tile[b, s] = fixed_tile[b, s], fixed_tile[a, s]
        marks = active[i + PAD, q + 1, shift + 1 : shift + 1 + chunks]
        old[:] = marks
        marks[:] = 0
        # Row t becomes 2 s + nz - 1 - t, which depends on s, so the points of a chunk go to several chunks.
        for c in range(chunks):
            if old[c] == 1:
                first = nz - 1 - (c * height + height - 1)
                last = nz - 1 - c * height + 2 * (width - 1)
                for d in range(max(first, 0) // height, min(last // height, chunks - 1) + 1):
                    marks[d] = 1


@parallel("phi.shape[0]")
def store(
    i: int, v: Array, fixed: Array, turned: bool, inverse: float, bound: float, phi: Array, out: Array
) -> None:
    """Fill ``out`` with all distances; pinned points keep those of ``phi``, unreached ones get the bound."""
    _, ny, nz = phi.shape
    tiles, width = fixed.shape[1], fixed.shape[3]
    kind = v.dtype.type
    factor, most, far, zero = kind(inverse), kind(bound), kind(np.inf), kind(0)
    way = -1 if turned else 1
    for q in range(tiles):
        tile, fixed_tile = v[i + PAD, q], fixed[i, q]
        for s in range(min(width, ny - q * width)):
            old, new = phi[i, q * width + s], out[i, q * width + s]
            first = s + (nz - 1 if turned else 0)
            for k in range(nz):
                t = first + way * k
                value = tile[t + PAD, s + PAD]
                size = abs(value) * factor if abs(value) < far else most
                new[k] = old[k] if fixed_tile[t, s] else (-size if value < zero else size)


@parallel("v.shape[0] - 2 * PAD")
def mark_known(i: int, v: Array, active: Array, height: int, shift: int) -> None:
    """Mark all chunks that hold a finite value, and those with neighbours of their points."""
    tiles, rows = v.shape[1], v.shape[2] - 2 * PAD
    for q in range(tiles):
        for c in range((rows + height - 1) // height):
            count = 0
            for t in range(c * height, min(c * height + height, rows)):
                row = v[i + PAD, q, t + PAD, PAD : v.shape[3] - PAD]
                for s in range(row.size):
                    count += 1 if abs(row[s]) < np.inf else 0
            if count > 0:
                mark(active, i, q, c, shift, 2)


@njit(forceinline=True)
def refresh(v: Array, i: int, q: int, nz: int, reach: int) -> None:
    """Copy ``reach`` columns of the neighbouring tiles into the columns around tile (i, q)."""
    width, tiles = v.shape[3] - 2 * PAD, v.shape[1]
    tile = v[i + PAD, q]
    for w in range(1, reach + 1):
        if q > 0:
            other = v[i + PAD, q - 1]
            for k in range(nz):
                tile[k - w + PAD, PAD - w] = other[k - w + width + PAD, width - w + PAD]
        if q < tiles - 1:
            other = v[i + PAD, q + 1]
            for k in range(nz):
                tile[k + width - 1 + w + PAD, width - 1 + w + PAD] = other[k - 1 + w + PAD, w - 1 + PAD]
