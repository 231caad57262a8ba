"""Vortex-particle fluid simulation as an entity-component-system.

Worlds are entities with component arrays; ordered systems run Numba kernels on them each tick::

    import ecs_fluid as ef

    world = ef.load("vortex_ring")
    world.step(10)
    print(world["ring"][ef.Position].x, world.diagnostics()["impulse"])
    run = ef.run("vortex_ring", ticks=100)
    run.show()

An overview; each name has its own help, such as ``help(ef.World)``:

* make a world: `load` (a shipped name, a file, its tables), `World`, `WorldRecipe`; recipes of entities are
  in `ecs_fluid.worlds`;
* what a `World` does: `step`, `spawn`, `remove`, `add_system`, `set_fluid`, `schedule`, `save`; what it
  answers: ``world[name]``, `velocity`, `vorticity`, `velocity_gradient`, `sample`, `diagnostics`,
  `to_pyvista`, `show`;
* run it into a folder: `run`, `open_run`; a `Run` has frames, `diagnostics`, `show`, `movie`, `export`,
  `resume`; a folder in other forms: `export`, `page`; many values: `sweep`, `Study`; a checkpoint: `resume`;
* components, the tables of an entity: `Position`, `Strength`, `CoreRadius`, `Velocity`, `Temperature`, ...;
* systems: `VelocitySystem`, `StretchSystem`, `DiffusionSystem`, `BodySystem`, `SphSystem`, ...;
* your own: `System`, `Component` with `column`, `Recipe`, `Solver`; values that change over time: `Keyed`;
* errors: all are `FluidError`, in one sentence; warnings are `FluidWarning`; `limits` bound what files ask.

Importing ecs_fluid loads neither numba nor PyVista: they come with the first tick and the first picture.
"""

from __future__ import annotations

import ast as _ast
import importlib as _importlib
from pathlib import Path as _Path
from typing import Any as _Any

__version__ = "0.1.0"


def _homes() -> dict[str, str]:
    """Public names, and the modules that define them: the list in __init__.pyi, which type checkers read."""
    here = _Path(__file__).parent
    if not here.is_dir():
        raise ImportError(
            f"{here} is not a folder: ecs_fluid does not run from an archive; install it with pip"
        )
    if not (here / "worlds").is_dir():
        raise ImportError(
            f"{here / 'worlds'} is not a folder, nor a link to one; clone with git clone -c "
            "core.symlinks=true in a terminal that may make links, or install with pip install . without -e"
        )
    stub = (here / "__init__.pyi").read_text(encoding="utf-8")
    imports = [node for node in _ast.parse(stub).body if isinstance(node, _ast.ImportFrom)]
    return {name.name: str(node.module) for node in imports for name in node.names}


_HOME = _homes()

# There is no __all__: with one, help(ecs_fluid) is 19,000 lines of all classes, without it the text above.


def __getattr__(name: str) -> _Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ecs_fluid' has no attribute {name!r}")
    value = getattr(_importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
