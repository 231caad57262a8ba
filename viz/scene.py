"""Draw frames: one scene, whose camera, colours and actors stay while the frames go by."""

from __future__ import annotations

import contextlib
import itertools
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pyvista as pv
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from numpy.typing import NDArray
from vtkmodules.vtkRenderingOpenGL2 import vtkRenderStepsPass, vtkToneMappingPass

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.bodies import SOLID, Mesh, bodies_in, surface, wires
from ecs_fluid.viz.camera import FACING, VIEW_ANGLE, Camera, Placement, place
from ecs_fluid.viz.columns import AXES, Columns, Frame, choose, drawable, has_scalar, scalar, title
from ecs_fluid.viz.fields import Velocity, streamlines, velocity_slice
from ecs_fluid.viz.layers import Flame, Smoke, Spheres, Surface
from ecs_fluid.viz.look import LOOKS, Options
from ecs_fluid.viz.paint import PAINTED, Paint, paint
from ecs_fluid.viz.points import glyphs
from ecs_fluid.viz.probe import require_gl
from ecs_fluid.viz.survey import View, is_cloud, is_signed, is_vortons, kept, limits, survey

# Plotters that draw twice as wide and high as asked, for smooth edges: VTK's own ways of smoothing edges
# (samples per pixel, SSAA, FXAA) do not work together with blending in floating point.
_supersampled: weakref.WeakSet[pv.Plotter] = weakref.WeakSet()

L = TypeVar("L", Flame, Mesh, Smoke, Spheres, Surface)
SMALL = 0.6  # radius of the strongest vortons within smoke, in that of vortons alone
SLICE_COLOURS = ("speed", "vorticity_normal", "u.x", "u.y", "u.z")


def render(
    frame: Frame,
    *,
    velocity: Velocity | None = None,
    time: float | None = None,
    view: View | None = None,
    **options: Any,
) -> pv.Plotter:
    """Draw one frame and return the plotter: `save_png` it, or `show()` it if drawn with `off_screen=False`.

    `options` are those of `look.Options` (what, color_by, camera, size, look, ...). Slices and streamlines
    need `velocity`, a function from points (m, 3) m to velocities (m, 3) m/s. `time` [s] is written into the
    picture. `view` (from `survey.survey`) fixes box and colours over several pictures. Raises FluidError for
    an empty frame, unknown names, and a machine that cannot render.
    """
    chosen = Options.of(options)
    scene = Scene(view or survey([(0.0, frame)], chosen), chosen)
    scene.show(frame, velocity, time)
    return scene.plotter


