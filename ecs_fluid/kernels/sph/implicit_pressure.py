"""Implicit pressure of a liquid: a step may be longer than the time that sound needs for one reach.

A step of length t gives the particles the velocities u' = u* - t M^-1 J^T P. Here u* are the velocities after
gravity and friction alone, M the masses, J the derivatives of the compressions nu with respect to the
positions, and P = V p [J]. The pressure is the one that belongs to the compression at the end of the step. It
follows from the stiffness of Tait's law at rest and is never below 0:

    P_i = max(0, 7 B V_i (nu_i + t (J u')_i - 1)).

The forces have the form of those in `kernels.sph.forces`, with walls and images, so momentum is conserved to
rounding however accurate P is. P is found by Chebyshev's iteration with the diagonal as preconditioner,
starting at the P of the step before. The bounds of the eigenvalues are those of no motion and of the shortest
waves of the lattice. Source: Bender and Koschier, Symp. Comput. Animat. 2015 (a pressure that makes both
density and its rate right); Ihmsen et al., IEEE Trans. Vis. Comput. Graph. 20 (2014) (the rate from
neighbours of neighbours, in two sums); Golub and Varga, Numer. Math. 3 (1961) (the iteration). Derivation:
docs/notes/liquids.md.
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
from ecs_fluid.kernels.compiled.vector3 import add_scaled, cross_of, dot, minus, row_of
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors
from ecs_fluid.kernels.sph.forces import DIFFUSION, lattice_weight
from ecs_fluid.kernels.sph.pair_lists import LARGEST_SLOPE, PairLists, slope_dot_sum, slope_sum
from ecs_fluid.kernels.sph.step import (
    Evaluation,
    LiquidLaw,
    Surroundings,
    excess_rate,
    other_forces,
    sound_speed,
    surroundings_of,
    wall_compression,
)

MOST_ROUNDS = 30

FEWEST_ROUNDS = 4
"""Fewer rounds leave so much of the shortest waves that they grow from step to step: the limit is -1/7 of
their error."""

ONE_SIDED = 4.0
"""Weight of the mean error with its sign, relative to the mean size of the errors. An error of one sign
belongs to long waves, which a few rounds hardly reduce, and which grow if a step leaves more than half of
them. Derivation of this and of `FEWEST_ROUNDS`: docs/notes/liquids.md."""

EIGENVALUE_MARGIN = 1.1
"""Upper bound of the largest eigenvalue, in units of that of a lattice times the largest compression."""

EIGENVALUE_RATIO = 14.0
"""Ratio of the largest eigenvalue to the smallest that the iteration aims at. Smoother parts of P, with
smaller eigenvalues, are already right from the step before."""

MOST_DIFFUSION = 0.06
"""Largest C c t / R of the diffusion of the excess, about as in the explicit liquid. At 0.1 the pressure
alternates from step to step."""


class Solved(NamedTuple):
    """Result of `solve`.

    forces: at the end of the step. pressure (n,): P / V, Pa. rounds: how many the iteration took. error: the
    mean size of the errors of the compression, or `ONE_SIDED` times the size of their mean if that is larger.
    """

    forces: Evaluation
    pressure: Array
    rounds: int
    error: float


@lru_cache
def largest_eigenvalue(support: float) -> float:
    """Largest eigenvalue of J J^T, divided by its diagonal, for a lattice.

    max over waves k of |sum g sin(k . r)|^2 / sum |g|^2, with g the slopes (1 - q)^3 r of the kernel.
    ``support`` is the reach divided by the spacing.
    """
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
    """New numbers of the rows: particles first, in sorted order, then images, in sorted order.

    particle_row (n,): the row of the particle with each number. The images are also listed particle by
    particle: those of particle t are begin[t]:begin[t + 1] (begin (n + 1,)) in this list. image (m,) has
    their numbers, along and speed (m, 3) the fields of `Images`.
    """

    particle_row: Array
    begin: Array
    image: Array
    along: Array
    speed: Array


@njit(cache=True)
def _fill_numbers(
    order: Array,
    owner: Array,
    particle_row: Array,
    begin: Array,
    image: Array,
    image_row: Array,
    new_number: Array,
) -> None:
    """Fill the first three fields of `Numbers`, and the arrays ``image_row`` and ``new_number``.

    ``image_row`` (m,) gets the row in `Images` of each entry of the list by particles, ``new_number``
    (n + m,) the new number of each row in sorted order.
    """
    n, at = len(particle_row), np.empty(len(order), np.int64)
    particles, images = 0, n
    for t in range(len(order)):
        i = order[t]
        if i < n:
            particle_row[particles], at[i], new_number[t] = i, particles, particles
            particles += 1
        else:
            at[i], new_number[t] = images, images
            images += 1
    begin[:] = 0
    for g in range(len(owner)):
        begin[at[owner[g]] + 1] += 1
    for t in range(n):
        begin[t + 1] += begin[t]
    behind = begin.copy()
    for g in range(len(owner)):
        t = at[owner[g]]
        image[behind[t]], image_row[behind[t]] = at[n + g], g
        behind[t] += 1


def number_rows(near: Surroundings) -> tuple[Numbers, Array]:
    """The `Numbers` of particles and images, and the new number (n + m,) of each row in sorted order."""
    images, many = near.images, len(near.order)
    m = len(images.owner)
    particle_row, begin, new_number = (np.empty(rows, np.int64) for rows in (many - m, many - m + 1, many))
    image, image_row = (np.empty(m, np.int32) for _ in range(2))
    _fill_numbers(near.order, images.owner, particle_row, begin, image, image_row, new_number)
    along, speed = images.along[image_row], images.speed[image_row].astype(images.v.dtype)
    return Numbers(particle_row, begin, image, along, speed), new_number


@njit(forceinline=True, error_model="numpy")
def _store_load(numbers: Numbers, t: int, weighted: float, load: Array) -> None:
    """Write the load s P, ``weighted``, of particle t into three columns of its row and its images' rows."""
    load[t, 0] = load[t, 1] = load[t, 2] = weighted
    for e in range(numbers.begin[t], numbers.begin[t + 1]):
        k = numbers.image[e]
        load[k, 0] = load[k, 1] = load[k, 2] = weighted


