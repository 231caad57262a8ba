"""Convex polytopes: exact distance against trimesh and optimisation, mass properties against closed forms.

Validation cases 94 to 96, articles F9.
"""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy.optimize import lsq_linear
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from ecs_fluid.kernels.bodies.polytope import Hulls, closest, joined_hulls
from ecs_fluid.worlds.hulls import Hull, hull_of_planes, hull_of_vertices
from ecs_fluid.worlds.shapes import (
    AirfoilShape,
    BoxShape,
    CylinderShape,
    PlateShape,
    PlatonicShape,
    WedgeShape,
)

Array = np.ndarray

CUBE = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


def found(hull: Hulls, points: Array, number: int = 0) -> Array:
    """Rows (distance, normal, closest point) of `closest`."""
    out = np.empty((len(points), 7))
    fill(hull, number, np.ascontiguousarray(points), out)
    return out


@njit(error_model="numpy")
def fill(hull: Hulls, number: int, points: Array, out: Array) -> None:
    """`closest` of all points into the rows of `out`."""
    for row in range(len(points)):
        out[row, 0], normal, place = closest(hull, number, points[row])
        for j in range(3):
            out[row, 1 + j], out[row, 4 + j] = normal[j], place[j]


def shapes() -> list[Hull]:
    """One of each kind that has a name."""
    platonic = ("tetrahedron", "octahedron", "cube", "dodecahedron", "icosahedron")
    return [
        *(PlatonicShape(shape=name, radius=1.3).hull() for name in platonic),
        BoxShape(size=(1.0, 2.0, 0.5)).hull(),
        PlateShape(thickness=0.01).hull(),
        WedgeShape().hull(),
        AirfoilShape(points=8).hull(),
        CylinderShape(radius=0.5, height=1.0, sides=12).hull(),
    ]


def random_hull(draw: np.random.Generator) -> Hull:
    """The hull of 4 to 40 points, stretched by up to 10 along a random direction."""
    points = draw.standard_normal((draw.integers(4, 41), 3)) * 10 ** draw.uniform(-0.5, 0.5, 3)
    return hull_of_vertices(Rotation.random(random_state=draw).apply(points) + draw.standard_normal(3))


def test_the_articles_cube() -> None:
    """Case 95, F9: centre -1; (0.5, 0, 0) -0.5 by the face x = 1, at (1, 0, 0); (2, 0, 0) 1.

    Beside an edge and a corner the distance is sqrt(2) and sqrt(3) where the planes say 1 (case 96).
    """
    cube = hull_of_vertices(CUBE).table
    points = np.array([[0.0, 0, 0], [0.5, 0, 0], [2, 0, 0], [2, 2, 0], [2, 2, 2]])
    rows = found(cube, points)
    assert np.allclose(rows[:, 0], [-1, -0.5, 1, np.sqrt(2), np.sqrt(3)], atol=1e-15)
    assert np.allclose(rows[1], [-0.5, 1, 0, 0, 1, 0, 0], atol=1e-15)
    assert np.allclose(rows[4, 1:], [*[3**-0.5] * 3, 1, 1, 1], atol=1e-15)
    # The article's turned cube: 1.5 cos 45 degrees - 1 from the plane, and the same off the edge at sqrt 2.
    turned = hull_of_vertices(Rotation.from_rotvec([0, 0, np.pi / 4]).apply(CUBE)).table
    assert np.isclose(found(turned, np.array([[1.5, 0, 0]]))[0, 0], 1.5 - np.sqrt(2), atol=1e-15)


