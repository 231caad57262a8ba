"""How smooth the paths of vortons are: ``python benchmarks/jerk.py [picture.png]``, 5 minutes on two cores.

Two thick wavy rings of opposite circulation run into each other and break up. The same flow is run with every
way of getting the velocity, and the mean jerk |d^3 x / dt^3| over the vortons is recorded at every tick: the
study of Fluid Simulation for Video Games, part 12, figures 4 to 10. Every number is an average over runs in
which the lattice of the vortons is shifted by parts of a cell, and over the ticks after SETTLED. Below the
tables stand the claims of that part (J1 to J8) with what was found.

* ``articles``: solid cores of half a cell, one grid cell per vorton, half-rate stretching, exchange in index
  space. Vortons are the only thing that knows what happens inside a cell.
* ``resolved``: the package's defaults, cores of 1.5 spacings on a grid of two cells per core (``fine``:
  three), with the viscosity of a Reynolds number Gamma / nu of about 600.
"""

from __future__ import annotations

import time
import warnings
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

import ecs_fluid as ef
from ecs_fluid.components import Grid, Sources
from ecs_fluid.kernels.compiled.columns import bounds
from ecs_fluid.kernels.grids.grid import grid_points, uniform_grid
from ecs_fluid.kernels.grids.partition import partition
from ecs_fluid.kernels.poisson.poisson import vorticity_grid
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.tree import TreeSolver

Array = NDArray[Any]

TICKS, SETTLED, DT, SPACING, VISCOSITY = 200, 60, 1 / 30, 0.15, 5e-3
SHIFTS = ((0.31, 0.17, 0.23), (0.81, 0.57, 0.43), (0.11, 0.97, 0.73))
RUNS = {"articles": 3, "resolved": 2}
FINE = 3.0
"""Grid cells per core radius of the rows that are called fine."""
REFERENCE = "direct at vortons"

PLAIN_GRID: dict[str, Any] = {"at": "grid", "interpolation": "linear"}
"""Read between the points of the grid as in the articles."""

NESTED: dict[str, Any] = {
    "solver": "tree",
    "opening": "box",
    "leaf": "supervortons",
    "multipole": "monopole",
}
"""The articles' tree: a cluster acts whole unless the target lies in its box."""

ARTICLES: dict[str, dict[str, Any]] = {
    REFERENCE: {},
    "direct on grid": PLAIN_GRID,
    "direct on grid, mollify 1": {**PLAIN_GRID, "mollify": 1.0},
    "tree on grid": {**NESTED, **PLAIN_GRID},
    "tree at vortons, clusters": NESTED,
    "tree at vortons, originals": {**NESTED, "leaf": "vortons"},
    "tree on grid, mollify 1": {**NESTED, **PLAIN_GRID, "mollify": 1.0},
    "tree on grid, mollify 2": {**NESTED, **PLAIN_GRID, "mollify": 2.0},
    "tree on grid, mollify 5": {**NESTED, **PLAIN_GRID, "mollify": 5.0},
    "poisson, walls, tight": {"solver": "poisson", "boundary": "walls"},
    "poisson, walls, expanded": {"solver": "poisson", "boundary": "walls", "expand": 0.5},
    "poisson, open": {"solver": "poisson"},
    "hybrid": {"solver": "hybrid"},
    "fmm": {"solver": "fmm"},
    "grid vortons, direct": {**PLAIN_GRID, "lattice": True},
    "grid vortons, tree": {**NESTED, **PLAIN_GRID, "lattice": True},
}
RESOLVED: dict[str, dict[str, Any]] = {
    REFERENCE: {},
    "fmm": {"solver": "fmm"},
    "tree at vortons, angle": {"solver": "tree"},
    "tree at vortons, box": {"solver": "tree", "opening": "box"},
    "direct on grid": PLAIN_GRID,
    "direct on grid, cubic": {"at": "grid"},
    "mollify 2": {**PLAIN_GRID, "mollify": 2.0},
    "mollify 2, fine": {**PLAIN_GRID, "mollify": 2.0, "cells_per_core": FINE},
    "mollify 2, fine, cubic": {
        "at": "grid", "mollify": 2.0, "cells_per_core": FINE,
    },
    "poisson, open": {"solver": "poisson"},
    "poisson, open, fine": {"solver": "poisson", "cells_per_core": FINE},
    "hybrid, coarse": {"solver": "hybrid", "cells_per_core": 2.0},
    "hybrid": {"solver": "hybrid"},
}  # fmt: skip
STUDIES = {"articles": ARTICLES, "resolved": RESOLVED}


