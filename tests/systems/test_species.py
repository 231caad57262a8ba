"""The component Species names the species: a further one is told in four files, and all take it up."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from docs.generator import programs
from docs.generator.packages import ROOT, parts

NAMES = {"fuel", "flame", "smoke"}
TOLD = {
    "components/particles.py",  # Species, and their rates
    "components/fields.py",  # their fields
    "systems/shared/emitters.py",  # what an emitter may be told
    "worlds/fluid_block.py",  # what a block may be told
}
MEANT = {
    "systems/combustion.py",  # which of them burns, and to what
    "ecs_fluid/kernels/combustion/burning.py",
    "systems/particle_mesh.py",  # which of them is bright, and which dark
    "viz/colours.py",
    "viz/scene.py",  # layers of a picture of fire
}


def named(path: Path) -> bool:
    """Whether the code of a file, apart from names of its own, names two species or more."""
    found, text = set(), path.read_text(encoding="utf-8")
    if sum(name in text for name in NAMES) < 2:
        return False
    for node in ast.walk(ast.parse(text)):
        told = (getattr(node, key, None) for key in ("id", "attr", "arg", "value"))
        words = {word.rpartition(".")[2].removeprefix("d") for word in told if isinstance(word, str)}
        found |= words & NAMES
    return len(found) > 1


def test_species_are_told_in_four_files() -> None:
    found = {
        str(path.relative_to(ROOT))
        for paths in parts().values()
        for path in paths
        if named(path) and "page/" not in str(path)
    }
    assert found >= MEANT
    assert found - MEANT == TOLD


STEAM = """
import ast, importlib.machinery, json, linecache, sys
from pathlib import Path

told = {Path(name) for name in json.loads(sys.argv[1])}
loader = importlib.machinery.SourceFileLoader
plain = loader.get_code

def get_code(self, name):
    path = Path(self.path).resolve()
    if path not in told:
        return plain(self, name)
    lines = path.read_text().splitlines()
    # Every statement that declares smoke, with the docstring under it, once more for steam.
    for owner in reversed([node for node in ast.walk(ast.parse(path.read_text())) if hasattr(node, "body")]):
        for at, node in enumerate(owner.body if isinstance(owner, ast.ClassDef) else ()):
            if isinstance(node, ast.AnnAssign) and node.target.id in ("smoke", "dsmoke"):
                below = owner.body[at + 1] if at + 1 < len(owner.body) else node
                last = below if isinstance(below, ast.Expr) else node
                own = [line.replace("smoke", "steam") for line in lines[node.lineno - 1 : last.end_lineno]]
                lines[last.end_lineno : last.end_lineno] = own
    text = "\\n".join(lines) + "\\n"
    linecache.cache[self.path] = (len(text), None, text.splitlines(True), self.path)
    return compile(text, self.path, "exec")

loader.get_code = get_code
import numpy as np
import ecs_fluid as ef
from ecs_fluid.exports.names import plain_names
from ecs_fluid.exports.volumes import AMOUNTS
from ecs_fluid.worlds import WorldRecipe

box = {"kind": "fluid_block", "box": {"low": [0, 0, 0], "high": [1, 1, 1]}, "spacing": 0.1}
recipe = WorldRecipe.from_tables({
    "world": {"dt": 0.1, "duration": 0.2},
    "entity": [
        {"name": "wet", "steam": "0.5*(x < 0.5)", "smoke": 0.25, "temperature": 300, **box},
        {"name": "tap", "kind": "emitter", "into": "drops", "rate": 10, "steam": 0.125, "smoke": 0.5},
    ],
    "system": [{"kind": "thermal", "species_diffusivity": 1e-3}],
}, "steam.toml")
world = recipe.build()
world.spawn("seen", ef.Position([[0.05 + 0.1 * i, 0.5, 0.5] for i in range(10)]))
world.add_system(ef.SamplingSystem(on=("seen",)))
volume, before = world["wet"][ef.Volume].volume, world["wet"][ef.Species].steam.copy()
world.step(2)
after, seen = world["wet"][ef.Species].steam, world["seen"][ef.Species]
try:
    ef.systems.Emitter(name="a", into="b", rate=1, steam=0.6, smoke=0.6)
except ef.errors.RecipeError as error:
    refused = str(error)
print(json.dumps({
    "columns": list(ef.Species.columns),
    "total": [float((volume * before).sum()), float((volume * after).sum())],
    "moved": float(abs(after - before).max()),
    "seen": seen.steam.tolist(),
    "smoke": seen.smoke.tolist(),
    "drops": world["drops"][ef.Species].steam.tolist(),
    "refused": refused,
    "plain": plain_names(["Species.steam"])["Species.steam"],
    "volume": AMOUNTS["Species.steam"],
}))
"""


def test_a_fourth_species_is_taken_up_by_everything(tmp_path: Path) -> None:
    """`steam`, declared like smoke in the four files, is given, mixed, sampled, emitted and exported.

    Steam of mass fraction 1/2 fills the half x < 0.5 of a block. Mixing moves some of it across and keeps
    its sum. Tracers in the block read the fields: 1/2 far on the one side, 0 far on the other.
    """
    program = programs.written(tmp_path, STEAM)
    told = json.dumps([str((ROOT / name).resolve()) for name in TOLD])
    done = programs.run(program, told, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["columns"] == ["fuel", "flame", "smoke", "steam"]
    first, second = found["total"]
    assert abs(first - 0.25) < 0.026  # half of the block, to a layer of its cells
    assert abs(second - first) < 1e-5 * first
    assert found["moved"] > 1e-4
    assert abs(found["seen"][2] - 0.5) < 1e-3 and abs(found["seen"][7]) < 1e-3
    assert abs(found["smoke"][2] - 0.25) < 1e-3
    assert found["drops"] == [0.125, 0.125]
    assert "fuel + flame + smoke + steam is 1.2; at most 1 is allowed" in found["refused"]
    assert (found["plain"], found["volume"]) == ("steam", "steam")
