"""What the documentation reads from the code is complete, and says what the code says."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

import ecs_fluid as ef
from docs.generator import PAGES, cases, code_pages, markdown, models_pages, said, solvers
from ecs_fluid import errors
from ecs_fluid.api import parameters
from ecs_fluid.system import System

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


# ------------------------------------------------------------------ parameters


@pytest.mark.parametrize("model", models_pages.documented(), ids=lambda model: model.__name__)
def test_every_parameter_says_what_it_is_and_in_which_unit(model: type[BaseModel]) -> None:
    for row in parameters.parameters(model):
        assert row.meaning, f"{model.__name__}.{row.name} has no description"
        assert not row.number or row.unit != "-", (
            f"{model.__name__}.{row.name}: {row.meaning!r} names no unit; write 'meaning, unit; more', 1 for "
            "pure numbers"
        )


@pytest.mark.parametrize(
    ("description", "unit", "meaning"),
    [
        ("core radius, m", "m", "core radius"),
        ("circulation, m^2/s; positive goes up", "m^2/s", "circulation; positive goes up"),
        ("heat capacity c_p, J/(kg K)", "J/(kg K)", "heat capacity c_p"),
        ("blob radius over spacing, 1", "1", "blob radius over spacing"),
        ("core, m (thin: of a blob), at most 1", "m", "core (thin: of a blob), at most 1"),
        ("reach of a surface, core radii", "core radii", "reach of a surface"),
        ("density over height, [[m, kg/m^3], ...]", "[[m, kg/m^3], ...]", "density over height"),
        ("box or ellipsoid, disc across z", "", "box or ellipsoid, disc across z"),
        ("seconds, many of them", "", "seconds, many of them"),
        ("shape: {size = [1, 1, 1]}, for example", "", "shape: {size = [1, 1, 1]}, for example"),
    ],
)  # fmt: skip
def test_unit_of_a_description(description: str, unit: str, meaning: str) -> None:
    assert parameters.split_unit(description) == (unit, meaning)


@pytest.mark.parametrize(
    ("page", "row"),
    [
        ("entities", "| `core` | number | `0.2` | 1e-6 to 1e6 | m | core radius (thin: of a blob), at most"),
        ("entities", "| `wavenumber` | whole number | `0` | 0 to 1,000 | 1 | waves around the ring |"),
        ("entities", '| `motion` | `"fixed"` or `"scripted"` or `"free"` | `"free"` |  | - | how it moves |'),
        ("systems", "| `below` | number |  | above 0, at most 1 | 1 | remove where the sum is below this |"),
        ("systems", "| `velocity` | 3 numbers or [Keyed](#keyed) | required |  | m/s | wind velocity; may"),
        ("world", "| `dt` | number | `0.0333333` | above 0 | s | time step of a tick; a number, or a"),
    ],
)  # fmt: skip
def test_row_as_its_model_has_it(page: str, row: str) -> None:
    """Worked out by hand from the fields of VortexRing, BodyRecipe, three systems and WorldOptions."""
    assert row in PAGES[page]()


def test_every_kind_of_entity_and_every_system_has_its_section() -> None:
    entities, systems = PAGES["entities"](), PAGES["systems"]()
    for kind, recipe in models_pages.recipes().items():
        section = entities.partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
        assert all(f"\n| `{name}` |" in section for name in recipe.model_fields if name != "kind")
    for system in models_pages.systems():
        section = systems.partition(f"\n### {system.__name__}\n")[2].partition("\n### ")[0]
        assert all(f"\n| `{name}` |" in section for name in system.Parameters.model_fields)
        assert system.__doc__ and len(system.__doc__) > 20


def test_system_of_a_user_is_left_out() -> None:
    class Unlisted(System):
        """Of a test."""

        size: float = 1.0

        def process(self, dt: float) -> None:
            """Nothing."""

    assert Unlisted not in models_pages.systems()


# ------------------------------------------------------------------ components, commands, records, errors


def test_every_column_is_listed_with_its_unit() -> None:
    page = PAGES["components"]()
    for kind in code_pages.components():
        section = page.partition(f"\n### {kind.__name__}\n")[2].partition("\n### ")[0]
        for column in kind.columns.values():
            assert column.unit and f"\n| `{column.name}` | {column.unit} | " in section
    assert "| `du` | 1/s | (n, 3, 3) | real |  |" in page  # VelocityGradient
    assert "| `sigma` | m | (n,) | real | above 0 |" in page  # CoreRadius
    assert "*Derived; one row per particle; rate of the square of CoreRadius*" in page


def test_every_option_of_every_command_is_listed_and_explained() -> None:
    page = PAGES["commands"]()
    listed = dict(code_pages.commands())
    assert {"run", "resume", "show", "info", "export", "validate", "bench velocity"} <= set(listed)
    for name, app in listed.items():
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert app.help and app.help.splitlines()[0] in section
        for argument in app.assemble_argument_collection(parse_docstring=True):
            assert argument.names[0] in section
            chosen = "|" in code_pages._value(argument)
            assert argument.parameter.help or chosen or not argument.names[0].startswith("--")


def eddies() -> ef.World:
    """Four vortons and a ball that reacts, so that every number of the record is there."""
    world = ef.World(dt=0.01, integrator="euler")
    x = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 0.1]])
    world.spawn("vortons", ef.Position(x), ef.Strength(0.01 * x), ef.CoreRadius(np.full(4, 0.2)))
    world.spawn(
        "ball",
        ef.Pose([[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0, 0.0]]),
        ef.RigidMotion(np.zeros((1, 3))),
        ef.Body(mass=[1.0], inertia=[np.eye(3)]),
        ef.BallShape([0.1]),
    )
    world.add_systems([ef.VelocitySystem(), ef.AdvectionSystem(), ef.BodySystem(), ef.CollisionSystem()])
    world.add_systems([ef.ReactionSystem(linear="vortons"), ef.DiagnosticsSystem(jerk=True)])
    return world


def drop() -> ef.World:
    """A cube of particles of liquid around which a surface is laid."""
    world = ef.World(dt=0.01)
    axis = np.arange(-0.2, 0.21, 0.1)
    x = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    every = np.ones(len(x))
    world.spawn("drop", ef.Position(x), ef.Volume(1e-3 * every), ef.Density(1e3 * every))
    world.add_system(ef.SurfaceSystem())
    return world


def test_every_number_of_a_record_is_explained() -> None:
    names = {system: set(code_pages.diagnostics(recorder)) for recorder, system, _ in code_pages.RECORDERS}
    water = ef.load("dam_break")
    water.step()
    assert set(eddies().diagnostics()) | set(water.diagnostics()) == names["DiagnosticsSystem"]
    surface = drop()
    surface.step()
    assert set(surface.history[-1]) - {"tick", "time"} == names["SurfaceSystem"]
    assert set(water.require(ef.SphSystem).measure()) == names["SphSystem"]


def test_units_of_records() -> None:
    """By the definitions: alpha is vorticity times volume, m^3/s; x brings m, and G = 1/(4 pi r) 1/m."""
    units = {name: unit for name, (_, unit) in code_pages.diagnostics(ef.DiagnosticsSystem).items()}
    assert units["strength"] == "m^3/s" and units["impulse"] == "m^4/s"
    assert units["angular_impulse"] == "m^5/s" and units["energy"] == "m^5/s^2"
    assert units["enstrophy"] == "m^3/s^2" and units["helicity"] == "m^4/s^2" and units["jerk"] == "m/s^3"


def test_every_error_has_its_section() -> None:
    page = PAGES["errors"]()
    kinds = code_pages.exceptions()
    assert errors.FluidError in kinds and errors.FluidWarning in kinds
    for kind in kinds:
        assert getattr(ef, kind.__name__) is kind
        section = page.partition(f"\n## {kind.__name__}\n")[2].partition("\n## ")[0]
        assert " ".join((kind.__doc__ or "").split()) in " ".join(section.split())


# ------------------------------------------------------------------ warnings


def test_every_warning_of_the_code_is_explained() -> None:
    entries = said.explained((DOCS / "stability.md").read_text(encoding="utf-8"))
    sentences = said.warnings()
    assert len(sentences) > 25
    for sentence, file in sentences.items():
        assert any(entry in sentence for entry in entries), (
            f'{file} can warn "{sentence}"; give docs/stability.md a heading ### "..." with a part of it'
        )
    for entry in entries:
        assert any(entry in sentence for sentence in sentences), (
            f'no code says "{entry}" of docs/stability.md'
        )


def test_warnings_are_found_where_they_are_made() -> None:
    """One of a recipe, of a system, of a run and of the command line."""
    found = said.warnings()
    assert found["... blobs per wave < 8; use spacing <= ... m"].startswith("worlds/")
    assert any(text.startswith("... has density = ... kg/m^3, but the fluid has") for text in found)
    assert any(text.startswith("liquid moves at ... m/s") for text in found)
    assert any("could not be run to its end with long steps" in text for text in found)


# ------------------------------------------------------------------ validation cases


def test_every_case_with_a_test_has_its_figures() -> None:
    with_tests, entries = set(cases.tests()), cases.entries()
    assert with_tests == set(entries)
    listed = [case for _, numbers in cases.sections() for case in numbers]
    assert sorted(listed) == sorted(entries)
    for entry in entries.values():
        assert all(entry[key].strip() for key in ("what", "gate", "found"))
    for names in cases.tests().values():
        assert all((ROOT / "tests" / name.partition("::")[0]).is_file() for name in names)


def runs_by_night(test: str) -> bool:
    """Whether a test, "validation/test_ring.py::test_thick_ring", has the mark as a whole."""
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    marks = {
        ast.unparse(mark)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == name
        for mark in node.decorator_list
    }
    return bool(marks & {"pytest.mark.nightly", "NIGHTLY"})


def test_cases_that_run_by_night_alone_say_so() -> None:
    entries = cases.entries()
    for case, names in cases.tests().items():
        if all(map(runs_by_night, names)):
            assert "nightly" in entries[case]["what"] + entries[case]["how"], case


def test_cases_left_out_are_said_to_be() -> None:
    """Between the first and the last case, each has a test or stands under "Without a test"."""
    page = (DOCS / "validation.md").read_text(encoding="utf-8")
    missing = set(cases.numbers("16, 29, 112"))
    # 9, 21, 36, 37 and 42 are not in the project's list.
    assert set(range(1, 114)) - set(cases.entries()) == missing | {9, 21, 36, 37, 42}
    without = page.partition("## Without a test")[2]
    named = re.findall(r"^\* \*\*([^*]+)\*\*", without, flags=re.M)
    assert {case for text in named for case in cases.numbers(text)} == missing


@pytest.mark.parametrize(
    ("docstring", "whole_file", "shown"),
    [
        ("Case 89: dropped from h.", False, [89]),
        ("Cases 3 and 4: centred differences.", False, [3, 4]),
        ("V3 and case 54 on a world: the error falls.", False, [54]),
        ("Case 98 to 1e-12, at points whose distance is known.", False, [98]),
        ("Case 40 to t = 6: over half passes.", False, [40]),
        ("A Gaussian keeps its shape and the total stays. As case 30, at h = s/4.", False, []),
        ("Case 107 in short. Case 108: the same metric.", False, [107, 108]),
        (
            "Convex polytopes, against trimesh and an optimiser: cases 94 to 96, articles F9.",
            True,
            [94, 95, 96],
        ),
    ],
)
def test_cases_that_a_docstring_names(docstring: str, whole_file: bool, shown: list[int]) -> None:
    assert cases.named(docstring, whole_file) == shown


# ------------------------------------------------------------------ tables of the solvers

PRINTED = """\
2 threads
| vortons | solver | ms | u RMS | u worst | du RMS |
|---|---|---|---|---|---|
| 4,000 | tree, angle 0.5 | 2.0 | 1.9e-03 | 6.2e-03 | 1.9e-03 |
| 4,000 | hybrid, gaussian, 1.0 cells per core | 10.4 | 1.4e-02 | 3.3e-02 | 4.0e-02 |
| 4,000 | hybrid, gaussian, 2.0 cells per core | 29.1 | 5.3e-03 | 8.4e-03 | 5.4e-03 |

