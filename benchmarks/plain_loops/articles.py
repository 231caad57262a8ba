"""The method of the article series in plain loops.

They do what the code of Fluid Simulation for Video Games does (parts 3 to 13), in single precision: a grid of
about one cell a vorton around all particles, a nested grid of supervortons, its sum at the points of the grid
by the test of the box, velocities spread to core radii of two cells (part 12), trilinear reading everywhere,
half the transposed stretching, exchange with the vortons of the same and the next three cells, density and
species on the grid, combustion in each vorton, impulses on balls, explicit Euler. They run over particles or
layers of the grid on all threads where the article's do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit, prange

serial = njit(fastmath=True, error_model="numpy")
shared = njit(fastmath=True, error_model="numpy", parallel=True)

Array = np.ndarray[Any, Any]
MOLLIFIED, MARGIN, STRETCHED = 2.0, 1e-4, 0.5


@shared
def bounds(x: Array) -> Array:
    """Least and largest coordinates, over fixed parts in parallel."""
    parts = 64
    found = np.empty((parts, 2, 3), np.float32)
    for part in prange(parts):
        low = np.full(3, np.float32(np.inf))
        high = np.full(3, np.float32(-np.inf))
        for i in range(part * len(x) // parts, (part + 1) * len(x) // parts):
            for k in range(3):
                low[k] = min(low[k], x[i, k])
                high[k] = max(high[k], x[i, k])
        found[part, 0] = low
        found[part, 1] = high
    for part in range(1, parts):
        for k in range(3):
            found[0, 0, k] = min(found[0, 0, k], found[part, 0, k])
            found[0, 1, k] = max(found[0, 1, k], found[part, 1, k])
    return found[0]


def cells(n: int, extent: Array) -> Array:
    """Cells along each axis, powers of two, about one a vorton."""
    edge = (np.prod(extent) / n) ** (1 / 3)
    count = 2 ** np.maximum(0, np.rint(np.log2(np.maximum(1, extent / edge)))).astype(np.int64)
    while np.prod(count) >= 8 * n:
        count = np.maximum(1, count // 2)
    return count


@serial
def supervortons(
    x: Array, alpha: Array, low: Array, width: Array, dims: Array, first: Array, a: Array, c: Array
) -> None:
    """Strengths and centres of all nodes, layer by layer from the leaves."""
    a[:] = 0.0
    c[:] = 0.0
    weight = np.full(len(a), np.float32(1e-30))
    for i in range(len(x)):
        node = 0
        for k in range(2, -1, -1):
            node = node * dims[0, k] + min(int((x[i, k] - low[k]) / width[k]), dims[0, k] - 1)
        size = math.sqrt(alpha[i, 0] ** 2 + alpha[i, 1] ** 2 + alpha[i, 2] ** 2)
        weight[node] += size
        for k in range(3):
            a[node, k] += alpha[i, k]
            c[node, k] += size * x[i, k]
    for layer in range(len(dims) - 1):
        nx, ny, nz = dims[layer]
        px, py = nx // dims[layer + 1, 0], ny // dims[layer + 1, 1]
        pz = nz // dims[layer + 1, 2]
        for z in range(nz):
            for y in range(ny):
                for q in range(nx):
                    node = first[layer] + (z * ny + y) * nx + q
                    above = (z // pz * dims[layer + 1, 1] + y // py) * dims[layer + 1, 0] + q // px
                    parent = first[layer + 1] + above
                    weight[parent] += weight[node]
                    for k in range(3):
                        a[parent, k] += a[node, k]
                        c[parent, k] += c[node, k]
    for node in range(len(a)):
        for k in range(3):
            c[node, k] /= weight[node]


@shared
def sums_at_points(
    low: Array, width: Array, dims: Array, first: Array, a: Array, c: Array, radius: float, u: Array
) -> None:
    """Velocity at the points of the grid: a node is opened where the point lies in its box."""
    layers = len(dims)
    inner, square = np.float32(1 / radius**3), np.float32(radius**2)
    for z in prange(dims[0, 2] + 1):
        stack = np.empty((8 * layers, 4), np.int64)
        for y in range(dims[0, 1] + 1):
            for x in range(dims[0, 0] + 1):
                p0, p1, p2 = low[0] + x * width[0], low[1] + y * width[1], low[2] + z * width[2]
                s0 = s1 = s2 = np.float32(0)
                stack[0] = 0
                stack[0, 0] = layers - 1
                depth = 1
                while depth:
                    depth -= 1
                    layer, i, j, k = stack[depth]
                    layer = layer - 1
                    f0 = dims[layer, 0] // dims[layer + 1, 0]
                    f1 = dims[layer, 1] // dims[layer + 1, 1]
                    f2 = dims[layer, 2] // dims[layer + 1, 2]
                    w0 = width[0] * dims[0, 0] / dims[layer, 0]
                    w1 = width[1] * dims[0, 1] / dims[layer, 1]
                    w2 = width[2] * dims[0, 2] / dims[layer, 2]
                    for e in range(k * f2, k * f2 + f2):
                        for d in range(j * f1, j * f1 + f1):
                            for b in range(i * f0, i * f0 + f0):
                                g0, g1, g2 = (
                                    (p0 - low[0]) / w0 - b,
                                    (p1 - low[1]) / w1 - d,
                                    (p2 - low[2]) / w2 - e,
                                )
                                inside = min(g0, g1, g2) >= -MARGIN and max(g0, g1, g2) <= 1 + MARGIN
                                if layer > 0 and inside:
                                    stack[depth, 0] = layer
                                    stack[depth, 1] = b
                                    stack[depth, 2] = d
                                    stack[depth, 3] = e
                                    depth += 1
                                    continue
                                node = first[layer] + (e * dims[layer, 1] + d) * dims[layer, 0] + b
                                r0, r1, r2 = p0 - c[node, 0], p1 - c[node, 1], p2 - c[node, 2]
                                rr = r0 * r0 + r1 * r1 + r2 * r2
                                near = np.float32(1) / math.sqrt(max(rr, np.float32(1e-30)))
                                g = inner if rr < square else near * near * near
                                s0 += (a[node, 1] * r2 - a[node, 2] * r1) * g
                                s1 += (a[node, 2] * r0 - a[node, 0] * r2) * g
                                s2 += (a[node, 0] * r1 - a[node, 1] * r0) * g
                scale = np.float32(1 / (4 * math.pi))
                u[z, y, x, 0] = s0 * scale
                u[z, y, x, 1] = s1 * scale
                u[z, y, x, 2] = s2 * scale


@serial
def corner(
    x: Array, i: int, low: Array, width: Array, last: Array
) -> tuple[int, int, int, float, float, float]:
    """Least corner of the cell of a particle and its place within, each in 0 to 1."""
    p0, p1, p2 = (x[i, 0] - low[0]) / width[0], (x[i, 1] - low[1]) / width[1], (x[i, 2] - low[2]) / width[2]
    c0 = min(max(int(p0), 0), last[0])
    c1 = min(max(int(p1), 0), last[1])
    c2 = min(max(int(p2), 0), last[2])
    return c0, c1, c2, min(max(p0 - c0, 0.0), 1.0), min(max(p1 - c1, 0.0), 1.0), min(max(p2 - c2, 0.0), 1.0)


@shared
def read(x: Array, low: Array, width: Array, last: Array, grid: Array, out: Array) -> None:
    """Trilinear reading of a few numbers a point."""
    for i in prange(len(x)):
        c0, c1, c2, t0, t1, t2 = corner(x, i, low, width, last)
        for k in range(grid.shape[3]):
            near = (grid[c2, c1, c0, k] * (1 - t0) + grid[c2, c1, c0 + 1, k] * t0) * (1 - t1)
            near += (grid[c2, c1 + 1, c0, k] * (1 - t0) + grid[c2, c1 + 1, c0 + 1, k] * t0) * t1
            far = (grid[c2 + 1, c1, c0, k] * (1 - t0) + grid[c2 + 1, c1, c0 + 1, k] * t0) * (1 - t1)
            far += (grid[c2 + 1, c1 + 1, c0, k] * (1 - t0) + grid[c2 + 1, c1 + 1, c0 + 1, k] * t0) * t1
            out[i, k] = near * (1 - t2) + far * t2


@serial
def scatter(x: Array, values: Array, low: Array, width: Array, last: Array, grid: Array) -> None:
    """The transpose of reading: what particles have is shared among the corners of their cells."""
    grid[:] = 0.0
    for i in range(len(x)):
        c0, c1, c2, t0, t1, t2 = corner(x, i, low, width, last)
        for e in range(2):
            for d in range(2):
                for b in range(2):
                    w = (t0 if b else 1 - t0) * (t1 if d else 1 - t1) * (t2 if e else 1 - t2)
                    for k in range(values.shape[1]):
                        grid[c2 + e, c1 + d, c0 + b, k] += w * values[i, k]


@shared
def derivatives(grid: Array, width: Array, out: Array) -> None:
    """Derivatives of the numbers of each point, by axis: central, one-sided on the faces."""
    nz, ny, nx, numbers = grid.shape
    for z in prange(nz):
        for y in range(ny):
            for x in range(nx):
                x0, x1 = max(x - 1, 0), min(x + 1, nx - 1)
                y0, y1 = max(y - 1, 0), min(y + 1, ny - 1)
                z0, z1 = max(z - 1, 0), min(z + 1, nz - 1)
                for k in range(numbers):
                    out[z, y, x, k] = (grid[z, y, x1, k] - grid[z, y, x0, k]) / ((x1 - x0) * width[0])
                    out[z, y, x, numbers + k] = (grid[z, y1, x, k] - grid[z, y0, x, k]) / (
                        (y1 - y0) * width[1]
                    )
                    out[z, y, x, 2 * numbers + k] = (grid[z1, y, x, k] - grid[z0, y, x, k]) / (
                        (z1 - z0) * width[2]
                    )


@shared
def stretch(alpha: Array, du: Array, dt: float) -> None:
    """Half the transposed stretching: d(alpha_i) = rate dt du_k/dx_i alpha_k."""
    for i in prange(len(alpha)):
        a0, a1, a2 = alpha[i, 0], alpha[i, 1], alpha[i, 2]
        for k in range(3):
            rate = du[i, 3 * k] * a0 + du[i, 3 * k + 1] * a1 + du[i, 3 * k + 2] * a2
            alpha[i, k] += np.float32(STRETCHED * dt) * rate


@shared
def baroclinic(alpha: Array, slope: Array, pull: Array, volume: Array, dt: float) -> None:
    """Strength from the slope of the density, grad(rho) x g / rho_0."""
    for i in prange(len(alpha)):
        d0, d1, d2 = slope[i, 0], slope[i, 1], slope[i, 2]
        scale = volume[i] * np.float32(dt)
        alpha[i, 0] += (d1 * pull[2] - d2 * pull[1]) * scale
        alpha[i, 1] += (d2 * pull[0] - d0 * pull[2]) * scale
        alpha[i, 2] += (d0 * pull[1] - d1 * pull[0]) * scale


@serial
def sorted_into_cells(x: Array, low: Array, width: Array, count: Array, start: Array, order: Array) -> None:
    """Lists of the vortons of each cell, one after the other."""
    start[:] = 0
    cell = np.empty(len(x), np.int64)
    for i in range(len(x)):
        node = 0
        for k in range(2, -1, -1):
            node = node * count[k] + min(max(int((x[i, k] - low[k]) / width[k]), 0), count[k] - 1)
        cell[i] = node
        start[node + 1] += 1
    for node in range(len(start) - 1):
        start[node + 1] += start[node]
    free = start.copy()
    for i in range(len(x)):
        order[free[cell[i]]] = i
        free[cell[i]] += 1


@serial
def exchanged(i: int, j: int, x: Array, values: Array, rate: float, falloff: float) -> None:
    """What two vortons give each other, less with their distance."""
    square = (x[i, 0] - x[j, 0]) ** 2 + (x[i, 1] - x[j, 1]) ** 2 + (x[i, 2] - x[j, 2]) ** 2
    part = min(np.float32(rate) * math.exp(-square * np.float32(falloff)), np.float32(0.5))
    for k in range(values.shape[1]):
        given = part * (values[j, k] - values[i, k])
        values[i, k] += given
        values[j, k] -= given


@shared
def diffuse(
    x: Array, values: Array, count: Array, start: Array, order: Array, rate: float, falloff: float
) -> None:
    """Exchange with later vortons of the same cell and with those of the next along each axis.

    Even layers, then odd ones; what is exchanged with empty cells is lost.
    """
    nx, ny, nz = count
    for odd in range(2):
        for half in prange((nz - odd) // 2):
            z = 2 * half + odd
            for y in range(ny - 1):
                for c in range(nx - 1):
                    cell = (z * ny + y) * nx + c
                    for n in range(start[cell], start[cell + 1]):
                        i = order[n]
                        for m in range(n + 1, start[cell + 1]):
                            exchanged(i, order[m], x, values, rate, falloff)
                        for next_ in (cell + 1, cell + nx, cell + nx * ny):
                            for m in range(start[next_], start[next_ + 1]):
                                exchanged(i, order[m], x, values, rate, falloff)
                        for k in range(values.shape[1]):
                            values[i, k] *= np.float32(1 - 0.5 * rate)


@shared
def burn(species: Array, density: Array, rates: Array, ambient: float, dt: float) -> None:
    """Fuel to flame, flame to smoke; the temperature is that of the density, rho T = const."""
    for i in prange(len(species)):
        T = rates[5] * ambient / density[i, 0]
        gone = rates[3] * math.exp(-((T / rates[4]) ** 2)) * species[i, 1] * dt
        species[i, 1] -= min(gone, species[i, 1])
        burnt = min(rates[0] * math.exp(-rates[1] / T) * species[i, 0] * dt, species[i, 0])
        species[i, 0] -= burnt
        species[i, 1] += burnt
        species[i, 2] = max(0.0, 1 - species[i, 0] - species[i, 1])
        density[i, 0] = rates[5] * ambient / (T + rates[2] * burnt)


@shared
def move(x: Array, u: Array, dt: float) -> None:
    """Explicit Euler."""
    for i in prange(len(x)):
        for k in range(3):
            x[i, k] += np.float32(dt) * u[i, k]


@shared
def hit_tracers(x: Array, u: Array, center: Array, radius: float) -> Array:
    """Tracers leave a fixed ball and lose their speed into it; the impulse."""
    parts = 64
    impulse = np.zeros((parts, 3), np.float32)
    for part in prange(parts):
        for i in range(part * len(x) // parts, (part + 1) * len(x) // parts):
            d0, d1, d2 = x[i, 0] - center[0], x[i, 1] - center[1], x[i, 2] - center[2]
            r = math.sqrt(d0 * d0 + d1 * d1 + d2 * d2)
            if r < radius:
                into = min((u[i, 0] * d0 + u[i, 1] * d1 + u[i, 2] * d2) / r, 0.0)
                for k, d in enumerate((d0, d1, d2)):
                    u[i, k] -= into * d / r
                    impulse[part, k] += into * d / r
                    x[i, k] = center[k] + d * radius / r
    return impulse.sum(axis=0)


@shared
def hit_vortons(
    x: Array,
    u: Array,
    alpha: Array,
    density: Array,
    sigma: float,
    center: Array,
    radius: float,
    heat: Array,
) -> Array:
    """Vortons in contact with a ball: strength that takes a tenth of the slip; heat from the ball."""
    parts = 64
    torque = np.zeros((parts, 3), np.float32)
    for part in prange(parts):
        for i in range(part * len(x) // parts, (part + 1) * len(x) // parts):
            d0, d1, d2 = x[i, 0] - center[0], x[i, 1] - center[1], x[i, 2] - center[2]
            r = math.sqrt(d0 * d0 + d1 * d1 + d2 * d2)
            if r >= radius + 1.2 * sigma:
                continue
            n0, n1, n2 = d0 / r, d1 / r, d2 / r
            new = (
                4 * math.pi * sigma * sigma * (n1 * u[i, 2] - n2 * u[i, 1]),
                4 * math.pi * sigma * sigma * (n2 * u[i, 0] - n0 * u[i, 2]),
                4 * math.pi * sigma * sigma * (n0 * u[i, 1] - n1 * u[i, 0]),
            )
            for k in range(3):
                change = np.float32(0.1) * (new[k] - alpha[i, k])
                alpha[i, k] += change
                torque[part, k] -= 0.2 * sigma * sigma * change
            if r < radius + sigma:
                for k, n in enumerate((n0, n1, n2)):
                    x[i, k] = center[k] + n * (radius + sigma)
            T = heat[2] / density[i, 0]
            density[i, 0] = heat[2] / (T + heat[1] * (heat[0] - T))
    return torque.sum(axis=0)


@dataclass
class Article:
    """A flow that the article's method advances: vortons, tracers, and what they carry."""

    dt: float
    x: Array
    """(N, 3), m; vortons"""
    alpha: Array
    """(N, 3), m^3/s"""
    sigma: float
    """m"""
    volume: Array
    """(N,), m^3"""
    tracers: Array
    """(M, 3), m"""
    exchange: float = 0.0
    """part of the difference that two vortons exchange in a tick"""
    ambient: float = 1.0
    """density, kg/m^3"""
    gravity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """m/s^2"""
    density: Array | None = None
    """(N, 1), kg/m^3, where there is buoyancy"""
    species: Array | None = None
    """(N, 3), fuel, flame, smoke"""
    rates: tuple[float, ...] = ()
    """of combustion: A, T_a, Q/c_p, A_s, T_s, ambient temperature"""
    balls: list[tuple[Array, float, Array]] = field(default_factory=list)
    """centre, radius, (temperature, part exchanged, ambient rho T)"""

    def __post_init__(self) -> None:
        self.u, self.tracer_u = np.zeros_like(self.x), np.zeros_like(self.tracers)

    def grid(self) -> None:
        """Cells around all particles."""
        a, b = bounds(self.x), bounds(self.tracers)
        low = np.minimum(a[0], b[0]) - 3 * self.sigma
        high = np.maximum(a[1], b[1]) + 3 * self.sigma
        self.low, extent = low, (high - low) * np.float32(1 + 1e-5)
        self.count = cells(len(self.x), extent)
        self.width, self.last = (extent / self.count).astype(np.float32), self.count - 1
        self.points = tuple(int(n) + 1 for n in self.count[::-1])

    def field_velocity(self) -> None:
        """Velocity at the points of the grid, by the tree."""
        dims = [self.count]
        while dims[-1].max() > 1:
            dims.append(np.maximum(1, dims[-1] // 2))
        table = np.array(dims)
        nodes = table.prod(axis=1)
        first = np.cumsum(nodes) - nodes
        a, c = np.empty((nodes.sum(), 3), np.float32), np.empty((nodes.sum(), 3), np.float32)
        supervortons(self.x, self.alpha, self.low, self.width, table, first, a, c)
        radius = max(self.sigma, MOLLIFIED * float(np.prod(self.width)) ** (1 / 3))
        self.velocities = np.empty((*self.points, 3), np.float32)
        sums_at_points(self.low, self.width, table, first, a, c, radius, self.velocities)

    def taken(self, x: Array, grid: Array) -> Array:
        """Numbers of the grid at particles."""
        out = np.empty((len(x), grid.shape[3]), np.float32)
        read(x, self.low, self.width, self.last, grid, out)
        return out

    def scattered(self, values: Array) -> Array:
        """Numbers of vortons on the grid."""
        grid = np.empty((*self.points, values.shape[1]), np.float32)
        scatter(self.x, values, self.low, self.width, self.last, grid)
        return grid

    def slopes(self, grid: Array) -> Array:
        """Derivatives on the grid, by axis."""
        out = np.empty((*self.points, 3 * grid.shape[3]), np.float32)
        derivatives(grid, self.width, out)
        return out

    def carried(self) -> Array:
        """What is scattered to the grid: excess of density by volume, and the fractions with their weight."""
        assert self.density is not None
        excess = (self.density - self.ambient) * (self.volume / np.prod(self.width))[:, None]
        if self.species is None:
            return excess
        return np.c_[excess, self.species, np.ones(len(self.x), np.float32)].astype(np.float32)

    def evaluate(self) -> None:
        """Velocities of all particles."""
        self.grid()
        self.field_velocity()
        self.u = self.taken(self.x, self.velocities)
        self.tracer_u = self.taken(self.tracers, self.velocities)

    def step(self) -> None:
        """Advance by a tick."""
        self.grid()
        self.field_velocity()
        stretch(self.alpha, self.taken(self.x, self.slopes(self.velocities)), self.dt)
        start = np.empty(int(self.count.prod()) + 1, np.int64)
        order = np.empty(len(self.x), np.int64)
        sorted_into_cells(self.x, self.low, self.width, self.count, start, order)
        falloff = 1 / (8 * self.sigma) ** 2
        if self.density is not None:
            scalars = self.scattered(self.carried())
            slope = self.taken(self.x, self.slopes(scalars[..., :1]))
            pull = np.array(self.gravity, np.float32) / np.float32(self.ambient)
            baroclinic(self.alpha, slope, pull, self.volume, self.dt)
            if self.species is not None:
                burn(self.species, self.density, np.array(self.rates), self.ambient, self.dt)
            diffuse(self.x, self.density, self.count, start, order, self.exchange, falloff)
            self.seen = self.taken(self.tracers, scalars)
        diffuse(self.x, self.alpha, self.count, start, order, self.exchange, falloff)
        self.u = self.taken(self.x, self.velocities)
        self.tracer_u = self.taken(self.tracers, self.velocities)
        move(self.x, self.u, self.dt)
        move(self.tracers, self.tracer_u, self.dt)
        for center, radius, heat in self.balls:
            hit_tracers(self.tracers, self.tracer_u, center, radius)
            if self.density is not None:
                hit_vortons(self.x, self.u, self.alpha, self.density, self.sigma, center, radius, heat)
