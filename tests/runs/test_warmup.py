"""What `warmup` compiles is all that worlds of surfaces and liquids need, whatever happens in them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ecs_fluid.runs import warmup
from ecs_fluid.world import World

SCRIPT = """
import gc, json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from numba.core.dispatcher import Dispatcher
import ecs_fluid as ef
from ecs_fluid.runs.warmup import compile_kernels
from ecs_fluid.worlds import LiquidRecipe

def compiled():
    found = set()
    for each in gc.get_objects():
        if isinstance(each, Dispatcher) and each.py_func.__module__.startswith("ecs_fluid"):
            found |= {f"{each.py_func.__module__}.{each.py_func.__name__}{s}" for s in each.signatures}
    return found

precision = sys.argv[1]
setting = f"world.precision={precision}"
compile_kernels(precision)
before = compiled()
report = {}

def noted(name):
    global before
    after = compiled()
    report[name] = sorted(after - before)
    before = after

world = ef.load("falling_drop", setting, "pool.spacing=0.1", "drop.spacing=0.1", "drop.sphere.radius=0.25")
world.add_system(ef.SurfaceSystem(of="liquid"))
world.step(2)
noted("falling_drop")
# More liquid, less liquid, none at all, and another number of steps.
LiquidRecipe(name="more", sphere={"center": (0.3, 0, 0.5), "radius": 0.2}, spacing=0.1).build(world)
world.step()
world["drop"].kill(np.arange(len(world["drop"])) % 2 == 0)
world.step()
world["more"].kill(np.ones(len(world["more"]), bool))
world.system(ef.SphSystem).courant = 0.3
world.step()
noted("liquid comes and goes")
world = ef.load("sloshing_dam", setting, "water.spacing=0.1")
world.step(3)
world.system(ef.SphSystem).measure()
noted("sloshing_dam")
world = ef.load("drops_merge", setting, "oil.spacing=0.0025")
world.step(30)
noted("drops_merge")
world = ef.load("drop_oscillates", setting, "oil.spacing=0.0025")
world.step(2)
world.system(ef.SurfaceTensionSystem).liquid_density = 900.0
world.step(2)
noted("a drop in another liquid")
print(json.dumps(report))
"""


def test_what_is_only_compiled_warns_nobody(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """Warmup told of drops two cells wide that they were too coarse."""
    built: list[World] = []
    monkeypatch.setattr(warmup, "compile_for", built.append)
    for part in warmup.PARTS:
        warmup.compile_part(part, "single")
    assert len(built) >= len(warmup.PARTS)
    assert not recwarn.list


@pytest.mark.nightly
@pytest.mark.parametrize("precision", ["single", "double"])
def test_surfaces_and_liquids_compile_nothing_after_warmup(precision: str) -> None:
    """Every kernel has the types it will ever get when warmup is done: no world of the kind, and no change in
    one (rows that come and go, drops that merge, walls that move), makes a new one."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, precision], capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert len(report) == 5
    assert report == {name: [] for name in report}
