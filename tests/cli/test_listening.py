"""What others can reach of a sweep, a served page and a job of ranks: nothing, without a key."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import urlsplit

import pytest

from tests.sweep.conftest import WORLD

psutil = pytest.importorskip("psutil", reason="comes with Dask: pip install 'ecs-fluid[sweep]'")
ECS_FLUID = str(Path(sys.executable).parent / "ecs-fluid")
LOOPBACK = {"127.0.0.1", "::1"}


def doors(process: int) -> set[tuple[str, int]]:
    """Addresses and ports at which a process and those that it started, and they, can be reached."""
    found = set()
    with suppress(psutil.NoSuchProcess):
        for each in (psutil.Process(process), *psutil.Process(process).children(recursive=True)):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                sockets = each.net_connections(kind="inet")
                # Those of UDP have no state.
                found |= {tuple(s.laddr) for s in sockets if s.laddr and s.status in ("LISTEN", "NONE")}
    return found


@contextmanager
def job(*command: str, ready: Callable[[int, str], bool]) -> Iterator[tuple[int, Path]]:
    """A command that runs until the end; gives its process and the file with what it prints, once `ready`."""
    with NamedTemporaryFile(dir=Path.cwd(), delete=False) as file:
        process, told = subprocess.Popen(command, stdout=file, stderr=file), Path(file.name)
    try:
        deadline = time.monotonic() + 300
        while not ready(process.pid, told.read_text(encoding="utf-8")):
            assert time.monotonic() < deadline and process.poll() is None, told.read_text(encoding="utf-8")
            time.sleep(0.1)
        yield process.pid, told
    finally:
        running = process.poll() is None
        children = psutil.Process(process.pid).children(recursive=True) if running else []
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
        for each in (*children, process):
            with suppress(psutil.NoSuchProcess):
                each.kill()
        process.wait()


@contextmanager
def served(world: str) -> Iterator[tuple[str, int, Path]]:
    """The address that `watch --serve` prints, once it listens there, its process, and all that it prints."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def ready(process: int, text: str) -> bool:
        return "until Ctrl-C" in text and any(number == port for _, number in doors(process))

    watch = (ECS_FLUID, "watch", world, "--serve", "--port", str(port), "--size", "640", "480")
    with job(*watch, ready=ready) as (process, told):
        yield told.read_text().split()[1], process, told


def frames(number: int) -> bool:
    """Whether so many runs are under way."""
    return len(list(Path.cwd().rglob("trajectory/*.vtkhdf"))) >= number


def flood(port: int, number: int, told: Callable[[], bool]) -> None:
    """Hold so many connections that say nothing until something is told, and a second more."""
    with ExitStack() as held:
        for _ in range(number):
            held.enter_context(socket.create_connection(("127.0.0.1", port), 10))
        deadline = time.monotonic() + 60
        while not told():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(1)


async def call(port: int, sign: Path) -> None:
    """Send Dask a function that makes a file, as any process of this machine could: plain, with own keys."""
    from distributed import Security, rpc
    from distributed.protocol.pickle import dumps

    for protocol, keys in (("tcp", Security()), ("tls", Security.temporary())):
        address = f"{protocol}://127.0.0.1:{port}"
        with suppress(OSError, asyncio.TimeoutError):
            async with rpc(
                address, connection_args=keys.get_connection_args("client"), timeout=2
            ) as stranger:
                await asyncio.wait_for(stranger.run(function=dumps(partial(Path.touch, sign))), 4)


def ask(port: int, path: str, **headers: str) -> tuple[int, str]:
    """Status and cookie that a page answers, 0 if what listens there speaks something else."""
    page = HTTPConnection("127.0.0.1", port, timeout=3)
    try:
        page.request("GET", path, headers=headers)
        answer = page.getresponse()
        return answer.status, (answer.getheader("Set-Cookie") or "").partition(";")[0]
    except (OSError, HTTPException):
        return 0, ""
    finally:
        page.close()


