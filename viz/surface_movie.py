"""Movies of a liquid's surface, or of a plane through its distances."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.drawers import Drawing, draw
from ecs_fluid.viz.film import FPS, write_film
from ecs_fluid.viz.movie import check_film, even_sized, numbered
from ecs_fluid.viz.style import Options
from ecs_fluid.viz.surface_scene import SurfaceOptions, SurfaceScene, TimedDistances, survey_surfaces


def surface_movie(
    path: str | os.PathLike[str],
    frames: Sequence[TimedDistances],
    *,
    slices: bool = False,
    color_by: str | None = None,
    level: float = 0.0,
    clip: bool = False,
    fps: float = FPS,
    jobs: int = 1,
    numbers: Sequence[int] | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Path:
    """Draw the surface of every frame into `path`, as `movie.movie` does, and return it.

    `slices`, `color_by`, `level` and `clip` are those of `surfaces.render_surface`, the rest those of
    `movie`; `options` may be camera, orbit, look, size and normal. Camera and colours suit all frames; a
    frame without a surface is a picture without one. Raises FluidError for frames that all lack a surface,
    unknown names, a path that cannot be written, missing encoders and a machine that cannot render.
    """
    target = check_film(path, fps)
    chosen = SurfaceOptions(slices, color_by, level, clip)
    drawn_as = even_sized(replace(Options.of(options), off_screen=True), target)
    if not len(frames):
        raise FluidError("there are no frames to make a movie of")
    scene = partial(SurfaceScene, survey_surfaces(frames, chosen), chosen, drawn_as)
    drawing = Drawing(frames, scene, fps)
    pictures = numbered(draw(drawing, jobs), numbers, progress)
    return write_film(target, pictures, drawn_as.size, fps)
