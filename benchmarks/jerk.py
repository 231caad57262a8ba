"""How smooth the paths of vortons are: ``python benchmarks/jerk.py [picture.png]``, six minutes on two cores.

Two thick wavy rings of opposite circulation run into each other and break up. The same flow is run with every
way of getting the velocity, and the mean jerk |d^3 x / dt^3| over the vortons is recorded at every tick: the
study of Fluid Simulation for Video Games, part 12, figures 4 to 10. Every number is an average over runs in
which the lattice of the vortons is shifted by parts of a cell, and over the ticks after SETTLED.

* ``articles``: solid cores of half a cell, one grid cell per vorton, half-rate stretching, exchange in index
  space. Vortons are the only thing that knows what happens inside a cell.
* ``resolved``: the package's defaults, cores of 1.5 spacings on a grid of two cells per core, with the
  viscosity of a Reynolds number Gamma / nu of about 600.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import ecs_fluid as ef
from ecs_fluid.components import Grid, Sources
from ecs_fluid.kernels.grid import grid_points
from ecs_fluid.kernels.partition import partition
from ecs_fluid.kernels.poisson import vorticity_grid
from ecs_fluid.systems.summation import Summation

Array = NDArray[Any]

TICKS, SETTLED, DT, SPACING, VISCOSITY = 200, 60, 1 / 30, 0.15, 5e-3
SHIFTS = ((0.31, 0.17, 0.23), (0.81, 0.57, 0.43), (0.11, 0.97, 0.73))
REFERENCE = "direct at vortons"

NESTED: dict[str, Any] = {"solver": "tree", "opening": "box", "leaf": "supervortons"}
"""The articles' tree: a cluster acts whole unless the target lies in its box."""

ARTICLES: dict[str, dict[str, Any]] = {
    REFERENCE: {},
    "direct on grid": {"at": "grid"},
    "tree on grid": {**NESTED, "at": "grid"},
    "tree at vortons, clusters": NESTED,
    "tree at vortons, originals": {**NESTED, "leaf": "vortons"},
    "tree on grid, mollify 1": {**NESTED, "at": "grid", "mollify": 1.0},
    "tree on grid, mollify 2": {**NESTED, "at": "grid", "mollify": 2.0},
    "tree on grid, mollify 5": {**NESTED, "at": "grid", "mollify": 5.0},
    "poisson, walls, tight": {"solver": "poisson", "boundary": "walls"},
    "poisson, walls, expanded": {"solver": "poisson", "boundary": "walls", "expand": 0.5},
    "poisson, open": {"solver": "poisson"},
    "hybrid": {"solver": "hybrid"},
    "fmm": {"solver": "fmm"},
    "grid vortons, direct": {"at": "grid", "lattice": True},
    "grid vortons, tree": {**NESTED, "at": "grid", "lattice": True},
}
RESOLVED: dict[str, dict[str, Any]] = {
    REFERENCE: {},
    "fmm": {"solver": "fmm"},
    "tree at vortons, angle": {"solver": "tree"},
    "tree at vortons, box": {"solver": "tree", "opening": "box"},
    "direct on grid": {"at": "grid"},
    "direct on grid, cubic": {"at": "grid", "interpolation": "cubic"},
    "mollify 2": {"at": "grid", "mollify": 2.0},
    "mollify 2, cubic": {"at": "grid", "mollify": 2.0, "interpolation": "cubic"},
    "poisson, walls, tight": {"solver": "poisson", "boundary": "walls"},
    "poisson, open": {"solver": "poisson"},
    "hybrid": {"solver": "hybrid"},
}
STUDIES = {"articles": ARTICLES, "resolved": RESOLVED}


