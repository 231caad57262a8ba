"""Particles of a frame as fields on a grid of cubic voxels; its points stand at multiples of the voxel.

Every particle is shared among the eight points around it by trilinear weights w, so sums are kept:

* density = sum w (s / h)^3, the number of tracers in the volume s^3 of one tracer of the frame of the run
  that has most: about 1 inside a cloud, whatever the voxel h [1];
* each species = sum w (s / h)^3 Y, that density times the mass fraction Y [1];
* velocity [m/s] and temperature [K] = sum w q / sum w: means; where there are no tracers, those of the fluid
  at rest, 0 and its temperature at that height;
* vorticity = sum w alpha / h^3 of the vortons [1/s], each as wide as `spread` says.

A world without tracers shows its vortons in their place. A liquid counts where there are no other tracers, or
by its name in ``only``. In a plane all particles are in one layer of points, h^3 is h^2 times the metre that
strengths and volumes belong to, and (s / h)^3 is (s / h)^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ecs_fluid.components import Species
from ecs_fluid.errors import StorageError, warn
from ecs_fluid.exports.frames import Columns, Frame, Job, flat_rows
from ecs_fluid.input_limits import GRID_POINT, check_memory, limits
from ecs_fluid.io.vtkhdf import POINTS
from ecs_fluid.runs.stored_recipe import axis_across
from ecs_fluid.strays import box_around_most

MEANS = {"Velocity.u": "velocity", "Temperature.T": "temperature"}
AMOUNTS = {column.label: name for name, column in Species.columns.items()}
UNITS = {
    "density": "1",
    **dict.fromkeys(Species.columns, "1"),
    "velocity": "m/s",
    "temperature": "K",
    "vorticity": "1/s",
}

MANY, OUTERMOST = 200, 0.5
"""Among more than MANY particles, the outermost OUTERMOST % on each side may be strays, which are not counted
where the spacing is found."""

AT_ONCE = 2**20
"""Weights that are in memory at a time; they take some 50 MB."""


@dataclass(frozen=True)
class Volume:
    """Fields of one frame: ``arrays[name]`` (nx, ny, nz) or (..., 3), float32; point (0, 0, 0) is at index
    ``first`` (3,), so at ``first * voxel`` m. ``at_rest[name]`` is what the fluid at rest has at z = 0;
    0 if not given."""

    frame: Frame
    voxel: float
    first: np.ndarray
    arrays: dict[str, np.ndarray]
    at_rest: dict[str, float] = field(default_factory=dict)


class Volumes:
    """The volumes of an export's frames, made one at a time.

    ``voxel`` is the edge h of a voxel, ``spacing`` the typical distance s of tracers, m.
    """

    def __init__(self, job: Job) -> None:
        self.frames = job.frames
        names = job.frames.particles
        self.vortons = [name for name in names if "Strength.alpha" in job.frames.columns(name)]
        tracers = [name for name in names if name not in self.vortons]
        # Beside smoke or steam a liquid, which has a surface, would be a block of smoke.
        dry = [name for name in tracers if name not in job.frames.all_liquids or name in job.frames.only]
        self.tracers = dry or tracers or self.vortons
        x = job.frames.fullest(self.tracers) if self.tracers else np.empty((0, 3))
        if not len(x):
            raise StorageError(f"{job.frames.run.path} holds no particles to make a volume of")
        self.spacing = mean_spacing(x)
        self.voxel = job.voxel or self.spacing
        across = axis_across(job.frames.run)
        self.across = None if across is None else int(np.abs(job.frames.matrix[:, across]).argmax())

    def __iter__(self) -> Iterator[Volume]:
        for frame in self.frames:
            yield self.of(frame)

    def about(self) -> dict[str, Any]:
        """What ``export.json`` says about the volumes, with the units of the fields that they have."""
        columns = {label for name in self.tracers for label in self.frames.columns(name)}
        have = {"density", *(name for label, name in (AMOUNTS | MEANS).items() if label in columns)}
        if self.vortons:
            have.add("vorticity")
        fields = {name: unit for name, unit in UNITS.items() if name in have}
        return {"voxel": self.voxel, "spacing": self.spacing, "fields": fields, "populations": {}}

    def of(self, frame: Frame) -> Volume:
        """The volume of one frame."""
        names = dict.fromkeys([*self.tracers, *self.vortons])
        particles = {name: frame.particles[name] for name in names}
        first, shape = self._grid(particles)
        if float(np.prod(shape.astype(float))) * GRID_POINT > limits().memory:
            particles = self._without_strays(frame.number, particles)
            first, shape = self._grid(particles)
            what = f"voxels of {self.voxel:g} m for frame {frame.number}, {' x '.join(map(str, shape))},"
            check_memory(GRID_POINT, float(np.prod(shape.astype(float))), what, "choose a larger voxel")
        tracers = _Tracers([particles[name] for name in self.tracers], self.voxel, first, shape)
        dimension = 3 if self.across is None else 2
        amount = (self.spacing / self.voxel) ** dimension
        # In single precision as they are made: all in double would be most of the memory.
        arrays = {"density": (amount * tracers.total(None)).astype(np.float32)}
        for label, name in AMOUNTS.items():
            if tracers.have(label):
                arrays[name] = (amount * tracers.total(label)).astype(np.float32)
        at_rest = {}
        for label, name in MEANS.items():
            if tracers.have(label):
                rest = np.zeros((1, 1, 1))
                if name == "temperature":
                    rest = self._rest(first, shape)
                    at_rest[name] = float(self._ambient(np.zeros(1))[0])
                arrays[name] = tracers.mean(label, rest).astype(np.float32)
        if self.vortons:
            total = np.zeros((*shape, 3))
            for name in self.vortons:
                total += spread(particles[name], self.voxel, first, tuple(shape), self.across)
            total /= self.voxel**dimension  # in a plane times one metre
            arrays["vorticity"] = total.astype(np.float32)
        return Volume(frame, self.voxel, first, arrays, at_rest)

    def _rest(self, first: np.ndarray, shape: np.ndarray) -> np.ndarray:
        """Temperatures of the fluid at rest at the points of a grid, by their z in the world that was run."""
        z = self.frames.matrix[:, 2]
        axis = int(np.abs(z).argmax())
        height = self.voxel * z[axis] * (first[axis] + np.arange(shape[axis]))
        return self._ambient(height).reshape([-1 if k == axis else 1 for k in range(3)])

    @cached_property
    def _ambient(self) -> Callable[[np.ndarray], np.ndarray]:
        """Temperatures of the fluid at rest by heights; kernels, which these load, are read when needed."""
        from ecs_fluid.runs.stored_recipe import temperatures_at_rest

        return temperatures_at_rest(self.frames.run)

    def _without_strays(self, number: int, particles: dict[str, Columns]) -> dict[str, Columns]:
        """The particles of frame `number` without a few far from all others, of which a warning tells."""
        places = [columns[POINTS] for columns in particles.values()]
        every = np.concatenate(places)
        box = every.min(axis=0), every.max(axis=0)
        low, high = box_around_most(*box, self.voxel, self.voxel, lambda: places) or box
        masks = [((x >= low) & (x <= high)).all(axis=1) for x in places]
        if left_out := len(every) - sum(int(rows.sum()) for rows in masks):
            warn(
                f"{left_out} of {len(every)} particles of frame {number} are too far from all others "
                f"for a grid of voxels of {self.voxel:g} m around all; its volume leaves them out"
            )
        rows_of = zip(particles.items(), masks, strict=True)
        return {name: {label: y[rows] for label, y in columns.items()} for (name, columns), rows in rows_of}

    def _grid(self, particles: dict[str, Columns]) -> tuple[np.ndarray, np.ndarray]:
        """Index (3,) of the first point and number (3,) of points of the grid that holds the particles."""
        x = np.concatenate([columns[POINTS] for columns in particles.values()])
        lo, hi = (x.min(axis=0), x.max(axis=0)) if len(x) else (np.zeros(3), np.zeros(3))
        for columns in (particles[name] for name in self.vortons):
            around = np.repeat(edges(columns, self.across)[:, None], 3, axis=1)
            if self.across is not None:
                around[:, self.across] = 0.0
            if len(around):
                lo = np.minimum(lo, (columns[POINTS] - around).min(axis=0))
                hi = np.maximum(hi, (columns[POINTS] + around).max(axis=0))
        first = np.floor(lo / self.voxel).astype(np.int64) - 1
        return first, np.floor(hi / self.voxel).astype(np.int64) + 3 - first


class _Tracers:
    """Tracers of some populations, and the grid among whose points they are shared out."""

    def __init__(
        self, populations: list[Columns], voxel: float, first: np.ndarray, shape: np.ndarray
    ) -> None:
        self.populations, self.voxel, self.first, self.shape = populations, voxel, first, tuple(shape)

    def have(self, label: str) -> bool:
        """Whether any population has the column."""
        return any(label in columns for columns in self.populations)

    def mean(self, label: str, rest: np.ndarray) -> np.ndarray:
        """Sum of w q divided by the sum of w, over populations that have the column; where both are 0, `rest`
        at the points, (nx or 1, ny or 1, nz or 1)."""
        total = self.total(label)
        weight = self.total(None, having=label)
        mean = np.empty_like(total)
        mean[...] = rest.reshape(*rest.shape, *(1,) * (total.ndim - 3))
        # Weights below rounding would divide noise by noise.
        some = weight > 1e-9
        mean[some] = total[some] / weight[some].reshape(-1, *(1,) * (total.ndim - 3))
        return mean

    def total(self, label: str | None, having: str | None = None) -> np.ndarray:
        """Sum of w q at the points of the grid, (nx, ny, nz) or (..., 3), float64; q = 1 without a label."""
        chosen = [columns for columns in self.populations if (label or having or POINTS) in columns]
        parts = [
            self._scattered(columns, np.ones(len(columns[POINTS])) if label is None else columns[label])
            for columns in chosen
        ]
        total: np.ndarray = np.sum(parts, axis=0)
        return total

    def _scattered(self, columns: Columns, values: np.ndarray) -> np.ndarray:
        place = columns[POINTS].astype(np.float64) / self.voxel - self.first
        out = scatter(place, flat_rows(values).astype(np.float64), self.shape)
        return out.reshape(*self.shape, *values.shape[1:])


def edges(vortons: Columns, across: int | None = None) -> np.ndarray:
    """Edges (n,) [m] of cubes of the vortons' volumes, in a plane of squares a metre deep; 0 without
    volumes."""
    if "Volume.volume" not in vortons:
        return np.zeros(len(vortons[POINTS]))
    volume = vortons["Volume.volume"].astype(np.float64)
    return np.cbrt(volume) if across is None else np.sqrt(volume)


def spread(
    vortons: Columns, voxel: float, first: np.ndarray, shape: tuple[int, ...], across: int | None = None
) -> np.ndarray:
    """Strengths of vortons at the points of a grid whose first one is at index `first` (3,): (*shape, 3).

    A vorton's strength is shared trilinearly among points. If the edge e of the cube of its volume is longer
    than a voxel, the strength is first spread as far as e along each axis, by the weights
    (1 - |x|/e)(1 - |y|/e)(1 - |z|/e), so that vortons on a lattice add up to an even vorticity. Strength and
    its first moment are kept. In a plane nothing is spread along the axis `across` it.
    """
    place = vortons[POINTS].astype(np.float64) / voxel - first
    alpha, edge = vortons["Strength.alpha"].astype(np.float64), edges(vortons, across) / voxel
    narrow = edge <= 1.0
    wide = np.flatnonzero(~narrow)
    out = scatter(place[narrow], alpha[narrow], shape).reshape(*shape, 3)
    doublings = np.ceil(np.log2(edge[wide]))
    for size in np.unique(doublings):  # rows of about as many points
        rows = wide[doublings == size]
        points = math.floor(2.0 * edge[rows].max()) + 3
        for some in np.array_split(rows, math.ceil(3 * points * len(rows) / AT_ONCE)):
            _add_spread(place[some], edge[some], alpha[some], points, across, out)
    return out


def _add_spread(
    place: np.ndarray, edge: np.ndarray, alpha: np.ndarray, points: int, across: int | None, out: np.ndarray
) -> None:
    """Add values (n, 3) at places (n, 3), spread over edges (n,), in cells, to `points` points per axis."""
    start = np.ceil(place - edge[:, None]).astype(np.int64) - 1
    away = start[:, :, None] + np.arange(points) - place[:, :, None]
    weight = _tent(away, edge[:, None, None])
    if across is not None:
        weight[:, across] = np.maximum(1.0 - np.abs(away[:, across]), 0.0)
    first, last = np.maximum(start, 0), np.minimum(start + points, out.shape[:3])  # beyond, the weight is 0
    for row, a, b in zip(range(len(place)), first.tolist(), last.tolist(), strict=True):
        x, y, z = (weight[row, k, a[k] - start[row, k] : b[k] - start[row, k]] for k in range(3))
        shares = np.multiply.outer(np.multiply.outer(x, y), np.multiply.outer(z, alpha[row]))
        out[a[0] : b[0], a[1] : b[1], a[2] : b[2]] += shares


def _tent(t: np.ndarray, edge: np.ndarray) -> np.ndarray:
    """Integral over s of (1 - |s|/e)/e, |s| < e, times 1 - |t - s|, |t - s| < 1; e is the edge.

    A hat is the second difference of |t|/2, and |t|/2 folded with itself is |t|^3/12.
    """
    cubes = [
        a * b * np.abs(t + shift + side * edge) ** 3
        for shift, a in ((-1, 1), (0, -2), (1, 1))
        for side, b in ((-1, 1), (0, -2), (1, 1))
    ]
    tent: np.ndarray = np.where(np.abs(t) < edge + 1.0, np.sum(cubes, axis=0) / (12.0 * edge**2), 0.0)
    return tent


def scatter(place: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Values (n, k) at places (n, 3), in cells, shared trilinearly among the 8 points around: (points, k).

    `shape` (3,) are the numbers of points of the grid, and points their product.
    """
    cell = np.floor(place).astype(np.int64)
    part = place - cell
    out = np.zeros((*shape, values.shape[1]))
    if len(place):
        first, last = cell.min(axis=0), cell.max(axis=0) + 2
        box = tuple((last - first).tolist())
        inner = np.zeros((values.shape[1], math.prod(box)))
        for corner in np.ndindex(2, 2, 2):
            weight = np.prod(np.where(corner, part, 1.0 - part), axis=1)
            at = np.ravel_multi_index(tuple((cell - first + corner).T), box)
            for k in range(len(inner)):
                inner[k] += np.bincount(at, weight * values[:, k], inner[k].size)
        out[tuple(map(slice, first, last))] = np.moveaxis(inner.reshape(-1, *box), 0, -1)
    return out.reshape(-1, values.shape[1])


