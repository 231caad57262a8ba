"""Commands that look at results: show, info."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ecs_fluid.cli import app, err, out
from ecs_fluid.cli.worlds import AllowCode, Settings
from ecs_fluid.component import Array
from ecs_fluid.errors import FluidError, RecipeError, StorageError

if TYPE_CHECKING:
    from ecs_fluid.io.runfolder import RunFolder

Frame = dict[str, dict[str, Array]]
What = Literal["particles", "glyphs", "slice", "streamlines", "sdf", "sdf_slice"]


@app.command
def show(
    source: str,
    /,
    *,
    what: Annotated[What, Parameter(help="what to draw")] = "particles",
    color_by: Annotated[
        str | None, Parameter(help="colour: speed, vorticity, or a column such as CoreRadius.sigma")
    ] = None,
    frame: Annotated[int, Parameter(help="stored frame of a run, from 0; -1 is the last")] = -1,
    ticks: Annotated[int, Parameter(help="ticks to simulate first, for a world")] = 0,
    camera: Annotated[str, Parameter(help="auto, or a side: x, -x, y, -y, z, -z")] = "auto",
    look: Annotated[str, Parameter(help="smoke (dark), paper (light), dye, temperature, fire")] = "smoke",
    only: Annotated[tuple[str, ...], Parameter(help="entities to draw; default all")] = (),
    normal: Annotated[str, Parameter(help="normal of a slice: x, y or z")] = "y",
    level: Annotated[float, Parameter(help="sdf: distance of the drawn surface from the liquid's, m")] = 0.0,
    clip: Annotated[bool, Parameter(help="sdf: cut open across the normal")] = False,
    size: Annotated[tuple[int, int], Parameter(help="width and height in pixels")] = (1280, 720),
    fps: Annotated[
        float | None, Parameter(help="frames per second of a movie; default as fast as it happens")
    ] = None,
    save: Annotated[Path | None, Parameter(help="write a picture: file.png")] = None,
    movie: Annotated[Path | None, Parameter(help="write a movie of all frames: file.mp4 or .gif")] = None,
    set_: Settings = (),
    allow_code: AllowCode = False,
) -> None:
    """Look at a run folder, or at a world before it runs: a window, a picture or a movie."""
    check_pictures(movie, save)
    options: dict[str, Any] = {
        "what": what,
        "color_by": color_by,
        "camera": camera,
        "look": look,
        "populations": list(only) or None,
        "normal": normal,
        "size": size,
    }
    if (Path(source) / "run.json").is_file():
        if ticks or set_:
            raise FluidError(
                f"--ticks and --set are for worlds, and {source} is a run; --frame chooses its time"
            )
        if what in ("sdf", "sdf_slice"):
            _show_surface(Path(source), frame, options | {"level": level, "clip": clip}, save, movie)
            return
        if movie is None and save is None:
            options["hulls"] = _hulls_of(Path(source))
            _window(_frame_of_run(Path(source), frame), options, needs_display=True)
            return
        render_run(Path(source), movie=movie, save=save, frame=frame, fps=fps, **options)
        return
    if Path(source).is_dir():
        raise StorageError(f"{source} is a folder but no run: it has no run.json")
    if movie is not None:
        raise RecipeError(f"--movie needs a run folder; run the world first: ecs-fluid run {source}")
    if ticks < 0:
        raise FluidError(f"--ticks {ticks}: 0 or more are needed")
    if frame != -1:
        raise FluidError(f"--frame is for run folders, and {source} is a world; --ticks chooses its time")
    from ecs_fluid.worlds.world_recipe import read

    if what in ("sdf", "sdf_slice"):
        raise FluidError(f"--what {what} is for run folders; run the world first: ecs-fluid run {source}")
    world = read(source, set_, allow_code).build()
    world.step(ticks)
    world.evaluate()
    from ecs_fluid.viz.bodies import hulls_in

    options["hulls"] = hulls_in(world)
    picture = (
        world.time,
        {name: dict(columns) for name, columns in world.snapshot().items()},
        world.velocity,
    )
    _window(picture, options, needs_display=save is None, save=save)


def check_pictures(movie: Path | None, save: Path | None) -> None:
    """Refuse endings and folders that cannot work before anything is simulated."""
    from ecs_fluid.viz.probe import require_gl

    for path, endings, flag in ((movie, (".mp4", ".gif"), "--movie"), (save, (".png",), "--save")):
        if path is None:
            continue
        if path.suffix.lower() not in endings:
            raise FluidError(f"{flag} {path}: a file ending in {' or '.join(endings)} is needed")
        if not path.resolve().parent.is_dir():
            raise FluidError(f"{flag} {path}: the folder {path.parent} does not exist")
        if not os.access(path.resolve().parent, os.W_OK):
            raise FluidError(f"{flag} {path}: the folder {path.parent} cannot be written to")
    if movie is not None:
        from ecs_fluid.viz.movie import require_encoder

        require_encoder()
    if movie is not None or save is not None:
        require_gl()


def render_run(
    folder: Path,
    *,
    movie: Path | None = None,
    save: Path | None = None,
    frame: int = -1,
    fps: float | None = None,
    **options: Any,
) -> None:
    """Picture of one stored frame and movie of all of them."""
    options["hulls"] = _hulls_of(folder)
    if save is not None:
        _window(_frame_of_run(folder, frame), options, needs_display=False, save=save)
    if movie is not None:
        from ecs_fluid.io.runfolder import RunFolder
        from ecs_fluid.viz.movie import movie as write
        from ecs_fluid.viz.survey import Recording

        run = RunFolder.open(folder)
        stored = run.read_trajectory()
        frames = Recording(cast("Any", stored))
        with err.status(f"rendering {len(frames)} frames") as status:
            write(
                movie,
                frames,
                fps=_real_time(stored.times) if fps is None else fps,
                velocity_of=_velocity_of(run) if options.get("what") in ("slice", "streamlines") else None,
                progress=lambda done: status.update(f"rendering frame {done} of {len(frames)}"),
                **options,
            )
        out.print(f"movie: {movie}", markup=False)


def _real_time(times: Any) -> float:
    """Frames per second at which a movie takes as long as what it shows, from 5 to 60."""
    if len(times) < 2:
        return 30.0
    spacing = float(times[-1] - times[0]) / (len(times) - 1)
    return round(min(max(1.0 / spacing, 5.0), 60.0), 3)


def _frame_of_run(folder: Path, number: int) -> tuple[float, Frame, Any]:
    from ecs_fluid.io.runfolder import RunFolder

    run = RunFolder.open(folder)
    stored = run.read_trajectory()
    if not len(stored):
        raise StorageError(f"{folder} has no stored frames")
    if not -len(stored) <= number < len(stored):
        raise StorageError(
            f"--frame {number}: {folder} has frames 0 to {len(stored) - 1}, or -1 for the last"
        )
    columns = stored.frame(number)
    return float(stored.times[number]), columns, lambda points: _velocity_of(run)(columns)(points)


def _show_surface(
    folder: Path, number: int, options: dict[str, Any], save: Path | None, movie: Path | None
) -> None:
    """Picture of the signed distances stored with a frame."""
    from ecs_fluid.io.runfolder import RunFolder
    from ecs_fluid.surface_frames import stored_surface
    from ecs_fluid.viz.scene import save_png
    from ecs_fluid.viz.surfaces import Distances, render_surface

    if movie is not None:
        raise FluidError(
            "--movie draws particles, slices and streamlines; pictures of surfaces go one by one"
        )
    if save is None:
        _need_display()
    time, _, velocity = _frame_of_run(folder, number)
    run = RunFolder.open(folder)
    field = stored_surface(run.fields, int(run.read_trajectory().ticks[number]))
    names = ("color_by", "camera", "look", "normal", "size", "level", "clip")
    plotter = render_surface(
        Distances(field.arrays["phi"], field.origin, field.spacing, field.arrays.get("T")),
        velocity=velocity if options["color_by"] == "speed" else None,
        slices=options["what"] == "sdf_slice", time=time, off_screen=save is not None,
        **{name: options[name] for name in names},
    )  # fmt: skip
    try:
        if save is None:
            plotter.show()
        else:
            save_png(plotter, save)
            out.print(f"picture: {save}", markup=False)
    finally:
        plotter.close()


def _hulls_of(folder: Path) -> dict[str, dict[str, Array]]:
    """Polytopes of a run: they stay as they are, so any checkpoint holds them."""
    from ecs_fluid.io.checkpoint import load_checkpoint
    from ecs_fluid.io.runfolder import RunFolder
    from ecs_fluid.viz.bodies import hulls_of

    try:
        return hulls_of(load_checkpoint(RunFolder.open(folder).newest_checkpoint().path)[1])
    except StorageError:
        return {}  # a trajectory can be looked at without its checkpoints


def _velocity_of(run: RunFolder) -> Callable[[Any], Any]:
    """Function that turns a stored frame into a velocity function, by the run's own velocity system."""
    import tomllib

    from ecs_fluid.worlds.world_recipe import WorldRecipe

    try:
        tables = tomllib.loads(run.recipe)
    except tomllib.TOMLDecodeError as error:
        raise StorageError(f"{run.path / 'world.toml'} is damaged: {error}") from None
    recipe = WorldRecipe.from_tables(tables, "world.toml", allow_code=True)

    def velocity(frame: Frame) -> Any:
        from ecs_fluid.components import CoreRadius, Position, Strength
        from ecs_fluid.systems import VelocitySystem
        from ecs_fluid.world import World

        world = World(precision=recipe.world.precision)
        for name, columns in frame.items():
            if "Strength.alpha" in columns and "CoreRadius.sigma" in columns:
                world.spawn(
                    name,
                    Position(columns["Position.x"]),
                    Strength(columns["Strength.alpha"]),
                    CoreRadius(columns["CoreRadius.sigma"]),
                )
        world.add_system(VelocitySystem(**recipe.fluid.velocity))
        return world.velocity

    return velocity


