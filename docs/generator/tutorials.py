"""Tutorials: a page each, docs/tutorials/NAME.md, from which its pictures and its notebook are made.

A page is read from top to bottom as one program:

* `python` blocks are run one after the other, with one set of names;
* a `text` block is what the blocks before it printed;
* of a `sh` block the lines that begin with `ecs-fluid` are run; those for other programs, `blender` (or the
  Python with bpy that ECS_FLUID_BLENDER names) and `pvpython`, where these are there, and nightly;
* a block after a line that names a file alone, "`ring.toml`:", is written into that file;
* a picture, `![...](NAME/start.png)`, is the file `start.png` that the program has written.

A warning of ours is a failure.

Run: python -m docs.generator.tutorials [NAME ...] (with names: these alone). It writes
docs/tutorials/NAME.ipynb and the pictures in docs/tutorials/NAME.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from docs.generator import programs

FOLDER = Path(__file__).parents[1] / "tutorials"
NAMES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "index")
"""Tutorials by name."""

OTHERS = ("blender", "pvpython")
"""Programs that a tutorial may call where they are installed."""

LARGEST = 120_000
"""Bytes of a picture."""

PARTS = re.compile(
    r"(?:^`(?P<file>[\w.]+)`:\n\n)?^```(?P<language>python|sh|text|toml)\n(?P<code>.*?)^```$"
    r"|^!\[(?P<caption>[^\]]*)\]\(\w+/(?P<picture>[\w.]+)\)$",
    flags=re.M | re.S,
)


@dataclass(frozen=True)
class Part:
    """A piece of a page: text, python, printed, commands, and with a name file and picture."""

    kind: str
    text: str
    name: str = ""


def parts(page: str) -> list[Part]:
    """The pieces of a page, in its order."""
    found, end = [], 0
    kinds = {"python": "python", "sh": "commands", "text": "printed"}
    for match in PARTS.finditer(page):
        found.append(Part("text", page[end : match.start()]))
        end = match.end()
        if match["picture"]:
            found.append(Part("picture", match["caption"], match["picture"]))
        elif match["file"]:
            found.append(Part("file", match["code"], match["file"]))
        elif match["language"] in kinds:
            found.append(Part(kinds[match["language"]], match["code"]))
        else:
            found.append(Part("text", match[0]))
    found.append(Part("text", page[end:]))
    return [part for part in found if part.text.strip()]


def read(name: str) -> list[Part]:
    """The pieces of a tutorial."""
    return parts((FOLDER / f"{name}.md").read_text(encoding="utf-8"))


def notebook(name: str) -> str:
    """A tutorial as a notebook without outputs: it shows the pictures that it makes itself."""
    cells = [cell("code", "from IPython.display import Image")]
    for part in read(name):
        if part.kind == "text":
            cells.append(cell("markdown", part.text))
        elif part.kind == "python":
            cells.append(cell("code", part.text))
        elif part.kind == "commands":
            cells.append(cell("code", "".join(f"!{line}\n" for line in part.text.splitlines())))
        elif part.kind == "file":
            cells.append(cell("code", f"%%writefile {part.name}\n{part.text}"))
        elif part.kind == "picture":
            cells.append(cell("code", f'Image("{part.name}")'))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    made = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def cell(kind: str, text: str) -> dict[str, Any]:
    """A cell of a notebook."""
    made: dict[str, Any] = {
        "cell_type": kind,
        "metadata": {},
        "source": text.strip("\n").splitlines(keepends=True),
    }
    return made | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def play(name: str, others: bool = False) -> None:
    """Run a tutorial in the current folder and check what it prints; `others` calls other programs too."""
    from ecs_fluid.cli import main as command_line
    from ecs_fluid.errors import FluidWarning

    warnings.simplefilter("error", FluidWarning)
    module = ModuleType(f"tutorial_{name}")
    sys.modules[module.__name__] = module
    sys.path.insert(0, os.getcwd())
    printed, wrong = io.StringIO(), []
    for number, part in enumerate(read(name)):
        if part.kind == "python":
            with redirect_stdout(printed):
                exec(compile(part.text, f"{name}, part {number}", "exec"), vars(module))
        elif part.kind == "commands":
            for line in part.text.splitlines():
                program, *arguments = shlex.split(line, comments=True)
                if program == "ecs-fluid":
                    assert command_line(arguments) == 0, line
                elif others and program in OTHERS and (command := here(line)):
                    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        elif part.kind == "file":
            Path(part.name).write_text(part.text, encoding="utf-8")
        elif part.kind == "picture":
            assert Path(part.name).is_file() or left_out(name, others), (
                f"the picture {part.name} was not made"
            )
        elif part.kind == "printed":
            if printed.getvalue() != part.text:
                wrong.append(f"the page says:\n{part.text}printed was:\n{printed.getvalue()}")
            printed = io.StringIO()
    if printed.getvalue():
        wrong.append(f"the page does not say what was printed last:\n{printed.getvalue()}")
    assert not wrong, "\n".join(wrong)


def here(line: str) -> list[str]:
    """The command that runs a line of another program on this machine, empty where there is none."""
    program, *arguments = shlex.split(line)
    if program == "blender" and (python := os.environ.get("ECS_FLUID_BLENDER")):
        return [python, *arguments[arguments.index("-P") + 1 :]]
    if shutil.which(program) is None:
        return []
    screen = program != "pvpython" or os.environ.get("DISPLAY") or shutil.which("xvfb-run") is None
    return [*(() if screen else ("xvfb-run", "-a")), program, *arguments]


def left_out(name: str, others: bool) -> list[str]:
    """Lines for other programs that are not run: with `others` those that are not here, else all."""
    lines = [line for part in read(name) if part.kind == "commands" for line in part.text.splitlines()]
    return [line for line in lines if line.split()[0] in OTHERS and not (others and here(line))]


def trouble(name: str, folder: Path, others: bool = False) -> str:
    """Run a tutorial in a folder, in a process of its own; returns what went wrong, "" for nothing."""
    root = str(FOLDER.parents[1])
    program = f"""\
import sys
sys.path.insert(0, {root!r})
from docs.generator.tutorials import play
play({name!r}, {others})
"""
    (folder / "play.py").write_text(program, encoding="utf-8")
    done = programs.run(folder / "play.py", folder=folder, NUMBA_NUM_THREADS="1")
    return done.stderr if done.returncode or "warning:" in done.stderr else ""


def keep(picture: Path, to: Path) -> None:
    """Put a picture beside its page, with fewer shades where it would be too large for a repository."""
    from PIL import Image, ImageOps

    to.parent.mkdir(exist_ok=True)
    whole = Image.open(picture).convert("RGB")
    for bits in (8, 7, 6, 5):
        ImageOps.posterize(whole, bits).save(to, optimize=True)
        if to.stat().st_size < LARGEST:
            return
    raise SystemExit(f"{to}: more than {LARGEST} bytes; make the picture smaller")


def main(names: list[str]) -> int:
    """Run these tutorials, or all; keep their pictures and write their notebooks. Returns the failures."""
    failed = 0
    for name in names or NAMES:
        (FOLDER / f"{name}.ipynb").write_text(notebook(name), encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            if wrong := trouble(name, Path(folder), others=True):
                failed += 1
                print(f"{name}:\n{wrong}", file=sys.stderr)
                continue
            for part in read(name):
                if part.kind == "picture" and (Path(folder) / part.name).is_file():
                    keep(Path(folder) / part.name, FOLDER / name / part.name)
        print(f"{name}: done", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
