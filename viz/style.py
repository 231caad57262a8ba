"""Looks (colours and materials) and the options of a picture."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from ecs_fluid.errors import FluidError
from ecs_fluid.exports.bodies import Polytopes
from ecs_fluid.exports.colours import LIT, PLAIN, SOLID, TINTS, WATER, Colour, by_name, linear
from ecs_fluid.upward import turn
from ecs_fluid.validation_errors import COLOR, COLORS
from ecs_fluid.viz.camera import SIZE, Camera, check_camera
from ecs_fluid.viz.camera_path import CameraPath
from ecs_fluid.viz.columns import AXES, unknown_name

Tint = tuple[Colour, Colour]  # lit, shade
SHADE = 0.25  # brightness of a colour in shade
EDGE: Colour = (0.75, 0.8, 0.88)  # edges of containers on a dark page
SMALL = 0.6  # radius of the strongest vortons within smoke, in that of vortons alone
KINDS = ("particles", "glyphs", "slice", "streamlines")


@dataclass(frozen=True)
class Look:
    """Colours are red, green, blue in 0 to 1; maps are perceptually uniform ones of matplotlib."""

    background: str
    background_top: str
    text: str
    lit: Colour  # smoke in full light
    shade: Colour  # smoke in its own shadow
    plain: Colour  # particles without a colour of their own
    colours: str = "inferno"
    part: tuple[float, float] = (0.14, 1.0)  # of the map: its end that is the background's colour is left out
    signed_colours: str = "coolwarm"
    dyes: str = ""  # the map of the column that it paints, if that is not `colours`
    depth: float = 2.5  # optical depth of the smoke, on average over the picture of the first frame
    paint: str = ""  # what shows: "" clouds in their tints, else dye, temperature, fire, vorticity or liquid
    softness: float = 0.8  # radius of a puff in spacings between tracers
    water: Colour = WATER  # surfaces of liquids
    light: Colour = (-0.55, -0.45, 0.9)  # direction towards the light
    # Colours of several clouds of tracers, in the order red, blue, yellow, green.
    tints: tuple[Tint, ...] = tuple(TINTS.values())

    @property
    def painted_map(self) -> tuple[str, tuple[float, float]]:
        """Map of the column that it paints, and the part that is used."""
        return (self.dyes, (0.0, 1.0)) if self.dyes else (self.colours, self.part)

    def tint(self, name: str, clouds: Sequence[str], colors: Mapping[str, str]) -> Tint:
        """Colours in light and in shade of a cloud of tracers: that of its recipe, or one of its own.

        A single cloud is plain smoke, and so are all that burn; of several, those without a colour get the
        tints that are left.
        """
        if name in colors:
            return self.named(colors[name])
        if len(clouds) < 2 or name not in clouds or self.paint == "fire":
            return self.lit, self.shade
        others = [cloud for cloud in clouds if cloud not in colors]
        taken = set(colors.values())
        free = [tint for tint, called in zip(self.tints, TINTS, strict=True) if called not in taken]
        return (free or self.tints)[others.index(name) % len(free or self.tints)]

    def named(self, color: str) -> Tint:
        """A colour of a recipe in light and in shade: a tint of the look, another name, or #rrggbb."""
        if color in TINTS:
            return self.tints[list(TINTS).index(color)]
        red, green, blue = by_name(color)
        return (red, green, blue), (SHADE * red, SHADE * green, SHADE * blue)

    def solid(self, name: str, colors: Mapping[str, str]) -> Colour:
        """Colour of bodies."""
        return self.named(colors[name])[0] if name in colors else SOLID


SMOKE = Look("#07090d", "#1b2230", "#dfe5ee", LIT, (0.17, 0.2, 0.27), PLAIN)
PAPER = Look("#ffffff", "#ffffff", "#22262e", (0.38, 0.55, 0.74), (0.07, 0.13, 0.24), (0.35, 0.4, 0.47))
DAYLIGHT = Look("#c9d6df", "#f4f7f9", "#22303a", (0.45, 0.58, 0.7), (0.15, 0.24, 0.33), (0.35, 0.4, 0.47))


def readable_on(background: Colour, text: str) -> str:
    """The colour `text`, or that of the words on light or dark paper if the background hides it.

    Words need a contrast (L + 0.05) / (l + 0.05) of the luminances L > l of at least 4.5. Source: W3C, Web
    Content Accessibility Guidelines 2.1, success criterion 1.4.3.
    """

    def luminance(colour: Colour) -> float:
        return float(np.dot((0.2126, 0.7152, 0.0722), linear(colour)))

    def contrast(color: str) -> float:
        ends = sorted((luminance(background), luminance(by_name(color))))
        return (ends[1] + 0.05) / (ends[0] + 0.05)

    return text if contrast(text) >= 4.5 else max((SMOKE.text, PAPER.text), key=contrast)


