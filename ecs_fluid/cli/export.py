"""The command that turns a run into files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ecs_fluid.cli import Frames, app, err, out


@app.command
def export(
    run: Path,
    /,
    *,
    to: Annotated[
        str, Parameter(help="usd, vtp, vti, vdb, xdmf, npz, gltf, obj or ply; see docs/exports.md")
    ],
    frames: Frames = None,
    out_: Annotated[
        Path | None, Parameter(name="--out", help="folder to make; default RUN/exports/FORMAT")
    ] = None,
    only: Annotated[tuple[str, ...], Parameter(help="populations to write; default all")] = (),
    voxel: Annotated[
        float | None,
        Parameter(
            help="edge of a voxel of fields, m; default the mean spacing of particles; usd: none without it"
        ),
    ] = None,
    replace: Annotated[bool, Parameter(help="take the place of an earlier export")] = False,
) -> None:
    """Write a run for Blender, Houdini, ParaView, NumPy and others."""
    from ecs_fluid.exports import export as write

    with err.status("exporting") as status:
        folder = write(
            run,
            to,
            frames,
            out_,
            only=only,
            voxel=voxel,
            replace=replace,
            progress=lambda done: status.update(f"exporting, {done} frames done"),
        )
    out.print(f"exported: {folder}", markup=False)
