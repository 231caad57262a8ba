"""Command lines that cannot be read: one sentence says what is wrong and what was probably meant."""

from __future__ import annotations

import re

import pytest

from ecs_fluid.cli import main

SAID = {
    "run vortex_ring --duration 2": "run has no option --duration; --ticks N sets how many ticks",
    "resume runs/a --until 3": "resume has no option --until; --ticks N sets the last tick",
    "sweep vortex_ring --time 2": "--set world.duration=SECONDS",
    "run vortex_ring -o a": "run has no option -o; did you mean --out?",
    "run vortex_ring --output a": "did you mean --out?",
    "run vortex_ring --look fire": "it is an option of page, show and watch",
    "bench velocity --size 100": "bench velocity has no option --size; did you mean --sizes?",
    "run vortex_ring --zzz": "run has no option --zzz (see ecs-fluid run --help)",
    "schema --out a": "schema has no option --out; it is an option of export, page, run and sweep",
    "completion --zzz": "completion has no option --zzz (see ecs-fluid completion --help)",
    "run vortex_ring --set ring.core 0.1": "unexpected argument '0.1'; a setting is one word",
    "run vortex_ring world.duration=0.5": "; a setting is given as --set world.duration=0.5 (see",
    "run vortex_ring ring.core = 0.1": "; a setting is one word: --set path=value (see",
    "run vortex_ring --set ring.core =0.1": "; a setting is one word: --set path=value (see",
    "run ring.core=0.1 vortex_ring": "; a setting is given as --set ring.core=0.1 (see",
    "resume runs/a ring.core=0.1": "; a setting is given as --set ring.core=0.1 (see",
    "run a b": "unexpected argument 'b' (see",
    "show members/core=1 members/core=2": "unexpected argument 'members/core=2' (see",
    "export runs/a": "export: --to is missing: usd, vtp",
    "export --to usd": "export: RUN is missing: folder of a run",
    "run": "run: WORLD is missing: a shipped name",
    "show runs/a --camera -y": "]]; one that begins with a hyphen is written --camera=-y (see",
    "run vortex_ring --ticks": "run: --ticks needs a value",
    "run vortex_ring --ticks x": "--ticks 'x': a whole number is needed",
    "show vortex_ring --fps x": "--fps 'x': a number is needed",
    "show runs/a --save a.png --size 100": "--size needs 2 values, with a space between them: width",
    "movie runs/a": "there is no command 'movie'; ecs-fluid show RUN --movie a.mp4 makes a movie",
    "bake vortex_ring": "there is no command 'bake'; ecs-fluid run WORLD simulates",
    "exprot runs/a": 'Did you mean "export"?',
}


@pytest.mark.parametrize("line", SAID)
def test_a_wrong_command_line_is_told_plainly(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    said = capsys.readouterr().err
    assert SAID[line] in said
    command = line.split()[0]
    unknown = command in ("exprot", "movie", "bake")
    help_of = "" if unknown else " bench velocity" if command == "bench" else f" {command}"
    assert said.startswith("error: ") and said.endswith(f"(see ecs-fluid{help_of} --help)\n")
    assert len(said.splitlines()) == 1


IDLE = {
    "worlds vortex_ring --set world.dt=1": "--set has no effect without --schedule",
    "watch vortex_ring --normal x": "normal has no effect with what = 'particles'; it works with slice",
    "watch vortex_ring --host 0.0.0.0 --port 80": "--host and --port have no effect without --serve",
    "run vortex_ring --replace": "replace has no effect without out, the folder of the run to replace",
    "info runs/a --diagnostics energy": "--diagnostics has no effect without a picture; add --plot file.png",
    "warmup --set world.dt=1": "--set has no effect without a world; name one",
    "warmup vortex_ring --precision double": "--precision has no effect on a world, which has its own",
    "show vortex_ring --frame 2 --save a.png": "--frame has no effect because vortex_ring is a world",
}


@pytest.mark.parametrize("line", IDLE)
def test_options_without_effect_are_told(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {IDLE[line]}") and len(said.splitlines()) == 1


def test_help_shows_no_options_that_nobody_needs(capsys: pytest.CaptureFixture[str]) -> None:
    """Flags that switch off what is off already, empty lists as defaults; real defaults stay, 0 too."""
    assert main(["show", "--help"]) == 0
    said = capsys.readouterr().out
    assert not re.search(r"--no-|--empty-|\[default: (\(\)|False)", said), said
    flat = re.sub(r"[│\s]+", " ", said)
    assert "[default: 1280 720]" in flat and "for a world: ticks to simulate first [default: 0]" in flat
    assert "SOURCE folder of a run" in flat