class GridVortons:
    """Part 12's particle-in-cell variant: temporary vortons at the grid points induce the velocity there."""

    def prepare(self, sources: Sources, grid: Grid) -> None:
        """Give the vortons' strengths to the grid points."""
        mesh = (grid.origin, grid.spacing, grid.cells)
        start, order = partition(np.ascontiguousarray(sources.x.T), *mesh)
        sx, sa = (np.ascontiguousarray(part[:, order]) for part in (sources.x, sources.alpha))
        alpha = vorticity_grid(sx, sa, start, mesh).reshape(-1, 3) * np.prod(grid.spacing).astype(sa.dtype)
        x = grid_points(mesh, sa.dtype).reshape(-1, 3)
        filled = alpha.any(axis=1)
        x, alpha = x[filled], alpha[filled]
        lattice = Sources.blank(0, self.world.dtype)
        sigma = np.full(len(x), sources.sigma.mean(), x.dtype)
        origin, spacing, cells = uniform_grid(*bounds(x), len(x))
        cells_of = (origin, spacing, cells)
        found = self.world.processes.sorted_vortons("lattice", [], (x, alpha, sigma), cells_of)
        start, order, x, alpha, sigma = found
        lattice.put(origin=origin, spacing=spacing, cells=cells, start=start, order=order)
        lattice.put(x=x, alpha=alpha, sigma=sigma)
        super().prepare(lattice, grid)


class LatticeDirectSolver(GridVortons, DirectSolver):
    """Their direct sum."""


class LatticeTreeSolver(GridVortons, TreeSolver):
    """Their sum by a tree."""


def rings(shift: tuple[float, float, float], spacing: float = SPACING) -> tuple[Array, Array]:
    """Positions and strengths of two wavy tori of radii 1 m and 0.3 m, 1.2 m apart, filled by a lattice."""
    axis = np.arange(-1.6, 1.6, spacing)
    lattice = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    lattice += spacing * np.array(shift)
    x, alpha = [], []
    for height, vorticity in ((-0.6, 10.0), (0.6, -10.0)):
        turn = np.arctan2(lattice[:, 1], lattice[:, 0])
        rho = np.hypot(lattice[:, 0], lattice[:, 1])
        s = np.hypot(rho - 1 - 0.08 * np.cos(5 * turn), lattice[:, 2] - height - 0.08 * np.sin(5 * turn))
        inside = s < 0.3
        omega = vorticity * (1 + np.cos(np.pi * s[inside] / 0.3)) / rho[inside]
        p = lattice[inside]
        x.append(p)
        alpha.append(spacing**3 * omega[:, None] * np.stack([-p[:, 1], p[:, 0], 0 * p[:, 2]], 1))
    return np.concatenate(x), np.concatenate(alpha)


def world_of(
    study: str, method: dict[str, Any], shift: tuple[float, float, float], spacing: float
) -> ef.World:
    """The two rings with the methods of one study and one way to get the velocity."""
    articles = study == "articles"
    velocity = {"kernel": "rankine" if articles else "winckelmans", **method}
    expand = velocity.pop("expand", 0.0)
    if velocity.pop("lattice", False):
        velocity["solver"] = f"lattice_{velocity.get('solver', 'direct')}"
    cells_per_core = velocity.pop("cells_per_core", 0.0 if articles else None)
    x, alpha = rings(shift, spacing)
    n = len(x)
    world = ef.World(dt=DT, integrator="rk2")
    world.spawn(
        "rings",
        ef.Position(x),
        ef.Strength(alpha),
        ef.CoreRadius(np.full(n, (0.5 if articles else 1.5) * spacing)),
        ef.Volume(np.full(n, spacing**3)),
    )
    world.add_systems(
        [
            ef.PartitionSystem(cells_per_core=cells_per_core, expand=expand),
            ef.VelocitySystem(**velocity),
            ef.StretchSystem(scheme="transposed", rate=0.5 if articles else 1.0),
            ef.AdvectionSystem(),
            ef.DiagnosticsSystem(every=1, jerk=True, pair_limit=0),
        ]
    )
    if articles:
        world.add_system(ef.DiffusionSystem(method="index_space", rate=0.05, dissipation=True))
    else:
        world.set_fluid(viscosity=VISCOSITY)
        world.add_system(ef.DiffusionSystem())
    return world


