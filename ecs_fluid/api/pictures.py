"""Windows, pictures and movies of runs and worlds, for Python and the command line alike."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

import numpy as np

from ecs_fluid.api.stored import (
    SurfaceRecording,
    VelocityOf,
    at_surface,
    chosen_frames,
    distances_at,
    frame_of_run,
    hulls_of_run,
    look_of_run,
    look_of_tables,
    real_time_fps,
    world_of_run,
)
from ecs_fluid.arguments import check_progress, is_number, names_of, path_of, refuse_unused
from ecs_fluid.errors import FluidError, warn
from ecs_fluid.exports.colours import named_colours
from ecs_fluid.fluid import Fluid
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.io.trajectory import Trajectory
from ecs_fluid.runs.stored_recipe import up_of_run
from ecs_fluid.runs.surface_frames import level_of
from ecs_fluid.upward import up_of
from ecs_fluid.validation_errors import shown
from ecs_fluid.viz.camera import Camera, of_world
from ecs_fluid.viz.camera_path import CameraPath
from ecs_fluid.viz.columns import FIELDS, unknown_name
from ecs_fluid.viz.film import is_sequence
from ecs_fluid.viz.flow import Flow
from ecs_fluid.viz.probe import require_gl
from ecs_fluid.world import World
from ecs_fluid.world_files import LookName, colors_in
from ecs_fluid.world_options import WorldOptions

if TYPE_CHECKING:
    from ecs_fluid.exports.bodies import Polytopes
    from ecs_fluid.viz.surfaces import Distances

What = Literal["particles", "glyphs", "slice", "streamlines", "sdf", "sdf_slice"]
SURFACES = ("sdf", "sdf_slice")
FLOW = tuple(what for what in get_args(What) if what not in SURFACES)


class PictureKeywords(TypedDict, total=False):
    """What a picture or a movie shows and how; every key may be left out."""

    what: What
    """tracers as smoke with vortons as beads ("particles"), arrows of strength, the velocity in a plane or
    along lines, or the surface of a liquid ("sdf", and "sdf_slice" for a plane through its distances)"""
    color_by: str | None
    """colour: "speed", "vorticity", or a column such as "CoreRadius.sigma"; of a slice "speed",
    "vorticity_normal", "u.x", "temperature", "density", "fuel", "flame" or "smoke" """
    camera: Camera | CameraPath
    """"auto", a side ("x", "-x", ...), (position, focal point, up) in m, or a path that moves"""
    look: LookName | None
    """colours and materials; the world's own by default"""
    only: Sequence[str]
    """names of entities to draw, or one name; all by default"""
    normal: Literal["x", "y", "z"]
    """axis normal to a slice"""
    size: tuple[int, int]
    """width and height in pixels"""
    colors: Mapping[str, str]
    """colours of entities by their names, such as "orange" or "#ff8c1a"; default those of their recipes"""
    level: float
    """"sdf": distance of the drawn surface from the liquid's, m"""
    clip: bool
    """"sdf": cut open across the normal"""


def _check_keywords(drawing: PictureKeywords) -> None:
    """Raise FluidError for an unknown keyword, or one of the wrong type."""
    for name in drawing:
        if name not in PictureKeywords.__annotations__:
            raise unknown_name("option of a picture", name, PictureKeywords.__annotations__)
    if (what := drawing.get("what", "particles")) not in get_args(What):
        raise unknown_name("kind of picture", str(what), get_args(What))
    for name in ("color_by", "look"):
        if not isinstance(given := drawing.get(name), str | None):
            raise FluidError(f"{name} = {shown(given)}; a name is needed")
    if not is_number(level := drawing.get("level", 0.0)):
        raise FluidError(f"level = {shown(level)}; a distance in m is needed")
    names_of(drawing.get("only", ()), "only")
    if not isinstance(colors := drawing.get("colors", {}), Mapping):
        raise FluidError(f'colors = {shown(colors)}; colours by names are needed: {{"smoke": "orange"}}')
    refuse_unused_keywords(drawing)


