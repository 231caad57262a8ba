"""A run that goes on elsewhere than it was made says so, and wants to be asked to."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ecs_fluid as ef
from docs.generator import programs
from ecs_fluid.cli import main
from ecs_fluid.io import provenance
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.own_code import code_named_in

ROOT = Path(__file__).parents[2]
WORLD = """
[world]
dt = 0.1
duration = 0.4
[[entity]]
kind = "vortex_ring"
name = "ring"
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A finished run of two ticks; no variable of this machine chooses how it is computed."""
    for name in provenance.CODE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    provenance.provenance.cache_clear()
    (tmp_path / "ring.toml").write_text(WORLD, encoding="utf-8")
    assert main(["run", str(tmp_path / "ring.toml"), "--ticks", "2", "--out", str(tmp_path / "run")]) == 0
    yield tmp_path / "run"
    provenance.provenance.cache_clear()


def told(run: Path) -> list[dict[str, Any]]:
    """Its stretches, as run.json has them."""
    found: list[dict[str, Any]] = json.loads((run / "run.json").read_text())["stretches"]
    return found


def edit(path: Path, name: str, value: str) -> None:
    """Let the last stretch of a run, or a sweep, be computed with something else."""
    document = json.loads(path.read_text(encoding="utf-8"))
    last = (
        document["stretches"][-1]
        if "stretches" in document
        else {"computed_with": document["computed_with"][-1]}
    )
    last["computed_with"][name] = value
    path.write_text(json.dumps(document), encoding="utf-8")


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("name", ["python", "ecs-fluid", "numba", "numpy", "processor", "kernels"])
def test_another_one_is_refused_and_accepted(
    run: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    edit(run / "run.json", name, "of old")
    before = everything(run)
    assert main(["resume", str(run), "--ticks", "4"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"computed with {name} of old (here " in said and "--anyway" in said
    assert everything(run) == before
    assert main(["resume", str(run), "--ticks", "4", "--anyway"]) == 0
    first, second = told(run)
    assert (first["first_tick"], second["first_tick"]) == (0, 2)
    assert first["computed_with"][name] == "of old" and second["computed_with"] == provenance.provenance()
    # What it is now is here: no word is needed any more, and nothing new is to be told.
    size = (run / "run.json").stat().st_size
    assert main(["resume", str(run), "--ticks", "5"]) == 0
    assert [each["first_tick"] for each in told(run)] == [0, 2]
    assert (run / "run.json").stat().st_size < size + 100
    capsys.readouterr()
    assert main(["info", str(run)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "from tick 0" in said and f"{name} of old" in said and "from tick 2" in said


def test_stretches_that_left_nothing_are_not_told(run: Path) -> None:
    """Another numba goes on at tick 2, and is killed before its first tick; then a third."""
    for numba in ("1", "2"):
        job, _ = ef.runs.runner.Runner.resume(run, 4)
        job.folder.begin_stretch(2, {"module mine": numba})
        job.folder.close()
    (first, second) = told(run)
    assert (first["first_tick"], second["first_tick"], second["code"]) == (0, 2, {"module mine": "2"})


def test_a_run_goes_on_that_was_killed_between_checkpoint_and_run_json(run: Path) -> None:
    """run.json is of tick 0, the newest checkpoint of tick 2, and another numba goes on there."""
    edit(run / "run.json", "numba", "0.1")
    document = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**document, "ticks": 0}))
    assert main(["resume", str(run), "--ticks", "3", "--anyway"]) == 0
    assert [each["first_tick"] for each in told(run)] == [0, 2]


def test_a_checkpoint_knows_what_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = ef.World(dt=0.1)
    world.spawn("dust", ef.Position([[0.0, 0.0, 0.0]]))
    world.save(tmp_path / "a.npz")
    ours = provenance.provenance()
    monkeypatch.setattr(provenance, "provenance", lambda: {**ours, "numba": "0.99", "more": "1"})
    with pytest.raises(
        ef.StorageError, match=r"a.npz was computed with numba .* \(here 0.99\), more \(unknown\)"
    ):
        ef.resume(tmp_path / "a.npz")
    assert ef.resume(tmp_path / "a.npz", anyway=True).state_hash() == world.state_hash()


def ecs_fluid(*words: object, python: str = sys.executable, **variables: str) -> tuple[int, str]:
    """Code and words of a command in a process of its own."""
    command = [python, "-c", "import sys; from ecs_fluid.cli import main; sys.exit(main())", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}, " as generic "),
        ({"NUMBA_OPT": "1"}, "numba's OPT (unknown) (here 1)"),
        *(
            pytest.param(
                {f"NUMBA_{name}": to}, f"numba's {name} (unknown) (here {to})", marks=pytest.mark.nightly
            )
            for name, to in (("OPT", "max"), ("BOUNDSCHECK", "1"))
        ),
        ({"NPY_DISABLE_CPU_FEATURES": "AVX512_SKX"}, "NPY_DISABLE_CPU_FEATURES (unknown) (here AVX512_SKX)"),
    ],
    ids=str,
)
def test_settings_that_change_bits_are_seen(run: Path, changed: dict[str, str], said: str) -> None:
    before = everything(run)
    code, told_ = ecs_fluid("resume", run, "--ticks", "3", **changed)
    assert code == 2 and "was computed with" in told_ and said in told_
    assert everything(run) == before


def test_variables_that_are_empty_choose_nothing(run: Path) -> None:
    empty = dict.fromkeys(provenance.CODE_VARIABLES, "")
    assert ecs_fluid("resume", run, "--ticks", "3", **empty)[0] == 0


OTHER = os.environ.get("ECS_FLUID_OTHER_PYTHON", "")
"""A Python with another numba"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("item", "python", "variables"),
    [
        ("processor", sys.executable, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}),
        pytest.param(
            "numba", OTHER, {}, marks=pytest.mark.skipif(not OTHER, reason="ECS_FLUID_OTHER_PYTHON")
        ),
    ],
)
def test_going_on_elsewhere_is_told_for_ever(
    run: Path, item: str, python: str, variables: dict[str, str]
) -> None:
    """Refused, and anyway; then by what made it, which again is another one. New kernels are compiled."""
    before = everything(run)
    code, said = ecs_fluid("resume", run, "--ticks", "4", python=python, **variables)
    assert code == 2 and f"{item} " in said and "--anyway" in said
    assert everything(run) == before
    assert ecs_fluid("resume", run, "--ticks", "4", "--anyway", python=python, **variables)[0] == 0
    assert ecs_fluid("resume", run, "--ticks", "5", python=python, **variables)[0] == 0
    assert ecs_fluid("resume", run, "--ticks", "6")[0] == 2
    assert ecs_fluid("resume", run, "--ticks", "6", "--anyway")[0] == 0
    assert [each["first_tick"] for each in told(run)] == [0, 2, 5]
    first, second, third = (each["computed_with"][item] for each in told(run))
    assert first == third != second
    said = ecs_fluid("info", run)[1]
    assert said.count(f"{item} {first}") >= 2 and f"{item} {second}" in said


