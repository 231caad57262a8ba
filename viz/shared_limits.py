"""What all frames of a movie share: the box the camera shows, the limits of the colours, the size of a puff.

Found by looking through the frames once before drawing, so that nothing jumps while the movie plays.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.components import Species
from ecs_fluid.errors import FluidError, warn
from ecs_fluid.exports.particle_surface import rest_spacing
from ecs_fluid.exports.surfaces import Near
from ecs_fluid.exports.volumes import mean_spacing
from ecs_fluid.viz.camera import corners
from ecs_fluid.viz.camera_motion import Aim
from ecs_fluid.viz.colours import FLAME, PAINTED, SMOKE, glowing, paint, visible
from ecs_fluid.viz.columns import Columns, Frame, drawable, has_scalar, known_scalars, scalar, unknown_name
from ecs_fluid.viz.smoke import Puff, glare, puff
from ecs_fluid.viz.style import LOOKS, Look, Options, Tint

F = TypeVar("F")
TimedFrame = tuple[float, Frame]
SAMPLES = 48  # frames that a survey of a long run looks at
OUTLINE = 2000  # rows of a population and frame that the camera is fitted to


@dataclass(frozen=True)
class View:
    """What all frames of a movie share.

    lo, hi: corners (3,) m of the box to show. points: (n, 3) m, a sample of what the box holds, to which the
    camera is fitted. color_by, limits: the quantity that colours show, and its range. puff: picture of every
    tracer. wet: whether the look draws a liquid as its surface, and tracers as smoke beside it. clouds: names
    of the populations of tracers. radii: m, of the particles, by population. painted: range of the column by
    which the look paints tracers (for fire, the largest flame and the largest smoke). colors: those of
    recipes, by population. glare: largest sum of the light of flames behind one another, 1/m^2. speed: m/s,
    below which are 99 % of a spray's particles. flow: colour range of slices and streamlines; None takes that
    of the first frame drawn. bar: whether any picture has a colour bar. last: s, time of the last frame.
    """

    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    color_by: str | None
    limits: tuple[float, float]
    puff: Puff | None = None
    wet: bool = False
    clouds: tuple[str, ...] = ()
    radii: dict[str, float] = field(default_factory=dict)
    points: NDArray[np.float64] | None = None
    painted: tuple[float, float] = (0.0, 1.0)
    colors: Mapping[str, str] = field(default_factory=dict)
    glare: float = 0.0
    speed: float = 0.0
    flow: tuple[float, float] | None = None
    bar: bool = False
    last: float = 0.0

    def tint(self, look: Look, name: str) -> Tint:
        """Colours of a cloud in light and in shade."""
        return look.tint(name, self.clouds, self.colors)


class Recording(Sequence[TimedFrame]):
    """The frames of a stored trajectory as (time, frame), each read when it is used; `rows` picks some.

    `stored` needs a length, `times` and `frame(row)`.
    """

    def __init__(self, stored: Any, rows: Sequence[int] | None = None) -> None:
        self._stored = stored
        self._rows = range(len(stored)) if rows is None else rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> TimedFrame: ...
    @overload
    def __getitem__(self, index: slice) -> Recording: ...
    def __getitem__(self, index: int | slice) -> TimedFrame | Recording:
        if isinstance(index, slice):
            return Recording(self._stored, self._rows[index])
        row = self._rows[index]
        return float(self._stored.times[row]), self._stored.frame(row)


def is_vortons(columns: Columns) -> bool:
    """Vortons carry strength; whatever does not is a tracer."""
    return "Strength.alpha" in columns


def is_spray(columns: Columns) -> bool:
    """Sparks, droplets and grains, which have a velocity of their own, and are drawn as streaks."""
    return "InertialVelocity.v" in columns and not is_liquid(columns) and not is_vortons(columns)


def is_liquid(columns: Container[str]) -> bool:
    """Particles of a liquid, which has a surface."""
    return "Liquid.volume" in columns


def is_whitewater(columns: Columns) -> bool:
    """Spray, foam and bubbles of a liquid."""
    return "Whitewater.kind" in columns


def is_cloud(columns: Columns) -> bool:
    """Tracers, which are drawn as smoke."""
    apart = is_vortons(columns) or is_spray(columns)
    return "Position.x" in columns and "Pose.q" not in columns and not apart


def in_liquid(frame: Frame, names: Container[str]) -> dict[str, float]:
    """The part, 0 to 1, of each of these populations of tracers that is in a liquid among them, so that the
    surface of the liquid hides it; of large ones every some rows count."""
    chosen = {name: columns for name, columns in frame.items() if name in names and is_cloud(columns)}
    liquids = [columns for columns in chosen.values() if is_liquid(columns)]
    if not liquids:
        return {}
    liquid, found = Near(liquids, "Position.x"), {}
    for name, columns in chosen.items():
        x = columns["Position.x"]
        if len(x) and not (is_liquid(columns) or is_whitewater(columns)):
            some = x[:: -(-len(x) // OUTLINE)]
            found[name] = float(liquid.holds(some).mean())
    return found


def warn_of_hidden(frame: Frame, names: Container[str], remedy: str) -> None:
    """Warn of each of these populations of tracers most of which is in a liquid, of which the surface alone
    is drawn; `remedy` ends the sentence."""
    for name, part in in_liquid(frame, names).items():
        if part > 0.5:
            warn(
                f"{100 * part:.0f} % of the tracers of {name!r} lie in liquid, whose surface hides them"
                f"{remedy}",
                4,
            )


def warn_of_hidden_in_look(
    frame: Frame, look: str, names: Container[str], what: str, color_by: str | None
) -> None:
    """The same for pictures in which the look draws liquids as surfaces."""
    if what == "particles" and color_by is None and look in LOOKS and LOOKS[look].paint == "liquid":
        warn_of_hidden(frame, names, f" in the look {look!r}; look = 'smoke' shows both")


def kept(frame: Frame, options: Options) -> Frame:
    """The populations of `frame` that the options ask for."""
    if options.populations is None:
        return frame
    for name in options.populations:
        if name not in frame:
            raise unknown_name("population", name, frame)
    return {name: frame[name] for name in options.populations}


def hides_vortons(options: Options) -> bool:
    """Whether vortons are hidden where there are tracers: so in looks that paint tracers, unless asked
    for."""
    asked = options.populations is not None or options.color_by is not None or options.what != "particles"
    return not asked and LOOKS[options.look].paint not in ("", "vorticity")


def drawn(options: Options, columns: Columns, painted: tuple[float, float]) -> NDArray[np.bool_]:
    """Which rows (n,) of a population are seen in a picture where there are tracers; see `View.painted`."""
    if is_vortons(columns):
        return np.full(len(columns["Position.x"]), not hides_vortons(options))
    if options.color_by is not None or options.what != "particles":
        return np.ones(len(columns["Position.x"]), bool)
    return visible(LOOKS[options.look], columns, painted)


def survey(frames: Iterable[TimedFrame], options: Options) -> View:
    """Look through the frames (some 48 of them, evenly, if they are a sequence) and fix what they share.

    The box holds the central 99 % of what is drawn of every population along each axis, so that one stray
    particle does not shrink the picture to a dot, and all of a box that repeats; colours likewise end at the
    99.5 percentile. Raises FluidError if no frame has a particle, or none has the colour asked for.
    """
    seen = _Survey(options)
    last = 0.0
    for time, frame in evenly(frames, SAMPLES):
        seen.add(frame)
        last = max(last, time)
    view = replace(seen.view(), last=last)
    painted = PAINTED.get(LOOKS[options.look].paint, "")
    if painted in seen.names and view.puff is None and options.color_by is None:
        # There are no tracers, which the look would paint.
        return survey(frames, replace(options, color_by=painted))
    if view.puff is None or LOOKS[options.look].paint != "fire":
        return view
    aspect = options.size[0] / options.size[1]
    aim = Aim(options.camera, options.orbit, view.lo, view.hi, aspect, view.points, options.up)
    lights = (_glare(aim, time, frame, options, view) for time, frame in evenly(frames, SAMPLES))
    return replace(view, glare=max(lights, default=0.0))


def _glare(aim: Aim, time: float, frame: Frame, options: Options, view: View) -> float:
    """The `View.glare` of one frame, for the camera of that time."""
    look = LOOKS[options.look]
    camera, focal, _ = (np.array(point) for point in aim.at(time, 0.0))
    clouds = [
        (x, paint(look, columns, view.tint(look, name), view.painted))
        for name, columns, x in drawable(kept(frame, options))
        if is_cloud(columns)
    ]
    x, colour = glowing(clouds)
    return glare(x, colour, camera, focal, view.puff) if view.puff and len(x) else 0.0


def evenly(frames: Iterable[F], count: int) -> Iterable[F]:
    """At most `count` of the frames, evenly, if they are a sequence; all of them if they come one by one."""
    if not isinstance(frames, Sequence) or len(frames) <= count:
        return frames
    return (frames[row] for row in np.unique(np.linspace(0, len(frames) - 1, count).round().astype(int)))


class _Survey:
    """What a survey has gathered so far."""

    def __init__(self, options: Options) -> None:
        self.options, self.look = options, LOOKS[options.look]
        self.boxes: list[tuple[NDArray, NDArray, NDArray, bool]] = []
        self.names: set[str] = set()
        self.ranges: dict[str, tuple[float, float]] = {}
        self.rows: dict[str, int] = {}
        self.puffs: dict[bool, Puff] = {}
        self.most = {False: 0, True: 0}
        self.clouds: dict[str, None] = {}
        self.radii: dict[str, float] = {}
        self.speed = 0.0
        self.barred = self.beads = False
        self.flat = True

    def add(self, frame: Frame) -> None:
        from ecs_fluid.viz.bodies import bodies_in, extent  # which imports PyVista

        # Of all populations, drawn or not: a cloud keeps its tint when it is drawn alone.
        self.clouds |= {
            name: None for name, columns in frame.items() if is_cloud(columns) and not self._wet(columns)
        }
        tracers: dict[bool, list[NDArray]] = {False: [], True: []}
        for _, bodies in bodies_in(kept(frame, self.options), self.options.hulls or {}):
            self._enclose(extent(bodies), whole=True)
        for name, columns, x in drawable(kept(frame, self.options)):
            if not np.isfinite(x).all():
                raise FluidError(
                    f"population {name} has a position that is not a finite number; it cannot be drawn"
                )
            self.names.update(known_scalars(columns))
            wanted = self._colours(columns)
            self._look_for_bar(name, columns)
            seen = {colour: scalar(columns, colour) for colour in wanted}
            # The frame with most tracers sets the sizes: a fountain starts with a handful.
            if len(x) > self.rows.get(name, 0):
                self.rows[name] = len(x)
                self.radii[name] = _radius(columns)
            if is_spray(columns):
                speeds = np.linalg.norm(velocity_of(columns), axis=1)
                self.speed = max(self.speed, float(np.percentile(speeds, 99.0)))
            if is_cloud(columns):
                tracers[self._wet(columns)].append(x)
                self.flat = self.flat and not np.ptp(x, axis=0).all()
            if is_cloud(columns) or is_spray(columns):
                painted = {PAINTED.get(self.look.paint, ""), FLAME, SMOKE} & set(columns)
                seen |= {column: columns[column] for column in painted}
            for colour, values in seen.items():
                if (span := widened(self.ranges.get(colour), values)) is not None:
                    self.ranges[colour] = span
            shown = drawn(self.options, columns, self._painted())
            self._enclose(x[shown] if shown.any() else x, aside=not shown.any())
        for wet, places in tracers.items():
            if sum(map(len, places)) > self.most[wet]:
                x = np.concatenate(places)
                self.most[wet] = len(x)
                # Few tracers would show as lumps, so their puffs overlap more, at the price of detail.
                wider = min(max((20_000 / len(x)) ** (1 / 6), 1.0), 1.6)
                self.puffs[wet] = puff(x, self.look.depth, wider * self.look.softness)

    def _wet(self, columns: Columns) -> bool:
        """Whether the look draws a population as the surface of a liquid, whatever else there is."""
        return self.look.paint == "liquid" and is_liquid(columns)

    def _enclose(self, x: NDArray, whole: bool = False, aside: bool = False) -> None:
        """Extend the box to these points, and keep some of them for the camera.

        Of more than 200 points strays are left out, unless the `whole` box is wanted. Points set `aside` are
        used only for pictures in which there is nothing else.
        """
        stray = 0.0 if whole or len(x) <= 200 else 0.5
        lo, hi = np.percentile(x, [stray, 100.0 - stray], axis=0)
        self.boxes.append((lo, hi, np.asarray(x[:: -(-len(x) // OUTLINE)], np.float64), aside))

    def _colours(self, columns: Columns) -> list[str]:
        if self.options.color_by is not None:
            return [self.options.color_by] if has_scalar(columns, self.options.color_by) else []
        return [
            name for name in ("vorticity", "strength") if is_vortons(columns) and has_scalar(columns, name)
        ]

    def _look_for_bar(self, name: str, columns: Columns) -> None:
        """Whether colours of a population have a bar, or would if it is of vortons that are not hidden."""
        options = self.options
        if options.color_by is not None:
            self.barred |= has_scalar(columns, options.color_by)
        elif is_vortons(columns):
            self.beads |= options.what == "glyphs" or name not in options.colors
        elif is_cloud(columns) and options.what == "particles":
            self.barred |= PAINTED.get(self.look.paint) in columns

    def view(self) -> View:
        puff = self.puffs.get(False, self.puffs.get(True))
        # Where there are no tracers vortons are drawn by every look.
        shown = [box for box in self.boxes if not (box[3] and puff)] or self.boxes
        if not shown:
            raise FluidError("there is nothing to draw: no population of these frames has a particle in it")
        color_by = self.options.color_by
        of_particles = self.options.what in ("particles", "glyphs")
        if color_by is not None and of_particles and color_by not in self.ranges:
            raise unknown_name("colour", color_by, self.names)
        if color_by is None and of_particles:
            color_by = next((name for name in ("vorticity", "strength") if name in self.ranges), None)
        beads = self.beads and not (puff is not None and hides_vortons(self.options))
        bar = self.barred or beads or self.options.needs_velocity
        lo, hi = np.min([box[0] for box in shown], axis=0), np.max([box[1] for box in shown], axis=0)
        points = np.clip(np.concatenate([box[2] for box in shown]), lo, hi)
        if any(self.options.periods):
            half = 0.5 * np.array(self.options.periods)
            lo, hi = np.where(half, -half, lo), np.where(half, half, hi)
            points = np.concatenate((points, corners(lo, hi)))
        puff = puff and replace(puff, flat=self.flat)
        return View(
            lo, hi, color_by, limits(color_by, *self.ranges.get(color_by or "", (0.0, 1.0))),
            puff, True in self.puffs, tuple(self.clouds), self.radii, points, self._painted(),
            self.options.colors, speed=self.speed, bar=bar,
        )  # fmt: skip

    def _painted(self) -> tuple[float, float]:
        if self.look.paint == "fire":
            return self.ranges.get(FLAME, (0.0, 1.0))[1], self.ranges.get(SMOKE, (0.0, 1.0))[1]
        name = PAINTED.get(self.look.paint, "")
        return limits(name, *self.ranges.get(name, (0.0, 1.0)))


def widened(before: tuple[float, float] | None, values: NDArray) -> tuple[float, float] | None:
    """The range `before`, widened to all but the outermost 0.5 % of the values on either side."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return before
    lo, hi = (float(end) for end in np.percentile(finite, [0.5, 99.5]))
    return (lo, hi) if before is None else (min(before[0], lo), max(before[1], hi))


