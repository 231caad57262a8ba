"""The command that shows a world while it is simulated: watch."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from ecs_fluid.api.pictures import refuse_unused_keywords, require_display
from ecs_fluid.api.progress import compiling
from ecs_fluid.api.stored import look_of_tables
from ecs_fluid.arguments import refuse_unused
from ecs_fluid.cli import Threads, Ticks, WorldName, app, err, out
from ecs_fluid.cli.worlds import AllowCode, Settings
from ecs_fluid.threads import use_threads
from ecs_fluid.viz.camera import SIZE


@app.command
def watch(
    world: WorldName,
    /,
    *,
    slide: tuple[str, ...] = (),
    what: Literal["particles", "glyphs", "slice", "streamlines"] = "particles",
    color_by: str | None = None,
    camera: str = "auto",
    look: str | None = None,
    only: tuple[str, ...] = (),
    normal: str = "y",
    size: tuple[int, int] = SIZE,
    ticks: Ticks = None,
    paused: bool = False,
    serve: bool = False,
    host: str = "localhost",
    port: Annotated[int, Parameter(validator=Number(gte=1, lte=65535))] = 8080,
    set_: Settings = (),
    threads: Threads = None,
    allow_code: AllowCode = False,
) -> None:
    """Look at a world while it is simulated: pause, step, turn parameters. Nothing is stored.

    Keys: space pauses, the right arrow makes one tick, q ends; drag to turn, wheel to zoom.

    Args:
        world: a shipped name (ecs-fluid worlds lists them), or a .toml or .json file
        slide: a slider: path=low:high, such as fluid.viscosity=1e-5:1e-3; default: all that is keyed in time
        what: what to draw
        color_by: colour: speed, vorticity, a column (CoreRadius.sigma); of a slice temperature, smoke, ...
        camera: where it begins: auto, or a side: x, -x, y, -y, z, -z
        look: smoke (dark), paper (light), dye, temperature, fire, vorticity, liquid; default the world's
        only: entities to draw, --only ring --only smoke; default all
        normal: normal of a slice: x, y or z
        size: width and height in pixels
        ticks: pause after this tick; default never
        paused: start paused
        serve: serve a page to browsers instead of opening a window
        host: address to serve at; 0.0.0.0 lets other machines in
        port: port to serve at
    """
    from ecs_fluid.viz.probe import require_gl

    refuse_unused_keywords({"what": what, "normal": normal})  # type: ignore[typeddict-item]  # checked later
    if serve:
        from ecs_fluid.viz.serve import require_trame

        require_trame()
    else:
        refuse_unused({"--host": host != "localhost", "--port": port != 8080}, "without --serve")
        require_display("use --serve to look at it with a browser")
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
        look=look or look_of_tables(recipe.tables()),
        populations=list(only) or None,
        normal=normal,
        size=size,
        smooth=False,
        off_screen=serve,
    )
    live = Live(made, options, sliders, ticks, paused)
    with compiling(err.print):
        if serve:
            from ecs_fluid.viz.serve import Page

            Page(live).run(host, port, out.print)
        else:
            from ecs_fluid.viz.window import Window

            Window(live).run()
    if live.failed is not None:
        raise live.failed
    out.print(f"watched to tick {made.tick}, t = {made.time:g} s")
