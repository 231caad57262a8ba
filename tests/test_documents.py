"""Every Python and TOML block of README and docs runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list[tuple[str, str]]:
    """(page and number, text) of all fenced blocks of a language."""
    found = []
    for page in PAGES:
        texts = re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
        found += [(f"{page.name}-{number}", text) for number, text in enumerate(texts, start=1)]
    return found


@pytest.mark.parametrize(("name", "code"), blocks("python"), ids=lambda value: value[:30])
def test_python_block_runs(name: str, code: str, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{name}: {done.stderr}"


@pytest.mark.parametrize(("name", "text"), blocks("toml"), ids=lambda value: value[:30])
def test_toml_block_is_a_valid_world(name: str, text: str) -> None:
    from ecs_fluid.worlds import WorldRecipe

    recipe = WorldRecipe.from_tables(tomllib.loads(text), name)
    assert recipe.frames == round(recipe.world.duration / recipe.world.dt)
    world = recipe.build()
    assert len(world["smoke"]) > 0


def test_readme_examples_are_as_short_as_it_says() -> None:
    example, system = (text for name, text in blocks("python") if name.startswith("README"))
    assert sum(bool(line.strip()) for line in example.splitlines()) <= 15
    assert sum(bool(line.strip()) for line in system.splitlines()) <= 15


def test_readme_system_does_what_it_says(tmp_path: Path) -> None:
    """A point at radius 1 turned at 2 rad/s for 0.25 s by rk4 ends at the angle 0.5 rad."""
    import numpy as np

    import ecs_fluid as ef

    code = next(text for name, text in blocks("python") if name == "README.md-2")
    namespace: dict[str, object] = {"__name__": "readme_example"}
    exec(code, namespace)
    swirl = namespace["Swirl"]
    world = ef.World(dt=0.01, integrator="rk4", precision="double")
    world.spawn("dot", ef.Position([[1.0, 0.0, 0.0]]))
    world.add_system(swirl(spin=2.0))  # type: ignore[operator]
    world.add_system(ef.AdvectionSystem())
    world.step(25)
    # Local error of rk4 is (spin dt)^5 / 120 = 3e-11 per step, 25 steps.
    np.testing.assert_allclose(world["dot"][ef.Position].x, [[np.cos(0.5), np.sin(0.5), 0]], atol=1e-9)
