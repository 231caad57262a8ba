"""Compiled functions have names of their own: what is kept on disk is found by name and types alone."""

from __future__ import annotations

import gc
import importlib
import pkgutil

from numba.core.dispatcher import Dispatcher

import ecs_fluid.kernels


def test_no_two_compiled_functions_have_one_name() -> None:
    """With one name, the tree's sum of one regularisation answered for the multipole method's of another."""
    for module in pkgutil.walk_packages(ecs_fluid.kernels.__path__, "ecs_fluid.kernels."):
        importlib.import_module(module.name)
    gc.unfreeze()  # what was there when the tests were collected is looked at, too
    found: dict[tuple[str, str], tuple[object, ...]] = {}
    for thing in gc.get_objects():
        if issubclass(type(thing), Dispatcher):  # isinstance would follow proxies of what is gone
            function = thing.py_func
            name = (function.__module__, function.__qualname__)
            if name[0].startswith("ecs_fluid.kernels"):
                # What a closure holds makes its code another one.
                held = [cell.cell_contents for cell in function.__closure__ or ()]
                code = (function.__code__, *held)
                assert found.setdefault(name, code) == code, name
    gc.freeze()
    assert len(found) > 300
