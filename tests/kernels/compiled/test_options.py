"""What a kernel computes does not depend on which of its callers was compiled first.

numba gives a compiled function the options `fastmath`, `error_model` and `forceinline` of the caller that
needs it first, unless its own name them; all other callers have that machine code then, and the cache keeps
it. So a function without an option of its own must get the same one wherever it is called from.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

import ecs_fluid.kernels

INHERITED = {"fastmath": False, "error_model": "python", "forceinline": False}
"""Options that a function takes from its first caller, and what they are where Python calls it."""


def compiled_in(value: Any) -> Iterator[Any]:
    """Compiled functions among these: itself, parts of a tuple or a list, values of a dict."""
    if isinstance(value, Dispatcher):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from compiled_in(part)
    elif isinstance(value, dict):
        yield from compiled_in(list(value.values()))


def names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def callees(function: Any) -> Iterator[Any]:
    """Compiled functions that this one names, by themselves or in a module."""
    plain = function.py_func
    names = set(names_in(plain.__code__))
    for cell in plain.__closure__ or ():
        yield from compiled_in(cell.cell_contents)
    for name in names:
        value = plain.__globals__.get(name)
        if isinstance(value, ModuleType):
            yield from compiled_in([getattr(value, other, None) for other in names])
        else:
            yield from compiled_in(value)


def options(function: Any) -> dict[str, Any]:
    """Those of its own that numba would else take from a caller."""
    found = {name: function.targetoptions.get(name) for name in INHERITED}
    return {
        name: frozenset(value) if isinstance(value, set) else value
        for name, value in found.items()
        if value is not None
    }


def unsettled(functions: list[Any]) -> dict[str, set[Any]]:
    """The options which a function would have by one caller and not by another, and what they would be."""
    calls: dict[Any, list[Any]] = {}
    while functions:
        function = functions.pop()
        if function not in calls:
            calls[function] = list(callees(function))
            functions += calls[function]
    own = {function: options(function) for function in calls}
    called = {callee for found in calls.values() for callee in found}
    # Those whose code is kept may be called by Python.
    have = {
        function: {
            name: {own[function][name]}
            if name in own[function]
            else ({usual} if function not in called or not isinstance(function._cache, NullCache) else set())
            for name, usual in INHERITED.items()
        }
        for function in calls
    }
    changed = True
    while changed:
        changed = False
        for caller, found in calls.items():
            for callee in found:
                for name in INHERITED:
                    if name not in own[callee] and not have[caller][name] <= have[callee][name]:
                        have[callee][name] |= have[caller][name]
                        changed = True
    return {
        f"{function.py_func.__module__}.{function.py_func.__qualname__}: {name}": values
        for function, by_name in have.items()
        for name, values in by_name.items()
        if len(values) > 1
    }


def test_every_kernel_has_the_same_options_by_all_its_callers() -> None:
    kernels = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(ecs_fluid.kernels.__path__, "ecs_fluid.kernels.")
    ]
    functions = list(compiled_in([vars(module) for module in kernels]))
    assert len(functions) > 500
    assert unsettled(functions) == {}


PARTS = """
from numba import njit


@njit(**said)
def part(x):
    return x * x / 3.0


@njit(cache=True, fastmath=True, error_model="numpy", forceinline=True)
def loose(x):
    return part(x)


@njit(cache=True)
def strict(x):
    return part(x)
"""


@pytest.mark.parametrize("said", [{}, {"fastmath": False, "error_model": "numpy", "forceinline": False}])
def test_what_a_function_does_not_say_is_that_of_its_first_caller(
    said: dict[str, Any], tmp_path: Path
) -> None:
    """In numba itself, whose names of compiled functions tell their options."""
    names = []
    for order in (("loose", "strict"), ("strict", "loose")):
        source = tmp_path / f"{order[0]}_first.py"
        source.write_text(PARTS, encoding="utf-8")
        ours: dict[str, Any] = {"__name__": "ecs_fluid.kernels.made_up", "said": said}
        exec(compile(PARTS, source, "exec"), ours)
        assert [ours[name](3.0) for name in order] == [3.0, 3.0]
        (part,) = ours["part"].overloads.values()
        names.append(re.sub(r"B\d+v\d+", "", part.fndesc.mangled_name))
        assert len(unsettled([ours["loose"], ours["strict"]])) == (0 if said else 3)
    assert (names[0] == names[1]) == bool(said)
