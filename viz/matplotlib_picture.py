"""Pictures without OpenGL: particles and slices by matplotlib, seen from a side, with axes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.camera import SIZE, cameras, facing
from ecs_fluid.viz.colours import PAINTED
from ecs_fluid.viz.columns import (
    AXES,
    FIELDS,
    PRESSURE,
    Frame,
    drawable,
    has_scalar,
    known_scalars,
    scalar,
    title,
    unknown_name,
)
from ecs_fluid.viz.film import write_png
from ecs_fluid.viz.shared_limits import is_signed, is_vortons, kept, limits
from ecs_fluid.viz.style import LOOKS, Options, clock

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN = ("particles", "slice", "sdf_slice")
MOST = 60_000  # points of a population; more take long and hide each other
RESOLUTION = 120  # points along the longer side of a slice
PAD = 0.15
FLOW_COLOURS = ("speed", "u.x", "u.y", "u.z")

Velocity = Callable[[Any], Any]


def plain_picture(
    path: str | os.PathLike[str],
    frame: Frame,
    *,
    velocity: Velocity | None = None,
    time: float | None = None,
    **options: Any,
) -> Path:
    """Draw particles, or a slice of `velocity`, into the PNG file `path`, and return it.

    `options` are those of `style.Options`; of the look only the column by which it colours tracers is used.
    Particles are seen from a side, without perspective (`auto`: from the front, or down a thin axis), so
    that both axes are in metres. Raises FluidError for other kinds of pictures, for cameras that are no
    sides, and for unknown names.
    """
    chosen = Options.of(options)
    if chosen.what not in DRAWN:
        raise FluidError(f"{chosen.what} cannot be drawn without OpenGL; {', '.join(DRAWN)} can")
    found = list(drawable(kept(frame, chosen)))
    if not found:
        raise FluidError("there is nothing to draw: no population of this frame has a particle in it")
    lo = np.min([x.min(axis=0) for _, _, x in found], axis=0).astype(np.float64)
    hi = np.max([x.max(axis=0) for _, _, x in found], axis=0).astype(np.float64)
    figure, axes = _figure(chosen.size)
    if chosen.what == "slice":
        if velocity is None:
            raise FluidError("a picture of slice needs a velocity function, and none was given")
        _slice(figure, axes, velocity, lo, hi, chosen)
    else:
        _particles(figure, axes, found, lo, hi, chosen)
    return _written(figure, axes, time, path)


def plain_distances(
    path: str | os.PathLike[str],
    phi: NDArray,
    origin: NDArray,
    spacing: NDArray,
    normal: str = "y",
    level: float = 0.0,
    time: float | None = None,
    size: Sequence[int] = SIZE,
) -> Path:
    """Draw the middle plane of signed distances phi (px, py, pz) m, with the line phi = `level` (m)."""
    if normal not in AXES:
        raise unknown_name("slice normal", normal, AXES)
    flat = [axis for axis in range(3) if phi.shape[axis] == 1]
    across = flat[0] if flat else AXES[normal]
    right, up = (axis for axis in range(3) if axis != across)
    plane = np.take(phi, phi.shape[across] // 2, axis=across).T
    ticks = [origin[axis] + spacing[axis] * np.arange(phi.shape[axis]) for axis in (right, up)]
    figure, axes = _figure((int(size[0]), int(size[1])))
    most = float(np.abs(plane).max()) or 1.0
    _plane(figure, axes, (right, up), ticks, plane, (-most, most), "signed distance [m]")
    if plane.min() < level < plane.max():
        axes.contour(*ticks, plane, levels=[level], colors="black", linewidths=2.0)
    return _written(figure, axes, time, path)


def _figure(size: tuple[int, int]) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    dpi = max(size[1] / 7.2, 10.0)  # letters take the same part of the picture at every size
    figure = Figure(figsize=(size[0] / dpi, size[1] / dpi), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_aspect("equal")
    return figure, axes


def _side(options: Options, lo: NDArray, hi: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Directions to the right, upwards and towards the eye, each along an axis."""
    camera = options.camera
    if camera == "auto":
        camera = facing(lo, hi, camera, options.up).replace("auto", "front")
    if not isinstance(camera, str):
        raise FluidError("without OpenGL particles are drawn from a side: x, -x, y, -y, z or -z")
    towards, up = cameras(options.up)[camera]
    return np.cross(up, towards), up, towards