OWN = """
import ecs_fluid as ef
from breeze import SPEED

class Wind(ef.System):
    phase = "rates"
    reads, adds = ef.Position, ef.Velocity

    def process(self, dt):
        for position, velocity in self.query(ef.Position, ef.Velocity):
            velocity.u[:, 0] += SPEED
"""


@pytest.mark.parametrize("edited", [pytest.param("wind.py", marks=pytest.mark.nightly), "breeze.py"])
def test_code_of_ones_own_is_told(tmp_path: Path, edited: str) -> None:
    """That of a system of the world, and that of a module which it imports."""

    def fluid(*words: object) -> tuple[int, str]:
        done = programs.run(programs.command(tmp_path), *map(str, words), folder=tmp_path)
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    (tmp_path / "wind.py").write_text(OWN)
    (tmp_path / "breeze.py").write_text("SPEED = 1.0")
    (tmp_path / "windy.toml").write_text(WORLD + '[[system]]\nkind = "wind:Wind"\n')
    run, world = tmp_path / "run", tmp_path / "windy.toml"
    assert fluid("run", world, "--allow-code", "--ticks", "2", "--out", run)[0] == 0
    resume = ["resume", run, "--allow-code", "--ticks"]
    assert fluid(*resume, "3")[0] == 0
    (tmp_path / edited).write_text((tmp_path / edited).read_text() + "\nMORE = 2\n")
    before = everything(run)
    code, said = fluid(*resume, "4")
    assert code == 2 and f"was computed with module {edited[:-3]} " in said and "--anyway" in said
    assert everything(run) == before
    assert fluid(*resume, "4", "--anyway")[0] == 0
    assert fluid(*resume, "5")[0] == 0
    first, second = told(run)
    assert (first["first_tick"], second["first_tick"]) == (0, 3)
    assert {*first["code"]} == {*second["code"]} == {"module wind", "module breeze"}
    assert f"module {edited[:-3]} {second['code'][f'module {edited[:-3]}']}" in fluid("info", run)[1]


