"""Pictures of signed distances: the surface at any level, coloured, and slices with their zero contour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyvista as pv

from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError
from ecs_fluid.systems.surface.contour import contour
from ecs_fluid.viz.columns import AXES, unknown_name
from ecs_fluid.viz.style import Options

COLOURS = ("plain", "speed", "curvature", "temperature", "error")
TITLES = {
    "speed": "speed [m/s]",
    "curvature": "curvature [1/m]",
    "temperature": "temperature [K]",
    "error": "distance to the exact shape [m]",
    "phi": "signed distance [m]",
}
LINES = 12
"""Contours on each side of zero in a slice."""


class Distances(NamedTuple):
    """Signed distances ``phi`` (px, py, pz) m on a grid, and temperatures there, if any."""

    phi: Array
    origin: Array
    spacing: Array
    T: Array | None = None


def surface_mesh(
    field: Distances,
    level: float = 0.0,
    velocity: Callable[[Array], Array] | None = None,
    exact: Callable[[Array], Array] | None = None,
) -> pv.PolyData:
    """The surface phi = `level` (m) with point arrays normal, curvature (1/m), and what else is known.

    These are speed (m/s) with a `velocity` function, temperature (K) if the field has one, and error (m):
    `exact` (points (n, 3) to distances (n,)) at the vertices minus the level. Lines in a flat world.
    """
    from ecs_fluid.kernels.surface.level_set import geometry, sample

    x, faces = contour(field.phi, field.origin, field.spacing, level)
    if not len(x):
        return pv.PolyData()
    corners = faces.shape[1]
    cells = np.column_stack((np.full(len(faces), corners), faces)).ravel()
    mesh = pv.PolyData(np.asarray(x, np.float64), **{"faces" if corners == 3 else "lines": cells})
    cell = float(np.asarray(field.spacing).max())
    shifted = field.phi - field.phi.dtype.type(level)
    shape = sample(x, field.origin, field.spacing, geometry(shifted, field.spacing, 2 * cell))
    length = np.linalg.norm(shape[:, :3], axis=1, keepdims=True)
    mesh.point_data["Normals"] = shape[:, :3] / np.where(length > 0, length, 1)
    mesh.point_data["curvature"] = shape[:, 3]
    if velocity is not None:
        mesh.point_data["speed"] = np.linalg.norm(velocity(np.asarray(x, np.float64)), axis=1)
    if field.T is not None:
        mesh.point_data["temperature"] = sample(x, field.origin, field.spacing, field.T)
    if exact is not None:
        mesh.point_data["error"] = exact(np.asarray(x, np.float64)) - level
    return mesh


def distance_slice(field: Distances, normal: str = "y", at: float | None = None) -> pv.StructuredGrid:
    """phi on the grid's plane nearest to `at` m along `normal` (its middle if None), as point array phi."""
    if normal not in AXES:
        raise unknown_name("slice normal", normal, AXES)
    axis = AXES[normal]
    n, h = field.phi.shape[axis], float(field.spacing[axis])
    place_at = n // 2 if at is None else round((at - float(field.origin[axis])) / h)
    layer = min(max(place_at, 0), n - 1)
    ranges = [np.arange(count) for count in field.phi.shape]
    ranges[axis] = np.array([layer])
    index = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1)
    x = np.asarray(field.origin, np.float64) + index * np.asarray(field.spacing, np.float64)
    plane = pv.StructuredGrid(x[..., 0], x[..., 1], x[..., 2])
    plane.point_data["phi"] = np.take(field.phi, [layer], axis=axis).ravel(order="F")
    return plane


def render_surface(
    field: Distances,
    *,
    color_by: str | None = None,
    level: float = 0.0,
    velocity: Callable[[Array], Array] | None = None,
    exact: Callable[[Array], Array] | None = None,
    slices: bool = False,
    clip: bool = False,
    time: float | None = None,
    **options: Any,
) -> pv.Plotter:
    """Draw the surface, or with `slices` the plane across `normal` with contours and the zero line.

    `color_by`: plain, speed, curvature, temperature or error (see `surface_mesh`); `clip` cuts the surface
    open at the middle across `normal` and shows the slice there; a flat world always gives the slice. Other
    `options` are those of `style.Options`. Raises FluidError for a level that no point of the grid reaches,
    and for colours whose values are not known.
    """
    from ecs_fluid.viz.surface_scene import SurfaceOptions, SurfaceScene, TimedDistances, survey_surfaces

    timed = TimedDistances(time, field, velocity, exact)
    chosen = SurfaceOptions(slices, color_by, level, clip)
    scene = SurfaceScene(survey_surfaces([timed], chosen), chosen, Options.of(options))
    try:
        scene.show_timed(timed)
    except FluidError:
        scene.close()
        raise
    return scene.plotter
