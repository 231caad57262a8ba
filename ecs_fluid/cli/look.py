"""The command that looks at results: a window, a picture or a movie."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.types import NonNegativeInt

from ecs_fluid.cli import Frames, app, err, out
from ecs_fluid.cli.stored import (
    SurfaceRecording,
    VelocityOf,
    chosen_frames,
    frame_of_run,
    hulls_of_run,
    load_code_of_run,
    look_of_run,
    periods_of_run,
    real_time,
)
from ecs_fluid.cli.worlds import AllowCode, Settings
from ecs_fluid.errors import FluidError, RecipeError, StorageError

What = Literal["particles", "glyphs", "slice", "streamlines", "sdf", "sdf_slice"]
SURFACES = ("sdf", "sdf_slice")


@app.command
def show(
    source: str,
    /,
    *,
    what: What = "particles",
    color_by: str | None = None,
    frame: int = -1,
    frames: Frames = None,
    ticks: NonNegativeInt = 0,
    camera: str = "auto",
    orbit: Annotated[float, Parameter(allow_leading_hyphen=True)] = 0.0,
    look: str | None = None,
    only: tuple[str, ...] = (),
    normal: str = "y",
    level: float = 0.0,
    clip: bool = False,
    size: tuple[int, int] = (1280, 720),
    fps: float | None = None,
    jobs: int = 1,
    save: Path | None = None,
    movie: Path | None = None,
    set_: Settings = (),
    allow_code: AllowCode = False,
) -> None:
    """Look at a run folder, or at a world before it runs: a window, a picture or a movie.

    Args:
        what: what to draw
        color_by: colour: speed, vorticity, or a column such as CoreRadius.sigma
        frame: stored frame of a run, from 0; -1 is the last
        ticks: ticks to simulate first, for a world
        camera: auto, a side (x, -x, y, -y, z, -z), or a path: file.toml with tables [[key]]
        orbit: turn the camera: degrees per second of the movie
        look: smoke (dark), paper (light), dye, temperature, fire, vorticity, liquid; default the world's
        only: entities to draw; default all
        normal: normal of a slice: x, y or z
        level: sdf: distance of the drawn surface from the liquid's, m
        clip: sdf: cut open across the normal
        size: width and height in pixels
        fps: frames per second of a movie; default as fast as it happens
        jobs: processes that draw a movie side by side
        save: write a picture: file.png
        movie: write a movie: file.mp4 or .gif, or a sequence of pictures: film/frame_%04d.png
    """
    if movie is None and (frames is not None or jobs != 1 or orbit):
        raise FluidError("--frames, --jobs and --orbit are for movies; add --movie file.mp4")
    options: dict[str, Any] = {
        "what": what,
        "color_by": color_by,
        "camera": _camera(camera),
        "populations": list(only) or None,
        "normal": normal,
        "size": size,
    }
    check_pictures(movie, save)
    if (Path(source) / "run.json").is_file():
        if ticks or set_:
            raise FluidError(
                f"--ticks and --set are for worlds, and {source} is a run; --frame chooses its time"
            )
        run = Path(source)
        if allow_code:
            load_code_of_run(run)
        options["look"] = look or look_of_run(run)
        surface = {"level": level, "clip": clip}
        if movie is None or save is not None:
            _still(run, frame, options, surface, save)
        if movie is not None:
            _movie(run, movie, options | {"orbit": orbit}, surface, frames, fps, jobs)
        return
    if Path(source).is_dir():
        raise StorageError(f"{source} is a folder but no run: it has no run.json")
    if movie is not None:
        raise RecipeError(f"--movie needs a run folder; run the world first: ecs-fluid run {source}")
    if frame != -1:
        raise FluidError(f"--frame is for run folders, and {source} is a world; --ticks chooses its time")
    from ecs_fluid.worlds.world_recipe import read

    if what in SURFACES:
        raise FluidError(f"--what {what} is for run folders; run the world first: ecs-fluid run {source}")
    recipe = read(source, set_, allow_code)
    options["look"] = look or recipe.output.look
    world = recipe.build()
    world.step(ticks)
    world.evaluate()
    from ecs_fluid.viz.bodies import hulls_in

    options |= {"hulls": hulls_in(world), "periods": world.options.periodic}
    columns = {name: dict(columns) for name, columns in world.snapshot().items()}
    _picture((world.time, columns, world.velocity), options, save)


def check_pictures(movie: Path | None, save: Path | None, option: str = "--save") -> None:
    """Refuse endings and folders that cannot work before anything is simulated."""
    if movie is not None:
        from ecs_fluid.viz.film import check_target, is_sequence, require_encoder
        from ecs_fluid.viz.probe import require_gl

        if not is_sequence(check_target(movie)):
            require_encoder()
        require_gl()
    if save is None:
        return
    if save.suffix.lower() != ".png":
        raise FluidError(f"{option} {save}: a file ending in .png is needed")
    if not save.resolve().parent.is_dir():
        raise FluidError(f"{option} {save}: the folder {save.parent} does not exist")
    if not os.access(save.resolve().parent, os.W_OK):
        raise FluidError(f"{option} {save}: the folder {save.parent} cannot be written to")


def render_run(folder: Path, *, movie: Path | None = None, save: Path | None = None) -> None:
    """Picture of the last stored frame and movie of all of them."""
    options: dict[str, Any] = {"what": "particles", "look": look_of_run(folder)}
    if save is not None:
        _still(folder, -1, options, {}, save)
    if movie is not None:
        _movie(folder, movie, options, {})


def _camera(text: str) -> Any:
    """A name, or the path in a .toml file."""
    if not text.lower().endswith(".toml"):
        return text
    from ecs_fluid.viz.camera_path import read_camera

    return read_camera(text)


def _movie(
    folder: Path,
    target: Path,
    options: dict[str, Any],
    surface: dict[str, Any],
    frames: str | None = None,
    fps: float | None = None,
    jobs: int = 1,
) -> None:
    """Movie of stored frames: of particles and the flow, or of a liquid's surface."""
    stored, rows = chosen_frames(folder, frames)
    with err.status(f"rendering {len(rows)} frames") as status:
        more: dict[str, Any] = {
            "fps": real_time(stored.times[rows.start : rows.stop : rows.step]) if fps is None else fps,
            "jobs": jobs,
            "numbers": rows,
            "progress": lambda done: status.update(f"rendering frame {done} of {len(rows)}"),
        }
        if options["what"] in SURFACES:
            from ecs_fluid.viz.surface_movie import surface_movie

            names = ("camera", "orbit", "look", "normal", "size", "color_by")
            surface_movie(
                target,
                SurfaceRecording(folder, rows, speed=options["color_by"] == "speed"),
                slices=options["what"] == "sdf_slice",
                **surface,
                **more,
                **{name: options[name] for name in names},
            )
        else:
            from ecs_fluid.viz.movie import movie as write
            from ecs_fluid.viz.shared_limits import Recording

            flow = VelocityOf(folder) if options["what"] in ("slice", "streamlines") else None
            options |= {"hulls": hulls_of_run(folder), "periods": periods_of_run(folder)}
            write(target, Recording(stored, rows), velocity_of=flow, **more, **options)
    out.print(f"movie: {target}")


