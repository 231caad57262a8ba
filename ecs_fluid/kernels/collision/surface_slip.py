"""Slip of the flow at bodies, how far vortons near them move to stop it, and the impulse. All is float64.

Rows are vortons near a surface, each with its body `body`; sums run over them in their order.
Source: Fluid Simulation for Video Games, part 4; the fractions of the way follow from least squares.
"""

# mypy: disable-error-code="no-any-return"
# Compiled functions have no types that mypy sees.
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.biot_savart.direct import velocity
from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.bodies.table import CONTAINER, Bodies
from ecs_fluid.kernels.collision.article_boundary import reassign, swirl
from ecs_fluid.kernels.collision.closest_surface import near_surfaces
from ecs_fluid.kernels.collision.collide import misplaced
from ecs_fluid.kernels.collision.swept_bodies import Obstacles
from ecs_fluid.kernels.compiled import Array
from ecs_fluid.kernels.compiled.vector3 import (
    add_scaled,
    cross_of,
    dot,
    length,
    matrix_at,
    minus,
    rotated,
    row_of,
)

SINGULAR = 1e-15
"""Ratio of the two eigenvalues of a matrix below which the smaller one is zero."""

ROUNDING = 1e-20
"""A change of strength is only rounding if its square, over that of the strength to change, is below this."""

FAINT = 1e-3
"""Speed at a surface point, over the RMS slip of its body, at which a vorton moves half of the way."""


class NearVortons(NamedTuple):
    """Vortons near a surface (c rows): their `rows` among all, their `body`, and their former values.

    normal, point (c, 3): of the surface, 1 and m. x (c, 3) m, alpha (c, 3) m^3/s, sigma (c,) m, volume (c,)
    m^3: the vortons themselves.
    """

    rows: Array
    body: Array
    normal: Array
    point: Array
    x: Array
    alpha: Array
    sigma: Array
    volume: Array


class Sums(NamedTuple):
    """Which sums the changes of strengths at bodies may have, see `balance`.

    free (count,): bodies whose changes may have any sum. turn (count, 3, 3): for bodies that react, the spin
    in the opposite sense per unit of that sum, 1/m^3; 0 for others.
    """

    free: Array
    turn: Array


class Correction(NamedTuple):
    """A change that the vortons near surfaces (c rows) can make: the state at its end.

    alpha (c, 3): their strengths, m^3/s. following (c, 3): change of the slip as bodies turn, m/s.
    sources: ((3, m) m, (3, m) m^3/s, (m,) m), whose flow is added to the slip.
    """

    alpha: Array
    following: Array
    sources: tuple[Array, Array, Array]


@njit(cache=True, error_model="numpy")
def vortons_near(
    obstacles: Obstacles, hulls: Hulls, x: Array, reach: Array, alpha: Array, sigma: Array, volume: Array
) -> NearVortons:
    """The vortons (n rows) within `reach` (n,) m of a surface, by `near_surfaces`."""
    n = len(x)
    body, gap, normal = np.empty(n, np.int64), np.empty(n), np.empty((n, 3))
    near_surfaces(obstacles, hulls, x, reach, body, gap, normal)
    rows = np.flatnonzero(body >= 0)
    c = len(rows)
    normals, point, old_x, old = np.empty((c, 3)), np.empty((c, 3)), np.empty((c, 3)), np.empty((c, 3))
    core, size = np.empty(c), np.empty(c)
    for k in range(c):
        row = rows[k]
        core[k], size[k] = sigma[row], volume[row]
        normals[k], old_x[k], old[k] = normal[row], x[row], alpha[row]
        point[k] = old_x[k] - gap[row] * normals[k]
    return NearVortons(rows, body[rows], normals, point, old_x, old, core, size)


