"""What a scene is made of: puffs of smoke, shaded spheres, coloured meshes. Each is updated in place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyvista as pv
from numpy.typing import NDArray
from vtkmodules.vtkRenderingCore import vtkActor, vtkPointGaussianMapper, vtkPolyDataMapper
from vtkmodules.vtkRenderingOpenGL2 import vtkOpenGLSphereMapper

from ecs_fluid.viz.colours import Paint
from ecs_fluid.viz.columns import Array
from ecs_fluid.viz.smoke import Puff, back_to_front, illumination
from ecs_fluid.viz.style import Colour, Look

BRIGHTEST = 0.4
VALUES = "values"
SIZES = "sizes"


class Smoke:
    """All tracers as translucent puffs, lit from one side, blended from back to front.

    One layer for all populations: puffs of two clouds can only be sorted, and shade each other, together.
    """

    def __init__(self, look: Look, puff: Puff) -> None:
        self._look, self._puff = look, puff
        self._data = pv.PolyData()
        # Puffs end where they are down to 6 %; the rest costs time and is not seen.
        self.actor = _puffs(self._data, puff.radius, 2.4)
        self.actor.GetProperty().SetOpacity(puff.opacity)

    def update(self, clouds: Sequence[tuple[Array, Paint]], camera: Array, focal: Array) -> None:
        """Draw clouds of tracers at (n, 3) m, each in its paint, for a camera at `camera` that looks at
        `focal`."""
        x = np.concatenate([np.asarray(points, dtype=np.float64) for points, _ in clouds])
        lit, shade = (np.concatenate([getattr(paint, k) for _, paint in clouds]) for k in ("lit", "shade"))
        cover = covers(clouds)
        look = self._look
        # Half the cross-section: smoke scatters most light onwards, so its shadow is softer than its cover.
        light = illumination(
            x, np.array(look.light), self._puff.spacing, 0.5 * self._puff.cross_section, cover
        )
        colour = shade + light[:, None] * (lit - shade)
        if cover is not None:
            colour, cover = self._burning(clouds, colour, cover)
        order = back_to_front(x, camera, focal)
        if cover is not None:
            colour = np.column_stack((colour, cover))
            order = order[cover[order] > 1e-3]
        if not len(order):
            self.actor.VisibilityOff()
            return
        fresh = pv.PolyData(x[order].astype(np.float32))
        fresh.point_data[VALUES] = np.rint(255.0 * colour[order]).astype(np.uint8)
        self._data.copy_from(fresh, deep=False)

    @staticmethod
    def _burning(clouds: Sequence[tuple[Array, Paint]], colour: Array, cover: Array) -> tuple[Array, Array]:
        """Colours (n, 3) and covers (n,) of smoke with unshaded flame in it, which hides what is behind."""
        glow = np.concatenate(
            [np.zeros((len(points), 3)) if paint.glow is None else paint.glow for points, paint in clouds]
        )
        flame = glow.max(axis=1)
        return colour * (1.0 - flame[:, None]) + glow * flame[:, None], np.maximum(cover, 0.8 * flame)


def _puffs(data: pv.PolyData, radius: float, bound: float | None = None) -> vtkActor:
    """Points as translucent puffs of a radius [m], in the colours of `VALUES`; glowing if without `bound`."""
    mapper = vtkPointGaussianMapper()
    mapper.SetInputData(data)
    mapper.SetScaleFactor(radius)
    mapper.SetEmissive(bound is None)
    if bound is not None:
        mapper.SetBoundScale(bound)
    mapper.SetScalarModeToUsePointFieldData()
    mapper.SelectColorArray(VALUES)
    actor = vtkActor()
    actor.SetMapper(mapper)
    actor.ForceTranslucentOn()
    return actor


class Flame:
    """Light of glowing tracers: puffs that add their colour to what is in front of and behind them.

    Their opacity is such that where most of them lie behind one another the sum is `BRIGHTEST`: sums beyond 1
    turn dark in VTK's floating-point pass, and the body of a flame is drawn by the smoke already.
    """

    def __init__(self, puff: Puff) -> None:
        self._puff = puff
        self._data = pv.PolyData()
        self.actor = _puffs(self._data, puff.radius)

    def update(self, clouds: Sequence[tuple[Array, Paint]], camera: Array, focal: Array) -> None:
        """Draw the tracers at (n, 3) m that glow, for a camera at `camera` that looks at `focal`."""
        glowing = [(points, paint.glow) for points, paint in clouds if paint.glow is not None]
        x = np.concatenate([np.zeros((0, 3)), *(points for points, _ in glowing)])
        colour = np.concatenate([np.zeros((0, 3)), *(glow for _, glow in glowing)])
        bright = colour.max(axis=1) > 1e-3
        if not bright.any():
            self.actor.VisibilityOff()
            return
        x, colour = x[bright], colour[bright]
        most = most_in_line(x, colour.max(axis=1), camera, focal, 2.0 * self._puff.radius)
        self.actor.GetProperty().SetOpacity(min(1.0, BRIGHTEST / (2.0 * np.pi * self._puff.radius**2 * most)))
        fresh = pv.PolyData(x.astype(np.float32))
        fresh.point_data[VALUES] = np.rint(255.0 * colour).astype(np.uint8)
        self._data.copy_from(fresh, deep=False)


def most_in_line(x: Array, weight: Array, camera: Array, focal: Array, cell: float) -> float:
    """Largest sum of weights per area [1/m^2] of points (n, 3) m seen from `camera`, in squares of `cell`."""
    view = np.asarray(focal, dtype=np.float64) - camera
    view /= np.linalg.norm(view)
    side = np.cross(view, np.eye(3)[np.argmin(np.abs(view))])
    side /= np.linalg.norm(side)
    flat = x @ np.column_stack((side, np.cross(view, side)))
    index = np.floor((flat - flat.min(axis=0)) / cell).astype(np.int64)
    sums = np.bincount(index[:, 0] * (index[:, 1].max() + 1) + index[:, 1], weights=weight)
    return float(sums.max() / cell**2)


def covers(clouds: Sequence[tuple[Array, Paint]]) -> NDArray[np.float64] | None:
    """Shares of a puff's opacity (n,) of all tracers, None when all are full."""
    if all(paint.cover is None for _, paint in clouds):
        return None
    parts = [np.ones(len(points)) if paint.cover is None else paint.cover for points, paint in clouds]
    return np.concatenate(parts)


