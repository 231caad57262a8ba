"""Pictures into files: one mp4 or gif, or a numbered sequence of PNGs; one picture in memory at a time."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.errors import FluidError, optional
from ecs_fluid.io.disk import when_free

SUFFIXES = (".mp4", ".gif")
LONGEST = 200
"""Bytes of a name, with room for that of the unfinished file."""
FPS = 30.0
"""Frames per second, by default."""
QUALITY = 18
"""Constant rate factor of an .mp4; 0 is lossless, 51 is worst."""
_NUMBER = re.compile(r"%(0[1-9])?d")

Picture = NDArray[np.uint8]
Pictures = Iterable[tuple[int, Picture]]
"""Number of the frame, and its picture (height, width, 3)."""


def check_target(path: str | os.PathLike[str]) -> Path:
    """The path of a movie, or of a sequence of pictures such as ``film/frame_%04d.png``.

    Raises FluidError for another ending, a sequence without exactly one number in the file's name, and a
    folder that is not there (that of a sequence is made, if the folder around it is there) or not writable.
    """
    target = Path(path)
    if target.suffix.lower() == ".png":
        if len(_NUMBER.findall(target.name)) != 1 or target.name.count("%") != 1:
            raise FluidError(
                f"{target} is one picture, and a movie has many: put the frame's number into its name, "
                "frame_%04d.png for example"
            )
        folder = target.parent if target.parent.exists() else target.parent.resolve().parent
    elif target.suffix.lower() in SUFFIXES:
        folder = target.parent
    else:
        raise FluidError(
            f"{target} does not end in {' or '.join(SUFFIXES)}, nor is it a sequence such as frame_%04d.png; "
            "movies are written as these"
        )
    if not folder.is_dir():
        raise FluidError(f"cannot write the movie {target}: the folder {folder} does not exist")
    if len(os.fsencode(target.name)) > LONGEST:
        raise FluidError(f"cannot write the movie {target}: a name of at most {LONGEST} bytes is needed")
    if not os.access(folder, os.W_OK):
        raise FluidError(f"cannot write the movie {target}: the folder {folder} cannot be written to")
    return target


def is_sequence(target: Path) -> bool:
    """Whether a movie's path stands for a sequence of pictures."""
    return target.suffix.lower() == ".png"


def write_png(picture: Picture, path: str | os.PathLike[str]) -> Path:
    """Write a picture (height, width, 3) of 0 to 255, complete or not at all."""
    from PIL import Image

    target = Path(path)
    if target.suffix.lower() != ".png":
        raise FluidError(f"{target} does not end in .png; pictures are written as PNG")
    with _atomic_file(target, "picture") as part:
        Image.fromarray(picture).save(part)
    return target


@contextlib.contextmanager
def _atomic_file(target: Path, what: str) -> Iterator[Path]:
    """A file beside `target` that takes its place when the block ends well, and is removed when not."""
    part = target.with_name(f".{target.stem}.part{os.getpid()}{target.suffix.lower()}")
    try:
        yield part
        when_free(lambda: os.replace(part, target))
    except OSError as error:
        raise FluidError(f"cannot write the {what} {target}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def write_film(target: Path, pictures: Pictures, size: tuple[int, int], fps: float) -> Path:
    """Write the pictures of `size` (width, height) to `target`, which `check_target` has passed.

    An mp4 or gif appears under its name only when complete; of a sequence every picture does, so that one
    cut short can be continued.
    """
    if is_sequence(target):
        count = 0
        for number, picture in pictures:
            with contextlib.suppress(OSError):  # writing the picture says what is wrong
                target.parent.mkdir(exist_ok=True)
            write_png(picture, target.with_name(target.name % number))
            count += 1
        if not count:
            raise FluidError("there are no frames to make a movie of")
        return target
    encoder = require_encoder()
    with _atomic_file(target, "movie") as part:
        count = _encode(encoder, part, pictures, size, fps)
        if not count:
            raise FluidError("there are no frames to make a movie of")
        _check_frame_count(encoder, part, target, count)
    return target


def _encode(encoder: Any, part: Path, pictures: Pictures, size: tuple[int, int], fps: float) -> int:
    """Encode every picture; returns how many."""
    if part.suffix == ".gif":
        # One palette per frame: ffmpeg would otherwise hold the whole movie in memory to choose one for all.
        palette = "split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=new=1:dither=sierra2_4a"
        codec = {"codec": "gif", "pix_fmt_out": "pal8", "output_params": ["-filter_complex", palette]}
    else:
        extra = ["-crf", str(QUALITY), "-preset", "medium", "-movflags", "+faststart"]
        codec = {"codec": "libx264", "pix_fmt_out": "yuv420p", "output_params": extra}
    writer = encoder.write_frames(
        str(part), size, fps=fps, quality=None, macro_block_size=2, ffmpeg_log_level="error", **codec
    )
    count = 0
    try:
        writer.send(None)
        for _, picture in pictures:
            writer.send(picture)
            count += 1
    finally:
        writer.close()
    return count


def _check_frame_count(encoder: Any, part: Path, target: Path, count: int) -> None:
    """Raise FluidError unless the file holds `count` frames: the encoder does not report a full disk."""
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
    sentence = 'movies need an encoder: install it with `pip install "ecs-fluid[movie]"`'
    return optional("imageio_ffmpeg", sentence)