@njit(cache=True, error_model="numpy")
def corrections(
    code: Code, bodies: Bodies, near: NearVortons, flow: Array, bent: bool, gain: float, sums: Sums
) -> tuple[Array, Array, Array, Array]:
    """(slip, x, parts, change): the slip (c, 3) m/s, and what the vortons are to do about it.

    Each may go to the place x and the strength where it stops the slip by itself, see `reassign` (`bent` or
    not), and take up the strength `spun` of `slip_at`, both as far as `balance` lets them by their `sums`.
    Of these two corrections each body's vortons make the `parts` of `correction_fractions`, which change
    their strengths by `change` (c, 3) m^3/s.
    """
    slip, x, limit, stop, turn = both_corrections(code, bodies, near, flow, bent, sums)
    stop_slip, turn_slip = slip_by(code, near, stop), slip_by(code, near, turn)
    parts = correction_fractions(near.body, slip, stop_slip, turn_slip, gain, limit)
    return slip, x, parts, strength_changes(near.body, parts, near.alpha, stop.alpha, turn.alpha)


@njit(cache=True, error_model="numpy")
def slip_by(code: Code, near: NearVortons, correction: Correction) -> Array:
    """Change of the slip (c, 3), m/s, if all vortons make the whole correction."""
    out, sources = np.zeros_like(correction.alpha), correction.sources
    if len(sources[2]):
        velocity(code, near.point, sources[0], sources[1], sources[2], out)
    return out + correction.following


@njit(cache=True, error_model="numpy")
def both_corrections(
    code: Code, bodies: Bodies, near: NearVortons, flow: Array, bent: bool, sums: Sums
) -> tuple[Array, Array, Array, Correction, Correction]:
    """(slip, x, limit, stop, turn): the slip by `slip_at`, and both corrections that the vortons can make.

    With `stop` each stops the slip by itself, see `reassign`, at the places x. With `turn` each takes the
    strength `spun` of `slip_at`, at most `limit` (count,) times. `balance` adjusts both. By either a vorton
    is given at most, in the mean, the strength by which it would make all of the slip: what it gets along the
    normal that it stands on acts at other vortons' points alone, so few vortons could be given any strength,
    and one by itself what rounding asks for.
    """
    n, before = len(near.rows), near.alpha
    slip, rest, spun = slip_at(bodies, near.body, near.point, near.normal, flow, before, near.volume)
    turn_following, limit = balance(bodies, near, sums, slip, spun)
    x, alpha, off, floor = near.x.copy(), near.alpha.copy(), np.zeros(n, np.int64), np.empty(n)
    rms, own = _rms(near.body, slip, len(bodies.x)), np.zeros_like(slip)
    spins = np.zeros(n, np.bool_)
    for c in range(n):
        # Off the normal a vorton might leave a container through another wall.
        off[c] = bent and bodies.shape[near.body[c]] != CONTAINER
        floor[c] = FAINT * rms[near.body[c]]
        for k in range(3):
            spins[c] |= spun[c, k] != before[c, k]
        s = max(length(minus(row_of(near.point, c), row_of(near.x, c))), near.sigma[c])
        induced = swirl(code, s * s, near.sigma[c]) * s
        own[c, 0] = induced * length(minus(row_of(spun, c), row_of(before, c)))
    own_rms = _rms(near.body, own, len(bodies.x))
    for i in range(len(limit)):
        if own_rms[i] > 0.0:
            limit[i] = min(limit[i], rms[i] / own_rms[i])
    reassign(code, x, alpha, near.sigma, near.point, near.normal, rest, off, floor)
    stop_following, _ = balance(bodies, near, sums, slip, alpha)
    stop_sources = np.empty((3, 2 * n)), np.empty((3, 2 * n)), np.empty(2 * n)
    turn_count, m = np.count_nonzero(spins), 0
    turn_sources = np.empty((3, turn_count)), np.empty((3, turn_count)), np.empty(turn_count)
    for c in range(n):
        stop_sources[2][c] = stop_sources[2][n + c] = near.sigma[c]
        for k in range(3):
            # Vortons that move away count with the opposite strength at their old places.
            stop_sources[0][k, c], stop_sources[0][k, n + c] = x[c, k], near.x[c, k]
            stop_sources[1][k, c], stop_sources[1][k, n + c] = alpha[c, k], -before[c, k]
        if spins[c]:
            turn_sources[2][m] = near.sigma[c]
            for k in range(3):
                turn_sources[0][k, m], turn_sources[1][k, m] = near.x[c, k], spun[c, k] - before[c, k]
            m += 1
    return (
        slip,
        x,
        limit,
        Correction(alpha, stop_following, stop_sources),
        Correction(spun, turn_following, turn_sources),
    )


