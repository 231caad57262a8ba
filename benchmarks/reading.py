"""What a reader of the code meets: a tick's way through the files, places that tell one fact, lines of code.

Run: python benchmarks/reading.py [TREE], where TREE is a folder with another commit.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import asked

TREE = Path(__file__).parents[1]
PACKAGE = ("ecs_fluid", "components", "systems", "worlds", "viz")
REGULARISATIONS = re.compile("winckelmans|gaussian|rankine|rosenhead", re.I)
SPECIES = re.compile(r"\b(fuel|flame|smoke)s?\b", re.I)


def sources() -> Iterator[Path]:
    """Files of the package, each once."""
    for folder in PACKAGE:
        for path in sorted((TREE / folder).rglob("*.py")):
            inside = path.relative_to(TREE / folder).parts
            if not (TREE / folder / inside[0]).is_symlink():
                yield path


def code_lines(path: Path) -> dict[int, str]:
    """Lines of code by number, without comments: no blanks, docstrings (also of attributes) or imports."""
    text = path.read_text(encoding="utf-8")
    dropped: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        text_alone = (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )
        if text_alone or isinstance(node, ast.Import | ast.ImportFrom):
            dropped.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    kept: dict[int, list[str]] = {}
    layout = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in layout:
            for line in range(token.start[0], token.end[0] + 1):
                if line not in dropped:
                    kept.setdefault(line, []).append(token.string)
    return {line: " ".join(words) for line, words in kept.items()}


def naming(pattern: re.Pattern[str]) -> list[str]:
    """Files whose code (names and texts, no comments and docstrings) matches."""
    return [
        str(path.relative_to(TREE))
        for path in sources()
        if any(pattern.search(line) for line in code_lines(path).values())
    ]


def walked(world: Any) -> tuple[int, int, int]:
    """Files, functions and changes of file (at calls and returns) of one tick, in the package's Python."""
    roots = tuple(str(TREE / folder) + os.sep for folder in PACKAGE)
    stack: list[str] = []
    files, functions, changes = set(), set(), 0

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal changes
        name = os.path.realpath(frame.f_code.co_filename)
        # Python 3.12 has no frames for comprehensions, so those of 3.11 do not count either.
        if not name.startswith(roots) or "<" in name + frame.f_code.co_name:
            return
        if event == "call":
            files.add(name)
            functions.add(frame.f_code)
            changes += bool(stack) and stack[-1] != name
            stack.append(name)
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(watch)
    world.step()
    sys.setprofile(None)
    return len(files), len(functions), changes


def frames_to_kernel() -> int:
    """Python frames from `VelocitySystem.process` to the call of the direct sum's kernel, both counted."""
    import numpy as np

    import ecs_fluid as ef

    world = ef.World()
    x = np.random.default_rng(1).random((50, 3))
    world.spawn("vortons", ef.Position(x), ef.Strength(x), ef.CoreRadius(np.full(50, 0.2)))
    world.add_systems([ef.VelocitySystem(solver="direct"), ef.StretchSystem(), ef.AdvectionSystem()])
    world.step()
    try:
        from ecs_fluid.kernels.biot_savart import direct
    except ImportError:  # trees of before the kernels had folders
        from ecs_fluid.kernels import direct
    kernel, depths = direct.velocity_gradient, [0]

    def entry(*arguments: Any) -> Any:
        frame, depth = sys._getframe(1), 1
        while frame.f_code.co_name != "process":
            frame, depth = frame.f_back, depth + 1
        depths.append(depth)
        return kernel(*arguments)

    direct.velocity_gradient = entry
    world.step()
    return max(depths)


def tick() -> None:
    """Print what needs a running world; called in a process of its own, with the tree first on its path."""
    import ecs_fluid as ef

    world = ef.load("vortex_ring")
    world.step(3)
    files, functions, changes = walked(world)
    print(f"one tick of vortex_ring: {files} files, {functions} functions, {changes} changes of file")
    print(f"frames from VelocitySystem.process to the kernel of the direct sum: {frames_to_kernel()}")


def main() -> None:
    """Print all counts of the tree."""
    done = subprocess.run(
        [sys.executable, __file__, TREE, "--tick"],
        env=os.environ | {"PYTHONPATH": str(TREE)},
        cwd=TREE,
        capture_output=True,
        text=True,
    )
    print(done.stdout or done.stderr, end="")
    for what, pattern in (("a regularisation", REGULARISATIONS), ("a species", SPECIES)):
        found = naming(pattern)
        print(f"files whose code names {what}: {len(found)}\n    {' '.join(found)}")
    code = {path.relative_to(TREE): code_lines(path) for path in sources()}
    places = [
        str(path)
        for path, lines in code.items()
        for line in lines.values()
        if "ranks" not in path.parts and re.search(r"ranks is (not )?None", line)
    ]
    print(f"`ranks is None` outside ranks/: {len(places)}")
    for folder in (*PACKAGE, "ecs_fluid/kernels"):
        inside = [len(lines) for path, lines in code.items() if path.is_relative_to(folder)]
        print(f"lines of code in {folder}: {sum(inside)}")
    print(f"lines of code: {sum(map(len, code.values()))}")


if __name__ == "__main__":
    reader = asked.parser(__file__, __doc__)
    reader.add_argument("tree", metavar="TREE", nargs="?", type=Path, default=TREE)
    reader.add_argument("--tick", action="store_true", help=argparse.SUPPRESS)
    arguments = reader.parse_args()
    TREE = arguments.tree.resolve()
    tick() if arguments.tick else main()