def test_code_that_is_edited_while_it_runs_is_told_as_it_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint after the edit still names what was loaded: resuming by the new code is refused."""
    (tmp_path / "gust.py").write_text("class Gust: pass")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("gust")
    before = code_named_in(["gust:Gust"])
    (tmp_path / "gust.py").write_text("class Gust: speed = 2")
    assert list(before) == ["module gust"] and code_named_in([{"class": "gust:Gust"}]) == before
    (tmp_path / "gust.py").unlink()
    assert code_named_in(["gust:Gust", "absent:Gust", "ecs_fluid.world:World"]) == before


@pytest.mark.parametrize("path", ["swing:Schübe", "swing:make.<locals>.Push", "swing-2:Push"])
def test_modules_are_found_by_any_name_of_a_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    module = path.partition(":")[0]
    (tmp_path / f"{module}.py").write_text("SPEED = 1")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(module)
    assert [*code_named_in([path])] == [f"module {module}"]


def test_packages_beside_are_code_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By any kind of import; what nobody names is left out, and a link that leads round comes to an end."""
    files = {
        "sail.py": "import canvas, plain.knot, sheet\nfrom canvas.thread import A",
        "sheet.py": "",
        "plain/knot.py": "",
        "canvas/__init__.py": "from . import loom",
        "canvas/thread.py": "A = 1",
        "canvas/loom/__init__.py": "from .warp import B",
        "canvas/loom/warp.py": "B = 1",
        "canvas/other.py": "",
        "other/__init__.py": "",
        "ecs_fluid/__init__.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("sail")
    found = code_named_in(["sail:Sail"])
    names = {"sail", "sheet", "plain.knot", "canvas", "canvas.thread", "canvas.loom", "canvas.loom.warp"}
    assert found.keys() == {f"module {name}" for name in names}
    (tmp_path / "canvas" / "canvas").symlink_to(tmp_path)
    assert len(code_named_in(["sail:Sail"])) <= 200


@pytest.mark.parametrize("base", [ef.System, ef.Component, ef.Recipe, ef.Solver])
def test_code_is_told_as_it_was_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: type[Any]
) -> None:
    """Edited between import and first save, it is the former code; loaded anew, the new code."""
    monkeypatch.setattr(base, "registry", dict(base.registry))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name, helper = f"swift_{base.__name__.lower()}", f"slow_{base.__name__.lower()}"
    own, beside = tmp_path / f"{name}.py", tmp_path / f"{helper}.py"
    head = f"import ecs_fluid as ef, {helper}\n"
    own.write_text(f"{head}class Swift{base.__name__}(ef.{base.__name__}): ...\n")
    beside.write_text("SPEED = 1\n")
    loaded = importlib.import_module(name)
    path = f"{name}:Swift{base.__name__}"
    made_of = [provenance.digest_of(beside), provenance.digest_of(own)]
    for place, file in ((1, own), (0, beside)):
        file.write_text(file.read_text() + "# edited\n")
        assert [*code_named_in([path]).values()] == made_of
        importlib.reload(loaded if file == own else sys.modules[helper])
        made_of[place] = provenance.digest_of(file)
        assert [*code_named_in([path]).values()] == made_of


def test_what_cannot_change_a_bit_is_no_code(tmp_path: Path) -> None:
    (tmp_path / "world.py").write_text("1")
    before = provenance._code(tmp_path)
    for folder in ("sweeps", "viz", ".ipynb_checkpoints"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "plot.py").write_text("2")
    for link in (".#world.py", "gone.py"):
        (tmp_path / link).symlink_to("nowhere")
    (tmp_path / ".hidden.py").write_text("3")
    assert provenance._code(tmp_path) == before
    (tmp_path / "world.py").write_text("4")
    assert provenance._code(tmp_path) != before


