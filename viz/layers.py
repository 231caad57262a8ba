"""Layers of a scene, which are updated in place: puffs of smoke, shaded spheres, coloured meshes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyvista as pv
from numpy.typing import NDArray
from vtkmodules.vtkRenderingCore import vtkActor, vtkPointGaussianMapper, vtkPolyDataMapper
from vtkmodules.vtkRenderingOpenGL2 import vtkOpenGLSphereMapper

from ecs_fluid.exports.colours import Colour
from ecs_fluid.viz.colours import Paint, glowing, shaded
from ecs_fluid.viz.columns import Array
from ecs_fluid.viz.smoke import Puff, back_to_front, glare
from ecs_fluid.viz.style import Look

BRIGHTEST = 0.4
VALUES = "values"
SIZES = "sizes"
SHINING: dict[str, Any] = {"ambient": 0.25, "diffuse": 0.8, "specular": 0.12, "specular_power": 20.0}


class Layer:
    """Points or a mesh with one actor; `VALUES` of the points are colours, or numbers for a colour table.

    `material` is that of `pyvista.Property`.
    """

    def __init__(
        self,
        mapper: vtkPolyDataMapper,
        table: pv.LookupTable | None = None,
        colour: Colour = (1.0, 1.0, 1.0),
        **material: Any,
    ) -> None:
        self._data, self._mapper = pv.PolyData(), mapper
        mapper.SetInputData(self._data)
        mapper.SetScalarModeToUsePointFieldData()
        mapper.SelectColorArray(VALUES)
        if table is not None:
            mapper.SetLookupTable(table)
            mapper.UseLookupTableScalarRangeOn()
        self.actor = vtkActor()
        self.actor.SetMapper(mapper)
        self.actor.SetProperty(pv.Property(**{"interpolation": "Gouraud", **material}))
        self.actor.GetProperty().SetColor(*colour)

    def show(self, mesh: pv.PolyData, values: NDArray | None = None) -> None:
        """Draw `mesh` with `values` of its points: numbers (n,) for the table, or colours (n, 3) in bytes."""
        fresh = mesh.copy(deep=False)
        if values is not None:
            fresh.point_data[VALUES] = values
        self._mapper.SetScalarVisibility(values is not None)
        self._data.copy_from(fresh, deep=False)


class Puffs(Layer):
    """Points as translucent puffs in colours of their own, cut off at `bound` radii; without it they glow."""

    def __init__(self, puff: Puff, bound: float | None = None, **material: Any) -> None:
        mapper = vtkPointGaussianMapper()
        mapper.SetScaleFactor(puff.radius)
        mapper.SetEmissive(bound is None)
        if bound is not None:
            mapper.SetBoundScale(bound)
        super().__init__(mapper, **material)
        self.actor.ForceTranslucentOn()
        self._puff = puff

    def _draw(self, x: Array, colour: Array) -> None:
        self.show(pv.PolyData(x.astype(np.float32)), np.rint(255.0 * colour).astype(np.uint8))


class Smoke(Puffs):
    """All tracers as translucent puffs, lit from one side, blended from back to front.

    One layer for all populations, as puffs of all clouds must be sorted, and shade each other, together.
    """

    def __init__(self, look: Look, puff: Puff) -> None:
        # Puffs end where they have fallen to 6 %; the rest would take time and be invisible.
        super().__init__(puff, 2.4, opacity=puff.opacity)
        self._look = look

    def update(self, clouds: Sequence[tuple[Array, Paint]], camera: Array, focal: Array) -> None:
        """Draw clouds of tracers at (n, 3) m, each in its paint, for a camera at `camera` that looks at
        `focal`."""
        x = np.concatenate([np.asarray(points, dtype=np.float64) for points, _ in clouds])
        _, colour, cover = shaded(self._look, self._puff, clouds)
        order = back_to_front(x, camera, focal)
        if cover is not None:
            colour = np.column_stack((colour, cover))
            order = order[cover[order] > 1e-3]
        if len(order):
            self._draw(x[order], colour[order])
        else:
            self.actor.VisibilityOff()


class Flame(Puffs):
    """Light of glowing tracers: puffs that add their colour to what is in front of and behind them.

    Their opacity is chosen such that the sum is `BRIGHTEST` where most of them lie behind one another in the
    brightest frame, the one of the given `glare`. Sums beyond 1 turn dark in VTK's floating-point pass, and
    the smoke layer already draws the body of a flame.
    """

    def __init__(self, puff: Puff, glare: float) -> None:
        super().__init__(puff)
        self._glare = glare

    def update(self, clouds: Sequence[tuple[Array, Paint]], camera: Array, focal: Array) -> None:
        """Draw the tracers at (n, 3) m that glow, for a camera at `camera` that looks at `focal`."""
        x, colour = glowing(clouds)
        if not len(x):
            self.actor.VisibilityOff()
            return
        most = max(self._glare, glare(x, colour, camera, focal, self._puff))
        self.actor.GetProperty().SetOpacity(min(1.0, BRIGHTEST / (2.0 * np.pi * self._puff.radius**2 * most)))
        self._draw(x, colour)


WHOLE_BALLS = """//VTK::PrimID::Impl
  if (cameraParallel == 0)
  {
    float square = dot(gl_in[0].gl_Position.xyz, gl_in[0].gl_Position.xyz);
    float wider = sqrt(square / max(square - radiusVCGSOutput * radiusVCGSOutput, 1e-4 * square));
    base1 *= wider;
    base2 *= wider;
  }
