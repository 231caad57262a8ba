"""Frames of a run into the files of a page: one in memory at a time, and a group of them as packed bytes."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps

from ecs_fluid.errors import FluidError
from ecs_fluid.exports.bodies import Placed
from ecs_fluid.exports.colours import named_colours
from ecs_fluid.exports.frames import Frame, Frames
from ecs_fluid.exports.surfaces import Surfaces
from ecs_fluid.io.vtkhdf import POINTS
from ecs_fluid.runs.surface_frames import stored_mesh
from ecs_fluid.upward import axis_vector
from ecs_fluid.viz.camera import ROOM, VIEW_ANGLE, cameras, facing
from ecs_fluid.viz.colours import HEAT, PAINTED, colours_of_bodies
from ecs_fluid.viz.columns import scalar, title
from ecs_fluid.viz.liquid_surface import FOAM
from ecs_fluid.viz.page import codec, default_colours, files
from ecs_fluid.viz.page.fields import Field, chosen_fields, empty_columns
from ecs_fluid.viz.page.liquid import drawn_liquid
from ecs_fluid.viz.page.solids import Solids
from ecs_fluid.viz.shared_limits import (
    Recording,
    View,
    evenly,
    is_liquid,
    is_vortons,
    is_whitewater,
    survey,
    warn_of_hidden,
)
from ecs_fluid.viz.style import EDGE, LOOKS, SMALL, Look, Options, lit_from_above

GROUP_BYTES = 1_500_000
"""Size of a group of frames, bytes, at which it is written; it loads and unpacks in well under 0.1 s."""

GROUP_FRAMES = 100
FINE = 0.02
"""Step of stored places, over the radius at which particles are drawn."""

DIRECTIONS = 300
"""Number of directions in which outermost points are found, for the viewer to fit its camera to."""


def write(
    folder: Path, frames: Frames, names: Sequence[str], color_by: str | None, look: str, heading: str
) -> dict[str, Any]:
    """Write all files of a page but the manifest; returns further entries for it."""
    offered = chosen_fields(frames, names)
    if color_by is not None and color_by not in [field.name for field in offered]:
        offered += chosen_fields(frames, [color_by])  # the error for a wrong name lists all
    writer = _Writer(folder, frames, offered, look)
    files.write_static_files(folder, heading)
    for frame in frames:
        writer.add(frame)
    if frames.surface is not None and writer.surface_shown(color_by):
        warn_of_hidden(frame.particles, frame.particles, "; switch the surface off in the page")
    writer.finish(heading, color_by)
    return {"opens": "index.html", "fields": [field.name for field in offered]}


class _Writer:
    """A page under construction."""

    def __init__(self, folder: Path, frames: Frames, offered: list[Field], look: str) -> None:
        self.folder, self.frames, self.fields = folder, frames, offered
        self.look_name, self.look = look, lit_from_above(LOOKS[look], frames.up)
        self.tables = empty_columns(frames)
        self.surfaces = Surfaces(frames)
        self.own = {name: self.look.named(color)[0] for name, color in named_colours(frames.run).items()}
        self.view = _view(frames, self.surfaces, look)
        self.clouds = [name for name, table in self.tables.items() if default_colours.is_smoke(table)]
        puff = self.view.puff if self.clouds else None
        self.smoke = default_colours.Smoke(self.look, self.view, puff) if puff is not None else None
        self.solids = Solids(self.surfaces, frames.bodies, self._body_colours)
        # The default field of vortons is always stored.
        if self.view.color_by is not None:
            default_field = chosen_fields(frames, [self.view.color_by])[0]
            if default_field.name not in [field.name for field in offered]:
                offered.append(default_field)
        self.moving = any("Velocity.u" in table for table in self.tables.values())
        self.speed = next((k for k, field in enumerate(offered) if field.name == "speed"), -1)
        self.groups: list[int] = []
        self.done = self.held = 0
        self.places = files.Stream(folder, "x")
        self.values = [files.Stream(folder, f"f{k}") for k in range(len(offered))]
        self.surface = files.Stream(folder, "s")

    def add(self, frame: Frame) -> None:
        """Add a frame to the present group, and write the group when it is large enough."""
        if not self.held:
            self.groups.append(self.done)
        self._add_places(frame)
        for field, stream in zip(self.fields, self.values, strict=True):
            self._add_values(frame, field, stream)
        if self.frames.surface is not None:
            self._add_surface(frame)
        self.done += 1
        self.held += 1
        if self.places.size + self.surface.size > GROUP_BYTES or self.held == GROUP_FRAMES:
            self._flush()

    def _flush(self) -> None:
        for stream in (self.places, *self.values, *([self.surface] if self.frames.surface else [])):
            stream.flush(len(self.groups) - 1)
        self.held = 0

    def _add_places(self, frame: Frame) -> None:
        """Positions and default colours of particles, then bodies."""
        descriptions, blobs = [], []
        painted = self.smoke.of(frame.particles, self.clouds) if self.smoke else {}
        for name, columns in frame.particles.items():
            described, blob = codec.places(columns["Position.x"], FINE * self._radius(name))
            descriptions.append(described)
            blobs += [blob, painted.get(name, b"")]
        bodies, blob = self.solids.rows(frame)
        self.places.add({"populations": descriptions, "bodies": bodies}, b"".join([*blobs, blob]))

    def _body_colours(self, bodies: Sequence[Placed]) -> np.ndarray:
        """Colours (n, 3) of bodies, as `show` has them."""
        span = self.view.painted if self._painted() and PAINTED[self.look.paint] == HEAT else None
        return colours_of_bodies(self.look, bodies, self.view.colors, span)

    def _add_values(self, frame: Frame, field: Field, stream: files.Stream) -> None:
        descriptions, blobs = [], []
        names = list(frame.particles)
        for owner in field.populations:
            numbers = scalar(frame.particles[names[owner]], field.name)
            field.widen(np.asarray(numbers, np.float64))
            described, blob = codec.values(numbers)
            descriptions.append(described)
            blobs.append(blob)
        stream.add(descriptions, b"".join(blobs))

    def _add_surface(self, frame: Frame) -> None:
        """Mesh of a liquid's surface and its drops: vertices, triangles, speeds, colours."""
        liquid = self.surfaces.liquid(frame)
        if liquid is None:
            self.surface.add(None, b"")
            return
        whitewater = [columns for columns in frame.particles.values() if is_whitewater(columns)]
        surface = drawn_liquid(liquid, self.own, self.look.water, whitewater)
        # As fine as two bytes allow; a coarser step would be visible in the light on thin triangles.
        fine = 2e-5 * float(np.linalg.norm(self.view.hi - self.view.lo))
        vertices, blob = codec.places(surface.vertices, fine)
        description: dict[str, Any] = {"vertices": vertices, "triangles": len(surface.triangles)}
        blob += codec.planes(surface.triangles.astype(np.uint32).ravel())
        if self.moving:
            description["speed"], more = codec.values(surface.speed)
            blob += more
        if surface.colour is not None:
            description["coloured"] = True
            blob += np.rint(255.0 * surface.colour).astype(np.uint8).T.tobytes()
        self.surface.add(description, blob)

    def _radius(self, name: str) -> float:
        """Radius [m] at which particles of a population are drawn."""
        drawn = self.view.radii.get(name, 0.02)
        # Beads of liquid nearly touch; `view.radii` of them is 0.22 spacings.
        return 2.2 * drawn if is_liquid(self.tables[name]) else drawn

    def finish(self, heading: str, color_by: str | None) -> None:
        """Write the last group and the header, which knows the ranges of all frames."""
        if self.held:
            self._flush()
        names = [field.name for field in self.fields]
        surface, speed = self.frames.surface, self.speed if self.moving else -1
        header = {
            "format": "ecs_fluid page",
            "version": 1,
            "title": heading,
            "look_name": self.look_name,
            "painted": self._painted(),
            "times": [float(time) for time in self.frames.times],
            "interval": self.frames.interval,
            "groups": self.groups,
            "populations": [self._population(k, name, color_by) for k, name in enumerate(self.tables)],
            "bodies": [{"name": name, "shown": True} for name in self.frames.bodies],
            "shapes": self.solids.shapes,
            "surface": None
            if surface is None
            else {
                "name": surface,
                "shown": self.surface_shown(color_by),
                "field": speed,
                "plain": self.look.water,
            },
            "fields": [field.header() for field in self.fields],
            "colour": names.index(color_by) if color_by is not None else -1,
            "small": SMALL,
            "puff": {"radius": self.view.puff.radius, "opacity": self.view.puff.opacity}
            if self.smoke and self.view.puff
            else None,
            "view": self._camera(),
            **_colours(self.look),
        }
        call = f"ecsFluidPage.start({files.literal(header)});\n"
        (self.folder / "data" / "page.js").write_text(call, encoding="ascii")

    def surface_shown(self, color_by: str | None) -> bool:
        """Whether the page begins with the surface, not with the particles below it."""
        return not self.frames.liquids or color_by in (None, "speed")

    def _population(self, k: int, name: str, color_by: str | None) -> dict[str, Any]:
        table = self.tables[name]
        liquid, cloud = is_liquid(table), name in self.clouds and self.smoke is not None
        lit, shade = self.view.tint(self.look, name)
        fields = [number for number, field in enumerate(self.fields) if k in field.populations]
        names = [self.fields[number].name for number in fields]
        coloured = is_vortons(table) and self.view.color_by in names and name not in self.own
        plain = self.look.water if liquid else FOAM if is_whitewater(table) else self.look.plain
        return {
            "name": name,
            # A look that paints the tracers hides the vortons among them, as `show` does. Particles below the
            # surface of a liquid show what colours particles alone.
            "shown": not (self.look.paint and self.smoke and is_vortons(table))
            and not (name in self.frames.liquids and color_by in (None, "speed")),
            "radius": self._radius(name),
            "plain": self.own.get(name, plain),
            "planes": self.smoke.planes if cloud and self.smoke else 0,
            "lit": lit,
            "shade": shade,
            "fields": fields,
            "natural": fields[names.index(str(self.view.color_by))] if coloured else -1,
        }

    def _painted(self) -> dict[str, Any] | None:
        """The scale of a look that colours tracers by a column; None for other looks."""
        column = PAINTED.get(self.look.paint, "")
        if self.smoke is None or not any(column in self.tables[name] for name in self.clouds):
            return None
        return {"title": title(column, self.frames.declared), "range": self.view.painted, "signed": False}

    def _camera(self) -> dict[str, Any]:
        """What the viewer fits its camera to, and the axis that stays up, about which the camera turns."""
        lo, hi, points = self.view.lo, self.view.hi, self.view.points
        if points is None or not len(points):
            points = np.array([lo, hi])
        axis = self.frames.up
        towards, hint = cameras(axis)[facing(lo, hi, "auto", axis)]
        up = axis_vector(axis)
        if np.array_equal(towards, up):
            towards = towards - 1e-3 * hint
        pad = 2.0 * max(self.view.radii.values(), default=0.0)
        return {
            "lo": (lo - pad).tolist(),
            "hi": (hi + pad).tolist(),
            "points": [[float(f"{number:.6g}") for number in row] for row in outermost(points)],
            "towards": towards.tolist(),
            "up": up.tolist(),
            "angle": VIEW_ANGLE,
            "room": ROOM,
        }


