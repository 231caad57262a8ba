"""Every Python and TOML block of README and docs runs as it stands, and every command in them is one."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from docs.generator import programs

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIALS = ROOT / "docs" / "tutorials"


def blocks(language: str) -> list[tuple[str, str]]:
    """(page and number, text) of all fenced blocks of a language; tutorials are run by test_tutorials.py."""
    found = []
    for page in (page for page in PAGES if page.parent != TUTORIALS):
        texts = re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
        found += [(f"{page.name}-{number}", text) for number, text in enumerate(texts, start=1)]
    return found


@pytest.mark.parametrize(("name", "text"), [pytest.param(*block, id=block[0]) for block in blocks("python")])
def test_python_block_runs(name: str, text: str, tmp_path: Path) -> None:
    """In a process and a folder of its own, as its reader runs it."""
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    done = programs.run(tmp_path / "program.py", folder=tmp_path, NUMBA_NUM_THREADS="1")
    assert done.returncode == 0, f"{name}: {done.stderr}"


def worlds_without_code() -> list[tuple[str, str]]:
    """World files in the pages; that of recipes.md runs in tests/worlds/test_user_recipes.py."""
    return [(name, text) for name, text in blocks("toml") if not name.startswith("recipes.md")]


@pytest.mark.parametrize(("name", "text"), worlds_without_code(), ids=lambda value: value[:30])
def test_toml_block_is_a_valid_world(name: str, text: str) -> None:
    from ecs_fluid.worlds import WorldRecipe

    recipe = WorldRecipe.from_tables(tomllib.loads(text), name)
    assert recipe.ticks == round(recipe.world.duration / recipe.world.dt)
    world = recipe.build()
    seen = next(world[name] for name in ("smoke", "water", "sparks") if name in world)
    while not len(seen) and world.time < 1.0:  # an emitter gives it off, or it flows in
        world.step()
    assert len(seen) > 0


STANDS_FOR = {
    "RUN": "runs/ring",
    "WORLD": "vortex_ring",
    "FORMAT": "usd",
    "DIR": "folder",
    "NAME": "smoke",
    "N": "2",
}
"""What takes the place of the words in capitals that stand for a value."""


def commands() -> list[str]:
    """Command lines of ours in the shell blocks, in indented blocks and in backticks; no synopses."""
    found: dict[str, None] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = "".join(re.findall(r"```sh\n(.*?)```", text, flags=re.S)).splitlines()
        lines += re.findall(r"^ {4}(ecs-fluid .*)$", text, flags=re.M)
        lines += re.findall(r"`(ecs-fluid [^`]+)`", text)
        for part in (part.strip() for line in lines for part in line.split(" && ")):
            program, _, rest = part.partition(" ")
            if program.endswith("ecs-fluid") and not re.search(r"\[|\bCOMMAND\b", rest):
                plain = re.sub(r"\b[A-Z]+\b", lambda word: STANDS_FOR.get(word[0], word[0]), rest)
                found[f"ecs-fluid {plain.partition(' #')[0].strip()}"] = None
    return list(found)


@pytest.mark.parametrize("line", commands(), ids=lambda line: line[10:60])
def test_command_exists_with_these_options(line: str) -> None:
    from docs.generator.code_pages import commands as known
    from ecs_fluid.cli import app

    names = [name for name, _ in known()]
    if line.removeprefix("ecs-fluid ") not in names:  # a name alone is spoken of, not to be typed
        app.parse_args(shlex.split(line)[1:], print_error=False, exit_on_error=False)


def test_commands_were_found() -> None:
    """README's first command and one of each other kind of place."""
    assert {
        "ecs-fluid run vortex_ring --save ring.png --movie ring.mp4",
        "ecs-fluid validate pair.toml",
        "ecs-fluid worlds",
    } <= set(commands())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_programs_and_pictures_of_a_page_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for program in re.findall(r"python (benchmarks(?:/\w+\.py)?|docs/\w+\.py)", text):
        assert (ROOT / program).exists()
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert "://" in target or (page.parent / target).exists(), target


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


def test_every_picture_is_used_and_made_by_a_command() -> None:
    """Those of docs/images: of a world by docs/gallery.py, others as a page or a program tells."""
    from ecs_fluid.worlds.world_recipe import shipped

    programs = [*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "docs" / "generator").glob("*.py")]
    told = "".join(path.read_text(encoding="utf-8") for path in [*programs, *PAGES])
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for picture in (ROOT / "docs" / "images").iterdir():
        assert f"images/{picture.name})" in pages, f"{picture.name} is in no page"
        made = picture.stem in shipped() or f"docs/images/{picture.name}" in told
        assert made, f"nothing says what makes {picture.name}"


TELLS = """
import atexit, os, sys

atexit.register(print, "the end")
print(sys.argv[1], os.environ["ASKED"], os.getcwd(), __name__, sys.path[0])
print([name for name in sys.modules if name.startswith("ecs_fluid")], sys.stdin.read() == "")
print("told", file=sys.stderr)
if sys.argv[1] == "raises":
    raise KeyError("here")
if sys.argv[1] == "leaves":
    sys.exit(3)
"""


@pytest.mark.parametrize(("how", "code"), [("ends", 0), ("raises", 1), ("leaves", 3)])
def test_programs_end_as_python_ends_them(how: str, code: int, tmp_path: Path) -> None:
    """Code, words and variables, folder, what is printed, and nothing of ours imported beforehand."""
    (tmp_path / "program.py").write_text(TELLS, encoding="utf-8")
    done = programs.run(tmp_path / "program.py", how, folder=tmp_path, ASKED="so")
    assert done.returncode == code
    assert done.stdout == f"{how} so {tmp_path} __main__ {tmp_path}\n[] True\nthe end\n"
    assert done.stderr.startswith("told\n") and ("KeyError: 'here'" in done.stderr) == (how == "raises")
