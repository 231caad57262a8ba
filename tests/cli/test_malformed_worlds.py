"""Each mistake in a world file gives one sentence that names it, exit code 2, and no traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ecs_fluid.cli import main

RING = """
[[entity]]
kind = "vortex_ring"
name = "ring"
radius = 1.0
core = 0.2
circulation = 5.0
spacing = 0.1
"""


def ring(old: str, new: str) -> str:
    """The valid ring with one line changed."""
    assert old in RING
    return RING.replace(old, new)


# (file text, words that the message must hold)
MISTAKES: dict[str, tuple[str, tuple[str, ...]]] = {
    "not TOML": ("[world\ndt = 1", ("not valid TOML", "line 1")),
    "two values": ("[world]\ndt = 1\ndt = 2", ("not valid TOML",)),
    "unknown table": ("[worlds]\ndt = 0.1" + RING, ("unknown table 'worlds'", "did you mean 'world'")),
    "unknown preset": ('preset = "artcle"' + RING, ("preset = 'artcle'", "'article'")),
    "name with dots": (
        ring('"ring"', '"ä"'),
        ("name = 'ä'; a name of letters a to z, digits, _ and - that",),
    ),
    "name without end": (ring('"ring"', f'"{"a" * 10**6}"'), ("aaa...; a value of length at most 64",)),
    "fps in quotes": ('[world]\nfps = "60"' + RING, ("[world]: fps = '60': a number is needed, written in",)),
    "steps in quotes": ('[world]\nsteps_per_frame = "2"' + RING, ("steps_per_frame = '2'", "without quotes")),
    "dt is true": ("[world]\ndt = true" + RING, ("dt = True", "a number is needed")),
    "digits of another script": ('[world]\ndt = "1/６0"' + RING, ("dt = '1/６0'", '"1/60"')),
    "quotient of no size": ('[world]\ndt = "1e300/1"' + RING, ("dt = '1e300/1'", '"1/60"')),
    "seed is true": ("[world]\nseed = true" + RING, ("seed = True", "a number is needed")),
    "debug is a word": ('[world]\ndebug = "yes"' + RING, ("debug = 'yes'", "true or false is needed")),
    "fps of no size": (
        "[world]\nfps = 1e-300" + RING,
        ("[world]: fps = 1e-300", "at least 1e-09"),
    ),
    "gravity of no size": (
        "[fluid]\ngravity = [0, 0, 1e300]" + RING,
        ("gravity.2 = 1e+300: a magnitude of at most 1e+30 is needed",),
    ),
    "profile of no size": (
        "[fluid]\ndensity_profile = [[0.0, 1e300], [1.0, 1.0]]" + RING,
        ("density_profile.0.1 = 1e+300: a magnitude of at most",),
    ),
    "key in quotes": (
        '[fluid]\ngravity = { keys = [[0.0, [0, 0, "-9.81"]]] }' + RING,
        ("gravity.keys.0.1.2 = '-9.81': a number is needed",),
    ),
    "dt is negative": ("[world]\ndt = -0.1" + RING, ("[world]", "dt = -0.1", "above 0")),
    "dt is zero": ("[world]\ndt = 0" + RING, ("dt = 0", "above 0")),
    "dt is text": ('[world]\ndt = "fast"' + RING, ("dt = 'fast'", "number")),
    "dt is nan": ("[world]\ndt = nan" + RING, ("dt = nan", "finite number")),
    "dt is infinite": ("[world]\ndt = inf" + RING, ("dt = inf", "finite number")),
    "dt is misspelt": ("[world]\ntd = 0.1" + RING, ("unknown key 'td'", "did you mean 'dt'")),
    "key of a region": (
        RING + '[[entity]]\nkind = "tracers"\nname = "t"\ncell = 0.1\nbox = { lwo = [0, 0, 0] }\n',
        ("unknown key 'box.lwo'", "did you mean 'low'"),
    ),
    "key of a shape": (
        RING + '[[entity]]\nkind = "body"\nname = "b"\nshape = { shape = "box", sise = [1, 1, 1] }\n',
        ("unknown key 'shape.sise'", "did you mean 'size'"),
    ),
    "key that is the name of a shape elsewhere": (
        RING + '[[system]]\nkind = "heater"\nbox = { low = [0, 0, 0] }\ntime = 1.0',
        ("[[system]] 1 'heater'", "unknown key 'box'"),
    ),
    "key with a bracket": ('[world]\n"a[" = 1' + RING, ("[world]: unknown key 'a['", "known:")),
    "unknown shape": (
        RING + '[[entity]]\nkind = "body"\nname = "b"\nshape = { shape = "bix" }\n',
        ("shape", "'bix'", "'box'"),
    ),
    "duration is zero": ("[world]\nduration = 0.0" + RING, ("duration = 0.0", "above 0")),
    "too many ticks": ("[world]\ndt = 1e-12\nduration = 1e6" + RING, ("duration", "10 million")),
    "unknown integrator": ('[world]\nintegrator = "rk5"' + RING, ("integrator = 'rk5'", "'rk4'")),
    "unknown precision": ('[world]\nprecision = "half"' + RING, ("precision = 'half'", "'double'")),
    "negative seed": ("[world]\nseed = -1" + RING, ("seed = -1", "at least 0")),
    "seed is not whole": ("[world]\nseed = 1.5" + RING, ("seed = 1.5", "whole number")),
    "world is a list": ("[[world]]\ndt = 0.1" + RING, ("[world]",)),
    "negative viscosity": ("[fluid]\nviscosity = -1e-3" + RING, ("viscosity = -0.001", "at least 0")),
    "unknown fluid key": ("[fluid]\nviscocity = 1e-3" + RING, ("'viscocity'", "did you mean 'viscosity'")),
    "unknown solver": (
        '[fluid]\nvelocity = { solver = "fast" }' + RING,
        (
            "[fluid] velocity",
            "solver = 'fast' is not known; known: auto, container, direct, fmm, hybrid, ",
            "poisson",
        ),
    ),
    "unknown solver key": (
        '[fluid]\nvelocity = { solvr = "tree" }' + RING,
        ("[fluid] velocity", "'solvr'", "did you mean 'solver'"),
    ),
    "velocity is text": ('[fluid]\nvelocity = "tree"' + RING, ("velocity = 'tree'",)),
    "unknown kernel": ('[fluid]\nvelocity = { kernel = "gauss" }' + RING, ("kernel = 'gauss'", "'gaussian'")),
    "angle is too wide": ("[fluid]\nvelocity = { angle = 2.0 }" + RING, ("angle = 2.0", "at most 1.0")),
    "unknown stretching": (
        '[fluid]\nstretch = { scheme = "transpose" }' + RING,
        ("scheme = 'transpose'", "'transposed'"),
    ),
    "stretching too strong": ("[fluid]\nstretch = { rate = 3 }" + RING, ("rate = 3", "at most 1")),
    "odd order of exchange": ("[fluid]\ndiffusion = { order = 3 }" + RING, ("order = 3", "2 or 4")),
    "viscosity twice": (
        "[fluid]\ndiffusion = { viscosity = 1.0 }" + RING,
        ("viscosity belongs in [fluid]",),
    ),
    "entity without a kind": ('[[entity]]\nname = "a"', ("[[entity]] 1", "'kind' is missing")),
    "entity without a name": ('[[entity]]\nkind = "hill_vortex"', ("[[entity]] 1", "'name' is missing")),
    "unknown kind": (ring("vortex_ring", "vortex_rong"), ("'vortex_rong'", "did you mean 'vortex_ring'")),
    "entity is one table": ('[entity]\nkind = "vortex_ring"', ("[[entity]]",)),
    "entity is a number": ("entity = [3]", ("[[entity]] 1", "3")),
    "name with a blank": (ring('"ring"', '"my ring"'), ("name = 'my ring'",)),
    "name is empty": (ring('"ring"', '""'), ("name = ''",)),
    "name is taken": (RING + RING, ("name = 'ring' is taken",)),
    "name is reserved": (ring('"ring"', '"fluid"'), ("name = 'fluid' is taken",)),
    "negative radius": (ring("radius = 1.0", "radius = -1.0"), ("'ring'", "radius = -1.0", "at least")),
    "radius is a list": (ring("radius = 1.0", "radius = [1.0]"), ("'ring'", "radius = [1.0]")),
    "radius is misspelt": (ring("radius", "raduis"), ("'raduis'", "did you mean 'radius'")),
    "spacing is zero": (ring("spacing = 0.1", "spacing = 0"), ("spacing = 0", "at least")),
    "circulation is nan": (ring("circulation = 5.0", "circulation = nan"), ("circulation = nan", "finite")),
    "core is true": (ring("core = 0.2", 'core = "thin"'), ("core = 'thin'", "number")),
    "tracers fill nothing": (
        RING + '[[entity]]\nkind = "tracers"\nname = "smoke"\nfills = "rong"',
        ("'smoke'", "'rong'", "did you mean 'ring'"),
    ),
    "system without a kind": (RING + "[[system]]\nvelocity = [1, 0, 0]", ("[[system]] 1", "'kind'")),
    "unknown system": (RING + '[[system]]\nkind = "wnd"', ("[[system]] 1", "'wnd'", "did you mean 'wind'")),
    "nothing to take": (
        RING + '[[system]]\nkind = "sampling"\ntake = []',
        ("[[system]] 1 'sampling': take = []", "of length at least 1"),
    ),
    "system runs code": (RING + '[[system]]\nkind = "mine:Swirl"', ("[[system]] 1", "--allow-code")),
    "wind in two dimensions": (
        RING + '[[system]]\nkind = "wind"\nvelocity = [1.0, 0.0]',
        ("[[system]] 1 'wind'", "velocity"),
    ),
    "wind on nobody": (
        RING + '[[system]]\nkind = "wind"\nvelocity = [1, 0, 0]\non = ["rong"]',
        ("'rong'", "did you mean 'ring'"),
    ),
    "keys out of order": (
        RING + '[[system]]\nkind = "wind"\nvelocity = { keys = [[1, [0, 0, 1]], [0, [0, 0, 0]]] }',
        ("[[system]] 1 'wind'", "times of keys must increase"),
    ),
    "kill box inside out": (
        RING + '[[system]]\nkind = "kill_box"\nlow = [1, 1, 1]\nhigh = [0, 2, 2]',
        ("low", "below high"),
    ),
    "age limit without seconds": (RING + '[[system]]\nkind = "age_limit"', ("'seconds' is missing",)),
    "output every zero": (RING + "[output]\nevery = 0", ("[output]", "every = 0", "at least 1")),
    "half a step": ("[world]\nsteps_per_frame = 2.5" + RING, ("= 2.5; a whole number is needed",)),
    "key of a vector is nan": (
        "[fluid]\ngravity = { keys = [[0, [0, nan, 0]]] }" + RING,
        ("gravity.keys.0.1.1 = nan; a finite number is needed",),
    ),
    "entities alone": ('[[entities]]\nkind = "vortex_ring"', ("'entities'", "did you mean 'entity'")),
    "no entity": ("[world]\ndt = 0.1", ("holds no entity", "[[entity]]")),
    "nothing at all": ("", ("holds no entity",)),
    "stretching without gradients": (
        "[fluid]\nvelocity = { gradient = false }" + RING,
        ("StretchSystem reads VelocityGradient",),
    ),
    "output unknown": (RING + "[output]\nevry = 2", ("'evry'", "did you mean 'every'")),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_sentence_and_exit_code_2(
    mistake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, words = MISTAKES[mistake]
    path = tmp_path / "world.toml"
    path.write_text(text, encoding="utf-8")
    assert main(["validate", str(path)]) == 2
    said = capsys.readouterr()
    lines = said.err.strip().splitlines()
    assert len(lines) == 1, said.err
    assert lines[0].startswith("error: ")
    assert "Traceback" not in said.err
    assert said.out == ""
    for word in words:
        assert word in lines[0], f"{word!r} is not in {lines[0]!r}"


def test_the_ring_itself_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The accepting side: the file that every mistake starts from passes."""
    path = tmp_path / "world.toml"
    path.write_text(RING, encoding="utf-8")
    assert main(["validate", str(path)]) == 0
    assert "valid" in capsys.readouterr().out


