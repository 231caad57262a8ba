"""Components: typed tables of named columns, one row per particle.

A component class declares its columns with unit, trailing shape and dtype::

    class Position(Component):
        '''Where the particles are.'''
        x: Array = column("m", shape=(3,))

*State* components come from recipes and are saved. *Derived* components (``derived=True``) are refilled every
tick by a system and never saved. If a system writes a derived component, or a state with ``given``, the world
attaches it to every entity that has the components named in ``given``. A *rate* (``rate_of=Position``) is a
derived component that the integrator adds, times ``dt``, to the component it names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.arguments import is_number, is_whole
from ecs_fluid.errors import ComponentError
from ecs_fluid.own_code import is_shipped, remember_code
from ecs_fluid.validation_errors import shown

Array = NDArray[Any]


@dataclass(eq=False, repr=False)
class Column:
    """One column of a component; what `column` declares."""

    unit: str
    shape: tuple[int | None, ...]
    kind: str
    default: float | None
    minimum: float | None
    above: float | None
    maximum: float | None
    least_given: float | None
    plane: Literal["in", "across"] | None
    in_frames: bool

    def __post_init__(self) -> None:
        limits = {"ge": self.minimum, "gt": self.above, "le": self.maximum}
        self.limits: dict[str, Any] = {key: limit for key, limit in limits.items() if limit is not None}
        """The allowed range, as keywords of `pydantic.Field`"""
        self.has_range = bool(self.limits) or self.least_given is not None
        self.component = self.name = ""
        self.per_row = True

    def __set_name__(self, owner: type, name: str) -> None:
        self.component, self.name = owner.__name__, name

    @property
    def label(self) -> str:
        """``Component.column``, the name used in files and messages."""
        return f"{self.component}.{self.name}".lstrip(".")

    @property
    def _unit(self) -> str:
        """The unit after a number; nothing where it is 1."""
        return "" if self.unit == "1" else f" {self.unit}"

    # Without __get__ a column is read from the instance like any attribute, at no cost.
    def __set__(self, instance: Component, value: object) -> None:
        columns = instance.__dict__
        if not self.per_row:
            array = self.check(value)
            if self.limits:
                self.check_values(array)
            columns[self.name] = array
            return
        old = columns.get(self.name)
        if value is old and old is not None:
            return  # `table.column += ...` has changed the array in place already
        array = self.check(value)
        rows = instance.rows
        if rows is not None and len(array) != rows:
            raise ComponentError(
                f"{self.label} has {len(array)} rows, but this {self.component} has {rows}; add rows by "
                "spawn and remove them by kill"
            )
        if old is not None:
            # Into the old array: it keeps the world's precision and shares nothing with the source.
            old[...] = array
        else:
            columns[self.name] = array

    def check(self, value: object) -> Array:
        """Return `value` as a C-contiguous array of this column's kind, or raise ComponentError."""
        if type(value) is np.ndarray and value.dtype in _PLAIN[self.kind] and value.flags.c_contiguous:
            array = value
        else:
            array = self._converted(value)
        shape = array.shape[1:] if self.per_row else array.shape
        alike = shape == self.shape or (
            len(shape) == len(self.shape)
            and all(want in (None, got) for want, got in zip(self.shape, shape, strict=True))
        )
        if not alike or (self.per_row and not array.ndim):
            wanted = ("n", *self.shape) if self.per_row else self.shape
            text = ", ".join("any" if part is None else str(part) for part in wanted)
            if len(wanted) == 1:
                text += ","
            raise ComponentError(f"{self.label} has shape {array.shape}; shape ({text}) is needed")
        return array

    def _converted(self, value: object) -> Array:
        """The value as an array in C order, of numbers that this column holds; else ComponentError."""
        if np.ma.is_masked(value):
            raise ComponentError(f"{self.label} has masked values; fill them, or leave out their rows")
        try:
            array = np.asarray(value)
        except (ValueError, TypeError):
            raise ComponentError(
                f"{self.label} needs an array of numbers whose rows all have the same length"
            ) from None
        what = "whole numbers" if self.kind == "int" else "float32, float64 or whole numbers"
        if array.dtype.kind in "iu" or (array.dtype.kind == "f" and self.kind == "double"):
            array = array.astype(np.int64 if self.kind == "int" else np.float64, copy=False)
        if array.dtype.char not in ("lq" if self.kind == "int" else "fd") or not array.dtype.isnative:
            raise ComponentError(
                f"{self.label} holds {shown(array.ravel()[:1].tolist())} of dtype {array.dtype}; {what} are "
                f"allowed{self._unit and f', in{self._unit}'}"
            )
        # Not ascontiguousarray, which turns a single number, shape (), into shape (1,).
        return np.asarray(array, order="C")

    def check_values(self, array: Array, place: str = "", given: bool = False) -> None:
        """Raise ComponentError for values that are not finite or out of range, naming the first bad row.

        Of values `given` by users, those below `least_given` are refused too.
        """
        if not np.isfinite(array).all():
            self._refuse(array, ~np.isfinite(array), "finite numbers are allowed", place)
        for bad, rule in self._broken_limits(array, given):
            self._refuse(array, bad, rule, place)

    def allows(self, array: Array) -> bool:
        """Whether users may give this array of finite numbers."""
        return not any(True for _ in self._broken_limits(array, given=True))

    def _broken_limits(self, array: Array, given: bool) -> Iterator[tuple[Array, str]]:
        """The values beyond each limit that some break, as a mask, and the limit in words."""
        for limit, is_beyond, words in (
            (self.minimum, np.less, "of at least"),
            (self.above, np.less_equal, "above"),
            (self.maximum, np.greater, "of at most"),
            (self.least_given if given else None, np.less, "of at least"),
        ):
            if limit is not None and (bad := is_beyond(array, limit)).any():
                yield bad, f"values {words} {limit:g}{self._unit} are allowed"

    def _refuse(self, array: Array, bad: Array, rule: str, place: str) -> None:
        part = int(bad.reshape(-1).argmax())
        row = part // (array.size // len(array)) if array.ndim else 0
        where = f"{place}: {self.label}" if place else self.label
        where += f" row {row}" if array.ndim else ""
        raise ComponentError(f"{where} is {array.reshape(-1)[part]}; {rule}")


