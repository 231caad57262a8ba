"""Where the camera is at every moment of a movie: still, on a path, or turning about the scene."""

from __future__ import annotations

import math

import numpy as np

from ecs_fluid.upward import turn
from ecs_fluid.viz.camera import Camera, Placement, Vector, corners, place, placement, turning
from ecs_fluid.viz.camera_path import CameraPath


class Aim:
    """The camera of pictures of a box from `lo` to `hi` (3,) m, or of `points` (n, 3) m in it.

    `orbit` degrees per second of the movie turn it about the axis `up`, counterclockwise seen from above:
    about the middle of the box, at a distance from which all of it is seen all the way round, or about the
    focal point of a camera that is given by points or by a path.
    """

    def __init__(
        self,
        camera: Camera | CameraPath,
        orbit: float,
        lo: Vector,
        hi: Vector,
        aspect: float,
        points: Vector | None = None,
        up: str = "z",
    ) -> None:
        self._orbit, self._up = orbit, up
        self._path = camera if isinstance(camera, CameraPath) else None
        self._axis: Vector | None = None
        if isinstance(camera, CameraPath):
            self._still = camera.at(0.0, 0.0)
        elif orbit and isinstance(camera, str):
            around = points if points is not None and len(points) else corners(lo, hi)
            self._still = turning(camera, lo, hi, aspect, around, up)
            self._axis = 0.5 * (lo + hi)
        else:
            self._still = place(camera, lo, hi, aspect, points, up)

    def at(self, time: float | None, played: float) -> Placement:
        """Position, focal point and up at the simulated `time` s, `played` s after the movie began."""
        where = self._still if self._path is None else self._path.at(time or 0.0, played)
        if not self._orbit:
            return where
        angle = math.radians(self._orbit) * played
        about_z = np.array(
            [[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1]]
        )
        turned = turn("z", self._up) @ about_z @ turn(self._up, "z")
        position, focal, up = (np.array(part) for part in where)
        axis = focal if self._axis is None else self._axis
        return placement(axis + turned @ (position - axis), axis + turned @ (focal - axis), turned @ up)