def test_what_is_no_ordinary_file_is_refused_unread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe that nobody writes to, a device without end, a sparse file of 100 GB: at once, and not read."""
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    with (tmp_path / "sparse.toml").open("wb") as file:
        file.truncate(10**11)
    for name, words in (
        ("pipe", "is a device or a pipe"),
        ("zero", "is a device or a pipe"),
        ("sparse", "has 100,000,000,000 bytes, and at most 16,777,216 are read"),
    ):
        assert main(["validate", str(tmp_path / f"{name}.toml")]) == 2
        said = capsys.readouterr().err
        assert words in said and said.startswith("error: ") and said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "vortex_rong"], ("'vortex_rong'", "did you mean 'vortex_ring'")),
        (["run"], ("WORLD",)),
        (["rnu", "vortex_ring"], ("rnu",)),
        (["run", "vortex_ring", "--ticks", "0"], ('"0" for --ticks. Must be >= 1.',)),
        (["run", "vortex_ring", "--ticks", "many"], ("many",)),
        (["run", "vortex_ring", "--threads", "0"], ('"0" for --threads. Must be >= 1.',)),
        (["run", "vortex_ring", "--set", "fluid.viscosity"], ("path=value",)),
        (["run", "vortex_ring", "--set", "ring.raduis=1"], ("'raduis'", "did you mean 'radius'")),
        (["run", "vortex_ring", "--set", "rong.radius=1"], ("'rong'", "did you mean 'ring'")),
        (["run", "vortex_ring", "--save", "picture.jpg"], ("picture.jpg", ".png")),
        (["run", "vortex_ring", "--movie", "nowhere/a.mp4"], ("nowhere", "does not exist")),
        (["run", "vortex_ring", "--movie", "a" * 300 + ".mp4"], ("at most 200 bytes",)),
        (["validate", "."], ("folder",)),
        (["resume", "nowhere"], ("nowhere", "run")),
        (["info", "nowhere"], ("nowhere", "run")),
        (["show", "vortex_ring", "--what", "smoke"], ("smoke",)),
        (["show", "."], ("run.json",)),
        (["schema", "/nonexistent/a.json"], ("cannot write", "no such file or folder")),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_wrong_commands(
    arguments: list[str],
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1, said
    assert said.startswith("error: ")
    for word in words:
        assert word in said, f"{word!r} is not in {said!r}"
    assert not (tmp_path / "runs").exists()