def _still(
    folder: Path, number: int, options: dict[str, Any], surface: dict[str, Any], save: Path | None
) -> None:
    """Window or picture of one stored frame: of particles and the flow, or of a liquid's surface."""
    if options["what"] not in SURFACES:
        picture = frame_of_run(folder, number)
        placed = {"hulls": hulls_of_run(folder), "periods": periods_of_run(folder)}
        _picture(picture, options | placed, save)
        return
    from ecs_fluid.io.runfolder import RunFolder
    from ecs_fluid.runs.surface_frames import stored_surface
    from ecs_fluid.viz.matplotlib_picture import plain_distances

    time, _, velocity = frame_of_run(folder, number)
    run = RunFolder.open(folder)
    field = stored_surface(run.fields, int(run.read_trajectory().ticks[number]))
    phi, normal, size = field.arrays["phi"], options["normal"], options["size"]

    def render() -> Any:
        from ecs_fluid.viz.surfaces import Distances, render_surface

        camera = options["camera"]
        return render_surface(
            Distances(phi, field.origin, field.spacing, field.arrays.get("T")),
            velocity=velocity if options["color_by"] == "speed" else None,
            slices=options["what"] == "sdf_slice",
            time=time,
            off_screen=save is not None,
            camera=camera if isinstance(camera, str) else camera.at(time, 0.0),
            **surface,
            **{name: options[name] for name in ("color_by", "look", "normal", "size")},
        )

    at = field.origin, field.spacing, normal, surface["level"], time, size
    _drawn(options["what"], save, lambda path: plain_distances(path, phi, *at), render)


def _picture(picture: tuple[float, Any, Any], options: dict[str, Any], save: Path | None) -> None:
    """Window or picture of particles or of the flow."""
    from ecs_fluid.viz.matplotlib_picture import plain_picture

    time, frame, velocity = picture
    more = options | {"velocity": velocity, "time": time}

    def render() -> Any:
        from ecs_fluid.viz.scene import render

        return render(frame, off_screen=save is not None, **more)

    _drawn(options["what"], save, lambda path: plain_picture(path, frame, **more), render)


def _drawn(what: str, save: Path | None, plain: Callable[[Path], Any], render: Callable[[], Any]) -> None:
    """Show in a window, or write to a file, what `render` gives; without OpenGL `plain` writes the file."""
    if save is None:
        need_display()
        with contextlib.closing(render()) as plotter:
            plotter.show()
        return
    if _without_gl(what):
        plain(save)
    else:
        from ecs_fluid.viz.scene import save_png

        with contextlib.closing(render()) as plotter:
            save_png(plotter, save)
    out.print(f"picture: {save}")


def _without_gl(what: str) -> bool:
    """Whether matplotlib must draw, which is told; FluidError for pictures that it cannot draw."""
    from ecs_fluid.viz.matplotlib_picture import DRAWN
    from ecs_fluid.viz.probe import require_gl

    try:
        require_gl()
    except FluidError as reason:
        if what not in DRAWN:
            raise FluidError(f"{reason}; without them, only {', '.join(DRAWN)} can be drawn") from None
        err.print(f"drawn plainly, by matplotlib: {reason}", style="yellow")
        return True
    return False


def need_display(instead: str = "write a picture with --save file.png") -> None:
    """Raise FluidError, which says what to do instead, where no window can be opened."""
    if not (any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")) or os.name == "nt"):
        raise FluidError(f"there is no display for a window; {instead}")
