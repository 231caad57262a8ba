"""The command that shows a world while it is simulated: watch."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from ecs_fluid.cli import app, err, out, use_threads
from ecs_fluid.cli.look import LOOK, need_display
from ecs_fluid.cli.run import Threads, compiling
from ecs_fluid.cli.worlds import AllowCode, Settings
from ecs_fluid.errors import FluidError


@app.command
def watch(
    world: str,
    /,
    *,
    slide: Annotated[
        tuple[str, ...],
        Parameter(
            help="a slider: path=low:high, such as fluid.viscosity=1e-5:1e-3; default what is keyed in time"
        ),
    ] = (),
    what: Annotated[
        Literal["particles", "glyphs", "slice", "streamlines"], Parameter(help="what to draw")
    ] = "particles",
    color_by: Annotated[
        str | None, Parameter(help="colour: speed, vorticity, or a column such as CoreRadius.sigma")
    ] = None,
    camera: Annotated[str, Parameter(help="where it begins: auto, or a side: x, -x, y, -y, z, -z")] = "auto",
    look: Annotated[str | None, Parameter(help=LOOK)] = None,
    only: Annotated[tuple[str, ...], Parameter(help="entities to draw; default all")] = (),
    normal: Annotated[str, Parameter(help="normal of a slice: x, y or z")] = "y",
    size: Annotated[tuple[int, int], Parameter(help="width and height in pixels")] = (1280, 720),
    ticks: Annotated[int | None, Parameter(help="rest after this tick; default never")] = None,
    paused: Annotated[bool, Parameter(help="begin at rest")] = False,
    serve: Annotated[bool, Parameter(help="serve a page to browsers instead of opening a window")] = False,
    host: Annotated[str, Parameter(help="address to serve at; 0.0.0.0 lets other machines in")] = "localhost",
    port: Annotated[int, Parameter(help="port to serve at")] = 8080,
    set_: Settings = (),
    threads: Threads = None,
    allow_code: AllowCode = False,
) -> None:
    """Look at a world while it is simulated: pause, step, turn parameters. Nothing is stored.

    Keys: space pauses, the right arrow makes one tick, q ends; drag to turn, wheel to zoom.
    """
    if ticks is not None and ticks < 1:
        raise FluidError(f"--ticks {ticks}: at least 1 is needed")
    if not 1 <= port <= 65535:
        raise FluidError(f"--port {port}: 1 to 65535 are allowed")
    from ecs_fluid.viz.probe import require_gl

    if serve:
        from ecs_fluid.viz.serve import require_trame

        require_trame()
    else:
        need_display("use --serve to look at it with a browser")
    require_gl()
    use_threads(threads)
    from ecs_fluid.cli.sliders import sliders_of
    from ecs_fluid.viz.live import Live, live_options
    from ecs_fluid.worlds.world_recipe import read

    recipe = read(world, set_, allow_code)
    made = recipe.build()
    sliders = sliders_of(made, slide)
    options = live_options(
        made,
        what=what,
        color_by=color_by,
        camera=camera,
        look=look or recipe.output.look,
        populations=list(only) or None,
        normal=normal,
        size=size,
        smooth=False,
        off_screen=serve,
    )
    live = Live(made, options, sliders, ticks, paused)
    with compiling(lambda text: err.print(text, markup=False)):
        if serve:
            from ecs_fluid.viz.serve import serve as show

            out.print(f"serving http://{host}:{port} until Ctrl-C", markup=False)
            show(live, host, port)
        else:
            from ecs_fluid.viz.window import watch as look_at

            look_at(live)
    if live.failed is not None:
        raise live.failed
    out.print(f"watched to tick {made.tick}, t = {made.time:g} s", markup=False)