def _window(
    picture: tuple[float, Frame, Any],
    options: dict[str, Any],
    needs_display: bool,
    save: Path | None = None,
) -> None:
    if needs_display:
        _need_display()
    from ecs_fluid.viz.scene import render, save_png

    time, frame, velocity = picture
    plotter = render(frame, velocity=velocity, time=time, off_screen=save is not None, **options)
    try:
        if save is None:
            plotter.show()
        else:
            save_png(plotter, save)
            out.print(f"picture: {save}", markup=False)
    finally:
        plotter.close()


def _need_display() -> None:
    if not (any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")) or os.name == "nt"):
        raise FluidError("there is no display for a window; write a picture with --save file.png")


@app.command
def info(folder: Path, /) -> None:
    """Tell what a run is, how far it came, where its time went and what it conserved."""
    from ecs_fluid.io.runfolder import RunFolder

    run = RunFolder.open(folder)
    about = run.read_info()
    stored = run.read_trajectory()
    # A run under way, or killed, told how far it came at its last checkpoint; its frames may know more.
    ticks = max(about.get("ticks", 0), int(stored.ticks[-1]) if len(stored) else 0)
    simulated = max(about.get("time", 0.0), float(stored.times[-1]) if len(stored) else 0.0)
    lines = {
        "world": about.get("world"),
        "command": about.get("command"),
        "status": _status(run, str(about.get("status"))),
        "ticks": f"{ticks} of {about.get('plan', {}).get('last_tick', '?')}",
        "simulated time": f"{simulated:.6g} s",
        "wall time": f"{about.get('wall_seconds', 0.0):.1f} s",
        "speed": f"{about.get('ticks_per_second', 0.0):.1f} ticks/s in the last stretch",
        "stored frames": str(len(stored)),
        "particles": ", ".join(f"{name} {n:,}" for name, n in about.get("particles", {}).items()),
        "state hash": about.get("state_hash"),
    }
    for key, value in lines.items():
        out.print(f"{key:<15} {value}", markup=False)
    _systems(about.get("systems", {}))
    _records(run.records())


def _status(run: RunFolder, status: str) -> str:
    """The stored status; of a run that says that it is running, whether anything still writes it."""
    from ecs_fluid.io.lock import WriterLock

    if status != "running":
        return status
    try:
        WriterLock(run.path / "writer.lock").release()
    except StorageError:
        return status
    return f"killed; continue with: ecs-fluid resume {run.path}"


def _systems(systems: dict[str, Any]) -> None:
    total = sum(entry["seconds"] for entry in systems.values())
    if not total:
        return
    table = Table("system", "calls", "ms per call", "share", title="time by system", title_justify="left")
    for name, entry in systems.items():
        each = 1e3 * entry["seconds"] / max(entry["calls"], 1)
        share = f"{100 * entry['seconds'] / total:.1f} %"
        table.add_row(name, str(entry["calls"]), f"{each:.3f}", share)
    out.print(table)


def _records(records: list[dict[str, Any]]) -> None:
    if not records:
        return
    names = ["tick", "strength", "impulse", "angular_impulse", "energy", "enstrophy", "overlap", "dt_grad_u"]
    names += [name for name in records[-1] if name.startswith("force_by_")]
    # Vectors by their magnitude: three numbers each would not fit into 80 columns.
    vectors = [name for name in names if isinstance(records[-1].get(name), list)]
    heads = (f"|{name.removesuffix('_impulse')}|" if name in vectors else name for name in names)
    table = Table(*heads, title="diagnostics", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    step = max(1, (len(records) - 1) // 8)
    chosen = records[::step] if (len(records) - 1) % step == 0 else [*records[::step], records[-1]]
    for record in chosen:
        table.add_row(*(_text(record.get(name)) for name in names))
    out.print(table, width=max(out.width, 110))  # of a diverged run the numbers are long


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"{math.hypot(*value):.4g}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)