@parallel(fastmath=FAST, error_model="numpy")
def _prepare(
    chunk: int,
    numbers: Numbers, sums: Array, v: Array, mass: Array, pull: Array, size: Array, added: Array,
    wall: Array, along: Array, pressure: Array, weight: float, scale: float, drag: float, step: float,
    volume: float, soft: float, inverse: Array, share: Array, nu: Array, base: Array, friction: Array,
    diagonal: Array, compliance: Array, inverse_diagonal: Array, wall_slope: Array, closing: Array,
    own: Array, load: Array,
) -> None:  # fmt: skip
    """Fill what the rounds need, all in the order of `Numbers`.

    In the order of the last arguments: ``inverse`` 1 / m, ``share`` s, ``nu``, ``base`` u* [m/s],
    ``friction`` the friction [N], ``diagonal`` of t^2 J M^-1 J^T, ``compliance`` 1 / (7 B V),
    ``inverse_diagonal`` 1 / (diagonal + compliance), ``wall_slope`` the slopes of walls [1/m], ``closing``
    the rate [1/s] by which the motion of walls lowers that of the compression, ``own`` the first P [J] and
    ``load`` s P [J]. ``sums`` (9, n) is from `PairLists.fill`, ``soft`` is 1 / (7 B V_0).
    """
    n = len(own)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        i = numbers.particle_row[t]
        inverse[t], share[t], closing[t] = 1 / mass[i], size[i], along[i]
        nu[t] = size[i] * weight * sums[0, t] + added[i]
        own[t] = pressure[i] * size[i] * volume
        s, own_part = scale * size[i], nu.dtype.type(0)
        for k in range(3):
            wall_slope[t, k] = wall[i, k]
            own_part += (s * sums[5 + k, t] - wall[i, k]) ** 2
            friction[t, k] = -drag * sums[1 + k, t]
            base[t, k] = v[i, k] + step * (friction[t, k] * inverse[t] + pull[i, k])
        diagonal[t] = step * step * (s * s * sums[8, t] + own_part * inverse[t])
        compliance[t] = soft / size[i]
        inverse_diagonal[t] = 1 / (diagonal[t] + compliance[t])
        _store_load(numbers, t, size[i] * own[t], load)


