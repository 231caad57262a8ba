"""Draw frames: one scene, whose camera, colours and actors stay while the frames go by."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyvista as pv
from numpy.typing import NDArray
from vtkmodules.vtkRenderingOpenGL2 import vtkRenderStepsPass, vtkToneMappingPass

from ecs_fluid.errors import FluidError
from ecs_fluid.exports.bodies import Placed
from ecs_fluid.exports.colours import SOLID, Colour
from ecs_fluid.exports.particle_surface import rest_spacing
from ecs_fluid.viz.arrows import glyphs
from ecs_fluid.viz.bodies import bodies_in, surface, wires
from ecs_fluid.viz.camera import VIEW_ANGLE, corners, facing_axis, flattened
from ecs_fluid.viz.camera_motion import Aim
from ecs_fluid.viz.canvas import Canvas
from ecs_fluid.viz.colours import HEAT, PAINTED, Paint, colours_of_bodies, paint, spray_colours
from ecs_fluid.viz.columns import (
    AXES,
    Columns,
    Frame,
    drawable,
    has_scalar,
    scalar,
    title,
)
from ecs_fluid.viz.fields import Velocity
from ecs_fluid.viz.film import write_png
from ecs_fluid.viz.flow_layers import FlowLayers
from ecs_fluid.viz.layers import Flame, GlossyMesh, PlainMesh, Smoke, Spheres, Streaks, Surface
from ecs_fluid.viz.liquid_surface import DROP, DROPS, FOAM, drop_colours, liquid_surface, surface_colours
from ecs_fluid.viz.shared_limits import (
    TimedFrame,
    View,
    drawn,
    hides_vortons,
    is_cloud,
    is_liquid,
    is_signed,
    is_spray,
    is_vortons,
    is_whitewater,
    kept,
    survey,
    velocity_of,
)
from ecs_fluid.viz.style import SMALL, Options

# Plotters that draw twice as wide and high as asked, for smooth edges: VTK's own ways of smoothing edges
# (samples per pixel, SSAA, FXAA) do not work together with blending in floating point.
_supersampled: weakref.WeakSet[pv.Plotter] = weakref.WeakSet()

STREAK = 0.02  # length of the streaks of the fastest, over the diagonal of the view
SPOT = 0.002  # the same of what is at rest


def render(
    frame: Frame,
    *,
    velocity: Velocity | None = None,
    time: float | None = None,
    view: View | None = None,
    **options: Any,
) -> pv.Plotter:
    """Draw one frame and return the plotter: `save_png` it, or `show()` it if drawn with `off_screen=False`.

    `options` are those of `style.Options` (what, color_by, camera, size, look, ...). Slices and streamlines
    need `velocity`, a function from points (m, 3) m to velocities (m, 3) m/s. `time` [s] is written into the
    picture. `view` (from `shared_limits.survey`) fixes box and colours over several pictures. Raises
    FluidError for an empty frame, unknown names, and a machine that cannot render.
    """
    chosen = Options.of(options)
    scene = Scene(view or survey([(0.0, frame)], chosen), chosen)
    scene.show(frame, velocity, time)
    return scene.plotter


def save_png(plotter: pv.Plotter, path: str | os.PathLike[str]) -> Path:
    """Write what `plotter` shows to a PNG file, complete or not at all; FluidError if it cannot be
    written."""
    return write_png(pixels(plotter), path)


def pixels(plotter: pv.Plotter) -> NDArray[np.uint8]:
    """The picture as an array (height, width, 3) of 0 to 255, of the size asked for."""
    if plotter.render_window is None:
        raise FluidError("this plotter is closed; take its picture before closing it")
    plotter.render()  # a screenshot draws the first time only, this one from the second time on
    image = np.ascontiguousarray(plotter.screenshot(return_img=True)[..., :3])
    if plotter not in _supersampled:
        return image
    wide = image.astype(np.uint16)
    total = wide[::2, ::2] + wide[1::2, ::2] + wide[::2, 1::2] + wide[1::2, 1::2]
    return ((total + 2) // 4).astype(np.uint8)


class Scene(Canvas):
    """One plotter for any number of frames that share a `View`."""

    def __init__(
        self, view: View, options: Options, velocity_of: Callable[[TimedFrame], Velocity] | None = None
    ) -> None:
        self._velocity_of = velocity_of
        factor = 2 if options.smooth is not False and options.off_screen else 1
        super().__init__(options, factor)
        self.view = view
        if factor == 2:
            _supersampled.add(self.plotter)
        self._aim = self._aimed()
        self._camera = self._aim.at(None, 0.0)
        self.plotter.camera_position = self._camera
        self.plotter.camera.view_angle = VIEW_ANGLE
        self._coloured: list[str] = []
        self.flow = FlowLayers(view.flow)
        """The slice or the streamlines"""
        self._blend_in_floating_point()

    def _aimed(self) -> Aim:
        """The camera for the particles, or for a wider box, since slices and lines reach beyond them."""
        view, orbit, camera = self.view, self.options.orbit, self.options.camera
        aspect = self._reserved(view.bar)
        if camera == "auto" and self.options.what == "slice":
            camera = facing_axis(self.options.normal, self.options.up)
        if self.options.what in ("particles", "glyphs"):
            return Aim(camera, orbit, view.lo, view.hi, aspect, view.points, self.options.up)
        lo, hi = self.box(0.15)
        if self.options.what == "slice":
            axis, origin = AXES[self.options.normal], self.options.origin
            lo, hi = flattened(lo, hi, axis, (0.5 * (lo + hi) if origin is None else origin)[axis])
        return Aim(camera, orbit, lo, hi, aspect, corners(lo, hi), self.options.up)

    def box(self, share: float) -> tuple[NDArray, NDArray]:
        """The view's box, wider by a share of its longest side; around a single particle, by its size."""
        view = self.view
        pad = share * float((view.hi - view.lo).max()) or 5.0 * max(view.radii.values(), default=0.1)
        return view.lo - pad, view.hi + pad

    def _blend_in_floating_point(self) -> None:
        """Blend in floating point: thousands of puffs of opacity 0.01 would be lost in 8 bits per colour."""
        steps = vtkRenderStepsPass()
        floating = vtkToneMappingPass()
        floating.SetToneMappingType(vtkToneMappingPass.Clamp)
        floating.SetDelegatePass(steps)
        self.plotter.renderer.SetPass(floating)

    def show(
        self, frame: Frame, velocity: Velocity | None = None, time: float | None = None, played: float = 0.0
    ) -> None:
        """Make the scene show `frame`; what was drawn before is updated in place or hidden.

        What is seen depends on this frame alone (and on the colours of the first slice or streamlines):
        frames may come in any order. `played` s of the movie lie before it, for cameras that move.
        """
        what = self.options.what
        if self.options.needs_velocity and velocity is None:
            raise FluidError(f"a picture of {what} needs a velocity function, and none was given")
        moved = self._aim.at(time, played)
        if moved != self._camera:
            self._camera = self.plotter.camera_position = moved
        for layer in self._layers.values():
            layer.actor.VisibilityOff()
        self._coloured.clear()
        populations = bodies_in(kept(frame, self.options), self.options.hulls or {})
        bodies = [body for _, found in populations for body in found]
        if what == "slice" and velocity is not None:
            self.flow.show_slice(self, velocity, bodies)
        else:
            if what == "streamlines" and velocity is not None:
                self.flow.show_streamlines(self, velocity, bodies)
            hides = self.view.puff is not None and hides_vortons(self.options)
            clouds = [
                (x, self._paint(name, columns))
                for name, columns, x in drawable(kept(frame, self.options))
                if not (hides and is_vortons(columns))
                and not self._population(name, columns, x)
                and not self._in_surface(columns)
            ]
            if self._of_liquid(what):
                around = bodies_in(frame, self.options.hulls or {})
                self._liquid(frame, [body for _, found in around for body in found])
            if clouds and (puff := self.view.puff) is not None:
                camera, focal, _ = (np.array(point) for point in self._camera)
                self._layer("smoke", partial(Smoke, self.look, puff)).update(clouds, camera, focal)
                if self.look.paint == "fire":
                    self._layer("flame", partial(Flame, puff, self.view.glare)).update(clouds, camera, focal)
        self._bodies(bodies)
        if time is not None:
            self._clock.show(time, self.view.last)
        self._bars.show(min(self._coloured, default=""))
        self.plotter.renderer.ResetCameraClippingRange()

    def show_timed(self, timed: TimedFrame, played: float) -> None:
        """Show a frame (time [s], columns), with its own velocity function if the picture needs one."""
        time, frame = timed
        flow = self._velocity_of if self.options.needs_velocity else None
        self.show(frame, None if flow is None else flow(timed), time, played)

    def adopt(self, view: View) -> None:
        """Go on with another view from the next frame on: its colours, its sizes, and its camera, unless that
        was moved by hand."""
        for layer in self._layers.values():
            self.plotter.renderer.RemoveActor(layer.actor)
        self._layers.clear()
        self._bars.clear()
        self._tables.clear()
        self.view, self.flow = view, FlowLayers(view.flow)
        aim = self._aimed()
        if np.allclose(self.plotter.camera.position, self._camera[0], rtol=1e-6, atol=0.0):
            self._aim = aim

    def _of_liquid(self, what: str) -> bool:
        """Whether the picture draws liquid as a surface, in this frame or in others."""
        return self.look.paint == "liquid" and what == "particles" and self.view.puff is not None

    def _in_surface(self, columns: Columns) -> bool:
        """Whether a cloud is part of the surface of liquid: tracers are where there is no other liquid."""
        return self._of_liquid(self.options.what) and (is_liquid(columns) or not self.view.wet)

    def _liquid(self, frame: Frame, bodies: Sequence[Placed]) -> None:
        """The surface of a liquid among bodies, and its whitewater.

        All liquids have one common surface, in their colours: where they mix, none has a closed surface
        alone.
        """
        assert self.view.puff is not None
        surfaces: dict[str, list[tuple[str, Columns, NDArray]]] = {}
        spacing = self.view.puff.spacing
        shown = kept(frame, self.options)
        whitewater = [columns for columns in shown.values() if is_whitewater(columns)]
        for name, columns, x in drawable(shown):
            if is_cloud(columns) and self._in_surface(columns) and not self._is_coloured(columns):
                key = name if rest_spacing(columns) is None else ""
                surfaces.setdefault(key, []).append((name, columns, x))
        for key, parts in surfaces.items():
            spacing = max(rest_spacing(columns) or self.view.puff.spacing for _, columns, _ in parts)
            self._liquid_surface(key, parts, spacing, whitewater, bodies)
        for name, columns, x in drawable(shown):
            if is_whitewater(columns) and not self._is_coloured(columns):
                layer = self._layer(f"{name} whitewater", partial(Spheres, spacing, None, FOAM))
                layer.update(x, None, np.array(DROPS)[columns["Whitewater.kind"]])

    def _liquid_surface(
        self, key: str, parts: list[tuple[str, Columns, NDArray]], spacing: float, whitewater: list[Columns],
        bodies: Sequence[Placed],
    ) -> None:  # fmt: skip
        """One surface of populations (name, columns, places), with drops where they are few."""
        x = np.concatenate([x for _, _, x in parts])
        u = np.concatenate([columns.get("Velocity.u", np.zeros_like(x)) for _, columns, x in parts])
        mesh, drops = liquid_surface(x, spacing, bodies)
        # Drops are white, as foam is, but of a liquid with a colour of its own.
        counts = [len(x) for *_, x in parts]
        water, white = (
            np.repeat([self._own_colour(name, plain) for name, *_ in parts], counts, axis=0)
            for plain in (self.look.water, FOAM)
        )
        if mesh.n_points:
            colours = surface_colours(mesh.points, x, u, drops, spacing, water, whitewater)
            self._layer(f"{key} liquid", partial(GlossyMesh, self.look.water)).update(mesh, colours)
        if drops.any():
            colours = drop_colours(x, u, drops, spacing, water, white)
            layer = self._layer(f"{key} drops", partial(Spheres, DROP * spacing, None, FOAM))
            layer.update(x[drops], np.rint(255.0 * colours).astype(np.uint8))

    def _bodies(self, found: Sequence[Placed]) -> None:
        """Balls, polytopes and the edges of containers."""
        painted = self._body_colours(found)
        if any(ball := np.array([body.ball for body in found], bool)):
            layer = self._layer("balls", lambda: Spheres(1.0, None, SOLID))
            balls = [body for body in found if body.ball]
            sizes = np.array([body.scale for body in balls])
            layer.update(np.array([body.x for body in balls]), painted[ball], sizes)
        solid, edges = surface(found), wires(found)
        if any(self.options.periods):
            self._layer("period", lambda: PlainMesh(self.look.plain, 1.0)).show(self._period())
        if solid is not None:
            corners = [0 if body.ball or body.container else len(body.mesh.corners) for body in found]
            self._layer("bodies", lambda: PlainMesh(SOLID)).show(solid, np.repeat(painted, corners, axis=0))
        if edges is not None:
            width = 2.0 * self.plotter.window_size[1] / 720
            self._layer("containers", lambda: PlainMesh(self.look.plain, width)).show(edges)

    def _body_colours(self, bodies: Sequence[Placed]) -> NDArray[np.uint8]:
        """Colours (n, 3) of bodies, as bytes: their own, those of the picture's temperatures, or glowing."""
        span = None
        if self.options.what == "slice":
            span = self.flow.range if self.options.color_by == "temperature" else None
        elif PAINTED.get(self.look.paint) == HEAT and HEAT in self._coloured:
            span = self.view.painted
        return np.rint(255.0 * colours_of_bodies(self.look, bodies, self.view.colors, span)).astype(np.uint8)

    def _period(self) -> pv.PolyData:
        """Edges of the box of a world that repeats, as wide as the view along axes that do not."""
        half = 0.5 * np.array(self.options.periods)
        lo, hi = np.where(half, -half, self.view.lo), np.where(half, half, self.view.hi)
        return pv.Box(np.stack([lo, hi], axis=1).ravel()).extract_all_edges()

    def _paint(self, name: str, columns: Columns) -> Paint:
        painted = PAINTED.get(self.look.paint, "")
        if painted in columns and self.options.color_by is None and self.options.what == "particles":
            self.colours(painted, self.view.painted)  # for its scalar bar
        return paint(self.look, columns, self.view.tint(self.look, name), self.view.painted)

    def _population(self, name: str, columns: Columns, x: NDArray) -> bool:
        """Draw a population, unless it is to be part of the smoke; whether it was drawn."""
        what, colour = self.options.what, self.view.color_by
        coloured = what != "streamlines" and self._is_coloured(columns)
        if name in self.view.colors and self.options.color_by is None:
            coloured = False
        if what == "glyphs" and is_vortons(columns):
            mesh = glyphs(columns, 5.0 * self.view.radii.get(name, 0.1), colour)
            table = self.colours(colour or "strength", self.view.limits)
            self.surface_layer(name, table, True).update(mesh, mesh.point_data["color"])
            return True
        if not coloured and is_cloud(columns) and self.view.puff is not None:
            return False
        if coloured and colour is not None:
            colours, values = self.colours(colour, self.view.limits), scalar(columns, colour)
        else:
            colours, values = None, None
        if is_whitewater(columns) and self._of_liquid(what) and colours is None:
            return True  # it is drawn with its liquid
        if what == "particles" and is_spray(columns):
            self._spray(name, columns, x, colours, values)
            return True
        opacity = 0.25 if what == "streamlines" else 1.0
        radius = self.view.radii.get(name, 0.02)
        key = f"{name} {'coloured' if coloured else 'plain'}"
        plain = self._own_colour(name, self.look.plain)
        layer = self._layer(key, lambda: Spheres(radius, colours, plain, opacity))
        layer.update(x, values, self._sizes(values))
        return True

    def _spray(
        self, name: str, columns: Columns, x: NDArray, table: pv.LookupTable | None, values: NDArray | None
    ) -> None:
        """Streaks along the velocity, the fastest `STREAK` of the view long."""
        view, u = self.view, velocity_of(columns)
        size = float(np.linalg.norm(view.hi - view.lo))
        speed = np.linalg.norm(u, axis=1, keepdims=True)
        length = size * np.clip(STREAK * speed / (view.speed or 1.0), SPOT, 2.0 * STREAK)
        way = length * np.where(speed > 0.0, u / np.where(speed > 0.0, speed, 1.0), [0.0, 0.0, 1.0])
        seen = drawn(self.options, columns, view.painted)
        if values is None:
            colours = spray_colours(self.look, columns, view.tint(self.look, name), view.painted)
            values = np.rint(255.0 * colours)
        width = 1.5 * self.plotter.window_size[1] / 720
        layer = self._layer(f"{name} streaks", lambda: Streaks(table, width))
        layer.update(x[seen], way[seen], values[seen])

    def _own_colour(self, name: str, plain: Colour) -> Colour:
        """That of a population's recipe, or `plain`."""
        colors = self.view.colors
        return self.look.named(colors[name])[0] if name in colors else plain

    def _is_coloured(self, columns: Columns) -> bool:
        """Whether a population is coloured by the picture's column: tracers only if `color_by` is given."""
        colour = self.view.color_by
        wanted = self.options.color_by is not None or is_vortons(columns)
        return wanted and colour is not None and has_scalar(columns, colour)

    def _sizes(self, values: NDArray | None) -> NDArray | None:
        """Shares of the radius: within smoke, weak vortons are small beads, which do not hide it."""
        if self.options.color_by is not None or values is None or self.view.puff is None:
            return None
        largest = 1.0 if self.look.paint == "vorticity" else SMALL
        return largest * np.cbrt(np.clip(values / self.view.limits[1], 0.0, 1.0))

    def surface_layer(self, name: str, table: pv.LookupTable, lit: bool) -> Surface:
        """The layer of a coloured mesh."""
        return self._layer(f"{name} surface", lambda: Surface(table, lit))

    def _order(self, key: str) -> Any:
        """Flame shines through smoke, and comes last."""
        return key == "flame", key

    def colours(self, name: str, span: tuple[float, float]) -> pv.LookupTable:
        """The colour table of that name, made with its scalar bar when the first thing is coloured by it."""
        self._coloured.append(name)
        if name not in self._tables:
            painted = name == PAINTED.get(self.look.paint)
            self._tables[name] = self._table_of(span, is_signed(*span), painted)
            self._bars.add(name, title(name, self.options.declared), self._tables[name], span)
        return self._tables[name]
