"""XDMF 2: small text files by which ParaView 5.11 reads the run's own HDF5 files; nothing is copied."""

from __future__ import annotations

import os
from typing import Any

from ecs_fluid.errors import StorageError
from ecs_fluid.exports.frames import Job
from ecs_fluid.io.transaction import JOURNAL
from ecs_fluid.io.xdmf import write_xdmf


def write(job: Job) -> dict[str, Any]:
    """Write ``POPULATION.xdmf``, which name the run's files relative to the folder of the export."""
    frames, stored = job.frames, job.frames.stored
    if (stored.folder / JOURNAL).exists():
        raise StorageError(
            f"{frames.run.path} was killed while a frame was written, which XDMF readers cannot see; "
            "resume it first, or choose another format"
        )
    names = (*frames.particles, *frames.bodies)
    data = os.path.relpath(stored.folder.resolve(), job.target.resolve())
    for name in names:
        write_xdmf(job.folder, name, stored.index(name), frames.numbers, data=f"{data}/{name}.vtkhdf")
    return {"files": [f"{name}.xdmf" for name in names], "data": data}
