"""What is wrong in a recipe class, or in a world made in Python, is said in one sentence too."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
import ecs_fluid.worlds  # registers its recipes before a test restores the registry
from ecs_fluid.component import Component
from ecs_fluid.errors import RecipeError
from ecs_fluid.recipe import Recipe
from ecs_fluid.system import System


def refused(sentence: str) -> pytest.RaisesExc:
    return pytest.raises(RecipeError, match=f"^{re.escape(sentence)}")


class Speck(Recipe):
    """A particle, with the systems that a test gives it."""

    def spawn(self, world: ef.World) -> None:
        world.spawn(self.name, ef.Position(np.zeros((1, 3))))


@pytest.fixture(autouse=True)
def _registries() -> Iterator[None]:
    kinds = [Recipe, System, ef.Solver, Component]
    before = [dict(kind.registry) for kind in kinds]
    path = list(sys.path)
    yield
    sys.path[:] = path
    for kind, registry in zip(kinds, before, strict=True):
        kind.registry.clear()
        kind.registry.update(registry)


@pytest.mark.parametrize("given", [ef.DragSystem, None, [ef.DragSystem], [ef.DragSystem(), "drag"]])
def test_systems_that_are_none(given: Any) -> None:
    class Odd(Speck):
        def systems(self) -> Any:
            return given

    wrong = given[-1] if isinstance(given, list) else given
    with refused(f"[[entity]] 'a': systems of {Odd.kind} gives {wrong!r}; a list of systems is needed"):
        ef.WorldRecipe(entity=[Odd(name="a")]).build()


def test_code_that_fails_is_named_with_its_line() -> None:
    class Odd(Speck):
        def spawn(self, world: ef.World) -> None:
            raise KeyError("x")

        def systems(self) -> list[System]:
            raise ZeroDivisionError("oh")

    line = Odd.spawn.__code__.co_firstlineno + 1
    with refused(
        f"[[entity]] 'a': spawn of {Odd.kind} fails: KeyError: 'x' (line {line} of {__file__})"
    ) as caught:
        ef.WorldRecipe(entity=[Odd(name="a")]).build()
    assert isinstance(caught.value.__cause__, KeyError)
    Odd.spawn = Speck.spawn  # type: ignore[method-assign]
    with refused(
        f"[[entity]] 'a': systems of {Odd.kind} fails: ZeroDivisionError: oh (line {line + 3} of {__file__})"
    ):
        ef.WorldRecipe(entity=[Odd(name="a")]).build()


@pytest.mark.parametrize("allow_code", [False, True])
@pytest.mark.parametrize(
    ("section", "kind", "head"),
    [
        ("system", "ecs_fluid:System", "process(self, dt)"),
        ("entity", "ecs_fluid:Recipe", "spawn(self, world)"),
        ("entity", "ecs_fluid.worlds.bodies:_Placed", "_motion(self)"),
    ],
)
def test_bases_are_no_kinds(section: str, kind: str, head: str, allow_code: bool) -> None:
    tables = {"entity": [{"kind": "vortex_ring", "name": "ring"}], section: [{"kind": kind, "name": "a"}]}
    with refused(f"world: [[{section}]] 1: {kind!r} has no {head} method; a class that has one is needed"):
        ef.WorldRecipe.from_tables(tables, allow_code=allow_code)


def test_the_base_of_solvers_is_none() -> None:
    tables = {"fluid": {"velocity": {"solver": "ecs_fluid:Solver"}}}
    with refused("world: [fluid] velocity: 'ecs_fluid:Solver' has no fill(self, targets) method; "):
        ef.WorldRecipe.from_tables(tables, allow_code=True)


def test_a_solver_is_made_by_the_system() -> None:
    with pytest.raises(ef.FluidError, match="HeldSolver defines __init__; declare parameters as"):

        class HeldSolver(ef.Solver):
            def __init__(self) -> None: ...


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"wrld": {}}, "WorldRecipe: unknown key 'wrld'; did you mean 'world'?"),
        ({"world": {"dt": -1}}, "WorldRecipe: world.dt = -1; a number above 0.0 is needed"),
        ({"fluid": {"law": "gas"}}, "WorldRecipe: fluid.law = 'gas'; allowed: 'none', 'ideal_gas' or 'liq"),
    ],
)
def test_a_world_made_in_python(wrong: dict[str, Any], sentence: str) -> None:
    with refused(sentence):
        ef.WorldRecipe(**wrong)


def test_an_entity_made_in_python() -> None:
    with refused("Speck: unknown key 'nam'; did you mean 'name'?"):
        Speck(nam="a")  # type: ignore[call-arg]


SHAPES = "known: airfoil, ball, box, compound, cube, cylinder, dodecahedron, icosahedron, mesh, octahedron, "


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ({"radius": 1.0}, f"shape.shape is missing; {SHAPES}"),
        ({"shape": "bal", "radius": 1.0}, "shape.shape = 'bal' is not known; did you mean 'ball'?"),
        ({"shape": 3}, f"shape.shape = '3' is not known; {SHAPES}"),
        ("ball", "shape = 'ball'; a table is needed"),
        ({"shape": "ball", "radius": -1.0}, "shape.radius = -1.0; a number at least"),
    ],
)
def test_shapes(shape: Any, sentence: str) -> None:
    body = {"kind": "body", "name": "b", "shape": shape}
    with refused(f"world: [[entity]] 1 'b': {sentence}"):
        ef.WorldRecipe.from_tables({"entity": [body]})


MINE = """
import ecs_fluid as ef
import ecs_fluid.worlds  # registers its recipes before a test restores the registry
from ecs_fluid.component import Array, Component, column


