"""Velocity of blobs in a box along whose walls the fluid slips, at grid points, by sums of sines and cosines.

No fluid goes through a wall if every blob has a mirror image behind it: the image keeps the component of the
vorticity along the wall's normal and reverses the others. Images in both walls across an axis repeat every
other box. So component c of the vorticity is a sum of cosines along axis c and of sines along the two others,
with wave numbers pi j / L for a box of length L. The vector potential, A^ = z(k sigma) omega^/k^2 with z the
transform of the regularisation, is such a sum, too. Component c of the velocity, curl A, is a sum of sines
along axis c and of cosines along the others. All is spectral in the grid points; what is left is the error of
sharing vortons among points. A box that turns also moves fluid without vorticity: see `turning`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from scipy import fft

from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.poisson.periodic import Part, Sizes, Steps, shaped, smoothed

TERMS = 256
"""Terms of the sums for a box that turns; at the walls they fall as 1/n^2, with alternating signs except at
the box's edges."""

ALONG, ACROSS = 1, -1
"""Which components of a field keep their sign in a mirror image: those along the wall's normal (vorticity and
vector potential), or those across the normal (velocity)."""


def reflected_in(field: Array, ghosts: int) -> Array:
    """Vorticity (px, py, pz, 3) at the points of a box, with what images behind its walls add there.

    ``field`` also has ``ghosts`` points beyond each wall, which got shares of the blobs next to it. By
    symmetry the images give the mirrored points inside the box the mirrored shares.
    """
    for axis in range(3):
        lines = np.moveaxis(field, axis, 0)
        sign = _signs(axis, ALONG, field.dtype)
        inner = lines[ghosts : len(lines) - ghosts].copy()
        inner[: ghosts + 1] += sign * lines[ghosts::-1]
        inner[-ghosts - 1 :] += sign * lines[: -ghosts - 2 : -1]
        field = np.moveaxis(inner, 0, axis)
    return field


def reflected_out(field: Array, ghosts: int, kept: int) -> Array:
    """A field (px, py, pz, 3) in a box, mirrored to ``ghosts`` points beyond its walls; ``kept``: ALONG or
    ACROSS."""
    for axis in range(3):
        lines = np.moveaxis(field, axis, 0)
        sign = _signs(axis, kept, field.dtype)
        below, above = sign * lines[ghosts:0:-1], sign * lines[-2 : -ghosts - 2 : -1]
        field = np.moveaxis(np.concatenate([below, lines, above]), 0, axis)
    return np.ascontiguousarray(field)


def _signs(axis: int, kept: int, dtype: Any) -> Array:
    return np.where(np.arange(3) == axis, kept, -kept).astype(dtype)


@lru_cache(maxsize=4)
def _waves(points: Sizes, spacing: Steps) -> list[Array]:
    """Wave numbers along the three axes, 1/m, as by `shaped`."""
    return shaped([np.pi * np.arange(n) / ((n - 1) * h) for n, h in zip(points, spacing, strict=True)])


@lru_cache(maxsize=16)
def _blob(points: Sizes, spacing: Steps, finest: Sizes, code: Code, sigma: float, dtype: str) -> Array:
    """z(k sigma)/k^2 in m^2, times what makes transforms on a grid of ``points`` those on the ``finest`` one.

    Transforms are sums over the points, so they grow with their number; the shortest wave of a grid has
    twice the sum of any other wave.
    """
    waves = _waves(points, spacing)
    squares = sum((part**2 for part in waves), np.zeros((1, 1, 1)))
    inverse = np.where(squares > 0, 1 / np.where(squares > 0, squares, 1.0), 0.0)  # 0 at the mean
    blob = smoothed(waves, code, sigma) * inverse
    for axis, (n, most) in enumerate(zip(points, finest, strict=True)):
        if n < most:
            lines = np.moveaxis(blob, axis, 0)
            lines *= (most - 1) / (n - 1)
            lines[-1] /= 2
    return np.asarray(blob.astype(dtype))