def check_against_least_squares(hull: Hull, points: Array) -> None:
    """Outside: the distance to the corners' hull is a bounded least-squares problem; scipy solves it."""
    corners = hull.table.vertices
    rows = found(hull.table, points)
    for point, row in zip(points, rows, strict=True):
        if row[0] <= 0:
            continue
        # Weights w >= 0 with sum 1: the last row, weighted up, is the sum.
        heavy = 1e4
        a = np.vstack([corners.T, np.full(len(corners), heavy)])
        best = lsq_linear(a, np.append(point, heavy), (0, np.inf), method="bvls", tol=1e-15)
        w = best.x / best.x.sum()
        assert np.isclose(np.linalg.norm(w @ corners - point), row[0], atol=1e-6)


def test_distance_outside_is_that_of_an_optimiser() -> None:
    """An independent oracle for closest points; 1e-6 is what the weighted sum of weights leaves."""
    draw = np.random.default_rng(3)
    for _ in range(4):
        hull = random_hull(draw)
        check_against_least_squares(hull, draw.uniform(-2, 2, (25, 3)) * hull.table.radius)


def fuzz(hulls: list[Hull], per_hull: int, seed: int) -> int:
    """Signs and distances of random points near each hull, in a random pose, against trimesh; the count.

    trimesh measures to its triangles, and says inside by a ray or by the side of the nearest triangle; the
    planes of its triangles in the pose decide the sign here, with the band of 1e-12 that case 94 allows.
    """
    trimesh = pytest.importorskip("trimesh")
    draw = np.random.default_rng(seed)
    checked = 0
    for hull in hulls:
        size = float(hull.table.radius[0])
        turn, center = Rotation.random(random_state=draw), draw.uniform(-3, 3, 3)
        mesh = trimesh.convex.convex_hull(turn.apply(hull.table.vertices) + center)
        assert np.isclose(mesh.volume, hull.volume, rtol=1e-9)
        points = center + draw.uniform(-1.5, 1.5, (per_hull, 3)) * size
        local = turn.inv().apply(points - center)
        rows = found(hull.table, local)
        # Sign: largest plane distance over trimesh's own facets.
        gaps = np.einsum("tc,ntc->nt", mesh.face_normals, points[:, None] - mesh.triangles[None, :, 0])
        deepest = gaps.max(axis=1)
        band = 1e-12 * max(1.0, size)
        decided = np.abs(deepest) > 10 * band
        assert ((rows[:, 0] > 0) == (deepest > 0))[decided].all()
        assert np.allclose(rows[:, 0][deepest < 0], deepest[deepest < 0], rtol=0, atol=10 * band)
        # Distance outside: to the nearest of trimesh's triangles.
        outside = np.flatnonzero(deepest > 0)[:2000]
        if len(outside):
            _, away, _ = trimesh.proximity.closest_point_naive(mesh, points[outside])
            assert np.allclose(rows[outside, 0], away, rtol=1e-9, atol=1e-9 * size)
        checked += per_hull
    return checked


def test_random_points_of_random_hulls() -> None:
    """Case 94, quick: 10^4 points on named shapes and random hulls in random poses, no mismatch."""
    draw = np.random.default_rng(4)
    assert fuzz([*shapes(), *(random_hull(draw) for _ in range(10))], 500, seed=5) >= 10_000


@pytest.mark.nightly
def test_a_million_points_of_random_hulls() -> None:
    """Case 94 in full: 10^6 points, 500 random hulls and poses, no mismatch."""
    draw = np.random.default_rng(6)
    assert fuzz([random_hull(draw) for _ in range(500)], 2000, seed=7) == 1_000_000


def test_closest_point_is_on_the_surface_along_the_normal() -> None:
    """x = p + distance n, p on the surface, n of length 1, for every kind of nearest feature."""
    draw = np.random.default_rng(8)
    for hull in shapes():
        points = draw.uniform(-2, 2, (400, 3))
        rows = found(hull.table, points)
        assert np.allclose(rows[:, 4:] + rows[:, :1] * rows[:, 1:4], points, atol=1e-14)
        assert np.allclose(np.linalg.norm(rows[:, 1:4], axis=1), 1, atol=1e-13)
        assert np.abs(found(hull.table, rows[:, 4:])[:, 0]).max() < 1e-13