class Set:
    class Push(ef.System):
        '''Pushes along x by what a module beside this one says, asked for in the tick.'''

        reads = (ef.Position,)
        adds = (ef.Velocity,)
        phase = "rates"

        def process(self, dt: float) -> None:
            import speed_beside

            for _, velocity in self.query(ef.Position, ef.Velocity):
                velocity.u[:, 0] += speed_beside.SPEED

    class Ballast(Component):
        '''Ballast.'''

        q: Array = column("C", default=1.0)

    class Speck(ef.Recipe):
        '''A particle at the origin.'''

        def spawn(self, world: ef.World) -> None:
            world.spawn(self.name, ef.Position([[0.0, 0.0, 0.0]]), Set.Ballast([2.0]))
"""
WORLD = """
[world]
dt = 0.1
[[entity]]
kind = "nested_beside:Set.Speck"
name = "a"
[[system]]
kind = "nested_beside:Set.Push"
"""


def test_nested_classes_and_modules_beside_a_world_file_that_are_imported_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One second at 3 m/s, also from a checkpoint that another process would read without these classes."""
    (tmp_path / "nested_beside.py").write_text(MINE)
    (tmp_path / "speed_beside.py").write_text("SPEED = 3.0\n")
    (tmp_path / "world.toml").write_text(WORLD)
    world = ef.load(tmp_path / "world.toml", allow_code=True)
    world.step(5)
    world.save(tmp_path / "half")
    world.step(5)
    assert world["a"][ef.Position].x[0, 0] == pytest.approx(3.0, rel=1e-6)
    for kind in (System, Component, Recipe):
        for name in [name for name in kind.registry if "Set." in name or name == "Ballast"]:
            del kind.registry[name]
    sys.modules.pop("nested_beside")
    sys.modules.pop("speed_beside")
    again = ef.resume(tmp_path / "half", allow_code=True)
    again.step(5)
    assert again.state_hash() == world.state_hash()


def test_a_lint_that_fails_is_named() -> None:
    class Odd(Speck):
        def lint(self) -> list[str]:
            raise KeyError("x")

    line = Odd.lint.__code__.co_firstlineno + 1
    with refused(f"'a': lint of {Odd.kind} fails: KeyError: 'x' (line {line} of {__file__})"):
        ef.WorldRecipe(entity=[Odd(name="a")]).lint()
