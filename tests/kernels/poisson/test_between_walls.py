"""Fields of blobs and their mirror images in a box."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ecs_fluid.kernels.biot_savart.regularisation import CODES
from ecs_fluid.kernels.poisson.between_walls import (
    ACROSS,
    ALONG,
    BetweenWalls,
    reflected_in,
    reflected_out,
    turning,
)
from ecs_fluid.kernels.poisson.periodic import Fourier

Array = np.ndarray[Any, Any]
POINTS, SPACING, GHOSTS = (9, 7, 11), np.array([0.25, 0.3, 0.2]), 2
CELLS = np.array(POINTS) - 1


def doubled(field: Array) -> Array:
    """Vorticity of a box (9, 7, 11, 3), with what images add in it, on a period of all images, by points."""
    cells = CELLS.tolist()
    out = np.zeros((*(2 * CELLS), 3))
    for place in np.ndindex(*out.shape[:3]):
        beyond = [p > n for p, n in zip(place, cells, strict=True)]
        of = tuple(2 * n - p if far else p for p, n, far in zip(place, cells, beyond, strict=True))
        for c in range(3):
            turns = sum(far for axis, far in enumerate(beyond) if axis != c)
            out[(*place, c)] = (-1) ** turns * field[(*of, c)]
    return out


def some_vorticity() -> Array:
    """Random values in a box, none at walls where images take them away."""
    field = np.random.default_rng(1).standard_normal((*POINTS, 3))
    for axis in range(3):
        along = np.moveaxis(field, axis, 0)
        for c in {0, 1, 2} - {axis}:
            along[0, ..., c] = along[-1, ..., c] = 0
    return field


def test_sums_are_those_of_a_world_of_images_that_repeats() -> None:
    """Velocity, potential and vorticity of two core radii, to rounding: a period of two boxes has all."""
    field, code = some_vorticity(), CODES["gaussian"]
    parts = [(0.3, field), (0.5, 0.3 * field)]
    walls = BetweenWalls(parts, CELLS, SPACING, code)
    period = Fourier([(sigma, doubled(own)) for sigma, own in parts], SPACING, (True,) * 3, code)
    inner = tuple(slice(n) for n in POINTS)
    for name in ("velocity", "potential", "vorticity"):
        expected = getattr(period, name)()[inner]
        np.testing.assert_allclose(getattr(walls, name)(), expected, atol=1e-12 * np.abs(expected).max())


def test_velocity_of_a_mode_of_the_box() -> None:
    """u = curl A of A_z = sin px sin qy cos rz ends at the walls.

    curl u = (dz dx A_z, dz dy A_z, -(dx^2 + dy^2) A_z). Gaussian blobs of radius sigma smooth both by
    z(k sigma), the transform of the record.
    """
    from ecs_fluid.kernels.biot_savart.regularisation import record

    k = np.pi * np.array([1, 2, 3]) / (SPACING * CELLS)
    x = np.meshgrid(*(np.arange(n) * h for n, h in zip(POINTS, SPACING, strict=True)), indexing="ij")
    (sx, sy, sz), (cx, cy, cz) = ([f(a * b) for a, b in zip(k, x, strict=True)] for f in (np.sin, np.cos))
    omega = np.stack(
        [-k[0] * k[2] * cx * sy * sz, -k[1] * k[2] * sx * cy * sz, (k[0] ** 2 + k[1] ** 2) * sx * sy * cz], -1
    )
    u = np.stack([k[1] * sx * cy * cz, -k[0] * cx * sy * cz, 0 * sx], -1)
    transform = record(CODES["gaussian"]).transform
    assert transform is not None
    smooth = float(transform(np.array(0.2 * np.linalg.norm(k))))
    found = BetweenWalls([(0.2, omega)], CELLS, SPACING, CODES["gaussian"]).velocity()
    np.testing.assert_allclose(found, smooth * u, atol=1e-13 * np.abs(u).max())


def test_a_coarser_grid_has_the_longer_waves() -> None:
    """Waves that both grids have give the same velocity, the shortest of the coarse one, (-1)^j, too."""
    code, coarse = CODES["gaussian"], np.array([4, 3, 5])
    steps = SPACING * CELLS / coarse
    waves = [np.pi * np.arange(n + 1) / (n * h) for n, h in zip(coarse, steps, strict=True)]
    amplitudes = np.random.default_rng(4).standard_normal((*(coarse + 1), 3))
    for axis in range(3):  # the shortest sine is 0 at all points of the coarse grid
        np.moveaxis(amplitudes, axis, 0)[-1, ..., np.arange(3) != axis] = 0

    def at(points: Array, h: Array) -> Array:
        """The sum of the waves at points of a grid: cosines along the component's axis, else sines."""
        lines = [k[:, None] * np.arange(n) * d for k, n, d in zip(waves, points, h, strict=True)]
        out = np.zeros((*points, 3))
        for c in range(3):
            x, y, z = ((np.cos if axis == c else np.sin)(line) for axis, line in enumerate(lines))
            out[..., c] = np.einsum("abc,ai,bj,ck->ijk", amplitudes[..., c], x, y, z)
        return out

    fine = BetweenWalls([(0.3, at(np.array(POINTS), SPACING))], CELLS, SPACING, code).velocity()
    found = BetweenWalls([(0.3, at(coarse + 1, steps))], CELLS, SPACING, code).velocity()
    np.testing.assert_allclose(found, fine, atol=1e-12 * np.abs(fine).max())