def test_mass_properties_are_those_of_the_textbook() -> None:
    """Box m (b^2 + c^2)/12; regular tetrahedron of edge a: a^3/(6 sqrt 2), m a^2/20; wedge's centroid.

    A cylinder of n sides has the cylinder's volume by construction; its inertia about the axis is larger by
    the ratio of the polar moments, [(2 + cos t)/3] [t/sin t], t = 2 pi/n (area A, I = A R^2 (2 + cos t)/6).
    """
    box = BoxShape(size=(1.0, 2.0, 3.0)).hull()
    assert np.isclose(box.volume, 6, rtol=1e-14)
    assert np.allclose(box.inertia, 6 / 12 * np.diag([4 + 9, 1 + 9, 1 + 4]), atol=1e-13)
    tetra = PlatonicShape(shape="tetrahedron", radius=np.sqrt(3 / 8)).hull()  # edge 1
    assert np.isclose(tetra.volume, 1 / (6 * np.sqrt(2)), rtol=1e-13)
    assert np.allclose(tetra.inertia, tetra.volume / 20 * np.eye(3), atol=1e-14)
    wedge = WedgeShape(length=3.0, width=1.0, height=1.5).hull()
    assert np.allclose(wedge.center, [2, 0, 0.5], atol=1e-14)
    t = 2 * np.pi / 16
    tube = CylinderShape(radius=2.0, height=1.0, sides=16).hull()
    assert np.isclose(tube.volume, 4 * np.pi, rtol=1e-13)
    ratio = (2 + np.cos(t)) / 3 * t / np.sin(t)
    assert np.isclose(tube.inertia[2, 2], tube.volume * 4 / 2 * ratio, rtol=1e-13)


def test_volumes_by_counting() -> None:
    """Case 94: the share of 40,000 random points that is inside is within 3 standard errors of the volume.

    With 10 shapes 3 standard errors are passed by chance once in 37 seeds; the seed is fixed.
    """
    draw = np.random.default_rng(9)
    for hull in shapes():
        half = 1.1 * np.abs(hull.table.vertices).max(axis=0)
        points = draw.uniform(-1, 1, (40_000, 3)) * half
        share = hull.volume / (8 * half.prod())
        inside = (found(hull.table, points)[:, 0] < 0).mean()
        assert abs(inside - share) < 3 * np.sqrt(share * (1 - share) / len(points))


def test_platonic_counts() -> None:
    """Faces, edges and corners of the five, so that qhull's triangles were joined to the real faces."""
    counts = [tuple(len(a) for a in (h.table.planes, h.table.edges, h.table.vertices)) for h in shapes()[:5]]
    assert counts == [(4, 6, 4), (8, 12, 6), (6, 12, 8), (12, 30, 20), (20, 30, 12)]


def rounded(name: str, pose: int, draw: np.random.Generator) -> tuple[Array, int]:
    """Corners of a shape turned at random and rounded as files have them, and the faces it must have."""
    turn = 2 * np.pi * np.arange(24) / 24
    ring = np.column_stack([np.cos(turn), np.sin(turn)])
    points, faces = {
        "cube": (0.5 * CUBE, 6),
        "long box": (CUBE * [50.0, 25.0, 10.0], 6),
        "cylinder": (np.vstack([np.column_stack([ring, np.full(24, z)]) for z in (-1.0, 1.0)]), 26),
        # Rings of 12 at 9 latitudes and two poles: 8 x 12 quadrangles that are flat, and two caps.
        "sphere": (
            np.vstack(
                [
                    np.column_stack([np.sin(a) * ring[::2], np.full(12, np.cos(a))])
                    for a in np.pi * np.arange(1, 10) / 10
                ]
                + [[[0, 0, 1]], [[0, 0, -1]]]
            ),
            8 * 12 + 2 * 12,
        ),
    }[name]
    points = Rotation.random(random_state=draw).apply(points)
    return (points.astype(np.float32).astype(float) if pose % 2 else points.round(8)), faces


