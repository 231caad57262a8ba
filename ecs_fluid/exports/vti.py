"""VTK ImageData: the volumes of `volumes`, one .vti per frame, and a .pvd that ParaView plays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyvista as pv

from ecs_fluid.exports.frames import Job
from ecs_fluid.exports.target import frame_file
from ecs_fluid.exports.volumes import Volumes
from ecs_fluid.exports.vtk_files import add_array, save, write_pvd


def write(job: Job) -> dict[str, Any]:
    """Write ``volume.NUMBER.vti`` and ``volume.pvd``."""
    volumes = Volumes(job)
    parts = []
    for volume in volumes:
        file = frame_file("volume", volume.frame.file, "vti")
        data = image(volume.first * volume.voxel, [volume.voxel] * 3, volume.arrays)
        data.GetPointData().SetActiveScalars("density")
        save(data, job.folder / file, volume.frame.time)
        parts.append((volume.frame.time, "volume", file))
    write_pvd(job.folder / "volume.pvd", parts)
    return {"files": ["volume.pvd"], **volumes.about()}


def image(origin: np.ndarray, spacing: Sequence[float], arrays: Mapping[str, np.ndarray]) -> Any:
    """ImageData of arrays (px, py, pz, ...) at the points origin + index * spacing, m."""
    shape = next(iter(arrays.values())).shape[:3]
    data = pv.ImageData(dimensions=shape, spacing=tuple(spacing), origin=tuple(origin.tolist()))
    for name, array in arrays.items():
        # VTK runs through x fastest.
        add_array(data.GetPointData(), name, np.swapaxes(array, 0, 2).reshape(-1, *array.shape[3:]))
    return data