def test_what_lies_beyond_a_wall_is_of_images() -> None:
    """By points: strengths shared beyond walls come back with the signs of images; fields go on by them."""
    size = [n + 2 * GHOSTS for n in POINTS]
    shared = np.random.default_rng(2).integers(-9, 9, (*size, 3)).astype(float)
    expected = np.zeros((*POINTS, 3))
    for place in np.ndindex(*size):
        at = [p - GHOSTS for p in place]
        for images in np.ndindex(3, 3, 3):  # itself, in the lower, in the upper wall
            there = [(p, -p, 2 * (n - 1) - p)[i] for p, n, i in zip(at, POINTS, images, strict=True)]
            if all(0 <= p < n for p, n in zip(there, POINTS, strict=True)):
                for c in range(3):
                    turns = sum(i > 0 for axis, i in enumerate(images) if axis != c)
                    expected[(*there, c)] += (-1) ** turns * shared[(*place, c)]
    np.testing.assert_array_equal(reflected_in(shared, GHOSTS), expected)
    for kept in (ALONG, ACROSS):
        out = reflected_out(expected, GHOSTS, kept)
        assert out.shape == (*size, 3)
        for place in np.ndindex(*size):
            at = [p - GHOSTS for p in place]
            of = tuple(abs(p) if p < n else 2 * (n - 1) - p for p, n in zip(at, POINTS, strict=True))
            for c in range(3):
                beyond = [not 0 <= p < n for p, n in zip(at, POINTS, strict=True)]
                turns = sum(far for axis, far in enumerate(beyond) if (axis == c) != (kept == ALONG))
                assert out[(*place, c)] == (-1) ** turns * expected[(*of, c)]


def test_fluid_in_a_square_tube_that_turns() -> None:
    """Its energy over that of a solid is 1 - 6 J, with Saint-Venant's torsion constant J of the unit square,

    J = (1 - 192/pi^5 sum tanh(n pi/2)/n^5)/3 over odd n: the relative flow is the torsion function turned by
    90 degrees. The velocity of the walls is the fluid's along their normals. (Lamb, Hydrodynamics, sec. 72.)
    """
    n, odd = 40, np.arange(1, 200, 2)
    torsion = (1 - 192 / np.pi**5 * (np.tanh(odd * np.pi / 2) / odd**5).sum()) / 3
    u = turning((2 * n, 2 * n, 4), np.array([0.5 / n, 0.5 / n, 0.1]), np.array([0.0, 0.0, 1.0]), 3)
    u, x = u[3:-3, 3:-3, 5], np.linspace(-0.5, 0.5, 2 * n + 1)
    np.testing.assert_allclose(u[[0, -1], :, 0], np.stack([-x, -x]), atol=1e-3)
    np.testing.assert_allclose(u[:, [0, -1], 1], np.stack([x, x], 1), atol=1e-12)
    simpson = np.r_[1, np.tile([4, 2], n)[:-1], 1] / (6 * n)
    energy = simpson @ (u**2).sum(axis=-1) @ simpson / 2
    assert energy / (1 / 12) == pytest.approx(1 - 6 * torsion, rel=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_box_turns_alike_about_all_axes(axis: int) -> None:
    """That about z, with the axes renamed; beyond the walls by parabolas through three points."""
    cells, spacing = np.array([6, 8, 5]), np.array([0.2, 0.1, 0.3])
    turn = [(axis + 1) % 3, (axis + 2) % 3, axis]
    about_z = turning(cells[turn], spacing[turn], np.array([0.0, 0.0, 0.7]), 2)
    found = turning(cells, spacing, 0.7 * (np.arange(3) == axis), 2)
    back = np.argsort(turn)
    np.testing.assert_allclose(found, about_z.transpose(*back, 3)[..., back], atol=1e-12)
    for a in range(3):
        third = np.diff(np.moveaxis(found, a, 0)[:6], n=3, axis=0)[:2]
        np.testing.assert_allclose(third, 0, atol=1e-12)