def _view(frames: Frames, surfaces: Surfaces, look: str) -> View:
    """The view that `show` would use for these frames in a look; for a surface alone, its box."""
    names = [*frames.particles, *frames.bodies]
    if names:
        colors = named_colours(frames.run)
        options = Options(populations=names, hulls=surfaces.polytopes, look=look, colors=colors)
        view = survey(Recording(frames.stored, frames.numbers), options)
        clouds = [name for name in view.clouds if not is_liquid(frames.columns(name))]
        view = dataclasses.replace(view, clouds=tuple(clouds))
    else:
        view = View(np.full(3, np.inf), np.full(3, -np.inf), None, (0.0, 1.0), points=np.empty((0, 3)))
    x = _surface_points(frames)
    if not len(x):
        return view
    known = view.points if view.points is not None else x
    return dataclasses.replace(
        view,
        lo=np.minimum(view.lo, x.min(axis=0)),
        hi=np.maximum(view.hi, x.max(axis=0)),
        points=np.concatenate([known, x]),
    )


def _surface_points(frames: Frames) -> np.ndarray:
    """The outermost points (n, 3) m of up to 24 surfaces; FluidError if there is nothing else either."""
    ticks = [tick for tick in frames.ticks.tolist() if tick in frames.surface_ticks]
    points = [np.empty((0, 3))]
    if frames.surface is not None:
        for tick in evenly(ticks, 24):
            points.append(stored_mesh(frames.run.fields, tick)[0])
        for number in evenly(frames.numbers, 24):
            points += [frames.stored.column(number, name, POINTS) for name in frames.liquids]
    points = [outermost(x) if len(x) else x for x in points]
    x = np.concatenate(points)
    if not len(x) and not (frames.particles or frames.bodies):
        raise FluidError("there is nothing to show: the surface of these frames has no triangles")
    return x