@njit(cache=True, error_model="numpy")
def balance(bodies: Bodies, near: NearVortons, sums: Sums, slip: Array, after: Array) -> tuple[Array, Array]:
    """Take off `after` (c, 3) m^3/s what the changes of strength at each body may not sum to, in equal parts.

    The sheet that a closed surface needs to turn the velocity u along it into that of the body has the sum

        int n x (u - v - spin x r) dS = int curl u dV - 2 V spin,

    with the first integral zero for a flow whose vorticity is outside. The vortons stand for the vorticity of
    the body too, 2 V spin, since the fluid in it turns with it by theirs: both together are zero. Of all ways
    to get there, equal parts change the least, in the sense of sum |change|^2.

    A body that reacts would turn by d = -turn times the sum, if its vortons went all the way. Of that it
    takes the part p = sum slip . (d x r) / sum |d|^2 |r|^2, within 0 and 1, and the changes keep p of their
    sum: so it turns as the fluid at its surface does, and not beyond, however light it is. (|d x r|^2 in the
    place of |d|^2 |r|^2 would leave the least slip, but a spin about a point of contact would cost nothing.)
    Returns -p d x r (c, 3) m/s, and how many times (count,) the way may be gone: a body that turns by it at
    all may turn by the part that p was before it was kept within 1, or by p.
    """
    count = len(bodies.x)
    total, number = np.zeros((count, 3)), np.zeros(count)
    for c in range(len(near.body)):
        i = near.body[c]
        number[i] += 1.0
        for k in range(3):
            total[i, k] += after[c, k] - near.alpha[c, k]
    along, size, moved = np.zeros(count), np.zeros(count), np.empty_like(slip)
    for c in range(len(near.body)):
        i = near.body[c]
        against = rotated(matrix_at(sums.turn, i), row_of(total, i))
        lever = minus(row_of(near.point, c), row_of(bodies.x, i))
        moved[c, 0], moved[c, 1], moved[c, 2] = cross_of(against, lever)
        along[i] -= dot(row_of(slip, c), row_of(moved, c))
        size[i] += dot(against, against) * dot(lever, lever)
    limit = np.full(count, np.inf)
    for i in range(count):
        along[i] = max(along[i] / size[i], 0.0) if size[i] > 0.0 else 0.0
        if along[i] > 0.0:
            limit[i] = max(along[i], 1.0)
    for c in range(len(near.body)):
        i = near.body[c]
        part = min(along[i], 1.0)
        off = 0.0 if sums.free[i] else (1.0 - part) / number[i]
        change = minus(row_of(after, c), row_of(near.alpha, c))
        kept = add_scaled(change, -off, row_of(total, i))
        nothing = dot(kept, kept) <= ROUNDING * dot(change, change)
        for k in range(3):
            moved[c, k] *= part
            after[c, k] = near.alpha[c, k] if nothing else near.alpha[c, k] + kept[k]
    return moved, limit