fmm in double precision
| vortons | solver | ms | u RMS | u worst | du RMS |
|---|---|---|---|---|---|
| 4,000 | fmm, tolerance 1e-06 | 14.8 | 5.1e-08 | 1.1e-06 | 3.0e-07 |

tolerance 1e-3
| vortons | solver | ms | u RMS | u worst | du RMS |
|---|---|---|---|---|---|
| 1,000 | direct | 0.3 | 1.7e-07 | 8.0e-07 | 2.7e-07 |
| 1,000 | poisson | 9.0 | 1.0e-01 | 2.0e-01 | 3.0e-01 |
| 4,000 | direct | 4.1 | 1.7e-07 | 8.0e-07 | 2.7e-07 |
| 4,000 | poisson | 11.0 | 1.0e-01 | 2.2e-01 | 3.0e-01 |
"""


def test_tables_of_the_solvers_are_those_of_the_kept_figures() -> None:
    figures = json.loads((DOCS / "solvers.json").read_text(encoding="utf-8"))
    page = (DOCS / "velocity.md").read_text(encoding="utf-8")
    assert solvers.written(page, figures) == page
    assert "| hybrid, gaussian, 1, 2, 3 cells per core | " in page


def test_figures_are_read_from_what_the_benchmark_prints() -> None:
    figures = solvers.read(PRINTED)
    assert solvers.accuracy(figures).splitlines()[2:] == [
        "| direct | 4.1 | 1.7e-7 | 8.0e-7 | 2.7e-7 |",
        "| tree, angle 0.5 | 2.0 | 1.9e-3 | 6.2e-3 | 1.9e-3 |",
        "| hybrid, gaussian, 1, 2 cells per core | 10.4, 29.1 | 1.4e-2, 5.3e-3 | 3.3e-2, 8.4e-3 "
        "| 4.0e-2, 5.4e-3 |",
        "| fmm, tolerance 1e-6, double | 14.8 | 5.1e-8 | 1.1e-6 | 3.0e-7 |",
    ]
    assert solvers.times(figures).splitlines() == [
        "| ms at 1e-3 | 1,000 | 4,000 |",
        "|---|---|---|",
        "| direct | 0.3 | 4.1 |",
    ]


# ------------------------------------------------------------------ the site


def test_docstring_becomes_markdown() -> None:
    text = "First.\n\n    If p < q:\n    * one: a * b\n    * two\n\n        x = y\n\n    Use ``dt``, `a<b`.\n"
    assert markdown.docstring(text) == (
        "First.\n\nIf p &lt; q:\n\n* one: a \\* b\n* two\n\n    x = y\n\nUse `dt`, `a<b`.\n"
    )


def test_cell_of_a_table() -> None:
    assert markdown.cell("|a| < `b|c`\nd") == "&#124;a&#124; &lt; <code>b&#124;c</code> d"
    assert markdown.cell("`a<b`") == "`a<b`"


def navigation() -> list[str]:
    """Pages in the navigation of the site, in order."""
    text = (ROOT / "properdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    return re.findall(r": (\S+\.md)$", text, flags=re.M)


def test_every_page_is_in_the_navigation() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert sorted(navigation()) == sorted(pages)


def test_every_page_of_the_reference_has_one_in_the_tree_that_says_where_it_is() -> None:
    assert {path.stem for path in (DOCS / "reference").iterdir()} == set(PAGES)
    for name in PAGES:
        assert f"`build/site/reference/{name}.html`" in (DOCS / "reference" / f"{name}.md").read_text("utf-8")


def test_docs_extra_has_what_the_site_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {re.split(r"[<>=~]", item)[0] for item in project["optional-dependencies"]["docs"]}
    assert {"properdocs", "properdocs-theme-readthedocs"} <= named


@pytest.mark.skipif(find_spec("properdocs") is None, reason="pip install -e '.[docs]'")
def test_site_builds_without_a_warning_and_needs_no_network(tmp_path: Path) -> None:
    """--strict also checks every link and anchor between the pages."""
    command = [sys.executable, "-m", "properdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    loaded: list[Any] = []
    for page in (tmp_path / "site").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded += re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?:https?:)?//[^\"]+", text)
    for style in (tmp_path / "site").rglob("*.css"):
        loaded += re.findall(
            r"(?:@import|url\()[\s\"']*(?:https?:)?//[^)\"']+", style.read_text(encoding="utf-8")
        )
    assert loaded == []
    assert "alpha_p" in (tmp_path / "site" / "velocity.html").read_text(encoding="utf-8")
    assert "hill_vortex" in (tmp_path / "site" / "reference" / "entities.html").read_text(encoding="utf-8")
    assert "leapfrogging rings" in (tmp_path / "site" / "validation.html").read_text(encoding="utf-8")