def _particles(
    figure: Figure, axes: Axes, found: list[Any], lo: NDArray, hi: NDArray, options: Options
) -> None:
    right, up, towards = _side(options, lo, hi)
    axes.set_aspect("equal", adjustable="datalim")
    painted = PAINTED.get(LOOKS[options.look].paint, "")
    wanted = [options.color_by] if options.color_by else [painted, "vorticity", "strength"]
    colour = next((n for n in wanted if n and any(has_scalar(c, n) for _, c, _ in found)), None)
    if colour is None and options.color_by:
        raise unknown_name(
            "colour", options.color_by, {name for _, c, _ in found for name in known_scalars(c)}
        )
    values = [scalar(c, colour) for _, c, _ in found if colour and has_scalar(c, colour)]
    span = (0.0, 1.0)
    if values:
        ends = np.percentile(np.concatenate(values), [0.5, 99.5])
        span = limits(colour, float(ends[0]), float(ends[1]))
    shown = None
    # Vortons last, as they lie within their smoke.
    for name, columns, x in sorted(found, key=lambda item: is_vortons(item[1])):
        rows = np.argsort(x @ towards, kind="stable")[:: -(-len(x) // MOST)]
        dots: dict[str, Any] = {"s": 12.0 if is_vortons(columns) else 1.5, "linewidths": 0.0}
        if colour and has_scalar(columns, colour):
            cmap = "coolwarm" if is_signed(*span) else "viridis"
            dots |= {"c": scalar(columns, colour)[rows], "cmap": cmap, "vmin": span[0], "vmax": span[1]}
        else:
            dots |= {"color": "0.55", "label": name}
        drawn = axes.scatter(np.abs(right) @ x[rows].T, np.abs(up) @ x[rows].T, **dots)
        shown = drawn if "c" in dots else shown
    _label(axes, int(np.abs(right).argmax()), int(np.abs(up).argmax()), right.sum(), up.sum())
    if shown is not None and colour:
        figure.colorbar(shown, ax=axes, label=title(colour, options.declared))


def _slice(
    figure: Figure, axes: Axes, velocity: Velocity, lo: NDArray, hi: NDArray, options: Options
) -> None:
    colour, field = options.color_by or "speed", getattr(velocity, "field", None)
    if colour not in FLOW_COLOURS and (colour not in (*FIELDS, PRESSURE) or field is None):
        raise unknown_name("colour of a slice without OpenGL", colour, (*FLOW_COLOURS, PRESSURE, *FIELDS))
    across = AXES[options.normal]
    right, up = (axis for axis in range(3) if axis != across)
    pad = PAD * float((hi - lo).max()) or 0.5
    lo, hi = lo - pad, hi + pad
    step = float((hi - lo)[[right, up]].max()) / (RESOLUTION - 1)
    ticks = [np.arange(lo[axis], hi[axis] + 0.5 * step, step) for axis in (right, up)]
    points = np.empty((len(ticks[1]), len(ticks[0]), 3))
    points[...] = 0.5 * (lo + hi) if options.origin is None else options.origin
    points[..., right], points[..., up] = np.meshgrid(*ticks)
    if colour not in FLOW_COLOURS and field is not None:
        values = np.asarray(field(colour, points.reshape(-1, 3)), np.float64).reshape(points.shape[:2])
    else:
        u = np.asarray(velocity(points.reshape(-1, 3)), np.float64).reshape(points.shape)
        values = np.linalg.norm(u, axis=-1) if colour == "speed" else u[..., AXES[colour[2:]]]
        if (within := getattr(velocity, "within", None)) is not None:
            values = np.where(within(points.reshape(-1, 3)).reshape(values.shape), values, np.nan)
    known = values[np.isfinite(values)]
    span = limits(colour, float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    _plane(figure, axes, (right, up), ticks, values, span, title(colour, options.declared))


def _plane(
    figure: Figure,
    axes: Axes,
    flat: tuple[int, int],
    ticks: Any,
    values: NDArray,
    span: tuple[float, float],
    label: str,
) -> None:
    """Numbers on a plane across two axes as colours, with their bar."""
    cmap = "coolwarm" if is_signed(*span) else "viridis"
    drawn = axes.pcolormesh(*ticks, values, cmap=cmap, vmin=span[0], vmax=span[1], shading="gouraud")
    _label(axes, flat[0], flat[1], 1.0, 1.0)
    figure.colorbar(drawn, ax=axes, label=label)


def _label(axes: Axes, right: int, up: int, right_sign: float, up_sign: float) -> None:
    """Names and units of the axes; one that grows to the left is turned round."""
    axes.set_xlabel(f"{'xyz'[right]} [m]")
    axes.set_ylabel(f"{'xyz'[up]} [m]")
    if right_sign < 0:
        axes.invert_xaxis()
    if up_sign < 0:
        axes.invert_yaxis()


def _written(figure: Figure, axes: Axes, time: float | None, path: str | os.PathLike[str]) -> Path:
    if time is not None:
        axes.set_title(clock(time, time), loc="left")
    canvas: Any = figure.canvas
    canvas.draw()
    return write_png(np.asarray(canvas.buffer_rgba())[..., :3].copy(), path)
