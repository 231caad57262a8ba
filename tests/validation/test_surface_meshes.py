"""Meshes of surfaces: validation cases 103 and 104, articles S8 and S9."""

from __future__ import annotations

import numpy as np
import pytest
from surface_flows import cube, mesh_area, mesh_volume, topology

from ecs_fluid.kernels.surface import shapes
from ecs_fluid.systems.surface.contour import contour

CENTRE = np.zeros(3)


def test_mesh_of_smooth_shapes() -> None:
    """Cases 103, 104, S8: closed, Euler 2 (ball) and 0 (torus), outward, volume and area of second order.

    The errors at 64 points, -1.6e-3 and about -8e-4, are those that case 103 lists for marching cubes.
    """
    volumes, areas = [], []
    for n in (16, 32, 64):
        x, h = cube(n)
        points, faces = contour(shapes.sphere(x, CENTRE, 0.6), -np.ones(3), h)
        assert topology(points, faces) == 2
        volumes.append(1 - mesh_volume(points, faces) / (4 / 3 * np.pi * 0.6**3))
        areas.append(1 - mesh_area(points, faces) / (4 * np.pi * 0.6**2))
        middle = points[faces].mean(axis=1)
        a, b, c = (points[faces[:, k]] for k in range(3))
        assert (np.einsum("ij,ij->i", np.cross(b - a, c - a), middle) > 0).all()
        points, faces = contour(shapes.torus(x, CENTRE, 0.5, 0.25), -np.ones(3), h)
        assert topology(points, faces) == 0
    for errors in (volumes, areas):
        assert np.log2(errors[0] / errors[-1]) / 2 > 1.9
    assert 1.2e-3 < volumes[-1] < 2.0e-3


def test_orders_of_mesh_volume_and_area() -> None:
    """Case 103 by its table, 16^3 to 128^3 cells.

    The ball's volume is off by -2.5e-2, -6.4e-3, -1.6e-3, -4.0e-4, to 15 %, its area by at most -1.35e-2 and
    -2.1e-4 at the ends; both are of order 1.9 and more, and so are the torus' two. A box whose faces lie
    beside grid points is cut at its 12 edges: the area lost there is of first order (0.9 to 1.1), the volume
    of nearly the second (1.8 in the table; 1.7 to 2.1).
    """
    ball = 4 / 3 * np.pi * 0.6**3, 4 * np.pi * 0.6**2
    torus = 2 * np.pi**2 * 0.5 * 0.25**2, 4 * np.pi**2 * 0.5 * 0.25
    errors: dict[str, list[tuple[float, float]]] = {"ball": [], "torus": [], "box": []}
    for n in (16, 32, 64, 128):
        x, h = cube(n + 1)
        for name, phi, exact in (
            ("ball", shapes.sphere(x, CENTRE, 0.6), ball),
            ("torus", shapes.torus(x, CENTRE, 0.5, 0.25), torus),
            ("box", shapes.box(x, CENTRE, (1, 1, 1)), (1.0, 6.0)),
        ):
            points, faces = contour(phi, -np.ones(3), h)
            errors[name].append(
                (1 - mesh_volume(points, faces) / exact[0], 1 - mesh_area(points, faces) / exact[1])
            )
    np.testing.assert_allclose([e[0] for e in errors["ball"]], [2.5e-2, 6.4e-3, 1.6e-3, 4.0e-4], rtol=0.15)
    assert 0 < errors["ball"][0][1] < 1.35e-2 * 1.15 and 0 < errors["ball"][3][1] < 2.1e-4 * 1.15
    for name in ("ball", "torus"):
        for k in (0, 1):
            assert np.log2(errors[name][0][k] / errors[name][3][k]) / 3 > 1.9
    volume, area = (np.log2(errors["box"][0][k] / errors["box"][3][k]) / 3 for k in (0, 1))
    assert 1.7 < volume < 2.1 and 0.9 < area < 1.1


def test_mesh_of_a_box_and_of_noise() -> None:
    """Case 104 for shapes that are not smooth: a box through grid points, noise with every ambiguous cell,
    and a ball larger than the grid, which is closed at the border."""
    x, h = cube(17)
    points, faces = contour(shapes.box(x, CENTRE, (1, 1, 1)), -np.ones(3), h)
    assert topology(points, faces) == 2
    # Edges are cut off by a half cell's triangle: 12 edges of 1 m, at most h^2 / 2 each.
    assert 1 - 12 * h[0] ** 2 / 2 < mesh_volume(points, faces) < 1
    noise = np.random.default_rng(2).standard_normal((14, 15, 16))
    topology(*contour(noise, np.zeros(3), np.ones(3)))
    points, faces = contour(shapes.sphere(x, CENTRE, 1.3), -np.ones(3), h)
    assert topology(points, faces) == 2
    assert np.abs(points).max() <= 1 + h[0]


def test_mesh_is_the_same_every_time() -> None:
    """S9, and more: not only the set of triangles but their order and every bit."""
    x, h = cube(33)
    phi = shapes.torus(x, CENTRE, 0.5, 0.25)
    first = contour(phi, -np.ones(3), h)
    for _ in range(3):
        again = contour(phi, -np.ones(3), h)
        assert all((a == b).all() for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_contour_in_the_plane(axis: int) -> None:
    """A flat axis gives one closed line around the inside: shoelace area pi R^2 to second order, positive."""
    x, h = cube(65)
    x = np.take(x, [32], axis=axis)
    origin = np.where(np.arange(3) == axis, 0.0, -1.0)
    points, faces = contour(np.ascontiguousarray(shapes.sphere(x, CENTRE, 0.6)), origin, h)
    assert (np.bincount(faces[:, 0]) == 1).all() and (np.bincount(faces[:, 1]) == 1).all()
    assert (points[:, axis] == 0).all()
    area = 0.5 * np.cross(points[faces[:, 0]], points[faces[:, 1]]).sum(axis=0)[axis]
    assert 0.999 < area / (np.pi * 0.36) < 1
