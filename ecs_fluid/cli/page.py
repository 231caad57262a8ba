"""The command that turns a run into a page for browsers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ecs_fluid.cli import Frames, app, err, out
from ecs_fluid.cli.look import LOOK
from ecs_fluid.cli.stored import look_of_run


@app.command
def page(
    run: Path,
    /,
    *,
    frames: Frames = None,
    out_: Annotated[
        Path | None, Parameter(name="--out", help="folder to make; default RUN/exports/page")
    ] = None,
    only: Annotated[tuple[str, ...], Parameter(help="populations to show; default all")] = (),
    field: Annotated[
        tuple[str, ...],
        Parameter(
            help="what particles can be coloured by: speed, Temperature.T, Velocity.u.z; default all columns"
        ),
    ] = (),
    color_by: Annotated[
        str | None, Parameter(help="the field to begin with; default the colours of show")
    ] = None,
    look: Annotated[str | None, Parameter(help=LOOK)] = None,
    title: Annotated[str | None, Parameter(help="heading; default the name of the run")] = None,
    replace: Annotated[bool, Parameter(help="take the place of an earlier page")] = False,
) -> None:
    """Write a run as a page that plays in any browser, without a server or a network."""
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
    out.print(f"page: {folder / 'index.html'}", markup=False)
