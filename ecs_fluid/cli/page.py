"""The command that turns a run into a page for browsers."""

from __future__ import annotations

from pathlib import Path

from ecs_fluid.api.stored import look_of_run
from ecs_fluid.cli import Frames, app, err, out


@app.command
def page(
    run: Path,
    /,
    *,
    frames: Frames = None,
    out_: Path | None = None,
    only: tuple[str, ...] = (),
    field: tuple[str, ...] = (),
    color_by: str | None = None,
    look: str | None = None,
    title: str | None = None,
    replace: bool = False,
) -> None:
    """Write a run as a page that plays in any browser, without a server or a network.

    Args:
        run: folder of a run, such as runs/vortex_ring
        out_: folder to make; default RUN/exports/page
        only: populations to show, --only ring --only smoke; default all
        field: what particles can be coloured by: speed, Temperature.T, Velocity.u.z; default all columns
        color_by: the field to begin with; default the colours of show
        look: smoke (dark), paper (light), dye, temperature, fire, vorticity, liquid; default the world's
        title: heading; default the name of the run
        replace: replace an earlier page
    """
    from ecs_fluid.viz.page import page as write

    with err.status("writing a page") as status:
        folder = write(
            run,
            frames,
            out_,
            only=only,
            fields=field,
            color_by=color_by,
            look=look or look_of_run(Path(run)),
            title=title,
            replace=replace,
            progress=lambda done: status.update(f"writing a page, {done} frames done"),
        )
    out.print(f"page: {folder / 'index.html'}")