@parallel(fastmath=FAST, error_model="numpy")
def _accelerate(
    chunk: int,
    numbers: Numbers, planes: Array, rows: Array, slope: Array, first: Array, last: Array, load: Array,
    own: Array, inverse: Array, wall: Array, base: Array, scale: float, step: float, force: Array, v: Array,
) -> None:  # fmt: skip
    """Fill ``force`` (n, 4) N, the pressure of all pairs, and the velocities ``v`` m/s that follow from P.

    The velocities include the push of walls; those of images are mirrored.
    """
    wide_vectors()
    n, one = len(own), own.dtype.type(1)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        push = spread_four(scale) * slope_sum(slope, rows, first[t], last[t], load, t, one)
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
                u = add_scaled(u, -2 * (dot(u, normal) + numbers.speed[e, s]), normal)
            at = numbers.image[e]
            v[at, 0], v[at, 1], v[at, 2] = u[0], u[1], u[2]


@parallel(fastmath=FAST, error_model="numpy")
def _relax(
    chunk: int,
    numbers: Numbers, rows: Array, slope: Array, first: Array, last: Array, v: Array, share: Array,
    wall: Array, closing: Array, nu: Array, compliance: Array, inverse_diagonal: Array, scale: float,
    step: float, relax: float,
    ahead: float, own: Array, former: Array, load: Array, errors: Array,
) -> None:  # fmt: skip
    """One round of Chebyshev's iteration: new P (``own``) and loads of every particle.

    ``former`` is the P of the round before, ``relax`` and ``ahead`` the factors of the iteration. ``errors``
    (CHUNKS, 3) gets, over the particles that are or come under pressure, the sum of the absolute errors of
    the compression, the sum of the errors with their signs, and the number of these particles.
    """
    wide_vectors()
    n = len(own)
    total, bias, pressed = 0.0, 0.0, 0.0
    zero, one, less = own.dtype.type(0), own.dtype.type(1), own.dtype.type(-1)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        # The fourth component of each velocity is 0, so the fourth slope does not count.
        rate = scale * share[t] * lane_sum(slope_sum(slope, rows, first[t], last[t], v, t, less))
        rate += lane_sum(load_four(wall, 4 * t) * load_four(v, 4 * t)) - closing[t]
        error = nu[t] - one + step * rate - compliance[t] * own[t]
        if own[t] > zero or error > zero:
            total += abs(error)
            bias += error
            pressed += 1.0
        new = own[t] + relax * error * inverse_diagonal[t]
        new = former[t] + ahead * (new - former[t])
        former[t], own[t] = own[t], new if new > zero else zero
        _store_load(numbers, t, share[t] * own[t], load)
    errors[chunk, 0], errors[chunk, 1], errors[chunk, 2] = total, bias, pressed


@parallel(fastmath=FAST, error_model="numpy")
def _store_by_rows(
    chunk: int,
    numbers: Numbers, pressed: Array, friction: Array, rate: Array, own: Array, mass: Array, size: Array,
    gravity: Array, force: Array, nu: Array, load: Array, push: Array, fours: Array,
) -> None:  # fmt: skip
    """Put results back into rows, and fill ``fours``, the input of `_excess_flow`.

    By rows: ``force`` (n, 3) N of pairs, ``nu``, ``load`` P [J] and ``push`` V_0 p [J] (n,). By numbers:
    ``fours`` (n + m + 1, 4) J, half the weight of each particle under pressure times the reach, else 0, and
    the push divided by `LARGEST_SLOPE`.
    """
    n, zero, half = len(own), own.dtype.type(0), own.dtype.type(0.5)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        i = numbers.particle_row[t]
        nu[i], load[i] = rate[t], own[t]
        push[i] = own[t] * rate[t] * rate[t] / size[i]
        weight = half * mass[i] if push[i] > 0 else zero
        for k in range(3):
            force[i, k] = pressed[t, k] + friction[t, k]
            fours[t, k] = weight * gravity[k]
        fours[t, 3] = push[i] / own.dtype.type(LARGEST_SLOPE)


