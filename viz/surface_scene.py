"""Pictures and movies of signed distances: one scene that keeps its camera, colours and actors while the
surface changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyvista as pv

from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError
from ecs_fluid.viz.camera import VIEW_ANGLE, corners, facing_axis, flattened
from ecs_fluid.viz.camera_motion import Aim
from ecs_fluid.viz.canvas import Canvas
from ecs_fluid.viz.columns import AXES, unknown_name
from ecs_fluid.viz.layers import GlossyMesh, PlainMesh, Surface
from ecs_fluid.viz.shared_limits import evenly, is_signed, limits
from ecs_fluid.viz.style import Options
from ecs_fluid.viz.surfaces import COLOURS, LINES, TITLES, Distances, distance_slice, surface_mesh

SAMPLES = 16  # frames of a long run that a survey reads
ORDER = ("surface", "coloured", "plane", "lines", "zero")
"""Drawing order: lines lie in the plane and must not be hidden by it."""

FLOW_POINTS = 1000  # points of a surface at which a survey evaluates the speed


class TimedDistances(NamedTuple):
    """Signed distances at one time."""

    time: float | None
    """s; None shows no clock"""
    field: Distances | None
    """the distances; None if there is no liquid"""
    velocity: Callable[[Array], Array] | None = None
    """velocity (n, 3) m/s of the flow at points (n, 3) m"""
    exact: Callable[[Array], Array] | None = None
    """distances (n,) m of the exact shape at points (n, 3) m, where it is known"""


@dataclass(frozen=True)
class SurfaceOptions:
    """What is drawn of the distances.

    Either the surface at the distance `level` m, coloured by `color_by` and with `clip` cut open along a
    plane; or with `slices` that plane alone. `Options` holds the plane's normal, and all other options.
    """

    slices: bool = False
    color_by: str | None = None
    level: float = 0.0
    clip: bool = False

    def __post_init__(self) -> None:
        if (self.color_by or "plain") not in COLOURS:
            raise unknown_name("colour of a surface", str(self.color_by), COLOURS)


@dataclass(frozen=True)
class SurfaceView:
    """What all frames share."""

    lo: Array
    """(3,) m, lower corner of the box to show"""
    hi: Array
    """(3,) m, upper corner"""
    points: Array
    """(n, 3) m, points of the surface in the box"""
    limits: tuple[float, float]
    """range of the colours"""
    most: float
    """largest distance from the surface, inside or outside, m"""
    flat: str | None = None
    """the axis across a flat world"""
    last: float = 0.0
    """s, time of the last frame"""


def survey_surfaces(frames: Iterable[TimedDistances], chosen: SurfaceOptions) -> SurfaceView:
    """Look through the frames (some 16 of them, evenly, if they are a sequence) and fix what they share.

    Colours end at the 2nd and the 98th percentile, taken over the frames; speeds begin at 0, and signed
    values are symmetric.
    Raises FluidError if none of the frames has a surface at the level, or the colour asked for.
    """
    points: list[Array] = []
    values: list[Array] = []
    most, flat, last = 0.0, None, 0.0
    reached = (np.inf, -np.inf)
    for time, field, velocity, exact in evenly(frames, SAMPLES):
        last = max(last, time or 0.0)
        if field is None:
            continue
        least, largest = float(field.phi.min()), float(field.phi.max())
        reached = min(reached[0], least), max(reached[1], largest)
        most, flat = max(most, abs(least), abs(largest)), flat or flat_axis(field)
        if chosen.slices or flat:
            low = np.asarray(field.origin, np.float64)
            high = low + (np.array(field.phi.shape) - 1) * np.asarray(field.spacing, np.float64)
            points.append(np.stack((low, high)))
            continue
        if least < chosen.level < largest:
            mesh = surface_mesh(field, chosen.level, None, exact)
            x = np.asarray(mesh.points, np.float64)
            points.append(x[:: -(-len(x) // 2000)])
            values.append(_values(chosen.color_by, mesh, x, velocity))
    if not points:
        if reached[0] > reached[1]:
            raise FluidError("there is nothing to draw: none of these frames has a signed distance")
        raise FluidError(
            f"there is no surface at the level {chosen.level:g} m; the distances here run from "
            f"{reached[0]:.3g} m to {reached[1]:.3g} m"
        )
    every = np.concatenate(points)
    span = _limits(chosen.color_by, values)
    return SurfaceView(every.min(axis=0), every.max(axis=0), every, span, most, flat, last)


def flat_axis(field: Distances) -> str | None:
    """The axis across a flat world; None in space."""
    return next((name for name, axis in AXES.items() if field.phi.shape[axis] == 1), None)


def _values(
    colour: str | None, mesh: pv.PolyData, x: Array, velocity: Callable[[Array], Array] | None
) -> Array:
    """Values of the colour at points of a surface (the speed: at a sample of them); none for a plain one."""
    if colour == "speed" and velocity is not None:
        return np.asarray(np.linalg.norm(velocity(x[:: -(-len(x) // FLOW_POINTS)]), axis=1))
    return known(colour, mesh) if colour not in (None, "plain", "speed") else np.zeros(0)


def known(colour: str | None, mesh: pv.PolyData) -> Array:
    """The point array of that colour. Raises FluidError if the surface has none."""
    if colour not in mesh.point_data:
        names = [name for name in COLOURS if name == "plain" or name in mesh.point_data]
        raise FluidError(f"this surface has no {colour!r}; {', '.join(names)} can be drawn")
    return np.asarray(mesh.point_data[colour])


def _limits(colour: str | None, values: Sequence[Array]) -> tuple[float, float]:
    ends = [np.percentile(part, [2, 98]) for part in values if len(part)]
    if not ends:
        return 0.0, 1.0
    return limits(colour, float(min(end[0] for end in ends)), float(max(end[1] for end in ends)))


class SurfaceScene(Canvas):
    """One plotter for any number of frames that share a `SurfaceView`."""

    def __init__(self, view: SurfaceView, chosen: SurfaceOptions, options: Options) -> None:
        super().__init__(options)
        self.view, self.chosen = view, chosen
        self.plotter.enable_anti_aliasing("ssaa" if options.off_screen else "msaa")
        self._sliced = chosen.slices or view.flat is not None
        self._normal = view.flat or options.normal
        self._barred = "phi" if self._sliced else chosen.color_by or "plain"
        self._aim = self._aimed()
        if self._sliced or chosen.clip:
            self._tables["phi"] = self._table_of((-view.most, view.most), True)
        if self._barred not in ("plain", "phi"):
            self._tables[self._barred] = self._table_of(view.limits, is_signed(*view.limits))
        if self._barred != "plain":
            span = (-view.most, view.most) if self._sliced else view.limits
            self._bars.add(self._barred, TITLES[self._barred], self._tables[self._barred], span)

    def show_timed(self, timed: TimedDistances, played: float = 0.0) -> None:
        """Make the scene show these distances; without any, it is empty but for its clock."""
        time, field, velocity, exact = timed
        for layer in self._layers.values():
            layer.actor.VisibilityOff()
        if field is not None and self._sliced:
            self._slice(field)
        elif field is not None:
            self._surface(field, velocity, exact)
        self.plotter.camera_position = self._aim.at(time, played)
        self.plotter.camera.view_angle = VIEW_ANGLE
        if time is not None:
            self._clock.show(time, self.view.last)
        self.plotter.renderer.ResetCameraClippingRange()

    def _surface(
        self,
        field: Distances,
        velocity: Callable[[Array], Array] | None,
        exact: Callable[[Array], Array] | None,
    ) -> None:
        colour, level = self.chosen.color_by or "plain", self.chosen.level
        if not field.phi.min() < level < field.phi.max():
            return
        mesh = surface_mesh(field, level, velocity if colour == "speed" else None, exact)
        if self.chosen.clip:
            # The cut stays where it is while the surface moves.
            centre = (0.5 * (self.view.lo + self.view.hi)).tolist()
            plane = distance_slice(field, self.options.normal, centre[AXES[self.options.normal]])
            inside = plane.clip_scalar(scalars="phi", value=level)
            self._plane(inside.extract_surface(algorithm="dataset_surface"))
            mesh = mesh.clip(normal=self.options.normal, origin=centre, invert=False)
            if not mesh.n_points:
                return
        mesh.point_data.active_normals_name = "Normals"  # so that triangles do not show
        if colour == "plain":
            self._layer("surface", lambda: GlossyMesh(self.look.water)).update(mesh)
        else:
            layer = self._layer("coloured", lambda: Surface(self._tables[colour], lit=True))
            layer.update(mesh, known(colour, mesh))

    def _slice(self, field: Distances) -> None:
        centre = 0.5 * (self.view.lo + self.view.hi)
        plane = distance_slice(field, self._normal, float(centre[AXES[self._normal]]))
        self._plane(plane.extract_surface(algorithm="dataset_surface"))
        most = self.view.most
        lines = plane.contour([k * most / LINES for k in range(-LINES, LINES + 1) if k], scalars="phi")
        if lines.n_points:
            self._layer("lines", lambda: PlainMesh((0.19, 0.2, 0.24), 1.0)).show(lines)
        zero = plane.contour([self.chosen.level], scalars="phi")
        if zero.n_points:
            self._layer("zero", lambda: PlainMesh((0.0, 0.0, 0.0), 5.0)).show(zero)

    def _plane(self, plane: pv.PolyData) -> None:
        if plane.n_points:
            layer = self._layer("plane", lambda: Surface(self._tables["phi"], lit=False))
            layer.update(plane, plane.point_data["phi"])

    def _order(self, key: str) -> Any:
        return ORDER.index(key)

    def _aimed(self) -> Aim:
        view, options = self.view, self.options
        lo, hi, camera, points = view.lo, view.hi, options.camera, view.points
        if self._sliced:
            axis = AXES[self._normal]
            lo, hi = flattened(lo, hi, axis, 0.5 * float(lo[axis] + hi[axis]))
            points = corners(lo, hi)
            if camera == "auto":
                camera = facing_axis(self._normal, options.up)
        aspect = self._reserved(self._barred != "plain")
        return Aim(camera, options.orbit, lo, hi, aspect, points, options.up)
