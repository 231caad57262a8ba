"""The command that shows results: a window, a picture or a movie."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.types import NonNegativeInt

from ecs_fluid.api.pictures import (
    Moment,
    PictureKeywords,
    What,
    check_movie,
    check_picture,
    draw,
    present_moment,
    show_in_window,
    stored_moment,
    write_movie,
)
from ecs_fluid.api.stored import load_code_of_run
from ecs_fluid.arguments import refuse_unused
from ecs_fluid.cli import Frames, WorldName, app, err, out
from ecs_fluid.cli.worlds import AllowCode, Settings
from ecs_fluid.errors import RecipeError, StorageError
from ecs_fluid.io.runfolder import RunFolder, is_run, runs_in
from ecs_fluid.validation_errors import nearest
from ecs_fluid.viz.camera import SIZE
from ecs_fluid.viz.camera_path import read_camera
from ecs_fluid.worlds.world_recipe import load, shipped


@app.command
def show(
    source: WorldName,
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
    size: tuple[int, int] = SIZE,
    fps: float | None = None,
    jobs: int = 1,
    save: Path | None = None,
    movie: Path | None = None,
    set_: Settings = (),
    allow_code: AllowCode = False,
) -> None:
    """Look at a run folder, or at a world before it runs: a window, a picture or a movie.

    Args:
        source: folder of a run, such as runs/vortex_ring; or a world: a shipped name, or a file
        what: what to draw
        color_by: colour: speed, vorticity, a column (CoreRadius.sigma); of a slice temperature, smoke, ...
        frame: stored frame of a run, from 0; -1 is the last
        ticks: for a world: ticks to simulate first
        camera: auto, a side (x, -x, y, -y, z, -z), or a path: file.toml with tables [[key]]
        orbit: turn the camera: degrees per second of the movie
        look: smoke (dark), paper (light), dye, temperature, fire, vorticity, liquid; default the world's
        only: entities to draw, --only ring --only smoke; default all
        normal: normal of a slice: x, y or z
        level: sdf: distance of the drawn surface from that of the liquid, m
        clip: sdf: cut the surface open, across the normal
        size: width and height in pixels
        fps: frames per second of the movie; default: as in real time
        jobs: processes that draw a movie side by side
        save: write a picture: file.png
        movie: write a movie: file.mp4 or .gif, or a sequence of pictures: film/frame_%04d.png
    """
    if movie is None:
        of_movies = {"--frames": frames is not None, "--fps": fps is not None, "--jobs": jobs != 1}
        refuse_unused(
            {**of_movies, "--orbit": orbit},
            "without a movie; add --movie file.mp4, or use --frame for one frame",
        )
    else:
        refuse_unused({"--frame": frame != -1 and save is None}, "on a movie; --frames chooses its frames")
    drawing: Any = {  # values may be wrong; drawing raises the error
        "what": what,
        "color_by": color_by,
        "camera": _camera(camera),
        "look": look,
        "only": only,
        "normal": normal,
        "size": size,
        "level": level,
        "clip": clip,
    }
    check_pictures(movie, save)
    if is_run(Path(source)):
        refuse_unused(
            {"--ticks": ticks, "--set": set_},
            f"because {source} is a run, not a world; --frame chooses its time",
        )
        run = Path(source)
        if allow_code:
            load_code_of_run(run)
        if movie is None or save is not None:
            _show_moment(stored_moment(run, frame), drawing, save)
        if movie is not None:
            _write_movie(run, movie, drawing, frames, fps=fps, orbit=orbit, jobs=jobs)
        return
    _refuse_no_world(source)
    if movie is not None:
        raise RecipeError(f"--movie needs a run folder; run the world first: ecs-fluid run {source}")
    refuse_unused(
        {"--frame": frame != -1}, f"because {source} is a world, not a run; --ticks chooses its time"
    )
    world = load(source, *set_, allow_code=allow_code)
    world.step(ticks)
    _show_moment(present_moment(world), drawing, save)


def _refuse_no_world(source: str) -> None:
    """Raise StorageError for what is no world, saying what it may be."""
    if Path(source).is_dir():
        RunFolder.open(source)  # says what it is
    if not Path(source).exists() and source not in shipped():
        beside = Path(source).parent
        runs = [str(beside / path.name) for path in runs_in(beside)]
        raise StorageError(f"there is no run and no world {source!r}; {nearest(source, [*runs, *shipped()])}")


def check_pictures(movie: Path | None, save: Path | None) -> None:
    """Raise FluidError for files that cannot be written, before anything is simulated."""
    if movie is not None:
        check_movie(movie)
    if save is not None:
        check_picture(save, "--save")


def render_run(folder: Path, *, movie: Path | None = None, save: Path | None = None) -> None:
    """Write a picture of the last stored frame, and a movie of all."""
    if save is not None:
        _show_moment(stored_moment(folder, -1), {}, save)
    if movie is not None:
        _write_movie(folder, movie, {})


def _camera(text: str) -> Any:
    """A camera by name, or the camera path in a .toml file."""
    if not text.lower().endswith(".toml"):
        return text
    return read_camera(text)


def _show_moment(moment: Moment, drawing: PictureKeywords, save: Path | None) -> None:
    """Open a window, or write a picture."""
    if save is None:
        show_in_window(moment, drawing, "write a picture with --save file.png")
        return
    draw(moment, drawing, save)
    out.print(f"picture: {save}")


def _write_movie(
    run: Path, movie: Path, drawing: PictureKeywords, frames: str | None = None, **how: Any
) -> None:
    """Write a movie of stored frames."""
    with err.status("rendering") as status:
        write_movie(
            run, movie, frames, drawing, progress=lambda done: status.update(f"{done} frames drawn"), **how
        )
    out.print(f"movie: {movie}")
