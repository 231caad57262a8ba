"""A column of water that falls as potential flow, by boundary elements: what a dam break has to follow.

Column of width a and height 2 a between a wall x = 0 and a floor y = 0 (in units of a, gravity 1), let go at
once, no gate, no friction, no surface tension. On the free surface the pressure is 0, so a point of it moves
with the flow, dx/dt = grad phi, and dphi/dt = |grad phi|^2 / 2 - y (Bernoulli's equation). Wall and floor are
mirrors, so the surface alone carries elements: straight ones, with phi and its normal derivative q linear on
them, whose integrals of ln r and of its derivative are written out. With G = ln r / (2 pi), Green's third
identity is c phi = integral of phi dG/dn - q G, in which c follows from phi = 1, q = 0. The upper corner is
rounded by 0.05 a, points are set anew in every step, close where the tongue is thin, and smoothed in every
fourth. Method of Longuet-Higgins and Cokelet (Proc. R. Soc. A 350, 1976).
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

Array = np.ndarray
HEIGHT, ROUND, BEYOND = 2.0, 0.05, 6
"""Of the column; radius of its corner; points by which the surface goes on behind the mirrors."""


def mirrored(x: Array, phi: Array) -> tuple[Array, Array]:
    """The surface with some points of its images at the wall, before the first, and below the floor."""
    first, last = slice(BEYOND, 0, -1), slice(-2, -BEYOND - 2, -1)
    x = np.concatenate([x[first] * [-1, 1], x, x[last] * [1, -1]])
    return x, np.concatenate([phi[first], phi, phi[last]])


def splines(x: Array, phi: Array) -> tuple[CubicSpline, Array]:
    """Place (two columns) and potential along the surface, and where its points are."""
    every, values = mirrored(x, phi)
    s = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(every, axis=0).T))])
    s -= s[BEYOND]
    return CubicSpline(s, np.column_stack([every, values])), s[BEYOND:-BEYOND]


def influence(at: Array, begin: Array, end: Array) -> tuple[Array, Array, Array, Array]:
    """Integrals of G, then of dG/dn, with shapes that are 1 where an element begins, then where it ends."""
    along = end - begin
    length = np.hypot(*along.T)
    tangent = along / length[:, None]
    x, y = (at[:, k, None] - begin[:, k] for k in range(2))
    t, n = x * tangent[:, 0] + y * tangent[:, 1], y * tangent[:, 0] - x * tangent[:, 1]
    low, high, square, beside = -t, length - t, n * n, np.abs(n)
    logs = [np.log(np.maximum(u * u + square, 1e-300)) for u in (low, high)]
    angle = np.arctan2(beside * length, square + low * high)  # between the ends, as seen from there
    whole = 0.5 * (high * logs[1] - low * logs[0]) - length + beside * angle
    first = 0.25 * ((high**2 + square) * logs[1] - (low**2 + square) * logs[0] - (high**2 - low**2))
    slope, slope_first = -np.sign(n) * angle, -0.5 * n * (logs[1] - logs[0])
    ends, slope_ends = (first + t * whole) / length, (slope_first + t * slope) / length
    found = whole - ends, ends, slope - slope_ends, slope_ends
    return tuple(each / (2 * np.pi) for each in found)


def outflow(x: Array, phi: Array) -> Array:
    """Normal derivative of the potential at the points of the surface."""
    single, double = np.zeros((2, len(x), len(x)))
    for image in np.array([(1, 1), (-1, 1), (1, -1), (-1, -1)]):
        each = influence(x, image * x[:-1], image * x[1:])
        for matrix, shapes, sign in ((single, each[:2], 1), (double, each[2:], np.prod(image))):
            matrix[:, :-1] += sign * shapes[0]
            matrix[:, 1:] += sign * shapes[1]
    return np.asarray(np.linalg.solve(single, double @ phi - double.sum(axis=1) * phi))


def rates(x: Array, phi: Array) -> tuple[Array, Array, float]:
    """dx/dt and dphi/dt of the points, and the energy of the column."""
    both, s = splines(x, phi)
    slope, change = np.split(both(s, 1), [2], axis=1)
    size = np.hypot(*slope.T)[:, None]
    tangent, q = slope / size, outflow(x, phi)
    normal = np.stack([-tangent[:, 1], tangent[:, 0]], axis=1)
    u = q[:, None] * normal + change / size * tangent
    u[0, 0] = u[-1, 1] = 0.0
    lift = 0.5 * abs(np.trapezoid(x[:, 1] ** 2, x[:, 0]))
    return u, 0.5 * (u**2).sum(axis=1) - x[:, 1], 0.5 * float(np.trapezoid(phi * q, s)) + lift


def spread(x: Array, phi: Array, least: float) -> tuple[Array, Array]:
    """New points on the surface, `least` apart at the tip and a quarter of the height where it is thick."""
    both, s = splines(x, phi)
    fine = np.linspace(0.0, s[-1], 4000)
    step = np.clip(0.25 * both(fine)[:, 1] + least, least, 5 * least)
    step = np.minimum(step, least + 0.2 * (s[-1] - fine))
    count = np.concatenate([[0.0], np.cumsum(np.diff(fine) * 0.5 * (1 / step[1:] + 1 / step[:-1]))])
    new = np.interp(np.linspace(0.0, count[-1], int(np.ceil(count[-1])) + 1), count, fine)
    found = both(new)
    return on_mirrors(found[:, :2]), found[:, 2]


def on_mirrors(x: Array) -> Array:
    """The same with its ends at the wall and on the floor."""
    x[0, 0] = x[-1, 1] = 0.0
    return x


def smoothed(x: Array, phi: Array) -> tuple[Array, Array]:
    """Without the waves of two points' length; those of many points stay to fourth order."""
    every = np.column_stack(mirrored(x, phi))
    inner = slice(BEYOND, -BEYOND)
    weights = np.array((-1, 4, 10, 4, -1)) / 16
    new = np.tensordot(weights, [np.roll(every, shift, axis=0) for shift in range(-2, 3)], 1)[inner]
    return on_mirrors(new[:, :2]), new[:, 2]