@pytest.mark.nightly
def test_a_sweep_is_reached_by_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is let in by a scheduler or a worker can run code in it; Dask's pages are not served."""
    pytest.importorskip("distributed", reason="needs Dask: pip install 'ecs-fluid[sweep]'")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "world.toml").write_text(WORLD, encoding="utf-8")
    sweep = (ECS_FLUID, "sweep", "world.toml", "--vary", "ring.core=0.25,0.3", "--ticks", "100000")
    with job(*sweep, "--workers", "2", ready=lambda *_: frames(4)) as (process, _):
        found = doors(process)
        assert {address for address, _ in found} <= LOOPBACK
        assert len(found) == 5  # scheduler, two workers and what watches each of them
        sign, pages = tmp_path / "somebody_was_here", ("/status", "/info/main/workers.html", "/metrics")
        with ThreadPoolExecutor(32) as pool:
            calls = [pool.submit(asyncio.run, call(port, sign)) for _, port in found]
            answers = [pool.submit(ask, port, page) for _, port in found for page in pages]
        assert [each.result() for each in calls] == [None] * len(found)
        assert not sign.exists()
        assert {each.result()[0] for each in answers} <= {0, 404}


@pytest.mark.nightly
def test_a_sweep_imports_nothing_of_strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither from where the world lies, nor from the folder that Dask shares with all users."""
    pytest.importorskip("distributed", reason="needs Dask: pip install 'ecs-fluid[sweep]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    theirs = tmp_path / "tmp" / "dask-scratch-space"
    theirs.mkdir(parents=True)
    theirs.chmod(0o777)
    (tmp_path / "world.toml").write_text(WORLD, encoding="utf-8")
    for name in ("toolz", "tornado", "numpy"):
        for folder in (tmp_path, theirs):
            (folder / f"{name}.py").write_text("raise SystemExit('strange')", encoding="utf-8")
    put = sorted(theirs.iterdir())
    sweep = (ECS_FLUID, "sweep", "world.toml", "--vary", "ring.core=0.25,0.3", "--ticks", "100000")
    with job(*sweep, "--workers", "2", ready=lambda *_: frames(4)):
        own = [path.parent for path in Path("tmp").glob("*/dask-scratch-space")]
        assert [path.stat().st_mode & 0o777 for path in own] == [0o700]
        assert sorted(theirs.iterdir()) == put
    assert not own[0].exists()


def test_a_served_page_is_opened_with_its_key_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On any port, no page of another site asks for it, nor a stranger's name that leads here."""
    pytest.importorskip("trame.app", reason="needs trame: pip install 'ecs-fluid[watch]'")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "world.toml").write_text(WORLD, encoding="utf-8")
    with served("world.toml") as (address, process, told):
        port, entry = urlsplit(address).port or 0, f"/?{urlsplit(address).query}"
        assert {name for name, _ in doors(process)} <= LOOPBACK
        assert {number for _, number in doors(process)} == {port}
        status, cookie = ask(port, entry)
        assert status == 302 and cookie
        assert ask(port, "/index.html", Cookie=cookie)[0] == 200
        for key in (cookie[:-1], cookie.replace("=", "=x"), cookie.partition("=")[0] + "=\xff", ""):
            assert ask(port, "/index.html", Cookie=key)[0] == 403
            assert ask(port, "/ws", Cookie=key, Connection="Upgrade", Upgrade="websocket")[0] == 403
        for strange in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
            assert ask(port, entry, **strange)[0] in (400, 403)
            assert ask(port, "/index.html", Cookie=cookie, **strange)[0] in (400, 403)
        assert "Traceback" not in told.read_text()


@pytest.mark.parametrize(
    ("launcher", "own"), [pytest.param("mpiexec.gforker", 0, marks=pytest.mark.nightly), ("mpiexec.hydra", 1)]
)
def test_ranks_of_one_machine_have_no_doors(
    launcher: str, own: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a rank receives it unpickles. Hydra itself listens at one port, which its children inherit."""
    pytest.importorskip("mpi4py", reason="needs MPI: pip install 'ecs-fluid[mpi]'")
    mpiexec = shutil.which(launcher, path=str(Path(sys.executable).parent)) or shutil.which(launcher)
    if mpiexec is None:
        pytest.skip(f"no {launcher}; pip install 'ecs-fluid[mpi]'")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "world.toml").write_text(WORLD, encoding="utf-8")
    run = (ECS_FLUID, "run", "world.toml", "--ticks", "100000", "--mpi", "--threads", "1")
    with job(mpiexec, "-n", "2", *run, ready=lambda *_: frames(2)) as (process, _):
        ranks = psutil.Process(process).children(recursive=True)
        assert sum("ecs-fluid" in " ".join(each.cmdline()) for each in ranks) == 2
        assert len(doors(process)) == own
        # Memory that another member of the user's group could write.
        maps = [Path(f"/proc/{each.pid}/maps") for each in ranks if "ecs-fluid" in each.name()]
        assert not any("/SYSV" in path.read_text() for path in maps if path.exists())
