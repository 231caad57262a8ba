"""Writes docs/gallery.md and its pictures, one for each world that comes with the package.

Each world of gallery.toml is run as far as its picture needs, by the commands that the page shows for it;
worlds that are missing there come after them, at their last frame and with the first line of their file. A
picture that fails leaves the former one; a world that never had one is in the page in words.

Run: python docs/gallery.py [NAME ...] (with names: these pictures alone; the page is written anyway)
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecs_fluid.shipped_worlds import describe, promises, sentence, shipped
from ecs_fluid.worlds.world_recipe import read

FOLDER = Path(__file__).parent
SIZE = "512 288"
HEAD = """\
# Gallery

The worlds that come with the package (`ecs-fluid worlds`), each with the two commands that make its
picture. Add `--movie NAME.mp4` to the second for the movie of the whole run in real time, and
`--look paper`, `--color-by speed`, `--what streamlines` for other pictures. Each world promises a
number or two, which a test measures; the reason says where they come from.
This page and its pictures are made by `python docs/gallery.py` from `docs/gallery.toml`.
"""


@dataclass(frozen=True)
class Entry:
    """What the page shows of a world: stored `frame` (-1: the last), options of `ecs-fluid show`, text."""

    name: str
    frame: int
    show: str
    text: str
    promise: str

    @property
    def ticks(self) -> int:
        """Ticks until that frame is stored."""
        recipe = read(self.name)
        return recipe.ticks if self.frame < 0 else max(self.frame * recipe.every, 1)

    @property
    def picture(self) -> Path:
        """File of its picture."""
        return FOLDER / "images" / f"{self.name}.png"

    def section(self) -> str:
        """Its part of the page."""
        frame = f"--frame {self.frame}" if self.frame >= 0 else ""
        options = " ".join(filter(None, (frame, self.show, f"--size {SIZE}")))
        picture = f"![{self.name}](images/{self.name}.png)\n\n" if self.picture.is_file() else ""
        return (
            f"\n## {self.name}\n\n{picture}{self.text.strip()}\n\n"
            f"{self.promise}\n\n```sh\n"
            f"ecs-fluid run {self.name} --out runs/{self.name}\n"
            f"ecs-fluid show runs/{self.name} {options} --save {self.name}.png\n```\n"
        )

    def draw(self) -> None:
        """Run the world as far as needed and write its picture."""
        with tempfile.TemporaryDirectory() as folder:
            run = f"{folder}/run"
            call("run", self.name, "--ticks", str(self.ticks), "--out", run)
            options = [*shlex.split(self.show), "--size", *SIZE.split()]
            call("show", run, "--frame", str(self.frame), *options, "--save", str(self.picture))


def call(*arguments: str) -> None:
    """Run an `ecs-fluid` command in a process of its own; raises CalledProcessError if it fails."""
    program = "import sys; from ecs_fluid.cli import main; sys.exit(main())"
    subprocess.run([sys.executable, "-c", program, *arguments], check=True, stdout=subprocess.DEVNULL)


def promised(promise: dict[str, Any]) -> str:
    """The sentence on what a world promises, and where the number comes from."""
    return f"{sentence(promise)} Reason: {promise['why']}."


def entries() -> list[Entry]:
    """All shipped worlds: those of gallery.toml in its order, then the others."""
    tables = tomllib.loads((FOLDER / "gallery.toml").read_text(encoding="utf-8"))
    kept = promises()
    found = [Entry(name, **table, promise=promised(kept[name])) for name, table in tables.items()]
    for name, path in shipped().items():
        if name not in tables:
            found.append(Entry(name, -1, "", describe(path), promised(kept[name])))
    return found


def main(names: list[str]) -> int:
    """Write the page; draw the pictures of these worlds, by default of all. Returns the failures."""
    chosen = entries()
    unknown = sorted(set(names) - {entry.name for entry in chosen})
    if unknown:
        print(f"no such world: {', '.join(unknown)}; see ecs-fluid worlds", file=sys.stderr)
        return 1
    failed = 0
    for entry in chosen:
        if names and entry.name not in names:
            continue
        started = time.perf_counter()
        try:
            entry.draw()
        except subprocess.CalledProcessError as error:
            failed += 1
            print(f"{entry.name}: {error}", file=sys.stderr)
        else:
            print(f"{entry.name}: {time.perf_counter() - started:.0f} s", flush=True)
    page = HEAD + "".join(entry.section() for entry in chosen)
    (FOLDER / "gallery.md").write_text(page, encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
