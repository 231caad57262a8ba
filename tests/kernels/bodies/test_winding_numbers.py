"""Winding numbers of triangles against solid angles, and where places lie on corners, edges and columns."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.component import Array
from ecs_fluid.kernels.bodies import winding_numbers as module
from ecs_fluid.kernels.bodies.winding_numbers import columns_of, triangles_tested, windings

trimesh = pytest.importorskip("trimesh")


def solid_angles(x: Array, triangles: Array) -> Array:
    """Sum of the solid angles of triangles (m, 3, 3) about places (n, 3), over 4 pi.

    tan(Omega/2) = a . (b x c) / (|a||b||c| + a.b |c| + b.c |a| + c.a |b|): van Oosterom and Strackee,
    IEEE Trans. Biomed. Eng. 30 (1983).
    """
    a, b, c = (triangles[None, :, k] - x[:, None] for k in range(3))
    p, q, r = (np.linalg.norm(side, axis=-1) for side in (a, b, c))
    over = np.einsum("pti,pti->pt", a, np.cross(b, c))
    under = p * q * r + (a * b).sum(-1) * r + (b * c).sum(-1) * p + (c * a).sum(-1) * q
    return np.asarray(np.arctan2(over, under).sum(axis=1) / (2 * np.pi))


def of(x: Array, triangles: Array) -> Array:
    return np.asarray(windings(x, columns_of(triangles)))


def ring(tilt: float = 0.0, shift: float = 0.0) -> Array:
    torus = trimesh.creation.torus(1.0, 0.35, major_sections=24, minor_sections=12)
    torus.apply_transform(trimesh.transformations.rotation_matrix(tilt, [1.0, 2.0, 0.5]))
    torus.apply_translation([shift, 0.0, 0.0])
    return np.asarray(torus.triangles)


@pytest.mark.parametrize(
    "triangles",
    [
        ring(),
        ring(0.7),
        ring(0.7)[:, ::-1],
        np.concatenate([ring(), ring(1.2, 0.4)]),
        np.concatenate([ring(), ring(1.2, 0.4)[:, ::-1]]),
    ],
    ids=["ring", "leans", "inside out", "two overlap", "one taken away"],
)
def test_solid_angles(triangles: Array) -> None:
    """1, -1, 2 or 0 times, as often as the sum of solid angles says."""
    x = np.random.default_rng(1).uniform(-1.6, 1.6, (400, 3))
    expected = solid_angles(x, triangles)
    assert len(np.unique(np.round(expected))) > 1
    np.testing.assert_allclose(of(x, triangles), expected, atol=1e-9)


@pytest.mark.parametrize("step", [0.25, 0.125])
def test_rays_through_corners_and_edges(step: float) -> None:
    """Rays of a lattice go through corners, along edges and within sides of a cube and an octahedron."""
    side = np.arange(-0.75, 0.76, step)
    x = np.stack(np.meshgrid(side, side, side, indexing="ij"), axis=-1).reshape(-1, 3)
    cube = np.asarray(trimesh.creation.box((1.0, 1.0, 1.0)).triangles)
    far = np.abs(x).max(axis=1) - 0.5
    np.testing.assert_array_equal(of(x, cube)[far < 0], 1)
    np.testing.assert_array_equal(of(x, cube)[far > 0], 0)
    corners = 0.5 * np.concatenate([np.eye(3), -np.eye(3)])
    octahedron = np.asarray(trimesh.convex.convex_hull(corners).triangles)
    far = np.abs(x).sum(axis=1) - 0.5
    np.testing.assert_array_equal(of(x, octahedron)[far < 0], 1)
    np.testing.assert_array_equal(of(x, octahedron)[far > 0], 0)


def test_large_triangles_do_not_fill_columns() -> None:
    """4,000 triangles across all: columns get wider, and what is held stays below `PER_TRIANGLE` each."""
    random = np.random.default_rng(2)
    triangles = random.uniform(-1.0, 1.0, (4_000, 3, 3))
    columns = columns_of(triangles)
    assert columns.per_axis < 63
    assert len(columns.listed) <= module.PER_TRIANGLE * len(triangles)
    x = random.uniform(-0.9, 0.9, (50, 3))
    assert triangles_tested(x, columns) == sum(
        np.diff(columns.start)[
            int((p[0] - columns.low[0]) * columns.per_metre[0]) * columns.per_axis
            + int((p[1] - columns.low[1]) * columns.per_metre[1])
        ]
        for p in x
    )
    alone = columns._replace(
        start=np.array([0, len(triangles)]),
        listed=np.arange(len(triangles)),
        per_axis=1,
        per_metre=np.ones(2),
    )
    np.testing.assert_array_equal(windings(x, columns), windings(x, alone))


def test_large_triangles_are_counted_before_they_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million faces of a cube in 1,024 by 1,024 columns would be listed for hours."""
    listed, starts = [], module._column_starts
    monkeypatch.setattr(
        module, "_column_starts", lambda faces, *rest: listed.append(rest[-1]) or starts(faces, *rest)
    )
    columns_of(np.tile(np.asarray(trimesh.creation.box((1.0, 1.0, 1.0)).triangles), (500, 1, 1)))
    assert len(listed) == 1
    assert listed[0] < 8


def test_far_from_the_origin() -> None:
    """At 1e6 m, where places are known to 1e-10 m: as at the origin."""
    x = np.random.default_rng(3).uniform(-1.4, 1.4, (2_000, 3))
    np.testing.assert_array_equal(of(x, ring()), of(x + 1e6, ring() + 1e6))
