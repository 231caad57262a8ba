"""Cameras: named directions, and the distance at which a box just fills the picture."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.errors import FluidError
from ecs_fluid.upward import axis_vector, turn
from ecs_fluid.viz.columns import unknown_name
from ecs_fluid.world_options import WorldOptions

Vector = NDArray[np.float64]
Triple = tuple[float, float, float]
Placement = tuple[Triple, Triple, Triple]
Camera = str | Sequence[Sequence[float]]

SIZE = (1280, 720)
"""Width and height of pictures and windows, in pixels, by default."""
VIEW_ANGLE = 28.0  # degrees, vertical: a mild perspective, far particles still look near their true size
ROOM = (1.12, 1.2)  # left around what is seen, across and upwards: the clock needs some

# name: (from the scene towards the camera, up), where z is up
NAMED: dict[str, tuple[Triple, Triple]] = {
    "auto": ((0.55, -0.78, 0.55), (0.0, 0.0, 1.0)),
    "front": ((0.0, -1.0, 0.0), (0.0, 0.0, 1.0)),
    "back": ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "left": ((-1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "right": ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "top": ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0)),
    "bottom": ((0.0, 0.0, -1.0), (0.0, 1.0, 0.0)),
}
SIDES = ("x", "-x", "y", "-y", "z", "-z")


@cache
def cameras(up: str) -> dict[str, tuple[Vector, Vector]]:
    """From the scene towards each camera by its name, and what is up for it, where the axis `up` is.

    `front`, `top` and the like turn with the scene; x, -x, ... are the sides on which the camera stands.
    """
    matrix = turn("z", up)
    named = {
        name: (matrix @ np.array(towards), matrix @ np.array(hint)) for name, (towards, hint) in NAMED.items()
    }
    by_side = {tuple(towards): (towards, hint) for towards, hint in named.values()}
    return named | {side: by_side[tuple(axis_vector(side))] for side in SIDES}


def facing_axis(axis: str, up: str) -> str:
    """The camera in front, on the right or above that looks along an axis."""
    return next(name for name in ("right", "front", "top") if cameras(up)[name][0]["xyz".index(axis)])


def check_camera(camera: Camera) -> None:
    """Raise FluidError unless `camera` is a known name or (position, focal point, up)."""
    if isinstance(camera, str):
        if camera not in cameras("z"):
            raise unknown_name("camera", camera, cameras("z"))
        return
    try:
        values: Vector = np.asarray(camera, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (3, 3) or not np.isfinite(values).all():
        raise FluidError(
            f"camera {camera!r} is neither a name ({', '.join(cameras('z'))}) nor "
            "three points (position, focal point, up)"
        )
    if not np.linalg.norm(np.cross(values[1] - values[0], values[2])) > 0.0:
        raise FluidError(f"camera {camera!r} looks along its own up direction, or nowhere")


def facing(lo: Vector, hi: Vector, camera: str, up: str) -> str:
    """The camera; `auto` becomes one that looks down a thin axis of the box, if there is one."""
    extent = hi - lo
    thin = camera == "auto" and extent.min() < 0.02 * extent.max()
    return facing_axis("xyz"[int(extent.argmin())], up) if thin else camera


def of_world(world: WorldOptions, up: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a picture of that world: with its periods, the axis that is up in it, and for flow in a
    plane with slices in the plane.

    By default the camera looks straight at a plane, since bodies reach across it.
    """
    found = {**options, "periods": world.periodic, "up": up}
    if world.across is not None:
        found["normal"] = "xyz"[world.across]
        if found.get("camera", "auto") == "auto":
            found["camera"] = facing_axis(found["normal"], up)
    return found


def corners(lo: Vector, hi: Vector) -> Vector:
    """Corners (8, 3) m of a box."""
    return np.array(list(itertools.product(*zip(lo, hi, strict=True))))


def flattened(lo: Vector, hi: Vector, axis: int, at: float) -> tuple[Vector, Vector]:
    """The box without its extent along an axis, at `at` m of it: a slice needs no room before and behind."""
    middle = np.where(np.arange(3) == axis, at, 0.5 * (lo + hi))
    half = np.where(np.arange(3) == axis, 0.0, 0.5 * (hi - lo))
    return middle - half, middle + half


