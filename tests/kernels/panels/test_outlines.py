"""Panels of bodies in a plane, and the potential flow about them, without a world."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from ecs_fluid.kernels.panels.outlines import disk_outline, outline_of, prism_outline, segment_layers
from ecs_fluid.kernels.panels.panel_flow import ring_circulations, ring_factors, sheet_strengths
from ecs_fluid.kernels.panels.panels import Panels
from ecs_fluid.worlds.hulls import Hull, prism_of
from ecs_fluid.worlds.shapes import AirfoilShape, BoxShape, PlatonicShape, PointsShape, WedgeShape

Array = np.ndarray
PLANES = pytest.mark.parametrize("across", [1, 2])


def axes(across: int) -> tuple[int, int]:
    """The axes in the plane, in the order in which they turn about the one across it."""
    return (across + 1) % 3, (across + 2) % 3


def ellipse(a: float, b: float, n: int, across: int) -> Panels:
    """An ellipse of these half axes by n points at equal angles of its parameter."""
    points, phi = np.zeros((n, 3)), 2 * np.pi * (np.arange(n) + 0.5) / n
    first, second = axes(across)
    points[:, first], points[:, second] = a * np.cos(phi), b * np.sin(phi)
    return outline_of(points, across)


def sheet(panels: Panels, wanted: Array) -> Array:
    """Strengths (n, 3) for a velocity along the normals."""
    return sheet_strengths(panels, ring_circulations(panels, ring_factors(panels), wanted))


def test_segment_integrals_against_quadrature() -> None:
    """-int ln(r/L) ds/(2 pi), and the angle over 2 pi, of each side of an ellipse seen from each middle."""
    panels = ellipse(2.0, 1.0, 7, 2)
    single, double = segment_layers(panels)
    size = panels.area.sum()
    for i, x in enumerate(panels.center):
        for j, n in enumerate(panels.normal):
            start, end = panels.vertices[panels.corners[j]]

            def r(s: float, start: Array = start, way: Array = end - start, x: Array = x) -> Array:
                return np.asarray(start + s * way - x)

            middle = [0.5] if i == j else None
            logs = quad(lambda s: np.log(np.linalg.norm(r(s)) / size), 0, 1, points=middle)[0]
            assert single[i, j] == pytest.approx(-panels.area[j] * logs / (2 * np.pi), abs=1e-9)
            slope = quad(lambda s, n=n: -(r(s) @ n) / (r(s) @ r(s)), 0, 1)[0] if i != j else 0.0
            assert double[i, j] == pytest.approx(panels.area[j] * slope / (2 * np.pi), abs=1e-9)
    # Seen from one of its own points, an outline fills half a turn.
    assert double.sum(axis=1) == pytest.approx(np.full(7, -0.5), abs=1e-14)


@PLANES
def test_sheet_of_a_started_disk(across: int) -> None:
    """gamma = 2 U sin(theta), to second order in the segments' length: 0.25 % of U with 100 of them.

    The circulations sum to zero to rounding, and the impulse sum x cross alpha is that of the displaced and
    of the added mass, 2 pi R^2 U (Lamb, Hydrodynamics, article 68).
    """
    first, second = axes(across)
    errors = []
    for n in (100, 200, 400):
        panels = disk_outline(2.0, 4 * np.pi / n, across)
        alpha = sheet(panels, 3.0 * panels.normal[:, first])
        assert panels.volume == pytest.approx(4 * np.pi, rel=1e-14)
        assert np.abs(alpha.sum(axis=0)).max() < 1e-14 * np.abs(alpha).sum()
        assert (np.delete(alpha, across, axis=1) == 0.0).all()
        sine = panels.center[:, second] / np.linalg.norm(panels.center, axis=1)
        errors.append(np.abs(alpha[:, across] / panels.area - 6.0 * sine).max() / 3.0)
        impulse = np.cross(panels.center, alpha).sum(axis=0)
        assert impulse[first] == pytest.approx(2 * np.pi * 4.0 * 3.0, rel=0.5 / n)
    assert errors[0] < 0.0025
    assert np.log2(np.divide(errors[:-1], errors[1:])) == pytest.approx([2.0, 2.0], abs=0.05)


@PLANES
@pytest.mark.parametrize("asked", [8, 9, 25, 26, 51])
def test_a_disk_is_the_same_from_all_ends_of_the_axes(across: int, asked: int) -> None:
    """Its corners are their own images in both axes and after a quarter turn, for any number of sides asked.

    Else the drag of a wind along one axis is not that along the other.
    """
    corners = disk_outline(1.0, 2 * np.pi / asked, across).vertices[:, axes(across)]
    places = corners @ (1.0, 1.0j)
    assert asked <= len(places) < asked + 4
    for images in (places.conj(), -places.conj(), 1j * places):
        assert np.abs(images[:, None] - places).min(axis=1).max() < 1e-13


@PLANES
def test_sheet_of_a_started_ellipse(across: int) -> None:
    """Half axes a, b along and across U: gamma = U (a + b) sin(t)/sqrt(a^2 sin^2(t) + b^2 cos^2(t)).

    t is the parameter of x = a cos(t), y = b sin(t): the slip U (1 + b/a) sin(t) a/(that root) of the flow
    past it. Impulse over U: the displaced pi a b and the added mass pi b^2. When it turns, the added moment
    is pi (a^2 - b^2)^2/8 (Lamb, Hydrodynamics, articles 71 and 114).
    """
    a, b = 2.0, 0.5
    first, _ = axes(across)
    slips, impulses, moments = [], [], []
    for n in (100, 200, 400):
        panels = ellipse(a, b, n, across)
        alpha = sheet(panels, panels.normal[:, first])
        t = 2 * np.pi * (np.arange(n) + 1.0) / n
        exact = (a + b) * np.sin(t) / np.sqrt((a * np.sin(t)) ** 2 + (b * np.cos(t)) ** 2)
        slips.append(np.abs(alpha[:, across] / panels.area - exact).max())
        impulses.append(abs(np.cross(panels.center, alpha).sum(axis=0)[first] / (np.pi * b * (a + b)) - 1))
        wall = np.cross(np.eye(3)[across], panels.center)
        phi = ring_circulations(panels, ring_factors(panels), (wall * panels.normal).sum(axis=1))
        # Of the whole sheet; less the part of the fluid inside, which does not turn as a whole.
        inner = np.pi * a * b * (a**2 + b**2) / 4 * ((a**2 - b**2) / (a**2 + b**2)) ** 2
        g = (wall * panels.normal).sum(axis=1)
        found = abs((phi * g * panels.area).sum()) - inner
        moments.append(abs(found / (np.pi * (a**2 - b**2) ** 2 / 8) - 1))
    for errors in (slips, impulses, moments):
        assert errors[-1] < 0.005
        assert np.log2(errors[0] / errors[-1]) / 2 > 1.5


@PLANES
def test_added_mass_of_a_plate_and_a_square(across: int) -> None:
    """Of rectangles of length 2 a across the flow: 1.51 pi a^2 of a square, 1.14 pi a^2 if a tenth as thick.

    A plate without thickness has pi a^2 (article 71); at 1/200 of its length 1.6 % are left. Source:
    DNV-RP-H103, Modelling and analysis of marine operations (2011), table A-1, three digits.
    """
    first, second = axes(across)

    def added(along: float, thick: float, edge: float) -> float:
        corners = np.zeros((4, 3))
        corners[:, first], corners[:, second] = (
            np.array([-1, 1, 1, -1]) * along / 2,
            np.array([-1, -1, 1, 1]) * thick / 2,
        )
        panels = prism_outline(prism_of(corners, across).table, 0, edge, across)
        alpha = sheet(panels, panels.normal[:, second])
        return float(np.cross(panels.center, alpha).sum(axis=0)[second]) - panels.volume

    for thick, wanted in ((2.0, 1.51), (0.2, 1.14)):
        assert added(2.0, thick, 0.02) / np.pi == pytest.approx(wanted, abs=0.005)
    assert added(2.0, 0.01, 0.02) / np.pi == pytest.approx(1.0, abs=0.02)


def about(hull: Hull, across: int) -> tuple[float, float]:
    """Area, and inertia about the axis across the plane, of an outline by Green's formulas."""
    panels = prism_outline(hull.table, 0, 1e9, across)
    p, q = (panels.vertices[panels.corners[:, k]] for k in (0, 1))
    first, second = axes(across)
    twice = p[:, first] * q[:, second] - q[:, first] * p[:, second]
    return 0.5 * twice.sum(), float((twice * ((p * p) + (p * q) + (q * q)).sum(axis=1)).sum()) / 12


