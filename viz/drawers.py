"""Draw the frames of a movie, in this process or in several at once, in order and with the same pixels.

Each process draws every n-th frame and hands it over by a pipe, which holds a fraction of a picture: nobody
runs ahead, and memory does not grow. They are started afresh, not forked: neither VTK nor numba's threads
live through a fork.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.errors import FluidError

Picture = NDArray[np.uint8]
MOST = 256


class Drawn(ABC):
    """Pictures that can be drawn from any row on; those drawn by several processes must be picklable."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def pictures(self, rows: range | None = None) -> Iterator[Picture]:
        """The pictures (height, width, 3) of these rows, all of them by default."""


def drawn(drawing: Drawn, jobs: int) -> Iterator[Picture]:
    """All pictures in order, drawn by as many processes as there are `jobs`."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or not 1 <= jobs <= MOST:
        raise FluidError(f"jobs {jobs!r} is not allowed: 1 to {MOST} processes are")
    count = min(jobs, len(drawing)) if jobs > 1 else 1
    if count < 2:
        return drawing.pictures()
    try:
        parcel = pickle.dumps(drawing)
    except Exception as error:
        raise FluidError(
            f"these frames cannot be drawn by several processes ({error}); take jobs=1, or a list or "
            "Recording of frames and functions that stand in a module"
        ) from None
    return _side_by_side(parcel, len(drawing), count)


def _side_by_side(parcel: bytes, rows: int, count: int) -> Iterator[Picture]:
    each = str(max(1, (os.cpu_count() or 1) // count))
    # Threads of Mesa's software rendering and of the kernels: together as many as there are cores.
    environment = {"LP_NUM_THREADS": each, "NUMBA_NUM_THREADS": each, **os.environ}
    command = [sys.executable, "-m", "ecs_fluid.viz.drawers"]
    children: list[subprocess.Popen[bytes]] = []
    try:
        for first in range(count):
            child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
            )
            children.append(child)
            assert child.stdin is not None
            with child.stdin as stream:
                pickle.dump((sys.path, range(first, rows, count)), stream)
                stream.write(parcel)
        for row in range(rows):
            yield _received(children[row % count])
    except BrokenPipeError:
        raise FluidError("a process that draws ended before it began; try --jobs 1") from None
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()
            assert child.stdout is not None
            child.stdout.close()


def _received(child: subprocess.Popen[bytes]) -> Picture:
    assert child.stdout is not None
    head = _bytes(child.stdout, 12)
    kind, first, second = np.frombuffer(head, np.int32) if len(head) == 12 else (0, 0, 0)
    if kind == 1:
        body = _bytes(child.stdout, 3 * int(first) * int(second))
        if len(body) == 3 * int(first) * int(second):
            return np.frombuffer(body, np.uint8).reshape(int(first), int(second), 3)
    if kind == 2:
        raise FluidError(_bytes(child.stdout, int(first)).decode())
    raise FluidError(
        f"a process that draws has ended with status {child.wait()}; fewer of them (--jobs) need less memory"
    )


def _bytes(stream: IO[bytes], count: int) -> bytes:
    parts: list[bytes] = []
    while count:
        part = stream.read(count)
        if not part:
            break
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _draw(source: IO[bytes], sink: IO[bytes]) -> None:
    """What a process does: read what to draw, and write every `count`-th picture."""
    sys.path[:], rows = pickle.load(source)
    drawing: Drawn = pickle.load(source)
    try:
        for picture in drawing.pictures(rows):
            height, width, _ = picture.shape
            sink.write(np.array([1, height, width], np.int32).tobytes())
            sink.write(np.ascontiguousarray(picture).tobytes())
            sink.flush()
    except FluidError as error:
        text = str(error).encode()
        sink.write(np.array([2, len(text), 0], np.int32).tobytes() + text)
        sink.flush()


if __name__ == "__main__":
    # Whatever prints must not come between the pictures.
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        _draw(sys.stdin.buffer, pipe)
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(130)  # the one that asked for pictures is gone, or was told to stop
