"""Bodies of a page: shapes once, and twelve numbers per body and frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ecs_fluid.exports.bodies import Mesh, Placed
from ecs_fluid.exports.frames import Frame
from ecs_fluid.exports.surfaces import Surfaces


class Solids:
    """Shapes so far, and rows of frames that refer to them; `colours` returns (n, 3) for n bodies."""

    def __init__(
        self, surfaces: Surfaces, names: Sequence[str], colours: Callable[[Sequence[Placed]], np.ndarray]
    ) -> None:
        self._surfaces, self._names, self._colours = surfaces, names, colours
        self._known: dict[int, int] = {}
        self.shapes: list[dict[str, Any]] = []

    def rows(self, frame: Frame) -> tuple[list[int], bytes]:
        """Bodies per population, and of each: position m, quaternion (w, x, y, z), size m, shape, colour (3).

        Shape 0 is the ball of radius 1, k and -k are polytope k as a solid and as a container.
        """
        rows: dict[str, list[list[float]]] = {name: [] for name in self._names}
        bodies = list(self._surfaces.placed(frame.bodies))
        for body, colour in zip(bodies, self._colours(bodies), strict=True):
            shape = 0 if body.ball else self._number(body.mesh) * (-1 if body.container else 1)
            rows[body.population].append([*body.x, *body.q, body.scale, shape, *colour])
        flat = [number for name in self._names for row in rows[name] for number in row]
        return [len(rows[name]) for name in self._names], np.array(flat, dtype="<f4").tobytes()

    def _number(self, mesh: Mesh) -> int:
        if id(mesh) not in self._known:
            self.shapes.append(
                {
                    "vertices": mesh.vertices.ravel().tolist(),
                    "triangles": mesh.triangles.ravel().tolist(),
                    "edges": mesh.edges.ravel().tolist(),
                }
            )
            self._known[id(mesh)] = len(self.shapes)
        return self._known[id(mesh)]