def outermost(points: np.ndarray) -> np.ndarray:
    """Those of the points (n, 3) that are the farthest in some direction, of directions spread evenly."""
    k = np.arange(DIRECTIONS) + 0.5
    height, turn = 1.0 - 2.0 * k / DIRECTIONS, np.pi * (1.0 + np.sqrt(5.0)) * k
    across = np.sqrt(1.0 - height**2)
    directions = np.stack([across * np.cos(turn), across * np.sin(turn), height])
    best = [int((points @ direction).argmax()) for direction in directions.T]
    kept: np.ndarray = points[np.unique(best)]
    return kept


def _colours(look: Look) -> dict[str, Any]:
    """Colours that all frames share, and the colour maps as 256 x 3 bytes."""

    def colour_map(name: str, part: tuple[float, float]) -> str:
        colours = colormaps[name](np.linspace(*part, 256))[:, :3]
        return base64.b64encode(np.rint(255 * colours).astype(np.uint8).tobytes()).decode("ascii")

    dark = sum(int(look.background[k : k + 2], 16) for k in (1, 3, 5)) < 3 * 128
    return {
        "look": {
            "background": look.background,
            "background_top": look.background_top,
            "text": look.text,
            "dark": dark,
            "light": look.light,
            "edge": EDGE if dark else look.plain,
        },
        "maps": {
            "sequential": colour_map(*look.painted_map),
            "signed": colour_map(look.signed_colours, (0.0, 1.0)),
        },
    }