@njit(cache=True, error_model="numpy")
def slip_at(
    bodies: Bodies, body: Array, point: Array, normal: Array, flow: Array, alpha: Array, volume: Array
) -> tuple[Array, Array, Array]:
    """(slip, rest, spun) (c, 3) at surface points of bodies that the fluid passes with the velocity `flow`.

    slip: flow - v - spin x r, m/s. The flow takes part in the rotation of its body by

        f = sum (flow - v) . (spin x r) / sum |spin x r|^2, kept within 0 and 1.

    rest: the slip without what the fluid still lacks of the rotation, slip + (1 - f) spin x r, m/s.
    spun: strengths alpha + 2 (1 - f) (spin . n) n volume, m^3/s: what turns with a surface has the vorticity
    2 spin . n along its normal.
    """
    count, n = len(bodies.x), len(body)
    same, size = np.zeros(count), np.zeros(count)
    slip, rest, spun = np.empty((n, 3)), np.empty((n, 3)), np.empty((n, 3))
    for c in range(n):
        i = body[c]
        spin = row_of(bodies.angular_velocity, i)
        turning = cross_of(spin, minus(row_of(point, c), row_of(bodies.x, i)))
        through = minus(row_of(flow, c), row_of(bodies.v, i))
        # `rest` holds the rotation until the f of its body is known.
        rest[c, 0], rest[c, 1], rest[c, 2] = turning
        slip[c, 0], slip[c, 1], slip[c, 2] = minus(through, turning)
        same[i] += dot(through, turning)
        size[i] += dot(turning, turning)
    for c in range(n):
        i = body[c]
        followed = min(max(same[i] / size[i], 0.0), 1.0) if size[i] > 0.0 else 0.0
        along = dot(row_of(bodies.angular_velocity, i), row_of(normal, c))
        for k in range(3):
            rest[c, k] = slip[c, k] + (1.0 - followed) * rest[c, k]
            spun[c, k] = alpha[c, k] + 2.0 * ((1.0 - followed) * along) * normal[c, k] * volume[c]
    return slip, rest, spun


@njit(cache=True, error_model="numpy")
def correction_fractions(
    body: Array, slip: Array, stop: Array, turn: Array, gain: float, limit: Array
) -> Array:
    """Parts (count, 2) to make of two corrections, a row for each body.

    With the slip w and its changes d_1, d_2 (all (c, 3), m/s) if all vortons of a body made one of the
    corrections in full, let the parts p_k >= 0 leave the least sum |w + p_1 d_1 + p_2 d_2|^2. The results are
    p_1, at most `gain`, and `gain` times p_2, p_2 at most `limit` (count,).
    """
    count = len(limit)
    sums = np.zeros((count, 5))
    for c in range(len(body)):
        total = sums[body[c]]
        for k in range(3):
            w, a, b = slip[c, k], stop[c, k], turn[c, k]
            for m, term in enumerate((a * a, a * b, b * b, -w * a, -w * b)):
                total[m] += term
    out = np.empty((count, 2))
    for i in range(count):
        first, second = least_squares(sums[i])
        out[i, 0], out[i, 1] = min(max(first, 0.0), gain), gain * min(max(second, 0.0), limit[i])
    return out


@njit(cache=True, error_model="numpy")
def least_squares(sums: Array) -> tuple[float, float]:
    """The shortest p with [[a, b], [b, c]] p = (d, e) as well as can be, from sums = (a, b, c, d, e).

    The matrix has no negative eigenvalues; where one of them is zero, M+ = M / trace(M)^2.
    """
    a, b, c, d, e = sums[0], sums[1], sums[2], sums[3], sums[4]
    largest = 0.5 * (a + c) + math.sqrt(0.25 * (a - c) * (a - c) + b * b)
    if not largest > 0.0:
        return 0.0, 0.0
    product = a * c - b * b
    if product > SINGULAR * largest * largest:
        return (c * d - b * e) / product, (a * e - b * d) / product
    return (a * d + b * e) / (largest * largest), (b * d + c * e) / (largest * largest)


@njit(cache=True, error_model="numpy")
def strength_changes(body: Array, parts: Array, alpha: Array, wanted: Array, spun: Array) -> Array:
    """Change (c, 3) of the strengths by these parts of the changes to `wanted` and `spun`, m^3/s."""
    out = np.empty_like(alpha)
    for c in range(len(body)):
        stop, turn = parts[body[c], 0], parts[body[c], 1]
        for k in range(3):
            out[c, k] = stop * (wanted[c, k] - alpha[c, k]) + turn * (spun[c, k] - alpha[c, k])
    return out


