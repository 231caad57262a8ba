"""The base class of all velocity solvers, those that ship and a user's own, and how they are named."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from functools import cached_property, lru_cache, wraps
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from pydantic import create_model
from pydantic_core import PydanticUndefined

from ecs_fluid.component import Array, Component
from ecs_fluid.components import Grid, Sources
from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.own_code import is_shipped
from ecs_fluid.parameter_models import parameter_model
from ecs_fluid.plugins import class_named, group_of, import_path, refuse_shipped_name
from ecs_fluid.settings import Settings
from ecs_fluid.system import System, short_kind
from ecs_fluid.systems.partition import GridNeeds
from ecs_fluid.targets import Targets

if TYPE_CHECKING:
    from ecs_fluid.kernels.biot_savart.regularisation import Code
    from ecs_fluid.systems.shared.walls import Walls
    from ecs_fluid.systems.velocity.system import VelocitySystem
    from ecs_fluid.world import World


class PairFields(NamedTuple):
    """Fields of vortons at m points, by sums over all pairs."""

    psi: Array
    """(m, 3) m^2/s, vector potential"""
    omega: Array
    """(m, 3) 1/s, vorticity of the blobs"""
    u: Array
    """(m, 3) m/s, velocity"""
    du: Array
    """(m, 3, 3) 1/s, velocity gradient du_i/dx_j"""


class Solver:
    """A method that finds the velocity induced by the vortons, and its gradient, at any points.

    A subclass is registered when it is defined. Its name is the name of the class in small letters, without
    "Solver" (``FloorSolver``: "floor"), or its import path ``module:Class``. Its parameters are annotated
    class attributes, like those of a system, and are given with those of the VelocitySystem, in Python and
    in a world file. One that the VelocitySystem has too (``tolerance``, ``angle``) is declared without a
    default and takes its value from the system. A VelocitySystem makes its solver anew when a parameter
    changes, and calls `prepare` whenever it needs velocities, so a solver must not rely on what it kept in
    an earlier tick.
    """

    registry: ClassVar[dict[str, type[Solver]]] = {}
    name: ClassVar[str] = ""
    Parameters: ClassVar[type[Settings]] = Settings
    on_grid: ClassVar[bool] = False
    """Whether `prepare` makes `grid_velocity`, from which all particles interpolate; ``auto`` replaces such a
    solver for a flat population in three dimensions"""
    sums_pairs: ClassVar[bool] = False
    """Whether the result approximates the sum over all pairs in unbounded space, so that the direct sum may
    replace it at a few points"""
    divides_targets: ClassVar[bool] = False
    """Whether `fill` divides the targets among the processes of a world (`World.processes`)"""
    dimensions: ClassVar[tuple[int, ...]] = (3,)
    """Dimensions of the worlds that it works in; (2, 3): also flow in a plane (docs/plane.md)"""
    needs_all_sources: ClassVar[bool] = True
    """Whether `fill` reads all vortons, not only those that `World.processes` fetches for its targets"""
    periodic: ClassVar[bool] = False
    """Whether it sums over the vortons' images in periodic worlds (`World.periods`)"""

    reads: ClassVar[tuple[type[Component], ...]] = ()
    """Component types that it reads beside Sources and Grid"""
    asks: ClassVar[tuple[type[System] | str, ...]] = ()
    """Systems whose methods it calls beside the PartitionSystem, like `asks` of a system"""
    own_field: ClassVar[bool] = False
    """Whether `prepare` makes a field of its own, even without vortons, that is cheap to read anywhere: all
    particles then read it, whatever `tracers` says"""

    grid_velocity: Array
    """Velocity (px, py, pz, 3) m/s at the points of the field grid, of a solver `on_grid`"""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.name = short_kind(cls.__name__, "Solver")
        if "__init__" in vars(cls):
            raise FluidError(
                f"{cls.__name__} defines __init__; declare parameters as annotated class attributes, and "
                "make what the solver keeps in prepare"
            )
        refuse_shipped_name(cls, cls.name, Solver.registry)
        cls.Parameters = parameter_model(cls, Solver, ("grid_velocity",))
        if not is_shipped(cls) and "fill" in vars(cls):
            cls.fill = _checked(cls.fill)  # type: ignore[assignment,method-assign]
        Solver.registry[cls.name] = Solver.registry[import_path(cls)] = cls

    def __init__(self, system: VelocitySystem, **parameters: Any) -> None:
        self._system = system
        for name, field in self.Parameters.model_fields.items():
            value = parameters.get(name, getattr(system, name, field.default))
            if value is PydanticUndefined:
                raise FluidError(
                    f"solver = {self.name!r} needs its parameter {name!r}; give both to VelocitySystem"
                )
            setattr(self, name, value)

    @property
    def system(self) -> VelocitySystem:
        """The VelocitySystem that this solver belongs to."""
        return self._system

    @property
    def world(self) -> World:
        """The world of the system."""
        return self._system.world

    @cached_property
    def code(self) -> Code:
        """Code of the cores' regularisation, for kernels."""
        return self._system.code

    @property
    def by_spline(self) -> bool:
        """Whether a solver `on_grid` spreads strengths by a cubic spline; vortons then read by one too."""
        return False

    @property
    def has_images(self) -> bool:
        """Whether it sums over images of the vortons too, in a periodic world or behind walls."""
        return bool(self.world.periods.any())

    # ------------------------------------------------------------------ the three methods

    def grid_needs(self) -> GridNeeds:
        """How far the field grid must reach beyond the vortons, and how fine it should be."""
        return GridNeeds()

    @abstractmethod
    def prepare(self, sources: Sources, grid: Grid) -> None:
        """Prepare for n >= 1 vortons: x (3, n) m, alpha (3, n) m^3/s, sigma (n,) m, sorted by cells."""
        raise FluidError(f"{type(self).__name__} has no prepare(self, sources, grid) method")

    @abstractmethod
    def fill(self, targets: Targets) -> None:
        """Fill targets.u (m, 3) m/s and, unless it is None, targets.du (m, 3, 3) 1/s at targets.x (m, 3) m.

        du[:, i, j] is du_i/dx_j. All arrays have the world's precision. It may be called any number of times
        after `prepare`.
        """
        raise FluidError(f"{type(self).__name__} has no fill(self, targets) method")

    # ------------------------------------------------------------------ optional methods

    def added(self, world: World) -> None:
        """Called when it becomes the solver of a world; may attach components that it needs."""

    def lint(self) -> list[str]:
        """Sentences about parameters that look wrong."""
        return []

    def pair_fields(self, x: Array) -> PairFields | None:
        """The fields at x (m, 3) m of a solver that `has_images`, for diagnostics; None: sums over pairs."""
        return None

    def image_walls(self) -> list[Walls]:
        """Walls behind which its flow has images of the vortons; exchange of strengths has them there too."""
        return []

    def grid_lint(self, sources: Sources, grid: Grid) -> list[str]:
        """Sentences about a field grid that does not suit these vortons; for a solver `on_grid`."""
        return []