class GridVortons(ef.VelocitySystem):
    """Part 12's particle-in-cell variant: temporary vortons at the grid points induce the velocity there."""

    def _evaluate_grid(self, sources: Sources, summation: Summation) -> None:
        grid = self.field(Grid)
        mesh = (grid.origin, grid.spacing, grid.cells)
        start, order = partition(np.ascontiguousarray(sources.x.T), *mesh)
        sx, sa = (np.ascontiguousarray(part[:, order]) for part in (sources.x, sources.alpha))
        alpha = vorticity_grid(sx, sa, start, mesh).reshape(-1, 3) * np.prod(grid.spacing).astype(sa.dtype)
        x = grid_points(mesh, sa.dtype).reshape(-1, 3)
        filled = alpha.any(axis=1)
        x, alpha = x[filled], alpha[filled]
        lattice = Sources.blank(0, self.world.dtype)
        sigma = np.full(len(x), sources.sigma.mean(), x.dtype)
        self.world.require(ef.PartitionSystem)._sort(lattice, x, alpha, sigma)
        super()._evaluate_grid(lattice, self._summation(lattice, grid))


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
    expand, on_lattice = velocity.pop("expand", 0.0), velocity.pop("lattice", False)
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
            ef.PartitionSystem(cells_per_core=0.0 if articles else 2.0, expand=expand),
            (GridVortons if on_lattice else ef.VelocitySystem)(**velocity),
            ef.StretchSystem(rate=0.5 if articles else 1.0),
            ef.AdvectionSystem(),
            ef.DiagnosticsSystem(every=1, jerk=True, pair_limit=0),
        ]
    )
    if articles:
        world.add_system(ef.DiffusionSystem(method="index_space", viscosity=0.05, dissipation=True))
    else:
        world.add_system(ef.DiffusionSystem(viscosity=VISCOSITY))
    return world


class Found(NamedTuple):
    """Jerks of one method."""

    jerks: Array
    """mean over the vortons, (runs, ticks) m/s^3"""
    tick: float
    """wall-clock time of a tick, s"""

    @property
    def mean(self) -> float:
        """Over the runs and the ticks after SETTLED, m/s^3."""
        return float(self.jerks[:, SETTLED:].mean())

    @property
    def median(self) -> float:
        """Over the same, m/s^3: what it is between the ticks in which the grid changes its cells."""
        return float(np.median(self.jerks[:, SETTLED:]))

    def ratio(self, reference: Found) -> float:
        """Median over the ticks of the jerk over that of the reference, both averaged over the runs."""
        return float(np.median((self.jerks.mean(0) / reference.jerks.mean(0))[SETTLED:]))


def measure(
    study: str, name: str, shifts: tuple[Any, ...] = SHIFTS, ticks: int = TICKS, spacing: float = SPACING
) -> Found:
    """Jerks of one way to get the velocity; the first ticks, which may compile, are not in its time."""
    jerks, spent = [], 0.0
    for shift in shifts:
        world = world_of(study, STUDIES[study][name], shift, spacing)
        world.step(2)
        began = time.perf_counter()
        world.step(ticks - 2)
        spent += time.perf_counter() - began
        jerks.append([record["jerk"] for record in world.history])
    return Found(np.array(jerks), spent / ((ticks - 2) * len(shifts)))


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
            "mollify 2, cubic": "C2",
            REFERENCE: "k",
            "fmm": "C5",
            "poisson, walls, tight": "C4",
            "poisson, open": "C0",
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


def main() -> None:
    """Print both tables; draw if asked."""
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, Found]] = {}
    for study, methods in STUDIES.items():
        found[study] = {}
        print(f"{study:28} {'mean':>9} {'/direct':>8} {'median':>9} {'ratio':>7} {'ms/tick':>8}")
        for name in methods:
            result = found[study][name] = measure(study, name)
            reference = found[study][REFERENCE]
            print(
                f"{name:28} {result.mean:9.3g} {result.mean / reference.mean:8.2f} {result.median:9.3g} "
                f"{result.ratio(reference):7.2f} {1e3 * result.tick:8.1f}",
                flush=True,
            )
    if len(sys.argv) > 1:
        draw(found, sys.argv[1])


if __name__ == "__main__":
    main()