@njit(cache=True, error_model="numpy")
def apply_corrections(
    obstacles: Obstacles,
    hulls: Hulls,
    near: NearVortons,
    slip: Array,
    parts: Array,
    wanted: Array,
    change: Array,
    x: Array,
    alpha: Array,
) -> tuple[Array, Array, Array, Array]:
    """Take the vortons these parts of the way to the places `wanted`, and add the change of their strengths.

    A vorton that would come into a body stays where it was. x, alpha (n, 3) of all vortons are changed.
    Returns (impulse, moment, rms slip) from `exchanged`, and the actual change of the strengths (c, 3) m^3/s.
    """
    n = len(near.rows)
    moved, depth = np.empty((n, 3), x.dtype), np.empty(n)
    new_x, new, actual = np.empty((n, 3)), np.empty((n, 3)), np.empty((n, 3))
    for c in range(n):
        part = parts[near.body[c], 0]
        for k in range(3):
            moved[c, k] = near.x[c, k] + part * (wanted[c, k] - near.x[c, k])
    misplaced(obstacles, hulls, moved, depth)
    for c in range(n):
        row = near.rows[c]
        for k in range(3):
            x[row, k] = near.x[c, k] if depth[c] > 0.0 else moved[c, k]
            alpha[row, k] = near.alpha[c, k] + change[c, k]
            # The exchange is computed from the values that the tables hold in their own precision.
            new_x[c, k], new[c, k] = x[row, k], alpha[row, k]
            actual[c, k] = new[c, k] - near.alpha[c, k]
    impulse, moment, rms = exchanged(obstacles.x1, near.body, near.x, near.alpha, new_x, new, slip)
    return impulse, moment, rms, actual


@njit(cache=True, error_model="numpy")
def exchanged(
    centers: Array, body: Array, x0: Array, alpha0: Array, x1: Array, alpha1: Array, slip: Array
) -> tuple[Array, Array, Array]:
    """(impulse, moment, slip) of the bodies at `centers` (count, 3), from vortons before and after.

    impulse (count, 3): change of 1/2 sum r cross alpha, m^4/s. moment (count, 3): of 1/3 sum r cross
    (r cross alpha), r from the centre, m^5/s. slip (count,): root of the mean |slip|^2, m/s.
    Places count from the centre, since what is shed when a spin changes sums to -2 V times that change; the
    body's own vorticity, which has no impulse about its centre, makes up for it.
    """
    count = len(centers)
    before, after = np.zeros((count, 6)), np.zeros((count, 6))
    for c in range(len(body)):
        i = body[c]
        _add_moments(before[i], centers[i], x0[c], alpha0[c], -1.0)
        _add_moments(after[i], centers[i], x1[c], alpha1[c], 1.0)
    both = before + after
    return both[:, :3].copy(), both[:, 3:].copy(), _rms(body, slip, count)


@njit(cache=True, error_model="numpy")
def _rms(body: Array, values: Array, count: int) -> Array:
    """Root of the mean |value|^2 over the rows of each body."""
    number, square = np.zeros(count), np.zeros(count)
    for c in range(len(body)):
        number[body[c]] += 1.0
        square[body[c]] += dot(row_of(values, c), row_of(values, c))
    out = np.empty(count)
    for i in range(count):
        out[i] = math.sqrt(square[i] / max(number[i], 1.0))
    return out


@njit(cache=True, error_model="numpy")
def _add_moments(total: Array, center: Array, x: Array, alpha: Array, sign: float) -> None:
    """Add sign times 1/2 r cross alpha, and 1/3 r cross (r cross alpha), to total (6,)."""
    arm = minus(x, center)
    half = cross_of(arm, alpha)
    third = cross_of(arm, half)
    for k in range(3):
        total[k] += 0.5 * sign * half[k]
        total[3 + k] += sign / 3.0 * third[k]
