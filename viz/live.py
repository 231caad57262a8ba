"""A world that is simulated while it is shown: it can be paused and stepped, and its parameters changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from numpy.typing import NDArray

from ecs_fluid.errors import FluidError
from ecs_fluid.fluid import Fluid
from ecs_fluid.upward import up_of
from ecs_fluid.viz.bodies import hulls_in
from ecs_fluid.viz.camera import of_world
from ecs_fluid.viz.columns import Frame, drawable
from ecs_fluid.viz.flow import Flow
from ecs_fluid.viz.shared_limits import View, drawn, kept, survey, warn_of_hidden_in_look
from ecs_fluid.viz.style import Options
from ecs_fluid.world_files import colors_in

if TYPE_CHECKING:
    from ecs_fluid.viz.scene import Scene
    from ecs_fluid.world import World

WIDE = 30.0  # ratio of a slider's ends from which it is logarithmic
GROWN = 2.0  # how many times as many particles make another look at their sizes and colours worthwhile
ROOM = 1.5  # size of the box that the picture shows, in that of what is there
ASTRAY = 0.03  # share of the particles outside the picture's box from which it is fitted anew
PATIENCE = 1000  # ticks in which a world that starts empty must show something


@dataclass
class Slider:
    """A parameter from `low` to `high`, and the function `put` that sets it; `whole`: whole numbers alone."""

    label: str
    low: float
    high: float
    value: float
    put: Callable[[float], None]
    whole: bool = False
    refused: str = field(default="", init=False)
    """Why the last value was refused: another slider may have made it impossible"""

    @property
    def logarithmic(self) -> bool:
        """Whether equal distances along it are equal factors."""
        return self.low > 0.0 and self.high / self.low >= WIDE

    def share(self) -> float:
        """Where the value is, 0 to 1."""
        if self.logarithmic:
            share = math.log(max(self.value, 1e-300) / self.low) / math.log(self.high / self.low)
        else:
            share = (self.value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)

    def move(self, share: float) -> float:
        """Set the parameter to that share of the slider's length, if possible; return its value."""
        share = min(max(share, 0.0), 1.0)
        if self.logarithmic:
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + share * (self.high - self.low)
        value = float(round(value)) if self.whole else value
        try:
            self.put(value)
        except FluidError as error:
            self.refused = str(error)
        else:
            self.value, self.refused = value, ""
        return self.value

    @property
    def text(self) -> str:
        """Label and value, or why the last value was refused."""
        return self.refused or f"{self.label} = {self.value:.3g}"


class Live:
    """The world, whether it runs, and the scene that shows it.

    Args:
        world: the world; it is stepped here, by whoever calls `advance`.
        options: of the pictures (`style.Options`).
        sliders: parameters that can be changed.
        last_tick: tick after which it pauses; None for never.
        paused: whether it begins paused.
    """

    def __init__(
        self,
        world: World,
        options: Options,
        sliders: Sequence[Slider] = (),
        last_tick: int | None = None,
        paused: bool = False,
    ) -> None:
        self.world, self.options, self.sliders = world, options, list(sliders)
        self.last_tick, self.paused, self.over = last_tick, paused, False
        self.failed: FluidError | None = None
        self._wanted = 0
        self._rows = 0

    def toggle(self) -> None:
        """Pause, or continue."""
        self.paused = not self.paused

    def step(self) -> None:
        """Pause, and make one tick."""
        self.paused = True
        self._wanted += 1

    def quit(self) -> None:
        """Make the loop that shows it end."""
        self.over = True

    def advance(self) -> bool:
        """Make a tick if one is due; returns whether there is something new to show.

        A world that diverges stays at its last good state, and `failed` says why.
        """
        ended = self.last_tick is not None and self.world.tick >= self.last_tick
        if ended or self.failed is not None or (self.paused and not self._wanted):
            self._wanted = 0
            return False
        self._wanted = max(0, self._wanted - 1)
        try:
            self.world.step()
        except FluidError as error:
            self.failed, self.paused = error, True
            return False
        return True

    def begin(self) -> View:
        """The view of the first moment at which there is a particle or a body."""
        self.world.evaluate()
        for _ in range(PATIENCE):
            try:
                view = self._survey(frame := self.frame())
            except FluidError:
                if any(True for _ in drawable(frame)):
                    raise  # there are particles or bodies, but not what the options ask for
                self.world.step()
                continue
            own = self.options
            warn_of_hidden_in_look(frame, own.look, own.populations or frame, own.what, own.color_by)
            return view
        raise FluidError(f"there is nothing to look at: no particle appeared in {PATIENCE} ticks")

    def show(self, scene: Scene) -> None:
        """Make the scene show the present state, in a new view if the world has outgrown the former one."""
        frame = self.frame()
        if self._outgrown(frame):
            scene.adopt(self._survey(frame))
        velocity = Flow(lambda: self.world, frame) if self.options.needs_velocity else None
        scene.show(frame, velocity, self.world.time)

    @property
    def status(self) -> str:
        """One line: whether it runs, its tick and its time."""
        if self.failed is not None:
            return f"stopped: {self.failed}"
        what = "paused" if self.paused else "running"
        return f"{what}, tick {self.world.tick}, t = {self.world.time:.3f} s"

    def frame(self) -> Frame:
        """The present state as a frame."""
        return dict(self.world.snapshot().items())

    def _survey(self, frame: Frame) -> View:
        self._view = _roomy(survey([(self.world.time, frame)], self.options))
        self._rows = sum(map(len, self._places(frame)))
        return self._view

    def _places(self, frame: Frame) -> list[NDArray]:
        """Positions (n, 3) m of the particles of each population that are drawn."""
        found = drawable(kept(frame, self.options))
        if self._view.puff is None:
            return [x for _, _, x in found]
        return [x[drawn(self.options, columns, self._view.painted)] for _, columns, x in found]

    def _outgrown(self, frame: Frame) -> bool:
        """Whether there are many more particles than when the view was found, or many outside of it."""
        lo, hi = self._view.lo, self._view.hi
        places = self._places(frame)
        outside = sum(int(((x < lo) | (x > hi)).any(axis=1).sum()) for x in places)
        rows = sum(map(len, places))
        return bool(rows) and (rows > GROWN * self._rows or outside > ASTRAY * rows)


def _roomy(view: View) -> View:
    """The view with room for later motion of the particles."""
    centre = 0.5 * (view.lo + view.hi)

    def spread(x: NDArray) -> NDArray:
        return centre + ROOM * (x - centre)

    points = None if view.points is None else spread(view.points)
    return replace(view, lo=spread(view.lo), hi=spread(view.hi), points=points)


def live_options(world: World, **given: object) -> Options:
    """Options of pictures with the world's own polytopes, periods and colours."""
    own = {"hulls": hulls_in(world), "colors": colors_in(world.recipe or {})}
    return Options.of(of_world(world.options, up_of(world.fluid[Fluid].gravity), {**own, **given}))