def limits(name: str | None, lo: float, hi: float) -> tuple[float, float]:
    """Colour range for values from `lo` to `hi`: magnitudes start at 0, signed values are symmetric about
    0."""
    if is_signed(lo, hi):
        most = max(-lo, hi)
        return -most, most
    if name in ("speed", "vorticity", "strength", *Species.columns):
        lo = 0.0
        if not hi:
            return 0.0, 1.0
    if hi - lo <= 1e-6 * max(abs(lo), abs(hi)):
        pad = 0.5 * abs(hi) if hi else 0.5
        return lo - pad, hi + pad
    return lo, hi


def is_signed(lo: float, hi: float) -> bool:
    """Whether a range lies on both sides of 0 (by more than a tenth), so that 0 deserves the middle
    colour."""
    return lo < 0.0 < hi and min(-lo, hi) > 0.1 * max(-lo, hi)


def velocity_of(columns: Columns) -> NDArray:
    """Velocities (n, 3) m/s of a spray."""
    return np.asarray(columns.get("Velocity.u", columns["InertialVelocity.v"]))


def _radius(columns: Columns) -> float:
    """Radius [m] at which particles are drawn: beads on a lattice do not quite touch."""
    if "Volume.volume" in columns and is_vortons(columns):
        return 0.34 * float(np.cbrt(np.median(columns["Volume.volume"])))
    if "CoreRadius.sigma" in columns:
        return 0.25 * float(np.median(columns["CoreRadius.sigma"]))
    return 0.22 * (rest_spacing(columns) or mean_spacing(columns["Position.x"]))