@PLANES
@pytest.mark.parametrize(
    "shape",
    [
        BoxShape(size=(1.0, 2.0, 3.0)),
        WedgeShape(length=2.0, width=0.7),
        PlatonicShape(shape="icosahedron", radius=1e-3),
        AirfoilShape(chord=300.0),
        PlatonicShape(shape="tetrahedron", radius=1.0),
        PointsShape(points=[(0, 0, 0.25), (2, 0, -0.25), (0.3, 1, 0.4), (0.3, 1, -0.4), (0.2, -0.1, -0.2)]),
    ],
)
def test_sections_are_prisms_of_a_metre(shape: BoxShape, across: int) -> None:
    """Area and inertia of a metre of the section; the ends are farther from the middle than a side is.

    The axis across the plane has no part in the sides' normals, and both ends are as far off, exactly.
    """
    hull = shape.section(across)
    table = hull.table
    area, inertia = about(hull, across)
    assert hull.volume == pytest.approx(area, rel=1e-12)
    assert hull.inertia[across, across] == pytest.approx(inertia, rel=1e-9)
    first, second = axes(across)
    flat = hull.inertia[first, first] + hull.inertia[second, second]
    assert flat == pytest.approx(inertia, rel=1e-9)
    along = table.planes[:, across]
    assert (np.sort(np.abs(along))[-2:] == 1.0).all() and (np.sort(np.abs(along))[:-2] == 0.0).all()
    half = np.abs(table.vertices[:, across])
    assert (half == half[0]).all() and table.inner[0] < 0.9 * half[0]


def test_points_in_the_plane_are_an_outline() -> None:
    """A triangle, which has no volume in space; its centroid is its corners' mean."""
    corners = [(0.0, 0.0, 0.0), (3.0, 0.0, 0.0), (0.0, 3.0, 0.0)]
    hull = PointsShape(points=corners).section(2)
    assert hull.volume == pytest.approx(4.5, rel=1e-14) and hull.center == pytest.approx([1.0, 1.0, 0.0])
    panels = prism_outline(hull.table, 0, 0.5, 2)
    assert len(panels.area) == 6 + 6 + 9 and panels.area.max() <= 0.5
    assert (panels.normal * panels.center).sum(axis=1).min() > 0.0
    assert np.abs((panels.area[:, None] * panels.normal).sum(axis=0)).max() < 1e-14
