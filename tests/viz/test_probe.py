"""The GL probe survives what VTK does not, and says what to install."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ecs_fluid.errors import FluidError
from ecs_fluid.viz import probe


def test_child_that_dies_of_a_signal_becomes_one_sentence() -> None:
    dies = (sys.executable, "-c", f"import os; os.kill(os.getpid(), {int(signal.SIGSEGV)})")
    with pytest.raises(FluidError) as caught:
        probe._probe(dies)
    text = str(caught.value)
    assert "died of SIGSEGV" in text
    assert "apt-get install libegl1 libgl1-mesa-dri" in text
    assert "simulating" in text and "\n" not in text


@pytest.mark.parametrize(("status", "words"), [(3, "came back black"), (1, "exit status 1")])
def test_child_that_exits_with_an_error_says_how(status: int, words: str) -> None:
    with pytest.raises(FluidError, match=words):
        probe._probe((sys.executable, "-c", f"import sys; sys.exit({status})"))


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_where_there_is_no_apt_it_is_not_advised(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    with pytest.raises(FluidError, match=r"it needs a graphics driver with OpenGL 3\.2") as caught:
        probe._probe(("/nonexistent/python",))
    assert "apt-get" not in str(caught.value)


def test_child_that_cannot_start() -> None:
    with pytest.raises(FluidError, match="could not be started"):
        probe._probe(("/nonexistent/python",))


def test_failure_is_not_remembered_and_success_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(probe, "_works", False)
    monkeypatch.setattr(probe, "_CHILD", "import os; os.abort()")
    with pytest.raises(FluidError, match="SIGABRT"):
        probe.require_gl()
    assert not list(tmp_path.rglob("gl-works-*"))
    monkeypatch.setattr(probe, "_CHILD", "pass")
    probe.require_gl()
    assert len(list(tmp_path.rglob("gl-works-*"))) == 1
    # A new process (the flag down again) trusts the note and starts no child, which would abort.
    monkeypatch.setattr(probe, "_works", False)
    monkeypatch.setattr(probe, "_CHILD", "import os; os.abort()")
    probe.require_gl()


def test_without_a_home_nothing_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was, in a folder "~" of the working folder: Python leaves that in paths where there is no home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(probe, "_works", False)
    monkeypatch.setattr(probe, "_CHILD", "pass")
    probe.require_gl()
    assert not list(tmp_path.iterdir())


def test_note_depends_on_what_can_change(monkeypatch: pytest.MonkeyPatch) -> None:
    before = probe._note()
    monkeypatch.setenv("LD_LIBRARY_PATH", os.environ.get("LD_LIBRARY_PATH", "") + ":/elsewhere")
    assert probe._note() != before


def test_packages_without_drawing_import_no_pyvista() -> None:
    code = (
        "import sys, ecs_fluid.viz, ecs_fluid.viz.probe, ecs_fluid.viz.shared_limits, ecs_fluid.viz.movie\n"
        "assert not any(name.split('.')[0] in ('pyvista', 'vtkmodules', 'vtk') for name in sys.modules)"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
