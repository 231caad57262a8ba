"""What a scene is made of: puffs of smoke, shaded spheres, coloured meshes. Each is updated in place."""

from __future__ import annotations

import numpy as np
import pyvista as pv
from numpy.typing import NDArray
from vtkmodules.vtkRenderingCore import vtkActor, vtkPointGaussianMapper, vtkPolyDataMapper
from vtkmodules.vtkRenderingOpenGL2 import vtkOpenGLSphereMapper

from ecs_fluid.viz.columns import Array
from ecs_fluid.viz.look import Colour, Look
from ecs_fluid.viz.smoke import Puff, back_to_front, illumination

VALUES = "values"


class Smoke:
    """Tracers as translucent puffs, lit from one side, blended from back to front."""

    def __init__(self, look: Look, puff: Puff) -> None:
        self._look, self._puff = look, puff
        self._data = pv.PolyData()
        mapper = vtkPointGaussianMapper()
        mapper.SetInputData(self._data)
        mapper.SetScaleFactor(puff.radius)
        mapper.SetBoundScale(2.4)  # puffs end where they are down to 6 %; the rest costs time and is not seen
        mapper.EmissiveOff()
        mapper.SetScalarModeToUsePointFieldData()
        mapper.SelectColorArray(VALUES)
        self.actor = vtkActor()
        self.actor.SetMapper(mapper)
        self.actor.GetProperty().SetOpacity(puff.opacity)
        self.actor.ForceTranslucentOn()

    def update(self, x: Array, camera: Array, focal: Array) -> None:
        """Draw tracers at `x` (n, 3) m for a camera at `camera` that looks at `focal`."""
        x = np.asarray(x, dtype=np.float64)
        look = self._look
        # Half the cross-section: smoke scatters most light onwards, so its shadow is softer than its cover.
        light = illumination(x, np.array(look.light), self._puff.spacing, 0.5 * self._puff.cross_section)
        colour = np.array(look.shade) + light[:, None] * (np.array(look.lit) - np.array(look.shade))
        order = back_to_front(x, camera, focal)
        fresh = pv.PolyData(x[order].astype(np.float32))
        fresh.point_data[VALUES] = np.rint(255.0 * colour[order]).astype(np.uint8)
        self._data.copy_from(fresh, deep=False)


class Spheres:
    """Particles as shaded spheres of one radius [m], coloured by a table or plain."""

    def __init__(
        self, radius: float, table: pv.LookupTable | None, plain: Colour, opacity: float = 1.0
    ) -> None:
        self._data = pv.PolyData()
        mapper = vtkOpenGLSphereMapper()
        mapper.SetInputData(self._data)
        mapper.SetRadius(radius)
        self.actor = _coloured(mapper, table, plain, opacity)

    def update(self, x: Array, values: Array | None) -> None:
        """Draw particles at `x` (n, 3) m with `values` (n,), if they have a colour."""
        fresh = pv.PolyData(np.array(x, dtype=np.float32))
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