def refuse_unused_keywords(drawing: PictureKeywords) -> None:
    """Raise FluidError for keywords without effect in the kind of picture that is asked for."""
    what, cut = drawing.get("what", "particles"), ("sdf",) if drawing.get("clip") else ()
    kinds_of: dict[str, tuple[str, ...]] = {
        "normal": ("slice", "sdf_slice", *cut),
        "level": SURFACES,
        "clip": ("sdf",),
        "only": FLOW,
        "colors": FLOW,
        "color_by": (*FLOW, "sdf"),
    }
    for name, kinds in kinds_of.items():
        given = drawing.get(name)
        if what not in kinds and given != "y":  # the default normal, which may not have been given
            more = " (or sdf with clip)" if name == "normal" and not cut else ""
            refuse_unused({name: given}, f"with what = {what!r}; it works with {', '.join(kinds)}{more}")


class Picture:
    """A picture as PNG data, which a notebook shows where it is the value of a cell."""

    def __init__(self, png: bytes) -> None:
        self.png = png
        """The bytes of the .png file"""

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        return f"Picture({len(self.png):,} bytes of PNG)"


@dataclass(frozen=True)
class Subject:
    """What all pictures of a run or a world share: its polytopes, options, the axis that is up, look, colours
    and units."""

    hulls: Polytopes
    world: WorldOptions
    up: str
    look: str
    colors: Mapping[str, str]
    declared: Mapping[str, Mapping[str, str]]

    @classmethod
    def of_run(cls, folder: Path) -> Subject:
        """What pictures of a run share."""
        run = RunFolder.open(folder)
        hulls, options, up = hulls_of_run(folder), world_of_run(folder), up_of_run(run)
        return cls(hulls, options, up, look_of_run(folder), named_colours(run), run.columns())

    def options(self, drawing: PictureKeywords) -> dict[str, Any]:
        """The drawing as options of `viz.style`; its look and its colours go before those of the subject."""
        options: dict[str, Any] = {
            **drawing,
            "look": drawing.get("look") or self.look,
            "colors": {**self.colors, **drawing.get("colors", {})},
            "populations": list(names_of(drawing.get("only", ()), "only")) or None,
            "hulls": self.hulls,
            "declared": self.declared,
        }
        return of_world(
            self.world, self.up, {k: v for k, v in options.items() if k not in ("only", "level", "clip")}
        )

    def check(
        self, drawing: PictureKeywords, populations: Mapping[str, Collection[str]], flow: Callable[[], Flow]
    ) -> None:
        """Raise FluidError for colours of unknown populations; warn of what would show nothing.

        That is a body without a shape, a flow where nothing flows, and a look that needs columns that no
        tracers have. Populations with a colour of their own, in the world or in the drawing, need no such
        columns.
        """
        from ecs_fluid.viz.colours import missing_columns

        colors = drawing.get("colors", {})
        for name in colors:
            if name not in populations:
                raise unknown_name("population", str(name), populations)
        what = drawing.get("what", "particles")
        drawn = () if what in SURFACES else names_of(drawing.get("only", ()), "only") or populations
        for name in drawn:
            if "HullShape.hull" in populations.get(name, ()) and name not in self.hulls:
                warn(
                    f"the shapes of the bodies {name!r} are not in a checkpoint of this run; they are not "
                    "drawn",
                    3,
                )
        flows = what in ("glyphs", "streamlines") or (
            what == "slice" and drawing.get("color_by") not in FIELDS
        )
        known = {"Strength.alpha"} if what == "glyphs" else {"Strength.alpha", "Liquid.volume"}
        moving = any(known & {*columns} for columns in populations.values())
        if flows and not moving and (what == "glyphs" or not flow().blows):
            warn(f"what = {what!r} shows the flow of vortons, but there are none here", 3)
        if what != "particles" or drawing.get("color_by") is not None:
            return
        look = drawing.get("look") or self.look
        if missing := missing_columns(look, populations, {*self.colors, *colors}):
            warn(
                f"look = {look!r} colours tracers by {missing}, but none has it here; a SamplingSystem gives "
                "it to them",
                3,
            )

    def check_frame(self, drawing: PictureKeywords, frame: Mapping[str, Any]) -> None:
        """Warn of tracers most of which lie in a liquid whose surface hides them in this frame."""
        from ecs_fluid.viz.shared_limits import warn_of_hidden_in_look

        look, names = drawing.get("look") or self.look, names_of(drawing.get("only", ()), "only") or frame
        what, color_by = drawing.get("what", "particles"), drawing.get("color_by")
        warn_of_hidden_in_look(frame, look, names, what, color_by)


@dataclass(frozen=True)
class Moment:
    """What a picture needs of a world or a stored frame; ``distances`` is called only if they are drawn."""

    time: float
    columns: dict[str, dict[str, Any]]
    velocity: Flow
    distances: Callable[[], Distances]
    subject: Subject


