"""Pictures of signed distances: the surface at any level, coloured, and slices with their zero contour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyvista as pv
from matplotlib import colormaps
from matplotlib.colors import ListedColormap

from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError
from ecs_fluid.systems.contour import contour
from ecs_fluid.viz.camera import FACING, VIEW_ANGLE, Camera, place
from ecs_fluid.viz.columns import AXES, choose
from ecs_fluid.viz.labels import Clock, bar_style, bar_title
from ecs_fluid.viz.look import LOOKS, Look
from ecs_fluid.viz.probe import require_gl

COLOURS = ("plain", "speed", "curvature", "temperature", "error")
TITLES = {
    "speed": "speed [m/s]",
    "curvature": "curvature [1/m]",
    "temperature": "temperature [K]",
    "error": "distance to the exact shape [m]",
    "phi": "signed distance [m]",
}
WATER = (0.24, 0.52, 0.82)
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
    from ecs_fluid.kernels.level_set import geometry, sample

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
        raise choose("slice normal", normal, AXES)
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
    normal: str = "y",
    camera: Camera = "auto",
    look: str = "smoke",
    size: Sequence[int] = (1280, 720),
    time: float | None = None,
    off_screen: bool = True,
) -> pv.Plotter:
    """Draw the surface, or with `slices` the plane across `normal` with contours and the zero line.

    `color_by`: plain, speed, curvature, temperature or error (see `surface_mesh`); `clip` cuts the surface
    open at the middle across `normal` and shows the slice there; a flat world always gives the slice. Raises
    FluidError for a level that no point of the grid reaches, and for colours whose values are not known.
    """
    require_gl()
    if look not in LOOKS:
        raise choose("look", look, LOOKS)
    colour = color_by or "plain"
    if colour not in COLOURS:
        raise choose("colour of a surface", colour, COLOURS)
    chosen = LOOKS[look]
    flat = [name for name, axis in AXES.items() if field.phi.shape[axis] == 1]
    normal = flat[0] if flat else normal
    mesh = surface_mesh(field, level, velocity, exact)
    if not slices and not field.phi.min() < level < field.phi.max():
        raise FluidError(
            f"there is no surface at the level {level:g} m; the distances of this frame run from "
            f"{float(field.phi.min()):.3g} m to {float(field.phi.max()):.3g} m"
        )
    plotter = pv.Plotter(off_screen=off_screen, window_size=[int(n) for n in size], lighting="light kit")
    plotter.set_background(chosen.background, top=chosen.background_top)
    plotter.enable_anti_aliasing("ssaa" if off_screen else "msaa")
    if slices or flat:
        shown = _draw_slice(plotter, field, normal, level, chosen)
    else:
        if clip:
            centre = list(mesh.center)
            plane = distance_slice(field, normal, centre[AXES[normal]])
            mesh = mesh.clip(normal=normal, origin=centre, invert=False)
            _draw_plane(plotter, plane.clip_scalar(scalars="phi", value=level), chosen, False)
        shown = mesh
        _draw_mesh(plotter, mesh, colour, chosen)
    low, high = np.array(shown.bounds).reshape(3, 2).T
    if slices or flat:
        # Room for the scalar bar below.
        low, high = low - 0.12 * (high - low), high + 0.02 * (high - low)
    if camera == "auto" and (slices or flat):
        camera = FACING[normal]
    corners = np.array(np.meshgrid(*np.stack((low, high), axis=1))).reshape(3, -1).T
    plotter.camera_position = place(camera, low, high, size[0] / size[1], corners)
    plotter.camera.view_angle = VIEW_ANGLE
    if time is not None:
        Clock(plotter, chosen).tell(time)
    return plotter


def _bar(plotter: pv.Plotter, look: Look, title: str) -> dict[str, Any]:
    return bar_style(plotter, look) | {"title": bar_title(title), "fmt": "{0:.3g}"}


def _draw_mesh(plotter: pv.Plotter, mesh: pv.PolyData, colour: str, look: Look) -> None:
    material: dict[str, Any] = {
        "interpolation": "Phong", "ambient": 0.25, "diffuse": 0.8, "specular": 0.4, "specular_power": 30,
    }  # fmt: skip
    # Light follows the normals of the distance, so that triangles do not show.
    mesh.point_data.active_normals_name = "Normals"
    if colour == "plain":
        plotter.add_mesh(mesh, color=WATER, **material)
        return
    if colour not in mesh.point_data:
        known = [name for name in COLOURS if name == "plain" or name in mesh.point_data]
        raise FluidError(f"nothing is known of {colour!r} on this surface; {', '.join(known)} can be drawn")
    values = mesh.point_data[colour]
    low, high = (float(v) for v in np.percentile(values, [2, 98]))
    signed = colour in ("curvature", "error") and low < 0 < high
    if signed:
        low, high = -max(-low, high), max(-low, high)
    high = high if high > low else low + max(abs(low), 1e-12) * 1e-3
    table = look.signed_colours if signed else look.colours
    part = (0.0, 1.0) if signed else look.part
    cmap = ListedColormap(colormaps[table](np.linspace(*part, 256)))
    plotter.add_mesh(
        mesh,
        scalars=colour,
        cmap=cmap,
        clim=(low, high),
        scalar_bar_args=_bar(plotter, look, TITLES[colour]),
        **material,
    )


def _draw_slice(
    plotter: pv.Plotter, field: Distances, normal: str, level: float, look: Look
) -> pv.StructuredGrid:
    plane = distance_slice(field, normal)
    _draw_plane(plotter, plane, look, True)
    most = float(np.abs(field.phi).max())
    lines = plane.contour([k * most / LINES for k in range(-LINES, LINES + 1) if k], scalars="phi")
    if lines.n_points:
        plotter.add_mesh(lines, color="#30343c", line_width=1.0, lighting=False)
    zero = plane.contour([level], scalars="phi")
    if zero.n_points:
        plotter.add_mesh(zero, color="black", line_width=5.0, lighting=False)
    return plane


def _draw_plane(plotter: pv.Plotter, plane: pv.DataSet, look: Look, bar: bool) -> None:
    if not plane.n_points:
        return
    most = float(np.abs(plane.point_data["phi"]).max()) or 1.0
    plotter.add_mesh(
        plane, scalars="phi", cmap=look.signed_colours, clim=(-most, most), lighting=False,
        show_scalar_bar=bar, scalar_bar_args=_bar(plotter, look, TITLES["phi"]) if bar else None,
    )  # fmt: skip
