"""Draw the frames of a movie, in this process or in several at once, in order and with the same pixels.

Each of n processes draws every n-th frame and writes it to a pipe, which holds a fraction of a picture: none
runs ahead, and memory does not grow. They are spawned, not forked: neither VTK nor numba's threads survive a
fork.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol

from ecs_fluid.arguments import whole_number
from ecs_fluid.errors import FluidError
from ecs_fluid.viz.film import Picture

MOST = 256


class PictureSource(Protocol):
    """Pictures that can be drawn from any row on; those drawn by several processes must be picklable."""

    def __len__(self) -> int: ...

    def pictures(self, rows: range | None = None) -> Iterator[Picture]:
        """The pictures (height, width, 3) of these rows, all of them by default."""


@dataclass(frozen=True)
class Drawing:
    """The frames of a movie as pictures.

    `scene` makes a scene, whose `show_timed` gets each frame and the seconds of the movie before it. With
    `first_sets_colours` the colours of all are those of the first frame.
    """

    frames: Iterable[Any]
    scene: Callable[[], Any]
    fps: float
    first_sets_colours: bool = False

    def __len__(self) -> int:
        if not isinstance(self.frames, Sequence):
            raise FluidError("jobs above 1 need the frames as a sequence, not as an iterator")
        return len(self.frames)

    def pictures(self, rows: range | None = None) -> Iterator[Picture]:
        """See PictureSource."""
        from ecs_fluid.viz.scene import pixels

        scene = self.scene()
        try:
            if isinstance(self.frames, Sequence) and rows is not None:
                if self.first_sets_colours and rows[0]:
                    scene.show_timed(self.frames[0], 0.0)
                chosen: Iterable[tuple[int, Any]] = ((row, self.frames[row]) for row in rows)
            else:
                chosen = enumerate(self.frames)
            for row, timed in chosen:
                scene.show_timed(timed, row / self.fps)
                yield pixels(scene.plotter)
        finally:
            scene.close()


def draw(drawing: PictureSource, jobs: int) -> Iterator[Picture]:
    """All pictures in order, drawn by as many processes as there are `jobs`."""
    jobs = whole_number(jobs, "jobs", 1, MOST)
    count = min(jobs, len(drawing)) if jobs > 1 else 1
    if count < 2:
        return drawing.pictures()
    try:
        parcel = pickle.dumps(drawing)
    except Exception as error:
        raise FluidError(
            f"these frames cannot be drawn by several processes ({error}); use jobs = 1, or a list or "
            "Recording of frames, with functions that are defined in a module"
        ) from None
    return _draw_in_processes(parcel, len(drawing), count)


def _draw_in_processes(parcel: bytes, rows: int, count: int) -> Iterator[Picture]:
    each = str(max(1, (os.cpu_count() or 1) // count))
    # Threads of Mesa's software rendering and of the kernels: together as many as there are cores.
    environment = {"LP_NUM_THREADS": each, "NUMBA_NUM_THREADS": each, **os.environ}
    command = [sys.executable, "-P", "-m", "ecs_fluid.viz.drawers"]
    children: list[subprocess.Popen[bytes]] = []
    try:
        for first in range(count):
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
            children.append(child)
            assert child.stdin is not None
            with child.stdin as stream:
                pickle.dump((sys.path, range(first, rows, count)), stream)
                stream.write(parcel)
        for row in range(rows):
            yield _receive(children[row % count])
    except BrokenPipeError:
        raise FluidError("a drawing process ended before it drew anything; try jobs = 1") from None
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()
            assert child.stdout is not None
            child.stdout.close()


def _receive(child: subprocess.Popen[bytes]) -> Picture:
    assert child.stdout is not None
    try:
        found: Picture | str = pickle.load(child.stdout)
    except (EOFError, pickle.UnpicklingError):
        raise FluidError(
            f"a drawing process ended with status {child.wait()}; if memory ran out, use fewer jobs"
        ) from None
    if isinstance(found, str):
        raise FluidError(found)
    return found


def _draw(source: IO[bytes], sink: IO[bytes]) -> None:
    """The work of a process: read what to draw, and write its pictures."""
    sys.path[:], rows = pickle.load(source)
    drawing: PictureSource = pickle.load(source)
    try:
        for picture in drawing.pictures(rows):
            pickle.dump(picture, sink)
            sink.flush()
    except FluidError as error:
        pickle.dump(str(error), sink)
        sink.flush()


if __name__ == "__main__":
    # Output that anything prints must not come between the pictures.
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        _draw(sys.stdin.buffer, pipe)
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(130)  # the process that reads the pictures has ended, or was interrupted
