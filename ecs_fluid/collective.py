"""Methods of a world that several processes share: some all of them carry out, some none may call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ecs_fluid.world import World

F = TypeVar("F", bound=Callable[..., Any])


def collective(method: F) -> F:
    """A method of World that all ranks carry out when rank 0 calls it; what it returns is rank 0's."""

    @functools.wraps(method)
    def call(world: World, *arguments: Any, **named: Any) -> Any:
        return world.processes.call(world, method, arguments, named)

    return call  # type: ignore[return-value]


def before_sharing(method: F) -> F:
    """A method of World that changes what it is made of: not once its rows are shared out."""

    @functools.wraps(method)
    def call(world: World, *arguments: Any, **named: Any) -> Any:
        world.processes.check_change(method.__name__)
        return method(world, *arguments, **named)

    return call  # type: ignore[return-value]