@parallel(fastmath=FAST, error_model="numpy")
def _excess_flow(
    chunk: int,
    numbers: Numbers, rows: Array, slope: Array, first: Array, last: Array, push: Array, mass: Array,
    fours: Array, gravity: Array, lifted: float, scale: float, flow: Array,
) -> None:  # fmt: skip
    """Fill ``flow`` (n,), by rows, with the sum that `excess_rate` takes, of particles under pressure, or 0.

    It is the last of the sums of `kernels.sph.forces.forces`, here from the lists.
    """
    wide_vectors()
    n, own = len(push), np.empty(4, push.dtype)
    for t in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        i = numbers.particle_row[t]
        flow[i] = 0
        if push[i] > 0:
            for k in range(3):
                own[k] = (mass[i] / 2 - lifted) * gravity[k]
            own[3] = -fours[t, 3]
            flow[i] = scale * slope_dot_sum(slope, rows, first[t], last[t], fours, own)


@parallel()
def _add_body_slopes(
    chunk: int, x: Array, body: Array, slope: Array, bodies: Obstacles, wall: Array, along: Array
) -> None:
    """Add up the slopes of all bodies that press on each particle, and the effect of their motion.

    Added to ``wall`` (n, 3) 1/m: the slopes. Added to ``along`` (n,) 1/s: the rate by which the motion of the
    bodies lowers that of the compression, their velocity at the particle times the slope.
    """
    n, centre = len(x), bodies.x1
    speed, spin = bodies.v, bodies.angular_velocity
    for row in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        for s in range(body.shape[1]):
            i = body[row, s]
            if i < 0:
                break
            gradient = (float(slope[row, s, 0]), float(slope[row, s, 1]), float(slope[row, s, 2]))
            moving = cross_of(row_of(spin, i), minus(row_of(x, row), row_of(centre, i)))
            along[row] += dot(add_scaled(row_of(speed, i), 1.0, moving), gradient)
            for k in range(3):
                wall[row, k] += gradient[k]


def _iterate(
    largest_diagonal: float, largest: float, soft: float, tolerance: float, push: Callable[[], None],
    relaxed: Callable[[float, float], Array],
) -> tuple[int, float]:  # fmt: skip
    """Chebyshev's iteration; returns the number of rounds and the error that is left.

    The diagonal of the system has two parts: that of neighbours, at most ``largest_diagonal``, and that of
    the liquid's own compressibility, ``soft``. The largest eigenvalue of the first part is at most
    ``largest`` times ``largest_diagonal``. ``push`` finds the velocities that follow from the present
    pressure. ``relaxed`` finds a new pressure and returns the sum of the absolute errors, the sum of the
    errors and the number of particles in them.
    """
    most = (largest * largest_diagonal + soft) / (largest_diagonal + soft)
    least = max(soft / (largest_diagonal + soft), most / EIGENVALUE_RATIO)
    relax, spread = 2 / (most + least), (most - least) / (most + least)
    rounds, ahead, error = 0, 1.0, np.inf
    while True:
        push()
        if rounds == MOST_ROUNDS or (rounds >= FEWEST_ROUNDS and error <= tolerance):
            return rounds, error
        ahead = 1.0 if rounds == 0 else 1 / (1 - spread**2 * (0.5 if rounds == 1 else 0.25 * ahead))
        total, bias, pressed = relaxed(relax, ahead)
        rounds += 1
        error = max(total, ONE_SIDED * abs(bias)) / max(pressed, 1.0)


