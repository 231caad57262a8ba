"""Movies: the frames of a run through one scene into one film, one frame in memory at a time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.drawers import Drawing, draw
from ecs_fluid.viz.film import FPS, check_target, is_sequence, require_encoder, write_film
from ecs_fluid.viz.shared_limits import TimedFrame, View, survey
from ecs_fluid.viz.style import LOOKS, Options

if TYPE_CHECKING:  # it imports PyVista, which only drawing needs
    from pathlib import Path

    from ecs_fluid.viz.fields import Velocity


def movie(
    path: str | os.PathLike[str],
    frames: Iterable[TimedFrame],
    *,
    fps: float = FPS,
    velocity_of: Callable[[TimedFrame], Velocity] | None = None,
    view: View | None = None,
    jobs: int = 1,
    numbers: Sequence[int] | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Path:
    """Draw `frames`, each (time [s], frame), into `path` and return it.

    `path` is an .mp4 (H.264, yuv420p), a .gif, or a sequence of pictures, ``film/frame_%04d.png``, each with
    its number: of its place in `frames`, or that in `numbers`. A sequence of frames (a list, or
    `shared_limits.Recording` of a stored trajectory) is looked through first so that camera and colours suit
    all of it; a one-pass iterator gets those of its first frame that has particles, unless `view` is given.
    `fps` are frames per second of the movie; `velocity_of((time, frame))` gives the velocity function of a
    slice or of streamlines; `jobs` processes draw side
    by side, the same pixels as one; `progress(count)` is called after every frame. Other `options` are those
    of `style.Options`; odd sizes of movies are made even, as H.264 needs. A movie appears under its name only
    when complete. Raises FluidError for no frames, unknown names, a path that cannot be written, missing
    encoders and a machine that cannot render.
    """
    target = check_film(path, fps)
    chosen = even_sized(replace(Options.of(options), off_screen=True), target)
    if view is None:
        view, frames = _view(frames, chosen)
    if chosen.smooth is None:  # smoke has no edges to smooth, and is what takes long to draw
        chosen = replace(chosen, smooth=view.puff is None or LOOKS[chosen.look].paint == "liquid")
    from ecs_fluid.viz.scene import Scene

    scene = partial(Scene, view, chosen, velocity_of=velocity_of)
    if chosen.needs_velocity and isinstance(frames, Sequence):
        looking = scene()
        view = replace(view, flow=looking.flow.range_of(looking, frames))
        looking.close()
        scene = partial(Scene, view, chosen, velocity_of=velocity_of)
    drawing = Drawing(frames, scene, fps, first_sets_colours=chosen.needs_velocity)
    pictures = numbered(draw(drawing, jobs), numbers, progress)
    return write_film(target, pictures, chosen.size, fps)


def check_film(path: str | os.PathLike[str], fps: float = FPS) -> Path:
    """The path of a movie, after all checks that need no drawing."""
    target = check_target(path)
    if not (isinstance(fps, int | float) and 0.1 <= fps <= 240.0):
        raise FluidError(f"fps {fps!r} is not allowed: give 0.1 to 240 frames per second")
    if not is_sequence(target):
        require_encoder()
    return target


def even_sized(options: Options, target: Path) -> Options:
    """The options with a size that the encoder of `target` can take."""
    if is_sequence(target):
        return options
    width, height = (int(length) + int(length) % 2 for length in options.size)
    return replace(options, size=(width, height))


def numbered(
    pictures: Iterable[Any], numbers: Sequence[int] | None, progress: Callable[[int], None] | None
) -> Iterator[tuple[int, Any]]:
    """Pictures with the numbers of their frames, or else their places; `progress` gets the count of each."""
    for place, picture in enumerate(pictures):
        yield (place if numbers is None else numbers[place]), picture
        if progress is not None:
            progress(place + 1)


def _view(frames: Iterable[TimedFrame], options: Options) -> tuple[View, Iterable[TimedFrame]]:
    """The view of all frames, of an iterator that of its first frame with particles; and all frames again."""
    if not isinstance(frames, Iterator):
        return survey(frames, options), frames
    held: list[TimedFrame] = []
    for timed in frames:
        held.append(timed)
        with contextlib.suppress(FluidError):
            return survey([timed], options), chain(held, frames)
    return survey(held, options), held