def _checked(fill: Callable[[Any, Targets], None]) -> Callable[[Any, Targets], None]:
    """`fill` of a user's solver, checked: it must set every element of the arrays to a number."""

    @wraps(fill)
    def filled(solver: Solver, targets: Targets) -> None:
        arrays = [array for array in (targets.u, targets.du) if array is not None]
        for array in arrays:
            array.fill(np.nan)
        fill(solver, targets)
        for array, name in zip(arrays, ("u", "du"), strict=False):
            if getattr(targets, name) is not array or np.isnan(array).any():
                raise FluidError(
                    f"{type(solver).__name__}.fill must set all of targets.{name} to numbers, in place "
                    f"(targets.{name}[...] = ...)"
                )

    return filled


def solver_class(name: str, place: str = "solver", allow_code: bool = False) -> type[Solver]:
    """The solver class of that name: already defined, from an installed package, or ``module:Class``.

    Raises:
        RecipeError: if there is none (the message holds the nearest name), or if importing it is not allowed.
    """
    name = str(name)
    if name in Solver.registry and not allow_code:
        return Solver.registry[name]
    return class_named(name, place, Solver, Solver.registry, allow_code, key="solver")


def solver_names(more: tuple[str, ...] = ()) -> list[str]:
    """Names of solvers for any flow: those that ship, those of installed packages, and `more`, each once."""
    shipped = [name for name in get_args(SHIPPED) if not Solver.registry[name].own_field]
    return list(dict.fromkeys([*shipped, *entry_points(group=group_of(Solver)).names, *more]))


SHIPPED = Literal["direct", "tree", "fmm", "pppm", "poisson", "hybrid", "container", "auto"]

SolverName = SHIPPED | str
"""Name of a solver; editors suggest those that ship."""


@lru_cache
def model_with(model: type[Settings], more: type[Settings]) -> type[Settings]:
    """A model with the parameters of `model` and those of `more` that it lacks."""
    for name in model.model_fields.keys() & more.model_fields.keys():
        there, own_field = model.model_fields[name], more.model_fields[name]
        if not own_field.is_required() or own_field.annotation != there.annotation:
            raise RecipeError(
                f"{more.__name__.removesuffix('Parameters')}.{name} has the name of a parameter of "
                f"VelocitySystem; declare it without a value and as {there.annotation}, or rename it"
            )
    own: dict[str, Any] = {}
    for name, field in more.model_fields.items():
        if name not in model.model_fields:
            own[name] = (field.annotation, copy(field))
            own[name][1].description = more.descriptions()[name]  # its docstring is in the other class
    return create_model(model.__name__, __base__=model, **own) if own else model