def dam_break(until: float, least: float) -> Array:
    """Rows of t sqrt(2 g / a), front / a, height at the wall / a, area / a^2 and energy / (g a^3).

    Until the time `until` in the first of these units; points are `least` a apart at the tip.
    """
    turn = np.linspace(np.pi / 2, 0, 12)
    corner = np.stack([1 - ROUND + ROUND * np.cos(turn), HEIGHT - ROUND + ROUND * np.sin(turn)], axis=1)
    top = np.stack([np.linspace(0, 1 - ROUND, 60)[:-1], np.full(59, HEIGHT)], axis=1)
    side = np.stack([np.ones(119), np.linspace(HEIGHT - ROUND, 0, 120)[1:]], axis=1)
    x = np.concatenate([top, corner, side])
    x, phi = spread(x, np.zeros(len(x)), least)
    time, step, rows = 0.0, 0, []
    while time < until / np.sqrt(2):
        u, f, energy = rates(x, phi)
        rows.append((time * np.sqrt(2), x[-1, 0], x[0, 1], abs(np.trapezoid(x[:, 1], x[:, 0])), energy))
        nearest = np.hypot(*np.diff(x, axis=0).T).min()
        dt = min(0.02, 0.4 * nearest / max(np.hypot(*u.T).max(), 0.05))
        stages = [(u, f)]
        for part in (0.5, 0.5, 1.0):
            u, f, _ = rates(x + part * dt * stages[-1][0], phi + part * dt * stages[-1][1])
            stages.append((u, f))
        weighted = [(dt / 6 * w, each) for w, each in zip((1, 2, 2, 1), stages, strict=True)]
        x, phi = (y + sum(w * each[k] for w, each in weighted) for k, y in enumerate((x, phi)))
        x = on_mirrors(x)
        time, step = time + dt, step + 1
        if step % 4 == 0:
            x, phi = smoothed(x, phi)
        x, phi = spread(x, phi, least)
    return np.array(rows)
