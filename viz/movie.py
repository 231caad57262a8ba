"""Movies: the frames of a run through one scene into one mp4 or gif, with memory that does not grow."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.columns import Frame
from ecs_fluid.viz.look import Options
from ecs_fluid.viz.survey import TimedFrame, View, survey

if TYPE_CHECKING:  # it imports PyVista, which only drawing needs
    from ecs_fluid.viz.fields import Velocity

SUFFIXES = (".mp4", ".gif")


def movie(
    path: str | os.PathLike[str],
    frames: Iterable[TimedFrame],
    *,
    fps: float = 30.0,
    velocity_of: Callable[[Frame], Velocity] | None = None,
    view: View | None = None,
    quality: int = 18,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Path:
    """Draw `frames`, each (time [s], frame), into `path` (.mp4: H.264, yuv420p; or .gif) and return its path.

    A sequence (a list, or `survey.Recording` of a stored trajectory) is looked through first so that camera
    and colours suit all of it; a one-pass iterator gets those of its first frame that has particles, unless
    `view` is given. `fps` are frames per second of the movie; `velocity_of(frame)` gives the velocity
    function of a slice or of streamlines; `quality` is H.264's rate factor (0 lossless to 51);
    `progress(count)` is called after every frame. Other `options` are those of `look.Options`; odd sizes are
    made even, as H.264 needs. The file appears under its name only when complete. Raises FluidError for no
    frames, unknown names, a path that cannot be written, missing encoders and a machine that cannot render.
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise FluidError(f"{target} does not end in {' or '.join(SUFFIXES)}; movies are written as these")
    if not 0.1 <= fps <= 240.0:
        raise FluidError(f"fps {fps!r} is not allowed: 0.1 to 240 frames per second are")
    if not 0 <= quality <= 51:
        raise FluidError(f"quality {quality!r} is not allowed: 0 (lossless) to 51 (worst) are")
    chosen = Options.of(options)
    width, height = (int(length) + int(length) % 2 for length in chosen.size)
    chosen = replace(chosen, size=(width, height), off_screen=True)
    encoder = require_encoder()
    if not os.access(target.parent, os.W_OK):
        raise FluidError(
            f"cannot write the movie {target}: its folder does not exist or may not be written to"
        )
    if view is None:
        view, frames = _view(frames, chosen)
    if chosen.smooth is None:  # smoke has no edges to smooth, and is what takes long to draw
        chosen = replace(chosen, smooth=view.puff is None)
    part = target.with_name(f".{target.stem}.part{os.getpid()}{target.suffix.lower()}")
    try:
        count = _write(encoder, part, frames, view, chosen, fps, quality, velocity_of, progress)
        if not count:
            raise FluidError("there are no frames to make a movie of")
        _check(encoder, part, target, count)
        os.replace(part, target)
    except OSError as error:
        raise FluidError(f"cannot write the movie {target}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    return target


def _view(frames: Iterable[TimedFrame], options: Options) -> tuple[View, Iterable[TimedFrame]]:
    """The view of all frames, or, of an iterator, of its first frame with particles; and all the frames
    still."""
    if not isinstance(frames, Iterator):
        return survey(frames, options), frames
    held: list[TimedFrame] = []
    for timed in frames:
        held.append(timed)
        with contextlib.suppress(FluidError):
            return survey([timed], options), chain(held, frames)
    return survey(held, options), held


def _write(
    encoder: Any,
    part: Path,
    frames: Iterable[TimedFrame],
    view: View,
    options: Options,
    fps: float,
    quality: int,
    velocity_of: Callable[[Frame], Velocity] | None,
    progress: Callable[[int], None] | None,
) -> int:
    """Draw and encode every frame; returns how many."""
    from ecs_fluid.viz.scene import Scene, pixels

    if part.suffix == ".gif":
        # One palette per frame: ffmpeg would otherwise hold the whole movie in memory to choose one for all.
        palette = "split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=new=1:dither=sierra2_4a"
        codec = {"codec": "gif", "pix_fmt_out": "pal8", "output_params": ["-filter_complex", palette]}
    else:
        extra = ["-crf", str(quality), "-preset", "medium", "-movflags", "+faststart"]
        codec = {"codec": "libx264", "pix_fmt_out": "yuv420p", "output_params": extra}
    writer = encoder.write_frames(
        str(part),
        options.size,
        fps=fps,
        quality=None,
        macro_block_size=2,
        ffmpeg_log_level="error",
        **codec,
    )
    scene = Scene(view, options)
    count = 0
    try:
        writer.send(None)
        for time, frame in frames:
            velocity = velocity_of(frame) if velocity_of is not None and options.needs_velocity else None
            scene.show(frame, velocity, time)
            writer.send(pixels(scene.plotter))
            count += 1
            if progress is not None:
                progress(count)
    finally:
        writer.close()
        scene.close()
    return count


def _check(encoder: Any, part: Path, target: Path, count: int) -> None:
    """The encoder says nothing of a full disk, so count the frames that the file holds."""
    try:
        found = encoder.count_frames_and_secs(str(part))[0]
    except RuntimeError:
        found = 0
    if found != count:
        raise FluidError(
            f"cannot write the movie {target}: the encoder stored {found} of {count} frames; "
            "is the disk full?"
        )


def require_encoder() -> Any:
    """imageio-ffmpeg, or the sentence that says how to get it."""
    try:
        import imageio_ffmpeg
    except ImportError:
        raise FluidError('movies need an encoder: install it with `pip install "ecs-fluid[movie]"`') from None
    return imageio_ffmpeg
