"""Pressure of a liquid that is solved for, so that steps may be longer than sound takes for a reach.

A step of length t gives the particles the velocities u' = u* - t M^-1 J^T P, u* being those with gravity and
friction alone, J the derivatives of the compressions nu by places, and P = V p [J]. Pressure is that of the
compression which these velocities lead to, by the stiffness of Tait's law at rest, and never below 0:

    P_i = max(0, 7 B V_i (nu_i + t (J u')_i - 1)).

The forces are those of `kernels.sph.forces`, walls and images too, so momentum is kept to rounding however
well P is known. It is found by Chebyshev's iteration, preconditioned by the diagonal, from the P of the step
before; eigenvalues lie between those of no motion and of the shortest waves of the lattice. Source: Bender
and Koschier, Symp. Comput. Animat. 2015 (a pressure that makes both density and its rate right); Ihmsen et
al., IEEE Trans. Vis. Comput. Graph. 20 (2014) (the rate from neighbours of neighbours, in two sums); Golub
and Varga, Numer. Math. 3 (1961) (the iteration). Derivation: docs/notes/liquids.md.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.collision.swept_bodies import Obstacles
from ecs_fluid.kernels.compiled import CHUNKS, FAST, Array
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.triples import cross_of, dot, minus, plus, row_of
from ecs_fluid.kernels.compiled.vectors import LANES
from ecs_fluid.kernels.sph.forces import DIFFUSION, lattice_weight
from ecs_fluid.kernels.sph.images import image_of
from ecs_fluid.kernels.sph.pairs import Lists, closing, pushed, uneven
from ecs_fluid.kernels.sph.step import Around, Evaluation, LiquidLaw, around, creep, reactions, sound, touched

MOST_ROUNDS = 30

FEWEST_ROUNDS = 2

SAFE = 2.0
"""Largest eigenvalue over that of a lattice: particles next to a wall move against their own images."""

SMOOTH = 25.0
"""Largest eigenvalue over the least that is reduced in the first rounds: the P of the step before is right
for what is smoother."""

DIFFUSED = 0.06
"""C c t / R at most, of the excess, as in the explicit liquid; at 0.1 pressure differs every other step."""


class Solved(NamedTuple):
    """Forces at one moment, P / V [Pa] (n,), the rounds it took, and the mean error of the compression."""

    found: Evaluation
    pressure: Array
    rounds: int
    error: float


@lru_cache
def steepest(support: float) -> float:
    """Largest eigenvalue of J J^T over its diagonal, of a lattice: max |sum g sin(k . r)|^2 / sum |g|^2."""
    k = np.arange(-np.ceil(support), np.ceil(support) + 1)
    r = np.stack(np.meshgrid(k, k, k, indexing="ij"), axis=-1).reshape(-1, 3)
    g = np.maximum(1 - np.linalg.norm(r, axis=1) / support, 0.0)[:, None] ** 3 * r
    most = 0.0
    for way in ((1, 0, 0), (1, 1, 0), (1, 1, 1)):
        along = r @ (np.array(way) / np.linalg.norm(way))
        waves = np.sin(np.linspace(0.05, np.pi, 200)[:, None] * along) @ g
        most = max(most, float((waves**2).sum(axis=1).max()))
    return most / float((g**2).sum())


@parallel(fastmath=FAST, error_model="numpy")
def _begin(
    chunk: int,
    order: Array, real: int, sums: Array, inverse: Array, v: Array, pull: Array, size: Array, added: Array,
    wall: Array, pressure: Array, weight: float, scale: float, drag: float, step: float, volume: float,
    nu: Array, base: Array, rubbed: Array, diagonal: Array, own: Array,
) -> None:  # fmt: skip
    """nu, u*, friction, diagonal and the first P of every particle, sorted."""
    n = len(order)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        i = order[t]
        if i >= real:
            continue
        nu[t] = size[i] * weight * sums[0, t] + added[i]
        own[t] = pressure[i] * size[i] * volume
        s, own_part = scale * size[i], nu.dtype.type(0)
        for k in range(3):
            own_part += (s * sums[5 + k, t] - wall[i, k]) ** 2
        diagonal[t] = step * step * (s * s * sums[8, t] + own_part * inverse[t])
        for k in range(3):
            rubbed[k, t] = -drag * sums[1 + k, t]
            base[k, t] = v[k, t] + step * (rubbed[k, t] * inverse[t] + pull[i, k])


@parallel()
def _loads(
    chunk: int, order: Array, real: int, place: Array, owner: Array, size: Array, own: Array, load: Array
) -> None:
    """Loads s P, sorted, of particles and of their images."""
    n = len(order)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        i = order[t]
        i = i if i < real else owner[i - real]
        load[t] = size[i] * own[place[i]]


@parallel(fastmath=FAST, error_model="numpy")
def _thrust(
    chunk: int,
    order: Array, real: int, rows: Array, slope: Array, first: Array, last: Array, load: Array, own: Array,
    inverse: Array, wall: Array, base: Array, scale: float, step: float, force: Array, v: Array,
) -> None:  # fmt: skip
    """The ``force`` (3, n) of pressure of all pairs, and the velocities with it and walls."""
    n = len(order)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        i = order[t]
        if i >= real:
            continue
        fx, fy, fz = pushed(slope, rows, first[t], last[t], load, load[t])
        force[0, t], force[1, t], force[2, t] = scale * fx, scale * fy, scale * fz
        for k in range(3):
            v[k, t] = base[k, t] + step * inverse[t] * (force[k, t] - own[t] * wall[i, k])


@parallel()
def _reflected(
    chunk: int, planes: Array, owner: Array, along: Array, place: Array, x: Array, v: Array
) -> None:
    """Velocities ``v`` (3, n + m) of the m images, sorted, from those of the particles."""
    m = len(owner)
    for g in range(chunk * m // CHUNKS, (chunk + 1) * m // CHUNKS):
        i = owner[g]
        t, at = place[i], place[len(x) + g]
        _, u = image_of(planes, along, g, row_of(x, i), (float(v[0, t]), float(v[1, t]), float(v[2, t])))
        v[0, at], v[1, at], v[2, at] = u[0], u[1], u[2]


@parallel(fastmath=FAST, error_model="numpy")
def _relaxed(
    chunk: int,
    order: Array, real: int, rows: Array, slope: Array, first: Array, last: Array, v: Array, size: Array,
    wall: Array, along: Array, nu: Array, diagonal: Array, soft: float, scale: float, step: float,
    relax: float, ahead: float, own: Array, former: Array, errors: Array,
) -> None:  # fmt: skip
    """One round: P of every particle, sorted, and in ``errors`` (CHUNKS, 2) the sum of the errors of the
    compression and the number of particles under pressure."""
    n = len(order)
    total, wet, zero = 0.0, 0.0, own.dtype.type(0)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        i = order[t]
        if i >= real:
            continue
        rate = -scale * size[i] * closing(slope, rows, first[t], last[t], v, v[0, t], v[1, t], v[2, t])
        rate += wall[i, 0] * v[0, t] + wall[i, 1] * v[1, t] + wall[i, 2] * v[2, t] - along[i]
        give = soft / size[i]
        error = nu[t] + step * rate - 1 - give * own[t]
        if own[t] > 0 or error > 0:
            total += abs(error)
            wet += 1.0
        found = own[t] + relax * error / (diagonal[t] + give)
        found = former[t] + ahead * (found - former[t])
        former[t], own[t] = own[t], found if found > zero else zero
    errors[chunk, 0], errors[chunk, 1] = total, wet


@parallel(fastmath=FAST, error_model="numpy")
def _flow(
    chunk: int,
    order: Array, real: int, rows: Array, slope: Array, first: Array, last: Array, push: Array, mass: Array,
    gravity: Array, lifted: float, flow: Array,
) -> None:  # fmt: skip
    """``flow`` (n,) of rows: what ``uneven`` sums for particles under pressure, else 0."""
    n = len(order)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        if order[t] < real:
            flow[order[t]] = 0
            if push[t] > 0:
                flow[order[t]] = uneven(
                    slope, rows, first[t], last[t], push, push[t], mass, mass[t], gravity[0], gravity[1],
                    gravity[2], lifted,
                )  # fmt: skip


@parallel()
def _sided(
    chunk: int, x: Array, body: Array, slope: Array, bodies: Obstacles, wall: Array, along: Array
) -> None:
    """Slopes of all bodies ``wall`` (n, 3) 1/m, and ``along`` (n,) 1/s: what their own motion takes from the
    rate of the compression."""
    n, centre = len(x), bodies.x1
    speed, spin = bodies.v, bodies.angular_velocity
    for row in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        for s in range(body.shape[1]):
            i = body[row, s]
            if i < 0:
                break
            steep = (float(slope[row, s, 0]), float(slope[row, s, 1]), float(slope[row, s, 2]))
            moving = cross_of(row_of(spin, i), minus(row_of(x, row), row_of(centre, i)))
            along[row] += dot(plus(row_of(speed, i), 1.0, moving), steep)
            for k in range(3):
                wall[row, k] += steep[k]


def solve(
    law: LiquidLaw, x: Array, v: Array, mass: Array, size: Array, excess: Array, obstacles: Obstacles | None,
    hulls: Hulls | None, pull: Array, pressure: Array, step: float, tolerance: float, lists: Lists,
) -> Solved:  # fmt: skip
    """Forces in a step of ``step`` s that ends with the right compression.

    As ``evaluate`` has them; further ``pull`` (n, 3) m/s^2 of gravity, ``pressure`` (n,) Pa of the step
    before, the mean error of the compression at which the rounds end, and room for the lists.
    """
    n, kind, weight = len(x), x.dtype.type, lattice_weight(law.support)
    near = around(law, x, v, mass, obstacles, hulls)
    order, data = near.order, near.data
    many = len(order)
    inverse = np.zeros(many + LANES, x.dtype)
    inverse[:many] = 1 / data[7, :many]
    sums = lists.fill(law.support, data, near.start, near.grid, order, n, inverse)
    part, body, steep = touched(law, near, hulls, x)
    wall, along = np.zeros((n, 3), x.dtype), np.zeros(n, x.dtype)
    if near.bare is not None:
        _sided(x, body, steep, near.bare, wall, along)
    place = np.empty(many, np.int64)
    place[order] = np.arange(many)
    scale, drag = kind(20 * weight / law.reach), kind(5 * law.viscosity / law.reach)
    nu, diagonal, own, load = (np.zeros(many + LANES, x.dtype) for _ in range(4))
    base, rubbed, force = (np.zeros((3, many), x.dtype) for _ in range(3))
    listed = lists.rows, lists.slope, lists.first, lists.last
    _begin(
        order, n, sums, inverse, data[3:6], pull, size, part + excess, wall, pressure,
        kind(weight), scale, drag * scale, kind(step), kind(law.volume), nu, base, rubbed, diagonal, own,
    )  # fmt: skip
    soft = 1 / (7 * law.stiffness * law.volume)
    bare = float(diagonal[place[:n]].max())
    most = (SAFE * steepest(law.support) * bare + soft) / (bare + soft)
    least = max(soft / (bare + soft), most / SMOOTH)
    relax, spread = 2 / (most + least), (most - least) / (most + least)
    swift, former, errors = np.ascontiguousarray(data[3:6]), own.copy(), np.empty((CHUNKS, 2))
    rounds, ahead, error = 0, 1.0, np.inf
    while True:
        _loads(order, n, place, near.owner, size, own, load)
        _thrust(order, n, *listed, load, own, inverse, wall, base, scale, kind(step), force, swift)
        if rounds == MOST_ROUNDS or (rounds >= FEWEST_ROUNDS and error <= tolerance):
            break
        _reflected(near.planes, near.owner, near.along, place, x, swift)
        ahead = 1.0 if rounds == 0 else 1 / (1 - spread**2 * (0.5 if rounds == 1 else 0.25 * ahead))
        _relaxed(
            order, n, *listed, swift, size, wall, along, nu, diagonal, kind(soft), scale, kind(step),
            kind(relax), kind(ahead), own, former, errors,
        )  # fmt: skip
        rounds += 1
        total, wet = errors.sum(axis=0)
        error = total / max(wet, 1.0)
    lost = 0.5 * float(drag * scale) * float(sums[4].sum(dtype=np.float64))
    found = _finished(
        law, near, obstacles, x, mass, size, excess, step, lists, place[:n], force + rubbed, nu, own, lost,
        body, steep,
    )  # fmt: skip
    return Solved(found, own[place[:n]] / (size * kind(law.volume)), rounds, error)


def _finished(
    law: LiquidLaw, near: Around, obstacles: Obstacles | None, x: Array, mass: Array, size: Array,
    excess: Array, step: float, lists: Lists, rows: Array, pairs: Array, nu: Array, own: Array, lost: float,
    body: Array, steep: Array,
) -> Evaluation:  # fmt: skip
    """Forces, loads and the rate of the excess, from the force of ``pairs`` (3, n + m), nu and P, sorted;
    ``rows`` (n,) the sorted places of the particles."""
    n, kind, order = len(x), x.dtype.type, near.order
    compressed, solved = nu[rows], own[rows]
    push, flow = np.zeros(len(nu), x.dtype), np.empty(n, x.dtype)
    push[rows] = solved * compressed**2 / size
    _flow(
        order, n, lists.rows, lists.slope, lists.first, lists.last, push, near.data[7],
        law.reach * np.array(law.gravity, x.dtype), kind(law.around * law.volume), flow,
    )  # fmt: skip
    part = min(DIFFUSION, DIFFUSED * law.reach / (sound(law, mass, size) * step))
    rate = creep(law, flow, mass, size, excess, compressed, part)
    force = np.ascontiguousarray(pairs[:, rows].T)
    loads = reactions(near, obstacles, x, solved, body, steep, force)
    # What pressure does where the excess changes is lost, or won.
    lost -= float((solved * rate).sum(dtype=np.float64))
    return Evaluation(force, compressed, solved * size, rate, lost, loads)
