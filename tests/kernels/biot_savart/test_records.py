"""Regularisations as records: one file each, no other code, and a new one without touching the package."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import ecs_fluid as ef
from docs.generator import programs
from ecs_fluid.kernels.biot_savart import direct, regularisation, tree
from ecs_fluid.kernels.biot_savart.regularisation import Code
from ecs_fluid.kernels.collision.article_boundary import reassign
from ecs_fluid.kernels.fmm import fast_multipole
from ecs_fluid.kernels.poisson.blob_filter import widen
from ecs_fluid.kernels.vorticity import subfilter
from ecs_fluid.systems.velocity.system import SHIPPED_KERNELS

KERNELS = Path(regularisation.__file__).parents[1]
ONE, ROW = np.ones(1), np.ones((1, 3))
COLUMN, CELLS = np.ones((3, 1)), (np.zeros(3), np.ones(3), np.ones(3, np.int64))

DOORS: dict[str, Callable[[int], object]] = {
    "direct velocity": lambda code: direct.velocity(code, ROW, COLUMN, COLUMN, ONE, ROW.copy()),
    "direct gradient": lambda code: direct.velocity_gradient(
        code, ROW, COLUMN, COLUMN, ONE, ROW.copy(), np.ones((1, 3, 3))
    ),
    "direct potential": lambda code: direct.potential_vorticity(
        code, ROW, COLUMN, COLUMN, ONE, ROW.copy(), ROW.copy()
    ),
    "tree": lambda code: tree.velocity(code, ROW, None, ROW.copy(), opening=0.5),  # type: ignore[arg-type]
    "tree gradient": lambda code: tree.velocity(
        code,
        ROW,
        None,
        ROW.copy(),
        np.ones((1, 3, 3)),
        opening=0.5,  # type: ignore[arg-type]
    ),
    "multipoles": lambda code: fast_multipole.plan(code, COLUMN, COLUMN, ONE, 1e-3),
    "blob filter": lambda code: widen(np.ones((3, 3, 3, 3)), np.ones(3), 2.0, code),
    "subfilter": lambda code: subfilter.blob_sums(code, COLUMN, ONE, COLUMN, np.array([0, 1]), CELLS),
    "article's boundary": lambda code: reassign(
        code, ROW.copy(), ROW.copy(), ONE, ROW, ROW, ROW, np.ones(1, np.int64), ONE
    ),
}


BY_NIGHT = {"direct velocity", "direct gradient", "direct potential"}
"""Doors that are compiled as the articles' boundary is, a second and more each."""


@pytest.mark.parametrize(
    "door", [pytest.param(door, marks=pytest.mark.nightly if door in BY_NIGHT else ()) for door in DOORS]
)
@pytest.mark.parametrize("code", [-1, 8])
def test_an_unknown_code_is_refused(door: str, code: Code) -> None:
    """Compiled doors cannot write the number; those in Python do."""
    with pytest.raises(ValueError) as error:
        DOORS[door](code)
    known = "known are 0 (winckelmans), 1 (gaussian), 2 (rankine), 3 (rosenhead_moore), "
    known += "4 (winckelmans_plane), 5 (gaussian_plane), 6 (rankine_plane), 7 (rosenhead_moore_plane)"
    assert str(error.value) in {
        f"regularisation: no blob has the code {code}; {known}",
        f"regularisation: no blob has this code; {known}",
    }


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ef.RecipeError) as error:
        ef.VelocitySystem(kernel="gausian")
    assert str(error.value) == "VelocitySystem: kernel = 'gausian' is not known; did you mean 'gaussian'?"


def test_the_names_that_editors_complete_are_those_of_records() -> None:
    """No record needs to be among them: `test_a_fifth_one_needs_no_change_of_the_package`."""
    assert set(get_args(SHIPPED_KERNELS)) <= set(regularisation.NAMES)


def test_no_other_kernel_knows_a_regularisation() -> None:
    """Neither a name or constant of one, nor a comparison of a code with a number."""
    words = {*regularisation.NAMES, *(name.upper() for name in regularisation.NAMES)}
    checked = 0
    for path in sorted(KERNELS.rglob("*.py")):
        if path.name == "regularisation.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name | ast.Constant):
                word = node.id if isinstance(node, ast.Name) else node.value
                assert word not in words, f"{path}: {word}"
                checked += 1
            if isinstance(node, ast.alias):
                assert node.name not in words, f"{path}: {node.name}"
            if isinstance(node, ast.Compare):
                sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
                if path.name != "regularisation_dispatch.py":
                    assert not {"code", "s.code"} & set(sides), f"{path}: {sides}"
    assert checked > 10_000


@pytest.mark.nightly
def test_a_fifth_one_needs_no_change_of_the_package(tmp_path: Path) -> None:
    """Rounding leaves some 1e-13, the tree at angle 0.1 some 2e-3, the multipoles ten times their tolerance.

    That is 1e-3 RMS; what is measured is the worst point over the RMS.
    """
    script = Path(__file__).with_name("fifth_blob.py")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    out = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    assert out.returncode == 0, out.stderr
    limits = {"direct": 1e-11, "tree": 1e-2, "multipoles": 1e-2, "system": 1e-11}
    lines = [line.split() for line in out.stdout.splitlines()]
    assert [name for name, _ in lines] == [name for name in limits for _ in range(2)]
    for name, error in lines:
        assert float(error) < limits[name], out.stdout


def test_code_that_is_kept_does_not_answer_for_another_record(tmp_path: Path) -> None:
    """Two programs' records, or one before and after an edit, have one number, by which code is found."""
    manual = (Path(__file__).parents[3] / "docs" / "velocity.md").read_text(encoding="utf-8")
    lines = "\n".join(line.strip() for line in manual.splitlines() if line.startswith("    regularisation."))
    script = Path(__file__).with_name("own_regularisation.py")
    environment = {"ECS_FLUID_CACHE_DIR": str(tmp_path), "NUMBA_CACHE_DIR": ""}
    for scale in ("1.0", "3.0"):
        out = programs.run(script, lines, scale, folder=tmp_path, **environment)
        assert out.stdout == f"{scale}\n", out.stderr
