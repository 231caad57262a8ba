"""Meshes of a run's stored surfaces, for exports."""

from __future__ import annotations

from pathlib import Path

from ecs_fluid.component import Array
from ecs_fluid.io.fields import field_ticks
from ecs_fluid.runs.surface_frames import NAME, stored_surface


def surface_ticks(folder: Path) -> set[int]:
    """Ticks at which the run with the fields in ``folder`` stored a surface."""
    return set(field_ticks(folder, NAME))


def stored_mesh(folder: Path, tick: int) -> tuple[Array, Array]:
    """Vertices (n, 3) m and triangles (m, 3), outward, of the surface stored at ``tick``.

    Both are empty where there is no surface, and in a world that is a plane, whose surfaces are lines.
    """
    from ecs_fluid.systems.surface.contour import contour

    field = stored_surface(folder, tick)
    x, faces = contour(field.arrays["phi"], field.origin, field.spacing)
    return (x, faces) if faces.shape[1] == 3 else (x[:0], faces[:0].repeat(2, axis=1)[:, :3])
