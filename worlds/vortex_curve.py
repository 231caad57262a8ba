"""Recipe of a vortex tube along a closed curve: knots, links, bent rings."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.errors import RecipeError
from ecs_fluid.input_limits import VORTON, check_memory
from ecs_fluid.recipe import Recipe
from ecs_fluid.world import World
from ecs_fluid.worlds.cells import piece_counts
from ecs_fluid.worlds.formula import CurveFormula, evaluate_along
from ecs_fluid.worlds.parameters import Amount, Direction, Point, Profile
from ecs_fluid.worlds.section import CoredVortex, layers, section
from ecs_fluid.worlds.vortons import placed, spawn_vortons

SAMPLES = 4096
"""Number of points of the curve through which its spline goes."""


class VortexCurve(Recipe, CoredVortex):
    """A vortex tube along a closed curve (x(t), y(t), z(t)), t from 0 to 2 pi, without twist.

    Sections of the core (profiles as in the vortex ring) stand across the curve, at equal distances along
    it. At the distance d from the curve (c, tangent T, curvature vector K = dT/ds) a blob of the section's
    cell k carries

        alpha = Gamma_k (1 - K . d) T ds,

    so that vorticity is along T everywhere and every section has the circulation Gamma. From one section to
    the next the blobs turn as little as possible. The helicity of a slender tube without twist is Gamma^2
    times the curve's writhe (Moffatt and Ricca, Proc. R. Soc. Lond. A 439, 1992).

    Errors: the curve is not closed, or bends more sharply than the core is wide.
    """

    kind: ClassVar[str] = "vortex_curve"
    x: CurveFormula = "cos(t)"
    """along the local x axis, m"""
    y: CurveFormula = "sin(t)"
    """along the local y axis, m"""
    z: CurveFormula = "0"
    """along the local z axis, m"""
    circulation: Amount = 1.0
    """circulation about the curve in the direction of growing t, m^2/s"""
    center: Point = (0.0, 0.0, 0.0)
    """origin of the local axes, m"""
    axis: Direction = (0.0, 0.0, 1.0)
    """direction of the local z axis, 1; of any length"""
    profile: Profile = "gaussian"
    """vorticity over the core's section"""

    def spawn(self, world: World) -> None:
        """Spawn the vortons."""
        self.made_for(world)
        count, outer, _ = layers(*self._core)
        curve = self._curve()
        fine = np.linspace(0.0, 2 * np.pi, 2 * SAMPLES + 1)
        pieces = np.linalg.norm(np.diff(curve(fine), axis=0), axis=1)
        length = np.concatenate([[0.0], np.cumsum(pieces)])
        along = int(piece_counts(length[-1], self.spacing, 8))
        check_memory(VORTON, float(along) * (2 * count - 1) ** 2, "vortons", "use a larger spacing")
        step = length[-1] / along
        t = np.interp(step * (np.arange(along) + 0.5), length, fine)
        slope, second = curve(t, 1), curve(t, 2)
        speed = np.linalg.norm(slope, axis=1, keepdims=True)
        tangent = slope / speed
        bend = (second - (second * tangent).sum(axis=1, keepdims=True) * tangent) / speed**2
        sharpest = float(np.linalg.norm(bend, axis=1).max())
        if self.profile != "thin" and sharpest * outer >= 1:
            raise RecipeError(
                f"the curve bends with a radius of {1 / sharpest:.3g} m, within the core's {outer:.3g} m; "
                "use a thinner core or a smoother curve"
            )
        core = section(*self._core)
        normal = _normals(tangent)
        d = (core.s * np.cos(core.angle))[:, None] * normal[:, None]
        d = d + (core.s * np.sin(core.angle))[:, None] * np.cross(tangent, normal)[:, None]
        share = step * (1 - (bend[:, None] * d).sum(axis=2))
        x = (curve(t)[:, None] + d).reshape(-1, 3)
        alpha = ((self.circulation * core.share * share)[..., None] * tangent[:, None]).reshape(-1, 3)
        volume = core.area * share.reshape(-1)
        spawn_vortons(world, self.name, *placed(x, alpha, self.axis, self.center), self._sigma, volume)

    def _curve(self) -> Any:
        """Periodic cubic spline of t through the curve, (3,) m."""
        from scipy.interpolate import CubicSpline

        t = np.linspace(0.0, 2 * np.pi, SAMPLES + 1)
        points = np.stack([evaluate_along(getattr(self, key), t, key) for key in "xyz"], axis=1)
        gap, size = np.abs(points[-1] - points[0]).max(), np.ptp(points, axis=0).max()
        if gap > 1e-9 * size or size == 0:
            raise RecipeError(
                f"the curve does not close: its ends are {gap:.3g} m apart; x, y and z must be the same at "
                "t = 0 and t = 2 pi, and must vary between"
            )
        points[-1] = points[0]
        return CubicSpline(t, points, bc_type="periodic")

    def lint(self) -> list[str]:
        """Sentences on overlap and width of the blobs."""
        return self.core_lint("tube")


def _normals(tangent: Array) -> Array:
    """Unit vectors (n, 3) across the tangents; each is the one before it, less its component along T."""
    normal = np.empty_like(tangent)
    last = np.eye(3)[np.abs(tangent[0]).argmin()]
    for row, along in enumerate(tangent):
        last = last - (last @ along) * along
        last = normal[row] = last / np.linalg.norm(last)
    return normal
