"""Velocity functions as PyVista objects: slices and streamlines.

A velocity function takes points (m, 3) in m and returns velocities (m, 3) in m/s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyvista as pv
from numpy.typing import ArrayLike, NDArray

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.columns import AXES, unknown_name

Points = NDArray[np.float64]
Velocity = Callable[[NDArray], NDArray]
Within = Callable[[NDArray], NDArray[np.bool_]]
Bounds = tuple[ArrayLike, ArrayLike]


def _box(bounds: Bounds) -> tuple[Points, Points]:
    """The corners lo and hi (3,) m, checked."""
    values = np.asarray(bounds, dtype=np.float64)
    if values.shape != (2, 3) or not np.isfinite(values).all() or not (values[1] >= values[0]).all():
        raise FluidError(f"bounds {bounds!r} are not a box: give (lo, hi) of three numbers each")
    if values[0].tolist() == values[1].tolist():
        raise FluidError(f"bounds {bounds!r} are a point; a box with an extent is needed")
    return values[0], values[1]


def evaluate(velocity: Velocity, points: Points) -> Points:
    """`velocity` at points (m, 3), checked for shape and for finite numbers."""
    u = np.asarray(velocity(points), dtype=np.float64)
    if u.shape != points.shape:
        raise FluidError(f"the velocity function returned shape {u.shape} for points of shape {points.shape}")
    if not np.isfinite(u).all():
        raise FluidError("the velocity function returned a number that is not finite")
    return u


def velocity_slice(
    velocity: Velocity,
    bounds: Bounds,
    normal: str = "y",
    origin: Sequence[float] | None = None,
    resolution: int = 200,
) -> pv.StructuredGrid:
    """Velocity on the plane through `origin` (m; the box's centre if None) across `normal`, within the box.

    `normal` is x, y or z; `resolution` points go along the longer side. Point data: `u` (m/s), `speed` (m/s),
    `vorticity_normal` = n . curl u (1/s), by second-order differences within the plane: with the axes a, b, n
    right-handed it is du_b/da - du_a/db.
    """
    plane, (a, b), (s, t) = _plane(bounds, normal, origin, resolution)
    points = np.asarray(plane.points, dtype=np.float64)
    u = evaluate(velocity, points).reshape(len(t), len(s), 3)
    du_b = np.gradient(u @ b, s, axis=1, edge_order=2)
    du_a = np.gradient(u @ a, t, axis=0, edge_order=2)
    plane.point_data["u"] = u.reshape(-1, 3)
    plane.point_data["speed"] = np.linalg.norm(u, axis=2).ravel()
    plane.point_data["vorticity_normal"] = (du_b - du_a).ravel()
    plane.set_active_scalars("speed")
    return plane


def field_slice(
    values: Callable[[NDArray], NDArray],
    name: str,
    bounds: Bounds,
    normal: str = "y",
    origin: Sequence[float] | None = None,
    resolution: int = 200,
) -> pv.StructuredGrid:
    """Any field on such a plane: `values` of points (m, 3) m are its point data (m,) of that `name`."""
    plane, _, _ = _plane(bounds, normal, origin, resolution)
    plane.point_data[name] = np.asarray(values(np.asarray(plane.points, np.float64)), np.float64)
    plane.set_active_scalars(name)
    return plane


def _plane(
    bounds: Bounds, normal: str, origin: Sequence[float] | None, resolution: int
) -> tuple[pv.StructuredGrid, tuple[Points, Points], tuple[Points, Points]]:
    """A plane of points, its axes, and the places (m) along them from its middle."""
    lo, hi = _box(bounds)
    if normal not in AXES:
        raise unknown_name("slice normal", normal, AXES)
    n, a, b = np.roll(np.eye(3), -AXES[normal], axis=0)
    centre = 0.5 * (lo + hi)
    middle = centre if origin is None else np.asarray(origin, dtype=np.float64)
    # The plane keeps the box's extent along a and b; only its height along n comes from the origin.
    middle = centre + ((middle - centre) @ n) * n
    half = 0.5 * (hi - lo)
    reach = np.array([np.abs(a) @ half, np.abs(b) @ half])
    if not (reach > 0.0).all():
        raise FluidError(
            f"bounds {bounds!r} have no area in a slice with normal {normal!r}; use another normal"
        )
    counts = np.maximum(np.rint(reach / reach.max() * (resolution - 1)).astype(int) + 1, 3)
    s, t = np.linspace(-reach[0], reach[0], counts[0]), np.linspace(-reach[1], reach[1], counts[1])
    points = middle + s[None, :, None] * a + t[:, None, None] * b
    plane = pv.StructuredGrid()
    plane.points = points.reshape(-1, 3)
    plane.dimensions = (int(counts[0]), int(counts[1]), 1)
    return plane, (a, b), (s, t)


def streamlines(
    velocity: Velocity,
    bounds: Bounds,
    seeds: int | ArrayLike = 60,
    step: float | None = None,
    longest: float | None = None,
    within: Within | None = None,
) -> pv.PolyData:
    """Lines that follow the velocity at this instant, from `seeds` both ways: dx/ds = u / |u|.

    `seeds` are points (m, 3) or how many to choose where the flow is lively. All lines advance together by
    classical fourth-order Runge-Kutta in steps of arc length (`step` m; 1/200 of the box's diagonal if None),
    calling the function itself, not a grid of it. A line ends at the box, where the fluid is at rest, where
    it closes upon its seed, after `longest` m (two diagonals if None), and where `within`, a function of
    points (m, 3) m, is False, outside of the fluid. Point data: `u`, `speed` (m/s).
    """
    lo, hi = _box(bounds)
    diagonal = float(np.linalg.norm(hi - lo))
    h = diagonal / 200.0 if step is None else float(step)
    count = int((2.0 * diagonal if longest is None else longest) / h)
    if isinstance(seeds, int | np.integer):
        start = seed_points(velocity, lo, hi, int(seeds), within)
    else:
        start = np.atleast_2d(np.asarray(seeds, dtype=np.float64))
    if start.ndim != 2 or start.shape[1] != 3 or not np.isfinite(start).all():
        raise FluidError(f"streamline seeds of shape {np.shape(seeds)} are not points of three numbers")
    if not h > 0.0 or count < 1:
        raise FluidError(f"streamlines cannot have steps of {h} m and a length of {longest} m")
    speed = np.linalg.norm(evaluate(velocity, start), axis=1)
    still = 1e-6 * float(speed.max(initial=0.0))

    # Both ways at once: the flow at few points takes as long as at twice as many.
    both, sign = np.concatenate((start, start)), np.repeat((1.0, -1.0), len(start))
    paths, closed = _trace(velocity, both, sign, lo, hi, h, count, still, within)
    lines = [
        path if whole else np.concatenate((back[:0:-1], path))
        for path, back, whole in zip(
            paths[: len(start)], paths[len(start) :], closed[: len(start)], strict=True
        )
    ]
    lines = [line for line in lines if len(line) > 1]
    if not lines:
        return pv.PolyData()
    sizes = np.array([len(line) for line in lines])
    points = np.concatenate(lines)
    first = np.cumsum(sizes) - sizes
    cells = np.concatenate([np.r_[size, at + np.arange(size)] for size, at in zip(sizes, first, strict=True)])
    drawn = pv.PolyData(points, lines=cells)
    u = evaluate(velocity, points)
    drawn.point_data["u"] = u
    drawn.point_data["speed"] = np.linalg.norm(u, axis=1)
    drawn.set_active_scalars("speed")
    return drawn


def _trace(
    velocity: Velocity,
    start: Points,
    sign: Points,
    lo: Points,
    hi: Points,
    h: float,
    count: int,
    still: float,
    within: Within | None,
) -> tuple[list[Points], NDArray[np.bool_]]:
    """Paths from `start`, one per row, and which of them closed upon their seed."""

    def along(points: Points, sense: Points) -> tuple[Points, NDArray[np.bool_]]:
        u = evaluate(velocity, points)
        speed = np.linalg.norm(u, axis=1)
        moving = speed > still
        return sense[:, None] * u / np.where(moving, speed, 1.0)[:, None], moving

    track = np.full((len(start), count + 1, 3), np.nan)
    track[:, 0] = start
    length = np.ones(len(start), dtype=np.int64)
    closed = np.zeros(len(start), dtype=bool)

    def fluid(points: Points) -> NDArray[np.bool_]:
        found = np.asarray(((points >= lo) & (points <= hi)).all(axis=1))
        return found if within is None else np.logical_and(found, within(points))

    alive = np.flatnonzero(fluid(start))
    for k in range(count):
        if not len(alive):
            break
        x, way = track[alive, k], sign[alive]
        k1, moving = along(x, way)
        k2, _ = along(x + 0.5 * h * k1, way)
        k3, _ = along(x + 0.5 * h * k2, way)
        k4, _ = along(x + h * k3, way)
        new = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        inside = fluid(new) & moving
        alive, new, k1 = alive[inside], new[inside], k1[inside]
        # Closed: the seed lies within this step, ahead of its start, and the line had left it before.
        to_seed = start[alive] - track[alive, k]
        reached = (
            (np.linalg.norm(to_seed, axis=1) <= h) & (np.einsum("ij,ij->i", to_seed, k1) >= 0.0) & (k > 3)
        )
        new[reached] = start[alive[reached]]
        track[alive, k + 1] = new
        length[alive] += 1
        closed[alive[reached]] = True
        alive = alive[~reached]
    return [track[i, : length[i]] for i in range(len(start))], closed


def seed_points(
    velocity: Velocity, lo: Points, hi: Points, count: int, within: Within | None = None
) -> Points:
    """`count` points spread evenly over the livelier half of the box (Halton's sequence, so always the same).

    That is where the flow is fast, beside its median, which may be a wind. Fewer where little of the box is
    `within` the fluid.
    """
    from scipy.stats import qmc

    more = 4 if within is None else 64
    candidates = lo + qmc.Halton(3, scramble=False).random(more * count + 1)[1:] * (hi - lo)
    if within is not None:
        candidates = candidates[within(candidates)][: 4 * count]
    if not len(candidates):
        return candidates
    u = evaluate(velocity, candidates)
    speed = np.linalg.norm(u - np.median(u, axis=0), axis=1)
    fast = np.sort(np.argsort(-speed, kind="stable")[: 2 * count])
    return candidates[fast[::2]]