def column(
    unit: str,
    *,
    shape: tuple[int | None, ...] = (),
    kind: str = "float",
    default: float | None = None,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    least_given: float | None = None,
    plane: Literal["in", "across"] | None = None,
    in_frames: bool = False,
) -> Any:
    """Declare a column of a component.

    Args:
        unit: SI unit of the values, "1" for pure numbers.
        shape: trailing shape of a row, () for scalars; for components that are not per row, the whole
            shape, with None for a free length.
        kind: "float" (precision of the world), "double" (float64 in any world) or "int" (int64).
        default: value of new rows for which none is given; without a default the column must be given.
        minimum, above, maximum: allowed range (``above`` excludes its end).
        least_given: least value that users may give; systems may write less during a tick.
        plane: for vectors (3,), what a two-dimensional world allows: "in", vectors that lie in its plane, or
            "across", vectors normal to it.
        in_frames: whether frames store the column of bodies, or a derived one of particles; of particles they
            store all state.
    """
    if not (isinstance(unit, str) and len(unit) <= 100):
        raise ComponentError(
            f"column: unit = {shown(unit)}; text of at most 100 characters is needed, such as 'm/s'"
        )
    if kind not in _PLAIN:
        raise ComponentError(f"column: kind = {shown(kind)}; 'float', 'double' or 'int' is needed")
    lengths = shape if isinstance(shape, tuple) else ("",)
    if not all(part is None or (is_whole(part) and part >= 0) for part in lengths):
        raise ComponentError(
            f"column: shape = {shown(shape)}; a tuple of whole numbers is needed, such as (3,)"
        )
    numbers = {"default": default, "minimum": minimum, "above": above, "maximum": maximum}
    for name, number in (numbers | {"least_given": least_given}).items():
        if not (number is None or is_number(number)):
            raise ComponentError(f"column: {name} = {shown(number)}; a number or None is needed")
    if plane is not None and (plane not in ("in", "across") or shape != (3,)):
        raise ComponentError(
            f"column: plane = {shown(plane)} with shape = {shown(shape)}; 'in' or 'across' is allowed, for "
            "vectors of shape (3,)"
        )
    return Column(unit, shape, kind, default, minimum, above, maximum, least_given, plane, in_frames)