def stored_moment(folder: Path, number: int) -> Moment:
    """A stored frame of a run."""
    time, columns, velocity = frame_of_run(folder, number)
    run = RunFolder.open(folder)

    def distances() -> Distances:
        return distances_at(run.fields, int(Trajectory(run.trajectory).ticks[number]))

    return Moment(time, columns, velocity, distances, Subject.of_run(folder))


def present_moment(world: World) -> Moment:
    """The present state of a world, evaluated."""
    from ecs_fluid.viz.bodies import hulls_in

    world.evaluate()

    def distances() -> Distances:
        from ecs_fluid.viz.surfaces import Distances

        found = level_of(world)
        if found is None:
            raise FluidError(
                "the world holds no signed distances; a [[system]] of kind = 'surface' makes them"
            )
        return Distances(*found)

    columns = {name: dict(columns) for name, columns in world.snapshot().items()}
    tables = world.recipe or {}
    up, look = up_of(world.fluid[Fluid].gravity), look_of_tables(tables)
    subject = Subject(hulls_in(world), world.options, up, look, colors_in(tables), {})
    return Moment(world.time, columns, Flow(lambda: world, columns), distances, subject)


# ------------------------------------------------------------------ one picture


def show(moment: Moment, drawing: PictureKeywords, save: str | Path | None = None) -> Picture | None:
    """Show a moment in a window, or in a notebook as a picture; with `save` write a .png file instead."""
    _check_keywords(drawing)
    if save is not None:
        target = path_of(save, "save")
        check_picture(target)
        draw(moment, drawing, target)
        return Picture(target.read_bytes())
    if in_notebook():
        with tempfile.TemporaryDirectory() as folder:
            draw(moment, drawing, Path(folder) / "picture.png")
            return Picture((Path(folder) / "picture.png").read_bytes())
    show_in_window(moment, drawing, "write a picture with save='picture.png'")
    return None


def show_in_window(moment: Moment, drawing: PictureKeywords, instead: str) -> None:
    """Show a moment in a window; if there can be none, say so, but only after the drawing was checked."""
    if drawing.get("what") not in SURFACES:
        from ecs_fluid.viz.shared_limits import survey
        from ecs_fluid.viz.style import Options

        _check_keywords(drawing)
        survey([(moment.time, moment.columns)], Options.of(moment.subject.options(drawing)))
    require_display(instead)
    draw(moment, drawing, None)


def draw(moment: Moment, drawing: PictureKeywords, save: Path | None) -> None:
    """Show a moment in a window, or write it to a file; without OpenGL matplotlib writes the file."""
    _check_keywords(drawing)
    what = drawing.get("what", "particles")
    moment.subject.check(drawing, moment.columns, lambda: moment.velocity)
    moment.subject.check_frame(drawing, moment.columns)
    if save is not None and _needs_matplotlib(what):
        _draw_with_matplotlib(moment, drawing, save)
        return
    with contextlib.closing(_plotter(moment, drawing, save is not None)) as plotter:
        if save is None:
            plotter.show()
        else:
            from ecs_fluid.viz.scene import save_png

            save_png(plotter, save)


def _surface_options(drawing: PictureKeywords, look: str, up: str) -> dict[str, Any]:
    """The drawing as options of pictures of a surface, with their defaults."""
    kept = ("camera", "normal", "size", "color_by", "level", "clip")
    options: dict[str, Any] = {key: drawing[key] for key in kept if key in drawing}  # type: ignore[literal-required]
    options |= {"look": drawing.get("look") or look, "up": up}
    return {**options, "slices": drawing.get("what") == "sdf_slice"}


def _plotter(moment: Moment, drawing: PictureKeywords, off_screen: bool) -> Any:
    """The PyVista plotter that shows the moment."""
    if drawing.get("what") not in SURFACES:
        from ecs_fluid.viz.scene import render

        options = moment.subject.options(drawing)
        return render(
            moment.columns, velocity=moment.velocity, time=moment.time, off_screen=off_screen, **options
        )
    from ecs_fluid.viz.surfaces import render_surface

    options = _surface_options(drawing, moment.subject.look, moment.subject.up)
    if isinstance(camera := options.get("camera"), CameraPath):
        options["camera"] = camera.at(moment.time, 0.0)
    flow = at_surface(moment.columns, moment.velocity) if drawing.get("color_by") == "speed" else None
    return render_surface(
        moment.distances(), velocity=flow, time=moment.time, off_screen=off_screen, **options
    )


