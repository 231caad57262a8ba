"""The packages and what each imports, read from the source, and a drawing of them.

`python -m docs.generator.packages` writes docs/images/packages.svg and docs/images/kernels.svg.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
FOUNDATION = (
    *("arguments", "errors", "input_limits", "npz", "own_code", "validation_errors", "component"),
    *("shipped_worlds", "signals"),
)
"""Modules beside the engine that know none of the others."""
FOLDERS = {
    **{
        name: ROOT / "ecs_fluid" / name
        for name in ("kernels", "io", "cli", "api", "ranks", "sweeps", "runs", "exports")
    },
    **{name: ROOT / name for name in ("components", "systems", "worlds", "viz")},
}


def parts() -> dict[str, list[Path]]:
    """Files of each part of the package: its folders, the engine beside them, and the foundation."""
    beside = sorted((ROOT / "ecs_fluid").glob("*.py"))
    return {
        "foundation": [path for path in beside if path.stem in FOUNDATION],
        "engine": [path for path in beside if path.stem not in (*FOUNDATION, "__init__", "__main__")],
        **{name: sorted(folder.rglob("*.py")) for name, folder in FOLDERS.items()},
    }


def imports(path: Path, running_only: bool = True) -> list[tuple[str, str]]:
    """(module, name or "") of every import in a file, inside functions too.

    With `running_only` those under ``if TYPE_CHECKING`` are left out: they never run.
    """
    return [(module, name) for module, name, runs in _imports(path) if runs or not running_only]


@cache
def _imports(path: Path) -> list[tuple[str, str, bool]]:
    """Module, name and whether it runs."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    never = {
        inner
        for node in nodes
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found: list[tuple[str, str, bool]] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [(alias.name, "", node not in never) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found += [(node.module or "", alias.name, node not in never) for alias in node.names]
    return found


def part_of(module: str, name: str) -> str | None:
    """The part that an import reaches, or None where it is not ours."""
    words = module.split(".")
    if words[0] != "ecs_fluid":
        return None
    second = words[1] if len(words) > 1 else name
    return "foundation" if second in FOUNDATION else second if second in FOLDERS else "engine"


def room_of(module: str, name: str) -> str | None:
    """The folder of kernels that an import reaches, or None."""
    words = [*module.split("."), name]
    folder = words[2] if words[:2] == ["ecs_fluid", "kernels"] and len(words) > 2 else ""
    return folder if (FOLDERS["kernels"] / folder).is_dir() and folder else None


def arrows(files: Mapping[str, list[Path]], reached: Callable[[str, str], str | None]) -> dict[str, set[str]]:
    """For every part, the other parts that its files import."""
    return {
        part: {
            other
            for path in paths
            for module, name in imports(path)
            if (other := reached(module, name)) is not None and other != part
        }
        for part, paths in files.items()
    }


def package_arrows() -> dict[str, set[str]]:
    """Which part of the package imports which."""
    return arrows(parts(), part_of)


def kernel_arrows() -> dict[str, set[str]]:
    """Which folder of kernels imports which."""
    folders = sorted(path for path in FOLDERS["kernels"].iterdir() if (path / "__init__.py").is_file())
    return arrows({folder.name: sorted(folder.glob("*.py")) for folder in folders}, room_of)


def floors(graph: Mapping[str, set[str]]) -> dict[str, int]:
    """Floor of each part: 0 imports nothing of ours, others stand one above the highest that they import.

    Raises ValueError, naming those left, where the arrows run in a circle.
    """
    found: dict[str, int] = {}
    while len(found) < len(graph):
        ready = [part for part, below in graph.items() if part not in found and below <= found.keys()]
        if not ready:
            raise ValueError(
                f"imports run in a circle among {', '.join(sorted(graph.keys() - found.keys()))}"
            )
        found.update({part: 1 + max((found[other] for other in graph[part]), default=-1) for part in ready})
    return found


def direct_arrows(graph: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """The arrows that no other way makes plain: of a over b to c, the one from a to c is left out."""

    def below(part: str) -> set[str]:
        return graph[part].union(*(below(other) for other in graph[part]))

    return [
        (part, other)
        for part in graph
        for other in sorted(graph[part])
        if not any(other in below(between) for between in graph[part])
    ]


WIDTH, HEIGHT, APART, STEP = 104, 32, 24, 76
HEAD = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0L8 4L0 8z" fill="#567"/></marker></defs>'
    '<rect width="100%" height="100%" fill="white"/>'
)


def drawing(graph: Mapping[str, set[str]]) -> str:
    """SVG of the parts on their floors; the arrows of `direct_arrows` point at what is imported.

    An arrow that passes a floor has a place of its own there, so that it goes behind no box. Within a floor
    parts stand in the order of the mean place of those above that import them.
    """
    floor = floors(graph)
    top = max(floor.values())
    ways = {
        (a, b): [a, *(f"{a} {b} {level}" for level in range(floor[a] - 1, floor[b], -1)), b]
        for a, b in direct_arrows(graph)
    }
    rows: list[list[str]] = [[] for _ in range(top + 1)]
    for part, level in floor.items():
        rows[level].append(part)
    for (a, _), way in ways.items():
        for below, slot in enumerate(way[1:-1], start=1):
            rows[floor[a] - below].append(slot)
    above: dict[str, list[str]] = {}
    for way in ways.values():
        for upper, lower in pairwise(way):
            above.setdefault(lower, []).append(upper)
    wide = max(len(row) for row in rows) * (WIDTH + APART) + APART
    x: dict[str, float] = {}
    for row in reversed(rows):
        means = {one: [x[up] for up in above.get(one, ())] for one in row}
        row.sort(key=lambda one: sum(means[one]) / len(means[one]) if means[one] else wide)
        x.update({one: wide / 2 + (k - (len(row) - 1) / 2) * (WIDTH + APART) for k, one in enumerate(row)})
    y = [(top - level) * STEP + HEIGHT for level in range(top + 1)]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {top * STEP + 2 * HEIGHT}" '
        f'width="{wide}" font-family="sans-serif" font-size="14" text-anchor="middle">{HEAD}'
    ]
    for (a, _), way in ways.items():
        points = []
        for down, one in enumerate(way):
            level = y[floor[a] - down]
            points += [(x[one], level - HEIGHT / 2), (x[one], level + HEIGHT / 2)]
        path = " ".join(f"{px:.0f},{py:.0f}" for px, py in points[1:-1])
        lines.append(f'<polyline points="{path}" fill="none" stroke="#567" marker-end="url(#tip)"/>')
    for part, level in floor.items():
        left, high = x[part] - WIDTH / 2, y[level] - HEIGHT / 2
        lines.append(
            f'<rect x="{left:.0f}" y="{high:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#e8eef4" '
            f'stroke="#567"/><text x="{x[part]:.0f}" y="{y[level] + 5:.0f}">{part}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


DRAWINGS = {"packages.svg": package_arrows, "kernels.svg": kernel_arrows}

if __name__ == "__main__":
    for file_name, graph_of in DRAWINGS.items():
        (IMAGES / file_name).write_text(drawing(graph_of()), encoding="utf-8")
