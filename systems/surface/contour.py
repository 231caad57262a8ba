"""Meshes of level sets by VTK's flying edges: welded, closed, oriented outward, in a reproducible order.

Only VTK's filters are loaded, none of its rendering.
"""

from __future__ import annotations

import numpy as np

from ecs_fluid.component import Array

KEPT_OFF = 1e-3
"""Values nearer to the level than this fraction of a cell are moved away from it, so that no two vertices
coincide."""


def contour(
    phi: Array, origin: Array, spacing: Array, level: float = 0.0, closed: bool = True
) -> tuple[Array, Array]:
    """Vertices (n, 3) m and faces of phi = ``level`` for distances phi (px, py, pz) m: triangles (m, 3).

    Their vertices run counter-clockwise as seen from where phi is larger, every edge belongs to two of them,
    and no vertex comes twice. Where the surface leaves the grid it is closed within a cell beyond the border,
    or open unless ``closed``. With an axis of one layer the faces are segments (m, 2), which keep the smaller
    phi on their left as seen from the end of that axis. A vertex is off the crossing of its edge by at most
    1e-3 cells.
    """
    single = np.flatnonzero(np.array(phi.shape) == 1)
    h = np.asarray(spacing, dtype=np.float64)
    wide = [axis for axis in range(3) if axis not in single]
    if len(single) > 1 or phi.size == 0:
        return np.empty((0, 3), phi.dtype), np.empty((0, 3), np.int64)
    shifted = np.asarray(phi - phi.dtype.type(level))
    least = phi.dtype.type(KEPT_OFF * h[wide].min())
    shifted = np.where(np.abs(shifted) < least, np.where(shifted < 0, -least, least), shifted)
    beyond = int(closed)
    border = [(0, 0) if axis in single else (beyond, beyond) for axis in range(3)]
    values = np.pad(shifted, border, constant_values=h[wide].max())
    # VTK counts x fastest and our arrays count z fastest, so its axes are ours in reverse; in the plane it
    # keeps segments in one sense only where its third axis is the flat one, our first.
    order = [*single, *wide]
    points, faces = _flying_edges(np.moveaxis(values, order, range(3)))
    x = np.empty((len(points), 3))
    x[:, order] = points[:, ::-1]
    x[:, wide] -= beyond
    x = np.asarray(origin, dtype=np.float64) + x * np.where(np.isin(range(3), single), 0.0, h)
    # The plane across y has the axes x, z in the other sense.
    turn = len(single) == 1 and single[0] == 1
    return x.astype(phi.dtype), np.ascontiguousarray(faces[:, ::-1] if turn else faces)


def _flying_edges(values: Array) -> tuple[Array, Array]:
    """Points (n, 3) in VTK's axes, in index units, and faces (m, 3) or (m, 2) of the level 0."""
    from vtkmodules.util.numpy_support import numpy_to_vtk, vtk_to_numpy
    from vtkmodules.vtkCommonDataModel import vtkImageData
    from vtkmodules.vtkFiltersCore import vtkFlyingEdges2D, vtkFlyingEdges3D

    flat = 1 in values.shape
    image = vtkImageData()
    image.SetDimensions(*values.shape[::-1])
    scalars = numpy_to_vtk(np.ascontiguousarray(values).ravel())
    image.GetPointData().SetScalars(scalars)
    edges = vtkFlyingEdges2D() if flat else vtkFlyingEdges3D()
    edges.SetInputData(image)
    edges.SetValue(0, 0.0)
    edges.ComputeScalarsOff()
    if not flat:
        edges.ComputeNormalsOff()
        edges.ComputeGradientsOff()
    edges.Update()
    mesh = edges.GetOutput()
    corners = 2 if flat else 3
    if not mesh.GetNumberOfPoints():
        return np.empty((0, 3)), np.empty((0, corners), np.int64)
    cells = mesh.GetLines() if flat else mesh.GetPolys()
    faces = vtk_to_numpy(cells.GetConnectivityArray()).reshape(-1, corners)
    return vtk_to_numpy(mesh.GetPoints().GetData()).copy(), faces.astype(np.int64)
