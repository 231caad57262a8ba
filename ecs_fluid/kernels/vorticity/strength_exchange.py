"""Diffusion by particle strength exchange: in physical units, and the articles' version in index space.

In physical units (`exchange`) the strength of particle p changes at the rate

    d alpha_p / dt = sum_q nu / eps_pq^2 (V_p alpha_q - V_q alpha_p) eta_eps(x_p - x_q),

with eps_pq^2 = (eps_p^2 + eps_q^2) / 2 and eta_eps(z) = eta(z / eps) / eps^d in d dimensions. With
rho = |z| / eps the kernel is eta = a (1 - rho^2 / R^2)^7 (order 2) or (a + b rho^2) exp(-rho^2) (order 4).
The sum of alpha over all particles is constant. Particles at the spacing h need eps / h >= 1.5: at eps = h
the quadrature error stalls convergence. Source: Degond and Mas-Gallic 1989. Moment conditions, reach and
errors of both kernels: docs/notes/vorticity.md. The articles' version is `index_exchange`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ecs_fluid.kernels.compiled import FAST
from ecs_fluid.kernels.compiled.lanes import (
    lane_sum,
    lanes_of,
    larger,
    load,
    smaller,
    spread,
    square_root,
    store,
    where_at_most,
)
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.wide_vectors import LANES, wide_vectors
from ecs_fluid.kernels.grids.grid import Grid
from ecs_fluid.kernels.grids.neighbours import (
    WIDTH,
    fill_lanes,
    fill_list,
    lane_groups,
    near_rows,
    packed,
    reach_columns,
    search_grid,
)
from ecs_fluid.kernels.grids.partition import partition

SHORT_WAVES = 1.003
"""s in `stable_step`: the fastest decay rate of any wave, relative to the rate that the whole integral of the
kernel gives."""

SHORT_WAVES_OF_CELLS = 4 / 3
"""s in index space, relative to the sum of the falloff over all neighbours. Under a whole Gaussian no wave
decays faster than at that sum. Under one that is cut off behind the neighbouring cells a wave can: at worst
all weights are equal, and for the wave that changes sign from one layer of cells to the next the weights add
up to 1 - 2 where the sum is 1 + 2, so it decays at 1 + 1/3 of the sum."""

_INDEX_CUTOFF = 20.25
"""Exponent beyond which the index-space falloff counts as 0: exp(-20.25) = 1.6e-9."""

# exp(-t) = (exp(-t / 32))^32 for 0 <= t <= 20.48, by a Taylor polynomial of degree 8 about t / 32 = 0.32:
# relative error 3e-9. A library exponential would be called once per pair; this vectorises.
_CENTRE, _SQUARINGS = 0.32, 5
_TAYLOR = [math.exp(-_CENTRE) * (-1) ** k / math.factorial(k) for k in range(9)]


def _exponential_constants(dtype: np.dtype) -> tuple[float, ...]:
    """Coefficients for ``_exp_minus`` in the dtype of the particles, so that float32 stays float32."""
    return tuple(dtype.type(v) for v in (*_TAYLOR, 2.0**-_SQUARINGS, _CENTRE))


@njit(fastmath=FAST, error_model="numpy", forceinline=True)
def _exp_minus(t: Any, e: tuple[Any, ...]) -> Any:
    """exp(-t) for 0 <= t <= 20.48; ``t`` is a number or lanes, ``e`` is from `_exponential_constants`."""
    y = t * e[9] - e[10]
    p = e[8] * y + e[7]
    p = p * y + e[6]
    p = p * y + e[5]
    p = p * y + e[4]
    p = p * y + e[3]
    p = p * y + e[2]
    p = p * y + e[1]
    p = p * y + e[0]
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    return p * p


@njit(fastmath=FAST, error_model="numpy", forceinline=True)
def _in_lanes(exp: tuple[Any, ...]) -> tuple[Any, ...]:
    """The constants of ``_exp_minus``, each repeated in all lanes."""
    return (
        spread(exp[0]), spread(exp[1]), spread(exp[2]), spread(exp[3]), spread(exp[4]), spread(exp[5]),
        spread(exp[6]), spread(exp[7]), spread(exp[8]), spread(exp[9]), spread(exp[10]),
    )  # fmt: skip


LEAST_EXPONENT = -100
"""Values are scaled up by at most 2^100, which single precision holds."""


def cutoff(order: int, dimension: int = 3) -> float:
    """Reach R of the kernel in units of eps: eta is 0 beyond."""
    return math.sqrt(dimension / 2 + 9) if order == 2 else 4.5


def kernel_integral(order: int, dimension: int = 3) -> float:
    """Integral of eta over all of space, without unit."""
    return 4.0 * (dimension + 16) / (dimension + 18) if order == 2 else 8.0


def _factors(order: int, dimension: int) -> tuple[float, float]:
    """The factors a and b of eta: a (1 - rho^2 / R^2)^7 (b is 0), or (a + b rho^2) exp(-rho^2)."""
    d = dimension
    if order == 4:
        return 2.0 * (d + 4) / math.pi ** (d / 2), -4.0 / math.pi ** (d / 2)
    # int (1 - s^2)^7 over the unit ball of d dimensions.
    ball = math.pi ** (d / 2) * math.gamma(8) / math.gamma(8 + d / 2)
    return kernel_integral(2, d) / (ball * cutoff(2, d) ** d), 0.0


def falloff(order: int, square: np.ndarray, dimension: int) -> np.ndarray:
    """eta at the values ``square`` of rho^2, where rho = |z| / eps; same shape as ``square``."""
    end, (a, b) = cutoff(order, dimension), _factors(order, dimension)
    eta = a * np.maximum(1 - square / end**2, 0) ** 7 if order == 2 else (a + b * square) * np.exp(-square)
    return np.asarray(np.where(square < end**2, eta, 0.0))


def part_of_viscosity(order: int, spacings: float, dimension: int = 3) -> float:
    """Fraction of the viscosity that acts on long waves among particles on a lattice of spacing h.

    ``spacings`` is eps / h. Returns the sum h^d sum_q z_x^2 eta_eps(z_q) / (2 eps^2) over the lattice; as an
    integral over space it would be 1. It holds for waves much longer than eps. 0 if no neighbour is within
    reach.
    """
    end = cutoff(order, dimension)
    most = min(int(end * spacings), 24)  # with more layers the sum is 1 to many digits
    if end * spacings > most + 1:
        return 1.0
    axis = np.arange(-most, most + 1) / spacings
    z = np.stack(np.meshgrid(*[axis] * dimension, indexing="ij")).reshape(dimension, -1)
    square = (z**2).sum(axis=0)
    near = square < end**2
    along, eta = z[0, near] ** 2, falloff(order, square[near], dimension)
    return float((along * eta).sum() / (2.0 * spacings**dimension))


@njit(fastmath=FAST, error_model="numpy")
def _exchange_of_targets(
    rows: np.ndarray, near: np.ndarray, number: int, targets: np.ndarray, column: int, three: bool,
    limit: float, a: float, b: float, smooth: bool, planar: bool, uniform: bool, exp: tuple, sums: np.ndarray,
) -> None:  # fmt: skip
    """Loss and gain of one target per lane from the first ``number`` of the rows ``near``.

    With w_q = eta(rho) / eps_pq^(d+2), ``sums`` gets the loss sum_q w_q V_q of each lane, then the gain
    sum_q w_q (V_p value_q - V_q value_p) of the value in ``column``, and with ``three`` the gains of the next
    two columns. ``targets`` holds x, y, z, eps^2, volume and up to three values, one width of lanes each.
    ``smooth`` means order 4, ``planar`` two dimensions, ``uniform`` that all eps are equal. ``limit`` is R^2
    at order 4 and 1 / R^2 at order 2, with R the reach in units of eps.
    """
    wide_vectors()
    kind, width = rows.dtype.type, lanes_of(rows)
    zero, half, one = spread(kind(0)), spread(kind(0.5)), spread(kind(1))
    px, py, pz = load(targets, 0), load(targets, width), load(targets, 2 * width)
    pe, pv, first = load(targets, 3 * width), load(targets, 4 * width), load(targets, 5 * width)
    second, third = load(targets, 6 * width), load(targets, 7 * width)
    end, height, slope = spread(limit), spread(a), spread(b)
    e = _in_lanes(exp)
    inverse = one / pe
    fall = inverse * end
    lost = gain = gain_2 = gain_3 = zero
    for k in range(number):
        q = near[k]
        dx, dy, dz = spread(rows[q, 0]) - px, spread(rows[q, 1]) - py, spread(rows[q, 2]) - pz
        r2 = dx * dx + dy * dy + dz * dz
        if not uniform:
            size = spread(rows[q, 3])
            inverse = one / (half * (pe + size * size))
            fall = inverse * end
        if smooth:
            t = r2 * inverse
            w = where_at_most(t, end, (height + slope * t) * _exp_minus(smaller(t, end), e))
        else:
            u = larger(one - r2 * fall, zero)
            u2 = u * u
            w = (u2 * u2) * (u2 * u)
        if not uniform:
            w = w * inverse * inverse
            if not planar:
                w = w * square_root(inverse)
        # Add up differences, not gains and losses apart. In a uniform field the two products of a difference
        # are equal, so only the rounding of one is left (the other is fused with the subtraction), and
        # nothing where it is exact. Two sums apart would leave the rounding of sums.
        volume = spread(rows[q, 4])
        lost += w * volume
        gain += w * (pv * spread(rows[q, column]) - volume * first)
        if three:
            gain_2 += w * (pv * spread(rows[q, column + 1]) - volume * second)
            gain_3 += w * (pv * spread(rows[q, column + 2]) - volume * third)
    # Factors that all pairs of a target share are applied once, after the loop.
    common = one
    if not smooth:
        common = height
    if uniform:
        common = common * inverse * inverse
        if not planar:
            common = common * square_root(inverse)
    store(sums, 0, common * lost)
    store(sums, width, common * gain)
    store(sums, 2 * width, common * gain_2)
    store(sums, 3 * width, common * gain_3)


@parallel(fastmath=FAST, error_model="numpy")
def _exchange(
    chunk: int,
    rows: np.ndarray, start: np.ndarray, origin: np.ndarray, spacing: np.ndarray, cells: np.ndarray,
    columns: np.ndarray, widest: float, begin: int, behind: int, rated: np.ndarray, limit: float, a: float,
    b: float, smooth: bool, planar: bool, uniform: bool, exp: tuple, rate: np.ndarray, loss: np.ndarray,
) -> None:  # fmt: skip
    """Fill ``rate`` (n, k) and ``loss`` (n,) of the rows begin:behind: sums over the sources within reach.

    ``rows`` (n, 5 + k) are x, y, z, eps, volume and k values. Groups of which no row is ``rated`` (n,) are
    left out. ``columns`` and ``widest`` are the results of `reach_columns`. ``a`` and ``b`` contain the
    diffusivity as a factor; ``begin`` and ``behind`` are as in `RatedRows`, the flags and ``limit`` as in
    `_exchange_of_targets`.
    """
    last_column, width = rows.shape[1], lanes_of(rows)
    runs, box = np.empty((cells[0] * cells[1], 2), np.int64), np.empty((2, 3), columns.dtype)
    near = np.empty(len(rows) + width, np.uint32)
    targets, sums = np.zeros(8 * width, rows.dtype), np.empty(4 * width, rows.dtype)
    for p, end in lane_groups(chunk, begin, behind, start, cells[2], width):
        wanted = False
        for t in range(p, end):
            wanted |= rated[t]
        if not wanted:
            continue
        number = near_rows(columns, p, end, start, origin, spacing, cells, widest, box, runs, near)
        column = 5
        while column < last_column:
            values = 3 if column + 3 <= last_column else 1
            fill_lanes(rows, p, end, 0, 5, 0, targets)
            fill_lanes(rows, p, end, column, values, 5, targets)
            for lane in range(3 * width, 4 * width):
                targets[lane] *= targets[lane]  # eps^2
            _exchange_of_targets(
                rows, near, number, targets, column, values == 3, limit, a, b, smooth, planar, uniform,
                exp, sums,
            )  # fmt: skip
            for t in range(p, end):
                loss[t] = sums[t - p]
                for c in range(values):
                    rate[t, column - 5 + c] = sums[(1 + c) * width + t - p]
            column += values


class RatedRows(NamedTuple):
    """Which of the cell-sorted rows of this process get a rate, if several processes share the particles."""

    begin: int
    """first row that gets a rate; the rows before it are only sources"""
    behind: int
    """row behind the last that gets a rate; it and all after it are only sources"""
    uniform: bool
    """whether eps is the same for all particles, those of other processes included"""


def exchange(
    rows: np.ndarray, start: np.ndarray, grid: Grid, viscosity: float, rate: np.ndarray, loss: np.ndarray,
    order: int = 2, dimension: int = 3, part: RatedRows | None = None, rated: np.ndarray | None = None,
) -> None:  # fmt: skip
    """Rate of change of extensive quantities by diffusion between cell-sorted particles.

    ``rows`` (n, 5 + k): positions [m], exchange length eps [m], volume [m^3, or m^2 if ``dimension`` is 2]
    and any k extensive quantities (strength, temperature times volume), as ``packed`` makes them. ``start``
    and ``grid`` (origin, spacing, cells) belong to the same ``partition``. Any cell size gives the right
    result; a `stacked` grid with cells of about half the cutoff is fastest. ``viscosity`` is nu in m^2/s (or
    any diffusivity), ``order`` is 2 or 4.

    Overwrites ``rate`` (n, k), in the unit of the values per second, and ``loss`` (n,) 1/s. The loss is the
    rate nu sum_q V_q eta_eps / eps_pq^2 at which a particle gives away its own value; ``stable_step`` needs
    it. With ``part``, ``rows`` holds only the particles of some cells (all other cells of ``start`` are
    empty), and only the rows of ``part`` get a rate. It has the same bits as with all particles at hand,
    since every sum runs through its sources in the same order. Rows that are not ``rated`` (n,), such as
    images, are sources: most of them are left as they come.
    """
    if len(rows) == 0:
        return
    kind = rows.dtype.type
    a, b = _factors(order, dimension)
    e2, end = rows[:, 3] * rows[:, 3], cutoff(order, dimension)
    if part is None:
        part = RatedRows(0, len(rows), bool(e2.min() == e2.max()))
    # By a power of two, which rounds nothing: products of small drops' strengths and volumes are below the
    # least number of single precision.
    exponent = max(math.frexp(float(np.abs(rows[:, 5:]).max(initial=0.0)))[1], LEAST_EXPONENT)
    rows = rows.copy()
    rows[:, 5:] *= kind(2.0**-exponent)
    if rated is None:
        rated = np.ones(len(rows), bool)
    _exchange(
        rows, start, *grid, *reach_columns(rows, kind(end**2) * e2), part.begin, part.behind, rated,
        kind(end ** (-2 if order == 2 else 2)), kind(a * viscosity), kind(b * viscosity), order == 4,
        dimension == 2, part.uniform, _exponential_constants(rows.dtype), rate, loss,
    )  # fmt: skip
    rate *= kind(2.0**exponent)


def reach_of(widest: np.floating, order: int, dimension: int) -> float:
    """Distance [m] within which pairs are tested, where ``widest`` is the largest eps [m].

    It lies a little beyond the cutoff, so that a pair at the cutoff is found from both sides or from neither.
    """
    return cutoff(order, dimension) * math.sqrt(float(widest * widest)) * (1.0 + 1e-5)


def exchange_rows(
    x: np.ndarray, values: np.ndarray, eps: np.ndarray, volume: np.ndarray, viscosity: float, order: int = 2,
    dimension: int = 3, rated: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """``exchange`` of particles in table order; returns (rate in the shape of ``values``, loss (n,) 1/s).

    ``x`` (n, 3) m, ``values`` (n, k) or (n,), ``eps`` (n,) m, ``volume`` (n,) m^3 or m^2. The function sorts
    the particles on a grid of its own, with cells of half the cutoff.
    """
    rate, loss = np.empty_like(values), np.empty_like(eps)
    if len(x) == 0:
        return rate, loss
    grid = search_grid(x, *exchange_cells(float(eps.max()), len(x), order, dimension))
    start, place = partition(x, *grid)
    rows = packed(x, eps, volume, values).take(place, axis=0)
    amounts, lost = np.zeros((len(x), rows.shape[1] - 5), x.dtype), np.zeros_like(eps)
    wanted = None if rated is None else rated[place]
    exchange(rows, start, grid, viscosity, amounts, lost, order, dimension, rated=wanted)
    rate.reshape(amounts.shape)[place], loss[place] = amounts, lost
    return rate, loss


def exchange_cells(widest: float, count: int, order: int = 2, dimension: int = 3) -> tuple[float, int]:
    """Edge of cells [m], half the cutoff, and largest number of cells: the two arguments of `search_grid`.

    ``widest`` is the largest eps [m], ``count`` the number of particles.
    """
    return cutoff(order, dimension) * widest / 2, max(count, 64)


def stable_step(loss: np.ndarray, short_waves: float = SHORT_WAVES) -> float:
    """Largest stable explicit Euler step [s] for the particles as they lie: 2 / (s max(loss)).

    A wave k on evenly spread particles decays at nu / eps^2 (int eta - eta_hat(k)), and Euler is stable while
    rate times dt <= 2. At order 4 the transform eta_hat is never negative. At order 2 it is
    2^v v! J_v(k R) / (k R)^v int eta with v = 7 + d/2, at least -0.0019 (2-D) or -0.0015 (3-D) of the
    integral: s = `SHORT_WAVES` covers both. ``short_waves`` is s; in index space pass `SHORT_WAVES_OF_CELLS`.
    ``loss`` (n,) 1/s has the real sums over particles in the place of int eta. So the step also holds where
    particles crowd, and at free edges, where order 4 misses a part of its negative lobe and loses about 1 %
    more. Infinite if nothing is exchanged.
    """
    largest = float(loss.max(initial=0.0))
    return 2.0 / (short_waves * largest) if largest > 0.0 else math.inf


@njit(fastmath=FAST, error_model="numpy")
def _add_exchanged(
    data: np.ndarray, p: int, near: np.ndarray, count: int, falloff: float, limit: float, exp: tuple,
    w: np.ndarray, gain: np.ndarray, loss: np.ndarray,
) -> None:  # fmt: skip
    """Add the sums over the first ``count`` neighbours of a list to column p of ``gain`` and ``loss``.

    ``gain`` (k, n) gets f_pq (values_q - values_p), ``loss`` (n,) gets f_pq. ``data`` and ``near`` have the
    columns x, y, z, size^2 / 2 (the mean square of a pair is then a sum), a 1, and the k values. The end of a
    list is filled up with zeros; the 0 in place of the 1 makes f 0 there. ``w`` (WIDTH,) is scratch.
    """
    wide_vectors()
    width = lanes_of(near)
    px, py, pz, own = spread(data[0, p]), spread(data[1, p]), spread(data[2, p]), spread(data[3, p])
    fall, end = spread(falloff), spread(limit)
    e, lost = _in_lanes(exp), spread(near.dtype.type(0))
    for q in range(0, count, width):
        dx, dy, dz = load(near, q) - px, load(near, WIDTH + q) - py, load(near, 2 * WIDTH + q) - pz
        t = (dx * dx + dy * dy + dz * dz) * (fall / (load(near, 3 * WIDTH + q) + own))
        f = where_at_most(t, end, load(near, 4 * WIDTH + q) * _exp_minus(smaller(t, end), e))
        lost += f
        store(w, q, f)
    loss[p] += lane_sum(lost)
    for c in range(gain.shape[0]):
        value, total = spread(data[5 + c, p]), spread(near.dtype.type(0))
        for q in range(0, count, width):
            total += load(w, q) * (load(near, (5 + c) * WIDTH + q) - value)
        gain[c, p] += lane_sum(total)


@parallel("cells[0] * cells[1]", fastmath=FAST, error_model="numpy")
def _index_exchange(
    column: int, data: np.ndarray, start: np.ndarray, cells: np.ndarray, twice_nu: float, decay: float,
    falloff: float, limit: float, exp: tuple, rate: np.ndarray, loss: np.ndarray,
) -> None:  # fmt: skip
    """Fill ``rate`` (k, n) and ``loss`` (n,) of the particles in one ``column`` of cells along z.

    ``data`` (5 + k, n + LANES) has the columns that `_add_exchanged` describes, ``start`` and ``cells`` are
    those of ``partition``. ``falloff`` is 1 / reach^2, ``limit`` the exponent beyond which f is 0, ``decay``
    the rate 1/s of the dissipation.
    """
    m, (nx, ny, nz) = rate.shape[0], (cells[0], cells[1], cells[2])
    ci, cj = column // ny, column % ny
    near, w = np.empty(data.shape[0] * WIDTH, data.dtype), np.empty(WIDTH, data.dtype)
    runs = np.empty((9, 2), np.int64)
    for ck in range(nz):
        begin, end = start[column * nz + ck], start[column * nz + ck + 1]
        if begin == end:
            continue
        number, run = 0, 0
        for i in range(max(ci - 1, 0), min(ci + 2, nx)):
            for j in range(max(cj - 1, 0), min(cj + 2, ny)):
                row = (i * ny + j) * nz
                runs[number, 0], runs[number, 1] = start[row + max(ck - 1, 0)], start[row + min(ck + 2, nz)]
                number += 1
        rate[:, begin:end] = loss[begin:end] = 0
        while run < number:
            count, run = fill_list(data, runs, number, run, near)
            for p in range(begin, end):
                _add_exchanged(data, p, near, count, falloff, limit, exp, w, rate, loss)
        for p in range(begin, end):
            for c in range(m):
                rate[c, p] = twice_nu * rate[c, p] - decay * data[5 + c, p]
            loss[p] = twice_nu * loss[p] + decay


def index_exchange(
    sx: np.ndarray, values: np.ndarray, size: np.ndarray, start: np.ndarray, cells: np.ndarray,
    viscosity: float, rate: np.ndarray, loss: np.ndarray, reach: float = 2.0, dissipation: bool = False,
) -> None:  # fmt: skip
    """The articles' diffusion: exchange between particles of neighbouring cells, with a rate ``viscosity``.

    d alpha_p / dt = sum_q 2 nu f_pq (alpha_q - alpha_p)  [- nu alpha_p with ``dissipation``],
    f_pq = exp(-d^2 / (reach size_pq)^2), size_pq^2 = (size_p^2 + size_q^2) / 2, so reach = 2 is
    exp(-d^2 / (4 size^2)). The sum runs over the particles in the cell of p and the 26 cells around it.

    ``sx`` (3, n) m and ``values`` (k, n) are sorted by cell; values may be intensive or extensive, since all
    particles weigh the same. ``size`` (n,) m is the diameter, ``start`` and ``cells`` are of ``partition``,
    ``viscosity`` is nu in 1/s. Overwrites ``rate`` (k, n), in the unit of values per second, and ``loss``
    (n,) 1/s, which is 2 nu sum_q f_pq [+ nu], with p itself in the sum. The total of each value is constant,
    except that ``dissipation`` makes it decay at the rate nu.
    Source: Fluid Simulation for Video Games, parts 3 and 12, with the full symmetric stencil in place of the
    three to seven forward neighbours there. This is a look, not a viscosity in m^2/s: the diffusivity depends
    on how many particles a cell holds, unless the falloff ends well inside the neighbouring cells.
    """
    kind, n = sx.dtype.type, sx.shape[1]
    data = np.zeros((5 + len(values), n + LANES), sx.dtype)
    data[:3, :n], data[3, :n], data[4, :n], data[5:, :n] = sx, kind(0.5) * size * size, 1, values
    _index_exchange(
        data, start, cells, kind(2.0 * viscosity), kind(viscosity if dissipation else 0.0),
        kind(1.0 / (reach * reach)), kind(_INDEX_CUTOFF), _exponential_constants(sx.dtype), rate, loss,
    )  # fmt: skip
