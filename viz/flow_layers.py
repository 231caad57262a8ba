"""Slices through the flow and streamlines, in colours of one range for all frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyvista as pv
from numpy.typing import NDArray

from ecs_fluid.exports.bodies import Placed
from ecs_fluid.viz.bodies import fluid_within
from ecs_fluid.viz.columns import AXES, FIELDS, PRESSURE, unknown_name
from ecs_fluid.viz.fields import Velocity, field_slice, streamlines, velocity_slice
from ecs_fluid.viz.shared_limits import TimedFrame, evenly, limits

if TYPE_CHECKING:
    from ecs_fluid.viz.scene import Scene

FLOWS = 8
"""Frames of a movie by which the colours of its slices or streamlines are chosen."""

SLICE_COLOURS = ("speed", "vorticity_normal", "u.x", "u.y", "u.z")


class FlowLayers:
    """The slice or the streamlines of a scene, and the range of their colours."""

    def __init__(self, span: tuple[float, float] | None) -> None:
        self.range = span
        """Range of the colours; None until the first frame is drawn, which then sets it"""
        self._of_frame: tuple[float, float] | None = None
        """Least and largest value of the frame that set it"""

    def show_slice(self, scene: Scene, velocity: Velocity, bodies: Sequence[Placed]) -> None:
        """Draw a plane through the flow, or through a field that it carries."""
        options = scene.options
        colour, field = options.color_by or "speed", getattr(velocity, "field", None)
        where = scene.box(0.15), options.normal, options.origin, options.resolution
        if colour in (*FIELDS, PRESSURE) and field is not None:
            plane = field_slice(partial(field, colour), colour, *where)
        elif colour in SLICE_COLOURS:
            plane = velocity_slice(velocity, *where)
        else:
            raise unknown_name("colour of a slice", colour, (*SLICE_COLOURS, PRESSURE, *FIELDS))
        # In a container, only the part inside it; bodies are drawn over the part inside them.
        room = fluid_within([body for body in bodies if body.container])
        flowing = getattr(velocity, "within", None) if colour in (*SLICE_COLOURS, PRESSURE) else None
        for within in (room, flowing):
            if within is not None:
                plane = plane.extract_points(within(np.asarray(plane.points)), adjacent_cells=False)
                if not plane.n_points:
                    return
        mesh = plane.extract_surface(algorithm="dataset_surface")  # which may reorder the points
        if colour.startswith("u."):
            values = mesh.point_data["u"][:, AXES[colour[2:]]]
        else:
            values = mesh.point_data[colour]
        scene.surface_layer("slice", self._colours(scene, colour, values), False).update(mesh, values)

    def show_streamlines(self, scene: Scene, velocity: Velocity, bodies: Sequence[Placed]) -> None:
        """Draw streamlines as tubes, coloured by speed."""
        options, view, box = scene.options, scene.view, scene.box(0.35)
        if options.color_by not in (None, "speed"):
            raise unknown_name("colour of streamlines", str(options.color_by), ("speed",))
        places = [one for one in (fluid_within(bodies), getattr(velocity, "within", None)) if one is not None]
        within = (lambda x: np.logical_and.reduce([one(x) for one in places])) if places else None
        lines = streamlines(velocity, box, options.seeds, within=within)
        if not lines.n_points:
            return
        speed = lines.point_data["speed"]
        size = np.linalg.norm(view.hi - view.lo) or np.linalg.norm(np.ptp(box, axis=0))
        tubes = lines.tube(radius=0.0016 * float(size), n_sides=8)
        layer = scene.surface_layer("streamlines", self._colours(scene, "speed", speed), True)
        layer.update(tubes, tubes.point_data["speed"])

    def _colours(self, scene: Scene, colour: str, values: NDArray) -> pv.LookupTable:
        """The colour table, whose range the values of the first frame set.

        For carried quantities it is the whole range, since a flame is a small part of a slice; for
        velocities, which have spikes, it leaves out a hundredth of the values.
        """
        if self.range is None:
            lo, hi = np.percentile(values, [0, 100] if colour in FIELDS else [0.5, 99.5])
            self._of_frame = float(lo), float(hi)
            self.range = limits(colour, *self._of_frame)
        return scene.colours(colour, self.range)

    def range_of(self, scene: Scene, frames: Iterable[TimedFrame]) -> tuple[float, float] | None:
        """Range of the colours for frames (`FLOWS` of a sequence), which the scene draws; None for none."""
        spans = list[tuple[float, float]]()
        for timed in evenly(frames, FLOWS):
            self.range = self._of_frame = None
            scene.show_timed(timed, 0.0)
            spans += [] if self._of_frame is None else [self._of_frame]
        if not spans:
            return None
        return limits(scene.options.color_by or "speed", min(spans)[0], max(high for _, high in spans))
