"""Camera paths: places of the camera at given times, and smooth ways between them."""

from __future__ import annotations

import math
import os
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from ecs_fluid.errors import FluidError
from ecs_fluid.keyframes import smooth_slopes, smooth_values
from ecs_fluid.settings import Settings
from ecs_fluid.validation_errors import validated
from ecs_fluid.viz.camera import Placement, Triple, placement
from ecs_fluid.world_files import tables_in

LARGEST = 1_000_000  # bytes of a camera file: 10,000 keys


class CameraKey(Settings):
    """Where the camera is at one time."""

    time: float
    """time of the key, s"""
    position: Triple
    """place of the camera, m"""
    focal: Triple
    """point it looks at, in the middle of the picture, m"""
    up: Triple = (0.0, 0.0, 1.0)
    """direction that is upwards in the picture"""

    @model_validator(mode="after")
    def _sees(self) -> CameraKey:
        if not _sees(np.array(self.position), np.array(self.focal), np.array(self.up)):
            raise ValueError("the camera would look along its own up direction, or nowhere")
        return self


class CameraPath(Settings):
    """Keys in time, and how the camera goes from one to the next.

    `smooth`: cubic in time, at rest at the first and the last key (`keyframes.smooth_slopes`). `linear`:
    straight lines at even speed. Before the first key and after the last the camera stays. `clock`: key times
    are those of the simulation, as written into the pictures, or seconds of the movie.
    """

    key: tuple[CameraKey, ...] = Field(min_length=1)
    """keys in order of time"""
    between: Literal["smooth", "linear"] = "smooth"
    """way from key to key"""
    clock: Literal["simulation", "movie"] = "simulation"
    """which time the keys mean"""

    @model_validator(mode="after")
    def _keys_are_valid(self) -> CameraPath:
        times = [key.time for key in self.key]
        for number, (before, after) in enumerate(pairwise(times), start=2):
            if after <= before:
                raise ValueError(
                    f"key {number} is at {after:g} s; it must be after the key before it, at {before:g} s"
                )
        for before, after in pairwise(times):
            for share in np.linspace(0.0, 1.0, 17):
                time = before + share * (after - before)
                if not _sees(*(np.array(point) for point in self._placed(time))):
                    raise ValueError(
                        f"at {time:.4g} s, between two keys, the camera would look along its own up "
                        "direction, or nowhere; put another key there"
                    )
        return self

    def at(self, time: float, played: float) -> Placement:
        """Position, focal point (m) and up at the simulated `time` s, `played` s after the movie began."""
        return self._placed(played if self.clock == "movie" else time)

    def _placed(self, time: float) -> Placement:
        times = np.array([key.time for key in self.key])
        values = np.array([(key.position, key.focal, key.up) for key in self.key])
        if self.between == "linear" or len(times) == 1:
            found = np.array([np.interp(time, times, column) for column in values.reshape(-1, 9).T])
        else:
            found = smooth_values(times, values, smooth_slopes(times, values), time)
        return placement(*found.reshape(3, 3))


def _sees(position: np.ndarray, focal: np.ndarray, up: np.ndarray) -> bool:
    view = focal - position
    across = float(np.linalg.norm(np.cross(view, up)))
    return math.isfinite(across) and across > 1e-6 * float(np.linalg.norm(view) * np.linalg.norm(up))


def read_camera(path: str | os.PathLike[str]) -> CameraPath:
    """The camera path of a TOML file with tables ``[[key]]``: time, position, focal and, if not z, up.

    Raises FluidError, one sentence with file, key and value, for a file that is missing or wrong.
    """
    place = Path(path)
    try:
        if place.stat().st_size > LARGEST:
            raise FluidError(
                f"camera {place} has {place.stat().st_size} bytes; at most {LARGEST} are allowed"
            )
        tables = tables_in(place.read_text(encoding="utf-8"), f"camera {place}")
    except OSError as error:
        raise FluidError(f"camera {place} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise FluidError(f"camera {place} is not text in UTF-8") from None
    made: CameraPath = validated(CameraPath, tables, f"camera {place}")
    return made