@pytest.mark.parametrize("name", ["cube", "long box", "cylinder", "sphere"])
def test_rounded_corners_make_the_same_faces(name: str) -> None:
    """Volume and centre are those of qhull's own triangles, whatever the faces are that they make up.

    Corners as float32 (STL) or with 8 decimals: four of a face lie in its plane no more. A face that takes a
    corner from beside it, or its own twice, gives another volume, and not V - E + F = 2.
    """
    draw = np.random.default_rng(12)
    for pose in range(20):
        points, faces = rounded(name, pose, draw)
        hull = hull_of_vertices(points)
        assert np.isclose(hull.volume, ConvexHull(points).volume, rtol=1e-13), pose
        table = hull.table
        assert len(table.planes) == faces
        assert len(table.vertices) - len(table.edges) + faces == 2
        assert (table.vertices @ table.planes[:, :3].T - table.planes[:, 3]).max() < 1e-15 * table.radius[0]


def test_thin_shapes_have_their_volume() -> None:
    """A plate of 1 micrometre and 1 km: l w t. Airfoils of many narrow facets: area times span."""
    plate = PlateShape(length=1000.0, width=1000.0, thickness=1e-6).hull()
    assert np.isclose(plate.volume, 1.0, rtol=1e-13) and len(plate.table.planes) == 6
    for shape in (
        AirfoilShape(points=200),
        AirfoilShape(points=200, thickness=0.02),
        AirfoilShape(points=100, span=100.0),
        AirfoilShape(chord=1e-3, span=100.0, thickness=0.4),
    ):
        hull = shape.hull()
        x, z = hull.table.vertices[hull.table.vertices[:, 1] > 0][:, [0, 2]].T
        turn = np.argsort(np.arctan2(z, x))
        x, z = x[turn], z[turn]
        area = 0.5 * abs((x * np.roll(z, -1) - z * np.roll(x, -1)).sum())
        assert np.isclose(hull.volume, area * shape.span, rtol=1e-11)
        assert len(hull.table.planes) == len(x) + 2


def test_corners_almost_on_top_of_one_another() -> None:
    """Twins 1e-12 apart make slivers whose planes mean nothing; none may cut into the hull."""
    draw = np.random.default_rng(13)
    for _ in range(10):
        points = draw.standard_normal((30, 3))
        points = np.concatenate([points, points + 1e-12 * draw.standard_normal(points.shape)])
        hull = hull_of_vertices(points)
        assert np.isclose(hull.volume, ConvexHull(points).volume, rtol=1e-12)
        assert found(hull.table, points - hull.center)[:, 0].max() < 1e-14


def test_planes_and_corners_make_the_same_polytope() -> None:
    """A hull remade from its own planes, of other lengths, has its volume, centre and inertia."""
    draw = np.random.default_rng(10)
    for _ in range(5):
        first = random_hull(draw)
        planes = first.table.planes * draw.uniform(0.1, 10, (len(first.table.planes), 1))
        planes[:, 3] += planes[:, :3] @ first.center
        again = hull_of_planes(planes)
        assert np.isclose(again.volume, first.volume, rtol=1e-8)
        assert np.allclose(again.center, first.center, atol=1e-8)
        assert np.allclose(again.inertia, first.inertia, atol=1e-7 * np.abs(first.inertia).max())


def test_hulls_end_to_end_answer_as_alone() -> None:
    """Joining changes numbers of planes and corners only: the same distances, bit for bit."""
    draw = np.random.default_rng(11)
    hulls = shapes()
    whole = joined_hulls([hull.table for hull in hulls])
    points = draw.uniform(-2, 2, (200, 3))
    for number, hull in enumerate(hulls):
        assert np.array_equal(found(whole, points, number), found(hull.table, points))
