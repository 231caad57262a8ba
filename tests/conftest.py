"""Settings shared by all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator

import esper
import pytest
from hypothesis import settings

# The workers of pytest share the cores: their threads had better sleep while they wait for one another.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

# So had those of numpy's linear algebra, which wait awake after every product of a hundred rows or more: what
# tests multiply is small, and one thread of it takes a quarter of the time of two that others hold up.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Bits are compared on one thread and on two, on a machine of one core too.
if len(getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)) < 2:
    os.environ.setdefault("NUMBA_NUM_THREADS", "2")

# Processes that tests start find the package compiled to bytecode, as a user's do: a tenth of a second each.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Derandomized: a red run can be repeated. No deadline: the first call of a kernel compiles it.
settings.register_profile("ecs_fluid", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ecs_fluid")


LONG = (
    "promises",
    "documents",
    "solvers",
    "reference",
    "ranks",
    "determinism",
    "tutorials",
    "plane",
    "velocity_errors",
)
"""Files of tests that take longest come first, so that no worker is left with one of them at the end."""

LAST = ("test_mutations.py", "viz", "worlds")
"""Mutated worlds need kernels of all kinds, which are there once the others ran; short files follow."""


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The second of two workers begins at the other end: each compiles half of the files to bytecode."""
    report = yield
    if isinstance(collector, pytest.Dir) and os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
        report.result.reverse()
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, the last ones last, the others by their names: workers must have the same order."""
    names = [f"test_{name}.py" for name in LONG]

    def place(item: pytest.Item) -> tuple[int, str]:
        if item.path.name in names:
            return names.index(item.path.name), str(item.path)
        late = [number for number, name in enumerate(LAST, start=1) if name in item.path.parts]
        return len(names) + max(late, default=0), str(item.path)

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """What was collected stays until the end: no search for garbage need look at it.

    Nor need searches be frequent: numba keeps most of what it makes while it compiles, and looking through
    all of it again and again takes a twentieth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 50, 50)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Kernels on one thread by day, on all by night.

    Two workers keep two cores busy, where threads of small worlds wait for one another longer than they
    compute. Bits do not depend on the number of threads, as those tests show that choose it
    (`test_determinism`).
    """
    if numba := sys.modules.get("numba"):
        import ecs_fluid.kernels  # noqa: F401  (it chooses the threading library, before threads start)

        by_day = item.get_closest_marker("nightly") is None
        numba.set_num_threads(1 if by_day else numba.config.NUMBA_NUM_THREADS)


@pytest.fixture(autouse=True)
def esper_is_left_as_found() -> Iterator[None]:
    """Every test ends in the esper world in which it began."""
    former = esper.current_world
    yield
    assert esper.current_world == former