def place(
    camera: Camera, lo: Vector, hi: Vector, aspect: float, points: Vector | None = None, up: str = "z"
) -> Placement:
    """Position, focal point and up of the camera, for a box from `lo` to `hi` (3,) m.

    A named camera stands at the smallest distance at which all `points` (n, 3) m, the box's corners
    by default, are inside the picture, see `_fitted`.
    `auto` looks down a thin axis, if the box has one, and else from the right, in front and above.
    """
    check_camera(camera)
    if not isinstance(camera, str):
        return placement(*camera)
    extent = hi - lo
    axes, up_hint = _axes(facing(lo, hi, camera, up), up)
    centre = 0.5 * (lo + hi)
    if points is None or not len(points) or not extent.max() > 0.0:
        half = max(0.5 * float(extent.max()), 1e-6) * np.maximum(extent / max(extent.max(), 1e-300), 0.05)
        points = centre + half * corners(-np.ones(3), np.ones(3))
    eye, target = _fitted((points - centre) @ axes.T, aspect)
    return placement(centre + eye @ axes, centre + target @ axes, up_hint)


def turning(camera: str, lo: Vector, hi: Vector, aspect: float, points: Vector, up: str = "z") -> Placement:
    """A named camera from which `points` (n, 3) m stay in the picture while it turns about the vertical.

    The vertical goes through the middle of the box from `lo` to `hi` (3,) m. Turning the camera is the same
    as turning the points the other way, so the camera must see the points turned by all of 24 angles; the
    middle then stays fixed in the picture.
    """
    check_camera(camera)
    axes, up_hint = _axes(camera, up)
    centre = 0.5 * (lo + hi)
    some = points[:: -(-len(points) // 5000)] - centre
    level = some @ turn("z", up)  # in axes whose third is up
    reach = np.hypot(level[:, 0], level[:, 1])
    angles = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    ring = np.stack([np.outer(np.cos(angles), reach), np.outer(np.sin(angles), reach)], axis=-1)
    height = np.broadcast_to(level[:, 2], ring.shape[:2])[..., None]
    swept = np.concatenate((ring, height), axis=-1).reshape(-1, 3)
    eye, target = _fitted(swept @ turn(up, "z") @ axes.T, aspect)
    eye[0] = target[0] = 0.0  # the axis stays in the middle
    eye[2] = max(eye[2], 1e-3)
    return placement(centre + eye @ axes, centre + target @ axes, up_hint)


def _axes(camera: str, up: str) -> tuple[Vector, Vector]:
    """Unit vectors (3, 3) to the right, upwards and towards a named camera, and its own up direction."""
    towards, up_hint = cameras(up)[camera]
    towards = towards / np.linalg.norm(towards)
    right = np.cross(up_hint, towards)
    right /= np.linalg.norm(right)
    return np.stack((right, np.cross(towards, right), towards)), up_hint


def _fitted(points: Vector, aspect: float) -> tuple[Vector, Vector]:
    """Nearest position (and focal point) that sees all points, in axes right, up and towards the camera.

    A camera at (x, y, z) sees a point at (a, b, c) if |a - x| <= (z - c) tan_h and |b - y| <= (z - c) tan_v.
    So z tan_h >= max(a + c tan_h) - x and z tan_h >= x - min(a - c tan_h): the best x balances the two, and
    so does the best y.
    """
    place_of = np.zeros(3)
    tan_v = math.tan(math.radians(0.5 * VIEW_ANGLE))
    for axis, tangent in ((0, tan_v * aspect / ROOM[0]), (1, tan_v / ROOM[1])):
        most = float((points[:, axis] + points[:, 2] * tangent).max())
        least = float((points[:, axis] - points[:, 2] * tangent).min())
        place_of[axis] = 0.5 * (most + least)
        place_of[2] = max(place_of[2], 0.5 * (most - least) / tangent)
    focal = np.array([place_of[0], place_of[1], min(0.0, place_of[2] - 1e-6)])
    return place_of, focal


def placement(position: Iterable[float], focal: Iterable[float], up: Iterable[float]) -> Placement:
    """A camera's position, focal point (m) and up, from sequences of three numbers."""
    x, y, z = ((float(a), float(b), float(c)) for a, b, c in (position, focal, up))
    return x, y, z
