"""A function has the same machine code whoever calls it, where it is compiled and where it is loaded."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite.binding import Linkage
from numba import njit

from ecs_fluid.kernels.compiled.shared_machine_code import LARGE


def defined(dispatcher: Any) -> dict[str, Linkage]:
    """Functions whose machine code was made with this one."""
    (found,) = dispatcher.overloads.values()
    return {function.name: function.linkage for function in found.library.get_defined_functions()}


def test_functions_of_others_that_are_linked_in_are_private() -> None:
    @njit
    def often(n: int) -> float:
        total = 0.0
        for k in range(n):
            for m in range(n):
                total += (k * m) % 7 / (1.0 + k)
        return total

    @njit
    def caller(n: int) -> float:
        return often(n) + often(n + 1) + often(n + 2)

    assert caller.py_func(5) == caller(5)
    linkages = set(defined(caller).values())
    assert Linkage.internal in linkages
    assert Linkage.linkonce_odr not in linkages


OURS = """
from numba import njit
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors


@njit
def total(n):
    wide_vectors()  # which keeps it a function of its own
    return 0.5 * n


@njit
def twice(n):
    return total(n) + total(n + 1)
"""


def test_ours_are_called_where_they_lie() -> None:
    ours: dict[str, Any] = {"__name__": "ecs_fluid.kernels.made_up"}
    exec(OURS, ours)
    total, twice = ours["total"], ours["twice"]
    assert njit(lambda n: twice(n))(4) == 4.5
    name = total.overloads[total.signatures[0]].fndesc.mangled_name
    assert name in defined(total) and name not in defined(twice)
    library = twice.overloads[twice.signatures[0]].library
    assert next(made.names for made in library.called()) == (name,)


def test_large_functions_are_called_and_only_those_that_must_be_are_taken_in() -> None:
    """Callers see of a large function its name alone, and all of it where its options say so."""
    steps = "".join(f"    x = x * x - {k}.5 if x < {k} else x / {k + 2}.0\n" for k in range(60))
    for option in (False, True):
        ours: dict[str, Any] = {"__name__": "ecs_fluid.kernels.made_up"}
        exec(f"def large(x):\n{steps}    return x\n\ndef caller(x):\n    return large(x) + 1.0\n", ours)
        plain = ours["caller"](0.3)
        ours["large"] = large = njit(forceinline=option)(ours["large"])
        caller = njit(ours["caller"])
        assert njit(lambda x, caller=caller: caller(x))(0.3) == plain
        found = large.overloads[large.signatures[0]]
        name, shown = found.fndesc.mangled_name, found.library._get_module_for_linking()
        assert len(str(found.library.get_function(name)).splitlines()) > LARGE
        assert shown.get_function(name).is_declaration != option
        called = caller.overloads[caller.signatures[0]].library.called()
        assert any(name in made.names for made in called) != option


@pytest.mark.parametrize("first", ["plain", "contracted"])
def test_powers_round_as_their_own_caller_may(first: str) -> None:
    """What numba compiles of its own for a kernel is not that of a kernel with other options before it."""
    functions = {
        name: njit(fastmath=options)(lambda x, y: x**2 + y**2)
        for name, options in (("plain", False), ("contracted", {"contract"}))
    }
    kind = float if first == "plain" else np.float32  # of which nothing is compiled in the other case
    for name in sorted(functions, key=lambda name: name != first):
        assert functions[name](kind(3.0), kind(4.0)) == 25.0
    for name, function in functions.items():
        (text,) = function.inspect_llvm().values()
        products = [line for line in text.splitlines() if re.search(r"= fmul .*(float|double) ", line)]
        assert products
        assert all((" contract " in line) == (name == "contracted") for line in products)


PROGRAM = """
import sys
from collections.abc import Callable
from numba import njit, objmode
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors

__name__ = "ecs_fluid.kernels.kept"
sys.modules[__name__] = sys.modules["__main__"]


@njit
def total(n):
    wide_vectors()  # which keeps it a function of its own
    if n < 0:
        raise ValueError("negative", n)
    with objmode(half="float64"):
        half = n / 2
    return half


@njit(cache=True)
def once(n):
    return total(n) + 1.0


@njit(cache=True)
def again(n):
    return once(n) + total(n)


for function in map(globals().get, sys.argv[1:]):
    try:
        function(-3)
    except ValueError as error:
        print(function(4), error.args, sum(function.stats.cache_hits.values()))
"""


def kept_in(folder: Path, program: str) -> Callable[..., list[str]]:
    """Runs a program with the functions named, which keeps them in a folder, and returns what it prints."""
    kept = folder / "kept.py"
    kept.write_text(program, encoding="utf-8")
    environment = {**os.environ, "ECS_FLUID_CACHE_DIR": str(folder)}

    def run(*functions: str) -> list[str]:
        command = [sys.executable, str(kept), *functions]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def test_a_process_that_compiled_nothing_has_what_kept_functions_call(tmp_path: Path) -> None:
    """Neither what is called nor what it needs of Python is there, unless it is kept with the caller."""
    run = kept_in(tmp_path, PROGRAM)
    once, again = "3.0 ('negative', -3)", "5.0 ('negative', -3)"
    assert run("once") == [f"{once} 0"]
    assert run("once", "again") == [f"{once} 1", f"{again} 0"]
    assert run("again", "once") == [f"{again} 1", f"{once} 1"]


GENERATOR = """
import sys
from collections.abc import Callable
from numba import njit
from ecs_fluid.kernels.compiled.wide_vectors import wide_vectors

__name__ = "ecs_fluid.kernels.kept"
sys.modules[__name__] = sys.modules["__main__"]
others = [lambda: 0 for _ in 100 * sys.argv[1]]  # so that what follows lies at another address


@njit
def pieces(n):
    wide_vectors()  # which keeps it a function of its own
    for k in range(n):
        yield k


@njit
def total(n):
    found = 0
    for k in pieces(n):
        found += k
    return found


@njit(cache=True)
def one(n):
    return total(n)


@njit(cache=True)
def second(n):
    return -total(n)


for function in map(globals().get, sys.argv[1:]):
    print(function(4), sum(function.stats.cache_hits.values()))
"""


def test_functions_kept_by_several_processes_have_the_generators_that_they_call(tmp_path: Path) -> None:
    """What goes on with a generator is named after its address, which is another in each process."""
    run = kept_in(tmp_path, GENERATOR)
    assert run("one") == ["6 0"]
    assert run("second") == ["-6 0"]
    assert run("one", "second") == ["6 1", "-6 1"]
