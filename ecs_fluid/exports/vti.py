"""VTK ImageData: the volumes of `volumes`, one .vti per frame, and a .pvd that ParaView plays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyvista as pv

from ecs_fluid.exports.frames import Job
from ecs_fluid.exports.target import frame_file
from ecs_fluid.exports.volumes import Volume, Volumes
from ecs_fluid.exports.vtk_files import add_array, save, write_pvd


def write(job: Job) -> dict[str, Any]:
    """Write ``volume.NUMBER.vti`` and ``volume.pvd``."""
    volumes = Volumes(job)
    parts = []
    for volume in volumes:
        file = frame_file("volume", volume.frame.file, "vti")
        save(_image(volume), job.folder / file, volume.frame.time)
        parts.append((volume.frame.time, "volume", file))
    write_pvd(job.folder / "volume.pvd", parts)
    return {"files": ["volume.pvd"], **volumes.about()}


def _image(volume: Volume) -> Any:
    shape, origin = volume.arrays["density"].shape, tuple((volume.first * volume.voxel).tolist())
    data = pv.ImageData(dimensions=shape, spacing=(volume.voxel,) * 3, origin=origin)
    for name, array in volume.arrays.items():
        # VTK runs through x fastest.
        rows = np.swapaxes(array, 0, 2).reshape(-1, *array.shape[3:])
        add_array(data.GetPointData(), name, rows)
    data.GetPointData().SetActiveScalars("density")
    return data