def solve(
    law: LiquidLaw, x: Array, v: Array, mass: Array, size: Array, excess: Array, obstacles: Obstacles | None,
    hulls: Hulls | None, pull: Array, pressure: Array, step: float, tolerance: float, lists: PairLists,
) -> Solved:  # fmt: skip
    """Forces of a step of ``step`` s at whose end compression and pressure agree.

    The first arguments are those of ``evaluate``. ``pull`` (n, 3) m/s^2 is gravity, ``pressure`` (n,) Pa that
    of the step before, ``tolerance`` the error of the compression at which the rounds end, ``lists`` the room
    for the lists of pairs.
    """
    n, kind, weight = len(x), x.dtype.type, lattice_weight(law.support)
    near = surroundings_of(law, x, v, mass, obstacles, hulls)
    numbers, new_number = number_rows(near)
    sums = lists.fill(
        law.support, near.place, near.images.v, near.mass, new_number, near.start, near.grid, near.order, n
    )  # fmt: skip
    pairs = lists.rows, lists.slope, lists.first, lists.last
    part, body, slopes = wall_compression(law, near, hulls, x)
    wall, along = np.zeros((n, 3), x.dtype), np.zeros(n, x.dtype)
    if near.bare is not None:
        _add_body_slopes(x, body, slopes, near.bare, wall, along)
    more = other_forces(law, near, x, v, mass, obstacles, hulls)
    pull = more.accelerations(pull, mass)
    scale, drag = kind(20 * weight / law.reach), kind(5 * law.viscosity / law.reach)
    unit = kind(scale * lists.unit)
    inverse, share, nu, diagonal, compliance, inverse_diagonal, closing, own, flow = (
        np.empty(n, x.dtype) for _ in range(9)
    )
    friction, force = (np.empty((n, 4), x.dtype) for _ in range(2))
    base, wall_slope = (np.zeros((n, 4), x.dtype) for _ in range(2))
    velocities, load = (np.zeros((len(new_number) + 1, 4), x.dtype) for _ in range(2))
    soft = 1 / (7 * law.stiffness * law.volume)
    _prepare(
        numbers, sums, v, mass, pull, size, part + excess, wall, along, pressure, kind(weight), scale,
        drag * scale, kind(step), kind(law.volume), kind(soft), inverse, share, nu, base, friction, diagonal,
        compliance, inverse_diagonal, wall_slope, closing, own, load,
    )  # fmt: skip
    former, errors = own.copy(), np.empty((CHUNKS, 3))

    def push_all() -> None:
        _accelerate(
            numbers, near.planes, *pairs, load, own, inverse, wall_slope, base, unit, kind(step), force,
            velocities,
        )  # fmt: skip

    def relax_all(relax: float, ahead: float) -> Array:
        _relax(
            numbers, *pairs, velocities, share, wall_slope, closing, nu, compliance, inverse_diagonal, unit,
            kind(step), kind(relax), kind(ahead), own, former, load, errors,
        )  # fmt: skip
        return errors.sum(axis=0)

    largest = EIGENVALUE_MARGIN * max(float(nu.max()), 1.0) * largest_eigenvalue(law.support)
    rounds, error = _iterate(float(diagonal.max()), largest, soft, tolerance, push_all, relax_all)
    lost = 0.5 * float(drag * scale) * float(sums[4].sum(dtype=np.float64))
    pressed = np.empty((n, 3), x.dtype)
    compression, solved, push = (np.empty(n, x.dtype) for _ in range(3))
    gravity = (law.reach * np.array(law.gravity)).astype(x.dtype)
    # Images get no weight and no pressure here, so the excess does not diffuse to them.
    load[n:] = 0
    _store_by_rows(
        numbers, force, friction, nu, own, mass, size, gravity, pressed, compression, solved, push, load
    )
    _excess_flow(
        numbers,
        *pairs,
        push,
        mass,
        load,
        gravity,
        kind(law.ambient_density * law.volume),
        kind(lists.unit),
        flow,
    )
    diffusion = min(DIFFUSION, MOST_DIFFUSION * law.reach / (sound_speed(law, mass, size) * step))
    rate = excess_rate(law, flow, mass, size, excess, compression, diffusion)
    pressed, loads = more.total_forces(near, obstacles, x, solved, body, slopes, pressed)
    # A change of the excess changes the compression: the work of pressure on it is lost, or gained.
    lost = lost + more.power - float((solved * rate).sum(dtype=np.float64))
    done = Evaluation(pressed, compression, solved * size, rate, lost, loads, more.surface)
    return Solved(done, solved / (size * kind(law.volume)), rounds, error)
