"""Memory over 1,000 frames, of this process and of those that draw for it."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import pytest

from ecs_fluid.kernels.surface import shapes
from ecs_fluid.viz.movie import movie
from ecs_fluid.viz.surface_movie import surface_movie
from ecs_fluid.viz.surface_scene import TimedDistances
from ecs_fluid.viz.surfaces import Distances

FRAMES = 1000
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc"),
]


class Made(Sequence[Any]):
    """Frames made when asked for; picklable, as they stand in a module."""

    def __len__(self) -> int:
        return FRAMES

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Any: ...
    def __getitem__(self, index: int | slice) -> Any:
        assert not isinstance(index, slice)
        return self.frame(range(FRAMES)[index])

    def frame(self, number: int) -> Any:
        """A ring of 4,000 tracers and more: its arrays have another size every time."""
        angle, r, z = (
            np.random.default_rng(5).uniform((0, 0.9, -0.1), (2 * np.pi, 1.1, 0.1), (4000 + number, 3)).T
        )
        x = np.stack((r * np.cos(angle), r * np.sin(angle), z), axis=1)
        return 0.01 * number, {"smoke": {"Position.x": x + 0.001 * number}}


class Balls(Made):
    """Distances to a ball that comes and goes."""

    def frame(self, number: int) -> TimedDistances:
        x = np.linspace(-1.0, 1.0, 21)
        points = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1)
        phi = shapes.sphere(points, np.zeros(3), 0.5 + 0.3 * np.sin(0.1 * number))
        return TimedDistances(0.01 * number, Distances(phi, np.full(3, -1.0), np.full(3, 0.1)))


Made.__module__ = "tests.viz.test_long_movies"


def resident() -> int:
    """Memory of this process and of its children, ffmpeg apart, in bytes."""
    gc.collect()
    total = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, _, rest = (entry / "stat").read_text().rpartition(")")
            ours = int(entry.name) == os.getpid() or int(rest.split()[1]) == os.getpid()
            if ours and "ffmpeg" not in name:
                total += int((entry / "statm").read_text().split()[1]) * 4096
        except OSError:
            continue  # it has ended meanwhile
    return total


@pytest.mark.parametrize("kind", ["particles", "two processes", "surface"])
def test_memory_does_not_grow(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """10 MB for the allocator over 900 frames; kept, their pictures alone (37 kB each) would be 33 MB, and
    their arrays (4,500 rows of 12 bytes and more) another 50 MB."""
    import sys

    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    monkeypatch.setitem(sys.modules, "tests.viz.test_long_movies", sys.modules[__name__])
    sizes: dict[int, int] = {}

    def watch(count: int) -> None:
        if count in (100, FRAMES):
            sizes[count] = resident()

    target, size = tmp_path / "long.mp4", (128, 96)
    if kind == "surface":
        surface_movie(target, Balls(), size=size, progress=watch)
    else:
        movie(target, Made(), size=size, progress=watch, jobs=2 if kind == "two processes" else 1)
    print(f"{kind}: {sizes[100] / 1e6:.1f} MB after 100 frames, {sizes[FRAMES] / 1e6:.1f} MB after {FRAMES}")
    assert sizes[FRAMES] - sizes[100] < 10_000_000