def save_png(plotter: pv.Plotter, path: str | os.PathLike[str]) -> Path:
    """Write what `plotter` shows to a PNG file, complete or not at all; FluidError if it cannot be
    written."""
    from PIL import Image

    target = Path(path)
    if target.suffix.lower() != ".png":
        raise FluidError(f"{target} does not end in .png; pictures are written as PNG")
    part = target.with_name(f".{target.stem}.part{os.getpid()}.png")
    image = Image.fromarray(pixels(plotter))
    try:
        image.save(part)
        os.replace(part, target)
    except OSError as error:
        raise FluidError(f"cannot write the picture {target}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    return target


def pixels(plotter: pv.Plotter) -> NDArray[np.uint8]:
    """The picture as an array (height, width, 3) of 0 to 255, of the size asked for."""
    if plotter.render_window is None:
        raise FluidError("this plotter is closed; take its picture before closing it")
    plotter.render_window.Render()  # a screenshot alone would repeat what was drawn last
    image = np.ascontiguousarray(plotter.screenshot(return_img=True)[..., :3])
    if plotter not in _supersampled:
        return image
    wide = image.astype(np.uint16)
    total = wide[::2, ::2] + wide[1::2, ::2] + wide[::2, 1::2] + wide[1::2, 1::2]
    return ((total + 2) // 4).astype(np.uint8)


class Scene:
    """One plotter for any number of frames that share a `View`."""

    def __init__(self, view: View, options: Options) -> None:
        require_gl()
        self.view, self.options, self.look = view, options, LOOKS[options.look]
        width, height = (int(length) for length in options.size)
        factor = 2 if options.smooth is not False and options.off_screen else 1
        window = (factor * width, factor * height)
        self.plotter = pv.Plotter(off_screen=options.off_screen, window_size=window, lighting="light kit")
        if factor == 2:
            _supersampled.add(self.plotter)
        if options.background is None:
            self.plotter.set_background(self.look.background, top=self.look.background_top)
        else:
            try:
                self.plotter.set_background(options.background)
            except ValueError:
                raise FluidError(
                    f"unknown background {options.background!r}: give a colour name or #rrggbb"
                ) from None
        camera = options.camera
        if camera == "auto" and options.what == "slice":
            camera = FACING[options.normal]
        self._camera = self._place(camera, width / height)
        self.plotter.camera_position = self._camera
        self.plotter.camera.view_angle = VIEW_ANGLE
        self._layers: dict[str, Flame | Mesh | Smoke | Spheres | Surface] = {}
        self._table: pv.LookupTable | None = None
        self._clock: pv.Text | None = None
        self._passes()

    def _place(self, camera: Camera, aspect: float) -> Placement:
        """The camera, close to the particles; slices and lines reach beyond them."""
        view, what = self.view, self.options.what
        if what in ("particles", "glyphs"):
            return place(camera, view.lo, view.hi, aspect, view.points)
        lo, hi = self._box(0.15)
        return place(camera, lo, hi, aspect, np.array(list(itertools.product(*zip(lo, hi, strict=True)))))

    def _box(self, share: float) -> tuple[NDArray, NDArray]:
        """The view's box, wider by a share of its longest side; around a single particle, by its size."""
        view = self.view
        pad = share * float((view.hi - view.lo).max()) or 5.0 * max(view.radii.values(), default=0.1)
        return view.lo - pad, view.hi + pad

    def _passes(self) -> None:
        """Blend smoke in floating point: thousands of puffs of opacity 0.01 are lost in 8 bits per colour."""
        steps = vtkRenderStepsPass()
        floating = vtkToneMappingPass()
        floating.SetToneMappingType(vtkToneMappingPass.Clamp)
        floating.SetDelegatePass(steps)
        self.plotter.renderer.SetPass(floating)

    def show(self, frame: Frame, velocity: Velocity | None = None, time: float | None = None) -> None:
        """Make the scene show `frame`; what was drawn before is updated in place or hidden."""
        what = self.options.what
        if self.options.needs_velocity and velocity is None:
            raise FluidError(f"a picture of {what} needs a velocity function, and none was given")
        for layer in self._layers.values():
            layer.actor.VisibilityOff()
        if what == "slice" and velocity is not None:
            self._slice(velocity)
        else:
            if what == "streamlines" and velocity is not None:
                self._streamlines(velocity)
            clouds = [
                (x, self._paint(name, columns))
                for name, columns, x in drawable(kept(frame, self.options))
                if not self._hidden(columns) and not self._population(name, columns, x)
            ]
            if clouds:
                camera, focal, _ = (np.array(point) for point in self._camera)
                self._layer("smoke", self._smoke).update(clouds, camera, focal)
                if self.look.paint == "fire":
                    self._layer("flame", self._flame).update(clouds, camera, focal)
        self._bodies(frame)
        if time is not None:
            self._tell(time)
        self.plotter.renderer.ResetCameraClippingRange()

    def close(self) -> None:
        """Free the window and its buffers."""
        self.plotter.close()

    def _bodies(self, frame: Frame) -> None:
        """Balls, polytopes and the edges of containers."""
        found = [bodies for _, bodies in bodies_in(kept(frame, self.options), self.options.hulls or {})]
        for number, balls in enumerate(b for b in found if b.radius is not None):
            assert balls.radius is not None
            layer = self._layer(f"balls {number}", lambda: Spheres(1.0, None, SOLID))
            layer.update(balls.x, None, balls.radius)
        solid, edges = surface(found), wires(found)
        if solid is not None:
            self._layer("bodies", lambda: Mesh(SOLID)).update(solid)
        if edges is not None:
            width = 2.0 * self.plotter.window_size[1] / 720
            self._layer("containers", lambda: Mesh(self.look.plain, width)).update(edges)

    def _smoke(self) -> Smoke:
        assert self.view.puff is not None
        return Smoke(self.look, self.view.puff)

    def _flame(self) -> Flame:
        assert self.view.puff is not None
        return Flame(self.view.puff)

    def _paint(self, name: str, columns: Columns) -> Paint:
        painted = PAINTED.get(self.look.paint, "")
        if painted in columns and self.options.color_by is None and self.options.what == "particles":
            self._colours(painted, self.view.painted)  # for its scalar bar
        return paint(self.look, columns, self.look.tint(name, self.view.clouds), self.view.painted)

    def _hidden(self, columns: Columns) -> bool:
        """A look that paints the tracers shows vortons only where there are no tracers, or on demand."""
        asked = self.options.populations is not None or self.options.color_by is not None
        painting = self.look.paint and self.options.what == "particles" and self.view.puff is not None
        return bool(painting) and is_vortons(columns) and not asked

    def _population(self, name: str, columns: Columns, x: NDArray) -> bool:
        """Draw a population, unless it is to be part of the smoke; whether it was drawn."""
        what, colour = self.options.what, self.view.color_by
        coloured = what != "streamlines" and colour is not None and has_scalar(columns, colour)
        if coloured and self.options.color_by is None and not is_vortons(columns):
            coloured = False
        if what == "glyphs" and is_vortons(columns):
            mesh = glyphs(columns, color_by=colour, longest=5.0 * self.view.radii.get(name, 0.1))
            self._surface(name, True).update(mesh, mesh.point_data["color"])
            return True
        if not coloured and is_cloud(columns) and self.view.puff is not None:
            return False
        if coloured and colour is not None:
            table, values = self._colours(colour, self.view.limits), scalar(columns, colour)
        else:
            table, values = None, None
        opacity = 0.25 if what == "streamlines" else 1.0
        radius = self.view.radii.get(name, 0.02)
        key = f"{name} {'coloured' if coloured else 'plain'}"
        layer = self._layer(key, lambda: Spheres(radius, table, self.look.plain, opacity))
        layer.update(x, values, self._sizes(columns, values))
        return True

    def _sizes(self, columns: Columns, values: NDArray | None) -> NDArray | None:
        """Within smoke, vortons are beads as small as they are weak, so that they do not hide it."""
        if self.options.color_by is not None or values is None or self.view.puff is None:
            return None
        return SMALL * np.cbrt(np.clip(values / self.view.limits[1], 0.0, 1.0))

    def _slice(self, velocity: Velocity) -> None:
        colour = self.options.color_by or "speed"
        if colour not in SLICE_COLOURS:
            raise choose("colour of a slice", colour, SLICE_COLOURS)
        plane = velocity_slice(
            velocity, self._box(0.15), self.options.normal, self.options.origin, self.options.resolution
        )
        mesh = plane.extract_surface(algorithm="dataset_surface")  # which may order the points in its own way
        if colour.startswith("u."):
            values = mesh.point_data["u"][:, AXES[colour[2:]]]
        else:
            values = mesh.point_data[colour]
        self._first_limits(colour, values)
        self._surface("slice", False).update(mesh, values)

    def _streamlines(self, velocity: Velocity) -> None:
        if self.options.color_by not in (None, "speed"):
            raise choose("colour of streamlines", str(self.options.color_by), ("speed",))
        lines = streamlines(velocity, self._box(0.35), self.options.seeds)
        if not lines.n_points:
            return
        self._first_limits("speed", lines.point_data["speed"])
        size = np.linalg.norm(self.view.hi - self.view.lo) or np.linalg.norm(np.ptp(self._box(0.35), axis=0))
        tubes = lines.tube(radius=0.0016 * float(size), n_sides=8)
        self._surface("streamlines", True).update(tubes, tubes.point_data["speed"])

    def _first_limits(self, colour: str, values: NDArray) -> None:
        """Colour range of a velocity picture: from its first frame, and kept (`world.velocity` knows no
        more)."""
        if self._table is None:
            lo, hi = np.percentile(values, [0.5, 99.5])
            self._colours(colour, limits(colour, float(lo), float(hi)))

    def _surface(self, name: str, lit: bool) -> Surface:
        table = self._table or self._colours(self.view.color_by or "strength", self.view.limits)
        return self._layer(f"{name} surface", lambda: Surface(table, lit))

    def _layer(self, key: str, make: Callable[[], L]) -> L:
        """The layer of that key, made when first needed, and visible."""
        layer = self._layers.get(key)
        if layer is None:
            layer = self._layers[key] = make()
            self.plotter.renderer.AddActor(layer.actor)
        layer.actor.VisibilityOn()
        return cast("L", layer)

    def _colours(self, name: str, span: tuple[float, float]) -> pv.LookupTable:
        """The colour table, made with its scalar bar when the first thing is coloured."""
        if self._table is None:
            signed = is_signed(*span)
            cmap = self.look.signed_colours if signed else self.look.colours
            part = (0.0, 1.0) if signed else self.look.part
            table = ListedColormap(colormaps[cmap](np.linspace(*part, 256)))
            self._table = pv.LookupTable(table, n_values=256, scalar_range=span)
            key = pv.DataSetMapper()
            key.lookup_table = self._table
            key.scalar_range = span
            height = self.plotter.window_size[1]
            self.plotter.add_scalar_bar(
                title(name) + "\n",  # or the title would stand among the labels
                mapper=key,
                color=self.look.text,
                n_labels=4,
                # Close values, such as densities, need another digit to differ.
                fmt="{0:.4g}" if span[1] - span[0] < 0.1 * abs(span[1]) else "{0:.3g}",
                vertical=False,
                width=0.3,
                height=0.1,
                position_x=0.67,
                position_y=0.03,
                unconstrained_font_size=True,
                label_font_size=max(8, height // 42),
                title_font_size=max(8, height // 38),
            )
        return self._table

    def _tell(self, time: float) -> None:
        text = f"t = {time:.2f} s"
        if self._clock is None:
            size = max(5, self.plotter.window_size[1] // 60)
            self._clock = self.plotter.add_text(
                text, position=(0.025, 0.94), viewport=True, font_size=size, color=self.look.text
            )
        else:
            self._clock.input = text
