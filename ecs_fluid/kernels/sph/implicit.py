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

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.collision.swept_bodies import Obstacles
from ecs_fluid.kernels.compiled import CHUNKS, FAST, Array
from ecs_fluid.kernels.compiled.lanes import lane_sum, load_four, spread_four, store_four
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.triples import cross_of, dot, minus, plus, row_of
from ecs_fluid.kernels.compiled.vectors import wide_vectors
from ecs_fluid.kernels.sph.forces import DIFFUSION, lattice_weight
from ecs_fluid.kernels.sph.images import Images
from ecs_fluid.kernels.sph.pairs import STEEPEST, Lists, summed, uneven
from ecs_fluid.kernels.sph.step import (
    Around,
    Evaluation,
    LiquidLaw,
    around,
    creep,
    further,
    sound,
    touched,
)

MOST_ROUNDS = 30

FEWEST_ROUNDS = 4
"""Fewer leave more of the shortest waves than what makes them grow from step to step, -1/7 of their error."""

ONE_SIDED = 4.0
"""What an error of one sign counts more: it is of long waves, which a few rounds hardly reduce, and which
grow where a step leaves more than half of them. Derivation of both: docs/notes/liquids.md."""

SAFE = 1.1
"""Largest eigenvalue, at most, over that of a lattice times the largest compression."""

SMOOTH = 14.0
"""Largest eigenvalue over the least that is reduced in the first rounds: the P of the step before is right
for what is smoother."""

DIFFUSED = 0.06
"""C c t / R at most, of the excess, as in the explicit liquid; at 0.1 pressure differs every other step."""


class Solved(NamedTuple):
    """Forces at one moment, P / V [Pa] (n,), the rounds it took, and the mean error of the compression, or
    `ONE_SIDED` times that with its sign."""

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


class Numbers(NamedTuple):
    """Rows by numbers: particles first, in sorted order, then images in sorted order.

    who (n,): the particle of each number. begin (n + 1,): where the images of each number begin, of which, in
    that sequence, image (m,) are the numbers, and along and speed (m, 3) what `Images` tells.
    """

    who: Array
    begin: Array
    image: Array
    along: Array
    speed: Array


@njit(cache=True)
def _numbered(
    order: Array, owner: Array, who: Array, begin: Array, image: Array, found: Array, told: Array
) -> None:
    """Fill the first three of `Numbers`, ``found`` (m,) with the images in their sequence, and ``told`` (n +
    m,) with the numbers in sorted order."""
    n, at = len(who), np.empty(len(order), np.int64)
    particles, images = 0, n
    for t in range(len(order)):
        i = order[t]
        if i < n:
            who[particles], at[i], told[t] = i, particles, particles
            particles += 1
        else:
            at[i], told[t] = images, images
            images += 1
    begin[:] = 0
    for g in range(len(owner)):
        begin[at[owner[g]] + 1] += 1
    for t in range(n):
        begin[t + 1] += begin[t]
    behind = begin.copy()
    for g in range(len(owner)):
        t = at[owner[g]]
        image[behind[t]], found[behind[t]] = at[n + g], g
        behind[t] += 1