def turning(cells: Any, spacing: Any, spin: Any, ghosts: int) -> Array:
    """Velocity (px, py, pz, 3) m/s of fluid without vorticity in a box about the origin that turns about it.

    ``spin`` (3,) is the box's angular velocity, 1/s. The grid points run from ``ghosts`` beyond one wall to
    as many beyond the other, where parabolas continue the field. For spin w about z and half sides a along x,
    b along y, with k_n = (n + 1/2) pi / b,

        phi = w x y - sum_n 4 w (-1)^n / (b k_n^3 cosh(k_n a)) sinh(k_n x) sin(k_n y),

    whose normal derivative at the walls is their velocity, -w y at x = +-a and w x at y = +-b; likewise about
    the other axes.
    """
    half = np.asarray(cells) * spacing / 2
    axes = [np.arange(n + 1) * h - side for n, h, side in zip(cells, spacing, half, strict=True)]
    out = np.zeros((*(n + 1 for n in cells), 3))
    for c in np.flatnonzero(spin):
        i, j = (c + 1) % 3, (c + 2) % 3
        k = (np.arange(TERMS) + 0.5) * np.pi / half[j]
        factor = -4.0 * (-1.0) ** np.arange(TERMS) / (half[j] * k**2)
        x, y = axes[i][:, None], axes[j][:, None]
        # cosh and sinh over cosh(k a), by exponentials that are small
        far, near = np.exp(-k * (half[i] + np.abs(x))), np.exp(-k * (half[i] - np.abs(x)))
        below = 1 + np.exp(-2 * k * half[i])
        cosh, sinh = (near + far) / below, np.sign(x) * (near - far) / below
        along = spin[c] * (y.T + (factor * cosh) @ np.sin(k * y).T)
        across = spin[c] * (x + (factor * sinh) @ np.cos(k * y).T)
        for axis, values in ((i, along), (j, across)):
            out[..., axis] += np.expand_dims(values if i < j else values.T, int(c))
    for a in range(3):
        lines, n = np.moveaxis(out, a, 0), np.arange(1, ghosts + 1).reshape(-1, 1, 1, 1)
        weights = (n + 1) * (n + 2) / 2, -n * (n + 2), n * (n + 1) / 2
        below, above = (sum(w * end[m] for m, w in enumerate(weights)) for end in (lines, lines[::-1]))
        out = np.moveaxis(np.concatenate([below[::-1], lines, above]), 0, a)
    return out


class BetweenWalls:
    """Fields of blobs and their images in a box, from the vorticity that they share among its grid points.

    Args:
        parts: pairs of core radius and vorticity, which includes that of images (`reflected_in`), on this
            grid or coarser ones.
        cells: (3,) number of cells of the box.
        spacing: (3,) m.
        code: of the regularisation.
        dtype: of the results.
    """

    def __init__(
        self, parts: Sequence[Part], cells: Any, spacing: Any, code: Code, dtype: Any = np.float64
    ) -> None:
        nx, ny, nz = (int(n) + 1 for n in cells)
        points, steps = (nx, ny, nz), (float(spacing[0]), float(spacing[1]), float(spacing[2]))
        self._type, self._waves = np.dtype(dtype), _waves(points, steps)
        self._potential = [np.zeros(points, dtype) for _ in range(3)]
        for sigma, omega in parts:
            own = omega.shape[:3]
            h = tuple(step * (all_ - 1) / (n - 1) for step, all_, n in zip(steps, points, own, strict=True))
            blob = _blob(own, h, points, code, float(sigma), self._type.name)
            for c in range(3):
                waves = self._potential[c][tuple(slice(n) for n in own)]
                waves += blob * _transform(omega[..., c], c, ALONG)

    def _back(self, waves: Sequence[Array], kept: int) -> Array:
        out = [_transform(part.astype(self._type), c, kept, back=True) for c, part in enumerate(waves)]
        return np.stack(out, axis=-1)

    def vorticity(self) -> Array:
        """Vorticity (px, py, pz, 3) 1/s of the blobs."""
        squares = sum(part**2 for part in self._waves)
        return self._back([squares * part for part in self._potential], ALONG)

    def potential(self) -> Array:
        """Vector potential (px, py, pz, 3) m^2/s."""
        return self._back(self._potential, ALONG)

    def velocity(self) -> Array:
        """Velocity (px, py, pz, 3) m/s."""
        (x, y, z), (kx, ky, kz) = self._potential, (k.astype(self._type) for k in self._waves)
        return self._back([ky * z - kz * y, kz * x - kx * z, kx * y - ky * x], ACROSS)


def _transform(field: Array, component: int, kept: int, back: bool = False) -> Array:
    """Cosine transform along the axes in whose walls images keep the component's sign, sine along others."""
    cosines, sines = (fft.idct, fft.idst) if back else (fft.dct, fft.dst)
    workers = numba.get_num_threads()
    for axis in range(3):
        if (axis == component) == (kept == ALONG):
            field = cosines(field, 1, axis=axis, workers=workers)
        else:
            inner = tuple(slice(1, -1) if a == axis else slice(None) for a in range(3))
            out = np.zeros_like(field)
            out[inner] = sines(field[inner], 1, axis=axis, workers=workers)
            field = out
    return field