def _draw_with_matplotlib(moment: Moment, drawing: PictureKeywords, save: Path) -> None:
    from ecs_fluid.viz.matplotlib_picture import plain_distances, plain_picture

    if drawing.get("what") not in SURFACES:
        options = moment.subject.options(drawing)
        plain_picture(save, moment.columns, velocity=moment.velocity, time=moment.time, **options)
        return
    phi, origin, spacing, _ = moment.distances()
    options = {key: drawing[key] for key in ("normal", "level", "size") if key in drawing}
    plain_distances(save, phi, np.asarray(origin), np.asarray(spacing), time=moment.time, **options)


def _needs_matplotlib(what: str) -> bool:
    """Whether matplotlib must draw, with a warning; FluidError for pictures that it cannot draw."""
    from ecs_fluid.viz.matplotlib_picture import DRAWN

    try:
        require_gl()
    except FluidError as reason:
        if what not in DRAWN:
            raise FluidError(f"{reason}; without them, only {', '.join(DRAWN)} can be drawn") from None
        warn(f"drawn plainly, by matplotlib: {reason}", 3)
        return True
    return False


# ------------------------------------------------------------------ movies


def write_movie(
    folder: Path,
    path: str | Path,
    frames: str | int | slice | None,
    drawing: PictureKeywords,
    *,
    fps: float | None = None,
    orbit: float = 0.0,
    jobs: int = 1,
    progress: Callable[[int], object] | None = None,
) -> Path:
    """A movie of stored frames: of particles and the flow, or of a liquid's surface."""
    _check_keywords(drawing)
    check_progress(progress)
    target = path_of(path, "movie")
    check_movie(target)
    still = is_sequence(target) and not orbit and isinstance(drawing.get("camera", "auto"), str | tuple)
    refuse_unused({"fps": still and fps is not None}, "on a sequence of pictures from a camera at rest")
    stored, rows = chosen_frames(folder, frames)
    what = drawing.get("what", "particles")
    more: dict[str, Any] = {
        "fps": real_time_fps(stored.times[rows.start : rows.stop : rows.step]) if fps is None else fps,
        "orbit": orbit,
        "jobs": jobs,
        "numbers": rows,
        "progress": progress,
    }
    if what in SURFACES:
        from ecs_fluid.viz.surface_movie import surface_movie

        recording = SurfaceRecording(folder, stored, rows, speed=drawing.get("color_by") == "speed")
        up = up_of_run(RunFolder.open(folder))
        surface_movie(target, recording, **more, **_surface_options(drawing, look_of_run(folder), up))
    else:
        from ecs_fluid.viz.movie import movie
        from ecs_fluid.viz.shared_limits import Recording

        labels = {name: stored.index(name).columns for name in stored.populations}
        subject = Subject.of_run(folder)
        flow_of = cache(lambda: VelocityOf(folder))
        subject.check(drawing, labels, lambda: flow_of()((0.0, {})))
        subject.check_frame(drawing, stored.frame(rows[-1]))
        flow = flow_of() if what in ("slice", "streamlines") else None
        movie(target, Recording(stored, rows), velocity_of=flow, **more, **subject.options(drawing))
    return target


# ------------------------------------------------------------------ checks before drawing


def check_movie(movie: Path) -> None:
    """Raise FluidError for a movie that cannot be written here, before anything is simulated."""
    from ecs_fluid.viz.movie import check_film

    check_film(movie)
    require_gl()


def check_picture(save: Path, option: str = "save") -> None:
    """Raise FluidError for a picture that cannot be written, before anything is simulated."""
    if save.suffix.lower() != ".png":
        raise FluidError(f"{option} {save}: a file ending in .png is needed")
    if not save.resolve().parent.is_dir():
        raise FluidError(f"{option} {save}: the folder {save.parent} does not exist")
    if not os.access(save.resolve().parent, os.W_OK):
        raise FluidError(f"{option} {save}: the folder {save.parent} cannot be written to")


def in_notebook() -> bool:
    """Whether the caller is a notebook, whose cells show pictures."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def require_display(instead: str) -> None:
    """Raise FluidError if no window can be opened; it ends with what to do `instead`.

    macOS and Windows name no display in the environment.
    """
    named = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if not named and sys.platform not in ("darwin", "win32"):
        raise FluidError(f"there is no display for a window; {instead}")