"""
"""VTK draws a ball of radius R on a triangle through its middle whose inner circle has the radius R. Seen
from a distance d in perspective its outline there has the radius R / sqrt(1 - (R / d)^2), and was cut."""


class Spheres(Layer):
    """Particles as shaded spheres of one radius [m], coloured by a table or plain."""

    def __init__(
        self, radius: float, table: pv.LookupTable | None, plain: Colour, opacity: float = 1.0
    ) -> None:
        mapper = vtkOpenGLSphereMapper()
        mapper.SetRadius(radius)
        super().__init__(mapper, table, plain, opacity=opacity, **SHINING)
        shader = self.actor.GetShaderProperty()
        shader.AddGeometryShaderReplacement("//VTK::PrimID::Impl", True, WHOLE_BALLS, False)
        self._radius = radius

    def update(self, x: Array, values: Array | None, sizes: Array | None = None) -> None:
        """Draw particles at `x` (n, 3) m with `values`: (n,) of the table, or colours (n, 3) of bytes.

        `sizes` (n,) are shares of the radius.
        """
        points = pv.PolyData(np.array(x, dtype=np.float32))
        if sizes is not None:
            points.point_data[SIZES] = np.array(self._radius * sizes, dtype=np.float32)
            self._mapper.SetScaleArray(SIZES)
        if values is not None and values.ndim == 1:
            values = np.array(values, dtype=np.float32)
        self.show(points, values)


class Streaks(Layer):
    """Particles as lines along their motion, of a width in pixels, coloured by a table or each by itself."""

    def __init__(self, table: pv.LookupTable | None, width: float) -> None:
        super().__init__(vtkPolyDataMapper(), table, lighting=False, line_width=width)

    def update(self, x: Array, way: Array, values: Array) -> None:
        """Draw lines from `x - way` to `x` (n, 3) m with `values`: (n,) of the table, or colours (n, 3)."""
        n = len(x)
        ends = np.stack([x - way, x], axis=1).reshape(2 * n, 3).astype(np.float32)
        cells = np.column_stack([np.full(n, 2), np.arange(0, 2 * n, 2), np.arange(1, 2 * n, 2)])
        kind = np.float32 if values.ndim == 1 else np.uint8
        self.show(pv.PolyData(ends, lines=cells.ravel()), np.repeat(values, 2, axis=0).astype(kind))


class Surface(Layer):
    """A mesh (arrows, tubes, a slice) coloured by one of its point arrays; `lit` shades it."""

    def __init__(self, table: pv.LookupTable, lit: bool) -> None:
        mapper = vtkPolyDataMapper()
        mapper.InterpolateScalarsBeforeMappingOn()
        super().__init__(mapper, table, lighting=lit, **SHINING)

    def update(self, mesh: pv.PolyData, values: NDArray) -> None:
        """Draw `mesh` with `values`, one per point."""
        self.show(mesh, np.array(values, dtype=np.float32))


class PlainMesh(Layer):
    """A mesh of one colour, flat, or lines of a width in pixels."""

    def __init__(self, colour: Colour, width: float = 0.0) -> None:
        material: dict[str, Any] = {"lighting": False, "line_width": width}
        if not width:
            material = {"interpolation": "Flat", "ambient": 0.22, "diffuse": 0.85, "specular": 0.1}
        super().__init__(vtkPolyDataMapper(), colour=colour, **material)


class GlossyMesh(Layer):
    """A glossy mesh of one colour, or with colours (n, 3) of its points."""

    def __init__(self, colour: Colour) -> None:
        gloss = {"ambient": 0.25, "diffuse": 0.8, "specular": 0.45, "specular_power": 40.0}
        super().__init__(vtkPolyDataMapper(), colour=colour, interpolation="Phong", **gloss)

    def update(self, mesh: pv.PolyData, colours: Array | None = None) -> None:
        """Draw `mesh`, whose normals are used if it has any."""
        bytes_ = None if colours is None else np.rint(255.0 * np.clip(colours, 0.0, 1.0)).astype(np.uint8)
        self.show(mesh, bytes_)
