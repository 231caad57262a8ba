"""A run as a page that plays in a browser: a folder to open by double click, or to put on any web space.

Nothing is fetched from anywhere: ``index.html`` loads ``viewer.js`` (ours and three.js, bundled) and the
files in ``data``, all by plain script tags, which work without a server::

    import ecs_fluid as ef

    ef.page("runs/vortex_ring", out="ring_page")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ecs_fluid.arguments import path_of
from ecs_fluid.errors import FluidError, sentences


@sentences()
def page(
    run: str | Path,
    frames: str | int | slice | None = None,
    out: str | Path | None = None,
    *,
    only: Sequence[str] = (),
    fields: Sequence[str] = (),
    color_by: str | None = None,
    look: str = "smoke",
    title: str | None = None,
    replace: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Write frames of a run as a page for browsers; returns its folder, whose ``index.html`` opens it.

    Args:
        run: run folder.
        frames: stored frames as Python slices write them, ``"first:stop:step"``, or one number; default all.
        out: folder to make; default ``RUN/exports/page``. It appears when all is written.
        only: populations to show; default all.
        fields: what particles can be coloured by: ``speed``, ``vorticity``, ``strength``, a column
            (``Temperature.T``), a component of one (``Velocity.u.z``); default every stored column.
        color_by: the one of them to begin with; default the colours of `show`.
        look: that of `show`: smoke, paper, dye, temperature, fire, vorticity or liquid.
        title: heading of the page; default the name of the run.
        replace: take the place of an earlier page.
        progress: called with the number of frames done.

    Places are rounded to 1/50 of the radius at which a particle is drawn, fields to 1/2,000 of the range of
    their colours, or to 1/65,534 of the range of all values in a frame where that is more.

    Raises FluidError: no run, an unknown population, field or look, frames it does not have, nothing to
    show, a folder that is there already, a disk that is full.
    """
    from ecs_fluid.exports.frames import Frames
    from ecs_fluid.exports.target import default_folder, new_folder, write_manifest
    from ecs_fluid.io.runfolder import RunFolder
    from ecs_fluid.viz.columns import unknown_name
    from ecs_fluid.viz.page.writer import write
    from ecs_fluid.viz.style import LOOKS

    if look not in LOOKS:
        raise unknown_name("look", look, LOOKS)
    if title is not None and (not title.strip() or len(title) > 200):
        raise FluidError(f"a title of {len(title)} characters is not allowed: give 1 to 200 characters")
    if title is not None and any("\ud800" <= letter <= "\udfff" for letter in title):  # bytes of no text
        raise FluidError(f"the title {title!a} is not text in UTF-8, which is needed")
    folder = RunFolder.open(run)
    chosen = Frames(folder, frames, only, progress)
    target = path_of(out, "out") if out is not None else default_folder(folder.path, "page")
    with new_folder(target, replace) as made:
        summary = write(made, chosen, fields, color_by, look, title or chosen.name)
        write_manifest(made, "page", chosen, summary)
    return target