def test_a_sweep_goes_on_where_it_began(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ring.toml").write_text(WORLD, encoding="utf-8")
    command = ["sweep", str(tmp_path / "ring.toml"), "--vary", "ring.core=0.2,0.3", "--workers", "0"]
    command += ["--out", str(tmp_path / "sweep"), "--ticks"]
    assert main([*command, "2"]) == 0
    edit(tmp_path / "sweep" / "sweep.json", "scipy", "1.0")
    capsys.readouterr()
    assert main([*command, "2"]) == 2
    assert "was computed with scipy 1.0 (here " in " ".join(capsys.readouterr().err.split())
    assert main([*command, "2", "--anyway"]) == 0
    assert "bits may differ" in " ".join(capsys.readouterr().err.split())


def test_a_sweep_of_other_data_is_another_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file that its world reads was changed between two members."""
    world = (
        WORLD.partition("[[entity]]")[0]
        + '[[entity]]\nkind = "vortons_from_arrays"\nname = "cloud"\nfile = "cloud.csv"\n'
    )
    (tmp_path / "cloud.toml").write_text(world, encoding="utf-8")
    row = "x,y,z,alpha_x,alpha_y,alpha_z,sigma\n0,0,0,0,0,{},0.5\n1,0,0,0,0,1,0.5\n"
    command = ["sweep", str(tmp_path / "cloud.toml"), "--seeds", "2", "--workers", "0", "--ticks", "2"]
    command += ["--out", str(tmp_path / "sweep")]
    for strength, code in ((1.0, 0), (2.0, 2), (1.0, 0)):
        (tmp_path / "cloud.csv").write_text(row.format(strength), encoding="utf-8")
        assert main(command) == code
    assert "another sweep: files.cloud.csv was" in " ".join(capsys.readouterr().err.split())


def test_a_damaged_sweep_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ring.toml").write_text(WORLD, encoding="utf-8")
    command = ["sweep", str(tmp_path / "ring.toml"), "--vary", "ring.core=0.2", "--workers", "0"]
    command += ["--out", str(tmp_path / "sweep"), "--ticks", "1"]
    assert main(command) == 0
    file = tmp_path / "sweep" / "sweep.json"
    kept = json.loads(file.read_text())
    member = {"name": "core=0.2", "values": {"ring.core": 0.2}}
    damages = [{"computed_with": wrong} for wrong in (None, [], {}, [1], [{"numba": 1}])]
    damages += [{"members": wrong} for wrong in (None, [1], [{"name": "a"}], [{**member, "values": 1}])]
    damages += [{"members": [{**member, "name": name}]} for name in ("../../away", "..", "/tmp/x", "")]
    for wrong in damages:
        file.write_text(json.dumps({**kept, **wrong}))
        capsys.readouterr()
        assert main(command) == 2
        said = capsys.readouterr().err
        assert "sweep.json is damaged" in " ".join(said.split()) and said.count("\n") == 1
    assert [path.name for path in (tmp_path / "sweep" / "members").iterdir()] == ["core=0.2"]


def test_a_damaged_list_of_stretches_is_one_sentence(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stretch = {"first_tick": 0, "started": "", "computed_with": {"numba": "1"}}
    many = {f"a{number}": "1" for number in range(2000)}
    wrongs: list[Any] = [[], [{}], None, [{**stretch, "first_tick": -1}], [{**stretch, "code": 1}]]
    wrongs += [
        [{**stretch, "computed_with": found}] for found in (many, {"numba": "9" * 10**6}, {"numba": 1})
    ]
    wrongs += [[{**stretch, "started": "9" * 10**6}], [stretch] * 10**4, [{**stretch, "computed_with": {}}]]
    for ticks in ([3], [1, 0], [0, 1, 1], [0, 3]):
        wrongs.append([{**stretch, "first_tick": tick} for tick in ticks])
    for wrong in wrongs:
        with RunFolder.resume(run) as folder:
            document = {**folder.read_info(), "stretches": wrong}
        kept = (run / "run.json").read_bytes()
        (run / "run.json").write_text(json.dumps(document))
        for command in ("info", "resume"):
            assert main([command, str(run)]) == 2
            said = capsys.readouterr().err
            assert "run.json" in said and len(said) < 1000
        (run / "run.json").write_bytes(kept)


@pytest.mark.nightly
def test_going_on_a_thousand_times_leaves_run_json_small(run: Path) -> None:
    with RunFolder.resume(run) as folder:
        size = (run / "run.json").stat().st_size
        for tick in range(3, 1003):
            folder.begin_stretch(tick, {}, ticks=tick)
        assert (run / "run.json").stat().st_size < size + 100
        # At worst each is by something else.
        for tick in range(1003, 1103):
            folder.begin_stretch(tick, {"module mine": str(tick)}, ticks=tick)
        assert (run / "run.json").stat().st_size < size + 100 * 1000
    assert main(["info", str(run)]) == 0