LOOKS = {
    "smoke": SMOKE,
    "paper": replace(
        PAPER,
        colours="viridis",
        part=(0.0, 0.92),
        tints=(
            ((0.86, 0.34, 0.26), (0.36, 0.06, 0.06)),
            ((0.25, 0.5, 0.86), (0.05, 0.12, 0.32)),
            ((0.85, 0.62, 0.15), (0.4, 0.25, 0.03)),
            ((0.25, 0.6, 0.35), (0.05, 0.22, 0.1)),
        ),
    ),
    # Heavy red and light blue, as in the articles; cold dark and hot white; flame that glows in its smoke.
    "dye": replace(SMOKE, dyes="coolwarm", paint="dye"),
    "temperature": replace(SMOKE, background_top="#141922", part=(0.2, 1.0), paint="temperature"),
    "fire": replace(
        SMOKE,
        background="#050506",
        background_top="#101014",
        lit=(0.42, 0.4, 0.39),
        shade=(0.06, 0.06, 0.065),
        paint="fire",
    ),
    # Vortons as beads of their vorticity in a thin veil of tracers.
    "vorticity": replace(
        SMOKE,
        background="#06070b",
        background_top="#141a26",
        lit=(0.8, 0.86, 0.95),
        shade=(0.3, 0.34, 0.42),
        colours="plasma",
        part=(0.12, 1.0),
        depth=0.45,
        paint="vorticity",
    ),
    # Liquid as a glossy surface with foam on it, by daylight.
    "liquid": replace(DAYLIGHT, colours="viridis", part=(0.0, 0.92), paint="liquid", water=(0.1, 0.4, 0.62)),
}


def lit_from_above(look: Look, up: str) -> Look:
    """The look where the axis `up` is upwards, and not z."""
    x, y, z = (turn("z", up) @ look.light).tolist()
    return replace(look, light=(x, y, z))


@dataclass(frozen=True)
class Options:
    """How to draw: every option of `render` and `movie`, checked.

    * `what`: particles, glyphs (arrows of the strength), slice or streamlines (of a velocity function).
    * `color_by`: a name that `columns.scalar` knows; for a slice `speed`, `vorticity_normal`, `u.x`, ...
    * `camera`: a name, (position, focal point, up) in m, or a `CameraPath`; `orbit` turns it about the
    vertical, in degrees per second of a movie.
    * `up`: the axis that is upwards in the world, for cameras by name, orbits and the light.
    * `size`: width and height in pixels. `look`: smoke, paper, dye (by density), temperature, fire, vorticity
    or liquid. `background`: any colour, instead of the look's.
    * `populations`: names of those to draw; all by default.
    * `normal`, `origin` (m), `resolution` (points along the longer side): the slice's plane.
    * `seeds`: how many streamlines.
    * `hulls`: polytopes of the world by entity, without which only balls are drawn (`bodies.hulls_in`).
    * `periods`: (3,) m of a world that repeats, whose box is drawn; 0 along an axis that does not.
    * `colors`: of populations by their names, see `recipe.Color`; otherwise the look's.
    * `declared`: unit and kind of columns, as a run stored them (`RunFolder.columns`).
    * `smooth`: supersample the edges (four times the pixels to draw); None: except in movies of smoke.
    """

    what: str = "particles"
    color_by: str | None = None
    camera: Camera | CameraPath = "auto"
    orbit: float = 0.0
    up: str = "z"
    size: tuple[int, int] = SIZE
    look: str = "smoke"
    background: str | None = None
    populations: Sequence[str] | None = None
    normal: str = "y"
    origin: Sequence[float] | None = None
    resolution: int = 240
    seeds: int = 60
    smooth: bool | None = None
    hulls: Polytopes | None = None
    periods: Sequence[float] = (0.0, 0.0, 0.0)
    colors: Mapping[str, str] = field(default_factory=dict)
    declared: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    off_screen: bool = True

    @property
    def needs_velocity(self) -> bool:
        """Whether the picture is of a velocity function, not of the particles."""
        return self.what in ("slice", "streamlines")

    def __post_init__(self) -> None:
        if self.what not in KINDS:
            raise unknown_name("kind of picture", str(self.what), KINDS)
        if self.look not in LOOKS:
            raise unknown_name("look", str(self.look), LOOKS)
        if self.normal not in AXES:
            raise unknown_name("slice normal", str(self.normal), AXES)
        if not isinstance(self.camera, CameraPath):
            check_camera(self.camera)
        if not (isinstance(self.orbit, int | float) and abs(self.orbit) <= 3600.0):
            raise FluidError(f"orbit {self.orbit!r} is not allowed: give -3600 to 3600 degrees per second")
        try:
            width, height = (int(length) for length in self.size)
        except (TypeError, ValueError):
            width = height = 0
        if not (16 <= width <= 16384 and 16 <= height <= 16384):
            raise FluidError(
                f"picture size {self.size!r} is not allowed: give (width, height), 16 to 16384 pixels"
            )
        for name, color in self.colors.items():
            if not (isinstance(color, str) and re.fullmatch(COLOR, color)):
                raise FluidError(f"colors: {name!r} = {color!r}; {COLORS} is needed")
        if self.resolution < 2 or self.seeds < 1:
            raise FluidError(
                f"resolution {self.resolution} and seeds {self.seeds} are not allowed: at least 2 and 1 "
                "are needed"
            )

    @staticmethod
    def of(given: dict[str, object]) -> Options:
        """The options of keyword arguments; FluidError for a name that is none of them."""
        known = [one.name for one in fields(Options)]
        for name in given:
            if name not in known:
                raise unknown_name("option of a picture", name, known)
        return Options(**given)  # type: ignore[arg-type]


def clock(time: float, last: float) -> str:
    """`time` s in words, with the decimals of a hundredth of `last` s; two at least."""
    decimals = 2 - math.floor(math.log10(last)) if 0.0 < last < 1.0 else 2
    return f"t = {time:.{decimals}f} s"
