"""NumPy: one .npz per frame with every stored number as it is, named ``population/Component.column``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecs_fluid.exports.frames import Job
from ecs_fluid.exports.target import frame_file


def write(job: Job) -> dict[str, Any]:
    """Write ``NAME.NUMBER.npz``, each with ``time`` [s] and ``tick`` too."""
    files = []
    for frame in job.frames:
        file = frame_file(job.frames.name, frame.file, "npz")
        arrays: dict[str, Any] = {
            f"{name}/{label}": array
            for name, columns in (frame.particles | frame.bodies).items()
            for label, array in columns.items()
        }
        arrays |= {"time": np.float64(frame.time), "tick": np.int64(frame.tick)}
        np.savez(job.folder / file, allow_pickle=False, **arrays)
        files.append(file)
    return {"files": files}
