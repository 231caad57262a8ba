"""Systems: behaviour that runs once per tick (or once per integrator stage) on component tables.

A system declares what it touches and when, and its parameters as annotated class attributes::

    class Swirl(System):
        '''Everything turns about the z axis.'''
        reads = (Position,)
        adds = (Velocity,)
        phase = "rates"
        spin: float = Field(default=1.0, ge=0)
        '''angular velocity, rad/s'''

        def process(self, dt: float) -> None:
            for position, velocity in self.query(Position, Velocity):
                velocity.u[:, 0] -= self.spin * position.x[:, 1]
                velocity.u[:, 1] += self.spin * position.x[:, 0]

Parameters are checked when the system is made, in Python and in a world file alike.
"""

from __future__ import annotations

import inspect
import json
import re
import weakref
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, dataclass_transform, overload

import esper
import numpy as np
from pydantic import Field

from ecs_fluid.component import Array, Component, RowId
from ecs_fluid.errors import FluidError, RecipeError, ScheduleError, warn
from ecs_fluid.parameter_models import parameter_model
from ecs_fluid.plugins import import_path, users_method
from ecs_fluid.settings import Settings
from ecs_fluid.validation_errors import closest, nearest, shown, validated

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.world import World

PHASES = ("spawn", "prepare", "rates", "move", "constrain", "observe")
"""Order of a tick; prepare and rates are repeated for every stage of the integrator."""

Types = tuple[type[Component], ...]
A = TypeVar("A", bound=Component)
B = TypeVar("B", bound=Component)
C = TypeVar("C", bound=Component)
D = TypeVar("D", bound=Component)


@dataclass
class Timing:
    """Wall-clock time of one system, s, summed over the stages of a tick.

    The very first call, which may compile kernels, is kept apart from `total` and `calls`.
    """

    last: float = 0.0
    total: float = 0.0
    calls: int = 0
    first: float | None = None

    def add(self, seconds: float) -> None:
        """Count a call that took this many seconds."""
        self.last += seconds
        if self.first is None:
            self.first = seconds
        else:
            self.total, self.calls = self.total + seconds, self.calls + 1