class Spheres:
    """Particles as shaded spheres of one radius [m], coloured by a table or plain."""

    def __init__(
        self, radius: float, table: pv.LookupTable | None, plain: Colour, opacity: float = 1.0
    ) -> None:
        self._data = pv.PolyData()
        mapper = vtkOpenGLSphereMapper()
        mapper.SetInputData(self._data)
        mapper.SetRadius(radius)
        self._radius, self._mapper = radius, mapper
        self.actor = _coloured(mapper, table, plain, opacity)

    def update(self, x: Array, values: Array | None, sizes: Array | None = None) -> None:
        """Draw particles at `x` (n, 3) m with `values` (n,), if they have a colour.

        `sizes` (n,) are shares of the radius.
        """
        fresh = pv.PolyData(np.array(x, dtype=np.float32))
        if sizes is not None:
            fresh.point_data[SIZES] = np.array(self._radius * sizes, dtype=np.float32)
            self._mapper.SetScaleArray(SIZES)
        if values is not None:
            fresh.point_data[VALUES] = np.array(values, dtype=np.float32)
        self._data.copy_from(fresh, deep=False)


class Surface:
    """A mesh (arrows, tubes, a slice) coloured by one of its point arrays; `lit` shades it."""

    def __init__(self, table: pv.LookupTable, lit: bool) -> None:
        self._data = pv.PolyData()
        mapper = vtkPolyDataMapper()
        mapper.SetInputData(self._data)
        mapper.InterpolateScalarsBeforeMappingOn()
        self.actor = _coloured(mapper, table, (1.0, 1.0, 1.0), 1.0)
        if not lit:
            self.actor.GetProperty().LightingOff()

    def update(self, mesh: pv.PolyData, values: NDArray) -> None:
        """Draw `mesh` with `values`, one per point."""
        fresh = mesh.copy(deep=False)
        fresh.point_data[VALUES] = np.array(values, dtype=np.float32)
        self._data.copy_from(fresh, deep=False)


def _coloured(
    mapper: vtkPolyDataMapper, table: pv.LookupTable | None, plain: Colour, opacity: float
) -> vtkActor:
    if table is None:
        mapper.ScalarVisibilityOff()
    else:
        mapper.SetLookupTable(table)
        mapper.UseLookupTableScalarRangeOn()
        mapper.SetScalarModeToUsePointFieldData()
        mapper.SelectColorArray(VALUES)
    actor = vtkActor()
    actor.SetMapper(mapper)
    material = actor.GetProperty()
    material.SetColor(*plain)
    material.SetOpacity(opacity)
    material.SetAmbient(0.25)
    material.SetDiffuse(0.8)
    material.SetSpecular(0.12)
    material.SetSpecularPower(20.0)
    return actor
