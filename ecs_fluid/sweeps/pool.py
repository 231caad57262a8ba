"""Where members run: one after another in this process, or on the workers of a Dask scheduler.

A local pool starts one Dask scheduler in this process, on the loopback, and worker processes of its own that
run one member at a time. Dask hands the member of a worker that died to another one, which resumes it.
"""

from __future__ import annotations

import logging
import os
import queue
import subprocess
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from ecs_fluid.errors import FluidError
from ecs_fluid.io.disk import make_folder, storage_error
from ecs_fluid.sweeps.member import Job, Outcome, Report, run_member
from ecs_fluid.sweeps.plan import check_same_versions, versions

SCHEMES = ("tcp", "tls", "ws", "wss", "ucx")
"""Protocols by which Dask reaches a scheduler of another process."""

POLL = 0.05
"""Time between two looks at the running members, s."""


class Pool(Protocol):
    """Runs members and tells how they ended, in the order in which they end."""

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Outcomes as they come; members not begun when the stop file appears are left out."""

    def close(self) -> None:
        """End what the pool started; members under way stop after their tick."""


class SerialPool:
    """One member after another in this process, without Dask."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """See Pool."""
        for job in jobs:
            if Path(job.stop).exists():
                return
            yield run_member(job, self.report)

    def close(self) -> None:
        """Nothing was started."""


class DaskPool:
    """Members on Dask: local workers, or a scheduler that runs already.

    Args:
        folder: of the sweep; the logs of local workers go there.
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
        import dask
        from distributed import Client, LocalCluster

        self.folder, self.threads, self.report, self.say = folder, threads, report, say
        self.most = 0 if scheduler else workers
        self._local: list[_LocalWorker] = []
        self._told: queue.SimpleQueue[tuple[str, int, int, str]] = queue.SimpleQueue()
        self._topic = f"ecs-fluid-{uuid.uuid4().hex}"
        self._cluster: Any = None
        # What Dask says of lost workers is told in our own words.
        for name in ("distributed", *logging.root.manager.loggerDict):
            if name.partition(".")[0] == "distributed":
                logging.getLogger(name).setLevel(logging.CRITICAL)
        if scheduler is None:
            with dask.config.set({"distributed.scheduler.allowed-failures": 2}):
                self._cluster = LocalCluster(
                    n_workers=0,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                )
        try:
            self._client = Client(self._cluster or scheduler, set_as_default=False, timeout=patience)
        except (OSError, ValueError, ImportError) as error:
            text = " ".join(str(error).split())
            raise FluidError(
                f"--scheduler {scheduler}: no Dask scheduler answers there ({text}); an address such as "
                "tcp://127.0.0.1:8786 is needed"
            ) from None
        self._client.subscribe_topic(self._topic, lambda event: self._told.put(event[1]))
        self._shares: dict[str, int] = {}
        if scheduler is not None:
            self._look_at_workers()

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """See Pool."""
        waiting = deque(jobs)
        running: dict[Any, Job] = {}
        try:
            while waiting or running:
                if waiting and Path(waiting[0].stop).exists():
                    waiting.clear()
                self._keep_workers(len(waiting) + len(running))
                while waiting and len(running) < self._slots():
                    job = waiting.popleft()
                    running[self._submit(job)] = job
                self._pass_on()
                done = [future for future in running if future.done()]
                for future in done:
                    job = running.pop(future)
                    yield self._outcome(future, job)
                if not done:
                    time.sleep(POLL)
        finally:
            for future in running:
                future.release()

    def close(self) -> None:
        """See Pool."""
        for worker in self._local:
            worker.leave()
        for worker in self._local:
            worker.wait()
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    # ------------------------------------------------------------------ members

    def _submit(self, job: Job) -> Any:
        # Not more members than workers are handed out, so that a worker that dies takes one with it.
        key = f"{job.name}-{uuid.uuid4().hex}"
        shares = None if self.most else dict(self._shares)
        return self._client.submit(_task, job, self._topic, shares, key=key, pure=False)

    def _outcome(self, future: Any, job: Job) -> Outcome:
        from distributed import KilledWorker

        try:
            outcome = future.result() if future.status == "finished" else None
            error = future.exception() if future.status == "error" else None
        except OSError:  # it went just now: what a member runs into comes as its error
            raise self._gone() from None
        if isinstance(outcome, Outcome):
            return outcome
        if error is not None:
            if isinstance(error, KilledWorker):
                where = f"; see {self.folder / 'logs'}" if self._local else ""
                text = f"every worker that ran it died (killed, out of memory, or crashed){where}"
            else:
                text = f"{type(error).__name__}: {error}"
            return Outcome(job.name, "failed", error=text)
        raise self._gone()

    def _gone(self) -> FluidError:
        return FluidError(
            "the Dask scheduler is gone; what the members stored stays, and the same sweep continues it"
        )

    def _pass_on(self) -> None:
        while not self._told.empty():
            name, tick, last, text = self._told.get()
            if name:
                self.report(name, tick, last, text)
                continue
            for worker in self._local:
                worker.worked |= worker.name == text

    # ------------------------------------------------------------------ workers

    def _slots(self) -> int:
        if self.most:
            return len(self._local)
        try:
            return sum(self._client.nthreads().values())
        except OSError:
            raise self._gone() from None

    def _keep_workers(self, members: int) -> None:
        """As many local workers as there is work for; a dead one is replaced."""
        for number, worker in enumerate(self._local):
            ended = worker.process.poll()
            if ended is None:
                continue
            how = f"was killed by signal {-ended}" if ended < 0 else f"ended with code {ended}"
            failures = 0 if worker.worked else worker.failures + 1
            if failures > 2:
                raise FluidError(f"{worker.name} {how} before it could work, three times; see {worker.log}")
            self.say(f"{worker.name} {how}; a new one takes its place")
            self._local[number] = self._start(worker.name, failures)
        while len(self._local) < min(self.most, members):
            self._local.append(self._start(f"worker-{len(self._local) + 1}", 0))

    def _start(self, name: str, failures: int) -> _LocalWorker:
        threads = self.threads or max(1, cores() // self.most)
        target = (self._cluster.scheduler_address, name, self._topic)
        return _LocalWorker(target, self.folder / "logs", threads, failures)

    def _look_at_workers(self) -> None:
        """Check versions and folder of a foreign scheduler's workers, and share out their cores."""
        present = self._client.nthreads()
        plan = str(self.folder / "sweep.json")
        try:
            found = self._client.run(_about_worker, plan) if present else {}
        except ModuleNotFoundError:
            raise FluidError(
                "a worker of that scheduler has no ecs_fluid; install the same version there"
            ) from None
        on_host: dict[str, int] = {}
        for address, threads in present.items():
            host = urlsplit(address).hostname or address
            on_host[host] = on_host.get(host, 0) + threads
        for address, (sees, theirs, count) in found.items():
            check_same_versions(address, theirs)
            if not sees:
                raise FluidError(
                    f"worker {address} does not see {self.folder}; a folder that all share is needed (--out)"
                )
            host = urlsplit(address).hostname or address
            self._shares[address] = self.threads or max(1, count // on_host[host])
        if not present:
            self.say("the scheduler has no workers yet; waiting for some")


class _LocalWorker:
    """A worker process with its log."""

    def __init__(self, target: tuple[str, str, str], logs: Path, threads: int, failures: int) -> None:
        make_folder(logs)
        self.name, self.failures, self.worked = target[1], failures, False
        self.log = logs / f"{self.name}.log"
        try:
            with open(self.log, "ab") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "ecs_fluid.sweeps.worker", *target],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "NUMBA_NUM_THREADS": str(threads)},
                    start_new_session=True,  # Ctrl-C is for the sweep, which tells its members
                )
        except OSError as error:
            raise storage_error(error, "start a worker with the log", self.log) from error

    def leave(self) -> None:
        """Tell the process to end."""
        if self.process.stdin is not None:
            self.process.stdin.close()

    def wait(self) -> None:
        """Wait for its end; one that hangs is killed."""
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _task(job: Job, topic: str, shares: dict[str, int] | None) -> Outcome:
    """A member as a task of Dask; runs in a worker."""
    from distributed import get_worker

    worker = get_worker()

    def report(name: str, tick: int, last: int, text: str) -> None:
        worker.log_event(topic, (name, tick, last, text))

    if shares is None:  # a local worker, whose environment holds the number
        return run_member(job, report)
    threads = shares.get(worker.address) or max(1, cores() // worker.state.nthreads)
    return run_member(replace(job, threads=threads), report)


def _about_worker(plan: str) -> tuple[bool, dict[str, str], int]:
    """Whether a worker sees the sweep's folder, its versions and its cores."""
    return Path(plan).is_file(), versions(), cores()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_address(scheduler: str) -> None:
    """Raise FluidError for an address that no scheduler can have; Dask would take a minute for it."""
    scheme, sign, rest = scheduler.rpartition("://")
    try:
        place = urlsplit(f"//{rest}")
        known = bool(place.hostname) and place.port is not None
    except ValueError:  # a port that is no number, or above 65,535
        known = False
    if not known or (sign and scheme not in SCHEMES):
        raise FluidError(
            f"--scheduler {scheduler!r}: no Dask scheduler answers there; protocol ({', '.join(SCHEMES)}), "
            "host and port are needed, for example tcp://127.0.0.1:8786"
        )


def require_dask() -> None:
    """Raise FluidError in one sentence when Dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise FluidError(
            "workers need Dask, which is missing; install it with: pip install 'ecs-fluid[sweep]', or run "
            "the members one after another with --workers 0 (workers=0 in Python)"
        ) from None