_PLAIN = {
    "float": (np.dtype(np.float32), np.dtype(np.float64)),
    "double": (np.dtype(np.float64),),
    "int": (np.dtype(np.int64),),
}
"""Data types that need no conversion, by kind of column."""

DTYPES: dict[str, Any] = {"int": np.int64, "double": np.float64}
"""Data types of the kinds that do not follow the world's precision."""


def _closed(shape: tuple[int | None, ...]) -> tuple[int, ...]:
    """The shape, with 0 in place of free lengths."""
    return tuple(part or 0 for part in shape)


def _check_rate(rate: type[Component], state: type[Component]) -> None:
    """Raise ComponentError if the columns of a rate cannot be added to those of its state."""
    needed = [(field.shape, field.kind) for field in state.columns.values()]
    if state.derived or any(kind != "float" for _, kind in needed):
        raise ComponentError(
            f"{rate.__name__} cannot be the rate of {state.__name__}; only a state component whose columns "
            "are all of kind 'float' can have a rate, so give other columns a component of their own"
        )
    if [(field.shape, field.kind) for field in rate.columns.values()] != needed:
        raise ComponentError(
            f"{rate.__name__} is the rate of {state.__name__}, so it needs the same number of columns, of "
            "the same shapes and in the same order"
        )


class Component:
    """Base of all components; arrays are given by position or by name.

    Raises ComponentError when an array has the wrong shape, dtype or length, holds a non-finite value or
    one out of the column's range.
    """

    columns: ClassVar[dict[str, Column]] = {}
    derived: ClassVar[bool] = False
    per_row: ClassVar[bool] = True
    given: ClassVar[tuple[type[Component], ...]] = ()
    rate_of: ClassVar[type[Component] | None] = None
    squared: ClassVar[bool] = False
    may_leave_range: ClassVar[bool] = False
    """Whether rounding, overshoot or a user's system may take values out of their range; of shipped
    components, those that are integrated, except by their squares: systems keep the others in their range"""
    registry: ClassVar[dict[str, type[Component]]] = {}

    def __init_subclass__(
        cls,
        derived: bool = False,
        per_row: bool = True,
        given: tuple[type[Component], ...] = (),
        rate_of: type[Component] | None = None,
        squared: bool = False,
    ) -> None:
        """Register the component.

        Args:
            derived: refilled by a system each tick, never saved.
            per_row: one row per particle; otherwise one table for the entity (a grid, a counter).
            given: an entity that has these components gets this one, once a system fills it.
            rate_of: the component whose time derivative this is (same columns in the same order).
            squared: this is the time derivative of the square of the value, so that sigma^2 grows exactly
                linearly.
        """
        super().__init_subclass__()
        remember_code(cls)
        parent = next((base for base in cls.__mro__[1:] if getattr(base, "columns", None)), None)
        if parent is not None:
            raise ComponentError(
                f"{cls.__name__} derives from {parent.__name__}, which has columns; derive {cls.__name__} "
                "from Component itself"
            )
        cls.columns = {name: value for name, value in vars(cls).items() if isinstance(value, Column)}
        cls.derived = derived or rate_of is not None
        cls.may_leave_range = not is_shipped(cls)
        # A component without columns is a tag: it has no rows to keep in step with.
        cls.per_row = per_row and bool(cls.columns)
        cls.given, cls.rate_of, cls.squared = given, rate_of, squared
        if rate_of is not None:
            cls.given = given or (rate_of,)
            _check_rate(cls, rate_of)
            rate_of.may_leave_range = rate_of.may_leave_range or not squared
        other = Component.registry.get(cls.__name__)
        if other is not None and other.__module__ != cls.__module__:
            raise ComponentError(
                f"two components are called {cls.__name__} (in {other.__module__} and {cls.__module__}), "
                "so files could not tell their columns apart; rename one of them"
            )
        for field in cls.columns.values():
            field.per_row = cls.per_row
        Component.registry[cls.__name__] = cls

    def __init__(self, *arrays: object, **named: object) -> None:
        names = list(type(self).columns)
        title = type(self).__name__
        if len(arrays) > len(names):
            raise ComponentError(
                f"{title} was given {len(arrays)} arrays, but it has the columns {', '.join(names)}"
            )
        for name, value in zip(names, arrays, strict=False):
            if name in named:
                raise ComponentError(f"{title}.{name} was given twice")
            named[name] = value
        for name in named:
            if name not in names:
                raise ComponentError(f"{title} has no column {name!r}; it has {', '.join(names)}")
        for name in (name for name in names if name in named):
            setattr(self, name, named[name])
            type(self).columns[name].check_values(self.__dict__[name], given=True)
        given = list(self.__dict__.values())
        floating = next((array.dtype for array in given if array.dtype.kind == "f"), np.float64)
        for name, field in type(self).columns.items():
            if name in named:
                continue
            if field.default is None or (type(self).per_row and not given):
                raise ComponentError(f"{title}.{name} is missing; its unit is {field.unit}")
            shape = (len(given[0]), *field.shape) if type(self).per_row else _closed(field.shape)
            kind = DTYPES.get(field.kind, floating)
            setattr(self, name, np.full(shape, field.default, dtype=kind))

    if not TYPE_CHECKING:  # checkers find such names themselves

        def __setattr__(self, name: str, value: object) -> None:
            """Set a column; refuse other names, which would silently do nothing."""
            if name not in type(self).columns:
                names = ", ".join(type(self).columns) or "none"
                raise ComponentError(f"{type(self).__name__} has no column {name!r}; it has {names}")
            super().__setattr__(name, value)

    @classmethod
    def unchecked(cls, **arrays: Array) -> Self:
        """A table of these columns, all that it has, without checks and without copies."""
        self = cls.__new__(cls)
        self.__dict__.update(arrays)
        return self

    @classmethod
    def blank_beside(cls, tables: Tables, rows: int, dtype: np.dtype[Any] | type) -> Component:
        """A table of default values, which may depend on the other `tables` of the entity."""
        return cls.blank(rows, dtype)

    @classmethod
    def blank(cls, rows: int, dtype: np.dtype[Any] | type) -> Self:
        """A table of `rows` zero rows (or of each column's default), without checks."""
        columns: dict[str, Any] = {}
        for name, field in cls.columns.items():
            shape = (rows, *field.shape) if cls.per_row else _closed(field.shape)
            columns[name] = np.full(shape, field.default or 0, DTYPES.get(field.kind, dtype))
        return cls.unchecked(**columns)

    def agree(self, beside: Tables) -> None:
        """Raise ComponentError if columns contradict one another, or the entity's other tables, `beside`.

        For components to override. It is called for tables that are given, for those of a resumed world, and
        between ticks. If values may leave their range in a tick (`may_leave_range`), it is called only for
        tables that are given.
        """

    @property
    def rows(self) -> int | None:
        """Number of rows, None while no column is set or when the component is not per row."""
        if not type(self).per_row:
            return None
        for array in self.__dict__.values():
            return len(array)
        return None

    def items(self) -> Iterator[tuple[Column, Array]]:
        """Pairs of column declaration and array, in the declared order."""
        for name, field in type(self).columns.items():
            yield field, self.__dict__[name]

    def put(self, **arrays: object) -> None:
        """Set several columns, each checked as if it was assigned."""
        for name, value in arrays.items():
            setattr(self, name, value)

    def copy(self) -> Self:
        """An independent copy."""
        return self.unchecked(**{name: array.copy() for name, array in self.__dict__.items()})

    def __repr__(self) -> str:
        parts = ", ".join(f"{field.name}: {array.shape} {field.unit}" for field, array in self.items())
        return f"{type(self).__name__}({parts})"


def refuse_other_lengths(table: Component, *names: str) -> None:
    """Raise ComponentError if these columns of a table, which belong together, differ in length."""
    first, *others = (vars(table)[name] for name in names)
    for name, array in zip(names[1:], others, strict=True):
        if len(array) != len(first):
            title = type(table).__name__
            raise ComponentError(
                f"{title}.{name} has {len(array)} rows, but {title}.{names[0]} has {len(first)}; both need "
                "the same number of rows, so set them together by put"
            )


def refuse_no_component(*kinds: object) -> None:
    """Raise ComponentError for anything but a class of components, such as its name or a table."""
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Component)):
            raise ComponentError(
                f"{shown(kind)} is not a component class; pass a class such as ef.Position, without quotes"
            )


class RowId(Component):
    """Number of a row, which stays when other rows are removed; given by the world, never reused."""

    id: Array = column("1", kind="int", in_frames=True)


Tables = dict[type[Component], Component]
"""The components of an entity, by type."""