class Found(NamedTuple):
    """Jerks of one method."""

    jerks: Array
    """mean over the vortons, (runs, ticks) m/s^3"""
    tick: float
    """wall-clock time of a tick, median, s"""
    settled: int = SETTLED
    """ticks that the next three leave out"""

    @property
    def mean(self) -> float:
        """Over the runs and the settled ticks, m/s^3."""
        return float(self.jerks[:, self.settled :].mean())

    @property
    def median(self) -> float:
        """Over the same, m/s^3: what it is between the ticks in which the grid changes its cells."""
        return float(np.median(self.jerks[:, self.settled :]))

    def ratio(self, reference: Found) -> float:
        """Median over the ticks of the jerk over that of the reference, both averaged over the runs."""
        own, other = (found.jerks[:, self.settled :].mean(0) for found in (self, reference))
        return float(np.median(own / other))


def measure(
    study: str,
    name: str,
    shifts: tuple[Any, ...] = SHIFTS,
    ticks: int = TICKS,
    spacing: float = SPACING,
    settled: int = SETTLED,
) -> Found:
    """Jerks of one way to get the velocity."""
    jerks, spent = [], []
    for shift in shifts:
        world = world_of(study, STUDIES[study][name], shift, spacing)
        for _ in range(ticks):
            began = time.perf_counter()
            world.step()
            spent.append(time.perf_counter() - began)
        jerks.append([record["jerk"] for record in world.history])
    return Found(np.array(jerks), float(np.median(spent)), settled)


class Claim(NamedTuple):
    """One statement of part 12 and what was found."""

    name: str
    text: str
    figures: str
    holds: bool


def claims(articles: dict[str, Found], far: float) -> list[Claim]:
    """J1 to J8 from the means of the study "articles" and the largest difference of the far fields."""
    jerk = {name: found.mean / articles[REFERENCE].mean for name, found in articles.items()}
    tick = {name: found.tick for name, found in articles.items()}
    scales = [jerk[f"tree on grid{part}"] for part in ("", ", mollify 1", ", mollify 2", ", mollify 5")]
    tree, one, two, five = scales
    grid, grid_one = jerk["direct on grid"], jerk["direct on grid, mollify 1"]
    poisson, lumps = jerk["poisson, walls, tight"], jerk["tree at vortons, clusters"]
    originals, lattice = jerk["tree at vortons, originals"], jerk["grid vortons, direct"]
    lattice_tree = jerk["grid vortons, tree"]
    dearest = max(tick[f"tree on grid, mollify {scale}"] for scale in (1, 2, 5)) / tick["tree on grid"]
    direct = tick[REFERENCE] / tick["tree on grid"]
    ordered = min(tree, grid) > one > 1 > poisson > five and abs(two - 1) < 0.5
    return [
        Claim(
            "J1", "on grid >> mollify 1 > direct at vortons = mollify 2 > poisson > mollify 5",
            f"tree {tree:.1f}, {one:.2f}, 1, {two:.2f}, {poisson:.2f}, {five:.2f}; "
            f"direct on grid {grid:.2f}, mollified by 1 {grid_one:.2f}", ordered,
        ),
        Claim("J2", "tree on grid is 7 to 10 times direct at vortons", f"{tree:.1f}", 7 <= tree <= 10),
        Claim("J3", "mollify 2 is within 50 % of direct at vortons", f"{two:.2f}", abs(two - 1) < 0.5),
        Claim(
            "J4", "tree at vortons: jerky with clusters at the leaves, much less with originals",
            f"{lumps:.0f}, {originals:.1f}", lumps > 3 and originals < lumps / 3,
        ),
        Claim(
            "J5", "jerk falls as the length scale grows: 0, 1, 2, 5",
            ", ".join(f"{value:.2f}" for value in scales), all(b < a for a, b in pairwise(scales)),
        ),
        Claim(
            "J6", "mollified ticks take the time of plain ones; direct at vortons takes longest",
            f"{dearest:.2f}, {direct:.2f} of tree on grid", dearest < 1.25 and direct > 1,
        ),
        Claim("J7", "mollifying changes nothing outside the cores", f"{far:.0e}", far < 1e-5),
        Claim(
            "J8", "vortons on the grid: smooth with the direct sum, not with the tree",
            f"{lattice:.2f}, {lattice_tree:.0f}", lattice < 1 and lattice_tree > 3,
        ),
    ]  # fmt: skip


