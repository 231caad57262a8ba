"""`ecs-fluid worlds NAME --schedule`: what a tick computes, before it runs."""

from __future__ import annotations

import re

import pytest

import ecs_fluid as ef
from ecs_fluid.cli import main
from ecs_fluid.system import System
from ecs_fluid.worlds.world_recipe import SHIPPED

SYSTEMS = [kind for kind in System.registry.values() if kind.__module__.startswith("ecs_fluid.systems.")]

RING = [
    ("phase", "system", "computes"),
    (
        "prepare",
        "Partition",
        "Uniform grid around the particles, and all vortons sorted by the cells of a second one",
    ),
    ("rates", "Velocity", "Biot-Savart sum: velocity and its gradient from the regularised vortons"),
    ("rates", "Stretch", "Vortex stretching: d(alpha)/dt = (alpha . grad) u"),
    ("rates", "Diffusion", "Viscous diffusion of vorticity: d(omega)/dt = nu laplacian(omega)"),
    (
        "move",
        "Advection",
        "Runge-Kutta step of every rate: dx/dt = u, d(alpha)/dt, d(sigma^2)/dt, dT/dt and so on",
    ),
    (
        "observe",
        "Diagnostics",
        "Integrals of the vorticity (impulses, energy, enstrophy, helicity), resolution and time step",
    ),
]


def test_a_world_before_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worlds", "vortex_ring", "--schedule"]) == 0
    title, blank, head, rule, *lines = capsys.readouterr().out.splitlines()
    assert title == "a tick of vortex_ring, 0.0166667 s, prepare and rates 2 times:" and blank == ""
    assert set(rule) == {"-", " "}
    said = [tuple(re.split(r" {2,}", line.replace("System ", " "))) for line in (head, *lines)]
    assert said == RING


def test_overrides_reach_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Without viscosity nothing diffuses; Euler's method evaluates the rates once."""
    settings = ["--set", "fluid.viscosity=0", "--set", "world.integrator=euler", "--set", "world.dt=0.5"]
    assert main(["worlds", "vortex_ring", "--schedule", *settings]) == 0
    said = capsys.readouterr().out
    assert said.startswith("a tick of vortex_ring, 0.5 s:\n") and "DiffusionSystem" not in said


def test_a_shipped_file_is_printed_to_start_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worlds", "tube"]) == 0
    assert capsys.readouterr().out == (SHIPPED / "tube.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--schedule"], "--schedule: the name of a world is needed: ecs-fluid worlds NAME --schedule"),
        (["tub"], "there is no shipped world 'tub'; did you mean 'tube'?"),
        ([__file__], f"there is no shipped world {__file__!r}; for a file add --schedule"),
        (["tub", "--schedule"], "there is no world 'tub', and no such file; did you mean 'tube'?"),
    ],
)
def test_mistakes(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worlds", *arguments]) == 2
    assert capsys.readouterr().err == f"error: {sentence}\n"


@pytest.mark.parametrize("kind", SYSTEMS, ids=lambda kind: kind.__name__)
def test_the_first_line_of_a_system_is_a_sentence_of_its_own(kind: type[System]) -> None:
    """Nothing of it stands on the next line, and no other system says the same."""
    first = (kind.__doc__ or "").splitlines()[0]
    assert first == f"{kind.summary()}." and 20 < len(first) <= 103
    assert [other for other in SYSTEMS if other.summary() == kind.summary()] == [kind]


class Plain(ef.WindSystem):
    """Gale: u += 30 m/s.

    In words.
    """


class Derived(Plain):
    pass


class Nameless(System):
    pass


def test_a_system_without_words_has_those_of_its_base() -> None:
    assert [kind.summary() for kind in (Plain, Derived, Nameless)] == ["Gale: u += 30 m/s"] * 2 + [""]
