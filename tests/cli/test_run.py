"""Runs from the command line: what they store, how they stop, how they go on."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import termios
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from docs.generator import programs
from ecs_fluid.cli import main
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.runs.runner import Runner, run_info
from ecs_fluid.world import World
from ecs_fluid.worlds import load
from tests.small_worlds import NOZZLE, RING

COMMAND = [sys.executable, "-c", "import sys; from ecs_fluid.cli import main; sys.exit(main())"]

WORLD = f"""
[world]
dt = 0.02
duration = 0.4
precision = "double"

[fluid]
viscosity = 1e-3
diffusion.method = "core_spreading"
diagnostics.every = 3
{RING}
spacing = 0.1
{NOZZLE}
rate = 730.0

[[system]]
kind = "age_limit"
seconds = 0.2
on = ["smoke"]

[output]
every = 2
checkpoint_seconds = 0
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A world with an emitter and an age limit, in an otherwise empty working folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "puffs.toml"
    path.write_text(WORLD, encoding="utf-8")
    return path


def final_hash(folder: Path) -> str:
    """State hash that the run recorded at its end."""
    return str(RunFolder.open(folder).read_info()["state_hash"])


def test_run_stores_frames_records_and_recipe(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """20 ticks: frames at 0, 2, ..., 20; records at 3, ..., 18; particles of the last 10 ticks are alive."""
    assert main(["run", str(world)]) == 0
    run = RunFolder.open(Path("runs/puffs"))
    stored = run.read_trajectory()
    assert list(stored.ticks) == list(range(0, 21, 2))
    assert [record["tick"] for record in run.records()] == list(range(3, 19, 3))
    frame = stored.frame(-1)
    # A particle emitted in tick k appears at its end and lives 10 ticks, so ticks 11 to 20 are alive.
    alive = int(730 * 0.02 * 20) - int(730 * 0.02 * 10)
    assert len(frame["smoke"]["Position.x"]) == alive
    info = run.read_info()
    assert info["status"] == "finished"
    assert info["ticks"] == 20
    assert "VelocitySystem" in info["systems"]
    # The stored recipe is complete: it gives the same run.
    assert main(["run", "runs/puffs/world.toml", "--out", "again"]) == 0
    assert final_hash(Path("again")) == final_hash(Path("runs/puffs"))
    assert main(["info", "runs/puffs"]) == 0
    assert "VelocitySystem" in capsys.readouterr().out


def test_the_command_is_kept_as_one_would_type_it(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a blank in a path it makes the run again."""
    words = ["run", str(world.rename("two puffs.toml")), "--ticks", "1", "--out", "my run"]
    monkeypatch.setattr(sys, "argv", ["/bin/ecs-fluid", *words])
    assert main(words) == 0
    assert shlex.split(RunFolder.open(Path("my run")).read_info()["command"]) == ["ecs-fluid", *words]


def test_a_second_run_does_not_touch_the_first(world: Path) -> None:
    assert main(["run", str(world), "--ticks", "2"]) == 0
    assert main(["run", str(world), "--ticks", "3"]) == 0
    assert RunFolder.open(Path("runs/puffs")).read_info()["ticks"] == 2
    assert RunFolder.open(Path("runs/puffs-2")).read_info()["ticks"] == 3
    assert main(["run", str(world), "--out", "runs/puffs", "--ticks", "4"]) == 2
    assert main(["run", str(world), "--out", "runs/puffs", "--ticks", "4", "--replace"]) == 0
    assert RunFolder.open(Path("runs/puffs")).read_info()["ticks"] == 4


def test_resume_continues_a_shorter_run(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(world), "--ticks", "7", "--out", "part"]) == 0
    for ticks, said in (("3", "part is at tick 7 already"), ("7", "part is complete at tick 7")):
        assert main(["resume", "part", "--ticks", ticks]) == 0
        assert said in capsys.readouterr().out
    assert main(["resume", "part", "--ticks", "20"]) == 0
    assert main(["run", str(world), "--out", "whole"]) == 0
    assert final_hash(Path("part")) == final_hash(Path("whole"))
    # Calls of both stretches are counted; the first of each, which may compile, is not.
    part, whole = (RunFolder.open(Path(name)).read_info()["systems"] for name in ("part", "whole"))
    assert part["VelocitySystem"]["calls"] == whole["VelocitySystem"]["calls"] - 1 > 2 * 13
    frames = [RunFolder.open(Path(name)).read_trajectory().frame(-1) for name in ("part", "whole")]
    assert (frames[0]["smoke"]["Position.x"] == frames[1]["smoke"]["Position.x"]).all()


def test_a_stored_run_may_keep_the_jerk(world: Path) -> None:
    """Its velocities are columns from the first frame on, also of vortons that an emitter gives off."""
    vortons = [f"nozzle.{text}" for text in ("population=vortons", "core=0.2", "strength=[0,0,0.01]")]
    settings = [item for text in (*vortons, "fluid.diagnostics.jerk=true") for item in ("--set", text)]
    assert main(["run", str(world), *settings, "--ticks", "4", "--out", "part"]) == 0
    assert main(["resume", "part", "--ticks", "9"]) == 0
    assert main(["run", str(world), *settings, "--ticks", "9", "--out", "whole"]) == 0
    assert final_hash(Path("part")) == final_hash(Path("whole"))
    run = RunFolder.open(Path("part"))
    first, last = (run.read_trajectory().frame(place) for place in (0, -1))
    assert not first["ring"]["VelocityHistory.count"].any() and not len(
        first["smoke"]["VelocityHistory.count"]
    )
    assert set(last["ring"]["VelocityHistory.count"]) == {9}
    # Rows are born when their tick has moved the others, and observed at its end.
    assert set(last["smoke"]["VelocityHistory.count"]) == set(range(1, 10))
    assert run.records()[-1]["jerk"] > 0


def started(
    world: Path,
    out: str,
    frames: int,
    threads: int = 2,
    before: Sequence[str] = (),
    terminal: int | None = None,
) -> subprocess.Popen[bytes]:
    """A run in a process of its own that has stored its first checkpoints.

    ``before`` is what stands before its command; its errors go to the ``terminal``, where there is one.
    """
    command = [*before, *COMMAND, "run", str(world), "--ticks", str(frames), "--out", out]
    process = subprocess.Popen(
        [*command, "--threads", str(threads)], stdout=subprocess.PIPE, **on_terminal(terminal)
    )
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        found = sorted(Path(out).glob("checkpoints/checkpoint-*.npz"))
        if found and int(found[-1].stem.split("-")[1]) >= 5:
            return process
        if process.poll() is not None:
            break
        time.sleep(0.002)
    raise AssertionError(process.communicate())


def test_sigkill_and_resume_on_another_thread_count(world: Path) -> None:
    """Killed at an arbitrary tick and continued with another thread count, the end is the same bits."""
    process = started(world, "killed", 400, threads=2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    reached = RunFolder.open(Path("killed")).newest_checkpoint().tick
    assert 5 <= reached < 400, "the run ended before it was killed; make it longer"
    end = reached + 12
    resume = ["resume", "killed", "--ticks", str(end), "--threads", "1"]
    folder = Path.cwd()
    done = programs.run(programs.command(folder), *resume, folder=folder, NUMBA_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert main(["run", str(world), "--ticks", str(end), "--out", "whole"]) == 0
    assert final_hash(Path("killed")) == final_hash(Path("whole"))
    killed, whole = (RunFolder.open(Path(name)) for name in ("killed", "whole"))
    assert list(killed.read_trajectory().ticks) == list(whole.read_trajectory().ticks)
    assert killed.records() == whole.records()


def on_terminal(terminal: int | None) -> dict[str, Any]:
    """Arguments of a process whose errors go to its terminal, or to a pipe without one."""
    if terminal is None:
        return {"stderr": subprocess.PIPE}

    def own() -> None:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    return {"stderr": terminal, "start_new_session": True, "preexec_fn": own}


@pytest.fixture
def hears_hangups(request: pytest.FixtureRequest) -> None:
    """What is started ends by SIGHUP, also where nohup runs the tests."""
    former = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    request.addfinalizer(lambda: signal.signal(signal.SIGHUP, former))


def close(window: int, terminal: int) -> None:
    """Close a terminal: who runs on it gets SIGHUP, and an error for whatever is printed."""
    os.close(terminal)
    os.close(window)


@pytest.mark.usefixtures("hears_hangups")
@pytest.mark.parametrize(
    "by", ["SIGINT", "closed terminal", pytest.param("SIGHUP", marks=pytest.mark.nightly)]
)
def test_what_asks_it_to_end_ends_it_after_the_tick_with_everything_stored(world: Path, by: str) -> None:
    """SIGHUP ended it at once, and a bar drawn on a closed terminal is an error."""
    if by == "closed terminal":
        window, terminal = os.openpty()
        process = started(world, "stopped", 4000, terminal=terminal)
        close(window, terminal)
    else:
        process = started(world, "stopped", 4000)
        process.send_signal(getattr(signal, by))
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert b"ecs-fluid resume stopped" in output
    assert b"Traceback" not in (errors or b"")
    info = RunFolder.open(Path("stopped")).read_info()
    assert info["status"] == "stopped"
    assert RunFolder.open(Path("stopped")).newest_checkpoint().tick == info["ticks"]


def test_a_run_that_nohup_started_goes_on_when_its_terminal_is_closed(world: Path) -> None:
    window, terminal = os.openpty()
    process = started(world, "kept", 60, before=["nohup"], terminal=terminal)
    close(window, terminal)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert RunFolder.open(Path("kept")).read_info()["ticks"] == 60


WAITS = """
import sys, time
from ecs_fluid import cli

@cli.app.command
def wait():
    try:
        print("waits", flush=True)
        time.sleep(60)
    finally:
        print("cleans up", flush=True)

sys.argv[1:] = ["wait"]
sys.exit(cli.main())
"""


@pytest.mark.usefixtures("hears_hangups")
@pytest.mark.parametrize("by", ["SIGTERM", "SIGHUP", "closed terminal"])
def test_every_command_cleans_up_when_it_is_asked_to_end(by: str) -> None:
    """Exports, pages, movies and sweeps have files to take away, as after Ctrl-C."""
    window, terminal = os.openpty() if by == "closed terminal" else (None, None)
    command = [sys.executable, "-c", WAITS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, **on_terminal(terminal)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"waits\n"
        if window is not None and terminal is not None:
            close(window, terminal)
        else:
            process.send_signal(getattr(signal, by))
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, b"cleans up\n")
    assert errors in (None, b"stopped\n")


def test_diverged_run_keeps_its_last_good_state(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps that leave the range of float32 end with the culprit named and the last good tick stored.

    The ring moves at about 1e9 m/s, so a step of 1e30 s goes to 1e39 m; float32 ends at 3.4e38.
    """
    changes = ("world.precision='single'", "world.dt=1e30", "ring.circulation=1e9", "nozzle.rate=0")
    overrides = [part for change in changes for part in ("--set", change)]
    assert main(["run", str(world), "--out", "bad", *overrides, "--ticks", "9"]) == 2
    printed = capsys.readouterr()
    said = printed.err.strip().splitlines()[-1]
    assert "last good state" in said
    assert "System" in said
    run = RunFolder.open(Path("bad"))
    assert f"failed after tick {run.read_info()['ticks']} of 9, t = " in printed.out
    assert printed.out.endswith("in bad; to see what is stored: ecs-fluid show bad\n")
    assert run.read_info()["status"] == "diverged"
    assert run.newest_checkpoint().tick == run.read_info()["ticks"]


def test_worlds_and_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worlds"]) == 0
    listed = capsys.readouterr().out
    for name in (
        "vortex_ring",
        "jet_ring",
        "crossed_tubes",
        "oblique_rings",
        "leapfrog",
        "hill_vortex",
        "shear_layer",
        "wavy_sheet",
        "tube",
        "wind_fountain",
    ):
        assert name in listed
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["properties"]["world"]["properties"]["dt"]["anyOf"][0]["exclusiveMinimum"] == 0


def test_a_shipped_world_is_copied_and_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["worlds", "vortex_ring", "--copy"]) == 0
    assert "ecs-fluid run vortex_ring.toml" in capsys.readouterr().out
    assert load("vortex_ring.toml").state_hash() == load("vortex_ring").state_hash()
    Path("vortex_ring.toml").write_text("mine", encoding="utf-8")
    assert main(["worlds", "vortex_ring", "--copy"]) == 2
    assert "already exists" in capsys.readouterr().err
    assert Path("vortex_ring.toml").read_text(encoding="utf-8") == "mine"
    assert main(["worlds", "--copy"]) == 2
    assert "ecs-fluid worlds NAME --copy" in capsys.readouterr().err
    assert main(["worlds", "candle", "--copy", "--schedule"]) == 2
    assert "choose one of them" in capsys.readouterr().err and not Path("candle.toml").exists()


def test_help_tells_parameters_with_units(capsys: pytest.CaptureFixture[str]) -> None:
    """Entities, systems and parts, spelled as world files and Python do; typos get the nearest name."""
    for name, words in {
        "vortex_ring": ("circulation  m^2/s", "pi Gamma R^2", "required"),
        "fluid.velocity": ("tolerance", "fmm, pppm and", "auto may have"),
        "[fluid]": ("viscosity", "m^2/s"),
        "WIND": ("velocity   m/s", "ecs-fluid help NAME"),
        "SurfaceSystem": ('kind = "surface"', "keep_volume"),
        "BoxShape": ("size", "edges along x, y, z"),
        "temperature": ("T       K", "above 0"),
    }.items():
        assert main(["help", name]) == 0
        said = capsys.readouterr().out
        assert all(word in said for word in words), said
    assert main(["help", "fluid"]) == 0
    said = capsys.readouterr().out
    assert "temperature_profile " in said and "…" not in said  # names are to be copied
    assert "tables inside: Keyed, partition, velocity, stretch, diffusion, diagnostics; " in said
    assert main(["help"]) == 0
    assert {"vortex_ring,", "baroclinic,", "Keyed,", "Volume,"} <= set(capsys.readouterr().out.split())
    # A component has the name of a kind but for its first letter; what is listed is found as it is listed.
    for name, usage in {"Liquid": "component", "liquid": "kind of entity", "Emitter": "part"}.items():
        assert main(["help", name]) == 0
        assert capsys.readouterr().out.startswith(f"{name}: {usage}")
    for name, said in {
        "vortx_ring": "did you mean 'vortex_ring'",
        "candle": "ecs-fluid worlds candle",
        "panels_across": "panels_across belongs to boundary; ecs-fluid help boundary explains it",
        "fluid.viscosity": "viscosity belongs to fluid; ecs-fluid help fluid explains it",
        "body.shape": "shape belongs to body; ecs-fluid help body explains it",
        "body.shpae": "known: ",
    }.items():
        assert main(["help", name]) == 2
        assert said in capsys.readouterr().err


def test_help_knows_classes_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By their import paths, from the folder where the command is given, and only when code is allowed."""
    monkeypatch.chdir(tmp_path)
    Path("own_help.py").write_text(
        "import ecs_fluid as ef\n\n\nclass Swirl(ef.System):\n"
        '    """Turns what it meets."""\n\n    phase = "move"\n    spin: float = 1.0\n'
        '    """how fast, 1/s"""\n\n    def process(self, dt: float) -> None:\n        pass\n',
        encoding="utf-8",
    )
    assert main(["help", "own_help:Swirl"]) == 2
    assert "allow it with --allow-code" in capsys.readouterr().err
    assert main(["help", "own_help:Swirl", "--allow-code"]) == 0
    said = capsys.readouterr().out
    assert 'kind = "own_help:Swirl"' in said and "Turns what it meets." in said
    assert re.search(r"spin +1/s +1.0 .*how fast", said)
    for name, words in {
        "own_help:Swirk": "has no 'Swirk'",
        "own_hepl:Swirl": "cannot be imported",
        "own_help:ef": "not a subclass of ecs_fluid.System or ecs_fluid.Recipe or",
    }.items():
        assert main(["help", name, "--allow-code"]) == 2
        assert words in capsys.readouterr().err


def test_help_runs_no_code_unasked_and_says_what_code_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A loaded module imports nothing from this folder; one that exits, and a name that fails, are told."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    lazily = types.ModuleType("loaded_before")
    vars(lazily)["__getattr__"] = lambda name: importlib.import_module("beside_it")
    monkeypatch.setitem(sys.modules, "loaded_before", lazily)
    Path("beside_it.py").write_text("open('ran', 'w').close()\n", encoding="utf-8")
    Path("ends_it.py").write_text("raise SystemExit(7)\n", encoding="utf-8")
    Path("asked_it.py").write_text(
        "def __getattr__(name):\n    raise RuntimeError('no ' + name)\n", encoding="utf-8"
    )
    Path("fluid").mkdir()
    Path("fluid", "own.py").write_text("from ecs_fluid import System as Own\n", encoding="utf-8")
    for given, words in {
        ("loaded_before:X",): "No module named 'beside_it'",
        ("ends_it:X", "--allow-code"): "ends the program when it is imported (exit 7)",
        ("asked_it:X", "--allow-code"): "'X' of module 'asked_it' fails: RuntimeError: no X",
        ("./ends_it:X", "--allow-code"): "'./ends_it:X' does not name a class; write swirl:Swirl",
        (":X", "--allow-code"): "':X' does not name a class",
        ("ends_it:", "--allow-code"): "'ends_it:' does not name a class",
        ("ends_it.py:X", "--allow-code"): "'ends_it.py:X' does not name a class",
        ("fluid.own:Own", "--allow-code"): "'fluid.own:Own' has no process(self, dt) method",
    }.items():
        assert main(["help", *given]) == 2
        assert words in capsys.readouterr().err.replace("\n", " ")
    assert not Path("ran").exists()


def test_completion_knows_commands_options_and_worlds(capsys: pytest.CaptureFixture[str]) -> None:
    """bash itself completes with what is printed; a file that is no shipped world is left to its default."""
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    found = {"run vort": ["vortex_ring", "vortices_merge"], "sw": ["sweep"], "run x --tic": ["--ticks"]}
    for line, words in found.items():
        typed = line.split()
        asked = f"COMP_WORDS=(ecs-fluid {line}); COMP_CWORD={len(typed)}; _ecs_fluid; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", script + asked], capture_output=True, text=True)
        assert done.stdout.split() == words
    assert "complete -o default -F" in script


def test_validate_tells_solver_time_and_memory(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup", str(world)]) == 0
    assert main(["validate", str(world)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"solver direct\ntime +[\d.e+]+ m?s a tick at the start; .* m?s if all \d+ are", said)
    assert re.search(r"memory [\d.]+ [MG]B", said)
    assert main(["warmup", str(world), "--precision", "double"]) == 2


@pytest.mark.parametrize("variable", ["ECS_FLUID_CACHE_DIR", "NUMBA_CACHE_DIR"])
def test_warmup_says_that_nothing_could_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str
) -> None:
    """It compiled for a minute, kept nothing, and said that all was ready."""
    (tmp_path / "file").touch()
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "file" / "cache"))
    assert main(["warmup"]) == 2
    said = capsys.readouterr()
    told = " ".join(said.err.split())
    assert re.fullmatch(
        r"error: cannot keep compiled kernels in \S+/file/cache\S*: a file is in the way where a folder is "
        rf"needed; set {variable} to a writable folder",
        told,
    ), told
    assert said.out == ""


def test_schema_accepts_the_shipped_worlds_and_refuses_a_misspelling() -> None:
    """Checked by an independent validator, as an editor would."""
    import tomllib

    jsonschema = pytest.importorskip("jsonschema")
    from ecs_fluid.shipped_worlds import shipped
    from ecs_fluid.worlds.schema import schema

    validator = jsonschema.Draft202012Validator(schema())
    for path in shipped().values():
        validator.validate(tomllib.loads(path.read_text(encoding="utf-8")))
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"world": {"td": 0.1}})


def test_records_that_are_stored_leave_the_memory(world: Path) -> None:
    made = load(world, "fluid.diagnostics.every=1")
    folder = RunFolder.create("kept", "", run_info(made))
    lengths = []

    def watch(run: World, last: int) -> bool:
        lengths.append(len(run.history))
        return False

    Runner(made, folder, 6, 2, 60.0).execute(watch)
    assert lengths == [1] * 6
    assert [record["tick"] for record in RunFolder.open("kept").records()] == [1, 2, 3, 4, 5, 6]