def far_field(**velocity: Any) -> float:
    """Largest difference that cores of five cells make outside of all of them, of the largest speed there."""
    fields = []
    for mollify in (0.0, 5.0):
        world = world_of("articles", {**PLAIN_GRID, "mollify": mollify, **velocity}, SHIFTS[0], SPACING)
        partition = world.require(ef.PartitionSystem)
        partition.cells, partition.expand = 6_000, 1.0
        world.evaluate()
        fields.append(world.fluid[ef.VelocityField].u.reshape(-1, 3))
    grid = world.fluid[Grid]
    points = grid_points((grid.origin, grid.spacing, grid.cells), np.float64).reshape(-1, 3)
    away, _ = cKDTree(world["rings"][ef.Position].x).query(points)
    outside = away > 5.0 * np.prod(grid.spacing) ** (1 / 3)
    plain, mollified = (field[outside] for field in fields)
    return float(np.abs(mollified - plain).max() / np.abs(plain).max())


def draw(found: dict[str, dict[str, Found]], path: str) -> None:
    """Jerk over time of both studies into a PNG file, running means over half a second."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = {
        "articles": {
            "direct on grid": "C7",
            "tree on grid": "C3",
            "tree at vortons, originals": "C1",
            "tree on grid, mollify 1": "C8",
            REFERENCE: "k",
            "tree on grid, mollify 2": "C2",
            "tree on grid, mollify 5": "C9",
            "poisson, walls, tight": "C4",
            "poisson, open": "C0",
            "hybrid": "C6",
        },
        "resolved": {
            "tree at vortons, box": "C3",
            "tree at vortons, angle": "C1",
            "direct on grid": "C7",
            "mollify 2, fine, cubic": "C2",
            REFERENCE: "k",
            "fmm": "C5",
            "poisson, open, fine": "C0",
            "hybrid, coarse": "C4",
            "hybrid": "C6",
        },
    }
    width = 15
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 5.6), dpi=100)
    for axes, (study, names) in zip(panels, shown.items(), strict=True):
        for name, colour in names.items():
            jerk = found[study][name].jerks.mean(0)[3:]
            running = np.convolve(jerk, np.full(width, 1 / width), "valid")
            t = DT * (3 + width // 2 + np.arange(len(running)))
            reference = {"linewidth": 2.5} if name == REFERENCE else {"linewidth": 1.3}
            dashed = "--" if name == "fmm" else "-"
            axes.semilogy(t, running, dashed, color=colour, label=name, **reference)
        axes.set(xlabel="time, s", ylabel="mean jerk, m/s³", title=study, xlim=(0, TICKS * DT))
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False)
    figure.tight_layout()
    figure.savefig(path)


def main(picture: str | None = None) -> None:
    """Print both tables; draw if asked."""
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, Found]] = {}
    for study, methods in STUDIES.items():
        found[study] = {}
        print(f"{study:28} {'mean':>9} {'/direct':>8} {'median':>9} {'ratio':>7} {'ms/tick':>8}")
        for name in methods:
            result = found[study][name] = measure(study, name, SHIFTS[: RUNS[study]])
            reference = found[study][REFERENCE]
            print(
                f"{name:28} {result.mean:9.3g} {result.mean / reference.mean:8.2f} {result.median:9.3g} "
                f"{result.ratio(reference):7.2f} {1e3 * result.tick:8.1f}",
                flush=True,
            )
    for claim in claims(found["articles"], far_field()):
        print(f"{claim.name} {'holds' if claim.holds else 'fails'}: {claim.text}: {claim.figures}")
    if picture:
        draw(found, picture)


if __name__ == "__main__":
    from asked import picture

    main(picture(__file__, __doc__))
