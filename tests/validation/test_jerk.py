"""How smooth the paths are by every solver: validation cases 107 and 108, articles J1 to J8 (part 12)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numba
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import jerk

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")

PART_12 = (
    jerk.REFERENCE,
    "direct on grid",
    "direct on grid, mollify 1",
    "tree on grid",
    "tree on grid, mollify 1",
    "tree on grid, mollify 2",
    "tree on grid, mollify 5",
    "tree at vortons, clusters",
    "tree at vortons, originals",
    "poisson, walls, tight",
    "grid vortons, direct",
    "grid vortons, tree",
)
"""The rows of the study that its claims are about."""

RATIOS = {
    "fmm": (0.99, 1.01),
    "mollify 2, fine, cubic": (0.8, 1.25),
    "poisson, open, fine": (0.8, 1.25),
    "hybrid": (0.8, 1.25),
}
"""Gates of case 107; the multipole method keeps 1e-3 of the velocity, so its paths are the direct sum's."""


def measured(study: str, names: Any, **how: Any) -> dict[str, jerk.Found]:
    """On one thread, nightly too: on a busy machine these small worlds only wait for a second one."""
    numba.set_num_threads(1)
    return {name: jerk.measure(study, name, **how) for name in names}


@pytest.mark.nightly
def test_order_of_the_methods_of_part_12() -> None:
    """J1 to J5, J7, J8 on two colliding rings of 1016 vortons, over ticks 20 to 60.

    Measured, in jerks of the direct sum at the vortons: tree on grid 9.0 (J2: 7 to 10), direct on grid 3.0,
    mollified by 1, 2 and 5 cells 2.1, 0.75 and 0.09, Poisson in a tight box 0.57 (J1, J3, J5); tree at
    vortons with clusters at the leaves 32, with originals 2.7 (J4); vortons on the grid 0.43, by the tree 32
    (J8).
    Outside the cores the mollified field is the same to single precision (J7). J6 is about time: benchmark.
    """
    found = measured("articles", PART_12, shifts=jerk.SHIFTS[:1], ticks=60, settled=20)
    fails = {claim.name: claim.figures for claim in jerk.claims(found, jerk.far_field()) if not claim.holds}
    assert not fails.keys() - {"J6"}, fails


@pytest.mark.nightly
def test_solvers_jerk_like_the_direct_sum() -> None:
    """Case 107 in short, 462 vortons, 20 ticks: ratios 1.00, 1.07, 1.03 and 1.08, gate 0.8 to 1.25.

    Case 108: the same metric sees the articles' tree, whose clusters act on the point next to them.
    """
    how = {"shifts": jerk.SHIFTS[:1], "ticks": 20, "settled": 5, "spacing": 0.2}
    found = measured("resolved", (jerk.REFERENCE, "tree at vortons, box", *RATIOS), **how)
    ratios = {name: result.ratio(found[jerk.REFERENCE]) for name, result in found.items()}
    for name, (least, most) in RATIOS.items():
        assert least < ratios[name] < most, (name, ratios[name])
    assert ratios["tree at vortons, box"] > 2


@pytest.mark.nightly
def test_part_12_in_full() -> None:
    """J1 to J8 over ticks 60 to 200, three runs; docs/notes/jerk.md has the figures.

    What does not hold there: direct on grid (2.4) is not above the tree on the grid mollified by 1 (2.6, J1)
    and the ratio of J2 is 5.7, not 7 to 10. It stays within 4 to 10 here; nobody knows the article's scene.
    Case 107: Poisson in a tight box keeps the median ratio, 1.01. The tree on the grid mollified by 2 jerks
    in few frames, which the median does not see (0.77); the mean is the direct sum's: 1.07, and 0.96 to 1.07
    on four more sets of three lattices.
    """
    found = measured("articles", (*PART_12, "fmm"))
    claims = {claim.name: claim for claim in jerk.claims(found, jerk.far_field())}
    fails = {name for name, claim in claims.items() if not claim.holds}
    assert fails <= {"J1", "J2", "J6"}, [claims[name].figures for name in fails]
    reference = found[jerk.REFERENCE]
    mean = {name: result.mean / reference.mean for name, result in found.items()}
    assert 4 < mean["tree on grid"] < 10
    assert mean["direct on grid"] > 1.5 > 1.5 * mean["direct on grid, mollify 1"]
    assert (
        mean["tree on grid, mollify 1"] > 1 > mean["poisson, walls, tight"] > mean["tree on grid, mollify 5"]
    )
    for name in ("poisson, walls, tight", "fmm"):
        assert 0.8 < found[name].ratio(reference) < 1.25, name
    assert 0.8 < mean["tree on grid, mollify 2"] < 1.25


@pytest.mark.nightly
def test_solvers_jerk_like_the_direct_sum_for_200_frames() -> None:
    """Case 107: 1016 vortons, two runs; 1.00, 1.12, 1.00 and 1.12 at three grid cells per core radius.

    Three are the hybrid's default. With two, the error of the grid, new in each tick, is a third of the jerk
    itself: 1.46, above the gate and below the limit of 2.
    """
    names = (jerk.REFERENCE, "poisson, open", "hybrid, coarse", *RATIOS)
    found = measured("resolved", names, shifts=jerk.SHIFTS[:2])
    ratios = {name: result.ratio(found[jerk.REFERENCE]) for name, result in found.items()}
    for name, (least, most) in RATIOS.items():
        assert least < ratios[name] < most, (name, ratios[name])
    assert ratios["poisson, open"] < 1.25 and ratios["hybrid, coarse"] < 2