def mean_spacing(x: np.ndarray) -> float:
    """Typical distance of neighbours [m]: cube root of the occupied volume per particle.

    The volume is counted in cells of two spacings, found by iteration from the box that holds `x` (n, 3) m;
    if there are more than MANY, without the outermost `OUTERMOST` % on each side. In flat clouds it is an
    area, in lines a length. The result is 0.1 for a single point.
    """
    stray = OUTERMOST if len(x) > MANY else 0.0
    lo, hi = np.percentile(x, [stray, 100.0 - stray], axis=0).astype(np.float64)
    axes = np.flatnonzero(hi - lo > 1e-3 * (hi - lo).max())
    if not len(axes) or len(x) < 2:
        return 0.1
    spacing = float(np.prod((hi - lo)[axes]) / len(x)) ** (1.0 / len(axes))
    for _ in range(4):
        occupied = distinct(np.floor((x[:, axes] - lo[axes]) / (2.0 * spacing)).astype(np.int64))
        spacing = 2.0 * spacing * (occupied / len(x)) ** (1.0 / len(axes))
    return float(spacing)


def distinct(cells: np.ndarray) -> int:
    """Number of distinct rows of whole numbers (n, d); faster than np.unique of rows."""
    low = cells.min(axis=0)
    key = np.zeros(len(cells), dtype=np.int64)
    for column, span in zip((cells - low).T, cells.max(axis=0) - low + 1, strict=True):
        key = key * span + column
    return len(np.unique(key))
