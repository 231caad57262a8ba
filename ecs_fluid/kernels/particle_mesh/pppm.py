"""Velocity and gradient by particle-particle particle-mesh, in O(n + m + points of the mesh).

The smooth part of all velocities (``splitting``) is found on a mesh (``splines``, ``convolution``), the rest
in pairs nearer than a reach (``near_pairs``). Gradients need a longer reach than velocities alone, which get
a smooth part of their own on the same mesh. The reaches follow from the tolerance. The mesh is chosen for the
least expected time: wider cells mean fewer points, but more near pairs.

Source: Hockney and Eastwood, Computer Simulation Using Particles, chapter 8; how it was measured:
docs/notes/velocity.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ecs_fluid.kernels.biot_savart.pairwise import sort_sources
from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.wide_vectors import LANES
from ecs_fluid.kernels.grids.partition import partition
from ecs_fluid.kernels.particle_mesh.bricks import brick_gradient, brick_velocity
from ecs_fluid.kernels.particle_mesh.convolution import convolve, half_sizes, kernel_transforms, waves_of
from ecs_fluid.kernels.particle_mesh.mesh_errors import REACHES, needed_reach
from ecs_fluid.kernels.particle_mesh.splines import ROW, scatter
from ecs_fluid.kernels.particle_mesh.splitting import has_edge, share_within, smooth_part

GOAL = 0.75
"""Fraction of the tolerance for which the mesh is chosen."""

RIM = 3
"""Points of the mesh beyond the box of vortons and targets, for the splines."""

STEPS_IN_TWO = 4
"""Spacings are powers of two with this many steps between, so that motion and growth seldom change the
mesh."""

LEAST_CELLS = 8
"""Least number of cells along the longest axis."""

MOST_POINTS = 2**22
"""Most points of a mesh: its fields take some 150 bytes per point."""

POINT_COST, FIELD_COST = 11.0, 28.0
"""Approximate cost per point of the mesh of strengths and of a smooth velocity, ns of one thread: constants,
so that every machine chooses the same mesh."""

VORTON_COST, READ_COST = 100.0, 130.0
"""Cost per vorton, including the sample, and of reading velocity and gradient at a target, ns."""

BRICK_COST, RUN_COST, LISTED_COST, PAIR_COST = 100.0, 15.0, 0.4, 0.5
"""Cost of a list of near sources, of a run in it, of a source examined for it, and of a pair with gradient,
ns."""

VELOCITY_ONLY_COST = 0.45
"""Cost of reading, and of a pair, without gradient, over the cost with gradient."""

SAMPLE, PART_OF_ALL = 2048, 64
"""Vortons are sampled to count pairs: at least this many, and at least one in PART_OF_ALL."""

UNLIKE, PARTS = 2.0, 6
"""Blobs whose share of strength within the reach differs by more than UNLIKE tolerances are scattered to
separate fields, up to PARTS of them."""

COUNTING_CUBE = 2.0
"""Edge, in cells, of the cubes in which vortons are counted."""

ROUNDING = 0.1
"""Change of that share by a rounded core radius, in tolerances: larger, since it is the same for all
vortons."""

BRICK = (2, 2, 2)
"""Edges, in cells, of the bricks whose targets share one list of sources."""

SOURCE_CELL = (2, 2, 1)
"""Edges, in cells of the mesh, of the cells by which sources are sorted: lists are runs of these along z."""

LOOKED_AT, LISTED, LISTED_ALONE = 4.0, 1.3, 1.8
"""Approximate edges, in cells, of the cubes by which work is estimated: sources within the reach of the first
are examined for a list; those within the reach of the others form pairs, with and without gradient."""


class Goal(NamedTuple):
    """The largest errors allowed at some targets."""

    velocity: float
    """RMS error of the velocity, m/s"""
    gradient: float = np.inf
    """RMS error of the gradient, 1/s; infinite if only velocities are needed"""

    @property
    def velocity_only(self) -> bool:
        """Whether only velocities are needed."""
        return self.gradient == np.inf


class Mesh(NamedTuple):
    """A mesh of points, and numbers that describe the vortons by which its cost and reach are estimated."""

    origin: Array
    """(3,) m"""
    spacing: float
    """m"""
    points: tuple[int, int, int]
    half: tuple[int, int, int]
    """half the periods of the padded mesh"""
    vortons: int
    density: float
    """mean number density of other vortons around one, 1/m^3"""
    strength: float
    """mean sum of |alpha|^2 per volume around a vorton, m^3/s^2"""
    thinnest: float
    widest: float
    """m, core radii"""

    def reach(self, code: Code, goal: Goal) -> float | None:
        """Least reach of the pairs, m, that keeps the goal; None if there is none."""
        h = self.spacing
        velocity = GOAL * goal.velocity * np.sqrt(h / self.strength)
        cells = needed_reach(
            code, self.thinnest / h, velocity, GOAL * goal.gradient * np.sqrt(h**3 / self.strength)
        )
        if has_edge(code) and cells is not None:
            cells = next((reach for reach in REACHES if reach >= cells and reach * h > self.widest), None)
        return None if cells is None else cells * h

    def field_cost(self) -> float:
        """Estimated time of a smooth velocity on the mesh, ns."""
        return FIELD_COST * _volume(self.half)

    def pair_cost(self, count: int, goal: Goal, reach: float) -> float:
        """Estimated time of the near pairs of `count` targets, ns."""
        h, c = self.spacing, reach / self.spacing
        there = self.density * h**3

        def around(edge: float) -> float:
            near = edge**3 + 6.0 * edge**2 * c + np.pi * (3.0 * edge * c**2 + 4.0 / 3.0 * c**3)
            return float(there * near)

        bricks = count / (1.0 + math.prod(BRICK) * there * count / self.vortons)
        each = READ_COST + PAIR_COST * around(LISTED_ALONE if goal.velocity_only else LISTED)
        runs = np.pi * (0.5 * c + 1.0) ** 2  # in cells of 2 x 2 x 1
        lists = bricks * (BRICK_COST + RUN_COST * runs + LISTED_COST * around(LOOKED_AT))
        return float(lists + count * each * (VELOCITY_ONLY_COST if goal.velocity_only else 1.0))

    def cost(self, code: Code, wanted: Sequence[tuple[int, Goal]]) -> float:
        """Estimated time of sums at these numbers of targets with these goals, ns; infinite if no reach
        serves."""
        cost, there = POINT_COST * _volume(self.half) + VORTON_COST * self.vortons, list[float]()
        for count, goal in wanted:
            needed = self.reach(code, goal)
            if needed is None:
                return np.inf
            reach = self.best_reach(count, goal, needed, there)
            cost += self.pair_cost(count, goal, reach)
            if reach not in there:
                cost += self.field_cost()
                there.append(reach)
        return cost

    def best_reach(self, count: int, goal: Goal, needed: float, there: Sequence[float]) -> float:
        """The cheapest reach: one of those that are ``there`` and long enough, or the `needed` one, m."""
        able = [reach for reach in there if reach >= needed]
        if not able or self.pair_cost(count, goal, min(able)) > self.field_cost() + self.pair_cost(
            count, goal, needed
        ):
            return needed
        return min(able)


class Plan(NamedTuple):
    """Data that all sums over the same vortons share."""

    code: Code
    mesh: Mesh
    least: float
    """m, the shortest reach for which the vortons of a part are alike"""
    waves: list[Array]
    """the result of `waves_of` for each part; empty once they are used up"""
    radii: list[float]
    """m, of each part"""
    start: Array
    """(parts, cells + 1): the rows of each part by cells of the mesh"""
    rows: Array
    """(8, n + LANES): the vortons part by part, as in a pack, and unused columns at the end"""


class SmoothField(NamedTuple):
    """Additional data for sums with one reach."""

    reach: float
    """m"""
    field: Array
    """smooth velocity (px, py, pz, 3) m/s as one row, and unused numbers behind it"""
    splits: Array
    """(parts, 2 + TERMS): 1/R^2 and 8 a_j of each part"""


class MeshRequest(NamedTuple):
    """The requirements on a mesh."""

    low: Array
    high: Array
    """(3,) m, corners of the box of vortons and targets"""
    first: Array
    last: Array
    """(3,) m, corners of the box of the vortons alone"""
    thinnest: float
    widest: float
    """m, core radii"""
    sums: Sequence[tuple[int, Goal]]
    """numbers of targets, and the goals there"""


def choose(code: Code, x: Array, alpha: Array, wanted: MeshRequest) -> Mesh | None:
    """The mesh that should take the least time for vortons x (3, n) m, alpha (3, n) m^3/s.

    None if every mesh would cost more than the sum over all pairs, or have too many points.
    """
    n, size = x.shape[1], wanted.high - wanted.low
    if not np.isfinite(size).all() or not size.any():
        return None
    some = np.unique(np.linspace(0, n - 1, min(n, max(SAMPLE, n // PART_OF_ALL))).astype(np.int64))
    place = (x[:, some] - wanted.low[:, None]).astype(np.float64)
    square = np.sum(alpha[:, some].astype(np.float64) ** 2, axis=0)
    best, found = float(n) * sum(count for count, _ in wanted.sums), None
    step = int(np.floor(STEPS_IN_TWO * np.log2(size.max() / LEAST_CELLS)))
    while True:
        mesh = mesh_for(wanted, n, 2.0 ** (step / STEPS_IN_TWO))
        volume = _volume(mesh.half)
        if volume > MOST_POINTS or (POINT_COST + FIELD_COST * len(wanted.sums)) * volume > best:
            return found
        density, strength = _densities(place, square, COUNTING_CUBE * mesh.spacing, n / len(some))
        if strength == 0.0:  # according to the sample there is no flow
            return None
        mesh = mesh._replace(density=density, strength=strength)
        cost = mesh.cost(code, wanted.sums)
        if cost < best:
            best, found = cost, mesh
        step -= 1


def mesh_for(
    wanted: MeshRequest, vortons: int, spacing: float, density: float = 0.0, strength: float = 0.0
) -> Mesh:
    """The mesh with cells of ``spacing`` m that covers the ``wanted`` boxes, for that many vortons."""
    points = _points(wanted, spacing)
    half = _half_sizes(wanted, points, spacing)
    origin = wanted.low - RIM * spacing
    return Mesh(origin, spacing, points, half, vortons, density, strength, wanted.thinnest, wanted.widest)


def _volume(half: tuple[int, int, int]) -> float:
    return float(np.prod(half, dtype=np.float64))


def _points(wanted: MeshRequest, spacing: float) -> tuple[int, int, int]:
    x, y, z = (int(np.ceil(side / spacing)) + 1 + 2 * RIM for side in wanted.high - wanted.low)
    return x, y, z


def _half_sizes(wanted: MeshRequest, points: tuple[int, int, int], spacing: float) -> tuple[int, int, int]:
    """Half the periods of a padded mesh for all distances from a point of the vortons' box to a mesh
    point."""
    below = (wanted.first - wanted.low) / spacing
    above = (wanted.last - wanted.low) / spacing + 2 * RIM
    x, y, z = (int(max(np.ceil(b), n - np.floor(a))) for a, b, n in zip(below, above, points, strict=True))
    return half_sizes((x, y, z))


def _densities(place: Array, square: Array, edge: float, each: float) -> tuple[float, float]:
    """Mean densities, per m^3, of other vortons and of |alpha|^2 around a vorton, counted in cubes.

    The cubes are `edge` m wide. Each of the vortons at ``place`` (3, k) m, with |alpha|^2 = ``square`` (k,),
    represents ``each`` vortons.
    """
    cube = np.floor(place / edge).astype(np.int64)
    sides = cube.max(axis=1) + 1
    cube = (cube[0] * sides[1] + cube[1]) * sides[2] + cube[2]
    counts, sums = np.bincount(cube).astype(np.float64), np.bincount(cube, square)
    k, volume = place.shape[1], edge**3
    others = each * (float((counts * counts).sum()) / k - 1.0)
    strength = each * float((counts * sums).sum() - square.sum()) / k + float(square.mean())
    return others / volume, strength / volume


def parts_of(code: Code, sigma: Array, reach: float, tolerance: float) -> list[Array] | None:
    """Rows of vortons alike enough to share a smooth part, or None if there were too many of them."""
    thinnest, widest = float(sigma.min()), float(sigma.max())
    most, least = share_within(code, np.array([thinnest, widest]), reach)
    count = max(1, int(np.ceil((most - least) / (UNLIKE * tolerance))))
    if count > PARTS:
        return None
    if count == 1:
        return [np.arange(len(sigma))]
    radii = np.linspace(thinnest, widest, 65)
    share = share_within(code, radii, reach)
    part = (share[0] - np.interp(sigma, radii, share)) * count / (share[0] - share[-1])
    part = np.minimum(part.astype(np.int64), count - 1)
    return [rows for rows in (np.flatnonzero(part == p) for p in range(count)) if len(rows)]


def _common_radius(code: Code, radius: float, reach: float, tolerance: float) -> float:
    """Core radius m of the smooth part of blobs: about their root mean square ``radius``.

    It is rounded to one of a series of radii, as far apart as `ROUNDING` allows, so that small changes do not
    require new transforms at every step.
    """
    if has_edge(code):
        return 0.0
    share = share_within(code, np.array([radius, 1.01 * radius]), reach)
    step = min(0.5, ROUNDING * tolerance * 0.01 / max(float(share[0] - share[1]), 1e-300))
    step = 2.0 ** np.floor(np.log2(step))
    return float(2.0 ** (step * np.round(np.log2(radius) / step)))


def _cells(mesh: Mesh, several: tuple[int, int, int]) -> tuple[Array, Array]:
    """Edges (3,) m and numbers (3,) of cells that are ``several`` spacings of the mesh wide."""
    return mesh.spacing * np.array(several), -(-(np.array(mesh.points) - 1) // several)


def plan(
    code: Code, mesh: Mesh, x: Array, alpha: Array, sigma: Array, parts: list[Array], least: float
) -> Plan:
    """Sort vortons x (3, n) m, alpha (3, n) m^3/s, sigma (n,) m, by ``parts``, and bring them to the mesh.

    ``least`` m is the shortest reach for which the vortons of a part are alike.
    """
    dtype = x.dtype
    edges, cells = _cells(mesh, SOURCE_CELL)
    rows = np.empty((8, len(sigma) + LANES), dtype)
    starts, waves, radii, first = [], [], [], 0
    for part in parts:
        whole = len(part) == len(sigma)
        own, radius = (x, sigma) if whole else (x[:, part], sigma[part])
        start, order = partition(np.ascontiguousarray(own.T), mesh.origin, edges, cells)
        sort_sources(code, x, alpha, sigma, order if whole else part[order], first, rows)
        starts.append(start + first)
        strengths = np.empty((*mesh.points, 3), dtype)
        scatter(rows, starts[-1], cells, mesh.origin, 1.0 / mesh.spacing, strengths)
        waves.append(waves_of(strengths, mesh.half))
        radii.append(float(np.sqrt(np.mean(radius.astype(np.float64) ** 2))))
        first += len(part)
    return Plan(code, mesh, least, waves, radii, np.stack(starts), rows)


def smooth_fields(made: Plan, wanted: Sequence[tuple[float, float]], last: bool = False) -> list[SmoothField]:
    """The smooth velocities on the mesh for one or two ``wanted`` pairs of reach (m) and tolerance.

    With ``last`` the waves of the plan are used up.
    """
    mesh, dtype, h = made.mesh, made.rows.dtype, made.mesh.spacing
    tables: list[list[Array]] = [[] for _ in made.waves]
    found = list[SmoothField]()
    for reach, tolerance in wanted:
        splits = []
        for radius, own in zip(made.radii, tables, strict=True):
            like = _common_radius(made.code, radius, reach, tolerance) / h, reach / h
            own.append(kernel_transforms(mesh.half, h, made.code, *like, dtype.name))
            splits.append(np.append(reach**-2.0, 8.0 * smooth_part(made.code, *like).factors / h**3))
        field = np.empty(3 * int(np.prod(mesh.points)) + ROW, dtype)
        field[-ROW:] = 0.0
        found.append(SmoothField(reach, field, np.stack(splits).astype(dtype)))
    fields = [one.field[:-ROW].reshape(*mesh.points, 3) for one in found]
    convolve(list(zip(made.waves, tables, strict=True)), mesh.half, fields, last)
    if last:
        made.waves.clear()
    return found


def velocity(made: Plan, rest: SmoothField, x: Array, u: Array, du: Array | None) -> None:
    """Fill u (m, 3) m/s and, unless None, du (m, 3, 3) 1/s, du[:, i, j] = du_i/dx_j, at x (m, 3) m.

    All of x has to lie in the box that the mesh was chosen for.
    """
    mesh = made.mesh
    edges, cells = _cells(mesh, SOURCE_CELL)
    bricks = partition(x, mesh.origin, *_cells(mesh, BRICK))
    given = (
        made.code, x, *bricks, mesh.origin, 1.0 / mesh.spacing, np.array(mesh.points), edges, cells,
        rest.reach, rest.field, made.start, made.rows, rest.splits, u,
    )  # fmt: skip
    if du is None:
        brick_velocity(*given, u[:, :0])
    else:
        brick_gradient(*given, du.reshape(len(x), 9))