def short_kind(name: str, ending: str = "System") -> str:
    """The kind by which world files name a class, without its `ending`: "age_limit" for AgeLimitSystem."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix(ending) or ending).lower()


class Queries:
    """The query that worlds and systems share."""

    # Finds the entities that have some types, and their tables.
    _found: Callable[..., Iterator[tuple[Any, Any]]]

    @overload
    def query(self, a: type[A], /) -> Iterator[tuple[A]]: ...
    @overload
    def query(self, a: type[A], b: type[B], /) -> Iterator[tuple[A, B]]: ...
    @overload
    def query(self, a: type[A], b: type[B], c: type[C], /) -> Iterator[tuple[A, B, C]]: ...
    @overload
    def query(self, a: type[A], b: type[B], c: type[C], d: type[D], /) -> Iterator[tuple[A, B, C, D]]: ...
    @overload
    def query(self, *types: type[Component]) -> Iterator[tuple[Any, ...]]: ...

    def query(self, *types: type[Component]) -> Iterator[tuple[Any, ...]]:
        """Tables of every entity that has all the `types`, in the order of creation.

        A system may ask for declared types alone.
        """
        return map(itemgetter(1), self._found(*types))


@dataclass_transform(kw_only_default=True, field_specifiers=(Field,))
class System(Queries, esper.Processor):
    """Base of all systems.

    Class attributes to set:
        reads, may_read: component types that it reads. It needs those of ``reads``, and does nothing without
            them; it uses those of ``may_read`` if an entity has them. ``may_read = (Component,)`` means all.
        writes, adds: component types that it changes. ``writes`` overwrites or updates, ``adds`` adds to a
            rate or a load (systems that add to one table need no order among themselves).
        asks: system classes, or their names, whose methods this one calls while it runs. A method runs under
            the declarations of its own class; for the order, the caller reads all that this class reads and
            writes. Who asks the VelocitySystem asks all winds (systems with `add_wind`) too.
        phase: one of spawn, prepare, rates, move, constrain, observe.
        before, after: system classes, or their names, of the same phase to run before or after; "*" means
            all others.
        symmetric: whether the system runs twice per tick, each time with half of `dt`. In the phase move, it
            runs before the stages of the integrator and again in its place after them, and may change state
            only; the splitting is of second order if the system's own step is exact or of second order
            (Strang, SIAM J. Numer. Anal. 5 (1968)). In the phase spawn, it runs before all other systems,
            with rows spawned and killed at once, and again after the phase move, with rows spawned and killed
            when the tick ends.
        several: whether a world may have several of the class; they then run in the order in which they were
            added. None, the default: if they write no table in common.
        integrates: whether it advances all states by their rates, once for every stage of the integrator.
        on: a parameter of this name, a tuple of entity names, says which entities the system works on
            (`chosen`); the world refuses names of entities that it does not have.
        distribution: which rows its tables hold if several processes share the world (docs/ranks.md):
            "whole" (the default) all rows; "rows" those of this process, if it treats each row by itself;
            "ranks" those of this process, if it exchanges data by `World.processes`.
        dimensions: dimensions of the worlds that it is right for: (3,), the default, or (2, 3) if it also
            works in a plane, where a particle stands for one metre across it (docs/plane.md).
        makes_vorticity: whether it creates vorticity, as buoyancy and walls do: vortons then stand in clouds,
            not in lines (StretchSystem), and their flow does not tell the pressure.
        warms: whether it gives temperatures to vortons that have none.
        periodic: whether it works in worlds that repeat (`World.periods`), whose positions lie in one period.
        unchanging: names of parameters that cannot be changed once the system is made, such as those from
            which `__post_init__` derives `writes`.
    """

    reads: ClassVar[Types] = ()
    may_read: ClassVar[Types] = ()
    writes: Types = ()
    adds: ClassVar[Types] = ()
    asks: ClassVar[tuple[type[System] | str, ...]] = ()
    phase: ClassVar[str] = "move"
    before: ClassVar[tuple[type[System] | str, ...]] = ()
    after: ClassVar[tuple[type[System] | str, ...]] = ()
    integrates: ClassVar[bool] = False
    symmetric: ClassVar[bool] = False
    several: ClassVar[bool | None] = None
    distribution: ClassVar[Literal["rows", "whole", "ranks"]] = "whole"
    dimensions: ClassVar[tuple[int, ...]] = (3,)
    makes_vorticity: ClassVar[bool] = False
    warms: ClassVar[bool] = False
    periodic: ClassVar[bool] = True
    unchanging: ClassVar[tuple[str, ...]] = ()
    watching: bool
    Parameters: ClassVar[type[Settings]] = Settings
    kind: ClassVar[str] = "system"
    registry: ClassVar[dict[str, type[System]]] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name, value in vars(cls).items():
            declares = isinstance(value, tuple | type) or value in PHASES
            meant = closest(name, DECLARATIONS, 0.8) if declares and not hasattr(System, name) else None
            if meant not in (None, name):
                raise ScheduleError(f"{cls.__name__}.{name} is not a declaration; did you mean {meant!r}?")
        if cls.phase not in PHASES:
            raise ScheduleError(f"{cls.__name__}.phase is {cls.phase!r}; the phases are {', '.join(PHASES)}")
        if not (isinstance(cls.dimensions, tuple) and {2, 3}.issuperset(cls.dimensions) and cls.dimensions):
            raise ScheduleError(
                f"{cls.__name__}.dimensions is {cls.dimensions!r}; (2,), (3,) or (2, 3) is needed"
            )
        if cls.symmetric and cls.phase not in ("spawn", "move"):
            raise ScheduleError(
                f"{cls.__name__} is symmetric and runs in the phase {cls.phase!r}; only systems of the "
                "phases 'spawn' and 'move' can be symmetric"
            )
        for listed, (base, allowed) in LISTED.items():
            given = getattr(cls, listed)
            given = given if isinstance(given, tuple) else (given,)
            for item in given:
                named = base is System and isinstance(item, str)
                if not named and not (isinstance(item, type) and issubclass(item, base)):
                    raise ScheduleError(f"{cls.__name__}.{listed} holds {item!r}; {allowed} are allowed")
            setattr(cls, listed, given)
        cls.kind = short_kind(cls.__name__)
        cls.Parameters = parameter_model(cls, System, DECLARATIONS)
        System.registry[cls.path()] = cls

    @classmethod
    def path(cls) -> str:
        """Import path ``module:Class``, the name of the class in checkpoints and world files."""
        return import_path(cls)

    def __init__(self, **parameters: Any) -> None:
        self._set_parameters(parameters)
        # Whether another system added it, `check_additions` has tried it, and a user wrote its class.
        self._implied = self._probed = self._user_defined = False
        self._timing, self._recorded, self._warned = Timing(), set[str](), set[Hashable]()
        # Queries of the first tick: whether an entity matched, by name in `on` ("" without it) and types.
        self._queried: dict[str, dict[Types, bool]] | None = {}
        self._world: weakref.ref[World] | None = None
        self.watching = False
        with users_method(type(self), "__post_init__"):
            self.__post_init__()

    def __post_init__(self) -> None:
        """Called after the parameters are checked; override it to set attributes of the system's own."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Check a parameter that is changed later; refuse new names, except in methods of the system.

        A misspelled parameter would silently have no effect.
        """
        if "_world" in vars(self) and name in type(self.parameters).model_fields:
            self.put(**{name: value})
        elif name in vars(self) or name.startswith("_") or hasattr(type(self), name) or self._sets_itself():
            object.__setattr__(self, name, value)
        else:
            known = [key for key in vars(self) if key[0] != "_" and key not in ("parameters", "watching")]
            raise RecipeError(f"{type(self).__name__} has no attribute {name!r}; {nearest(name, known)}")

    def put(self, **parameters: Any) -> None:
        """Set several parameters that belong together; they are checked together.

        Parameters that no longer exist with these values are dropped.
        """
        for name, value in parameters.items():
            if name in self.unchanging and value != getattr(self, name):
                raise FluidError(f"{type(self).__name__}: {name} cannot be changed once the system is made")
            if self._world is not None:
                self.world._ticker.between_ticks(f"a change of {type(self).__name__}.{name}", "observe")
        values = self._given() | parameters
        remaining = self.parameters_for(values, type(self).__name__).model_fields
        values = {key: values[key] for key in values if key in remaining or key in parameters}
        if self._world is None or self.world._joining_system is self:
            self._set_parameters(values)
        else:
            with self.world._rejoining([self]):
                self._set_parameters(values)

    def _given(self) -> dict[str, Any]:
        """The parameters that it was given, without those that have their default."""
        names = self.parameters.model_fields_set
        return {name: value for name, value in self.parameters if name in names}

    def _sets_itself(self) -> bool:
        """Whether the attribute is being set by a method of this system."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_name in ("_sets_itself", "__setattr__"):
            frame = frame.f_back
        return frame is not None and frame.f_locals.get("self") is self

    def _set_parameters(self, values: dict[str, Any]) -> None:
        """Check the parameters, and make them attributes."""
        place = type(self).__name__
        self.parameters = validated(self.parameters_for(values, place), values, place)
        for name, value in self.parameters:
            object.__setattr__(self, name, value)

    @classmethod
    def parameters_for(cls, values: Any, place: str) -> type[Settings]:
        """Pydantic model of the parameters, which may depend on their values; `place` is for messages."""
        return cls.Parameters

    @classmethod
    def all_parameters(cls) -> type[Settings]:
        """Model of every parameter that the system can have, whatever the values of others; for help."""
        return cls.Parameters

    @classmethod
    def load_code(cls, values: Any, place: str) -> None:
        """Import what these parameters name by ``module:Class``; called only if the user's code may run."""

    @classmethod
    def summary(cls) -> str:
        """What it computes: the first line of its docstring, or of its nearest base class that has one."""
        bases = cls.__mro__[: cls.__mro__.index(System)]
        texts = (vars(base).get("__doc__") for base in bases)
        text = next((text for text in texts if text), "")
        return text.strip().partition("\n")[0].removesuffix(".")

    @property
    def world(self) -> World:
        """The world this system was added to."""
        world = self._world() if self._world is not None else None
        if world is None:
            raise ScheduleError(f"{type(self).__name__} belongs to no world yet; use world.add_system")
        return world

    @property
    def by_weight(self) -> bool:
        """Whether it makes vorticity by the weight (rho - rho_a) g / rho_0 of the density that vortons carry.

        rho_a is the density of the fluid at rest. The pressure of the flow then follows from the vortons.
        """
        return False

    @abstractmethod
    def process(self, dt: float) -> None:
        """Do this system's work for a tick (or integrator stage) of `dt` seconds."""
        raise ScheduleError(f"{type(self).__name__} has no process(self, dt) method")

    def spawns(self, world: World) -> None:
        """Make the entities that this system fills.

        Of systems that are added together, all have this called before any has `added` called.
        """

    def added(self, world: World) -> None:
        """Called when the system joins a world, also a resumed one, and when the fluid or a parameter is set.

        It may raise an error to refuse that, and add systems and components that it needs and does not find.
        """

    def must_hold(self, world: World) -> None:
        """Raise an error if this system cannot go on with what the world holds.

        Called after `added`, also in a resumed world, and between ticks, so it must cost little.
        """

    def before_system(self, system: System) -> None:
        """Called before every other system runs, while `watching` is set."""

    def after_system(self, system: System) -> None:
        """Called after every other system has run, while `watching` is set."""

    def lint(self, world: World) -> list[str]:
        """Return sentences about what looks wrong before the first tick."""
        return []

    def warn(self, text: str, topic: Hashable = None) -> None:
        """Issue a FluidWarning of what goes wrong now; it begins with the time. Once for each `topic`."""
        if topic not in self._warned:
            warn(f"t = {self.world.time:.4g} s: {text}")
            self._warned.add(topic)  # a warning that is an error comes again

    def record(self, **values: Any) -> None:
        """Add diagnostics of this tick, numbers or lists by name, which a run stores with the others.

        For systems of the phase observe. All values of a tick make one record. In `run.diagnostics` each name
        is a column; only one system may record it.
        """
        history, world, title = self.world.history, self.world, type(self).__name__
        if world._ticker.phase not in ("", "observe"):
            raise ScheduleError(
                f"{title} records in the phase {self.phase!r}, before the tick is over; only systems of "
                "the phase 'observe' can record"
            )
        if not history or history[-1].get("tick") != world.tick:
            history.append({"tick": world.tick, "time": world.time})
        for name, value in values.items():
            if name in history[-1] and name not in self._recorded:
                raise ScheduleError(
                    f"{title} records {name!r}, but this tick's record already has that name; choose "
                    "another one"
                )
            try:
                history[-1][name] = json.loads(json.dumps(value, default=_as_python))
            except (TypeError, ValueError):
                raise ScheduleError(
                    f"{title} records {name} = {shown(value)}; a number, text or a list of them is needed"
                ) from None
            self._recorded.add(name)

    @overload
    def entities(self, a: type[A], /) -> Iterator[tuple[Entity, tuple[A]]]: ...
    @overload
    def entities(self, a: type[A], b: type[B], /) -> Iterator[tuple[Entity, tuple[A, B]]]: ...
    @overload
    def entities(self, a: type[A], b: type[B], c: type[C], /) -> Iterator[tuple[Entity, tuple[A, B, C]]]: ...
    @overload
    def entities(
        self, a: type[A], b: type[B], c: type[C], d: type[D], /
    ) -> Iterator[tuple[Entity, tuple[A, B, C, D]]]: ...
    @overload
    def entities(
        self, *types: type[Component], on: tuple[str, ...] = ()
    ) -> Iterator[tuple[Entity, tuple[Any, ...]]]: ...

    def entities(
        self, *types: type[Component], on: tuple[str, ...] = ()
    ) -> Iterator[tuple[Entity, tuple[Any, ...]]]:
        """Like `query`, with the entity: pairs (entity, tables); only entities that `on` names, if any."""
        for wanted in types:
            self.check_declared(wanted)
        found = self.world._holding(types)
        if self._queried is not None and any(kind.per_row for kind in types):
            names = {entity.name for entity, _ in found}
            for name in on or ("",):
                self._queried.setdefault(name, {})[types] = name in names if on else bool(names)
        return iter([pair for pair in found if pair[0].name in on] if on else found)

    _found = entities

    def joined(self, *types: type[Component]) -> tuple[list[Entity], list[Array]]:
        """Entities that have all the `types`, and the first column of each type with their rows end to end.

        The columns of a single entity are its own arrays, not copies.
        """
        pairs, columns = list(self.entities(*types)), []
        for place, kind in enumerate(types):
            name = next(iter(kind.columns))
            parts = [vars(tables[place])[name] for _, tables in pairs]
            if not parts:
                parts = [vars(kind.blank(0, self.world.dtype))[name]]
            columns.append(parts[0] if len(parts) == 1 else np.concatenate(parts))
        return [entity for entity, _ in pairs], columns

    def chosen(self, *types: type[Component]) -> Iterator[tuple[Entity, tuple[Any, ...]]]:
        """Like `entities`, but only those that the parameter `on` names; all if it names none."""
        on = getattr(self, "on", ())
        return self.entities(*types, on=(on,) if isinstance(on, str) else on)

    def check_declared(self, wanted: type[Component]) -> None:
        """Raise ScheduleError unless `wanted` is among the declared components."""
        if not (isinstance(wanted, type) and issubclass(wanted, Component)):
            listed = (*self.reads, *self.may_read, *self.writes, *self.adds)
            names = ", ".join(dict.fromkeys(kind.__name__ for kind in listed)) or "none yet"
            raise ScheduleError(
                f"{type(self).__name__} accesses {shown(wanted)}, which is not a component class; allowed "
                f"are those that it declares, without quotes: {names}"
            )
        if wanted in self.reads or wanted in self.writes or wanted in self.adds or wanted in self.may_read:
            return
        # RowId never changes, so reading it needs no place in the order.
        if self.integrates or wanted is RowId or Component in self.may_read:
            return
        what = "every component of an entity" if wanted is Component else wanted.__name__
        lists = "may_read" if wanted is Component else "reads, may_read, writes or adds"
        raise ScheduleError(
            f"{type(self).__name__} accesses {what} but does not declare it; add {wanted.__name__} to its "
            f"{lists}"
        )

    def field(self, wanted: type[A]) -> A:
        """The component of that type on the world's `fluid` entity."""
        self.check_declared(wanted)
        return self.world.fluid[wanted]

    def __repr__(self) -> str:
        chosen = self.parameters.model_dump(exclude_defaults=True)
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in chosen.items())})"


def _as_python(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's, for JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError


DECLARATIONS = tuple(
    name for name in System.__annotations__ if name not in ("Parameters", "kind", "registry")
)
"""Class attributes that are never parameters, annotated or not."""

_COMPONENTS = (Component, "component classes")
_SYSTEMS = (System, "system classes or their names")
LISTED: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("reads", "may_read", "writes", "adds"), _COMPONENTS),
    **dict.fromkeys(("asks", "before", "after"), _SYSTEMS),
}
"""For each declared tuple of a system, the class that its items derive from, and their name in messages."""