@parallel()
def _in_sequence(chunk: int, found: Array, images: Images, along: Array, speed: Array) -> None:
    """Fill the last two of `Numbers`."""
    m, all_along, all_speed = len(found), images.along, images.speed
    for e in range(chunk * m // CHUNKS, (chunk + 1) * m // CHUNKS):
        for s in range(3):
            along[e, s], speed[e, s] = all_along[found[e], s], all_speed[found[e], s]


def numbered(near: Around) -> tuple[Numbers, Array]:
    """The numbers, and those of all rows (n + m,) in sorted order."""
    images, many = near.images, len(near.order)
    m = len(images.owner)
    who, begin, told = (np.empty(rows, np.int64) for rows in (many - m, many - m + 1, many))
    image, found, along = (np.empty(shape, np.int32) for shape in (m, m, (m, 3)))
    speed = np.empty((m, 3), images.v.dtype)
    _numbered(near.order, images.owner, who, begin, image, found, told)
    _in_sequence(found, images, along, speed)
    return Numbers(who, begin, image, along, speed), told


@njit(forceinline=True, error_model="numpy")
def _told(numbers: Numbers, t: int, weighted: float, load: Array) -> None:
    """The load s P of a particle, and of its images."""
    load[t, 0] = load[t, 1] = load[t, 2] = weighted
    for e in range(numbers.begin[t], numbers.begin[t + 1]):
        k = numbers.image[e]
        load[k, 0] = load[k, 1] = load[k, 2] = weighted


@parallel(fastmath=FAST, error_model="numpy")
def _begin(
    chunk: int,
    numbers: Numbers, sums: Array, v: Array, mass: Array, pull: Array, size: Array, added: Array,
    wall: Array, along: Array, pressure: Array, weight: float, scale: float, drag: float, step: float,
    volume: float, soft: float, inverse: Array, share: Array, nu: Array, base: Array, rubbed: Array,
    diagonal: Array, give: Array, pace: Array, steep: Array, closing: Array, own: Array, load: Array,
) -> None:  # fmt: skip
    """1 / m, s, nu, u*, friction, diagonal, 1 / K, 1 over the sum of these two, slopes of walls, what their
    motion takes, the first P and the loads, all by numbers."""
    n = len(own)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        i = numbers.who[t]
        inverse[t], share[t], closing[t] = 1 / mass[i], size[i], along[i]
        nu[t] = size[i] * weight * sums[0, t] + added[i]
        own[t] = pressure[i] * size[i] * volume
        s, own_part = scale * size[i], nu.dtype.type(0)
        for k in range(3):
            steep[t, k] = wall[i, k]
            own_part += (s * sums[5 + k, t] - wall[i, k]) ** 2
            rubbed[t, k] = -drag * sums[1 + k, t]
            base[t, k] = v[i, k] + step * (rubbed[t, k] * inverse[t] + pull[i, k])
        diagonal[t] = step * step * (s * s * sums[8, t] + own_part * inverse[t])
        give[t] = soft / size[i]
        pace[t] = 1 / (diagonal[t] + give[t])
        _told(numbers, t, size[i] * own[t], load)


@parallel(fastmath=FAST, error_model="numpy")
def _thrust(
    chunk: int,
    numbers: Numbers, planes: Array, rows: Array, slope: Array, first: Array, last: Array, load: Array,
    own: Array, inverse: Array, wall: Array, base: Array, scale: float, step: float, force: Array, v: Array,
) -> None:  # fmt: skip
    """The ``force`` (n, 4) of pressure of all pairs, and the velocities with it and walls, of images too."""
    wide_vectors()
    n, one = len(own), own.dtype.type(1)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        push = spread_four(scale) * summed(slope, rows, first[t], last[t], load, t, one)
        store_four(force, 4 * t, push)
        push = push - spread_four(own[t]) * load_four(wall, 4 * t)
        store_four(v, 4 * t, load_four(base, 4 * t) + spread_four(step * inverse[t]) * push)
        for e in range(numbers.begin[t], numbers.begin[t + 1]):
            u = row_of(v, t)
            for s in range(3):
                k = numbers.along[e, s]
                if k < 0:
                    break
                normal = row_of(planes, k)
                u = plus(u, -2 * (dot(u, normal) + numbers.speed[e, s]), normal)
            at = numbers.image[e]
            v[at, 0], v[at, 1], v[at, 2] = u[0], u[1], u[2]


@parallel(fastmath=FAST, error_model="numpy")
def _relaxed(
    chunk: int,
    numbers: Numbers, rows: Array, slope: Array, first: Array, last: Array, v: Array, share: Array,
    wall: Array, closing: Array, nu: Array, give: Array, pace: Array, scale: float, step: float, relax: float,
    ahead: float, own: Array, former: Array, load: Array, errors: Array,
) -> None:  # fmt: skip
    """One round: P of every particle and the loads, and in ``errors`` (CHUNKS, 3) the sums of the sizes of
    the errors of the compression and of the errors, and the number of particles under pressure."""
    wide_vectors()
    n = len(own)
    total, bias, wet = 0.0, 0.0, 0.0
    zero, one, less = own.dtype.type(0), own.dtype.type(1), own.dtype.type(-1)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        # The last of each four is 0.
        rate = scale * share[t] * lane_sum(summed(slope, rows, first[t], last[t], v, t, less))
        rate += lane_sum(load_four(wall, 4 * t) * load_four(v, 4 * t)) - closing[t]
        error = nu[t] - one + step * rate - give[t] * own[t]
        if own[t] > zero or error > zero:
            total += abs(error)
            bias += error
            wet += 1.0
        found = own[t] + relax * error * pace[t]
        found = former[t] + ahead * (found - former[t])
        former[t], own[t] = own[t], found if found > zero else zero
        _told(numbers, t, share[t] * own[t], load)
    errors[chunk, 0], errors[chunk, 1], errors[chunk, 2] = total, bias, wet


@parallel(fastmath=FAST, error_model="numpy")
def _by_rows(
    chunk: int,
    numbers: Numbers, pressed: Array, rubbed: Array, rate: Array, own: Array, mass: Array, size: Array,
    gravity: Array, force: Array, nu: Array, load: Array, push: Array, fours: Array,
) -> None:  # fmt: skip
    """Of rows: ``force`` (n, 3) of pairs, ``nu``, ``load`` P and ``push`` V_0 p (n,); by numbers ``fours``
    (n + m + 1, 4): half the weight of what is under pressure, and its push over `STEEPEST`."""
    n, zero, half = len(own), own.dtype.type(0), own.dtype.type(0.5)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        i = numbers.who[t]
        nu[i], load[i] = rate[t], own[t]
        push[i] = own[t] * rate[t] * rate[t] / size[i]
        weight = half * mass[i] if push[i] > 0 else zero
        for k in range(3):
            force[i, k] = pressed[t, k] + rubbed[t, k]
            fours[t, k] = weight * gravity[k]
        fours[t, 3] = push[i] / own.dtype.type(STEEPEST)


@parallel(fastmath=FAST, error_model="numpy")
def _flow(
    chunk: int,
    numbers: Numbers, rows: Array, slope: Array, first: Array, last: Array, push: Array, mass: Array,
    fours: Array, gravity: Array, lifted: float, scale: float, flow: Array,
) -> None:  # fmt: skip
    """``flow`` (n,) of rows: what ``uneven`` sums for particles under pressure, else 0."""
    wide_vectors()
    n, own = len(push), np.empty(4, push.dtype)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        i = numbers.who[t]
        flow[i] = 0
        if push[i] > 0:
            for k in range(3):
                own[k] = (mass[i] / 2 - lifted) * gravity[k]
            own[3] = -fours[t, 3]
            flow[i] = scale * uneven(slope, rows, first[t], last[t], fours, own)


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


def _rounds(
    bare: float, crowd: float, soft: float, tolerance: float, push: Callable[[], None],
    relaxed: Callable[[float, float], Array],
) -> tuple[int, float]:  # fmt: skip
    """Chebyshev's iteration: how many rounds, and the error that is left.

    The largest diagonal is ``bare``, and ``soft`` without the part of neighbours; the largest eigenvalue is
    ``crowd`` times that part. ``push`` finds the velocities by the pressure as it is, ``relaxed`` a new one,
    and the sums of the errors' sizes and of the errors, and how many they are of.
    """
    most = (crowd * bare + soft) / (bare + soft)
    least = max(soft / (bare + soft), most / SMOOTH)
    relax, spread = 2 / (most + least), (most - least) / (most + least)
    rounds, ahead, error = 0, 1.0, np.inf
    while True:
        push()
        if rounds == MOST_ROUNDS or (rounds >= FEWEST_ROUNDS and error <= tolerance):
            return rounds, error
        ahead = 1.0 if rounds == 0 else 1 / (1 - spread**2 * (0.5 if rounds == 1 else 0.25 * ahead))
        total, bias, wet = relaxed(relax, ahead)
        rounds += 1
        error = max(total, ONE_SIDED * abs(bias)) / max(wet, 1.0)


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
    numbers, told = numbered(near)
    sums = lists.fill(
        law.support, near.place, near.images.v, near.mass, told, near.start, near.grid, near.order, n
    )  # fmt: skip
    pairs = lists.rows, lists.slope, lists.first, lists.last
    part, body, steep = touched(law, near, hulls, x)
    wall, along = np.zeros((n, 3), x.dtype), np.zeros(n, x.dtype)
    if near.bare is not None:
        _sided(x, body, steep, near.bare, wall, along)
    more = further(law, near, x, v, mass, obstacles, hulls)
    pull = more.beside(pull, mass)
    scale, drag = kind(20 * weight / law.reach), kind(5 * law.viscosity / law.reach)
    unit = kind(scale * lists.unit)
    inverse, share, nu, diagonal, give, pace, closing, own, flow = (np.empty(n, x.dtype) for _ in range(9))
    rubbed, force = (np.empty((n, 4), x.dtype) for _ in range(2))
    base, leaning = (np.zeros((n, 4), x.dtype) for _ in range(2))
    swift, load = (np.zeros((len(told) + 1, 4), x.dtype) for _ in range(2))
    soft = 1 / (7 * law.stiffness * law.volume)
    _begin(
        numbers, sums, v, mass, pull, size, part + excess, wall, along, pressure, kind(weight), scale,
        drag * scale, kind(step), kind(law.volume), kind(soft), inverse, share, nu, base, rubbed, diagonal,
        give, pace, leaning, closing, own, load,
    )  # fmt: skip
    former, errors = own.copy(), np.empty((CHUNKS, 3))

    def push_all() -> None:
        _thrust(
            numbers, near.planes, *pairs, load, own, inverse, leaning, base, unit, kind(step), force, swift,
        )  # fmt: skip

    def relax_all(relax: float, ahead: float) -> Array:
        _relaxed(
            numbers, *pairs, swift, share, leaning, closing, nu, give, pace, unit, kind(step),
            kind(relax), kind(ahead), own, former, load, errors,
        )  # fmt: skip
        return errors.sum(axis=0)

    crowd = SAFE * max(float(nu.max()), 1.0) * steepest(law.support)
    rounds, error = _rounds(float(diagonal.max()), crowd, soft, tolerance, push_all, relax_all)
    lost = 0.5 * float(drag * scale) * float(sums[4].sum(dtype=np.float64))
    pressed = np.empty((n, 3), x.dtype)
    crowding, solved, push = (np.empty(n, x.dtype) for _ in range(3))
    gravity = (law.reach * np.array(law.gravity)).astype(x.dtype)
    # Of images there is no weight and no pressure, so the excess does not diffuse to them.
    load[n:] = 0
    _by_rows(numbers, force, rubbed, nu, own, mass, size, gravity, pressed, crowding, solved, push, load)
    _flow(numbers, *pairs, push, mass, load, gravity, kind(law.around * law.volume), kind(lists.unit), flow)
    diffusion = min(DIFFUSION, DIFFUSED * law.reach / (sound(law, mass, size) * step))
    rate = creep(law, flow, mass, size, excess, crowding, diffusion)
    pressed, loads = more.with_walls(near, obstacles, x, solved, body, steep, pressed)
    # What pressure does where the excess changes is lost, or won.
    lost = lost + more.taken - float((solved * rate).sum(dtype=np.float64))
    done = Evaluation(pressed, crowding, solved * size, rate, lost, loads, more.surface)
    return Solved(done, solved / (size * kind(law.volume)), rounds, error)
