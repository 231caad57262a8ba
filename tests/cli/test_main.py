"""What every command does alike: errors in one sentence, empty values, strangers' text, standard output."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import h5py
import pytest

import ecs_fluid as ef
from ecs_fluid.cli import COMMANDS, app, main, register
from ecs_fluid.cli.bench import velocity
from ecs_fluid.errors import FluidError
from ecs_fluid.worlds import world_recipe

COMMAND = [sys.executable, "-c", "import sys; from ecs_fluid.cli import main; sys.exit(main())"]
LONG = "a" * 300
DIGITS = "1" * 5000


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two ticks with two records."""
    folder = tmp_path_factory.mktemp("main") / "run"
    settings = ["--set", "fluid.diagnostics.every=1", "--set", "entity.1.per_cell=1"]
    assert main(["run", "vortex_ring", "--ticks", "2", "--out", str(folder), *settings]) == 0
    return folder


@pytest.fixture
def run(stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, in the working folder."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(stored, tmp_path / "run")).relative_to(tmp_path)


def sentence(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which a command is refused."""
    capsys.readouterr()
    assert main(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "vortex_ring", "--ticks", "1", "--out", ""],
        ["run", ""],
        ["resume", ""],
        ["info", ""],
        ["show", "", "--save", "a.png"],
        ["export", "run", "--to", "npz", "--out", ""],
        ["page", "run", "--out", ""],
        ["sweep", "vortex_ring", "--seeds", "2", "--out", ""],
    ],
)
def test_an_empty_value_is_no_folder(
    run: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "'': a value is needed" in sentence(arguments, capsys)
    assert os.listdir() == ["run"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", LONG],
        ["run", LONG],
        ["run", "vortex_ring", "--ticks", "1", "--out", LONG],
        ["resume", LONG],
        ["info", LONG],
        ["info", "run", "--plot", f"{LONG}.png"],
        ["show", LONG, "--save", "a.png"],
        ["show", "run", "--size", "64", "36", "--save", f"{LONG}.png"],
        ["export", LONG, "--to", "npz"],
        ["export", "run", "--to", "npz", "--out", LONG],
        ["page", LONG],
        ["page", "run", "--out", LONG],
        ["worlds", LONG],
        ["schema", LONG],
        ["sweep", LONG, "--seeds", "2"],
        ["sweep", "vortex_ring", "--seeds", "2", "--out", LONG, "--workers", "0"],
    ],
)
def test_a_name_that_no_file_can_have(
    run: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "File name too long" in sentence(arguments, capsys)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["validate", "vortex_ring", "--set", "entity.².core=1"], "'²' is none of the items there; known: 0"),
        (["validate", "vortex_ring", "--set", f"entity.{DIGITS}.core=1"], r"1\.\.\. is none of the items"),
        (["validate", "vortex_ring", "--set", f"fluid{'.a' * 50_000}=1"], "the path has 50,001 parts; "),
        (["validate", "vortex_ring", "--set", f"fluid.gravity={'[' * 50_000}"], "gravity = '.*is needed"),
        (["sweep", "vortex_ring", "--vary", "entity.².core=1,2"], "vary 'entity.².* is none of the items"),
        (["sweep", "vortex_ring", "--vary", f"fluid{'.a' * 50_000}=1,2"], "the path has 50,001 parts; "),
        (
            ["sweep", "vortex_ring", "--seeds", "2", "--ticks", str(2**63)],
            "ticks = 9223372036854775808; a whole number of at least 1 is needed",
        ),
        (["watch", "vortex_ring", "--serve", "--slide", f"system.{DIGITS}.x=1:2"], "is not a parameter"),
        (["run", "vortex_ring", "--ticks", str(2**63)], "--ticks. Must be < 9223372036854775808"),
        (["run", "vortex_ring", "--threads", str(2**63)], "--threads. Must be <= 1024"),
    ],
)
def test_settings_that_lead_nowhere(
    run: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if arguments[0] == "watch":
        pytest.importorskip("trame")
    said = sentence(arguments, capsys)
    assert re.search(words, said), said
    assert os.listdir() == ["run"]


def test_frames_beyond_all_numbers_leave_a_run_as_it_was(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (run / "run.json").read_bytes()
    assert "Must be < 9223372036854775808" in sentence(["resume", str(run), "--ticks", str(2**63)], capsys)
    assert (run / "run.json").read_bytes() == before


ERRORS: list[tuple[Exception, str]] = [
    (MemoryError("Unable to allocate 7 GiB"), r"not enough memory.*\(Unable to allocate 7 GiB\)"),
    (RecursionError("maximum recursion depth"), "nested too deeply"),
    (OverflowError("too large"), r"a number is too large, or too near to 0.*\(too large\)"),
    (OSError(5, "Input/output error", "a.npz"), "a.npz: the operating system refused it: Input/output error"),
    (FileNotFoundError(2, "No such file or directory"), "the working folder no longer exists"),
]


@pytest.mark.parametrize(("error", "words"), ERRORS)
def test_what_the_machine_stops_is_a_sentence(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(world_recipe, "read_tables", stopped)
    with pytest.raises(FluidError, match=words) as raised:
        ef.load("vortex_ring")
    assert raised.value.__cause__ is error
    assert re.search(words, sentence(["validate", "vortex_ring"], capsys))


def test_validate_refuses_a_world_whose_first_tick_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2 and one sentence, as `run` has; of later ticks it warns, and tries none beyond the end."""
    text = """
    [world]
    dt = 0.01
    duration = 0.02
    [[entity]]
    kind = "tracers"
    name = "dye"
    box = { low = [0.0, 0.0, 0.0], high = [1.0, 1.0, 1.0] }
    cell = 0.5
    """
    (path := tmp_path / "dye.toml").write_text(text)
    step = ef.World.step

    def fails(world: ef.World) -> None:
        if world.tick == failing:
            raise FluidError("no more")
        step(world)

    monkeypatch.setattr(ef.World, "step", fails)
    failing = 0
    assert sentence(["validate", str(path)], capsys).endswith("its first tick fails: no more")
    failing = 1
    assert main(["validate", str(path)]) == 0
    assert "its first ticks fail: no more" in capsys.readouterr().err
    failing = 2
    assert main(["validate", str(path)]) == 0
    assert "fail" not in capsys.readouterr().err


# Title of a terminal's window, bell, colour, deletion of the line, text turned around, a second line.
EVIL = "\x1b]0;owned\x07\x9b31m\x1b[2K\u202egnp\u2066\x85\r\nfinished: forged\x00"


def spoil(value: Any, depth: int = 0) -> Any:
    """The same with `EVIL` behind all texts, and behind keys of tables below the first level."""
    if isinstance(value, dict):
        return {key + EVIL if depth else key: spoil(part, depth + 1) for key, part in value.items()}
    if isinstance(value, list):
        return [spoil(part, depth) for part in value]
    return value + EVIL if isinstance(value, str) and value not in ("ecs_fluid run", "finished") else value


def spoiled_info(run: Path) -> None:
    path = run / "run.json"
    info = json.loads(path.read_text(encoding="utf-8"))
    kept = {key: info[key] for key in ("plan", "format", "version")}
    stretches = [
        {**each, "started": EVIL, "computed_with": spoil(each["computed_with"], 1)}
        for each in info["stretches"]
    ]
    systems = {name + EVIL: timing for name, timing in info["systems"].items()}
    columns = {label: {"unit": EVIL, "kind": about["kind"]} for label, about in info["columns"].items()}
    told = {"stretches": stretches, "systems": systems, "columns": columns}
    path.write_text(json.dumps({**spoil(info), **kept, **told}))


def spoiled_format(run: Path) -> None:
    (run / "run.json").write_text(json.dumps({"format": "ecs_fluid run", "version": EVIL}))


def spoiled_records(run: Path) -> None:
    path = run / "diagnostics.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for record in records:
        record.update({f"force_by_{EVIL}": EVIL, "energy": EVIL})
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def spoiled_recipe(run: Path) -> None:
    (run / "world.toml").write_text(f"[{json.dumps(EVIL)}]\na = 1\n", encoding="utf-8")


def spoiled_trajectory(run: Path) -> None:
    with h5py.File(run / "trajectory" / "ring.vtkhdf", "r+") as file:
        file["ecs_fluid"].attrs["format"] = EVIL[:-1]


def spoiled_path(run: Path) -> Path:
    (run / "checkpoints" / "checkpoint-00000002.npz").write_bytes(b"")
    return run.rename(EVIL[:-1])


@pytest.mark.parametrize(
    ("spoiled", "telling"),
    [
        (spoiled_info, {"info", "resume"}),
        (spoiled_format, {"info", "resume", "export", "page", "show"}),
        (spoiled_records, {"info"}),
        (spoiled_recipe, {"slice", "validate"}),
        (spoiled_trajectory, {"info", "resume", "export", "page", "show"}),
        (spoiled_path, {"resume", "export", "page", "validate"}),
    ],
)
def test_a_strangers_text_reaches_no_terminal(
    run: Path, spoiled: Any, telling: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """`telling` are the commands that quote it."""
    run = spoiled(run) or run
    quoting = set()
    for name, arguments in {
        "info": ["info", str(run)],
        "resume": ["resume", str(run), "--ticks", "3"],
        "export": ["export", str(run), "--to", "npz"],
        "page": ["page", str(run)],
        "show": ["show", str(run), "--save", "a.png", "--size", "64", "64"],
        "slice": ["show", str(run), "--save", "b.png", "--size", "64", "64", "--what", "slice"],
        "validate": ["validate", str(run / "world.toml")],
    }.items():
        capsys.readouterr()
        main(arguments)
        said = "".join(capsys.readouterr())
        assert not [c for c in said if not (c.isprintable() or c == "\n")], (name, said)
        assert not any(line.startswith("finished: forged") for line in said.splitlines()), (name, said)
        if r"\x1b]0" in said:
            quoting.add(name)
    assert quoting >= telling


def test_a_refusal_in_python_is_one_line_too(tmp_path: Path) -> None:
    with pytest.raises(FluidError) as refused:
        ef.load(tmp_path / f"{EVIL[:-1]}.toml")
    assert r"\x1b]0;owned\x07\x9b31m" in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["worlds"], ["worlds", "vortex_ring"], ["schema"]])
def test_a_full_standard_output_is_told_once(arguments: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.decode().strip() == "error: the operating system refused it: No space left on device"


def test_descriptions_that_python_drops_are_told() -> None:
    """-OO removes docstrings; those under parameters are read from the source, and stay."""
    words = ["-OO", "-m", "ecs_fluid", "help", "vortex_ring"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    assert done.stderr == (
        "warning: Python was started with -OO (PYTHONOPTIMIZE=2), which drops most of these descriptions\n"
    )
    assert "waves around the ring" in " ".join(done.stdout.split())


@pytest.mark.skipif(os.name != "posix", reason="a folder in use cannot be removed there")
def test_commands_in_a_folder_that_is_gone(tmp_path: Path) -> None:
    """One process tries them all: importing ecs_fluid takes longer than what is tried."""
    tried = [
        ["validate", "vortex_ring"],
        ["run", "vortex_ring", "--ticks", "1"],
        ["run", "vortex_ring", "--ticks", "1", "--out", "x"],
        ["resume", "x"],
        ["info", "x"],
        ["show", "x", "--save", "x.png"],
        ["export", "x", "--to", "npz"],
        ["page", "x"],
        ["sweep", "vortex_ring", "--seeds", "2", "--workers", "0"],
        ["schema", "x.json"],
        ["bench", "velocity", "--sizes", "100"],
    ]
    assert main(tried[0]) == 0  # kernels are there then: to compile them numba asks for the folder
    gone = tmp_path / "gone"
    gone.mkdir()
    program = (
        f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})\n"
        f"from ecs_fluid.cli import main\nprint([main(arguments) for arguments in {tried!r}])"
    )
    # -P: the command searches no modules there either, which makes numpy fail on Python 3.13.0.
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str([0] + [2] * (len(tried) - 1)), done.stderr
    refusals = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(refusals) == len(tried) - 1
    assert "Traceback" not in done.stderr
    assert refusals[0] == "error: the working folder no longer exists; change to one that does"


def test_a_command_is_registered_by_the_module_that_is_imported_for_it() -> None:
    register()
    found = {name: app[name] for name in app if not name.startswith("-")}
    homes = {name: (one.default_command or velocity).__module__ for name, one in found.items()}
    assert homes == {
        name: f"ecs_fluid.cli.{module}" for module, names in COMMANDS.items() for name in names.split()
    }


def test_a_command_imports_no_others() -> None:
    program = (
        "import sys\nfrom ecs_fluid.cli import main\nmain(['worlds'])\n"
        "print(*sorted(name for name in sys.modules if name.startswith('ecs_fluid.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "ecs_fluid.cli.worlds"


@pytest.mark.parametrize("where", ["ecs_fluid.cli.register", "ecs_fluid.cli.worlds.out.print"])
def test_control_c_is_a_word(
    where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At any time, also while the commands are imported, and not only within runs."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupt)
    assert main(["worlds"]) == 130
    assert capsys.readouterr().err == "stopped\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_run_goes_on_where_warnings_cannot_be_told(tmp_path: Path) -> None:
    """And what is wrong has its exit code: both were 1, the run was not begun."""
    coarse = ["run", "vortex_ring", "--ticks", "1", "--out", "run", "--set", "ring.spacing=0.4"]
    codes = []
    for arguments in (coarse, ["info", "elsewhere"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            told = {"stdout": subprocess.DEVNULL, "stderr": full}
            codes.append(subprocess.run([*COMMAND, *arguments], cwd=tmp_path, check=False, **told).returncode)
    assert codes == [0, 2]
    assert len(ef.open_run(tmp_path / "run")) == 2


@pytest.mark.skipif(os.name != "posix", reason="no process sends itself a Ctrl-C there")
@pytest.mark.parametrize("module", ["cyclopts", "rich.console", "ecs_fluid.cli"])
def test_control_c_while_the_command_is_imported_is_a_word(module: str) -> None:
    """It was a traceback, or lost where Python swallows what is raised."""
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it\n"
        "class Finder:\n"
        "    def find_spec(self, name, *rest):\n"
        f"        if name == {module!r}:\n"
        "            try:\n"
        "                os.kill(os.getpid(), signal.SIGINT)\n"
        "            except KeyboardInterrupt:\n"
        "                pass  # as in what Python runs for a garbage collector\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['ecs-fluid', 'worlds']\n"
        "from ecs_fluid.__main__ import main\n"
        "sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


@pytest.mark.skipif(os.name != "posix", reason="no process sends itself a Ctrl-C there")
@pytest.mark.parametrize(("command", "code"), [("worlds", 0), ("worlds nothing", 2)])
def test_ctrl_c_while_python_ends_is_no_traceback(command: str, code: int) -> None:
    """All is done then; loaded libraries make the end take a tenth of a second.

    A search for garbage would make it two: what is there is not looked at any more.
    """
    program = (
        "import atexit, gc, os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "atexit.register(lambda: print(gc.get_threshold()[0], len(gc.get_objects()) < 10_000, flush=True))\n"
        f"sys.argv = ['ecs-fluid', *{command.split()}]\n"
        "from ecs_fluid.__main__ import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == code and "Traceback" not in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == (code != 0), done.stderr
    assert done.stdout.splitlines()[-1] == "10000 True"
    scripts = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"ecs-fluid": "ecs_fluid.__main__:main"}


def test_kernels_that_may_not_be_compiled_are_one_sentence(tmp_path: Path) -> None:
    """Debuggers of numba's functions set it; kernels have parts that Python cannot run."""
    command = [*COMMAND, "run", "vortex_ring", "--ticks", "1", "--out", str(tmp_path / "run")]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: ") and "NUMBA_DISABLE_JIT" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "needed"),
    [
        *(
            ("SOURCE_DATE_EPOCH", text, "a whole number of seconds since 1970")
            for text in ("abc", "1e9", "9" * 18)
        ),
        *(("NUMBA_NUM_THREADS", text, "at least 1 thread") for text in ("0", "-3")),
        ("NUMBA_THREADING_LAYER", "abc", "one of default, safe, forksafe, threadsafe, tbb, omp, workqueue"),
        ("NUMBA_THREADING_LAYER_PRIORITY", "omp tbb", "tbb omp workqueue, in any order,"),
    ],
)
def test_variables_with_which_libraries_fail(
    name: str, value: str, needed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """numpy.f2py reads the first one where scipy.spatial is loaded; both it and numba raised ValueError."""
    monkeypatch.setenv(name, value)
    text = f"{name} = '{value}': {needed} is needed"
    assert main(["page", "run"]) == 2
    assert text in capsys.readouterr().err
    with pytest.raises(FluidError, match=text):
        ef.World()
