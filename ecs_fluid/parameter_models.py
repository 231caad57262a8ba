"""Parameters of systems and solvers: a model of their annotated class attributes."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Annotated, Any, get_type_hints

from pydantic import create_model
from pydantic.fields import FieldInfo

from ecs_fluid.errors import ScheduleError
from ecs_fluid.own_code import remember_code
from ecs_fluid.settings import Settings


def parameter_model(cls: Any, root: type, declarations: Collection[str] = ()) -> type[Settings]:
    """Parameter model of a class derived from `root`: its annotated attributes and those of its bases.

    Attributes named in `declarations` are no parameters, annotated or not.
    """
    remember_code(cls)
    own = [
        name
        for name, text in inspect.get_annotations(cls).items()
        if not name.startswith("_") and "ClassVar" not in str(text) and name not in declarations
    ]
    for name in own:
        if hasattr(root, name) or name == "parameters":
            raise ScheduleError(
                f"{cls.__name__} has a parameter {name!r}, but every {root.__name__.lower()} already has "
                "an attribute of that name; rename it"
            )
    try:
        hints = get_type_hints(cls, include_extras=True) if own else {}
    except NameError as error:  # its traceback points at no line of a file
        raise ScheduleError(f"{cls.__name__}: the type of a parameter cannot be read: {error}") from None
    fields: dict[str, Any] = {}
    for name in own:
        default = cls.__dict__.get(name, ...)
        fields[name] = (hints[name], default)
        if isinstance(default, FieldInfo):
            delattr(cls, name)
    base: type[Settings] = next((b.Parameters for b in cls.__mro__[1:] if issubclass(b, root)), Settings)
    for name, inherited in base.model_fields.items():
        if name in cls.__dict__ and name not in own:
            # A new default alone keeps the range and the description that the parent declared.
            limits: Any = inherited.metadata
            number: Any = Annotated[(inherited.annotation, *limits)] if limits else inherited.annotation
            fields[name] = (number, FieldInfo(default=cls.__dict__[name], description=inherited.description))
    model = create_model(f"{cls.__name__}Parameters", __base__=base, __doc__=cls.__doc__, **fields)
    # Where pickle looks for it.
    model.__module__, model.__qualname__ = cls.__module__, f"{cls.__qualname__}.Parameters"
    model.written_in = cls
    model.untyped = tuple(
        name
        for name, value in vars(cls).items()
        if isinstance(value, bool | int | float | str) and name not in fields and not hasattr(root, name)
    )
    return model
