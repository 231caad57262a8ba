"""Velocity from vorticity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import (
    CoreRadius,
    Density,
    Dilatation,
    Grid,
    Position,
    SolverMeshes,
    SolverTimes,
    Sources,
    Strength,
    Temperature,
    Velocity,
    VelocityField,
    VelocityGradient,
    Volume,
)
from ecs_fluid.errors import RecipeError
from ecs_fluid.fluid import Fluid
from ecs_fluid.lint import idle_lint
from ecs_fluid.own_code import is_shipped
from ecs_fluid.plugins import import_path
from ecs_fluid.schedule import makers_of_vorticity
from ecs_fluid.settings import Settings
from ecs_fluid.system import System, Types
from ecs_fluid.systems.partition import VORTONS, GridNeeds, PartitionSystem
from ecs_fluid.systems.shared.body_tables import BODIES
from ecs_fluid.systems.shared.walls import Walls
from ecs_fluid.systems.velocity.cell_reading import CellReading
from ecs_fluid.systems.velocity.direct import DirectSolver
from ecs_fluid.systems.velocity.grid_reading import (
    Reading,
    read_at_vortons,
    readings,
    sum_at_strays,
)
from ecs_fluid.systems.velocity.lint import (
    plane_vortices_lint,
    slow_sums_lint,
    unfelt_lint,
    unfelt_walls_lint,
)
from ecs_fluid.systems.velocity.mirrors import Mirror, MirrorFace, behind_lint, mirror_lint, mirrors_of
from ecs_fluid.systems.velocity.sampled_error import sampled_error
from ecs_fluid.systems.velocity.solver import (
    SHIPPED,
    PairFields,
    Solver,
    SolverName,
    model_with,
    solver_class,
)
from ecs_fluid.systems.velocity.solvers import fitting, solver_named
from ecs_fluid.systems.velocity.vorton_flow import PotentialFlow, VortonFlow
from ecs_fluid.targets import Population, Targets, in_range
from ecs_fluid.validation_errors import nearest
from ecs_fluid.world import World

if TYPE_CHECKING:
    from ecs_fluid.kernels.biot_savart.regularisation import Code, Regularisation

SHIPPED_KERNELS = Literal["winckelmans", "gaussian", "rankine", "rosenhead_moore"]

KernelName = SHIPPED_KERNELS | str
"""Name of a regularisation: of any record of `kernels.biot_savart.regularisation`; editors offer these."""

FEW_PAIRS = 2**22
"""Up to this many pairs of point and vorton, `velocity_at_few` takes the direct sum: a few milliseconds, less
than it takes to sort the vortons and build a tree for so few points."""


class VelocitySystem(System):
    """Biot-Savart sum: velocity and its gradient from the regularised vortons.

    u(x) = sum_p q(|x - x_p| / sigma_p) alpha_p cross (x - x_p) / (4 pi |x - x_p|^3), where q is the fraction
    of a blob's strength inside a radius.

    Velocity of the vortons. With `at` = "vortons" the sum, and its gradient, are evaluated at the vortons
    themselves. With `at` = "grid" the sum is evaluated at the points of the field grid, and vortons
    interpolate: with `interpolation` = "cubic" by a cubic spline, whose derivative is the gradient, with
    "linear" trilinearly, as in the articles. With "refined" the spline first fills a grid twice as fine,
    which is read trilinearly wherever no gradient is needed (`kernels.grids.finer_grid`): this pays where
    there are many tracers per point of the grid.

    Velocity of all other particles, by `tracers`. "grid" reads the field grid. "cells" evaluates the sum
    only at those points of the grid that are read (`kernels.grids.read_points`). "solver" evaluates it at
    each particle; "cells" does so too where that is faster, or in ticks in which a sample shows that cubic
    interpolation is off by more than 2 %.

    Solvers (docs/velocity.md has their errors and times):

    * direct: all pairs.
    * tree: a cluster of vortons that is far enough away acts as one. `opening` "angle" takes a cluster of
      radius b at distance d when b / d < `angle`; "box" takes it when the target lies outside the cluster's
      box widened by `margin` cells, as in the articles. With `multipole` = "dipole" four vortons represent a
      cluster, with its strength and the first moment of its strengths; "monopole" keeps only its strength.
      The leaves hold the vortons themselves, or one cluster each (`leaf` = "supervortons": cheaper, with an
      error near a vorton).
    * fmm: fast multipole method; the RMS error of velocity and gradient, each relative to its own RMS, stays
      below `tolerance`.
    * pppm: pairs nearer than a few cells of a mesh are summed in full, and the smooth rest of the velocity is
      found on the mesh by FFT. It keeps the same `tolerance`; best for flows that fill their bounding box.
    * poisson: vorticity is brought to the field grid, and the velocity is the curl of a vector potential,
      found by a convolution with the blobs' Green's function in unbounded space (`boundary` = "open") or by
      multigrid in a box with walls ("walls", articles, parts 6 and 12; `expand` of the partition widens the
      box). Points between those of the grid interpolate.
    * hybrid: as poisson, by multigrid, with the potential on the faces of the box summed over all vortons
      (articles, parts 19 and 20), so that the box acts like unbounded space. For a flat population in a
      world of three dimensions, `auto` takes the place of poisson and hybrid.
    * container: flow inside a container that is a box, which may move and turn; no fluid goes through its
      walls.
    * auto: direct, tree, fmm or pppm, whichever should be fastest; a sample checks that `tolerance` is kept.
    * a solver of your own, by the name of its class or its import path (docs/solvers_of_your_own.md).

    `mirrors` add the flow of mirror images behind flat faces, such as the ground (docs/velocity.md).
    `mollify` > 0 widens cores to at least that many grid spacings when the grid is evaluated, at constant
    circulation, so that a vorton next to a grid point does not move itself (articles, part 12; 2 is as
    smooth as the direct sum). poisson and hybrid do not need it.

    Vortons that swell or shrink (`Dilatation`, see ExpansionSystem) act as sources too. The same solver sums
    their flow, or `fmm` to the same `tolerance` if the solver has a grid or is `auto`. The VelocityGradient
    then has a trace, through which vortex lines lengthen as the gas around them expands.

    The pressure in this flow, at any points, is in `systems.velocity.pressure`.

    In a world of two dimensions a vorton stands for one metre of a straight line of such blobs across the
    plane, u = q(r/sigma) alpha cross (x - x_p) / (2 pi r^2) (`kernels.plane.blobs`), in every solver.

    Source: Winckelmans and Leonard, J. Comput. Phys. 109 (1993); Fluid Simulation for Video Games, parts 3,
    6, 12, 19 and 20.
    """

    reads = (Position, Strength, CoreRadius, Sources, Grid)
    may_read = (Dilatation, Volume, Density, Temperature, Fluid)
    writes: Types = (Velocity, VelocityGradient, VelocityField, SolverTimes, SolverMeshes)
    asks = (PartitionSystem,)
    phase = "rates"
    distribution = "ranks"
    dimensions = (2, 3)
    unchanging = ("gradient",)

    solver: SolverName = "direct"
    """how the sum is taken"""
    tolerance: float = Field(default=1e-3, ge=1e-9, le=1)
    """largest RMS error that fmm, pppm and auto may have, relative to the RMS velocity, 1"""
    boundary: Literal["open", "walls"] = "open"
    """unbounded space, or, by poisson, walls at the faces of the field grid"""
    at: Literal["vortons", "grid"] = "vortons"
    """where vortons get their velocity"""
    tracers: Literal["grid", "cells", "solver"] = "cells"
    """where everything but vortons gets its velocity. grid: from the field grid; cells: from the points of
    the grid that are read, and no others are computed; solver: from the sum at each place"""
    interpolation: Literal["linear", "cubic", "refined"] = "cubic"
    """how particles read the field grid; refined: linearly, from a grid twice as fine that a cubic spline
    fills; vortons of poisson and hybrid read it by cubics, whatever this says"""
    transfer: Literal["linear", "m4_prime"] = "m4_prime"
    """how vortons share their strength among grid points, by poisson, hybrid and container"""
    kernel: KernelName = "winckelmans"
    """regularisation of the vortons' cores"""
    opening: Literal["angle", "box"] = "angle"
    """when the tree takes a cluster as one"""
    angle: float = Field(default=0.6, gt=0, le=1.0)
    """angle: largest radius of a cluster that is taken as one, over its distance, 1"""
    margin: float = Field(default=1e-4, ge=0, le=1e6)
    """box: widening of a cluster's box, cells"""
    leaf: Literal["vortons", "supervortons"] = "vortons"
    """what stands at the leaves of the tree"""
    multipole: Literal["monopole", "dipole"] = "dipole"
    """what the tree keeps of a cluster. monopole: its strength; dipole: the first moment of its strengths
    too"""
    gradient: bool = True
    """fill the vortons' velocity gradient; without stretching it can be left out"""
    mollify: float = Field(default=0.0, ge=0, le=100)
    """least core radius on the grid, spacings"""
    mirrors: tuple[MirrorFace, ...] = ()
    """flat faces of fixed bodies and walls of containers behind which vortons have mirror images, so that
    no fluid goes through the planes in them; for solvers of unbounded space"""

    def __post_init__(self) -> None:
        if not self.gradient:
            self.writes = tuple(kind for kind in type(self).writes if kind is not VelocityGradient)
        self.velocity_error: float | None = None
        """Relative RMS error of the velocities in the first stage of the last tick; None: not recorded"""
        self.makers_in_run: tuple[list[str], list[str]] = [], []
        """In the world of a stored frame: names of the systems of its run that make vorticity, otherwise than
        by weight and by weight"""
        self._cells = CellReading(self)

    @classmethod
    def with_solver(cls, solver: type[Solver], **parameters: Any) -> Self:
        """A system with your own solver class; `parameters` may be the solver's and the system's."""
        return cls(solver=import_path(solver), **parameters)

    @classmethod
    def parameters_for(cls, values: Any, place: str) -> type[Settings]:
        """The system's parameters, and those of the solver that `values` name."""
        parameters = values if isinstance(values, dict) else {}
        name, kernel = parameters.get("solver"), parameters.get("kernel")
        if isinstance(kernel, str) and kernel not in get_args(SHIPPED_KERNELS):
            from ecs_fluid.kernels.biot_savart.regularisation import CODES

            if kernel not in CODES:
                raise RecipeError(f"{place}: kernel = {kernel!r} is not known; {nearest(kernel, CODES)}")
        own = solver_class(name, place).Parameters if isinstance(name, str) else Settings
        return model_with(cls.Parameters, own)

    @classmethod
    def all_parameters(cls) -> type[Settings]:
        """The system's parameters, and those of all solvers that ship."""
        model = cls.Parameters
        for name in get_args(SHIPPED):
            model = model_with(model, Solver.registry[name].Parameters)
        return model

    @classmethod
    def load_code(cls, values: Any, place: str) -> None:
        """Import the solver: it may be a class in a user's module."""
        if isinstance(values, dict) and isinstance(values.get("solver"), str):
            solver_class(values["solver"], place, allow_code=True)

    def spawns(self, world: World) -> None:
        """Make the solver, before other systems read `may_read`, `asks` and `grid_needs`."""
        if world.dimension == 2:
            from ecs_fluid.kernels.biot_savart.regularisation import IN_A_PLANE

            if self.kernel not in IN_A_PLANE:
                raise RecipeError(
                    f"VelocitySystem: kernel = {self.kernel!r} is not for a world of dimension = 2; use "
                    f"{', '.join(IN_A_PLANE)}, or dimension = 3"
                )
        self._solver = solver_named(self.solver, self)
        # A field of the solver's own is a flow without vortons too.
        optional = (Strength, CoreRadius) if self._solver.own_field else ()
        self.reads = tuple(kind for kind in type(self).reads if kind not in optional)  # type: ignore[assignment,misc]
        self.may_read = (*type(self).may_read, *self.further_reads, *optional)  # type: ignore[misc]
        self.asks = (*type(self).asks, *self._solver.asks)  # type: ignore[assignment,misc]
        self.grid_needs = self._needs(self._solver)

    def added(self, world: World) -> None:
        """Add the PartitionSystem, which sorts vortons, and a DiagnosticsSystem."""
        from ecs_fluid.systems.diagnostics import DiagnosticsSystem

        world.require(PartitionSystem)
        self._solver.added(world)
        if world.system(DiagnosticsSystem) is None:
            world.add_system(DiagnosticsSystem(every=0))

    def must_hold(self, world: World) -> None:
        """Mirrors are flat faces of fixed bodies."""
        _ = self.mirror_planes  # an error where they are not

    # ------------------------------------------------------------------ a tick

    def process(self, dt: float) -> None:
        """Fill velocities, gradients and, if particles interpolate it, the velocity field."""
        world, sources, grid = self.world, self.field(Sources), self.field(Grid)
        vortons, others = self._populations()
        solver = fitting(self._solver, sources, grid)
        if solver.on_grid or self.solver == "direct":
            self._warn_once(solver, sources, grid)
        flow = VortonFlow.by(solver, sources, grid)
        from_grid = self._from_grid(solver)
        # Whether another system reads the VelocityField.
        asked = any(VelocityField in (*s.reads, *s.may_read) for s in world.systems if s is not self)
        whole = self.tracers == "grid" or (self.tracers == "cells" and (from_grid or asked))
        others_read = whole and bool(others) and not solver.own_field
        if from_grid or others_read or asked or not len(sources.sigma):
            flow.fill_grid(self.field(VelocityField))
        else:
            self.field(VelocityField).u = np.empty((0, 0, 0, 3), world.dtype)  # not that of an earlier tick
        if not from_grid:
            x = world.processes.vorton_targets(sources, vortons)
            targets = Targets.at(x, self.gradient, "vortons")
            solver.fill(targets)  # not flow.fill: keeps the stack above the kernel three frames deep
            flow.complete(targets)
            world.processes.to_rows(sources.order, vortons, targets)
        if from_grid or others_read:
            at_vortons, at_others = readings(flow, self.field(VelocityField).u, self.read_by)
            if from_grid:
                read_at_vortons(at_vortons, flow, vortons)
                sum_at_strays(flow, vortons)
            if others_read:
                for other in others:
                    at_others.velocity(other.x, other.u)
                sum_at_strays(flow, others)
        if not others_read:
            self._sum_at_others(flow, vortons, others)
        if world.stage.c == 0.0:
            self.velocity_error = None
            if self._is_recorded:
                self.velocity_error = sampled_error(flow, vortons, others)
                for text in behind_lint(flow.mirrors, sources.x.T, sources.sigma):
                    self.warn(text, "mirrors")

    def _populations(self) -> tuple[list[Population], list[Population]]:
        """The populations of vortons, and all other populations that have a velocity."""
        wanted = (*VORTONS, Velocity, VelocityGradient) if self.gradient else (*VORTONS, Velocity)
        vortons = [
            Population(entity, position.x, velocity.u, gradient[0].du if gradient else None)
            for entity, (position, _, _, velocity, *gradient) in self.entities(*wanted)
        ]
        summed, total = [entity for entity, *_ in vortons], self.world.processes.total
        others = [
            Population(entity, position.x, velocity.u)
            for entity, (position, velocity) in self.entities(Position, Velocity)
            if entity not in summed and total([entity], len(position.x))
        ]
        return vortons, others

    def _sum_at_others(self, flow: VortonFlow, vortons: list[Population], others: list[Population]) -> None:
        """Fill velocities of other populations by sums at their rows, or at the points that they read."""
        processes = self.world.processes
        if self.tracers == "cells" and others and not flow.solver.own_field:
            held = sum(len(population.x) for population in vortons)
            count = processes.total([population.entity for population in vortons], held)
            if self._cells.fill(flow, count, others):
                return
        for number, (entity, x, u, _) in enumerate(others):
            processes.at_rows(entity, Targets(x, u, place="others", number=number), flow.fill)

    @property
    def _is_recorded(self) -> bool:
        """Whether diagnostics are recorded at the end of this tick."""
        from ecs_fluid.systems.diagnostics import DiagnosticsSystem

        world, record = self.world, self.world.system(DiagnosticsSystem)
        return record is not None and record.every > 0 and (world.tick + 1) % record.every == 0

    # ------------------------------------------------------------------ the solver

    def _needs(self, solver: Solver) -> GridNeeds:
        """What the solver needs of the grid. If it needs room around vortons, no vorton may lie outside."""
        needs = solver.grid_needs()
        return needs._replace(all_inside=needs.all_inside or needs.padding > 0.0 or solver.on_grid)

    def _from_grid(self, solver: Solver) -> bool:
        """Whether vortons read the field grid."""
        return solver.on_grid or (self.at == "grid" and not solver.own_field)

    # ------------------------------------------------------------------ for other systems

    @property
    def code(self) -> Code:
        """Code of the cores' regularisation, for kernels: of its form in space, or in a plane."""
        from ecs_fluid.kernels.biot_savart.regularisation import code_of

        return code_of(self.kernel, self.world.dimension)

    @property
    def regularisation(self) -> Regularisation:
        """The cores' regularisation."""
        from ecs_fluid.kernels.biot_savart.regularisation import record

        return record(self.code)

    @property
    def makers_of_vorticity(self) -> list[str]:
        """Names of the systems that make vorticity by forces that the vortons do not tell, of the run too if
        this is the world of a stored frame."""
        return [*self.makers_in_run[0], *makers_of_vorticity(self.world.systems, by_weight=False)]

    @property
    def weighs(self) -> bool:
        """Whether the weight of the density that vortons carry makes vorticity, here or in the run."""
        return bool(self.makers_in_run[1] or makers_of_vorticity(self.world.systems, by_weight=True))

    @property
    def needs_all_sources(self) -> bool:
        """Whether sums need all Sources on every rank, more than trees of the other ranks' parts hold."""
        return self.mollify > 0.0 or solver_class(self.solver).needs_all_sources

    @property
    def from_grid(self) -> bool:
        """Whether the vortons' velocity is interpolated between points of the field grid."""
        return self._from_grid(self._solver)

    @property
    def own_field(self) -> bool:
        """Whether there is a flow without vortons too: a field that the solver itself makes."""
        return self._solver.own_field

    @property
    def mirror_planes(self) -> list[Mirror]:
        """What makes all mirror images of the vortons, by the present places of the bodies that mirror."""
        return mirrors_of(self.world, self.mirrors) if self.mirrors else []

    @property
    def mirror_bodies(self) -> set[str]:
        """Names of the bodies and containers with faces that mirror."""
        return {face.body for face in self.mirrors}

    @property
    def further_reads(self) -> Types:
        """Component types that the flow depends on beside those of vortons: of its solver and its mirrors."""
        return (*solver_class(self.solver).reads, *(BODIES if self.mirrors else ()))

    @property
    def has_images(self) -> bool:
        """Whether sums include images of the vortons, in a periodic world or behind walls."""
        return self._solver.has_images

    @property
    def mirror_walls(self) -> list[Walls]:
        """The planes of `mirrors`, as the walls of one half space, edge or corner."""
        return [mirror.walls for mirror in self.mirror_planes[-1:]]

    @property
    def image_walls(self) -> list[Walls]:
        """Walls behind which the vortons have images: the planes of `mirrors`, or walls of the solver."""
        return self.mirror_walls or self._solver.image_walls()

    @property
    def read_by(self) -> Reading:
        """How velocities are interpolated between points of the grid."""
        return "spline" if self.interpolation == "cubic" else self.interpolation

    # ------------------------------------------------------------------ the flow at any points

    def velocity_at(self, points: Array, solver: str | None = None) -> Array:
        """Velocity (m, 3) m/s at any points (m, 3) m from the present vortons; `solver` overrides."""
        return self.flow_at(points, solver, gradient=False).u

    def flow_at(self, points: Array, solver: str | None = None, gradient: bool = True) -> Targets:
        """Velocity and its gradient at any points (m, 3) m from the present vortons; `solver` overrides.

        A solver other than the world's gets its own grid, as in a world with that solver. In a world of two
        dimensions the points are moved into the plane, since the flow does not vary across it.
        """
        flow, x = self._flow_for(points, solver)
        targets = Targets.at(x, gradient)
        flow.fill(targets)
        return targets

    def pressure_at(self, points: Array, solver: str | None = None) -> Array:
        """Pressure (m,) Pa at any points (m, 3) m by the present vortons: `pressure.pressure_in`."""
        from ecs_fluid.systems.velocity.pressure import pressure_in

        return pressure_in(*self._flow_for(points, solver))

    def _flow_for(self, points: Array, solver: str | None) -> tuple[VortonFlow, Array]:
        """The flow of the present vortons, and the points (m, 3) m as it takes them."""
        if self.world.across is not None:
            points = np.where(np.arange(3) == self.world.across, 0.0, points)
        made = self._solver if solver is None else solver_named(solver, self)
        needs = None if made.name == self._solver.name else self._needs(made)
        around = points if self.world.periods.any() else None
        sources, grid = self.world.require(PartitionSystem).present(needs, around)
        x = in_range(points, self.world, sources.sigma)
        made = fitting(made, sources, grid)
        if made.on_grid:
            self._warn_once(made, sources, grid)
        return VortonFlow.by(made, sources, grid), x

    def velocity_at_few(self, points: Array) -> Array:
        """Like `velocity_at`, but by the direct sum for up to FEW_PAIRS pairs, without building a tree."""
        from ecs_fluid.kernels.biot_savart import direct

        most = FEW_PAIRS // max(len(points), 1)
        partition = self.world.require(PartitionSystem)
        pairs_alone = self._solver.sums_pairs and not (self.mirrors or PotentialFlow.vortons(self))
        vortons = partition.unsorted(most) if pairs_alone else None
        if vortons is None:
            return self.velocity_at(points)
        x = in_range(points, self.world, vortons[2])
        u = np.empty_like(x)
        direct.velocity(self.code, x, *vortons, u)
        return u

    def pair_fields(self, x: Array) -> PairFields:
        """Potential, vorticity, velocity and gradient of the present vortons at x (m, 3) m, by all pairs."""
        sources, grid = self.world.require(PartitionSystem).present()
        x, solver = np.ascontiguousarray(x), self._solver
        if solver.has_images and len(sources.sigma):
            solver.prepare(sources, grid)
            if (fields := solver.pair_fields(x)) is not None:
                return fields
        return VortonFlow.by(DirectSolver(self), sources, grid).pair_fields(x)

    # ------------------------------------------------------------------ warnings

    def lint(self, world: World) -> list[str]:
        """Poor parameters, too coarse a grid, slow sums, and constants of the fluid that nothing uses."""
        solver, (_, (x, alpha, sigma)) = self._solver, self.joined(Position, Strength, CoreRadius)
        if solver.on_grid:
            texts = solver.grid_lint(*world.require(PartitionSystem).present())
        else:
            texts = slow_sums_lint(self, len(x))
        self._warned.update([solver.name] if texts else [])
        plane = plane_vortices_lint(x, alpha) if world.dimension == 3 else ()
        behind = behind_lint(self.mirror_planes, x, sigma)
        self._warned.update(["mirrors"] if behind else [])
        return [
            *texts,
            *solver.lint(),
            *mirror_lint(world, self.mirrors),
            *behind,
            *unfelt_lint(world),
            *unfelt_walls_lint(world, self),
            *self._unused_by_solver(),
            *plane,
        ]

    def _unused_by_solver(self) -> Iterator[str]:
        """Sentences on parameters that were set, and that other solvers take, but not this one."""
        if not is_shipped(type(self._solver)):
            return
        swells = bool(PotentialFlow.vortons(self))  # a flow that fmm may sum, to the same tolerance
        taken = {name: Solver.registry[name].Parameters.model_fields for name in get_args(SHIPPED)}
        for name, field in type(self).Parameters.model_fields.items():
            takers = [solver for solver, fields in taken.items() if name in fields]
            if not takers or self.solver in takers or (name == "tolerance" and swells):
                continue
            if (value := getattr(self, name)) != field.default:
                yield idle_lint("VelocitySystem", name, value, "solver", self.solver, takers)

    def _warn_once(self, solver: Solver, sources: Sources, grid: Grid) -> None:
        """Warn of an unsuitable grid, or of slow direct sums, once for each solver."""
        # All ranks must decide alike, and only the rank that ran `lint` knows that it warned.
        (warned,) = self.world.processes.largest([float(solver.name in self._warned)])
        if warned:
            return
        on_grid = solver.on_grid
        for text in solver.grid_lint(sources, grid) if on_grid else slow_sums_lint(self, len(sources.sigma)):
            self._warned.add(solver.name)
            self.warn(text, text)
