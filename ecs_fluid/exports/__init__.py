"""Exports of a run to files that other programs open: USD, VTK, XDMF, VDB, glTF, OBJ, PLY, NumPy.

One module per format; each writes from the same `Frames`, one frame in memory at a time::

    import ecs_fluid as ef

    ef.export("runs/candle", "usd", frames="0:100:2", out="candle_usd")
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ecs_fluid.arguments import is_number, is_whole, names_of, path_of, refuse_unused
from ecs_fluid.errors import StorageError, sentences
from ecs_fluid.validation_errors import nearest, shown

FORMATS = {
    "usd": "points and bodies over time in one file, for Blender, Houdini, Maya, Omniverse",
    "vtp": "one .vtp per frame and population, and a .pvd that ParaView plays",
    "vti": "volumes on a grid, one .vti per frame, and a .pvd that ParaView plays",
    "vdb": "the same volumes as OpenVDB, one .vdb per frame, for smoke and fire in Blender, Houdini",
    "xdmf": "XDMF files onto the run's own HDF5, nothing copied",
    "npz": "one NumPy archive per frame, exactly the stored numbers",
    "gltf": "one binary glTF (.glb) per frame: points and bodies, for the web and game engines",
    "obj": "meshes of the bodies and liquids, one .obj per frame",
    "ply": "points with all their columns and meshes of bodies and liquids, one .ply each per frame",
}
"""What each format is for; the module of its name writes it."""
HOLDS = {"obj": "surfaces", "vti": "volumes of particles", "vdb": "volumes of particles"}
"""What those formats hold that do not hold all populations."""
SURFACES = ("usd", "vtp", "gltf", "obj", "ply")
"""Formats that hold surfaces; where a run stored none of its liquid, it is made from the particles."""
VOLUMES = ("usd", *(name for name, held in HOLDS.items() if held != HOLDS["obj"]))
"""Formats for which the edge of a voxel matters."""
UPWARDS = ("y", "z")
"""Axes that may be upwards in files."""
AS_STORED = ("npz", "xdmf")
"""Formats that hold the numbers of the run as they are."""
LATEST = 1_000_000
"""Largest number that the frame at t = 0 may have."""


@sentences()
def export(
    run: str | Path,
    to: str,
    frames: str | int | slice | None = None,
    out: str | Path | None = None,
    *,
    only: Sequence[str] = (),
    voxel: float | None = None,
    start: int = 0,
    up: str | None = None,
    replace: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Write frames of a run in another format; returns the folder that holds them.

    Args:
        run: run folder.
        to: one of `FORMATS`.
        frames: stored frames as Python slices write them, ``"first:stop:step"``, or one number; default all.
        out: folder to make; default ``RUN/exports/<to>``. It appears once all is written.
        only: populations to write; default all.
        voxel: edge of a voxel [m] for volumes; default the mean spacing of the particles. USD has fields
            only if it is given.
        start: number of the frame at t = 0, in names of files and as time code of USD, 0 to 1,000,000.
        up: "y" or "z", the axis that is upwards in the files, for which they are turned; by default that
            against gravity, or z if that is neither. npz and xdmf have the numbers of the run, and glTF y.
        replace: replace an earlier export.
        progress: called with the number of frames done.

    Lengths are in m, times in s; an ``export.json`` beside the files says so, with the axis that is upwards,
    the frame rate, the time of every frame and the unit of every column.

    Raises StorageError: no run, an unknown format or population, frames it does not have, a package that is
    missing, an export that is there already, a disk that is full.
    """
    from ecs_fluid.exports.frames import Frames, Job
    from ecs_fluid.exports.target import default_folder, new_folder, write_manifest
    from ecs_fluid.io.runfolder import RunFolder

    if to not in FORMATS:
        raise StorageError(f"unknown format {to!r}; {nearest(str(to), FORMATS)}")
    folder = RunFolder.open(run)
    if not (is_whole(start) and 0 <= start <= LATEST):
        raise StorageError(f"start = {shown(start)}; a whole number from 0 to {LATEST:,} is needed")
    upwards = partial(_axis_upwards, to, up)
    chosen = Frames(folder, frames, only, progress, to in SURFACES, start, upwards)
    if voxel is not None and not (is_number(voxel) and 0.0 < voxel < float("inf")):
        raise StorageError(f"voxel = {shown(voxel)}; the edge of a voxel in m, above 0, is needed")
    if to in HOLDS:
        held = chosen.particles if to in VOLUMES else (*chosen.bodies, chosen.surface)
        lost = [name for name in names_of(only, "only") if name not in held]
        refuse_unused({f"only {name}": True for name in lost}, f"on {to}, which holds {HOLDS[to]} only")
    if to not in VOLUMES:
        refuse_unused({"voxel": voxel}, f"on {to}, which has no volumes; it is for {', '.join(VOLUMES)}")
    if to == "xdmf":
        refuse_unused({"start": start}, "on xdmf, whose files have no numbers")
    module = importlib.import_module(f"ecs_fluid.exports.{to}")
    target = path_of(out, "out") if out is not None else default_folder(folder.path, to)
    with new_folder(target, replace) as made:
        try:
            about = module.write(Job(chosen, made, target, voxel))
        except UnicodeEncodeError:
            raise StorageError(
                f"cannot export to {target}: a name in it is not in UTF-8, which the library for {to} needs; "
                "rename the folder of the run, or choose another one for the export"
            ) from None
        write_manifest(made, to, chosen, about)
    return target


def _axis_upwards(to: str, up: str | None, own: str) -> str:
    """The axis that is to be upwards in the frames of a world in which `own` is."""
    if up is not None and up not in UPWARDS:
        raise StorageError(f"up = {shown(up)}; {' or '.join(UPWARDS)} is needed")
    if to in AS_STORED:
        refuse_unused({"up": up}, f"on {to}, which has the numbers of the run as they are")
        return own
    if to == "gltf":  # whose root node turns the scene
        if up == "z":
            raise StorageError("up = 'z' on gltf, in which y is upwards; leave it out")
        return own
    return up or (own if own in UPWARDS else "z")
