"""Where members run: one after another in this process, or on the workers of a Dask scheduler.

A local pool has its scheduler in this process and one command ``dask worker``, which keeps worker processes
of one member each. All listen on the loopback alone, and let in only whoever has the key that is made for
each sweep, which no process of another user can read. Dask replaces a worker that died and hands its member
to another one, which resumes it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from ecs_fluid.errors import FluidError, optional
from ecs_fluid.hung_processes import TIMEOUT, Idle, timeout
from ecs_fluid.io.disk import make_folder, storage_error
from ecs_fluid.io.provenance import differences
from ecs_fluid.sweeps.member import Job, Member, Report, run_member
from ecs_fluid.sweeps.plan import FILE

PRELOAD = "ecs_fluid.connections"
"""Module that scheduler and workers load before all else"""

POLL = 0.05
"""Time between two checks of the running members, s."""

PATIENCE = 30.0
"""Time for running members to finish their tick and its checkpoint, s."""


class DaskPool:
    """Members on Dask: local workers, or a scheduler that runs already.

    Args:
        folder: folder of the sweep; the log of local workers goes there.
        workers: local worker processes.
        threads: kernel threads of a member; None shares the cores of a machine among its workers.
        scheduler: address of a running scheduler, in place of local workers.
        report: called with the progress of members.
        say: called with sentences about workers.
        patience: how long the scheduler has to answer, s.
    """

    def __init__(
        self,
        folder: Path,
        workers: int,
        threads: int | None,
        scheduler: str | None,
        report: Report,
        say: Callable[[str], None],
        patience: float = 20.0,
    ) -> None:
        require_dask()
        from distributed import Client

        self.threads, self.report, self.say = threads, report, say
        self._running: dict[Any, Job] = {}
        self._reports: queue.SimpleQueue[tuple[str, int, int, str]] = queue.SimpleQueue()
        self._known_workers: set[str] = set()
        self._idle, self._timeout = Idle(), timeout()
        self._topic = f"ecs-fluid-{uuid.uuid4().hex}"
        self._log = folder / "logs" / "workers.log"
        self._cluster: Any = None
        self._workers: subprocess.Popen[bytes] | None = None
        # Lost workers are reported by `say` instead of by Dask's logs.
        for name in ("distributed", *logging.root.manager.loggerDict):
            if name.partition(".")[0] == "distributed":
                logging.getLogger(name).setLevel(logging.CRITICAL)
        if scheduler is None:
            self._start_scheduler()
        try:
            self._client = Client(self._cluster or scheduler, set_as_default=False, timeout=patience)
        except (OSError, ValueError, ImportError) as error:
            text = " ".join(str(error).split())
            raise FluidError(
                f"scheduler {scheduler}: no Dask scheduler answers there ({text}); an address such as "
                "tcp://127.0.0.1:8786 is needed"
            ) from None
        self._client.subscribe_topic(self._topic, lambda event: self._reports.put(event[1]))
        if self._cluster is not None:
            self.threads = threads or max(1, cores() // workers)
            self._workers = self._start_workers(workers)
        elif not self._slots():
            say("the scheduler has no workers yet; waiting for some")

    def run(self, jobs: Iterable[Job]) -> Iterator[Member]:
        """Members in the order in which they end; after a stop the others keep the status "waiting"."""
        waiting = deque(jobs)
        while waiting or self._running:
            # At most one member per worker: when a worker dies, Dask counts a failure of all it was given.
            free = self._slots() - len(self._running)
            while waiting and free > 0:
                job, free = replace(waiting.popleft(), threads=self.threads), free - 1
                wanted = job.plan.computed_with()
                task = self._client.submit(_task, job, self._topic, wanted, pure=False)
                self._running[task] = job
            while not self._reports.empty():
                self.report(*self._reports.get())
            for task in [task for task in self._running if task.done()]:
                yield self._ended(task, self._running.pop(task).member)
            time.sleep(POLL)

    def close(self) -> None:
        """End scheduler and workers; running members on local workers get time to stop."""
        if self._workers is not None and self._running:
            from distributed import wait

            with contextlib.suppress(OSError), self._client.as_current():
                wait(list(self._running), timeout=PATIENCE)
        self._client.close()
        if self._workers is not None:
            self._cluster.close()
            try:
                self._workers.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._workers.kill()  # the workers end with it
                self._workers.wait()
            self._scratch.cleanup()

    def _start_scheduler(self) -> None:
        """Start a scheduler without workers in this process."""
        import dask
        from distributed import LocalCluster, Security

        settings = {
            "allowed-failures": 2,
            "http.routes": [],
            "worker-ttl": None,  # Dask's time-out would take a worker in a long kernel for a dead one
            "preload": [PRELOAD],
        }
        settings = {f"distributed.scheduler.{key}": value for key, value in settings.items()}
        # Dask's default folder may have been made by others, and Dask imports modules from it.
        self._scratch = TemporaryDirectory(prefix="ecs_fluid-", ignore_cleanup_errors=True)
        with dask.config.set({**settings, "temporary-directory": self._scratch.name}):
            self._cluster = LocalCluster(
                n_workers=0,
                host="127.0.0.1",
                security=Security.temporary(),
                dashboard_address="127.0.0.1:0",  # None would take port 8787, which may be in use
                scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL,
            )

    def _start_workers(self, workers: int) -> subprocess.Popen[bytes]:
        """Start the command that keeps this many workers, with the key of the sweep."""
        make_folder(self._log.parent)
        # No memory limit: at 95 % of it Dask would kill a member that might finish.
        options = f"--nworkers {workers} --nthreads 1 --memory-limit 0 --host 127.0.0.1 --death-timeout 60"
        options += (
            f" --no-dashboard --dashboard-address 127.0.0.1:0 --preload {PRELOAD} --preload-nanny {PRELOAD}"
        )
        module, address = "distributed.cli.dask_worker", self._cluster.scheduler_address
        keys = self._cluster.security.get_tls_config_for_role("worker")
        environment = {
            "NUMBA_NUM_THREADS": str(self.threads),
            # The user's modules are where this process finds them, beside its script for example.
            "PYTHONPATH": os.pathsep.join(str(Path(place).absolute()) for place in sys.path),
            "DASK_TEMPORARY_DIRECTORY": self._scratch.name,
            "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
            # Not in files or arguments: others may read those.
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": keys["ca_file"],
            "DASK_DISTRIBUTED__COMM__TLS__WORKER__CERT": keys["cert"],
            "DASK_DISTRIBUTED__COMM__TLS__WORKER__KEY": keys["key"],
        }
        try:
            with open(self._log, "ab") as log:
                return subprocess.Popen(
                    [sys.executable, "-P", "-m", module, address, *options.split()],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **environment},
                    # Only the sweep gets Ctrl-C, and stops its members; the second line is for Windows.
                    start_new_session=True,
                    creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
                )
        except OSError as error:
            raise storage_error(error, "start workers with the log", self._log) from error

    def _slots(self) -> int:
        """How many members can run at a time; says which workers died since the last call."""
        if self._workers is not None and self._workers.poll() is not None:
            raise FluidError(f"the workers ended with code {self._workers.returncode}; see {self._log}")
        try:
            threads = self._client.sync(self._client.scheduler.ncores, callback_timeout=self._timeout)
        except OSError:
            raise _scheduler_gone() from None
        for address, worker in self._cluster.scheduler.workers.copy().items() if self._cluster else ():
            if self._idle.for_long(worker.pid, POLL):
                self.say(f"worker {address} (process {worker.pid}) has not answered for {self._timeout:g} s")
                with contextlib.suppress(OSError):
                    os.kill(worker.pid, signal.SIGKILL)
        for address in self._known_workers - threads.keys():
            self.say(f"worker {address} died; a new one takes its place")
        self._known_workers = set(threads)
        return sum(threads.values())

    def _ended(self, task: Any, member: Member) -> Member:
        """The result of a finished task: the member as it ended, or as failed if its workers died."""
        from distributed import CancelledError, KilledWorker

        if task.status not in ("finished", "error"):
            raise _scheduler_gone()
        try:
            ended: Member = task.result(self._timeout)
        except KilledWorker:
            where = f"; see {self._log}" if self._workers is not None else ""
            text = f"every worker that ran it died (killed, out of memory, or crashed){where}"
            return replace(member, status="failed", error=text)
        except ModuleNotFoundError as error:
            raise FluidError(
                f"a worker has no module {error.name}; install there what this process has"
            ) from None
        except (OSError, CancelledError):  # the scheduler is gone; errors of members are in their results
            raise _scheduler_gone() from None
        return ended


def _task(job: Job, topic: str, wanted: dict[str, str]) -> Member:
    """Run a member on a Dask worker, after checking its folder, versions, code and processor."""
    from distributed import Status, get_client, get_worker

    worker = get_worker()
    with contextlib.suppress(FluidError):  # raised again when the member runs
        job.plan.recipe_of(job.member.values)
    if found := differences(wanted, job.plan.computed_with()):
        raise FluidError(f"worker {worker.address}: the sweep has {', '.join(found)}; both need the same")
    if not (job.sweep / FILE).is_file():
        raise FluidError(
            f"worker {worker.address} does not see {job.sweep}; a folder that all workers share is needed"
        )
    threads = job.threads
    if threads is None:
        host = urlsplit(worker.address).hostname
        here = [n for address, n in get_client().nthreads().items() if urlsplit(address).hostname == host]
        threads = max(1, cores() // sum(here))
    return run_member(
        replace(job, threads=threads),
        lambda *report: worker.log_event(topic, report),
        lambda: worker.status != Status.running,
    )


def _scheduler_gone() -> FluidError:
    return FluidError(
        f"the Dask scheduler is gone, or has not answered for {timeout():g} s ({TIMEOUT}); what the "
        "members stored is kept, and the same sweep continues from there"
    )


def cores() -> int:
    """Cores that this process may use, by its affinity and its control group."""
    from dask.system import CPU_COUNT

    return int(CPU_COUNT)


def check_address(scheduler: str) -> None:
    """Raise FluidError for an impossible address, at which Dask would wait for a minute."""
    match = re.fullmatch(r"((tcp|tls|wss?|ucx)://)?([\w.-]+|\[[\da-fA-F:.]+\]):(\d+)", scheduler)
    if match is None or int(match[4]) > 65_535:
        raise FluidError(
            f"scheduler = {scheduler!r} is not an address; protocol (tcp, tls, ws, wss, ucx), host and "
            "port are needed, for example tcp://127.0.0.1:8786"
        )


def require_dask() -> None:
    """Raise FluidError when Dask is not installed, or cryptography, which makes its keys."""
    for module in ("cryptography", "distributed"):
        optional(
            module,
            "workers need Dask, which is not installed; install it with: pip install 'ecs-fluid[sweep]', "
            "or run the members one after another: --workers 0, in Python workers=0",
        )
