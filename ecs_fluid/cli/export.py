"""The command that turns a run into files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ecs_fluid.cli import Frames, app, err, out


@app.command
def export(
    run: Path,
    /,
    *,
    to: str,
    frames: Frames = None,
    out_: Path | None = None,
    only: tuple[str, ...] = (),
    voxel: float | None = None,
    start: int = 0,
    up: Literal["y", "z"] | None = None,
    replace: bool = False,
) -> None:
    """Write a run for Blender, Houdini, ParaView, NumPy and others.

    Args:
        run: folder of a run, such as runs/vortex_ring
        to: usd, vtp, vti, vdb, xdmf, npz, gltf, obj or ply; see docs/exports.md
        out_: folder to make; default RUN/exports/FORMAT
        only: populations to write, --only ring --only smoke; default all
        voxel: edge of a voxel of volumes, m; default the mean spacing of tracers; usd: no volumes without it
        start: number of the frame at t = 0, in names of files and as time code of USD: --start 1001
        up: axis that is upwards in the files; default that against gravity, or z if that is neither
        replace: replace an earlier export
    """
    from ecs_fluid.exports import export as write

    with err.status("exporting") as status:
        folder = write(
            run,
            to,
            frames,
            out_,
            only=only,
            voxel=voxel,
            start=start,
            up=up,
            replace=replace,
            progress=lambda done: status.update(f"exporting, {done} frames done"),
        )
    out.print(f"exported: {folder}")
