"""The tables of docs/velocity.md, from figures that are kept in docs/solvers.json.

    python benchmarks/solvers.py | python -m docs.generator.solvers    new figures, then new tables
    python -m docs.generator.solvers --again                           new tables from the kept figures

The page holds each table between two comments, `<!-- solvers: accuracy -->` and `<!-- end -->`.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

from docs.generator.markdown import table

DOCS = Path(__file__).parents[1]
FIGURES, PAGE = DOCS / "solvers.json", DOCS / "velocity.md"
VORTONS = "4,000"
"""Number of vortons of the table of errors."""

MISSED = 1e9
"""Milliseconds that stand for a solver that does not keep the tolerance at all."""

ROW = re.compile(
    r"^\| ([\d,]+) \| ([^|]+) \| ([\d.]+|inf) \| ([\de.+-]+|nan) \| ([\de.+-]+|nan) \| ([\de.+-]+|nan) \|$"
)

Figures = dict[str, Any]


def read(printed: str) -> Figures:
    """Figures in what benchmarks/solvers.py prints."""
    found: Figures = {"threads": int(printed.split()[0]), "accuracy": [], "times": {}}
    suffix, times = "", False
    for line in printed.splitlines():
        if line.startswith("fmm in double"):
            suffix = ", double"
        times = times or line.startswith("tolerance 1e-3")
        row = ROW.match(line)
        if row is None or float(row[3]) > MISSED:
            continue
        vortons, name, ms, *errors = row.groups()
        name = re.sub(r"(?<=tolerance )[\de.-]+$", lambda said: f"1e{math.log10(float(said[0])):.0f}", name)
        entry = {"name": name + ("" if times else suffix), "ms": float(ms)}
        entry |= dict(zip(("u", "worst", "du"), map(float, errors), strict=True))
        if not times:
            found["accuracy"].append(entry)
            continue
        solver = name.split()[0]
        found["times"].setdefault(solver, {})[vortons] = float(ms)
        if solver == "direct" and vortons == VORTONS:
            found["accuracy"].insert(0, entry | {"name": "direct"})
    return found


def accuracy(figures: Figures) -> str:
    """Times and errors of every setting; those that differ in the grid alone share a row."""
    rows: dict[str, list[Figures]] = {}
    for entry in figures["accuracy"]:
        rows.setdefault(re.sub(r", [\d.]+ cells per core$", "", entry["name"]), []).append(entry)
    lines = []
    for name, entries in rows.items():
        cells = [re.search(r", ([\d.]+) cells per core$", entry["name"]) for entry in entries]
        grids = ", ".join(f"{float(cell[1]):g}" for cell in cells if cell)
        title = f"{name}, {grids} cells per core" if grids else name
        errors = (", ".join(_error(entry[key]) for entry in entries) for key in ("u", "worst", "du"))
        lines.append((title, ", ".join(_ms(entry["ms"]) for entry in entries), *errors))
    return table((f"{VORTONS} vortons", "ms", "u RMS", "u worst", "du RMS"), lines)


def times(figures: Figures) -> str:
    """Milliseconds at 1e-3 by solver and number of vortons, but for grids: their error is another."""
    chosen = {name: row for name, row in figures["times"].items() if name not in ("poisson", "hybrid")}
    sizes = list(next(iter(chosen.values())))
    rows = (
        (name, *(_ms(row[size]) if size in row else "-" for size in sizes)) for name, row in chosen.items()
    )
    return table(("ms at 1e-3", *sizes), rows)


def _ms(value: float) -> str:
    if value < 10:
        return f"{value:.1f}"
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _error(value: float) -> str:
    if value >= 0.1:
        return f"{value:.2g}"
    return re.sub(r"e-0", "e-", f"{value:.1e}")


def written(page: str, figures: Figures) -> str:
    """The page with both tables as the figures have them."""
    for name, text in (("accuracy", accuracy(figures)), ("times", times(figures))):
        begin = f"<!-- solvers: {name} -->\n"
        before, _, rest = page.partition(begin)
        page = before + begin + "\n" + text + rest[rest.index("\n<!-- end -->") :]
    return page


def main(arguments: list[str]) -> int:
    """Read the benchmark's output from standard input unless asked only to write again."""
    if "--again" not in arguments:
        figures = read(sys.stdin.read())
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), figures), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
